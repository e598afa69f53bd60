/* Reading data/engines/torch.json. */
#include "facts/facts.h"
#include "base/scan.h"

#include <stdio.h>

static void list_read(oos_scan *scan, unsigned *list)
{
    size_t count = 0;
    uint64_t number;
    if (!oos_scan_open(scan, '[')) return;
    while (oos_scan_item(scan) && oos_scan_u64(scan, &number))
        if (count + 1 < OOS_TORCH_SMS) list[count++] = (unsigned)number;
}

static oos_torch_build build_read(oos_scan *scan)
{
    oos_torch_build build = {0};
    oos_view key, text = {"", 0};
    uint64_t number = 0;
    while (oos_scan_key(scan, &key)) {
        if (oos_view_is(key, "torch")) {
            oos_scan_u64(scan, &build.minor);
        } else if (oos_view_is(key, "cuda")) {
            oos_scan_string(scan, &text);
            snprintf(build.cuda, sizeof build.cuda, "%.*s", (int)text.len, text.ptr);
        } else if (oos_view_is(key, "sm")) {
            list_read(scan, build.sm);
        } else if (oos_view_is(key, "other")) {
            list_read(scan, build.other);
        } else if (oos_view_is(key, "ptx")) {
            oos_scan_u64(scan, &number);
            build.ptx = (unsigned)number;
        } else {
            oos_scan_skip(scan, NULL);
        }
    }
    return build;
}

oomsight_status oos_torch_load(oos_arena *arena, const char *data_dir, oos_torch_builds *ret_builds,
                               oomsight_error *reterr)
{
    oos_view text;
    oos_torch_builds builds = {.count = 0};
    OOS_TRY(oos_data_read(arena, data_dir, "engines/torch.json", &text, reterr));
    oos_scan scan = oos_scan_begin(text);
    if (oos_scan_open(&scan, '['))
        while (oos_scan_item(&scan) && oos_scan_open(&scan, '{') && builds.count < OOS_TORCH_MAX)
            builds.list[builds.count++] = build_read(&scan);
    if (!oos_scan_done(&scan))
        return oos_fail(reterr, OOMSIGHT_MALFORMED, "engines/torch.json is no list of at most %d builds",
                        OOS_TORCH_MAX);
    *ret_builds = builds;
    return OOMSIGHT_OK;
}

const oos_torch_build *oos_torch_find(const oos_torch_builds *builds, uint64_t minor)
{
    for (size_t i = 0; i < builds->count; i++)
        if (builds->list[i].minor == minor) return &builds->list[i];
    return NULL;
}

static bool has(const unsigned *list, unsigned capability)
{
    for (size_t i = 0; i < OOS_TORCH_SMS && list[i]; i++)
        if (list[i] / 10 == capability / 10 && list[i] <= capability) return true;
    return false;
}

oos_torch_support oos_torch_supports(const oos_torch_build *build, unsigned capability)
{
    if (!build) return OOS_TORCH_UNKNOWN;
    if (has(build->sm, capability) || (build->ptx && capability >= build->ptx)) return OOS_TORCH_WHEEL;
    return has(build->other, capability) ? OOS_TORCH_OTHER : OOS_TORCH_NONE;
}
