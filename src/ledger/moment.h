/* A moment: the device at the worst instant of one phase, compared with what is there. Plan foresees it, a dry run measures it,
 * explain reads it from a message, replay simulates it: one type and one printer (report/ledger.h) for all four. */
#ifndef OOS_LEDGER_MOMENT_H
#define OOS_LEDGER_MOMENT_H

#include "ledger/ledger.h"

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

#endif
