/* What a LoRA slot takes (vLLM 0.32, lora/layers): per fused matrix A of rank x input and B of output x rank. A
 * column-parallel layer divides B, a row-parallel one A; the other is a full copy, unless the slots are fully sharded. */
#include "sizes/sizes.h"

/* Embedding and head have slots in the classes that name them as embedding modules: A and B over the whole
 * vocabulary. */
static uint64_t vocabulary_cells(const oos_model *model, uint64_t rank)
{
    return model->lora_embeddings ? oos_mul(2, oos_mul(rank, oos_add(model->vocab, model->hidden))) : 0;
}

static uint64_t slot_cells(const oos_shard *shard, const oos_cut *cut, const oos_matrix *matrix,
                           const oos_quant *quant)
{
    if (!matrix->linear || matrix->split == OOS_SPLIT_VOCAB) return 0;
    if (matrix->expert && !shard->ways.lora_on_experts) return 0;
    oos_piece const p = oos_piece_of(cut, matrix, quant);
    uint64_t const shards = matrix->shards ? matrix->shards : 1, rank = shard->lora_rank;
    bool const sharded = shard->ways.lora_sharded;
    bool const rows_cut = matrix->split == OOS_SPLIT_OUT || matrix->split == OOS_SPLIT_KV;
    uint64_t const rank_a = sharded && rows_cut ? oos_cdiv(rank, cut->tp) : rank;
    uint64_t const rows_b = sharded && matrix->split == OOS_SPLIT_IN ? oos_cdiv(p.rows, cut->tp) : p.rows;
    uint64_t const cells = oos_add(oos_mul(oos_mul(shards, rank_a), p.columns), oos_mul(rows_b, rank));
    return oos_mul(matrix->expert ? p.count : 1, cells);
}

uint64_t oos_lora_bytes(const oos_shard *shard, const oos_cut *cut, uint64_t stage)
{
    const oos_model *model = shard->model;
    uint64_t first, cells = 0;
    if (shard->loras == 0) return 0;
    uint64_t const count = oos_shard_layers(shard, stage, &first);
    for (uint64_t i = first; i < first + count; i++) {
        const oos_layer *layer = &model->layers[i];
        for (uint32_t m = 0; m < layer->matrix_count; m++) {
            const oos_matrix *matrix = &model->matrices[layer->first_matrix + m];
            cells = oos_add(cells, slot_cells(shard, cut, matrix, &model->quants[matrix->quant]));
        }
    }
    if (stage + 1 >= shard->pp) cells = oos_add(cells, vocabulary_cells(model, shard->lora_rank));
    return oos_mul(oos_mul(shard->loras, cells), cut->dtype_bytes);
}
