/* The public face of dry runs: a device description in, a segment for the stand-ins, log lines in, a report out. */
#include "api/api.h"
#include "base/file.h"
#include "base/place.h"
#include "base/text.h"
#include "dryrun/dryrun.h"
#include "facts/facts.h"
#include "model/model.h"
#include "report/report.h"

#include <oomsight/trace.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct oomsight_dryrun {
    oos_arena *arena;
    oos_segment *segment;
    oos_segment *blank; /* in its place when it was damaged */
    char *path;
    oos_device_spec spec; /* of each device, as it was asked for */
    uint32_t device_count;
    oos_phase until; /* OOS_PHASE_COUNT: none */
    oos_dryrun run;
};

static oomsight_status find_gpu(const oomsight_dryrun_params *params, oos_gpu *ret_gpu, uint64_t *ret_count,
                                oomsight_error *reterr)
{
    oos_device_ask const said = {params->gpu, params->gpu_total_bytes, params->capability};
    oos_device_found found;
    OOS_TRY(oos_device_find(&params->data->gpus, &said, &found, reterr));
    if (!found.gpu.name) found.gpu.name = "NVIDIA simulated GPU";
    if (params->gpu_used_bytes >= found.gpu.total_bytes)
        return oos_fail(reterr, OOMSIGHT_USAGE, "other processes use %llu of %llu bytes: nothing is left",
                        (unsigned long long)params->gpu_used_bytes,
                        (unsigned long long)found.gpu.total_bytes);
    *ret_gpu = found.gpu;
    *ret_count = found.count;
    return OOMSIGHT_OK;
}

/* The file with its header; the processes append. They may have another working directory, so the path is whole. */
static oomsight_status trace_begin(oomsight_dryrun *dryrun, const char *path, oomsight_error *reterr)
{
    oos_segment *segment = dryrun->segment;
    const oos_device_spec *device = &segment->devices[0].spec;
    oomsight_trace_header header = {.version = OOMSIGHT_TRACE_VERSION,
                                    .record_bytes = sizeof(oomsight_trace_record),
                                    .device_total_bytes = device->total_bytes,
                                    .device_base_bytes = device->others_bytes + device->context_bytes};
    memcpy(header.magic, OOMSIGHT_TRACE_MAGIC, sizeof header.magic);
    const char *settings = getenv("PYTORCH_CUDA_ALLOC_CONF");
    if (settings) strncpy(header.settings, settings, sizeof header.settings - 1);
    int fd;
    OOS_TRY(oos_place_open(path, false, 0666, &fd, reterr));
    FILE *file = fdopen(fd, "wb");
    if (!file) close(fd);
    bool const written = file && fwrite(&header, sizeof header, 1, file) == 1;
    if (file && fclose(file) != 0) return oos_fail(reterr, OOMSIGHT_IO, "%s: cannot be written", path);
    char *whole = written ? realpath(path, NULL) : NULL;
    bool const fits = whole && strlen(whole) < sizeof segment->trace_path;
    if (fits) {
        dryrun->run.trace_path = oos_arena_copy(dryrun->arena, oos_view_of(whole));
        memcpy(segment->trace_path, whole, strlen(whole) + 1);
    }
    free(whole);
    return fits ? OOMSIGHT_OK : oos_fail(reterr, OOMSIGHT_IO, "%s: cannot be written", path);
}

static bool is_program(const oomsight_dryrun_params *params)
{
    return params->engine && strcmp(params->engine, oos_dryrun_program.name) == 0;
}

/* Of the release that is started; 0: not known. */
static uint64_t torch_minor_of(const oomsight_dryrun_params *params)
{
    oos_version version;
    const oos_engine_facts *facts;
    const oos_engine *engine =
        oos_engine_find(params->engine ? oos_engine_words_find(params->engine) : oos_engine_default);
    if (!params->engine_version || !oos_version_parse(oos_view_of(params->engine_version), &version))
        return 0;
    if (is_program(params)) /* its version is that of PyTorch */
        return version >> 32 == 2 ? version >> 16 & 0xffff : 0;
    if (!engine || !engine->torch_minor || oos_api_facts(params->data, engine, &facts, NULL) != OOMSIGHT_OK)
        return 0;
    return engine->torch_minor(facts->rules, version);
}

/* What the machine has left, for the stand-ins to write and for the launcher to put in the place of /proc/meminfo. */
static oomsight_status machine_begin(oomsight_dryrun *dryrun, uint64_t machine_bytes, oomsight_error *reterr)
{
    char path[1024], text[512];
    dryrun->segment->machine_bytes = machine_bytes;
    snprintf(path, sizeof path, "%s.meminfo", dryrun->path);
    int const len = oos_meminfo_text(text, sizeof text, machine_bytes, machine_bytes);
    return oos_place_write(path, text, (size_t)len, reterr);
}

