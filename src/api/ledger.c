/* Moments and their rows as callers see them: of a plan, of a dry run, of an explanation. */
#include "api/api.h"

size_t oos_api_hold_count(const oos_ledger *ledger)
{
    size_t count = 0;
    for (const oos_hold *row = ledger->first; row; row = row->next) count++;
    return count;
}

int oos_api_moment_give(const oos_moment *p, oomsight_moment *ret_moment)
{
    oomsight_moment const moment = {.phase = oos_phase_word(p->phase),
                                    .peak_bytes = p->peak_bytes,
                                    .peak_low = p->peak_low,
                                    .peak_high = p->peak_high,
                                    .limit_bytes = p->limit_bytes,
                                    .ok = p->ok,
                                    .hold_count = oos_api_hold_count(&p->ledger)};
    oos_params_give(ret_moment, &moment, sizeof moment);
    return 1;
}

int oos_api_hold_give(const oos_ledger *ledger, size_t index, oomsight_hold *ret_hold)
{
    const oos_hold *row = ledger->first;
    for (size_t i = 0; row && i < index; i++) row = row->next;
    if (!row) return 0;
    oomsight_hold const hold = {.owner = oos_owner_word(row->owner),
                                .bytes = row->amount.bytes,
                                .low = row->amount.low,
                                .high = row->amount.high,
                                .source = oos_source_word(row->amount.source),
                                .how = row->amount.how};
    oos_params_give(ret_hold, &hold, sizeof hold);
    return 1;
}
