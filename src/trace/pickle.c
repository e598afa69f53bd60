/* Pickle without Python: the opcodes that memory snapshots consist of, and no other. Nothing here can import a name,
 * call a function or build an object; an opcode that could is refused by its name and offset. */
#include "trace/trace.h"
#include "base/check.h"

#include <stdlib.h>

enum { LONGEST_STRING = 1 << 20 };

typedef struct machine {
    oos_cursor in;
    oos_values *values;
    oomsight_error *reterr;
    char *text; /* for strings that lie across two chunks */
    size_t text_capacity;
    uint64_t offset; /* of the current opcode */
} machine;

/* Opcodes that exist and are refused. */
static const struct {
    unsigned char code;
    const char *name;
} refused[] = {{'c', "GLOBAL"},
               {0x93, "STACK_GLOBAL"},
               {'R', "REDUCE"},
               {'b', "BUILD"},
               {'i', "INST"},
               {'o', "OBJ"},
               {0x81, "NEWOBJ"},
               {0x92, "NEWOBJ_EX"},
               {0x82, "EXT1"},
               {0x83, "EXT2"},
               {0x84, "EXT4"},
               {'P', "PERSID"},
               {'Q', "BINPERSID"},
               {'F', "FLOAT"},
               {'I', "INT"},
               {'L', "LONG"},
               {'S', "STRING"},
               {'T', "BINSTRING"},
               {'U', "SHORT_BINSTRING"},
               {'V', "UNICODE"},
               {'B', "BINBYTES"},
               {'C', "SHORT_BINBYTES"},
               {0x8e, "BINBYTES8"},
               {0x96, "BYTEARRAY8"},
               {0x97, "NEXT_BUFFER"},
               {0x98, "READONLY_BUFFER"},
               {0x8f, "EMPTY_SET"},
               {0x90, "ADDITEMS"},
               {0x91, "FROZENSET"},
               {'0', "POP"},
               {'1', "POP_MARK"},
               {'2', "DUP"},
               {'d', "DICT"},
               {'l', "LIST"},
               {'g', "GET"},
               {'p', "PUT"}};

static oomsight_status fail(machine *m, const char *what)
{
    if (m->in.status != OOMSIGHT_OK) return m->in.status;
    return oos_fail(m->reterr, OOMSIGHT_MALFORMED, "%s at offset %llu", what, (unsigned long long)m->offset);
}

static oomsight_status refuse(machine *m, int code)
{
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        if (refused[i].code == code)
            return oos_fail(m->reterr, OOMSIGHT_MALFORMED,
                            "opcode %s at offset %llu: a memory snapshot needs no such thing; refused",
                            refused[i].name, (unsigned long long)m->offset);
    return oos_fail(m->reterr, OOMSIGHT_MALFORMED, "byte 0x%02x at offset %llu is no pickle opcode",
                    (unsigned)code, (unsigned long long)m->offset);
}

static bool little_endian(machine *m, size_t len, uint64_t *ret_number)
{
    unsigned char bytes[8];
    oos_assert(len <= sizeof bytes);
    if (!oos_cursor_read(&m->in, bytes, len)) return false;
    uint64_t number = 0;
    for (size_t i = len; i-- > 0;) number = number << 8 | bytes[i];
    *ret_number = number;
    return true;
}

/* The next `len` bytes: in place where they lie in one chunk. */
static bool read_text(machine *m, size_t len, oos_view *ret_text)
{
    if (oos_cursor_peek(&m->in) >= 0 && m->in.chunk.len - m->in.at >= len) {
        *ret_text = (oos_view){m->in.chunk.ptr + m->in.at, len};
        m->in.at += len;
        return true;
    }
    if (len > m->text_capacity) {
        char *grown = realloc(m->text, len);
        if (!grown) return false;
        m->text = grown;
        m->text_capacity = len;
    }
    *ret_text = (oos_view){m->text, len};
    return oos_cursor_read(&m->in, m->text, len);
}

static oomsight_status read_string(machine *m, size_t length_bytes)
{
    uint64_t len;
    oos_view text;
    if (!little_endian(m, length_bytes, &len)) return fail(m, "the pickle ends inside a string");
    if (len > LONGEST_STRING) return fail(m, "a string of more than 1 MiB");
    if (!read_text(m, (size_t)len, &text)) return fail(m, "the pickle ends inside a string");
    oos_values_push_string(m->values, text);
    return OOMSIGHT_OK;
}

/* Two's complement of any length; what does not fit 64 bits is kept as "no number". */
static oomsight_status read_long(machine *m, size_t length_bytes)
{
    uint64_t len, number = 0;
    unsigned char last = 0;
    if (!little_endian(m, length_bytes, &len)) return fail(m, "the pickle ends inside a number");
    if (len > LONGEST_STRING) return fail(m, "a number of more than 1 MiB");
    for (uint64_t i = 0; i < len; i++) {
        int const c = oos_cursor_get(&m->in);
        if (c < 0) return fail(m, "the pickle ends inside a number");
        last = (unsigned char)c;
        if (i < 8) number |= (uint64_t)c << 8 * i;
    }
    bool const fits = len <= 8 || (len == 9 && last == 0);
    if (len && len < 8 && last & 0x80) number |= ~(uint64_t)0 << 8 * len;
    oos_values_push(m->values, (oos_snapshot_value){fits ? OOS_KIND_INT : OOS_KIND_NONE, fits ? number : 0});
    return OOMSIGHT_OK;
}

