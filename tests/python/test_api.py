"""The binding answers what the commands answer."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import threading

import pytest

import oomsight
from oomsight._command import command_path

FIXTURES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fixtures")
LLAMA = os.path.join(FIXTURES, "models", "small-llama")
HYBRID = os.path.join(FIXTURES, "models", "small-hybrid")
LOG = os.path.join(FIXTURES, "kb", "vllm", "context-too-long", "positive.log")
TRACE = os.path.join(FIXTURES, "traces", "stranded.trace")
FAILS = dict(gpu="4090", vllm="0.19.1")
MTP = ["--language-model-only", "--kv-cache-dtype", "fp8", "--speculative-config", '{"method": "mtp", "num_speculative_tokens": 2}']


def run(*words):
    return subprocess.run([command_path(), *words], capture_output=True, text=True, env=dict(os.environ, NO_COLOR="1"))


def test_a_plan_has_the_figures_of_the_command():
    plan = oomsight.plan(["vllm", "serve", LLAMA], gpu="4090")
    told = json.loads(run("plan", "--json", "--gpu", "4090", "--", "vllm", "serve", LLAMA).stdout)
    assert plan.data == told
    assert (plan.verdict, plan.phase, plan.weights_bytes, plan.kv_tokens) == (told["verdict"], None, told["weights_bytes"], told["kv"]["tokens"])
    assert plan.fits and plan.best_flags == "" and plan.gpu.name == "NVIDIA GeForce RTX 4090"
    assert [(p.phase, p.peak_bytes) for p in plan.phases] == [(p["phase"], p["peak_bytes"]) for p in told["phases"]]
    assert all(sum(h.bytes for h in p.holds) == p.peak_bytes for p in plan.phases)


def test_a_command_may_be_one_string():
    words = oomsight.plan(["vllm", "serve", HYBRID, "--language-model-only"], **FAILS)
    text = oomsight.plan("vllm serve '%s' --language-model-only" % HYBRID, **FAILS)
    assert words.data == text.data


def test_does_not_fit_is_an_answer():
    plan = oomsight.plan(["vllm", "serve", HYBRID] + MTP, **FAILS)
    assert not plan.fits and plan.verdict == "fails" and plan.phase == "cudagraph_profile" and plan.tried_bytes
    assert plan.why and plan.cause and plan.fixes and plan.fixes[0].change and plan.best_flags
    assert "cudagraph_profile" in repr(plan)


def test_reports_are_those_of_the_command():
    plan = oomsight.plan(["vllm", "serve", LLAMA], gpu="4090")
    words = ["--gpu", "4090", "--", "vllm", "serve", LLAMA]
    assert plan.text() == str(plan) == run("plan", *words).stdout
    assert plan.text(explain=True) == run("plan", "--explain", *words).stdout
    assert plan.markdown() == run("plan", "--format", "md", *words).stdout
    assert plan.html() == run("plan", "--format", "html", *words).stdout


def test_a_notebook_shows_the_page_in_a_frame():
    shown = oomsight.plan(["vllm", "serve", LLAMA], gpu="4090")._repr_html_()
    assert shown.startswith("<iframe srcdoc=") and shown.count('"') == 2 * shown.split(">")[0].count('="') or "&quot;" in shown
    assert "<script>" in shown and "sandbox" in shown


def test_sizes_are_words_or_bytes():
    words = oomsight.plan(["vllm", "serve", LLAMA], gpu="4090", gpu_total="23.5GiB", gpu_used="1GiB")
    numbers = oomsight.plan(["vllm", "serve", LLAMA], gpu="4090", gpu_total=int(23.5 * 2**30), gpu_used=2**30)
    assert words.data == numbers.data


@pytest.mark.parametrize("call", [
    lambda: oomsight.plan(["vllm", "serve", LLAMA], gpu="4090x"),
    lambda: oomsight.plan(["vllm", "serve", LLAMA]),
    lambda: oomsight.plan(["vllm", "serve", LLAMA], gpu="4090", vllm="new"),
    lambda: oomsight.plan(["vllm", "serve", LLAMA], gpu="4090", gpu_total="much"),
    lambda: oomsight.plan(["vllm", "serve", LLAMA], gpu="4090", gpu_total=-1),
    lambda: oomsight.plan(["vllm", "serve", LLAMA], gpu="4090", gpu_total=24), lambda: oomsight.plan(["vllm", "serve", LLAMA], gpu="4090", gpu_used="3"),
    lambda: oomsight.plan(["vllm", "serve", LLAMA], gpu="4090", host_ram="64"),
    lambda: oomsight.check(), lambda: oomsight.explain(), lambda: oomsight.explain(LOG, text="x")])
def test_a_request_without_sense_is_a_usage_error(call):
    with pytest.raises(oomsight.UsageError) as caught:
        call()
    assert isinstance(caught.value, ValueError) and caught.value.status == 7


@pytest.mark.parametrize("call", [lambda text: oomsight.plan("vllm serve " + text, gpu="l4"), lambda text: oomsight.plan(["vllm", "serve", text], gpu="l4"), lambda text: oomsight.plan("m", gpu=text),
                                  lambda text: oomsight.plan("m", gpu="l4", env={"A": text}), lambda text: oomsight.plan("m", gpu="l4", gpu_total=text), lambda text: oomsight.explain(text),
                                  lambda text: oomsight.replay(text), lambda text: oomsight.check(text), lambda text: oomsight.check("x", models=text), lambda text: oomsight.plan("m", gpu="l4", data=text)])
def test_zero_byte(call):
    with pytest.raises(oomsight.UsageError, match="zero byte"):
        call("a\0b")


def test_long_command():
    """Refused before it is taken apart: a string of megabytes costs nothing."""
    with pytest.raises(oomsight.UsageError, match="more than 65536 characters"):
        oomsight.plan("x" * 10000000, gpu="l4")
    with pytest.raises(oomsight.OomsightError):
        oomsight.plan(["vllm", "serve", "x" * 1000000], gpu="l4", hub=False)


def test_errors_have_the_words_of_the_command():
    with pytest.raises(oomsight.InputError) as caught:
        oomsight.plan(["vllm", "serve", "/no/such/model"], gpu="4090", hub=False)
    said = run("plan", "--offline", "--gpu", "4090", "--", "vllm", "serve", "/no/such/model")
    assert said.stderr.strip() == "oomsight: %s" % caught.value
    with pytest.raises(oomsight.InputError) as caught:
        oomsight.explain("/no/such/log")
    assert run("explain", "/no/such/log").stderr.strip() == "oomsight: %s" % caught.value


def test_a_log_is_explained():
    explanation = oomsight.explain(LOG)
    assert len(explanation) == 1 and explanation.is_oom and explanation[0].is_oom
    incident = explanation[0]
    assert (incident.phase, incident.cause) == ("kv_sizing", "context_too_long_for_kv")
    assert incident.evidence and incident.fixes and incident.numbers and len(incident.fingerprint) == 16
    assert [json.loads(line) for line in run("explain", "--json", LOG).stdout.splitlines()] == [i.data for i in explanation]
    with open(LOG, encoding="utf-8") as f:
        assert oomsight.explain(text=f.read())[0].cause == incident.cause


def test_a_healthy_log_has_one_incident_that_is_none():
    explanation = oomsight.explain(text="INFO 01-02 03:04:05 [core.py:1] init engine (profile, create kv cache) took 9.0 seconds\n")
    assert len(explanation) == 1 and not explanation.is_oom


def test_a_model_alone_is_served_as_it_is():
    whole = oomsight.plan(["vllm", "serve", LLAMA], gpu="4090").data
    assert oomsight.plan(LLAMA, gpu="4090").data == oomsight.plan([LLAMA], gpu="4090").data == whole
    assert oomsight.plan(pathlib.Path(LLAMA), gpu="4090").data == whole
    assert oomsight.plan("Qwen/Qwen3-8B", gpu="h100", hub=False)


def test_a_folder_with_a_space_is_one_model(tmp_path):
    shutil.copytree(LLAMA, tmp_path / "a model")
    assert oomsight.plan(str(tmp_path / "a model"), gpu="4090").fits


@pytest.mark.parametrize("fixes", [True, False])
def test_every_gpu_is_a_list_of_choices(fixes):
    plan = oomsight.plan(["vllm", "serve", LLAMA], gpu="all", fixes=fixes)
    assert plan.gpu is None and plan.choices and plan.choices[0].memory_bytes <= plan.choices[-1].memory_bytes


def test_a_plan_is_for_one_release():
    with pytest.raises(oomsight.UsageError, match="one version"):
        oomsight.plan(["vllm", "serve", LLAMA], gpu="4090", vllm="0.19.1,0.32.0")


def test_a_plan_is_true_when_it_starts():
    assert oomsight.plan(LLAMA, gpu="4090") and not oomsight.plan(["vllm", "serve", HYBRID] + MTP, **FAILS)


def test_deployment_files_are_checked(tmp_path):
    (tmp_path / "run.sh").write_text("vllm serve small-llama --max-model-len 8192\nvllm serve small-hybrid --gpu-memory-utilization 0.1\n")
    check = oomsight.check(tmp_path, gpu="4090", vllm="0.19.1", models=os.path.join(FIXTURES, "models"), hub=False)
    words = ["--gpu", "4090", "--vllm", "0.19.1", "--models", os.path.join(FIXTURES, "models"), "--offline", str(tmp_path)]
    assert check.data == json.loads(run("check", "--json", *words).stdout) and check.sarif() == run("check", "--format", "sarif", *words).stdout
    assert len(check) == 2 and check.failing == 1 and not check and [c.answer for c in check][0] == "starts"
    assert check.commands[1].line == 2 and check.commands[1].phase and "1 do not start" in repr(check)
    (tmp_path / "run.sh").write_text("vllm serve small-llama --max-model-len 8192\n")
    assert oomsight.check(tmp_path, gpu="4090", models=os.path.join(FIXTURES, "models"), hub=False)


def test_a_matrix_has_the_points_of_the_command():
    fleet, models = os.path.join(FIXTURES, "matrix", "fleet.yaml"), os.path.join(FIXTURES, "models")
    matrix = oomsight.matrix(fleet, models=models, hub=False)
    told = [json.loads(line) for line in run("matrix", "--json", "--quiet", "--offline", "--models", models, fleet).stdout.splitlines()]
    assert matrix.data == told and len(matrix) == len(told) and [p.answer for p in matrix] == [row["likely"] for row in told]
    assert bool(matrix) == all(point.fits for point in matrix)
    with pytest.raises(oomsight.InputError):
        oomsight.matrix("/no/such/file")
    asked = oomsight.matrix(fleet, models=models, hub=False, exact=True, python="/no/such/python")
    assert [row["exact"] for row in asked.data] == ["unknown"] * len(told) and asked.data[0]["exact_said"].endswith("/no/such/python is no Python.")


def test_gpus_are_those_that_plan_takes():
    known = oomsight.gpus()
    h100 = next(gpu for gpu in known if "h100" in gpu.aliases)
    assert h100.total_bytes > 79 << 30 and h100.compute_capability == 9 and h100.slice is None
    assert oomsight.plan(LLAMA, gpu=h100.aliases[0]).gpu.name == h100.name


def test_a_trace_is_replayed():
    replay = oomsight.replay(TRACE, try_settings=["max_split_size_mb:64"])
    assert replay.ran_out and replay.oom_message and replay.peak_reserved_bytes >= replay.peak_allocated_bytes
    assert any("max_split_size_mb:64" in row.label for row in replay.what_if)
    assert replay.data == json.loads(run("replay", "--json", "--try", "max_split_size_mb:64", TRACE).stdout)


@pytest.mark.skipif(not shutil.which("sh"), reason="no shell")
def test_a_dry_run_returns_what_was_measured():
    run_ = oomsight.dryrun(["sh", "-c", "echo torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.56 GiB.; exit 3"], gpu="4090") \
        if os.environ.get("OOMSIGHT_TEST_SHIMS") else None
    if run_ is None:
        with pytest.raises(oomsight.OomsightError):
            oomsight.dryrun(["/no/such/engine"], gpu="4090")
    else:
        assert run_.data["schema"] == "oomsight.dryrun/1" and run_.text().startswith("OUT OF MEMORY")


@pytest.mark.skipif(sys.platform != "linux", reason="dry runs are for Linux")
def test_a_dry_run_makes_a_page_only_when_asked(tmp_path, monkeypatch):
    """A PyTorch of one file: the CUDA version is all that is read of it."""
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text("")
    (tmp_path / "torch" / "version.py").write_text("__version__ = '2.9.1'\ncuda = '12.8'\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    try:
        plain = oomsight.dryrun([sys.executable, "-c", "print('done')"], gpu="4090")
    except oomsight.OomsightError as error:
        if "no stub libraries" in str(error):
            pytest.skip("no stand-ins here")
        raise
    assert plain.fits and plain.exit_code == 0 and plain.data["engine"] == {"name": "torch", "version": "2.9.1"}
    assert plain.text().startswith("RAN on") and plain._repr_html_().startswith("<pre>RAN on")
    with pytest.raises(oomsight.UsageError):
        plain.html()
    page = oomsight.dryrun([sys.executable, "-c", "print('done')"], gpu="4090", html=True)
    assert page.html().lower().lstrip().startswith("<!doctype html>") and page.text().startswith("RAN on") and page.data["schema"] == "oomsight.dryrun/1"


def test_an_engine_is_asked_for_by_its_name():
    command = ["sglang", "serve", LLAMA]
    named = oomsight.plan(command, gpu="4090", engine="sglang=0.5.20")
    assert named.data["engine"] == {"name": "sglang", "version": "0.5.20"}
    assert named.data == json.loads(run("plan", "--json", "--gpu", "4090", "--engine", "sglang=0.5.20", "--", *command).stdout)
    assert oomsight.plan(LLAMA, gpu="4090", engine="sglang").data["engine"]["name"] == "sglang"
    assert oomsight.plan(LLAMA, gpu="4090", engine="=0.19.1").data["engine"] == {"name": "vllm", "version": "0.19.1"}
    with pytest.raises(oomsight.UsageError):
        oomsight.plan(LLAMA, gpu="4090", engine="vllm=0.19.1", vllm="0.32.0")


def test_an_explanation_takes_what_the_log_does_not_tell():
    text = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.56 GiB."
    told = oomsight.explain(text=text, gpu="4090", model=LLAMA, version="0.19.1")
    again = subprocess.run([command_path(), "explain", "--json", "--gpu", "4090", "--model", LLAMA, "--vllm", "0.19.1", "-"], input=text, capture_output=True, text=True, check=False)
    assert told.data == json.loads(again.stdout)
    assert told.data["gpu"]["name"] == "NVIDIA GeForce RTX 4090" and oomsight.explain(text=text).data["gpu"] != told.data["gpu"]


def test_threads_share_the_library():
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(oomsight.plan(["vllm", "serve", LLAMA], gpu="4090").data)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 8 and all(answer == answers[0] for answer in answers)


def test_python_m_is_the_command():
    told = subprocess.run([sys.executable, "-m", "oomsight", "plan", "--gpu", "4090", "--", "vllm", "serve", HYBRID, "--language-model-only",
                           "--vllm-none"], capture_output=True, text=True)
    assert told.returncode in (0, 1) and told.stdout
    assert subprocess.run([sys.executable, "-m", "oomsight", "nonsense"], capture_output=True).returncode == 2


def test_versions_agree():
    from oomsight._abi import library
    assert library().oomsight_version().decode() == oomsight.__version__
