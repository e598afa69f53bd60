/* Rows of a ledger, and the words for phases, owners, causes and sources. */
#include "ledger/ledger.h"
#include "base/check.h"

const char *const oos_phase_words[] = {
#define PHASE(name, word, takes) word,
#include "ledger/phase.def"
#undef PHASE
};

const char *const oos_owner_words[] = {
#define OWNER(name, word) word,
#include "ledger/owner.def"
#undef OWNER
};

const char *const oos_cause_words[] = {
    NULL,
#define CAUSE(name, word, title) word,
#include "ledger/cause.def"
#undef CAUSE
};

static const char *const cause_titles[] = {
    "",
#define CAUSE(name, word, title) title,
#include "ledger/cause.def"
#undef CAUSE
};

_Static_assert(sizeof oos_cause_words / sizeof *oos_cause_words == OOS_CAUSE_COUNT, "a word for each cause");

const char *oos_phase_word(oos_phase phase)
{
    return (unsigned)phase < OOS_PHASE_COUNT ? oos_phase_words[phase] : "unknown";
}

const char *oos_owner_word(oos_owner owner)
{
    return (unsigned)owner < OOS_OWNER_COUNT ? oos_owner_words[owner] : "unaccounted";
}

const char *oos_cause_word(oos_cause cause)
{
    return (unsigned)cause < OOS_CAUSE_COUNT ? oos_cause_words[cause] : NULL;
}

const char *oos_cause_title(const char *word)
{
    for (unsigned i = 1; word && i < OOS_CAUSE_COUNT; i++)
        if (strcmp(word, oos_cause_words[i]) == 0) return cause_titles[i];
    return word ? word : "";
}

oos_phase oos_phase_find(const char *word)
{
    for (unsigned i = 0; word && i < OOS_PHASE_COUNT; i++)
        if (strcmp(word, oos_phase_words[i]) == 0) return i;
    return OOS_PHASE_COUNT;
}

oos_owner oos_phase_takes(oos_phase phase)
{
    static const oos_owner owners[] = {
#define PHASE(name, word, takes) OOS_OWNER_##takes,
#include "ledger/phase.def"
#undef PHASE
    };
    return (unsigned)phase < OOS_PHASE_COUNT ? owners[phase] : OOS_OWNER_UNACCOUNTED;
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

void oos_ledger_init(oos_ledger *ledger, oos_arena *arena)
{
    *ledger = (oos_ledger){.arena = arena};
}

bool oos_ledger_is_sound(const oos_ledger *ledger)
{
    uint64_t bytes = 0, low = 0, high = 0;
    const oos_hold *last = NULL;
    for (const oos_hold *row = ledger->first; row; last = row, row = row->next) {
        const oos_amount *amount = &row->amount;
        if ((unsigned)row->owner >= OOS_OWNER_COUNT) return false;
        if (amount->low > amount->bytes || amount->bytes > amount->high) return false;
        bytes += amount->bytes;
        low += amount->low;
        high += amount->high;
    }
    return last == ledger->last && bytes == ledger->held_bytes && low == ledger->held_low &&
           high == ledger->held_high;
}

oomsight_status oos_ledger_hold(oos_ledger *ledger, oos_owner owner, oos_amount amount)
{
    uint64_t held_bytes, held_low, held_high;
    if (__builtin_add_overflow(ledger->held_bytes, amount.bytes, &held_bytes) ||
        __builtin_add_overflow(ledger->held_low, amount.low, &held_low) ||
        __builtin_add_overflow(ledger->held_high, amount.high, &held_high))
        return OOMSIGHT_OVERFLOW;
    if (amount.bytes == 0 && amount.high == 0) return OOMSIGHT_OK;

    oos_assert((unsigned)owner < OOS_OWNER_COUNT && amount.low <= amount.bytes &&
               amount.bytes <= amount.high);
    oos_hold *row = oos_arena_take_raw(ledger->arena, sizeof *row);
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
    oos_assert(oos_ledger_is_sound(ledger));
    return OOMSIGHT_OK;
}

oomsight_status oos_ledger_copy(oos_ledger *ledger, const oos_ledger *of)
{
    size_t count = 0;
    for (const oos_hold *row = of->first; row; row = row->next) count++;
    if (count == 0) return OOMSIGHT_OK;
    oos_assert(!ledger->first && ledger->held_bytes == 0);
    oos_hold *rows = oos_arena_take_raw(ledger->arena, count * sizeof *rows), *at = rows;
    if (!rows) return OOMSIGHT_NOMEM;
    for (const oos_hold *row = of->first; row; row = row->next, at++) {
        *at = *row;
        at->next = row->next ? at + 1 : NULL;
    }
    ledger->first = rows;
    ledger->last = at - 1;
    ledger->held_bytes = of->held_bytes, ledger->held_low = of->held_low, ledger->held_high = of->held_high;
    oos_assert(oos_ledger_is_sound(ledger));
    return OOMSIGHT_OK;
}

uint64_t oos_ledger_bytes(const oos_ledger *ledger, oos_owner owner)
{
    uint64_t bytes = 0;
    for (const oos_hold *row = ledger->first; row; row = row->next)
        if (row->owner == owner) bytes = oos_add(bytes, row->amount.bytes);
    return bytes;
}

oomsight_status oos_ledger_close(oos_ledger *ledger, uint64_t total_bytes)
{
    if (total_bytes <= ledger->held_bytes) return OOMSIGHT_OK;
    return oos_ledger_hold(ledger, OOS_OWNER_UNACCOUNTED,
                           oos_amount_exact(total_bytes - ledger->held_bytes, OOS_SOURCE_DERIVED,
                                            "in use, but no row explains it"));
}
