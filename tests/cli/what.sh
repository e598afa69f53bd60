# What a text is, and which command answers it: told by what stands in it, not by its name.
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
fixtures=$PWD/../fixtures
cd "$work" || exit 1
tell() { printf '%s: ' "$1"; "$OOMSIGHT" what "$2"; }
cp "$fixtures/traces/stranded.trace" by-hand; cp "$fixtures/traces/dryrun.trace" recorded; cp "$fixtures/traces/two-devices.json" snapshot.txt
cp "$fixtures/models/small-llama/config.json" model.txt; cp "$fixtures/deploy/deployment.yaml" manifest; cp "$fixtures/kb/vllm/context-too-long/positive.log" printed
: >empty; printf ' \n' >blank; printf 'hello world\n' >prose; printf '\211PNG\0\0' >picture
printf '$ vllm serve m\n' >prompt; printf 'acme/small-llama\n' >model; printf 'ollama run m\n' >other
printf '$ vllm serve m\nINFO 11-16 12:00:00 [api_server.py:1] hello\n' >both
printf '{"apiVersion":"v1","kind":"Pod","spec":{"containers":[{"name":"a","image":"vllm/vllm-openai","args":["--model","m"]}]}}\n' >pod
printf '{"log":"CUDA out of memory\\n","stream":"stderr"}\n' >docker
for name in by-hand recorded snapshot.txt model.txt manifest printed empty blank prose picture prompt model other both pod docker; do tell "$name" "$name"; done
"$OOMSIGHT" what <prompt
"$OOMSIGHT" what --json - <other
for name in model.txt manifest printed recorded empty prose other; do "$OOMSIGHT" what --json "$name"; done | python3 "$fixtures/../../tools/check_schema.py" "$fixtures/../../data/schema/what.schema.json" && echo "the schema holds"
"$OOMSIGHT" what nowhere; echo "exit $?"
echo "the question as words of a plan, with what the file tells"
printf 'kind: Pod\nspec:\n  nodeSelector: {nvidia.com/gpu.product: NVIDIA-L4}\n  containers:\n  - {name: a, image: "lmsysorg/sglang:v0.5.20", command: [sglang, serve, Qwen/Qwen3-8B], env: [{name: HF_TOKEN, value: mysupersecretkey}]}\n' |
    "$OOMSIGHT" check --offline --json - | grep -o '"engine": "sglang".*"gpus"'
