/* Where this process is, in its own words: the phase of its start, and whose the bytes are that it takes. */
#include "device/internal.h"

#include <string.h>

static const char *const phases[] = {
#define PHASE(name, word, takes) word,
#include "ledger/phase.def"
#undef PHASE
};

static const char *const owners[] = {
#define OWNER(name, word) word,
#include "ledger/owner.def"
#undef OWNER
};

_Static_assert(sizeof phases / sizeof *phases == OOS_SEGMENT_PHASES, "the segment has a row per phase");
_Static_assert(sizeof owners / sizeof *owners == OOS_SEGMENT_OWNERS, "the segment has a row per owner");

static uint32_t find(const char *const *words, uint32_t count, const char *word)
{
    uint32_t at = 0;
    while (word && at < count && strcmp(words[at], word) != 0) at++;
    return word ? at : count;
}

bool oos_phase_enter(const char *phase, const char *owner)
{
    uint32_t const at = find(phases, OOS_SEGMENT_PHASES, phase),
                   whose = find(owners, OOS_SEGMENT_OWNERS, owner);
    oos_segment_process *mine;
    if (at == OOS_SEGMENT_PHASES || whose == OOS_SEGMENT_OWNERS || !oos_run_lock(&mine)) return false;
    mine->phase = at;
    mine->owner = whose;
    __atomic_store_n(&mine->told, 1, __ATOMIC_RELEASE);
    oos_run_unlock();
    return true;
}
