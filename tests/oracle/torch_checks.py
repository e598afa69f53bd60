"""Run inside a dry run by test_torch.py: real PyTorch on a device of exactly 8 GiB with a context of 300 MiB. Each check
is a sentence; a failed one is printed and counted."""
import itertools
import os
import pickle
import re
import subprocess
import sys
import tempfile

import torch

GIB, MIB = 1 << 30, 1 << 20
CHECKS = []


def check(function):
    CHECKS.append(function)
    return function


@check
def a_device_is_found_with_the_properties_it_was_given():
    p = torch.cuda.get_device_properties(0)
    assert torch.cuda.is_available() and torch.cuda.device_count() == 2
    assert (p.name, p.total_memory, p.major, p.minor) == ("NVIDIA A30", 8 * GIB, 8, 0), p


@check
def every_byte_is_counted_and_the_last_one_can_be_taken():
    torch.empty(1, device="cuda")
    torch.cuda.empty_cache()
    free, total = torch.cuda.mem_get_info()
    assert total == 8 * GIB and free == 8 * GIB - 300 * MIB - 2 * MIB * (torch.cuda.memory_reserved() > 0), (free, total)
    blocks = [torch.empty(free // (2 * MIB) * 2 * MIB, dtype=torch.uint8, device="cuda")]
    assert torch.cuda.mem_get_info()[0] < 2 * MIB
    del blocks
    torch.cuda.empty_cache()
    assert torch.cuda.mem_get_info()[0] == free


@check
def the_out_of_memory_text_is_pytorchs_own():
    held = [torch.empty(512 * MIB, dtype=torch.uint8, device="cuda") for _ in range(15)]
    try:
        held.append(torch.empty(512 * MIB, dtype=torch.uint8, device="cuda"))
    except torch.OutOfMemoryError as error:
        text = str(error)
    want = (r"CUDA out of memory\. Tried to allocate 512\.00 MiB\. GPU 0 has a total capacity of 8\.00 GiB of which "
            r"2\d\d\.00 MiB is free\. Including non-PyTorch memory, this process has 7\.\d\d GiB memory in use\. "
            r"Of the allocated memory 7\.50 GiB is allocated by PyTorch, and ")
    assert re.match(want, text), text
    del held
    torch.cuda.empty_cache()


INTEGERS = {
    "sum": lambda a, b, m: a.sum(), "sum of a row": lambda a, b, m: a.sum(1), "max": lambda a, b, m: a.max(), "min": lambda a, b, m: a.min(),
    "max of a row": lambda a, b, m: a.max(1).values, "its place": lambda a, b, m: a.argmax(1), "amin": lambda a, b, m: a.amin(0), "prod": lambda a, b, m: (a % 3 + 1).prod(1),
    "any": lambda a, b, m: m.any(), "all": lambda a, b, m: m.all(), "any of a row": lambda a, b, m: m.any(1), "all of a row": lambda a, b, m: m.all(0),
    "and": lambda a, b, m: a & b, "or": lambda a, b, m: a | 5, "xor": lambda a, b, m: a ^ b, "not": lambda a, b, m: ~m, "logical": lambda a, b, m: torch.logical_and(a, m),
    "where": lambda a, b, m: torch.where(m, a, b), "where with a number": lambda a, b, m: torch.where(m, a, -1), "index": lambda a, b, m: a[b[:, 0] % 4],
    "mask": lambda a, b, m: a[m], "put": lambda a, b, m: a.index_put((b[:, 0] % 4,), b[0].to(a.dtype)), "set": lambda a, b, m: a.masked_fill(m, 9), "row": lambda a, b, m: a.clone().fill_(3),
    "select": lambda a, b, m: a.index_select(1, b[0] % 6), "gather": lambda a, b, m: a.gather(1, b % 6), "scatter": lambda a, b, m: a.scatter(1, b % 6, 7),
    "add": lambda a, b, m: a.clone().add_(b, alpha=2), "subtract from": lambda a, b, m: 7 - a, "minus": lambda a, b, m: -a, "rest": lambda a, b, m: a % 5, "quotient": lambda a, b, m: a // 3,
    "absolute": lambda a, b, m: (a - 50).abs(), "clamp": lambda a, b, m: a.clamp(10, 60), "larger": lambda a, b, m: torch.maximum(a, b), "flip": lambda a, b, m: a.flip(0, 1),
    "sort": lambda a, b, m: a.sort(1).values, "order": lambda a, b, m: a.argsort(dim=1, stable=True), "best": lambda a, b, m: a.topk(2).values, "cat": lambda a, b, m: torch.cat([a, b]),
    "stack": lambda a, b, m: torch.stack([a, b]), "convert": lambda a, b, m: a.to(torch.int32), "truth": lambda a, b, m: m.long(), "turned": lambda a, b, m: a.t().contiguous(),
    "cumsum": lambda a, b, m: a.cumsum(1), "isin": lambda a, b, m: torch.isin(a, b), "triangle": lambda a, b, m: a.tril(), "pad": lambda a, b, m: torch.nn.functional.pad(a, (1, 2), value=4),
    "range": lambda a, b, m: torch.arange(2, 11, 3, device=a.device), "full": lambda a, b, m: torch.full((3,), 7, device=a.device), "ones": lambda a, b, m: torch.ones(3, dtype=torch.int64, device=a.device),
    "zeros": lambda a, b, m: torch.zeros_like(a), "search": lambda a, b, m: torch.searchsorted(a[0].sort().values, b[0]), "unique": lambda a, b, m: a.unique(), "nonzero": lambda a, b, m: m.nonzero(),
    "count": lambda a, b, m: m.count_nonzero(1), "difference": lambda a, b, m: a.diff(dim=1), "roll": lambda a, b, m: a.roll(1, 1), "repeat": lambda a, b, m: a.repeat(2, 1), "expand": lambda a, b, m: a[:, :1].expand(4, 3) + 0}


@check
def integers_and_truth_values_of_small_tensors_are_computed():
    generator, wrong = torch.Generator().manual_seed(11), []
    for kind in (torch.int64, torch.int32):
        for _ in range(5):
            a, b = (torch.randint(0, 100, (4, 6), generator=generator).to(kind) for _ in range(2))
            if kind is torch.int32:
                b = b.long()
            m = torch.rand(4, 6, generator=generator) < 0.5
            for name, run in INTEGERS.items():
                want, got = run(a, b, m), run(a.cuda(), b.cuda(), m.cuda())
                if want.dtype != got.dtype or want.tolist() != got.tolist():
                    wrong.append((name, kind, want.tolist(), got.tolist()))
    assert not wrong, (len(wrong), wrong[:3])


@check
def a_float_that_is_read_back_is_told():
    import oomsight_aid
    torch.randn(7, device="cuda").sum().item()
    assert any("float32 is read back" in line for line in oomsight_aid._told), oomsight_aid._told


@check
def an_optimizer_tells_what_it_holds():
    import oomsight_aid
    layer = torch.nn.Linear(256, 128, bias=False, device="cuda")
    adam = torch.optim.Adam(layer.parameters(), foreach=False)
    layer(torch.ones(4, 256, device="cuda")).sum().backward()
    adam.step()
    weight = 4 * 256 * 128
    for name, least in (("parameters", weight), ("gradients", weight), ("optimizer", 2 * weight)):
        held = max(int(line.split()[-2]) for line in oomsight_aid._told if line.startswith("measured %s " % name))
        assert least <= held <= least + 4096, (name, held)


@check
def an_index_that_lies_outside_disturbs_nobody():
    """A kernel would have written it; here it is what was there before."""
    rows, strange = torch.arange(8, device="cuda"), torch.tensor([3, 1 << 32], device="cuda")
    assert rows[strange].shape == (2,) and rows.gather(0, strange).shape == (2,)
    rows[strange] = 5
    rows.index_add_(0, strange, strange)


@check
def an_index_of_values_that_nobody_computed_is_a_valid_one():
    logits = torch.randn(5, 40, device="cuda")
    for ids in (logits.argmax(-1), torch.multinomial(logits.softmax(-1), 1)):
        assert 0 <= min(ids.flatten().tolist()) and max(ids.flatten().tolist()) < 40


@check
def a_model_of_transformers_generates_as_many_tokens_as_asked():
    from transformers import LlamaConfig, LlamaForCausalLM
    model = LlamaForCausalLM(LlamaConfig(hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4, vocab_size=1000)).cuda()
    for sampled in (False, True):
        ids = model.generate(torch.tensor([[5, 6, 7]]).cuda(), max_new_tokens=8, do_sample=sampled).tolist()[0]
        assert len(ids) == 11 and ids[:3] == [5, 6, 7] and max(ids) < 1000, ids


@check
def convolutions_have_the_shape_that_they_have_on_the_cpu():
    for kind, shape in ((torch.nn.Conv1d, (2, 8, 50)), (torch.nn.Conv2d, (2, 8, 30, 30)), (torch.nn.Conv3d, (2, 8, 4, 14, 14)), (torch.nn.ConvTranspose2d, (2, 8, 7, 7))):
        for dtype in (torch.float32, torch.bfloat16):
            layer, x = kind(8, 16, 3, stride=2, padding=1), torch.randn(shape)
            there, given = kind(8, 16, 3, stride=2, padding=1).to("cuda", dtype), x.to("cuda", dtype).requires_grad_()
            out = there(given)
            out.sum().backward()
            assert out.shape == layer(x).shape and given.grad.shape == x.shape and there.weight.grad.shape == layer.weight.shape, (kind, out.shape)


def shapes(result):
    return [tuple(part.shape) for part in result] if isinstance(result, (list, tuple)) else tuple(result.shape)


@check
def factorisations_have_the_shapes_that_they_have_on_the_cpu():
    line = torch.linalg
    runs = [line.inv, line.det, line.qr, line.svd, line.svdvals, line.eigh, line.lu, line.pinv, line.slogdet, line.cond, lambda a: line.solve(a, a),
            lambda a: line.lstsq(a, a)[0], lambda a: line.cholesky(a @ a.mT + 9 * torch.eye(a.shape[-1], device=a.device)), torch.nn.init.orthogonal_]
    for size in ((8, 8), (3, 8, 8), (600, 600)):
        for run in runs:
            if run is not torch.nn.init.orthogonal_ or len(size) == 2:
                given = torch.randn(size) + 9 * torch.eye(size[-1])
                assert shapes(run(given.cuda())) == shapes(run(given)), (run, size)


@check
def transforms_have_the_shapes_that_they_have_on_the_cpu():
    given = torch.randn(3, 4, 30)
    for run in (torch.fft.fft, torch.fft.rfft, torch.fft.irfft, torch.fft.fft2, torch.fft.fftn, lambda a: torch.stft(a[0], 16, return_complex=True)):
        there, here = run(given.cuda()), run(given)
        assert there.shape == here.shape and there.dtype == here.dtype, run


@check
def recurrent_layers_and_batch_norm_take_a_training_step():
    nn, given = torch.nn, torch.randn(5, 3, 8)
    for make in (lambda: nn.LSTM(8, 16, 2, dropout=0.1), lambda: nn.GRU(8, 16, bidirectional=True), lambda: nn.RNN(8, 16, bias=False),
                 lambda: nn.LSTM(8, 16, 2, proj_size=4, bidirectional=True), lambda: nn.LSTM(8, 16, batch_first=True)):
        layer = make()
        here, there = layer(given), layer.cuda()(given.cuda())
        assert shapes(there[0]) == shapes(here[0]) and shapes(there[1]) == shapes(here[1]), (layer, shapes(there[1]))
        there[0].sum().backward()
        assert all(weight.grad.shape == weight.shape for weight in layer.parameters())
        held = {weight.untyped_storage().data_ptr() for weight in layer.parameters()}
        assert len(held) == 1, "the weights are one buffer"
        torch.optim.SGD(layer.parameters(), lr=0.1, momentum=0.9, foreach=False).step()
    norm, picture = nn.BatchNorm2d(4).cuda(), torch.randn(2, 4, 8, 8).cuda()
    for layout in (torch.contiguous_format, torch.channels_last):
        norm(picture.to(memory_format=layout)).sum().backward()
    assert norm.weight.grad.shape == (4,)
    assert (torch.eye(8).to_sparse_csr().cuda() @ torch.randn(8, 8).cuda()).shape == (8, 8)


@check
def a_number_in_the_place_of_a_tensor_is_taken():
    x, n = torch.randn(8).cuda(), torch.zeros(100000, dtype=torch.int64).cuda()
    for run in (lambda: x.mul_(2), lambda: x.mul_(2.5), lambda: x.add_(1), lambda: x.sub_(1), lambda: x.remainder_(2), lambda: x % 2, lambda: x.half().mul_(2)):
        assert run().shape == (8,)
    assert n.mul_(2).dtype == torch.int64 and (n ^ 3).dtype == torch.int64
    weight = torch.nn.Parameter(x)
    weight.grad = torch.ones_like(x)
    torch.optim.Adam([weight], foreach=False).step()


@check
def a_number_beside_any_tensor_gives_what_it_gives_on_the_cpu():
    runs = {"copy_": lambda a, n: a.copy_(n), "copy_ without waiting": lambda a, n: a.copy_(n, non_blocking=True), "a part": lambda a, n: a[..., :1].copy_(n), "fill_": lambda a, n: a.fill_(n),
            "add": lambda a, n: a + n, "subtract": lambda a, n: a - n, "from": lambda a, n: n - a, "times": lambda a, n: a * n, "times in place": lambda a, n: a.mul_(n), "quotient": lambda a, n: a // n,
            "rest": lambda a, n: a % n, "equal": lambda a, n: a == n, "less": lambda a, n: a < n, "where": lambda a, n: torch.where(a == a, a, n), "where not": lambda a, n: torch.where(a == a, n, a),
            "and": lambda a, n: a & n, "set": lambda a, n: a.masked_fill_(a == a, n), "clamp": lambda a, n: a.clamp(max=n), "power": lambda a, n: a ** n}
    wrong, taken = [], 0
    for kind in (torch.int64, torch.int8, torch.bool, torch.float32, torch.float16, torch.float64, torch.complex64, torch.float8_e4m3fn):
        for shape in ((), (1,), (4, 3), (1 << 17, 1), (0, 2)):
            for (name, run), number in itertools.product(runs.items(), (True, 2, -1, 0.5, 1j, torch.tensor(2), torch.tensor(0.5))):
                if (not shape and name == "a part") or (name == "clamp" and isinstance(number, torch.Tensor)):  # a GPU refuses the second
                    continue
                try:
                    here = run(torch.ones(shape).to(kind), number)
                except Exception:  # PyTorch does not take it
                    continue
                taken += 1
                for default in (None, "cuda"):
                    torch.set_default_device(default)
                    try:
                        there = run(torch.ones(shape, device="cpu").to(kind).to("cuda"), number)
                        same = (there.dtype, there.shape) == (here.dtype, here.shape) and (name != "copy_" or shape not in ((1,), (4, 3)) or torch.equal(there.to("cpu"), here))
                    except Exception as error:
                        there, same = error, False
                    finally:
                        torch.set_default_device(None)
                    if not same:
                        wrong.append((name, kind, shape, number, here.dtype, there))
    assert taken > 1000 and not wrong, (taken, len(wrong), [entry[:4] + (repr(entry[5])[:90],) for entry in wrong[:8]], sorted({(entry[0], str(entry[1])) for entry in wrong}))


@check
def products_attention_and_backward_run():
    x = torch.randn(64, 64, device="cuda", dtype=torch.float16)
    assert (x @ x).shape == (64, 64)
    q = torch.randn(1, 4, 32, 64, device="cuda", dtype=torch.float16)
    assert torch.nn.functional.scaled_dot_product_attention(q, q, q, is_causal=True).shape == q.shape
    layer = torch.nn.Sequential(torch.nn.Linear(32, 32), torch.nn.LayerNorm(32), torch.nn.GELU()).cuda()
    layer(torch.randn(8, 32, device="cuda")).sum().backward()
    assert layer[0].weight.grad.shape == (32, 32)


@check
def uploaded_numbers_can_be_read_back():
    numbers = torch.arange(1000)
    assert torch.equal(numbers.cuda().cpu(), numbers)
    pinned = torch.empty(1000, dtype=torch.int64).pin_memory()
    pinned.copy_(numbers.cuda(), non_blocking=True)
    torch.cuda.synchronize()
    assert torch.equal(pinned, numbers)


@check
def graphs_are_captured_into_private_pools_and_replayed():
    x = torch.zeros(1 << 20, device="cuda")
    graph = torch.cuda.CUDAGraph()
    stream = torch.cuda.Stream()
    before = torch.cuda.memory_reserved()
    with torch.cuda.graph(graph, stream=stream):
        assert torch.cuda.is_current_stream_capturing()
        y = x * 2.5 + 1
    assert not torch.cuda.is_current_stream_capturing()
    graph.replay()
    assert torch.cuda.memory_reserved() > before and y.shape == x.shape
    graph.reset()


@check
def a_memory_pool_has_segments_of_its_own():
    pool = torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(pool):
        held = torch.empty(64 * MIB, dtype=torch.uint8, device="cuda")
    assert sum(s["total_size"] for s in pool.snapshot()) == 64 * MIB
    del held


@check
def sizes_that_depend_on_small_integers_are_right():
    bounds = torch.tensor([0, 3, 7, 12], dtype=torch.int32).cuda()
    lengths = bounds[1:] - bounds[:-1]
    assert lengths.tolist() == [3, 4, 5]
    assert torch.repeat_interleave(torch.arange(3, device="cuda"), lengths).shape == (12,)
    assert (lengths > 3).nonzero().flatten().tolist() == [1, 2]
    assert ((lengths + 3) // 4).cumsum(0).tolist() == [1, 2, 4]


@check
def large_tensors_keep_types_and_shapes():
    x = torch.zeros(300, 300, device="cuda", dtype=torch.float16)
    n = torch.zeros(300, 300, device="cuda", dtype=torch.int32)
    assert (x + 1.5).dtype == torch.float16 and (n + 1.5).dtype == torch.float32 and (n * 2).dtype == torch.int32
    assert (x.t() - x).shape == (300, 300) and (n > 2).dtype == torch.bool and (n // 7).dtype == torch.int32


@check
def the_second_device_is_another_one():
    before = torch.cuda.mem_get_info(0)[0]
    held = torch.empty(100 * MIB, dtype=torch.uint8, device="cuda:1")
    assert torch.cuda.mem_get_info(0)[0] == before
    assert torch.cuda.mem_get_info(1)[0] == 8 * GIB - 300 * MIB - 100 * MIB
    del held


@check
def a_snapshot_can_be_dumped():
    torch.cuda.memory._record_memory_history(max_entries=1000)
    torch.empty(10 * MIB, dtype=torch.uint8, device="cuda")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "snapshot.pickle")
        torch.cuda.memory._dump_snapshot(path)
        with open(path, "rb") as f:
            assert any(t["action"] == "alloc" for t in pickle.load(f)["device_traces"][0])
    torch.cuda.memory._record_memory_history(enabled=None)


@check
def two_ranks_exchange_their_data_and_take_a_training_step():
    """A process for each rank, on NCCL: what one reads came from the other."""
    with tempfile.TemporaryDirectory() as folder:
        ranks = [subprocess.Popen([sys.executable, os.path.abspath(__file__), "rank", str(rank), os.path.join(folder, "store")]) for rank in range(2)]
        try:
            ended = [rank.wait(timeout=200) for rank in ranks]
        finally:
            for rank in ranks:
                rank.kill()
    assert ended == [0, 0], ended


def held_bytes():
    """What an optimizer has told of so far."""
    import oomsight_aid
    names = ("parameters", "gradients", "optimizer")
    return {name: max((int(line.split()[-2]) for line in oomsight_aid._told if line.startswith("measured %s " % name)), default=None) for name in names}


def a_sharded_layer_is_measured():
    """FSDP2: each rank has a part of every tensor, and the optimizer holds wrappers of them."""
    from torch.distributed.fsdp import fully_shard
    layer = torch.nn.Linear(256, 128, bias=False, device="cuda")
    fully_shard(layer)
    adam = torch.optim.Adam(layer.parameters(), foreach=False)
    layer(torch.ones(4, 256, device="cuda")).sum().backward()
    adam.step()
    part = 4 * 256 * 128 // 2
    for (name, held), least in zip(held_bytes().items(), (part, part, 2 * part)):
        assert held is not None and least <= held <= least + 4096, (name, held)


def rank_checks(rank, store):
    import torch.distributed as dist
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", init_method="file://" + store, rank=rank, world_size=2, device_id=torch.device("cuda", rank))
    other = 1 - rank
    for op, want in ((dist.ReduceOp.SUM, [3, 7]), (dist.ReduceOp.MAX, [2, 4]), (dist.ReduceOp.MIN, [1, 3]), (dist.ReduceOp.PRODUCT, [2, 12])):
        for kind in (torch.int64, torch.uint8, torch.float32, torch.float16, torch.bfloat16):
            numbers = torch.tensor([rank + 1, rank + 3]).to(kind).cuda()
            dist.all_reduce(numbers, op)
            assert numbers.tolist() == want, (op, kind, numbers.tolist())
    objects = [None, None]
    dist.all_gather_object(objects, {"rank": rank, "words": ["one"] * (1 + 5000 * rank)})
    assert [o["rank"] for o in objects] == [0, 1] and len(objects[1]["words"]) == 5001, objects
    told = [{"from": 1}] if rank == 1 else [None]
    dist.broadcast_object_list(told, src=1)
    assert told == [{"from": 1}], told
    received = torch.zeros(3, dtype=torch.int64, device="cuda")
    for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, torch.tensor([rank, 8, 9]).cuda(), other), dist.P2POp(dist.irecv, received, other)]):
        work.wait()
    assert received.tolist() == [other, 8, 9], received.tolist()
    part = torch.zeros(2, dtype=torch.int64, device="cuda")
    dist.reduce_scatter_tensor(part, torch.arange(4).cuda() * (rank + 1))
    assert part.tolist() == [6 * rank, 6 * rank + 3], part.tolist()
    changed = torch.zeros(2, dtype=torch.int64, device="cuda")
    dist.all_to_all_single(changed, torch.tensor([10 * rank, 10 * rank + 1]).cuda())
    assert changed.tolist() == [rank, 10 + rank], changed.tolist()
    for group in (dist.new_group([0, 1]), dist.new_group([rank], use_local_synchronization=True)):
        ones = torch.ones(1, dtype=torch.int64, device="cuda")
        dist.all_reduce(ones, group=group)
        assert ones.item() == dist.get_world_size(group)
    dist.all_reduce(torch.empty(32 * MIB, dtype=torch.uint8, device="cuda"))  # a large one is a launch
    a_sharded_layer_is_measured()
    layers = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.BatchNorm1d(64), torch.nn.ReLU(), torch.nn.Linear(64, 4)).cuda()
    model = torch.nn.parallel.DistributedDataParallel(layers, device_ids=[rank])
    steps = torch.optim.AdamW(model.parameters())
    for _ in range(3):
        model(torch.randn(8, 32, device="cuda")).sum().backward()
        steps.step()
        steps.zero_grad()
    dist.barrier()
    dist.destroy_process_group()
    return 0


