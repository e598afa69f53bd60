/* Rows of one moment, their error bar, and the comparison with the device. */
#include "plan/moment.h"

#include <math.h>

/* What the host itself holds of a memory it shares: 121.69 GiB of GB10 had 101 GiB free on one machine (a report of 2026)
 * and more than 115.6 on another, which started with 0.95; on a card nothing is assumed. */
oos_amount oos_moment_others(const oos_plan *plan)
{
    const oos_device_facts *device = &plan->setup->device;
    if (device->used_known || device->used_bytes || !device->unified)
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

oos_limit oos_limit_exact(uint64_t bytes)
{
    return (oos_limit){bytes, bytes, bytes};
}

oos_limit oos_limit_device(const oos_plan *plan, double share)
{
    const oos_device_facts *device = &plan->setup->device;
    uint64_t const total = device->total_bytes;
    double const less = share * (double)(total - oos_min(device->total_low, total)),
                 more = share * (double)(oos_max(device->total_high, total) - total);
    return (oos_limit){total, total - (uint64_t)less, oos_add(total, (uint64_t)more)};
}

double oos_moment_chance(double room, double less, double more)
{
    double const spread = room < 0 ? more : less;
    if (spread <= 0) return room < 0 ? 0 : 1;
    return 0.5 * erfc(-room * 1.645 / spread / sqrt(2));
}

/* Errors of different rows are independent, and so is that of the device: they add as squares, not as a sum of worst cases. */
static void compare(oos_plan_phase *moment, double below, double above)
{
    double const room = (double)moment->limit_bytes - (double)moment->peak_bytes;
    double const short_by = (double)(moment->limit_bytes - moment->limit_low),
                 long_by = (double)(moment->limit_high - moment->limit_bytes);
    double const less = sqrt(above + short_by * short_by), more = sqrt(below + long_by * long_by);
    moment->ok = moment->peak_bytes <= moment->limit_bytes;
    moment->tight = room + more >= 0 && room - less < 0;
    moment->chance = oos_moment_chance(room, less, more);
}

oomsight_status oos_moment_close(oos_plan_phase *moment, oos_limit limit, oomsight_error *reterr)
{
    if (moment->peak_bytes == UINT64_MAX)
        return oos_fail(reterr, OOMSIGHT_OVERFLOW, "the sizes add up past 64 bits");
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
    moment->limit_bytes = limit.bytes, moment->limit_low = limit.low, moment->limit_high = limit.high;
    compare(moment, below, above);
    return OOMSIGHT_OK;
}
