/* Rotary tables: rows x rotary_dim, kept once per distinct setting on every rank, whatever max_model_len is (vLLM 0.32,
 * model_executor/layers/rotary_embedding). */
#include "model/arch/arch.h"

const json_t *oos_rope_config(const oos_arch *a)
{
    const json_t *rope = json_object_get(a->text, "rope_parameters");
    if (!json_is_object(rope)) rope = json_object_get(a->text, "rope_scaling");
    return json_is_object(rope) ? rope : NULL;
}

const char *oos_rope_type(const json_t *rope)
{
    const char *word = NULL;
    if (!oos_json_str(rope, "rope_type", &word) && !oos_json_str(rope, "type", &word)) return "default";
    return word;
}

/* YaRN counts from the original length; linear, dynamic and NTK lengthen the stated one; LongRoPE keeps a short and a
 * long table in one. */
static uint64_t rows_of(oos_arch *a, const json_t *rope, uint64_t positions)
{
    const char *type = oos_rope_type(rope);
    double factor = 1;
    uint64_t original = positions;
    (void)oos_arch_real(a, rope, "factor", &factor);
    if (!oos_arch_size(a, rope, "original_max_position_embeddings", &original))
        (void)oos_arch_size(a, a->text, "original_max_position_embeddings", &original);
    if (strcmp(type, "yarn") == 0 || strncmp(type, "deepseek_", 9) == 0)
        return oos_arch_scaled(original, factor);
    if (strcmp(type, "longrope") == 0 || strcmp(type, "su") == 0) return oos_add(original, positions);
    if (strcmp(type, "linear") == 0 || strcmp(type, "dynamic") == 0 || strcmp(type, "ntk") == 0)
        return oos_arch_scaled(positions, factor);
    return positions;
}

void oos_rope_add(oos_arch *a, oos_rope table)
{
    oos_model *m = a->model;
    if (table.rotary_dim == 0 || table.max_position == 0) return;
    for (size_t i = 0; i < m->rope_count; i++) {
        const oos_rope *other = &m->rope[i];
        if (other->max_position == table.max_position && other->rotary_dim == table.rotary_dim &&
            other->theta == table.theta && other->factor == table.factor && other->dtype == table.dtype &&
            strcmp(other->type, table.type) == 0)
            return;
    }
    if (m->rope_count < sizeof m->rope / sizeof *m->rope) m->rope[m->rope_count++] = table;
}

oos_rope oos_rope_of(oos_arch *a, const json_t *rope, uint64_t head_dim)
{
    uint64_t const positions = oos_arch_u64(a, "max_position_embeddings", a->model->max_position);
    double partial = 1;
    oos_rope table = {
        .type = oos_rope_type(rope), .factor = 1, .theta = oos_arch_f64(a, "rope_theta", 10000)};
    (void)oos_arch_real(a, rope, "rope_theta", &table.theta);
    (void)oos_arch_real(a, rope, "factor", &table.factor);
    if (!oos_arch_real(a, rope, "partial_rotary_factor", &partial))
        partial = oos_arch_f64(a, "partial_rotary_factor", oos_arch_f64(a, "rotary_pct", 1));
    table.rotary_dim = partial > 0 && partial <= 1 ? (uint64_t)((double)head_dim * partial) : head_dim;
    uint64_t given;
    if (oos_arch_size(a, a->text, "rotary_dim", &given) && given <= head_dim) table.rotary_dim = given;
    table.max_position = rows_of(a, rope, positions);
    table.sections = json_is_array(json_object_get(rope, "mrope_section"));
    return table;
}

void oos_rope_usual(oos_arch *a)
{
    bool turns = false;
    uint64_t head_dim = a->model->head_dim;
    for (size_t i = 0; i < a->attention_count; i++) {
        const oos_attention *t = &a->attentions[i];
        bool const attends = t->mixer >= OOS_MIXER_FULL && t->mixer <= OOS_MIXER_CROSS;
        turns |= attends;
        if (attends && t->mixer == OOS_MIXER_MLA) head_dim = t->rope_dim;
    }
    /* Granite's hybrids rotate only where they say so */
    const char *kind = oos_arch_str(a, "position_embedding_type");
    if (kind && strcmp(kind, "nope") == 0) return;
    if (turns) oos_rope_add(a, oos_rope_of(a, oos_rope_config(a), head_dim));
}

/* ---- families with tables of their own ---- */

/* No rotation (Mamba hybrids), or none kept: classes taken from transformers rotate without a table. */
void oos_rope_none(oos_arch *a)
{
    (void)a;
}

/* Sliding layers turn with their own base, unscaled. */
void oos_rope_gemma3(oos_arch *a)
{
    const json_t *both = oos_rope_config(a), *full = json_object_get(both, "full_attention");
    oos_rope_add(a, oos_rope_of(a, json_is_object(full) ? full : both, a->model->head_dim));
    oos_rope local = oos_rope_of(a, json_object_get(both, "sliding_attention"), a->model->head_dim);
    if (!json_is_object(full)) local.theta = oos_arch_f64(a, "rope_local_base_freq", 10000);
    oos_rope_add(a, local);
}

/* Full layers keep a table as wide as their heads, although only a part turns. */
void oos_rope_gemma4(oos_arch *a)
{
    const json_t *both = oos_rope_config(a);
    oos_rope full = oos_rope_of(a, json_object_get(both, "full_attention"), a->model->head_dim);
    full.rotary_dim = oos_arch_u64(a, "global_head_dim", 512);
    oos_rope_add(a, full);
    oos_rope_add(a, oos_rope_of(a, json_object_get(both, "sliding_attention"), a->model->head_dim));
}

/* Positions of images and videos: Qwen 2 and 2.5 VL keep four times the length (mrope_positions_factor). */
void oos_rope_mrope4(oos_arch *a)
{
    const json_t *rope = oos_rope_config(a);
    oos_rope table = oos_rope_of(a, rope, a->model->head_dim);
    if (table.sections && strcmp(table.type, "yarn") != 0) {
        table.max_position = oos_mul(4, table.max_position);
        table.sections = false;
    }
    oos_rope_add(a, table);
}

void oos_rope_fp32(oos_arch *a)
{
    oos_rope table = oos_rope_of(a, oos_rope_config(a), a->model->head_dim);
    table.dtype = OOS_DTYPE_F32;
    oos_rope_add(a, table);
}

/* DeepSeek V3.2: the indexer turns the other way round, so it has a table of its own; scaled ones are fp32. */
void oos_rope_indexer(oos_arch *a)
{
    oos_rope table = oos_rope_of(a, oos_rope_config(a), oos_arch_u64(a, "qk_rope_head_dim", 64));
    if (strcmp(table.type, "default") != 0) table.dtype = OOS_DTYPE_F32;
    oos_rope_add(a, table);
    if (oos_arch_yes(a, "indexer_rope_interleave", false)) return;
    table.type = "indexer";
    oos_rope_add(a, table);
}

void oos_rope_mimo_v2(oos_arch *a)
{
    oos_rope full = oos_rope_of(a, oos_rope_config(a), a->model->head_dim), local = full;
    oos_rope_add(a, full);
    local.theta = oos_arch_f64(a, "swa_rope_theta", full.theta);
    oos_rope_add(a, local);
}
