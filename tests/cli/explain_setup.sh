# Model and flags are found in whatever was pasted with the log, and plan is asked: the same answer for every way of saying it.
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT
model=$folder/small-llama; ln -s "$PWD/../fixtures/models/small-llama" "$model" # where no name has a space
oom='  File "/usr/lib/vllm/v1/worker/gpu_worker.py", line 381, in load_model
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 100.00 MiB. GPU 0 has a total capacity of 23.50 GiB of which 54.25 MiB is free. Of the allocated memory 22.88 GiB is allocated by PyTorch, and 188.29 MiB is reserved by PyTorch but unallocated.'
ask() {
    { cat; printf 'vllm/\n%s\n' "$oom"; } | "$OOMSIGHT" explain --json - | python3 -c '
import json, sys
i = json.loads(sys.stdin.readline())
print(sys.argv[1] + ":", i["engine"]["version"], i["plan_check"])' "$1"
}
ask "one line" <<P
$ vllm serve $model --max-model-len 2048 --tensor-parallel-size 2
P
ask "backslashes" <<P
python3 -m vllm.entrypoints.openai.api_server \\
    --model $model \\
    --max-model-len 2048 --tensor-parallel-size 2
P
ask "docker" <<P
docker run --gpus all -p 8000:8000 --ipc=host vllm/vllm-openai:v0.11.0 \\
    --model $model --max-model-len 2048 -tp 2
P
ask "compose, folded" <<P
services:
  vllm:
    image: vllm/vllm-openai:v0.11.0
    ports:
      - "8000:8000"
    command: >
      --model $model
      --max-model-len 2048
      --tensor-parallel-size 2
    shm_size: 16gb
P
ask "compose, list on a line" <<P
    image: vllm/vllm-openai:v0.11.0
    command: ["--model", "$model", "--max-model-len", "2048", "--tensor-parallel-size=2"]
P
ask "Kubernetes" <<P
      containers:
      - name: vllm
        image: vllm/vllm-openai:v0.19.1
        command:
        - vllm
        - serve
        args:
        - $model
        - --max-model-len
        - "2048"
        - --tensor-parallel-size=2
        resources:
          limits:
            nvidia.com/gpu: "2"
P
ask "Python" <<P
from vllm import LLM
llm = LLM(
    model="$model",
    max_model_len=2048,  # short
    tensor_parallel_size=2,
)
P
ask "collect-env" <<P
vLLM Version: 0.19.1
GPU 0: NVIDIA A30
PyTorch version: 2.9.0
vllm serve $model -tp 2
P
ask "nothing to go by" <<P
some words
P
echo "-- several cards show nearly this total: none is named; the log's own name is"
total="CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.64 GiB of which 1.00 GiB is free."
echo "$total" | "$OOMSIGHT" explain | grep -E "^  .*23.64 GiB"
for format in json html; do echo "$total" | "$OOMSIGHT" explain --format $format | grep -o '"gpu": {[^}]*}'; done
printf 'GPU 0: NVIDIA GeForce RTX 4090 (UUID: x)\n%s\n' "$total" | "$OOMSIGHT" explain --json | grep -o '"gpu": {[^}]*}'
