"""The vLLM plugin over a vLLM of a few lines: what it asks of the engine, and that no step of it can break an engine."""
import importlib
import json
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
        def load_model(self):
            return "loaded"

        def determine_available_memory(self):
            return profile_cudagraph_memory()

    def profile_cudagraph_memory():
        raise OutOfMemoryError("CUDA out of memory. Tried to allocate 1.56 GiB. GPU 0 has a total capacity of 23.52 GiB of which 957.00 MiB is free.")

    made["vllm.v1.executor.abstract"].Executor = Executor
    made["vllm.v1.worker.gpu_worker"].Worker = Worker
    for name, module in made.items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setenv("OOMSIGHT", "1")
    monkeypatch.setenv("OOMSIGHT_BUNDLE_DIR", str(tmp_path))
    monkeypatch.delenv("OOMSIGHT_PREFLIGHT", raising=False)
    sys.modules.pop("oomsight.vllm_plugin", None)
    plugin = importlib.import_module("oomsight.vllm_plugin")
    before = list(sys.meta_path)
    yield types.SimpleNamespace(plugin=plugin, executor=made["vllm.v1.executor.abstract"], worker=made["vllm.v1.worker.gpu_worker"], folder=tmp_path)
    sys.meta_path[:] = before


def test_it_sleeps_unless_it_is_woken(engine, monkeypatch):
    monkeypatch.setenv("OOMSIGHT", "0")
    before = engine.executor.Executor.__init__
    engine.plugin.register()
    assert engine.executor.Executor.__init__ is before


def test_the_command_is_that_of_the_configuration(engine):
    words = engine.plugin.command_of(config(HYBRID))
    assert words[:3] == ["vllm", "serve", HYBRID]
    assert words[words.index("--dtype") + 1] == "bfloat16" and "--language-model-only" in words and "--enforce-eager" not in words
    assert json.loads(words[words.index("--compilation-config") + 1]) == {"cudagraph_mode": "FULL_AND_PIECEWISE", "max_cudagraph_capture_size": 512}
    assert json.loads(words[words.index("--speculative-config") + 1]) == {"method": "mtp", "num_speculative_tokens": 2}


def test_an_engine_that_starts_is_told_so(engine, caplog):
    engine.plugin.register()
    with caplog.at_level("INFO"):
        assert engine.executor.Executor(config(LLAMA)).started
    assert "this configuration" in caplog.text and "GiB" in caplog.text


def test_warn_lets_an_engine_go_on(engine, caplog):
    engine.plugin.register()
    assert engine.executor.Executor(config(HYBRID)).started
    assert "does not fit" in caplog.text and "cudagraph_profile" in caplog.text
    assert "OutOfMemoryError" not in caplog.text  # a reader of the log would take it for the failure


def test_refuse_stops_it_with_phase_and_fix(engine, monkeypatch):
    monkeypatch.setenv("OOMSIGHT_PREFLIGHT", "refuse")
    engine.plugin.register()
    with pytest.raises(RuntimeError) as caught:
        engine.executor.Executor(config(HYBRID))
    assert "cudagraph_profile" in str(caught.value) and "Try: --" in str(caught.value)
    assert engine.executor.Executor(config(LLAMA)).started


def test_an_out_of_memory_leaves_a_bundle(engine, caplog):
    engine.plugin.register()
    engine.executor.Executor(config(HYBRID))
    worker = engine.worker.Worker()
    assert worker.load_model() == "loaded"
    with pytest.raises(OutOfMemoryError):
        worker.determine_available_memory()
    folder, = os.listdir(engine.folder)
    bundle = json.loads((engine.folder / folder / "bundle.json").read_text())
    assert bundle["phase"] == "cudagraph_profile" and bundle["plan"]["phase"] == "cudagraph_profile" and bundle["tried_bytes"]
    assert {"traceback.txt", "incident.json", "incident.html", "plan.json", "plan.html"} <= set(bundle["files"])
    assert str(engine.folder / folder) in caplog.text


def test_other_errors_are_left_alone(engine):
    engine.plugin.register()
    engine.worker.Worker.determine_available_memory = engine.plugin.guarded(lambda self: 1 / 0, "determine_available_memory")
    with pytest.raises(ZeroDivisionError):
        engine.worker.Worker().determine_available_memory()
    assert not os.listdir(engine.folder)


def broken(*args, **keywords):
    raise MemoryError("sabotage")


@pytest.mark.parametrize("step", ["reach", "plain", "graphs", "drafts", "command_of", "device_of", "make_plan", "summary", "preflight", "observe",
                                  "is_out_of_memory", "measured", "put", "snapshot", "bundle", "say_log", "library", "folder", "patch_executor", "patch_worker"])
def test_no_step_can_break_an_engine(engine, monkeypatch, step):
    plugin = engine.plugin
    if step == "say_log":
        monkeypatch.setattr(plugin.log, "warning", broken)
        monkeypatch.setattr(plugin.log, "error", broken)
    elif step == "library":
        import oomsight
        for name in ("plan", "explain"):
            monkeypatch.setattr(oomsight, name, broken)
    elif step == "folder":
        monkeypatch.setenv("OOMSIGHT_BUNDLE_DIR", "/proc/no/such/place")
    elif step.startswith("patch_"):
        for name, function in list(plugin.PATCHES.items()):
            if function.__name__ == step:
                monkeypatch.setitem(plugin.PATCHES, name, broken)
    elif step == "observe":
        monkeypatch.setattr(plugin, "_last_request", None)
    else:
        monkeypatch.setattr(plugin, step, broken)
    plugin.register()
    assert engine.executor.Executor(config(HYBRID)).started
    worker = engine.worker.Worker()
    assert worker.load_model() == "loaded"
    with pytest.raises(OutOfMemoryError):
        worker.determine_available_memory()


def test_a_module_that_comes_later_is_patched_when_it_comes(engine, monkeypatch, tmp_path):
    folder = tmp_path / "late"
    folder.mkdir()
    (folder / "gpu_worker.py").write_text("class Worker:\n    def load_model(self):\n        return 1\n")
    monkeypatch.delitem(sys.modules, "vllm.v1.worker.gpu_worker")
    sys.modules["vllm.v1.worker"].__path__ = [str(folder)]
    engine.plugin.register()
    late = importlib.import_module("vllm.v1.worker.gpu_worker")
    assert late.Worker.load_model._oomsight and late.Worker().load_model() == 1
