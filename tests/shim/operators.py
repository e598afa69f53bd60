"""An operator that is replaced takes whatever its own kernel takes, and what goes wrong in the replacement never reaches the program. A PyTorch of a
few lines stands in, which only notes what is registered and called; with the real one tests/oracle/torch_checks.py does the same."""
import itertools
import os
import sys
import types

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "shim", "python"))

passed, failed = 0, {}


def claim(what, sentence, holds, seen=""):
    """The first failure of each operator is printed."""
    global passed
    passed += bool(holds)
    if not holds and not failed.setdefault(what, 0):
        print("FAIL %s: %s   (seen: %r)" % (what, sentence, seen))
    if not holds:
        failed[what] += 1


class Dtype:
    def __init__(self, name):
        self.name, self.is_floating_point = name, name.startswith(("float", "bfloat"))

    def __repr__(self):
        return "torch." + self.name


class Tensor:
    def __init__(self, dtype, place="cuda", shape=(2, 3), contiguous=True):
        self.dtype, self.device, self.shape, self.contiguous, self.layout = dtype, types.SimpleNamespace(type=place), tuple(shape), contiguous, "strided"

    def __repr__(self):
        return "%s %s %s" % (self.dtype, self.device.type, self.shape)

    def numel(self):
        count = 1
        for size in self.shape:
            count *= size
        return count

    def __getattr__(self, name):
        answers = {"stride": (1,) * len(self.shape), "dim": len(self.shape), "element_size": 4, "data_ptr": 4096, "is_contiguous": self.contiguous,
                   "is_complex": self.dtype.name.startswith("complex"), "sum": 2, "any": False, "all": True}
        if name in answers:
            return lambda *_, **__: answers[name]
        if name in ("copy_", "to", "zero_", "resize_"):
            return lambda *_, **__: self
        raise AttributeError(name)


class Parameter(Tensor):
    pass


class OutOfMemoryError(RuntimeError):
    pass


class Overload:
    def __init__(self, packet, word):
        self.word, self._overloadname = packet + ("." + word if word != "default" else ""), word
        self._schema = types.SimpleNamespace(arguments=[types.SimpleNamespace(type="Tensor")] * 8)

    def name(self):
        return "aten::" + self.word

    def __call__(self, *args, **kwargs):
        if kwargs.get("out") is not None:  # the out form: the operator's own kernel
            own.append((self.word, args))
            claim(self.word, "the out form gets tensors", "Scalar" in self.word or self.word == "cumsum.out" or all(isinstance(value, Tensor) for value in args[:2]), args)
            return OWN
        return Tensor(torch.int64, "cpu")


class Packet:
    def __init__(self, name):
        self.packet = name

    def __getattr__(self, word):
        if word.startswith("__"):
            raise AttributeError(word)
        made = Overload(self.packet, word)
        setattr(self, word, made)
        return made


class Ops:
    __getattr__ = lambda self, name: self.__dict__.setdefault(name, Packet(name))


class Kernel:
    """An operator's own: it takes tensors where its schema says so."""

    def __init__(self, overload, key):
        self.overload = overload

    def call_boxed(self, keys, *args, **kwargs):
        own.append((self.overload.word, args))
        numbers = [value for value in args if isinstance(value, (int, float, complex))]
        claim(self.overload.word, "its own kernel gets tensors", not numbers, args)
        if kernel_error:
            raise kernel_error[0]
        return OWN


class Library:
    def __init__(self, *_):
        pass

    def impl(self, name, run, key, with_keyset=False):
        registered[name.replace("aten::", "")] = run if not with_keyset else lambda *args, **kwargs: run("keys", *args, **kwargs)


OWN, own, kernel_error, registered = object(), [], [], {}
torch = types.ModuleType("torch")
for name in "int8 uint8 int16 int32 int64 bool float16 bfloat16 float32 float64 float8_e4m3fn complex64 complex128".split():
    setattr(torch, name, Dtype(name))
torch.Tensor, torch.nn, torch.strided = Tensor, types.SimpleNamespace(Parameter=Parameter), "strided"
torch.cuda = types.SimpleNamespace(OutOfMemoryError=OutOfMemoryError)
torch.ops = types.SimpleNamespace(aten=Ops())
torch.library = types.SimpleNamespace(Library=Library, get_kernel=Kernel)
torch._prims_common = types.SimpleNamespace(suggest_memory_format=lambda tensor: None)
torch.result_type = lambda first, second: first.dtype if isinstance(first, Tensor) else second.dtype
torch.scalar_tensor = torch.tensor = lambda value, dtype=None, device=None: Tensor(dtype or torch.float32, device or "cpu", ())
torch.get_default_dtype = lambda: torch.float32
torch.empty = lambda shape, dtype=None, device="cpu": Tensor(dtype, getattr(device, "type", device), shape if isinstance(shape, (list, tuple)) else (shape,))
torch.arange = lambda *_, dtype=None, device=None: Tensor(dtype, "cpu", (3,))
torch.frombuffer = lambda memory, dtype=None: Tensor(dtype, "cpu", (len(memory),))
torch.as_strided = lambda flat, shape, stride: Tensor(flat.dtype, "cpu", shape)
torch.broadcast_to = lambda value, shape: value
torch.broadcast_shapes = lambda *shapes: shapes[0]
torch.randint = lambda low, high, shape, **_: Tensor(torch.int64, "cpu", shape)
torch.Generator = lambda device: types.SimpleNamespace(manual_seed=lambda seed: None)
sys.modules["torch"] = torch

