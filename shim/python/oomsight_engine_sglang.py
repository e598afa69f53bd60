"""SGLang in a dry run: its phases by its own functions, its figures to the byte, tokens for what its samplers would have drawn.

What oomsight_aid.py and oomsight_phases.py do for every engine is theirs; here are the places of SGLang 0.5 where it is done."""
import functools
import os
import sys

import oomsight_aid
import oomsight_phases
from oomsight_phases import STAY, always, during, takes

WEIGHTS = always("weight_load", "weights")
SERVING = always("runtime_prefill", "activations")


def is_here():
    return "sglang" in sys.modules


def unbuilt(module):
    """Its own kernels are compiled by nvcc when they are first called, and fill tensors that Python has allocated."""
    silent = oomsight_aid._Silent()
    module.load_jit = lambda *args, **kwargs: silent


def snapshots(module):
    """A file in /dev/shm that a scheduler which is killed leaves behind: it goes with the folder of the run."""
    inner = module.shm_path_for

    @functools.wraps(inner)
    def path_for(*args, **kwargs):
        return "%s.%s" % (os.environ["OOMSIGHT_SEGMENT"], os.path.basename(inner(*args, **kwargs)))
    module.shm_path_for = path_for


def groups(module):
    """Process groups, before anything is measured."""
    during(module, "init_parallel_runtime", always("distributed_init", "communicators"), WEIGHTS)


def runner(module):
    """The model runner: weights, pools, graphs, steps."""
    cls = module.ModelRunner
    oomsight_phases.name_engine(module)
    during(cls, "init_torch_distributed", always("distributed_init", "communicators"), WEIGHTS)
    during(cls, "initialize", WEIGHTS, STAY)
    during(cls, "init_memory_pool", always("kv_alloc", "KV cache"), STAY)  # until 0.5.20 or so
    during(cls, "alloc_memory_pool", always("kv_alloc", "KV cache"), STAY)
    for name in ("init_attention_backends", "init_attention_backend", "init_cuda_graphs"):
        during(cls, name, takes("batch buffers"))
    during(cls, "sample", takes("logits and sampler"))
    load = cls.load_model

    @functools.wraps(load)
    def load_model(self, *args, **kwargs):
        before = held()
        result = load(self, *args, **kwargs)
        if not getattr(self, "is_draft_worker", False):
            oomsight_aid.tell("measured weights %d bytes" % (held() - before))
        return result
    cls.load_model = load_model
    forward = cls.forward

    @functools.wraps(forward)
    def forwarded(self, batch, *args, **kwargs):
        oomsight_aid._steps.begin_as(*shape_of(batch))
        try:
            return forward(self, batch, *args, **kwargs)
        finally:
            if oomsight_aid._steps.kind:
                oomsight_aid._steps.end(oomsight_aid._steps.kind)
    cls.forward = forwarded


def graphs(module):
    """Those who capture."""
    for name in ("DecodeCudaGraphRunner", "PrefillCudaGraphRunner", "CudaGraphRunner", "PiecewiseCudaGraphRunner"):
        cls = getattr(module, name, None)
        if cls is not None and cls.__module__ == module.__name__:  # not one that it only imports
            during(cls, "__init__", always("cudagraph_capture", "CUDA graphs"), STAY)


def request_table(module):
    """Outside the static share: a row of token places for each request."""
    during(module.ReqToTokenPool, "__init__", takes("batch buffers"))


def held():
    import torch
    return torch.cuda.memory_stats().get("allocated_bytes.all.current", 0)


def shape_of(batch):
    """(prefill or decode, requests, tokens) of a batch."""
    mode = batch.forward_mode
    if mode.is_idle():
        return None, 0, 0
    tokens = len(batch.input_ids) if batch.input_ids is not None else batch.batch_size
    return "prefill" if mode.is_extend() else "decode", batch.batch_size, tokens


def sizing(module):
    """What was left for the pools, and what the engine allowed itself."""
    cls = module.KVCacheConfigurator
    profile = cls._profile_available_bytes

    @functools.wraps(profile)
    def profiled(self, pre_model_load_memory, *args, **kwargs):
        available = profile(self, pre_model_load_memory, *args, **kwargs)
        import torch
        stats = torch.cuda.memory_stats()
        oomsight_aid.tell("at its second look: %d bytes in tensors, %d in segments, %d free" % (
            held(), stats.get("reserved_bytes.all.current", 0), torch.cuda.mem_get_info()[0]))
        oomsight_aid.tell("measured available %d bytes" % available)
        share = module.get_schedule().mem_fraction_static
        oomsight_aid.tell("measured budget %d bytes" % int(pre_model_load_memory * share * 2**30))
        oomsight_aid.tell("free before loading %d bytes, static fraction %s" % (int(pre_model_load_memory * 2**30), share))
        return available
    cls._profile_available_bytes = profiled


def sampler(module):
    """Sampled tokens are read back and must be tokens."""
    forward = module.Sampler.forward

    @functools.wraps(forward)
    def sampled(self, logits_output, *args, **kwargs):
        ids = oomsight_aid._steps.part("sampler", lambda: forward(self, logits_output, *args, **kwargs))
        oomsight_aid.write(ids, oomsight_aid._tokens.draw(ids.shape, logits_output.next_token_logits.shape[-1]))
        return ids
    module.Sampler.forward = sampled


def offsets(module):
    """FlashInfer compares the rows that it is given with an offset that a kernel of the engine would have written."""
    for name in ("BatchPrefillWithPagedKVCacheWrapper", "BatchPrefillWithRaggedKVCacheWrapper"):
        cls = getattr(module, name, None)
        if cls is None:
            continue

        def run(self, q, *args, _inner=cls.run, **kwargs):
            if is_here():
                self._qo_indptr_last = q.size(0)
            return _inner(self, q, *args, **kwargs)
        cls.run = run


def scheduler(module):
    """It is ready when its loop begins."""
    for name in ("event_loop_normal", "event_loop_overlap", "event_loop_pp", "dispatch_event_loop", "run_event_loop"):
        during(module.Scheduler, name, SERVING)


HOOKS = {"sglang.srt.distributed.bootstrap": groups, "sglang.srt.model_executor.model_runner": runner,
         "sglang.srt.mem_cache.kv_cache_configurator": sizing, "sglang.srt.layers.sampler": sampler,
         "flashinfer.prefill": offsets, "sglang.srt.managers.scheduler": scheduler, "sglang.kernels.jit.utils.compile.loader": unbuilt,
         "sglang.srt.mem_cache.memory_pool": request_table, "sglang.srt.managers.load_snapshot": snapshots, "sglang.srt.model_executor.runner.decode_cuda_graph_runner": graphs,
         "sglang.srt.model_executor.runner.prefill_cuda_graph_runner": graphs, "sglang.srt.model_executor.cuda_graph_runner": graphs,
         "sglang.srt.model_executor.piecewise_cuda_graph_runner": graphs}
oomsight_phases.HOOKS.update(HOOKS)
oomsight_aid.UNBUILT.append(is_here)
