"""Integers and truth values of small device tensors, computed for real by the CPU's kernels on the same bytes.

Programs decide by them: how many tokens are left, whether all requests are done, where a row begins. Each operator below keeps its own
kernel, which is called whenever an argument is large or no integer: then it allocates and launches as it always did, and computes
nothing. An index that follows from such values (argmax, multinomial) comes from a seed and is a valid one. A float that a program reads
back is told once, because no kernel has computed it.

Loaded by oomsight_aid.py; needs torch.library.get_kernel (PyTorch 2.9)."""
SMALL = 1 << 16  # integers that are computed
FILLED = 1 << 10  # elements of any type that are filled
COMPUTED = """bitwise_and.Tensor bitwise_and.Scalar bitwise_or.Tensor bitwise_or.Scalar bitwise_xor.Tensor bitwise_xor.Scalar bitwise_not
logical_and logical_or logical_xor logical_not neg abs sign remainder.Tensor remainder.Scalar fmod.Tensor maximum minimum clamp clamp.Tensor
clamp_min clamp_max rsub.Tensor rsub.Scalar bitwise_left_shift.Tensor bitwise_right_shift.Tensor where.self isin.Tensor_Tensor
isin.Tensor_Scalar isin.Scalar_Tensor sum sum.dim_IntList prod prod.dim_int any any.dim any.dims all all.dim all.dims max max.dim min
min.dim amax amin argmax argmin cumprod sort sort.stable topk index.Tensor index_select gather take flip roll tril triu
searchsorted.Tensor searchsorted.Scalar bucketize.Tensor equal constant_pad_nd cat scatter.value scatter.src scatter_add
div.Tensor_mode div.Scalar_mode floor_divide.Scalar pow.Tensor_Scalar count_nonzero.dim_IntList""".split()
IN_PLACE = """add_.Tensor add_.Scalar sub_.Tensor sub_.Scalar mul_.Tensor mul_.Scalar floor_divide_.Tensor remainder_.Tensor remainder_.Scalar
bitwise_and_.Tensor bitwise_or_.Tensor bitwise_xor_.Tensor bitwise_not_ logical_and_ logical_or_ logical_not_ neg_ clamp_ clamp_min_
clamp_max_ eq_.Scalar ne_.Scalar masked_fill_.Scalar masked_fill_.Tensor index_fill_.int_Scalar index_put_ index_copy_ index_add_ scatter_.src
scatter_.value scatter_add_ cumsum_ tril_ triu_ _index_put_impl_""".split()


def attempted(torch, attempt, *args, **kwargs):
    """What `attempt` returns; NotImplemented when it fails: here everybody is a guest in another program, whose operator says itself what is
    wrong. An index that nobody computed fails so, or an argument that was not thought of. A device that is full is no such failure."""
    try:
        return attempt(*args, **kwargs)
    except torch.cuda.OutOfMemoryError:
        raise
    except Exception:
        return NotImplemented


def as_tensor(torch, value, beside):
    """A number that came in a tensor's place, of the type that leaves the result as it is with a number: `beside` are all arguments."""
    if not isinstance(value, (bool, int, float, complex)):
        return value
    kind = torch.tensor(value, device="cpu", dtype=torch.float64 if isinstance(value, float) else torch.complex128 if isinstance(value, complex) else None)
    tensors = [other for other in beside if isinstance(other, torch.Tensor)]
    try:
        return kind.to(torch.result_type(tensors[-1], value)) if tensors else kind
    except RuntimeError:  # FP8 has none with a complex number
        return kind


