# The command inside a container or a shell: the image's release, its volumes, the string of `bash -c`; a client is no engine; the name of a
# model from the Hugging Face cache.
models=$(cd ../fixtures/models && pwd)
first() { "$OOMSIGHT" plan --offline --gpu h100 "$@" 2>&1 | sed -n 2p; }
first -- docker run --gpus all -v "$models:/models" vllm/vllm-openai:v0.11.0 --model /models/small-llama
first --vllm 0.19.1 -- docker run --gpus all -v "$models:/models:ro" vllm/vllm-openai:v0.11.0 --model /models/small-llama
first -- docker run --mount "type=bind,source=$models,target=/m" vllm/vllm-openai:latest --model /m/small-llama
first -- bash -c "cd / && exec vllm serve '$models/small-llama' --max-model-len 1024; echo done"
first -- docker run --entrypoint bash -v "$models:/models" vllm/vllm-openai:v0.19.1 -c "vllm serve /models/small-llama"
"$OOMSIGHT" plan --offline --gpu h100 -- vllm bench serve --model "$models/small-llama" 2>&1; echo "exit $?"
cache=$(mktemp -d)
mkdir -p "$cache/models--org--small-llama/snapshots/0123456789012345678901234567890123456789" "$cache/models--org--small-llama/refs"
cp "$models/small-llama/config.json" "$cache/models--org--small-llama/snapshots/0123456789012345678901234567890123456789/"
printf 0123456789012345678901234567890123456789 >"$cache/models--org--small-llama/refs/main"
HF_HUB_CACHE=$cache "$OOMSIGHT" plan --offline --gpu h100 -- vllm serve org/small-llama 2>&1 | sed -n 2p
rm -r "$cache"
echo "-- an image alone, as a manifest names it: what is suggested can be typed"
"$OOMSIGHT" plan --offline --gpu 4090 --json -- HF_HOME=/data vllm/vllm-openai:v0.19.1 --model Qwen/Qwen3-8B |
    python3 -c 'import json, sys; print(*[one["command"].split(" --")[:3] for one in json.load(sys.stdin)["answers"][:1]])'
