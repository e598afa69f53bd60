/* The out-of-memory text, in the words of each release. */
#include "replay/sim_state.h"
#include "base/check.h"

#define DOCS "See documentation for Memory Management"
#define TRY " If reserved but unallocated memory is large try setting "
#define OLD_URL "(https://pytorch.org/docs/stable/notes/cuda.html#environment-variables)"
#define NEW_URL                                                                                              \
    "(https://docs.pytorch.org/docs/stable/notes/cuda.html"                                                  \
    "#optimizing-memory-usage-with-pytorch-cuda-alloc-conf)"

static void put_size(oos_text *text, uint64_t bytes, const char *behind)
{
    char size[32];
    oos_size_print(bytes, size, sizeof size);
    oos_text_put(text, size);
    oos_text_put(text, behind);
}

static void put_plain_hint(const oos_sim *sim, oos_text *text)
{
    switch (sim->rules.hint) {
    case OOS_HINT_MAX_SPLIT:
        oos_text_put(text,
                     TRY "max_split_size_mb to avoid fragmentation.  " DOCS " and PYTORCH_CUDA_ALLOC_CONF");
        return;
    case OOS_HINT_CUDA_CONF:
        oos_text_put(text,
                     TRY "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  " DOCS
                         "  " OLD_URL);
        return;
    case OOS_HINT_ALLOC_CONF:
        oos_text_put(text, TRY "PYTORCH_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  " DOCS
                               "  " OLD_URL);
        return;
    case OOS_HINT_DOCS:
    case OOS_HINT_DOCS_OR_NONE:
    case OOS_HINT_BY_CAUSE:
        oos_text_put(text,
                     TRY "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  " DOCS
                         "  " NEW_URL);
        return;
    }
}

/* torch 2.15 */
static void put_expandable_hint(const oos_sim *sim, oos_text *text)
{
    const request *r = &sim->last;
    if (r->too_large_for_range && r->segment_bytes <= sim->device.total_bytes) {
        oos_text_put(text, " This allocation exceeds the expandable-segment reserve of ");
        put_size(
            text, oos_range_bytes(sim),
            " for this stream, and a single allocation cannot span expandable segments. Raise "
            "PYTORCH_CUDA_ALLOC_CONF expandable_segments_reserve or expandable_segments_reserve_by_class (or "
            "unset it) so that a segment is at least ");
        put_size(text, r->segment_bytes, ".");
        return;
    }
    oos_text_put(text,
                 " expandable_segments is enabled. If instead the process is running out of virtual address "
                 "space (VSZ), expandable segments may be over-reserving VA (each segment reserves ~9/8 of "
                 "device memory, times the number of streams); reduce it via PYTORCH_CUDA_ALLOC_CONF "
                 "expandable_segments_reserve / expandable_segments_reserve_by_class.");
}

static void put_hint(const oos_sim *sim, oos_text *text)
{
    if (sim->last.expandable && sim->rules.hint == OOS_HINT_DOCS_OR_NONE) return;
    if (sim->last.expandable && sim->rules.hint == OOS_HINT_BY_CAUSE) {
        put_expandable_hint(sim, text);
        return;
    }
    put_plain_hint(sim, text);
    uint32_t const owner_index = sim->pools.list[sim->homes.list[sim->last.home].pool].owner;
    if (sim->rules.hint == OOS_HINT_BY_CAUSE && sim->owners.list[owner_index].backend != OOS_BACKEND_DRIVER)
        oos_text_put(text,
                     " The custom allocator backing this MemPool returned nullptr. Check preceding allocator "
                     "warnings or logs for the underlying cause. This can indicate an allocator-specific "
                     "error or memory constraint, even when device-wide free memory is available.");
}

/* "A allocated by PyTorch" counts free blocks of private pools as allocated from 2.4 on. */
static void put_held(const oos_sim *sim, oos_text *text)
{
    uint64_t const allocated = sim->stats.counters[OOS_STAT_ALLOCATED_BYTES][OOS_STAT_ALL].current;
    uint64_t const reserved = sim->stats.counters[OOS_STAT_RESERVED_BYTES][OOS_STAT_ALL].current;
    uint64_t const private_free = sim->rules.text_private_pools ? oos_sim_free_private_bytes(sim) : 0;
    oos_assert(sim->failed || allocated + private_free <= reserved);
    oos_text_put(text, "Of the allocated memory ");
    put_size(text, allocated + private_free, " is allocated by PyTorch, ");
    if (private_free) {
        oos_text_put(text, "with ");
        put_size(text, private_free, " allocated in private pools (e.g., CUDA Graphs), ");
    }
    oos_text_put(text, "and ");
    put_size(text, reserved - allocated - private_free, " is reserved by PyTorch but unallocated.");
}

void oos_sim_oom_text(const oos_sim *sim, oos_text *text)
{
    const request *r = &sim->last;
    if (r->segment_bytes == 0) {
        oos_text_put(text, "CUDA out of memory. Tried to allocate more than 1EB memory.");
        return;
    }
    if (r->rejected) {
        oos_text_put(text, "CUDA out of memory. Allocation was preemptively rejected because it would exceed "
                           "per_process_memory_fraction limit. Requested size: ");
        put_size(text, r->asked_bytes, "");
        return;
    }
    oos_text_put(text, "CUDA out of memory. Tried to allocate ");
    put_size(text, r->segment_bytes, ". GPU ");
    if (sim->rules.text_ends_at_index && sim->params.device_index == 0) return;
    if (sim->rules.text_ends_at_index)
        oos_text_printf(text, "%c", (int)(sim->params.device_index & 0x7f));
    else
        oos_text_printf(text, "%u", sim->params.device_index);
    oos_text_printf(text, " has a total %s of ", sim->rules.text_misspells ? "capacty" : "capacity");
    put_size(text, sim->device.total_bytes, " of which ");
    put_size(text, oos_device_free_bytes(&sim->device), " is free. ");
    if (sim->params.nvml) {
        oos_text_put(text, "Including non-PyTorch memory, this process has ");
        put_size(text, sim->device.base_bytes + sim->device.used_bytes, " memory in use. ");
    }
    if (sim->limited && sim->rules.text_allowed) put_size(text, sim->allowed_bytes, " allowed; ");
    put_held(sim, text);
    put_hint(sim, text);
}
