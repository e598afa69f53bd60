/* The accounting device behind every stand-in: bytes, addresses, processes, streams. It knows no CUDA types; results
 * are the codes that the runtime and the driver API share. One copy per process, in liboomsight-device.so. */
#pragma once
#include "base/segment.h"

#define OOS_SHARED __attribute__((visibility("default")))

enum {
    OOS_CODE_OK = 0,
    OOS_CODE_INVALID_VALUE = 1,
    OOS_CODE_OUT_OF_MEMORY = 2,
    OOS_CODE_NOT_INITIALIZED = 3,
    OOS_CODE_INVALID_CONFIGURATION = 9,
    OOS_CODE_INVALID_SYMBOL = 13,
    OOS_CODE_NO_DEVICE = 100,
    OOS_CODE_INVALID_DEVICE = 101,
    OOS_CODE_INVALID_CONTEXT = 201,
    OOS_CODE_INVALID_HANDLE = 400,
    OOS_CODE_NOT_FOUND = 500,
    OOS_CODE_NOT_SUPPORTED = 801,
    OOS_CODE_CAPTURE_UNSUPPORTED = 900,
    OOS_CODE_CAPTURE_INVALID = 901
};

/* ---- process.c: this process's place in the run */

/* The segment, attached at the first call; NULL when there is none or it is damaged. */
OOS_SHARED oos_segment *oos_run(void);
OOS_SHARED const char *oos_run_path(void);
OOS_SHARED unsigned oos_device_count(void);              /* after CUDA_VISIBLE_DEVICES */
OOS_SHARED unsigned oos_device_physical(unsigned index); /* index as CUDA counts -> index in the segment */
OOS_SHARED const oos_device_spec *oos_device_spec_of(unsigned index);
OOS_SHARED unsigned oos_device_current(void);
OOS_SHARED int oos_device_select(int index); /* of this thread; makes the primary context, as CUDA 12 does */
OOS_SHARED int oos_device_context(unsigned index);
OOS_SHARED bool oos_device_has_context(unsigned index);
/* pid and bytes of those on a device (index in the segment); returns how many there are. */
OOS_SHARED unsigned oos_device_processes(unsigned physical, uint32_t *ret_pids, uint64_t *ret_bytes,
                                         unsigned most);
OOS_SHARED void oos_device_free_bytes(unsigned physical, uint64_t *ret_free, uint64_t *ret_total);

/* ---- charge.c: who holds what. `index` as CUDA counts. */
typedef struct oos_charge {
    uint64_t bytes;
    uint32_t device, owner, use; /* device: index in the segment */
} oos_charge;
OOS_SHARED int oos_charge_take(unsigned index, oos_use use, uint64_t bytes, oos_charge *ret_charge);
OOS_SHARED void oos_charge_return(const oos_charge *charge);
OOS_SHARED void oos_pinned_add(int64_t bytes);

/* From here on this process is in that phase, and what it takes is that owner's (words of the ledger). False: no such word, or
 * no run. The module in the engine's Python processes calls it, because it is there when a phase begins; a log comes later. */
OOS_SHARED bool oos_phase_enter(const char *phase, const char *owner);
void oos_failure_note(unsigned physical, oos_use use, uint64_t bytes, uint64_t free_bytes, bool host);

/* ---- arena.c: addresses */
typedef enum oos_range_kind {
    OOS_RANGE_FREE,
    OOS_RANGE_DEVICE,
    OOS_RANGE_SLAB, /* small allocations share one granule; see oos_range.size for the piece found */
    OOS_RANGE_HOST,
    OOS_RANGE_MANAGED,
    OOS_RANGE_RESERVED, /* addresses without memory */
    OOS_RANGE_MAPPED    /* a cuMemCreate handle put at a reserved address */
} oos_range_kind;

typedef struct oos_range {
    uint64_t base, size;
    oos_range_kind kind;
    uint32_t device; /* as CUDA counts */
    void *handle;    /* of a mapped range */
    oos_charge charge;
} oos_range;

