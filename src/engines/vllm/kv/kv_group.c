/* Layers into groups that share a block table, and the bytes of one block. Every group takes its blocks from one pool, so
 * a block is as large in each: pages are made equal and groups equally deep. Work is by kind of layer, not by layer.
 *
 * Source: vllm/v1/core/kv_cache_utils.py, get_kv_cache_groups() and what it calls, 0.8 to 0.32. */
#include "engines/vllm/kv/kv.h"
#include "base/check.h"

/* The specs while they are being made equal. `of[i]` is the spec that raw spec i became. */
typedef struct buckets {
    oos_kv_spec specs[OOS_KV_SPECS_MAX];
    size_t count;
    size_t of[OOS_KV_SPECS_MAX], first[OOS_KV_SPECS_MAX]; /* first: the raw spec a bucket began with */
} buckets;

static bool is_full(oos_kv_kind kind)
{
    return kind == OOS_KV_KIND_FULL || kind == OOS_KV_KIND_MLA || kind == OOS_KV_KIND_INDEXER;
}

static bool is_local(oos_kv_kind kind)
{
    return kind == OOS_KV_KIND_SLIDING || kind == OOS_KV_KIND_CHUNKED || kind == OOS_KV_KIND_SLIDING_MLA;
}

static bool merges(const oos_kv_spec *a, const oos_kv_spec *b)
{
    return a->kind == b->kind && a->block_tokens == b->block_tokens && a->page_bytes == b->page_bytes &&
           (is_full(a->kind) || a->window == b->window) && a->state_blocks == b->state_blocks &&
           a->state_by_length == b->state_by_length;
}

/* Equal specs become one bucket, in the order of their first layer. Two that were padded to one size stay two. */
static void fill_buckets(const oos_kv_layers *layers, const oos_kv_spec *specs, buckets *ret)
{
    ret->count = 0;
    for (size_t i = 0; i < layers->count; i++) {
        size_t k = 0;
        while (k < ret->count && !(merges(&ret->specs[k], &specs[i]) &&
                                   layers->specs[ret->first[k]].page_bytes == layers->specs[i].page_bytes))
            k++;
        if (k == ret->count) {
            ret->specs[ret->count++] = specs[i];
            ret->specs[k].layers = 0;
            ret->first[k] = i;
        }
        ret->specs[k].layers += layers->specs[i].layers;
        ret->of[i] = k;
    }
}

static bool any_kind(const oos_kv_spec *specs, size_t count, bool (*test)(oos_kv_kind))
{
    for (size_t i = 0; i < count; i++)
        if (test(specs[i].kind)) return true;
    return false;
}

/* Without the hybrid manager a local layer keeps blocks for every token, as a full one does. */
static bool hybrid_off(const oos_setup *setup, const oos_kv_layers *layers)
{
    return !setup->rules->hybrid_groups || !setup->hybrid_manager || layers->hybrid_off;
}

static void promote(const oos_kv_layers *layers, oos_kv_spec *specs)
{
    if (!any_kind(specs, layers->count, is_full)) return;
    for (size_t i = 0; i < layers->count; i++)
        if (is_local(specs[i].kind))
            specs[i].kind = specs[i].kind == OOS_KV_KIND_SLIDING_MLA ? OOS_KV_KIND_MLA : OOS_KV_KIND_FULL;
}

/* One kind of attention, needing as many token slots in every layer (UniformTypeKVCacheSpecs). */
static bool uniform_type(const oos_setup *setup, const buckets *b)
{
    if (!setup->rules->uniform_type_groups) return false;
    const oos_kv_spec *first = &b->specs[0];
    for (size_t i = 1; i < b->count; i++) {
        const oos_kv_spec *spec = &b->specs[i];
        if (spec->block_tokens != first->block_tokens) return false;
        if (is_full(first->kind) ? !is_full(spec->kind) : spec->kind != first->kind) return false;
        if (is_local(first->kind) && spec->window != first->window) return false;
        if (first->kind == OOS_KV_KIND_STATE && spec->state_blocks != first->state_blocks) return false;
        if (first->kind == OOS_KV_KIND_STATE && setup->rules->uniform_state_pages &&
            spec->page_bytes != first->page_bytes)
            return false;
    }
    return true;
}

