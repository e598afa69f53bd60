# The release with which an answer moved: two reported cases, found without being told anything but the two ends.
work=$(mktemp -d)
python3 -c 'import sys; sys.path.insert(0, "../oracle"); import models
for name in sys.argv[2:]: models.write(sys.argv[1], name)' "$work" qwen3-235b-a22b-rank qwen3.6-27b-w4a16
sleeping="--enable-sleep-mode --gpu-memory-utilization 0.93 --max-num-seqs 1024 --enforce-eager"
hybrid="--gpu-memory-utilization 0.8 --language-model-only --max-model-len 16384 --kv-cache-dtype fp8"
try() { "$OOMSIGHT" bisect --offline "$@" >"$work/out" 2>&1; code=$?; }
shape() { sed -E 's/[0-9]{1,3}(,[0-9]{3})+/N/g; s/ +$//' "$work/out"; }
echo "-- sleep mode loads into a pool that strands segments"
try --good 0.20.2 --bad 0.21.0 --gpu GB200 --gpu-total 197901352960 -- vllm serve "$work/qwen3-235b-a22b-rank" $sleeping
shape | sed -n 1,5p; shape | grep 'Sleep mode loads'; echo "exit $code"
try --good 0.11.0 --bad 0.32.0 --gpu GB200 --gpu-total 197901352960 -- vllm serve "$work/qwen3-235b-a22b-rank" $sleeping
shape | sed -n 1,2p; echo "exit $code"
echo "-- the trial cache of a hybrid: the mend, on a device where it shows and on one where it is not enough"
try --good 0.32.0 --bad 0.19.1 --gpu 5090 --gpu-total 40GiB -- vllm serve "$work/qwen3.6-27b-w4a16" $hybrid
shape | sed -n 1,2p; echo "exit $code"
try --good 0.32.0 --bad 0.19.1 --gpu 5090 -- vllm serve "$work/qwen3.6-27b-w4a16" $hybrid
shape | sed -n 1,2p; echo "exit $code"
try --json --good 0.32.0 --bad 0.19.1 --gpu 5090 -- vllm serve "$work/qwen3.6-27b-w4a16" $hybrid
python3 ../../tools/check_schema.py ../../data/schema/bisect.schema.json <"$work/out" && echo "the schema holds"
python3 -c 'import json, sys; d = json.load(open(sys.argv[1])); print(d["moved"], d["before"], d["found"], [c["name"] for c in d["changes"]])' "$work/out"
echo "-- a flag that the older release does not know; tokens alone; nothing"
try --good 0.32.0 --bad 0.9.2 --gpu 4090 -- vllm serve ../fixtures/models/small-llama --kv-cache-memory-bytes 8G; shape | sed -n 1,2p; echo "exit $code"
try --good 0.9.0 --bad 0.9.2 --moved 1 --gpu 4090 -- vllm serve ../fixtures/models/small-llama; shape | sed -n 1p; echo "exit $code"
try --good 0.17.0 --bad 0.32.0 --moved 0.1 --gpu 4090 -- vllm serve ../fixtures/models/small-llama # fewer in between, more at the end
shape | sed -n 1p
try --good 0.32.0 --bad 0.31.0 --moved 50 --gpu 4090 -- vllm serve ../fixtures/models/small-llama; shape | sed -n 1,2p; echo "exit $code"
echo "-- better and then worse again: the loss is named; refused at both ends: the refusal is"
try --good 0.10.0 --bad 0.33.0 --gpu 4090 -- vllm serve Qwen/Qwen3-8B --max-model-len 16384; shape | sed -n 1p; echo "exit $code"
try --good 0.33.0 --bad 0.10.0 --gpu 4090 -- vllm serve Qwen/Qwen3-8B --max-model-len 16384; shape | sed -n 1p; echo "exit $code"
try --good 0.19.0 --bad 0.20.0 --gpu 4090 -- vllm serve Qwen/Qwen3-8B --max-modl-len 40; shape | sed -n 1,3p; echo "exit $code"
echo "-- another engine has releases of its own"
try --good 0.5.18 --bad 0.5.23 --gpu 4090 -- sglang serve ../fixtures/models/small-llama; shape | sed -n 1p; echo "exit $code"
echo "-- what is wrong is said in one line"
wrong() { "$OOMSIGHT" bisect "$@" 2>&1; echo "exit $?"; }
wrong --good 0.19.1 -- vllm serve m
wrong --good 0.19.1 --bad 0.19.1 --gpu 4090 -- vllm serve ../fixtures/models/small-llama
wrong --good 0.19.1 --bad 0.99.0 --gpu 4090 -- vllm serve ../fixtures/models/small-llama
wrong --good 0.19.1 --bad 0.20.0 --dryrun -- vllm serve m
wrong --good 0.19.1 --bad 0.20.0 --engine 0.19.1 -- vllm serve m
wrong --good 0.19.1 --bad 0.20.0 --moved much -- vllm serve m
wrong --good 0.19.1 --bad 0.20.0
rm -rf "$work"
