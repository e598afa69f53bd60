/* One device, measured in this process by free memory around each thing that takes some. */
#include "machine/machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* CUdevice_attribute */
enum { SMS = 16, INTEGRATED = 18, MAJOR = 75, MINOR = 76 };

/* Enough graphs that a granule of 2 MiB hides 8 KiB of one and 128 bytes of a node. */
enum { GRAPHS = 256, FEW = 1, MANY = 65, BETWEEN = 33, MODE_THREAD = 1 };
#define ROOM_BYTES OOS_GIB /* what the graphs may need, with room to spare */

/* The oldest targets first: a driver translates for its device what an older one could run. */
static const char *const empty_kernels[] = {
    ".version 6.0\n.target sm_70\n.address_size 64\n.visible .entry empty() { ret; }\n",
    ".version 6.3\n.target sm_75\n.address_size 64\n.visible .entry empty() { ret; }\n",
    ".version 8.7\n.target sm_100\n.address_size 64\n.visible .entry empty() { ret; }\n"};

static bool failed(oos_measure *m, const char *call, int code)
{
    if (code == 0) return false;
    snprintf(m->error, sizeof m->error, "%s: error %d", call, code);
    return true;
}

static void missing_note(oos_measure *m, const oos_libcuda *cuda)
{
    void *at[sizeof *cuda / sizeof(void *)];
    memcpy(at, cuda, sizeof at);
    for (size_t i = 0; oos_libcuda_names[i]; i++) {
        if (at[i]) continue;
        if (i < OOS_LIBCUDA_NEEDED && !m->error[0])
            snprintf(m->error, sizeof m->error, "this libcuda has no %s", oos_libcuda_names[i]);
        if (m->missing_count < OOS_MEASURE_MISSING)
            snprintf(m->missing[m->missing_count++], sizeof m->missing[0], "%s", oos_libcuda_names[i]);
    }
}

static oos_u64 free_now(const oos_libcuda *cuda)
{
    size_t free_bytes, total_bytes;
    return (oos_u64){cuda->cuMemGetInfo_v2(&free_bytes, &total_bytes) == 0, free_bytes};
}

/* What free memory fell by; others on the device may have given some back, then it is not known. */
static oos_u64 taken(oos_u64 before, oos_u64 after)
{
    return (oos_u64){before.known && after.known && after.value <= before.value, before.value - after.value};
}

static int attribute(const oos_libcuda *cuda, int device, int which, int fallback)
{
    int value;
    return cuda->cuDeviceGetAttribute(&value, which, device) == 0 ? value : fallback;
}

static void device_describe(oos_measure *m, const oos_libcuda *cuda, int device)
{
    int version = 0;
    size_t total;
    if (cuda->cuDriverGetVersion(&version) == 0 && version > 0) m->cuda = (unsigned)version;
    if (cuda->cuDeviceGetName(m->name, sizeof m->name - 1, device) != 0) m->name[0] = '\0';
    if (cuda->cuDeviceTotalMem_v2 && cuda->cuDeviceTotalMem_v2(&total, device) == 0)
        m->total_device = oos_u64_of(total);
    if (!cuda->cuDeviceGetPCIBusId || cuda->cuDeviceGetPCIBusId(m->bus_id, sizeof m->bus_id - 1, device) != 0)
        m->bus_id[0] = '\0';
    m->capability = (unsigned)(10 * attribute(cuda, device, MAJOR, 0) + attribute(cuda, device, MINOR, 0));
    m->sms = (unsigned)attribute(cuda, device, SMS, 0);
    int const unified = attribute(cuda, device, INTEGRATED, -1);
    m->unified = (oos_flag){unified >= 0, unified > 0};
}

/* The bus as CUDA writes it has four digits of domain, as NVML writes it eight. */
static const oos_machine_device *nvml_device(const oos_nvml *nvml, const char *bus_id)
{
    const char *place = strchr(bus_id, ':');
    for (unsigned i = 0; place && i < nvml->device_count; i++) {
        const oos_machine_device *d = &nvml->devices[i];
        const char *there = strchr(d->bus_id, ':');
        if (there && !d->is_slice && strcmp(there, place) == 0 &&
            strtoul(d->bus_id, NULL, 16) == strtoul(bus_id, NULL, 16))
            return d->is_split || !d->memory_known ? NULL : d; /* of a slice NVML tells the whole card */
    }
    return NULL;
}