/* Pages of one size: a smaller page takes a multiple of the tokens where that fits, or is padded. */
static const char *unify_pages(const oos_setup *setup, oos_kv_spec *specs, size_t count)
{
    uint64_t const rule = setup->rules->page_unification;
    uint64_t largest = 0, smallest = UINT64_MAX;
    for (size_t i = 0; i < count; i++) {
        largest = oos_max(largest, specs[i].page_bytes);
        smallest = oos_min(smallest, specs[i].page_bytes);
    }
    if (largest == smallest) return NULL;
    if (rule == 0) return "NotImplementedError: layers whose KV pages differ in size cannot be grouped";
    for (size_t i = 0; i < count; i++) {
        oos_kv_spec *spec = &specs[i];
        if (spec->page_bytes == largest) continue;
        if (spec->kind == OOS_KV_KIND_STATE && rule >= 3) {
            spec->page_bytes = largest;
        } else if (largest % spec->page_bytes == 0 && spec->kind != OOS_KV_KIND_STATE) {
            spec->block_tokens = oos_mul(spec->block_tokens, largest / spec->page_bytes);
            spec->page_bytes = largest;
        } else if (rule >= 2 && spec->kind != OOS_KV_KIND_MLA && spec->kind != OOS_KV_KIND_INDEXER &&
                   spec->kind != OOS_KV_KIND_STATE) {
            spec->page_bytes = largest;
        } else {
            return rule >= 2
                       ? "page size is not divisible by the maximum page size and cannot be padded."
                       : "The page size of the layer is not divisible by the maximum page size. Cannot unify "
                         "by adjusting block_size.";
        }
    }
    return NULL;
}

/* ---- groups ----------------------------------------------------------------------------------------------------- */

static uint64_t group_size_of(const oos_setup *setup, const uint64_t *layers, size_t count)
{
    uint64_t least = UINT64_MAX, most = 0;
    for (size_t i = 0; i < count; i++) {
        if (layers[i] == 0) continue;
        least = oos_min(least, layers[i]);
        most = oos_max(most, layers[i]);
    }
    if (most == 0) return 1;
    /* a bucket only a little deeper than the others sets the depth: fewer padding layers than another group */
    return (double)most < (double)least * setup->rules->hybrid_group_ratio ? most : least;
}

/* Layers j of a bucket with first <= j < first + count that fall to group g of n, dealt out in turn. */
static uint64_t dealt(uint64_t first, uint64_t count, uint64_t g, uint64_t n)
{
    oos_assert(n > 0);
    uint64_t const end = first + count;
    uint64_t const below_end = end > g ? (end - g - 1) / n + 1 : 0;
    uint64_t const below_first = first > g ? (first - g - 1) / n + 1 : 0;
    return below_end - below_first;
}

/* The layers a stage has of each bucket, and how many earlier stages have. */
typedef struct stage_view {
    uint64_t first[OOS_KV_SPECS_MAX], count[OOS_KV_SPECS_MAX];
} stage_view;

static void view_stage(const oos_kv_layers *layers, const buckets *b, uint64_t stage, stage_view *view)
{
    for (size_t k = 0; k < b->count; k++) {
        view->first[k] += view->count[k];
        view->count[k] = 0;
    }
    for (size_t i = 0; i < layers->count; i++)
        view->count[b->of[i]] += layers->stage_layers[stage * OOS_KV_SPECS_MAX + i];
}

typedef struct plan_of_groups {
    bool uniform;
    uint64_t size;                        /* layers in a group */
    uint64_t groups_of[OOS_KV_SPECS_MAX]; /* groups of each bucket */
} plan_of_groups;

static uint64_t depth_on_stage(const plan_of_groups *p, const buckets *b, const stage_view *view)
{
    uint64_t depth = 0;
    for (size_t k = 0; k < b->count; k++)
        if (view->count[k]) depth = oos_max(depth, oos_cdiv(view->count[k], p->groups_of[k]));
    return depth;
}

static uint64_t uniform_bytes(const buckets *b, const uint64_t *layers)
{
    uint64_t bytes = 0;
    for (size_t k = 0; k < b->count; k++) bytes = oos_add(bytes, oos_mul(layers[k], b->specs[k].page_bytes));
    return bytes;
}

