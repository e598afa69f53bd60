/* A guarded run: per device the highest use by call against its budget, and what was refused. JSON: oomsight.run/1
 * (docs/formats/run.md). */
#include "report/run.h"
#include "base/json_write.h"
#include "report/style.h"

static void put_device(const oos_style *style, const oos_run_device *device)
{
    oos_text_put(style->text, "  ");
    oos_style_word(style, device->bus_id);
    oos_style_put(style, ": %.2f GiB at most of %.2f", oos_gib(device->peak_bytes),
                  oos_gib(device->budget_bytes));
    if (device->budget_bytes != device->total_bytes)
        oos_style_put(style, " (the device has %.2f)", oos_gib(device->total_bytes));
    oos_text_put(style->text, "\n    ");
    oos_style_bar(style, device->peak_bytes, device->budget_bytes, style->width > 60 ? 40 : 20,
                  device->refused_count ? OOS_INK_BAD : OOS_INK_GOOD);
    oos_text_put(style->text, "\n");
    for (unsigned use = 0; use < OOS_USE_COUNT; use++)
        if (device->at_peak[use]) {
            oos_text_put(style->text, "    ");
            oos_style_cell(style, 42, oos_use_word(use));
            oos_text_printf(style->text, " %8.2f GiB\n", oos_gib(device->at_peak[use]));
        }
    oos_text_put(style->text, "    ");
    oos_style_cell(style, 42, "contexts, kernels, graphs: by no call");
    if (device->outside_known)
        oos_text_printf(style->text, " %8.2f GiB\n", oos_gib(device->outside_bytes));
    else
        oos_style_put(style, " not known: NVML did not answer\n");
}

static void put_refused(const oos_style *style, const oos_run_state *state)
{
    const oos_segment_failure *first = &state->first_refused;
    oos_text_put(style->text, "  ");
    oos_style_ink(style, OOS_INK_BAD, "%llu calls were refused", (unsigned long long)state->refused_count);
    oos_style_put(style, "; the first of the last %d: process %u asked for %.2f GiB by %s with %.2f GiB left",
                  OOS_SEGMENT_FAILURES, first->pid, oos_gib(first->bytes), oos_use_word(first->use),
                  oos_gib(first->free_bytes));
    oos_text_put(style->text, "\n");
    if (first->host)
        oos_style_paragraph(style, 4,
                            "It was the host's memory that was short: the reserve would have been touched.");
}

static void put_growth(const oos_style *style, const oos_growth *growth)
{
    oos_text_put(style->text, "  ");
    oos_style_ink(style, OOS_INK_WARN, "%s grows by %.0f MiB an hour", oos_growth_word(growth->what),
                  growth->slope.per_hour / (1 << 20));
    oos_style_put(style, " (%.0f to %.0f, over %.1f h)", growth->slope.low / (1 << 20),
                  growth->slope.high / (1 << 20), growth->slope.hours);
    if (growth->hours_to_limit > 0)
        oos_style_put(style, ": at that rate the budget is reached in %.1f h", growth->hours_to_limit);
    oos_text_put(style->text, "\n");
}

void oos_report_run_text(oos_text *text, const oos_run_state *state, const oos_growth *growth,
                         size_t growth_count, const oomsight_render_params *params)
{
    oos_style const style = oos_style_of(text, params);
    if (!state->device_count) oos_style_put(&style, "No process of the run allocated memory on a device.\n");
    for (unsigned i = 0; i < state->device_count; i++) put_device(&style, &state->devices[i]);
    if (state->any_refused) put_refused(&style, state);
    for (size_t i = 0; i < growth_count; i++) put_growth(&style, &growth[i]);
    if (state->pinned_peak_bytes)
        oos_style_put(&style, "  pinned host memory: %.2f GiB at most in one process\n",
                      oos_gib(state->pinned_peak_bytes));
}