@check
def torch_compile_makes_triton_kernels():
    @torch.compile
    def f(x):
        return torch.relu(x) * 3 + 1
    assert f(torch.randn(1000, 100, device="cuda")).shape == (1000, 100)


def allocator_checks():
    """Run once more with another PYTORCH_CUDA_ALLOC_CONF."""
    held = [torch.empty(300 * MIB, dtype=torch.uint8, device="cuda") for _ in range(20)]
    for i in range(0, 20, 2):
        held[i] = None
    held.append(torch.empty(2000 * MIB, dtype=torch.uint8, device="cuda"))  # needs the holes
    try:
        torch.empty(8 * GIB, dtype=torch.uint8, device="cuda")
        return 1
    except torch.OutOfMemoryError:
        return 0


def scan_check():
    """Run on a device the wheel has no image of its own for: library kernels choose their variant by the nearest."""
    out = torch.empty(300000, dtype=torch.int32, device="cuda")
    torch.cumsum(torch.ones(300000, dtype=torch.int32, device="cuda"), 0, out=out)
    torch.cuda.synchronize()
    return 0


def main():
    if sys.argv[1:] == ["scan"]:
        return scan_check()
    if sys.argv[1:2] == ["rank"]:
        return rank_checks(int(sys.argv[2]), sys.argv[3])
    if sys.argv[1:] == ["allocator"]:
        return allocator_checks()
    failed = 0
    for function in CHECKS:
        name = function.__name__.replace("_", " ")
        try:
            function()
            print("ok   %s" % name, flush=True)
        except Exception as error:
            failed += 1
            print("FAIL %s: %r" % (name, error), flush=True)
    print("%d checks, %d failed" % (len(CHECKS), failed), flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
