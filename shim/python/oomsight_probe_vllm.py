"""Small starts of the installed vLLM on a simulated GPU, and what each part of a profile run took (oomsight_probe.py)."""
import contextlib
import functools
import gc
import json
import os
import sys
import tempfile

import oomsight_ask as asking
import oomsight_probe as probing

NAME = "vllm"
DENSE = {"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "hidden_size": 4096, "intermediate_size": 12288, "num_hidden_layers": 2,
         "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128, "hidden_act": "silu", "rms_norm_eps": 1e-06, "rope_theta": 1000000,
         "max_position_embeddings": 40960, "tie_word_embeddings": False, "attention_bias": False, "torch_dtype": "bfloat16", "vocab_size": 151936,
         "bos_token_id": 151643, "eos_token_id": 151645}
MOE = dict(DENSE, architectures=["Qwen3MoeForCausalLM"], model_type="qwen3_moe", hidden_size=2048, intermediate_size=6144, num_key_value_heads=4,
           moe_intermediate_size=768, num_experts=128, num_experts_per_tok=8, norm_topk_prob=True, decoder_sparse_step=1, mlp_only_layers=[])
HYBRID = dict(MOE, architectures=["Qwen3NextForCausalLM"], model_type="qwen3_next", intermediate_size=5120, num_hidden_layers=4, num_attention_heads=16,
              num_key_value_heads=2, head_dim=256, full_attention_interval=4, moe_intermediate_size=512, shared_expert_intermediate_size=512,
              num_experts=64, num_experts_per_tok=10, linear_conv_kernel_dim=4, linear_key_head_dim=128, linear_value_head_dim=128,
              linear_num_key_heads=16, linear_num_value_heads=32, partial_rotary_factor=0.25, max_position_embeddings=262144)
LENGTH, SHARE = 4096, 0.9
MODELS = {"dense": DENSE, "moe": MOE, "hybrid": HYBRID}


class Enough(BaseException):
    """The engine knows what is left for the KV cache."""


def allocated():
    import torch
    return torch.cuda.memory_stats().get("allocated_bytes.all.current", 0)


def peak():
    import torch
    return torch.cuda.memory_stats().get("allocated_bytes.all.peak", 0)


def cublas():
    """Bytes of the workspaces that PyTorch keeps for cuBLAS. They are given back and come with the next product."""
    import torch
    before = allocated()
    torch._C._cuda_clearCublasWorkspaces()
    return before - allocated()


def product():
    """Brings that workspace back."""
    import torch
    x = torch.ones(16, 16, device="cuda")
    torch.mm(x, x)


def wrapped(cls, name, around):
    inner = getattr(cls, name, None)
    if inner is not None:
        setattr(cls, name, functools.wraps(inner)(lambda self, *args, **more: around(lambda: inner(self, *args, **more), self)))
    return inner is not None


