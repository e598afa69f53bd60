/* The smallest CUDA runtime, driver and NVML that the real caching allocator runs on: bytes are counted, addresses are
 * numbers, streams and events are counters, nothing is ever stored. For the allocator oracle only; the stand-ins that
 * whole engines run on live in shim/.
 *
 * One object, loaded under three names (libcudart, libcuda, libnvidia-ml). OOS_TOTAL, OOS_BASE (bytes) and OOS_PLACEMENT
 * (bump or firstfit) describe the device; docs/reference/formats/trace.md says how it behaves. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef int status;
enum { SUCCESS = 0, INVALID = 1, NO_MEMORY = 2, NOT_READY = 600, NOT_SUPPORTED = 801 };

#define PAGE ((uint64_t)2 << 20)
#define FIRST_ADDRESS ((uint64_t)0x700000000000)
#define FIRST_RANGE ((uint64_t)0x600000000000)

/* ---- the device ------------------------------------------------------------------------------------------------ */

typedef struct span {
    uint64_t address, bytes;
} span;

static struct {
    int ready, first_fit;
    uint64_t total, base, used, next_address, next_range;
    span *spans; /* by address */
    size_t count, capacity;
    uint64_t *handles; /* bytes of cuMemCreate handles, from 1 */
    uint64_t handle_count, handle_capacity;
} device;

static uint64_t number_from(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 10) : otherwise;
}

static void device_ready(void)
{
    if (device.ready) return;
    const char *placement = getenv("OOS_PLACEMENT");
    device.ready = 1;
    device.total = number_from("OOS_TOTAL", (uint64_t)80 << 30);
    device.base = number_from("OOS_BASE", 0);
    device.first_fit = placement && strcmp(placement, "firstfit") == 0;
    device.next_address = FIRST_ADDRESS;
    device.next_range = FIRST_RANGE;
}

static uint64_t pages(uint64_t bytes)
{
    return (bytes + PAGE - 1) / PAGE * PAGE;
}

static int take(uint64_t bytes)
{
    device_ready();
    if (device.base + device.used + bytes > device.total) return 0;
    device.used += bytes;
    return 1;
}

status cudaMalloc(void **ret_pointer, size_t bytes)
{
    uint64_t const taken = pages(bytes);
    *ret_pointer = NULL;
    if (!take(taken)) return NO_MEMORY;
    uint64_t address = FIRST_ADDRESS;
    size_t at = 0;
    if (device.first_fit) {
        for (; at < device.count && device.spans[at].address - address < taken; at++)
            address = device.spans[at].address + device.spans[at].bytes;
    } else {
        at = device.count;
        address = device.next_address;
        device.next_address += taken;
    }
    if (device.count == device.capacity) {
        device.capacity = device.capacity ? device.capacity * 2 : 1024;
        device.spans = realloc(device.spans, device.capacity * sizeof *device.spans);
        if (!device.spans) abort();
    }
    memmove(device.spans + at + 1, device.spans + at, (device.count - at) * sizeof *device.spans);
    device.spans[at] = (span){address, taken};
    device.count++;
    *ret_pointer = (void *)(uintptr_t)address;
    return SUCCESS;
}

status cudaFree(void *pointer)
{
    uint64_t const address = (uintptr_t)pointer;
    size_t low = 0, high = device.count;
    while (low < high) {
        size_t const middle = (low + high) / 2;
        if (device.spans[middle].address < address)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == device.count || device.spans[low].address != address) return pointer ? INVALID : SUCCESS;
    device.used -= device.spans[low].bytes;
    device.count--;
    memmove(device.spans + low, device.spans + low + 1, (device.count - low) * sizeof *device.spans);
    return SUCCESS;
}

status cudaMemGetInfo(size_t *ret_free, size_t *ret_total)
{
    device_ready();
    *ret_total = device.total;
    *ret_free = device.total - device.base - device.used;
    return SUCCESS;
}

status cuMemAddressReserve(uint64_t *ret_address, size_t bytes, size_t align, uint64_t wish, uint64_t flags)
{
    (void)align, (void)wish, (void)flags;
    device_ready();
    *ret_address = device.next_range;
    device.next_range += pages(bytes);
    return SUCCESS;
}

status cuMemCreate(uint64_t *ret_handle, size_t bytes, const int *properties, uint64_t flags)
{
    (void)flags;
    enum { FABRIC_HANDLE = 8 };
    if (properties[1] == FABRIC_HANDLE) return NOT_SUPPORTED; /* torch then asks for a file descriptor */
    if (!take(bytes)) return NO_MEMORY;
    if (++device.handle_count >= device.handle_capacity) {
        device.handle_capacity = device.handle_capacity ? device.handle_capacity * 2 : 1024;
        device.handles = realloc(device.handles, device.handle_capacity * sizeof *device.handles);
        if (!device.handles) abort();
    }
    device.handles[device.handle_count] = bytes;
    *ret_handle = device.handle_count;
    return SUCCESS;
}

