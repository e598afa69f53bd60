"""Many starts of one engine from one process that has imported it: read by the engine's own Python, under `oomsight dryrun`.

    oomsight dryrun --gpu H100 --outside 0 -- python oracle_zygote.py STARTS.jsonl RESULTS.jsonl

Each line of STARTS is {"key": ..., "model": folder, "engine": {LLM keywords}}. A child is forked per start before CUDA is touched,
so the device is empty for each; its line of RESULTS has what the engine allocated, measured at the allocator and at the stand-in
device. The machine's engine lock (OOMSIGHT_ENGINE_LOCK) is held for each start, not for all."""
import fcntl
import gc
import json
import mmap
import os
import signal
import struct
import sys
import time

os.environ.setdefault("VLLM_ENABLE_V1_MULTIPROCESSING", "0")

import torch  # noqa: E402
import transformers  # noqa: E402, F401
import vllm  # noqa: E402
from vllm import LLM  # noqa: E402
import vllm.v1.engine.core  # noqa: E402, F401
import vllm.v1.executor.uniproc_executor  # noqa: E402, F401
from vllm.v1.worker import gpu_worker  # noqa: E402

SEGMENT_VERSION, GRAPHS_AT = 8, 112  # src/base/segment.h: magic, version, ..., graph_count, graph_node_count


class Counters:
    """Graphs and nodes that were instantiated on the stand-in device, ever."""

    def __init__(self):
        with open(os.environ["OOMSIGHT_SEGMENT"], "rb") as f:
            self.map = mmap.mmap(f.fileno(), 4096, prot=mmap.PROT_READ)
        if struct.unpack_from("<I", self.map, 8)[0] != SEGMENT_VERSION:
            sys.exit("oracle_zygote: the segment is of another version")

    def read(self):
        return struct.unpack_from("<QQ", self.map, GRAPHS_AT)


def allocated():
    return torch.cuda.memory_stats().get("allocated_bytes.all.current", 0)


def asked():
    return torch.cuda.memory_stats().get("requested_bytes.all.current", 0)


def mode_now():
    """(mode, rows) of a capture, from the engine's forward context; runners that capture outside of one have whole graphs."""
    try:
        from vllm.forward_context import get_forward_context
        context = get_forward_context()
        mode = getattr(context.cudagraph_runtime_mode, "name", "FULL")
        batch = context.batch_descriptor
        return mode, getattr(batch, "num_tokens", None)
    except Exception:  # noqa: BLE001 no context
        return "FULL", None


class Enough(BaseException):
    """What was asked for has been seen."""


