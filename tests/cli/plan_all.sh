# Which GPU does it take: the least memory first, at most twelve lines; what the command says of ranks holds; JSON has every one.
models=../fixtures/models
"$OOMSIGHT" plan --offline --vllm 0.19.1 --gpu all -- vllm serve $models/small-moe
"$OOMSIGHT" plan --offline --vllm 0.19.1 --gpu all -- vllm serve $models/small-moe --tensor-parallel-size 4 | head -n 6
"$OOMSIGHT" plan --offline --vllm 0.19.1 --gpu all -- vllm serve $models/small-llama --tensor-parallel-size 3; echo "exit $?"
"$OOMSIGHT" plan --offline --vllm 0.19.1 --gpu all --json -- vllm serve $models/small-moe | python3 ../../tools/check_schema.py ../../data/schema/choices.schema.json
"$OOMSIGHT" plan --offline --gpu all --max-fit -- vllm serve $models/small-moe; echo "exit $?"
"$OOMSIGHT" plan --offline --gpu all --format md -- vllm serve $models/small-moe; echo "exit $?"
"$OOMSIGHT" plan --offline --vllm 0.19.1 --gpu all --format html -- vllm serve $models/small-moe | sed -n '/<main>/,/<\/main>/p' | head -n 4
# each of them is what a plan of its own says
"$OOMSIGHT" plan --offline --vllm 0.19.1 --gpu all --json -- vllm serve $models/small-moe | python3 -c '
import json, os, subprocess, sys
seen = {}
for choice in json.load(sys.stdin)["choices"]:
    if choice["gpu"] not in seen:
        seen[choice["gpu"]] = choice
asked = wrong = 0
for name, choice in list(seen.items())[::9]:
    words = [os.environ["OOMSIGHT"], "plan", "--offline", "--vllm", "0.19.1", "--json", "--gpu", name, "--", "vllm", "serve", "../fixtures/models/small-moe"] + choice["flags"]
    plan = json.loads(subprocess.run(words, stdout=subprocess.PIPE).stdout)
    asked += 1
    if plan["likely"] != "starts" or (plan["gpu"]["total_bytes"] <= choice["memory_bytes"] and plan["kv"]["tokens"] != choice["kv_tokens"] and plan["gpu"]["total_bytes"] > choice["memory_bytes"] * 0.9):
        wrong += 1
        print(name, choice, plan["likely"], plan["kv"]["tokens"])
print(asked > 5, wrong)'
