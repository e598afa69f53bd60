/* Which device is meant. */
#include "facts/facts.h"
#include "base/ascii.h"

#include <string.h>

enum { CAPABILITY_ASSUMED = 80, PRINTED_BYTES = 16 << 20 }; /* a log prints two decimals of GiB */

const oos_gpu *oos_device_by_total(const oos_gpus *gpus, uint64_t total_bytes)
{
    const oos_gpu *best = NULL;
    uint64_t best_distance = total_bytes / 200;
    for (size_t i = 0; i < gpus->count; i++) {
        uint64_t const distance = oos_far(gpus->list[i].total_bytes, total_bytes);
        if (gpus->list[i].slice || distance > best_distance) continue;
        if (best && distance == best_distance) continue;
        best = &gpus->list[i];
        best_distance = distance;
    }
    return best;
}

bool oos_device_is_only(const oos_gpus *gpus, const oos_gpu *guess, uint64_t total_bytes)
{
    /* Drivers show the same card with totals a hundredth apart: an RTX 4090 has 23.52 or 23.64 GiB. */
    uint64_t const rounding = total_bytes / 100;
    if (!guess->total_measured || oos_far(guess->total_bytes, total_bytes) > PRINTED_BYTES) return false;
    for (size_t i = 0; i < gpus->count; i++) {
        const oos_gpu *gpu = &gpus->list[i];
        if (gpu != guess && !gpu->slice && total_bytes + rounding >= gpu->total_low &&
            total_bytes <= gpu->total_high + rounding)
            return false;
    }
    return true;
}

oomsight_status oos_device_unknown(const oos_gpus *gpus, const char *word, oomsight_error *reterr)
{
    const char *names[3];
    size_t const count = oos_gpus_suggest(gpus, oos_view_of(word), names, 3);
    const char *other = count == 0 ? oos_gpu_name_other(word) : NULL;
    if (other)
        return oos_fail_of(reterr,
                           oos_fail(reterr, OOMSIGHT_UNSUPPORTED,
                                    "'%s' stands for %s, and only NVIDIA GPUs are planned", word, other),
                           "gpu");
    oomsight_status const status =
        count == 0 ? oos_fail(reterr, OOMSIGHT_USAGE, "no GPU is called '%s'", word)
                   : oos_fail(reterr, OOMSIGHT_USAGE, "no GPU is called '%s'; did you mean %s%s%s?", word,
                              names[0], count > 1 ? " or " : "", count > 1 ? names[1] : "");
    return oos_fail_of(reterr, status, "gpu");
}

oomsight_status oos_capability_read(const char *word, unsigned *ret_capability, oomsight_error *reterr)
{
    if (oos_capability_parse(word, ret_capability)) return OOMSIGHT_OK;
    oos_fail(reterr, OOMSIGHT_USAGE, "'%s' is not a compute capability such as 9.0", word);
    return oos_fail_of(reterr, OOMSIGHT_USAGE, "compute_capability");
}

/* "h100x1" or "1xh100": one and no more. */
static bool says_one(const char *word)
{
    size_t const len = strlen(word);
    return len > 2 && ((oos_lower(word[len - 2]) == 'x' && word[len - 1] == '1') ||
                       (word[0] == '1' && oos_lower(word[1]) == 'x'));
}

oomsight_status oos_device_find(const oos_gpus *gpus, const oos_device_ask *ask, oos_device_found *ret_found,
                                oomsight_error *reterr)
{
    oos_device_found found = {.gpu = {.capability = CAPABILITY_ASSUMED}, .count = 1};
    if (ask->name) {
        const oos_gpu *gpu = oos_gpus_find(gpus, oos_view_of(ask->name), &found.count);
        if (!gpu) return oos_device_unknown(gpus, ask->name, reterr);
        found.gpu = *gpu;
        found.count_given = found.count > 1 || says_one(ask->name);
    } else if (!ask->total_bytes) {
        return oos_fail_of(reterr, oos_fail(reterr, OOMSIGHT_USAGE, "no GPU is given"), "gpu");
    } else if (ask->capability) {
        found.by = OOS_DEVICE_DESCRIBED;
    } else {
        const oos_gpu *gpu = oos_device_by_total(gpus, ask->total_bytes);
        if (gpu) found.gpu = *gpu;
        found.by = gpu ? OOS_DEVICE_BY_TOTAL : OOS_DEVICE_ASSUMED;
    }
    /* drivers differ by less; a card of another size shows NVML that size */
    bool const other =
        ask->total_bytes && oos_far(found.gpu.total_bytes, ask->total_bytes) > ask->total_bytes / 50;
    if (ask->total_bytes)
        found.gpu.total_bytes = found.gpu.total_low = found.gpu.total_high = ask->total_bytes;
    if (!ask->name || other) found.gpu.nvml_total_bytes = ask->total_bytes;
    if (ask->capability) found.gpu.capability = ask->capability;
    *ret_found = found;
    return OOMSIGHT_OK;
}
