#pragma once
#include "base/arena.h"
#include "base/check.h"
#include "base/error.h"
#include "base/size.h"

/* The ledger: who holds how many bytes of one device, in which startup phase, and how we know.
 * Every command ends in one of these. Depends on base/ only. */

/* Phases, owners and causes, each named once for the whole product: phase.def, owner.def, cause.def. */
typedef enum oos_phase {
#define PHASE(name, word, takes) OOS_PHASE_##name,
#include "ledger/phase.def"
#undef PHASE
    OOS_PHASE_COUNT
} oos_phase;

typedef enum oos_owner {
#define OWNER(name, word) OOS_OWNER_##name,
#include "ledger/owner.def"
#undef OWNER
    OOS_OWNER_COUNT
} oos_owner;

typedef enum oos_cause {
    OOS_CAUSE_NONE,
#define CAUSE(name, word, title) OOS_CAUSE_##name,
#include "ledger/cause.def"
#undef CAUSE
    OOS_CAUSE_COUNT
} oos_cause;

/* By their numbers; the cause 0 has none. */
extern const char *const oos_phase_words[], *const oos_owner_words[], *const oos_cause_words[];

const char *oos_phase_word(oos_phase phase);
const char *oos_owner_word(oos_owner owner);
const char *oos_cause_word(oos_cause cause);   /* NULL for none */
const char *oos_cause_title(const char *word); /* in words; "" for NULL */
oos_phase oos_phase_find(const char *word);    /* OOS_PHASE_COUNT: no such phase, or NULL */
oos_owner oos_phase_takes(oos_phase phase);    /* whose the bytes are that are taken in it */

/* How a number came to be known, weakest last. A guess is never printed without its mark. */
typedef enum oos_source {
    OOS_SOURCE_MEASURED, /* counted at an allocation call */
    OOS_SOURCE_READ,     /* read from a log line or a file header */
    OOS_SOURCE_DERIVED,  /* exact arithmetic on the above */
    OOS_SOURCE_ESTIMATED /* a model with an error bar */
} oos_source;

const char *oos_source_word(oos_source source);

/* A number of bytes with its origin. low <= bytes <= high; equal unless estimated. */
typedef struct oos_amount {
    uint64_t bytes, low, high;
    oos_source source;
    const char *how; /* one sentence: the formula or the source; NULL when the owner says it all */
    bool settled;    /* were it more, another row would be less by as much: its range does not move the sum */
} oos_amount;

static inline oos_amount oos_amount_exact(uint64_t bytes, oos_source source, const char *how)
{
    return (oos_amount){.bytes = bytes, .low = bytes, .high = bytes, .source = source, .how = how};
}
static inline oos_amount oos_amount_guess(uint64_t bytes, uint64_t low, uint64_t high, const char *how)
{
    oos_assert(low <= bytes && bytes <= high);
    return (oos_amount){.bytes = bytes, .low = low, .high = high, .source = OOS_SOURCE_ESTIMATED, .how = how};
}

/* One row. */
typedef struct oos_hold {
    const struct oos_hold *next; /* in the order in which they were added */
    oos_owner owner;
    oos_amount amount;
} oos_hold;

/* The rows of one moment on one device. */
typedef struct oos_ledger {
    oos_arena *arena;
    oos_hold *first, *last;
    uint64_t held_bytes, held_low, held_high;
} oos_ledger;

void oos_ledger_init(oos_ledger *ledger, oos_arena *arena);

/* `amount.how` must outlive the ledger (string literals and arena strings do). Rows of 0 bytes are kept out unless they
 * carry a range. On failure nothing has changed. */
oomsight_status oos_ledger_hold(oos_ledger *ledger, oos_owner owner, oos_amount amount);

/* The same rows in another ledger, which is still empty: where many moments begin alike. */
oomsight_status oos_ledger_copy(oos_ledger *ledger, const oos_ledger *of);

uint64_t oos_ledger_bytes(const oos_ledger *ledger, oos_owner owner); /* of all its rows */

bool oos_ledger_is_sound(
    const oos_ledger *ledger); /* rows add up to the sums, and each lies in its own range */

/* Make the rows add up to `total_bytes`: what is missing becomes the row `unaccounted`. */
oomsight_status oos_ledger_close(oos_ledger *ledger, uint64_t total_bytes);

/* A moment: the device at the worst instant of one phase, compared with what is there. Plan foresees it, a dry run measures it,
 * explain reads it from a message, replay simulates it: one type and one printer (report/ledger.c) for all four. */

typedef struct oos_moment {
    oos_phase phase;
    uint32_t device;                          /* the fullest, where there are several */
    oos_ledger ledger;                        /* rows of that moment; closes at peak_bytes */
    uint64_t peak_bytes, peak_low, peak_high; /* needed; independent errors add as squares */
    /* what is there: the device, or the engine's budget for kv_sizing; a range where the device's size is not known to
     * the byte, as far as it moves the room in this phase */
    uint64_t limit_bytes, limit_low, limit_high;
    bool ok;              /* peak <= limit at the best guess */
    bool tight;           /* with need and limit as far apart or as near as they may be, the answer differs */
    double chance;        /* of getting through, by the ranges alone: see oos_moment_chance */
    bool refusal;         /* not ok means: the engine itself says no */
    uint64_t tried_bytes; /* the allocation that fails, as the engine would print it; 0: none */
    const char *message;  /* the engine's own sentence, or ours, NULL */
} oos_moment;

/* What a phase is compared with. */
typedef struct oos_limit {
    uint64_t bytes, low, high;
} oos_limit;
oos_limit oos_limit_exact(uint64_t bytes);

void oos_moment_init(oos_moment *moment, oos_arena *arena, oos_phase phase);

/* Add a row; failures are remembered until the close. */
void oos_moment_hold(oos_moment *moment, oos_owner owner, oos_amount amount);

/* Chance that a need stays within its limit, by the room at the best guess and how much less or more it may be: the ends of a
 * range are taken for the middle nine tenths of a normal distribution. */
double oos_moment_chance(double room, double less, double more);

oomsight_status oos_moment_close(oos_moment *moment, oos_limit limit, oomsight_error *reterr);
