/* The engine's log: which phase it is in, and the figures it prints. Lines of vLLM 0.8 to 0.32 and of SGLang 0.5; a line that is not
 * known changes nothing. */
#include "base/locale.h"
#include "dryrun/dryrun.h"

#include <stdlib.h>

/* A text that begins a phase. The order is that of a start; a phase is never left backwards, because several processes
 * print the same line one after the other. */
static const struct {
    const char *text;
    oos_phase phase;
} marks[] = {
    {"Initializing a V1 LLM engine", OOS_PHASE_INIT_FREE_MEMORY_CHECK},
    {"Initializing an LLM engine", OOS_PHASE_INIT_FREE_MEMORY_CHECK},
    {"vLLM is using nccl", OOS_PHASE_DISTRIBUTED_INIT},
    {"Starting to load model", OOS_PHASE_WEIGHT_LOAD},
    {"Loading model from scratch", OOS_PHASE_WEIGHT_LOAD},
    {"Loading weights took", OOS_PHASE_QUANT_POSTPROCESS},
    {"oomsight dryrun: weights are repacked", OOS_PHASE_QUANT_POSTPROCESS},
    {"Model loading took", OOS_PHASE_PROFILE_RUN},
    {"Encoder cache will be initialized", OOS_PHASE_MM_PROFILE},
    {"Profiling CUDA graph memory", OOS_PHASE_CUDAGRAPH_PROFILE},
    {"Available KV cache memory", OOS_PHASE_KV_SIZING},
    {"memory for KV Cache as specified by", OOS_PHASE_KV_SIZING},
    {"GPU KV cache size", OOS_PHASE_KV_ALLOC},
    {"Compile and warming up model for size", OOS_PHASE_COMPILE},
    {"Capturing CUDA graph", OOS_PHASE_CUDAGRAPH_CAPTURE},
    {"Graph capturing finished", OOS_PHASE_SAMPLER_WARMUP},
    {"init engine (profile, create kv cache", OOS_PHASE_RUNTIME_PREFILL},
    {"Init parallel begin", OOS_PHASE_DISTRIBUTED_INIT},
    {"Load weight begin", OOS_PHASE_WEIGHT_LOAD},
    {"Load weight end", OOS_PHASE_KV_SIZING},
    {"KV Cache is allocated", OOS_PHASE_KV_ALLOC},
    {"CUDA graph begin", OOS_PHASE_CUDAGRAPH_CAPTURE},
    {"Capture cuda graph begin", OOS_PHASE_CUDAGRAPH_CAPTURE},
    {"max_total_num_tokens=", OOS_PHASE_RUNTIME_PREFILL},
    {"Application startup complete", OOS_PHASE_RUNTIME_PREFILL},
};

static const char *const out_of_memory[] = {
    "CUDA out of memory. Tried to allocate",
    "torch.OutOfMemoryError",
    "CUDA error: out of memory",
    "CUDA Error: out of memory",
    "CUDA driver error: out of memory",
    "OutOfMemoryError: CUDA out of memory",
};

static const char *const refusals[] = {
    "No available memory for the cache blocks",
    "larger than the available KV cache memory",
    "is less than desired GPU memory utilization",
    "larger than the maximum number of tokens that can be stored in KV cache",
    "Not enough memory. Please try to increase --mem-fraction-static",
    "leave no GPU memory for the KV cache",
};

void oos_dryrun_log_init(oos_dryrun_log *log)
{
    *log = (oos_dryrun_log){
        .phase = OOS_PHASE_ENV, .failed = OOS_PHASE_COUNT, .ready_line = oos_engine_list[0].ready};
}

static const char *find(oos_view line, const char *text)
{
    return line.len ? memmem(line.ptr, line.len, text, strlen(text)) : NULL;
}

/* The number behind a text: "took 2.45 GiB", "size: 101,904 tokens", "allocate 40.00 MiB". */
static bool number_after(oos_view line, const char *text, double *ret_number, const char **ret_rest)
{
    const char *at = find(line, text);
    if (!at) return false;
    at += strlen(text);
    char digits[40];
    size_t len = 0;
    const char *end = line.ptr + line.len;
    while (at < end && *at == ' ') at++;
    while (at < end && len + 1 < sizeof digits && (strchr("0123456789.-", *at) || *at == ',')) {
        if (*at != ',') digits[len++] = *at;
        at++;
    }
    digits[len] = '\0';
    if (len == 0) return false;
    *ret_number = oos_real_read(digits, NULL);
    *ret_rest = at;
    return true;
}

