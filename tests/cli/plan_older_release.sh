# A GPU that no PyTorch of the newest release has code for: another release, with the model or a checkpoint of it; the command says nothing else.
for words in '--gpu v100 -- vllm serve Qwen/Qwen2.5-7B-Instruct --max-model-len 8192' '--gpu v100x2 -- vllm serve Qwen/Qwen2.5-32B-Instruct-AWQ -tp 2' \
    '--gpu l4x6 -- vllm serve Qwen/Qwen2.5-32B-Instruct'; do
    "$OOMSIGHT" plan --offline $words | sed -n '/^Suggested/,/Trade-off/p'
done