static void put_device_json(oos_json_writer *w, const oos_run_device *device)
{
    oos_json_begin_object(w);
    oos_json_field_str(w, "bus_id", device->bus_id);
    oos_json_field_u64(w, "total_bytes", device->total_bytes);
    oos_json_field_u64(w, "budget_bytes", device->budget_bytes);
    oos_json_field_u64(w, "held_bytes", device->held_bytes);
    oos_json_field_u64(w, "peak_bytes", device->peak_bytes);
    oos_json_key(w, "outside_bytes");
    if (device->outside_known)
        oos_json_put_u64(w, device->outside_bytes);
    else
        oos_json_put_null(w);
    oos_json_field_u64(w, "refused", device->refused_count);
    oos_json_key(w, "at_peak");
    oos_json_begin_object(w);
    for (unsigned use = 0; use < OOS_USE_COUNT; use++)
        if (device->at_peak[use]) oos_json_field_u64(w, oos_use_word(use), device->at_peak[use]);
    oos_json_end_object(w);
    oos_json_end_object(w);
}

static void put_process_json(oos_json_writer *w, const oos_run_process *process)
{
    oos_json_begin_object(w);
    oos_json_field_u64(w, "pid", process->pid);
    oos_json_field_u64(w, "held_bytes", process->held_bytes);
    oos_json_field_u64(w, "peak_bytes", process->peak_bytes);
    oos_json_field_u64(w, "pinned_bytes", process->pinned_bytes);
    oos_json_field_u64(w, "pinned_peak_bytes", process->pinned_peak_bytes);
    oos_json_end_object(w);
}

static void put_growth_json(oos_json_writer *w, const oos_growth *growth)
{
    oos_json_begin_object(w);
    oos_json_field_str(w, "what", oos_growth_word(growth->what));
    oos_json_field_str(w, "bus_id", growth->bus_id);
    oos_json_field_u64(w, "bytes_per_hour", oos_u64_from(growth->slope.per_hour));
    oos_json_field_u64(w, "low", oos_u64_from(growth->slope.low));
    oos_json_field_u64(w, "high", oos_u64_from(growth->slope.high));
    oos_json_field_u64(w, "seconds", oos_u64_from(growth->slope.hours * 3600));
    oos_json_key(w, "seconds_to_limit");
    if (growth->hours_to_limit > 0)
        oos_json_put_u64(w, oos_u64_from(growth->hours_to_limit * 3600));
    else
        oos_json_put_null(w);
    oos_json_end_object(w);
}

void oos_report_run_json(oos_text *text, const oos_run_state *state, const oos_growth *growth,
                         size_t growth_count)
{
    oos_json_writer writer = {.text = text, .pretty_depth = 2}, *w = &writer;
    oos_json_begin_object(w);
    oos_json_field_str(w, "schema", "oomsight.run/1");
    oos_json_key(w, "devices");
    oos_json_begin_array(w);
    for (unsigned i = 0; i < state->device_count; i++) put_device_json(w, &state->devices[i]);
    oos_json_end_array(w);
    oos_json_key(w, "processes");
    oos_json_begin_array(w);
    for (unsigned i = 0; i < state->process_count; i++) put_process_json(w, &state->processes[i]);
    oos_json_end_array(w);
    oos_json_field_u64(w, "reserve_bytes", state->reserve_bytes);
    oos_json_field_u64(w, "refused", state->refused_count);
    oos_json_key(w, "first_refused");
    if (state->any_refused) {
        oos_json_begin_object(w);
        oos_json_field_u64(w, "pid", state->first_refused.pid);
        oos_json_field_str(w, "call", oos_use_word(state->first_refused.use));
        oos_json_field_u64(w, "bytes", state->first_refused.bytes);
        oos_json_field_u64(w, "free_bytes", state->first_refused.free_bytes);
        oos_json_field_bool(w, "host", state->first_refused.host != 0);
        oos_json_end_object(w);
    } else
        oos_json_put_null(w);
    oos_json_key(w, "growth");
    oos_json_begin_array(w);
    for (size_t i = 0; i < growth_count; i++) put_growth_json(w, &growth[i]);
    oos_json_end_array(w);
    oos_json_end_object(w);
    oos_text_put(text, "\n");
}
