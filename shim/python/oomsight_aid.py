"""Values that a size depends on, computed for real.

Kernels do nothing in a dry run, but some engines read numbers back from the device and allocate by them. Device memory
can be addressed by the host, so integer operators on small tensors are run by PyTorch's CPU kernels on the same bytes, at
the level of the dispatcher (here those whose size or way depends on values, the others in oomsight_values.py); every other tensor
goes the way it always went. What takes its size from values that nobody
computed is named on stderr, once per operator. Sampled tokens come from a seed: which one it is moves no memory.

Engines also print their figures in GiB with two decimals. The same figures are printed again to the byte, for the report of
the dry run to read (src/dryrun/log.c). Phases are oomsight_phases.py's.

Loaded by sitecustomize.py when torch is imported; nothing here runs in a process that does not use torch."""
import contextlib
import ctypes
import importlib
import importlib.abc
import importlib.util
import os
import sys
import warnings

import oomsight_phases
import oomsight_stacks
import oomsight_values

_told = set()
_libraries = []


def tell(text):
    if text not in _told:
        _told.add(text)
        with contextlib.suppress(Exception):  # a program may have closed it, or put its own there
            sys.stderr.write("oomsight dryrun: %s\n" % text)


def _host(value):
    """The same bytes as a tensor of the CPU."""
    torch = sys.modules["torch"]
    if not isinstance(value, torch.Tensor) or value.device.type != "cuda":
        return value
    if value.numel() == 0:
        return torch.empty(value.shape, dtype=value.dtype, device="cpu")
    last = sum((size - 1) * stride for size, stride in zip(value.shape, value.stride()))
    span = (last + 1) * value.element_size()
    flat = torch.frombuffer((ctypes.c_char * span).from_address(value.data_ptr()), dtype=value.dtype)
    return torch.as_strided(flat, value.shape, value.stride())


def install(torch):
    aten = torch.ops.aten
    integers = {torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64, torch.bool}

    def small(value):
        return not isinstance(value, torch.Tensor) or (
            type(value) is torch.Tensor and value.dtype in integers and value.numel() <= oomsight_values.SMALL)

    host = _host

    def device_of(values):
        return next(v.device for v in values if isinstance(v, torch.Tensor) and v.device.type == "cuda")

    def put(result, device):
        out = torch.empty(result.shape, dtype=result.dtype, device=device)
        if result.numel():
            host(out).copy_(result)
        return out

    def one(value):
        """A number, of any type: what is compared with it decides which way an engine goes."""
        return not isinstance(value, torch.Tensor) or (type(value) in (torch.Tensor, torch.nn.Parameter) and value.numel() == 1)

    def elementwise(overload, out_overload, dtype_of):
        def attempt(*args, **kwargs):
            if all(map(small, args)) or (dtype_of is truth and all(map(one, args))):
                result = overload(*map(host, args), **kwargs)
                if result.dtype in integers:
                    return put(result, device_of(args))
            return NotImplemented

        def run(*args, **kwargs):
            done = oomsight_values.attempted(torch, attempt, *args, **kwargs)
            if done is not NotImplemented:
                return done
            # the out form is the same kernel: it allocates the result and launches
            out = torch.empty(0, dtype=dtype_of(*args), device=device_of(args))
            if overload._overloadname != "Scalar":
                args = [oomsight_values.as_tensor(torch, value, args) for value in args]
            return out_overload(*args, **kwargs, out=out)
        return run

    def cumsum(self, dim, *, dtype=None):
        def attempt():
            return put(aten.cumsum.default(host(self), dim, dtype=dtype), self.device)
        done = oomsight_values.attempted(torch, attempt) if small(self) and (dtype is None or dtype in integers) else NotImplemented
        if done is not NotImplemented:
            return done
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
        if not (self.dtype in integers and self.numel() <= oomsight_values.SMALL):
            tell("nonzero takes its size from %d values that no kernel computed; taken as none" % self.numel())
            return torch.empty((0, self.dim()), dtype=torch.int64, device=self.device)
        return put(aten.nonzero.default(host(self)), self.device)

    def sized_by_values(overload, most=0):
        """Small integers by the CPU's kernel; a size that would follow from others is refused, because none can be told. Of `most` elements
        it may follow from what lies there: it is no larger (scales of an NVFP4 layer are compared so)."""
        def run(*args, **kwargs):
            elements = sum(a.numel() for a in args if isinstance(a, torch.Tensor))
            if not all(map(small, args)) and elements <= most:
                tell("%s takes its size from %d values as they lie there" % (overload.name(), elements))
            elif not all(map(small, args)):
                tell("%s takes its size from %d values that no kernel computed" % (overload.name(), elements))
                raise RuntimeError("oomsight dryrun: %s of values that no kernel computed is not known here" % overload.name())
            results = overload(*map(host, args), **kwargs)
            device = device_of(args)
            return tuple(put(r, device) for r in results) if isinstance(results, tuple) else put(results, device)
        return run

    counted = sized_by_values(aten.bincount.default)

    def bincount(self, weights=None, minlength=0):
        """What is counted gives the size; what it weighs needs no values."""
        if small(weights) or not small(self):
            return counted(self, weights, minlength)
        count = aten.bincount.default(host(self), None, minlength)
        return torch.empty(count.shape, dtype=torch.float32 if weights.dtype == torch.float32 else torch.float64, device=self.device)

    def masked_select(self, mask):
        """The mask gives the size; what is selected needs no values."""
        if not small(mask):
            tell("masked_select takes its size from %d values that no kernel computed; taken as none" % mask.numel())
            return torch.empty(0, dtype=self.dtype, device=self.device)
        if small(self):
            return put(aten.masked_select.default(host(self), host(mask)), device_of([self, mask]))
        count = int(torch.broadcast_to(host(mask), torch.broadcast_shapes(self.shape, mask.shape)).sum())
        return torch.empty(count, dtype=self.dtype, device=device_of([self, mask]))

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
        library.impl("aten::masked_select", masked_select, "CUDA")
        library.impl("aten::bincount", bincount, "CUDA")
        for overload in (aten._unique2.default, aten.unique_dim.default, aten.unique_consecutive.default):
            library.impl(overload.name(), sized_by_values(overload, oomsight_values.FILLED), "CUDA")
    _libraries.extend((library, oomsight_values.install(torch, host, small, integers, _indices.draw, tell), oomsight_values.convolve(torch),
                       oomsight_values.factorise(torch, host)))