class Watch:
    """What is read of one start. `marks`: around the parts of the profile run as well, which moves what the engine itself measures."""

    def __init__(self, marks):
        self.found, self.marks = {}, marks
        from vllm.v1.worker import gpu_worker
        wrapped(gpu_worker.Worker, "init_device", self.init)
        wrapped(gpu_worker.Worker, "determine_available_memory", self.determine)
        for path in ("vllm.v1.worker.gpu.model_runner", "vllm.v1.worker.gpu_model_runner"):
            runner = getattr(sys.modules.get(path), "GPUModelRunner", None)
            for name, part in (("_dummy_run", "forward"), ("_dummy_sampler_run", "sampler")):
                if runner and marks:
                    wrapped(runner, name, functools.partial(self.part, part))
            if runner:
                wrapped(runner, "profile_cudagraph_memory", self.estimate)

    def init(self, run, worker):
        snapshot = sys.modules["vllm.v1.worker.gpu_worker"].MemorySnapshot

        def looked(*args, **more):
            self.found["before_bytes"] = allocated()
            if self.marks:
                self.found["before_cublas_bytes"] = cublas()
                self.found["before_cublas_bytes"] and product()
            return snapshot(*args, **more)
        sys.modules["vllm.v1.worker.gpu_worker"].MemorySnapshot = looked
        result = run()
        sys.modules["vllm.v1.worker.gpu_worker"].MemorySnapshot = snapshot
        return result

    def part(self, name, run, runner):
        import torch
        if name in self.found or "begun_bytes" not in self.found:
            return run()
        before = allocated()
        torch.cuda.reset_peak_memory_stats()
        result = run()
        self.found[name] = {"at_bytes": before - self.found["begun_bytes"], "peak_bytes": peak() - before, "held_bytes": allocated() - before}
        return result

    def estimate(self, run, runner):
        self.found["profiled_peak_bytes"] = peak()
        result = run()
        self.found["estimate_bytes"] = int(result)
        return result

    def determine(self, run, worker):
        import torch
        gc.collect()
        torch.cuda.empty_cache()
        self.found["begun_bytes"] = before = allocated()
        self.found["available_bytes"] = int(run())
        self.found.setdefault("profiled_peak_bytes", peak())
        gc.collect()
        torch.cuda.empty_cache()
        self.found["peak_bytes"] = self.found.pop("profiled_peak_bytes") - before
        self.found["retained_bytes"] = allocated() - before
        self.found["requested_bytes"] = int(worker.requested_memory)
        self.found["v2"] = bool(getattr(worker, "use_v2_model_runner", False))
        self.found["cublas_bytes"] = cublas()
        raise Enough


def start(asked):
    """The parts of an answer, as `told` (oomsight_ask.py) takes them."""
    from vllm.engine.arg_utils import AsyncEngineArgs
    from vllm.usage.usage_lib import UsageContext
    from vllm.v1.engine.core import EngineCore
    from vllm.v1.executor import Executor
    folder = tempfile.mkdtemp(prefix="oomsight-probe-")
    with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
        json.dump(MODELS[asked["model"]], file)
    yield "config"
    made = AsyncEngineArgs(model=folder, tokenizer=folder, skip_tokenizer_init=True, load_format="dummy", max_model_len=LENGTH, gpu_memory_utilization=SHARE,
                           max_num_seqs=asked["requests"], enforce_eager=asked["eager"])
    config = made.create_engine_config(usage_context=UsageContext.OPENAI_API_SERVER)
    yield "start"
    watch = Watch(asked["marks"])
    with contextlib.suppress(Enough):
        EngineCore(config, Executor.get_class(config), log_stats=False)
    watch.found["tokens"] = config.scheduler_config.max_num_batched_tokens
    watch.found["requests"] = config.scheduler_config.max_num_seqs
    watch.found["vocabulary"] = config.model_config.get_vocab_size()
    watch.found["command"] = ["vllm", "serve", asked["model"], "--max-model-len", str(LENGTH), "--gpu-memory-utilization", str(SHARE), "--max-num-seqs",
                              str(watch.found["requests"]), "--max-num-batched-tokens", str(watch.found["tokens"])] + ["--enforce-eager"] * asked["eager"]
    watch.found["environment"] = []
    yield {"verdict": "taken", "seen": watch.found}


def begin():
    """Ready to start; its release."""
    for name in [name for name in os.environ if name.startswith("VLLM_")]:
        del os.environ[name]
    os.environ.update(VLLM_CONFIGURE_LOGGING="0", VLLM_NO_USAGE_STATS="1", DO_NOT_TRACK="1", VLLM_ENABLE_V1_MULTIPROCESSING="0",
                      TORCHINDUCTOR_COMPILE_THREADS="1", HUMMING_DISABLE_PARALLEL_BUILD="1")
    release = asking.release_of("vllm", "vLLM")
    asking.load(("vllm", "transformers", "vllm.v1.engine.core", "vllm.v1.executor.uniproc_executor", "vllm.v1.worker.gpu_worker", "vllm.engine.arg_utils"))
    return release


if __name__ == "__main__":
    asking.main(sys.modules["__main__"])
