/* Which scheme a module gets. Each method of the engine has its own way of matching names; they are kept apart here as
 * they are there (vLLM 0.32, model_executor/layers/quantization). */
#include "model/model.h"

#include <stdio.h>

static const oos_quant unquantised = {.kind = OOS_QUANT_NONE};

/* ---- names ---- */

static const struct {
    const char *fused;
    const char *parts[3];
} fusions[] = {
    {"qkv_proj", {"q_proj", "k_proj", "v_proj"}},
    {"gate_up_proj", {"gate_proj", "up_proj", NULL}},
    {"in_proj_qkvz", {"in_proj_qkv", "in_proj_z", NULL}},
    {"in_proj_ba", {"in_proj_b", "in_proj_a", NULL}},
    {"fused_qkv_a_proj", {"q_a_proj", "kv_a_proj_with_mqa", NULL}},
    {"wk_weights_proj", {"wk", "weights_proj", NULL}},
    {"qkv", {"q", "k", "v"}},
};

static const char *last_part(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot ? dot + 1 : name;
}

/* Name of part `i` of a fused module; false when there is none. */
static bool part_name(const char *name, size_t i, char ret_name[OOS_NAME_BYTES])
{
    const char *last = last_part(name);
    for (size_t f = 0; f < sizeof fusions / sizeof *fusions; f++) {
        if (strcmp(last, fusions[f].fused) != 0) continue;
        if (i >= 3 || !fusions[f].parts[i]) return false;
        int const n =
            snprintf(ret_name, OOS_NAME_BYTES, "%.*s%s", (int)(last - name), name, fusions[f].parts[i]);
        return n > 0 && n < OOS_NAME_BYTES;
    }
    return false;
}

const char *oos_rename_apply(oos_arena *arena, const oos_rename *renames, const char *name)
{
    if (!renames) return name;
    for (const oos_rename *r = renames; r->where != OOS_RENAME_END; r++) {
        const char *at = r->where == OOS_RENAME_PREFIX
                             ? (strncmp(name, r->from, strlen(r->from)) == 0 ? name : NULL)
                             : strstr(name, r->from);
        if (!at) continue;
        if (!r->to) return NULL;
        name = oos_arena_format(arena, "%.*s%s%s", (int)(at - name), name, r->to, at + strlen(r->from));
        if (!name || r->where == OOS_RENAME_PREFIX) break; /* the engine stops at the first prefix */
    }
    return name;
}

/* ---- ways of matching ---- */

typedef struct wanted {
    const char *name;
} wanted;

static bool is_equal(const oos_name *entry, void *context)
{
    return !entry->pattern && strcmp(entry->text, ((wanted *)context)->name) == 0;
}

static bool is_part_of_name(const oos_name *entry, void *context)
{
    return strstr(((wanted *)context)->name, entry->text) != NULL;
}

/* compressed-tensors: equal, or a regular expression from the start. */
static bool is_equal_or_regular(const oos_name *entry, void *context)
{
    const char *name = ((wanted *)context)->name;
    return entry->pattern ? oos_regex_matches(entry->pattern, name) : strcmp(entry->text, name) == 0;
}

/* Expert modules are skipped by any listed name that lies under them. */
static bool is_under_experts(const oos_name *entry, void *context)
{
    return strstr(entry->text, "experts") && strstr(entry->text, ((wanted *)context)->name);
}

/* ModelOpt: a part of the name, with or without the wrapper's prefix, or a glob. */
static bool is_excluded(const oos_name *entry, void *context)
{
    const char *name = ((wanted *)context)->name;
    if (strstr(name, entry->text)) return true;
    if (strncmp(name, "language_model.", 15) == 0 && strstr(name + 15, entry->text)) return true;
    return oos_glob_matches(entry->text, name);
}

static const oos_name *find(const oos_names *names, uint64_t layer, const char *name, oos_name_visit *visit)
{
    return oos_names_find(names, layer, visit, &(wanted){name});
}

/* The name itself, or the first of the modules fused in it: the engine refuses to load when they disagree. */
static const oos_name *find_fused(const oos_names *names, uint64_t layer, const char *name,
                                  oos_name_visit *visit)
{
    const oos_name *found = find(names, layer, name, visit);
    char part[OOS_NAME_BYTES];
    if (!found && part_name(name, 0, part)) found = find(names, layer, part, visit);
    return found;
}

