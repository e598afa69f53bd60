/* Streams, events, capture and graphs. Nothing is executed, but capture is real: it spreads over event waits, counts
 * nodes and ends where it began, because PyTorch and vLLM ask at every step. */
#include "device/internal.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

struct oos_graph {
    uint64_t nodes;
};

typedef struct capture {
    uint64_t id;
    oos_graph *graph;
    const oos_stub_stream *origin;
    struct capture *next; /* ended ones stay: an old event may still point here */
    bool active;
} capture;

struct oos_stub_stream {
    oos_stream_info info;
    capture *capture;
    oos_stub_stream *next;
};

struct oos_stub_event {
    uint64_t recorded_ns;
    capture *capture;
    unsigned flags;
};

struct oos_graph_exec {
    oos_charge charge;
    uint64_t nodes;
};

static pthread_mutex_t streams_lock = PTHREAD_MUTEX_INITIALIZER;
static oos_stub_stream *streams;
static capture *captures;
static uint64_t last_stream_id = 16, last_capture_id;
static oos_stub_stream defaults[OOS_SEGMENT_DEVICES][3]; /* NULL, legacy, per thread */
static __thread int capture_mode;

static oos_stub_stream *stream_of(const void *handle)
{
    uintptr_t const number = (uintptr_t)handle;
    if (number > 2) return (oos_stub_stream *)number;
    unsigned const device = oos_device_current() % OOS_SEGMENT_DEVICES;
    return &defaults[device][number];
}

int oos_stream_create(unsigned flags, int priority, oos_stub_stream **ret_stream)
{
    int const code = oos_device_context(oos_device_current());
    if (code != OOS_CODE_OK) return code;
    oos_stub_stream *stream = calloc(1, sizeof *stream);
    if (!stream) return OOS_CODE_OUT_OF_MEMORY;
    pthread_mutex_lock(&streams_lock);
    stream->info = (oos_stream_info){oos_device_current(), flags, priority, ++last_stream_id};
    stream->next = streams;
    streams = stream;
    pthread_mutex_unlock(&streams_lock);
    *ret_stream = stream;
    return OOS_CODE_OK;
}

void oos_stream_destroy(oos_stub_stream *stream)
{
    if ((uintptr_t)stream <= 2) return;
    pthread_mutex_lock(&streams_lock);
    oos_stub_stream **at = &streams;
    while (*at && *at != stream) at = &(*at)->next;
    bool const known = *at != NULL;
    if (known) *at = stream->next;
    pthread_mutex_unlock(&streams_lock);
    if (known) free(stream);
}

oos_stream_info oos_stream_info_of(const void *stream)
{
    oos_stream_info info = stream_of(stream)->info;
    if ((uintptr_t)stream <= 2)
        info = (oos_stream_info){oos_device_current(), 0, 0, 1 + (uint64_t)(uintptr_t)stream};
    return info;
}

static capture *capture_of(const void *handle)
{
    capture *c = __atomic_load_n(&stream_of(handle)->capture, __ATOMIC_ACQUIRE);
    return c && __atomic_load_n(&c->active, __ATOMIC_ACQUIRE) ? c : NULL;
}

void oos_stream_launch(const void *handle)
{
    capture *c = capture_of(handle);
    if (c) __atomic_fetch_add(&c->graph->nodes, 1, __ATOMIC_RELAXED);
}

/* Modules are loaded lazily: the image of a kernel is on the device from its first launch on. Which image how large is
 * cannot be told from a launch, so each new kernel pays the same, up to what starts were seen to grow by; the first one
 * of a library more, for the local memory of threads: a kernel of a few instructions has none. */
void oos_kernel_launch(const void *kernel, const void *stream, bool of_library)
{
    enum { SLOTS = 1 << 16 };
    static uint64_t seen[SLOTS / 64], charged_bytes;
    static bool any;
    uint64_t const slot = ((uint64_t)(uintptr_t)kernel >> 4) * 0x9E3779B97F4A7C15u >> 48;
    uint64_t const bit = (uint64_t)1 << slot % 64;
    if (!(__atomic_load_n(&seen[slot / 64], __ATOMIC_RELAXED) & bit) &&
        !(__atomic_fetch_or(&seen[slot / 64], bit, __ATOMIC_RELAXED) & bit)) {
        const oos_device_spec *spec = oos_device_spec_of(oos_device_current());
        oos_charge charge; /* stays until the process ends */
        bool const first = of_library && !__atomic_exchange_n(&any, true, __ATOMIC_RELAXED);
        uint64_t const bytes =
            first && spec->first_kernel_bytes ? spec->first_kernel_bytes : spec->kernel_bytes;
        if (bytes && __atomic_fetch_add(&charged_bytes, bytes, __ATOMIC_RELAXED) < spec->kernels_bytes)
            oos_charge_take(oos_device_current(), OOS_USE_MODULE, bytes, &charge);
    }
    oos_stream_launch(stream);
}