/* Host and device share one memory: as it was said, or because this device has no other. */
static uint64_t machine_of(const oomsight_dryrun_params *params, const oos_gpu *gpu, uint64_t count)
{
    if (params->machine_bytes) return params->machine_bytes;
    return gpu->memory == OOS_MEMORY_UNIFIED && count == 1 && !params->slice_bytes ? gpu->total_bytes : 0;
}

static oomsight_status segment_make(oomsight_dryrun *dryrun, const oomsight_dryrun_params *params,
                                    oomsight_error *reterr)
{
    oos_gpu gpu = {0};
    uint64_t count = 1;
    OOS_TRY(find_gpu(params, &gpu, &count, reterr));
    if (params->device_count) count = params->device_count;
    if (count < 1 || count > OOS_SEGMENT_DEVICES)
        return oos_fail(reterr, OOMSIGHT_USAGE, "%llu devices: a dry run has 1 to %d",
                        (unsigned long long)count, OOS_SEGMENT_DEVICES);
    uint64_t const machine_bytes = machine_of(params, &gpu, count);
    oos_device_spec specs[OOS_SEGMENT_DEVICES];
    oos_u64 const outside = {params->outside_known != 0, params->outside_bytes};
    for (uint64_t i = 0; i < count; i++) {
        oos_dryrun_device(&gpu, outside, torch_minor_of(params), &specs[i]);
        specs[i].others_bytes = params->gpu_used_bytes;
        if (machine_bytes) { /* shared memory is at most what the machine has */
            specs[i].unified = 1;
            specs[i].total_bytes = oos_min(specs[i].total_bytes, machine_bytes);
            specs[i].nvml_bytes = oos_min(specs[i].nvml_bytes, machine_bytes);
        }
        if (params->slice_bytes) { /* a slicing layer: the properties still show the whole card */
            specs[i].property_bytes = gpu.total_bytes;
            specs[i].total_bytes = specs[i].nvml_bytes = params->slice_bytes;
        }
    }
    dryrun->spec = specs[0];
    dryrun->device_count = (uint32_t)count;
    oos_segment_status const status =
        oos_segment_create(params->segment_path, specs, (uint32_t)count, &dryrun->segment);
    if (status == OOS_SEGMENT_NO_ROOM)
        return oos_fail(
            reterr, OOMSIGHT_IO,
            "%s: no room for the %llu KiB of the shared segment; a container has more with --shm-size",
            params->segment_path, (unsigned long long)oos_segment_file_bytes() >> 10);
    if (status != OOS_SEGMENT_OK)
        return oos_fail(reterr, OOMSIGHT_IO, "%s: the shared segment cannot be made", params->segment_path);
    /* until an engine says where it is: any program may be run, and what one with PyTorch takes is PyTorch's */
    bool const program = dryrun->run.log.program;
    dryrun->segment->owner = program && params->engine_version ? OOS_OWNER_PYTORCH : OOS_OWNER_UNACCOUNTED;
    if (program) dryrun->segment->phase = OOS_PHASE_RUNTIME_OTHER;
    dryrun->segment->fail_after = params->fail_after;
    if (machine_bytes) OOS_TRY(machine_begin(dryrun, machine_bytes, reterr));
    return params->trace_path ? trace_begin(dryrun, params->trace_path, reterr) : OOMSIGHT_OK;
}

static oomsight_status until_read(const char *word, oos_phase *ret_phase, oomsight_error *reterr)
{
    *ret_phase = oos_phase_find(word);
    if (word && *ret_phase == OOS_PHASE_COUNT)
        return oos_fail(reterr, OOMSIGHT_USAGE, "'%s' is no phase; a start has weight_load, profile_run, ...",
                        word);
    return OOMSIGHT_OK;
}