static bool bytes_after(oos_view line, const char *text, oos_u64 *ret_bytes)
{
    double number;
    const char *rest;
    if (!number_after(line, text, &number, &rest) || number < 0) return false;
    size_t const left = (size_t)(line.ptr + line.len - rest);
    /* vLLM 0.8 wrote GB and meant GiB */
    static const struct {
        const char *word;
        double bytes;
    } units[] = {{"GiB", 0x1p30}, {"MiB", 0x1p20}, {"KiB", 0x1p10}, {"GB", 0x1p30}};
    double unit = 1.0;
    for (size_t i = 0; i < sizeof units / sizeof *units && unit == 1.0; i++) {
        size_t const space = left && *rest == ' ', len = strlen(units[i].word);
        if (left - space >= len && memcmp(rest + space, units[i].word, len) == 0) unit = units[i].bytes;
    }
    *ret_bytes = oos_u64_of((uint64_t)(number * unit + 0.5));
    return true;
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

/* What the dry run's own module prints (shim/python/oomsight_aid.py). */
static void take_measured(oos_dryrun_log *log, oos_view line)
{
    oos_u64 bytes;
    if (bytes_after(line, "oomsight dryrun: measured weights", &bytes))
        keep_largest(&log->weights, bytes, true);
    if (bytes_after(line, "oomsight dryrun: measured peak", &bytes))
        keep_largest(&log->activation_peak, bytes, true);
    if (bytes_after(line, "oomsight dryrun: measured available", &bytes))
        keep_smallest(&log->kv_available, bytes, true);
    if (bytes_after(line, "oomsight dryrun: measured budget", &bytes)) log->budget_bytes = bytes;
    if (bytes_after(line, "oomsight dryrun: measured graph estimate", &bytes))
        log->graph_estimate_bytes = bytes;
}

static void keep_message(oos_dryrun_log *log, oos_view line, const char *from)
{
    if (log->message[0]) return;
    size_t len = (size_t)(line.ptr + line.len - from);
    if (len >= sizeof log->message) len = sizeof log->message - 1;
    memcpy(log->message, from, len);
    log->message[len] = '\0';
}

static void take_figures(oos_dryrun_log *log, oos_view line)
{
    oos_u64 bytes;
    double number;
    const char *rest;
    if (bytes_after(line, "Model loading took", &bytes)) keep_largest(&log->weights, bytes, false);
    if (bytes_after(line, "Available KV cache memory:", &bytes))
        keep_smallest(&log->kv_available, bytes, false);
    if (find(line, "Load weight end") && bytes_after(line, "mem usage=", &bytes))
        keep_largest(&log->weights, bytes, false);
    if (number_after(line, "max_total_num_tokens=", &number, &rest) ||
        number_after(line, "GPU KV cache size:", &number, &rest))
        log->kv_tokens = oos_u64_of((uint64_t)number);
    if (number_after(line, "tokens per request:", &number, &rest))
        log->max_concurrency = (oos_f64){true, number};
    /* "... GiB for peak activation" */
    if (bytes_after(line, "(weights + non-torch),", &bytes) ||
        bytes_after(line, "torch peak memory increase:", &bytes))
        keep_largest(&log->activation_peak, bytes, false);

    /* a backend that was asked for: "Using AttentionBackendEnum.FLASHINFER backend." */
    static const char asked[] = "Using AttentionBackendEnum.";
    const char *named = find(line, asked), *after = named ? find(line, " backend") : NULL;
    if (after && after > named + sizeof asked - 1 && !log->backend[0]) {
        named += sizeof asked - 1;
        size_t len = (size_t)(after - named);
        if (len < sizeof log->backend && !memchr(named, ' ', len)) memcpy(log->backend, named, len);
    }
    static const char *const before_backend[] = {"attention backend out of", "backend on V1 engine",
                                                 "backend for head_size"};
    const char *using = find(line, "Using ");
    for (size_t i = 0; using && i < 3; i++) {
        const char *end = find(line, before_backend[i]);
        if (!end || end < using + 6 || log->backend[0]) continue;
        size_t len = (size_t)(end - using) - 6;
        while (len && using[6 + len - 1] == ' ') len--;
        if (len >= sizeof log->backend) len = sizeof log->backend - 1;
        memcpy(log->backend, using + 6, len);
    }
}

static void take_failure(oos_dryrun_log *log, oos_view line)
{
    for (size_t i = 0; i < sizeof out_of_memory / sizeof *out_of_memory; i++) {
        const char *at = find(line, out_of_memory[i]);
        if (!at) continue;
        if (find(line, "_OutOfMemoryError") || find(line, "except torch"))
            continue; /* source in a traceback */
        bool const first = !log->ran_out || !log->tried_bytes.known;
        oos_u64 tried;
        log->ran_out = true;
        if (log->failed == OOS_PHASE_COUNT) log->failed = log->phase;
        if (!first) return;
        if (bytes_after(line, "Tried to allocate", &tried)) {
            log->tried_bytes = tried;
            log->message[0] = '\0';
            bytes_after(line, "this process has", &tried);
            bytes_after(line, "Of the allocated memory", &log->allocated_bytes);
            bytes_after(line, "with", &log->private_pool_bytes);
        }
        keep_message(log, line, at);
        return;
    }
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals && !log->refused; i++) {
        if (!find(line, refusals[i])) continue;
        const char *error = find(line, "Error: ");
        if (!error) continue;
        log->refused = true;
        if (log->failed == OOS_PHASE_COUNT)
            log->failed = i == 2 ? OOS_PHASE_INIT_FREE_MEMORY_CHECK : OOS_PHASE_KV_SIZING;
        keep_message(log, line, error + 7);
    }
}

