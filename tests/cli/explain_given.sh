# What the log does not tell may be given; a missing file among several does not hide the others; a binary file is said to be one.
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
printf "ValueError: To serve at least one request with the models's max seq len (40960), (10.00 GiB KV cache is needed, which is larger than the available KV cache memory (1.83 GiB).\n" >"$work/a.log"
"$OOMSIGHT" explain "$work/a.log" | grep -A1 -E "^  --"
echo "-- an older engine has no auto"
"$OOMSIGHT" explain --gpu 4090 --vllm 0.11.0 "$work/a.log" | grep -E "^  (--|vLLM)"
"$OOMSIGHT" explain --gpu nothing "$work/a.log" 2>&1; echo "exit $?"
"$OOMSIGHT" explain --gpu 2>&1; echo "exit $?"
echo "-- several"
cd "$work" && cp a.log b.log
"$OOMSIGHT" explain a.log missing.log b.log 2>&1 >out | cat; grep -cE "a.log|b.log" out
"$OOMSIGHT" explain a.log missing.log >out 2>/dev/null; echo "exit $?"
head -c 4000 /dev/zero >zero; "$OOMSIGHT" explain zero | sed -n 1,2p
echo "-- the plan of what was given: the same failure is the same arithmetic, not the same phase"
export HF_HUB_OFFLINE=1 HF_HUB_CACHE=/nowhere
echo "ValueError: No available memory for the cache blocks. Try increasing \`gpu_memory_utilization\`" | "$OOMSIGHT" explain --gpu 4090 --vllm 0.32.0 --model Qwen/Qwen3-8B | grep -A1 "^  plan"
echo "ValueError: To serve at least one request with the model's max seq len (40960), (5.62 GiB KV cache is needed, which is larger than the available KV cache memory (4.4 GiB)." | "$OOMSIGHT" explain --gpu 4090 --vllm 0.32.0 --model Qwen/Qwen3-8B | grep "^  plan"
