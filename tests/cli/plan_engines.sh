# Two engines side by side: flags in the words of each, what has no word there, and which leaves more.
models=../fixtures/models
side() { "$OOMSIGHT" plan --offline --gpu 4090 "$@" 2>&1; }
side --engine vllm=0.32.0 --engine sglang=0.5.23 -- $models/small-llama --max-model-len 8192 --gpu-memory-utilization 0.95
side --engine vllm=0.32.0 --engine sglang=0.5.23 -- sglang serve $models/small-llama --context-length 4096 --kv-cache-dtype fp8_e4m3 --port 80 | tail -n 4
side --engine sglang=0.5.23 -- vllm serve $models/small-llama --max-model-len 16k --no-enable-prefix-caching | sed -n '3,4p;/carried/,$p'
side --vllm 0.11.0,0.32.0 -- $models/small-llama | head -n 2
side --lang zh --engine vllm=0.32.0 --engine sglang=0.5.23 -- $models/small-llama --max-model-len 8192 --gpu-memory-utilization 0.95
words() { side "$@" | sed -n '/in the words of/,/^$/p;/carried/,+1p'; }
words --engine sglang=0.5.23 -- vllm serve $models/small-llama --enable-lora --max-lora-rank 32 --lora-modules a=b c=d --speculative-config '{"method":"ngram","num_speculative_tokens":3}'
words --engine sglang=0.5.23 -- vllm serve $models/small-llama --max-num-seqs 8 --speculative-config '{"method":"mtp","num_speculative_tokens":2}' --cudagraph-capture-sizes 1 2 4
words --engine vllm=0.32.0 -- sglang serve $models/small-llama --speculative-algorithm NEXTN --speculative-num-steps 2 --speculative-eagle-topk 4 --max-lora-rank 8 --enable-lora
side --vllm "$(printf '0.%s,' 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23)0.24" -- $models/small-llama