/* To 0.10.2 every worker grouped its own layers, and a group took neighbours instead of every n-th layer. */
static void plan_stage(const oos_setup *setup, const buckets *b, const stage_view *view, plan_of_groups *p)
{
    p->size = group_size_of(setup, view->count, b->count);
    for (size_t k = 0; k < b->count; k++) p->groups_of[k] = oos_max(1, oos_cdiv(view->count[k], p->size));
}

static void note_padding(const plan_of_groups *p, const uint64_t *layers, size_t count, oos_kv_shape *shape)
{
    for (size_t k = 0; k < count; k++) {
        oos_assert(p->size > 0);
        uint64_t const over = layers[k] % p->size;
        if (over == 0 || p->size - over <= shape->padding_layers) continue;
        shape->padding_layers = p->size - over;
    }
}

static oomsight_status write_groups(oos_arena *arena, const oos_setup *setup, const plan_of_groups *p,
                                    const buckets *b, const stage_view *view, oos_kv_shape *shape,
                                    oomsight_error *reterr)
{
    size_t total = 0;
    for (size_t k = 0; k < b->count; k++) total += p->uniform ? 0 : (size_t)p->groups_of[k];
    if (p->uniform) total = 1;
    oos_kv_group *groups = OOS_NEW_ARRAY(arena, oos_kv_group, total);
    if (!groups) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for KV groups");
    size_t at = 0;
    if (p->uniform) {
        oos_kv_spec spec = b->specs[0];
        for (size_t k = 0; k < b->count; k++)
            if (b->specs[k].kind != OOS_KV_KIND_INDEXER) spec.kind = b->specs[k].kind;
        groups[0] = (oos_kv_group){.kind = spec.kind, .block_tokens = spec.block_tokens, .spec = spec};
        for (size_t k = 0; k < b->count; k++) groups[0].layers += view->count[k];
        groups[0].page_bytes = shape->block_bytes;
        groups[0].several = true;
        at = 1;
    }
    for (size_t k = 0; !p->uniform && k < b->count; k++) {
        uint64_t const n = p->groups_of[k];
        for (uint64_t g = 0; g < n; g++) {
            uint64_t layers = dealt(view->first[k], view->count[k], g, n);
            if (setup->rules->groups_by_neighbours)
                layers = oos_min(p->size, oos_sub(view->count[k], g * p->size));
            groups[at++] = (oos_kv_group){.kind = b->specs[k].kind,
                                          .layers = layers,
                                          .block_tokens = b->specs[k].block_tokens,
                                          .page_bytes = b->specs[k].page_bytes,
                                          .spec = b->specs[k]};
        }
    }
    oos_assert(at == total);
    oos_kv_finish_groups(setup, groups, at, shape);
    return OOMSIGHT_OK;
}

void oos_kv_finish_groups(const oos_setup *setup, oos_kv_group *groups, size_t count, oos_kv_shape *shape)
{
    for (size_t g = 0; g < count; g++) {
        oos_kv_group *group = &groups[g];
        group->request_blocks = oos_kv_request_blocks(setup, &group->spec, setup->max_model_len);
        if (is_full(group->kind)) {
            uint64_t const bytes =
                group->several ? group->page_bytes : oos_mul(group->layers, group->page_bytes);
            shape->bytes_per_token += (double)bytes / (double)group->block_tokens;
        }
        shape->tensor_count = oos_max(shape->tensor_count, group->layers);
    }
    shape->groups = groups;
    shape->group_count = count;
}

oomsight_status oos_kv_write_stage(oos_arena *arena, const oos_kv_layers *layers, uint64_t stage,
                                   oos_kv_stage *ret_stage, oomsight_error *reterr)
{
    oos_kv_spec *specs = OOS_NEW_ARRAY(arena, oos_kv_spec, layers->count);
    if (!specs) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for KV specs");
    size_t at = 0;
    for (size_t i = 0; i < layers->count; i++) {
        uint64_t const count = layers->stage_layers[stage * OOS_KV_SPECS_MAX + i];
        if (count == 0) continue;
        specs[at] = layers->specs[i];
        specs[at++].layers = count;
    }
    *ret_stage = (oos_kv_stage){.specs = specs, .spec_count = at};
    return OOMSIGHT_OK;
}

