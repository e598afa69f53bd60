"""vLLM in a dry run: its phases by its own functions, its figures to the byte, tokens for what its samplers would have drawn.

What oomsight_aid.py and oomsight_phases.py do for every engine is theirs; here are the places of vLLM 0.9 to 0.32 where it is done."""
import contextlib
import functools
import os
import sys

import oomsight_aid
import oomsight_phases
import oomsight_stacks
from oomsight_phases import STAY, always, during, takes

WEIGHTS = always("weight_load", "weights")
PROFILING = always("profile_run", "activations")
WOKEN = {"weights": "weights", "kv_cache": "KV cache", "cudagraph": "CUDA graphs"}


def warming(self):
    """Shapes and kernels are warmed up before capture; without graphs to capture it is the sampler alone."""
    config = getattr(self, "model_config", None)
    return ("sampler_warmup" if getattr(config, "enforce_eager", False) else "compile", "activations")


def worker(module):
    """vLLM's GPU worker, 0.9 to 0.32."""
    cls = module.Worker
    oomsight_phases.name_engine(module)
    during(cls, "init_device", always("init_free_memory_check", "batch buffers"), WEIGHTS)
    during(module, "init_worker_distributed_environment", always("distributed_init", "communicators"))
    during(cls, "load_model", WEIGHTS, STAY)
    during(cls, "initialize_from_config", always("kv_alloc", "KV cache"), STAY)
    during(cls, "compile_or_warm_up_model", warming, always("runtime_prefill", "activations"))
    # the newer runner warms its sampler up here, before capture
    during(module, "warmup_kernels", always("sampler_warmup", "logits and sampler"))
    determine = cls.determine_available_memory

    @functools.wraps(determine)
    def determine_available_memory(self):
        available = determine(self)
        if not self.cache_config.kv_cache_memory_bytes and hasattr(self, "requested_memory"):
            oomsight_aid.tell("measured budget %d bytes" % self.requested_memory)
            estimate = getattr(self, "cudagraph_memory_estimate", 0)
            if estimate and getattr(module.envs, "VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS", False):
                oomsight_aid.tell("measured graph estimate %d bytes" % estimate)
        return available
    cls.determine_available_memory = determine_available_memory


def runner(module):
    """Both of vLLM's model runners."""
    cls = module.GPUModelRunner

    def profiling(self):
        seen = getattr(self, "supports_mm_inputs", False)
        return ("mm_profile", "encoder") if seen else PROFILING()

    def dummy(self):
        """The encoder is through when the model itself runs."""
        return PROFILING() if oomsight_phases._now[0] == "mm_profile" else None

    def sampler(self):
        if oomsight_phases._now[0] == "compile":
            return "sampler_warmup", "logits and sampler"
        return takes("logits and sampler")()

    def capture(self):
        return takes("CUDA graphs")() if oomsight_phases._now[0] == "cudagraph_profile" else ("cudagraph_capture", "CUDA graphs")

    def captured(self):
        """The sampler's warm-up comes next; after a trial the trial goes on."""
        return ("sampler_warmup", "logits and sampler") if oomsight_phases._now[0] == "cudagraph_capture" else None

    during(cls, "__init__", always("weight_load", "batch buffers"))
    during(cls, "profile_run", profiling, STAY)
    during(cls, "_dummy_run", dummy, STAY)
    during(cls, "_dummy_sampler_run", sampler)
    during(cls, "_dummy_pooler_run", sampler)
    during(cls, "profile_cudagraph_memory", always("cudagraph_profile", "CUDA graphs"), STAY)
    during(cls, "initialize_kv_cache", takes("KV cache"))
    during(cls, "capture_model", capture, captured)
    during(cls, "_sample", takes("logits and sampler"))
    during(cls, "sample", takes("logits and sampler"))


def loader(module):
    """vLLM's loaders: the weights are there, and are put into their final form."""
    during(module, "process_weights_after_loading", always("quant_postprocess", "weights"))


