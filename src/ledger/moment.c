/* Rows of one moment, their error bar, and the comparison with what is there. */
#include "ledger/ledger.h"
#include "base/check.h"

#include <math.h>

void oos_moment_init(oos_moment *moment, oos_arena *arena, oos_phase phase)
{
    oos_assert((unsigned)phase < OOS_PHASE_COUNT);
    *moment = (oos_moment){.phase = phase};
    oos_ledger_init(&moment->ledger, arena);
}

void oos_moment_hold(oos_moment *moment, oos_owner owner, oos_amount amount)
{
    if (oos_ledger_hold(&moment->ledger, owner, amount) != OOMSIGHT_OK) moment->peak_bytes = UINT64_MAX;
}

oos_limit oos_limit_exact(uint64_t bytes)
{
    return (oos_limit){bytes, bytes, bytes};
}

double oos_moment_chance(double room, double less, double more)
{
    oos_assert(less >= 0 && more >= 0);
    double const spread = room < 0 ? more : less;
    if (spread <= 0) return room < 0 ? 0 : 1;
    return 0.5 * erfc(-room * 1.645 / spread / sqrt(2));
}

/* Errors of different rows are independent, and so is that of the device: they add as squares, not as a sum of worst cases. */
static void compare(oos_moment *moment, double below, double above)
{
    double const room = (double)moment->limit_bytes - (double)moment->peak_bytes;
    double const short_by = (double)(moment->limit_bytes - moment->limit_low),
                 long_by = (double)(moment->limit_high - moment->limit_bytes);
    double const less = sqrt(above + short_by * short_by), more = sqrt(below + long_by * long_by);
    moment->ok = moment->peak_bytes <= moment->limit_bytes;
    moment->tight = room + more >= 0 && room - less < 0;
    moment->chance = oos_moment_chance(room, less, more);
}

oomsight_status oos_moment_close(oos_moment *moment, oos_limit limit, oomsight_error *reterr)
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
    oos_assert(moment->peak_low <= moment->peak_bytes && moment->peak_bytes <= moment->peak_high);
    oos_assert(limit.low <= limit.bytes && limit.bytes <= limit.high);
    compare(moment, below, above);
    oos_assert(moment->chance >= 0 && moment->chance <= 1);
    return OOMSIGHT_OK;
}
