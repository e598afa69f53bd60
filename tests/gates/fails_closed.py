#!/usr/bin/env python3
"""fails_closed.py OOMSIGHT: what `oomsight check` has not looked at never passes. Each case is a folder of files, the words of the command, the exit code and
words that the text must have; the JSON of the same command lists what was not looked at, and with --strict each ends with 1 unless there is nothing to list."""
import json
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MODELS = os.path.join(ROOT, "tests", "fixtures", "models")
GOOD = "vllm serve acme/small-llama --max-model-len 8192\n"
DEPLOYMENT = """kind: Deployment
metadata: {name: chat%d}
spec:
  template:
    spec:
      containers:
        - name: engine
          image: vllm/vllm-openai:v0.19.1
          args: [--model, acme/small-llama, --max-model-len, "%d"]
          resources: {limits: {nvidia.com/gpu: 1}}
"""


def manifests(count, last):
    return "".join("---\n" + DEPLOYMENT % (i, 4096 + i % 2000) for i in range(count - 1)) + "---\n" + DEPLOYMENT % (count, last)


def services(first, second, extra=""):
    return """services:
  chat:
    image: vllm/vllm-openai:v0.19.1
    command: --model acme/small-llama --max-model-len 4096 --gpu-memory-utilization %s
%s  other:
    image: vllm/vllm-openai:v0.19.1
    command: --model acme/small-llama --max-model-len 4096 --gpu-memory-utilization %s
%s""" % (first, extra % 0 if extra else "", second, extra % 1 if extra else "")


IDS = "    deploy: {resources: {reservations: {devices: [{driver: nvidia, device_ids: ['%d'], capabilities: [gpu]}]}}}\n"
ONE_MORE = """  wide:
    image: vllm/vllm-openai:v0.19.1
    command: --model acme/small-llama --max-model-len 4096 --gpu-memory-utilization 0.3 --tensor-parallel-size 2
    deploy: {resources: {reservations: {devices: [{driver: nvidia, device_ids: ['0', '1'], capabilities: [gpu]}]}}}
"""
POD = "kind: Pod\nspec:\n  containers:\n    - {name: engine, image: 'vllm/vllm-openai:v0.24.0', args: [--model, acme/small-llama, %s], resources: {limits: {memory: %s, nvidia.com/gpu: 1}}}\n"
KINDS = "kind: Pod\nspec: {nodeSelector: {nvidia.com/gpu.product: %s}, containers: [{image: 'vllm/vllm-openai:v0.19.1', args: [--model, acme/small-llama]}]}\n"
DOUBLING = "A=xxxxxxxx\n" + 'A="$A$A"\n' * 24 + "vllm serve $A\n"

