/* When a failure is over, in a text that grows. */
#include "follow/follow.h"

enum {
    SETTLE_MS = 800,    /* after so long without a further sign */
    LINES_MS = 150,     /* a message may go on in the next line */
    OPEN_MAX_MS = 30000 /* an incident that does not end is told nevertheless */
};

oomsight_status oos_settling_step(oos_settling *s, oos_explainer *explainer, int64_t now,
                                  oomsight_error *reterr)
{
    bool const lines = oos_linescan_waits(oos_explainer_scan(explainer));
    if (!lines)
        s->lines_at = 0;
    else if (!s->lines_at)
        s->lines_at = now;
    if (lines && now - s->lines_at >= LINES_MS) {
        s->lines_at = 0;
        OOS_TRY(oos_linescan_settle(oos_explainer_scan(explainer), reterr));
    }
    const oos_collector *collector = oos_explainer_collector(explainer);
    uint64_t const touched = oos_collector_touched(collector);
    if (touched != s->touched) s->touched_at = now;
    s->touched = touched;
    if (!oos_collector_at(collector).open) {
        s->opened_at = 0;
        return OOMSIGHT_OK;
    }
    if (!s->opened_at) s->opened_at = now;
    if (now - s->touched_at < SETTLE_MS && now - s->opened_at < OPEN_MAX_MS) return OOMSIGHT_OK;
    return oos_explainer_settle(explainer, reterr);
}