def waking(module):
    """vLLM's sleep mode: what wakes is mapped again for the owner it had, which the allocator keeps as a tag."""
    create = module.create_and_map

    @functools.wraps(create)
    def created(handle):
        data = module.CuMemAllocator.get_instance().pointer_to_data.get(handle[2])
        before, owner = oomsight_phases._now, WOKEN.get(getattr(data, "tag", None))
        if owner and oomsight_phases._now[0]:
            oomsight_phases.enter(oomsight_phases._now[0], owner)
        result = create(handle)
        if before[0]:
            oomsight_phases.enter(*before)
        return result
    module.create_and_map = created


def watch_steps(module):
    """vLLM's model runners, V1 and V2."""
    import torch
    execute = module.GPUModelRunner.execute_model

    def executed(self, scheduler_output, *args, **kwargs):
        oomsight_aid._steps.begin(scheduler_output)
        if oomsight_aid._steps.kind is None:
            return execute(self, scheduler_output, *args, **kwargs)
        try:
            return execute(self, scheduler_output, *args, **kwargs)
        except torch.cuda.OutOfMemoryError:
            oomsight_aid.tell("out of memory in %s, step %d: %d requests, %d tokens" % ((oomsight_aid._steps.kind,) + oomsight_aid._steps.shape))
            raise
        finally:
            oomsight_aid._steps.end(oomsight_aid._steps.kind)
    module.GPUModelRunner.execute_model = executed
    listed = getattr(module.GPUModelRunner, "_to_list", None)

    def as_list(self, sampled_token_ids):
        """Without asynchronous scheduling the V1 runner copies 32 bits into 64: a kernel converts them on the device, and none computed."""
        listed(self, sampled_token_ids)
        return oomsight_aid._host(sampled_token_ids).tolist()
    if listed:
        module.GPUModelRunner._to_list = as_list


def sample(module):
    """vLLM's V1 sampler: what was sampled is read back and must be a token."""
    import torch
    forward = module.Sampler.forward

    def sampled(self, logits, *args, **kwargs):
        try:
            output = oomsight_aid._steps.part("sampler", lambda: forward(self, logits, *args, **kwargs))
        except torch.cuda.OutOfMemoryError:
            oomsight_aid.tell("out of memory in the sampler")
            raise
        ids = output.sampled_token_ids
        drawn = oomsight_aid._tokens.draw(ids.shape, logits.shape[-1])
        oomsight_aid._tokens.obey(drawn)
        oomsight_aid.write(ids, drawn)
        oomsight_aid._tokens.rank(getattr(output, "logprobs_tensors", None), drawn)
        return output
    module.Sampler.forward = sampled


def _through(batch, count):
    """Of the first requests of a batch of the V2 runner, those whose prompt this step brings to its end."""
    torch = sys.modules["torch"]
    return batch.seq_lens_cpu_upper_bound[:count] >= torch.from_numpy(batch.prefill_len_np[:count])


def sample_v2(module):
    """The sampler of vLLM's V2 runner: a kernel tells how many tokens each request got. One, but none while its prompt is
    not through; the host knows the lengths as well."""
    import torch
    call = module.Sampler.__call__

    def sampled(self, logits, input_batch, *args, **kwargs):
        try:
            output = oomsight_aid._steps.part("sampler", lambda: call(self, logits, input_batch, *args, **kwargs))
        except torch.cuda.OutOfMemoryError:
            oomsight_aid.tell("out of memory in the sampler")
            raise
        ids = output.sampled_token_ids
        drawn = oomsight_aid._tokens.draw(ids.shape, logits.shape[-1])
        oomsight_aid._tokens.obey(drawn)
        oomsight_aid.write(ids, drawn)
        oomsight_aid._tokens.rank(getattr(output, "logprobs_tensors", None), drawn)
        if len(ids) == input_batch.num_reqs:  # no draft: a row of logits for each request
            oomsight_aid.write(output.num_sampled, _through(input_batch, len(ids)))
            oomsight_aid.write(output.num_rejected, torch.zeros(len(ids), dtype=torch.int32, device="cpu"))
        return output
    module.Sampler.__call__ = sampled