/* Specs made ready for grouping: promoted, merged, of one page size. NULL or the engine's objection. */
static const char *prepare(const oos_setup *setup, const oos_kv_layers *layers, buckets *b, plan_of_groups *p)
{
    oos_kv_spec specs[OOS_KV_SPECS_MAX];
    memcpy(specs, layers->specs, layers->count * sizeof *specs);
    bool const off = hybrid_off(setup, layers);
    if (off) promote(layers, specs);
    fill_buckets(layers, specs, b);
    p->uniform = b->count > 1 && uniform_type(setup, b);
    if (b->count == 1 || p->uniform) return NULL;
    if (off && !setup->rules->hybrid_groups)
        return "NotImplementedError: layers of several kinds are not grouped";
    if (off)
        return setup->rules->local_promotion ? "Failed to promote local KV cache specs to one unified type."
                                             : "Hybrid KV cache manager is disabled but failed to convert "
                                               "the KV cache specs to one unified "
                                               "type.";
    const char *objection = unify_pages(setup, specs, layers->count);
    if (objection) return objection;
    fill_buckets(layers, specs, b);
    return NULL;
}

oomsight_status oos_kv_group_up(oos_arena *arena, const oos_setup *setup, const oos_kv_layers *layers,
                                oos_kv_shape *ret_shape, oomsight_error *reterr)
{
    oos_kv_shape shape = {.block_tokens = layers->block_tokens, .estimated = layers->estimated};
    if (layers->count == 0) { /* no layer keeps anything: the engine has one block, the null block */
        *ret_shape = shape;
        return OOMSIGHT_OK;
    }
    if (oos_kv_is_packed(layers) && setup->rules->packed_groups) {
        OOS_TRY(oos_kv_pack(arena, setup, layers, &shape, reterr));
        *ret_shape = shape;
        return OOMSIGHT_OK;
    }
    buckets b;
    plan_of_groups p = {.size = 1};
    shape.error = prepare(setup, layers, &b, &p);

    uint64_t whole[OOS_KV_SPECS_MAX];
    for (size_t k = 0; k < b.count; k++) {
        whole[k] = b.specs[k].layers;
        shape.page_bytes = oos_max(shape.page_bytes, b.specs[k].page_bytes);
    }
    p.size = group_size_of(setup, whole, b.count);
    for (size_t k = 0; k < b.count; k++) p.groups_of[k] = oos_max(1, oos_cdiv(whole[k], p.size));
    uint64_t const whole_bytes = p.uniform ? uniform_bytes(&b, whole) : oos_mul(p.size, shape.page_bytes);

    bool const by_stage = setup->rules->groups_by_neighbours;
    /* 0.11 to 0.16 forgot to cut a group of several page sizes down to the stage: its blocks are the whole model's */
    bool const whole_group = setup->rules->uniform_whole_model;
    stage_view view = {{0}, {0}}, best = {{0}, {0}};
    plan_of_groups best_plan = p;
    oos_kv_stage *stages = OOS_NEW_ARRAY(arena, oos_kv_stage, layers->stages);
    if (!stages) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for KV stages");
    for (uint64_t stage = 0; stage < layers->stages; stage++) {
        view_stage(layers, &b, stage, &view);
        if (by_stage) plan_stage(setup, &b, &view, &p);
        uint64_t const bytes = p.uniform ? uniform_bytes(&b, whole_group ? whole : view.count)
                                         : oos_mul(depth_on_stage(&p, &b, &view), shape.page_bytes);
        OOS_TRY(oos_kv_write_stage(arena, layers, stage, &stages[stage], reterr));
        stages[stage].block_bytes = bytes;
        stages[stage].check_bytes = setup->rules->length_check_whole_model ? whole_bytes : bytes;
        if (stage && bytes <= shape.block_bytes) continue;
        shape.block_bytes = bytes;
        best = view;
        best_plan = p;
    }
    if (!best_plan.uniform) note_padding(&best_plan, by_stage ? best.count : whole, b.count, &shape);
    OOS_TRY(write_groups(arena, setup, &best_plan, &b, &best, &shape, reterr));
    oos_assert(b.count > 0 && b.count <= layers->count && layers->count <= OOS_KV_SPECS_MAX);
    shape.stages = stages;
    shape.stage_count = (size_t)layers->stages;
    *ret_shape = shape;
    return OOMSIGHT_OK;
}