static bool ignored(const oos_quantizer *q, const char *name, uint64_t layer, oos_quant_role role)
{
    switch (q->method) {
    case OOS_METHOD_AWQ:
    case OOS_METHOD_BNB: return find_fused(&q->ignore, layer, name, is_part_of_name);
    case OOS_METHOD_FP8:
    case OOS_METHOD_FBGEMM:
    case OOS_METHOD_EXPERTS_ONLY:
        if (role == OOS_QUANT_EXPERTS) return find(&q->ignore, layer, name, is_under_experts);
        return find_fused(&q->ignore, layer, name, is_equal_or_regular);
    case OOS_METHOD_COMPRESSED: return find_fused(&q->ignore, layer, name, is_equal_or_regular);
    case OOS_METHOD_MODELOPT:
    case OOS_METHOD_MIXED:
        if (find_fused(&q->ignore, layer, name, is_equal)) return true;
        if (role == OOS_QUANT_EXPERTS && find(&q->ignore, layer, name, is_under_experts)) return true;
        return find(&q->ignore, layer, name, is_excluded);
    case OOS_METHOD_GPTQ:
    case OOS_METHOD_MXFP4:
    case OOS_METHOD_AUTOROUND:
    case OOS_METHOD_UNKNOWN: return false;
    }
    return false;
}

/* ---- schemes with targets ---- */

static oos_quant compressed_scheme(const oos_quantizer *q, const char *name, uint64_t layer,
                                   oos_quant_role role)
{
    const oos_name *target = find_fused(&q->targets, layer, name, is_equal_or_regular);
    if (target) return q->schemes[target->value];
    if (role == OOS_QUANT_LM_HEAD) return unquantised; /* the class is not called Linear */
    return q->has_linear ? q->linear : unquantised;
}

/* A name below the experts, e.g. "...experts.0.gate_proj". */
static bool is_below(const oos_name *entry, void *context)
{
    const char *name = ((wanted *)context)->name;
    size_t const len = strlen(name);
    return strncmp(entry->text, name, len) == 0 && entry->text[len] == '.';
}

static oos_quant mixed_scheme(const oos_quantizer *q, const char *name, uint64_t layer, oos_quant_role role)
{
    const oos_name *found = find_fused(&q->targets, layer, name, is_equal);
    if (!found && role == OOS_QUANT_LM_HEAD) found = find(&q->targets, UINT64_MAX, "lm_head", is_equal);
    char other[OOS_NAME_BYTES];
    if (!found && strncmp(name, "language_model.model.", 21) == 0) {
        snprintf(other, sizeof other, "model.language_model.%s", name + 21);
        found = find_fused(&q->targets, layer, other, is_equal);
    }
    if (!found) found = find(&q->targets, layer, name, is_below);
    if (!found && role == OOS_QUANT_EXPERTS) {
        size_t const len = strlen(name) - strlen(last_part(name));
        if (len > 1 && len < sizeof other) {
            snprintf(other, sizeof other, "%.*s", (int)len - 1, name);
            found = find(&q->targets, layer, other, is_below);
        }
    }
    return found ? q->schemes[found->value] : unquantised;
}

/* AutoRound: a regular key is searched anywhere, a plain one is the name or its end. */
static bool is_extra(const oos_name *entry, void *context)
{
    const char *name = ((wanted *)context)->name;
    if (entry->pattern) return oos_regex_searches(entry->pattern, name);
    size_t const len = strlen(entry->text), name_len = strlen(name);
    if (strcmp(entry->text, name) == 0) return true;
    return name_len > len + 1 && name[name_len - len - 1] == '.' &&
           strcmp(name + name_len - len, entry->text) == 0;
}

static oos_quant autoround_scheme(const oos_quantizer *q, const char *name, uint64_t layer,
                                  oos_quant_role role)
{
    const oos_name *extra = find_fused(&q->targets, layer, name, is_extra);
    if (extra) return q->schemes[extra->value];
    bool in = role != OOS_QUANT_LM_HEAD;
    if (q->blocks) {
        in = false;
        for (size_t i = 0; i < q->block_count; i++)
            in |= strncmp(name, q->blocks[i], strlen(q->blocks[i])) == 0;
    }
    return in ? q->base : unquantised;
}