status cuMemRelease(uint64_t handle)
{
    device.used -= device.handles[handle];
    device.handles[handle] = 0;
    return SUCCESS;
}

/* ---- streams and events ---------------------------------------------------------------------------------------- */

typedef struct stream_state {
    void *handle;
    uint64_t issued, done;
    int capturing;
} stream_state;
static stream_state streams[1024];
static int stream_count;

static stream_state *stream_of(void *handle)
{
    for (int i = 0; i < stream_count; i++)
        if (streams[i].handle == handle) return &streams[i];
    if (stream_count == (int)(sizeof streams / sizeof *streams)) abort();
    streams[stream_count] = (stream_state){.handle = handle};
    return &streams[stream_count++];
}

typedef struct event_state {
    void *stream;
    uint64_t number;
} event_state;

status cudaEventCreateWithFlags(event_state **ret_event, unsigned flags)
{
    (void)flags;
    *ret_event = calloc(1, sizeof **ret_event);
    return *ret_event ? SUCCESS : NO_MEMORY;
}
status cudaEventDestroy(event_state *event)
{
    free(event);
    return SUCCESS;
}
status cudaEventRecord(event_state *event, void *stream)
{
    *event = (event_state){stream, ++stream_of(stream)->issued};
    return SUCCESS;
}
status cudaEventQuery(event_state *event)
{
    return stream_of(event->stream)->done >= event->number ? SUCCESS : NOT_READY;
}
status cudaEventSynchronize(event_state *event)
{
    stream_state *s = stream_of(event->stream);
    if (s->done < event->number) s->done = event->number;
    return SUCCESS;
}
status cudaStreamSynchronize(void *stream)
{
    stream_of(stream)->done = stream_of(stream)->issued;
    return SUCCESS;
}
status cudaStreamIsCapturing(void *stream, int *ret_capturing)
{
    *ret_capturing = stream_of(stream)->capturing;
    return SUCCESS;
}
/* The signatures of CUDA 12 and 13 agree in what we set. */
status cudaStreamGetCaptureInfo(void *stream, int *ret_capturing, uint64_t *ret_id)
{
    if (ret_id) *ret_id = 1;
    return cudaStreamIsCapturing(stream, ret_capturing);
}
status cudaStreamGetCaptureInfo_v2(void *stream, int *ret_capturing, uint64_t *ret_id)
{
    return cudaStreamGetCaptureInfo(stream, ret_capturing, ret_id);
}
void standin_complete(void *stream)
{
    cudaStreamSynchronize(stream);
}
void standin_capture(void *stream, int on)
{
    stream_of(stream)->capturing = on;
}

/* ---- what a device says of itself ------------------------------------------------------------------------------ */

static status properties(char *ret_properties, size_t bytes)
{
    device_ready();
    memset(ret_properties, 0, bytes);
    strcpy(ret_properties, "stand-in");
    memcpy(ret_properties + 288, &device.total, sizeof device.total); /* totalGlobalMem in CUDA 12 and 13 */
    int const major = 9;
    memcpy(ret_properties + 360, &major, sizeof major);
    return SUCCESS;
}
status cudaGetDeviceProperties(char *ret_properties, int which) /* CUDA 13 */
{
    (void)which;
    return properties(ret_properties, 1008);
}
status cudaGetDeviceProperties_v2(char *ret_properties, int which) /* CUDA 12 */
{
    (void)which;
    return properties(ret_properties, 1032);
}
static status one_number(int *ret_number, int number)
{
    *ret_number = number;
    return SUCCESS;
}
status cudaGetDeviceCount(int *ret_count)
{
    return one_number(ret_count, 1);
}
status cudaGetDevice(int *ret_device)
{
    return one_number(ret_device, 0);
}
status cudaDriverGetVersion(int *ret_version)
{
    return one_number(ret_version, 13020);
}
status cuDeviceGetAttribute(int *ret_value)
{
    return one_number(ret_value, 0);
}
status cudaDeviceCanAccessPeer(int *ret_can)
{
    return one_number(ret_can, 0);
}
status cudaDeviceGetStreamPriorityRange(int *ret_least, int *ret_greatest)
{
    one_number(ret_least, 0);
    return one_number(ret_greatest, -5);
}
status cudaStreamCreateWithPriority(void **ret_stream)
{
    static uintptr_t next = 0x100000;
    *ret_stream = (void *)(next += 16);
    return SUCCESS;
}
status cuMemGetAllocationGranularity(size_t *ret_bytes)
{
    *ret_bytes = PAGE;
    return SUCCESS;
}
const char *cudaGetErrorString(status s)
{
    return s == NO_MEMORY ? "out of memory" : s == SUCCESS ? "no error" : "error";
}
const char *cudaGetErrorName(status s)
{
    return s == NO_MEMORY ? "cudaErrorMemoryAllocation" : "cudaError";
}
status cuGetErrorString(status s, const char **ret_text)
{
    *ret_text = cudaGetErrorString(s);
    return SUCCESS;
}
status nvmlSystemGetCudaDriverVersion_v2(int *ret_version)
{
    return one_number(ret_version, 13020);
}
status nvmlDeviceGetHandleByPciBusId_v2(const char *bus, void **ret_device)
{
    (void)bus;
    *ret_device = &device;
    return SUCCESS;
}
status nvmlDeviceGetComputeRunningProcesses(void *which, unsigned *count, uint64_t *ret_processes)
{
    (void)which;
    enum { INSUFFICIENT_SIZE = 7 };
    if (*count < 1) return *count = 1, INSUFFICIENT_SIZE;
    *count = 1;
    ret_processes[0] = (uint64_t)getpid();
    ret_processes[1] = device.base + device.used;
    return SUCCESS;
}

