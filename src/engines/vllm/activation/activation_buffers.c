/* What the model runner allocates once and keeps: the rows of the next batch, and in the newer runner the sampler's
 * state for every request. Also the workspace PyTorch gives cuBLAS. */
#include "engines/vllm/activation/activation_parts.h"

/* PyTorch, CUDABlas.cpp parseChosenWorkspaceSize(): 32 MiB on 9.0 and 10.x, else :4096:2:16:8. */
uint64_t oos_activation_cublas(const oos_setup *setup)
{
    unsigned const major = setup->device.capability / 10;
    if (major == 9 || (major == 10 && setup->rules->torch_minor >= 7)) return 32 * OOS_MIB;
    return 8 * OOS_MIB + 128 * OOS_KIB;
}

/* vLLM 0.32, v1/worker/gpu: penalties.py, structured_outputs.py, logit_bias.py, bad_words.py, logprob.py. For every
 * request a count and two bits per token of the vocabulary, and tables of fixed size: 4 x 1024 int32 and 5 smaller. */
static uint64_t v2_buffers(const oos_batch *batch)
{
    uint64_t const vocab = batch->setup->model->vocab;
    uint64_t const bits = oos_mul(oos_cdiv(vocab, 32), 4);
    uint64_t const request = oos_add(oos_add(oos_mul(vocab, 4), oos_mul(bits, 2)), 18 * OOS_KIB);
    /* input_ids int32, positions int64, is_padding bool */
    uint64_t const token = 13;
    return oos_add(oos_mul(request, batch->setup->max_num_seqs), oos_mul(token, batch->tokens));
}

/* The older runner: ids, positions, slot mappings per token; the block table per request (v1/worker/block_table.py). */
static uint64_t v1_buffers(const oos_batch *batch)
{
    uint64_t const blocks = oos_cdiv(batch->setup->max_model_len, 16);
    return oos_add(oos_mul(batch->tokens, 40), oos_mul(oos_mul(batch->setup->max_num_seqs, blocks), 4));
}

uint64_t oos_activation_buffers(const oos_batch *batch)
{
    return batch->setup->v2_runner ? v2_buffers(batch) : v1_buffers(batch);
}
