"""What the module in an engine's processes does for serving, on a real PyTorch and samplers of a few lines: run by test_torch.py inside
a dry run."""
import ctypes
import os
import sys
import types

import oomsight_aid as aid
import oomsight_engine_vllm as vllm
import torch

VOCAB = 50272
failed = 0


def check(sentence, holds, seen=""):
    global failed
    failed += not holds
    print("%s %s%s" % ("ok  " if holds else "FAIL", sentence, "" if holds else ": %s" % (seen,)), flush=True)


def device(*shape, dtype=torch.int32):
    return torch.empty(shape, dtype=dtype, device="cuda")


class Sampler:
    def forward(self, logits, metadata=None):
        logits.float().softmax(-1)
        ranked = types.SimpleNamespace(logprob_token_ids=device(len(logits), 6), logprobs=device(len(logits), 6, dtype=torch.float32),
                                       selected_token_ranks=device(len(logits)))
        return types.SimpleNamespace(sampled_token_ids=device(len(logits), 1), logprobs_tensors=ranked)


class SamplerV2:
    def __call__(self, logits, batch):
        n = len(logits)
        return types.SimpleNamespace(sampled_token_ids=device(n, 1, dtype=torch.int64), num_sampled=device(n), num_rejected=device(n))


class RejectionSampler:
    def forward(self, metadata, draft_probs, logits, sampling_metadata):
        return device(len(metadata.num_draft_tokens), 4)


class RejectionSamplerV2:
    def __call__(self, logits, batch, draft_logits=None):
        n = batch.num_reqs
        ranked = types.SimpleNamespace(logprob_token_ids=device(len(logits), 6), logprobs=device(len(logits), 6, dtype=torch.float32),
                                       selected_token_ranks=device(len(logits)))
        return types.SimpleNamespace(sampled_token_ids=device(n, 4, dtype=torch.int64), num_sampled=device(n), num_rejected=device(n), logprobs_tensors=ranked)


