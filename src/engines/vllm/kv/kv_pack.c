/* DeepSeek V4: layers whose pages have many sizes, packed side by side in one block. Full layers (compressed states and
 * the indexer's) are one group; local ones are grouped by block size and window, split to about the same number of
 * repeats of a pattern.
 *
 * Source: vllm/v1/core/kv_cache_utils.py, _get_kv_cache_groups_uniform_groups() 0.20 to 0.28 and
 * _get_packed_kv_cache_groups() since 0.29. */
#include "engines/vllm/kv/kv.h"
#include "base/check.h"

/* Specs that need as many token slots: one class is one group, or is split into several. */
typedef struct pack_class {
    size_t members[OOS_KV_SPECS_MAX];
    size_t count;
    bool full;
    uint64_t repeats;                 /* layers of its commonest page size */
    uint64_t pages[OOS_KV_SPECS_MAX]; /* of the members, padded */
    uint64_t groups;
} pack_class;

typedef struct packing {
    pack_class classes[OOS_KV_SPECS_MAX];
    size_t count;
    uint64_t tuple_bytes; /* one page of every size of the full class */
} packing;

static bool is_full(const oos_kv_spec *spec)
{
    return spec->kind == OOS_KV_KIND_MLA || spec->kind == OOS_KV_KIND_INDEXER ||
           spec->kind == OOS_KV_KIND_FULL;
}

bool oos_kv_is_packed(const oos_kv_layers *layers)
{
    bool local = false, full = false;
    for (size_t i = 0; i < layers->count; i++) {
        local = local || layers->specs[i].kind == OOS_KV_KIND_SLIDING_MLA;
        full = full || is_full(&layers->specs[i]);
    }
    return local && full;
}

static pack_class *class_for(packing *p, const oos_kv_layers *layers, size_t i)
{
    const oos_kv_spec *spec = &layers->specs[i];
    for (size_t c = 0; c < p->count; c++) {
        const oos_kv_spec *first = &layers->specs[p->classes[c].members[0]];
        if (is_full(first) != is_full(spec)) continue;
        if (is_full(spec) || (first->block_tokens == spec->block_tokens && first->window == spec->window))
            return &p->classes[c];
    }
    oos_assert(p->count < OOS_KV_SPECS_MAX);
    pack_class *fresh = &p->classes[p->count++];
    *fresh = (pack_class){.full = is_full(spec), .groups = 1};
    return fresh;
}

/* To 0.26 a local page was padded to the next size among the full ones. */
static uint64_t padded(const packing *p, const oos_kv_layers *layers, uint64_t page)
{
    uint64_t best = UINT64_MAX;
    for (size_t c = 0; c < p->count; c++)
        for (size_t m = 0; p->classes[c].full && m < p->classes[c].count; m++) {
            uint64_t const size = layers->specs[p->classes[c].members[m]].page_bytes;
            if (size >= page && size < best) best = size;
        }
    return best == UINT64_MAX ? page : best;
}

/* The number of repeats that pads least; of equals the larger (_approximate_gcd). */
static uint64_t common_repeats(const uint64_t *values, size_t count, uint64_t least)
{
    uint64_t most = 0, best = least, best_waste = UINT64_MAX;
    for (size_t i = 0; i < count; i++) most = oos_max(most, values[i]);
    for (uint64_t d = oos_max(1, least); d <= oos_min(most, 4096); d++) {
        uint64_t waste = 0;
        for (size_t i = 0; i < count; i++) waste += (d - values[i] % d) % d;
        if (waste <= best_waste) {
            best_waste = waste;
            best = d;
        }
    }
    return oos_max(1, best);
}

static void classify(const oos_setup *setup, const oos_kv_layers *layers, packing *p)
{
    p->count = 0;
    /* full layers first to 0.28, in order of appearance since */
    bool const full_first = setup->rules->packed_groups < 4;
    for (int pass = full_first ? 0 : 2; pass < 3; pass++)
        for (size_t i = 0; i < layers->count; i++) {
            if (pass < 2 && is_full(&layers->specs[i]) != (pass == 0)) continue;
            if (pass == 2 && full_first) continue;
            pack_class *c = class_for(p, layers, i);
            oos_assert(c->count < OOS_KV_SPECS_MAX);
            c->members[c->count++] = i;
            c->repeats = oos_max(c->repeats, layers->specs[i].layers);
        }
    for (size_t c = 0; c < p->count; c++)
        for (size_t m = 0; m < p->classes[c].count; m++) {
            uint64_t const page = layers->specs[p->classes[c].members[m]].page_bytes;
            bool const pads = !p->classes[c].full && setup->rules->packed_groups <= 2;
            p->classes[c].pages[m] = pads ? padded(p, layers, page) : page;
            if (p->classes[c].full) p->tuple_bytes = oos_add(p->tuple_bytes, page);
        }
}

/* Equally many layers of every page size: such a class is a repeating pattern and can be split. */
static bool balanced(const pack_class *c, const oos_kv_layers *layers)
{
    for (size_t m = 1; m < c->count; m++)
        if (layers->specs[c->members[m]].layers != layers->specs[c->members[0]].layers) return false;
    return true;
}

