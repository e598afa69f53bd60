/* Streams, events and graphs of the driver API. */
#include "phantom/phantom.h"

TAKE(int, cuStreamCreate, oos_stub_stream **ret_stream, unsigned flags)
{
    return oos_stream_create(flags, 0, ret_stream);
}

TAKE(int, cuStreamCreateWithPriority, oos_stub_stream **ret_stream, unsigned flags, int priority)
{
    return oos_stream_create(flags, priority, ret_stream);
}

TAKE(int, cuStreamDestroy_v2, oos_stub_stream *stream)
{
    oos_stream_destroy(stream);
    return 0;
}

TAKE(int, cuStreamGetDevice, void *stream, int *ret_device)
{
    *ret_device = (int)oos_stream_info_of(stream).device;
    return 0;
}

TAKE(int, cuStreamGetPriority, void *stream, int *ret_priority)
{
    *ret_priority = oos_stream_info_of(stream).priority;
    return 0;
}

TAKE(int, cuStreamGetFlags, void *stream, unsigned *ret_flags)
{
    *ret_flags = oos_stream_info_of(stream).flags;
    return 0;
}

TAKE(int, cuStreamGetId, void *stream, unsigned long long *ret_id)
{
    *ret_id = oos_stream_info_of(stream).id;
    return 0;
}

TAKE(int, cuStreamQuery, void *stream)
{
    return 0;
}

TAKE(int, cuStreamWaitEvent, void *stream, const oos_stub_event *event, unsigned flags)
{
    if (!event) return OOS_CODE_INVALID_HANDLE;
    oos_event_wait(stream, event);
    return 0;
}

TAKE(int, cuStreamIsCapturing, void *stream, int *ret_status)
{
    *ret_status = oos_capture_status(stream, NULL, NULL);
    return 0;
}

TAKE(int, cuStreamBeginCapture_v2, void *stream, int mode)
{
    return oos_capture_begin(stream);
}

TAKE(int, cuStreamEndCapture, void *stream, oos_graph **ret_graph)
{
    return oos_capture_end(stream, ret_graph);
}

TAKE(int, cuStreamGetCaptureInfo_v3, void *stream, int *ret_status, uint64_t *ret_id, oos_graph **ret_graph,
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

TAKE(int, cuStreamGetCaptureInfo_v2, void *stream, int *ret_status, uint64_t *ret_id, oos_graph **ret_graph,
     const void **ret_nodes, size_t *ret_count)
{
    return take_cuStreamGetCaptureInfo_v3(stream, ret_status, ret_id, ret_graph, ret_nodes, NULL, ret_count);
}

TAKE(int, cuThreadExchangeStreamCaptureMode, int *mode)
{
    *mode = oos_capture_mode(*mode);
    return 0;
}

TAKE(int, cuEventCreate, oos_stub_event **ret_event, unsigned flags)
{
    return oos_event_create(flags, ret_event);
}

TAKE(int, cuEventDestroy_v2, oos_stub_event *event)
{
    oos_event_destroy(event);
    return 0;
}

TAKE(int, cuEventRecord, oos_stub_event *event, void *stream)
{
    if (!event) return OOS_CODE_INVALID_HANDLE;
    oos_event_record(event, stream);
    return 0;
}

TAKE(int, cuEventQuery, oos_stub_event *event)
{
    return 0;
}

TAKE(int, cuEventElapsedTime, float *ret_ms, const oos_stub_event *from, const oos_stub_event *to)
{
    if (!from || !to) return OOS_CODE_INVALID_HANDLE;
    *ret_ms = (float)oos_event_elapsed_ms(from, to);
    return 0;
}

TAKE(int, cuEventElapsedTime_v2, float *ret_ms, const oos_stub_event *from, const oos_stub_event *to)
{
    return take_cuEventElapsedTime(ret_ms, from, to);
}

TAKE(int, cuGraphGetNodes, const oos_graph *graph, void **ret_nodes, size_t *count)
{
    if (!ret_nodes) *count = oos_graph_nodes(graph);
    return 0;
}

TAKE(int, cuGraphInstantiateWithFlags, oos_graph_exec **ret_exec, const oos_graph *graph,
     unsigned long long flags)
{
    return oos_graph_instantiate(graph, ret_exec);
}

TAKE(int, cuGraphExecDestroy, oos_graph_exec *exec)
{
    oos_graph_exec_destroy(exec);
    return 0;
}

TAKE(int, cuGraphDestroy, oos_graph *graph)
{
    oos_graph_destroy(graph);
    return 0;
}
