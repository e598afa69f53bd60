/* A decoder of attention and an MLP or experts in every layer, as its record describes it. */
#include "model/arch/arch.h"

#define AT(field) offsetof(oos_model, field)
static const oos_quantity quantities[] = {
    {"hidden", AT(hidden)},
    {"intermediate", AT(intermediate)},
    {"vocab", AT(vocab)},
    {"heads", AT(heads)},
    {"kv_heads", AT(kv_heads)},
    {"head_dim", AT(head_dim)},
    {"layers", AT(layer_count)},
    {"max_position", AT(max_position)},
    {"experts", AT(moe.experts)},
    {"per_token", AT(moe.per_token)},
    {"shared", AT(moe.shared)},
    {"moe_intermediate", AT(moe.intermediate)},
    {"shared_intermediate", AT(moe.shared_intermediate)},
    {NULL, 0},
};
_Static_assert(sizeof((oos_model){0}.layer_count) == sizeof(uint64_t), "each is written as 64 bits");

static const char *const record_keys[] = {
    "source",          "build",      "rope",         "code", "by_type", "tower",   "prefix",    "names",
    "lora_embeddings", "model_type", "like",         "note", "model",   "let",     "attention", "mlp",
    "experts",         "norms",      "norm_vectors", "also", "ends",    "outside", "drafter",   NULL};
static const char *const attention_keys[] = {
    "qkv",    "o",          "qkv_bias",  "o_bias",      "head_norm",   "head_norm_when",
    "heads",  "kv_heads",   "head_dim",  "head_dim_v",  "window",      "sliding",
    "sinks",  "sinks_name", "kv_scales", "shares_last", "projections", "q_norm",
    "k_norm", NULL};
static const char *const window_keys[] = {"default", "pattern", "from", "when", "types",
                                          "letters", "list",    "is",   "size", NULL};
static const char *const sliding_keys[] = {"heads", "kv_heads", "head_dim", "head_dim_v", "sinks", NULL};
static const char *const mlp_keys[] = {"up", "down", "gate", "bias", "up_bias", "down_bias", "inner", NULL};
static const char *const experts_keys[] = {"when",   "from",        "to",     "every", "offset", "except",
                                           "list",   "name",        "inner",  "width", "gated",  "bias",
                                           "router", "router_bias", "shared", "also",  NULL};
static const char *const shared_keys[] = {"up", "down", "inner", "when", "bias", "gate", NULL};
static const char *const ends_keys[] = {"norm", NULL};

/* ---- what the whole model is ---- */

static void read_model(oos_scope *s)
{
    oos_model *m = s->arch->model;
    const json_t *model = json_object_get(s->record->body, "model");
    const char *key;
    json_t *value;
    if (model && !json_is_object(model)) oos_record_fail(s, "model", "is not an object");
    json_object_foreach((json_t *)model, key, value)
    {
        const oos_quantity *q = quantities;
        while (q->name && strcmp(q->name, key) != 0) q++;
        if (q->name) {
            uint64_t const size = oos_record_size(s, model, key, 0);
            memcpy((char *)m + q->offset, &size, sizeof size);
        } else if (strcmp(key, "tied") == 0) {
            m->tied = oos_record_yes(s, model, key, false);
        } else if (strcmp(key, "tied_by_wrapper") == 0) {
            bool const said = oos_arch_has(s->arch, "tie_word_embeddings") ||
                              json_object_get(s->arch->root, "tie_word_embeddings");
            bool const ties = oos_record_yes(s, model, key, false);
            if (ties && s->arch->text != s->arch->root && !said) m->tied = m->tied_by_wrapper = true;
        } else if (strcmp(key, "bidirectional_images") == 0) {
            m->bidirectional_images = oos_record_yes(s, model, key, false) && s->arch->vision;
        } else {
            oos_record_fail(s, "model", "'%.40s' is not a key of the vocabulary", key);
        }
    }
}

/* ---- one layer ---- */