def accept(module):
    """vLLM's V1 rejection sampler: how many drafted tokens were taken, by the seed; the places behind are -1."""
    import torch
    forward = module.RejectionSampler.forward

    def accepted(self, metadata, *args, **kwargs):
        output = forward(self, metadata, *args, **kwargs)
        ids = output if isinstance(output, torch.Tensor) else output.sampled_token_ids
        drawn = oomsight_aid._tokens.draw(ids.shape, oomsight_aid._Tokens.WORDS)
        oomsight_aid._tokens.allowed = {}
        for row, drafted in enumerate(metadata.num_draft_tokens):
            taken = int(oomsight_aid._tokens.draw((1,), oomsight_aid._Tokens.WORDS)) % (drafted + 1)
            drawn[row, taken + 1:] = -1
        oomsight_aid.write(ids, drawn)
        oomsight_aid._tokens.rank(getattr(output, "logprobs_tensors", None))
        return output
    module.RejectionSampler.forward = accepted


def accept_v2(module):
    """The rejection sampler of the V2 runner: of a request's rows of logits the last is no draft's. A prompt that is not through
    gets nothing and has nothing rejected, as in the kernel that counts them."""
    import torch
    call = module.RejectionSampler.__call__

    def accepted(self, logits, input_batch, *args, **kwargs):
        output = oomsight_aid._steps.part("sampler", lambda: call(self, logits, input_batch, *args, **kwargs))
        ids = output.sampled_token_ids
        oomsight_aid.write(ids, oomsight_aid._tokens.draw(ids.shape, logits.shape[-1]))
        oomsight_aid._tokens.allowed = {}
        rows = torch.from_numpy(input_batch.cu_num_logits_np[1:len(ids) + 1] - input_batch.cu_num_logits_np[:len(ids)]).to(torch.int32)
        taken = 1 + oomsight_aid._tokens.draw(rows.shape, oomsight_aid._Tokens.WORDS).to(torch.int32) % rows
        through = _through(input_batch, len(ids))
        oomsight_aid.write(output.num_sampled, taken * through)
        oomsight_aid.write(output.num_rejected, (rows - taken) * through)
        oomsight_aid._tokens.rank(getattr(output, "logprobs_tensors", None))
        return output
    module.RejectionSampler.__call__ = accepted


def obey_grammar_v2(module):
    worker = module.StructuredOutputsWorker
    apply = worker.apply_grammar_bitmask

    def applied(self, logits, input_batch, grammar_req_ids, grammar_bitmask, *args, **kwargs):
        row_of = {name: row for row, name in enumerate(input_batch.req_ids)}
        oomsight_aid._tokens.allow(grammar_bitmask, [row_of[name] for name in grammar_req_ids])
        return apply(self, logits, input_batch, grammar_req_ids, grammar_bitmask, *args, **kwargs)
    worker.apply_grammar_bitmask = applied


