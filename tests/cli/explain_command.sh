# The arguments in the log with the first change in them: a whole command. A refused flag, or none of this release, is in no command.
log='(APIServer pid=1) INFO 11-18 10:00:00 [api_server.py:1345] vLLM API server version 0.11.0
(APIServer pid=1) INFO 11-18 10:00:00 [utils.py:233] non-default args: {"model": "acme/private-70b", "max_model_len": 65536, "gpu_memory_utilization": 0.95, "tensor_parallel_size": 2}
(EngineCore pid=2) ERROR torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.20 GiB. GPU 0 has a total capacity of 79.25 GiB of which 1.02 GiB is free. Including non-PyTorch memory, this process has 78.20 GiB memory in use.
(EngineCore pid=2)   File "/usr/lib/python3.12/site-packages/vllm/v1/worker/gpu_model_runner.py", line 2345, in capture_model'
echo "$log" | tr '"' "'" | "$OOMSIGHT" explain --offline | sed -n '/What to change/,$p'
echo "$log" | tr '"' "'" | "$OOMSIGHT" explain --offline --json | python3 -c '
import json, sys
for fix in json.load(sys.stdin)["fixes"]:
    print(fix["change"], "|", fix.get("command"))'
exit 0
