/* What the engine's model configuration refuses: the architecture, the length, the type, the quantisation. Sources:
 * vllm/config/model.py, vllm/config/vllm.py. */
#include "engines/vllm/arguments/arguments.h"

bool oos_check_architecture(oos_check *c)
{
    const oos_setup *setup = c->of;
    char other[32];
    oos_version at = 0;
    const char *name = setup->model->architecture;
    if (setup->rules->architectures.len) return false; /* the release has told its own */
    switch (oos_architecture_known_at(setup->rules->facts, name, setup->rules->version, &at)) {
    case OOS_ARCHITECTURE_LATER:
        oos_version_print(at, other, sizeof other);
        return oos_check_refuse(c, "Model architectures ['%s'] are not supported for now (first in %s).",
                                name, other);
    case OOS_ARCHITECTURE_GONE:
        oos_version_print(at, other, sizeof other);
        return oos_check_refuse(
            c, "Model architecture %s was supported in vLLM until v%s, and is not supported anymore.", name,
            other);
    case OOS_ARCHITECTURE_HERE:
    case OOS_ARCHITECTURE_UNSURE:
    case OOS_ARCHITECTURE_UNHEARD: break;
    }
    return false;
}

/* Methods that stand for one another, by what the checkpoint says: the engine takes the better kernel by itself, or the one
 * that is named. */
static bool same_family(const char *checkpoint, const char *asked)
{
    static const char *const families[][8] = {
        {"awq", "awq_marlin", "auto_awq", "awq_triton"},
        {"gptq", "gptq_marlin", "auto_gptq", "marlin", "gptq_marlin_24", "gptq_bitblas"},
        {"mxfp4", "gpt_oss_mxfp4"},
        {"fp8", "deepseek_v4_fp8"},
    };
    if (strcmp(checkpoint, asked) == 0) return true;
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        bool has = false, wants = false;
        for (size_t k = 0; k < 8 && families[i][k]; k++) {
            has |= strcmp(families[i][k], checkpoint) == 0;
            wants |= strcmp(families[i][k], asked) == 0;
        }
        if (has && wants) return true;
    }
    return false;
}

/* A method by the name it has in the release: AutoRound became a part of INC. */
static const char *name_here(const oos_check *c, const char *name)
{
    const vllm_rules *rules = setup_of(c)->rules;
    bool const round = strcmp(name, "auto-round") == 0 || strcmp(name, "auto_round") == 0;
    oos_quant_limits method;
    return round && !oos_quant_method_find(rules->facts, name, rules->version, &method) ? "inc" : name;
}

static bool method_here(const oos_check *c, const char *name)
{
    oos_quant_limits method;
    return oos_quant_method_find(setup_of(c)->rules->facts, name, setup_of(c)->rules->version, &method);
}

/* What a release makes of a checkpoint's own method before it looks at the flag. */
typedef struct own_method {
    const char *name; /* NULL: the checkpoint has none */
    bool wins;        /* whatever the flag says (override_quantization_method) */
    bool unknown;     /* a scheme of ModelOpt that the release has no name for */
} own_method;

static own_method modelopt_method(const oos_check *c, const char *has)
{
    const oos_model *model = setup_of(c)->model;
    const char *algo = model->modelopt_algo;
    own_method own = {.name = has};
    if (!algo) return own;
    bool const fp8 = strcmp(algo, "FP8") == 0;
    if (model->modelopt_produced) { /* _normalize_quantization_config() */
        bool const fp8_too = strcmp(algo, "FP8_PER_CHANNEL_PER_TOKEN") == 0 || strcmp(algo, "FP8_PB_WO") == 0;
        if (fp8 || fp8_too)
            own.name = "modelopt";
        else if (strcmp(algo, "NVFP4") == 0)
            own.name = "modelopt_fp4";
        else
            own.unknown = true;
    }
    if (own.unknown || (strcmp(own.name, "modelopt") != 0 && !setup_of(c)->rules->modelopt_by_prefix))
        return own;
    const char *other = fp8                                    ? "modelopt"
                        : strstr(algo, "MXFP8")                ? "modelopt_mxfp8"
                        : strstr(algo, "FP4")                  ? "modelopt_fp4"
                        : strcmp(algo, "MIXED_PRECISION") == 0 ? "modelopt_mixed"
                                                               : NULL;
    if (other && method_here(c, other)) own = (own_method){.name = other, .wins = true};
    return own;
}

