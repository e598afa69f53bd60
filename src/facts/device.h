/* The device that is meant: by its name, or by what it shows. One lookup for plan, check, explain and dry runs. */
#ifndef OOS_FACTS_DEVICE_H
#define OOS_FACTS_DEVICE_H

#include "facts/gpu.h"

/* What somebody says of a device; a field at 0 is not said. */
typedef struct oos_device_ask {
    const char *name;     /* "A30x4", "24GB" */
    uint64_t total_bytes; /* what it shows */
    unsigned capability;  /* 90 */
} oos_device_ask;

typedef enum oos_device_by {
    OOS_DEVICE_NAMED,
    OOS_DEVICE_DESCRIBED, /* by its total and its compute capability */
    OOS_DEVICE_BY_TOTAL,  /* the known one that shows so much */
    OOS_DEVICE_ASSUMED    /* none is known that does: the compute capability is assumed */
} oos_device_by;

typedef struct oos_device_found {
    oos_gpu gpu;      /* with what was said of it; name NULL: none that is known */
    uint64_t count;   /* "A30x4": 4 */
    bool count_given; /* "h100x1": these and no more; a name alone is as many as the command needs */
    oos_device_by by;
} oos_device_found;

oomsight_status oos_device_find(const oos_gpus *gpus, const oos_device_ask *ask, oos_device_found *ret_found,
                                oomsight_error *reterr);

/* The whole device that shows this total, within half a percent; NULL: none. Drivers show one card with totals that differ so much. */
const oos_gpu *oos_device_by_total(const oos_gpus *gpus, uint64_t total_bytes);

/* Did a device of this model show this total, and may no other show it, over drivers? Then its name may be told. */
bool oos_device_is_only(const oos_gpus *gpus, const oos_gpu *guess, uint64_t total_bytes);

/* "9.0": 90. */
oomsight_status oos_capability_read(const char *word, unsigned *ret_capability, oomsight_error *reterr);

/* Fails with the names that resemble the word. */
oomsight_status oos_device_unknown(const oos_gpus *gpus, const char *word, oomsight_error *reterr);

#endif
