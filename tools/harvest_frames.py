#!/usr/bin/env python3
"""Stages of functions and of log lines, from the engines' sources: harvest_frames.py ENGINE@TAG,TAG=FOLDER... [--out FILE] [--lines FILE]

A call graph is drawn over the Python files that start, profile and run a model (of a git repository: at each tag). Each engine names
the functions with which a stage begins; what they call, in any release, belongs to the stage, up to where the next one begins, and
what calls them may stand above it in a traceback. Calls are followed by class (`self`, bases, attributes that are assigned once),
by import, by the name of a worker's method in quotes, and else by a name that few classes have. Only facts are kept: file, function,
stages. --lines writes, for each logged sentence, the stages of the function that logs it. Standard library only."""

import argparse
import ast
import collections
import json
import os
import pickle
import re
import subprocess

# ---- where stages begin. A function that begins one ends the stage that calls it.
PROFILE = ("profile_run", "mm_profile")
STEP = ("runtime_prefill", "runtime_other")
SAMPLE = ("runtime_sampler",)
ENGINES = {
    "vllm": {
        "package": "vllm/",
        "scan": r"^vllm/(?:v1/(?:worker|executor|engine|core|spec_decode|sample|kv_offload|structured_output|attention/backends/utils|utils)|worker|executor|engine|spec_decode|"
                r"model_executor/(?:model_loader|warmup|utils|offloader|layers/(?:quantization|sampler|rejection|typical|logits|fused_moe/(?:oracle|all2all|config|layer)))|lora|distributed|"
                r"compilation|device_allocator|platforms|utils|attention/layer|entrypoints/llm|sequence|config)",
        "roots": [
            (r"worker\w*\.py$", r"init_device|initialize", ("init_free_memory_check",)),
            (r".", r"request_memory", ("init_free_memory_check",)),
            (r".", r"init_worker_distributed_environment|init_distributed_environment|ensure_model_parallel_initialized|initialize_model_parallel|_init_distributed_environment|"
                   r"init_distributed_device|prepare_communication_buffer_for_model", ("distributed_init",)),
            (r"worker\w*\.py$|runner\w*\.py$", r"load_model|reload_weights", ("weight_load",)),
            (r".", r"_?process_weights_after_loading|_process_weights", ("quant_postprocess",)),
            (r"worker\w*\.py$", r"determine_available_memory|determine_num_available_blocks|profile_num_available_blocks|determine_available_kv_cache_memory", PROFILE),
            (r"runner\w*\.py$", r"profile_run", PROFILE),
            (r".", r"profile_cudagraph_memory|_init_minimal_kv_cache_for_profiling", ("cudagraph_profile",)),
            (r"kv_cache_utils\.py$", r"get_kv_cache_configs?|check_enough_kv_cache_memory|_check_enough_kv_cache_memory", ("kv_sizing",)),
            (r".", r"raise_if_cache_size_invalid|_get_kv_cache_configs?", ("kv_sizing",)),
            (r"worker\w*\.py$|runner\w*\.py$|cache_engine\.py$", r"initialize_from_config|initialize_kv_cache|_?init_cache_engine|init_kv_cache|_allocate_kv_cache", ("kv_alloc",)),
            (r"worker\w*\.py$", r"initialize_cache", ("kv_alloc",)),
            (r"worker\w*\.py$", r"compile_or_warm_up_model|_?warm_up_model|warmup_model", ("compile",)),
            (r".", r"kernel_warmup|warmup_kernels|deep_gemm_warmup|flashinfer_autotune", ("compile",)),
            (r"runner\w*\.py$|cudagraph\w*\.py$", r"capture_model|capture_graphs?|_capture_cudagraphs|capture_forward_graph", ("cudagraph_capture",)),
            (r"worker\w*\.py$", r"execute_model|execute_worker|start_worker_execution_loop|execute_dummy_batch", STEP),
            (r"worker\w*\.py$|runner\w*\.py$", r"sample_tokens", SAMPLE),
            (r"layers/(?:sampler|rejection_sampler|typical_acceptance_sampler)\.py$|(?:v1|gpu)/sample/[\w/]+\.py$", r"\w+", ("profile_run", "sampler_warmup") + SAMPLE),
            (r"engine/core\.py$", r"run_busy_loop", STEP + SAMPLE + ("sleep_wake",)),
            (r"engine/core\.py$", r"step|step_with_batch_queue|_process_engine_step", STEP),
            (r"async_llm_engine\.py$|llm_engine\.py$|multiprocessing/engine\.py$", r"step|step_async|engine_step|run_engine_loop|run_engine_loop|_run_engine", STEP),
            (r"worker\w*\.py$|cumem\.py$", r"wake_up|create_and_map|sleep", ("sleep_wake",)),
            (r"worker\w*\.py$|runner\w*\.py$", r"add_lora", STEP),
        ],
        # Inside a function a stage goes over into another: under which stage -> which.
        "turns": [
            (r"_dummy_sampler_run|_dummy_pooler_run", {"compile": "sampler_warmup", "mm_profile": "profile_run"}),
            (r"_dummy_run", {"mm_profile": "profile_run"}),
            (r"_get_mm_dummy_batch|_profile_multimodal|profile_multimodal|_dummy_mm\w*", {"profile_run": "mm_profile"}),
            (r"_?execute_mm_encoder|_gather_mm_embeddings|_batch_mm_\w+", {"runtime_other": "runtime_prefill", "profile_run": "mm_profile"}),
            (r"_sample|sample|sample_tokens|_bookkeeping_sync|_get_prompt_logprobs_dict|_get_prompt_logprobs",
             {"compile": "sampler_warmup", **{s: "runtime_sampler" for s in STEP}}),
        ],
        # Stages that go on where others begin: a trial of what comes later, or a served step that warms up.
        "through": {"cudagraph_profile": r"\w+", "compile": r"execute_model|sample_tokens|sample", "sampler_warmup": r"sample_tokens|sample|\w*sampler\w*"},
        "rpc": r"worker\w*\.py$",
    },
    "sglang": {
        "package": "python/",
        "scan": r"^python/sglang/srt/(?:managers|model_executor|mem_cache|model_loader|distributed|lora|speculative|sampling|constrained|disaggregation|eplb|hardware_backend|"
                r"layers/(?:sampler|logits_processor|quantization|dp_attention|moe/(?:token_dispatcher|ep_moe))|layers/attention/\w+\.py|weight_sync|utils|batch_overlap)",
        "roots": [
            (r"model_runner\w*\.py$", r"init_torch_distributed", ("init_free_memory_check", "distributed_init")),
            (r"parallel_state\.py$", r"init_distributed_environment|initialize_model_parallel", ("distributed_init",)),
            (r"model_runner\w*\.py$", r"load_model|update_weights\w*|start_startup_weight_load|finalize_startup_weight_load", ("weight_load",)),
            (r".", r"_?process_weights_after_loading|post_load_weights", ("quant_postprocess",)),
            (r".", r"profile_max_num_token|profile_available_bytes|_profile_available_bytes|handle_max_mamba_cache", ("kv_sizing",)),
            (r"model_runner\w*\.py$|memory_pool\w*\.py$|kv_cache\w*\.py$", r"init_memory_pool|alloc_memory_pool|_init_pools|_create_buffers|_create_buffer", ("kv_alloc",)),
            (r"model_runner\w*\.py$", r"init_cuda_graphs|init_device_graphs|init_piecewise_cuda_graphs?|init_decode_cuda_graph|init_prefill_cuda_graph|init_cuda_graph\w*", ("cudagraph_capture",)),
            (r"graph_runner\w*\.py$", r"capture|capture_one_batch_size|_capture_\w+", ("cudagraph_capture",)),
            (r".", r"kernel_warmup|_?flashinfer_autotune|warmup_\w*kernels?", ("compile",)),
            (r".", r"forward_batch_generation|forward_batch_embedding|forward_thread_func_?|forward_batch_\w+", STEP),
            (r"scheduler\w*\.py$|controller\w*\.py$|tp_worker\w*\.py$", r"event_loop_\w+|run_batch|get_next_batch_to_run|exposed_step|forward_step|process_batch_result\w*|loop_for_forward", STEP),
            (r".", r"resume_memory_occupation", ("sleep_wake",)),
            (r"layers/sampler\.py$|sampling/[\w/]+\.py$", r"\w+", SAMPLE),
        ],
        "turns": [(r"sample|_sample|compute_logprobs_only|process_input_logprobs|get_top_logprobs", {s: "runtime_sampler" for s in STEP})],
        "rpc": r"$^",
    },
    "lmdeploy": {
        "package": "",
        "scan": r"^lmdeploy/(?:pytorch/(?:engine|model_inference|weight_loader|paging|spec_decode|strategies|backends/cuda/graph_runner|backends/graph_runner|models/patch|kernels/w8a8)|turbomind|serve/(?:async_engine|core|openai/api_server|vl_async_engine)|vl/(?:engine|model/builder))",
        "roots": [
            (r".", r"build_model|_build_model|load_model_weights|_load_weights|_?create_weight|_?get_model_params|_load_params|process_weights?|_process_weights|export|_from_hf|_from_workspace|patched_model|load_weights",
             ("weight_load",)),
            (r".", r"gather_free_mem|_get_free_gpu_mem\w*|_get_runtime_size|update_configs", ("kv_sizing",)),
            (r".", r"_?build_cache_engine|_allocate_cache|_allocate_gpu_cache|allocate_gpu_cache|allocate_caches|_create_engine|create_engine", ("kv_alloc",)),
            (r"agent\w*\.py$|graph_runner\w*\.py$|executor\w*\.py$", r"warmup|capture", ("cudagraph_capture",)),
            (r"agent\w*\.py$|engine\w*\.py$", r"_async_model_forward|async_forward|_async_step\w*|_async_loop\w*|_forward_impl|forward_async|_async_step_background|async_stream_infer", STEP),
            (r".", r"async_sampling_logits|_sampling_logits", SAMPLE),
            (r".", r"wakeup", ("sleep_wake",)),
        ],
        "turns": [],
        "rpc": r"(?:worker|agent)\w*\.py$",
    },
    "tgi": {
        "package": "server/",
        "scan": r"^server/text_generation_server/(?:server|cli|models/(?:flash_causal_lm|causal_lm|model|seq2seq_lm|vlm_causal_lm|mllama_causal_lm|idefics\w*|mamba|__init__)|utils|interceptor|adapters)",
        "roots": [
            (r"models/__init__\.py$", r"get_model", ("weight_load",)),
            (r".", r"[Ww]armup", ("profile_run",)),
            (r".", r"init_kv_cache", ("kv_alloc",)),
            (r".", r"cuda_graph_warmup", ("cudagraph_capture",)),
            (r"server\.py$", r"Prefill|Decode", STEP),
            (r"models/\w+\.py$", r"generate_token", STEP + ("profile_run",)),
        ],
        "turns": [],
        "rpc": r"$^",
    },
    "vllm-ascend": {
        "package": "",
        "scan": r"^vllm_ascend/(?:worker|compilation|device_allocator|spec_decode|sample|distributed|quantization|eplb|patch|utils|core)",
        "roots": "vllm", "turns": "vllm", "through": "vllm", "rpc": r"worker\w*\.py$",
    },
}
EVERY = range(99)
ENDING = re.compile(r"shutdown|destroy|__del__|close|stop|cleanup|__exit__")
# What calls another function by a name that it is given stands in every stage.
DISPATCH = re.compile(r"collective_rpc|_run_workers|run_method|execute_method|worker_busy_loop|_run_worker_process|busy_loop_thread")
GENERIC = {"<module>", "<lambda>", "__call__", "__enter__", "__exit__", "wrapper", "inner", "_wrapper", "decorate_context", "forward", "run", "main", "get", "set", "update", "add",
           "__init__", "from_config", "build", "apply", "call", "func", "fn", "__getattr__", "__setattr__", "start", "step", "reset", "clear", "copy", "to", "size", "items", "keys"}
