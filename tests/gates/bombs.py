#!/usr/bin/env python3
"""bombs.py OOMSIGHT [--seed N] [--count N] [--sanitized] [--keep DIR]

Files as a hostile pull request would bring them, given to `oomsight check`: variables that double, arrays, aliases of aliases, here documents,
loops, deep nesting, long lines, many variables, braces and parameters, thousands of documents. Each one ends with a command that cannot start.
Each takes less than 1 s of CPU and 200 MB, and none passes: exit code 1 (it does not start) or 3 (not looked at)."""
import argparse
import os
import random
import resource
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MODELS = os.path.join(ROOT, "tests", "fixtures", "models")
BAD = "vllm serve acme/small-llama --max-model-len 99999999\n"
BAD_POD = "apiVersion: v1\nkind: Pod\nspec: {containers: [{image: 'vllm/vllm-openai:v0.19.1', args: [--model, acme/small-llama, --max-model-len, '99999999']}]}\n"
SECONDS, BYTES = 1.0, 200 << 20


def doubling(r):
    name, lines = r.choice("ABX"), r.randint(8, 60)
    form = r.choice(['%s="$%s$%s"', "%s=$%s$%s", "%s=${%s}${%s}", '%s="${%s:-x}${%s:-y}"', "export %s=$%s$%s", "%s=\"x$%s y$%s\""])
    use = r.choice(["vllm serve $%s", 'vllm serve "$%s"', "bash -c \"$%s\"", "echo $%s"])
    return "sh", "%s=%s\n" % (name, "x" * r.randint(1, 64)) + (form % (name, name, name) + "\n") * lines + use % name + "\n" + BAD


def arrays(r):
    lines = r.randint(8, 40)
    return "sh", "A=(%s)\n" % " ".join(r.choice(["''", "a", "--x"]) for _ in range(r.randint(1, 20))) + 'A=("${A[@]}" "${A[@]}")\n' * lines + 'vllm serve "${A[@]}"\n' + BAD


def rings(r):
    names = ["V%d" % i for i in range(r.randint(2, 30))]
    text = "".join('%s="${%s}${%s}"\n' % (a, r.choice(names), r.choice(names)) for _ in range(r.randint(20, 400)) for a in [r.choice(names)])
    return "sh", "".join("%s=abcdefgh\n" % n for n in names) + text + BAD


def many_variables(r):
    count = r.randint(500, 100000)
    return "sh", "".join("V%d=%d\n" % (i, i) for i in range(count)) + BAD


def same_variable(r):
    return "sh", "A=x\nB=y\n" * r.randint(1000, 100000) + BAD


def here_documents(r):
    count = r.randint(10, 20000)
    return "sh", "".join("cat <<E%d\n%s\n%s" % (i, "$(" * r.randint(0, 3), "E%d\n" % i if r.random() < 0.9 else "") for i in range(count)) + "\n" + BAD


def loops(r):
    depth = r.randint(5, 3000)
    return "sh", "".join("for i%d in %s; do\n" % (i, "{1..9999999}") for i in range(depth)) + BAD + "done\n" * depth


def open_ends(r):
    mark = r.choice(["${", "$(", "`", "'", '"', "((", "[[ ", "{", "<(", "${A:-${", "\\\n", "$"])
    return "sh", BAD + mark * r.randint(10, 300000) + "\n" + BAD


def braces(r):
    return "sh", "vllm serve x" + "{a,b}" * r.randint(5, 2000) + "\nvllm serve " + "${A:-" * r.randint(3, 2000) + "x\n" + BAD


def long_line(r):
    word = r.choice(["a ", "vllm serve ", "LLM(", "x=y ", "; ", "\"vllm\" ", "sh -c ", "sglang serve ", "--a "])
    return r.choice(["sh", "py", "conf", "service", "tf"]), word * r.randint(1000, 200000) + "\n" + BAD


def shells(r):
    text = BAD.strip()
    for _ in range(r.randint(2, 9)):
        text = "bash -c '%s'" % text.replace("'", "'\\''")
    return "sh", text[:200000] + "\n" + BAD


def many_words(r):
    return "sh", "vllm serve acme/small-llama " + " ".join("--f%d %d" % (i, i) for i in range(r.randint(300, 60000))) + "\n" + BAD


def dockerfile(r):
    lines = r.randint(8, 60)
    return "Dockerfile", "FROM vllm/vllm-openai:v0.19.1\nENV A=xxxxxxxx\n" + "ENV A=$A$A\n" * lines + "CMD %s" % BAD


def unit(r):
    return "service", "[Service]\nEnvironment=A=xxxxxxxx\n" + 'Environment="A=$A$A"\n' * r.randint(8, 60) + "ExecStart=/usr/bin/" + BAD


def aliases(r):
    levels, width = r.randint(5, 30), r.randint(2, 9)
    text = "a0: &a0 [x, x]\n" + "".join("a%d: &a%d [%s]\n" % (i, i, ", ".join(["*a%d" % (i - 1)] * width)) for i in range(1, levels))
    return "yaml", text + "---\n" + BAD_POD


def alias_containers(r):
    text = "base: &c\n  image: vllm/vllm-openai:v0.19.1\n  command:\n    - sh\n    - -c\n    - |\n" + "      echo %s\n" % ("x" * 80) * r.randint(10, 3000)
    return "yaml", text + "containers: [%s]\n" % ", ".join(["*c"] * r.randint(10, 900)) + "---\n" + BAD_POD


