/* Streams, events and graphs of the runtime API. */
#include "phantom/cudart/cudart.h"

TAKE(int, cudaStreamCreate, oos_stub_stream **ret_stream)
{
    return told(oos_stream_create(0, 0, ret_stream));
}

TAKE(int, cudaStreamCreateWithFlags, oos_stub_stream **ret_stream, unsigned flags)
{
    return told(oos_stream_create(flags, 0, ret_stream));
}

TAKE(int, cudaStreamCreateWithPriority, oos_stub_stream **ret_stream, unsigned flags, int priority)
{
    return told(oos_stream_create(flags, priority, ret_stream));
}

TAKE(int, cudaStreamDestroy, oos_stub_stream *stream)
{
    oos_stream_destroy(stream);
    return 0;
}

TAKE(int, cudaStreamGetPriority, void *stream, int *ret_priority)
{
    *ret_priority = oos_stream_info_of(stream).priority;
    return 0;
}

TAKE(int, cudaStreamGetFlags, void *stream, unsigned *ret_flags)
{
    *ret_flags = oos_stream_info_of(stream).flags;
    return 0;
}

TAKE(int, cudaStreamGetId, void *stream, unsigned long long *ret_id)
{
    *ret_id = oos_stream_info_of(stream).id;
    return 0;
}

TAKE(int, cudaStreamGetDevice, void *stream, int *ret_device)
{
    *ret_device = (int)oos_stream_info_of(stream).device;
    return 0;
}

/* All work is done when it is given, so there is nothing to wait for, and callbacks run at once. */
TAKE(int, cudaStreamQuery, void *stream)
{
    return 0;
}

TAKE(int, cudaStreamWaitEvent, void *stream, const oos_stub_event *event, unsigned flags)
{
    if (!event) return told(OOS_CODE_INVALID_HANDLE);
    oos_event_wait(stream, event);
    return 0;
}

TAKE(int, cudaStreamAddCallback, void *stream, void (*call)(void *, int, void *), void *user, unsigned flags)
{
    call(stream, 0, user);
    return 0;
}

TAKE(int, cudaLaunchHostFunc, void *stream, void (*call)(void *), void *user)
{
    oos_stream_launch(stream);
    if (!oos_capture_status(stream, NULL, NULL)) call(user);
    return 0;
}

TAKE(int, cudaStreamIsCapturing, void *stream, int *ret_status)
{
    *ret_status = oos_capture_status(stream, NULL, NULL);
    return 0;
}

static int capture_info(void *stream, int *ret_status, unsigned long long *ret_id, oos_graph **ret_graph,
                        const void **ret_nodes, const void **ret_edges, size_t *ret_count)
{
    uint64_t id = 0;
    oos_graph *graph = NULL;
    *ret_status = oos_capture_status(stream, &id, &graph);
    if (ret_id) *ret_id = id;
    if (ret_graph) *ret_graph = graph;
    if (ret_nodes) *ret_nodes = NULL;
    if (ret_edges) *ret_edges = NULL;
    if (ret_count) *ret_count = 0;
    return 0;
}

#if OOS_CUDA_MAJOR >= 13
TAKE(int, cudaStreamGetCaptureInfo, void *stream, int *ret_status, unsigned long long *ret_id,
     oos_graph **ret_graph, const void **ret_nodes, const void **ret_edges, size_t *ret_count)
{
    return capture_info(stream, ret_status, ret_id, ret_graph, ret_nodes, ret_edges, ret_count);
}
#else
TAKE(int, cudaStreamGetCaptureInfo, void *stream, int *ret_status, unsigned long long *ret_id)
{
    return capture_info(stream, ret_status, ret_id, NULL, NULL, NULL, NULL);
}

TAKE(int, cudaStreamGetCaptureInfo_v2, void *stream, int *ret_status, unsigned long long *ret_id,
     oos_graph **ret_graph, const void **ret_nodes, size_t *ret_count)
{
    return capture_info(stream, ret_status, ret_id, ret_graph, ret_nodes, NULL, ret_count);
}

TAKE(int, cudaStreamGetCaptureInfo_v3, void *stream, int *ret_status, unsigned long long *ret_id,
     oos_graph **ret_graph, const void **ret_nodes, const void **ret_edges, size_t *ret_count)
{
    return capture_info(stream, ret_status, ret_id, ret_graph, ret_nodes, ret_edges, ret_count);
}
#endif

TAKE(int, cudaStreamBeginCapture, void *stream, int mode)
{
    return told(oos_capture_begin(stream));
}

