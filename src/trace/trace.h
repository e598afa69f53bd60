/* A trace: what a program asked of the caching allocator, in order. Every input of `replay` becomes one of these, and
 * every what-if runs over the same one. An event is 24 bytes, so a million of them stay in a few caches' worth.
 *
 * Allocations are numbered from 0 in the order of their malloc; streams, pools, settings strings and stacks are told by
 * their index in the tables of the trace. */
#ifndef OOS_INPUT_TRACE_H
#define OOS_INPUT_TRACE_H

#include "base/error.h"
#include "base/size.h"
#include "facts/version.h"
#include "base/stream.h"

typedef enum oos_op {
    OOS_OP_MALLOC,
    OOS_OP_FREE,
    OOS_OP_RECORD_STREAM,
    OOS_OP_COMPLETE, /* all events so far on the stream are done */
    OOS_OP_EMPTY_CACHE,
    OOS_OP_SET_FRACTION,
    OOS_OP_SET_SETTINGS,
    OOS_OP_POOL_CREATE,
    OOS_OP_POOL_BEGIN,
    OOS_OP_POOL_END,
    OOS_OP_CAPTURE_BEGIN,
    OOS_OP_CAPTURE_END,
    OOS_OP_POOL_RELEASE,
    OOS_OP_USE_ON_OOM,
    OOS_OP_NO_SPLIT,
    OOS_OP_SNAPSHOT, /* asks for the layout: nothing happens */
    OOS_OP_STATS,
    OOS_OP_COUNT
} oos_op;
extern const char *const oos_op_names[OOS_OP_COUNT];
bool oos_op_find(const char *name, oos_op *ret_op);

/* A private pool's id as torch prints it; {0, 0} is the default pool. */
typedef struct oos_pool_id {
    uint64_t first, second;
} oos_pool_id;

/* What stands behind a private pool. */
typedef enum oos_backend {
    OOS_BACKEND_DRIVER, /* cudaMalloc, or expandable segments where they are on */
    OOS_BACKEND_CLEAN,  /* a custom allocator over cudaMalloc */
    OOS_BACKEND_STICKY /* the same, but its first failure is never forgotten: it then gives nothing more, and what is
                           given back is lost (vLLM 0.21 to 0.32, cumem_allocator: a global error code) */
} oos_backend;

/* Where new segments lie. */
typedef enum oos_placement {
    OOS_PLACEMENT_BUMP,      /* behind the newest one; an address is never used twice */
    OOS_PLACEMENT_FIRST_FIT, /* in the lowest gap that holds it */
    OOS_PLACEMENT_GIVEN      /* where a recorded run had them, then behind the newest one */
} oos_placement;

#define OOS_NO_ID UINT32_MAX

typedef struct oos_event {
    uint64_t bytes;  /* malloc: asked; set_fraction: bits of the double */
    uint32_t id;     /* allocation, OOS_NO_ID when it is not a known one; set_settings: string */
    uint32_t stack;  /* who asked; 0: not known */
    uint16_t stream; /* index */
    uint16_t pool;   /* index; 0: default. Of a malloc with `routed`: where it goes */
    uint8_t op;      /* oos_op */
    uint8_t device;
    uint8_t value; /* use_on_oom: on or off; pool_create: oos_backend */
    uint8_t
        routed; /* malloc: `pool` is where it went, whatever was begun (snapshots know no begin and end) */
} oos_event;

/* One line of a stack, and a stack: a frame and its caller. Both from 1; 0 is none. */
typedef struct oos_frame {
    uint32_t name, file, line; /* strings */
} oos_frame;
typedef struct oos_stack {
    uint32_t frame, caller; /* caller: a stack */
} oos_stack;

/* An address that the driver gave for a segment, or for the range of an expandable one. */
typedef struct oos_given {
    uint64_t address, bytes;
    uint32_t device;
} oos_given;

