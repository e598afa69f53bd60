/* From the shared segment to ledgers: who held what at the highest point of each phase, and which calls were made. */
#include "dryrun/dryrun.h"

#include <stdlib.h>
#include <sys/mman.h>

_Static_assert((int)OOS_SEGMENT_PHASES == (int)OOS_PHASE_COUNT, "the segment has a row per phase");

/* Fitted on measured starts, as plan's model is (src/plan/outside.c): NCCL 420 MiB over PCIe and 700 over NVLink; the
 * growth of the profile run 45 MiB on small parts and 100 on large ones, over some 200 kernels; 190 KiB for a piece of a
 * graph of about a dozen nodes. */
void oos_dryrun_device(const oos_gpu *gpu, oos_u64 outside_bytes, oos_device_spec *ret_spec)
{
    unsigned const c = gpu->capability;
    bool const nvlink = c == 80 || c == 90 || c == 100 || c == 103;
    oos_device_spec spec = {.total_bytes = gpu->total_bytes,
                            .property_bytes = gpu->total_bytes,
                            .nvml_bytes = gpu->slice ? gpu->total_bytes
                                                     : oos_max(gpu->total_bytes, gpu->nvml_total_bytes),
                            .capability = c,
                            .sms = gpu->sms ? gpu->sms : 100,
                            .unified = gpu->memory == OOS_MEMORY_UNIFIED,
                            .nvlink = nvlink};
    size_t const len = strlen(gpu->name);
    memcpy(spec.name, gpu->name, len < sizeof spec.name ? len : sizeof spec.name - 1);
    if (outside_bytes.known)
        spec.context_bytes = outside_bytes.value;
    else {
        spec.context_bytes = oos_u64_or(gpu->context_bytes, 480 * OOS_MIB);
        spec.collective_bytes = nvlink ? 700 * OOS_MIB : 420 * OOS_MIB;
        spec.kernel_bytes = 512 * OOS_KIB;
        spec.kernels_bytes = nvlink || c >= 100 || c == 70 ? 100 * OOS_MIB : 45 * OOS_MIB;
        spec.graph_bytes = 64 * OOS_KIB;
        spec.graph_node_bytes = 10 * OOS_KIB;
    }
    *ret_spec = spec;
}

/* What memory taken in a phase is for. Costs that only the model knows have an owner of their own. */
static const char *owner_of(oos_phase taken, oos_use use)
{
    switch (use) {
    case OOS_USE_CONTEXT: return "CUDA context";
    case OOS_USE_MODULE: return "kernel images";
    case OOS_USE_COLLECTIVE: return "NCCL buffers";
    case OOS_USE_GRAPH: return "CUDA graph objects";
    case OOS_USE_PINNED: return "pinned host memory";
    case OOS_USE_MALLOC:
    case OOS_USE_POOL:
    case OOS_USE_VMM:
    case OOS_USE_MANAGED:
    case OOS_USE_LIBRARY:
    case OOS_USE_COUNT: break;
    }
    if (taken < OOS_PHASE_WEIGHT_LOAD) return "engine start";
    if (taken <= OOS_PHASE_QUANT_POSTPROCESS) return "weights";
    if (taken <= OOS_PHASE_MM_PROFILE) return "activations and allocator cache";
    if (taken == OOS_PHASE_CUDAGRAPH_PROFILE) return "graph profiling (trial KV cache, pools)";
    if (taken <= OOS_PHASE_KV_ALLOC) return "KV cache";
    if (taken <= OOS_PHASE_CUDAGRAPH_CAPTURE) return "CUDA graph pools";
    if (taken == OOS_PHASE_SAMPLER_WARMUP) return "sampler warm-up";
    return "serving";
}

static bool is_model(oos_use use)
{
    return use == OOS_USE_CONTEXT || use == OOS_USE_MODULE || use == OOS_USE_COLLECTIVE ||
           use == OOS_USE_GRAPH;
}

