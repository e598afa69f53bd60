/* A guarded run: per device the highest use by call against its budget, and what was refused. JSON: oomsight.run/1
 * (docs/reference/formats/run.md). */
#include "report/report.h"
#include "base/json_write.h"
#include "ledger/ledger.h"

_Static_assert((int)OOS_SEGMENT_PHASES == (int)OOS_PHASE_COUNT, "the segment has a row per phase");
_Static_assert((int)OOS_SEGMENT_OWNERS == (int)OOS_OWNER_COUNT, "... and per owner");

/* The log has said whose at least some of it is. */
static bool owners_known(const oos_run_device *device)
{
    for (unsigned owner = 0; owner < OOS_OWNER_COUNT; owner++)
        if (owner != OOS_OWNER_UNACCOUNTED && (device->owners_at_peak[owner] || device->owners_now[owner]))
            return true;
    return false;
}

/* Of the names; the figures behind them take 22 columns. */
static int word_columns(const oos_style *style)
{
    return style->width >= 64 || style->width < 30 ? 38 : (int)style->width - 26;
}

static void put_row(const oos_style *style, const oos_run_device *device, const char *word, uint64_t now,
                    uint64_t most, bool lives)
{
    oos_text_put(style->text, "    ");
    oos_style_cell(style, word_columns(style), word);
    if (lives) oos_text_printf(style->text, " %8.2f", oos_gib(now));
    oos_text_printf(style->text, " %8.2f GiB ", oos_gib(most));
    if (style->width >= 80)
        oos_style_bar(style, lives ? now : most, device->budget_bytes, style->width >= 120 ? 40 : 12,
                      OOS_INK_PLAIN);
    oos_text_put(style->text, "\n");
}

static void put_owners(const oos_style *style, const oos_run_device *device, bool lives)
{
    oos_text_put(style->text, "    ");
    oos_style_cell(style, word_columns(style), "");
    if (lives) oos_style_put(style, " %8s", "now");
    oos_style_put(style, " %8s\n", "at most");
    for (unsigned owner = 0; owner < OOS_OWNER_COUNT; owner++)
        if (device->owners_at_peak[owner] || device->owners_now[owner])
            put_row(style, device, oos_report_owner_title(owner), device->owners_now[owner],
                    device->owners_at_peak[owner], lives);
}

static void put_calls(const oos_style *style, const oos_run_device *device)
{
    for (unsigned use = 0; use < OOS_USE_COUNT; use++)
        if (device->at_peak[use]) {
            oos_text_put(style->text, "    ");
            oos_style_cell(style, 42, oos_use_word(use));
            oos_text_printf(style->text, " %8.2f GiB\n", oos_gib(device->at_peak[use]));
        }
}

static void put_head(const oos_style *style, const oos_run_device *device, uint64_t asked_bytes, bool lives)
{
    oos_text_put(style->text, "  ");
    oos_style_word(style, device->bus_id);
    if (lives) oos_style_put(style, ": %.2f GiB now", oos_gib(device->held_bytes + device->outside_bytes));
    oos_style_put(style, lives ? ", %.2f at most of %.2f" : ": %.2f GiB at most of %.2f",
                  oos_gib(device->peak_bytes), oos_gib(device->budget_bytes));
    if (device->budget_bytes != device->total_bytes)
        oos_style_put(style, " (the device has %.2f)", oos_gib(device->total_bytes));
    else if (asked_bytes > device->total_bytes)
        oos_style_put(style, " (the whole device: the limit of %.2f is more than it has)",
                      oos_gib(asked_bytes));
    oos_text_put(style->text, "\n    ");
    oos_style_bar(style, lives ? device->held_bytes + device->outside_bytes : device->peak_bytes,
                  device->budget_bytes, style->width > 60 ? 40 : 20,
                  device->refused_count ? OOS_INK_BAD : OOS_INK_GOOD);
    oos_text_put(style->text, "\n");
    if (!device->card) return;
    oos_text_put(style->text, "    ");
    oos_style_word(style, device->card);
    if (device->capability)
        oos_style_put(style, ", compute capability %u.%u", device->capability / 10, device->capability % 10);
    oos_text_put(style->text, "\n");
}