def anchors(r):
    return "yaml", "".join("k%d: &n%d x\n" % (i, i) for i in range(r.randint(100, 30000))) + "---\n" + BAD_POD


def nested(r):
    depth, how = r.randint(50, 60000), r.choice(["flow", "map", "block", "dash", "key"])
    if how in ("block", "key"):
        depth = min(depth, 900)
    text = {"flow": "[" * depth, "map": "{a: " * depth, "dash": "- " * depth + "x", "key": "".join("? " * 1 + "  " * i + "a:\n" for i in range(depth)),
            "block": "".join(" " * i + "a:\n" for i in range(depth))}[how]
    return "yaml", "x: 1\n---\n" + text + "\n---\n" + BAD_POD


def documents(r):
    return "yaml", "".join("---\nkind: Service\nspec: {ports: [%d]}\n" % i for i in range(r.randint(100, 10000))) + "---\n" + BAD_POD


def wide(r):
    return "yaml", "data:\n" + "".join("  k%d: v\n" % i for i in range(r.randint(100, 60000))) + "---\n" + BAD_POD


def environment(r):
    env = "".join("        - {name: V%d, value: x}\n" % i for i in range(r.randint(10, 3000)))
    script = "          %s" % BAD * r.randint(1, 100)
    return "yaml", "kind: Pod\nspec:\n  containers:\n    - image: x\n      env:\n%s      command: [sh, -c]\n      args:\n        - |\n%s" % (env, script)


def compose(r):
    return "yaml", "services:\n  a:\n    image: vllm/vllm-openai:v0.19.1\n    environment:\n      A: xxxxxxxx\n" + \
        "".join("      A%d: ${A%s}${A%s}\n" % (i, i - 1 or "", i - 1 or "") for i in range(1, r.randint(10, 60))) + "    command: --model acme/small-llama --max-model-len 99999999\n"


def embedded(r):
    inner = "image: x\n" + "  image: y\n" * r.randint(1, 2000)
    return "yaml", "kind: ConfigMap\ndata:\n" + "".join("  k%d: |\n%s" % (i, "".join("    " + line + "\n" for line in inner.splitlines())) for i in range(r.randint(1, 20))) + "---\n" + BAD_POD


def junk(r):
    parts = ["$A", "${A}", "A=", '"', "'", "\n", " ", "vllm serve ", "<<E\n", "(", ")", "&", "|", ";", "\\", "`", "$((", "{a,b}", "[", "]", ": ", "- ", "&x ", "*x ", "---\n", "#", "%"]
    return r.choice(["sh", "yaml", "Dockerfile", "tf", "txt.conf"]), "".join(r.choice(parts) for _ in range(r.randint(100, 60000))) + "\n" + BAD


KINDS = [doubling, arrays, rings, many_variables, same_variable, here_documents, loops, open_ends, braces, long_line, shells, many_words, dockerfile, unit, aliases,
         alias_containers, anchors, nested, documents, wide, environment, compose, embedded, junk]


def run(words, bytes_limit):
    """Exit code, CPU seconds and peak bytes of one process; it is stopped at ten times the limits."""
    start = time.time()
    pid = os.fork()
    if pid == 0:
        null = os.open(os.devnull, os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(null, fd)
        resource.setrlimit(resource.RLIMIT_CPU, (int(SECONDS * 20), int(SECONDS * 20)))
        if bytes_limit:
            resource.setrlimit(resource.RLIMIT_AS, (bytes_limit, bytes_limit))
        os.execv(words[0], words)
    _, status, used = os.wait4(pid, 0)
    code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else -os.WTERMSIG(status)
    return code, used.ru_utime + used.ru_stime, used.ru_maxrss << 10, time.time() - start


def main():
    ask = argparse.ArgumentParser()
    ask.add_argument("oomsight")
    ask.add_argument("--seed", type=int, default=29)
    ask.add_argument("--count", type=int, default=200)
    ask.add_argument("--sanitized", action="store_true")
    ask.add_argument("--keep")
    given = ask.parse_args()
    scale = 20 if given.sanitized else 1
    failed, worst, largest = 0, (0, ""), (0, "")
    with tempfile.TemporaryDirectory() as work:
        for number in range(given.count):
            r = random.Random(given.seed * 100003 + number)
            kind = KINDS[number % len(KINDS)]
            tail, text = kind(r)
            path = os.path.join(given.keep or work, "Dockerfile" if tail == "Dockerfile" else "bomb%d.%s" % (number, tail))
            with open(path, "w") as f:
                f.write(text)
            code, seconds, peak, _ = run([given.oomsight, "check", "--offline", "--gpu", "h100", "--models", MODELS, path], 0 if given.sanitized else BYTES * 10)
            name = "%s, seed %d number %d (%d bytes)" % (kind.__name__, given.seed, number, len(text))
            worst, largest = max(worst, (seconds, name)), max(largest, (peak, name))
            if code not in (1, 3) or seconds > SECONDS * scale or (peak > BYTES and not given.sanitized):
                failed += 1
                print("FAIL %s: exit %d, %.2f s, %.0f MB" % (name, code, seconds, peak / 1e6), flush=True)
            if not given.keep:
                os.remove(path)
    print("%d files, %d failed; slowest %.2f s (%s), largest %.0f MB (%s)" % (given.count, failed, *worst, largest[0] / 1e6, largest[1]))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
