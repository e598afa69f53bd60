"""No step of the vLLM plugin can break an engine: each is made to fail, and the engine starts, and fails, as without it.

tests/oracle/test_plugin.py does the same, one kind of failure at a time, in real engines."""
import errno
import os
import signal
import stat
import sys
import time
import types

import pytest

from small_vllm import HYBRID, LLAMA, OutOfMemoryError, config, engine  # noqa: F401


class Unusual(BaseException):
    """What `except Exception` lets through; bindings of other languages raise such."""


called = []


def broken(kind):
    called.clear()

    def step(*args, **keywords):
        called.append(kind)
        raise kind("sabotage")
    return step


def as_without(engine, configuration=None):
    """The whole life of a small engine, with the errors it would have without the plugin."""
    engine.plugin.register()
    assert engine.executor.Executor(config(HYBRID) if configuration is None else configuration).started
    worker = engine.worker.Worker()
    assert worker.load_model() == "loaded"
    with pytest.raises(OutOfMemoryError, match="Tried to allocate 1.56 GiB"):
        worker.determine_available_memory()


# Every function of the plugin, in the order in which they are called.
STEPS = ["plugin.register_patch", "plugin.patch_executor", "plugin.patch_worker", "plugin.find_spec", "plugin.preflight", "plugin.make_plan",
         "plugin.device_of", "plugin.host_ram", "plugin.engine_version", "plugin.command_of", "words.reach", "words.plain", "words.graphs", "words.drafts",
         "plugin.ask", "ask.environment", "ask.command_path", "ask.memory_file", "ask.subprocess.Popen", "ask.Answer", "ask.parse",
         "plugin.summary", "plugin.best_flags", "plugin.refuses", "plugin.log.info", "plugin.log.warning", "plugin.log.error", "plugin.say_all",
         "plugin.observe_bundle", "bundle.told", "plugin.out_of_memory_check", "bundle.was_tried", "plugin.plan_for", "bundle.write", "bundle.measured",
         "bundle.within", "bundle.threading.Thread", "bundle.traceback.format_exception", "bundle.new_folder", "bundle.os.makedirs", "bundle.tempfile.mkdtemp", "bundle.Folder",
         "bundle.Folder.put", "bundle.json.dumps", "bundle.fill", "bundle.explained", "bundle.shown", "bundle.redacted", "ask.run", "bundle.ask", "bundle.recorded"]


def sabotage(engine, monkeypatch, step, kind):
    plugin = engine.plugin
    if step == "plugin.register_patch":
        monkeypatch.setattr(plugin, "patch", broken(kind))
    elif step.startswith("plugin.patch_"):
        for name, function in list(plugin.PATCHES.items()):
            if function.__name__ == step[7:]:
                monkeypatch.setitem(plugin.PATCHES, name, broken(kind))
    elif step == "plugin.find_spec":
        monkeypatch.setattr(plugin.importlib.util, "find_spec", broken(kind))
        assert plugin.AfterImport().find_spec("vllm.v1.worker.gpu_worker", None) is None
        monkeypatch.undo()
        monkeypatch.setenv("OOMSIGHT", "1")
    elif step == "plugin.say_all":
        for name in ("info", "warning", "error"):
            monkeypatch.setattr(plugin.log, name, broken(kind))
    elif step == "plugin.observe_bundle":
        monkeypatch.setattr(engine.bundle, "observe", broken(kind))
    elif step == "plugin.out_of_memory_check":
        monkeypatch.setattr(engine.bundle, "is_out_of_memory", broken(kind))
    elif step == "bundle.told":
        called.append("told")
        monkeypatch.setattr(engine.bundle, "_last_request", None)
    else:
        place = getattr(engine, step.split(".")[0])
        for name in step.split(".")[1:-1]:
            place = getattr(place, name)
        monkeypatch.setattr(place, step.split(".")[-1], broken(kind))


