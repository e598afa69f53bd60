#include "base/edits.h"
#include "base/check.h"

size_t oos_edits(oos_view given, oos_view known)
{
    size_t rows[3][OOS_EDITS_MAX + 1];
    size_t *older = rows[0], *old = rows[1], *now = rows[2];
    if (given.len > OOS_EDITS_MAX || known.len > OOS_EDITS_MAX) return OOS_EDITS_MAX;
    for (size_t k = 0; k <= known.len; k++) old[k] = k;
    for (size_t i = 1; i <= given.len; i++) {
        now[0] = i;
        for (size_t k = 1; k <= known.len; k++) {
            char const x = given.ptr[i - 1] == '_' ? '-' : given.ptr[i - 1], y = known.ptr[k - 1];
            size_t best = old[k - 1] + (x != y);
            if (old[k] + 1 < best) best = old[k] + 1;
            if (now[k - 1] + 1 < best) best = now[k - 1] + 1;
            if (i > 1 && k > 1 && x == known.ptr[k - 2] && given.ptr[i - 2] == y && older[k - 2] + 1 < best)
                best = older[k - 2] + 1;
            now[k] = best;
        }
        size_t *spare = older;
        older = old;
        old = now;
        now = spare;
    }
    oos_assert(old[known.len] <= (given.len > known.len ? given.len : known.len));
    return old[known.len];
}