/* What a layer sees of the tokens; 0: all of them. */
static uint64_t window_of(const oos_scope *s, const json_t *w, uint64_t i)
{
    const oos_arch *a = s->arch;
    if (!w || !oos_record_yes(s, w, "when", true)) return 0;
    bool const typed = oos_arch_list(a, "layer_types") && oos_record_yes(s, w, "types", true);
    const json_t *list = oos_record_field(s, w, "list"), *letters = oos_record_field(s, w, "letters");
    uint64_t const pattern = oos_record_size(s, w, "pattern", 0), from = oos_record_size(s, w, "from", 0),
                   usual = oos_record_size(s, w, "default", 0), is = oos_record_size(s, w, "is", 0);
    uint64_t const size = oos_record_size(s, w, "size", usual);
    if (json_object_get(w, "list")) {
        uint64_t const item = json_is_array(list) ? oos_arch_item_u64(list, i, 0) : 0;
        return !is ? item : item == is ? size : 0;
    }
    if (json_object_get(w, "letters") && !typed) {
        const char *word = json_is_string(letters) ? json_string_value(letters) : "";
        if (!*word || word[i % strlen(word)] != 'L') return 0;
    }
    if (!typed && i < from) return 0;
    if (!oos_record_yes(s, w, "types", true))
        return pattern > 0 && (i + 1) % pattern == 0 ? 0 : oos_arch_u64(a, "sliding_window", usual);
    return oos_arch_window(a, i, pattern, usual);
}

static void read_heads(const oos_scope *s, const json_t *from, oos_attention *t)
{
    t->heads = oos_record_size(s, from, "heads", t->heads);
    t->kv_heads = oos_record_size(s, from, "kv_heads", t->kv_heads);
    uint64_t const dim = oos_record_size(s, from, "head_dim", t->head_dim);
    if (dim != t->head_dim) t->head_dim = t->head_dim_v = dim;
    t->head_dim_v = oos_record_size(s, from, "head_dim_v", t->head_dim_v);
    t->sinks = oos_record_yes(s, from, "sinks", t->sinks);
}

static oos_attention attention_of(const oos_scope *s, const json_t *section, uint64_t i)
{
    const oos_arch *a = s->arch;
    oos_attention t = oos_arch_plain(a, window_of(s, json_object_get(section, "window"), i));
    uint64_t const shared = oos_record_size(s, section, "shares_last", 0),
                   layers = oos_arch_u64(a, "num_hidden_layers", 0);
    read_heads(s, section, &t);
    if (t.window > 0) read_heads(s, json_object_get(section, "sliding"), &t);
    t.shares_kv = shared > 0 && i >= oos_sub(layers, shared);
    return t;
}

static void put_head_norms(const oos_scope *s, const json_t *section, const oos_attention *t)
{
    static const char *const words[] = {"none", "head", "heads", "divided", "divided_kv", NULL};
    enum { NONE, HEAD, HEADS, DIVIDED, DIVIDED_KV };
    oos_arch *a = s->arch;
    size_t const kind = oos_record_choice(s, section, "head_norm", words, NONE);
    bool const wanted = oos_record_yes(s, section, "head_norm_when", true);
    const char *q = oos_record_word(s, section, "q_norm", "self_attn.q_norm"),
               *k = oos_record_word(s, section, "k_norm", "self_attn.k_norm");
    uint64_t const queries = oos_mul(t->heads, t->head_dim), keys = oos_mul(t->kv_heads, t->head_dim);
    if (kind == NONE || !wanted) return;
    oos_split const split = kind >= DIVIDED ? OOS_SPLIT_OUT : OOS_SPLIT_NONE;
    oos_matrix const first = {
        .name = q, .out = kind == HEAD ? t->head_dim : queries, .in = 1, .split = split};
    oos_matrix second = {.name = k, .out = kind == HEAD ? t->head_dim : keys, .in = 1, .split = split};
    if (kind == DIVIDED_KV) {
        second.split = OOS_SPLIT_KV;
        second.kv_out = keys;
        second.kv_heads = t->kv_heads;
    }
    oos_put(a, OOS_MODULE_NORM, first);
    if (!t->shares_kv) oos_put(a, OOS_MODULE_NORM, second);
}

/* Fused queries, keys and values, and the output. */
static void put_projections(const oos_scope *s, const json_t *section, const oos_attention *t)
{
    oos_arch *a = s->arch;
    bool const bias = oos_record_yes(s, section, "qkv_bias", false);
    if (t->shares_kv) /* queries only */
        oos_put_column(a, OOS_MODULE_ATTN, "self_attn.q_proj", oos_mul(t->heads, t->head_dim),
                       a->model->hidden, bias, 1);
    else
        oos_put_qkv(a, oos_record_word(s, section, "qkv", "self_attn.qkv_proj"), t, 1, bias);
    oos_put_row(a, OOS_MODULE_ATTN, oos_record_word(s, section, "o", "self_attn.o_proj"), a->model->hidden,
                oos_mul(t->heads, t->head_dim_v), oos_record_yes(s, section, "o_bias", false));
}

