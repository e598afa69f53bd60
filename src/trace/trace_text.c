/* Traces written by hand: one call per line, words separated by blanks, # begins a comment. Names of allocations are
 * any words; sizes take units; a pool is written first.second. See docs/reference/formats/trace.md. */
#include "trace/trace.h"
#include "base/hash.h"
#include "base/locale.h"

#include <stdlib.h>

enum { LINE_BYTES = 4096, WORDS = 8 };

typedef struct text_reader {
    oos_cursor in;
    oos_trace_builder *builder;
    oomsight_error *reterr;
    uint32_t line;
    char text[LINE_BYTES];
    const char *words[WORDS];
    unsigned count;
} text_reader;

static oomsight_status fail(text_reader *r, const char *what, const char *word)
{
    oomsight_status const status = oos_fail(r->reterr, OOMSIGHT_MALFORMED, "%s '%s'", what, word);
    if (r->reterr) r->reterr->line = r->line;
    return status;
}

static oomsight_status number(text_reader *r, unsigned at, uint64_t otherwise, uint64_t *ret_number)
{
    *ret_number = otherwise;
    if (at >= r->count) return OOMSIGHT_OK;
    char *end;
    *ret_number = strtoull(r->words[at], &end, 0);
    return *end ? fail(r, "not a number:", r->words[at]) : OOMSIGHT_OK;
}

static oomsight_status size(text_reader *r, unsigned at, uint64_t *ret_bytes)
{
    if (at >= r->count) return fail(r, "a size is missing behind", r->words[0]);
    return oos_size_parse(oos_view_of(r->words[at]), ret_bytes) ? OOMSIGHT_OK
                                                                : fail(r, "not a size:", r->words[at]);
}

static oomsight_status pool(text_reader *r, unsigned at, oos_pool_id *ret_pool)
{
    *ret_pool = (oos_pool_id){0, 0};
    if (at >= r->count) return OOMSIGHT_OK;
    char *end;
    ret_pool->first = strtoull(r->words[at], &end, 10);
    if (*end != '.') return fail(r, "a pool is written first.second, not", r->words[at]);
    ret_pool->second = strtoull(end + 1, &end, 10);
    return *end ? fail(r, "a pool is written first.second, not", r->words[at]) : OOMSIGHT_OK;
}

/* Names are any words; numbers stay themselves, so that traces of numbers compare with other forms. */
static uint64_t name_of(const char *word)
{
    char *end;
    uint64_t const value = strtoull(word, &end, 10);
    if (*word && !*end) return value;
    return oos_hash_add(OOS_HASH_START, word, strlen(word)) | (uint64_t)1 << 63;
}

static const char *const header_keys[] = {"torch",       "settings",  "device_total",
                                          "device_used", "placement", "nvml"};

static bool is_header(const char *key)
{
    for (size_t i = 0; i < sizeof header_keys / sizeof *header_keys; i++)
        if (strcmp(key, header_keys[i]) == 0) return true;
    return false;
}

bool oos_trace_begins_text(oos_view head)
{
    size_t known = 0;
    for (size_t at = 0; at < head.len;) {
        const char *end = memchr(head.ptr + at, '\n', head.len - at);
        size_t const next = end ? (size_t)(end - head.ptr) + 1 : head.len;
        char word[24];
        size_t len = 0;
        while (at < next && strchr(" \t\r\n", head.ptr[at])) at++;
        while (at + len < next && len + 1 < sizeof word && !strchr(" \t\r\n", head.ptr[at + len])) len++;
        memcpy(word, head.ptr + at, len);
        word[len] = '\0';
        at = next;
        oos_op op;
        if (len == 0 || word[0] == '#') continue;
        if (!is_header(word) && !oos_op_find(word, &op)) return !end && known >= 2;
        known++;
    }
    return known >= 2;
}

static oomsight_status header(text_reader *r, bool *ret_taken)
{
    oos_trace *trace = oos_trace_builder_trace(r->builder);
    const char *key = r->words[0], *value = r->count > 1 ? r->words[1] : "";
    uint64_t bytes;
    *ret_taken = true;
    if (strcmp(key, "torch") == 0)
        return oos_version_parse(oos_view_of(value), &trace->torch) ? OOMSIGHT_OK
                                                                    : fail(r, "not a torch version:", value);
    if (strcmp(key, "settings") == 0) {
        free(trace->settings);
        trace->settings = strdup(value);
        return OOMSIGHT_OK;
    }
    if (strcmp(key, "device_total") == 0 || strcmp(key, "device_used") == 0) {
        OOS_TRY(size(r, 1, &bytes));
        *(key[7] == 't' ? &trace->total_bytes : &trace->base_bytes) = oos_u64_of(bytes);
        return OOMSIGHT_OK;
    }
    if (strcmp(key, "placement") == 0) {
        trace->placement = strcmp(value, "firstfit") == 0 ? OOS_PLACEMENT_FIRST_FIT : OOS_PLACEMENT_BUMP;
        return OOMSIGHT_OK;
    }
    if (strcmp(key, "nvml") == 0) {
        trace->nvml = strcmp(value, "off") != 0;
        return OOMSIGHT_OK;
    }
    *ret_taken = false;
    return OOMSIGHT_OK;
}

