/* Logs by their lines: wrapped as container runtimes, launchers and terminals wrap them, with sentences of engines put in. */
#include "mutate.h"

#include <string.h>

static const char *const prefixes[] = {
    "2026-03-01T12:00:00.000000000Z stderr F ",
    "[rank0]: ",
    "(EngineCore_DP0 pid=214) ",
    "(VllmWorker rank=1 pid=88) ",
    "(Worker_TP3 pid=99) ERROR 03-01 12:00:00 [multiproc_executor.py:700] ",
    "INFO 03-01 12:00:00 [gpu_worker.py:298] ",
    "Mar 01 12:00:00 node vllm[214]: ",
    "vllm-1  | ",
    "\x1b[1;36m(APIServer pid=1)\x1b[0;0m ",
    "> ",
    "    ",
    "\t",
    "E0301 12:00:00.000 ",
    "{\"log\":\"",
    "| ",
    "#12 3.456 ",
    "[pod/vllm-0/server] ",
    "[1,0]<stderr>: "};
static const char *const sentences[] = {
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.56 GiB. GPU 0 has a total capacity of "
    "23.52 GiB of which 411.06 "
    "MiB is free. Process 1234 has 22.31 GiB memory in use. Of the allocated memory 21.50 GiB is allocated "
    "by PyTorch, with 1.20 GiB "
    "allocated in private pools (e.g., CUDA Graphs), and 215.31 MiB is reserved by PyTorch but "
    "unallocated.\n",
    "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when "
    "initializing the engine.\n",
    "ValueError: To serve at least one request with the models's max seq len (40960), (5.62 GiB KV cache is "
    "needed, which is larger than "
    "the available KV cache memory (3.10 GiB). Based on the available memory, the estimated maximum model "
    "length is 22560.\n",
    "ValueError: Free memory on device (20.10/23.52 GiB) on startup is less than desired GPU memory "
    "utilization (0.9, 21.17 GiB).\n",
    "RuntimeError: CUDA error: out of memory\n",
    "Killed\n",
    "[rank0]: Traceback (most recent call last):\n",
    "Model loading took 15.2683 GiB memory and 4.123456 seconds\n",
    "Available KV cache memory: 3.10 GiB\n",
    "GPU KV cache size: 22,560 tokens\n",
    "Maximum concurrency for 40,960 tokens per request: 0.55x\n",
    "  File \"/usr/lib/python3/vllm/v1/worker/gpu_model_runner.py\", line 3022, in _dummy_sampler_run\n",
    "  File \"/usr/lib/python3/vllm/v1/worker/gpu_worker.py\", line 276, in determine_available_memory\n",
    "Capturing CUDA graphs (mixed prefill-decode, PIECEWISE):  42%|####2     | 28/67 [00:03<00:04,  "
    "8.1it/s]\n",
    "Graph capturing finished in 12 secs, took 0.56 GiB\n",
    "INFO:     Application startup complete.\n",
    "non-default args: {'model': 'org/model', 'max_model_len': 40960, 'tensor_parallel_size': 2}\n",
    "Initializing a V1 LLM engine (v0.19.1) with config: model='org/model', speculative_config=None, "
    "dtype=torch.bfloat16\n",
    "vllm serve org/model --max-model-len 40960 --gpu-memory-utilization 0.95 \\\n  --max-num-seqs 64\n",
    "Memory cgroup out of memory: Killed process 214 (VLLM::EngineCor) total-vm:1234kB, anon-rss:999kB\n",
    "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 3; 79.15 GiB total "
    "capacity; 77.00 GiB already "
    "allocated; 12.31 MiB free; 78.10 GiB reserved in total by PyTorch)\n",
    "ncclUnhandledCudaError: Call to CUDA function failed.\nCuda failure 2 'out of memory'\n"};

static void put_prefix(fuzz_input *input, fuzz_part *part, bool everywhere)
{
    const char *prefix = prefixes[fuzz_pick(sizeof prefixes / sizeof *prefixes)];
    size_t const skip = fuzz_pick(8);
    size_t lines = 0;
    for (size_t at = part->begin; at < part->end; lines++) {
        if (everywhere || lines == skip) {
            if (!fuzz_replace(input, part, at, 0, prefix, strlen(prefix)) || !everywhere) return;
        }
        const char *feed = memchr(input->bytes + at, '\n', part->end - at);
        if (!feed) return;
        at = (size_t)(feed - input->bytes) + 1;
    }
}

void fuzz_mutate_log(fuzz_input *input, fuzz_part *part)
{
    const char *sentence = sentences[fuzz_pick(sizeof sentences / sizeof *sentences)];
    size_t at = part->begin + fuzz_pick(part->end - part->begin + 1);
    switch (fuzz_pick(8)) {
    case 0: put_prefix(input, part, true); break;
    case 1: put_prefix(input, part, false); break;
    case 2:
    case 3:
        while (at > part->begin && input->bytes[at - 1] != '\n') at--;
        fuzz_replace(input, part, at, 0, sentence, strlen(sentence));
        break;
    case 4: fuzz_mutate_number(input, part); break;
    default: fuzz_mutate_lines(input, part); break;
    }
}
