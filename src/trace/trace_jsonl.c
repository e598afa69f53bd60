/* A trace as JSON lines: a "meta" line that describes the device, then one operation per line. Only what was asked is
 * read; what a recorded run answered (addresses, texts, layouts) is skipped. */
#include "trace/trace.h"

#include <stdlib.h>

/* The fields of one line that can matter. */
typedef struct line {
    char op[32];
    char text[4096]; /* settings */
    char torch[32], placement[16], backend[16], name[64];
    uint64_t id, size, stream, total, base, device;
    double fraction;
    oos_pool_id pool;
    bool has_id, has_size, has_total, has_base, value, nvml, hash_order, has_text;
} line;

static void copy_text(char *to, size_t capacity, const oos_pull *p)
{
    size_t const len = p->len < capacity - 1 ? p->len : capacity - 1;
    memcpy(to, p->text, len);
    to[len] = '\0';
}

static oomsight_status read_pool(oos_pull *p, oos_pool_id *ret_pool)
{
    uint64_t numbers[2] = {0, 0};
    size_t count = 0;
    if (p->token != OOS_TOKEN_ARRAY) return oos_pull_skip(p);
    for (;;) {
        OOS_TRY(oos_pull_next(p));
        if (p->token == OOS_TOKEN_ARRAY_END) break;
        if (count < 2 && oos_pull_u64(p, &numbers[count])) count++;
        OOS_TRY(oos_pull_skip(p));
    }
    *ret_pool = (oos_pool_id){numbers[0], numbers[1]};
    return OOMSIGHT_OK;
}

static oomsight_status read_field(oos_pull *p, const char *key, line *l)
{
    bool const is_text = p->token == OOS_TOKEN_STRING;
    if (strcmp(key, "pool") == 0) return read_pool(p, &l->pool);
    if (strcmp(key, "id") == 0)
        l->has_id = oos_pull_u64(p, &l->id);
    else if (strcmp(key, "size") == 0)
        l->has_size = oos_pull_u64(p, &l->size);
    else if (strcmp(key, "stream") == 0)
        (void)oos_pull_u64(p, &l->stream);
    else if (strcmp(key, "device") == 0)
        oos_pull_u64(p, &l->device);
    else if (strcmp(key, "device_total") == 0)
        l->has_total = oos_pull_u64(p, &l->total);
    else if (strcmp(key, "device_base_used") == 0)
        l->has_base = oos_pull_u64(p, &l->base);
    else if (strcmp(key, "fraction") == 0 && (p->token == OOS_TOKEN_REAL || p->token == OOS_TOKEN_INTEGER))
        l->fraction = p->real;
    else if (strcmp(key, "value") == 0)
        l->value = p->token == OOS_TOKEN_TRUE || (p->token == OOS_TOKEN_INTEGER && p->integer != 0);
    else if (strcmp(key, "nvml") == 0)
        l->nvml = p->token == OOS_TOKEN_TRUE;
    else if (strcmp(key, "hash_order") == 0)
        l->hash_order = p->token == OOS_TOKEN_TRUE;
    else if (is_text && strcmp(key, "op") == 0)
        copy_text(l->op, sizeof l->op, p);
    else if (is_text && strcmp(key, "settings") == 0) {
        copy_text(l->text, sizeof l->text, p);
        l->has_text = true;
    } else if (is_text && strcmp(key, "torch") == 0)
        copy_text(l->torch, sizeof l->torch, p);
    else if (is_text && strcmp(key, "va_policy") == 0)
        copy_text(l->placement, sizeof l->placement, p);
    else if (is_text && strcmp(key, "backend") == 0)
        copy_text(l->backend, sizeof l->backend, p);
    else if (is_text && strcmp(key, "name") == 0)
        copy_text(l->name, sizeof l->name, p);
    return oos_pull_skip(p);
}

static oomsight_status read_line(oos_pull *p, line *l)
{
    char key[32];
    *l = (line){.value = true};
    for (;;) {
        OOS_TRY(oos_pull_next(p));
        if (p->token == OOS_TOKEN_OBJECT_END) return OOMSIGHT_OK;
        copy_text(key, sizeof key, p);
        OOS_TRY(oos_pull_next(p));
        OOS_TRY(read_field(p, key, l));
    }
}

