# Two engines side by side: flags in the words of each, what has no word there, and which leaves more.
models=../fixtures/models
side() { "$OOMSIGHT" plan --offline --gpu 4090 "$@" 2>&1; }
side --engine vllm=0.32.0 --engine sglang=0.5.23 -- $models/small-llama --max-model-len 8192 --gpu-memory-utilization 0.95
side --engine vllm=0.32.0 --engine sglang=0.5.23 -- sglang serve $models/small-llama --context-length 4096 --kv-cache-dtype fp8_e4m3 --port 80 | tail -n 4
side --engine sglang=0.5.23 -- vllm serve $models/small-llama --max-model-len 16k --no-enable-prefix-caching | sed -n '3,4p;/carried/,$p'
side --vllm 0.11.0,0.32.0 -- $models/small-llama | head -n 2
side --lang zh --engine vllm=0.32.0 --engine sglang=0.5.23 -- $models/small-llama --max-model-len 8192 --gpu-memory-utilization 0.95
side --vllm "$(printf '0.%s,' 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23)0.24" -- $models/small-llama