/* ---- calls that succeed and do nothing, calls that are refused -------------------------------------------------- */

#define NOOP(name)                                                                                           \
    status name(void)                                                                                        \
    {                                                                                                        \
        return SUCCESS;                                                                                      \
    }
#define REFUSE(name)                                                                                         \
    status name(void)                                                                                        \
    {                                                                                                        \
        return NOT_SUPPORTED;                                                                                \
    }
/* Macros without semicolons, one a line: clang-format settles on no form of them. */
/* clang-format off */
NOOP(cudaSetDevice)
NOOP(cudaGetLastError)
NOOP(cudaPeekAtLastError)
NOOP(cudaDeviceSynchronize)
NOOP(cudaDeviceEnablePeerAccess)
NOOP(cudaStreamQuery)
NOOP(cudaStreamWaitEvent)
NOOP(cudaStreamDestroy)
NOOP(cudaThreadExchangeStreamCaptureMode)
NOOP(cudaEventElapsedTime)
NOOP(cudaMemcpy)
NOOP(cudaMemcpyAsync)
NOOP(cudaMemcpyPeerAsync)
NOOP(cuMemMap)
NOOP(cuMemUnmap)
NOOP(cuMemSetAccess)
NOOP(cuMemsetD32Async)
NOOP(cuStreamWriteValue32)
NOOP(cuMemAddressFree)
NOOP(cuInit)
NOOP(nvmlInit_v2)
NOOP(nvmlDeviceGetGpuFabricInfoV)
NOOP(cuCtxGetCurrent)
NOOP(cuDeviceGet)
REFUSE(cudaDeviceGetDefaultMemPool)
REFUSE(cudaFreeAsync)
REFUSE(cudaIpcCloseMemHandle)
REFUSE(cudaIpcGetMemHandle)
REFUSE(cudaIpcOpenMemHandle)
REFUSE(cudaMallocAsync)
REFUSE(cudaMemPoolGetAttribute)
REFUSE(cudaMemPoolSetAccess)
REFUSE(cudaMemPoolSetAttribute)
REFUSE(cudaMemPoolTrimTo)
REFUSE(cudaGraphNodeGetDependencies)
REFUSE(cuMemExportToShareableHandle)
REFUSE(cuMemImportFromShareableHandle)
REFUSE(nvmlDeviceGetNvLinkRemoteDeviceType)
REFUSE(nvmlDeviceGetNvLinkRemotePciInfo_v2)
REFUSE(cuRefused)
/* clang-format on */

static status entry_point(const char *name, void **ret_function, int *ret_result)
{
    *ret_function = dlsym(RTLD_DEFAULT, name);
    if (!*ret_function) *ret_function = (void *)cuRefused;
    if (ret_result) *ret_result = 0;
    return SUCCESS;
}
status cudaGetDriverEntryPoint(const char *name, void **ret_function, uint64_t flags, int *ret_result)
{
    (void)flags;
    return entry_point(name, ret_function, ret_result);
}
status cudaGetDriverEntryPointByVersion(const char *name, void **ret_function, unsigned version,
                                        uint64_t flags, int *ret_result)
{
    (void)version, (void)flags;
    return entry_point(name, ret_function, ret_result);
}