/* GPTQModel's `dynamic`: "-:" leaves modules alone, "+:" changes bits or group. */
static bool is_dynamic(const oos_name *entry, void *context)
{
    return entry->pattern && oos_regex_matches(entry->pattern, ((wanted *)context)->name);
}

static oos_quant scheme_of(const oos_quantizer *q, const char *name, uint64_t layer, oos_quant_role role)
{
    if (ignored(q, name, layer, role)) return unquantised;
    switch (q->method) {
    case OOS_METHOD_AWQ: return role == OOS_QUANT_LM_HEAD && !q->lm_head ? unquantised : q->base;
    case OOS_METHOD_GPTQ: {
        if (role == OOS_QUANT_LM_HEAD && !q->lm_head) return unquantised;
        const oos_name *rule = find(&q->targets, layer, name, is_dynamic);
        return rule ? q->schemes[rule->value] : q->base;
    }
    case OOS_METHOD_FP8:
    case OOS_METHOD_FBGEMM:
    case OOS_METHOD_BNB: return role == OOS_QUANT_LM_HEAD ? unquantised : q->base;
    case OOS_METHOD_COMPRESSED: return compressed_scheme(q, name, layer, role);
    case OOS_METHOD_MODELOPT:
        return strstr(name, "vision_tower") || strstr(name, "vision_model") ? unquantised : q->base;
    case OOS_METHOD_MIXED: return mixed_scheme(q, name, layer, role);
    case OOS_METHOD_MXFP4: return role == OOS_QUANT_EXPERTS ? q->base : unquantised;
    case OOS_METHOD_AUTOROUND: return autoround_scheme(q, name, layer, role);
    case OOS_METHOD_EXPERTS_ONLY:
        if (role == OOS_QUANT_LM_HEAD) return unquantised;
        return role == OOS_QUANT_EXPERTS ? q->experts : q->base;
    case OOS_METHOD_UNKNOWN: return unquantised;
    }
    return unquantised;
}

oos_quant oos_quantizer_scheme(oos_quantizer *q, const char *prefix, const char *name, uint64_t layer,
                               oos_quant_role role)
{
    if (!q) return unquantised;
    if (q->layerless)
        for (size_t i = 0; i < q->memory_count; i++) {
            const oos_quant_memory *m = &q->memories[i];
            if (m->name == name && m->prefix == prefix && m->role == role) return m->scheme;
        }
    char full[OOS_NAME_BYTES];
    int const len = layer == UINT64_MAX
                        ? snprintf(full, sizeof full, "%s%s", prefix, name)
                        : snprintf(full, sizeof full, "%s%llu.%s", prefix, (unsigned long long)layer, name);
    if (len < 0 || len >= (int)sizeof full) return unquantised;
    oos_quant const scheme = scheme_of(q, full, layer, role);
    if (q->layerless && q->memory_count < OOS_MEMORY_MAX)
        q->memories[q->memory_count++] = (oos_quant_memory){prefix, name, role, scheme};
    return scheme;
}

void oos_quantizer_kv_parameters(const oos_quantizer *q, bool latent, uint64_t *ret_floats,
                                 uint64_t *ret_zeros)
{
    *ret_floats = *ret_zeros = 0;
    if (!q || q->by_flag) return;
    switch (q->method) {
    case OOS_METHOD_COMPRESSED:
        if (!latent) *ret_floats = *ret_zeros = 3;
        break;
    case OOS_METHOD_FP8:
    case OOS_METHOD_EXPERTS_ONLY:
        if (!latent) *ret_floats = 2;
        break;
    case OOS_METHOD_MODELOPT: *ret_floats = 2; break;
    case OOS_METHOD_MIXED:
        if (!latent && q->kv_dtype != OOS_DTYPE_UNKNOWN) *ret_floats = 2;
        break;
    case OOS_METHOD_AWQ:
    case OOS_METHOD_GPTQ:
    case OOS_METHOD_MXFP4:
    case OOS_METHOD_AUTOROUND:
    case OOS_METHOD_BNB:
    case OOS_METHOD_FBGEMM:
    case OOS_METHOD_UNKNOWN: break;
    }
}
