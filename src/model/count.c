/* Parameters of a model as its checkpoint has them: what the maker publishes and the headers of the weight files add up to. */
#include "model/model.h"

#include <string.h>

static uint64_t of_range(const oos_model *model, uint64_t first, uint64_t count)
{
    uint64_t sum = 0;
    for (uint64_t i = first; i < first + count; i++) {
        const oos_matrix *m = &model->matrices[i];
        uint64_t const cells = oos_add(oos_mul(m->out, m->in), m->bias ? m->out : 0);
        sum = oos_add(sum, oos_mul(m->count, cells));
    }
    return sum;
}

static uint64_t of_layers(const oos_model *model, const oos_layer *layers, uint64_t count)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < count; i++)
        sum = oos_add(sum, of_range(model, layers[i].first_matrix, layers[i].matrix_count));
    return sum;
}

oos_parameters oos_model_parameters(const oos_model *model)
{
    uint64_t const decoder = of_layers(model, model->layers, model->layer_count),
                   ends = oos_add(of_range(model, model->first_stage[0], model->first_stage[1]),
                                  of_range(model, model->last_stage[0], model->last_stage[1])),
                   every = of_range(model, model->every_stage[0], model->every_stage[1]);
    return (oos_parameters){.decoder = oos_add(decoder, oos_add(ends, every)),
                            .tower = of_range(model, model->vision_matrices[0], model->vision_matrices[1]),
                            .drafter =
                                oos_add(of_layers(model, model->mtp_layers, model->mtp_layer_count),
                                        of_range(model, model->mtp_matrices[0], model->mtp_matrices[1]))};
}
