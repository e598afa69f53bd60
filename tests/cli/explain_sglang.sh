# Logs of the second engine: its own list of arguments is the command, its own answer stands whole, and a healthy start shows its figures.
models=../fixtures/models
refused() {
    echo "[2026-01-01 10:00:00] server_args=ServerArgs(model_path='$models/small-llama', tp_size=1, $1)"
    cat <<'LOG'
[2026-01-01 10:00:01] Load weight begin. avail mem=7.55 GB
[2026-01-01 10:00:02] Load weight end. elapsed=0.11 s, type=LlamaForCausalLM, avail mem=5.19 GB, mem usage=2.36 GB.
ValueError: Loaded weights leave no GPU memory for the KV cache under --mem-fraction-static=0.2. Raise --mem-fraction-static above 0.313 (minimum viable = 1 - available/pre = 0.3126). If using speculative decoding, draft weights are now counted.
LOG
}
refused 'mem_fraction_static=0.2' | "$OOMSIGHT" explain --gpu 'RTX 4060' -
refused 'mem_fraction_static=0.2' | "$OOMSIGHT" explain --json - | python3 -c '
import json, sys
d = json.load(sys.stdin)
print({k: v for k, v in d["numbers"].items()})'
"$OOMSIGHT" explain - <<'LOG'
[2026-01-01 10:00:00] nvidia-smi not found. Reported total GPU memory per device (MiB): [22556], using min: 22556 MiB.
[2026-01-01 10:00:01] Load weight begin. avail mem=21.84 GB
[2026-01-01 10:00:02] Load weight end. elapsed=0.11 s, type=Qwen3ForCausalLM, avail mem=20.70 GB, mem usage=1.14 GB.
[2026-01-01 10:00:03] KV Cache is allocated. dtype: torch.bfloat16, #tokens: 133009, K size: 7.10 GB, V size: 7.11 GB
[2026-01-01 10:00:03] Memory pool end. avail mem=5.40 GB
[2026-01-01 10:00:04] Capture target prefill CUDA graph begin. backend=breakable, num_tokens=[4, 8], avail mem=5.40 GB
[2026-01-01 10:00:04] Capture target prefill CUDA graph end. elapsed=1.00 s, mem usage=0.78 GB, avail mem=4.62 GB.
[2026-01-01 10:00:05] Capture target decode CUDA graph begin. backend=full, num_tokens_per_req=1, avail mem=4.62 GB
[2026-01-01 10:00:05] Capture target decode CUDA graph end. bs=[1, 2], elapsed=1.00 s, mem usage=0.13 GB, avail mem=4.49 GB.
[2026-01-01 10:00:06] max_total_num_tokens=133009, chunked_prefill_size=2048, max_prefill_tokens=16384, max_running_requests=2048, context_len=40960, available_gpu_mem=4.49 GB
[2026-01-01 10:00:07] The server is fired up and ready to roll!
LOG
echo "the least share is what loading took; above 0.97 none is offered"
for after in '7.73 GB, mem usage=15.37' '0.23 GB, mem usage=22.87'; do
    "$OOMSIGHT" explain - <<LOG | sed -n '/^What to change/,$p'
[2026-01-01 10:00:01] Load weight begin. avail mem=23.10 GB
[2026-01-01 10:00:02] Load weight end. elapsed=0.11 s, type=LlamaForCausalLM, avail mem=$after GB.
RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.
LOG
done