class Watch:
    def __init__(self, counters, only=None):
        self.only = only  # "load", "encoder" or "kv": enough when that has been seen
        self.counters, self.stage, self.out, self.captures = counters, "load", {}, {}
        self.worker = None

    def around_capture(self):
        watch, enter, leave = self, torch.cuda.graph.__enter__, torch.cuda.graph.__exit__

        def entered(graph):
            graph.oracle_before = watch.counters.read()
            graph.oracle_mode = mode_now()
            return enter(graph)

        def left(graph, *why):
            result = leave(graph, *why)
            graphs, nodes = watch.counters.read()
            mode, rows = graph.oracle_mode
            sizes = watch.captures.setdefault(watch.stage, {}).setdefault(mode, {})
            seen = sizes.setdefault(str(rows), [0, 0])
            seen[0] += graphs - graph.oracle_before[0]
            seen[1] += nodes - graph.oracle_before[1]
            return result

        torch.cuda.graph.__enter__, torch.cuda.graph.__exit__ = entered, left

    def around_worker(self):
        watch, cls = self, gpu_worker.Worker
        load, size, warm = cls.load_model, cls.determine_available_memory, cls.compile_or_warm_up_model

        def load_model(worker, *args, **words):
            result = load(worker, *args, **words)
            watch.worker = worker
            gc.collect()
            torch.cuda.empty_cache()
            stats = torch.cuda.memory_stats()
            watch.out.update(weights_bytes=allocated(), weights_asked_bytes=asked(),
                             weights_reserved_bytes=stats.get("reserved_bytes.all.current", 0),
                             load_peak_bytes=stats.get("allocated_bytes.all.peak", 0))
            usage = getattr(worker.model_runner, "model_memory_usage", None)
            watch.out["weights_printed_bytes"] = int(usage) if usage else None
            watch.stage = "profile"
            if watch.only == "load":
                raise Enough
            return result

        def determine(worker, *args, **words):
            before = allocated()
            torch.cuda.reset_peak_memory_stats()
            available = size(worker, *args, **words)
            gc.collect()
            torch.cuda.empty_cache()
            watch.out.update(available_bytes=int(available), retained_bytes=allocated() - before,
                             peak_bytes=int(getattr(worker, "peak_activation_memory", 0)),
                             estimate_bytes=getattr(worker, "cudagraph_memory_estimate", None),
                             consumed_bytes=int(getattr(worker, "total_consumed", 0)) or None,
                             requested_bytes=int(worker.requested_memory))
            watch.stage = "start"
            if watch.only == "kv":
                watch.out["runner"] = "v2" if getattr(worker, "use_v2_model_runner", False) else "v1"
                raise Enough
            return available

        def warm_up(worker, *args, **words):
            free = torch.cuda.mem_get_info()[0]
            result = warm(worker, *args, **words)
            watch.out["warm_taken_bytes"] = free - torch.cuda.mem_get_info()[0]
            return result

        cls.load_model, cls.determine_available_memory, cls.compile_or_warm_up_model = load_model, determine, warm_up

    def around_encoder(self, model):
        """The busiest instant of the multimodal encoder alone, and what it was given."""
        watch = self
        for name in ("embed_multimodal", "get_multimodal_embeddings"):
            inner = getattr(type(model), name, None)
            if inner is None:
                continue

            def run(self_, *args, _inner=inner, **words):
                if watch.stage != "profile":
                    return _inner(self_, *args, **words)
                before = allocated()
                shapes = {key: list(value.shape) for key, value in words.items() if hasattr(value, "shape")}
                torch.cuda.reset_peak_memory_stats()
                result = _inner(self_, *args, **words)
                peak = torch.cuda.memory_stats()["allocated_bytes.all.peak"]
                parts = result if isinstance(result, (list, tuple)) else [result]
                watch.out.setdefault("encoder", []).append(
                    {"inputs": shapes, "peak_bytes": peak - before, "held_bytes": allocated() - before,
                     "outputs": [list(part.shape) for part in parts[:4]], "items": len(parts)})
                if watch.only == "encoder":
                    raise Enough
                return result

            setattr(type(model), name, run)

    def end(self, llm):
        out, config = self.out, llm.llm_engine.vllm_config
        runner = self.worker.model_runner
        out["runner"] = "v2" if getattr(self.worker, "use_v2_model_runner", False) else "v1"
        out["blocks"] = config.cache_config.num_gpu_blocks
        out["block_tokens"] = config.cache_config.block_size
        out["max_num_seqs"] = config.scheduler_config.max_num_seqs
        out["max_num_batched_tokens"] = config.scheduler_config.max_num_batched_tokens
        out["max_model_len"] = config.model_config.max_model_len
        out["graph_mode"] = str(getattr(config.compilation_config.cudagraph_mode, "name", None))
        sizes = config.compilation_config.cudagraph_capture_sizes or []
        out["capture_sizes"] = len(sizes)
        kv = getattr(runner, "kv_cache_config", None)
        out["groups"] = [{"kind": type(group.kv_cache_spec).__name__, "layers": len(group.layer_names),
                          "page_bytes": group.kv_cache_spec.page_size_bytes} for group in kv.kv_cache_groups] if kv else []
        backends = []
        for group in getattr(runner, "attn_groups", None) or []:
            for part in group if isinstance(group, (list, tuple)) else [group]:
                name = part.backend.get_name()
                if name not in backends:
                    backends.append(name)
        out["backends"] = backends
        pools = {}
        for segment in torch.cuda.memory_snapshot():
            pool = segment.get("segment_pool_id", (0, 0))
            if tuple(pool) != (0, 0):
                pools[str(pool)] = pools.get(str(pool), 0) + segment["total_size"]
        out["pool_bytes"] = sorted(pools.values(), reverse=True)
        try:  # compiled now, not read from the cache: Inductor then holds a copy of the embedding
            from vllm.compilation.counter import compilation_counter
            out["compiled"] = compilation_counter.num_inductor_compiles > 0
        except (ImportError, AttributeError):  # releases without one
            out["compiled"] = None
        try:
            from vllm.v1.worker.workspace import current_workspace_manager
            held = current_workspace_manager()._current_workspaces
            out["workspace_bytes"] = sum(w.numel() * w.element_size() for w in held if w is not None)
        except Exception:  # noqa: BLE001 releases without one
            out["workspace_bytes"] = None


