#!/usr/bin/env python3
"""No secret leaves: kinds of secrets are planted in every input, every command answers in every format, and the answers are
searched for them. usage: test_secrets.py BINARY. Also: what is no secret is still there."""
import json
import os
import sys
import tempfile

from inputs import FIXTURES, log_of, model_in, run, write

# Made up, and put together from pieces so that scanners of repositories do not take them for real ones. The searched part is the second.
SHAPES = {
    "hugging face": ("hf_", "QzWxEcRvTbYnUmIkOlPaSdFgHjKlMnBv"), "openai": ("sk-", "proj-9aZbYcXdWeVfUgThSiRj"), "github": ("ghp_", "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dE3fG5"),
    "github fine": ("github_pat_", "11AQWSEDRF0tGyHuJiKoLp_zXcVbNm123"), "gitlab": ("glpat-", "Zx9Yc8Vb7Nm6Lk5Jh4Gf"), "aws id": ("AKIA", "Z7XW6VU5TS4RQ3PO"),
    "slack": ("xoxb-", "998877665544-qWeRtYuIoP"), "nvidia": ("nvapi-", "Po0iU9yT8rE7wQ6lK5jH4gF3dS2a"), "google": ("AIza", "SyQ9w8E7r6T5y4U3i2O1p0A9s8D7f6G5h4J3"),
    "jwt": ("eyJ", "hbGciOiJub25lIn0.eyJzdWIiOiJwbGFudGVkIn0.c2lnbmF0dXJlcGxhbnRlZA"), "groq": ("gsk_", "Aq1Sw2De3Fr4Gt5Hy6Ju7Ki8Lo9"), "npm": ("npm_", "zAq1xSw2cDe3vFr4bGt5nHy6mJu7kI8lO9pQ"),
}
NAMED = {
    "flag": ("--api-key ", "plantedflagvalue"), "flag with =": ("--hf-token=", "plantedequalsvalue"), "variable": ("VLLM_API_KEY=", "plantedvariablevalue"),
    "password": ("DB_PASSWORD=", "plantedpasswordvalue"), "json": ('"client_secret": "', "plantedjsonvalue"), "python": ("'api_key': ['", "plantedlistvalue"),
    "url login": ("https://somebody:", "plantedloginvalue"), "url parameter": ("https://host/x?access_token=", "plantedparametervalue"),
    "bearer": ("Authorization: Bearer ", "plantedbearervalue9"), "basic": ("Proxy-Authorization: Basic ", "cGxhbnRlZGJhc2ljOnZhbHVl"),
    "header": ("X-Api-Key: ", "plantedheadervalue"), "cookie": ("Cookie: session=", "plantedcookievalue"),
}
TAILS = {"json": '"', "python": "']", "url login": "@host/x"}


def phrases():
    for kind, (head, body) in list(SHAPES.items()) + list(NAMED.items()):
        yield kind, head + body + TAILS.get(kind, ""), body


def scripts():
    """Serve commands with every kind, as a shell script has them."""
    lines = ["export HF_TOKEN=%s" % "".join(SHAPES["hugging face"])]
    for kind, (head, body) in SHAPES.items():
        lines.append("vllm serve ./m --served-model-name x --port 8000 --hf-overrides '{\"x\": \"%s%s\"}'" % (head, body))
        lines.append("SOME_VAR=%s%s vllm serve ./m --revision %s%s" % (head, body, head, body))
    lines.append("HF_TOKEN=plantedequalsvalue VLLM_API_KEY=plantedvariablevalue DB_PASSWORD=plantedpasswordvalue vllm serve ./m --api-key plantedflagvalue plantedlistvalue --port 1")
    lines.append("curl -H 'Authorization: Bearer plantedbearervalue9' -H 'X-Api-Key: plantedheadervalue' https://somebody:plantedloginvalue@host/x && vllm serve ./m --hf-token plantedequalsvalue")
    lines.append("vllm serve https://somebody:plantedloginvalue@host/m --download-dir 'https://host/x?access_token=plantedparametervalue'")
    return "#!/bin/sh\n" + "\n".join(lines) + "\n"


