/* Arithmetic of PyTorch's message: live = allocated - private pools; cached = reserved but unallocated; the process's
 * own rest is context, libraries and graphs; what neither this process nor a listed one explains is unaccounted.
 * Weights and KV cache are taken out of the live bytes where the log gave them and where they exist in that phase. */
#include "explain/explain.h"

#define NUMBER(name) known_value(&of->numbers[OOS_NUMBER_##name])
#define KNOWN(name) (of->numbers[OOS_NUMBER_##name].known)

/* Whose ledger it is: the incident's, or one rank's. */
typedef struct holder {
    oos_phase phase;
    const oos_number *numbers;
    oos_moment *held;
} holder;

static uint64_t known_value(const oos_number *number)
{
    return number->known && !number->negative ? number->value : 0;
}

static void row(holder *of, oos_owner owner, uint64_t bytes, oos_source source, const char *how)
{
    if (bytes) oos_moment_hold(of->held, owner, oos_amount_exact(bytes, source, how));
}

/* Makes the rows add up to what was in use. A row that did not fit in 64 bits leaves nothing to show. */
static void settle(holder *of, uint64_t used)
{
    oos_moment *held = of->held;
    bool const lost = held->peak_bytes == UINT64_MAX || oos_ledger_close(&held->ledger, used) != OOMSIGHT_OK;
    held->peak_bytes = held->peak_low = held->peak_high = lost ? 0 : used;
}

/* What is part of the live bytes, largest owner first; returns what is left of them. */
static uint64_t named_rows(holder *of, uint64_t live)
{
    bool const loaded = of->phase > OOS_PHASE_QUANT_POSTPROCESS;
    uint64_t const weights = loaded ? NUMBER(weights) : 0;
    bool const cached = of->phase > OOS_PHASE_KV_ALLOC && of->phase < OOS_PHASE_SLEEP_WAKE;
    uint64_t const kv = cached ? NUMBER(kv_available) : 0;
    if (weights && weights <= live) {
        row(of, OOS_OWNER_WEIGHTS, weights, OOS_SOURCE_READ, "the weights that the log gives");
        live -= weights;
    }
    if (kv && kv <= live) {
        row(of, OOS_OWNER_KV_CACHE, kv, OOS_SOURCE_READ, "the KV cache that the log gives");
        live -= kv;
    }
    if (of->phase == OOS_PHASE_CUDAGRAPH_PROFILE && KNOWN(tried) && NUMBER(tried)) {
        /* The trial cache is made of equal tensors, each as large as the one that failed; the rest of live is small. */
        uint64_t const trial = live / NUMBER(tried) * NUMBER(tried);
        row(of, OOS_OWNER_TRIAL_KV, trial, OOS_SOURCE_DERIVED, "whole multiples of the request");
        live -= trial;
    }
    return live;
}

static void rebuild(oos_arena *arena, holder *of)
{
    uint64_t const total = NUMBER(total);
    oos_moment_init(of->held, arena, of->phase);
    if (!KNOWN(total)) return;
    of->held->limit_bytes = of->held->limit_low = of->held->limit_high = total;
    of->held->tried_bytes = NUMBER(tried);
    if (of->phase == OOS_PHASE_INIT_FREE_MEMORY_CHECK && KNOWN(startup_free)) {
        settle(of, oos_sub(total, NUMBER(startup_free)));
        return;
    }
    if (!KNOWN(torch_allocated) || !KNOWN(free)) return;
    uint64_t const used = oos_sub(total, NUMBER(free));
    uint64_t const allocated = NUMBER(torch_allocated);
    uint64_t const cached =
        KNOWN(reserved_total) ? oos_sub(NUMBER(reserved_total), allocated) : NUMBER(reserved_unallocated);
    if (oos_add(allocated, cached) > used) return; /* figures of different moments */
    if (NUMBER(private_pools) > allocated) return; /* the pools are a part of what is allocated */

    uint64_t const live = named_rows(of, oos_sub(allocated, NUMBER(private_pools)));
    row(of, OOS_OWNER_LIVE, live, OOS_SOURCE_DERIVED, "allocated - private pools - the rows above");
    row(of, OOS_OWNER_POOLS, NUMBER(private_pools), OOS_SOURCE_READ, "allocated in private pools");
    row(of, OOS_OWNER_CACHED, cached, OOS_SOURCE_READ, "reserved by PyTorch but unallocated");
    uint64_t const own = oos_add(allocated, cached);
    /* Both figures are rounded to a hundredth of a GiB. */
    uint64_t const process = NUMBER(process) <= used + 24 * OOS_MIB ? oos_min(NUMBER(process), used) : 0;
    if (process > own)
        row(of, OOS_OWNER_OUTSIDE, process - own, OOS_SOURCE_DERIVED,
            "process - allocated - cached: context, libraries, communicators, graphs");
    if (KNOWN(others) && oos_add(of->held->ledger.held_bytes, NUMBER(others)) <= used)
        row(of, OOS_OWNER_OTHERS, NUMBER(others), OOS_SOURCE_READ, "listed in the message");
    settle(of, used);
}

void oos_holdings_rebuild(oos_arena *arena, oos_incident *incident)
{
    holder of = {incident->phase, incident->numbers, &incident->held};
    rebuild(arena, &of);
}

void oos_holdings_of_ranks(oos_arena *arena, oos_incident *incident)
{
    /* Ranks are alike in what they load and reserve; the engine prints it once. */
    static const oos_number_id shared[] = {OOS_NUMBER_weights, OOS_NUMBER_kv_available, OOS_NUMBER_total};
    for (size_t i = 0; i < incident->rank_count; i++) {
        oos_rank *rank = &incident->ranks[i];
        for (size_t k = 0; k < sizeof shared / sizeof *shared; k++)
            if (!rank->numbers[shared[k]].known) rank->numbers[shared[k]] = incident->numbers[shared[k]];
        holder of = {incident->phase, rank->numbers, &rank->held};
        rebuild(arena, &of);
    }
}
