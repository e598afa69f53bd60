# Models in common use are known without a network: by id, by another name of theirs; never at a revision. A hub that does not answer is asked once.
export HF_HUB_CACHE=/nowhere/hub HF_ENDPOINT=http://127.0.0.1:9
plan() { "$OOMSIGHT" plan --vllm 0.19.1 --gpu "RTX 4090" "$@" 2>&1 | head -n 3; }
plan --offline -- vllm serve Qwen/Qwen3-8B
plan -- vllm serve meta-llama/Meta-Llama-3.1-8B-Instruct --max-model-len 8192
plan --offline -- vllm serve Qwen/Qwen3-8B --revision abc
plan --offline -- vllm serve nobody/nothing
plan --offline -- vllm serve qwen3-8b
plan --offline -- Qwen/Qwen3-8B --max-model-len 8192
"$OOMSIGHT" plan --offline --gpu h200x8 --json -- vllm serve deepseek-ai/DeepSeek-R1 -tp 8 | grep -A1 '"assumed"'
work=$(mktemp -d)
printf 'vllm serve Qwen/Qwen3-0.6B --max-model-len 8192\n' >"$work/serve.sh"
(cd "$work" && "$OOMSIGHT" check --offline --gpu l4 --vllm 0.19.1 serve.sh | head -n 1)
printf 'vllm serve nobody/one\nvllm serve nobody/two\nvllm serve Qwen/Qwen3-0.6B --max-model-len 8192\n' >"$work/serve.sh"
(cd "$work" && "$OOMSIGHT" check --gpu l4 --vllm 0.19.1 serve.sh | grep -oE '^serve.sh.*(answer|will start)' | sed 's/:9.*: /:9: /')
rm -r "$work"