def compose():
    text = "services:\n"
    for at, (kind, (head, body)) in enumerate(SHAPES.items()):
        text += "  s%d:\n    image: vllm/vllm-openai:v0.19.1\n    environment:\n      HF_TOKEN: %s%s\n      OTHER: %s%s\n    command: --model ./m --api-key %s%s plantedlistvalue\n" % (
            at, head, body, head, body, head, body)
    text += "  named:\n    image: vllm/vllm-openai:v0.19.1\n    environment:\n      - VLLM_API_KEY=plantedvariablevalue\n      - DB_PASSWORD=plantedpasswordvalue\n      - URL=https://somebody:plantedloginvalue@host/x\n    command: [\"--model\", \"./m\", \"--api-key\", \"plantedflagvalue\", \"--hf-token=plantedequalsvalue\"]\n"
    text += "  \"%s%s\":\n    image: vllm/vllm-openai:v0.19.1\n    command: --model ./m\n" % SHAPES["openai"]
    return text


def manifest():
    return """apiVersion: apps/v1
kind: Deployment
metadata: {name: d}
spec:
  template:
    spec:
      containers:
      - name: c
        image: vllm/vllm-openai:v0.19.1
        command: ["vllm", "serve", "./m", "--api-key", "plantedflagvalue"]
        env:
        - name: HF_TOKEN
          value: plantedequalsvalue
        - name: VLLM_API_KEY
          value: plantedvariablevalue
        - name: LINK
          value: https://somebody:plantedloginvalue@host/x?access_token=plantedparametervalue
"""


def matrix():
    head, body = SHAPES["openai"]
    return json.dumps({
        "models": [{"model": "./m", "name": "n" + " " + head + body}, "./m"], "gpus": [{"gpu": "4090", "name": "".join(SHAPES["gitlab"])}, "4090"], "versions": ["0.19.1", "0.32.0"],
        "environment": {"HF_TOKEN": "plantedequalsvalue", "VLLM_API_KEY": "plantedvariablevalue"},
        "flags": ["--api-key plantedflagvalue plantedlistvalue", "--hf-token=plantedequalsvalue --max-num-seqs 4", "--revision " + "".join(SHAPES["hugging face"]),
                  "--no-such-flag=%s" % "".join(SHAPES["github"]), {"name": "".join(SHAPES["nvidia"]), "flags": "--max-num-seqs 8"}]})


def matrix_axes():
    return json.dumps({"models": ["./m"], "gpus": ["4090"], "versions": ["0.19.1"],
                       "flags": {"--api-key": ["plantedflagvalue", "plantedlistvalue"], "--revision": ["".join(SHAPES["aws id"]), "main"]}})


def trace():
    """A memory trace whose stacks and settings carry secrets."""
    text = "malloc a 1048576 0 %s\nmalloc b 2097152 0 %s\nfree a\nmalloc c 99999999999 0 x\n"
    return text % ("".join(SHAPES["hugging face"]), "password=plantedpasswordvalue")


