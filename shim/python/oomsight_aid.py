"""Values that a size depends on, computed for real.

Kernels do nothing in a dry run, but some engines read numbers back from the device and allocate by them. Device memory
can be addressed by the host, so integer operators on small tensors are run by PyTorch's CPU kernels on the same bytes, at
the level of the dispatcher; every other tensor goes the way it always went. What takes its size from values that nobody
computed is named on stderr, once per operator. Sampled tokens are token 0: which one it is moves no memory.

Engines also print their figures in GiB with two decimals. The same figures are printed again to the byte, for the report of
the dry run to read (src/dryrun/log.c). Phases are oomsight_phases.py's.

Loaded by sitecustomize.py when torch is imported; nothing here runs in a process that does not use torch."""
import contextlib
import ctypes
import importlib.abc
import importlib.util
import os
import sys
import warnings

import oomsight_phases

SMALL = 1 << 16  # elements
_told = set()
_libraries = []


def tell(text):
    if text not in _told:
        _told.add(text)
        sys.stderr.write("oomsight dryrun: %s\n" % text)


def install(torch):
    aten = torch.ops.aten
    integers = {torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64, torch.bool}

    def small(value):
        return not isinstance(value, torch.Tensor) or (
            type(value) is torch.Tensor and value.dtype in integers and value.numel() <= SMALL)

    def host(value):
        """The same bytes as a tensor of the CPU."""
        if not isinstance(value, torch.Tensor) or value.device.type != "cuda":
            return value
        if value.numel() == 0:
            return torch.empty(value.shape, dtype=value.dtype)
        last = sum((size - 1) * stride for size, stride in zip(value.shape, value.stride()))
        span = (last + 1) * value.element_size()
        flat = torch.frombuffer((ctypes.c_char * span).from_address(value.data_ptr()), dtype=value.dtype)
        return torch.as_strided(flat, value.shape, value.stride())

    def device_of(values):
        return next(v.device for v in values if isinstance(v, torch.Tensor) and v.device.type == "cuda")

    def put(result, device):
        out = torch.empty(result.shape, dtype=result.dtype, device=device)
        if result.numel():
            host(out).copy_(result)
        return out

    def elementwise(overload, out_overload, dtype_of):
        def run(*args, **kwargs):
            if all(map(small, args)):
                result = overload(*map(host, args), **kwargs)
                if result.dtype in integers:
                    return put(result, device_of(args))
            # the out form is the same kernel: it allocates the result and launches
            out = torch.empty(0, dtype=dtype_of(*args), device=device_of(args))
            if overload._overloadname != "Scalar":
                args = [as_tensor(a) for a in args]
            return out_overload(*args, **kwargs, out=out)
        return run

    def as_tensor(value):
        """A number that came in a tensor's place."""
        if isinstance(value, torch.Tensor):
            return value
        return torch.scalar_tensor(value, dtype=torch.get_default_dtype() if isinstance(value, float) else torch.int64)

    def cumsum(self, dim, *, dtype=None):
        if small(self) and (dtype is None or dtype in integers):
            return put(aten.cumsum.default(host(self), dim, dtype=dtype), self.device)
        kind = dtype or (torch.int64 if self.dtype in integers else self.dtype)
        return aten.cumsum.out(self, dim, dtype=dtype, out=torch.empty(0, dtype=kind, device=self.device))

    def repeat_interleave(repeats, *, output_size=None):
        if small(repeats):
            return put(aten.repeat_interleave.Tensor(host(repeats), output_size=output_size), repeats.device)
        if output_size is None:
            tell("repeat_interleave takes its size from %d values that no kernel computed" % repeats.numel())
            raise RuntimeError("oomsight dryrun: repeat_interleave without output_size is not known here")
        return torch.empty(output_size, dtype=repeats.dtype, device=repeats.device)

    def nonzero(self):
        if not (self.dtype in integers and self.numel() <= SMALL):
            tell("nonzero takes its size from %d values that no kernel computed; taken as none" % self.numel())
            return torch.empty((0, self.dim()), dtype=torch.int64, device=self.device)
        return put(aten.nonzero.default(host(self)), self.device)

    def same(self, other, alpha=1):
        return torch.result_type(self, other)

    def truth(self, other):
        return torch.bool

    library = torch.library.Library("aten", "IMPL")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a kernel is replaced is the point
        for name, dtype_of in (("add", same), ("sub", same), ("mul", same), ("floor_divide", same)):
            packet = getattr(aten, name)
            overload = packet.default if name == "floor_divide" else packet.Tensor
            library.impl(overload.name(), elementwise(overload, packet.out, dtype_of), "CUDA")
        for name in ("eq", "ne", "lt", "le", "gt", "ge"):
            packet = getattr(aten, name)
            library.impl(packet.Tensor.name(), elementwise(packet.Tensor, packet.Tensor_out, truth), "CUDA")
            library.impl(packet.Scalar.name(), elementwise(packet.Scalar, packet.Scalar_out, truth), "CUDA")
        library.impl("aten::cumsum", cumsum, "CUDA")
        library.impl("aten::repeat_interleave.Tensor", repeat_interleave, "CUDA")
        library.impl("aten::nonzero", nonzero, "CUDA")
    _libraries.append(library)  # dropping it would undo it