static oos_u64 nvml_used(oos_measure *m, oos_nvml *nvml)
{
    oos_nvml_ask(nvml);
    if (nvml->state == OOS_DRIVER_OK) memcpy(m->driver, nvml->driver, sizeof m->driver);
    const oos_machine_device *d = nvml->state == OOS_DRIVER_OK ? nvml_device(nvml, m->bus_id) : NULL;
    if (!d) return (oos_u64){0};
    m->total_nvml = oos_u64_of(d->total_bytes);
    m->nvml_reserved = (oos_u64){d->reserved_known, d->reserved_bytes};
    m->others_seen = oos_machine_held(d, d->total_bytes) > 0;
    return oos_u64_of(d->used_bytes);
}

static bool context_make(oos_measure *m, const oos_libcuda *cuda, int device)
{
    oos_nvml *nvml = calloc(1, sizeof *nvml);
    void *context;
    size_t free_bytes, total_bytes;
    if (!nvml) return !failed(m, "memory", 1);
    m->stage = OOS_MEASURE_NVML;
    oos_u64 const before = nvml_used(m, nvml);
    bool const others = m->others_seen;
    m->stage = OOS_MEASURE_CONTEXT;
    bool const ok =
        !failed(m, "cuDevicePrimaryCtxRetain", cuda->cuDevicePrimaryCtxRetain(&context, device)) &&
        !failed(m, "cuCtxSetCurrent", cuda->cuCtxSetCurrent(context)) &&
        !failed(m, "cuMemGetInfo", cuda->cuMemGetInfo_v2(&free_bytes, &total_bytes));
    if (ok) {
        m->total_info = oos_u64_of(total_bytes);
        m->absent_bytes = oos_u64_of(oos_sub(total_bytes, free_bytes));
        oos_u64 const after = nvml_used(m, nvml);
        m->context_bytes = taken(after, before); /* used grows where free falls */
        m->others_seen = others;
    }
    free(nvml);
    return ok;
}

static void allocate(oos_measure *m, const oos_libcuda *cuda, int device)
{
    oos_cuda_place const place = {.type = 1, .location_type = 1, .location_id = device};
    size_t granule;
    unsigned long long at;
    m->stage = OOS_MEASURE_ALLOCATE;
    if (cuda->cuMemGetAllocationGranularity && cuda->cuMemGetAllocationGranularity(&granule, &place, 0) == 0)
        m->granule_bytes = oos_u64_of(granule);
    oos_u64 const before = free_now(cuda);
    if (!cuda->cuMemAlloc_v2 || !cuda->cuMemFree_v2 || cuda->cuMemAlloc_v2(&at, 1) != 0) return;
    m->small_bytes = taken(before, free_now(cuda));
    cuda->cuMemFree_v2(at);
}

/* ---- graphs ----------------------------------------------------------------------------------------------------- */

typedef struct bench {
    oos_measure *m;
    const oos_libcuda *cuda;
    void *kernel, *stream;
    void *graphs[GRAPHS]; /* of the last set */
} bench;

static bool stopped(bench *b, const char *call, int code)
{
    if (code == 0) return false;
    snprintf(b->m->graph_error, sizeof b->m->graph_error, "%s: error %d", call, code);
    return true;
}

static bool launch(bench *b)
{
    return !stopped(b, "cuLaunchKernel",
                    b->cuda->cuLaunchKernel(b->kernel, 1, 1, 1, 1, 1, 1, 0, b->stream, NULL, NULL));
}

static bool kernel_load(bench *b)
{
    void *module = NULL;
    int code = 1;
    for (size_t i = 0; code && i < sizeof empty_kernels / sizeof *empty_kernels; i++)
        code = b->cuda->cuModuleLoadData(&module, empty_kernels[i]);
    return !stopped(b, "cuModuleLoadData", code) &&
           !stopped(b, "cuModuleGetFunction", b->cuda->cuModuleGetFunction(&b->kernel, module, "empty")) &&
           !stopped(b, "cuStreamCreate", b->cuda->cuStreamCreate(&b->stream, 1));
}

static bool graph_make(bench *b, unsigned nodes, void **ret_exec)
{
    const oos_libcuda *cuda = b->cuda;
    void *graph;
    if (stopped(b, "cuStreamBeginCapture", cuda->cuStreamBeginCapture_v2(b->stream, MODE_THREAD)))
        return false;
    for (unsigned i = 0; i < nodes; i++)
        if (!launch(b)) return false;
    return !stopped(b, "cuStreamEndCapture", cuda->cuStreamEndCapture(b->stream, &graph)) &&
           !stopped(b, "cuGraphInstantiateWithFlags", cuda->cuGraphInstantiateWithFlags(ret_exec, graph, 0));
}

