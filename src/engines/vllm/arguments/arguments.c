/* What the steps of refusals.json ask of a start, and the checks that any command may fail. */
#include "engines/vllm/arguments/arguments.h"

#include "base/check.h"

/* validate_environ(), with which create_engine_config() begins */
bool oos_check_environ(oos_check *c)
{
    const oos_engine_env *env = setup_of(c)->env;
    for (size_t i = 0; i < env->variable_count; i++) {
        const oos_given_variable *v = &env->variables[i];
        if (v->listed || !v->own) continue;
        oos_check_mend_without(c, "--fail-on-environ-validation");
        return oos_check_refuse(c, "Unknown vLLM environment variable detected: %s", v->name);
    }
    return false;
}

bool oos_check_levels(oos_check *c)
{
    const oos_compilation *graphs = &c->serve->compilation;
    if (!graphs->optimization_level.known || graphs->optimization_level.value <= 3) return false;
    const char *meant = graphs->level_flag; /* has another spelling here */
    if (meant)
        c->refusal->mends[c->refusal->mend_count++] =
            (oos_mend){.flag = meant, .instead_of = meant, .text = graphs->level_value};
    oos_check_mend_without(c, meant ? meant : "--optimization-level");
    return oos_check_refuse(c, "optimization_level: Input should be 0, 1, 2 or 3");
}

/* Rows of a block of the experts' scales; 0: not quantised so. */
static uint64_t expert_block(const oos_model *model)
{
    for (size_t i = 0; i < model->matrix_count; i++) {
        const oos_quant *quant = &model->quants[model->matrices[i].quant];
        if (model->matrices[i].expert && quant->kind == OOS_QUANT_FP8_BLOCK) return quant->block_out;
    }
    return 0;
}

/* Fp8MoEMethod.create_weights(): told while the model is built. */
bool oos_check_expert_blocks(oos_check *c)
{
    const oos_setup *setup = c->of;
    const oos_model *model = setup->model;
    if (model->moe.intermediate == 0) return false;
    uint64_t const block = expert_block(model), share = model->moe.intermediate / setup->tp;
    if (block == 0 || share % block == 0) return false;
    for (uint64_t n = setup->tp - 1; n > 1; n--)
        if (model->heads % n == 0 && model->moe.intermediate / n % block == 0) {
            oos_check_mend(c, "--tensor-parallel-size", n);
            break;
        }
    c->refusal->phase = OOS_PHASE_WEIGHT_LOAD;
    return oos_check_refuse(
        c,
        "The output_size of gate's and up's weight = %llu is not divisible by weight quantization "
        "block_n = %llu.",
        (unsigned long long)share, (unsigned long long)block);
}

static bool is_unknown(const oos_check *c, const char *name,
                       bool (*known)(const oos_argument_facts *facts, const char *name, oos_version version))
{
    return name && *name && !known(c->facts, name, c->version);
}

static bool float_cache(const oos_serve *serve)
{
    const char *word = serve->kv_cache_dtype;
    return word && (strcmp(word, "float16") == 0 || strcmp(word, "bfloat16") == 0);
}

/* The value of a switch of this release that is no number, as Python shows it; NULL: none. */
static const char *switch_unread(const oos_check *c)
{
    static const char *const numbers[] = {"VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS",
                                          "VLLM_USE_V2_MODEL_RUNNER",
                                          "VLLM_USE_FLASHINFER_SAMPLER",
                                          "VLLM_USE_V1",
                                          "VLLM_USE_RUST_FRONTEND",
                                          "VLLM_DISABLE_COMPILE_CACHE"};
    const oos_engine_env *env = setup_of(c)->env;
    bool negative;
    uint64_t number;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers && env->variable_count; i++) {
        const oos_given_variable *given = oos_engine_env_given(env, numbers[i]);
        if (given && given->listed && !oos_serve_int(NULL, given->value, &negative, &number))
            return oos_arena_format(c->arena, "'%.80s'", given->value);
    }
    return NULL;
}

/* In the letters of the engine's list. */
static bool backend_unknown(const oos_check *c)
{
    const char *name = c->serve->attention_backend;
    char text[64];
    size_t len = 0;
    for (; name && name[len] && len + 1 < sizeof text; len++)
        text[len] = name[len] >= 'a' && name[len] <= 'z' ? (char)(name[len] - 'a' + 'A') : name[len];
    text[len] = '\0';
    return is_unknown(c, text, oos_backend_name_known);
}

static bool external_balancer(const oos_check *c)
{
    uint64_t rank;
    return oos_check_has(c, "--data-parallel-external-lb") ||
           oos_check_number(c, "--data-parallel-rank", &rank);
}

/* The way between experts; before 0.11.1 a variable says it: NULL. */
static const char *all2all(const oos_check *c)
{
    const char *given = oos_check_given(c, "--all2all-backend");
    return given || !setup_of(c)->rules->async_takes_drafts ? given : "allgather_reducescatter";
}

/* Classes of such configs (Jamba, Nemotron-H) state experts by default, whatever the file says. */
static bool has_mamba(const oos_model *model)
{
    for (size_t i = 0; i < model->layer_count; i++) {
        oos_mixer const kind = model->attentions[model->layers[i].attention].mixer;
        if (kind == OOS_MIXER_MAMBA1 || kind == OOS_MIXER_MAMBA2) return true;
    }
    return false;
}

static uint64_t largest(const oos_compilation *graphs)
{
    uint64_t most = 0;
    for (size_t i = 0; graphs->capture_sizes_given && i < graphs->capture_size_count; i++)
        most = oos_max(most, graphs->capture_sizes[i]);
    return most;
}

#define TERMS "engines/vllm/arguments/terms.def"
#include "plan/terms.def"

const oos_refusal_names oos_vllm_refusal_names = {term_fields, term_checks,
                                                  sizeof term_fields / sizeof *term_fields,
                                                  sizeof term_checks / sizeof *term_checks};

static oos_term_value field(const oos_check *c, size_t id)
{
    const oos_setup *setup = c->of;
    const oos_serve *serve = c->serve;
    const oos_model *model = setup->model;
    const oos_compilation *graphs = &serve->compilation;
    const oos_speculative *draft = &serve->speculative;
    uint64_t number;
    bool placed;
    switch (id) {
#include TERMS
    }
    return (oos_term_value){0};
}

oomsight_status oos_arguments_check(oos_arena *arena, const oos_setup *setup, oos_refusal *ret_refusal,
                                    oomsight_error *reterr)
{
    oos_check c = {.arena = arena,
                   .serve = setup->serve,
                   .facts = setup->rules->facts,
                   .version = setup->rules->version,
                   .newer = setup->rules->beyond > 0,
                   .refusals = setup->rules->refusals,
                   .rules = setup->rules,
                   .of = setup,
                   .field = field,
                   .checks = term_code,
                   .refusal = ret_refusal};
    return oos_check_run(&c, reterr);
}
