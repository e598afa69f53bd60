/* KV cache geometry, put together: layer specs (kv_spec.c, or given as JSON), groups (kv_group.c). Filling memory with
 * blocks is kv_fill.c's. */
#include "base/check.h"
#include "engines/vllm/kv/kv.h"

#include "base/json.h"

const char *oos_kv_kind_word(oos_kv_kind kind)
{
    switch (kind) {
    case OOS_KV_KIND_FULL: return "full_attention";
    case OOS_KV_KIND_SLIDING: return "sliding_window";
    case OOS_KV_KIND_CHUNKED: return "chunked_local_attention";
    case OOS_KV_KIND_MLA: return "mla_attention";
    case OOS_KV_KIND_SLIDING_MLA: return "sliding_window_mla";
    case OOS_KV_KIND_INDEXER: return "indexer";
    case OOS_KV_KIND_STATE: return "mamba";
    case OOS_KV_KIND_CROSS: return "cross_attention";
    }
    return "unknown";
}

static bool kind_find(const char *type, oos_kv_kind *ret_kind)
{
    static const struct {
        const char *type;
        oos_kv_kind kind;
    } types[] = {{"FullAttentionSpec", OOS_KV_KIND_FULL},
                 {"SlidingWindowSpec", OOS_KV_KIND_SLIDING},
                 {"ChunkedLocalAttentionSpec", OOS_KV_KIND_CHUNKED},
                 {"MLAAttentionSpec", OOS_KV_KIND_MLA},
                 {"SlidingWindowMLASpec", OOS_KV_KIND_SLIDING_MLA},
                 {"MambaSpec", OOS_KV_KIND_STATE},
                 {"CrossAttentionSpec", OOS_KV_KIND_CROSS}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(type, types[i].type) == 0) {
            *ret_kind = types[i].kind;
            return true;
        }
    return false;
}

/* Pages of recurrent state a request holds (MambaSpec.max_memory_usage_bytes): one, since 0.15 one for every draft
 * token and, where states are kept for the prefix cache, one more and one for checkpoints inside a prefill. */
void oos_kv_state_pages(const oos_setup *setup, oos_mamba_mode mode, uint64_t speculative,
                        uint64_t checkpoints, oos_kv_spec *spec)
{
    switch (setup->rules->state_pages) {
    case 0: spec->state_blocks = 1; return;
    case 1: /* 0.11.1 to 0.14: by length, which is one page when blocks are as long as the context */
        spec->state_blocks = 0;
        spec->state_by_length = true;
        return;
    default: break;
    }
    switch (mode) {
    case OOS_MAMBA_NONE: spec->state_blocks = 1 + speculative; return;
    case OOS_MAMBA_ALIGN: spec->state_blocks = 2 + speculative + checkpoints; return;
    case OOS_MAMBA_ALL:
        spec->state_blocks = setup->rules->state_pages >= 3 ? speculative : 0;
        spec->state_by_length = true;
        return;
    }
}

static oomsight_status spec_read(const oos_setup *setup, const json_t *object, oos_kv_spec *ret_spec,
                                 oomsight_error *reterr)
{
    const char *type = "", *mode_word = "none";
    oos_kv_spec spec = {0};
    oos_json_str(object, "type", &type);
    if (!kind_find(type, &spec.kind))
        return oos_fail(reterr, OOMSIGHT_MALFORMED, "'%s' is no type of KV layer", type);
    if (!oos_json_u64(object, "block_size", &spec.block_tokens) || spec.block_tokens == 0 ||
        !oos_json_u64(object, "page_size_bytes", &spec.page_bytes) || spec.page_bytes == 0 ||
        !oos_json_u64(object, "layers", &spec.layers) || spec.layers > UINT32_MAX)
        return oos_fail(reterr, OOMSIGHT_MALFORMED,
                        "a KV layer needs layers, block_size and page_size_bytes");
    oos_json_u64(object, "window", &spec.window);
    if (spec.kind == OOS_KV_KIND_STATE) {
        uint64_t speculative = 0, checkpoints = 0;
        oos_json_str(object, "mamba_cache_mode", &mode_word);
        oos_json_u64(object, "num_speculative_blocks", &speculative);
        oos_json_u64(object, "num_prefill_checkpoint_blocks", &checkpoints);
        oos_mamba_mode const mode = strcmp(mode_word, "align") == 0 ? OOS_MAMBA_ALIGN
                                    : strcmp(mode_word, "all") == 0 ? OOS_MAMBA_ALL
                                                                    : OOS_MAMBA_NONE;
        oos_kv_state_pages(setup, mode, speculative, checkpoints, &spec);
    }
    *ret_spec = spec;
    return OOMSIGHT_OK;
}

static oomsight_status layers_read(oos_arena *arena, const oos_setup *setup, const char *text,
                                   oos_kv_layers *layers, oomsight_error *reterr)
{
    json_t *root;
    OOS_TRY(oos_json_load(arena, oos_view_of(text), &root, reterr));
    if (!json_is_array(root) || json_array_size(root) == 0)
        return oos_fail(reterr, OOMSIGHT_MALFORMED, "KV layers are a list of objects");
    layers->stages = 1;
    layers->stage_layers = OOS_NEW_ARRAY(arena, uint32_t, OOS_KV_SPECS_MAX);
    if (!layers->stage_layers) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for KV layers");
    for (size_t i = 0; i < json_array_size(root); i++) {
        oos_kv_spec spec;
        OOS_TRY(spec_read(setup, json_array_get(root, i), &spec, reterr));
        OOS_TRY(oos_kv_layers_add(layers, &spec, 0, spec.layers, reterr));
        if (spec.kind != OOS_KV_KIND_STATE && layers->block_tokens == 0)
            layers->block_tokens = spec.block_tokens;
    }
    if (layers->block_tokens == 0) layers->block_tokens = oos_u64_or(setup->block_size_given, 16);
    return OOMSIGHT_OK;
}

/* Every group has pages, none larger than the page all share, and layers, though not on every stage of several; a block is no smaller
 * than a page. */
static bool shape_is_sound(const oos_kv_shape *shape)
{
    for (size_t i = 0; i < shape->group_count; i++) {
        const oos_kv_group *group = &shape->groups[i];
        bool const empty = group->layers == 0 && shape->stage_count <= 1;
        if (!shape->error && (empty || group->block_tokens == 0)) return false;
    }
    for (size_t i = 0; i < shape->stage_count; i++)
        if (shape->stages[i].block_bytes > shape->block_bytes) return false;
    return shape->group_count == 0 || shape->error || shape->block_bytes >= shape->page_bytes;
}

oomsight_status oos_kv_shape_of(oos_arena *arena, const oos_setup *setup, const char *layers_json,
                                oos_kv_shape *ret_shape, oomsight_error *reterr)
{
    oos_kv_layers layers = {.count = 0};
    if (layers_json)
        OOS_TRY(layers_read(arena, setup, layers_json, &layers, reterr));
    else
        OOS_TRY(oos_kv_layers_of(arena, setup, &layers, reterr));
    OOS_TRY(oos_kv_group_up(arena, setup, &layers, ret_shape, reterr));
    oos_assert(shape_is_sound(ret_shape));
    return OOMSIGHT_OK;
}
