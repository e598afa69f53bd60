/* Guarded runs that divide devices under one name. */
#include "api/api.h"

#include <stdio.h>

/* What a run may use of each device; 0: it has no budget. */
static uint64_t budget_of(const oos_segment *segment, uint64_t total_bytes)
{
    if (segment->budget_bytes) return segment->budget_bytes;
    return total_bytes / 1000000 * segment->budget_millionths;
}

/* Its budget, or what it had at most: it was started before us and is ready. */
static uint64_t claim_of(const oos_segment *segment, uint64_t total_bytes)
{
    uint64_t most = budget_of(segment, total_bytes);
    for (uint32_t i = 0; !most && i < segment->device_count && i < OOS_SEGMENT_DEVICES; i++)
        if (segment->devices[i].peak_bytes > most) most = segment->devices[i].peak_bytes;
    return most;
}

/* The smallest device that NVML told of, or CUDA to a process of the run, which shows less; 0: none. */
uint64_t oos_run_smallest(const oos_segment *segment)
{
    uint64_t least = 0;
    for (uint32_t i = 0; i < segment->device_count && i < OOS_SEGMENT_DEVICES; i++) {
        const oos_device_spec *spec = &segment->devices[i].spec;
        uint64_t const total = spec->property_bytes ? spec->property_bytes : spec->nvml_bytes;
        if (total && (!least || total < least)) least = total;
    }
    return least;
}

static oos_segment_peer *free_place(oos_segment *segment)
{
    for (unsigned i = 0; i < OOS_SEGMENT_PEERS; i++) {
        oos_segment_peer *peer = &segment->peers[i];
        oos_segment *other;
        if (!peer->path[0]) return peer;
        peer->path[sizeof peer->path - 1] = '\0';
        if (oos_segment_open(peer->path, &other) != OOS_SEGMENT_OK) return peer;
        bool const lives = oos_segment_launched(other);
        oos_segment_close(other);
        if (!lives) return peer;
    }
    return NULL;
}

/* `base`: what is in our before_bytes of it already. */
static bool introduce(oos_segment *to, const oos_segment *who, const char *path, bool base)
{
    oos_segment_peer *place = free_place(to);
    if (!place || strlen(path) >= sizeof place->path) return false;
    oos_segment_peer entry = {{0}, {0}};
    for (uint32_t i = 0; base && i < to->device_count && i < OOS_SEGMENT_DEVICES; i++)
        for (uint32_t k = 0; k < who->device_count && k < OOS_SEGMENT_DEVICES; k++)
            if (strncmp(to->devices[i].spec.name, who->devices[k].spec.name,
                        sizeof to->devices[i].spec.name) == 0)
                entry.base_bytes[i] = who->devices[k].held_bytes + who->devices[k].outside_bytes;
    memcpy(entry.path, path, strlen(path) + 1);
    *place = entry;
    return true;
}

/* True: it is one of ours, and knows. */
static bool join(oomsight_run *run, const char *path, const char *name, uint64_t *total, uint64_t *ret_budget)
{
    oos_segment *other;
    if (oos_segment_open(path, &other) != OOS_SEGMENT_OK) return false;
    bool joined = strncmp(other->share, name, sizeof other->share) == 0 && oos_segment_launched(other);
    if (joined && oos_run_smallest(other) && oos_run_smallest(other) < *total)
        *total = oos_run_smallest(other);
    *ret_budget = joined ? claim_of(other, *total) : 0;
    joined = joined && introduce(run->segment, other, path, true) &&
             introduce(other, run->segment, run->path, false);
    oos_segment_close(other);
    return joined;
}

oomsight_status oomsight_run_share(oomsight_run *run, const char *name, const char *const *paths,
                                   size_t path_count, oomsight_error *reterr)
{
    oos_segment *segment = run->segment;
    uint64_t total = oos_run_smallest(segment), others = 0, budget;
    size_t const len = strlen(name);
    if (!len || len >= sizeof segment->share ||
        strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") != len)
        return oos_fail(reterr, OOMSIGHT_USAGE,
                        "'%s' is no name for a share (letters, digits, - and _; up to %zu)", name,
                        sizeof segment->share - 1);
    if (!total)
        return oos_fail(reterr, OOMSIGHT_UNSUPPORTED, "NVML names no device: the memory to share is unknown");
    memcpy(segment->share, name, len + 1);
    for (size_t i = 0; i < path_count; i++)
        if (strcmp(paths[i], run->path) != 0 && join(run, paths[i], name, &total, &budget)) others += budget;
    bool const given = segment->budget_bytes || segment->budget_millionths;
    budget = budget_of(segment, total);
    if (given && others + budget > total)
        return oos_fail(reterr, OOMSIGHT_USAGE,
                        "a limit of %.2f GiB in addition to the %.2f GiB of the others called '%s' is more "
                        "than the %.2f GiB of the device",
                        (double)budget / 0x1p30, (double)others / 0x1p30, name, (double)total / 0x1p30);
    if (others >= total)
        return oos_fail(reterr, OOMSIGHT_USAGE, "the others called '%s' have all %.2f GiB of the device",
                        name, (double)total / 0x1p30);
    if (!given && others) segment->budget_bytes = total - others;
    return OOMSIGHT_OK;
}