static void put_device(const oos_style *style, const oos_run_device *device, uint64_t asked_bytes, bool lives)
{
    bool const known = owners_known(device);
    put_head(style, device, asked_bytes, lives);
    if (known)
        put_owners(style, device, lives);
    else
        put_calls(style, device);
    oos_text_put(style->text, "    ");
    int const columns = known ? word_columns(style) + (lives ? 9 : 0) : 42;
    oos_style_cell(style, columns, columns < 38 ? "by no call" : "contexts, kernels, graphs: by no call");
    if (device->outside_known)
        oos_text_printf(style->text, " %8.2f GiB\n", oos_gib(device->outside_bytes));
    else
        oos_style_put(style, " not known: NVML did not answer\n");
}

static void put_refused(const oos_style *style, const oos_run_state *state)
{
    const oos_segment_failure *first = &state->first_refused;
    oos_text_put(style->text, "  ");
    const char *by = oos_run_refused_by(state);
    oos_style_ink(style, OOS_INK_BAD,
                  strcmp(by, "reserve") == 0  ? "%llu calls were refused by the reserve of oomsight run"
                  : strcmp(by, "budget") == 0 ? "%llu calls were refused by the limit of oomsight run"
                                              : "%llu calls were refused: the device was full",
                  (unsigned long long)state->refused_count);
    oos_style_put(style, "; the first: process %u requested %.2f GiB by %s with %.2f GiB left", first->pid,
                  oos_gib(first->bytes), oos_use_word(first->use), oos_gib(first->free_bytes));
    oos_text_put(style->text, "\n");
    if (first->host)
        oos_style_paragraph(style, 4,
                            "It was the host's memory that was short: the reserve would have been touched.");
}

static void put_growth(const oos_style *style, const oos_growth *growth)
{
    oos_text_put(style->text, "  ");
    if (growth->owner < OOS_OWNER_COUNT)
        oos_style_ink(style, OOS_INK_WARN, "%s (%s) grows by %.0f MiB per hour",
                      oos_growth_word(growth->what), oos_report_owner_title(growth->owner),
                      growth->slope.per / (1 << 20));
    else
        oos_style_ink(style, OOS_INK_WARN, "%s grows by %.0f MiB per hour", oos_growth_word(growth->what),
                      growth->slope.per / (1 << 20));
    oos_style_put(style, " (%.0f to %.0f, over %.1f h)", growth->slope.low / (1 << 20),
                  growth->slope.high / (1 << 20), growth->slope.span);
    if (growth->hours_to_limit > 0)
        oos_style_put(style, ": at that rate it hits the limit in %.1f h", growth->hours_to_limit);
    oos_text_put(style->text, "\n");
}

static void put_serving(const oos_style *style, const oos_serving *serving)
{
    if (serving->requests_known)
        oos_style_put(style, "  requests: %llu running, %llu waiting\n", (unsigned long long)serving->running,
                      (unsigned long long)serving->waiting);
    if (serving->kv_known) {
        oos_style_put(style, "  KV cache in use: %.1f %%  ", 100 * serving->kv_used);
        oos_style_bar(style, (uint64_t)(serving->kv_used * 1000), 1000, style->width > 60 ? 40 : 20,
                      OOS_INK_PLAIN);
        oos_text_put(style->text, "\n");
    }
}

/* Nothing seen is not nothing used. */
static void put_unseen(const oos_style *style, const oos_run_state *state)
{
    if (!state->seen_count)
        oos_style_paragraph(
            style, 2,
            "No process loaded the memory limiter, so device memory is unknown. A program that gets no "
            "LD_PRELOAD, runs as another user or is statically linked is not counted.");
    else if (!state->device_count)
        oos_style_put(style, "  No process with the memory limiter allocated memory on a device.\n");
    for (unsigned i = 0; i < state->unseen_count; i++) {
        const oos_segment_unseen *entry = &state->unseen[i];
        oos_text_put(style->text, "  ");
        oos_style_ink(style, OOS_INK_BAD, "process %u", entry->pid);
        oos_text_put(style->text, " (");
        oos_style_word(style, entry->name);
        oos_style_put(style, ") is not counted\n");
        oos_style_paragraph(style, 4, oos_unseen_word(entry->why));
    }
    if (state->limit == OOMSIGHT_RUN_LIMIT_NOT_FOR_ALL) {
        oos_text_put(style->text, "  ");
        oos_style_ink(style, OOS_INK_BAD, "the limit is not in force for what is not counted");
        oos_text_put(style->text, "\n");
    }
}

