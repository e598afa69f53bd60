# Where the unfavourable end of a range decides, both figures stand there; where it costs little, none.
for words in '--gpu rtx-4090x2 -- vllm serve Qwen/Qwen3-VL-30B-A3B-Instruct-FP8 --max-model-len 262144 -tp 2' '--gpu l4 -- vllm serve Qwen/Qwen3-8B --max-model-len 40960'; do
    "$OOMSIGHT" plan --offline $words | sed -n '/^Suggested/,/Longest request\|Not enough/p'
    "$OOMSIGHT" plan --offline --json $words | python3 -c 'import json, sys; print([answer["max_model_len"] for answer in json.load(sys.stdin)["answers"]])'
done
