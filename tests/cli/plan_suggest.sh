# What is suggested is a whole command that starts, with every flag once and the least step; what is said to change nothing changes
# nothing in the phase that fails.
llama=../fixtures/models/small-llama moe=../fixtures/models/small-moe hybrid=../fixtures/models/small-hybrid
plan() { "$OOMSIGHT" plan --offline "$@"; }
json() { "$OOMSIGHT" plan --offline --json "$@" | python3 -c 'import json, sys; plan = json.load(sys.stdin); '"$CODE"; }
paste() { plan "$@" | awk '/^Suggested command/{on=1} /^$/{on=0} /^  (Longest|Highest)/{on=0} on' | sed 's/^ *//'; }
echo "a length that is refused and then too long for the cache is said once"
paste --gpu-total 5GiB --gpu-cc 8.9 --vllm 0.24.0 -- vllm serve $llama --max-model-len 400000
echo "a length of which the lower end of the range is certain, and where the release has it the engine's own choice"
for version in 0.13.0 0.24.0; do
    plan --gpu-total 5GiB --gpu-cc 8.9 --vllm $version -- vllm serve $llama --gpu-memory-utilization 0.74 | grep -A6 '^Suggested command'
    CODE='print([(f["verdict"], f["change"]) for f in plan["fixes"] if "--max-model-len" in f["change"]])'
    json --gpu 4090 --vllm $version -- vllm serve $llama --gpu-memory-utilization 0.2
    CODE='print([f["change"][1] for f in plan["fixes"] if f["change"][0] == "--max-model-len"][0])'
    length=$(json --gpu 4090 --vllm $version -- vllm serve $llama --gpu-memory-utilization 0.2)
    CODE='print(plan["kv"]["needed_bytes"] <= plan["kv"]["available_low_bytes"])'
    json --gpu 4090 --vllm $version -- vllm serve $llama --gpu-memory-utilization 0.2 --max-model-len "$length"
done
echo "three refusals are mended one after the other"
paste --gpu 4090 --vllm 0.24.0 -- vllm serve $llama --max-model-len 400000 --quantization awq --enable-auto-tool-choice
echo "a backend that does not go is left out, and a number of blocks that holds the cache down"
paste --gpu 4090 --vllm 0.30.0 -- vllm serve ../fixtures/models/small-latent --attention-backend FLASHINFER
paste --gpu 4090 --vllm 0.24.0 -- vllm serve $llama --num-gpu-blocks-override 100
echo "the utilization that is nearest, in hundredths"
paste --gpu gb10 --vllm 0.32.0 -- vllm serve $llama
paste --gpu gb10 --vllm 0.32.0 -- vllm serve $moe --kv-cache-memory-bytes 36864M
echo "a share far below is raised in one step"
paste --gpu l4 --vllm 0.24.0 -- vllm serve $llama --max-model-len 8192 --gpu-memory-utilization 0.12
echo "a flag that changes nothing in the phase that fails, and is needed later"
CODE='print(plan["phase"]); [print(" ", i["flag"], i["needed_by"]) for i in plan["inert"]]'
json --gpu-total 12GiB --gpu-cc 9.0 --vllm 0.19.1 -- vllm serve $hybrid --max-model-len 262144
plan --gpu-total 12GiB --gpu-cc 9.0 --vllm 0.19.1 -- vllm serve $hybrid --max-model-len 262144 | grep -A4 'changes nothing'
echo "images that are asked for stay, as do graphs and the type of the cache"
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
mkdir "$work/see" "$work/four"
python3 - "$work" <<'PYTHON'
import json, sys
see = json.load(open("../fixtures/models/small-hybrid/config.json"))
see["vision_config"] = {"depth": 27, "hidden_size": 1152, "in_channels": 3, "intermediate_size": 4304, "model_type": "qwen3_5", "num_heads": 16, "num_position_embeddings": 2304,
                        "out_hidden_size": see["text_config"]["hidden_size"], "patch_size": 16, "spatial_merge_size": 2, "temporal_patch_size": 2, "deepstack_visual_indexes": []}
