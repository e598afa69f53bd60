# One that does not start beside another of its file: both get a command, and with both commands in the file all of it starts.
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
service() { printf '  %s:\n    image: %s\n    command: %s\n' "$@"; }
file() { echo "services:"; cat; }
try() {
    "$OOMSIGHT" check --offline --gpu 4090 "$1" >out; echo "$1: exit $?"
    grep -A2 -E '^    (helps|so that)|used by' out
    "$OOMSIGHT" check --offline --gpu 4090 --format patch "$1" >change
    patch -s -p0 <change 2>/dev/null
    "$OOMSIGHT" check --offline --gpu 4090 --json "$1" >out; echo "with the patch: exit $?"
}
vllm=vllm/vllm-openai:v0.32.0; sglang=lmsysorg/sglang:v0.5.23
{ service chat $vllm "--model Qwen/Qwen3-8B-AWQ --max-model-len 8192"; service embed $vllm "--model Qwen/Qwen3-Embedding-0.6B --runner pooling --gpu-memory-utilization 0.26"; } | file >small.yaml
{ service one $vllm "--model Qwen/Qwen3-4B --max-model-len 8192"; service two $vllm "--model Qwen/Qwen3-4B --max-model-len 8192"; } | file >alike.yaml
{ service chat $vllm "--model Qwen/Qwen3-8B-AWQ --max-model-len 8192 --gpu-memory-utilization 0.7"; service small $vllm "--model Qwen/Qwen3-0.6B --max-model-len 4096 --gpu-memory-utilization 0.15"
  service last $vllm "--model Qwen/Qwen3-0.6B --max-model-len 4096 --gpu-memory-utilization 0.2"; } | file >three.yaml
{ service chat $sglang "python3 -m sglang.launch_server --model-path Qwen/Qwen3-8B-AWQ --context-length 8192"; service embed $vllm "--model Qwen/Qwen3-Embedding-0.6B --runner pooling --gpu-memory-utilization 0.3"; } | file >mixed.yaml
{ service large $vllm "--model Qwen/Qwen3-8B --max-model-len 8192"; service also $vllm "--model Qwen/Qwen3-8B --max-model-len 8192"; } | file >quantized.yaml
for name in small alike three mixed quantized; do try $name.yaml; done