def sample_zeros(module):
    """vLLM's V1 sampler: what was sampled is read back and must be a token."""
    import torch
    forward = module.Sampler.forward

    def zeros(self, *args, **kwargs):
        try:
            output = forward(self, *args, **kwargs)
        except torch.cuda.OutOfMemoryError:
            tell("out of memory in the sampler")
            raise
        ids = output.sampled_token_ids
        output.sampled_token_ids = torch.zeros(ids.shape, dtype=torch.int64).to(ids.device)
        return output
    module.Sampler.forward = zeros


def exact_figures(module):
    """vLLM's GPU worker: weights, torch peak and memory for the KV cache, to the byte."""
    profiling, load = module.memory_profiling, module.Worker.load_model
    determine = module.Worker.determine_available_memory
    results = []

    @contextlib.contextmanager
    def profile(*args, **kwargs):
        with profiling(*args, **kwargs) as result:
            results.append(result)
            yield result

    def load_model(self, *args, **kwargs):
        done = load(self, *args, **kwargs)
        tell("measured weights %d bytes" % self.model_runner.model_memory_usage)
        return done

    def determine_available_memory(self):
        available = determine(self)
        for result in results:  # 0.18 to 0.20 correct it after profiling
            tell("measured peak %d bytes" % result.torch_peak_increase)
        tell("measured available %d bytes" % available)
        return available

    module.memory_profiling = profile
    module.Worker.load_model = load_model
    module.Worker.determine_available_memory = determine_available_memory


def name_repack(module):
    """vLLM's loaders: with dummy weights no line says that loading is done and repacking begins."""
    process = module.process_weights_after_loading

    def named(*args, **kwargs):
        tell("weights are repacked")
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
                tell("no weight files: every linear layer of the GPTQ model is taken as quantised")
        cls.maybe_update_config = update


class _Silent:
    """Kernels that would do nothing here anyway."""

    def __getattr__(self, name):
        return self

    def __call__(self, *args, **kwargs):
        return None


def sampling_unbuilt(module):
    """FlashInfer compiles its sampling kernels on first use, minutes of nvcc. They only fill tensors that its Python side
    has allocated (0.3.1 to 0.7.0), so in a dry run they need not be there, and neither need a compiler."""
    build = module.JitSpec.build_and_load

    def build_and_load(self, *args, **kwargs):
        return _Silent() if self.name == "sampling" else build(self, *args, **kwargs)
    module.JitSpec.build_and_load = build_and_load


HOOKS = {"torch": install, "flashinfer.jit.core": sampling_unbuilt, "vllm.v1.sample.sampler": sample_zeros,
         "vllm.v1.worker.gpu_worker": exact_figures, "vllm.model_executor.model_loader.utils": name_repack,
         "vllm.model_executor.layers.quantization.gptq": gptq_whole,
         "vllm.model_executor.layers.quantization.gptq_marlin": gptq_whole,
         "vllm.model_executor.layers.quantization.auto_gptq": gptq_whole}


class _Loader(importlib.abc.Loader):
    def __init__(self, inner):
        self.inner = inner

    def create_module(self, spec):
        return self.inner.create_module(spec)

    def exec_module(self, module):
        self.inner.exec_module(module)
        for hooks in (HOOKS, oomsight_phases.HOOKS):
            try:
                if module.__name__ in hooks:
                    hooks[module.__name__](module)
            except Exception as error:  # a new torch or vLLM: say so, and let it run without
                tell("no aid for %s: %r" % (module.__name__, error))

    def __getattr__(self, name):
        return getattr(self.inner, name)


class _Finder(importlib.abc.MetaPathFinder):
    busy = False

    def find_spec(self, name, path, target=None):
        if (name not in HOOKS and name not in oomsight_phases.HOOKS) or self.busy:
            return None
        self.busy = True
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self.busy = False
        if spec and spec.loader:
            spec.loader = _Loader(spec.loader)
        return spec


def wait():
    if not os.environ.get("OOMSIGHT_NO_AID"):
        sys.meta_path.insert(0, _Finder())