static void take_meta(const line *l, oos_trace *trace)
{
    oos_version_parse(oos_view_of(l->torch), &trace->torch);
    if (l->has_text) {
        free(trace->settings);
        trace->settings = strdup(l->text);
    }
    free(trace->name);
    trace->name = strdup(l->name);
    if (l->has_total) trace->total_bytes = oos_u64_of(l->total);
    if (l->has_base) trace->base_bytes = oos_u64_of(l->base);
    trace->placement = strcmp(l->placement, "firstfit") == 0 ? OOS_PLACEMENT_FIRST_FIT : OOS_PLACEMENT_BUMP;
    trace->nvml = l->nvml;
    trace->hash_order = l->hash_order;
}

static oos_backend backend_of(const char *word)
{
    if (strcmp(word, "sticky") == 0) return OOS_BACKEND_STICKY;
    return *word ? OOS_BACKEND_CLEAN : OOS_BACKEND_DRIVER;
}

static oomsight_status take_op(oos_pull *p, const line *l, oos_trace_builder *builder)
{
    oos_op op;
    if (!oos_op_find(l->op, &op))
        return oos_fail(p->cursor.reterr, OOMSIGHT_MALFORMED, "no operation is called '%s'", l->op);
    bool const wants_id = op == OOS_OP_MALLOC || op == OOS_OP_FREE || op == OOS_OP_RECORD_STREAM;
    if ((wants_id && !l->has_id) || (op == OOS_OP_MALLOC && !l->has_size))
        return oos_fail(p->cursor.reterr, OOMSIGHT_MALFORMED, "'%s' without id or size", l->op);
    if (l->device > 63)
        return oos_fail(p->cursor.reterr, OOMSIGHT_MALFORMED, "device %llu", (unsigned long long)l->device);
    oos_event event = {.op = (uint8_t)op, .device = (uint8_t)l->device, .id = OOS_NO_ID};
    event.stream = (uint16_t)oos_trace_stream(builder, l->stream);
    event.pool = (uint16_t)oos_trace_pool(builder, l->pool);
    event.value = op == OOS_OP_POOL_CREATE ? (uint8_t)backend_of(l->backend) : l->value;
    if (op == OOS_OP_MALLOC) {
        event.bytes = l->size;
        event.id = oos_trace_new_id(builder, l->id);
    } else if (wants_id) {
        event.id = oos_trace_find_id(builder, l->id);
    } else if (op == OOS_OP_SET_FRACTION) {
        memcpy(&event.bytes, &l->fraction, sizeof event.bytes);
    } else if (op == OOS_OP_SET_SETTINGS) {
        event.id = oos_trace_string(builder, oos_view_of(l->text));
    }
    oos_trace_add(builder, event);
    return OOMSIGHT_OK;
}

static oomsight_status read_lines(oos_pull *p, oos_trace_builder *builder)
{
    line *l = malloc(sizeof *l);
    if (!l) return oos_fail(p->cursor.reterr, OOMSIGHT_NOMEM, "no memory for a line");
    oomsight_status status = OOMSIGHT_OK;
    while (status == OOMSIGHT_OK) {
        status = oos_pull_next(p);
        if (status != OOMSIGHT_OK || p->token == OOS_TOKEN_END) break;
        if (p->token != OOS_TOKEN_OBJECT) {
            status = oos_fail(p->cursor.reterr, OOMSIGHT_MALFORMED, "a line that is not an object");
        } else {
            status = read_line(p, l);
            if (status != OOMSIGHT_OK) break;
            if (strcmp(l->op, "meta") == 0)
                take_meta(l, oos_trace_builder_trace(builder));
            else if (strcmp(l->op, "final") != 0)
                status = take_op(p, l, builder);
        }
        if (status != OOMSIGHT_OK && p->cursor.reterr) p->cursor.reterr->line = (uint32_t)p->line;
    }
    free(l);
    return status;
}

oomsight_status oos_trace_read_jsonl(oos_stream *stream, oos_trace **ret_trace, oomsight_error *reterr)
{
    oos_pull *pull = malloc(sizeof *pull);
    oos_trace_builder *builder = oos_trace_builder_create();
    oomsight_status status;
    if (!pull || !builder) {
        status = oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the trace");
    } else {
        oos_pull_init(pull, stream, reterr);
        status = read_lines(pull, builder);
        if (status == OOMSIGHT_OK) status = oos_trace_builder_take(builder, ret_trace, reterr);
    }
    oos_trace_builder_free(builder);
    free(pull);
    return status;
}
