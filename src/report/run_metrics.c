/* Guarded runs for Prometheus: a family of samples after the other, as its text format wants them. */
#include "ledger/ledger.h"
#include "report/report.h"
#include "oomsight_private.h"

#include <inttypes.h>
#include <stdio.h>

typedef enum family {
    INFO,
    HELD,
    OUTSIDE,
    TOTAL,
    BUDGET,
    PEAK,
    REFUSED,
    PINNED,
    RESIDENT,
    GROWTH,
    PHASE,
    NOT_SEEN,
    FAMILY_COUNT
} family;

static const struct {
    const char *name, *type, *help;
} families[FAMILY_COUNT] = {
    [INFO] = {"info", "gauge", "1, with the number of the process that the run was started by."},
    [HELD] = {"held_bytes", "gauge", "Device memory taken by calls, by whose it is."},
    [OUTSIDE] = {"outside_bytes", "gauge", "Device memory taken by no call: contexts, kernels, graphs."},
    [TOTAL] = {"total_bytes", "gauge", "Memory of the device."},
    [BUDGET] = {"budget_bytes", "gauge", "What the run may take of the device."},
    [PEAK] = {"peak_bytes", "gauge", "The most that was taken of the device, by calls and by none."},
    [REFUSED] = {"refused_total", "counter", "Calls that were refused."},
    [PINNED] = {"pinned_bytes", "gauge", "Pinned host memory, over all processes."},
    [RESIDENT] = {"resident_bytes", "gauge", "Resident host memory, over all processes that use a device."},
    [GROWTH] = {"growth_bytes_per_hour", "gauge", "The slope of what surely grows."},
    [PHASE] = {"phase", "gauge", "1 for the phase the engine is in, by its log."},
    [NOT_SEEN] = {"not_seen_processes", "gauge",
                  "Processes that use CUDA and that the memory limiter does not count."},
};

/* Labels of ours are plain words; a bus address is copied as far as it is one. */
static void put_sample(oos_text *text, family f, const oos_run_told *run, const oos_run_device *device,
                       const char *key, const char *word, uint64_t value)
{
    oos_text_printf(text, "oomsight_run_%s{name=\"%s", families[f].name, run->name);
    if (run->namesakes) oos_text_printf(text, " #%u", run->namesakes + 1);
    oos_text_put(text, "\"");
    if (device)
        oos_text_printf(text, ",bus_id=\"%.*s\"", (int)strspn(device->bus_id, "0123456789abcdefABCDEF:."),
                        device->bus_id);
    if (key) oos_text_printf(text, ",%s=\"%s\"", key, word);
    oos_text_printf(text, "} %" PRIu64 "\n", value);
}

static void put_device(oos_text *text, family f, const oos_run_told *run, const oos_run_device *device)
{
    switch (f) {
    case HELD:
        for (unsigned owner = 0; owner < OOS_SEGMENT_OWNERS; owner++)
            if (device->owners_now[owner] || device->owners_at_peak[owner])
                put_sample(text, f, run, device, "owner", oos_owner_word(owner), device->owners_now[owner]);
        break;
    case OUTSIDE:
        if (device->outside_known) put_sample(text, f, run, device, NULL, NULL, device->outside_bytes);
        break;
    case TOTAL: put_sample(text, f, run, device, NULL, NULL, device->total_bytes); break;
    case BUDGET:
        if (device->budget_bytes) put_sample(text, f, run, device, NULL, NULL, device->budget_bytes);
        break;
    case PEAK: put_sample(text, f, run, device, NULL, NULL, device->peak_bytes); break;
    case REFUSED: put_sample(text, f, run, device, NULL, NULL, device->refused_count); break;
    case INFO:
    case PINNED:
    case RESIDENT:
    case GROWTH:
    case PHASE:
    case NOT_SEEN:
    case FAMILY_COUNT: break;
    }
}

static uint64_t pinned_bytes(const oos_run_state *state)
{
    uint64_t bytes = 0;
    for (unsigned i = 0; i < state->process_count; i++) bytes += state->processes[i].pinned_bytes;
    return bytes;
}

static void put_run(oos_text *text, family f, const oos_run_told *run)
{
    const oos_run_state *state = &run->state;
    for (unsigned i = 0; i < state->device_count; i++) put_device(text, f, run, &state->devices[i]);
    char number[16];
    snprintf(number, sizeof number, "%d", run->pid);
    if (f == INFO) put_sample(text, f, run, NULL, "pid", number, 1);
    if (f == PINNED) put_sample(text, f, run, NULL, NULL, NULL, pinned_bytes(state));
    if (f == RESIDENT) put_sample(text, f, run, NULL, NULL, NULL, run->host_bytes);
    if (f == NOT_SEEN) put_sample(text, f, run, NULL, NULL, NULL, state->unseen_count);
    if (f == PHASE && state->phase < OOS_PHASE_COUNT)
        put_sample(text, f, run, NULL, "phase", oos_phase_word(state->phase), 1);
    for (size_t i = 0; f == GROWTH && i < run->growth_count; i++) {
        const oos_growth *growth = &run->growth[i];
        const oos_run_device at = {.bus_id = growth->bus_id};
        put_sample(text, f, run, growth->bus_id ? &at : NULL, "what", oos_growth_word(growth->what),
                   oos_u64_from(growth->slope.per));
    }
}

void oos_report_run_metrics(oos_text *text, const oos_run_told *runs, size_t count)
{
    for (family f = 0; f < FAMILY_COUNT; f++) {
        oos_text_printf(text, "# HELP oomsight_run_%s %s\n# TYPE oomsight_run_%s %s\n", families[f].name,
                        families[f].help, families[f].name, families[f].type);
        for (size_t i = 0; i < count; i++) put_run(text, f, &runs[i]);
    }
}
