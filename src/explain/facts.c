/* What the allocator's figures mean (PyTorch, CUDACachingAllocator): "allocated" is live blocks plus free blocks of
 * private pools; "reserved but unallocated" is what the default pool caches; the process figure is NVML's, so it also
 * counts the context, libraries and graphs. */
#include "explain/explain.h"
#include "base/check.h"

_Static_assert(OOS_FACT_COUNT <= 128, "facts share a set with the signals");

const char *oos_fact_name(oos_fact fact)
{
    static const char *const names[] = {
#define NAME(name) #name,
        OOS_FACT_MAP(NAME)
#undef NAME
    };
    oos_assert((unsigned)fact < OOS_FACT_COUNT);
    return names[fact];
}

#define NUMBER(name) oos_value(incident, OOS_NUMBER_##name)
#define KNOWN(name) oos_known(incident, OOS_NUMBER_##name)

bool oos_facts_others(const oos_incident *incident, uint64_t *ret_bytes)
{
    if (KNOWN(others)) {
        *ret_bytes = NUMBER(others);
        return true;
    }
    if (!KNOWN(total) || !KNOWN(free)) return false;
    /* Without a process figure the reserved total stands in for it; contexts and libraries then count as others. */
    uint64_t const reserved = KNOWN(reserved_total)
                                  ? NUMBER(reserved_total)
                                  : oos_add(NUMBER(torch_allocated), NUMBER(reserved_unallocated));
    uint64_t const own = oos_max(NUMBER(process), reserved);
    if (own == 0) return false;
    uint64_t const used = oos_sub(NUMBER(total), NUMBER(free));
    uint64_t const context = NUMBER(process) > reserved ? 0 : OOS_GIB;
    *ret_bytes = oos_sub(used, oos_add(own, context));
    return true;
}

static void put(oos_signal_set *set, oos_fact fact, bool holds)
{
    if (holds) oos_signal_add(set, OOS_SIGNALS_MAX + (size_t)fact);
}

uint64_t oos_facts_cached(const oos_incident *incident)
{
    return KNOWN(reserved_unallocated) ? NUMBER(reserved_unallocated)
           : KNOWN(reserved_total)     ? oos_sub(NUMBER(reserved_total), NUMBER(torch_allocated))
                                       : 0;
}

static void device_facts(const oos_incident *incident, oos_signal_set *set)
{
    uint64_t const total = NUMBER(total), tried = NUMBER(tried);
    uint64_t others = 0;
    bool const others_known = oos_facts_others(incident, &others) && total;
    put(set, OOS_FACT_has_figures, KNOWN(tried));
    put(set, OOS_FACT_torch_known, KNOWN(torch_allocated));
    put(set, OOS_FACT_tried_gt_total, total && tried > total);
    put(set, OOS_FACT_tried_huge, !total && tried >= 256 * OOS_GIB);
    put(set, OOS_FACT_tried_le_free,
        KNOWN(free) && tried >= 256 * OOS_MIB && oos_add(tried, tried / 32) <= NUMBER(free));
    put(set, OOS_FACT_alloc_gt_total, total && NUMBER(torch_allocated) > oos_add(total, total / 20));
    put(set, OOS_FACT_cg_large,
        NUMBER(cudagraph_estimate) >= 8 * OOS_GIB || (total && NUMBER(cudagraph_estimate) >= total / 8));
    put(set, OOS_FACT_tried_fifth, total && tried >= oos_max(total / 5, 4 * OOS_GIB));
    put(set, OOS_FACT_tried_ge_256mib, tried >= 256 * OOS_MIB);
    put(set, OOS_FACT_tried_ge_512mib, tried >= 512 * OOS_MIB);
    put(set, OOS_FACT_tried_ge_gib, tried >= OOS_GIB);
    put(set, OOS_FACT_others_hold, others_known && others >= total / 10 && others >= OOS_GIB);
    put(set, OOS_FACT_others_most, others_known && others >= total / 10 * 4);
    put(set, OOS_FACT_torch_full, total && NUMBER(torch_allocated) >= total / 100 * 85);

    uint64_t const cached = oos_facts_cached(incident);
    put(set, OOS_FACT_unalloc_ge_tried, tried && cached >= tried);
    put(set, OOS_FACT_unalloc_tenth,
        tried && cached >= tried && (cached >= total / 10 || (cached >= OOS_GIB && cached / 16 >= tried)));
    put(set, OOS_FACT_torch_empty, KNOWN(torch_allocated) && NUMBER(torch_allocated) < 64 * OOS_MIB);
    put(set, OOS_FACT_card_full,
        total && KNOWN(free) && NUMBER(free) < oos_min(oos_max(tried, 1), total / 20));
    put(set, OOS_FACT_device_small,
        total && tried > total && KNOWN(torch_allocated) && NUMBER(torch_allocated) < 64 * OOS_MIB &&
            NUMBER(free) >= total / 10 * 9);
    put(set, OOS_FACT_unalloc_large, cached >= OOS_GIB);
    uint64_t const pools = NUMBER(private_pools);
    put(set, OOS_FACT_private_some, pools >= OOS_MIB);
    put(set, OOS_FACT_private_gib, pools >= OOS_GIB);
    put(set, OOS_FACT_private_large, total && pools >= total / 10 && pools >= 4 * OOS_GIB);
}

