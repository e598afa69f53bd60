/* The order in which the engine checks its arguments, and the checks that any flag may fail. */
#include "engines/vllm/arguments/arguments.h"

#include "base/check.h"
#include "base/locale.h"
#include "base/shown.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

bool oos_check_refuse(oos_check *c, const char *format, ...)
{
    if (c->refusal->sentence) return true;
    char text[600];
    va_list list;
    va_start(list, format);
    oos_vformat(text, sizeof text, format, list);
    va_end(list);
    const char *sentence = oos_arena_copy(c->arena, oos_view_of(text));
    c->refusal->sentence = sentence ? oos_shown(c->arena, sentence) : NULL; /* it quotes the user's words */
    c->nomem = !c->refusal->sentence;
    return true;
}

void oos_check_mend(oos_check *c, const char *flag, uint64_t value)
{
    oos_refusal *r = c->refusal;
    if (r->mend_count < OOS_MENDS_MAX && value > 0)
        r->mends[r->mend_count++] = (oos_mend){.flag = flag, .value = value};
}

void oos_check_mend_without(oos_check *c, const char *flag)
{
    oos_refusal *r = c->refusal;
    const oos_serve *serve = c->setup->serve;
    for (size_t i = 0; i < serve->flag_count; i++) { /* a switch is named as it was given, `--no-x` too */
        const char *given = serve->flags[i].name;
        if (strncmp(given, "--no-", 5) == 0 && strcmp(given + 5, flag + 2) == 0) flag = given;
    }
    if (r->mend_count < OOS_MENDS_MAX)
        r->mends[r->mend_count++] = (oos_mend){.flag = flag, .leave_out = true};
}

/* By two letters of "--max-num-seqs"; every bit for what is too short to have them. */
static uint64_t bit_of(const char *flag)
{
    if (flag[0] != '-' || flag[1] != '-' || !flag[2]) return UINT64_MAX;
    return (uint64_t)1 << ((unsigned char)flag[2] * 7 + (unsigned char)flag[3]) % 64;
}

static uint64_t bits_of(const oos_serve *serve)
{
    uint64_t bits = 0;
    for (size_t i = 0; i < serve->flag_count; i++) bits |= bit_of(serve->flags[i].name);
    return bits;
}

const char *oos_check_given(const oos_check *c, const char *flag)
{
    const oos_serve *serve = c->setup->serve;
    if (!(c->given & bit_of(flag))) return NULL;
    for (size_t i = serve->flag_count; i > 0; i--)
        if (strcmp(serve->flags[i - 1].name, flag) == 0) return serve->flags[i - 1].value;
    return NULL;
}

bool oos_check_has(const oos_check *c, const char *flag)
{
    const oos_serve *serve = c->setup->serve;
    if (!(c->given & bit_of(flag))) return false;
    for (size_t i = serve->flag_count; i > 0; i--)
        if (strcmp(serve->flags[i - 1].name, flag) == 0) return true;
    return false;
}

static bool number_of(const char *text, double *ret_value)
{
    char *end;
    size_t digits = 0;
    uint64_t whole = 0;
    for (; digits < 15 && text[digits] >= '0' && text[digits] <= '9'; digits++)
        whole = whole * 10 + (uint64_t)(text[digits] - '0');
    if (digits && !text[digits]) { /* nearly all are: the locale need not be asked */
        *ret_value = (double)whole;
        return true;
    }
    *ret_value = oos_real_read(text, &end);
    if (end == text) return false;
    static const char small[] = "kmgt", large[] = "KMGT";
    const char *at = *end ? strchr(small, *end) : NULL;
    if (at) *ret_value *= pow(1000, (double)(at - small + 1)), end++;
    at = *end ? strchr(large, *end) : NULL;
    if (at) *ret_value *= pow(1024, (double)(at - large + 1)), end++;
    while (*end == ' ' || (*end >= '\t' && *end <= '\r')) end++; /* as Python does */
    return *end == '\0';
}

/* pydantic names the field and the bound. */
static bool outside(oos_check *c, const char *flag, const oos_bounds *b, double value)
{
    const char *wanted = NULL;
    double limit = 0;
    if (!(value >= b->least)) wanted = "greater than or equal to", limit = b->least;
    if (!(value > b->above)) wanted = "greater than", limit = b->above;
    if (!(value <= b->most)) wanted = "less than or equal to", limit = b->most;
    if (!(value < b->below)) wanted = "less than", limit = b->below;
    if (!wanted) return false;
    char name[64];
    size_t len = 0;
    for (const char *at = flag + 2; *at && len + 1 < sizeof name; at++) name[len++] = *at == '-' ? '_' : *at;
    name[len] = '\0';
    oos_check_mend_without(c, flag);
    return oos_check_refuse(c, "%s: Input should be %s %g", name, wanted, limit);
}

bool oos_check_number(const oos_check *c, const char *flag, uint64_t *ret_value)
{
    const char *text = oos_check_given(c, flag);
    double value;
    if (!text || !number_of(text, &value) || !(value >= 0 && value < 0x1p53)) return false;
    *ret_value = (uint64_t)value;
    return true;
}