def commands(folder):
    """(name, words, standard input)"""
    def path(name, text):
        return write(os.path.join(folder, name), text)

    shell, log = path("serve.sh", scripts()), path("all.log", log_of([phrase for _, phrase, _ in phrases()]))
    named_file = path("".join(SHAPES["github"]) + ".log", log_of(["x"]))
    files = [shell, path("compose.yaml", compose()), path("deployment.yaml", manifest()),
             path("Dockerfile", "FROM vllm/vllm-openai:v0.19.1\nENV HF_TOKEN=plantedequalsvalue\nCMD [\"--model\", \"./m\", \"--api-key\", \"plantedflagvalue\"]\n"),
             path("v.service", "[Service]\nEnvironment=HF_TOKEN=plantedequalsvalue\nExecStart=/usr/bin/vllm serve ./m --api-key plantedflagvalue\n")]
    model = model_in(folder, "m")
    telling = model_in(folder, "".join(SHAPES["openai"]), architectures=["".join(SHAPES["hugging face"])], model_type="password=plantedpasswordvalue",
                       quantization_config={"quant_method": "".join(SHAPES["github"])})
    quant = model_in(folder, "q", quantization_config={"quant_method": "".join(SHAPES["github"]), "api_key": "plantedjsonvalue"})
    for form in ("text", "json", "github", "sarif"):
        yield "check " + form, ["check", "--offline", "--gpu", "4090", "--models", folder, "--format", form] + files, b""
    yield "check of nothing", ["check", "--gpu", "4090", "/no/" + "".join(SHAPES["github"])], b""
    for form in ("text", "json", "md", "html", "github", "sarif"):
        yield "explain " + form, ["explain", "--format", form, log, named_file], b""
        yield "explain zh " + form, ["explain", "--lang", "zh", "--format", form, log], b""
    yield "explain of one", ["explain", "--json", "-"], log_of(["password=plantedpasswordvalue"]).encode()
    for at, (kind, phrase, _) in enumerate(phrases()):
        for form in ("text", "md", "html"):
            yield "explain %s %s" % (kind, form), ["explain", "--format", form, "-"], log_of([phrase]).encode()
    serve = ["--", "HF_TOKEN=plantedequalsvalue", "vllm", "serve", model, "--api-key", "plantedflagvalue", "plantedlistvalue", "--revision", "".join(SHAPES["aws id"]), "--max-model-len", "9999"]
    for form in ("text", "json", "md", "html"):
        for explain in ([], ["--explain"]):
            yield "plan " + form, ["plan", "--offline", "--gpu", "4090", "--format", form] + explain + serve, b""
            yield "plan of a config " + form, ["plan", "--offline", "--gpu", "4090", "--format", form] + explain + ["--", "vllm", "serve", telling], b""
            yield "plan of a quantised " + form, ["plan", "--offline", "--gpu", "4090", "--format", form] + explain + ["--", "vllm", "serve", quant], b""
    for kind, phrase, body in phrases():
        yield "plan with a wrong word, " + kind, ["plan", "--offline", "--gpu", "4090", "--", "vllm", "serve", model, "--no-such=" + phrase], b""
        yield "plan with a wrong value, " + kind, ["plan", "--offline", "--gpu", "4090", "--", "vllm", "serve", model, "--max-model-len", phrase], b""
        yield "plan of a wrong model, " + kind, ["plan", "--offline", "--gpu", "4090", "--", "vllm", "serve", "/no/such/" + phrase], b""
        yield "plan with a wrong option, " + kind, ["plan", "--no-such-option=" + phrase], b""
        yield "plan on a wrong GPU, " + kind, ["plan", "--gpu", phrase, "--", "vllm", "serve", model], b""
        yield "explain of a wrong file, " + kind, ["explain", "/no/such/" + phrase], b""
        yield "replay of wrong settings, " + kind, ["replay", "--settings", phrase, os.path.join(FIXTURES, "traces", "stranded.trace")], b""
        yield "no such command, " + kind, [phrase], b""
        yield "redact, " + kind, ["redact"], ("before %s behind\n" % phrase).encode()
    for name, text in (("matrix.yaml", matrix()), ("axes.yaml", matrix_axes())):
        file = path(name, text)
        for form in ("text", "json", "md", "html", "junit"):
            yield "matrix " + form, ["matrix", "--offline", "--models", folder, "--format", form, file], b""
            yield "matrix points " + form, ["matrix", "--offline", "--models", folder, "--format", form, "--points", "/dev/stdout", file], b""
    yield "matrix --diff", ["matrix", "--offline", "--models", folder, "--diff", "0.19.1", "0.32.0", os.path.join(folder, "matrix.yaml")], b""
    yield "wrong matrix", ["matrix", path("wrong.yaml", '{"models": ["m"], "gpus": ["4090"], "password=plantedpasswordvalue": 1}')], b""
    for form in ("text", "json", "md", "html"):
        yield "replay " + form, ["replay", "--format", form, path("t.trace", trace())], b""
    yield "replay --events", ["replay", "--events", path("t.trace", trace())], b""


def keeps(binary, folder):
    """What is no secret is printed as before."""
    words = ["--max-num-batched-tokens", "8192", "--tokenizer", "org/tokenizer-x", "--tokenizer-mode", "auto", "--long-prefill-token-threshold", "4096", "--api-key", "$API_KEY"]
    file = write(os.path.join(folder, "keep.sh"), "vllm serve ./m %s\n" % " ".join("'%s'" % word for word in words))
    _, out = run(binary, ["check", "--offline", "--gpu", "4090", "--models", folder, "--json", file], cwd=folder)
    said = json.loads(out.split(b"\n\n")[0])["commands"][0]["command"]
    return [word for word in words if word not in said]


