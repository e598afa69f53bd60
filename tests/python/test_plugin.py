"""The vLLM plugin over a vLLM of a few lines: what it asks of the engine and what it leaves behind. That no step of it can
break an engine is test_plugin_sabotage.py."""
import importlib
import importlib.abc
import importlib.machinery
import json
import os
import sys

import pytest

from small_vllm import HYBRID, LLAMA, OutOfMemoryError, config, engine  # noqa: F401


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
    assert "this configuration will not start" in caplog.text and "cudagraph_profile" in caplog.text
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
    assert bundle["phase"] == "cudagraph_profile" and bundle["plan"]["phase"] == "cudagraph_profile"
    assert bundle["tried_bytes"] == 1677721600 and bundle["rank"] == 1 and bundle["measured"]["reserved_bytes"] == 22 << 30
    assert {"traceback.txt", "measured.json", "incident.json", "incident.html", "plan.json", "plan.html", "snapshot.pickle"} <= set(bundle["files"])
    assert "WILL START" not in (engine.folder / folder / "plan.txt").read_text()
    assert str(engine.folder / folder) in caplog.text


def test_no_file_of_a_bundle_holds_a_secret(engine, monkeypatch):
    told = "hf_" + "QzWxEcRvTbYnUmIkOlPaSdFgHjKlMnBv"
    monkeypatch.setenv("VLLM_API_KEY", "plantedvariable")
    engine.plugin.register()
    engine.executor.Executor(config(HYBRID))
    engine.worker.Worker.text = "CUDA out of memory. Tried to allocate 1.56 GiB. --api-key plantedflag HF_TOKEN=%s https://a:plantedlogin@host" % told
    with pytest.raises(OutOfMemoryError):
        engine.worker.Worker().determine_available_memory()
    folder, = os.listdir(engine.folder)
    inside = {name: (engine.folder / folder / name).read_text() for name in os.listdir(engine.folder / folder)}
    assert "--api-key ***" in inside["traceback.txt"]
    for secret in (told, "plantedflag", "plantedlogin", "plantedvariable"):
        assert not [name for name, text in inside.items() if secret in text]


def test_a_worker_that_has_not_seen_the_plan_makes_it(engine):
    engine.plugin.register()
    engine.worker.Worker.vllm_config = config(HYBRID)
    with pytest.raises(OutOfMemoryError):
        engine.worker.Worker().determine_available_memory()
    folder, = os.listdir(engine.folder)
    assert json.loads((engine.folder / folder / "bundle.json").read_text())["plan"]["verdict"] == "fails"


def test_a_second_failure_writes_no_second_bundle(engine):
    engine.plugin.register()
    for _ in range(2):
        with pytest.raises(OutOfMemoryError):
            engine.worker.Worker().determine_available_memory()
    assert len(os.listdir(engine.folder)) == 1


def test_a_history_that_is_not_recorded_is_not_written(engine):
    engine.torch.history[:] = [[]]
    engine.plugin.register()
    with pytest.raises(OutOfMemoryError):
        engine.worker.Worker().determine_available_memory()
    folder, = os.listdir(engine.folder)
    assert "snapshot.pickle" not in os.listdir(engine.folder / folder)


def test_a_card_that_is_not_listed_is_planned_by_its_size(engine, monkeypatch, caplog):
    monkeypatch.setattr(sys.modules["vllm.platforms"].current_platform, "get_device_name", lambda index: "NVIDIA Nothing 9999")
    engine.plugin.register()
    with caplog.at_level("INFO"):
        assert engine.executor.Executor(config(LLAMA)).started
    assert "this configuration will start on" in caplog.text and "(23.99 GiB)" in caplog.text


def test_the_engine_may_be_stopped_while_it_plans(engine, monkeypatch):
    def stopped(*words, **more):
        raise SystemExit(3)

    monkeypatch.setattr(engine.plugin, "ask", stopped)
    engine.plugin.register()
    with pytest.raises(SystemExit):
        engine.executor.Executor(config(LLAMA))


def test_other_errors_are_left_alone(engine):
    engine.plugin.register()
    engine.worker.Worker.determine_available_memory = engine.plugin.guarded(lambda self: 1 / 0, "determine_available_memory")
    with pytest.raises(ZeroDivisionError):
        engine.worker.Worker().determine_available_memory()
    assert not os.listdir(engine.folder)


def test_a_module_that_comes_later_is_patched_when_it_comes(engine, monkeypatch, tmp_path):
    folder = tmp_path / "late"
    folder.mkdir()
    (folder / "gpu_worker.py").write_text("class Worker:\n    def load_model(self):\n        return 1\n")
    monkeypatch.delitem(sys.modules, "vllm.v1.worker.gpu_worker")
    sys.modules["vllm.v1.worker"].__path__ = [str(folder)]
    engine.plugin.register()
    late = importlib.import_module("vllm.v1.worker.gpu_worker")
    assert late.Worker.load_model._oomsight and late.Worker().load_model() == 1


def test_finders_of_others_are_not_passed_over(engine, monkeypatch, tmp_path):
    folder = tmp_path / "late"
    folder.mkdir()
    (folder / "gpu_worker.py").write_text("class Worker:\n    def load_model(self):\n        return 1\n")
    monkeypatch.delitem(sys.modules, "vllm.v1.worker.gpu_worker")
    sys.modules["vllm.v1.worker"].__path__ = [str(folder)]

    class Other(importlib.abc.MetaPathFinder):
        def find_spec(self, name, path, target=None):
            spec = importlib.machinery.PathFinder.find_spec(name, path, target)
            if name.endswith("gpu_worker"):
                execute = spec.loader.exec_module
                spec.loader.exec_module = lambda module: (execute(module), setattr(module, "other", True))
            return spec

    sys.meta_path.insert(0, Other())
    engine.plugin.register()
    late = importlib.import_module("vllm.v1.worker.gpu_worker")
    assert late.other and late.Worker.load_model._oomsight
