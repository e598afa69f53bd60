/* The engine's log: which phase it is in, and the figures it prints, by the words that `explain` reads them with. A line that is
 * not known changes nothing. */
#include "base/locale.h"
#include "dryrun/dryrun.h"
#include "explain/explain.h"

#include <stdio.h>
#include <stdlib.h>

const oos_engine_words oos_dryrun_program = {.name = "torch", .title = "PyTorch"};

void oos_dryrun_log_init(oos_dryrun_log *log, oos_line_reader *reader)
{
    *log = (oos_dryrun_log){.reader = reader,
                            .phase = OOS_PHASE_ENV,
                            .failed = OOS_PHASE_COUNT,
                            .ready_line = oos_engine_default->ready};
}

static const char *find(oos_view line, const char *text)
{
    return line.len ? memmem(line.ptr, line.len, text, strlen(text)) : NULL;
}

/* The largest of what the ranks print; nothing rounded once the very bytes are known. */
static void keep_largest(oos_dryrun_figure *kept, oos_u64 found, bool exact)
{
    if (kept->exact && !exact) return;
    if (!kept->bytes.known || found.value > kept->bytes.value || (exact && !kept->exact))
        *kept = (oos_dryrun_figure){found, exact};
}

static void keep_smallest(oos_dryrun_figure *kept, oos_u64 found, bool exact)
{
    if (kept->exact && !exact) return;
    if (!kept->bytes.known || found.value < kept->bytes.value || (exact && !kept->exact))
        *kept = (oos_dryrun_figure){found, exact};
}

/* What the dry run's own module prints (shim/python/oomsight_aid.py): "measured weights 123". */
static void take_measured(oos_dryrun_log *log, oos_view line)
{
    static const char says[] = "oomsight dryrun: measured ";
    const char *at = find(line, says);
    if (!at) return;
    oos_view const rest = oos_view_slice(line, (size_t)(at - line.ptr) + sizeof says - 1, line.len);
    char text[64];
    snprintf(text, sizeof text, "%.*s", (int)oos_min(rest.len, sizeof text - 1), rest.ptr);
    char *number = strpbrk(text, "0123456789");
    if (!number || number == text) return;
    oos_u64 const bytes = oos_u64_of(strtoull(number, NULL, 10));
    number[-1] = '\0';
    if (strcmp(text, "weights") == 0) keep_largest(&log->weights, bytes, true);
    if (strcmp(text, "peak") == 0) keep_largest(&log->activation_peak, bytes, true);
    if (strcmp(text, "parameters") == 0) keep_largest(&log->parameters, bytes, true);
    if (strcmp(text, "gradients") == 0) keep_largest(&log->gradients, bytes, true);
    if (strcmp(text, "optimizer") == 0) keep_largest(&log->optimizer, bytes, true);
    if (strcmp(text, "available") == 0) keep_smallest(&log->kv_available, bytes, true);
    if (strcmp(text, "budget") == 0) log->budget_bytes = bytes;
    if (strcmp(text, "graph estimate") == 0) log->graph_estimate_bytes = bytes;
}

/* "engine vllm 0.32.0": a process has come to a function of that engine, whatever the command was. */
static void take_engine(oos_dryrun_log *log, oos_view line)
{
    static const char says[] = "oomsight dryrun: engine ";
    char text[128], name[32], version[sizeof log->engine_version];
    const char *at = find(line, says);
    if (!at || log->engine) return;
    oos_view const rest = oos_view_slice(line, (size_t)(at - line.ptr) + sizeof says - 1, line.len);
    snprintf(text, sizeof text, "%.*s", (int)oos_min(rest.len, sizeof text - 1), rest.ptr);
    if (sscanf(text, "%31s %31s", name, version) != 2 || !oos_engine_words_find(name)) return;
    log->engine = oos_engine_words_find(name);
    log->ready_line = log->engine->ready;
    log->program = false;
    memcpy(log->engine_version, version, sizeof version);
}