# Beside the way from a start to a served request: followed, and not kept.
ASIDE = re.compile(r"kv_transfer|ec_transfer|eplb|elastic|disaggregation|weight_transfer|kv_offload|simple_kv|hicache|unified_cache|mem_cache/storage|mooncake|structured_output|constrained|source_model|expert_"
                   r"distribution|neuron|openvino|lora/ops|punica|kv_canary|compilation/passes")
FEW = 6  # classes that have a method of a name, so that a call by the name alone is followed


# What may take memory of a device: a function of torch, or a method that makes or moves a tensor.
TAKES = {"to", "cuda", "clone", "contiguous", "copy_", "empty", "zeros", "ones", "full", "cat", "stack", "empty_like", "zeros_like", "float", "half", "repeat", "expand", "softmax", "sort",
         "all_reduce", "all_gather", "gather", "broadcast", "replay", "wake_up", "create_and_map", "load_weights", "forward", "model", "synchronize", "mem_get_info"}


class File:
    """Functions, classes, imports and calls of one file."""

    def __init__(self, path, text):
        self.path, self.functions, self.classes, self.imports, self.dispatchers, self.takes = path, {}, {}, {}, set(), set()
        try:
            tree = ast.parse(text)
        except (SyntaxError, ValueError, RecursionError):
            return
        for node in imports_of(tree.body):
            if isinstance(node, ast.ImportFrom) and node.module:
                for name in node.names:
                    self.imports[name.asname or name.name] = (node.module, name.name)
        self.take(tree.body, None)

    def take(self, body, owner):
        for node in body:
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                self.function(node, owner)
            elif isinstance(node, ast.ClassDef):
                bases = [b.value if isinstance(b, ast.Subscript) else b for b in node.bases]
                bases = [b.id if isinstance(b, ast.Name) else b.attr for b in bases if isinstance(b, (ast.Name, ast.Attribute))]
                self.classes[node.name] = {"bases": bases, "attributes": collections.defaultdict(set)}
                self.take(node.body, node.name)
            elif isinstance(node, (ast.If, ast.Try, ast.With)):
                self.take(node.body + getattr(node, "orelse", []), owner)

    def function(self, node, owner):
        calls = set()  # (how, receiver, name)
        lines = []
        name = node.name
        below = list(ast.walk(node))
        for inner in below:
            if isinstance(inner, (ast.FunctionDef, ast.AsyncFunctionDef)) and inner is not node:
                self.functions.setdefault((owner, inner.name), (set(), []))[0].update(calls_of(ast.walk(inner)))
                calls.add(("self" if owner else "name", "", inner.name))
            if owner and isinstance(inner, (ast.Assign, ast.AnnAssign)):
                targets = inner.targets if isinstance(inner, ast.Assign) else [inner.target]
                for target in targets:
                    if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == "self":
                        self.classes[owner]["attributes"][target.attr] |= types_of(inner)
            if isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute) and inner.func.attr in ("info", "info_once", "debug", "warning", "warning_once") and inner.args:
                lines.append((inner.func.attr, constant(inner.args[0])))
        calls |= calls_of(below)
        if any(isinstance(i, ast.Call) and isinstance(i.func, ast.Name) and i.func.id == "getattr" and len(i.args) > 1 and not isinstance(i.args[1], ast.Constant)
               for i in below) or DISPATCH.search(name):
            self.dispatchers.add(name)
        if any(how == "other" and (receiver == "torch" or called in TAKES) or called in TAKES for how, receiver, called in calls):
            self.takes.add((owner, name))
        old = self.functions.setdefault((owner, name), (set(), []))
        old[0].update(calls)
        old[1].extend(lines)


