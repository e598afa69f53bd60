# What people type first, with the models and devices they have: refused where the engine refuses, a decision where memory is short, answers
# that do not contradict themselves, and the release of the image.
export HF_HUB_CACHE=/nowhere/hub HF_ENDPOINT=http://127.0.0.1:9
plan() { "$OOMSIGHT" plan --offline "$@"; echo "exit $?"; }
first() { plan "$@" | sed -n '1p;$p' | paste -sd ' '; }
refused() { version=$1 gpu=$2; shift 2; echo "$version, $gpu: $*"; first --vllm "$version" --gpu "$gpu" -- vllm serve "$@"; }
echo "-- refused at once"
refused 0.32.0 h100x4 Qwen/Qwen3-0.6B -tp 3
refused 0.32.0 h100x4 Qwen/Qwen3-8B -tp 3
refused 0.32.0 h100 Qwen/Qwen3-0.6B --max-model-len 100000
refused 0.32.0 h100 Qwen/Qwen3-0.6B --quantization nonsense
refused 0.32.0 h100 Qwen/Qwen3-0.6B --quantization awq
refused 0.32.0 h100 Qwen/Qwen3-0.6B --max-num-batched-tokens 100 --no-enable-chunked-prefill
refused 0.11.0 h100 Qwen/Qwen3-0.6B --block-size 17
refused 0.32.0 h100x4 Qwen/Qwen3-0.6B -tp 8
refused 0.32.0 h100x1 Qwen/Qwen3-0.6B -tp 2
refused 0.32.0 h100 Qwen/Qwen3-0.6B extra words
refused 0.32.0 h100 Qwen/Qwen3-0.6B --max-model-length 8192
refused 0.9.0 h100 openai/gpt-oss-20b
refused 0.10.0 h100x4 Qwen/Qwen3.5-122B-A10B -tp 4
refused 0.8.0 h100 Qwen/Qwen3-0.6B
refused 0.32.0 v100 openai/gpt-oss-20b
refused 0.11.0 h100x8 Qwen/Qwen3-235B-A22B-FP8 -tp 8
echo "-- taken by this release"
refused 0.32.0 h100 Qwen/Qwen3-0.6B --block-size 17
echo "-- the answers, planned again: each starts, is round and long enough, and holds no flag that is said to change nothing"
"$OOMSIGHT" --version >/dev/null && python3 - <<'P'
import json, os, re, subprocess
def plan(gpu, model, *flags):
    words = [os.environ["OOMSIGHT"], "plan", "--offline", "--json", "--vllm", "0.32.0", "--gpu", gpu, "--", "vllm", "serve", model, *flags]
    return json.loads(subprocess.run(words, stdout=subprocess.PIPE, check=False).stdout)
for gpu, model, *flags in (["4090", "Qwen/Qwen3-32B-AWQ"], ["3090", "Qwen/Qwen3-32B-AWQ"], ["4090", "Qwen/Qwen3-32B-AWQ", "--max-model-len", "8192", "--gpu-memory-utilization", "0.95"],
                           ["3090", "Qwen/Qwen2.5-Omni-7B"], ["4090", "deepseek-ai/DeepSeek-R1"], ["4090", "google/gemma-3-27b-it"], ["4090", "Qwen/Qwen3-8B"]):
    report = plan(gpu, model, *flags)
    inert = {entry["flag"] for entry in report["inert"]}
    offers = report["answers"] + report["fixes"]
    text = [" ".join(offer["change"]) for offer in offers if "model" not in offer]  # what has no effect is said of the weights that are asked for
    lengths = [int(n) for change in text for n in re.findall(r"--max-model-len (\d+)", change)]
    offloads = [float(n) for change in text for n in re.findall(r"--cpu-offload-gb (\d+)", change)]
    again = [plan(gpu, answer.get("model", model), *flags, *answer["change"])["likely"] for answer in report["answers"]]
    print(gpu, model, *flags, "->", report["verdict"], "in", report["phase"])
    print("  answers %d, again: %s; shortest at least 2048: %s; offload within 64: %s; contradictions: %d" %
          (len(again), sorted(set(again)), min(lengths, default=2048) >= 2048, max(offloads, default=0) <= 64, sum(set(inert) >= {word for word in change.split() if word.startswith("--")} != set() for change in text)))
    longest = max([answer["max_model_len"]["certain"] or 0 for answer in report["answers"]], default=0)
    print("  a context of 16k or more: %s; a checkpoint or GPUs: %s; raw byte counts: %s" %
          (longest >= 16384, bool(report["needs"] and (report["needs"]["checkpoint"] or report["needs"]["gpus"])), bool(re.search(r"\d{8,}", " ".join(text)))))
P
echo "-- a decision, in words and in the exit code"
plan --vllm 0.32.0 --gpu 4090 -- vllm serve Qwen/Qwen3-8B | sed -n '1p;/requests of/p;$p'
plan --vllm 0.32.0 --gpu 4090 -- vllm serve Qwen/Qwen3-32B-AWQ --max-model-len auto | grep -c 'state block'
echo "-- the release of the image, its folders, a line of a shell; a client is no engine"
second() { plan "$@" | sed -n 2p; }
second --gpu 4090 -- docker run --gpus all vllm/vllm-openai:v0.11.0 --model Qwen/Qwen3-8B
second --gpu 4090 -- docker run -v "$PWD/../fixtures/models:/models" vllm/vllm-openai:v0.19.1 --model /models/small-llama
second --vllm 0.19.1 --gpu 4090 -- bash -c "vllm serve Qwen/Qwen3-8B"
plan --gpu 4090 -- vllm bench serve --model Qwen/Qwen3-8B 2>&1
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
echo 'docker run --gpus all vllm/vllm-openai:v0.11.0 --model Qwen/Qwen3-8B' >"$work/cmd.sh"
(cd "$work" && "$OOMSIGHT" check --offline --gpu 4090 cmd.sh | head -n 1)
printf 'kind: Pod\nspec:\n  nodeSelector: {cloud.google.com/gke-accelerator: nvidia-l4}\n  containers:\n  - image: vllm/vllm-openai:v0.11.0\n    args: [--model, Qwen/Qwen3-8B, --tensor-parallel-size, "4"]\n    resources: {limits: {nvidia.com/gpu: "1"}}\n' >"$work/pod.yaml"
(cd "$work" && "$OOMSIGHT" check --offline pod.yaml | head -n 1; "$OOMSIGHT" check --offline pod.yaml >/dev/null; echo "exit $?")
echo "-- a model of the cache has its name"
snapshot=$work/hub/models--Qwen--Qwen3-8B/snapshots/b968826d9c46dd6066d109eabc6255188de91218
mkdir -p "$snapshot" "$work/hub/models--Qwen--Qwen3-8B/refs"
printf b968826d9c46dd6066d109eabc6255188de91218 >"$work/hub/models--Qwen--Qwen3-8B/refs/main"
cp ../fixtures/models/small-llama/config.json "$snapshot"
for format in text md html; do
    HF_HUB_CACHE=$work/hub "$OOMSIGHT" plan --offline --vllm 0.19.1 --gpu 4090 --format $format -- vllm serve Qwen/Qwen3-8B >"$work/out"
    echo "$format: $(grep -c 'Qwen3-8B' "$work/out" | sed 's/^[1-9][0-9]*$/its name/'), $(grep -c b968826d "$work/out") with the commit, $(grep -c "$work" "$work/out") with the folder"
done
echo "-- which GPU"
"$OOMSIGHT" plan --offline --vllm 0.19.1 --gpu all -- vllm serve Qwen/Qwen3-32B-AWQ | head -n 4
