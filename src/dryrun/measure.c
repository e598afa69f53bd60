/* From the shared segment to ledgers: who held what at the highest point of each phase, and which calls were made. */
#include "dryrun/dryrun.h"
#include "facts/facts.h"

#include <stdlib.h>
#include <sys/mman.h>

_Static_assert((int)OOS_SEGMENT_PHASES == (int)OOS_PHASE_COUNT, "the segment has a row per phase");
_Static_assert((int)OOS_SEGMENT_OWNERS == (int)OOS_OWNER_COUNT, "... and per owner");

void oos_dryrun_device(const oos_gpu *gpu, oos_u64 outside_bytes, uint64_t torch_minor,
                       oos_device_spec *ret_spec)
{
    unsigned const c = gpu->capability;
    oos_driver const driver = oos_driver_of(c, &gpu->costs, torch_minor);
    oos_device_spec spec = {.total_bytes = gpu->total_bytes,
                            .property_bytes = gpu->total_bytes,
                            .nvml_bytes = gpu->slice ? gpu->total_bytes
                                                     : oos_max(gpu->total_bytes, gpu->nvml_total_bytes),
                            .capability = c,
                            .sms = gpu->sms ? gpu->sms : 100,
                            .unified = gpu->memory == OOS_MEMORY_UNIFIED,
                            .nvlink = driver.nvlink};
    size_t const len = strlen(gpu->name);
    memcpy(spec.name, gpu->name, len < sizeof spec.name ? len : sizeof spec.name - 1);
    if (outside_bytes.known)
        spec.context_bytes = outside_bytes.value;
    else {
        spec.context_bytes = driver.context_bytes;
        spec.collective_bytes = driver.collective_bytes;
        spec.kernel_bytes = driver.kernel_bytes;
        spec.first_kernel_bytes = oos_first_kernel(c, spec.sms, &driver);
        spec.kernels_bytes = driver.kernels_bytes;
        spec.graph_bytes = driver.graph.value;
        spec.graph_node_bytes = driver.graph_node.value;
    }
    *ret_spec = spec;
}

/* Bytes of one moment by owner, and how many of them only the model of the device knows. */
typedef struct sums {
    uint64_t bytes[OOS_OWNER_COUNT], modelled[OOS_OWNER_COUNT];
} sums;

/* What lies outside PyTorch is told by the call that took it, whoever was at work. */
static oos_owner owner_of(oos_owner taken_for, oos_use use, bool *ret_modelled)
{
    *ret_modelled =
        use == OOS_USE_CONTEXT || use == OOS_USE_MODULE || use == OOS_USE_COLLECTIVE || use == OOS_USE_GRAPH;
    switch (use) {
    case OOS_USE_CONTEXT: return OOS_OWNER_CONTEXT;
    case OOS_USE_MODULE:
    case OOS_USE_LIBRARY: return OOS_OWNER_KERNELS;
    case OOS_USE_COLLECTIVE: return OOS_OWNER_COMMUNICATORS;
    case OOS_USE_PINNED: return OOS_OWNER_PINNED;
    case OOS_USE_GRAPH:
    case OOS_USE_MALLOC:
    case OOS_USE_POOL:
    case OOS_USE_VMM:
    case OOS_USE_MANAGED:
    case OOS_USE_COUNT: break;
    }
    return taken_for;
}

static sums sums_of(const oos_segment_device *device, oos_phase phase)
{
    sums all = {0};
    for (unsigned whose = 0; whose < OOS_OWNER_COUNT; whose++)
        for (unsigned use = 0; use < OOS_USE_COUNT; use++) {
            uint64_t const bytes = device->at_phase_peak[phase][whose][use];
            bool modelled;
            oos_owner const owner = owner_of(whose, use, &modelled);
            all.bytes[owner] = oos_add(all.bytes[owner], bytes);
            if (modelled) all.modelled[owner] = oos_add(all.modelled[owner], bytes);
        }
    all.bytes[OOS_OWNER_OTHERS] = oos_add(all.bytes[OOS_OWNER_OTHERS], device->spec.others_bytes);
    return all;
}

/* Gives `bytes` of one owner to another. */
static void give(sums *all, oos_owner from, oos_owner to, uint64_t bytes)
{
    uint64_t const modelled = oos_min(all->modelled[from], bytes);
    if (from == to) return;
    all->bytes[from] -= bytes;
    all->bytes[to] = oos_add(all->bytes[to], bytes);
    all->modelled[from] -= modelled;
    all->modelled[to] = oos_add(all->modelled[to], modelled);
}