/* An engine that is ready is in no phase of its start: whether it works is known where it tells its requests. */
static const char *phase_word(const oos_run_told *run)
{
    const oos_serving *serving = &run->serving;
    if (run->state.phase != OOS_PHASE_RUNTIME_PREFILL || !run->state.lives)
        return oos_report_point(run->state.phase);
    return serving->requests_known && !serving->running && !serving->waiting ? "ready, idle" : "ready";
}

void oos_report_run_text(oos_text *text, const oos_run_told *run, const oomsight_render_params *params)
{
    const oos_run_state *state = &run->state;
    oos_style const style = oos_style_of(text, params);
    if (state->phase < OOS_PHASE_COUNT) {
        oos_style_put(&style, state->lives ? "  phase: " : "  last phase: ");
        oos_style_ink(&style, OOS_INK_BOLD, "%s", phase_word(run));
        oos_text_put(text, "\n");
    }
    put_serving(&style, &run->serving);
    put_unseen(&style, state);
    for (unsigned i = 0; i < state->device_count; i++)
        put_device(&style, &state->devices[i], state->asked_bytes, state->lives);
    if (state->any_refused) put_refused(&style, state);
    for (size_t i = 0; i < run->growth_count; i++) put_growth(&style, &run->growth[i]);
    if (state->pinned_peak_bytes)
        oos_style_put(&style, "  pinned host memory: %.2f GiB at most in one process\n",
                      oos_gib(state->pinned_peak_bytes));
    if (state->bundle_path) {
        oos_style_put(&style, "  everything about it is in ");
        oos_style_word(&style, state->bundle_path);
        oos_text_put(text, "\n");
    }
}

static void put_owners_json(oos_json_writer *w, const char *key, const uint64_t owners[OOS_SEGMENT_OWNERS])
{
    oos_json_field_object(w, key);
    for (unsigned owner = 0; owner < OOS_OWNER_COUNT; owner++)
        if (owners[owner]) oos_json_field_u64(w, oos_owner_word(owner), owners[owner]);
    oos_json_end_object(w);
}

static void put_phases_json(oos_json_writer *w, const oos_run_device *device)
{
    oos_json_field_array(w, "phases");
    for (unsigned phase = 0; phase < OOS_PHASE_COUNT; phase++) {
        if (!device->phase_bytes[phase]) continue;
        oos_json_begin_object(w);
        oos_json_field_str(w, "phase", oos_phase_word(phase));
        oos_json_field_u64(w, "held_bytes", device->phase_bytes[phase]);
        put_owners_json(w, "owners", device->owners_by_phase[phase]);
        oos_json_end_object(w);
    }
    oos_json_end_array(w);
}

static void put_refusal_json(oos_json_writer *w, const oos_run_device *device)
{
    if (!device->at_refusal_known) {
        oos_json_field_str(w, "at_refusal", NULL);
        return;
    }
    put_owners_json(w, "at_refusal", device->owners_at_refusal);
}

void oos_report_run_card(oos_json_writer *w, const oos_run_device *device)
{
    oos_json_field_str(w, "name", device->card);
    oos_json_key(w, "compute_capability");
    if (device->capability)
        oos_json_put_f64(w, device->capability / 10.0);
    else
        oos_json_put_null(w);
}

