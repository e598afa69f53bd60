#pragma once
#include "base/error.h"
#include "base/size.h"
#include "base/stream.h"
#include "facts/facts.h"

/* JSON a token at a time, in bounded memory: traces and snapshots can be gigabytes, and a tree of them does not fit.
 * Small JSON belongs to base/json.h. Several values one behind the other (JSON lines) are fine. */

enum { OOS_PULL_DEPTH = 64, OOS_PULL_STRING_BYTES = 64 << 10 };

typedef enum oos_token {
    OOS_TOKEN_END,
    OOS_TOKEN_OBJECT,
    OOS_TOKEN_OBJECT_END,
    OOS_TOKEN_ARRAY,
    OOS_TOKEN_ARRAY_END,
    OOS_TOKEN_KEY,
    OOS_TOKEN_STRING,
    OOS_TOKEN_INTEGER, /* whole and within 64 bits: see `integer` and `negative` */
    OOS_TOKEN_REAL,
    OOS_TOKEN_TRUE,
    OOS_TOKEN_FALSE,
    OOS_TOKEN_NULL
} oos_token;

typedef struct oos_pull {
    oos_cursor cursor;
    oos_token token;
    uint64_t integer; /* magnitude */
    bool negative;
    double real;               /* of INTEGER too */
    size_t len;                /* of `text`; longer strings are cut at OOS_PULL_STRING_BYTES */
    unsigned depth;            /* open objects and arrays */
    uint64_t line;             /* from 1 */
    char open[OOS_PULL_DEPTH]; /* '{' or '[' */
    bool after_value, after_key;
    char text[OOS_PULL_STRING_BYTES + 1]; /* KEY and STRING, zero-terminated */
} oos_pull;

void oos_pull_init(oos_pull *pull, oos_stream *stream, oomsight_error *reterr);

/* The next token to pull->token. Failure is MALFORMED with the line, or the stream's own. */
oomsight_status oos_pull_next(oos_pull *pull);

/* Skip the value whose first token was just read. */
oomsight_status oos_pull_skip(oos_pull *pull);

/* The number just read, if it is one that fits; negative numbers do not. */
bool oos_pull_u64(const oos_pull *pull, uint64_t *ret_number);

/* A trace: what a program asked of the caching allocator, in order. Every input of `replay` becomes one of these, and
 * every what-if runs over the same one. An event is 24 bytes, so a million of them stay in a few caches' worth.
 *
 * Allocations are numbered from 0 in the order of their malloc; streams, pools, settings strings and stacks are told by
 * their index in the tables of the trace. */

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

    /* what a snapshot says the end looks like; NULL: not known. Types below */
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

/* Any input of `replay` -> a trace. The form is told by the first bytes, not by the name. */

oomsight_status oos_trace_open(const char *path, oos_trace **ret_trace, oomsight_error *reterr);
oomsight_status oos_trace_read(oos_stream *stream, oos_trace **ret_trace, oomsight_error *reterr);

/* Do the first bytes begin a snapshot or a trace? Any input that does not, but is given to `replay`, is read as one written by hand. */
bool oos_trace_begins(oos_view head);

/* A memory snapshot of torch.cuda.memory._dump_snapshot: segments, the allocator's own history per device, settings.
 * Read from a pickle by a reader that can execute nothing, or from the same object as JSON.
 *
 * The reader keeps no tree: dictionaries that are history entries, blocks or frames become fixed records as soon as
 * they are complete, strings and stacks are kept once. Memory is a small multiple of the number of entries. */

typedef enum oos_snapshot_action {
    OOS_SNAPSHOT_ALLOC,
    OOS_SNAPSHOT_FREE_REQUESTED,
    OOS_SNAPSHOT_FREE_COMPLETED,
    OOS_SNAPSHOT_SEGMENT_ALLOC,
    OOS_SNAPSHOT_SEGMENT_FREE,
    OOS_SNAPSHOT_SEGMENT_MAP,
    OOS_SNAPSHOT_SEGMENT_UNMAP,
    OOS_SNAPSHOT_OOM, /* address: free bytes of the device */
    OOS_SNAPSHOT_OTHER
} oos_snapshot_action;

typedef struct oos_snapshot_entry {
    uint64_t address, bytes;
    uint64_t time_us : 56, action : 7, has_pool : 1; /* 32 bytes an entry: there are millions of them */
    uint32_t stack;
    uint16_t stream, pool; /* indices in the trace's tables */
} oos_snapshot_entry;
_Static_assert(sizeof(oos_snapshot_entry) == 32, "an entry has no holes");

typedef struct oos_snapshot_block {
    uint64_t address, bytes, requested_bytes;
    uint32_t stack;
    uint8_t state; /* 0 allocated, 1 pending free, 2 inactive */
} oos_snapshot_block;

typedef struct oos_snapshot_segment {
    uint64_t address, bytes;
    uint32_t device;
    uint16_t stream, pool;
    bool large, expandable;
    size_t first_block, block_count;
} oos_snapshot_segment;

/* What one device's history is: entries[first .. first + count). */
typedef struct oos_snapshot_history {
    size_t first, count;
} oos_snapshot_history;

typedef struct oos_snapshot {
    oos_snapshot_entry *entries;
    size_t entry_count;
    oos_snapshot_history *histories; /* by device */
    size_t history_count;
    oos_snapshot_segment *segments;
    size_t segment_count;
    oos_snapshot_block *blocks;
    size_t block_count;
    bool has_pools;              /* entries tell their pool: torch after 2.11 */
    bool has_metadata, has_host; /* keys that came with 2.10 and 2.15 */
    char settings[1024];         /* PYTORCH_CUDA_ALLOC_CONF of the last call */
    oos_u64 total_bytes;         /* of the device, where a dry run has written it down */
    uint64_t base_bytes;         /* of it, held outside PyTorch */
    oos_trace_builder *builder;  /* strings, frames, stacks, streams, pools */
} oos_snapshot;