def exact_figures(module):
    """vLLM's GPU worker: weights, torch peak and memory for the KV cache, to the byte."""
    profiling, load = module.memory_profiling, module.Worker.load_model
    determine, init = module.Worker.determine_available_memory, module.Worker.init_device
    results = []

    @contextlib.contextmanager
    def profile(*args, **kwargs):
        with profiling(*args, **kwargs) as result:
            results.append(result)
            yield result

    def init_device(self, *args, **kwargs):
        """The device is chosen, then what is free is looked at, then the first tensor is made: the history begins in between."""
        look = module.MemorySnapshot

        def looked(*words, **more):
            module.MemorySnapshot = look
            oomsight_aid._snapshot.begin(self.rank, self.parallel_config.world_size)
            return look(*words, **more)
        if os.environ.get("OOMSIGHT_SNAPSHOT"):
            module.MemorySnapshot = looked
        return init(self, *args, **kwargs)

    def load_model(self, *args, **kwargs):
        done = load(self, *args, **kwargs)
        oomsight_aid.tell("measured weights %d bytes" % self.model_runner.model_memory_usage)
        return done

    def determine_available_memory(self):
        available = determine(self)
        for result in results:  # 0.18 to 0.20 correct it after profiling
            oomsight_aid.tell("measured peak %d bytes" % result.torch_peak_increase)
        oomsight_aid.tell("measured available %d bytes" % available)
        return available

    module.memory_profiling = profile
    module.Worker.init_device = init_device
    module.Worker.load_model = load_model
    module.Worker.determine_available_memory = determine_available_memory


def name_repack(module):
    """vLLM's loaders: with dummy weights no line says that loading is done and repacking begins."""
    process = module.process_weights_after_loading

    def named(*args, **kwargs):
        oomsight_aid.tell("weights are repacked")
        return process(*args, **kwargs)
    module.process_weights_after_loading = named


def gptq_whole(module):
    """vLLM's GPTQ configs read from the weight files which layers are quantised. Without files that would be none, so a
    directory with a config alone would load in half precision; here it is all of them, as in nearly every checkpoint."""
    for cls in list(vars(module).values()):
        if not (isinstance(cls, type) and "maybe_update_config" in vars(cls) and "GPTQ" in cls.__name__):
            continue

        def update(self, *args, _inner=cls.maybe_update_config, **kwargs):
            _inner(self, *args, **kwargs)
            if not self.modules_in_block_to_quantize:
                self.modules_in_block_to_quantize = ["."]  # part of every layer's name
                oomsight_aid.tell("no weight files: every linear layer of the GPTQ model is taken as quantised")
        cls.maybe_update_config = update


def one_runtime(module):
    """vLLM calls a few functions of the CUDA runtime by hand, sleep's copies among them, in the first library of that name that is mapped.
    PyTorch maps the real one too, by its path, though nothing calls it: the stand-in is the one."""
    find = module.find_loaded_library

    def found(name):
        preloaded = os.environ.get("LD_PRELOAD", "").replace(" ", ":").split(":")
        return next((path for path in preloaded if os.path.basename(path).startswith(name + ".so")), None) or find(name)
    module.find_loaded_library = found


oomsight_aid.HOOKS.update({
    "vllm.v1.sample.sampler": sample, "vllm.v1.sample.rejection_sampler": accept, "vllm.v1.worker.gpu.sample.sampler": sample_v2,
    "vllm.v1.worker.gpu.spec_decode.rejection_sampler": accept_v2, "vllm.v1.worker.gpu.structured_outputs": obey_grammar_v2,
    "vllm.v1.worker.gpu_model_runner": watch_steps, "vllm.v1.worker.gpu.model_runner": watch_steps,
    "vllm.v1.worker.gpu_worker": exact_figures, "vllm.model_executor.model_loader.utils": name_repack,
    "vllm.distributed.device_communicators.cuda_wrapper": one_runtime,
    "vllm.model_executor.layers.quantization.gptq": gptq_whole,
    "vllm.model_executor.layers.quantization.gptq_marlin": gptq_whole,
    "vllm.model_executor.layers.quantization.auto_gptq": gptq_whole})
oomsight_phases.HOOKS.update({
    "vllm.v1.worker.gpu_worker": worker, "vllm.v1.worker.gpu_model_runner": runner, "vllm.v1.worker.gpu.model_runner": runner,
    "vllm.model_executor.model_loader.utils": loader, "vllm.device_allocator.cumem": waking})
oomsight_stacks.HOOKS["vllm.v1.worker.gpu_worker"] = oomsight_stacks.hook
