#include "run/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SERIES_MAX = 2 * OOS_SEGMENT_DEVICES + 2 };
#define FIRST_INTERVAL_HOURS (5.0 / 3600)

struct oos_history {
    double hours[OOS_HISTORY_MAX], bytes[SERIES_MAX][OOS_HISTORY_MAX];
    double owners[OOS_SEGMENT_DEVICES][OOS_SEGMENT_OWNERS][OOS_HISTORY_MAX];
    size_t count;
    double interval_hours;
    unsigned devices; /* that were in use: with one more, all begins anew */
};

const char *oos_growth_word(oos_growth_what what)
{
    static const char *const words[OOS_GROWTH_COUNT] = {"device memory by calls", "device memory by no call",
                                                        "pinned host memory", "host memory"};
    return words[what];
}

oos_history *oos_history_create(void)
{
    oos_history *history = calloc(1, sizeof *history);
    if (history) history->interval_hours = FIRST_INTERVAL_HOURS;
    return history;
}

void oos_history_free(oos_history *history)
{
    free(history);
}

/* Every second sample goes, and from now on half as many come. */
static void thin_out(oos_history *history)
{
    for (size_t i = 0; 2 * i < history->count; i++) {
        history->hours[i] = history->hours[2 * i];
        for (size_t s = 0; s < SERIES_MAX; s++) history->bytes[s][i] = history->bytes[s][2 * i];
        for (unsigned d = 0; d < history->devices; d++)
            for (unsigned owner = 0; owner < OOS_SEGMENT_OWNERS; owner++)
                history->owners[d][owner][i] = history->owners[d][owner][2 * i];
    }
    history->count = (history->count + 1) / 2;
    history->interval_hours *= 2;
}

void oos_history_add(oos_history *history, double hours, const oos_run_state *state, uint64_t host_bytes)
{
    if (history->devices != state->device_count) {
        history->count = 0;
        history->interval_hours = FIRST_INTERVAL_HOURS;
        history->devices = state->device_count;
    }
    if (history->count && hours < history->hours[history->count - 1] + history->interval_hours) return;
    if (history->count == OOS_HISTORY_MAX) thin_out(history);
    size_t const at = history->count++;
    uint64_t pinned = 0;
    for (unsigned i = 0; i < state->process_count; i++) pinned += state->processes[i].pinned_bytes;
    history->hours[at] = hours;
    for (unsigned i = 0; i < OOS_SEGMENT_DEVICES; i++) {
        bool const there = i < state->device_count;
        history->bytes[2 * i][at] = there ? (double)state->devices[i].held_bytes : 0;
        history->bytes[2 * i + 1][at] = there ? (double)state->devices[i].outside_bytes : 0;
        for (unsigned owner = 0; there && owner < OOS_SEGMENT_OWNERS; owner++)
            history->owners[i][owner][at] = (double)state->devices[i].owners_now[owner];
    }
    history->bytes[SERIES_MAX - 2][at] = (double)pinned;
    history->bytes[SERIES_MAX - 1][at] = (double)host_bytes;
}

static double hours_left(const oos_run_device *device, double per_hour)
{
    if (!device->budget_bytes) return 0;
    uint64_t const held = device->held_bytes + device->outside_bytes;
    return held < device->budget_bytes ? (double)(device->budget_bytes - held) / per_hour : 0;
}

static bool growth_of(const oos_history *history, const double *bytes, oos_slope *ret_slope)
{
    size_t const first = history->count / 2; /* the earlier half is the start and getting warm */
    return oos_slope_of(history->hours + first, bytes + first, history->count - first, ret_slope) &&
           ret_slope->span >= OOS_GROWTH_HOURS_MIN && oos_slope_grows(ret_slope);
}

static unsigned owner_of(const oos_history *history, size_t device)
{
    unsigned most = OOS_SEGMENT_OWNERS;
    double per = 0;
    for (unsigned owner = 0; owner < OOS_SEGMENT_OWNERS; owner++) {
        const double *bytes = history->owners[device][owner];
        oos_slope slope;
        if (bytes[history->count - 1] <= bytes[history->count / 2]) continue;
        if (!growth_of(history, bytes, &slope) || slope.per <= per) continue;
        most = owner;
        per = slope.per;
    }
    return most;
}

size_t oos_history_growth(const oos_history *history, const oos_run_state *state, oos_growth *ret_list,
                          size_t most)
{
    size_t count = 0;
    for (size_t series = 0; series < SERIES_MAX && count < most; series++) {
        oos_growth growth = {.what = OOS_GROWTH_PINNED, .owner = OOS_SEGMENT_OWNERS};
        const oos_run_device *device = series / 2 < state->device_count ? &state->devices[series / 2] : NULL;
        if (series < 2 * OOS_SEGMENT_DEVICES)
            growth.what = series % 2 ? OOS_GROWTH_OUTSIDE : OOS_GROWTH_CALLS;
        if (series == SERIES_MAX - 1) growth.what = OOS_GROWTH_HOST;
        if (growth.what <= OOS_GROWTH_OUTSIDE && !device) continue;
        if (!growth_of(history, history->bytes[series], &growth.slope)) continue;
        if (growth.what == OOS_GROWTH_CALLS) growth.owner = owner_of(history, series / 2);
        if (growth.what <= OOS_GROWTH_OUTSIDE) {
            growth.bus_id = device->bus_id;
            growth.hours_to_limit = hours_left(device, growth.slope.per);
        }
        ret_list[count++] = growth;
    }
    return count;
}

uint64_t oos_run_host_bytes(const oos_run_state *state)
{
    uint64_t const page = (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t all = 0;
    for (unsigned i = 0; i < state->process_count; i++) {
        char path[64];
        unsigned long long whole, resident;
        snprintf(path, sizeof path, "/proc/%u/statm", state->processes[i].pid);
        FILE *file = fopen(path, "re");
        if (file && fscanf(file, "%llu %llu", &whole, &resident) == 2) all += resident * page;
        if (file) fclose(file);
    }
    return all;
}
