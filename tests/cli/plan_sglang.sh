# The second engine, by its command or by its name; what it refuses, what nobody read, and where check finds it.
models=../fixtures/models
brief() { "$OOMSIGHT" plan --offline --gpu l40s "$@" 2>&1 | head -n "$lines"; }
lines=3
brief --engine sglang=0.5.23 -- $models/small-llama
brief --engine sglang=0.5.23 -- bash -c "exec sglang serve $models/small-llama --tp 2"
brief -- docker run --gpus all lmsysorg/sglang:v0.5.23-cu129 python3 -m sglang.launch_server --model-path $models/small-llama
lines=1
for release in 0.4.6 0.5.5; do
    brief --engine sglang=$release -- $models/small-llama
    brief --engine sglang=$release -- $models/small-sliding
    brief --engine sglang=$release -- $models/small-hybrid
done
brief --engine sglang=0.5.5 -- $models/small-llama --speculative-algorithm STANDALONE --speculative-draft-model-path $models/small-llama
brief --engine nemo -- vllm serve $models/small-llama
brief --engine sglang=0.4.1 -- $models/small-llama
lines=4
brief --engine sglang=0.5.23 -- $models/small-llama --max-modle-len 4096
brief --engine sglang=0.5.23 -- $models/small-hybrid
own() { "$OOMSIGHT" plan --offline --json --gpu h100 --engine sglang=0.5.23 -- "$@" | python3 -c 'import json, sys; print(sorted(json.load(sys.stdin)["setup"]["own"].items()))'; }
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
python3 - "$models/small-llama/config.json" "$work/config.json" <<'PY'
import json, sys
text = json.load(open(sys.argv[1]))
text["model_type"] = "qwen3"
json.dump({"architectures": ["Qwen3VLForConditionalGeneration"], "model_type": "qwen3_vl", "text_config": text,
           "vision_config": {"depth": 27, "hidden_size": 1152, "num_heads": 16, "intermediate_size": 4304, "patch_size": 16}}, open(sys.argv[2], "w"))
PY
own sglang serve "$work"
own sglang serve "$work" --mem-fraction-static 0.8
own sglang serve $models/small-llama --mem-fraction-static 1.2
own sglang serve $models/small-llama --disaggregation-mode prefill
own sglang serve $models/small-llama --disaggregation-mode decode --max-running-requests 16
own sglang serve BAAI/bge-m3
lines=1
brief --engine sglang=0.5.23 -- $models/small-hybrid --max-mamba-cache-size 4
brief --engine sglang=0.5.23 -- $models/small-hybrid --max-mamba-cache-size 5
brief --engine sglang=0.5.23 -- $models/small-hybrid --disaggregation-mode decode
echo "requests of the whole length never fit: the longest that little brings"
"$OOMSIGHT" plan --offline --gpu 4090 --engine sglang=0.5.23 -- sglang serve meta-llama/Llama-3.1-8B-Instruct | sed -n '/^Suggested/,/not enough/p'
echo "sparse latent attention: what a token takes by release, device and type"
token() { "$OOMSIGHT" plan --offline --json --gpu "$1" --engine "sglang=$2" -- sglang serve zai-org/GLM-5.2-FP8 --tp 8 $3 | python3 -c 'import json, sys; plan = json.load(sys.stdin); print(plan["kv"]["bytes_per_token"], plan["kv"]["tokens"] % 64)'; }
token h200x8 0.5.12
token h200x8 0.5.16 "--kv-cache-dtype fp8_e4m3"
token h200x8 0.5.23
token h200x8 0.5.23 "--kv-cache-dtype fp8_e4m3"
token b200x8 0.5.23
token b200x8 0.5.23 "--dsa-prefill-backend flashmla_kv --dsa-decode-backend flashmla_kv"
"$OOMSIGHT" plan --offline --gpu h100 -- sglang serve Qwen/Qwen3-8B --tp 1000000000000 | sed -n 's/^    sglang/sglang/p'
"$OOMSIGHT" plan --offline --json --gpu gb10 -- sglang serve Qwen/Qwen3-8B | grep -o 'At --[a-z-]* '
printf '#!/bin/sh\nexec python3 -m sglang.launch_server --model-path "%s" --mem-fraction-static 0.99\n' "$PWD/$models/small-llama" >"$work/start.sh"
cd "$work" && "$OOMSIGHT" check --gpu l40s start.sh 2>&1 | grep -oE 'start.sh:2.*|on .*SGLang [0-9.]*' | head -n 2