def install(torch, host, small, integers, draw, tell):
    """`host(tensor)`: the same bytes on the CPU; `small(value)`: a small tensor of integers, or no tensor."""
    get_kernel = getattr(torch.library, "get_kernel", None)
    if get_kernel is None:
        return None
    tensor = torch.Tensor

    def computable(value):
        return all(map(computable, value)) if isinstance(value, (list, tuple)) else small(value)

    def to_host(value):
        return type(value)(map(to_host, value)) if isinstance(value, (list, tuple)) else host(value)

    def devices(values):
        for value in values:
            if isinstance(value, (list, tuple)):
                yield from devices(value)
            elif isinstance(value, tensor) and value.device.type == "cuda":
                yield value.device

    def put(result, device):
        out = torch.empty(result.shape, dtype=result.dtype, device=device)
        if result.numel():
            host(out).copy_(result)
        return out

    class Own:
        """An operator's own kernel. A number that a program gives in a tensor's place arrives as a number, and the kernel wants the tensor."""

        def __init__(self, overload, kernel):
            self.kernel = kernel
            self.tensors = ["Tensor" in str(argument.type) and "List" not in str(argument.type) for argument in overload._schema.arguments]

        def call_boxed(self, keys, *args, **kwargs):
            args = [as_tensor(torch, value, args) if wanted else value for value, wanted in zip(args, self.tensors)]
            return self.kernel.call_boxed(keys, *args, **kwargs)

    # Each attempt below returns what its operator would, or NotImplemented: then the operator's own kernel runs.

    def computed(overload):
        def attempt(*args, **kwargs):
            given = args + tuple(kwargs.values())
            if not computable(given):
                return NotImplemented
            result = overload(*to_host(args), **{name: to_host(value) for name, value in kwargs.items()})
            parts = result if isinstance(result, (list, tuple)) else (result,)
            if not all(not isinstance(part, tensor) or part.dtype in integers for part in parts):
                return NotImplemented
            device = next(devices(given))
            done = [put(part, device) if isinstance(part, tensor) else part for part in parts]
            return tuple(done) if isinstance(result, (list, tuple)) else done[0]
        return attempt

    def in_place(overload):
        def attempt(self, *args, **kwargs):
            if not computable((self,) + args + tuple(kwargs.values())):
                return NotImplemented
            overload(host(self), *to_host(args), **{name: to_host(value) for name, value in kwargs.items()})
            return self
        return attempt

    def fill(overload):
        def attempt(self, *value):
            if type(self) not in (tensor, torch.nn.Parameter) or self.numel() > FILLED or self.layout != torch.strided or self.is_complex():
                return NotImplemented
            if self.numel():
                overload(host(self), *map(host, value))
            return self
        return attempt

    def arange(overload):
        def attempt(start, end, step=1, *, out):
            if type(out) is not tensor or out.dtype not in integers or not 0 <= (end - start) / step <= SMALL:
                return NotImplemented
            values = torch.arange(start, end, step, dtype=out.dtype, device="cpu")
            out.resize_(values.shape)
            if values.numel():
                host(out).copy_(values)
            return out
        return attempt

    def copy(overload):
        """Between two places of a device a kernel converts or gathers; everything else is copied by the runtime."""
        def attempt(self, source, non_blocking=False):
            if not (isinstance(source, tensor) and self.device.type == "cuda" and source.device.type == "cuda" and small(self) and small(source)) or (
                    self.dtype == source.dtype and self.is_contiguous() and source.is_contiguous() and self.shape == source.shape):
                return NotImplemented
            if self.numel():
                host(self).copy_(host(source))
            return self
        return attempt

    def own(overload):
        return lambda *args, **kwargs: NotImplemented

    def read(overload):
        def attempt(self):
            if self.dtype.is_floating_point:
                tell("a %s is read back from the device: kernels compute none here" % str(self.dtype).partition(".")[2])
            return NotImplemented
        return attempt

    def drawn(inner, size_of):
        """An index into values that nobody computed."""
        def run(keys, self, *args, **kwargs):
            result = inner(keys, self, *args, **kwargs)

            def fill_in():
                if self.dtype not in integers and isinstance(result, tensor) and 0 < result.numel() <= FILLED:
                    host(result).copy_(draw(result.shape, max(1, size_of(self, *args, **kwargs))))
            attempted(torch, fill_in)
            return result
        return run

    def arg_size(self, dim=None, keepdim=False):
        return self.numel() if dim is None else self.shape[dim] if self.dim() else 1

    def replaced(attempt, original):
        def run(keys, *args, **kwargs):
            done = attempted(torch, attempt, *args, **kwargs)
            return original.call_boxed(keys, *args, **kwargs) if done is NotImplemented else done
        return run

    library = torch.library.Library("aten", "IMPL")
    rows = [(name, computed) for name in COMPUTED] + [(name, in_place) for name in IN_PLACE]
    rows += [("fill_.Scalar", fill), ("fill_.Tensor", fill), ("zero_", fill), ("arange.start_out", arange), ("copy_", copy),
             ("_local_scalar_dense", read), ("multinomial", own)]
    for name, make in rows:
        packet, _, word = name.partition(".")
        overload = getattr(getattr(torch.ops.aten, packet, None), word or "default", None)
        if overload is None:
            continue
        try:
            original = Own(overload, get_kernel(overload, "CUDA"))
        except RuntimeError:  # composite: its parts are here
            continue
        run = replaced(make(overload), original)
        if packet == "argmax" or packet == "argmin":
            run = drawn(run, arg_size)
        if packet == "multinomial":
            run = drawn(run, lambda self, *args, **kwargs: self.shape[-1])
        library.impl(overload.name().partition("::")[2], run, "CUDA", with_keyset=True)
    return library


