/* The segments and blocks as torch's own snapshot lists them. */
#include "replay/sim_state.h"
#include "base/check.h"

#include <stdlib.h>

/* torch lists segments by their first block, and finds free blocks through the pools it still knows: a pool forgotten
 * too early (its count of expandable mappings can run low) hides segments that begin with a free block. */
static bool opens_segment(const oos_sim *sim, const block *b)
{
    if (!b->live || !b->mapped || (b->prev && sim->blocks.list[b->prev].mapped)) return false;
    uint32_t const owner_index = sim->pools.list[sim->homes.list[b->home].pool].owner;
    return is_active(b) || sim->owners.list[owner_index].known;
}

static int by_address(const void *left, const void *right)
{
    uint64_t const a = ((const oos_layout_segment *)left)->address;
    uint64_t const b = ((const oos_layout_segment *)right)->address;
    return a < b ? -1 : a > b;
}

static oos_layout_block describe(const block *b, uint32_t index)
{
    oos_block_state const state = b->allocated   ? OOS_BLOCK_ALLOCATED
                                  : is_active(b) ? OOS_BLOCK_PENDING_FREE
                                                 : OOS_BLOCK_INACTIVE;
    return (oos_layout_block){b->bytes, state == OOS_BLOCK_INACTIVE ? 0 : b->requested_bytes, state, index};
}

oomsight_status oos_sim_layout(const oos_sim *sim, oos_arena *arena, oos_layout *ret_layout,
                               oomsight_error *reterr)
{
    size_t segments = 0, blocks = 0;
    for (uint32_t i = 1; i < sim->blocks.count; i++) {
        const block *b = &sim->blocks.list[i];
        segments += opens_segment(sim, b);
        blocks += b->live && b->mapped;
    }
    oos_layout layout = {.segments = OOS_NEW_ARRAY(arena, oos_layout_segment, segments + 1),
                         .blocks = OOS_NEW_ARRAY(arena, oos_layout_block, blocks + 1)};
    if (!layout.segments || !layout.blocks) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a layout");
    for (uint32_t i = 1; i < sim->blocks.count; i++) {
        const block *b = &sim->blocks.list[i];
        if (!opens_segment(sim, b)) continue;
        const home *h = &sim->homes.list[b->home];
        const pool *p = &sim->pools.list[h->pool];
        oos_layout_segment *s = &layout.segments[layout.segment_count++];
        *s = (oos_layout_segment){.address = b->address,
                                  .stream = h->stream,
                                  .pool = sim->owners.list[p->owner].id,
                                  .large = !p->small,
                                  .expandable = b->range != 0,
                                  .first_block = layout.block_count};
        for (uint32_t at = i; at && sim->blocks.list[at].mapped; at = sim->blocks.list[at].next) {
            layout.blocks[layout.block_count++] = describe(&sim->blocks.list[at], at);
            s->bytes += sim->blocks.list[at].bytes;
        }
        s->block_count = layout.block_count - s->first_block;
    }
    oos_assert(layout.segment_count == segments && layout.block_count <= blocks);
    qsort(layout.segments, layout.segment_count, sizeof *layout.segments, by_address);
    *ret_layout = layout;
    return OOMSIGHT_OK;
}
