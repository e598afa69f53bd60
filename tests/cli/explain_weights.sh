# 22.88 GiB in tensors are the weights of a model that has as many, and not those of one whose id, path or name says fewer; a part of an
# id, or two models in one command, say nothing. A Mac has no vLLM, and no stage is named twice.
oom='torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 232.00 MiB. GPU 0 has a total capacity of 23.57 GiB of which 154.25 MiB is free. Including non-PyTorch memory, this process has 23.40 GiB memory in use. Of the allocated memory 22.88 GiB is allocated by PyTorch, and 188.29 MiB is reserved by PyTorch but unallocated.'
for serve in "Qwen/Qwen3-14B" "Qwen/Qwen3-4B" "/models/mine-14b" "/models/mine-4b" "/models/mine-4b --dtype float32" "/models/mine-30b-a3b" "/models/mine-a3b" \
    "/models/mine-4b --speculative-config '{\"model\": \"/models/draft\", \"num_speculative_tokens\": 3}'"; do
    printf '%s\n$ vllm serve %s\n' "$oom" "$serve" | "$OOMSIGHT" explain --offline --json | OF=$serve python3 -c '
import json, os, sys
answer = json.load(sys.stdin)
print("%-100.100s %-14s %s" % (os.environ["OF"], answer["phase"], " ".join(answer["also"])))'
done
echo 'RuntimeError: MPS backend out of memory (MPS allocated: 8.87 GB, other allocations: 180.91 MB, max allowed: 9.07 GB). Tried to allocate 25.00 MB on private pool.' |
    "$OOMSIGHT" explain --offline
