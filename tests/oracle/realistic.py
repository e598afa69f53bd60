"""Commands as they stand in blog posts, charts, Helm values and recipes, with the mistakes that are made there: a switch with a value
behind an equal sign, a space behind a number, flags of other releases, British spelling, variables that the release does not know.

arguments.py --style recipes draws from here. A seed gives the same commands for ever; nothing here was written from an engine's answer.
"""
import json
import random

SWITCHES = ["--enable-prefix-caching", "--enable-chunked-prefill", "--enforce-eager", "--trust-remote-code", "--enable-expert-parallel",
            "--async-scheduling", "--enable-lora", "--enable-sleep-mode", "--disable-log-stats", "--enable-log-requests",
            "--enable-auto-tool-choice", "--disable-custom-all-reduce", "--enable-eplb", "--calculate-kv-scales", "--skip-mm-profiling",
            "--disable-hybrid-kv-cache-manager", "--language-model-only", "--enable-server-load-tracking", "--enable-prompt-tokens-details",
            "--disable-uvicorn-access-log", "--enable-force-include-usage", "--return-tokens-as-token-ids", "--enable-mfu-metrics"]
# Of releases that came earlier or later than the one that is asked.
STALE = [["--disable-log-requests"], ["--use-v2-block-manager"], ["--enable-reasoning"], ["--num-scheduler-steps", "8"], ["--worker-use-ray"],
         ["--max-seq-len-to-capture", "8192"], ["--swap-space", "16"], ["--guided-decoding-backend", "xgrammar"], ["--device", "cuda"],
         ["--cuda-graph-sizes", "64"], ["--disable-frontend-multiprocessing"], ["--preemption-mode", "recompute"], ["--task", "generate"],
         ["--num-lookahead-slots", "0"], ["--speculative-model", "[ngram]"], ["--rope-theta", "1000000"], ["--multi-step-stream-outputs"],
         ["--override-pooler-config", "{}"], ["--max-num-partial-prefills", "2"], ["--use-tqdm-on-load"], ["--max-log-len", "100"],
         ["--kv-offloading-size", "8"], ["--stream-interval", "4"], ["--attention-backend", "FLASHINFER"], ["--moe-backend", "auto"],
         ["--performance-mode", "balanced"], ["--kv-cache-memory-bytes", "8G"], ["--async-scheduling"], ["--mamba-cache-mode", "align"],
         ["--all2all-backend", "deepep_low_latency"], ["--structured-outputs-config.backend", "xgrammar"], ["--enable-dbo"],
         ["--logprobs-mode", "raw_logprobs"], ["--max-cudagraph-capture-size", "64"], ["--cudagraph-capture-sizes", "1", "2", "4"]]
SPELLED = [["--gpu-memory-utilisation", "0.9"], ["--gpu_memory_utilization", "0.9"], ["--max-model-length", "8192"], ["--tensor-parallel", "2"],
           ["--max_model_len", "8192"], ["--max-num-batch-tokens", "4096"], ["--enable-prefix-cache"], ["--quantisation", "fp8"],
           ["--kv-cache-type", "fp8"], ["--tensor_parallel_size", "1"], ["--optimisation-level", "2"], ["--max-num-seq", "64"],
           ["--enable-chunk-prefill"], ["--served-model", "m"], ["--gpu-memory-util", "0.85"], ["--max-model-len=8192,"], ["--dtype", "bf16"]]
VARIABLES = [("VLLM_USE_V1", "1"), ("VLLM_USE_V1", "0"), ("VLLM_ATTENTION_BACKEND", "FLASHINFER"), ("VLLM_ATTENTION_BACKEND", "FLASH_ATTN"),
             ("VLLM_LOGGING_LEVEL", "DEBUG"), ("VLLM_ALLOW_LONG_MAX_MODEL_LEN", "1"), ("VLLM_WORKER_MULTIPROC_METHOD", "spawn"),
             ("VLLM_USE_TRITON_FLASH_ATTN", "0"), ("VLLM_FLASH_ATTN_VERSION", "3"), ("VLLM_USE_DEEP_GEMM", "1"), ("VLLM_SKIP_P2P_CHECK", "1"),
             ("VLLM_ALL2ALL_BACKEND", "naive"), ("VLLM_USE_FLASHINFER_MOE_FP8", "1"), ("VLLM_CONFIGURE_LOGGING", "1"),
             ("VLLM_NO_SUCH_VARIABLE", "1"), ("VLLM_MODEL_NAME", "m"), ("VLLM_PORT", "8000"), ("VLLM_API_KEY", "key"),
             ("VLLM_USE_V2_MODEL_RUNNER", "0"), ("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True"), ("NCCL_DEBUG", "INFO"),
             ("OMP_NUM_THREADS", "4"), ("VLLM_ENGINE_ITERATION_TIMEOUT_S", "180"), ("VLLM_RPC_TIMEOUT", "100000")]


