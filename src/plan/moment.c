/* Rows of one moment, their error bar, and the comparison with the device. */
#include "plan/moment.h"

#include <math.h>

/* What the host itself holds of a memory it shares: 121.69 GiB of GB10 had 101 GiB free on one machine (a report of 2026)
 * and more than 115.6 on another, which started with 0.95; on a card nothing is assumed. */
oos_amount oos_moment_others(const oos_plan *plan)
{
    const oos_device_facts *device = &plan->setup->device;
    if (device->used_bytes || !device->unified)
        return oos_amount_exact(device->used_bytes, OOS_SOURCE_READ, "given with --gpu-used");
    uint64_t const hundredth = device->total_bytes / 100;
    return oos_amount_guess(
        3 * hundredth, hundredth, 17 * hundredth,
        "operating system and host processes share this memory: give theirs with --gpu-used");
}

oos_plan_phase *oos_moment_open(oos_arena *arena, oos_plan *plan, oos_phase phase)
{
    oos_plan_phase *moment = &plan->phases[plan->phase_count++];
    *moment = (oos_plan_phase){.phase = phase};
    oos_ledger_init(&moment->ledger, arena);
    oos_moment_hold(moment, "other processes", oos_moment_others(plan));
    oos_moment_hold(moment, "CUDA context", plan->outside.context);
    oos_moment_hold(moment, "communicators", plan->outside.nccl);
    return moment;
}

void oos_moment_hold(oos_plan_phase *moment, const char *owner, oos_amount amount)
{
    if (oos_ledger_hold(&moment->ledger, owner, amount) != OOMSIGHT_OK) moment->peak_bytes = UINT64_MAX;
}

oomsight_status oos_moment_close(oos_plan_phase *moment, uint64_t limit_bytes, oomsight_error *reterr)
{
    if (moment->peak_bytes == UINT64_MAX)
        return oos_fail(reterr, OOMSIGHT_OVERFLOW, "the sizes add up past 64 bits");
    /* Errors of different rows are independent: they add as squares, not as a sum of worst cases. */
    double below = 0, above = 0;
    for (const oos_hold *row = moment->ledger.first; row; row = row->next) {
        if (row->amount.settled) continue;
        double const down = (double)(row->amount.bytes - oos_min(row->amount.low, row->amount.bytes));
        double const up = (double)(oos_max(row->amount.high, row->amount.bytes) - row->amount.bytes);
        below += down * down;
        above += up * up;
    }
    moment->peak_bytes = moment->ledger.held_bytes;
    moment->peak_low = oos_sub(moment->peak_bytes, (uint64_t)sqrt(below));
    moment->peak_high = oos_add(moment->peak_bytes, (uint64_t)sqrt(above));
    moment->limit_bytes = limit_bytes;
    moment->ok = moment->peak_bytes <= limit_bytes;
    moment->tight = moment->peak_low <= limit_bytes && moment->peak_high > limit_bytes;
    return OOMSIGHT_OK;
}
