# torch.compile and CUDA graphs are two switches: mode 0 compiles nothing and captures graphs, cudagraph_mode NONE compiles without graphs.
peak() { "$OOMSIGHT" plan --offline --json --gpu 4090 --vllm 0.32.0 -- vllm serve ../fixtures/models/small-llama "$@" | python3 -c '
import json, sys
plan = json.load(sys.stdin)
held = {h["owner"]: h["bytes"] >> 20 for p in plan["phases"] if p["phase"] == "profile_run" for h in p["holds"]}
print("compiling" if "compiling" in held else "not compiled", "- graphs" if any(p["phase"] == "cudagraph_capture" for p in plan["phases"]) else "- no graphs")'; }
echo "as it is: $(peak)"
echo "eager: $(peak --enforce-eager)"
echo "mode 0: $(peak --compilation-config '{"mode": 0, "cudagraph_mode": "FULL_DECODE_ONLY"}')"
echo "no graphs: $(peak --compilation-config '{"cudagraph_mode": "NONE"}')"
echo "-O0: $(peak -O0)"
