/* A decoder as its record describes it: in every layer attention or another mixer, and an MLP or experts. */
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

#define OF(field)                                                                                            \
    {                                                                                                        \
#field, offsetof(oos_attention, field)                                                               \
    }
/* What a layer caches, beside the heads. */
static const oos_quantity cached[] = {
    OF(kv_lora_rank),    OF(q_lora_rank),    OF(rope_dim),     OF(nope_dim),       OF(value_dim),
    OF(indexer_heads),   OF(indexer_dim),    OF(indexer_topk), OF(compress_ratio), OF(key_heads),
    OF(value_heads),     OF(key_dim),        OF(conv_kernel),  OF(conv_dim),       OF(state_heads),
    OF(value_dim_state), OF(state_head_dim), OF(state_size),   OF(groups),         {NULL, 0},
};
/* As oos_mixer counts them. */
static const char *const mixers[] = {"none",   "full",   "sliding", "chunked", "mla",    "encoder", "cross",
                                     "mamba1", "mamba2", "gdn",     "kda",     "linear", "conv",    NULL};

static const char *const record_keys[] = {
    "source",    "build",           "rope",       "code",    "by_type", "tower",        "prefix",
    "names",     "lora_embeddings", "model_type", "like",    "model",   "let",          "each",
    "attention", "mixer",           "mlp",        "experts", "norms",   "norm_vectors", "also",
    "ends",      "outside",         "drafter",    "order",   NULL};
static const char *const attention_keys[] = {
    "qkv",       "o",           "qkv_bias",    "o_bias", "head_norm", "head_norm_when", "heads",
    "kv_heads",  "head_dim",    "head_dim_v",  "window", "sliding",   "sinks",          "sinks_name",
    "kv_scales", "shares_last", "projections", "q_norm", "k_norm",    "when",           "kind",
    "sizes",     "state_dtype", "beside",      "order",  NULL};
static const char *const window_keys[] = {"default", "pattern", "from", "when", "types",
                                          "letters", "list",    "is",   "size", NULL};
static const char *const sliding_keys[] = {"heads", "kv_heads", "head_dim", "head_dim_v", "sinks", NULL};
static const char *const mlp_keys[] = {"up",        "down",  "gate", "bias", "up_bias",
                                       "down_bias", "inner", "when", NULL};
static const char *const experts_keys[] = {"when",   "from",        "to",     "every", "offset", "except",
                                           "list",   "name",        "inner",  "width", "gated",  "bias",
                                           "router", "router_bias", "shared", "also",  "order",  NULL};