/* Rows of one owner are added up, in the order in which the owners first appear. */
static oomsight_status rows_add(oos_ledger *ledger, oos_held held)
{
    const char *owners[OOS_PHASE_COUNT + OOS_USE_COUNT];
    uint64_t bytes[OOS_PHASE_COUNT + OOS_USE_COUNT];
    bool model[OOS_PHASE_COUNT + OOS_USE_COUNT];
    size_t count = 0;
    for (unsigned taken = 0; taken < OOS_PHASE_COUNT; taken++)
        for (unsigned use = 0; use < OOS_USE_COUNT; use++) {
            if (!held[taken][use]) continue;
            const char *owner = owner_of(taken, use);
            size_t i = 0;
            while (i < count && owners[i] != owner && strcmp(owners[i], owner) != 0) i++;
            if (i == count) {
                owners[count] = owner;
                bytes[count] = 0;
                model[count++] = is_model(use);
            }
            bytes[i] = oos_add(bytes[i], held[taken][use]);
        }
    for (size_t i = 0; i < count; i++) {
        oos_amount const amount = model[i] ? oos_amount_guess(bytes[i], bytes[i] / 2, oos_mul(bytes[i], 2),
                                                              "model: no allocation call shows it")
                                           : oos_amount_exact(bytes[i], OOS_SOURCE_MEASURED, NULL);
        oomsight_status const status = oos_ledger_hold(ledger, owners[i], amount);
        if (status != OOMSIGHT_OK) return status;
    }
    return OOMSIGHT_OK;
}

static oomsight_status phases_read(oos_arena *arena, const oos_segment *segment, oos_dryrun *run)
{
    for (unsigned phase = 0; phase < OOS_PHASE_COUNT; phase++) {
        uint32_t fullest = 0;
        for (uint32_t d = 1; d < segment->device_count; d++)
            if (segment->devices[d].phase_peak_bytes[phase] >
                segment->devices[fullest].phase_peak_bytes[phase])
                fullest = d;
        const oos_segment_device *device = &segment->devices[fullest];
        if (!device->phase_peak_bytes[phase]) continue;
        if (device->phase_peak_bytes[phase] > device->spec.total_bytes)
            return OOMSIGHT_MALFORMED; /* no stand-in ever wrote that */
        oos_dryrun_phase *moment = &run->phases[run->phase_count++];
        moment->phase = phase;
        moment->device = fullest;
        moment->peak_bytes = device->phase_peak_bytes[phase];
        moment->limit_bytes = oos_sub(device->spec.total_bytes, device->spec.others_bytes);
        oos_ledger_init(&moment->ledger, arena);
        oos_held held;
        memcpy(held, device->at_phase_peak[phase], sizeof held);
        oomsight_status const status = rows_add(&moment->ledger, held);
        if (status != OOMSIGHT_OK) return status;
    }
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
        if (!run->log.tried_bytes.known) continue;
        oos_size_print(run->log.tried_bytes.value, printed, sizeof printed);
        oos_size_print(failure->bytes, known, sizeof known);
        if (strcmp(printed, known) == 0) run->log.tried_bytes = oos_u64_of(failure->bytes);
    }
}

/* Became ready and stayed so until it was stopped, or came to its end by itself; and did what it was asked. */
static bool went_well(const oos_dryrun *run)
{
    bool const stopped = run->timed_out || run->interrupted;
    if (run->load_answered < run->load_requests) return false;
    if (run->log.ready && stopped) return true;
    return !stopped && !run->child_signal && run->child_exit == 0;
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
    run->verdict = run->log.ran_out   ? OOMSIGHT_VERDICT_FAILS
                   : run->log.refused ? OOMSIGHT_VERDICT_REFUSED
                   : went_well(run)   ? OOMSIGHT_VERDICT_FITS
                                      : OOMSIGHT_VERDICT_UNKNOWN;
    oomsight_status const status = phases_read(arena, segment, run);
    return status == OOMSIGHT_OK ? calls_read(arena, segment, segment_path, run) : status;
}
