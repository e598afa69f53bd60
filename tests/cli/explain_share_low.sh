# Nothing is left for the KV cache, without figures: a share that is said to be low is raised to the default first; a high one is not.
say() { "$OOMSIGHT" explain 2>&1 | sed -n '/What to change/{n;p;}'; }
refusal='ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine.'
for share in 0.3 0.5 0.85 0.86 0.92 1; do printf 'vllm serve Qwen/Qwen3-8B --gpu-memory-utilization %s\n%s\n' "$share" "$refusal" | say; done
printf "INFO non-default args: {'model': 'Qwen/Qwen3-8B', 'gpu_memory_utilization': 0.6}\n%s\n" "$refusal" | say