static bool bounds_find(oos_check *c)
{
    const oos_serve *serve = c->setup->serve;
    c->bounds = OOS_NEW_ARRAY(c->arena, const oos_bounds *, serve->flag_count + 1);
    for (size_t i = 0; c->bounds && i < serve->flag_count; i++) {
        const oos_given_flag *flag = &serve->flags[i];
        if (!flag->value || flag->absent || flag->effect == OOS_FLAG_UNKNOWN) continue;
        c->bounds[i] = oos_bounds_find(c->setup->rules->facts, flag->name, c->setup->rules->version);
    }
    c->nomem = !c->bounds;
    return c->bounds;
}

bool oos_check_bounds(oos_check *c, const char *part)
{
    const oos_serve *serve = c->setup->serve;
    if (!c->bounds && !bounds_find(c)) return true;
    for (size_t i = 0; i < serve->flag_count; i++) {
        const oos_given_flag *flag = &serve->flags[i];
        const oos_bounds *b = c->bounds[i];
        double value;
        if (!b || !b->part_name || b->part_name[0] != part[0] || strcmp(b->part_name, part) != 0 ||
            !number_of(flag->value, &value))
            continue;
        if (oos_check_given(c, flag->name) != flag->value) continue; /* a later one counts */
        if (outside(c, flag->name, b, value)) return true;
    }
    return false;
}

/* The parser itself. */
static bool check_words(oos_check *c)
{
    const oos_serve_refusal *r = &c->setup->serve->refusal;
    if (!r->sentence) return false;
    if (r->nearest) { /* a switch that was given a value, or a flag that was misspelt */
        oos_assert(c->refusal->mend_count < OOS_MENDS_MAX);
        c->refusal->mends[c->refusal->mend_count++] =
            (oos_mend){.flag = r->nearest, .instead_of = r->flag, .text = r->unrecognized ? r->value : NULL};
    }
    if (r->flag) oos_check_mend_without(c, r->flag);
    return oos_check_refuse(c, "%s", r->sentence);
}

/* vllm/entrypoints, validate_parsed_serve_args() */
static bool check_frontend(oos_check *c)
{
    if (oos_check_has(c, "--enable-auto-tool-choice") && !oos_check_given(c, "--tool-call-parser")) {
        oos_check_mend_without(c, "--enable-auto-tool-choice");
        return oos_check_refuse(c, "Error: --enable-auto-tool-choice requires --tool-call-parser");
    }
    if (oos_check_has(c, "--enable-log-outputs") && !oos_check_has(c, "--enable-log-requests")) {
        oos_check_mend_without(c, "--enable-log-outputs");
        return oos_check_refuse(c, "Error: --enable-log-outputs requires --enable-log-requests");
    }
    if (oos_check_given(c, "--grpc-port") && !oos_flag_or(c->setup->env->rust_frontend, false)) {
        oos_check_mend_without(c, "--grpc-port");
        return oos_check_refuse(c, "--grpc-port requires VLLM_USE_RUST_FRONTEND=1 vllm serve");
    }
    if (oos_check_has(c, "--data-parallel-multi-port-external-lb") && c->setup->dp < 2) {
        oos_check_mend_without(c, "--data-parallel-multi-port-external-lb");
        return oos_check_refuse(
            c, "Error: --data-parallel-multi-port-external-lb requires --data-parallel-size > 1");
    }
    return false;
}

/* validate_environ(), with which create_engine_config() begins */
static bool check_environ(oos_check *c)
{
    const oos_engine_env *env = c->setup->env;
    if (!oos_check_has(c, "--fail-on-environ-validation")) return false;
    for (size_t i = 0; i < env->variable_count; i++) {
        const oos_given_variable *v = &env->variables[i];
        if (v->listed || !v->own) continue;
        oos_check_mend_without(c, "--fail-on-environ-validation");
        return oos_check_refuse(c, "Unknown vLLM environment variable detected: %s", v->name);
    }
    return false;
}

/* vllm/envs.py, env_with_choices(): read before anything else is made */
static bool check_variables(oos_check *c)
{
    const vllm_rules *rules = c->setup->rules;
    const char *name = c->setup->env->attention_backend;
    if (!name || !rules->backend_variable_checked ||
        oos_backend_name_known(rules->facts, name, rules->version))
        return false;
    return oos_check_refuse(
        c,
        "Invalid value '%s' for VLLM_ATTENTION_BACKEND. Valid options: ['FLASH_ATTN', 'TRITON_ATTN', ...].",
        name);
}

/* CacheConfig._verify_args(), before the bounds were declared with the fields */
static bool check_cache(oos_check *c)
{
    const oos_setup *setup = c->setup;
    if (setup->rules->bounds_declared) return false;
    double value;
    const char *offload = oos_check_given(c, "--cpu-offload-gb");
    if (offload && number_of(offload, &value) && value < 0) {
        oos_check_mend_without(c, "--cpu-offload-gb");
        return oos_check_refuse(c, "CPU offload space must be non-negative, but got %.1f", value);
    }
    const char *share = oos_check_given(c, "--gpu-memory-utilization");
    if (share && number_of(share, &value) && value > 1) {
        oos_check_mend_without(c, "--gpu-memory-utilization");
        return oos_check_refuse(c, "GPU memory utilization must be less than 1.0. Got %s.", share);
    }
    return false;
}