OOS_SHARED bool oos_range_find(const void *at, oos_range *ret_range);
OOS_SHARED void oos_range_touch(const void *at); /* its bytes were written: drop them when it goes */

/* ---- memory.c: what the allocation calls do */
OOS_SHARED int oos_memory_take(unsigned index, oos_use use, uint64_t bytes, void **ret_at);
OOS_SHARED int oos_memory_give(void *at);
OOS_SHARED int oos_memory_host(uint64_t bytes, void **ret_at);
OOS_SHARED int oos_memory_uncharged(unsigned index, uint64_t bytes,
                                    void **ret_at); /* peers, module variables */
OOS_SHARED int oos_memory_register(void *at, uint64_t bytes);
OOS_SHARED int oos_memory_unregister(void *at);
OOS_SHARED bool oos_memory_registered(const void *at);

/* ---- vmm.c: handles and addresses apart */
typedef struct oos_handle oos_handle;
OOS_SHARED int oos_vmm_create(int index, uint64_t bytes,
                              oos_handle **ret_handle); /* index < 0: host memory */
OOS_SHARED int oos_vmm_release(oos_handle *handle);
OOS_SHARED int oos_vmm_retain(const void *at, oos_handle **ret_handle);
OOS_SHARED int oos_vmm_device(const oos_handle *handle);
OOS_SHARED int oos_vmm_reserve(uint64_t bytes, void **ret_at);
OOS_SHARED int oos_vmm_unreserve(void *at, uint64_t bytes);
OOS_SHARED int oos_vmm_map(void *at, uint64_t bytes, oos_handle *handle);
OOS_SHARED int oos_vmm_unmap(void *at, uint64_t bytes);

/* ---- copy.c: small bytes move, large ones are never looked at */
OOS_SHARED int oos_copy(void *to, const void *from, uint64_t bytes);
OOS_SHARED int oos_copy_2d(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                           size_t height);
OOS_SHARED int oos_fill(void *at, unsigned value, unsigned value_bytes, uint64_t count);

/* ---- room.c: where the ranks of a communicator meet, processes of one run. Nothing here waits longer than it is told to. */
enum {
    OOS_ROOM_RANKS = 64,
    OOS_ROOM_ALL = -1, /* for every rank */
    OOS_PARCEL_BYTES = 1 << 20
};
typedef struct oos_room oos_room;
typedef struct oos_parcel {
    uint32_t kind, type, op, root; /* what is done with it: a peer that does another thing is found out */
    uint64_t bytes;
    uint64_t present; /* set by oos_room_put(): the bytes are there to be read */
} oos_parcel;
typedef enum oos_peer { OOS_PEER_ABSENT, OOS_PEER_HERE, OOS_PEER_GONE } oos_peer;
/* NULL: no run, too many ranks, no room left, or somebody has that rank. Parcels are numbered from 0, for all and for each pair. */
OOS_SHARED oos_room *oos_room_enter(const uint64_t name[2], unsigned ranks, unsigned rank);
OOS_SHARED void oos_room_leave(oos_room *room); /* NULL is fine */
/* The rank that has to take a parcel before there is a place for this one; -1: there is one. */
OOS_SHARED int oos_room_full(const oos_room *room, int to, uint64_t number);
OOS_SHARED void oos_room_put(oos_room *room, int to, uint64_t number, const oos_parcel *parcel,
                             const void *bytes); /* NULL: without them */
OOS_SHARED bool oos_room_look(const oos_room *room, unsigned from, int to, uint64_t number,
                              oos_parcel *ret_parcel);
OOS_SHARED bool oos_room_read(const oos_room *room, unsigned from, int to, uint64_t number, uint64_t offset,
                              uint64_t bytes, void *ret_bytes);