json.dump(see, open(sys.argv[1] + "/see/config.json", "w"))
four = json.load(open("../fixtures/models/small-llama/config.json"))
four["quantization_config"] = {"quant_method": "compressed-tensors", "format": "pack-quantized", "ignore": ["re:.*self_attn.*", "lm_head"], "config_groups": {
    "group_0": {"targets": ["Linear"], "weights": {"num_bits": 4, "type": "int", "group_size": 32, "strategy": "group", "symmetric": True}}}}
json.dump(four, open(sys.argv[1] + "/four/config.json", "w"))
PYTHON
CODE='print({flag: sum(flag in fix["change"] for fix in plan["fixes"]) > 0 for flag in ("--language-model-only", "--enforce-eager", "--kv-cache-dtype")})'
json --gpu-total 12GiB --gpu-cc 9.0 --vllm 0.32.0 -- vllm serve "$work/see"
json --gpu-total 12GiB --gpu-cc 9.0 --vllm 0.32.0 -- vllm serve "$work/see" --limit-mm-per-prompt '{"image": 2}' --no-enforce-eager --kv-cache-dtype bfloat16
echo "weights in host memory: the newer runner has no offloader before 0.28"
for version in 0.23.0 0.27.1 0.28.0; do
    CODE='print(plan["engine"]["version"], plan["weights_bytes"], [n for n in plan["notes"] if "offload" in n])'
    json --gpu 4090 --vllm $version -- vllm serve $llama --cpu-offload-gb 1
done
CODE='print(plan["engine"]["version"], plan["weights_bytes"])'
json --gpu 4090 --vllm 0.27.1 --env VLLM_USE_V2_MODEL_RUNNER=0 -- vllm serve $llama --cpu-offload-gb 1
echo "and it is not offered there"
CODE='print(plan["verdict"], any("--cpu-offload-gb" in fix["change"] for fix in plan["fixes"]))'
json --gpu-total 2GiB --gpu-cc 8.9 --vllm 0.27.1 -- vllm serve $llama
json --gpu-total 2GiB --gpu-cc 8.9 --vllm 0.28.0 -- vllm serve $llama
echo "other devices are of the same class, and the fewest of them by our own plan"
plan --gpu orin-nano-4gb --vllm 0.19.1 -- vllm serve $llama | grep -A3 'No flag is enough'
plan --gpu 3060 --vllm 0.32.0 -- vllm serve $moe | grep -A4 'a 4-bit checkpoint'
echo "a checkpoint of 4 bits is not one more time in 4 bits"
plan --gpu gb10 --vllm 0.32.0 -- vllm serve "$work/four" --kv-cache-memory-bytes 36864M | grep -c '4-bit checkpoint'
CODE='print(plan["needs"]["checkpoint"])'
json --gpu-total 1100MiB --gpu-cc 8.9 --vllm 0.32.0 -- vllm serve "$work/four"
echo "-- an answer that keeps little of the length has a 4-bit checkpoint beside it; another release is a lever"
"$OOMSIGHT" plan --offline --gpu 5090 --vllm 0.32.0 -- vllm serve Qwen/Qwen3-30B-A3B-FP8 | grep -E 'this GPU with|serve .*Int4' | sed 's/ (.*//'
"$OOMSIGHT" plan --offline --gpu h20 --vllm 0.13.0 -- vllm serve Qwen/Qwen2.5-72B-Instruct --quantization fp8 | grep 'pip install' | sed 's/==[0-9.]*/==N/'
echo "-- a whole command with another checkpoint stands before flags that cost more"
"$OOMSIGHT" plan --offline --gpu t4 --vllm 0.32.0 -- vllm serve microsoft/phi-4 | grep -m 1 -o 'vllm serve RedHatAI[^ ]*\|--cpu-offload-gb'
exit 0
