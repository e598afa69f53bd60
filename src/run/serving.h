/* What an engine says of itself while it serves: a few figures of its answer to GET /metrics, which may be anything. */
#ifndef OOS_RUN_SERVING_H
#define OOS_RUN_SERVING_H

#include "base/view.h"

#include <stdint.h>

typedef struct oos_serving {
    uint64_t running, waiting; /* requests, over all of its engines */
    double kv_used;            /* the fullest KV cache, 0 to 1 */
    bool requests_known, kv_known;
} oos_serving;

/* False: there is no such figure in it. */
bool oos_serving_read(oos_view metrics, oos_serving *ret_serving);

#endif
