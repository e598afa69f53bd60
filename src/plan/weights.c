/* Weights of one rank: the matrices of its layers and of its end of the pipeline, summed. */
#include "plan/weights.h"

#include "plan/weights_quant.h"

enum { SHAPES_ON_STACK = 256 };

typedef struct sum {
    const oos_setup *setup;
    const oos_model *model;
    oos_cut cut;
    oos_weights *weights;
} sum;

static void part_add(oos_weights *weights, const char *module, uint64_t bytes)
{
    size_t i = 0;
    while (i < weights->part_count && weights->parts[i].module != module) i++;
    if (i == weights->part_count) {
        if (i == OOS_WEIGHT_PARTS_MAX)
            i--;
        else
            weights->part_count++;
        weights->parts[i].module = module;
    }
    weights->parts[i].bytes = oos_add(weights->parts[i].bytes, bytes);
}

/* Matrices [first, first + count), `times` times over. */
static uint64_t range_add(sum *s, uint64_t first, uint64_t count, uint64_t times)
{
    uint64_t total = 0;
    if (times == 0) return 0;
    for (uint64_t i = first; i < first + count; i++) {
        const oos_matrix *matrix = &s->model->matrices[i];
        uint64_t const bytes =
            oos_mul(times, oos_piece_bytes(&s->cut, matrix, &s->model->quants[matrix->quant]));
        part_add(s->weights, matrix->module, bytes);
        total = oos_add(total, bytes);
    }
    return total;
}

/* Equal layers are computed once. */
static oomsight_status layers_add(oos_arena *arena, sum *s, const oos_layer *layers, uint64_t first,
                                  uint64_t count, uint64_t *ret_bytes, oomsight_error *reterr)
{
    uint32_t few[SHAPES_ON_STACK] = {0}, *times = few;
    if (s->model->shape_count > SHAPES_ON_STACK) {
        times = OOS_NEW_ARRAY(arena, uint32_t, s->model->shape_count);
        if (!times) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the layers");
    }
    for (uint64_t i = first; i < first + count; i++) times[layers[i].shape]++;
    uint64_t total = 0;
    for (uint64_t i = first; i < first + count; i++) {
        uint32_t const shape = layers[i].shape;
        total = oos_add(total, range_add(s, layers[i].first_matrix, layers[i].matrix_count, times[shape]));
        times[shape] = 0;
    }
    *ret_bytes = total;
    return OOMSIGHT_OK;
}

/* The embedding once more, on the stage whose head is tied to it. */
static uint64_t tied_add(sum *s)
{
    const oos_model *model = s->model;
    uint64_t total = 0;
    for (uint64_t i = model->first_stage[0]; i < model->first_stage[0] + (uint64_t)model->first_stage[1]; i++)
        if (model->matrices[i].split == OOS_SPLIT_VOCAB) total = oos_add(total, range_add(s, i, 1, 1));
    return total;
}

oomsight_status oos_weights_of_stage(oos_arena *arena, const oos_setup *setup, uint64_t stage,
                                     oos_weights *ret_weights, oomsight_error *reterr)
{
    const oos_model *model = setup->model;
    oos_weights weights = {.source = model->known ? OOS_SOURCE_DERIVED : OOS_SOURCE_ESTIMATED};
    sum s = {.setup = setup, .model = model, .cut = oos_cut_of(setup), .weights = &weights};
    bool const first_stage = stage == 0, last_stage = stage + 1 >= setup->pp;

    uint64_t first, bytes = 0;
    uint64_t const count = oos_setup_stage_layers(setup, stage, &first);
    OOS_TRY(layers_add(arena, &s, model->layers, first, count, &bytes, reterr));
    if (first_stage) bytes = oos_add(bytes, range_add(&s, model->first_stage[0], model->first_stage[1], 1));
    if (last_stage) bytes = oos_add(bytes, range_add(&s, model->last_stage[0], model->last_stage[1], 1));
    if (last_stage && !first_stage && model->tied) bytes = oos_add(bytes, tied_add(&s));
    bytes = oos_add(bytes, range_add(&s, model->every_stage[0], model->every_stage[1], 1));
    if (setup->multimodal && (first_stage || !model->vision_first_only))
        bytes = oos_add(bytes, range_add(&s, model->vision_matrices[0], model->vision_matrices[1], 1));
    weights.param_bytes = bytes;

    weights.loaded_bytes = weights.loaded_low = weights.loaded_high = bytes;
    *ret_weights = weights;
    return OOMSIGHT_OK;
}