static void budget_facts(const oos_incident *incident, oos_signal_set *set)
{
    uint64_t const total = NUMBER(total), weights = NUMBER(weights);
    uint64_t const budget = NUMBER(requested);
    bool const negative = KNOWN(kv_available) && incident->numbers[OOS_NUMBER_kv_available].negative;
    put(set, OOS_FACT_kv_negative,
        (KNOWN(kv_available) && (negative || NUMBER(kv_available) == 0)) ||
            (KNOWN(gpu_blocks) && NUMBER(gpu_blocks) == 0));
    put(set, OOS_FACT_budget_exceeded,
        (negative && weights) || (budget && weights && oos_add(weights, NUMBER(activation_peak)) > budget));
    put(set, OOS_FACT_weights_over_budget, budget && weights > budget);
    put(set, OOS_FACT_weights_tiny,
        KNOWN(weights) && weights < 2 * OOS_GIB && (!total || weights < total / 10));
    put(set, OOS_FACT_initial_used,
        total && KNOWN(initial_usage) &&
            oos_sub(NUMBER(initial_usage), oos_add(weights, OOS_GIB)) > total / 5);
    put(set, OOS_FACT_non_torch_large, NUMBER(non_torch) >= 2 * OOS_GIB);
    put(set, OOS_FACT_pool_le_free,
        KNOWN(pool_wanted) && KNOWN(pool_free) && NUMBER(pool_wanted) <= NUMBER(pool_free));
    double given;
    put(set, OOS_FACT_share_low,
        oos_setup_value(&incident->setup, "gpu_memory_utilization", &given) && given > 0 && given <= 0.85);
    bool const by_hand = oos_setup_bytes(&incident->setup, "kv_cache_memory_bytes", &given);
    put(set, OOS_FACT_kv_given, by_hand);
    put(set, OOS_FACT_kv_given_large, by_hand && total && given > (double)oos_sub(total, weights));

    uint64_t const used = oos_sub(total, NUMBER(startup_free));
    bool const at_start = total && KNOWN(startup_free);
    put(set, OOS_FACT_startup_own, at_start && used <= oos_max(total / 100 * 7, OOS_GIB));
    put(set, OOS_FACT_startup_little, at_start && used <= total / 100 * 15);
    put(set, OOS_FACT_free_unchanged,
        KNOWN(profile_free_before) && KNOWN(profile_free_after) &&
            NUMBER(profile_free_before) == NUMBER(profile_free_after));
    put(set, OOS_FACT_sleep_residue,
        KNOWN(sleep_used) && NUMBER(sleep_used) >= oos_max(8 * OOS_GIB, total / 5));
}

void oos_facts_find(const oos_incident *incident, oos_signal_set *set)
{
    device_facts(incident, set);
    budget_facts(incident, set);
    put(set, OOS_FACT_old_shape, incident->old_shape);
    put(set, OOS_FACT_v1, incident->v1);
    put(set, OOS_FACT_text_model, incident->text_model);
    put(set, OOS_FACT_beyond_weights, incident->beyond_weights);
    put(set, OOS_FACT_last_marker, incident->last_marker != OOS_PHASE_COUNT);
    put(set, OOS_FACT_serving_last,
        incident->last_marker >= OOS_PHASE_RUNTIME_PREFILL &&
            incident->last_marker <= OOS_PHASE_RUNTIME_OTHER);
    put(set, OOS_FACT_read_on, incident->read_on);
    put(set, OOS_FACT_forward, incident->stack.forward);
    put(set, OOS_FACT_ending, incident->stack.ending);
}