def imports_of(body):
    """At the top of a file, under its conditions, and at the top of its functions."""
    for node in body:
        yield node
        if isinstance(node, (ast.If, ast.Try, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield from imports_of(node.body)


def types_of(node):
    """Names of classes that an assignment may give: a call of a capitalised name, or an annotation."""
    found = set()
    for value in filter(None, [node.value, getattr(node, "annotation", None)]):
        for inner in ast.walk(value):
            name = inner.func if isinstance(inner, ast.Call) else inner if value is getattr(node, "annotation", None) else None
            name = name.id if isinstance(name, ast.Name) else name.attr if isinstance(name, ast.Attribute) else None
            if name and name[0].isupper():
                found.add(name)
    return found


def calls_of(nodes):
    found = set()
    for inner in nodes:
        if isinstance(inner, ast.Call):
            func = inner.func
            if isinstance(func, ast.Name):
                found.add(("name", "", func.id))
            elif isinstance(func, ast.Attribute):
                found.add(call_of(func))
            if inner.args and isinstance(inner.args[0], ast.Constant) and isinstance(inner.args[0].value, str) and inner.args[0].value.isidentifier():
                found.add(("rpc", "", inner.args[0].value))
        elif isinstance(inner, ast.Attribute) and isinstance(inner.ctx, ast.Load) and isinstance(inner.value, ast.Name) and inner.value.id == "self":
            found.add(("self", "", inner.attr))
    return found


def call_of(func):
    value = func.value
    if isinstance(value, ast.Name):
        return ("self", "", func.attr) if value.id in ("self", "cls") else ("other", value.id, func.attr)
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "super":
        return ("super", "", func.attr)
    if isinstance(value, ast.Attribute) and isinstance(value.value, ast.Name) and value.value.id == "self":
        return ("attribute", value.attr, func.attr)
    return ("other", value.attr if isinstance(value, ast.Attribute) else "", func.attr)


class Graph:
    """Of one release: nodes are (path, class, function)."""

    def __init__(self, files, engine):
        self.files, self.engine = {f.path: f for f in files}, engine
        self.by_class, self.by_method, self.by_name = (collections.defaultdict(list) for _ in range(3))
        for f in files:
            for name in f.classes:
                self.by_class[name].append(f)
            for owner, name in f.functions:
                (self.by_method if owner else self.by_name)[name].append((f.path, owner, name))
        self.below = collections.defaultdict(set)
        for f in files:
            for name, one in f.classes.items():
                for base in one["bases"]:
                    self.below[base].add(name)
        self.sure, self.maybe = {}, {}
        for f in files:
            for (owner, name), (calls, _) in f.functions.items():
                node = (f.path, owner, name)
                self.sure[node], self.maybe[node] = self.resolve(f, owner, calls)

    def family(self, name, down=True):
        """A class, what it inherits from and what inherits from it."""
        seen, left = set(), [name]
        while left:
            at = left.pop()
            if at in seen:
                continue
            seen.add(at)
            for f in self.by_class.get(at, ()):
                left += f.classes[at]["bases"]
            if down:
                left += self.below.get(at, ()) if at == name else ()
        return seen

    def methods(self, classes, name):
        return {(f.path, c, name) for c in classes for f in self.by_class.get(c, ()) if (c, name) in f.functions}

    def named(self, f, name):
        if (None, name) in f.functions:
            return {(f.path, None, name)}
        if name in f.classes:
            return self.methods(self.family(name, False), "__init__")
        module, real = f.imports.get(name, (None, None))
        if not module:
            return set()
        if real[0].isupper():
            return self.methods(self.family(real, False), "__init__")
        ending = module.replace(".", "/") + ".py"
        here = [n for n in self.by_name.get(real, ()) if n[0].endswith(ending) or module.rsplit(".", 1)[-1] in n[0]]
        return set(here)

    def types(self, owner, attribute):
        return {t for c in self.family(owner) for f in self.by_class.get(c, ()) for t in f.classes[c]["attributes"].get(attribute, ())}

    def resolve(self, f, owner, calls):
        sure, maybe = set(), set()
        for how, receiver, name in calls:
            if how == "name":
                sure |= self.named(f, name)
            elif how in ("self", "super") and owner:
                found = self.methods(self.family(owner, how == "self"), name)
                sure |= found
                if not found:  # an attribute that is called
                    for t in self.types(owner, name):
                        maybe |= self.methods(self.family(t), "forward") | self.methods(self.family(t), "__call__")
            elif how == "rpc":
                sure |= {n for n in self.by_method.get(name, ()) if re.search(self.engine["rpc"], n[0])}
            elif how in ("attribute", "other"):
                found = set()
                if how == "attribute" and owner:
                    for t in self.types(owner, receiver):
                        found |= self.methods(self.family(t), name)
                stem = receiver.replace("driver_", "").rsplit("_", 1)[-1]
                if not found and len(stem) > 4:
                    found = {n for n in self.by_method.get(name, ()) if stem in n[0].lower() or stem in (n[1] or "").lower()}
                if found:
                    sure |= found
                elif name not in GENERIC and len(self.by_method.get(name, ())) <= FEW:
                    maybe |= set(self.by_method.get(name, ()))
        return sure, maybe

    def taking(self):
        """Functions that take memory, or call one that does: no other is seen in a stack of a failure."""
        above = collections.defaultdict(set)
        for node in self.sure:
            for callee in self.sure[node] | self.maybe[node]:
                above[callee].add(node)
        work = [(f.path, owner, name) for f in self.files.values() for owner, name in f.takes]
        found = set()
        while work:
            node = work.pop()
            if node not in found:
                found.add(node)
                work += above[node]
        return found

    def stages(self):
        roots = collections.defaultdict(set)
        for node in self.sure:
            for path, function, stages in self.engine["roots"]:
                if re.search(path, node[0]) and re.fullmatch(function, node[2]):
                    roots[node] |= set(stages)
                    break
        down = collections.defaultdict(set)
        work = [(node, stage) for node, stages in roots.items() for stage in stages]
        while work:
            node, stage = work.pop()
            for pattern, turn in self.engine["turns"]:
                if re.fullmatch(pattern, node[2]):
                    stage = turn.get(stage, stage)
            if stage in down[node]:
                continue
            down[node].add(stage)
            through = self.engine.get("through", {}).get(stage)
            # What runs first calls little: there a name alone is more often another's.
            below = self.sure[node] if stage in ("init_free_memory_check", "distributed_init") else self.sure[node] | self.maybe[node]
            work += [(n, stage) for n in below
                     if (n not in roots or through and re.fullmatch(through, n[2])) and not ENDING.search(n[2])]
        up, changed = {node: set(down[node]) for node in self.sure}, True
        while changed:
            changed = False
            for node in self.sure:
                more = set().union(*(up[n] if n in roots or not down[n] else up[n] & turned(self.engine, down[node]) for n in self.sure[node])) - up[node]
                if more and not ENDING.search(node[2]):
                    up[node] |= more
                    changed = True
        return up


def turned(engine, stages):
    """What of the stages of a callee a caller of some stages can stand above: its own, and what they turn into."""
    return stages | {turn[s] for _, turn in engine["turns"] for s in stages if s in turn}


# Loaders are found by a table of the engine, which a graph of names does not follow; all of them end in the conversion of weights.
LOADS = re.compile(r"_?(load|get)(_\w+)?_model(_\w+)?|load_model")
_parsed = {}


def files_of(folder, tag, engine):
    wanted = re.compile(engine["scan"])
    if tag:
        listed = subprocess.run(["git", "-C", folder, "ls-tree", "-r", tag], capture_output=True, check=True, text=True).stdout
        rows = [(line.split()[2], line.split("\t", 1)[1]) for line in listed.splitlines()]
        rows = [(blob, path) for blob, path in rows if path.endswith(".py") and wanted.search(path)]
        missing = [(blob, path) for blob, path in rows if (blob, path) not in _parsed]
        given = subprocess.run(["git", "-C", folder, "cat-file", "--batch"], input="".join(b + "\n" for b, _ in missing).encode(), capture_output=True, check=True).stdout
        at = 0
        for blob, path in missing:
            end = given.index(b"\n", at)
            size = int(given[at:end].split()[2])
            _parsed[blob, path] = File(path[len(engine["package"]):] if path.startswith(engine["package"]) and engine["package"] != "vllm/" else path,
                                       given[end + 1:end + 1 + size].decode("utf-8", "replace"))
            at = end + 2 + size
        return [_parsed[row] for row in rows]
    found = []
    for where, _, names in os.walk(os.path.join(folder, engine["package"])):
        for name in names:
            path = os.path.relpath(os.path.join(where, name), folder)
            if name.endswith(".py") and wanted.search(path):
                if (folder, path) not in _parsed:
                    with open(os.path.join(where, name), encoding="utf-8", errors="replace") as file:
                        _parsed[folder, path] = File(path, file.read())
                found.append(_parsed[folder, path])
    return found


def constant(node):
    """The longest constant part of a logged sentence."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        parts = re.split(r"%[-+ #0]*\d*(?:\.\d+)?[diuoxXfFeEgGcsr]|\{[^{}]*\}|\n", node.value)
    elif isinstance(node, ast.JoinedStr):
        parts = [p for v in node.values if isinstance(v, ast.Constant) and isinstance(v.value, str) for p in v.value.split("\n")]
    else:
        return ""
    return max(parts, key=len, default="").strip(" .,:;()[]'\"`=-")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", nargs="+")
    parser.add_argument("--out")
    parser.add_argument("--lines")
    parser.add_argument("--cache", help="what was parsed, for the next time")
    parser.add_argument("--most", type=int, default=4, help="stages of a function, above which it says nothing")
    args = parser.parse_args()
    table, lines = collections.defaultdict(lambda: collections.defaultdict(set)), {}
    for engine in ENGINES.values():
        for key in ("roots", "turns", "through"):
            if isinstance(engine.get(key), str):
                engine[key] = ENGINES[engine[key]][key]
    releases, everywhere = 0, set()
    if args.cache and os.path.exists(args.cache):
        with open(args.cache, "rb") as file:
            _parsed.update(pickle.load(file))
    for source in args.source:
        name, folder = source.split("=", 1)
        name, _, tags = name.partition("@")
        engine = ENGINES[name]
        for tag in tags.split(",") if tags and os.path.isdir(os.path.join(folder, ".git")) or folder.endswith("repo") else [None]:
            files = files_of(folder, tag, engine)
            releases += 1
            graph = Graph(files, engine)
            taking = graph.taking()
            for node, stages in graph.stages().items():
                if stages and node in taking and not ASIDE.search(node[0]):
                    table[node[0]][node[2]] |= stages
            for f in files:
                everywhere |= {(f.path, function) for function in f.dispatchers}
            for f in files:
                for (_, function), (_, logged) in f.functions.items():
                    for level, text in logged:
                        if len(text) >= 14:
                            row = lines.setdefault((name, text), {"files": set(), "levels": set(), "stages": set(), "since": tag or tags, "until": None})
                            row["files"].add(f.path + ":" + function)
                            row["levels"].add(level)
                            row["until"] = tag or tags
            _done = len(files)
            print(f"{name} {tag or folder}: {_done} files", flush=True)
    if args.cache:
        with open(args.cache, "wb") as file:
            pickle.dump(_parsed, file)
    for path, function in everywhere:
        if function != "run_busy_loop":
            table[path].pop(function, None)
    for functions in table.values():
        for function, stages in functions.items():
            if LOADS.fullmatch(function) and "weight_load" in stages:
                stages.add("quant_postprocess")
    write(table, args)
    if args.lines:
        for (name, text), row in lines.items():
            for where in row["files"]:
                path, function = where.split(":")
                row["stages"] |= table.get(path, {}).get(function, set())
        with open(args.lines, "w", encoding="utf-8") as file:
            for (name, text), row in sorted(lines.items()):
                file.write(json.dumps({"engine": name, "text": text, "stages": sorted(row["stages"]), "levels": sorted(row["levels"]), "since": row["since"], "until": row["until"],
                                       "files": sorted(row["files"])[:3]}) + "\n")
    print(f"harvest_frames: {releases} releases")


def write(table, args):
    """Without a module: a name whose functions, in all files of all engines, have few stages between them. With one: what says more."""
    names, sets, modules = collections.defaultdict(set), {}, {}
    for functions in table.values():
        for function, stages in functions.items():
            names[function] |= stages
    names = {f: s for f, s in names.items() if len(s) <= args.most and len(f) >= 6 and f not in GENERIC}
    for path, functions in [("", names), *sorted(table.items())]:
        for function, stages in sorted(functions.items()):
            # A module is named where that says much more.
            if not path or len(stages) <= args.most // 2 and function not in GENERIC - {"__init__"} and len(names.get(function, EVERY)) > len(stages):
                modules.setdefault(path, {}).setdefault(str(sets.setdefault(" ".join(sorted(stages)), len(sets))), []).append(function)
    lines = ['{', '  "schema": "oomsight.recorded/1",',
             '  "sets": ' + json.dumps([name.split() for name in sets]) + ',', '  "modules": {']
    lines += ["    %s: %s%s" % (json.dumps(m), json.dumps({n: " ".join(names) for n, names in f.items()}, separators=(",", ":")), "," if i + 1 < len(modules) else "")
              for i, (m, f) in enumerate(modules.items())]
    text = "\n".join(lines + ["  }", "}", ""])
    if args.out:
        with open(args.out, "w", encoding="utf-8") as file:
            file.write(text)
    count = sum(len(names) for f in modules.values() for names in f.values())
    print(f"{count} functions in {len(modules)} modules, {sum(len(f) for f in modules[''].values())} by name alone, {len(text)} bytes")


if __name__ == "__main__":
    main()