oomsight_status oos_snapshot_read_pickle(oos_stream *stream, oos_snapshot **ret_snapshot,
                                         oomsight_error *reterr);
oomsight_status oos_snapshot_read_json(oos_stream *stream, oos_snapshot **ret_snapshot,
                                       oomsight_error *reterr);
void oos_snapshot_free(oos_snapshot *snapshot); /* NULL is fine */

/* The history as calls of the allocator (trace/snapshot_trace.c says how calls are told from events). The snapshot's
 * entries are given up on the way. */
oomsight_status oos_snapshot_to_trace(oos_snapshot *snapshot, oos_trace **ret_trace, oomsight_error *reterr);

/* Plain values as pickles and JSON have them (numbers, strings, lists, dictionaries), stored compactly by index. Shared by
 * the two snapshot readers; everything else sees oos_snapshot. */

typedef enum oos_kind {
    OOS_KIND_NONE, /* also: a number that does not fit */
    OOS_KIND_BOOL,
    OOS_KIND_INT,  /* bits of an int64_t */
    OOS_KIND_REAL, /* bits of a double */
    OOS_KIND_STRING,
    OOS_KIND_LIST, /* tuples too */
    OOS_KIND_DICT,
    OOS_KIND_POOL /* a pair of whole numbers */
} oos_kind;

typedef struct oos_snapshot_value {
    oos_kind kind;
    uint64_t bits; /* or an index */
} oos_snapshot_value;

typedef struct oos_values oos_values;

oos_values *oos_values_create(void); /* NULL when out of memory */
void oos_values_free(oos_values *values);

/* Out of memory, or past 2^28 values of a kind: remembered, told by the next two. */
bool oos_values_failed(const oos_values *values);

/* ---- the stack of a reader ------------------------------------------------------------------------------------- */

void oos_values_push(oos_values *values, oos_snapshot_value value);
void oos_values_push_string(oos_values *values, oos_view text);
bool oos_values_mark(oos_values *values);

/* Each of these is false when the stack does not hold what it needs. Items are those behind the newest mark. */
bool oos_values_push_list(oos_values *values, bool of_mark); /* of_mark: made of the items */
bool oos_values_push_tuple(oos_values *values, size_t count);
void oos_values_push_dict(oos_values *values);
bool oos_values_append(oos_values *values, bool of_mark); /* to the list below the items, or below the top */
bool oos_values_set_items(oos_values *values, bool of_mark); /* key, value, ... to the dict below */

/* Memo of a pickle: UINT32_MAX puts behind the newest. */
bool oos_values_memo_put(oos_values *values, uint32_t at);
bool oos_values_memo_get(oos_values *values, uint32_t at);

/* The one value left becomes the snapshot; the values are given up. */
oomsight_status oos_values_to_snapshot(oos_values *values, oos_snapshot **ret_snapshot,
                                       oomsight_error *reterr);

/* The inside of oos_values, shared by values.c and values_snapshot.c. A stored value is 32 bits: kind above, index
 * below. */

#define MAX_INDEX ((uint32_t)0x0fffffff)

/* What a dictionary turned out to be. */
typedef enum dict_type { DICT_EMPTY, DICT_PAIRS, DICT_ENTRY, DICT_BLOCK, DICT_FRAME } dict_type;

typedef struct value_dict {
    uint32_t type : 4,
        index : 28; /* PAIRS: a list of keys and values; else an index in the table of its type */
} value_dict;

/* A list is a chain of chunks: one per APPENDS. */
typedef struct value_chunk {
    uint32_t start, count, next; /* next: 0 is the end (a list's first chunk is never a next) */
} value_chunk;
typedef struct value_list {
    uint32_t first, last, count;
    uint32_t stack; /* as a list of frames, once asked; 0: not yet */
} value_list;

#define OOS_VALUES_ARRAY(type)                                                                               \
    struct {                                                                                                 \
        type *list;                                                                                          \
        size_t count, capacity;                                                                              \
    }

struct oos_values {
    bool failed;
    OOS_VALUES_ARRAY(oos_snapshot_value) stack;
    OOS_VALUES_ARRAY(size_t) marks;
    OOS_VALUES_ARRAY(uint32_t) memo;
    OOS_VALUES_ARRAY(uint64_t) numbers;
    OOS_VALUES_ARRAY(value_list) lists;
    OOS_VALUES_ARRAY(value_chunk) chunks;
    OOS_VALUES_ARRAY(uint32_t) items;
    OOS_VALUES_ARRAY(value_dict) dicts;
    OOS_VALUES_ARRAY(oos_frame) frames;
    OOS_VALUES_ARRAY(oos_snapshot_entry) entries;
    OOS_VALUES_ARRAY(oos_snapshot_block) blocks;
    oos_snapshot *snapshot;
};

bool oos_values_grow(oos_values *v, void *array, size_t item_bytes);
#define GROW_VALUES(v, array) oos_values_grow((v), &(array), sizeof *(array).list)

uint32_t oos_values_store(oos_values *v, oos_snapshot_value value);
oos_snapshot_value oos_values_load(const oos_values *v, uint32_t ref);
void oos_values_list_add(oos_values *v, uint32_t index, size_t first);

/* values_snapshot.c: key, value, ... from `first` to the stack's end, into a dict. */
void oos_values_dict_add(oos_values *v, uint32_t index, size_t first);