static void keep_message(oos_dryrun_log *log, oos_view line, const char *from)
{
    if (log->message[0]) return;
    size_t len = (size_t)(line.ptr + line.len - from);
    if (len >= sizeof log->message) len = sizeof log->message - 1;
    memcpy(log->message, from, len);
    log->message[len] = '\0';
}

/* ---- a line by its signals (data/explain/signals.json) ---- */

typedef struct reading {
    oos_dryrun_log *log;
    oos_view line;
    oos_phase failed; /* where a refusal says that it stands; else OOS_PHASE_COUNT */
    bool oom, refusal, muted;
    oos_u64 tried, allocated, private_pools;
} reading;

static void take_number(reading *r, oos_number_id id, oos_u64 value)
{
    oos_dryrun_log *log = r->log;
    /* The summary at the end of a start counts more than weights under this name. */
    if (id == OOS_NUMBER_weights && log->phase <= OOS_PHASE_KV_SIZING)
        keep_largest(&log->weights, value, false);
    if (id == OOS_NUMBER_kv_available) keep_smallest(&log->kv_available, value, false);
    if (id == OOS_NUMBER_activation_peak) keep_largest(&log->activation_peak, value, false);
    if (id == OOS_NUMBER_kv_tokens) log->kv_tokens = value;
    if (id == OOS_NUMBER_tried) r->tried = value;
    if (id == OOS_NUMBER_torch_allocated) r->allocated = value;
    if (id == OOS_NUMBER_private_pools) r->private_pools = value;
}

static void take_text(oos_dryrun_log *log, const oos_capture *capture)
{
    char text[sizeof log->backend];
    snprintf(text, sizeof text, "%.*s", (int)oos_min(capture->text.len, sizeof text - 1), capture->text.ptr);
    if (strcmp(capture->name, "text_backend") == 0 && !log->backend[0])
        memcpy(log->backend, text, sizeof text);
    if (strcmp(capture->name, "text_concurrency") == 0)
        log->max_concurrency = (oos_f64){true, oos_real_read(text, NULL)};
}

/* A trial capture prints what a real one does, and only the real one comes after the cache has its size. */
static bool is_trial(const oos_dryrun_log *log, oos_phase phase)
{
    return phase > OOS_PHASE_KV_ALLOC && log->phase == OOS_PHASE_CUDAGRAPH_PROFILE;
}

/* A phase is never left backwards, because several processes print the same line one after the other; and of what
 * comes while it serves the allocations tell more than lines do. */
static void take_mark(oos_dryrun_log *log, const oos_signal *signal)
{
    oos_phase const phase = signal->kind == OOS_SIGNAL_START   ? OOS_PHASE_INIT_FREE_MEMORY_CHECK
                            : signal->kind == OOS_SIGNAL_READY ? OOS_PHASE_RUNTIME_PREFILL
                            : signal->kind == OOS_SIGNAL_MARKER && !signal->quiet ? signal->phase
                                                                                  : OOS_PHASE_COUNT;
    oos_phase const now = log->program ? OOS_PHASE_ENV : log->phase;
    if (!log->told && phase <= OOS_PHASE_RUNTIME_PREFILL && phase > now && !is_trial(log, phase))
        log->phase = phase;
}

static void on_signal(void *context, const oos_signal *signal, const oos_match *match)
{
    reading *r = context;
    r->oom |= signal->kind == OOS_SIGNAL_OOM;
    r->muted |= signal->kind == OOS_SIGNAL_MUTE;
    if (signal->kind == OOS_SIGNAL_REFUSAL) {
        r->refusal = true;
        r->failed = signal->phase;
    }
    for (size_t i = 0; i < match->count; i++) {
        oos_number_id id;
        oos_number number;
        if (strncmp(match->captures[i].name, "text_", 5) == 0)
            take_text(r->log, &match->captures[i]);
        else if (oos_number_read(&match->captures[i], 0, &id, &number) && !number.negative)
            take_number(r, id, oos_u64_of(number.value));
    }
    take_mark(r->log, signal);
    r->log->compiled |= strcmp(signal->id, "compile.cold") == 0;
    r->log->from_cache |= strcmp(signal->id, "compile.cached") == 0;
}

