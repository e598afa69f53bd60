#!/usr/bin/env python3
"""gpu_counts.py BINARY [--list]: how many GPUs, and which, in every form in which people say it.

Commands, scripts, Compose files, pods, Python programs, a matrix and dry runs of both engines are made, and what each must be answered is computed
here from the rules of the tools themselves: CUDA_VISIBLE_DEVICES as PyTorch reads it (torch/cuda/__init__.py, _parse_visible_devices), docker's --gpus
(a CSV of count, device, driver, capabilities), limits of Kubernetes, required terms of an affinity, vLLM's world size and local ranks
(config/parallel.py, v1/worker/gpu_worker.py), SGLang's device numbers (managers/data_parallel_controller.py). A command that takes more than there
are is refused in the engine's own words, never for memory; a device that is no NVIDIA GPU cannot be planned, exit 3."""
import argparse
import csv
import json
import os
import re
import subprocess
import sys
import tempfile

MODEL = "Qwen/Qwen3-8B"  # 32 heads, 8 of them for KV: it starts on one H100
H100, L4, A100 = "NVIDIA H100 80GB HBM3", "NVIDIA L4", "NVIDIA A100-SXM4-80GB"
VLLM, SGLANG = "vllm", "sglang"


# ---- the rules of the tools ----

def ordinal(text):
    """What strtoul makes of the beginning of a word; -1: nothing."""
    found = re.match(r"[+-]?\d+", text)
    return int(found.group()) if found else -1


def visible(value, there):
    """Devices of `there` that a process sees with CUDA_VISIBLE_DEVICES=value; None: it is not set."""
    if value is None:
        return there
    for prefix in ("GPU-", "MIG-"):
        if value.startswith(prefix):
            names = []
            for word in value.split(","):
                if word in names:
                    return 0
                if not word.startswith(prefix):
                    break
                names.append(word)
            return len(names)
    seen = []
    for word in value.split(","):
        number = ordinal(word.strip())
        if number in seen:
            return 0
        if number < 0 or there is not None and number >= there:
            break
        seen.append(number)
    return len(seen)


def docker_gpus(value, there):
    """Devices of `there` in a container with --gpus value; "no": docker itself refuses."""
    count, devices = None, None
    for field in next(csv.reader([value])):
        key, equals, rest = field.partition("=")
        if not equals or key == "count":
            count = -1 if (rest or key) == "all" else int(rest or key)
        elif key == "device":
            devices = rest.split(",")
    if devices and count is not None:
        return "no"
    if devices:
        return "no" if there is not None and any(d.isdigit() and int(d) >= there for d in devices) else len(devices)
    count = 1 if count is None else count
    if count < 0:
        return there
    return "no" if there is not None and count > there else count


