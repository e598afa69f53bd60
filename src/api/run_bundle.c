/* The bundle of a guarded run: the events as a trace, and the page that holds its figures together. The schema is that of the vLLM
 * plugin's bundle (bindings/python/oomsight/_bundle.py), which is written inside the engine. */
#include "api/api.h"
#include "base/text.h"
#include "base/file.h"
#include "base/json.h"
#include "base/json_write.h"
#include "base/place.h"
#include "report/report.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { ANSWER_MOST = 64 << 20 };

oomsight_status oomsight_run_trace(const oomsight_run *run, const char *path, oomsight_error *reterr)
{
    oomsight_trace_header header;
    oomsight_trace_record *events = malloc(OOS_SEGMENT_EVENTS * sizeof *events);
    char *bytes = malloc(sizeof header + OOS_SEGMENT_EVENTS * sizeof *events);
    oomsight_status status = OOMSIGHT_NOMEM;
    if (events && bytes) {
        size_t const count = oos_run_events(run->segment, &header, events);
        const char *settings = getenv("PYTORCH_CUDA_ALLOC_CONF");
        if (settings) strncpy(header.settings, settings, sizeof header.settings - 1);
        memcpy(bytes, &header, sizeof header);
        memcpy(bytes + sizeof header, events, count * sizeof *events);
        status = oos_place_write(path, bytes, sizeof header + count * sizeof *events, reterr);
    } else
        oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the trace");
    free(events);
    free(bytes);
    return status;
}

/* An answer of ours in the folder; NULL: there is none. */
static json_t *answer_read(oos_arena *arena, const char *folder, const char *name)
{
    char path[1024];
    oos_view bytes;
    json_t *root;
    oomsight_error error;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (oos_file_read(arena, path, ANSWER_MOST, &bytes, &error) != OOMSIGHT_OK) return NULL;
    return oos_json_load(arena, bytes, &root, &error) == OOMSIGHT_OK ? root : NULL;
}

static void put_word_of(oos_json_writer *w, const json_t *from, const char *key)
{
    const char *word = NULL;
    if (!oos_json_str(from, key, &word)) word = NULL;
    oos_json_field_str(w, key, word);
}

static void put_number_of(oos_json_writer *w, const json_t *from, const char *key)
{
    uint64_t number;
    oos_u64 found = {0};
    if (oos_json_u64(from, key, &number)) found = oos_u64_of(number);
    oos_json_field_known(w, key, found);
}

static const oos_run_device *fullest(const oos_run_state *state)
{
    const oos_run_device *found = NULL;
    for (unsigned i = 0; i < state->device_count; i++)
        if (!found || state->devices[i].at_refusal_known ||
            (!found->at_refusal_known && state->devices[i].peak_bytes > found->peak_bytes))
            found = &state->devices[i];
    return found;
}

static void put_measured(oos_json_writer *w, const oos_run_state *state)
{
    const oos_run_device *device = fullest(state);
    uint64_t held = 0;
    oos_json_field_object(w, "measured");
    if (device) {
        for (unsigned owner = 0; owner < OOS_SEGMENT_OWNERS; owner++)
            held += device->at_refusal_known ? device->owners_at_refusal[owner] : device->owners_now[owner];
        oos_json_field_str(w, "bus_id", device->bus_id);
        oos_report_run_card(w, device);
        oos_json_field_u64(w, "total_bytes", device->total_bytes);
        oos_json_field_u64(w, "budget_bytes", device->budget_bytes);
        oos_json_field_u64(w, "held_bytes", held);
        oos_json_field_u64(w, "outside_bytes",
                           device->at_refusal_known ? device->refusal_outside_bytes : device->outside_bytes);
    }
    if (state->any_refused) {
        oos_json_field_u64(w, "tried_bytes", state->first_refused.bytes);
        oos_json_field_u64(w, "free_bytes", state->first_refused.free_bytes);
    }
    oos_json_end_object(w);
}

static void put_files(oos_json_writer *w, oos_arena *arena, const char *folder)
{
    const char *names[64];
    size_t count = 0;
    DIR *place = opendir(folder);
    for (const struct dirent *entry; place && count < 64 && (entry = readdir(place));)
        if (entry->d_name[0] != '.') names[count++] = oos_arena_copy(arena, oos_view_of(entry->d_name));
    if (place) closedir(place);
    qsort(names, count, sizeof *names, oos_text_order);
    oos_json_field_strs(w, "files", names, count);
}

static void put_plan(oos_json_writer *w, const json_t *plan)
{
    oos_json_key(w, "plan");
    if (!plan) {
        oos_json_put_null(w);
        return;
    }
    oos_json_begin_object(w);
    put_word_of(w, plan, "verdict");
    put_word_of(w, plan, "phase");
    put_number_of(w, plan, "tried_bytes");
    put_number_of(w, plan, "weights_bytes");
    oos_json_end_object(w);
}