/* An engine that dies while it serves: the exception it began with, not those that follow from it. */
static void take_error(oos_dryrun_log *log, oos_view line)
{
    static const char *const follow[] = {"EngineDeadError", "EngineCore encountered", "Internal Server Error",
                                         "InternalServerError", "oomsight dryrun:"};
    const char *at = find(line, "Error: ");
    if (!log->ready || log->error[0] || !at) return;
    for (size_t i = 0; i < sizeof follow / sizeof *follow; i++)
        if (find(line, follow[i])) return;
    while (at > line.ptr && at[-1] != ' ') at--; /* its whole name */
    size_t len = (size_t)(line.ptr + line.len - at);
    if (len >= sizeof log->error) len = sizeof log->error - 1;
    memcpy(log->error, at, len);
    log->error[len] = '\0';
}

/* A trial capture prints what a real one does, and only the real one comes after the cache has its size. */
static bool is_trial(const oos_dryrun_log *log, oos_phase phase)
{
    return phase > OOS_PHASE_KV_ALLOC && log->phase == OOS_PHASE_CUDAGRAPH_PROFILE;
}

static void take_mark(oos_dryrun_log *log, oos_view line)
{
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        if (marks[i].phase > log->phase && !is_trial(log, marks[i].phase) && find(line, marks[i].text))
            log->phase = marks[i].phase;
    /* 0.18 to 0.20: the trial cache of graph profiling comes before its first line */
    if (log->phase >= OOS_PHASE_PROFILE_RUN && log->phase < OOS_PHASE_CUDAGRAPH_PROFILE &&
        find(line, "Overriding num_gpu_blocks="))
        log->phase = OOS_PHASE_CUDAGRAPH_PROFILE;
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
    if (!log->told) take_mark(log, line);
    if (find(line, log->ready_line)) log->ready = true;
    log->compiled |= find(line, "Compiling a graph for ") != NULL;
    log->from_cache |= find(line, "Directly load ") != NULL;
    if (log->phase == OOS_PHASE_RUNTIME_PREFILL &&
        find(line, "oomsight dryrun: out of memory in the sampler"))
        log->phase = OOS_PHASE_RUNTIME_SAMPLER;
    take_measured(log, line);
    take_figures(log, line);
    take_failure(log, line);
    take_error(log, line);
    return log->phase != before;
}
