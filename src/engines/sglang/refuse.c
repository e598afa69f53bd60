/* What SGLang refuses before it looks at memory: data/engines/sglang/refusals.json has ServerArgs and ModelConfig in the order in which they
 * look, with their own sentences; what is no row is here. Files are those of 0.5.23; the sentences stand in 0.5.18 and 0.5.20 as well, unless
 * a rule says otherwise. */
#include "engines/sglang/sglang.h"

#include <string.h>

typedef struct asked {
    const oos_start *start;
    const sglang_request *request;
    const sglang_setup *setup;
} asked;

/* get_min_capability() of a method, and of the schemes of compressed-tensors: FP8 without kernels of its own runs by Marlin, NVFP4 of
 * ModelOpt too; equal in 0.5.18 and 0.5.23. 0: not known here. */
static unsigned least_capability(oos_quant_kind kind, bool schemes, bool modelopt)
{
    switch (kind) {
    case OOS_QUANT_AWQ: return 75;
    case OOS_QUANT_GPTQ: return 60;
    case OOS_QUANT_PACKED_INT:
    case OOS_QUANT_INT8: return schemes ? 80 : 0;
    case OOS_QUANT_FP8_TENSOR:
    case OOS_QUANT_FP8_CHANNEL:
    case OOS_QUANT_FP8_BLOCK: return modelopt ? 89 : 80;
    case OOS_QUANT_NVFP4: return schemes ? 100 : 80;
    case OOS_QUANT_MXFP4: return 80;
    case OOS_QUANT_BNB: return 70;
    case OOS_QUANT_NONE:
    case OOS_QUANT_MXFP8:
    case OOS_QUANT_UNKNOWN: break;
    }
    return 0;
}

/* model_loader/loader.py, _get_quantization_config(), and compressed_tensors.py, _check_scheme_supported() */
static bool oos_check_kernels(oos_check *c)
{
    const oos_start *start = ((const asked *)c->of)->start;
    const oos_model *model = start->model;
    const char *method = model->quant_method;
    unsigned const has = start->device.capability;
    if (has == 0) return false;
    bool const schemes = strncmp(method, "compressed", 10) == 0,
               modelopt = strncmp(method, "modelopt", 8) == 0;
    for (size_t i = 0; i < model->matrix_count; i++) {
        oos_quant_kind const kind = model->quants[model->matrices[i].quant].kind;
        unsigned const least = least_capability(kind, schemes, modelopt);
        if (has >= least) continue;
        if (schemes && kind == OOS_QUANT_NVFP4)
            return oos_check_refuse(c, "Current platform does not support w4a4 nvfp4 quantization.");
        if (schemes)
            return oos_check_refuse(c,
                                    "Quantization scheme is not supported for the current GPU. Min "
                                    "capability: %u. Current capability: %u.",
                                    least, has);
        return oos_check_refuse(c,
                                "The quantization method %s is not supported for the current GPU. Minimum "
                                "capability: %u. Current capability: %u.",
                                method, least, has);
    }
    return false;
}

#define TERMS "engines/sglang/terms.def"
#include "plan/terms.def"

const oos_refusal_names oos_sglang_refusal_names = {term_fields, term_checks,
                                                    sizeof term_fields / sizeof *term_fields,
                                                    sizeof term_checks / sizeof *term_checks};

/* Fewer GPUs than those of the command; 0: it has more than tensor ranks. */
static uint64_t tp_that_fits(const asked *of)
{
    const sglang_request *r = of->request;
    const oos_device_facts *device = &of->start->device;
    if (r->pp > 1 || r->dp > 1 || r->tp < 2) return 0;
    return oos_ranks_that_divide(of->start->model,
                                 device->count_given ? oos_min(r->tp - 1, device->count) : r->tp - 1);
}

static oos_term_value field(const oos_check *c, size_t id)
{
    const asked *of = c->of;
    const sglang_request *r = of->request;
    const oos_model *model = of->start->model;
    const oos_given_variable *longer =
        oos_engine_env_given(of->start->env, "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN");
    switch (id) {
#include TERMS
    }
    return (oos_term_value){0};
}

oomsight_status oos_sglang_refuse(oos_arena *arena, const oos_start *start, const sglang_request *request,
                                  const sglang_setup *setup, oos_refusal *ret_refusal, oomsight_error *reterr)
{
    asked const of = {start, request, setup};
    oos_check c = {.arena = arena,
                   .serve = start->serve,
                   .newer = start->beyond > 0,
                   .refusals = setup->rules->refusals,
                   .rules = setup->rules,
                   .of = &of,
                   .field = field,
                   .checks = term_code,
                   .refusal = ret_refusal};
    return oos_check_run(&c, reterr);
}
