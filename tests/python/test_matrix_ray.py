"""The Ray driver of `oomsight matrix` with a Ray that is not there: tasks run in this machine's processes, one of them is lost once."""
import io
import json
import os
import subprocess
import sys

import pytest

from oomsight import matrix_ray

FAKE = '''
"""What the driver uses of ray; the first task of all is lost with its worker."""
lost = []
class WorkerCrashedError(Exception): pass
class Reference:
    def __init__(self, function, words): self.function, self.words = function, words
def init(**words): pass
def shutdown(): pass
asked, given, most = {}, [], []
def remote(**options):
    asked.update(options)
    def wrap(function):
        class Remote:
            @staticmethod
            def remote(*words):
                given.append(words)
                return Reference(function, words)
        return Remote
    return wrap
def wait(references, num_returns):
    most.append(len(references))
    return [references[0]], references[1:]
def get(reference):
    if not lost:
        lost.append(1)
        raise WorkerCrashedError("the worker died")
    return reference.function(*reference.words)
'''


def framed(number, words, variables=()):
    texts = [os.fsencode(text) for text in (*words, *variables)]
    return b"%d %d %d\n" % (number, len(words), len(variables)) + b"".join(b"%d\n" % len(text) + text for text in texts)


def answers(data):
    stream, found = io.BytesIO(data), {}
    while True:
        head = stream.readline().split()
        if not head:
            return found
        report, problem = stream.read(int(head[3])), stream.read(int(head[4]))
        found[int(head[0])] = (int(head[2]), report, problem)


def drive(tmp_path, tasks, fake=True):
    if fake:
        (tmp_path / "ray.py").write_text(FAKE)
    env = dict(os.environ, PYTHONPATH=os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    return subprocess.run([sys.executable, "-m", "oomsight.matrix_ray", "auto", "0", "2"], input=b"".join(tasks), env=env, capture_output=True)


def script(code):
    return [sys.executable, "-c", code]


def test_words_may_hold_anything():
    words = ["a b", "", "x\ny", "\u00e9", "--"]
    read = list(matrix_ray.tasks(io.BytesIO(framed(7, words, ["A=b\nc"]) + framed(8, ["z"]))))
    assert read == [matrix_ray.Task(7, words, ["A=b\nc"]), matrix_ray.Task(8, ["z"], [])]


def test_every_task_is_answered_and_a_lost_worker_is_replaced(tmp_path):
    report = "print('{\"schema\": 1, \"verdict\": \"fits\"}')"
    done = drive(tmp_path, [framed(3, script(report)), framed(5, script("import sys; sys.exit('oomsight dryrun: no such engine')")),
                            framed(9, script("import os; print('{\"schema\": \"' + os.environ['A'] + os.environ['PATH'][:4] + '\"}')"), ["A=b", "PATH=/e/b"])])
    found = answers(done.stdout)
    assert done.returncode == 0 and sorted(found) == [3, 5, 9]
    assert found[3][0] == 2 and json.loads(found[3][1])["verdict"] == "fits"
    assert found[5][1:] == (b"", b"oomsight dryrun: no such engine")
    assert json.loads(found[9][1])["schema"] == "b/e/b"
    assert b"point 3: the worker died; again" in done.stderr


def test_a_start_that_is_always_killed_ends_without_an_answer(tmp_path):
    done = drive(tmp_path, [framed(0, script("pass")), framed(1, script("import os; os.kill(os.getpid(), 9)"))])
    assert answers(done.stdout)[1] == (3, b"", b"the dry run was killed by signal 9")
    assert done.stderr.count(b"point 1: the dry run was killed by signal 9; again") == 2


def test_an_engine_killed_inside_is_worth_another_try():
    assert not matrix_ray.settled(b'{"verdict": "unknown", "child": {"exit": 137}}')
    assert matrix_ray.settled(b'{"verdict": "unknown", "child": {"exit": 2}}')
    assert matrix_ray.settled(b'{"verdict": "fails", "child": {"exit": 137}}')


@pytest.mark.skipif(__import__("importlib.util").util.find_spec("ray") is not None, reason="ray is installed")
def test_without_ray_one_line_says_so(tmp_path):
    done = drive(tmp_path, [framed(0, ["true"])], fake=False)
    assert done.returncode == 3 and done.stderr.count(b"\n") == 1 and b"pip install ray" in done.stderr


def test_all_that_waits_is_submitted_with_what_it_needs(tmp_path, monkeypatch):
    """A cluster without a node grows only by what was asked for."""
    (tmp_path / "ray.py").write_text(FAKE)
    monkeypatch.syspath_prepend(str(tmp_path))
    ray = __import__("importlib").import_module("ray")
    ray.lost.append(1)
    monkeypatch.setattr(ray, "get", lambda reference: (1.0, b"{}", b""))
    monkeypatch.setattr(matrix_ray, "SUBMITTED", 50)
    out = io.BytesIO()
    matrix_ray.run(ray, [matrix_ray.Task(n, ["true"], []) for n in range(60)], 0, 0, out)
    assert len(answers(out.getvalue())) == 60 and max(ray.most) == 50
    assert ray.asked["memory"] == 4 << 30 and ray.asked["num_cpus"] == 1 and not hasattr(ray, "nodes")


def test_an_address_where_nobody_answers_is_given_up(tmp_path):
    (tmp_path / "ray.py").write_text("import time\ndef init(**words): time.sleep(600)\n")
    code = "import sys; from oomsight import matrix_ray as m; m.CONNECT_S = 0.5; sys.exit(m.main(['10.0.0.1:6379', '0', '0']))"
    env = dict(os.environ, PYTHONPATH=os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    done = subprocess.run([sys.executable, "-c", code], input=framed(0, ["true"]), env=env, capture_output=True, timeout=100)
    assert done.returncode == 3 and b"10.0.0.1:6379 did not answer within" in done.stderr, done.stderr