oomsight_status oomsight_dryrun_create(const oomsight_dryrun_params *params, oomsight_dryrun **ret_dryrun,
                                       oomsight_error *reterr)
{
    OOS_TAKE_PARAMS(oomsight_dryrun_params, params);
    if (!params->data || !params->segment_path)
        return oos_fail(reterr, OOMSIGHT_USAGE, "a dry run needs data and a place for its segment");
    oos_arena *arena = oos_arena_create(64 << 10);
    oomsight_dryrun *dryrun = arena ? OOS_NEW(arena, oomsight_dryrun) : NULL;
    if (!dryrun) {
        oos_arena_free(arena);
        return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a dry run");
    }
    dryrun->arena = arena;
    dryrun->path = oos_arena_copy(arena, oos_view_of(params->segment_path));
    oos_dryrun_log_init(&dryrun->run.log, NULL);
    dryrun->run.engine = params->engine ? oos_engine_words_find(params->engine) : NULL;
    if (!dryrun->run.engine) dryrun->run.engine = oos_engine_default;
    dryrun->run.log.ready_line = dryrun->run.engine->ready;
    if (is_program(params)) {
        dryrun->run.engine = &oos_dryrun_program;
        dryrun->run.log.program = true;
        dryrun->run.log.phase = OOS_PHASE_RUNTIME_OTHER;
    }
    if (params->engine_version)
        dryrun->run.engine_version = oos_arena_copy(arena, oos_view_of(params->engine_version));
    oomsight_status status = until_read(params->until, &dryrun->until, reterr);
    if (status == OOMSIGHT_OK)
        status = oos_line_reader_create(params->data->dir, &dryrun->run.log.reader, reterr);
    if (status == OOMSIGHT_OK) status = OOS_WHOLE_STATUS(params, segment_make(dryrun, params, reterr));
    if (status != OOMSIGHT_OK) {
        oomsight_dryrun_free(dryrun);
        return status;
    }
    *ret_dryrun = dryrun;
    return OOMSIGHT_OK;
}

void oomsight_dryrun_free(oomsight_dryrun *dryrun)
{
    if (!dryrun) return;
    oos_segment_close(dryrun->segment);
    oos_line_reader_free(dryrun->run.log.reader);
    free(dryrun->blank);
    oos_arena_free(dryrun->arena);
}

/* A file that somebody cut short must not be touched: the mapping would end us. */
static bool segment_is_whole(const oomsight_dryrun *dryrun)
{
    struct stat info;
    return stat(dryrun->path, &info) != 0 || info.st_size >= (off_t)sizeof(oos_segment);
}

unsigned oomsight_dryrun_line(oomsight_dryrun *dryrun, const char *line, size_t len)
{
    oos_dryrun_log *log = &dryrun->run.log;
    oos_phase const before = log->phase;
    bool const whole = segment_is_whole(dryrun);
    if (whole) oos_dryrun_log_told(log, dryrun->segment);
    oos_dryrun_log_line(log, (oos_view){line, len});
    if (log->phase != before && whole) {
        __atomic_store_n(&dryrun->segment->owner, (uint32_t)oos_phase_takes(log->phase), __ATOMIC_RELAXED);
        __atomic_store_n(&dryrun->segment->phase, (uint32_t)log->phase, __ATOMIC_RELAXED);
    }
    return (log->ready ? OOMSIGHT_DRYRUN_READY : 0u) | (log->ran_out ? OOMSIGHT_DRYRUN_OUT_OF_MEMORY : 0u) |
           (log->refused ? OOMSIGHT_DRYRUN_REFUSED : 0u) |
           (log->phase >= dryrun->until ? OOMSIGHT_DRYRUN_REACHED : 0u);
}

void oomsight_dryrun_watch(const oomsight_dryrun *dryrun, oomsight_dryrun_look *ret_moment)
{
    oomsight_dryrun_look moment = OOMSIGHT_DRYRUN_LOOK_INIT;
    if (segment_is_whole(dryrun)) oos_dryrun_watch(dryrun->segment, dryrun->path, &moment);
    moment.phase = dryrun->run.log.phase < OOS_PHASE_COUNT ? oos_report_point(dryrun->run.log.phase) : "";
    size_t const size = ret_moment->size; /* a caller of an older header has fewer fields */
    memcpy(ret_moment, &moment, size < sizeof moment ? size : sizeof moment);
    ret_moment->size = size;
}

void oomsight_dryrun_with(oomsight_dryrun *dryrun, const char *assignment)
{
    dryrun->run.with = oos_arena_copy(dryrun->arena, oos_view_of(assignment));
}

void oomsight_dryrun_about(oomsight_dryrun *dryrun, const char *model, double seconds)
{
    if (model) dryrun->run.model = oos_arena_copy(dryrun->arena, oos_view_of(model));
    dryrun->run.seconds = seconds;
}

void oomsight_dryrun_host(oomsight_dryrun *dryrun, const oomsight_dryrun_process *processes, size_t count)
{
    oos_dryrun_log *log = &dryrun->run.log;
    if (!segment_is_whole(dryrun)) return;
    oos_dryrun_log_told(log, dryrun->segment);
    oos_host_moment **moment = &dryrun->run.hosts[log->phase];
    if (!*moment) *moment = OOS_NEW(dryrun->arena, oos_host_moment);
    if (*moment) oos_dryrun_host_take(dryrun->segment, processes, count, *moment);
}

