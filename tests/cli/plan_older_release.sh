# A GPU that no PyTorch of the newest release has code for: another release, with the model or a checkpoint of it; the command says nothing else.
for words in '--gpu v100 -- vllm serve Qwen/Qwen2.5-7B-Instruct --max-model-len 8192' '--gpu v100x2 -- vllm serve Qwen/Qwen2.5-32B-Instruct-AWQ -tp 2' \
    '--gpu v100-32gb -- vllm serve meta-llama/Llama-3.1-8B-Instruct' '--gpu v100-32gb -- vllm serve Qwen/Qwen3-14B' \
    '--gpu l4x6 -- vllm serve Qwen/Qwen2.5-32B-Instruct'; do
    "$OOMSIGHT" plan --offline $words | sed -n '/^Suggested/,/Trade-off/p'
done
# Kinds of layers of compressed-tensors that a release does not run there are no way out.
"$OOMSIGHT" plan --offline --gpu v100-32gb --engine vllm=0.19.1 -- vllm serve RedHatAI/Qwen3-14B-quantized.w4a16 | sed -n '1p;/Expected/,/Current/p'
