# explain reads what the log needs: a text without a command of an engine is answered where the engine's flags cannot be read; plan needs them.
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT
cp -r ../../data "$folder/data"; echo '{' > "$folder/data/engines/vllm/flags.json"
"$OOMSIGHT" explain --ascii --data "$folder/data" ../fixtures/kb/vllm/sampler-warmup/positive.log | head -2
"$OOMSIGHT" plan --offline --gpu l4 --data "$folder/data" -- vllm serve ../fixtures/models/small-llama 2>&1 | sed 's/.*flags.json/flags.json/'
echo "the text leaves several phases: the plan of its command fails in one of them, or starts"
for model in Qwen3-32B Qwen3-0.6B; do
    "$OOMSIGHT" explain - <<LOG | grep -E '^[A-Z]|plan '
$ vllm serve Qwen/$model
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 50.00 MiB. GPU 0 has a total capacity of 14.56 GiB of which 8.00 MiB is free. Including non-PyTorch memory, this process has 14.55 GiB memory in use.
LOG
done