static own_method own_method_of(const oos_check *c)
{
    const oos_model *model = setup_of(c)->model;
    const char *has = model->quant_by_flag ? NULL : model->quant_method;
    if (!has) return (own_method){0};
    if (strncmp(has, "modelopt", 8) == 0) return modelopt_method(c, has);
    bool const oss = strcmp(has, "mxfp4") == 0 && method_here(c, "gpt_oss_mxfp4");
    bool const its_own = oos_setup_says(c->of, "own_quantization") > 0;
    const char *name = name_here(c, has);
    return (own_method){.name = name, .wins = oss || its_own || strcmp(name, has) != 0};
}

/* Methods that a scheme without a name may be: not judged. */
static bool by_flag(const char *asked)
{
    return strstr(asked, "fp8") || strcmp(asked, "modelopt") == 0 ||
           strcmp(asked, "compressed-tensors") == 0 || strcmp(asked, "humming") == 0;
}

/* What is installed lists its methods. Of a checkpoint's own name it is said where a release had it. */
static bool is_no_method(const vllm_rules *rules, const char *name, bool asked)
{
    oos_quant_limits method;
    bool const had = oos_quant_method_find(rules->facts, name, rules->version, &method);
    bool const said = asked || oos_quant_method_gone(rules->facts, name, rules->version);
    if (rules->quantization.len) return (said || had) && !oos_learned_lists(rules->quantization, name);
    return said && !had && oos_arguments_reach(rules->facts, rules->version);
}

/* ModelConfig._verify_quantization() */
bool oos_check_quantization(oos_check *c)
{
    const oos_setup *setup = c->of;
    const char *asked = setup->serve->quantization;
    own_method const own = own_method_of(c);
    const char *has = own.name, *name = asked ? asked : has;
    oos_quant_limits method;
    bool const read = oos_arguments_reach(setup->rules->facts, setup->rules->version);
    if (own.unknown && read)
        return oos_check_refuse(c, "Unknown ModelOpt quant algo: %s", setup->model->modelopt_algo);
    if (!name || own.wins) return false;
    if (setup->model->quant_by_flag && asked && !by_flag(asked)) {
        oos_check_mend_without(c, "--quantization");
        return oos_check_refuse(
            c,
            "Quantization method specified in the model config (None) does not match the quantization "
            "method specified in the `quantization` argument (%s).",
            asked);
    }
    if (has && asked && !same_family(has, asked)) {
        oos_check_mend_without(c, "--quantization");
        return oos_check_refuse(
            c,
            "Quantization method specified in the model config (%s) does not match the quantization "
            "method specified in the `quantization` argument (%s).",
            has, asked);
    }
    if (is_no_method(setup->rules, name, asked != NULL)) {
        if (asked) oos_check_mend_without(c, "--quantization");
        return oos_check_refuse(
            c, "Unknown quantization method: %s. Must be one of the methods of this release.", name);
    }
    if (asked && !has && oos_quant_method_find(setup->rules->facts, name, setup->rules->version, &method) &&
        method.deprecated && !oos_check_has(c, "--allow-deprecated-quantization")) {
        oos_check_mend_without(c, "--quantization");
        return oos_check_refuse(
            c,
            "The quantization method %s is deprecated and will be removed in future versions of vLLM. To "
            "bypass, set `--allow-deprecated-quantization`.",
            name);
    }
    return false;
}

/* get_quant_config(): a checkpoint without settings of its own, and a method that needs some. */
static bool check_settings(oos_check *c, const char *name)
{
    const vllm_rules *rules = setup_of(c)->rules;
    oos_quant_limits method;
    if (!oos_quant_method_find(rules->facts, name, rules->version, &method)) return false;
    if (!method.file && !method.settings) return false;
    oos_check_mend_without(c, "--quantization");
    if (method.file) return oos_check_refuse(c, "Cannot find the config file for %s", name);
    return oos_check_refuse(c, "__init__() missing required positional arguments: settings of %s", name);
}

/* A checkpoint for which there is a Marlin kernel is given it unless the plain method is named (awq_marlin, gptq_marlin:
 * override_quantization_method); it takes types that the plain one does not. */