/* Behind the name of an exception, "RuntimeError: "; NULL: none is named. */
static const char *exception_text(oos_view line)
{
    static const char word[] = "Error: ";
    const char *at = find(line, word);
    return at && at > line.ptr && at[-1] != ' ' ? at + sizeof word - 1 : NULL;
}

static void take_failure(const reading *r)
{
    oos_dryrun_log *log = r->log;
    const char *text = exception_text(r->line);
    if (r->oom && !r->muted && !find(r->line, "except torch")) { /* source in a traceback */
        bool const first = !log->ran_out || !log->tried_bytes.known;
        log->ran_out = true;
        log->recovered = false;
        if (log->failed == OOS_PHASE_COUNT) log->failed = log->phase;
        if (!first) return;
        if (r->tried.known) {
            log->tried_bytes = r->tried;
            log->allocated_bytes = r->allocated;
            log->private_pool_bytes = r->private_pools;
            log->message[0] = '\0';
        }
        keep_message(log, r->line, text ? text : r->line.ptr);
    } else if (r->refusal && text && !log->refused) {
        log->refused = true;
        if (log->failed == OOS_PHASE_COUNT)
            log->failed = r->failed == OOS_PHASE_COUNT ? log->phase : r->failed;
        keep_message(log, r->line, text);
    }
}

/* An engine that dies while it serves: the exception it began with, not those that follow from it. One that does not start: the last,
 * because a start logs some that it goes on from. */
static void take_error(oos_dryrun_log *log, oos_view line)
{
    static const char *const follow[] = {
        "EngineDeadError",  "EngineCore encountered", "Internal Server Error", "InternalServerError",
        "oomsight dryrun:", "initialization failed",  "Initialization failed"};
    const char *at = find(line, "Error: ");
    char *kept = log->ready ? log->error : log->start_error;
    if ((log->ready && log->error[0]) || !at) return;
    for (size_t i = 0; i < sizeof follow / sizeof *follow; i++)
        if (find(line, follow[i])) return;
    while (at > line.ptr && at[-1] != ' ') at--; /* its whole name */
    size_t len = (size_t)(line.ptr + line.len - at);
    if (len >= sizeof log->error) len = sizeof log->error - 1;
    memcpy(kept, at, len);
    kept[len] = '\0';
}

void oos_dryrun_log_told(oos_dryrun_log *log, const oos_segment *segment)
{
    bool told = false;
    uint32_t furthest = 0;
    for (unsigned i = 0; i < OOS_SEGMENT_PROCESSES; i++) {
        const oos_segment_process *process = &segment->processes[i];
        if (!__atomic_load_n(&process->told, __ATOMIC_ACQUIRE)) continue;
        told = true;
        if (process->phase > furthest && process->phase < OOS_PHASE_COUNT) furthest = process->phase;
    }
    if (!told || (log->told && log->told_phase == furthest)) return;
    log->told = true;
    log->phase = log->told_phase = furthest;
}

bool oos_dryrun_log_line(oos_dryrun_log *log, oos_view line)
{
    oos_phase const before = log->phase;
    reading r = {.log = log, .line = line, .failed = OOS_PHASE_COUNT};
    oos_line_read(log->reader, line, on_signal, &r);
    if (!log->told && log->phase < OOS_PHASE_QUANT_POSTPROCESS &&
        find(line, "oomsight dryrun: weights are repacked"))
        log->phase = OOS_PHASE_QUANT_POSTPROCESS;
    if (log->phase == OOS_PHASE_RUNTIME_PREFILL &&
        find(line, "oomsight dryrun: out of memory in the sampler"))
        log->phase = OOS_PHASE_RUNTIME_SAMPLER;
    if (log->ready_line && find(line, log->ready_line)) {
        log->ready = true;
        log->recovered = log->ran_out;
    }
    take_engine(log, line);
    take_measured(log, line);
    take_failure(&r);
    take_error(log, line);
    return log->phase != before;
}