static void put_device_json(oos_json_writer *w, const oos_run_device *device)
{
    oos_json_begin_object(w);
    oos_json_field_str(w, "bus_id", device->bus_id);
    oos_report_run_card(w, device);
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
    oos_json_field_object(w, "at_peak");
    for (unsigned use = 0; use < OOS_USE_COUNT; use++)
        if (device->at_peak[use]) oos_json_field_u64(w, oos_use_word(use), device->at_peak[use]);
    oos_json_end_object(w);
    put_owners_json(w, "owners", device->owners_now);
    put_owners_json(w, "owners_at_peak", device->owners_at_peak);
    put_refusal_json(w, device);
    put_phases_json(w, device);
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
    oos_json_field_str(w, "owner", growth->owner < OOS_OWNER_COUNT ? oos_owner_word(growth->owner) : NULL);
    oos_json_field_u64(w, "bytes_per_hour", oos_u64_from(growth->slope.per));
    oos_json_field_u64(w, "low", oos_u64_from(growth->slope.low));
    oos_json_field_u64(w, "high", oos_u64_from(growth->slope.high));
    oos_json_field_u64(w, "seconds", oos_u64_from(growth->slope.span * 3600));
    oos_json_key(w, "seconds_to_limit");
    if (growth->hours_to_limit > 0)
        oos_json_put_u64(w, oos_u64_from(growth->hours_to_limit * 3600));
    else
        oos_json_put_null(w);
    oos_json_end_object(w);
}

static void put_serving_json(oos_json_writer *w, const oos_serving *serving)
{
    oos_json_key(w, "serving");
    if (!serving->requests_known && !serving->kv_known) {
        oos_json_put_null(w);
        return;
    }
    oos_json_begin_object(w);
    if (serving->requests_known) {
        oos_json_field_u64(w, "running", serving->running);
        oos_json_field_u64(w, "waiting", serving->waiting);
    }
    if (serving->kv_known) oos_json_field_u64(w, "kv_used_permille", (uint64_t)(serving->kv_used * 1000));
    oos_json_end_object(w);
}

static void put_unseen_json(oos_json_writer *w, const oos_run_state *state)
{
    static const char *const words[] = {NULL, "in force", "not in force", "not in force"};
    _Static_assert(sizeof words / sizeof *words == OOMSIGHT_RUN_LIMIT_FOR_NOBODY + 1, "words for each limit");
    oos_json_field_u64(w, "processes_seen", state->seen_count);
    oos_json_field_array(w, "not_seen");
    for (unsigned i = 0; i < state->unseen_count; i++) {
        oos_json_begin_object(w);
        oos_json_field_u64(w, "pid", state->unseen[i].pid);
        oos_json_field_str(w, "name", state->unseen[i].name);
        oos_json_field_str(w, "why", oos_unseen_word(state->unseen[i].why));
        oos_json_end_object(w);
    }
    oos_json_end_array(w);
    oos_json_field_str(w, "limit", words[state->limit]);
    oos_json_key(w, "budget_asked_bytes");
    if (state->asked_bytes)
        oos_json_put_u64(w, state->asked_bytes);
    else
        oos_json_put_null(w);
}

void oos_report_run_json(oos_text *text, const oos_run_told *run)
{
    const oos_run_state *state = &run->state;
    oos_json_writer writer = {.text = text, .pretty_depth = 2}, *w = &writer;
    oos_json_begin_object(w);
    oos_json_field_str(w, "schema", "oomsight.run/1");
    oos_json_field_str(w, "phase", state->phase < OOS_PHASE_COUNT ? oos_phase_word(state->phase) : NULL);
    oos_json_field_array(w, "devices");
    for (unsigned i = 0; i < state->device_count; i++) put_device_json(w, &state->devices[i]);
    oos_json_end_array(w);
    oos_json_field_array(w, "processes");
    for (unsigned i = 0; i < state->process_count; i++) put_process_json(w, &state->processes[i]);
    oos_json_end_array(w);
    put_unseen_json(w, state);
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
        oos_json_field_str(w, "by", oos_run_refused_by(state));
        oos_json_end_object(w);
    } else
        oos_json_put_null(w);
    oos_json_field_str(w, "bundle", state->bundle_path);
    oos_json_field_array(w, "growth");
    for (size_t i = 0; i < run->growth_count; i++) put_growth_json(w, &run->growth[i]);
    oos_json_end_array(w);
    put_serving_json(w, &run->serving);
    oos_json_end_object(w);
    oos_text_put(text, "\n");
}