/* Nothing in the segment can be believed: what the log said is all there is. */
static oomsight_status finish_damaged(oomsight_dryrun *dryrun)
{
    oos_dryrun *run = &dryrun->run;
    run->damaged = true;
    run->phase_count = 0;
    if (!dryrun->blank) dryrun->blank = calloc(1, sizeof *dryrun->blank);
    if (!dryrun->blank) return OOMSIGHT_NOMEM;
    dryrun->blank->device_count = dryrun->device_count;
    for (uint32_t i = 0; i < dryrun->device_count; i++) dryrun->blank->devices[i].spec = dryrun->spec;
    return oos_dryrun_read(dryrun->arena, dryrun->blank, dryrun->path, run);
}

oomsight_status oomsight_dryrun_end(oomsight_dryrun *dryrun, const oomsight_dryrun_ending *given,
                                    oomsight_error *reterr)
{
    oos_segment *again;
    oomsight_status status = OOMSIGHT_MALFORMED;
    oomsight_dryrun_ending ending = OOMSIGHT_DRYRUN_ENDING_INIT; /* a caller of an older header has fewer */
    memcpy(&ending, given, given->size < sizeof ending ? given->size : sizeof ending);
    dryrun->run.child_exit = ending.child_exit;
    dryrun->run.child_signal = ending.child_signal;
    dryrun->run.timed_out = ending.timed_out != 0;
    dryrun->run.interrupted = ending.interrupted != 0;
    dryrun->run.load_requests = ending.load_requests;
    dryrun->run.load_answered = ending.load_answered;
    if (ending.loads && ending.load_count) {
        oomsight_dryrun_load *loads = OOS_NEW_ARRAY(dryrun->arena, oomsight_dryrun_load, ending.load_count);
        oos_load_growth *growths = OOS_NEW_ARRAY(dryrun->arena, oos_load_growth, ending.load_count);
        if (!loads || !growths) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the report");
        memcpy(loads, ending.loads, ending.load_count * sizeof *loads);
        for (unsigned i = 0; ending.samples && i < ending.load_count; i++)
            oos_dryrun_growth(ending.samples, ending.sample_count, i, &growths[i]);
        dryrun->run.loads = loads;
        dryrun->run.growths = growths;
        dryrun->run.load_count = ending.load_count;
    }
    if (dryrun->run.log.engine && dryrun->run.engine != dryrun->run.log.engine) {
        dryrun->run.engine = dryrun->run.log.engine;
        dryrun->run.engine_version = dryrun->run.log.engine_version;
    }
    if (oos_segment_open(dryrun->path, &again) == OOS_SEGMENT_OK) {
        oos_segment_close(again);
        status = oos_dryrun_read(dryrun->arena, dryrun->segment, dryrun->path, &dryrun->run);
    }
    if (status != OOMSIGHT_OK) status = finish_damaged(dryrun);
    return status == OOMSIGHT_OK ? OOMSIGHT_OK : oos_fail(reterr, status, "no memory for the report");
}

int oomsight_dryrun_result_get(const oomsight_dryrun *dryrun, oomsight_dryrun_result *ret_result)
{
    const oos_dryrun *run = &dryrun->run;
    const oos_dryrun_log *log = &run->log;
    oomsight_dryrun_result result = {
        .verdict = run->verdict,
        .phase = log->failed == OOS_PHASE_COUNT ? NULL : oos_phase_word(log->failed),
        .message = log->message[0] ? log->message
                   : log->error[0] ? log->error
                                   : NULL,
        .engine = run->engine->name,
        .engine_version = run->engine_version,
        .gpu = dryrun->spec.name,
        .device_count = dryrun->device_count,
        .total_bytes = dryrun->spec.total_bytes,
        .tried_bytes = oos_u64_or(log->tried_bytes, OOMSIGHT_UNKNOWN),
        .weights_bytes = oos_u64_or(log->weights.bytes, OOMSIGHT_UNKNOWN),
        .activation_bytes = oos_u64_or(log->activation_peak.bytes, OOMSIGHT_UNKNOWN),
        .kv_available_bytes = oos_u64_or(log->kv_available.bytes, OOMSIGHT_UNKNOWN),
        .kv_tokens = oos_u64_or(log->kv_tokens, OOMSIGHT_UNKNOWN),
        .child_exit = run->child_exit,
        .child_signal = run->child_signal,
        .timed_out = run->timed_out,
        .moment_count = run->phase_count};
    for (size_t i = 0; i < run->phase_count; i++)
        result.peak_bytes = oos_max(result.peak_bytes, run->phases[i].peak_bytes);
    oos_params_give(ret_result, &result, sizeof result);
    return 1;
}

