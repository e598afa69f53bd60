/* What every phase of a plan holds, and the device it is compared with. */
#include "plan/plan.h"
#include "base/check.h"
#include "facts/facts.h"

/* What the host itself holds of a memory it shares; on a card nothing is assumed. */
oos_amount oos_moment_others(const oos_plan *plan)
{
    const oos_device_facts *device = &plan->device;
    if (device->used_known || device->used_bytes || !device->unified)
        return oos_amount_exact(device->used_bytes, OOS_SOURCE_READ, "given with --gpu-used");
    uint64_t const hundredth = device->total_bytes / 100;
    oos_constant_where const where = {.capability = device->capability, .unified = true};
    oos_constant const share = oos_constant_at(&oos_device_constants, OOS_DEVICE_host_share, &where);
    return oos_amount_guess(
        share.value * hundredth, share.low * hundredth, share.high * hundredth,
        "operating system and host processes share this memory: give theirs with --gpu-used");
}

oos_moment *oos_moment_open(oos_arena *arena, oos_plan *plan, oos_phase phase)
{
    oos_assert(plan->phase_count < OOS_PHASE_COUNT);
    oos_moment *moment = &plan->phases[plan->phase_count++];
    oos_moment_init(moment, arena, phase);
    oos_moment_hold(moment, OOS_OWNER_OTHERS, oos_moment_others(plan));
    oos_moment_hold(moment, OOS_OWNER_CONTEXT, plan->sizes.context);
    oos_moment_hold(moment, OOS_OWNER_COMMUNICATORS, plan->sizes.communicators);
    return moment;
}

oos_moment *oos_moment_open_as(oos_arena *arena, oos_plan *plan, oos_phase phase, const oos_ledger *rows)
{
    oos_assert(plan->phase_count < OOS_PHASE_COUNT);
    oos_moment *moment = &plan->phases[plan->phase_count++];
    oos_moment_init(moment, arena, phase);
    if (oos_ledger_copy(&moment->ledger, rows) != OOMSIGHT_OK) moment->peak_bytes = UINT64_MAX;
    return moment;
}

oos_limit oos_limit_device(const oos_plan *plan, double share)
{
    const oos_device_facts *device = &plan->device;
    uint64_t const total = device->total_bytes;
    double const less = share * (double)(total - oos_min(device->total_low, total)),
                 more = share * (double)(oos_max(device->total_high, total) - total);
    return (oos_limit){total, total - (uint64_t)less, oos_add(total, (uint64_t)more)};
}