OTHERS = {"PGPASSWORD": "plantedother1", "SOME_PASS": "plantedother2", "NETRC": "machine h login u password plantedother3", "ANYTHING": "plantedother4", "HF_TOKEN": "plantedother5"}


def variables(binary, folder):
    """Variables that no engine reads are in no answer, those that one reads are; and what is suggested has nothing masked in it."""
    model, wrong = os.path.join(folder, "m"), []
    manifest_env = "".join("        - name: %s\n          value: %s\n" % pair for pair in dict(OTHERS, VLLM_USE_V1="1").items())
    file = write(os.path.join(folder, "env.yaml"), manifest().split("        env:")[0].replace("./m", model).replace(', "--api-key", "plantedflagvalue"', "") + "        env:\n" + manifest_env)
    handed = [word for pair in OTHERS.items() for word in ("-e", "%s=%s" % pair)]
    docker = ["docker", "run"] + handed + ["-e", "VLLM_USE_V1=1", "vllm/vllm-openai:v0.19.1", "--model", model, "--api-key", "plantedother6", "plantedother7"]
    shell = ["%s=%s" % pair for pair in OTHERS.items()] + ["VLLM_USE_V1=1", "vllm", "serve", model, "--api-key", "plantedother6"]
    answers = {"check " + form: ["check", "--offline", "--gpu-total", "1MiB", "--gpu", "4090", "--format", form, file] for form in ("text", "json", "github", "sarif")}
    for form in ("text", "json", "md", "html"):
        for kind, words in (("docker", docker), ("shell", shell), ("bash -c", docker[:-5] + ["bash", "-c", "vllm serve %s --max-model-len 8192" % model])):
            answers["plan %s %s" % (kind, form)] = ["plan", "--offline", "--gpu", "4090", "--gpu-total", "2GiB", "--format", form, "--"] + words
    for name, words in answers.items():
        code, out = run(binary, words, b"", cwd=folder)
        text = out.decode("utf-8", "replace")
        if code not in (0, 1) or b"plantedother" in out:
            wrong.append("%s: exit %d, a variable is shown: %r" % (name, code, text[max(0, text.find("plantedother") - 60):][:120]))
        if "***" in text:
            wrong.append("%s: masked: %r" % (name, text[max(0, text.find("***") - 80):][:120]))
        if name in ("check text", "check json", "plan docker json", "plan shell json") and "VLLM_USE_V1=1" not in text:
            wrong.append("%s: the engine's variable is gone" % name)
        if name == "plan docker json" and ("-e HF_TOKEN -e" not in text or "$API_KEY" not in text):
            wrong.append("%s: a secret is not handed on by name" % name)
    return wrong


def main():
    binary, found, asked, formats = os.path.abspath(sys.argv[1]), 0, 0, set()
    bodies = [(kind, body.encode()) for kind, (_, body) in list(SHAPES.items()) + list(NAMED.items())]
    with tempfile.TemporaryDirectory(prefix="oomsight-secrets-") as folder:
        for name, words, stdin in commands(folder):
            code, out = run(binary, words, stdin, env={"HF_TOKEN": "plantedequalsvalue"}, cwd=folder)
            asked += 1
            if code not in (0, 1, 2, 3):
                print("%s: exit %d: %r" % (name, code, out[-300:]))
                found += 1
            for kind, body in bodies:
                at = out.find(body)
                if at >= 0:
                    found += 1
                    print("%s: %s is in it: %r" % (name, kind, out[max(0, at - 60):at + len(body) + 10]))
        lost = keeps(binary, folder)
        wrong = variables(binary, folder)
        print("\n".join(wrong) or "variables that no engine reads: in no answer")
        if lost:
            print("hidden although no secret: %s" % lost)
    print("%d kinds of secrets, %d answers searched: %d found" % (len(bodies), asked, found))
    return 1 if found or lost or wrong else 0


if __name__ == "__main__":
    sys.exit(main())