/* What a run of the model takes, and what the trial capture takes: it goes back, but for a rest. */
static const oos_owner of_runs[] = {OOS_OWNER_ACTIVATIONS, OOS_OWNER_SAMPLER, OOS_OWNER_ENCODER,
                                    OOS_OWNER_CUDA_GRAPHS};
enum { RUNS = sizeof of_runs / sizeof *of_runs };

/* The names plan has for a part that is there for this phase alone, or left over from one before. `next` is the moment after this
 * one, `kept` what profiling has left when the cache was allocated; either may be NULL. */
static void rename_rows(oos_phase phase, sums *all, const sums *next, const sums *kept)
{
    const uint64_t *bytes = all->bytes;
    if (phase == OOS_PHASE_WEIGHT_LOAD && next)
        give(all, OOS_OWNER_WEIGHTS, OOS_OWNER_LOADING_COPIES,
             oos_sub(bytes[OOS_OWNER_WEIGHTS], next->bytes[OOS_OWNER_WEIGHTS]));
    if (phase == OOS_PHASE_QUANT_POSTPROCESS && next)
        give(all, OOS_OWNER_WEIGHTS, OOS_OWNER_REPACK_COPY,
             oos_sub(bytes[OOS_OWNER_WEIGHTS], next->bytes[OOS_OWNER_WEIGHTS]));
    for (size_t i = 0; kept && phase >= OOS_PHASE_PROFILE_RUN && phase != OOS_PHASE_MM_PROFILE && i < RUNS;
         i++)
        give(all, of_runs[i], OOS_OWNER_KEPT, oos_min(bytes[of_runs[i]], kept->bytes[of_runs[i]]));
    if (phase != OOS_PHASE_CUDAGRAPH_PROFILE) return;
    give(all, OOS_OWNER_KV_CACHE, OOS_OWNER_TRIAL_KV, bytes[OOS_OWNER_KV_CACHE]);
    give(all, OOS_OWNER_CUDA_GRAPHS, OOS_OWNER_TRIAL_GRAPHS, bytes[OOS_OWNER_CUDA_GRAPHS]);
}

static oos_amount amount_of(const sums *all, oos_owner owner)
{
    uint64_t const bytes = all->bytes[owner], modelled = all->modelled[owner];
    if (owner == OOS_OWNER_OTHERS) return oos_amount_exact(bytes, OOS_SOURCE_READ, "given with --gpu-used");
    if (!modelled) return oos_amount_exact(bytes, OOS_SOURCE_MEASURED, NULL);
    return oos_amount_guess(bytes, bytes - modelled / 2, oos_add(bytes, modelled),
                            modelled < bytes ? "in part a model: no allocation call shows it"
                                             : "model: no allocation call shows it");
}

static const oos_segment_device *fullest_of(const oos_segment *segment, oos_phase phase, uint32_t *ret_index)
{
    *ret_index = 0;
    for (uint32_t d = 1; d < segment->device_count; d++)
        if (segment->devices[d].phase_peak_bytes[phase] >
            segment->devices[*ret_index].phase_peak_bytes[phase])
            *ret_index = d;
    return &segment->devices[*ret_index];
}

/* What the engine subtracts from its budget, in its own figures: nothing is taken in this phase. */
static void hold_sizing(oos_moment *moment, const oos_dryrun_log *log)
{
    uint64_t const subtracted = oos_sub(log->budget_bytes.value, log->kv_available.bytes.value);
    uint64_t const parts[] = {log->weights.bytes.value, log->activation_peak.bytes.value,
                              oos_u64_or(log->graph_estimate_bytes, 0)};
    static const oos_owner owners[] = {OOS_OWNER_WEIGHTS, OOS_OWNER_ACTIVATION_PEAK,
                                       OOS_OWNER_GRAPH_ESTIMATE};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        oos_moment_hold(moment, owners[i],
                        oos_amount_exact(parts[i], OOS_SOURCE_MEASURED, "as the engine measured it"));
    oos_moment_hold(
        moment, OOS_OWNER_OUTSIDE,
        oos_amount_exact(oos_sub(subtracted, moment->ledger.held_bytes), OOS_SOURCE_DERIVED,
                         "what else the engine subtracted: non-PyTorch memory, and what profiling retained"));
}

/* The device as it was, or the budget. False: nothing was taken in that phase. */
static bool moment_open(oos_arena *arena, const oos_segment *segment, const oos_dryrun_log *log,
                        oos_phase phase, oos_moment *ret_moment, sums *ret_sums)
{
    uint32_t index;
    const oos_segment_device *device = fullest_of(segment, phase, &index);
    bool const sized = log->budget_bytes.known && log->kv_available.exact && log->weights.exact;
    oos_moment_init(ret_moment, arena, phase);
    ret_moment->device = index;
    *ret_sums = (sums){0};
    if (phase == OOS_PHASE_KV_SIZING) {
        if (sized) hold_sizing(ret_moment, log);
        return sized;
    }
    if (!device->phase_peak_bytes[phase]) return false;
    *ret_sums = sums_of(device, phase);
    return true;
}

