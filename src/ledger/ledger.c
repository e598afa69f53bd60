/* Rows of a ledger, and the words for phases and sources. */
#include "ledger/ledger.h"

const char *oos_phase_word(oos_phase phase)
{
    static const char *const words[] = {
#define WORD(name, word) word,
        OOS_PHASE_MAP(WORD)
#undef WORD
    };
    return (unsigned)phase < OOS_PHASE_COUNT ? words[phase] : "unknown";
}

const char *oos_source_word(oos_source source)
{
    switch (source) {
    case OOS_SOURCE_MEASURED: return "measured";
    case OOS_SOURCE_READ: return "read";
    case OOS_SOURCE_DERIVED: return "derived";
    case OOS_SOURCE_ESTIMATED: return "estimated";
    }
    return "estimated";
}

oos_amount oos_amount_sum(oos_amount a, oos_amount b)
{
    return (oos_amount){.bytes = oos_add(a.bytes, b.bytes),
                        .low = oos_add(a.low, b.low),
                        .high = oos_add(a.high, b.high),
                        .source = a.source > b.source ? a.source : b.source,
                        .how = a.how ? a.how : b.how};
}

void oos_ledger_init(oos_ledger *ledger, oos_arena *arena)
{
    *ledger = (oos_ledger){.arena = arena};
}

oomsight_status oos_ledger_hold(oos_ledger *ledger, const char *owner, oos_amount amount)
{
    uint64_t held_bytes, held_low, held_high;
    if (__builtin_add_overflow(ledger->held_bytes, amount.bytes, &held_bytes) ||
        __builtin_add_overflow(ledger->held_low, amount.low, &held_low) ||
        __builtin_add_overflow(ledger->held_high, amount.high, &held_high))
        return OOMSIGHT_OVERFLOW;
    if (amount.bytes == 0 && amount.high == 0) return OOMSIGHT_OK;

    oos_hold *row = OOS_NEW(ledger->arena, oos_hold);
    if (!row) return OOMSIGHT_NOMEM;
    *row = (oos_hold){.owner = owner, .amount = amount};

    if (ledger->last)
        ledger->last->next = row;
    else
        ledger->first = row;
    ledger->last = row;
    ledger->held_bytes = held_bytes;
    ledger->held_low = held_low;
    ledger->held_high = held_high;
    return OOMSIGHT_OK;
}

oomsight_status oos_ledger_close(oos_ledger *ledger, uint64_t total_bytes)
{
    if (total_bytes <= ledger->held_bytes) return OOMSIGHT_OK;
    return oos_ledger_hold(ledger, "unaccounted",
                           oos_amount_exact(total_bytes - ledger->held_bytes, OOS_SOURCE_DERIVED,
                                            "in use, but no row explains it"));
}