OOS_SHARED void oos_room_finish(oos_room *room, uint64_t number, bool all_came); /* with what was for all */
OOS_SHARED void oos_room_take(oos_room *room, unsigned from, uint64_t number);   /* what was for this rank */
OOS_SHARED oos_peer oos_room_peer(const oos_room *room, unsigned rank);
OOS_SHARED uint32_t oos_room_tick(const oos_room *room);
OOS_SHARED void oos_room_wait(const oos_room *room, uint32_t tick, unsigned ms); /* until it is another one */
OOS_SHARED void oos_room_break(oos_room *room,
                               uint32_t why); /* nobody waits here any more; the first word stays */
OOS_SHARED uint32_t oos_room_broken(const oos_room *room);

/* ---- attribute.c */
OOS_SHARED int oos_attribute(int attribute, unsigned index); /* numbers of CUdevice_attribute */
OOS_SHARED int oos_occupancy(unsigned index, int block_threads, size_t shared_bytes);

/* ---- stream.c: streams, events, capture, graphs. A NULL, 1 or 2 is a stream, too. */
typedef struct oos_stub_stream oos_stub_stream;
typedef struct oos_stub_event oos_stub_event;
typedef struct oos_graph oos_graph;
typedef struct oos_graph_exec oos_graph_exec;
typedef struct oos_stream_info {
    uint32_t device, flags;
    int priority;
    uint64_t id;
} oos_stream_info;
OOS_SHARED int oos_stream_create(unsigned flags, int priority, oos_stub_stream **ret_stream);
OOS_SHARED void oos_stream_destroy(oos_stub_stream *stream);
OOS_SHARED oos_stream_info oos_stream_info_of(const void *stream);
OOS_SHARED void oos_stream_launch(const void *stream); /* work of any kind was given to it */
OOS_SHARED void oos_kernel_launch(const void *kernel, const void *stream, bool of_library);
OOS_SHARED int oos_capture_begin(void *stream);
OOS_SHARED int oos_capture_end(void *stream, oos_graph **ret_graph);
OOS_SHARED bool oos_capture_status(const void *stream, uint64_t *ret_id, oos_graph **ret_graph);
OOS_SHARED int oos_capture_mode(int mode); /* of this thread; returns the one before */
OOS_SHARED int oos_event_create(unsigned flags, oos_stub_event **ret_event);
OOS_SHARED void oos_event_destroy(oos_stub_event *event);
OOS_SHARED void oos_event_record(oos_stub_event *event, void *stream);
OOS_SHARED void oos_event_wait(void *stream, const oos_stub_event *event);
OOS_SHARED double oos_event_elapsed_ms(const oos_stub_event *from, const oos_stub_event *to);
OOS_SHARED int oos_graph_create(oos_graph **ret_graph);
OOS_SHARED void oos_graph_destroy(oos_graph *graph);
OOS_SHARED uint64_t oos_graph_nodes(const oos_graph *graph);
OOS_SHARED void oos_graph_add_node(oos_graph *graph);
OOS_SHARED int oos_graph_instantiate(const oos_graph *graph, oos_graph_exec **ret_exec);
OOS_SHARED void oos_graph_exec_destroy(oos_graph_exec *exec);

/* ---- calls.c: the tables of shim/calls, made into symbols by tools/gen_calls.py */
typedef struct oos_call {
    const char *name;
    uint64_t kind; /* oos_call_kind */
    void *at;
} oos_call;
typedef struct oos_calls {
    const char *soname;
    const oos_call *list; /* sorted by name */
    uint64_t *counters;   /* own pages, replaced by the segment's when one is attached */
    uint64_t count;
} oos_calls;
OOS_SHARED void oos_calls_add(const oos_calls *calls);
OOS_SHARED void *oos_calls_find(const oos_calls *calls, const char *name);
void oos_calls_attach(void); /* all known libraries join the segment */
OOS_SHARED int oos_handle_new(void **ret_handle);

/* ---- trace.c */
typedef enum oos_trace_what { OOS_TRACE_TAKE, OOS_TRACE_GIVE, OOS_TRACE_FAIL } oos_trace_what;
void oos_trace(oos_trace_what what, const oos_charge *charge, uint64_t address);
