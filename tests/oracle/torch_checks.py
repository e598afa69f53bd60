"""Run inside a dry run by test_torch.py: real PyTorch on a device of exactly 8 GiB with a context of 300 MiB. Each check
is a sentence; a failed one is printed and counted."""
import os
import pickle
import re
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