int oos_capture_begin(void *handle)
{
    if (handle == NULL) return OOS_CODE_CAPTURE_UNSUPPORTED; /* the legacy stream cannot be captured */
    if (capture_of(handle)) return OOS_CODE_CAPTURE_UNSUPPORTED;
    capture *c = calloc(1, sizeof *c);
    oos_graph *graph = calloc(1, sizeof *graph);
    if (!c || !graph) {
        free(c);
        free(graph);
        return OOS_CODE_OUT_OF_MEMORY;
    }
    oos_stub_stream *stream = stream_of(handle);
    pthread_mutex_lock(&streams_lock);
    *c = (capture){++last_capture_id, graph, stream, captures, true};
    captures = c;
    __atomic_store_n(&stream->capture, c, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&streams_lock);
    return OOS_CODE_OK;
}

int oos_capture_end(void *handle, oos_graph **ret_graph)
{
    oos_stub_stream *stream = stream_of(handle);
    capture *c = capture_of(handle);
    if (!c || c->origin != stream) return OOS_CODE_CAPTURE_INVALID;
    pthread_mutex_lock(&streams_lock);
    __atomic_store_n(&c->active, false, __ATOMIC_RELEASE);
    for (oos_stub_stream *s = streams; s; s = s->next)
        if (s->capture == c) __atomic_store_n(&s->capture, NULL, __ATOMIC_RELEASE);
    __atomic_store_n(&stream->capture, NULL, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&streams_lock);
    *ret_graph = c->graph;
    return OOS_CODE_OK;
}

bool oos_capture_status(const void *handle, uint64_t *ret_id, oos_graph **ret_graph)
{
    const capture *c = capture_of(handle);
    if (!c) return false;
    if (ret_id) *ret_id = c->id;
    if (ret_graph) *ret_graph = c->graph;
    return true;
}

int oos_capture_mode(int mode)
{
    int const before = capture_mode;
    capture_mode = mode;
    return before;
}

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

int oos_event_create(unsigned flags, oos_stub_event **ret_event)
{
    oos_stub_event *event = calloc(1, sizeof *event);
    if (!event) return OOS_CODE_OUT_OF_MEMORY;
    event->flags = flags;
    *ret_event = event;
    return OOS_CODE_OK;
}

void oos_event_destroy(oos_stub_event *event)
{
    free(event);
}

void oos_event_record(oos_stub_event *event, void *stream)
{
    event->recorded_ns = now_ns();
    event->capture = capture_of(stream);
}

void oos_event_wait(void *handle, const oos_stub_event *event)
{
    oos_stub_stream *stream = stream_of(handle);
    if (event->capture && event->capture->active && !capture_of(handle))
        __atomic_store_n(&stream->capture, event->capture, __ATOMIC_RELEASE);
}

/* Never 0: autotuners divide by it. */
double oos_event_elapsed_ms(const oos_stub_event *from, const oos_stub_event *to)
{
    double const ms = ((double)to->recorded_ns - (double)from->recorded_ns) / 1e6;
    return ms < 0.001 ? 0.001 : ms;
}

int oos_graph_create(oos_graph **ret_graph)
{
    *ret_graph = calloc(1, sizeof **ret_graph);
    return *ret_graph ? OOS_CODE_OK : OOS_CODE_OUT_OF_MEMORY;
}

void oos_graph_destroy(oos_graph *graph)
{
    free(graph);
}

uint64_t oos_graph_nodes(const oos_graph *graph)
{
    return graph->nodes;
}

void oos_graph_add_node(oos_graph *graph)
{
    graph->nodes++;
}

int oos_graph_instantiate(const oos_graph *graph, oos_graph_exec **ret_exec)
{
    unsigned const index = oos_device_current();
    const oos_device_spec *spec = oos_device_spec_of(index);
    oos_segment *segment = oos_run();
    if (!segment) return OOS_CODE_NO_DEVICE;
    oos_graph_exec *exec = calloc(1, sizeof *exec);
    if (!exec) return OOS_CODE_OUT_OF_MEMORY;
    exec->nodes = graph->nodes;
    uint64_t const bytes = spec->graph_bytes + graph->nodes * spec->graph_node_bytes;
    int const code = bytes ? oos_charge_take(index, OOS_USE_GRAPH, bytes, &exec->charge) : OOS_CODE_OK;
    if (code != OOS_CODE_OK) {
        free(exec);
        return code;
    }
    __atomic_fetch_add(&segment->graph_count, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&segment->graph_node_count, graph->nodes, __ATOMIC_RELAXED);
    *ret_exec = exec;
    return OOS_CODE_OK;
}

void oos_graph_exec_destroy(oos_graph_exec *exec)
{
    if (!exec) return;
    oos_charge_return(&exec->charge);
    free(exec);
}
