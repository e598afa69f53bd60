/* Why memory strands: a request of 1 to 10 MiB takes a 20 MiB segment and splits it. With max_split_size_mb equal to the
 * segment size, a segment that has become whole again counts as oversize and may not serve a request below the limit
 * (PyTorch, get_free_block). Outside a MemPool the retry before an OOM returns such segments; inside one it does not,
 * and vLLM's pool keeps its first error besides. So each layer whose repack clones its experts one by one
 * (0.21 to 0.23, unquantised, TRT-LLM kernel on compute capability 10.x) leaves its segments behind. */
#include "engines/vllm/vllm.h"

enum {
    SEGMENT_MIB = 20,
    SMALL_MIB = 1,
    LARGE_MIB = 10
}; /* PyTorch c10/cuda: kLargeBuffer, kSmallSize, kMinLargeAlloc */

static bool splits_a_segment(uint64_t bytes)
{
    return bytes > SMALL_MIB * OOS_MIB && bytes < LARGE_MIB * OOS_MIB;
}

/* Bytes of one expert's share of a matrix on one rank. */
static uint64_t piece_bytes(const oos_setup *setup, const oos_matrix *matrix)
{
    uint64_t const elements = oos_mul(matrix->out, matrix->in);
    uint64_t const cut = setup->ep > 1 ? 1 : setup->tp;
    return oos_mul(elements / cut, oos_dtype_bytes(setup->dtype));
}

static uint64_t layer_strand(const oos_setup *setup, const oos_layer *layer)
{
    uint64_t round_bytes = 0, experts = 0;
    for (uint32_t i = 0; i < layer->matrix_count; i++) {
        const oos_matrix *matrix = &setup->model->matrices[layer->first_matrix + i];
        if (!matrix->expert || matrix->quant || matrix->in == 1) continue;
        uint64_t const bytes = piece_bytes(setup, matrix);
        if (!splits_a_segment(bytes)) continue;
        round_bytes += bytes;
        experts = matrix->count / setup->ep;
    }
    if (!round_bytes) return 0;
    /* The pieces of one expert are taken one after the other; a segment holds as many whole experts as fit. */
    uint64_t const per_segment = oos_max(1, SEGMENT_MIB * OOS_MIB / round_bytes);
    return oos_mul(oos_cdiv(experts, per_segment), SEGMENT_MIB * OOS_MIB);
}

uint64_t oos_pool_strand(const oos_setup *setup, uint64_t stage)
{
    const vllm_rules *rules = setup->rules;
    if (!setup->sleep_pool || !rules->weights_in_sleep_pool || rules->load_split_limit_mib != SEGMENT_MIB)
        return 0;
    if (!rules->moe_repack_per_expert || setup->device.capability / 10 != 10) return 0;
    uint64_t first, strand = 0;
    uint64_t const count = oos_setup_stage_layers(setup, stage, &first);
    for (uint64_t i = first; i < first + count; i++)
        strand = oos_add(strand, layer_strand(setup, &setup->model->layers[i]));
    return strand;
}