typedef struct oos_trace {
    oos_version torch; /* 0: not known */
    char *settings;    /* in force from the start; NULL: not known or default */
    oos_u64 total_bytes, base_bytes;
    oos_placement placement;
    bool nvml, hash_order;
    bool driver_calls; /* what was taken from the driver, not what was asked of the allocator */
    char *name;

    oos_event *events;
    uint64_t *times_us; /* by event; NULL: not known */
    size_t event_count;
    uint64_t *ids; /* allocation -> how the input calls it */
    uint32_t id_count;
    uint64_t *streams; /* [0] is 0, the default stream */
    uint32_t stream_count;
    oos_pool_id *pools; /* [0] is {0, 0} */
    uint32_t pool_count;
    char **strings; /* [0] is "" */
    uint32_t string_count;
    oos_frame *frames;
    uint32_t frame_count;
    oos_stack *stacks;
    uint32_t stack_count;
    unsigned device_count;

    /* OOS_PLACEMENT_GIVEN: what the driver answered, device after device; see trace/snapshot_trace.c */
    oos_given *given, *given_ranges;
    size_t given_count, given_range_count;
    uint64_t given_devices; /* bit per device whose history begins with nothing */

    /* what a snapshot says the end looks like; NULL: not known. Types of trace/snapshot.h */
    struct oos_snapshot_segment *expected;
    struct oos_snapshot_block *expected_blocks;
    size_t expected_count;
} oos_trace;

void oos_trace_free(oos_trace *trace); /* NULL is fine */

/* ---- building one ---------------------------------------------------------------------------------------------- */

typedef struct oos_trace_builder oos_trace_builder;

oos_trace_builder *oos_trace_builder_create(void); /* NULL when out of memory */
void oos_trace_builder_free(oos_trace_builder *builder);

/* Fields of the trace that are not tables may be set directly. */
oos_trace *oos_trace_builder_trace(oos_trace_builder *builder);

/* Indices; UINT32_MAX when the table is full or memory has run out, which then makes the builder fail at the end. */
uint32_t oos_trace_stream(oos_trace_builder *builder, uint64_t handle);
uint32_t oos_trace_pool(oos_trace_builder *builder, oos_pool_id id);
uint32_t oos_trace_string(oos_trace_builder *builder, oos_view text);
uint32_t oos_trace_frame(oos_trace_builder *builder, oos_frame frame);
uint32_t oos_trace_stack(oos_trace_builder *builder, oos_stack stack);

/* A new allocation called `name` by the input, and the newest one of that name (OOS_NO_ID: none). */
uint32_t oos_trace_new_id(oos_trace_builder *builder, uint64_t name);
uint32_t oos_trace_find_id(const oos_trace_builder *builder, uint64_t name);
void oos_trace_forget_id(oos_trace_builder *builder, uint64_t name);

void oos_trace_add(oos_trace_builder *builder, oos_event event);
void oos_trace_add_timed(oos_trace_builder *builder, oos_event event, uint64_t time_us);
void oos_trace_add_given(oos_trace_builder *builder, oos_given given, bool range);

/* The trace is the caller's, to be given to oos_trace_free(); the builder is empty afterwards. */
oomsight_status oos_trace_builder_take(oos_trace_builder *builder, oos_trace **ret_trace,
                                       oomsight_error *reterr);

/* ---- reading one ----------------------------------------------------------------------------------------------- */

/* JSON lines: a "meta" line, then one operation per line (docs/reference/formats/trace.md). Results in the lines are not read. */
oomsight_status oos_trace_read_jsonl(oos_stream *stream, oos_trace **ret_trace, oomsight_error *reterr);

/* The small text form for reproducers written by hand (docs/reference/formats/trace.md). */
oomsight_status oos_trace_read_text(oos_stream *stream, oos_trace **ret_trace, oomsight_error *reterr);
/* Two lines of it at least, and none of anything else; the last may be cut. */
bool oos_trace_begins_text(oos_view head);

/* Records of include/oomsight/trace.h. */
oomsight_status oos_trace_read_binary(oos_stream *stream, oos_trace **ret_trace, oomsight_error *reterr);

#endif