import oomsight_aid as aid  # noqa: E402: needs the module above

# What takes its size from values is refused where they are not known; convolutions and what checks a factorisation have no kernel here.
SIZED = {"repeat_interleave.Tensor", "nonzero", "masked_select", "bincount", "_unique2", "unique_dim", "unique_consecutive"}
WITHOUT = {"cudnn_convolution", "cudnn_convolution_transpose", "cudnn_convolution_relu", "cudnn_convolution_add_relu", "convolution_backward", "_linalg_check_errors"}


def call(run, *args, **kwargs):
    own.clear()
    try:
        return run(*args, **kwargs), None
    except Exception as error:  # noqa: BLE001: what comes out is what is looked at
        return None, error


def values():
    """What a program may give in a tensor's place."""
    cuda = [Tensor(torch.int64), Tensor(torch.int64, shape=(0,)), Tensor(torch.int64, shape=(1 << 17,)), Tensor(torch.int32, contiguous=False), Tensor(torch.bool, shape=()),
            Tensor(torch.float32), Tensor(torch.float8_e4m3fn, shape=()), Tensor(torch.complex64), Parameter(torch.float32)]
    return cuda + [Tensor(torch.int64, "cpu"), Tensor(torch.float64, "cpu", ()), True, 2, 0.5, 1j, None]


PAIRS = tuple(name + "." for name in "add sub mul eq ne lt le gt ge".split()) + ("floor_divide", "copy_")
ALONE = {"_local_scalar_dense": (), "zero_": (), "cumsum": (0,)}


def every_argument(name, run):
    """A device tensor and anything beside it; where the operator writes into the first, that is the device's."""
    for self, other in itertools.product([value for value in values() if isinstance(value, Tensor) and value.device.type == "cuda"], values()):
        if name.startswith("arange"):
            result, error = call(run, 0, 10, out=self)
            claim(name, "done, or left to its own kernel", error is None and (result is self or result is OWN), error)
            continue
        first_is_written = name.partition(".")[0].endswith("_") or name in ("argmax", "argmin", "multinomial")
        for args in ((self,), (self, other), (other, self), (self, other, other)):
            if name in ALONE:
                args = (self,) + ALONE[name]
            elif (name.startswith(PAIRS) and (len(args) != 2 or None in args)) or (first_is_written and args[0] is not self):
                continue
            result, error = call(run, *args)
            claim(name, "takes %s" % (args,), error is None and len(own) <= 1 and (result is OWN) == (len(own) == 1), error or own)


def main():
    aid.install(torch)
    claim("install", "operators are replaced", len(registered) > 120, len(registered))
    numbers = Tensor(torch.int64), Tensor(torch.int64)
    for name, run in sorted(registered.items()):
        if name in SIZED | WITHOUT:
            continue
        every_argument(name, run)
    # Whatever fails in the replacement: the operator's own kernel runs, once.
    real = torch.as_strided
    arguments = {"cumsum": (numbers[0], 0), "_local_scalar_dense": numbers[:1], "zero_": numbers[:1]}
    broken = [name for name in registered if name not in SIZED | WITHOUT and not name.startswith("arange")]
    for error in (AttributeError, TypeError, ValueError, IndexError, KeyError, OverflowError, NotImplementedError, RuntimeError, StopIteration, MemoryError, AssertionError):
        def sabotaged(*_):
            raise error("planted")
        torch.as_strided = sabotaged
        for name in broken:
            result, seen = call(registered[name], *arguments.get(name, numbers))
            claim(name, "a planted %s reaches nobody" % error.__name__, seen is None and result is OWN and len(own) == 1, seen or own)
    torch.as_strided = real
    # A device that is full is told at once, and by its own error.
    empty = torch.empty

    def full(*_, **__):
        raise OutOfMemoryError("full")
    torch.empty = full
    result, seen = call(registered["bitwise_and.Tensor"], *numbers)
    claim("bitwise_and.Tensor", "a full device is told", isinstance(seen, OutOfMemoryError) and not own, seen)
    torch.empty = empty
    # An error of the operator itself is the program's, and the operator was run once.
    kernel_error.append(RuntimeError("its own"))
    for name in ("copy_", "where.self", "fill_.Scalar", "argmax"):
        result, seen = call(registered[name], Tensor(torch.float32, shape=(1 << 17,)), 2)
        claim(name, "its own error is told", str(seen) == "its own" and len(own) == 1, seen)
    kernel_error.clear()
    # Words that cannot be written do not stop a program.
    stderr, sys.stderr = sys.stderr, None
    result, seen = call(registered["_local_scalar_dense"], Tensor(torch.float16, shape=()))
    sys.stderr = stderr
    claim("_local_scalar_dense", "a closed stderr disturbs nobody", result is OWN, seen)
    # A few values of any type are compared as they lie there; of many nobody tells a size.
    for name in ("_unique2", "unique_dim", "unique_consecutive"):
        for shape, told in (((3,), True), ((1 << 17,), False)):
            result, seen = call(registered[name], Tensor(torch.float32, shape=shape))
            claim(name, "of %d values" % shape[0], (seen is None) == told, seen)
    # More numbers than memory are not made here.
    made, arange = [], torch.arange
    torch.arange = lambda *words, **more: made.append(words) or arange(*words, **more)
    result, seen = call(registered["arange.start_out"], 0, 1 << 40, out=Tensor(torch.int64, shape=(0,)))
    claim("arange.start_out", "a long range is left to its own kernel", result is OWN and not made, (seen, made))
    print("operators: %d passed, %d failed" % (passed, sum(failed.values())))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