class _Tokens:
    """What a sampler would have drawn: numbers from a seed (OOMSIGHT_SEED), the same in every rank, written where the engine's own
    tensor lies and so with the type that the engine has. A request under a grammar gets a token that the grammar allows."""
    WORDS = 1000  # the stub tokenizer of a dry run knows these, and so do real ones; 0 to 2 are left to those that end a text

    def __init__(self):
        self.generator = None
        self.allowed = {}  # row of the logits -> bits of the tokens that a grammar allows

    def draw(self, shape, vocab):
        import torch
        if self.generator is None:
            self.generator = torch.Generator("cpu").manual_seed(int(os.environ.get("OOMSIGHT_SEED", "0")))
        most = max(1, min(self.WORDS, vocab))
        return torch.randint(min(3, most - 1), most, shape, generator=self.generator, device="cpu")

    def allow(self, bits, rows=None):
        """`bits`: 32 tokens in an integer, a row per request; -1 all over: no grammar."""
        for at, row in enumerate(rows if rows is not None else range(len(bits))):
            if not (bits[at] == -1).all():
                self.allowed[int(row)] = bits[at]

    def obey(self, drawn):
        """Rows of `drawn` under a grammar, redrawn; what was allowed holds for one step."""
        for row, bits in self.allowed.items():
            words = bits.tolist()
            legal = [32 * i + bit for i, word in enumerate(words) if word for bit in range(32) if word >> bit & 1]
            if row < len(drawn) and legal:
                drawn[row] = legal[int(self.draw((1,), self.WORDS)) % len(legal)]
        self.allowed = {}

    def rank(self, ranked, drawn=()):
        """Log probabilities were asked for: the token that was drawn comes first, the others are any."""
        import torch
        if ranked is None or ranked.logprob_token_ids is None or not ranked.logprob_token_ids.numel():
            return
        ids = (3 + torch.arange(ranked.logprob_token_ids.shape[-1], device="cpu")).expand(ranked.logprob_token_ids.shape).clone()
        if len(ids) == len(drawn):
            ids[:, 0] = drawn[:, 0]
        write(ranked.logprob_token_ids, ids)
        write(ranked.logprobs, torch.full(ranked.logprobs.shape, -1.0, device="cpu"))
        if ranked.selected_token_ranks is not None:
            write(ranked.selected_token_ranks, torch.ones(ranked.selected_token_ranks.shape, dtype=torch.int64, device="cpu"))


_tokens, _indices = _Tokens(), _Tokens()  # of samplers; of whatever else takes an index from values that nobody computed


