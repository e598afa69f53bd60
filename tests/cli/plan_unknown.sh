# What is not known is said: a quantisation or an architecture nobody here has heard of gives no certain answer, and exit 3.
models=../fixtures/models
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/quant" "$work/class" "$work/experts"
sed 's/{/{"quantization_config": {"quant_method": "fancy2bit"},/' $models/small-llama/config.json >"$work/quant/config.json"
sed 's/LlamaForCausalLM/FancyForCausalLM/' $models/small-llama/config.json >"$work/class/config.json"
sed 's/"[A-Za-z0-9]*ForCausalLM"/"FancyForCausalLM"/' $models/small-moe/config.json >"$work/experts/config.json"
answer() {
    "$OOMSIGHT" plan --offline --json "$@" >"$work/plan"
    echo "exit $?: $(grep -oE '"(verdict|likely|why)": ("[^"]*"|null)' "$work/plan" | head -3 | tr '\n' ' ')"
}
echo "a method that is not known: where 16 bits fit, between, and where 2 bits do not"
answer --gpu 4090 -- vllm serve "$work/quant" --max-model-len 2048
answer --gpu-total 4GiB --gpu-cc 8.9 -- vllm serve "$work/quant" --gpu-memory-utilization 0.6 --max-model-len 2048
answer --gpu-total 900MiB --gpu-cc 8.9 -- vllm serve "$work/quant" --gpu-memory-utilization 0.3 --max-model-len 2048
echo "a class that is not known: never certain that it starts"
answer --gpu 4090 -- vllm serve "$work/class" --max-model-len 2048
answer --strict --gpu 4090 -- vllm serve "$work/class" --max-model-len 2048
answer --gpu-total 1GiB --gpu-cc 8.9 -- vllm serve "$work/class" --gpu-memory-utilization 0.3 --max-model-len 2048
echo "... and its experts are counted"
"$OOMSIGHT" plan --offline --json --gpu h200 -- vllm serve "$work/experts" | grep -oE '"experts": [0-9]+' | head -1
"$OOMSIGHT" plan --offline --gpu h200 -- vllm serve "$work/experts" | head -6