static oomsight_status read_int(machine *m, size_t len, bool is_signed)
{
    uint64_t number;
    if (!little_endian(m, len, &number)) return fail(m, "the pickle ends inside a number");
    if (is_signed) number = (uint64_t)(int64_t)(int32_t)(uint32_t)number;
    oos_values_push(m->values, (oos_snapshot_value){OOS_KIND_INT, number});
    return OOMSIGHT_OK;
}

static oomsight_status read_float(machine *m)
{
    uint64_t number;
    if (!little_endian(m, 8, &number)) return fail(m, "the pickle ends inside a number");
    oos_values_push(m->values, (oos_snapshot_value){OOS_KIND_REAL, __builtin_bswap64(number)});
    return OOMSIGHT_OK;
}

static oomsight_status memo(machine *m, size_t len, bool put)
{
    uint64_t at = UINT32_MAX;
    if (len && !little_endian(m, len, &at)) return fail(m, "the pickle ends inside a memo number");
    bool const done =
        put ? oos_values_memo_put(m->values, (uint32_t)at) : oos_values_memo_get(m->values, (uint32_t)at);
    return done ? OOMSIGHT_OK : fail(m, "a memo number that was never given");
}

static oomsight_status check(machine *m, bool done)
{
    return done ? OOMSIGHT_OK : fail(m, "an opcode without the values it needs");
}

static oomsight_status skip(machine *m, size_t len)
{
    uint64_t ignored;
    return little_endian(m, len, &ignored) ? OOMSIGHT_OK : fail(m, "the pickle ends too early");
}

static oomsight_status step(machine *m, int code)
{
    oos_values *v = m->values;
    switch (code) {
    case 0x80: return skip(m, 1); /* PROTO */
    case 0x95: return skip(m, 8); /* FRAME */
    case '}': oos_values_push_dict(v); return OOMSIGHT_OK;
    case ']': return check(m, oos_values_push_list(v, false));
    case ')': return check(m, oos_values_push_tuple(v, 0));
    case 0x85: return check(m, oos_values_push_tuple(v, 1));
    case 0x86: return check(m, oos_values_push_tuple(v, 2));
    case 0x87: return check(m, oos_values_push_tuple(v, 3));
    case 't': return check(m, oos_values_push_list(v, true));
    case '(': return check(m, oos_values_mark(v));
    case 'u': return check(m, oos_values_set_items(v, true));
    case 's': return check(m, oos_values_set_items(v, false));
    case 'e': return check(m, oos_values_append(v, true));
    case 'a': return check(m, oos_values_append(v, false));
    case 0x94: return memo(m, 0, true); /* MEMOIZE */
    case 'q': return memo(m, 1, true);
    case 'r': return memo(m, 4, true);
    case 'h': return memo(m, 1, false);
    case 'j': return memo(m, 4, false);
    case 0x8c: return read_string(m, 1);
    case 'X': return read_string(m, 4);
    case 0x8d: return read_string(m, 8);
    case 'K': return read_int(m, 1, false);
    case 'M': return read_int(m, 2, false);
    case 'J': return read_int(m, 4, true);
    case 0x8a: return read_long(m, 1);
    case 0x8b: return read_long(m, 4);
    case 'G': return read_float(m);
    case 'N': oos_values_push(v, (oos_snapshot_value){OOS_KIND_NONE, 0}); return OOMSIGHT_OK;
    case 0x88: oos_values_push(v, (oos_snapshot_value){OOS_KIND_BOOL, 1}); return OOMSIGHT_OK;
    case 0x89: oos_values_push(v, (oos_snapshot_value){OOS_KIND_BOOL, 0}); return OOMSIGHT_OK;
    default: return refuse(m, code);
    }
}

static oomsight_status run(machine *m)
{
    for (;;) {
        m->offset = oos_cursor_offset(&m->in);
        int const code = oos_cursor_get(&m->in);
        if (code < 0) return fail(m, "the pickle ends without STOP");
        if (code == '.') return OOMSIGHT_OK;
        OOS_TRY(step(m, code));
        if (oos_values_failed(m->values))
            return oos_fail(m->reterr, OOMSIGHT_NOMEM, "no memory for the snapshot");
    }
}

oomsight_status oos_snapshot_read_pickle(oos_stream *stream, oos_snapshot **ret_snapshot,
                                         oomsight_error *reterr)
{
    machine m = {.values = oos_values_create(), .reterr = reterr};
    oos_cursor_init(&m.in, stream, reterr);
    oomsight_status status =
        m.values ? run(&m) : oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the snapshot");
    if (status == OOMSIGHT_OK) status = oos_values_to_snapshot(m.values, ret_snapshot, reterr);
    oos_values_free(m.values);
    free(m.text);
    return status;
}