@pytest.mark.parametrize("kind", [MemoryError, Unusual])
@pytest.mark.parametrize("step", STEPS)
def test_no_step_can_break_an_engine(engine, monkeypatch, step, kind):
    called.clear()
    sabotage(engine, monkeypatch, step, kind)
    as_without(engine, config(LLAMA) if step == "plugin.log.info" else None)
    assert called  # the step is on the way


def test_every_function_of_the_plugin_is_sabotaged(engine):
    """A step that is added later has to be added to the list."""
    names = {step.split(".", 1)[1].split("_bundle")[0] for step in STEPS} | {"patch", "is_out_of_memory", "observe", "out_of_memory"}
    # Helpers that the steps above are made of and that raise for no other reason.
    inner = {"register", "guarded", "say", "preflight", "attempt", "end", "memory_file"}
    for module in (engine.plugin, engine.bundle, engine.words, engine.ask):
        made = {name for name, value in vars(module).items() if isinstance(value, types.FunctionType) and value.__module__ == module.__name__}
        assert made <= names | inner, (module.__name__, made - names - inner)


def program(folder, text):
    path = folder / "program"
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


PROGRAMS = {"fails": "echo our own fault >&2; exit 4", "crashes": "kill -SEGV $$", "is killed": "kill -KILL $$", "says nothing": "exit 0",
            "says rubbish": "printf '\\377\\000{}<html>'", "is another version": "echo '<script id=\"data\">{\"documents\":[{}]}</script>'",
            "has no documents": "echo '<script id=\"data\">{\"documents\":[]}</script>'", "answers a list": "echo '<script id=\"data\">[]</script>'",
            "hangs": "sleep 600", "hangs on purpose": "trap '' TERM INT HUP; while :; do sleep 1; done", "has no end": "while :; do printf '%65536s' ''; done",
            "closes its streams": "exec >&- 2>&- <&-; exit 0", "takes no such option": "echo no option >&2; exit 2"}


@pytest.mark.parametrize("what", list(PROGRAMS))
def test_a_program_that(engine, monkeypatch, tmp_path, what):
    monkeypatch.setenv("OOMSIGHT_COMMAND", program(tmp_path, PROGRAMS[what]))
    monkeypatch.setattr(engine.ask, "MOST_BYTES", 1 << 20)
    monkeypatch.setattr(engine.ask, "SECONDS", 0.3)
    start = time.monotonic()
    as_without(engine)
    assert time.monotonic() - start < 100  # it would hang for 600
    here = os.path.realpath(tmp_path)
    left = lambda: [pid for pid in os.listdir("/proc") if pid.isdigit() and here in cmdline(pid)]
    while left() and time.monotonic() - start < 100:
        time.sleep(0.05)
    assert not left()  # killed, with what it started


def cmdline(pid):
    try:
        with open("/proc/%s/cmdline" % pid) as f:
            return f.read()
    except OSError:
        return ""


@pytest.mark.parametrize("how", ["missing", "a folder", "not executable", "not a program"])
def test_a_program_that_is(engine, monkeypatch, tmp_path, how):
    path = tmp_path / "program"
    if how == "a folder":
        path.mkdir()
    elif how != "missing":
        path.write_bytes(b"\x7fELF and no more")
    if how == "not a program":
        path.chmod(0o755)
    monkeypatch.setattr(sys.modules["oomsight._command"], "_places", lambda: iter([str(path)]))
    as_without(engine)


@pytest.mark.parametrize("place", ["/proc/no/such/place", "/dev/null", "/dev/null/below", "\udcff\n", "x" * 5000, "", "~", "/sys/kernel"])
def test_a_place_for_bundles_that_is(engine, monkeypatch, tmp_path, place):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("OOMSIGHT_BUNDLE_DIR", place)
    as_without(engine)