static oomsight_status operation(text_reader *r)
{
    oos_op op;
    oos_pool_id id = {0, 0};
    uint64_t stream = 0;
    double fraction = 1;
    if (!oos_op_find(r->words[0], &op)) return fail(r, "no call is named", r->words[0]);
    bool const named = op == OOS_OP_MALLOC || op == OOS_OP_FREE || op == OOS_OP_RECORD_STREAM;
    if (named && r->count < 2) return fail(r, "a name is missing behind", r->words[0]);
    oos_event event = {.op = (uint8_t)op, .id = OOS_NO_ID};
    if (op == OOS_OP_MALLOC) {
        OOS_TRY(size(r, 2, &event.bytes));
        OOS_TRY(number(r, 3, 0, &stream));
        event.id = oos_trace_new_id(r->builder, name_of(r->words[1]));
        if (r->count > 4) { /* who asked */
            uint32_t const text = oos_trace_string(r->builder, oos_view_of(r->words[4]));
            uint32_t const frame = oos_trace_frame(r->builder, (oos_frame){.name = text});
            event.stack = oos_trace_stack(r->builder, (oos_stack){frame, 0});
        }
    } else if (named) {
        event.id = oos_trace_find_id(r->builder, name_of(r->words[1]));
        OOS_TRY(number(r, 2, 0, &stream));
    } else if (op == OOS_OP_COMPLETE) {
        OOS_TRY(number(r, 1, 0, &stream));
    } else if (op == OOS_OP_SET_FRACTION) {
        fraction = r->count > 1 ? oos_real_read(r->words[1], NULL) : 1;
        memcpy(&event.bytes, &fraction, sizeof event.bytes);
    } else if (op == OOS_OP_SET_SETTINGS) {
        event.id = oos_trace_string(r->builder, oos_view_of(r->count > 1 ? r->words[1] : ""));
    } else {
        OOS_TRY(pool(r, 1, &id));
        const char *word = r->count > 2 ? r->words[2] : "";
        if (op == OOS_OP_POOL_CREATE)
            event.value = strcmp(word, "sticky") == 0  ? OOS_BACKEND_STICKY
                          : strcmp(word, "clean") == 0 ? OOS_BACKEND_CLEAN
                                                       : OOS_BACKEND_DRIVER;
        else
            event.value = strcmp(word, "off") != 0;
    }
    event.stream = (uint16_t)oos_trace_stream(r->builder, stream);
    event.pool = (uint16_t)oos_trace_pool(r->builder, id);
    oos_trace_add(r->builder, event);
    return OOMSIGHT_OK;
}

/* The words of the next line; false at the end. */
static bool next_line(text_reader *r)
{
    size_t len = 0;
    int c;
    r->line++;
    while ((c = oos_cursor_get(&r->in)) >= 0 && c != '\n')
        if (len + 1 < LINE_BYTES) r->text[len++] = c == '\t' || c == '\r' || c == 0 ? ' ' : (char)c;
    r->text[len] = '\0';
    char *comment = strchr(r->text, '#');
    if (comment) *comment = '\0';
    r->count = 0;
    char *rest = NULL;
    for (char *word = strtok_r(r->text, " ", &rest); word && r->count < WORDS;
         word = strtok_r(NULL, " ", &rest))
        r->words[r->count++] = word;
    return c >= 0 || len > 0;
}

static oomsight_status read_lines(text_reader *r)
{
    while (next_line(r)) {
        bool taken = false;
        if (r->count == 0) continue;
        OOS_TRY(header(r, &taken));
        if (!taken) OOS_TRY(operation(r));
    }
    return r->in.status;
}

oomsight_status oos_trace_read_text(oos_stream *stream, oos_trace **ret_trace, oomsight_error *reterr)
{
    text_reader *r = calloc(1, sizeof *r);
    if (r) r->builder = oos_trace_builder_create();
    oomsight_status status;
    if (!r || !r->builder) {
        status = oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the trace");
    } else {
        r->reterr = reterr;
        oos_cursor_init(&r->in, stream, reterr);
        status = read_lines(r);
        if (status == OOMSIGHT_OK) status = oos_trace_builder_take(r->builder, ret_trace, reterr);
    }
    if (r) oos_trace_builder_free(r->builder);
    free(r);
    return status;
}
