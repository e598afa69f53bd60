/* Allocator settings: the string of PYTORCH_CUDA_ALLOC_CONF as the allocator of a given release reads it. */
#ifndef OOS_REPLAY_SETTINGS_H
#define OOS_REPLAY_SETTINGS_H

#include "base/error.h"
#include "base/view.h"
#include "replay/torch_rules.h"

#define OOS_UNLIMITED UINT64_MAX
enum { OOS_DIVISION_SLOTS = 16 };

typedef struct oos_settings {
    uint64_t max_split_bytes;          /* OOS_UNLIMITED: no limit */
    uint64_t non_split_rounding_bytes; /* an oversize block may be this much larger than the request */
    uint64_t large_segment_bytes;
    double gc_threshold;    /* 0: off */
    double memory_fraction; /* 1: no limit */
    double reserve; /* address space of an expandable segment: fraction of the device, or bytes; 0: default */
    bool reserve_is_bytes;
    bool expandable;
    bool throw_on_oom;
    uint32_t divisions[OOS_DIVISION_SLOTS]; /* by floor(log2(size)) - 20 */
} oos_settings;

void oos_settings_init(oos_settings *settings);

/* Apply a settings string as a call at run time does: what such a call resets is reset even when the string is refused.
 * On failure *reterr carries the allocator's own sentence. */
oomsight_status oos_settings_apply(oos_settings *settings, const oos_torch_rules *rules, oos_view text,
                                   oomsight_error *reterr);

#endif