static const char *kernel_of(const oos_check *c, const char *name)
{
    const oos_setup *setup = c->of;
    const char *marlin = strcmp(name, "awq") == 0    ? "awq_marlin"
                         : strcmp(name, "gptq") == 0 ? "gptq_marlin"
                                                     : NULL;
    oos_quant_limits method;
    if (!marlin || setup->serve->quantization) return name;
    if (!oos_quant_method_find(setup->rules->facts, marlin, setup->rules->version, &method)) return name;
    return setup->device.capability >= method.capability ? marlin : name;
}

/* VllmConfig._get_quantization_config(): the capability and the type a method needs, and its settings in the checkpoint. */
bool oos_check_quantization_late(oos_check *c)
{
    const oos_setup *setup = c->of;
    own_method const own = own_method_of(c);
    const char *has = own.name;
    const char *name = setup->serve->quantization && !own.wins ? setup->serve->quantization : has;
    oos_quant_limits method;
    if (!name) return false;
    name = kernel_of(c, name);
    if (!has && check_settings(c, name)) return true;
    if (!oos_quant_method_find(setup->rules->facts, name, setup->rules->version, &method)) return false;
    if (!has && method.online)
        (void)oos_quant_method_find(setup->rules->facts, "online", setup->rules->version, &method);
    if (setup->device.capability && setup->device.capability < method.capability)
        return oos_check_refuse(
            c,
            "The quantization method %s is not supported for the current GPU. Minimum capability: %u. "
            "Current capability: %u.",
            name, method.capability, setup->device.capability);
    bool const taken = setup->dtype == OOS_DTYPE_F16    ? method.float16
                       : setup->dtype == OOS_DTYPE_BF16 ? method.bfloat16
                       : setup->dtype == OOS_DTYPE_F32  ? method.float32
                                                        : true;
    if (!taken) {
        oos_check_mend_without(c, "--dtype");
        return oos_check_refuse(c, "torch.%s is not supported for quantization method %s.",
                                oos_dtype_word(setup->dtype), name);
    }
    return false;
}

/* compressed_tensors.py, _check_scheme_supported(): the least capability for a kind of layer, by the file of the kind. */
static unsigned scheme_capability(const oos_setup *setup, const oos_quant *quant)
{
    oos_quant_limits fp8 = {0}, scheme;
    const char *name = NULL;
    switch (quant->kind) {
    case OOS_QUANT_PACKED_INT: name = "compressed-tensors wNa16"; break;
    case OOS_QUANT_INT8: name = quant->bits == 8 ? "compressed-tensors w8a8_int8" : NULL; break;
    case OOS_QUANT_NVFP4: name = quant->weight_only ? "compressed-tensors w4a16_nvfp4" : NULL; break;
    case OOS_QUANT_FP8_TENSOR:
    case OOS_QUANT_FP8_CHANNEL:
    case OOS_QUANT_FP8_BLOCK: /* with activations of 16 bits where there are no kernels for FP8 */
        (void)oos_quant_method_find(setup->rules->facts, "compressed-tensors w8a8_fp8", setup->rules->version,
                                    &fp8);
        name = setup->device.capability < fp8.capability ? "compressed-tensors w8a16_fp8" : NULL;
        break;
    case OOS_QUANT_NONE:
    case OOS_QUANT_AWQ:
    case OOS_QUANT_GPTQ:
    case OOS_QUANT_MXFP4:
    case OOS_QUANT_MXFP8:
    case OOS_QUANT_BNB:
    case OOS_QUANT_UNKNOWN: break;
    }
    bool const found =
        name && oos_quant_method_find(setup->rules->facts, name, setup->rules->version, &scheme);
    return found ? scheme.capability : 0;
}

/* Told while the model is built. Experts are not asked. */
bool oos_check_quantization_scheme(oos_check *c)
{
    const oos_setup *setup = c->of;
    const oos_model *model = setup->model;
    unsigned const has = setup->device.capability;
    if (!has || model->quant_by_flag || !model->quant_method ||
        strncmp(model->quant_method, "compressed", 10) != 0)
        return false;
    for (size_t i = 0; i < model->matrix_count; i++) {
        unsigned const least = model->matrices[i].expert
                                   ? 0
                                   : scheme_capability(setup, &model->quants[model->matrices[i].quant]);
        if (has >= least) continue;
        c->refusal->phase = OOS_PHASE_WEIGHT_LOAD;
        return oos_check_refuse(c,
                                "Quantization scheme is not supported for the current GPU. Min capability: "
                                "%u. Current capability: %u.",
                                least, has);
    }
    return false;
}