/* None is given back before the end: a driver keeps what it was given for the next. */
static bool set_make(bench *b, unsigned nodes, oos_u64 *ret_taken)
{
    oos_u64 const before = free_now(b->cuda);
    for (unsigned i = 0; i < GRAPHS; i++)
        if (!graph_make(b, nodes, &b->graphs[i])) return false;
    *ret_taken = taken(before, free_now(b->cuda));
    if (ret_taken->known) return true;
    snprintf(b->m->graph_error, sizeof b->m->graph_error, "others gave memory back meanwhile");
    return false;
}

static bool set_launch(bench *b)
{
    oos_u64 const before = free_now(b->cuda);
    for (unsigned i = 0; i < GRAPHS; i++)
        if (stopped(b, "cuGraphLaunch", b->cuda->cuGraphLaunch(b->graphs[i], b->stream))) return false;
    if (stopped(b, "cuStreamSynchronize", b->cuda->cuStreamSynchronize(b->stream))) return false;
    oos_u64 const all = taken(before, free_now(b->cuda));
    b->m->graph_launch_bytes = (oos_u64){all.known, all.value / GRAPHS};
    return true;
}

/* Two sets of as many graphs differ in their nodes alone; the third was not used for the figures and checks them. */
static void graphs_measure(bench *b)
{
    oos_measure *m = b->m;
    void *first;
    oos_u64 few, many, between;
    m->stage = OOS_MEASURE_GRAPHS;
    if (!graph_make(b, FEW, &first) || !set_make(b, FEW, &few) || !set_make(b, MANY, &many) ||
        !set_launch(b) || !set_make(b, BETWEEN, &between))
        return;
    uint64_t const extra = oos_sub(many.value, few.value);
    m->node_bytes = oos_u64_of(extra / ((MANY - FEW) * GRAPHS));
    m->graph_bytes = oos_u64_of(oos_sub(few.value, extra / (MANY - FEW) * FEW) / GRAPHS);
    m->control_seen = between;
    m->control_expected = oos_u64_of(GRAPHS * (m->graph_bytes.value + BETWEEN * m->node_bytes.value));
    m->resolution_bytes = oos_u64_or(m->granule_bytes, 2 * OOS_MIB) / ((MANY - FEW) * GRAPHS);
}

static bool has_graph_calls(const oos_libcuda *c)
{
    return c->cuModuleLoadData && c->cuModuleGetFunction && c->cuLaunchKernel && c->cuStreamCreate &&
           c->cuStreamSynchronize && c->cuStreamBeginCapture_v2 && c->cuStreamEndCapture &&
           c->cuGraphInstantiateWithFlags && c->cuGraphLaunch;
}

static void kernels_measure(oos_measure *m, const oos_libcuda *cuda)
{
    bench b = {.m = m, .cuda = cuda};
    m->stage = OOS_MEASURE_KERNEL;
    oos_u64 const before = free_now(cuda);
    if (!has_graph_calls(cuda))
        snprintf(m->graph_error, sizeof m->graph_error, "this libcuda lacks calls for it");
    else if (!before.known || before.value < ROOM_BYTES)
        snprintf(m->graph_error, sizeof m->graph_error, "less than 1 GiB is free");
    else if (kernel_load(&b) && launch(&b) &&
             !stopped(&b, "cuStreamSynchronize", cuda->cuStreamSynchronize(b.stream))) {
        m->kernel_bytes = taken(before, free_now(cuda));
        graphs_measure(&b);
    }
}

void oos_measure_driver(oos_measure *m)
{
    oos_libcuda cuda;
    int count = 0, device;
    m->stage = OOS_MEASURE_LOAD;
    if (!oos_libcuda_open(&cuda)) {
        snprintf(m->error, sizeof m->error, "libcuda.so.1 is not found: no driver is here");
        return;
    }
    missing_note(m, &cuda);
    if (m->error[0]) return;
    m->stage = OOS_MEASURE_INIT;
    if (failed(m, "cuInit", cuda.cuInit(0)) || failed(m, "cuDeviceGetCount", cuda.cuDeviceGetCount(&count)))
        return;
    m->device_count = (unsigned)count;
    if (failed(m, "cuDeviceGet", cuda.cuDeviceGet(&device, (int)m->device_index))) return;
    device_describe(m, &cuda, device);
    if (!context_make(m, &cuda, device)) return;
    allocate(m, &cuda, device);
    kernels_measure(m, &cuda);
    m->stage = OOS_MEASURE_RANKS;
}
