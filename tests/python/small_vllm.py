"""A vLLM of a few lines, and the plugin fresh and awake in it, for the tests of the plugin."""
import importlib
import os
import sys
import types

import pytest

HYBRID = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fixtures", "models", "small-hybrid")
LLAMA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fixtures", "models", "small-llama")
NAMES = ("vllm", "vllm.platforms", "vllm.v1", "vllm.v1.executor", "vllm.v1.executor.abstract", "vllm.v1.worker", "vllm.v1.worker.gpu_worker")


class OutOfMemoryError(RuntimeError):
    pass


def config(model, **scheduler):
    space = types.SimpleNamespace
    return space(
        model_config=space(model=model, dtype="torch.bfloat16", max_model_len=16384, quantization=None, enforce_eager=False,
                           enable_sleep_mode=False, multimodal_config=space(language_model_only=True, limit_per_prompt={})),
        cache_config=space(gpu_memory_utilization=0.9, cache_dtype="fp8", block_size=16, user_specified_block_size=False),
        parallel_config=space(tensor_parallel_size=1, pipeline_parallel_size=1, data_parallel_size=1, enable_expert_parallel=False),
        scheduler_config=space(max_num_seqs=256, max_num_batched_tokens=2048, **scheduler), lora_config=None,
        compilation_config=space(cudagraph_mode=space(name="FULL_AND_PIECEWISE"), max_cudagraph_capture_size=512, cudagraph_capture_sizes=[]),
        speculative_config=space(method="mtp", num_speculative_tokens=2, model=model) if model == HYBRID else None)


def torch(folder):
    """As much of PyTorch as is asked: figures, the observer of failed requests, a recorded history."""
    made = types.ModuleType("torch")
    made.observers, made.history = [], [[{"action": "alloc"}]]
    made._C = types.SimpleNamespace(_cuda_attach_out_of_memory_observer=made.observers.append)
    made.cuda = types.SimpleNamespace(
        is_initialized=lambda: True, mem_get_info=lambda: (957 << 20, 25757220864), memory_allocated=lambda: 21 << 30,
        memory_reserved=lambda: 22 << 30, max_memory_allocated=lambda: 23 << 30,
        memory=types.SimpleNamespace(_snapshot=lambda: {"device_traces": made.history},
                                     _dump_snapshot=lambda path: open(path, "w").write("history")))
    return made


@pytest.fixture
def engine(monkeypatch, tmp_path):
    """A vLLM whose worker can be told to run out of memory; the plugin fresh and awake."""
    made = {name: types.ModuleType(name) for name in NAMES}
    made["vllm"].__version__ = "0.19.1"
    made["vllm"].__path__ = []
    made["vllm.platforms"].current_platform = types.SimpleNamespace(
        get_device_name=lambda index: "NVIDIA GeForce RTX 4090", get_device_capability=lambda index: (8, 9),
        get_device_total_memory=lambda index: 25757220864)

    class Executor:
        def __init__(self, vllm_config):
            self.started = True

    class Worker:
        rank = 1
        text = "CUDA out of memory. Tried to allocate 1.56 GiB. GPU 0 has a total capacity of 23.52 GiB of which 957.00 MiB is free."

        def load_model(self):
            return "loaded"

        def determine_available_memory(self):
            return profile_cudagraph_memory(self.text)

    def profile_cudagraph_memory(text):
        for told in made["torch"].observers:
            told(0, 1677721600, 25757220864, 957 << 20)
        raise OutOfMemoryError(text)

    made["vllm.v1.executor.abstract"].Executor = Executor
    made["vllm.v1.worker.gpu_worker"].Worker = Worker
    made["torch"] = torch(tmp_path)
    for name, module in made.items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setenv("OOMSIGHT", "1")
    (tmp_path / "bundles").mkdir()
    monkeypatch.setenv("OOMSIGHT_BUNDLE_DIR", str(tmp_path / "bundles"))
    monkeypatch.delenv("OOMSIGHT_PREFLIGHT", raising=False)
    for name in ("vllm_plugin", "_bundle", "_ask", "_vllm_config"):
        sys.modules.pop("oomsight." + name, None)
        vars(importlib.import_module("oomsight")).pop(name, None)
    plugin = importlib.import_module("oomsight.vllm_plugin")
    before = list(sys.meta_path)
    yield types.SimpleNamespace(plugin=plugin, bundle=plugin._bundle, ask=sys.modules["oomsight._ask"], words=sys.modules["oomsight._vllm_config"],
                                executor=made["vllm.v1.executor.abstract"], worker=made["vllm.v1.worker.gpu_worker"], torch=made["torch"],
                                folder=tmp_path / "bundles")
    sys.meta_path[:] = before