/* What the command is doing while the bundle is written: nobody failed who is ready. */
static const char *state_of(const oomsight_run *run, const oos_run_state *state)
{
    return !state->lives ? "ended" : run->log.ready ? "ready" : "running";
}

/* A log that does not show a cause says nothing against the one that we know: the limit of the run itself. */
static const char *cause_of(const json_t *incident, const oos_run_state *state)
{
    const char *cause = NULL, *by = oos_run_refused_by(state);
    if (!oos_json_str(incident, "cause", &cause)) cause = NULL;
    if (!by || (cause && strcmp(cause, "insufficient_info") != 0)) return cause;
    return strcmp(by, "budget") == 0 ? "run_budget" : strcmp(by, "reserve") == 0 ? "run_reserve" : cause;
}

static void put_bundle(oos_text *text, oos_arena *arena, const oomsight_run *run, const oos_run_state *state,
                       const char *folder, const char *why)
{
    oos_json_writer writer = {.text = text, .pretty_depth = 2}, *w = &writer;
    const json_t *incident = answer_read(arena, folder, "incident.json");
    if (!incident) {
        /* Nothing failed, by what the run saw; the whole log may know better. */
        incident = answer_read(arena, folder, "explain.json");
        if (!json_is_true(json_object_get(incident, "is_oom"))) incident = NULL;
    }
    const char *step = state->any_refused && state->first_refused.phase < OOS_PHASE_COUNT
                           ? oos_phase_word(state->first_refused.phase)
                       : state->phase < OOS_PHASE_COUNT ? oos_phase_word(state->phase)
                                                        : NULL;
    const char *phase = NULL;
    if (!oos_json_str(incident, "phase", &phase)) phase = step;
    oos_json_begin_object(w);
    oos_json_field_str(w, "schema", "oomsight.bundle/1");
    oos_json_field_str(w, "why", why);
    oos_json_field_str(w, "state", state_of(run, state));
    oos_json_field_str(w, "step", step);
    oos_json_field_str(w, "rank", NULL);
    oos_json_field_str(w, "phase", phase);
    oos_json_field_str(w, "cause", cause_of(incident, state));
    oos_json_field_str(w, "refused_by", oos_run_refused_by(state));
    if (state->any_refused)
        oos_json_field_u64(w, "tried_bytes", state->first_refused.bytes);
    else
        put_number_of(w, json_object_get(incident, "numbers"), "tried_bytes");
    put_measured(w, state);
    put_plan(w, answer_read(arena, folder, "plan.json"));
    put_files(w, arena, folder);
    oos_json_end_object(w);
    oos_text_put(text, "\n");
}

oomsight_status oomsight_run_bundle_index(const oomsight_run *run, const char *folder, const char *why,
                                          oomsight_error *reterr)
{
    char path[1024];
    oos_text text = {0};
    oos_arena *arena = oos_arena_create(1 << 20);
    oos_run_state *state = malloc(sizeof *state);
    oomsight_status status = OOMSIGHT_NOMEM;
    if (arena && state) {
        oos_run_read(run->segment, state);
        put_bundle(&text, arena, run, state, folder, why);
        snprintf(path, sizeof path, "%s/bundle.json", folder);
        status = text.failed ? OOMSIGHT_NOMEM : oos_place_write(path, text.ptr, text.len, reterr);
    }
    if (status == OOMSIGHT_NOMEM) oos_fail(reterr, status, "no memory for the diagnostic bundle");
    oos_text_free(&text);
    free(state);
    oos_arena_free(arena);
    return status;
}

uint64_t oomsight_run_budget(const oomsight_run *run)
{
    oos_run_state *state = malloc(sizeof *state);
    uint64_t budget = 0;
    if (state) {
        oos_run_read(run->segment, state);
        const oos_run_device *device = fullest(state);
        if (device) budget = device->budget_bytes;
    }
    free(state);
    return budget;
}

unsigned oomsight_run_gpu(const oomsight_run *run, const char **ret_name)
{
    oos_run_state *state = malloc(sizeof *state);
    unsigned capability = 0;
    *ret_name = "";
    if (state) {
        oos_run_read(run->segment, state);
        const oos_run_device *device = fullest(state);
        if (device && device->card) *ret_name = device->card;
        if (device) capability = device->capability;
    }
    free(state);
    return capability;
}

void oomsight_run_bundle_set(oomsight_run *run, const char *path)
{
    char *place = run->segment->bundle_path;
    memset(place, 0, sizeof run->segment->bundle_path);
    strncpy(place, path, sizeof run->segment->bundle_path - 1);
    __atomic_store_n(&run->segment->bundle_count, run->segment->bundle_count + 1, __ATOMIC_RELEASE);
}

unsigned oomsight_run_bundles(const oomsight_run *run, const char **ret_path)
{
    unsigned const count = __atomic_load_n(&run->segment->bundle_count, __ATOMIC_ACQUIRE);
    bool const ended = memchr(run->segment->bundle_path, 0, sizeof run->segment->bundle_path) != NULL;
    *ret_path = ended ? run->segment->bundle_path : "";
    return count;
}