def convolve(torch):
    """cuDNN offers no engine here, and PyTorch does not fall back: a convolution gets the output that it would have, without a workspace,
    whose size only cuDNN knows."""
    like = torch._prims_common.suggest_memory_format

    def empty(shape, self, weight):
        wide = weight.dim() == self.dim() and torch.channels_last in (like(self), like(weight))
        wide3 = torch.channels_last_3d in (like(self), like(weight))
        kind = torch.channels_last_3d if wide3 else torch.channels_last if wide else torch.contiguous_format
        return torch.empty(shape, dtype=self.dtype, device=self.device, memory_format=kind)

    def forward(self, weight, padding, stride, dilation):
        sizes = [(n + 2 * p - d * (k - 1) - 1) // s + 1
                 for n, k, p, s, d in zip(self.shape[2:], weight.shape[2:], padding, stride, dilation)]
        return empty([self.shape[0], weight.shape[0]] + sizes, self, weight)

    def convolution(self, weight, padding, stride, dilation, *rest):
        return forward(self, weight, padding, stride, dilation)

    def transposed(self, weight, padding, output_padding, stride, dilation, groups, *rest):
        sizes = [(n - 1) * s - 2 * p + d * (k - 1) + o + 1 for n, k, p, o, s, d in
                 zip(self.shape[2:], weight.shape[2:], padding, output_padding, stride, dilation)]
        return empty([self.shape[0], weight.shape[1] * groups] + sizes, self, weight)

    def relu(self, weight, bias, stride, padding, dilation, groups):
        return forward(self, weight, padding, stride, dilation)

    def add_relu(self, weight, z, alpha, bias, stride, padding, dilation, groups):
        return forward(self, weight, padding, stride, dilation)

    def backward(grad, self, weight, bias_sizes, stride, padding, dilation, turned, output_padding, groups, mask):
        return (torch.empty_like(self) if mask[0] else None, torch.empty_like(weight) if mask[1] else None,
                torch.empty(grad.shape[1:2], dtype=grad.dtype, device=grad.device) if mask[2] else None)

    library = torch.library.Library("aten", "IMPL")
    for name, run in (("cudnn_convolution", convolution), ("cudnn_convolution_transpose", transposed), ("cudnn_convolution_relu", relu),
                      ("cudnn_convolution_add_relu", add_relu), ("convolution_backward", backward)):
        library.impl(name, run, "CUDA")
    return library



def factorise(torch, host):
    """A factorisation leaves a number for each matrix that says whether it succeeded, and no kernel has written it: it did."""
    def checked(info, api_name, *, is_matrix):
        if info.numel():
            host(info).zero_()

    library = torch.library.Library("aten", "IMPL")
    library.impl("_linalg_check_errors", checked, "CUDA")
    return library