class _Steps:
    """What the steps of a serving engine take at most beyond what was held when they began: the model in prefill and in decode,
    and the sampler. Kept in a file beside the segment, which the report of the dry run reads (src/dryrun/serving.c)."""

    def __init__(self):
        self.file = self.kind = None
        self.number = 0
        self.most = {}

    def serving(self):
        """Engines run steps of their own before they are ready."""
        return (oomsight_phases.now() or "").startswith("runtime")

    def held(self):
        return sys.modules["torch"]._C._cuda_memoryStats(self.device)["allocated_bytes"]["all"]

    def begin(self, scheduled):
        tokens = scheduled.num_scheduled_tokens
        self.kind = None
        if tokens:
            self.begin_as("prefill" if scheduled.scheduled_new_reqs or max(tokens.values()) > 1 else "decode", len(tokens), sum(tokens.values()))

    def begin_as(self, kind, requests, tokens):
        """kind None: nothing is done in this step."""
        self.kind = kind if self.serving() else None
        if self.kind is None:
            return
        self.number += 1
        self.shape = self.number, requests, tokens
        self.device = sys.modules["torch"].cuda.current_device()
        self.mark()

    def mark(self):
        sys.modules["torch"]._C._cuda_resetPeakMemoryStats(self.device)
        self.before = self.held()["current"]

    def end(self, what):
        """The part that began with mark() is over."""
        taken = self.held()["peak"] - self.before
        if taken <= self.most.get(what, (-1,))[0]:
            return
        self.most[what] = (taken,) + self.shape
        if self.file is None:
            self.file = os.open("%s.steps.%d" % (os.environ["OOMSIGHT_SEGMENT"], os.getpid()),
                                os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        lines = "".join("%-8s %20d %12d %12d %12d\n" % ((word,) + self.most[word]) for word in sorted(self.most))
        os.pwrite(self.file, lines.encode(), 0)  # a line has the same length always

    def part(self, what, run):
        """`run()` as a part of its own of the step that is on."""
        if self.kind is None:
            return run()
        self.end(self.kind)
        self.mark()
        try:
            return run()
        finally:
            self.end(what)
            self.mark()


_steps = _Steps()


class _Snapshot:
    """PyTorch's own memory history of a worker, for `oomsight replay`: from the moment it has its device until the launcher asks
    for it, an allocation fails or the process ends. Events carry no stack and live blocks a short one, so that a million fit."""
    EVENTS, FRAMES = 2000000, 12

    def __init__(self):
        self.path = self.mark = None
        self.failed = False

    def begin(self, rank, ranks):
        path = os.environ.get("OOMSIGHT_SNAPSHOT")
        if not path or self.path:
            return
        import atexit
        import threading
        import torch
        self.path = path if ranks <= 1 else "%s.rank%d" % (path, rank)
        torch.cuda.memory._record_memory_history(enabled="all", context="state", stacks="python", max_entries=self.EVENTS)
        torch._C._cuda_attach_out_of_memory_observer(lambda *numbers: self.fail())
        segment = os.environ["OOMSIGHT_SEGMENT"]
        self.mark = "%s.recording.%d" % (segment, os.getpid())
        with open(self.mark, "w", encoding="utf-8"):
            pass
        atexit.register(self.finish)
        threading.Thread(target=self.wait, args=(segment + ".snapshot",), daemon=True).start()

    def wait(self, asked):
        import time
        while self.mark:
            if os.path.exists(asked):
                self.finish()
            time.sleep(0.3)

    def write(self):
        import pickle
        import torch
        try:
            snapshot = torch.cuda.memory._snapshot()
            for segment in snapshot["segments"]:
                for block in segment["blocks"]:
                    block["frames"] = block.get("frames", [])[:self.FRAMES]
            free, total = torch.cuda.mem_get_info()
            reserved = torch.cuda.memory_stats().get("reserved_bytes.all.current", 0)
            snapshot["oomsight_device"] = "%d %d" % (total, max(0, total - free - reserved))  # src/trace/values_snapshot.c
            with open("%s.%d" % (self.path, os.getpid()), "wb") as f:
                pickle.dump(snapshot, f)
            os.replace("%s.%d" % (self.path, os.getpid()), self.path)
        except Exception as error:  # the engine goes on without it
            tell("no snapshot: %r" % (error,))

    def fail(self):
        """The state at the failure is kept, with the settings of that moment: an engine may change them while it loads."""
        if not self.failed:
            self.failed = True
            self.write()

    def finish(self):
        mark, self.mark = self.mark, None
        if mark:
            if not self.failed:
                self.write()
            with contextlib.suppress(OSError):
                os.unlink(mark)


_snapshot = _Snapshot()


def write(tensor, values):
    """Into the bytes of a device tensor, without a kernel and without another tensor."""
    if tensor.numel():
        _host(tensor).copy_(values)


def obey_grammar(module):
    """xgrammar hands the bits of the tokens it allows to a kernel."""
    apply = module.apply_token_bitmask_inplace

    def applied(logits, bitmask, *args, **kwargs):
        rows = kwargs.get("indices", None)
        if hasattr(rows, "tolist"):
            rows = _host(rows).tolist()
        bits = _host(bitmask)
        if rows is None:
            rows = range(len(bits))
        _tokens.allow([bits[row] for row in rows], rows)
        return apply(logits, bitmask, *args, **kwargs)
    module.apply_token_bitmask_inplace = applied


class _Silent:
    """Kernels that would do nothing here anyway."""

    def __getattr__(self, name):
        return self

    def __call__(self, *args, **kwargs):
        return None

    def plan(self, *args, **kwargs):
        """FlashInfer's plan of a batch: numbers that only its kernels read, and None means that there is no plan."""
        return [0] * 16


UNBUILT = []  # of each engine that needs none of FlashInfer's kernels: whether it is here


def sampling_unbuilt(module):
    """FlashInfer compiles its sampling kernels on first use, minutes of nvcc. They only fill tensors that its Python side
    has allocated (0.3.1 to 0.7.0), so in a dry run they need not be there, and neither need a compiler. An engine may say that for all."""
    build = module.JitSpec.build_and_load

    def build_and_load(self, *args, **kwargs):
        return _Silent() if self.name == "sampling" or any(unbuilt() for unbuilt in UNBUILT) else build(self, *args, **kwargs)
    module.JitSpec.build_and_load = build_and_load


def training_tensors(module):
    """What a training step holds, as the optimizer knows it: parameters, their gradients, its own state."""
    largest = {}

    def plain(tensor):
        """A wrapper has no storage of its own: the part of a sharded tensor that is here, the bytes and scales of a quantised one."""
        if not hasattr(tensor, "__tensor_flatten__"):
            return [tensor]
        return [inner for name in tensor.__tensor_flatten__()[0] for inner in plain(getattr(tensor, name))]

    def bytes_of(tensors):
        torch = sys.modules["torch"]
        storages = {}
        for tensor in tensors:
            for part in plain(tensor):
                if isinstance(part, torch.Tensor) and part.device.type == "cuda":
                    storage = part.untyped_storage()
                    storages[storage.data_ptr()] = storage.nbytes()
        return sum(storages.values())

    def look(optimizer, *_):
        parameters = [p for group in optimizer.param_groups for p in group["params"]]
        held = {"parameters": parameters, "gradients": [p.grad for p in parameters],
                "optimizer": [value for state in optimizer.state.values() if isinstance(state, dict) for value in state.values()]}
        for name, tensors in held.items():
            count = bytes_of(tensors)
            if count > largest.get(name, 0):
                largest[name] = count
                tell("measured %s %d bytes" % (name, count))

    def looked(optimizer, *_):
        try:
            look(optimizer)
        except Exception as error:  # an optimizer of another kind is not disturbed
            tell("what the optimizer holds is not known: %r" % error)
    module.register_optimizer_step_pre_hook(looked)
    module.register_optimizer_step_post_hook(looked)


HOOKS = {"torch": install, "torch.optim.optimizer": training_tensors, "flashinfer.jit.core": sampling_unbuilt, "xgrammar": obey_grammar}


def engines():
    """What is of one engine is in a module of its own beside this one, which adds its hooks to those here and of oomsight_phases."""
    for name in sorted(os.listdir(os.path.dirname(os.path.abspath(__file__)))):
        if name.startswith("oomsight_engine_") and name.endswith(".py"):
            importlib.import_module(name[:-3])


engines()


class _Loader(importlib.abc.Loader):
    def __init__(self, inner):
        self.inner = inner

    def create_module(self, spec):
        return self.inner.create_module(spec)

    def exec_module(self, module):
        self.inner.exec_module(module)
        stacks = oomsight_stacks.HOOKS if os.environ.get("OOMSIGHT_STACKS") else {}
        for hooks in (HOOKS, oomsight_phases.HOOKS, stacks):
            try:
                if module.__name__ in hooks:
                    hooks[module.__name__](module)
            except Exception as error:  # a new torch or engine: say so, and let it run without
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