int oomsight_dryrun_moment(const oomsight_dryrun *dryrun, size_t index, oomsight_moment *ret_moment)
{
    return index < dryrun->run.phase_count && oos_api_moment_give(&dryrun->run.phases[index], ret_moment);
}

int oomsight_dryrun_hold(const oomsight_dryrun *dryrun, size_t moment_index, size_t index,
                         oomsight_hold *ret_hold)
{
    return moment_index < dryrun->run.phase_count &&
           oos_api_hold_give(&dryrun->run.phases[moment_index].ledger, index, ret_hold);
}

oomsight_status oomsight_dryrun_render(const oomsight_dryrun *dryrun, const oomsight_render_params *params,
                                       char **ret_text, oomsight_error *reterr)
{
    OOS_TAKE_PARAMS(oomsight_render_params, params);
    oos_text text = {0};
    if (params->format == OOMSIGHT_FORMAT_JSON)
        oos_report_dryrun_json(&text, &dryrun->run);
    else if (params->format == OOMSIGHT_FORMAT_HTML)
        oos_report_dryrun_html(&text, &dryrun->run, params);
    else
        oos_report_dryrun_text(&text, &dryrun->run, params);
    return OOS_WHOLE_TEXT(params, &text, ret_text);
}

/* ---- the model ---- */

static oomsight_status builtin_write(oos_arena *arena, const char *folder, oos_view config, oos_view quant,
                                     oomsight_error *reterr)
{
    const oos_view texts[] = {config, quant};
    static const char *const names[] = {"config.json", "hf_quant_config.json"};
    if (mkdir(folder, 0700) != 0 && errno != EEXIST)
        return oos_fail(reterr, OOMSIGHT_IO, "%s: cannot be made", folder);
    for (size_t i = 0; i < 2; i++) {
        const char *path = oos_arena_format(arena, "%s/%s", folder, names[i]);
        if (!path) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a path");
        if (texts[i].len) OOS_TRY(oos_place_write(path, texts[i].ptr, texts[i].len, reterr));
    }
    return OOMSIGHT_OK;
}

static oomsight_status model_settle(oos_arena *arena, const char *data_dir, const char *word,
                                    const char *folder, oomsight_model_place *ret_place,
                                    oomsight_error *reterr)
{
    oos_hub_id id;
    oos_listed listed;
    *ret_place = OOMSIGHT_MODEL_ON_DISK;
    if (oos_file_exists(word) || oos_file_is_dir(word) || !oos_hub_id_parse(arena, word, &id) ||
        oos_hfcache_find(arena, &id))
        return OOMSIGHT_OK;
    *ret_place = OOMSIGHT_MODEL_REMOTE;
    if (strcmp(id.revision, "main") != 0) return OOMSIGHT_OK;
    oomsight_status const found = oos_catalogue_find(arena, data_dir, id.name, &listed, reterr);
    if (found == OOMSIGHT_NOT_FOUND) return OOMSIGHT_OK;
    if (found != OOMSIGHT_OK) return found;
    *ret_place = OOMSIGHT_MODEL_BUILT_IN;
    return builtin_write(arena, folder, listed.config, listed.quant, reterr);
}

oomsight_status oomsight_model_settle(const oomsight_data *data, const char *word, const char *folder,
                                      oomsight_model_place *ret_place, oomsight_error *reterr)
{
    oos_arena *arena = oos_arena_create(64 << 10);
    if (!arena) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a model");
    oomsight_status const status = model_settle(arena, data->dir, word, folder, ret_place, reterr);
    oos_arena_free(arena);
    return status;
}

int oomsight_model_lacks_processor(const oomsight_data *data, const char *folder)
{
    oos_arena *arena = oos_arena_create(64 << 10);
    oos_model model;
    bool lacks = arena && oos_file_is_dir(folder) &&
                 oos_model_open_dir(arena, data->dir, folder, NULL, &model, NULL) == OOMSIGHT_OK &&
                 model.multimodal;
    for (size_t i = 0; lacks && i < OOS_PROCESSOR_FILES; i++) {
        const char *path = oos_arena_format(arena, "%s/%s", folder, oos_processor_files[i]);
        lacks = !path || !oos_file_exists(path);
    }
    oos_arena_free(arena);
    return lacks;
}