# name, files, words, standard input, exit code, words of the text
CASES = [
    ("64 good documents and a bad one", {"a.yaml": manifests(65, 99999999)}, ["a.yaml"], None, 1, "65 commands in 1 file: 64 fit"),
    ("10,000 documents, the last one bad", {"a.yaml": manifests(10000, 99999999)}, ["a.yaml"], None, 1, "10000 commands"),
    ("10,000 documents that start", {"a.yaml": manifests(10000, 8192)}, ["a.yaml"], None, 0, "10000 fit"),
    ("a broken document does not hide the one behind it", {"a.yaml": "a: [\n---\n" + DEPLOYMENT % (1, 8192)}, ["a.yaml"], None, 1, "1 fit"),
    ("a variable that doubles", {"a.sh": DOUBLING}, ["a.sh"], None, 3, "more than 64 KiB"),
    ("the file's GPU goes before --gpu", {"a.yaml": KINDS % "NVIDIA-L4"}, ["a.yaml"], None, 0, "on NVIDIA L4"),
    ("... and so does that of an affinity", {"a.yaml": "kind: Pod\nspec:\n  affinity:\n  - key: nvidia.com/gpu.product\n    operator: In\n    values: [NVIDIA-L4]\n  containers: "
                                             "[{image: 'vllm/vllm-openai:v0.19.1', args: [--model, acme/small-llama]}]\n"}, ["a.yaml"], None, 0, "on NVIDIA L4"),
    ("a GPU that nobody knows is not taken for another", {"a.yaml": KINDS % "NVIDIA-Z9000"}, ["a.yaml"], None, 3, "which is not known here"),
    ("--gpu fills in", {"a.sh": GOOD}, ["a.sh"], None, 0, "GeForce RTX 4090"),
    ("two services on one GPU", {"compose.yaml": services("0.6", "0.6")}, ["compose.yaml"], None, 1, "used by chat"),
    ("two services that share a GPU and fit", {"compose.yaml": services("0.6", "0.3")}, ["compose.yaml"], None, 0, "2 fit"),
    ("two services on two GPUs", {"compose.yaml": services("0.6", "0.6", IDS)}, ["compose.yaml"], None, 0, "2 fit"),
    ("a service on two GPUs, the second of which is full", {"compose.yaml": services("0.3", "0.8", IDS) + ONE_MORE}, ["compose.yaml"], None, 1, "used by other"),
    ("two commands in the background", {"a.sh": (GOOD.strip() + " --gpu-memory-utilization 0.6 &\n") * 2}, ["a.sh"], None, 1, "used by"),
    ("... each with a device of its own", {"a.sh": "".join("CUDA_VISIBLE_DEVICES=%d %s --gpu-memory-utilization 0.6 &\n" % (i, GOOD.strip()) for i in (0, 1))}, ["a.sh"], None, 0, "2 fit"),
    ("more host memory than the container may have", {"a.yaml": POD % ("--kv-offloading-size, '200'", "16Gi")}, ["a.yaml"], None, 1, "the container's limit is 16.00 GiB"),
    ("... by each of two ranks", {"a.yaml": (POD % ("--cpu-offload-gb, '10', --tensor-parallel-size, '2'", "16Gi")).replace("nvidia.com/gpu: 1", "nvidia.com/gpu: 2")}, ["a.yaml"], None, 1, "keeps 20.00 GiB"),
    ("... and no more than it may have", {"a.yaml": POD % ("--cpu-offload-gb, '2'", "64Gi")}, ["a.yaml"], None, 0, "1 fit"),
    ("a container of another engine", {"a.yaml": "kind: Pod\nspec: {containers: [{name: small, image: 'ghcr.io/ggml-org/llama.cpp:server-cuda', args: [-m, x.gguf]}]}\n"},
     ["a.yaml"], None, 3, "runs llama.cpp, which is not planned here"),
    ("... beside one that starts", {"a.yaml": DEPLOYMENT % (1, 8192) + "---\nkind: Pod\nspec: {containers: [{name: small, image: ollama/ollama}]}\n"}, ["a.yaml"], None, 3, "runs Ollama"),
    ("a container with a GPU that runs something unknown", {"a.yaml": "kind: Pod\nspec: {containers: [{name: own, image: me/own, resources: {limits: {nvidia.com/gpu: 1}}}]}\n"},
     ["a.yaml"], None, 3, "asks for a GPU"),
    ("a vLLM image whose command is not understood, beside one that is", {"a.yaml": DEPLOYMENT % (1, 8192) + "---\nkind: Pod\nspec: {containers: [{name: own, image: "
                                                                          "vllm/vllm-openai:v0.19.1, command: [bash, /start.sh]}]}\n"}, ["a.yaml"], None, 3, "container own runs vLLM's image"),
    ("an SGLang image whose command is not understood", {"a.yaml": "kind: Pod\nspec: {containers: [{name: own, image: 'lmsysorg/sglang:v0.5.23', command: [/start.sh]}]}\n"}, ["a.yaml"], None, 3,
     "container own runs SGLang's image"),
    ("a pod without a name and an image", {"a.yaml": "kind: Pod\nspec: {containers: [{command: [vllm, serve, acme/small-llama, --max-model-len, '99999999']}]}\n"}, ["a.yaml"], None, 1, "1 do not fit"),
    ("a script in a config map", {"a.yaml": "kind: ConfigMap\ndata:\n  start.sh: |\n    #!/bin/sh\n    vllm serve acme/small-llama --max-model-len 99999999\n---\n" + DEPLOYMENT % (1, 8192)},
     ["a.yaml"], None, 1, "1 do not fit"),
    ("standard input", {}, ["-"], manifests(2, 99999999), 1, "2 commands"),
    ("standard input that starts", {}, ["-"], manifests(2, 8192), 0, "2 fit"),
    ("a script on standard input", {}, ["-"], "#!/bin/bash\n" + GOOD, 0, "1 fit"),
    ("nothing on standard input", {}, ["-"], "", 3, "standard input is empty"),
    ("a JSON manifest", {"a.json": json.dumps({"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [{"image": "vllm/vllm-openai:v0.19.1", "args": [
        "--model", "acme/small-llama", "--max-model-len", "99999999"]}]}})}, ["a.json"], None, 1, "1 do not fit"),
    ("a gate that asks is no deployment", {"a.yaml": DEPLOYMENT % (1, 8192) + "      initContainers:\n        - name: gate\n          image: me/tools\n          command: [oomsight, plan, --gpu, l4, --vllm, 0.19.1, "
                                           "--, vllm, serve, acme/small-llama, --max-model-len, '99999999']\n"}, ["a.yaml"], None, 0, "1 command in"),
    ("... but oomsight run starts it", {"a.sh": "oomsight run --budget 8GiB -- vllm serve acme/small-llama --max-model-len 99999999\n"}, ["a.sh"], None, 1, "1 do not fit"),
    ("an image that is only fetched", {"a.sh": "docker pull vllm/vllm-openai:v0.19.1\n" + GOOD}, ["a.sh"], None, 0, "1 command in"),
    ("a start inside another program", {"a.sh": "ssh host 'vllm serve acme/small-llama'\n" + GOOD}, ["a.sh"], None, 3, "was not understood: ssh"),
    ("a start that is only printed", {"a.sh": "echo 'vllm serve acme/small-llama'\n" + GOOD}, ["a.sh"], None, 0, "1 command in"),
    ("a template of Helm", {"a.yaml": (DEPLOYMENT % (1, 1)).replace('"1"]', '"{{ .Values.n }}"]')}, ["a.yaml"], None, 3, "a template that was not looked at"),
    ("a file of 17 MiB in a folder", {"d/a.yaml": "# " + "x" * (17 << 20) + "\n", "d/b.sh": GOOD}, ["d"], None, 3, "more than 16 MiB"),
    ("a byte 0 in a script", {"a.sh": "\0" + GOOD}, ["a.sh"], None, 3, "a byte 0"),
    ("a hidden folder is looked at", {"d/.github/a.sh": "vllm serve acme/small-llama --max-model-len 99999999\n"}, ["d"], None, 1, "1 do not fit"),
    ("what a kustomization takes as it is", {"kustomization.yaml": "resources: [b.yaml]\nnamespace: prod\n", "b.yaml": DEPLOYMENT % (1, 99999999)}, ["kustomization.yaml"], None, 1, "1 do not fit"),
    ("what a kustomization names and nobody has", {"kustomization.yaml": "resources: [gone.yaml]\n"}, ["kustomization.yaml"], None, 3, "gone.yaml"),
    ("an overlay nobody rendered", {"d/kustomization.yaml": "resources: [b.yaml]\npatches: [{path: p.yaml}]\n", "d/b.yaml": DEPLOYMENT % (1, 8192)}, ["d"], None, 3, "kubectl kustomize d | oomsight check -"),
    ("... by a key that is not known here", {"kustomization.yaml": "resources: [b.yaml]\nreplacements: [{path: r.yaml}]\n", "b.yaml": DEPLOYMENT % (1, 8192)}, ["kustomization.yaml"], None, 3,
     "kubectl kustomize . | oomsight check -"),
    ("a template nobody rendered", {"a.yaml": "spec:\n  containers:\n    - image: {{ .Values.image }}\n      args: {{ .Values.args }}\n{{- end }}\n"}, ["a.yaml"], None, 3, "a template"),
    ("70 comments that declare the GPU", {"a.sh": "# oomsight: gpu=h100\n" * 70 + "# oomsight: gpu=l4\n" + GOOD}, ["a.sh"], None, 0, "on NVIDIA L4"),
    ("an ignored container", {"a.yaml": "# oomsight: ignore\nkind: Pod\nspec: {containers: [{name: small, image: ollama/ollama}]}\n"}, ["a.yaml"], None, 0, "1 skipped"),
    ("an ignored command", {"a.sh": "# oomsight: ignore\n" + GOOD}, ["a.sh"], None, 0, "left out by '# oomsight: ignore'"),
    ("an ignored mention", {"a.sh": "# oomsight: ignore\nstart-vllm.py --model x\n"}, ["a.sh"], None, 0, "left out by '# oomsight: ignore'"),
    ("what a compose file includes", {"main.yaml": "include: [sub/other.yaml]\n" + services("0.3", "0.3"), "sub/other.yaml": "services: {big: {image: 'vllm/vllm-openai:v0.19.1', command: --model acme/small-llama "
                                                                                                                        "--max-model-len 99999999}}\n"}, ["main.yaml"], None, 1, "1 do not fit"),
    ("... by paths, and it includes another", {"compose.yaml": "include:\n  - path: [a.yaml, b.yaml]\n", "a.yaml": "services: {a: {image: x}}\n", "b.yaml": "include:\n- c.yaml\nservices: {}\n",
                                               "c.yaml": services("0.6", "0.6")}, ["compose.yaml"], None, 1, "used by chat"),
    ("... and nobody has it", {"compose.yaml": "include: [gone.yaml]\n"}, ["compose.yaml"], None, 3, "gone.yaml"),
    ("... or it is elsewhere", {"compose.yaml": "include: ['oci://host/x']\n" + services("0.3", "0.3")}, ["compose.yaml"], None, 3, "what is included was not looked at"),
    ("what a service extends", {"compose.yaml": "services: {a: {extends: {file: base.yaml, service: b}}}\n", "base.yaml": services("0.6", "0.6")}, ["compose.yaml"], None, 1, "used by chat"),
    ("an include that is no compose file's", {".gitlab-ci.yml": "include: [{local: x.yml}]\njob: {script: [make]}\n"}, [".gitlab-ci.yml"], None, 0, "0 commands"),
    ("what a script sources", {"a.sh": "source ./other.sh; run_server\n", "other.sh": "run_server() { vllm serve acme/small-llama --max-model-len 99999999; }\n"}, ["a.sh"], None, 1, "1 do not fit"),
    ("... and nobody has it", {"b.sh": ". ./gone.sh\nrun_server\n"}, ["b.sh"], None, 0, "gone.sh, which was not looked at"),
    ("... and it is the machine's", {"c.sh": ". /etc/os-release\nsource venv/bin/activate\nmake\n"}, ["c.sh"], None, 0, "0 skipped"),
    ("... beside a command", {"d.sh": "source ./env.sh\n" + GOOD}, ["d.sh"], None, 0, "1 fit, 0 uncertain, 0 do not fit, 0 skipped"),
    ("a total that no such GPU has", {"a.sh": "# oomsight: gpu=l4 gpu-total=99999GiB\n" + GOOD}, ["a.sh"], None, 3, "gpu-total=99999GiB is more than l4 has"),
    ("... nor any other", {"a.sh": "# oomsight: gpu-total=999999GiB\n" + GOOD}, ["a.sh"], None, 3, "gpu-total=999999GiB is more than"),
    ("a total that it has", {"a.sh": "# oomsight: gpu=l4 gpu-total=22.03GiB\n" + GOOD}, ["a.sh"], None, 0, "1 fit"),
    ("a link to a file outside of the folder", {"d/a.sh": GOOD, "b.sh": GOOD, "d/out.sh -> ../b.sh": ""}, ["d"], None, 3, "outside of the folder"),
    ("a link to a file of the folder", {"d/e/a.sh": GOOD, "d/in.sh -> e/a.sh": ""}, ["d"], None, 0, "2 fit"),
    ("a name that is also an option", {"--output=oops.yaml": "x", "a.sh": GOOD}, ["--output=oops.yaml", "a.sh"], None, 2, ""),
    ("... behind two dashes it is a name", {"--output=oops.yaml": "kind: Pod\nspec: {containers: [{command: [vllm, serve, acme/small-llama, --max-model-len, '99999999']}]}\n"},
     ["--", "--output=oops.yaml"], None, 1, "--output=oops.yaml:"),
]