static oos_limit limit_of(const oos_segment *segment, const oos_dryrun *run, const oos_moment *moment)
{
    return oos_limit_exact(moment->phase == OOS_PHASE_KV_SIZING
                               ? run->log.budget_bytes.value
                               : segment->devices[moment->device].spec.total_bytes);
}

static oomsight_status phases_read(oos_arena *arena, const oos_segment *segment, oos_dryrun *run)
{
    sums *all = OOS_NEW_ARRAY(arena, sums, OOS_PHASE_COUNT + 1); /* the last: what was kept */
    if (!all) return OOMSIGHT_NOMEM;
    for (unsigned place = 0; place < OOS_PHASE_COUNT; place++) {
        oos_phase const phase = oos_dryrun_in_order(place);
        for (uint32_t d = 0; d < segment->device_count; d++)
            if (segment->devices[d].phase_peak_bytes[phase] > segment->devices[d].spec.total_bytes)
                return OOMSIGHT_MALFORMED; /* no stand-in ever wrote that */
        if (moment_open(arena, segment, &run->log, phase, &run->phases[run->phase_count],
                        &all[run->phase_count]))
            run->phase_count++;
    }
    const sums *kept = NULL;
    for (size_t i = 0; i < run->phase_count; i++)
        if (run->phases[i].phase == OOS_PHASE_KV_ALLOC)
            kept = memcpy(&all[OOS_PHASE_COUNT], &all[i], sizeof *all);
    size_t count = 0;
    for (size_t i = 0; i < run->phase_count; i++) {
        oos_moment moment = run->phases[i];
        oos_phase const phase = moment.phase;
        size_t after = i + 1;
        while (after < run->phase_count && run->phases[after].phase == OOS_PHASE_KV_SIZING) after++;
        const sums *next = after < run->phase_count ? &all[after] : NULL; /* of those that hold something */
        if (phase != OOS_PHASE_KV_SIZING) rename_rows(phase, &all[i], next, kept);
        if (phase == OOS_PHASE_QUANT_POSTPROCESS && next && run->log.failed != phase &&
            !all[i].bytes[OOS_OWNER_REPACK_COPY])
            continue; /* nothing was repacked: part of loading, as in a plan */
        for (unsigned owner = 0; owner < OOS_OWNER_COUNT; owner++)
            if (all[i].bytes[owner]) oos_moment_hold(&moment, owner, amount_of(&all[i], owner));
        OOS_TRY(oos_moment_close(&moment, limit_of(segment, run, &moment), NULL));
        moment.refusal = phase == OOS_PHASE_KV_SIZING;
        moment.ok = phase != run->log.failed;
        run->phases[count++] = moment;
    }
    run->phase_count = count;
    return OOMSIGHT_OK;
}

static int larger_first(const void *a, const void *b)
{
    uint64_t const x = ((const oos_call_count *)a)->count, y = ((const oos_call_count *)b)->count;
    return x < y   ? 1
           : x > y ? -1
                   : strcmp(((const oos_call_count *)a)->name, ((const oos_call_count *)b)->name);
}

static oomsight_status calls_read(oos_arena *arena, const oos_segment *segment, const char *path,
                                  oos_dryrun *run)
{
    uint32_t const most = segment->call_count <= OOS_SEGMENT_CALLS ? segment->call_count : OOS_SEGMENT_CALLS;
    oos_call_count *lists[3];
    size_t counts[3] = {0};
    for (int kind = 0; kind < 3; kind++)
        if (!(lists[kind] = OOS_NEW_ARRAY(arena, oos_call_count, most + 1))) return OOMSIGHT_NOMEM;
    for (uint32_t l = 0; l < segment->library_count && l < OOS_SEGMENT_LIBRARIES; l++) {
        const oos_segment_library *library = &segment->libraries[l];
        if (library->first_call > most || library->call_count > most - library->first_call) continue;
        uint64_t *counters = oos_segment_counters(path, library);
        if (!counters) continue;
        for (uint32_t i = 0; i < library->call_count; i++) {
            const oos_segment_call *call = &segment->calls[library->first_call + i];
            if (!counters[i] || call->kind > OOS_CALL_REFUSE || !memchr(call->name, 0, sizeof call->name))
                continue;
            char *name = oos_arena_copy(arena, oos_view_of(call->name));
            if (!name) return OOMSIGHT_NOMEM;
            lists[call->kind][counts[call->kind]++] = (oos_call_count){name, counters[i]};
        }
        munmap(counters, oos_segment_counters_bytes(library->call_count));
    }
    for (int kind = 0; kind < 3; kind++) qsort(lists[kind], counts[kind], sizeof *lists[kind], larger_first);
    run->calls = lists[OOS_CALL_TAKE];
    run->call_count = counts[OOS_CALL_TAKE];
    run->unknown = lists[OOS_CALL_NOOP];
    run->unknown_count = counts[OOS_CALL_NOOP];
    run->refused = lists[OOS_CALL_REFUSE];
    run->refused_count = counts[OOS_CALL_REFUSE];
    return OOMSIGHT_OK;
}

