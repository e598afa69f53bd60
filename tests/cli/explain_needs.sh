# explain reads what the log needs: a text without a command of an engine is answered where the engine's flags cannot be read; plan needs them.
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT
cp -r ../../data "$folder/data"; echo '{' > "$folder/data/engines/vllm/flags.json"
"$OOMSIGHT" explain --ascii --data "$folder/data" ../fixtures/kb/vllm/sampler-warmup/positive.log | head -2
"$OOMSIGHT" plan --offline --gpu l4 --data "$folder/data" -- vllm serve ../fixtures/models/small-llama 2>&1 | sed 's/.*flags.json/flags.json/'
