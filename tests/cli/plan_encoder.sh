# Encoder-only models (embeddings, rerankers): nothing is cached and nothing profiled; the share only has to be free.
plan() { "$OOMSIGHT" plan --offline "$@"; echo "exit $?"; }
plan --gpu l4 -- vllm serve BAAI/bge-m3
plan --gpu l4 --explain -- vllm serve BAAI/bge-base-en-v1.5 | sed -n '/the free-memory/,/^$/p'
echo "-- beside another engine"
plan --gpu l4 --gpu-used 18GiB -- vllm serve BAAI/bge-reranker-v2-m3
echo "-- before vLLM 0.10.2 another engine ran them; SGLang keeps a cache for them"
plan --gpu l4 --vllm 0.9.2 -- vllm serve BAAI/bge-m3 | head -1
plan --gpu l4 -- sglang serve BAAI/bge-m3 | head -1
"$OOMSIGHT" plan --json --offline --gpu l4 -- vllm serve BAAI/bge-m3 |
  python3 -c 'import json, sys; d = json.load(sys.stdin); print(d["verdict"], d["kv"]["tokens"], [p["phase"] for p in d["phases"]])'