QWEN3_8B = {"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "torch_dtype": "bfloat16", "hidden_size": 4096, "intermediate_size": 12288, "num_hidden_layers": 36,
            "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 151936, "max_position_embeddings": 40960, "tie_word_embeddings": False}


def examples(oomsight, work):
    """The examples pass on the GPU that they name."""
    os.makedirs(os.path.join(work, "models", "Qwen3-8B"))
    with open(os.path.join(work, "models", "Qwen3-8B", "config.json"), "w") as f:
        json.dump(QWEN3_8B, f)
    done = subprocess.run([oomsight, "check", "--offline", "--gpu", "l4", "--models", os.path.join(work, "models"), os.path.join(ROOT, "examples")], capture_output=True, text=True)
    return done.returncode == 0 and "1 command in" in done.stdout, done


def action(oomsight, work):
    """The last step of action.yml over files with names that look like options, and with spaces."""
    with open(os.path.join(ROOT, "action.yml")) as f:
        step = f.read().rsplit("run: |\n", 1)[1].split("      env:")[0]
    for name, text in (("--output=oops.yaml", manifests(1, 99999999)), ("a file.yaml", manifests(1, 99999998))):
        with open(os.path.join(work, name), "w") as f:
            f.write(text)
    os.makedirs(os.path.join(work, "temp", "oomsight", "bin"))
    os.symlink(oomsight, os.path.join(work, "temp", "oomsight", "bin", "oomsight"))
    done = subprocess.run(["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step], cwd=work, capture_output=True, text=True,
                          env=dict(os.environ, RUNNER_TEMP=os.path.join(work, "temp"), GPU="4090", OPTIONS="--offline\n--models %s" % MODELS, FILES="*.yaml"))
    return done.returncode == 1 and not os.path.exists(os.path.join(work, "oops.yaml")) and done.stdout.count("::error file=") == 2, done


def main():
    oomsight, failed = os.path.abspath(sys.argv[1]), 0
    only = sys.argv[2] if len(sys.argv) > 2 else ""
    for name, files, words, given, code, expected in CASES:
        if only not in name:
            continue
        with tempfile.TemporaryDirectory() as work:
            for path, text in files.items():
                os.makedirs(os.path.join(work, os.path.dirname(path)), exist_ok=True)
                if " -> " in path:
                    os.symlink(path.split(" -> ")[1], os.path.join(work, path.split(" -> ")[0]))
                    continue
                with open(os.path.join(work, path), "w") as f:
                    f.write(text)
            command = [oomsight, "check", "--offline", "--gpu", "4090", "--models", MODELS]
            text = subprocess.run(command + words, cwd=work, input=given or "", capture_output=True, text=True)
            data = subprocess.run(command + ["--json"] + words, cwd=work, input=given or "", capture_output=True, text=True)
            seen = text.returncode == code == data.returncode and expected in text.stdout
            if seen and code != 2:
                page = json.loads(data.stdout)
                told = [c for c in page["commands"] if c["level"] != "ok"] + page["not_looked_at"]
                strict = subprocess.run(command + ["--strict"] + words, cwd=work, input=given or "", capture_output=True, text=True)
                left_out = [c for c in told if any(words in (c["problem"] or "") for words in ("left out by", "takes in", "runs Ollama"))] if code == 0 else []
                seen = (len(told) > len(left_out)) == (code != 0) and ("not looked at:" in text.stdout) == bool(page["not_looked_at"]) and strict.returncode == (1 if told else 0)
            if not seen:
                failed += 1
            print("%s %s" % ("ok  " if seen else "FAIL", name))
            if not seen:
                print("     exit %d and %d, wanted %d with %r:\n%s%s" % (text.returncode, data.returncode, code, expected, text.stdout[-1500:], text.stderr[-500:]))
    for name, case in (("the examples pass on the GPU that they name", examples), ("the action takes every name for a file", action)):
        with tempfile.TemporaryDirectory() as work:
            holds, seen = case(oomsight, work)
        failed += not holds
        print("%s %s%s" % ("ok  " if holds else "FAIL", name, "" if holds else "\n     %s" % seen))
    print("%d cases, %d failed" % (len(CASES) + 2, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
