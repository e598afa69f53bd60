# Where the weights do not fit: a built-in checkpoint of the same model, by its name and with its command.
plan() { "$OOMSIGHT" plan --offline "$@"; }
fits() { plan "$@" | sed -n '/Suggested command/,/Trade-off/p;/It fits on/,/tensor-parallel-size\|tp-size\|^$/p;/fit on (/,/tp-size/p'; }

echo "== its own flags stay, those about the old weights go"
fits --gpu L4 --vllm 0.32.0 -- vllm serve Qwen/Qwen3-32B --revision main --served-model-name Qwen/Qwen3-32B --max-model-len 4096
echo "== no kernels for FP8 below 8.0 in SGLang"
fits --gpu T4 -- sglang serve --model-path Qwen/Qwen3-8B
plan --gpu T4 -- sglang serve --model-path Qwen/Qwen3-8B-FP8 | sed -n '1p;/Expected/,/capability: 75/p;/It fits/,$p'
echo "== the engine's pool is not modelled: the weights fit"
fits --gpu L40S -- sglang serve --model-path Qwen/Qwen2.5-VL-72B-Instruct --enable-torch-compile
echo "== in Python, in a container, in JSON, in Markdown, in Chinese"
fits --gpu T4 -- "LLM(model='Qwen/Qwen3-8B', max_model_len=4096)"
fits --gpu 3060 -- docker run --gpus all vllm/vllm-openai:v0.19.1 --model=Qwen/Qwen3-14B | grep docker
plan --gpu T4 --json -- vllm serve Qwen/Qwen3-8B --max-model-len 4096 |
    python3 -c 'import json, sys; [print(c["model"], c["change"], c["verdict"], c["kv_tokens"]) for c in json.load(sys.stdin)["needs"]["checkpoints"]]'
plan --gpu T4 --format md -- vllm serve Qwen/Qwen3-8B --max-model-len 4096 | grep -A4 'It fits'
plan --gpu T4 --lang zh -- vllm serve Qwen/Qwen3-8B --max-model-len 4096 | grep -A1 改用
echo "== a folder has no name, and nothing smaller is known of this model"
plan --gpu 3060 --vllm 0.32.0 -- vllm serve ../fixtures/models/small-moe | grep -c 'this GPU with [A-Z]'
plan --gpu L4 -- vllm serve Qwen/Qwen3-VL-30B-A3B-Instruct | grep -A1 'Suggested command\|this GPU'