class Recipes:
    def __init__(self, _flags, version, models, seed):
        self.random = random.Random(f"recipes {version} {seed}")
        self.models = self.random.sample(models, min(30, len(models)))  # each costs the engine an import

    def pick(self, *values):
        return self.random.choice(values)

    def chance(self, share):
        return self.random.random() < share

    def number(self, value):
        """A number as YAML and copied text leave it."""
        text = str(value)
        kind = self.random.choices(["plain", "behind", "before", "line", "comma", "unit"], [88, 5, 3, 2, 1, 1])[0]
        return {"plain": text, "behind": text + self.pick(" ", "  "), "before": " " + text, "line": text + "\n", "comma": text + ",",
                "unit": text + self.pick("k", "K", "GB", "%")}[kind]

    def pair(self, flag, value):
        return [f"{flag}={value}"] if self.chance(0.25) else [flag, str(value)]

    def common(self):
        pick = self.pick
        return pick(
            lambda: self.pair("--max-model-len", self.number(pick(2048, 4096, 8192, 16384, 32768, 40960, 131072))),
            lambda: self.pair("--max-model-len", pick("32k", "8K", "auto", "-1", "1e4", "", "8192.0")),
            lambda: self.pair("--gpu-memory-utilization", self.number(pick(0.8, 0.85, 0.9, 0.92, 0.95, "0.90", ".9"))),
            lambda: self.pair("--gpu-memory-utilization", pick("90", "0,9", "90%", "1", "1.0", "0.9e0", "")),
            lambda: self.pair(pick("--tensor-parallel-size", "-tp"), self.number(pick(1, 1, 2, 2, 4, 8))),
            lambda: self.pair("--max-num-seqs", self.number(pick(8, 16, 32, 64, 128, 256))),
            lambda: self.pair("--max-num-batched-tokens", self.number(pick(2048, 4096, 8192, 16384))),
            lambda: self.pair("--dtype", pick("auto", "bfloat16", "half", "float16", "bf16", "auto ")),
            lambda: self.pair("--kv-cache-dtype", pick("auto", "fp8", "fp8_e4m3", "fp8_e5m2", "int8")),
            lambda: self.pair("--quantization", pick("fp8", "awq", "awq_marlin", "gptq_marlin", "bitsandbytes", "None", "none")),
            lambda: [pick("--enforce-eager", "--enable-prefix-caching", "--enable-chunked-prefill", "--trust-remote-code")],
            lambda: [pick("--no-enable-prefix-caching", "--no-enable-chunked-prefill", "--no-enforce-eager", "--no-async-scheduling")],
            lambda: self.pair("--swap-space", self.number(pick(0, 4, 16))),
            lambda: self.pair("--cpu-offload-gb", self.number(pick(0, 4, 10))),
            lambda: self.pair("--block-size", self.number(pick(16, 32, 64))),
            lambda: self.pair("--seed", self.number(pick(0, 42))))()

    def front(self):
        pick = self.pick
        return pick(
            lambda: self.pair("--host", "0.0.0.0"), lambda: self.pair("--port", self.number(pick(8000, 8080))),
            lambda: ["--served-model-name", "m", "gpt-4"], lambda: self.pair("--api-key", "token-abc123"),
            lambda: ["--enable-auto-tool-choice", "--tool-call-parser", pick("hermes", "llama3_json", "qwen3_coder", "hermes ")],
            lambda: ["--enable-auto-tool-choice"], lambda: self.pair("--reasoning-parser", pick("qwen3", "deepseek_r1", "none")),
            lambda: self.pair("--uvicorn-log-level", pick("info", "warning", "warn")), lambda: ["--allowed-origins", '["*"]'],
            lambda: self.pair("--generation-config", "vllm"), lambda: self.pair("--root-path", "/v1"),
            lambda: ["--response-role", "assistant"], lambda: ["--override-generation-config", '{"temperature": 0.6}'],
            lambda: ["--fail-on-environ-validation"], lambda: self.pair("--max-logprobs", self.number(pick(5, 20))))()

    def structured(self):
        pick = self.pick
        sizes = pick({"cudagraph_mode": "PIECEWISE"}, {"cudagraph_mode": "FULL_DECODE_ONLY"}, {"cudagraph_capture_sizes": [1, 2, 4, 8]},
                     {"level": 3}, {"mode": 3}, {"mode": "NONE"}, {"full_cuda_graph": True}, {"pass_config": {"enable_fusion": True}})
        connector = pick({"kv_connector": "LMCacheConnectorV1", "kv_role": "kv_both"}, {"kv_connector": "LMCacheConnectorV1"},
                         {"kv_connector": "NixlConnector", "kv_role": "kv_both"}, {"kv_connector": "OffloadingConnector", "kv_role": "kv_producer"},
                         {"kv_connector": "NixlConnector", "kv_role": "both"}, {"kv_role": "kv_both"})
        draft = pick({"method": "ngram", "num_speculative_tokens": 5, "prompt_lookup_max": 4}, {"method": "mtp", "num_speculative_tokens": 1},
                     {"method": "deepseek_mtp", "num_speculative_tokens": 1}, {"method": "qwen3_next_mtp", "num_speculative_tokens": 2},
                     {"method": "suffix", "num_speculative_tokens": 8}, {"method": "ngram"}, {"num_speculative_tokens": 1})
        return pick(
            lambda: [pick("--compilation-config", "-O", "-cc"), json.dumps(sizes)],
            lambda: [f"-O.{next(iter(sizes))}={json.dumps(next(iter(sizes.values())))}".replace('"', "")],
            lambda: [f"--compilation-config.{next(iter(sizes))}", json.dumps(next(iter(sizes.values()))).strip('"')],
            lambda: [pick("-O0", "-O1", "-O3", "-O=3", "-O 3", "-O=None")],
            lambda: ["--kv-transfer-config", json.dumps(connector)],
            lambda: ["--speculative-config", json.dumps(draft)],
            lambda: ["--limit-mm-per-prompt", pick('{"image": 2}', "image=2", "image=2,video=1", '{"image": 0}', '{"image":2, "video": 1}')],
            lambda: ["--hf-overrides", pick('{"max_position_embeddings": 65536}', '{"architectures": ["Qwen3ForCausalLM"]}',
                                            '{"rope_parameters": {"rope_type": "yarn", "factor": 4.0}}')],
            lambda: ["--rope-scaling", '{"rope_type":"yarn","factor":4.0,"original_max_position_embeddings":32768}'],
            lambda: ["--mm-processor-kwargs", '{"max_pixels": 1003520}'],
            lambda: ["--structured-outputs-config", pick('{"backend": "xgrammar"}', '{"backend": "outlines"}', '{"backend": "nonsense"}')],
            lambda: ["--eplb-config", '{"num_redundant_experts": 32}'],
            lambda: ["--compilation-config", pick("{'cudagraph_mode': 'NONE'}", "3", '{"cudagraph_mode": "none"}', "")])()

    def scaled(self):
        pick = self.pick
        return pick(
            lambda: ["-tp", str(pick(2, 4, 8)), "--enable-expert-parallel"],
            lambda: self.pair("--data-parallel-size", self.number(pick(2, 4, 8))) + pick([], ["--enable-expert-parallel"]),
            lambda: ["-tp", "2"] + self.pair("--pipeline-parallel-size", self.number(pick(2, 4))),
            lambda: self.pair("--distributed-executor-backend", pick("mp", "ray", "uni")),
            lambda: ["--data-parallel-size-local", "2", "--data-parallel-size", "4", "--data-parallel-address", "10.0.0.1"],
            lambda: self.pair("--decode-context-parallel-size", pick(1, 2)),
            lambda: ["--enable-eplb"] + pick([], ["--enable-expert-parallel", "-tp", "2"]))()

    def helm(self):
        """Values of a chart are written with an equal sign, switches too."""
        switch = self.pick(*SWITCHES)
        return [f"{switch}={self.pick('true', 'True', 'false', 'False', '1', '0', '')}"] if self.chance(0.6) else \
            [switch, self.pick("true", "false", "True")] if self.chance(0.3) else [switch]

    def command(self):
        words, env = [], {}
        parts = [(34, self.common), (10, self.front), (9, self.structured), (7, self.scaled), (5, self.helm),
                 (5, lambda: list(self.pick(*STALE))), (3, lambda: list(self.pick(*SPELLED))), (6, lambda: [self.pick(*SWITCHES)])]
        for _ in range(self.random.choices([1, 2, 3, 4, 5, 7], [3, 5, 6, 5, 3, 1])[0]):
            words += self.random.choices([make for _, make in parts], [weight for weight, _ in parts])[0]()
        for _ in range(self.random.choices([0, 1, 2], [6, 3, 1])[0]):
            name, value = self.pick(*VARIABLES)
            env[name] = value
        return {"model": self.random.choice(self.models), "words": words, "env": env}
