"""What the module in an engine's processes does for serving, on a real PyTorch and samplers of a few lines: run by test_torch.py inside
a dry run."""
import sys
import types

import oomsight_aid as aid
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


def tokens():
    aid.sample(types.SimpleNamespace(Sampler=Sampler))
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
    aid.sample_v2(types.SimpleNamespace(Sampler=SamplerV2))
    import numpy
    batch = types.SimpleNamespace(num_reqs=4, seq_lens_cpu_upper_bound=torch.tensor([5, 10, 3, 9], dtype=torch.int32),
                                  prefill_len_np=numpy.array([5, 12, 3, 4], dtype=numpy.int32))
    output = SamplerV2()(device(4, VOCAB, dtype=torch.float16), batch)
    check("a request whose prompt is not through gets no token", output.num_sampled.cpu().tolist() == [1, 0, 1, 1], output.num_sampled.cpu())
    check("and nothing is rejected", output.num_rejected.cpu().tolist() == [0] * 4, output.num_rejected.cpu())


def drafts():
    aid.accept(types.SimpleNamespace(RejectionSampler=RejectionSampler))
    rows = []
    for _ in range(20):
        rows += RejectionSampler().forward(types.SimpleNamespace(num_draft_tokens=[0, 3, 2]), None, None, None).cpu().tolist()
    taken = [sum(token >= 0 for token in row) for row in rows]
    check("of drafted tokens some are taken, and one more", set(taken[0::3]) == {1} and set(taken[1::3]) == {1, 2, 3, 4} and set(taken[2::3]) == {1, 2, 3}, taken)
    check("what is taken comes first", all(row == sorted(row, key=lambda token: token < 0) for row in rows))


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


def history():
    kept = [device(1 << 20) for _ in range(20)]
    del kept[::2]


if __name__ == "__main__":
    torch.cuda.init()
    aid._snapshot.begin(0, 1)  # before the first tensor, as in a worker
    for part in (tokens, runner_v2, drafts, steps, history):
        part()
    sys.exit(1 if failed else 0)