static void put_attention(const oos_scope *s, const json_t *section, uint64_t i)
{
    oos_arch *a = s->arch;
    oos_attention const t = attention_of(s, section, i);
    oos_arch_attention(a, t);
    if (json_object_get(section, "projections"))
        oos_record_matrices(s, section, "projections", OOS_MODULE_ATTN, NULL);
    else
        put_projections(s, section, &t);
    put_head_norms(s, section, &t);
    if (t.sinks)
        oos_put_divided(a, OOS_MODULE_ATTN, oos_record_word(s, section, "sinks_name", "self_attn.sinks"),
                        t.heads, 1, OOS_DTYPE_UNKNOWN);
    if (oos_record_yes(s, section, "kv_scales", true)) oos_put_kv_scales(a);
}

/* An MLP, or the experts that every token takes. */
static void put_mlp(const oos_scope *s, const json_t *section, oos_module module, const char *up,
                    const char *down, uint64_t inner)
{
    oos_arch *a = s->arch;
    bool const gate = oos_record_yes(s, section, "gate", true),
               bias = oos_record_yes(s, section, "bias", false);
    uint64_t const size = oos_record_size(s, section, "inner", inner);
    oos_put_column(a, module, oos_record_word(s, section, "up", up), oos_mul(gate ? 2 : 1, size),
                   a->model->hidden, oos_record_yes(s, section, "up_bias", bias), gate ? 2 : 1);
    oos_put_row(a, module, oos_record_word(s, section, "down", down), a->model->hidden, size,
                oos_record_yes(s, section, "down_bias", bias));
}

static bool has_experts(const oos_scope *s, const json_t *section, uint64_t i)
{
    if (!section) return false;
    const json_t *except = oos_record_field(s, section, "except"),
                 *list = oos_record_field(s, section, "list");
    uint64_t const every = oos_record_size(s, section, "every", 1),
                   offset = oos_record_size(s, section, "offset", 0);
    return oos_record_yes(s, section, "when", s->arch->model->moe.experts > 0) &&
           i >= oos_record_size(s, section, "from", 0) &&
           i <= oos_record_size(s, section, "to", UINT64_MAX) && every > 0 &&
           oos_add(i, offset) % every == 0 && !oos_arch_list_holds(except, i) &&
           (!json_is_array(list) ||
            (oos_arch_item_u64(list, i, 1) != 0 && !oos_arch_item_is(list, i, "dense")));
}

static void put_experts(const oos_scope *s, const json_t *section)
{
    oos_arch *a = s->arch;
    const oos_model *m = a->model;
    const json_t *router = json_object_get(section, "router"),
                 *bias = json_object_get(section, "router_bias"),
                 *shared = json_object_get(section, "shared");
    oos_record_matrix(s, router, &(oos_matrix){.name = "mlp.gate", .out = m->moe.experts, .in = m->hidden},
                      OOS_MODULE_ROUTER);
    if (bias)
        oos_record_matrix(
            s, bias,
            &(oos_matrix){.name = "mlp.gate.bias", .out = m->moe.experts, .in = 1, .dtype = OOS_DTYPE_F32},
            OOS_MODULE_ROUTER);
    if (shared && oos_record_yes(s, shared, "when", m->moe.shared_intermediate > 0))
        put_mlp(s, shared, OOS_MODULE_SHARED_EXPERT, "mlp.shared_experts.gate_up_proj",
                "mlp.shared_experts.down_proj", m->moe.shared_intermediate);
    oos_record_matrices(s, section, "also", OOS_MODULE_MLP, NULL);
    oos_put_experts(a, oos_record_word(s, section, "name", "mlp.experts"), m->moe.experts,
                    oos_record_size(s, section, "width", m->hidden),
                    oos_record_size(s, section, "inner", m->moe.intermediate),
                    oos_record_yes(s, section, "gated", true), oos_record_yes(s, section, "bias", false));
}

/* The norms by their names: before attention, behind it, behind the rest. A record that only counts their vectors has them behind the
 * layer. */
static void put_norm(const oos_scope *s, size_t n)
{
    const json_t *names = json_object_get(s->record->body, "norms");
    const json_t *name = json_array_get(names, n);
    if (!name || json_is_null(name)) return;
    uint64_t const vectors = oos_record_size(s, s->record->body, "norm_vectors", 1);
    if (!json_is_string(name))
        oos_record_fail(s, "norms", "is a number or a list of names");
    else
        oos_put_norm(s->arch, json_string_value(name), oos_mul(vectors, s->arch->model->hidden));
}

