/* What a LoRA slot takes (vLLM 0.32, lora/layers/base_linear.py): per fused matrix A of rank x input and B of output x
 * rank. A column-parallel layer divides B, a row-parallel one A; the other is a full copy. */
#include "plan/weights_lora.h"

static uint64_t slot_cells(const oos_cut *cut, const oos_matrix *matrix, const oos_quant *quant,
                           uint64_t rank)
{
    if (!matrix->linear || matrix->expert || matrix->split == OOS_SPLIT_VOCAB) return 0;
    oos_piece const p = oos_piece_of(cut, matrix, quant);
    uint64_t const shards = matrix->shards ? matrix->shards : 1;
    return oos_mul(rank, oos_add(oos_mul(shards, p.columns), p.rows));
}

uint64_t oos_lora_bytes(const oos_setup *setup, const oos_cut *cut, uint64_t stage)
{
    const oos_model *model = setup->model;
    uint64_t first, cells = 0;
    if (setup->loras == 0) return 0;
    uint64_t const count = oos_setup_stage_layers(setup, stage, &first);
    for (uint64_t i = first; i < first + count; i++) {
        const oos_layer *layer = &model->layers[i];
        for (uint32_t m = 0; m < layer->matrix_count; m++) {
            const oos_matrix *matrix = &model->matrices[layer->first_matrix + m];
            cells = oos_add(cells, slot_cells(cut, matrix, &model->quants[matrix->quant], setup->lora_rank));
        }
    }
    return oos_mul(oos_mul(setup->loras, cells), cut->dtype_bytes);
}
