/* The first lines of the replay report: what happened, and the line to paste that would have prevented it. */
#include "report/report.h"

#include <stdio.h>

/* A change of settings, not of a policy that torch does not have. */
static bool is_setting(const oos_analysis *a, const oos_what_if *w)
{
    return !w->refused && w->scenario.sweep_ratio <= a->scenario.sweep_ratio &&
           w->scenario.set_backend == a->scenario.set_backend;
}

const oos_what_if *oos_replay_advice(const oos_analysis *a)
{
    uint64_t least = UINT64_MAX;
    if (!a->outcome.oom) return NULL;
    for (size_t i = 0; i < a->what_if_count; i++) {
        const oos_what_if *w = &a->what_ifs[i];
        if (is_setting(a, w) && !w->outcome.oom) least = oos_min(least, w->outcome.peak_reserved_bytes);
    }
    for (size_t i = 0; i < a->what_if_count; i++) { /* the plainest of those that are about as good */
        const oos_what_if *w = &a->what_ifs[i];
        if (is_setting(a, w) && !w->outcome.oom && w->outcome.peak_reserved_bytes <= least + least / 16)
            return w;
    }
    return NULL;
}

static void put_advice(const oos_analysis *a, const oos_what_if *w, const oos_style *style)
{
    if (*w->settings) {
        oos_style_put(style, "It survives with\n\n");
        oos_text_put(style->text, "  export PYTORCH_CUDA_ALLOC_CONF=");
        oos_style_word(style, w->settings);
        oos_text_put(style->text, "\n\n");
    } else {
        oos_style_put(style, "It survives without any setting\n\n");
        oos_text_put(style->text, "  unset PYTORCH_CUDA_ALLOC_CONF\n\n");
    }
    oos_style_put(
        style, "at %s reserved and %llu cudaMallocs, instead of %s and %llu.\n",
        oos_size_of(w->outcome.peak_reserved_bytes).text, (unsigned long long)w->outcome.device_allocs,
        oos_size_of(a->outcome.peak_reserved_bytes).text, (unsigned long long)a->outcome.device_allocs);
}

/* No setting helps: the policies, then the smallest device, if it was searched. */
static void put_no_advice(const oos_analysis *a, const oos_style *style)
{
    bool told = false;
    if (a->what_if_count) oos_style_put(style, "None of the settings below would have prevented it.\n");
    for (size_t i = 0; i < a->what_if_count && !told; i++) {
        const oos_what_if *w = &a->what_ifs[i];
        if (w->refused || w->outcome.oom) continue;
        oos_style_put(style, "This would have: %s.\n", w->label);
        told = true;
    }
    if (!told && a->smallest_bytes.known)
        oos_style_put(style, "It survives on a device of %s.\n", oos_size_of(a->smallest_bytes.value).text);
}

/* The record of a dry run: what its processes took from the device. */
static void put_driver_calls(const oos_analysis *a, const oos_style *style)
{
    size_t taken = 0, given = 0;
    for (size_t i = 0; i < a->trace->event_count; i++) {
        taken += a->trace->events[i].op == OOS_OP_MALLOC;
        given += a->trace->events[i].op == OOS_OP_FREE;
    }
    char line[256];
    snprintf(
        line, sizeof line,
        "Driver calls of one process: %zu pieces of device memory taken, %zu given back, at most %s held.",
        taken - (size_t)a->outcome.ooms, given, oos_size_of(a->outcome.peak_allocated_bytes).text);
    oos_style_paragraph(style, 0, line);
    if (a->outcome.oom)
        oos_style_put(style, "The first that was not given: %s.\n",
                      oos_size_of(a->outcome.first_oom_bytes).text);
    oos_style_paragraph(style, 0,
                        "These are segments, not PyTorch's allocations: the effect of other allocator "
                        "settings is unknown. A dry run with --snapshot FILE records allocations.");
}

void oos_replay_verdict(const oos_analysis *a, const oos_style *style)
{
    const oos_outcome *o = &a->outcome;
    if (a->trace->driver_calls) {
        put_driver_calls(a, style);
        return;
    }
    bool known;
    uint64_t const total = oos_device_total(a, &a->scenario, &known);
    if (!o->oom) {
        oos_style_put(style, "No request failed: at most %s were reserved%s%s.\n",
                      oos_size_of(o->peak_reserved_bytes).text, known ? " of " : "",
                      known ? oos_size_of(total).text : "");
        return;
    }
    oos_style_put(style, "Out of memory at event %zu: %s requested, %s free inside reserved memory.\n",
                  o->first_oom, oos_size_of(o->first_oom_bytes).text, oos_size_of(o->stranded_bytes).text);
    const oos_what_if *advice = oos_replay_advice(a);
    if (advice)
        put_advice(a, advice, style);
    else
        put_no_advice(a, style);
}