def test_a_full_disk_leaves_no_half_files(engine, monkeypatch, caplog):
    def full(path, *args, **keywords):
        if isinstance(path, str):  # else a file that is open already
            open(path, "w").close()
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(engine.bundle, "open", full, raising=False)
    engine.torch.cuda.memory._dump_snapshot = full
    as_without(engine)
    assert os.listdir(engine.folder) == [] and "No space left" in caplog.text and "everything about it" not in caplog.text


def test_nobody_else_can_lead_a_bundle_elsewhere_or_read_it(engine, tmp_path):
    """A neighbour guesses time and process, and puts a link where the files of the coming seconds will be."""
    victim = tmp_path / "victim"
    victim.write_text("precious\n")
    for second in range(6):
        folder = engine.folder / ("oomsight-%s-%d" % (time.strftime("%Y%m%d-%H%M%S", time.localtime(time.time() + second)), os.getpid()))
        folder.mkdir(mode=0o777, exist_ok=True)
        (folder / "traceback.txt").symlink_to(victim)
    planted = set(os.listdir(engine.folder))
    before = os.umask(0)
    try:
        as_without(engine)
    finally:
        os.umask(before)
    assert victim.read_text() == "precious\n"
    made, = set(os.listdir(engine.folder)) - planted
    assert (engine.folder / made).stat().st_mode & 0o777 == 0o700 and len(os.listdir(engine.folder / made)) > 5
    assert {os.lstat(engine.folder / made / name).st_mode & 0o7777 for name in os.listdir(engine.folder / made)} == {0o600}


def test_a_link_in_the_place_of_a_file_is_left_alone(engine, tmp_path):
    victim, told = tmp_path / "victim", []
    victim.write_text("precious\n")
    folder = engine.bundle.Folder(engine.bundle.new_folder(), lambda what, error: told.append(error))
    os.symlink(victim, os.path.join(folder.path, "traceback.txt"))
    folder.put("traceback.txt", lambda path: "Traceback")
    folder.close()
    assert victim.read_text() == "precious\n" and folder.files == [] and isinstance(told[0], FileExistsError)
    assert os.path.islink(os.path.join(folder.path, "traceback.txt"))


def test_a_disk_that_does_not_answer_is_left_behind(engine, monkeypatch, caplog):
    monkeypatch.setattr(engine.bundle, "SECONDS", 0.3)
    monkeypatch.setattr(engine.bundle, "new_folder", lambda: time.sleep(300))
    start = time.monotonic()
    as_without(engine)
    assert time.monotonic() - start < 100 and "not done within" in caplog.text


@pytest.mark.parametrize("name, value", [
    ("OOMSIGHT_PREFLIGHT", "nonsense"), ("OOMSIGHT_PREFLIGHT", ""), ("OOMSIGHT_GPU", "nonsense"), ("OOMSIGHT_GPU", "A30x"), ("OOMSIGHT_GPU", ""),
    ("OOMSIGHT_GPU_TOTAL", "nonsense"), ("OOMSIGHT_GPU_TOTAL", "-1"), ("OOMSIGHT_GPU_TOTAL", ""), ("OOMSIGHT_GPU_TOTAL", "99999999999999999999"),
    ("VLLM_SOMETHING", "\udcff\udcfe"), ("VLLM_LONG", "x" * 100000), ("LC_ALL", "zh_CN.UTF-8"), ("LC_ALL", "nonsense"), ("PATH", ""), ("HOME", "/nowhere"),
    ("TMPDIR", "/nowhere"), ("LD_PRELOAD", "/nowhere.so"), ("OOMSIGHT", " TRUE ")])
def test_an_environment_with(engine, monkeypatch, name, value):
    monkeypatch.setenv(name, value)
    as_without(engine)


def test_hundreds_of_variables_are_planned_with(engine, monkeypatch, caplog):
    """Kubernetes gives every pod some for each service, and a service may be called vllm."""
    for i in range(500):
        monkeypatch.setenv("VLLM_SERVICE_PORT_%d" % i, "8000")
    as_without(engine)
    assert "this configuration will not start" in caplog.text


class Hostile:
    """Whatever is asked of it fails."""
    def __getattr__(self, name):
        raise RuntimeError("hostile " + name)


