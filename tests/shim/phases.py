"""The module in the engine's processes tells phases in the order of a start, with words of the ledger. A made-up engine stands in:
what real ones do is tests/oracle/beside.py's business."""
import os
import re
import sys
import types

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "shim", "python"))
import oomsight_phases as phases  # noqa: E402

told = []


def words(name):
    with open(os.path.join(ROOT, "src", "ledger", name + ".def"), encoding="utf-8") as f:
        return set(re.findall(r'^%s\(\w+, "([^"]+)"' % name.upper(), f.read(), re.M))


def note(phase, owner):
    if (phase, owner) != phases._now:
        phases._now = (phase, owner)
        told.append((phase, owner))


class GPUModelRunner:
    supports_mm_inputs = False

    def __init__(self):
        pass

    def profile_run(self):
        self._dummy_run()
        self._dummy_sampler_run()

    def profile_cudagraph_memory(self):
        self.initialize_kv_cache()
        self.capture_model()

    def _dummy_run(self):
        pass

    def _dummy_sampler_run(self):
        pass

    def initialize_kv_cache(self):
        pass

    def capture_model(self):
        pass


class Worker:
    cache_config = types.SimpleNamespace(kv_cache_memory_bytes=1)

    def init_device(self):
        module.init_worker_distributed_environment()
        self.runner = GPUModelRunner()

    def load_model(self):
        loader.process_weights_after_loading()

    def determine_available_memory(self):
        self.runner.profile_run()
        self.runner.profile_cudagraph_memory()
        return 1

    def initialize_from_config(self):
        self.runner.initialize_kv_cache()

    def compile_or_warm_up_model(self):
        self.runner._dummy_run()
        self.runner.capture_model()
        self.runner._dummy_sampler_run()


module = types.SimpleNamespace(Worker=Worker, init_worker_distributed_environment=lambda: None, envs=None)
loader = types.SimpleNamespace(process_weights_after_loading=lambda: None)


def main():
    sys.modules["oomsight_aid"] = aid = types.ModuleType("oomsight_aid")
    aid.HOOKS, aid.UNBUILT = {}, []
    import oomsight_engine_sglang
    import oomsight_engine_vllm
    phases.enter = note
    oomsight_engine_vllm.worker(module)
    oomsight_engine_vllm.runner(types.SimpleNamespace(GPUModelRunner=GPUModelRunner))
    oomsight_engine_vllm.loader(loader)
    worker = Worker()
    for step in ("init_device", "load_model", "determine_available_memory", "initialize_from_config", "compile_or_warm_up_model"):
        getattr(worker, step)()
    want = [("init_free_memory_check", "batch buffers"), ("distributed_init", "communicators"), ("init_free_memory_check", "batch buffers"),
            ("weight_load", "batch buffers"), ("init_free_memory_check", "batch buffers"), ("weight_load", "weights"),
            ("quant_postprocess", "weights"), ("weight_load", "weights"),
            ("profile_run", "activations"), ("profile_run", "logits and sampler"), ("profile_run", "activations"),
            ("cudagraph_profile", "CUDA graphs"), ("cudagraph_profile", "KV cache"), ("cudagraph_profile", "CUDA graphs"),
            ("kv_alloc", "KV cache"), ("compile", "activations"), ("cudagraph_capture", "CUDA graphs"),
            ("sampler_warmup", "logits and sampler"), ("runtime_prefill", "activations")]
    if told != want:
        print("told %s\nwant %s" % (told, want))
        return 1
    source = "".join(open(part.__file__, encoding="utf-8").read() for part in (oomsight_engine_vllm, oomsight_engine_sglang))
    known = words("phase") | words("owner")
    strange = [w for pair in re.findall(r'(?:always|takes)\("([^"]+)"(?:, "([^"]+)")?\)', source) for w in pair if w and w not in known]
    if strange:
        print("no words of the ledger: %s" % strange)
        return 1
    GPUModelRunner.supports_mm_inputs = True
    told.clear()
    worker.runner.profile_run()
    if told[:2] != [("mm_profile", "encoder"), ("profile_run", "activations")]:
        print("an encoder is not profiled first: %s" % told)
        return 1
    worker.model_config = types.SimpleNamespace(enforce_eager=True)
    told.clear()
    worker.compile_or_warm_up_model()
    if "compile" in [phase for phase, _ in told]:
        print("an eager start compiles nothing: %s" % told)
        return 1
    os.environ["OOMSIGHT_SEGMENT"] = "/folder/of/the/run/segment"
    slots = types.SimpleNamespace(shm_path_for=lambda name: "/dev/shm/sglang_loads_%s.shm" % name)
    oomsight_engine_sglang.snapshots(slots)
    if slots.shm_path_for("x") != "/folder/of/the/run/segment.sglang_loads_x.shm":
        print("a file is left behind: %s" % slots.shm_path_for("x"))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
