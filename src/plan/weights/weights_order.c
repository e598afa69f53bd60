/* Modules make their parameters in the order in which they are written down: towers, embedding, layer by layer, head. The
 * caching allocator asks CUDA for segments: 2 MiB for tensors up to 1 MiB, 20 MiB for those below 10 MiB, whole 2 MiB for
 * larger ones (PyTorch c10/cuda, get_allocation_size). */
#include "plan/weights/weights_order.h"

#include "plan/weights/weights_quant.h"

typedef struct walk {
    const oos_model *model;
    oos_cut cut;
    uint64_t room;          /* what the device has left */
    uint64_t small, middle; /* rests of the newest segments of 2 and 20 MiB */
    uint64_t tried;         /* the refused segment; 0: none yet */
} walk;

static void segment(walk *w, uint64_t bytes)
{
    if (bytes > w->room)
        w->tried = bytes;
    else
        w->room -= bytes;
}

static void share(walk *w, uint64_t *rest, uint64_t size, uint64_t segment_bytes)
{
    if (size > *rest) {
        segment(w, segment_bytes);
        *rest = segment_bytes;
    }
    *rest -= oos_min(size, *rest);
}

static void tensor(walk *w, uint64_t bytes)
{
    uint64_t const size = oos_round_up(bytes, 512);
    if (size <= OOS_MIB)
        share(w, &w->small, size, 2 * OOS_MIB);
    else if (size < 10 * OOS_MIB)
        share(w, &w->middle, size, 20 * OOS_MIB);
    else
        segment(w, oos_round_up(size, 2 * OOS_MIB));
}

static void matrices(walk *w, uint64_t first, uint64_t count)
{
    for (uint64_t i = first; i < first + count && !w->tried; i++) {
        const oos_matrix *matrix = &w->model->matrices[i];
        uint64_t tensors[OOS_TENSORS_MAX];
        size_t const made = oos_tensors_created(
            &w->cut, matrix, &w->model->quants[w->cut.unquantised ? 0 : matrix->quant], tensors);
        for (size_t t = 0; t < made && !w->tried; t++) tensor(w, tensors[t]);
    }
}

uint64_t oos_weights_tried(const oos_setup *setup, uint64_t stage, uint64_t room_bytes)
{
    const oos_model *model = setup->model;
    if (!model->known || (setup->serve && setup->serve->cpu_offload_gb.known)) return 0;
    walk w = {.model = model, .cut = oos_cut_of(setup), .room = room_bytes};
    uint64_t first;
    uint64_t const count = oos_setup_stage_layers(setup, stage, &first);
    if (setup->multimodal && (stage == 0 || !model->vision_first_only))
        matrices(&w, model->vision_matrices[0], model->vision_matrices[1]);
    if (stage == 0) matrices(&w, model->first_stage[0], model->first_stage[1]);
    for (uint64_t i = first; i < first + count && !w.tried; i++)
        matrices(&w, model->layers[i].first_matrix, model->layers[i].matrix_count);
    matrices(&w, model->every_stage[0], model->every_stage[1]);
    if (stage + 1 >= setup->pp) matrices(&w, model->last_stage[0], model->last_stage[1]);
    return w.tried;
}