static bool check_media_kinds(oos_check *c)
{
    const char *key = c->setup->serve->media_wrong;
    if (!key) return false;
    oos_check_mend_without(c, "--media-io-kwargs");
    return oos_check_refuse(c, "media_io_kwargs.%s: Input should be a valid dictionary", key);
}

/* ReasoningConfig.initialize_token_ids() */
static bool check_reasoning(oos_check *c)
{
    const vllm_rules *rules = c->setup->rules;
    const char *name = oos_check_given(c, "--reasoning-parser");
    if (!name || !*name || oos_check_given(c, "--reasoning-parser-plugin")) return false;
    if (oos_reasoning_parser_known(rules->facts, name, rules->version)) return false;
    oos_check_mend_without(c, "--reasoning-parser");
    return oos_check_refuse(c, "Reasoning parser '%s' not found. Available parsers: deepseek_r1, ...", name);
}

/* Parts of which only the bounds are known here. */
static bool check_parts(oos_check *c)
{
    static const char *const parts[] = {
        "AttentionConfig",         "MambaConfig",         "KernelConfig",      "LoadConfig",
        "StructuredOutputsConfig", "ObservabilityConfig", "CompilationConfig", "VllmConfig"};
    const char *backend = oos_check_given(c, "--mamba-backend");
    if (oos_check_given(c, "--mamba-ssu-algorithm") && !(backend && strcmp(backend, "flashinfer") == 0)) {
        oos_check_mend_without(c, "--mamba-ssu-algorithm");
        return oos_check_refuse(
            c, "Mamba SSU algorithm selection is only supported with the FlashInfer backend. "
               "Please set `--mamba-backend flashinfer`, or omit `--mamba-ssu-algorithm`.");
    }
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (oos_check_bounds(c, parts[i])) return true;
    return false;
}

/* OffloadConfig.validate_offload_config() */
static bool check_offload(oos_check *c)
{
    uint64_t group = 0, in_group = 1;
    const char *backend = oos_check_given(c, "--offload-backend");
    (void)oos_check_number(c, "--offload-group-size", &group);
    (void)oos_check_number(c, "--offload-num-in-group", &in_group);
    if ((group == 0 && !(backend && strcmp(backend, "prefetch") == 0)) || in_group <= group) return false;
    oos_check_mend_without(c, group ? "--offload-num-in-group" : "--offload-backend");
    return oos_check_refuse(c, "offload_num_in_group (%llu) must be <= offload_group_size (%llu)",
                            (unsigned long long)in_group, (unsigned long long)group);
}

/* MultiModalConfig: made for models that have more than text */
static bool check_media(oos_check *c)
{
    if (!c->setup->model->multimodal) return false;
    if (c->setup->serve->mm_limit_negative && c->setup->rules->bounds_declared) {
        oos_check_mend_without(c, "--limit-mm-per-prompt");
        return oos_check_refuse(c, "limit_per_prompt.count: Input should be greater than or equal to 0");
    }
    return oos_check_bounds(c, "MultiModalConfig");
}

static bool check_all(oos_check *c)
{
    return check_words(c) || check_frontend(c) || check_variables(c) || check_environ(c) ||
           check_media_kinds(c) || oos_check_bounds(c, "ModelConfig") || oos_check_model(c) ||
           check_media(c) || oos_check_features(c) || oos_check_bounds(c, "CacheConfig") || check_cache(c) ||
           oos_check_launch(c) || (!c->setup->rules->async_takes_drafts && oos_check_async(c)) ||
           oos_check_bounds(c, "ParallelConfig") || oos_check_data_parallel(c) || oos_check_parallel(c) ||
           oos_check_speculation(c) || oos_check_bounds(c, "SchedulerConfig") || oos_check_scheduler(c) ||
           (oos_flag_or(c->setup->serve->enable_lora, false) &&
            (oos_check_bounds(c, "LoRAConfig") || oos_check_lora(c))) ||
           oos_check_backend(c) || check_parts(c) || oos_check_bounds(c, "UVAOffloadConfig") ||
           oos_check_bounds(c, "PrefetchOffloadConfig") || check_offload(c) || oos_check_sizes_twice(c) ||
           oos_check_levels(c) || oos_check_parallel_late(c) || oos_check_quantization_late(c) ||
           oos_check_state(c) || oos_check_executor(c) || oos_check_async(c) || oos_check_rest(c) ||
           oos_check_microbatches(c) || check_reasoning(c);
}

oomsight_status oos_arguments_check(oos_arena *arena, const oos_setup *setup, oos_refusal *ret_refusal,
                                    oomsight_error *reterr)
{
    oos_check c = {.arena = arena, .setup = setup, .refusal = ret_refusal, .given = bits_of(setup->serve)};
    *ret_refusal = (oos_refusal){.phase = OOS_PHASE_ARGUMENTS};
    (void)check_all(&c);
    return c.nomem ? oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a refusal") : OOMSIGHT_OK;
}