def tokens():
    vllm.sample(types.SimpleNamespace(Sampler=Sampler))
    logits = device(4, VOCAB, dtype=torch.float16)
    ids = Sampler().forward(logits=logits).sampled_token_ids
    check("sampled tokens have the type of the engine's tensor", ids.dtype == torch.int32, ids.dtype)
    check("and are tokens that do not end a text", all(3 <= token < 1000 for token in ids.cpu().flatten().tolist()), ids.cpu())
    ranked = Sampler().forward(logits=logits)
    named, first = ranked.logprobs_tensors.logprob_token_ids.cpu(), ranked.sampled_token_ids.cpu()
    check("log probabilities name tokens, the drawn one first",
          named[:, 0].tolist() == first[:, 0].tolist() and int(named.min()) >= 3 and int(named.max()) < 1000, named)
    check("and are numbers", ranked.logprobs_tensors.logprobs.cpu().flatten().tolist() == [-1.0] * 24)
    device(4, 1).scatter_(0, torch.zeros((4, 1), dtype=torch.int64, device="cuda"), ids)
    check("the engine may scatter them into its own", True)
    bits = torch.full((4, (VOCAB + 31) // 32), -1, dtype=torch.int32)
    bits[2] = 0
    bits[2, 1] = 1 << 3
    xgrammar = types.SimpleNamespace(apply_token_bitmask_inplace=lambda logits, bitmask, indices=None: None)
    aid.obey_grammar(xgrammar)
    xgrammar.apply_token_bitmask_inplace(logits, bits.to("cuda"), indices=torch.tensor([2], dtype=torch.int32).to("cuda"))
    drawn = Sampler().forward(logits).sampled_token_ids.cpu().flatten().tolist()
    check("a row under a grammar gets what the grammar allows", drawn[2] == 35, drawn)
    check("for one step", all(Sampler().forward(logits).sampled_token_ids.cpu()[2] != 35 for _ in range(3)))


def runner_v2():
    vllm.sample_v2(types.SimpleNamespace(Sampler=SamplerV2))
    import numpy
    batch = types.SimpleNamespace(num_reqs=4, seq_lens_cpu_upper_bound=torch.tensor([5, 10, 3, 9], dtype=torch.int32),
                                  prefill_len_np=numpy.array([5, 12, 3, 4], dtype=numpy.int32))
    output = SamplerV2()(device(4, VOCAB, dtype=torch.float16), batch)
    check("a request whose prompt is not through gets no token", output.num_sampled.cpu().tolist() == [1, 0, 1, 1], output.num_sampled.cpu())
    check("and nothing is rejected", output.num_rejected.cpu().tolist() == [0] * 4, output.num_rejected.cpu())


def sizes():
    """Operators whose result is as large as their values say."""
    kinds = torch.tensor([0, 0, 2, -1, 2, 0], dtype=torch.int32, device="cpu").to("cuda")
    found, counts = torch.unique(kinds, sorted=True, return_counts=True)
    check("unique finds the values that the engine wrote", found.cpu().tolist() == [-1, 0, 2] and counts.cpu().tolist() == [1, 3, 2], (found.cpu(), counts.cpu()))
    check("so does unique_consecutive", torch.unique_consecutive(kinds).cpu().tolist() == [0, 2, -1, 2, 0])
    check("bincount counts", torch.bincount(kinds[:3]).cpu().tolist() == [2, 0, 1])
    scale = torch.nn.Parameter(torch.tensor(-1.0, device="cpu").to("cuda"), requires_grad=False)
    check("one number is compared, whatever its type", bool(scale <= 0.0) and not bool(scale > 0.0) and bool(scale == scale))
    mask = torch.tensor([1, 0, 1], dtype=torch.bool, device="cpu").to("cuda")
    check("a mask selects as many as it has, of numbers that no kernel computed too",
          torch.masked_select(kinds[:3], mask).cpu().tolist() == [0, 2] and tuple(torch.masked_select(device(3, dtype=torch.float16), mask).shape) == (2,))
    try:
        torch.unique(device(1 << 17))
        refused = ""
    except RuntimeError as error:
        refused = str(error)
    check("what is too large to be computed is refused by name", "aten::_unique2" in refused, refused)


class Runner:
    def execute_model(self, scheduled):
        return None

    def _to_list(self, sampled_token_ids):
        pinned = torch.empty(sampled_token_ids.shape, dtype=torch.int64, device="cpu")
        pinned.copy_(sampled_token_ids)
        return pinned.tolist()


def listed():
    vllm.watch_steps(types.SimpleNamespace(GPUModelRunner=Runner))
    ids = device(3, 1)
    aid.write(ids, torch.tensor([[7], [8], [9]], dtype=torch.int32, device="cpu"))
    seen = Runner()._to_list(ids)
    check("tokens that an engine copies into another type are the same tokens", seen == [[7], [8], [9]], seen)


def waking():
    """Two blocks of a sleeping engine are mapped again, each for the owner it had."""
    import oomsight_phases as phases
    told, real = [], phases._enter
    phases._enter, before = lambda phase, owner: told.append(owner.decode()), phases._now
    phases._now = ("runtime_prefill", "activations")
    blocks = {1: types.SimpleNamespace(tag="weights"), 2: types.SimpleNamespace(tag="kv_cache"), 3: types.SimpleNamespace(tag="other")}
    allocator = types.SimpleNamespace(get_instance=lambda: types.SimpleNamespace(pointer_to_data=blocks))
    module = types.SimpleNamespace(CuMemAllocator=allocator, create_and_map=lambda handle: None)
    vllm.waking(module)
    for pointer in blocks:
        module.create_and_map((0, 4096, pointer, 0))
    check("what wakes belongs to whom it belonged", told == ["weights", "activations", "KV cache", "activations"], told)
    phases._enter, phases._now = real, before


def drafts():
    vllm.accept(types.SimpleNamespace(RejectionSampler=RejectionSampler))
    rows = []
    for _ in range(20):
        rows += RejectionSampler().forward(types.SimpleNamespace(num_draft_tokens=[0, 3, 2]), None, None, None).cpu().tolist()
    taken = [sum(token >= 0 for token in row) for row in rows]
    check("of drafted tokens some are taken, and one more", set(taken[0::3]) == {1} and set(taken[1::3]) == {1, 2, 3, 4} and set(taken[2::3]) == {1, 2, 3}, taken)
    check("what is taken comes first", all(row == sorted(row, key=lambda token: token < 0) for row in rows))


def drafts_v2():
    vllm.accept_v2(types.SimpleNamespace(RejectionSampler=RejectionSamplerV2))
    import numpy
    batch = types.SimpleNamespace(num_reqs=3, seq_lens_cpu_upper_bound=torch.tensor([9, 10, 4], dtype=torch.int32),
                                  prefill_len_np=numpy.array([5, 12, 4], dtype=numpy.int32), cu_num_logits_np=numpy.array([0, 4, 5, 6], dtype=numpy.int32))
    taken = set()
    for _ in range(40):
        output = RejectionSamplerV2()(device(6, VOCAB, dtype=torch.float16), batch)
        taken.add(tuple(zip(output.num_sampled.cpu().tolist(), output.num_rejected.cpu().tolist())))
    check("on the V2 runner a request with three drafts gets one to four tokens, the rest is rejected", {row[0] for row in taken} == {(1, 3), (2, 2), (3, 1), (4, 0)}, taken)
    check("a prompt that is not through gets none and has none rejected, one that is gets its token", {row[1:] for row in taken} == {((0, 0), (1, 0))}, taken)
    check("and log probabilities name tokens", int(output.logprobs_tensors.logprob_token_ids.cpu().min()) >= 3)


def steps():
    aid._steps.serving = lambda: True
    batch = types.SimpleNamespace(num_scheduled_tokens={"a": 5, "b": 1}, scheduled_new_reqs=[1])
    aid._steps.begin(batch)
    held = device(1 << 20)
    Sampler().forward(device(4, VOCAB, dtype=torch.float16))
    aid._steps.end(aid._steps.kind)
    most = aid._steps.most
    check("prefill took what it allocated", (4 << 20) + 4 * VOCAB * 2 <= most["prefill"][0] < 6 << 20, most)
    check("the sampler its two rows of floats a request", 2 * 4 * VOCAB * 4 <= most["sampler"][0] < 2 << 20, most)
    check("with the step and its size", most["prefill"][1:] == (1, 2, 6), most)
    del held


def growth():
    """What a thousand steps leave behind, by the lines of the module that took it."""
    import tracemalloc
    logits, batch = device(4, VOCAB, dtype=torch.float16), types.SimpleNamespace(num_scheduled_tokens={"a": 1}, scheduled_new_reqs=[])

    def serve(count):
        for _ in range(count):
            aid._steps.begin(batch)
            Sampler().forward(logits)
            aid._steps.end(aid._steps.kind)
    serve(50)
    tracemalloc.start(8)
    serve(50)
    mine = [tracemalloc.Filter(True, aid.__file__, all_frames=True)]
    before = sum(entry.size for entry in tracemalloc.take_snapshot().filter_traces(mine).statistics("lineno"))
    serve(1000)
    after = sum(entry.size for entry in tracemalloc.take_snapshot().filter_traces(mine).statistics("lineno"))
    tracemalloc.stop()
    check("a thousand steps leave less than four bytes each", after - before < 4000, (before, after))


def runtime():
    module = types.SimpleNamespace(find_loaded_library=lambda name: "/somewhere/%s.so" % name)
    vllm.one_runtime(module)
    path = module.find_loaded_library("libcudart")
    check("the runtime that an engine calls by hand is the stand-in", path in os.environ["LD_PRELOAD"] and "/libcudart.so." in path, path)
    check("other libraries are where they are", module.find_loaded_library("cumem_allocator") == "/somewhere/cumem_allocator.so")
    held, copy = device(4), torch.zeros(4, dtype=torch.int32, device="cpu")
    aid.write(held, torch.tensor([1, 2, 3, 4], device="cpu"))
    code = ctypes.CDLL(path).cudaMemcpy(ctypes.c_void_p(copy.data_ptr()), ctypes.c_void_p(held.data_ptr()), ctypes.c_size_t(16), 4)
    check("and copies from the device", code == 0 and copy.tolist() == [1, 2, 3, 4], (code, copy))


def history():
    kept = [device(1 << 20) for _ in range(20)]
    del kept[::2]


if __name__ == "__main__":
    torch.cuda.init()
    aid._snapshot.begin(0, 1)  # before the first tensor, as in a worker
    for part in (sizes, tokens, listed, waking, runner_v2, drafts, drafts_v2, steps, growth, runtime, history):
        part()
    sys.exit(1 if failed else 0)