TAKE(int, cudaStreamEndCapture, void *stream, oos_graph **ret_graph)
{
    return told(oos_capture_end(stream, ret_graph));
}

TAKE(int, cudaThreadExchangeStreamCaptureMode, int *mode)
{
    *mode = oos_capture_mode(*mode);
    return 0;
}

TAKE(int, cudaEventCreate, oos_stub_event **ret_event)
{
    return told(oos_event_create(0, ret_event));
}

TAKE(int, cudaEventCreateWithFlags, oos_stub_event **ret_event, unsigned flags)
{
    return told(oos_event_create(flags, ret_event));
}

TAKE(int, cudaEventDestroy, oos_stub_event *event)
{
    oos_event_destroy(event);
    return 0;
}

TAKE(int, cudaEventRecord, oos_stub_event *event, void *stream)
{
    if (!event) return told(OOS_CODE_INVALID_HANDLE);
    oos_event_record(event, stream);
    return 0;
}

TAKE(int, cudaEventRecordWithFlags, oos_stub_event *event, void *stream, unsigned flags)
{
    return take_cudaEventRecord(event, stream);
}

TAKE(int, cudaEventQuery, oos_stub_event *event)
{
    return 0;
}

TAKE(int, cudaEventElapsedTime, float *ret_ms, const oos_stub_event *from, const oos_stub_event *to)
{
    if (!from || !to) return told(OOS_CODE_INVALID_HANDLE);
    *ret_ms = (float)oos_event_elapsed_ms(from, to);
    return 0;
}

TAKE(int, cudaGraphCreate, oos_graph **ret_graph, unsigned flags)
{
    return told(oos_graph_create(ret_graph));
}

TAKE(int, cudaGraphDestroy, oos_graph *graph)
{
    oos_graph_destroy(graph);
    return 0;
}

TAKE(int, cudaGraphInstantiate, oos_graph_exec **ret_exec, const oos_graph *graph, unsigned long long flags)
{
    return told(oos_graph_instantiate(graph, ret_exec));
}

TAKE(int, cudaGraphInstantiateWithFlags, oos_graph_exec **ret_exec, const oos_graph *graph,
     unsigned long long flags)
{
    return told(oos_graph_instantiate(graph, ret_exec));
}

TAKE(int, cudaGraphInstantiateWithParams, oos_graph_exec **ret_exec, const oos_graph *graph, void *params)
{
    return told(oos_graph_instantiate(graph, ret_exec));
}

TAKE(int, cudaGraphExecDestroy, oos_graph_exec *exec)
{
    oos_graph_exec_destroy(exec);
    return 0;
}

/* Nodes are counted, not kept: each is a number that nobody may follow. */
TAKE(int, cudaGraphGetNodes, const oos_graph *graph, void **ret_nodes, size_t *count)
{
    uint64_t const nodes = oos_graph_nodes(graph);
    if (ret_nodes)
        for (size_t i = 0; i < *count; i++) ret_nodes[i] = (void *)(uintptr_t)(i < nodes ? i + 16 : 0);
    else
        *count = nodes;
    return 0;
}

TAKE(int, cudaGraphGetRootNodes, const oos_graph *graph, void **ret_nodes, size_t *count)
{
    *count = 0;
    return 0;
}

#if OOS_CUDA_MAJOR >= 13
TAKE(int, cudaGraphGetEdges, const oos_graph *graph, void **ret_from, void **ret_to, void *ret_data,
     size_t *count)
{
    *count = 0;
    return 0;
}
#else
TAKE(int, cudaGraphGetEdges, const oos_graph *graph, void **ret_from, void **ret_to, size_t *count)
{
    *count = 0;
    return 0;
}
#endif

TAKE(int, cudaGraphNodeGetType, void *node, int *ret_type)
{
    *ret_type = 0; /* kernel */
    return 0;
}

#if OOS_CUDA_MAJOR >= 13
TAKE(int, cudaGraphAddNode, void **ret_node, oos_graph *graph, const void *nodes, const void *edges,
     size_t count, void *params)
#else
TAKE(int, cudaGraphAddNode, void **ret_node, oos_graph *graph, const void *nodes, size_t count, void *params)
#endif
{
    oos_graph_add_node(graph);
    *ret_node = (void *)(uintptr_t)(16 + oos_graph_nodes(graph));
    return 0;
}

TAKE(int, cudaUserObjectCreate, void **ret_object, void *user, void (*destroy)(void *), unsigned count,
     unsigned flags)
{
    return told(oos_handle_new(ret_object));
}