def strange():
    space = types.SimpleNamespace
    yield "nothing", 0
    yield "no parts", space()
    yield "hostile", Hostile()
    for path, value in (("model_config", None), ("model_config.model", None), ("model_config.model", "/no/such/model"), ("model_config.model", "a\0b"),
                        ("model_config.model", b"\xff"), ("model_config.max_model_len", -5), ("model_config.max_model_len", 10**30),
                        ("model_config.dtype", Hostile()), ("parallel_config", Hostile()), ("parallel_config.tensor_parallel_size", 0.5),
                        ("parallel_config.tensor_parallel_size", 10**9), ("scheduler_config.max_num_seqs", "many"),
                        ("cache_config.gpu_memory_utilization", float("nan")), ("compilation_config.cudagraph_capture_sizes", ["a"]),
                        ("compilation_config.cudagraph_mode", Hostile()), ("speculative_config", space(num_speculative_tokens="x", method=None)),
                        ("model_config.multimodal_config", space(limit_per_prompt={1: {2: 3}}, language_model_only=Hostile()))):
        made = config(LLAMA)
        owner = made
        for name in path.split(".")[:-1]:
            owner = getattr(owner, name)
        setattr(owner, path.split(".")[-1], value)
        yield "%s=%.20r" % (path, value), made


@pytest.mark.parametrize("configuration", [pytest.param(made, id=name.replace("\0", "0")) for name, made in strange()])
def test_a_configuration_with(engine, configuration):
    as_without(engine, configuration)


@pytest.mark.parametrize("what", ["mem_get_info", "memory_allocated", "_snapshot", "_dump_snapshot", "observer", "torch"])
def test_a_pytorch_without(engine, monkeypatch, what):
    """Its private parts have changed before."""
    if what == "torch":
        monkeypatch.setitem(sys.modules, "torch", None)
    elif what == "observer":
        del engine.torch._C._cuda_attach_out_of_memory_observer
    else:
        delattr(engine.torch.cuda.memory if what.startswith("_") else engine.torch.cuda, what)
    as_without(engine)
    if what != "torch":
        folder, = os.listdir(engine.folder)
        assert "bundle.json" in os.listdir(engine.folder / folder)  # the rest is there


def test_refuse_stops_nothing_that_could_not_be_planned(engine, monkeypatch, tmp_path):
    monkeypatch.setenv("OOMSIGHT_PREFLIGHT", "refuse")
    monkeypatch.setenv("OOMSIGHT_COMMAND", program(tmp_path, "kill -SEGV $$"))
    as_without(engine)


def test_a_child_that_was_ended_is_not_waited_for(engine, monkeypatch, tmp_path):
    monkeypatch.setenv("OOMSIGHT_COMMAND", program(tmp_path, "sleep 600"))
    waited = []
    monkeypatch.setattr(engine.ask.subprocess.Popen, "wait", lambda self, timeout=None: waited.append(timeout))
    monkeypatch.setattr(engine.ask, "SECONDS", 0.1)
    with pytest.raises(engine.ask.Unanswered) as caught:
        engine.ask.ask(["plan"])
    assert caught.value.code == -signal.SIGKILL and not waited


def test_values_of_variables_are_on_no_command_line(engine, monkeypatch, tmp_path, caplog):
    monkeypatch.setenv("VLLM_API_KEY", "a-secret")
    ours = os.environ["OOMSIGHT_COMMAND"]
    monkeypatch.setenv("OOMSIGHT_COMMAND", program(tmp_path, 'echo "$@" >>%s/words\nexec %s "$@"' % (tmp_path, ours)))
    as_without(engine)
    words = (tmp_path / "words").read_text()
    assert "--env VLLM_API_KEY" in words and "a-secret" not in words
    assert not any(b"a-secret" in path.read_bytes() for path in engine.folder.glob("*/*"))
    assert "this configuration will not start" in caplog.text