def start(job, counters):
    watch = Watch(counters, job.get("only"))
    watch.around_capture()
    watch.around_worker()
    began = time.time()
    try:
        inner = gpu_worker.Worker.load_model

        def load_model(worker, *args, **words):
            result = inner(worker, *args, **words)
            watch.around_encoder(worker.model_runner.model)
            return result

        gpu_worker.Worker.load_model = load_model
        llm = LLM(model=job["model"], load_format="dummy", skip_tokenizer_init=job.get("text", True), **job["engine"])
        watch.end(llm)
        watch.out["ok"] = True
    except Enough:
        watch.out["ok"] = True
    except BaseException as why:  # noqa: BLE001 whatever the engine ends with is the result
        watch.out.update(ok=False, error=type(why).__name__ + ": " + str(why)[:300])
        if os.environ.get("ORACLE_TRACEBACK"):
            import traceback
            traceback.print_exc()
    modes = {}
    for stage, by_mode in watch.captures.items():
        for mode, sizes in by_mode.items():
            numbers = [seen for seen in sizes.values()]
            modes[stage + "." + mode] = {"sizes": len(sizes), "graphs": sum(n[0] for n in numbers),
                                         "nodes": sum(n[1] for n in numbers), "first": numbers[0], "last": numbers[-1]}
    watch.out["captures"] = modes
    watch.out["seconds"] = round(time.time() - began, 1)
    return watch.out


def child(job, counters, results):
    record = {"key": job["key"], "vllm": vllm.__version__, "torch": torch.__version__, **start(job, counters)}
    with open(results, "a", encoding="utf-8") as f:
        f.write(json.dumps(record) + "\n")
        f.flush()
    os._exit(0)


def wait(pid, seconds):
    end = time.time() + seconds
    while time.time() < end:
        if os.waitpid(pid, os.WNOHANG)[0]:
            return True
        time.sleep(0.2)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return False


def main():
    starts, results = sys.argv[1:3]
    counters = Counters()
    gc.freeze()
    lock_path = os.environ.get("OOMSIGHT_ENGINE_LOCK")
    end = float(os.environ.get("ORACLE_END", "inf"))
    with open(starts, encoding="utf-8") as f:
        jobs = [json.loads(line) for line in f]
    for job in jobs:
        if time.time() > end:
            break
        lock = open(lock_path or os.devnull, "a")
        if lock_path:
            fcntl.flock(lock, fcntl.LOCK_EX)
        pid = os.fork()
        if pid == 0:
            child(job, counters, results)
        if not wait(pid, float(os.environ.get("ORACLE_TIMEOUT", "240"))):
            with open(results, "a", encoding="utf-8") as f:
                f.write(json.dumps({"key": job["key"], "ok": False, "error": "did not end in time"}) + "\n")
        lock.close()
        print("oracle:", job["key"], flush=True)


main()