static void put_other_norms(const oos_scope *s)
{
    const json_t *norms = json_object_get(s->record->body, "norms");
    if (json_is_array(norms)) {
        for (size_t n = 2; n < json_array_size(norms) && n < OOS_MATRICES_MAX; n++) put_norm(s, n);
        return;
    }
    uint64_t const count = oos_record_size(s, s->record->body, "norms", 2);
    oos_put_norm(s->arch, "norms", oos_mul(count, s->arch->model->hidden));
}

static void put_layer(oos_arch *a, uint64_t i)
{
    const oos_scope *s = a->scope;
    const json_t *body = s->record->body, *experts = json_object_get(body, "experts");
    put_norm(s, 0);
    put_attention(s, json_object_get(body, "attention"), i);
    put_norm(s, 1);
    a->now.moe = has_experts(s, experts, i);
    if (a->now.moe)
        put_experts(s, experts);
    else
        put_mlp(s, json_object_get(body, "mlp"), OOS_MODULE_MLP, "mlp.gate_up_proj", "mlp.down_proj",
                a->model->intermediate);
    put_other_norms(s);
    oos_record_matrices(s, body, "also", OOS_MODULE_OTHER, NULL);
}

void oos_put_also(oos_arch *a)
{
    if (!a->family || !a->family->record) return;
    oos_scope const scope = {.arch = a, .record = a->family->record, .quantities = quantities};
    oos_record_matrices(&scope, scope.record->body, "also", OOS_MODULE_OTHER, NULL);
}

/* ---- outside the layers ---- */

static void put_outside(const oos_scope *s)
{
    oos_arch *a = s->arch;
    oos_model *m = a->model;
    const json_t *body = s->record->body, *ends = json_object_get(body, "ends");
    bool const usual = !json_is_false(ends);
    if (usual) oos_put_ends(a, oos_record_size(s, json_is_object(ends) ? ends : NULL, "norm", 1));
    if (!usual) oos_range_open(a, a->prefix);
    oos_record_matrices(s, body, "outside", OOS_MODULE_OTHER, "last");
    if (usual)
        m->last_stage[1] = (uint32_t)(a->matrix_count - m->last_stage[0]);
    else
        oos_range_close(a, m->last_stage);
    oos_range_open(a, a->prefix);
    oos_record_matrices(s, body, "outside", OOS_MODULE_OTHER, "every");
    oos_range_close(a, m->every_stage);
}

static void put_next_layer(oos_arch *a, uint64_t i)
{
    put_layer(a, oos_add(a->model->layer_count, i));
}

/* Keys are looked at before the first is used: one that is not known is wrong for every config. */
static void check(const oos_scope *s)
{
    const json_t *body = s->record->body, *attention = json_object_get(body, "attention"),
                 *experts = json_object_get(body, "experts"), *ends = json_object_get(body, "ends");
    oos_record_keys(s, body, "record", record_keys);
    oos_record_keys(s, attention, "attention", attention_keys);
    oos_record_keys(s, json_object_get(attention, "window"), "window", window_keys);
    oos_record_keys(s, json_object_get(attention, "sliding"), "sliding", sliding_keys);
    oos_record_keys(s, json_object_get(body, "mlp"), "mlp", mlp_keys);
    oos_record_keys(s, experts, "experts", experts_keys);
    oos_record_keys(s, json_object_get(experts, "shared"), "shared", shared_keys);
    if (!json_is_boolean(ends)) oos_record_keys(s, ends, "ends", ends_keys);
}

void oos_build_record(oos_arch *a)
{
    static const char *const drafters[] = {"none", "nextn", NULL};
    oos_model *m = a->model;
    oos_scope scope = {.arch = a, .record = a->family->record, .quantities = quantities};
    const json_t *body = scope.record->body;
    check(&scope);
    read_model(&scope);
    bool const counted = json_object_get(json_object_get(body, "model"), "layers") != NULL;
    uint64_t const layers = counted ? m->layer_count : oos_arch_layer_count(a);
    m->layer_count = layers;
    oos_record_lets(&scope);
    a->scope = &scope;
    oos_arch_layers(a, layers, put_layer);
    put_outside(&scope);
    if (oos_record_choice(&scope, body, "drafter", drafters, 0) == 1) oos_put_nextn(a, put_next_layer);
    a->scope = NULL;
}