static const char *const shared_keys[] = {"up", "down", "inner", "when", "bias", "gate", NULL};
static const char *const ends_keys[] = {"norm", "vocab", NULL};
static const char *const drafter_keys[] = {"layers", "prefix", "at", "matrices", NULL};

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
        } else if (strcmp(key, "kv_heads_by_layer") == 0) {
            continue; /* once there are layers */
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
    oos_arch *a = s->arch;
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

/* A dtype, or a field that names it; what it names otherwise is the model's. */
static oos_dtype read_state_dtype(const oos_scope *s, const json_t *section)
{
    const char *word = oos_record_word(s, section, "state_dtype", NULL);
    oos_dtype const dtype = word ? oos_dtype_find(word) : OOS_DTYPE_UNKNOWN;
    if (!word || dtype != OOS_DTYPE_UNKNOWN) return dtype;
    const char *given = json_string_value(oos_record_field(s, section, "state_dtype"));
    return given ? oos_dtype_find(given) : OOS_DTYPE_UNKNOWN;
}

static void read_cached(const oos_scope *s, const json_t *section, oos_attention *t)
{
    json_t *sizes = json_object_get(section, "sizes"), *value;
    const char *key;
    if (!sizes) return;
    if (!json_is_object(sizes)) oos_record_fail(s, "sizes", "is not an object");
    json_object_foreach(sizes, key, value)
    {
        const oos_quantity *q = cached;
        while (q->name && strcmp(q->name, key) != 0) q++;
        if (!q->name) {
            oos_record_fail(s, "sizes", "'%.40s' is not a key of the vocabulary", key);
            return;
        }
        uint64_t const size = oos_record_size_of(s, key, value);
        memcpy((char *)t + q->offset, &size, sizeof size);
    }
}

static oos_attention attention_of(const oos_scope *s, const json_t *section, uint64_t i)
{
    oos_arch *a = s->arch;
    const json_t *given = json_object_get(section, "window");
    oos_mixer const kind = (oos_mixer)oos_record_choice(s, section, "kind", mixers, OOS_MIXER_FULL);
    uint64_t const window =
        json_is_string(given) ? oos_record_size(s, section, "window", 0) : window_of(s, given, i);
    oos_attention t = kind >= OOS_MIXER_MAMBA1 ? (oos_attention){.mixer = kind} : oos_arch_plain(a, window);
    uint64_t const shared = oos_record_size(s, section, "shares_last", 0),
                   layers = oos_arch_u64(a, "num_hidden_layers", 0);
    if (kind >= OOS_MIXER_MLA || (kind == OOS_MIXER_CHUNKED && window > 0)) t.mixer = kind;
    read_heads(s, section, &t);
    if (t.window > 0) read_heads(s, json_object_get(section, "sliding"), &t);
    read_cached(s, section, &t);
    if (kind >= OOS_MIXER_MAMBA1) t.state_dtype = read_state_dtype(s, section);
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

/* ---- the parts of a section, in the order that it gives or in the usual one ---- */

enum { PARTS_MAX = 8 };
typedef struct parts {
    const char *words[PARTS_MAX]; /* end with NULL */
    size_t usual;                 /* the first so many are there when no order is given */
    void (*put)(const oos_scope *s, const json_t *section, const oos_attention *t, size_t part);
} parts;

static void put_parts(const oos_scope *s, const json_t *section, const oos_attention *t, const parts *p,
                      oos_module module)
{
    const json_t *order = json_object_get(section, "order");
    size_t const count = order ? json_array_size(order) : p->usual;
    if (order && (!json_is_array(order) || count > OOS_MATRICES_MAX))
        oos_record_fail(s, "order", "is not a list of up to %d parts", OOS_MATRICES_MAX);
    for (size_t i = 0; i < count && s->arch->status == OOMSIGHT_OK; i++) {
        const json_t *item = json_array_get(order, i);
        size_t part = order ? 0 : i;
        if (json_is_object(item)) {
            oos_record_matrix(s, item, &(oos_matrix){.in = 1}, module);
            continue;
        }
        while (order && p->words[part] &&
               (!json_is_string(item) || strcmp(p->words[part], json_string_value(item)) != 0))
            part++;
        if (p->words[part])
            p->put(s, section, t, part);
        else
            oos_record_fail(s, "order", "has a part that is not of the vocabulary");
    }
}

static void put_attention_part(const oos_scope *s, const json_t *section, const oos_attention *t, size_t part)
{
    enum { PROJECTIONS, HEAD_NORM, SINKS, KV_SCALES };
    bool const state = t->mixer >= OOS_MIXER_MAMBA1;
    switch (part) {
    case PROJECTIONS:
        if (json_object_get(section, "projections"))
            oos_record_matrices(s, section, "projections", state ? OOS_MODULE_MIXER : OOS_MODULE_ATTN, NULL);
        else
            put_projections(s, section, t);
        break;
    case HEAD_NORM: put_head_norms(s, section, t); break;
    case SINKS:
        if (t->sinks && !json_object_get(section, "projections"))
            oos_put_divided(s->arch, OOS_MODULE_ATTN,
                            oos_record_word(s, section, "sinks_name", "self_attn.sinks"), t->heads, 1,
                            OOS_DTYPE_UNKNOWN);
        break;
    default:
        if (oos_record_yes(s, section, "kv_scales", !state)) oos_put_kv_scales(s->arch);
    }
}

static void put_attention(const oos_scope *s, const json_t *section, const oos_attention *t)
{
    static const parts all = {{"projections", "head_norm", "sinks", "kv_scales"}, 4, put_attention_part};
    put_parts(s, section, t, &all, OOS_MODULE_ATTN);
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

static void put_experts_part(const oos_scope *s, const json_t *section, const oos_attention *t, size_t part)
{
    enum { ROUTER, ROUTER_BIAS, SHARED, ALSO };
    oos_arch *a = s->arch;
    const oos_model *m = a->model;
    const json_t *bias, *shared;
    (void)t;
    switch (part) {
    case ROUTER:
        oos_record_matrix(s, json_object_get(section, "router"),
                          &(oos_matrix){.name = "mlp.gate", .out = m->moe.experts, .in = m->hidden},
                          OOS_MODULE_ROUTER);
        break;
    case ROUTER_BIAS:
        bias = json_object_get(section, "router_bias");
        if (bias)
            oos_record_matrix(
                s, bias,
                &(oos_matrix){
                    .name = "mlp.gate.bias", .out = m->moe.experts, .in = 1, .dtype = OOS_DTYPE_F32},
                OOS_MODULE_ROUTER);
        break;
    case SHARED:
        shared = json_object_get(section, "shared");
        if (shared && oos_record_yes(s, shared, "when", m->moe.shared_intermediate > 0))
            put_mlp(s, shared, OOS_MODULE_SHARED_EXPERT, "mlp.shared_experts.gate_up_proj",
                    "mlp.shared_experts.down_proj", m->moe.shared_intermediate);
        break;
    case ALSO: oos_record_matrices(s, section, "also", OOS_MODULE_MLP, NULL); break;
    default:
        oos_put_experts(a, oos_record_word(s, section, "name", "mlp.experts"), m->moe.experts,
                        oos_record_size(s, section, "width", m->hidden),
                        oos_record_size(s, section, "inner", m->moe.intermediate),
                        oos_record_yes(s, section, "gated", true), oos_record_yes(s, section, "bias", false));
    }
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

static void put_layer_part(const oos_scope *s, const json_t *body, const oos_attention *t, size_t part)
{
    enum { FIRST_NORM, ATTENTION, SECOND_NORM, MLP, NORMS, ALSO };
    static const parts of_experts = {
        {"router", "router_bias", "shared", "also", "experts"}, 5, put_experts_part};
    oos_arch *a = s->arch;
    bool const dense =
        !a->now.moe && (part == SECOND_NORM || part == MLP) && oos_record_yes(s, s->mlp, "when", true);
    switch (part) {
    case FIRST_NORM:
        if (t[0].mixer || t[1].mixer) put_norm(s, 0);
        break;
    case ATTENTION:
        if (t[1].mixer) put_attention(s, s->mixer, &t[1]);
        if (t[0].mixer) put_attention(s, s->attention, &t[0]);
        break;
    case SECOND_NORM:
        if (a->now.moe || dense) put_norm(s, 1);
        break;
    case MLP:
        if (a->now.moe)
            put_parts(s, s->experts, NULL, &of_experts, OOS_MODULE_MLP);
        else if (dense)
            put_mlp(s, s->mlp, OOS_MODULE_MLP, "mlp.gate_up_proj", "mlp.down_proj", a->model->intermediate);
        break;
    case NORMS: put_other_norms(s); break;
    case ALSO: oos_record_matrices(s, body, "also", OOS_MODULE_OTHER, NULL); break;
    default: oos_put_kv_scales(a);
    }
}

/* The other mixer where it is said to be, else attention. Where both are in one layer, one record holds the state and the heads. */
static void put_layer(oos_arch *a, uint64_t i)
{
    static const parts all = {
        {"first_norm", "attention", "second_norm", "mlp", "norms", "also", "kv_scales"}, 6, put_layer_part};
    oos_scope *s = a->scope;
    oos_record_let(s, "layer", i);
    oos_record_let(s, "drafts", i >= a->model->layer_count);
    oos_record_lets(s, "each");
    oos_attention t[2] = {{0}, {0}}; /* attention, the other mixer; not there: none */
    bool const other = s->mixer && oos_record_yes(s, s->mixer, "when", true),
               beside = other && oos_record_yes(s, s->mixer, "beside", false);
    if (other) t[1] = attention_of(s, s->mixer, i);
    if ((!other || beside) && oos_record_yes(s, s->attention, "when", true))
        t[0] = attention_of(s, s->attention, i);
    if (beside) {
        t[1].heads = t[0].heads;
        t[1].kv_heads = t[0].kv_heads;
        t[1].head_dim = t[0].head_dim;
        t[1].head_dim_v = t[0].head_dim_v;
    }
    oos_arch_attention(a, t[other]);
    a->now.moe = has_experts(s, s->experts, i);
    put_parts(s, s->record->body, t, &all, OOS_MODULE_OTHER);
    s->understood = true;
}

/* ---- outside the layers ---- */

static void put_outside(const oos_scope *s)
{
    oos_arch *a = s->arch;
    oos_model *m = a->model;
    const json_t *body = s->record->body, *ends = json_object_get(body, "ends");
    bool const usual = !json_is_false(ends);
    if (!json_is_object(ends)) ends = NULL;
    if (usual)
        oos_put_ends(a, oos_record_size(s, ends, "norm", 1), oos_record_size(s, ends, "vocab", m->vocab));
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

static void put_drafter(const oos_scope *s)
{
    static const char *const words[] = {"none", "nextn", NULL};
    oos_arch *a = s->arch;
    oos_model *m = a->model;
    const json_t *body = s->record->body, *drafter = json_object_get(body, "drafter");
    if (!json_is_object(drafter)) {
        if (oos_record_choice(s, body, "drafter", words, 0) == 1) oos_put_nextn(a, put_next_layer);
        return;
    }
    const char *prefix = oos_record_word(s, drafter, "prefix", NULL);
    oos_arch_mtp_layers(a, oos_record_size(s, drafter, "layers", 0), prefix ? prefix : a->layer_prefix,
                        prefix ? 0 : m->layer_count, put_next_layer);
    oos_range_open(a, oos_record_word(s, drafter, "at", a->prefix));
    oos_record_matrices(s, drafter, "matrices", OOS_MODULE_OTHER, NULL);
    oos_range_close(a, m->mtp_matrices);
}

/* Keys are looked at before the first is used: one that is not known is wrong for every config. */
static void check(const oos_scope *s)
{
    const json_t *body = s->record->body, *attention = json_object_get(body, "attention"),
                 *experts = json_object_get(body, "experts"), *ends = json_object_get(body, "ends"),
                 *window = json_object_get(attention, "window"), *drafter = json_object_get(body, "drafter");
    oos_record_keys(s, body, "record", record_keys);
    oos_record_keys(s, attention, "attention", attention_keys);
    oos_record_keys(s, json_object_get(body, "mixer"), "mixer", attention_keys);
    if (!json_is_string(window)) oos_record_keys(s, window, "window", window_keys);
    oos_record_keys(s, json_object_get(attention, "sliding"), "sliding", sliding_keys);
    oos_record_keys(s, json_object_get(body, "mlp"), "mlp", mlp_keys);
    oos_record_keys(s, experts, "experts", experts_keys);
    oos_record_keys(s, json_object_get(experts, "shared"), "shared", shared_keys);
    if (!json_is_boolean(ends)) oos_record_keys(s, ends, "ends", ends_keys);
    if (!json_is_string(drafter)) oos_record_keys(s, drafter, "drafter", drafter_keys);
}

/* DeciLM: the heads of the first layer that attends. */
static void take_kv_heads(oos_arch *a)
{
    for (size_t i = 0; i < a->attention_count; i++)
        if (a->attentions[i].mixer == OOS_MIXER_FULL) {
            a->model->kv_heads = a->attentions[i].kv_heads;
            return;
        }
}

void oos_build_record(oos_arch *a)
{
    oos_model *m = a->model;
    oos_scope scope = {.arch = a, .record = a->family->record, .quantities = quantities};
    const json_t *body = scope.record->body, *model = json_object_get(body, "model");
    scope.attention = json_object_get(body, "attention");
    scope.mixer = json_object_get(body, "mixer");
    scope.mlp = json_object_get(body, "mlp");
    scope.experts = json_object_get(body, "experts");
    check(&scope);
    read_model(&scope);
    bool const counted = json_object_get(model, "layers") && m->layer_count > 0;
    uint64_t const layers = counted ? m->layer_count : oos_arch_layer_count(a);
    m->layer_count = layers;
    oos_record_lets(&scope, "let");
    a->scope = &scope;
    oos_arch_layers(a, layers, put_layer);
    if (oos_record_yes(&scope, model, "kv_heads_by_layer", false)) take_kv_heads(a);
    put_outside(&scope);
    put_drafter(&scope);
    if (oos_record_yes(&scope, scope.mixer, "beside", false))
        oos_arch_note(a,
                      "each layer of %s has attention and a recurrent state: the cache is computed from the "
                      "state alone",
                      m->architecture);
    a->scope = NULL;
}
