# Models that norm queries and keys hold them once more; whether a model does is read from its layers.
peak() {
    "$OOMSIGHT" plan --offline --json --gpu h200 --engine vllm=0.32.0 -- vllm serve "$@" --max-num-batched-tokens 16384 |
        python3 -c 'import json, sys
plan = json.load(sys.stdin)
print([part["bytes"] for part in plan["parts"] if part["owner"] == "forward"])'
}
echo "MiniMax-M2.5 norms them"
peak MiniMaxAI/MiniMax-M2.5
echo "GLM-4.7 does, and does not without use_qk_norm"
peak zai-org/GLM-4.7
peak zai-org/GLM-4.7 --hf-overrides '{"use_qk_norm": false}'
