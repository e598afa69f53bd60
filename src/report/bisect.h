/* One command over releases: what each said, and where the answer moved. */
#ifndef OOS_REPORT_BISECT_H
#define OOS_REPORT_BISECT_H

#include "report/plan.h"

/* What a release says of the command. */
typedef struct oos_bisect_step {
    const char *version;
    bool answered; /* false: not asked yet, or nothing came of it */
    bool starts;   /* certainly or likely */
    oomsight_verdict verdict;
    const char *answer; /* "starts", "likely fails", ... */
    const char *phase;  /* NULL: none fails */
    const char *why;    /* NULL: nothing to tell */
    uint64_t kv_tokens;
    uint64_t need_bytes;  /* of the phase that fails; 0: none fails, or not known */
    const oos_plan *plan; /* NULL: a dry start */
} oos_bisect_step;

typedef enum oos_bisect_moved {
    OOS_BISECT_NOTHING,
    OOS_BISECT_ANSWER,
    OOS_BISECT_PHASE, /* it fails on both sides, in another phase */
    OOS_BISECT_NEED,  /* ... in the same phase, which needs another size */
    OOS_BISECT_TOKENS
} oos_bisect_moved;

typedef struct oos_bisect_result {
    const char *good, *bad;
    bool by_dryrun, newer_is_good;
    double moved_ratio;           /* of KV tokens: less is not told */
    const oos_bisect_step *steps; /* oldest first */
    size_t count;
    oos_bisect_moved moved;
    size_t before, found; /* steps on both sides of the move */
    bool between;         /* releases lie between the two that were not asked */
} oos_bisect_result;

void oos_report_bisect_text(oos_text *text, const oos_bisect_result *result,
                            const oomsight_render_params *params);
void oos_report_bisect_json(oos_text *text, const oos_bisect_result *result);

/* Two figures that differ by more than `ratio` of the larger. */
bool oos_bisect_apart(uint64_t one, uint64_t other, double ratio);

#endif