/* The log has two decimals; the device remembers the very bytes. */
static void failure_sharpen(const oos_segment *segment, oos_dryrun *run)
{
    char printed[32], known[32];
    uint64_t const kept = oos_min(segment->failure_count, OOS_SEGMENT_FAILURES);
    for (uint64_t i = 0; i < kept; i++) {
        const oos_segment_failure *failure = &segment->failures[i];
        if (failure->host) run->host_failure_count++;
        run->failed_most_bytes = oos_max(run->failed_most_bytes, failure->bytes);
        if (!run->log.tried_bytes.known) continue;
        oos_size_print(run->log.tried_bytes.value, printed, sizeof printed);
        oos_size_print(failure->bytes, known, sizeof known);
        if (strcmp(printed, known) == 0) run->log.tried_bytes = oos_u64_of(failure->bytes);
    }
}

void oos_dryrun_growth(const oomsight_dryrun_sample *samples, size_t count, unsigned load,
                       oos_load_growth *ret_growth)
{
    double done[OOS_SLOPE_POINTS_MAX], device[OOS_SLOPE_POINTS_MAX], host[OOS_SLOPE_POINTS_MAX];
    size_t first = 0, found = 0;
    while (first < count && samples[first].load != load) first++;
    while (first + found < count && samples[first + found].load == load) found++;
    size_t const half = first + found / 2, stride = (found - found / 2) / OOS_SLOPE_POINTS_MAX + 1;
    size_t points = 0;
    for (size_t i = half; i < first + found; i += stride, points++) {
        done[points] = samples[i].done;
        device[points] = (double)samples[i].device_bytes;
        host[points] = (double)samples[i].host_bytes;
    }
    ret_growth->known = oos_slope_of(done, device, points, &ret_growth->device) &&
                        oos_slope_of(done, host, points, &ret_growth->host);
}

/* Became ready and stayed so until it was stopped, or came to its end by itself; and did what it was asked. */
static bool went_well(const oos_dryrun *run)
{
    bool const stopped = run->timed_out || run->interrupted;
    if (run->load_answered < run->load_requests) return false;
    if (run->log.ready && stopped) return true;
    return !stopped && !run->child_signal && run->child_exit == 0;
}

/* It was refused memory, said so, and went on all the same: an engine that became ready after it, a program that ended well. */
static bool outlived(const oos_dryrun *run)
{
    return went_well(run) && (run->log.recovered || run->log.program);
}

oomsight_status oos_dryrun_read(oos_arena *arena, const oos_segment *segment, const char *segment_path,
                                oos_dryrun *run)
{
    run->device = &segment->devices[0].spec;
    run->device_count = segment->device_count;
    run->reaped_count = segment->reaped_count;
    run->graph_count = segment->graph_count;
    run->graph_node_count = segment->graph_node_count;
    run->failure_count = segment->failure_count;
    failure_sharpen(segment, run);
    oos_dryrun_steps_read(segment_path, run->steps);
    run->fail_after = segment->fail_after;
    run->asked_count = segment->asked_count;
    run->denied = segment->denied.pid ? &segment->denied : NULL;
    run->denied_call = oos_use_word((oos_use)(segment->denied.use % OOS_USE_COUNT));
    run->wedged = segment->wedged != 0;
    bool const ran_out = run->log.ran_out && !outlived(run);
    if (run->log.ran_out && !ran_out) run->log.failed = OOS_PHASE_COUNT;
    run->verdict = ran_out || run->wedged ? OOMSIGHT_VERDICT_FAILS
                   : run->log.refused     ? OOMSIGHT_VERDICT_REFUSED
                   : went_well(run)       ? OOMSIGHT_VERDICT_FITS
                                          : OOMSIGHT_VERDICT_UNKNOWN;
    if (run->verdict == OOMSIGHT_VERDICT_UNKNOWN && !run->log.error[0])
        memcpy(run->log.error, run->log.start_error, sizeof run->log.error);
    oomsight_status const status = phases_read(arena, segment, run);
    return status == OOMSIGHT_OK ? calls_read(arena, segment, segment_path, run) : status;
}
