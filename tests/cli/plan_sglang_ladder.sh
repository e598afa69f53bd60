# What SGLang's plan suggests, by what is lost: a larger share, smaller defaults, GPUs that are idle, other GPUs.
moe=../fixtures/models/small-moe
answers() { "$OOMSIGHT" plan --offline --json --engine sglang=0.5.23 "$@" | python3 -c '
import json, sys
plan = json.load(sys.stdin)
print(plan["verdict"], plan["phase"])
for answer in plan["answers"]:
    print(" ", answer["name"], answer["rung"], " ".join(answer["change"]), answer["kv_tokens"], "|", answer["gives_up"])
for gpu in (plan["needs"] or {"gpus": []})["gpus"][:2]:
    print("  needs", gpu["count"], gpu["gpu"], " ".join(gpu["flags"]), gpu["kv_tokens"])'; }
echo "a share that the command does not give is raised first; one that it gives is what was asked for"
answers --gpu 5090 -- sglang serve $moe
answers --gpu 5090 -- sglang serve $moe --mem-fraction-static 0.7
echo "a share that leaves too little for serving"
answers --gpu 5090 -- sglang serve $moe --mem-fraction-static 0.97 --chunked-prefill-size 8192
echo "a context above the model's own, then what that takes"
answers --gpu 5090 -- sglang serve $moe --context-length 999999
echo "GPUs that are there and idle, and GPUs that are not"
answers --gpu 4090x4 -- sglang serve $moe
answers --gpu 4090 -- sglang serve $moe
echo "weights that fit where nobody can tell whether it starts"
answers --gpu l4 -- sglang serve Qwen/Qwen3.5-35B-A3B
echo "weights that this GPU has no kernels for"
answers --gpu a100 -- sglang serve nvidia/Llama-3.1-70B-Instruct-FP8
echo "every GPU"
"$OOMSIGHT" plan --offline --gpu all --engine sglang=0.5.23 -- sglang serve Qwen/Qwen3-14B | head -n 5
