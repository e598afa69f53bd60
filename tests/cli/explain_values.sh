# What explain suggests follows from the figures and the shape of the log: one line for each change.
asked() { echo "== $1"; "$OOMSIGHT" explain --json | python3 -c '
import json, sys
told = json.loads(sys.stdin.readline())
for fix in told["fixes"][:3]: print(" ".join(fix["change"]))
for end in told["dead_ends"][:3]: print("no effect:", " ".join(end["change"]) + ":", end["why"])'; }
asked 'one request of 16,384 tokens needs 4 GiB, 3 are there: 0.9 + 1/24' <<'L'
Memory profiling results: total_gpu_memory=24.00GiB initial_memory_usage=15.50GiB peak_torch_memory=18.00GiB memory_usage_post_profile=15.60GiB non_torch_memory=0.60GiB kv_cache_size=3.00GiB gpu_memory_utilization=0.90
The model's max seq len (16384) is larger than the maximum number of tokens that can be stored in KV cache (12288). Try increasing `gpu_memory_utilization` or decreasing `max_model_len` when initializing the engine.
L
asked 'of the CPU backend' <<'L'
ValueError: The model's max seq len (16384) is larger than the maximum number of tokens that can be stored in KV cache (12288). Try increasing `VLLM_CPU_KVCACHE_SPACE` or decreasing `max_model_len` when initializing the engine.
L
asked 'floor(20 / 24)' <<'L'
ValueError: Free memory on device (20.00/24.00 GiB) on startup is less than desired GPU memory utilization (0.9, 21.6 GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes.
L
asked 'as much free after the profile as before' <<'L'
AssertionError: Error in memory profiling. Initial free memory 20.5 GiB, current free memory 20.5 GiB. This happens when other processes sharing the same container release GPU memory while vLLM is profiling during initialization.
L
asked 'nothing left, and no figures' <<'L'
ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine.
L
asked 'of the V1 engine in 0.8' <<'L'
ERROR 04-01 10:00:00 [core.py:340] ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine.
L
asked 'a smaller card has 256 requests by default' <<'L'
INFO 04-01 10:00:00 [gpu_worker.py:600] Available KV cache memory: 3.00 GiB
INFO 04-01 10:00:05 [gpu_model_runner.py:5000] Graph capturing finished in 4 secs, took 0.50 GiB
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 200.00 MiB. GPU 0 has a total capacity of 24.00 GiB of which 100.00 MiB is free.
L
echo '== where plan reproduces the failure, its value of the flag is the only one'
{
    echo "(APIServer pid=1) INFO 11-01 10:00:00 [utils.py:233] non-default args: {'model_tag': 'Qwen/Qwen3-8B', 'model': 'Qwen/Qwen3-8B', 'gpu_memory_utilization': 0.9, 'max_num_batched_tokens': 8192}"
    echo "(EngineCore_DP0 pid=2) INFO 11-01 10:00:01 [core.py:77] Initializing a V1 LLM engine (v0.14.0) with config: model='Qwen/Qwen3-8B', speculative_config=None, tokenizer='Qwen/Qwen3-8B', dtype=torch.bfloat16, max_seq_len=40960, tensor_parallel_size=1"
    echo '(EngineCore_DP0 pid=2) INFO 11-01 10:00:20 [gpu_model_runner.py:3000] Model loading took 15.27 GiB memory and 9 seconds'
    echo '(EngineCore_DP0 pid=2) INFO 11-01 10:00:40 [gpu_worker.py:298] Available KV cache memory: 4.30 GiB'
    echo "(EngineCore_DP0 pid=2) ERROR 11-01 10:00:41 [core.py:708] ValueError: To serve at least one request with the models's max seq len (40960), (5.62 GiB KV cache is needed, which is larger than the available KV cache memory (4.30 GiB). Based on the available memory, the estimated maximum model length is 31312. Try increasing \`gpu_memory_utilization\` or decreasing \`max_model_len\` when initializing the engine."
} | "$OOMSIGHT" explain --ascii --gpu 4090 - | grep -e '^Suggested' -e '^  --max-model-len' -e '^  --gpu'