def vllm_needs(tp=1, pp=1, dp=1, local=None, nodes=1):
    """(ranks of a replica, devices that this machine must have)"""
    world = tp * pp
    if local is None:
        local = max(world * dp // nodes // world, 1) if nodes > 1 else dp
    return world, min(world, max(1, world * dp // nodes)) * local


def sglang_needs(tp=1, pp=1, dp=1, replicated=False, nodes=1, base=0, step=1):
    """The highest device number that a rank of this machine takes, and one."""
    stages, per_stage = max(pp // nodes, 1), max(nodes // pp, 1)
    here = tp // per_stage
    replicas = 1 if replicated else dp
    return base + (replicas - 1) * tp * pp * step + (stages - 1) * here + (here - 1) * step + 1


# ---- what an answer must be ----

def starts(count, gpu=None):
    return {"kind": "starts", "count": count, "gpu": gpu}


def refused(words, count=None):
    return {"kind": "refused", "words": words, "count": count}


def on(gpu):
    """Whatever is answered, it is for this GPU."""
    return {"kind": "on", "gpu": gpu}


def unknown(words):
    return {"kind": "unknown", "words": words}


def of_vllm(flags, there):
    """vLLM 0.32.0 with so many devices; None: as many as it needs."""
    world, need = vllm_needs(**{k: v for k, v in flags.items() if k in ("tp", "pp", "dp", "local", "nodes")})
    if there is None or there >= need:
        return starts(need if there is None else there)
    if world > there and world * flags.get("dp", 1) > 1 and flags.get("nodes", 1) == 1 and not flags.get("mp"):
        return refused(r"World size \(%d\) is larger than the number of available GPUs \(%d\)" % (world, there), there)
    return refused(r"local rank %d is out of bounds for %d devices" % (there, there), there)


def of_sglang(flags, there):
    need = sglang_needs(**flags)
    if there is None or there >= need:
        return starts(need if there is None else there)
    return refused("invalid device ordinal", there)


FLAGS = {VLLM: {"tp": "--tensor-parallel-size", "pp": "--pipeline-parallel-size", "dp": "--data-parallel-size", "local": "--data-parallel-size-local",
                "nodes": "--nnodes", "mp": "--distributed-executor-backend"},
         SGLANG: {"tp": "--tp-size", "pp": "--pp-size", "dp": "--dp-size", "replicated": "--enable-dp-attention", "nodes": "--nnodes",
                  "base": "--base-gpu-id", "step": "--gpu-id-step"}}


def words_of(engine, flags):
    words = []
    for key, value in flags.items():
        words += [FLAGS[engine][key]] + ([] if value is True else [str(value)])
    return words


def command(engine, flags):
    return [engine, "serve"] + (["--model-path"] if engine == SGLANG else []) + [MODEL] + words_of(engine, flags)


def answer(engine, flags, there):
    return (of_vllm if engine == VLLM else of_sglang)(flags, there)


def doubted(want):
    """Stages and replicas inside the ranks are not modelled for SGLang, several nodes are doubted: whether it starts is left open there."""
    return dict(want, kind="open") if want["kind"] == "starts" else want


SIZES = {VLLM: [{"tp": 1}, {"tp": 2}, {"tp": 4}, {"pp": 2}, {"tp": 2, "pp": 2}, {"dp": 2}, {"dp": 4}, {"tp": 2, "dp": 2}, {"tp": 2, "pp": 2, "dp": 2},
                {"dp": 4, "local": 2}, {"tp": 4, "nodes": 2}, {"tp": 2, "mp": "mp"}, {"tp": 8}],
         SGLANG: [{"tp": 1}, {"tp": 2}, {"tp": 4}, {"dp": 2}, {"dp": 4}, {"tp": 2, "dp": 2}, {"tp": 2, "dp": 2, "replicated": True}, {"tp": 4, "dp": 2, "replicated": True},
                  {"tp": 2, "pp": 2}, {"tp": 4, "nodes": 2}, {"tp": 2, "base": 1}, {"tp": 2, "step": 2}, {"tp": 8}]}


def is_open(flags):
    return any(key in flags for key in ("replicated", "nodes", "local")) or ("pp" in flags and flags.get("pp", 1) > 1)


def sizes():
    """Every product of sizes on one, two, four and any number of GPUs."""
    for engine, list_ in SIZES.items():
        for flags in list_:
            for there in (None, 1, 2, 4):
                want = answer(engine, flags, there)
                yield "%s %s on %s" % (engine, flags, there), ["plan", "--gpu", "h100" + ("x%d" % there if there else "")], command(engine, flags), doubted(want) if is_open(flags) else want


def environment():
    """CUDA_VISIBLE_DEVICES before a command, on a machine of four and on one that has what is asked for."""
    values = ["0", "0,1", "1,0", "3", "0,1,2,3", "0,1,2,3,4", "0,4,1", "4", "-1", "0,-1,1", "", "0,0", "1gpu,2", "x", "GPU-1a,GPU-2b", " 2, 3"]
    for value in values:
        for engine, tp in ((VLLM, 2), (SGLANG, 2), (VLLM, 1)):
            flags = {"tp": tp}
            yield "CUDA_VISIBLE_DEVICES=%r %s tp %d" % (value, engine, tp), ["plan", "--gpu", "h100x4"], ["CUDA_VISIBLE_DEVICES=" + value] + command(engine, flags), answer(engine, flags, visible(value, 4))
    for value in ("0,1", "6,7", "3"):
        for engine in (VLLM, SGLANG):
            yield "CUDA_VISIBLE_DEVICES=%s of any, %s" % (value, engine), ["plan", "--gpu", "h100"], ["env", "CUDA_VISIBLE_DEVICES=" + value] + command(engine, {"tp": 2}), answer(engine, {"tp": 2}, visible(value, None))
    yield "a variable of containers before a plain command", ["plan", "--gpu", "h100x2"], ["NVIDIA_VISIBLE_DEVICES=0"] + command(VLLM, {"tp": 2}), starts(2)


def image(engine):
    return "vllm/vllm-openai:v0.32.0" if engine == VLLM else "lmsysorg/sglang:v0.5.23"


def inside(engine, flags):
    return ["--model", MODEL] + words_of(VLLM, flags) if engine == VLLM else ["python3", "-m", "sglang.launch_server", "--model-path", MODEL] + words_of(SGLANG, flags)


def docker():
    for value in ("all", "1", "2", "4", "8", '"device=0,1"', '"device=2"', "device=3", "device=0,1", '"device=0,9"', "all,capabilities=utility", "count=2", 'driver=nvidia,"capabilities=compute,utility"', '"device=GPU-1a,GPU-2b"'):
        for engine in (VLLM, SGLANG):
            there = docker_gpus(value, 4)
            want = unknown("docker") if there == "no" else answer(engine, {"tp": 2}, there)
            yield "docker run --gpus %s %s" % (value, engine), ["plan", "--gpu", "h100x4"], ["docker", "run", "--gpus", value, image(engine)] + inside(engine, {"tp": 2}), want
    for words, there in ((["--gpus=2"], 2), (["--gpus=all"], 4), (["--device", "nvidia.com/gpu=0"], 1), (["--device", "nvidia.com/gpu=0", "--device", "nvidia.com/gpu=1"], 2),
                         (["--device=nvidia.com/gpu=all"], 4), (["--runtime=nvidia", "-e", "NVIDIA_VISIBLE_DEVICES=0"], 1), (["--runtime", "nvidia", "-e", "NVIDIA_VISIBLE_DEVICES=0,1"], 2),
                         (["-e", "NVIDIA_VISIBLE_DEVICES=all"], 4), (["-e", "NVIDIA_VISIBLE_DEVICES=none"], 0), (["--gpus", "all", "-e", "CUDA_VISIBLE_DEVICES=1"], 1),
                         (["--gpus", '"device=2,3"', "-e", "CUDA_VISIBLE_DEVICES=0,1"], 2), (["--gpus", '"device=2,3"', "-e", "CUDA_VISIBLE_DEVICES=2,3"], 0), (["--gpus", "all", "--env", "CUDA_VISIBLE_DEVICES=0,1"], 2)):
        for engine in (VLLM, SGLANG):
            yield "docker run %s %s" % (" ".join(words), engine), ["plan", "--gpu", "h100x4"], ["docker", "run"] + words + [image(engine)] + inside(engine, {"tp": 2}), answer(engine, {"tp": 2}, there)


def compose(engine, flags, more):
    return "services:\n  chat:\n    image: %s\n    command: %s\n%s" % (image(engine), json.dumps(inside(engine, flags)), more)


def reserve(what):
    return "    deploy: {resources: {reservations: {devices: [{driver: nvidia, %s, capabilities: [gpu]}]}}}\n" % what


def composes():
    forms = [(reserve("count: 1"), 1), (reserve("count: 2"), 2), (reserve("count: all"), None), (reserve("device_ids: ['0']"), 1), (reserve("device_ids: ['0', '3']"), 2),
             (reserve("count: 2") + "    environment: {CUDA_VISIBLE_DEVICES: '1'}\n", 1), (reserve("device_ids: ['2', '3']") + "    environment: [CUDA_VISIBLE_DEVICES=0]\n", 1),
             (reserve("count: all") + "    environment: ['CUDA_VISIBLE_DEVICES=0,1']\n", 2), ("    runtime: nvidia\n    environment: {NVIDIA_VISIBLE_DEVICES: '0'}\n", 1),
             ("    gpus: all\n", None), ("    gpus: [{driver: nvidia, count: 1}]\n", 1)]
    for more, there in forms:
        for engine in (VLLM, SGLANG):
            yield "Compose %s %s" % (more.strip(), engine), {"compose.yaml": compose(engine, {"tp": 2}, more)}, ["--gpu", "h100"], answer(engine, {"tp": 2}, there)
    yield "Compose, replicas of vLLM", {"compose.yaml": compose(VLLM, {"dp": 4}, reserve("count: 2"))}, ["--gpu", "h100"], of_vllm({"dp": 4}, 2)


def pod(engine, flags, resources, more="", env="", tag=None):
    return ("apiVersion: v1\nkind: Pod\nmetadata: {name: chat}\nspec:\n%s  containers:\n  - name: engine\n    image: %s\n    args: %s\n%s    resources: {limits: {%s}}\n"
            % (more, tag or image(engine), json.dumps(inside(engine, flags)), env, resources))


def affinity(key, operator, values, kind="required"):
    term = "{matchExpressions: [{key: %s, operator: %s, values: [%s]}]}" % (key, operator, values)
    if kind == "preferred":
        return "  affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, preference: %s}]}}\n" % term
    return "  affinity:\n    nodeAffinity:\n      requiredDuringSchedulingIgnoredDuringExecution:\n        nodeSelectorTerms:\n        - %s\n" % term


PRODUCT = "nvidia.com/gpu.product"


def pods():
    for limit in (1, 2, 4, 8):
        for engine, flags in ((VLLM, {"tp": 4}), (SGLANG, {"tp": 4}), (VLLM, {"dp": 4}), (SGLANG, {"dp": 4})):
            yield "a pod with %d GPUs, %s %s" % (limit, engine, flags), {"a.yaml": pod(engine, flags, "nvidia.com/gpu: %d" % limit)}, ["--gpu", "h100"], answer(engine, flags, limit)
    for engine, gpu in ((VLLM, "h100x8"), (SGLANG, "h100x8")):
        yield "a pod with 2 of 8 GPUs, " + engine, {"a.yaml": pod(engine, {"tp": 4}, "nvidia.com/gpu: 2")}, ["--gpu", gpu], answer(engine, {"tp": 4}, 2)
    for engine in (VLLM, SGLANG):
        one = {"tp": 1}
        limit = "nvidia.com/gpu: 1"
        yield "a limit in quotes, " + engine, {"a.yaml": pod(engine, {"tp": 2}, "nvidia.com/gpu: '1'")}, ["--gpu", "h100"], answer(engine, {"tp": 2}, 1)
        yield "a variable of a pod, " + engine, {"a.yaml": pod(engine, {"tp": 2}, "nvidia.com/gpu: 4", env="    env: [{name: CUDA_VISIBLE_DEVICES, value: '3'}]\n")}, ["--gpu", "h100"], answer(engine, {"tp": 2}, 1)
        yield "a slice, " + engine, {"a.yaml": pod(engine, one, "nvidia.com/mig-3g.40gb: 1")}, ["--gpu", "a100-80gb"], starts(1, A100 + " MIG 3g.40gb")
        yield "two slices are one device to CUDA, " + engine, {"a.yaml": pod(engine, {"tp": 2}, "nvidia.com/mig-3g.40gb: 2")}, ["--gpu", "a100-80gb"], answer(engine, {"tp": 2}, 1)
        for name, more in (("a node selector", "  nodeSelector: {%s: NVIDIA-L4}\n" % PRODUCT), ("a label of GKE", "  nodeSelector: {cloud.google.com/gke-accelerator: nvidia-l4}\n"),
                           ("a label of EKS", "  nodeSelector: {k8s.amazonaws.com/accelerator: nvidia-l4}\n"), ("a label of Karpenter", "  nodeSelector: {karpenter.k8s.aws/instance-gpu-name: l4}\n"),
                           ("a machine of EKS", "  nodeSelector: {node.kubernetes.io/instance-type: g6.xlarge}\n"), ("an affinity", affinity(PRODUCT, "In", "NVIDIA-L4")),
                           ("an affinity of two, the smaller counts", affinity(PRODUCT, "In", "NVIDIA-H100-80GB-HBM3, NVIDIA-L4")), ("an affinity to a label of GKE", affinity("cloud.google.com/gke-accelerator", "In", "nvidia-l4")),
                           ("an affinity to a machine", affinity("node.kubernetes.io/instance-type", "In", "g6.xlarge")), ("an affinity to one of two machines", affinity("node.kubernetes.io/instance-type", "In", "p5.48xlarge, g6.xlarge")), ("time slices", "  nodeSelector: {%s: NVIDIA-L4-SHARED}\n" % PRODUCT)):
            yield "%s, %s" % (name, engine), {"a.yaml": pod(engine, one, limit, more)}, ["--gpu", "h100"], on(L4)
        yield "a label of AKS, " + engine, {"a.yaml": pod(engine, one, limit, "  nodeSelector: {node.kubernetes.io/instance-type: Standard_NC24ads_A100_v4}\n")}, ["--gpu", "h100"], on("NVIDIA A100 80GB PCIe")
        yield "GKE's name of an A100, " + engine, {"a.yaml": pod(engine, one, limit, "  nodeSelector: {cloud.google.com/gke-accelerator: nvidia-tesla-a100}\n")}, ["--gpu", "h100"], on("NVIDIA A100-SXM4-40GB")
        yield "a wish is no condition, " + engine, {"a.yaml": pod(engine, one, limit, affinity(PRODUCT, "In", "NVIDIA-L4", "preferred"))}, ["--gpu", "h100"], starts(1, H100)
        yield "another is left out, " + engine, {"a.yaml": pod(engine, one, limit, affinity(PRODUCT, "NotIn", "NVIDIA-L4"))}, ["--gpu", "h100"], starts(1, H100)
        yield "the one that is given is left out, " + engine, {"a.yaml": pod(engine, one, limit, affinity(PRODUCT, "NotIn", "NVIDIA-H100-80GB-HBM3"))}, ["--gpu", "h100"], unknown("NVIDIA-H100-80GB-HBM3")
        yield "a device that nobody knows, in an affinity, " + engine, {"a.yaml": pod(engine, one, limit, affinity(PRODUCT, "In", "NVIDIA-Z9000"))}, ["--gpu", "h100"], unknown("NVIDIA-Z9000")
        items = "apiVersion: v1\nkind: List\nitems:\n" + "".join("- " + pod(engine, one, limit, more).replace("\n", "\n  ").rstrip() + "\n" for more in ("  nodeSelector: {%s: NVIDIA-L4}\n" % PRODUCT, ""))
        yield "a selector is of its own pod, " + engine, {"a.yaml": items}, ["--gpu", "h100"], on([L4, H100])


OTHERS = [("amd.com/gpu: 1", "rocm/vllm:latest", "AMD"), ("google.com/tpu: 4", "vllm/vllm-tpu:nightly", "TPU"), ("habana.ai/gaudi: 1", "vault.habana.ai/vllm-openai:1", "Gaudi"),
          ("gpu.intel.com/i915: 1", "intel/vllm-openai:0.10", "Intel"), ("gpu.intel.com/xe: 1", "vllm/vllm-openai:v0.19.1", "Intel"), ("amd.com/gpu: 1", "vllm/vllm-openai:v0.19.1", "AMD"),
          ("aws.amazon.com/neuron: 1", "vllm/vllm-openai:v0.19.1", "Neuron"), ("huawei.com/Ascend910: 1", "quay.io/ascend/vllm-ascend:v0.11", "Ascend"),
          ("cpu: 8", "vllm/vllm-openai-cpu:v0.19.1", "CPU"), ("cpu: 8", "public.ecr.aws/q9t5s3a7/vllm-cpu-release-repo:v0.10.0", "CPU"), ("memory: 8Gi", "vllm/vllm-openai-rocm:v0.14.0", "AMD"),
          ("memory: 8Gi", "rocm/vllm-dev:nightly", "AMD"), ("memory: 8Gi", "vllm/vllm-tpu:latest", "TPU"), ("memory: 8Gi", "vllm/vllm-xpu:v0.14.0", "Intel")]


def others():
    for resources, tag, words in OTHERS:
        for args in (["vllm", "serve", MODEL], ["--model", MODEL]):
            text = pod(VLLM, {}, resources, tag=tag).replace(json.dumps(inside(VLLM, {})), json.dumps(args))
            if args[0] == "vllm":
                text = text.replace("args:", "command:")
            yield "%s of %s, %s" % (args[0], tag, resources), {"a.yaml": text}, ["--gpu", "h100"], unknown(words)
    for tag, words in (("lmsysorg/sglang:v0.5.23-rocm720-mi30x", "AMD"), ("lmsysorg/sglang:v0.5.23-xeon", "CPU"), ("lmsysorg/sglang:v0.5.23-cann8.5.0-910b", "Ascend"), ("lmsysorg/sglang:v0.5.23-npu", "Ascend")):
        yield "a pod of " + tag, {"a.yaml": pod(SGLANG, {}, "memory: 8Gi", tag=tag)}, ["--gpu", "h100"], unknown(words)
    yield "a pod of AMD with SGLang", {"a.yaml": pod(SGLANG, {"tp": 2}, "amd.com/gpu: 2")}, ["--gpu", "h100"], unknown("AMD")
    yield "a selector of a TPU", {"a.yaml": pod(VLLM, {}, "memory: 8Gi", "  nodeSelector: {cloud.google.com/gke-tpu-accelerator: tpu-v5-lite-podslice}\n")}, ["--gpu", "h100"], unknown("TPU")
    yield "an AMD product", {"a.yaml": pod(VLLM, {}, "memory: 8Gi", "  nodeSelector: {amd.com/gpu.product-name: AMD_Instinct_MI300X}\n")}, ["--gpu", "h100"], unknown("AMD")
    yield "a Compose service with AMD's devices", {"compose.yaml": compose(VLLM, {}, "    devices: [/dev/kfd, /dev/dri]\n")}, ["--gpu", "h100"], unknown("AMD")


def other_commands():
    for words, kind in ((["docker", "run", "--device", "/dev/kfd", "--device", "/dev/dri", "vllm/vllm-openai:v0.19.1"] + inside(VLLM, {}), "AMD"), (["docker", "run", "--device=/dev/kfd", "rocm/vllm", "vllm", "serve", MODEL], "AMD"),
                        (["docker", "run", "--runtime=habana", image(VLLM)] + inside(VLLM, {}), "Gaudi"), (["docker", "run", "vllm/vllm-openai-cpu:v0.19.1"] + inside(VLLM, {}), "CPU"),
                        (command(SGLANG, {}) + ["--device", "cpu"], "CPU"), (command(SGLANG, {}) + ["--device", "xpu"], "Intel"), (command(SGLANG, {}) + ["--device=npu"], "Ascend"), (command(SGLANG, {}) + ["--device", "hpu"], "Gaudi"),
                        (["docker", "run", "lmsysorg/sglang:v0.5.23-rocm720-mi30x"] + inside(SGLANG, {}), "AMD")):
        yield " ".join(words), ["plan", "--gpu", "h100"], words, unknown(kind)
    yield "SGLang's --device cuda", ["plan", "--gpu", "h100"], command(SGLANG, {}) + ["--device", "cuda"], starts(1)
    yield "an older vLLM on the CPU", ["plan", "--gpu", "h100", "--vllm", "0.9.0"], command(VLLM, {}) + ["--device", "cpu"], unknown("CPU")


def files():
    """Scripts, units and programs."""
    for engine in (VLLM, SGLANG):
        run = " ".join(command(engine, {"tp": 2}))
        for value in ("0", "0,1", "-1"):
            want = answer(engine, {"tp": 2}, visible(value, None))
            yield "export of %s, %s" % (value, engine), {"a.sh": "#!/bin/bash\nexport CUDA_VISIBLE_DEVICES=%s\n%s\n" % (value, run)}, ["--gpu", "h100"], want
            yield "before the command: %s, %s" % (value, engine), {"a.sh": "#!/bin/bash\nCUDA_VISIBLE_DEVICES=%s %s\n" % (value, run)}, ["--gpu", "h100"], want
            yield "a unit with %s, %s" % (value, engine), {"a.service": "[Unit]\nDescription=x\n[Service]\nEnvironment=CUDA_VISIBLE_DEVICES=%s\nExecStart=/usr/bin/%s\n" % (value, run)}, ["--gpu", "h100"], want
        yield "docker in a script, " + engine, {"a.sh": "#!/bin/bash\ndocker run --gpus 1 %s %s\n" % (image(engine), " ".join(inside(engine, {"tp": 2})))}, ["--gpu", "h100"], answer(engine, {"tp": 2}, 1)
    for set_, there in (('os.environ["CUDA_VISIBLE_DEVICES"] = "0"', 1), ("os.environ['CUDA_VISIBLE_DEVICES'] = '0,1'", 2), ('os.environ.setdefault("CUDA_VISIBLE_DEVICES", "0")', 1), ('os.putenv("CUDA_VISIBLE_DEVICES", "1")', 1), ("pass", None)):
        yield "a program with %s" % set_, {"a.py": "import os\n%s\nfrom vllm import LLM\nllm = LLM(model=\"%s\", tensor_parallel_size=2)\n" % (set_, MODEL)}, ["--gpu", "h100"], of_vllm({"tp": 2}, there)
    yield "llm-d", {"a.yaml": "modelArtifacts: {name: %s, uri: 'hf://%s'}\nacceleratorTypes: {labelKey: %s, labelValues: [NVIDIA-L4]}\ndecode:\n  parallelism: {tensor: 2}\n  containers:\n  - name: vllm\n    modelCommand: vllmServe\n    image: %s\n    resources: {limits: {nvidia.com/gpu: 2}}\n" % (MODEL, MODEL, PRODUCT, image(VLLM))}, ["--gpu", "h100"], on(L4)
    yield "llm-d, a list", {"a.yaml": "modelArtifacts: {name: %s, uri: 'hf://%s'}\ndecode:\n  acceleratorTypes: [NVIDIA-L4]\n  parallelism: {tensor: 2}\n  containers:\n  - name: vllm\n    modelCommand: vllmServe\n    image: %s\n    resources: {limits: {nvidia.com/gpu: 1}}\n" % (MODEL, MODEL, image(VLLM))}, ["--gpu", "h100"], of_vllm({"tp": 2}, 1)


def heads():
    """Heads are shared by the ranks of attention: qwen3.py, llama.py and others of SGLang; ModelConfig of vLLM."""
    for tp in (3, 5, 6):
        yield "SGLang, %d ranks for 32 heads" % tp, ["plan", "--gpu", "h100x8"], command(SGLANG, {"tp": tp}), refused(r"total_num_heads % \w+ == 0", 8)
        yield "vLLM, %d ranks for 32 heads" % tp, ["plan", "--gpu", "h100x8"], command(VLLM, {"tp": tp}), refused("must be divisible by tensor parallel size", 8)
    yield "SGLang, nodes that do not divide the ranks", ["plan", "--gpu", "h100x8"], command(SGLANG, {"tp": 2, "nodes": 3}), refused("tp_size must be divisible by number of nodes", 8)
    yield "SGLang, replicas on several nodes", ["plan", "--gpu", "h100x8"], command(SGLANG, {"tp": 2, "dp": 2, "nodes": 2}), refused("multi-node data", 8)


def releases():
    """The same in the words of each release, and heads for KV that the ranks do not divide."""
    for gpu, version, words, says in (
            ("h100x1", "vllm=0.32.0", command(VLLM, {"dp": 2}), "DP adjusted local rank 1 is out of bounds for 1 devices."),
            ("h100x1", "vllm=0.19.1", command(VLLM, {"dp": 2}), "DP adjusted local rank 1 is out of bounds."),
            ("h100x1", "vllm=0.19.1", command(VLLM, {"tp": 2, "mp": "mp"}), "local_world_size (2) must be less than or equal to the number of visible devices (1)."),
            ("h100x1", "vllm=0.10.0", command(VLLM, {"dp": 2}), "No CUDA GPUs are available"),
            ("h100x1", "sglang=0.5.18", command(SGLANG, {"tp": 2}), "CUDA error: invalid device ordinal"),
            ("h100x4", "sglang=0.5.18", command(SGLANG, {"tp": 3}), "AssertionError: assert self.total_num_heads % attn_tp_size == 0"),
            ("h100x4", "sglang=0.5.18", command(SGLANG, {"tp": 2, "dp": 2, "nodes": 2}), "multi-node data parallel is not supported unless dp attention!"),
            ("h100x4", "sglang=0.5.23", [SGLANG, "serve", "--model-path", "microsoft/phi-4", "--tp-size", "4"], "AssertionError: assert self.total_num_kv_heads % attn_tp_size == 0"),
            ("h100x4", "sglang=0.5.23", [SGLANG, "serve", "--model-path", "Qwen/Qwen2.5-1.5B-Instruct", "--tp-size", "3"], "AssertionError: assert attn_tp_size % self.total_num_kv_heads == 0")):
        yield "%s: %s" % (version, " ".join(words)), ["plan", "--gpu", gpu, "--engine", version], words, refused(re.escape(says))


# ---- asking ----

def ask_plan(binary, options, words):
    done = subprocess.run([binary] + options + ["--json", "--offline", "--"] + words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, timeout=120, check=False)
    if done.returncode == 3 and not done.stdout:
        return [{"kind": "unknown", "words": done.stderr.decode(), "rc": 3}]
    try:
        plan = json.loads(done.stdout.decode())
    except ValueError:
        return [{"kind": "nothing", "words": done.stderr.decode(), "rc": done.returncode}]
    return [{"kind": kind_of(plan["verdict"], plan["likely"]), "words": plan["why"] or "", "rc": done.returncode, "count": plan["gpu"]["count"], "gpu": plan["gpu"]["name"]}]


def kind_of(verdict, likely):
    return "refused" if verdict == "refused" else "starts" if verdict in ("fits", "tight") and likely == "starts" else verdict


def ask_check(binary, folder, files_, options):
    for name, text in files_.items():
        with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
            f.write(text)
    done = subprocess.run([binary, "check", "--json", "--offline"] + options + sorted(files_), stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, timeout=120, check=False, cwd=folder)
    for name in files_:
        os.remove(os.path.join(folder, name))
    page = json.loads(done.stdout.decode())
    found = [{"kind": "unknown" if c["problem"] else kind_of(c["verdict"], c["likely"]), "words": c["problem"] or c["why"] or "", "rc": done.returncode, "gpu": c["gpu"]} for c in page["commands"]]
    return found or [{"kind": "unknown", "words": json.dumps(page["not_looked_at"]), "rc": done.returncode}]


def ask_matrix(binary, folder, gpu, flags, value):
    """A point of a matrix, with the variable for all of its starts."""
    sets = "{name: one, flags: %s}" % " ".join(words_of(VLLM, flags))
    with open(os.path.join(folder, "m.yaml"), "w", encoding="utf-8") as f:
        f.write("models: [%s]\ngpus: [%s]\nversions: [0.32.0]\nflags: [%s]\n%s" % (MODEL, gpu, sets, "environment: {CUDA_VISIBLE_DEVICES: '%s'}\n" % value if value else ""))
    done = subprocess.run([binary, "matrix", "--offline", "--points", "points.jsonl", "m.yaml"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, timeout=120, check=False, cwd=folder)
    try:
        with open(os.path.join(folder, "points.jsonl"), encoding="utf-8") as f:
            points = [json.loads(line) for line in f]
    except (OSError, ValueError):
        return [{"kind": "nothing", "words": done.stderr.decode(), "rc": done.returncode}]
    return [{"kind": kind_of(p["verdict"], p["likely"]), "words": p["why"] or "", "rc": 1 if p["verdict"] == "refused" else 0} for p in points]


def matrices():
    for flags in ({"tp": 2}, {"dp": 2}, {"tp": 2, "dp": 2}):
        for gpu, there in (("h100", None), ("h100x1", 1), ("h100x2", 2), ("h100x4", 4)):
            for value in (None, "0", "1,0"):
                yield "matrix %s on %s, CUDA_VISIBLE_DEVICES=%s" % (flags, gpu, value), gpu, flags, value, of_vllm(flags, there if value is None else visible(value, there))


def ask_dryrun(binary, folder, gpu, words):
    """How many devices are simulated: a program of the engine's name that ends at once."""
    for name in (VLLM, SGLANG):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
            f.write("#!/bin/sh\nexit 0\n")
        os.chmod(os.path.join(folder, name), 0o755)
    done = subprocess.run([binary, "dryrun", "--json", "--cuda", "12", "--gpu", gpu, "--"] + words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, timeout=120, check=False, cwd=folder,
                          env={key: value for key, value in os.environ.items() if key != "CUDA_VISIBLE_DEVICES"})
    try:
        return json.loads(done.stdout.decode())["gpu"]["count"]
    except ValueError:
        return done.stderr.decode()


def dryruns():
    for engine, flags in ((VLLM, {"tp": 2}), (VLLM, {"dp": 2}), (VLLM, {"tp": 2, "pp": 2, "dp": 2}), (SGLANG, {"tp": 2}), (SGLANG, {"tp": 2, "dp": 2}), (SGLANG, {"tp": 4, "dp": 2, "replicated": True})):
        need = vllm_needs(**flags)[1] if engine == VLLM else sglang_needs(**flags)
        words = ["./" + engine] + command(engine, flags)[1:]
        yield "dryrun %s %s" % (engine, flags), "h100", words, need
        yield "dryrun %s %s on three" % (engine, flags), "h100x3", words, 3
    yield "dryrun on devices 2 and 3", "h100", ["env", "CUDA_VISIBLE_DEVICES=2,3", "./vllm"] + command(VLLM, {"tp": 2})[1:], 4


def wrong(want, given):
    """Why the answers are not what is wanted, or None."""
    gpus = want.get("gpu") if isinstance(want.get("gpu"), list) else [want.get("gpu")] * len(given)
    if len(given) != len(gpus):
        return "%d answers" % len(given)
    for one, gpu in zip(given, gpus):
        code = {"starts": 0, "refused": 1, "unknown": 3}.get(one["kind"])
        if want["kind"] == "on":
            pass
        elif want["kind"] == "open":
            if one["kind"] == "refused":
                return "refused: %s" % one["words"]
        elif one["kind"] != want["kind"]:
            return "%s (%s), wanted %s" % (one["kind"], one["words"][:200], want["kind"])
        if want["kind"] not in ("open", "on") and code is not None and one["rc"] != code:
            return "%s with exit %d" % (one["kind"], one["rc"])
        if "words" in want and not re.search(want["words"], one["words"]):
            return "says %r, wanted %r" % (one["words"][:200], want["words"])
        if want["kind"] == "refused" and re.search("out of memory|does not fit", one["words"]):
            return "speaks of memory: %s" % one["words"]
        if want.get("count") is not None and one.get("count") is not None and one["count"] != want["count"]:
            return "%d GPUs, wanted %d" % (one["count"], want["count"])
        if gpu and one.get("gpu") != gpu:
            return "on %s, wanted %s" % (one.get("gpu"), gpu)
    return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("--list", action="store_true", help="also those that are right")
    args = parser.parse_args()
    binary = os.path.abspath(args.binary)
    tried, faults = 0, 0
    with tempfile.TemporaryDirectory() as folder:
        for made in (sizes, environment, docker, composes, pods, others, other_commands, files, heads, releases):
            for name, first, second, want in made():
                given = ask_plan(binary, first, second) if isinstance(first, list) else ask_check(binary, folder, first, second)
                why = wrong(want, given)
                tried += 1
                faults += why is not None
                if why or args.list:
                    print("%s: %s: %s" % (made.__name__, name, why or "as it must be: " + want["kind"]))
        for name, gpu, flags, value, want in matrices():
            why = wrong(want, ask_matrix(binary, folder, gpu, flags, value))
            tried += 1
            faults += why is not None
            if why or args.list:
                print("matrices: %s: %s" % (name, why or "as it must be: " + want["kind"]))
        for name, gpu, words, want in dryruns():
            count = ask_dryrun(binary, folder, gpu, words)
            tried += 1
            faults += count != want
            if count != want or args.list:
                print("dryruns: %s: %s, wanted %d" % (name, count, want))
    print("%d forms, %d faults" % (tried, faults))
    return 1 if faults or tried < 200 else 0


if __name__ == "__main__":
    sys.exit(main())