static void split(const oos_setup *setup, const oos_kv_layers *layers, packing *p)
{
    uint64_t values[OOS_KV_SPECS_MAX], least = 0;
    size_t count = 0;
    bool const by_layout = setup->rules->packed_groups >= 4;
    for (size_t c = 0; c < p->count; c++) {
        const pack_class *one = &p->classes[c];
        if (by_layout && !balanced(one, layers)) continue;
        values[count++] = one->repeats;
        if (by_layout ? one->count > 1 : one->full) least = oos_max(least, one->repeats);
    }
    if (least == 0) return;
    uint64_t const repeats = common_repeats(values, count, least);
    for (size_t c = 0; c < p->count; c++)
        if (!p->classes[c].full && balanced(&p->classes[c], layers))
            p->classes[c].groups = oos_max(1, oos_cdiv(p->classes[c].repeats, repeats));
}

/* Layers of a member in group g, dealt out in turn. */
static uint64_t layers_in(uint64_t layers, uint64_t g, uint64_t groups)
{
    return layers > g ? (layers - g - 1) / groups + 1 : 0;
}

static uint64_t group_bytes(const pack_class *c, const oos_kv_layers *layers, uint64_t g)
{
    uint64_t bytes = 0;
    for (size_t m = 0; m < c->count; m++)
        bytes = oos_add(bytes,
                        oos_mul(layers_in(layers->specs[c->members[m]].layers, g, c->groups), c->pages[m]));
    return bytes;
}

/* Layers of the commonest page size in the largest group. */
static uint64_t most_repeats(const packing *p)
{
    uint64_t most = 0;
    for (size_t c = 0; c < p->count; c++)
        most = oos_max(most, layers_in(p->classes[c].repeats, 0, p->classes[c].groups));
    return most;
}

/* One slot for as many layers of a page size as any group has. */
static uint64_t slot_bytes(const packing *p, const oos_kv_layers *layers)
{
    uint64_t bytes = 0, sizes[OOS_KV_SPECS_MAX], slots[OOS_KV_SPECS_MAX];
    size_t count = 0;
    for (size_t c = 0; c < p->count; c++)
        for (size_t m = 0; m < p->classes[c].count; m++) {
            const pack_class *one = &p->classes[c];
            uint64_t const depth = layers_in(layers->specs[one->members[m]].layers, 0, one->groups);
            size_t s = 0;
            while (s < count && sizes[s] != one->pages[m]) s++;
            if (s == count) {
                sizes[count] = one->pages[m];
                slots[count++] = 0;
            }
            slots[s] = oos_max(slots[s], depth);
        }
    for (size_t s = 0; s < count; s++) bytes = oos_add(bytes, oos_mul(sizes[s], slots[s]));
    return bytes;
}

oomsight_status oos_kv_pack(oos_arena *arena, const oos_setup *setup, const oos_kv_layers *layers,
                            oos_kv_shape *shape, oomsight_error *reterr)
{
    packing p = {.count = 0};
    classify(setup, layers, &p);
    split(setup, layers, &p);
    size_t total = 0, at = 0;
    for (size_t c = 0; c < p.count; c++) total += (size_t)p.classes[c].groups;
    oos_kv_group *groups = OOS_NEW_ARRAY(arena, oos_kv_group, total);
    oos_kv_stage *stages = OOS_NEW_ARRAY(arena, oos_kv_stage, layers->stages);
    if (!groups || !stages) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for KV groups");

    uint64_t widest = 0;
    for (size_t c = 0; c < p.count; c++)
        for (uint64_t g = 0; g < p.classes[c].groups; g++) {
            const pack_class *one = &p.classes[c];
            const oos_kv_spec *spec = &layers->specs[one->members[0]];
            uint64_t count = 0;
            for (size_t m = 0; m < one->count; m++)
                count += layers_in(layers->specs[one->members[m]].layers, g, one->groups);
            groups[at++] = (oos_kv_group){.kind = one->full ? OOS_KV_KIND_MLA : spec->kind,
                                          .layers = count,
                                          .block_tokens = spec->block_tokens,
                                          .page_bytes = group_bytes(one, layers, g),
                                          .several = true,
                                          .spec = *spec};
            widest = oos_max(widest, groups[at - 1].page_bytes);
        }
    oos_assert(at == total);
    uint64_t const tuples = oos_mul(p.tuple_bytes, most_repeats(&p));
    uint64_t const rule = setup->rules->packed_groups;
    uint64_t const block = rule == 1 ? tuples : rule == 2 ? slot_bytes(&p, layers) : widest;
    for (uint64_t stage = 0; stage < layers->stages; stage++) {
        OOS_TRY(oos_kv_write_stage(arena, layers, stage, &stages[stage], reterr));
        /* stages are taken as even: the engine's projection of packed groups is not followed */
        stages[stage].block_bytes = oos_cdiv(block, layers->stages);
        stages[stage].check_bytes = oos_cdiv(rule < 4 ? tuples : block, layers->stages);
    }
    if (layers->stages > 1) shape->estimated = true;
    for (size_t i = 0; i < layers->count; i++)
        shape->page_bytes = oos_max(shape->page_bytes, layers->specs[i].page_bytes);
    shape->block_bytes = oos_cdiv(block, layers->stages);
    shape->stages = stages;
    shape->stage_count = (size_t)layers->stages;
    oos_kv_finish_groups(setup, groups, at, shape);
    return OOMSIGHT_OK;
}
