/* Tokens of JSON with a stack of open brackets. */
#include "trace/trace.h"
#include "base/check.h"
#include "base/locale.h"

#include <stdlib.h>

void oos_pull_init(oos_pull *pull, oos_stream *stream, oomsight_error *reterr)
{
    oos_cursor_init(&pull->cursor, stream, reterr);
    pull->token = OOS_TOKEN_END;
    pull->depth = 0;
    pull->line = 1;
    pull->len = 0;
    pull->after_value = pull->after_key = false;
}

static oomsight_status fail(oos_pull *p, const char *why)
{
    if (p->cursor.status != OOMSIGHT_OK) return p->cursor.status;
    oomsight_status const status = oos_fail(p->cursor.reterr, OOMSIGHT_MALFORMED, "not JSON: %s", why);
    if (p->cursor.reterr) p->cursor.reterr->line = p->line < UINT32_MAX ? (uint32_t)p->line : UINT32_MAX;
    return status;
}

static int skip_blanks(oos_pull *p)
{
    for (;;) {
        int const c = oos_cursor_peek(&p->cursor);
        if (c == '\n') p->line++;
        if (c != ' ' && c != '\n' && c != '\t' && c != '\r') return c;
        p->cursor.at++;
    }
}

static void put(oos_pull *p, unsigned char byte)
{
    if (p->len < OOS_PULL_STRING_BYTES) p->text[p->len++] = (char)byte;
}

static void put_utf8(oos_pull *p, uint32_t code)
{
    if (code < 0x80) {
        put(p, (unsigned char)code);
    } else if (code < 0x800) {
        put(p, (unsigned char)(0xc0 | code >> 6));
        put(p, (unsigned char)(0x80 | (code & 0x3f)));
    } else if (code < 0x10000) {
        put(p, (unsigned char)(0xe0 | code >> 12));
        put(p, (unsigned char)(0x80 | (code >> 6 & 0x3f)));
        put(p, (unsigned char)(0x80 | (code & 0x3f)));
    } else {
        put(p, (unsigned char)(0xf0 | code >> 18));
        put(p, (unsigned char)(0x80 | (code >> 12 & 0x3f)));
        put(p, (unsigned char)(0x80 | (code >> 6 & 0x3f)));
        put(p, (unsigned char)(0x80 | (code & 0x3f)));
    }
}

static bool hex4(oos_pull *p, uint32_t *ret_code)
{
    uint32_t code = 0;
    for (int i = 0; i < 4; i++) {
        int const c = oos_cursor_get(&p->cursor);
        uint32_t digit;
        if (c >= '0' && c <= '9')
            digit = (uint32_t)(c - '0');
        else if (c >= 'a' && c <= 'f')
            digit = (uint32_t)(c - 'a' + 10);
        else if (c >= 'A' && c <= 'F')
            digit = (uint32_t)(c - 'A' + 10);
        else
            return false;
        code = code << 4 | digit;
    }
    *ret_code = code;
    return true;
}

static oomsight_status escape(oos_pull *p)
{
    int const c = oos_cursor_get(&p->cursor);
    uint32_t code, low;
    switch (c) {
    case 'n': put(p, '\n'); return OOMSIGHT_OK;
    case 't': put(p, '\t'); return OOMSIGHT_OK;
    case 'r': put(p, '\r'); return OOMSIGHT_OK;
    case 'b': put(p, '\b'); return OOMSIGHT_OK;
    case 'f': put(p, '\f'); return OOMSIGHT_OK;
    case '"':
    case '\\':
    case '/': put(p, (unsigned char)c); return OOMSIGHT_OK;
    case 'u': break;
    default: return fail(p, "an unknown escape");
    }
    if (!hex4(p, &code)) return fail(p, "a broken \\u escape");
    if (code >= 0xd800 && code < 0xdc00) {
        if (oos_cursor_get(&p->cursor) != '\\' || oos_cursor_get(&p->cursor) != 'u' || !hex4(p, &low) ||
            low < 0xdc00 || low > 0xdfff)
            return fail(p, "half of a surrogate pair");
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    }
    put_utf8(p, code);
    return OOMSIGHT_OK;
}

static oomsight_status string(oos_pull *p)
{
    p->len = 0;
    for (;;) {
        int const c = oos_cursor_get(&p->cursor);
        if (c == '"') break;
        if (c < 0x20) return fail(p, c < 0 ? "a string without an end" : "a control character in a string");
        if (c == '\\')
            OOS_TRY(escape(p));
        else
            put(p, (unsigned char)c);
    }
    oos_assert(p->len < sizeof p->text);
    p->text[p->len] = '\0';
    return OOMSIGHT_OK;
}

static bool is_number_byte(int c)
{
    return (c >= '0' && c <= '9') || c == '-' || c == '+' || c == '.' || c == 'e' || c == 'E';
}

static oomsight_status number(oos_pull *p)
{
    char digits[48];
    size_t len = 0;
    bool whole = true, fits = true;
    p->negative = false;
    p->integer = 0;
    while (is_number_byte(oos_cursor_peek(&p->cursor))) {
        int const c = oos_cursor_get(&p->cursor);
        if (len + 1 >= sizeof digits) return fail(p, "a number of more than 47 characters");
        digits[len++] = (char)c;
        if (c == '-' && len == 1) {
            p->negative = true;
        } else if (c >= '0' && c <= '9') {
            fits = fits && !__builtin_mul_overflow(p->integer, (uint64_t)10, &p->integer) &&
                   !__builtin_add_overflow(p->integer, (uint64_t)(c - '0'), &p->integer);
        } else {
            whole = false;
        }
    }
    digits[len] = '\0';
    if (len == (p->negative ? 1 : 0)) return fail(p, "a number without digits");
    if (whole && fits) {
        p->real = p->negative ? -(double)p->integer : (double)p->integer;
        p->token = OOS_TOKEN_INTEGER;
        return OOMSIGHT_OK;
    }
    char *end;
    p->real = oos_real_read(digits, &end);
    if (*end) return fail(p, "a broken number");
    p->token = OOS_TOKEN_REAL;
    return OOMSIGHT_OK;
}

static oomsight_status word(oos_pull *p, const char *rest, oos_token token)
{
    for (; *rest; rest++)
        if (oos_cursor_get(&p->cursor) != *rest) return fail(p, "an unknown word");
    p->token = token;
    return OOMSIGHT_OK;
}

static oomsight_status open_bracket(oos_pull *p, char bracket)
{
    if (p->depth == OOS_PULL_DEPTH) return fail(p, "nested too deeply");
    p->open[p->depth++] = bracket;
    p->token = bracket == '{' ? OOS_TOKEN_OBJECT : OOS_TOKEN_ARRAY;
    p->after_value = p->after_key = false;
    return OOMSIGHT_OK;
}

static oomsight_status close_bracket(oos_pull *p, char bracket)
{
    if (p->depth == 0 || p->open[p->depth - 1] != bracket || p->after_key)
        return fail(p, "a closing bracket too many");
    p->depth--;
    p->token = bracket == '{' ? OOS_TOKEN_OBJECT_END : OOS_TOKEN_ARRAY_END;
    p->after_value = true;
    return OOMSIGHT_OK;
}

static oomsight_status value(oos_pull *p, int c)
{
    switch (c) {
    case '{': return open_bracket(p, '{');
    case '[': return open_bracket(p, '[');
    case '"':
        OOS_TRY(string(p));
        p->token = OOS_TOKEN_STRING;
        break;
    case 't': OOS_TRY(word(p, "rue", OOS_TOKEN_TRUE)); break;
    case 'f': OOS_TRY(word(p, "alse", OOS_TOKEN_FALSE)); break;
    case 'n': OOS_TRY(word(p, "ull", OOS_TOKEN_NULL)); break;
    default: return fail(p, "an unexpected character");
    }
    p->after_key = false;
    p->after_value = true;
    return OOMSIGHT_OK;
}

oomsight_status oos_pull_next(oos_pull *p)
{
    int c = skip_blanks(p);
    if (p->depth == 0) p->after_value = false;
    if (c < 0) {
        if (p->depth || p->cursor.status != OOMSIGHT_OK) return fail(p, "it ends too early");
        p->token = OOS_TOKEN_END;
        return OOMSIGHT_OK;
    }
    if (c == '}' || c == ']') {
        p->cursor.at++;
        return close_bracket(p, c == '}' ? '{' : '[');
    }
    if (p->after_value) {
        if (c != ',') return fail(p, "a comma is missing");
        p->cursor.at++;
        p->after_value = false;
        c = skip_blanks(p);
    }
    bool const key_next = p->depth && p->open[p->depth - 1] == '{' && !p->after_key;
    if (key_next) {
        if (c != '"') return fail(p, "a key is missing");
        p->cursor.at++;
        OOS_TRY(string(p));
        if (skip_blanks(p) != ':') return fail(p, "a colon is missing");
        p->cursor.at++;
        p->after_key = true;
        p->token = OOS_TOKEN_KEY;
        return OOMSIGHT_OK;
    }
    if (c == '-' || (c >= '0' && c <= '9')) {
        OOS_TRY(number(p));
        p->after_key = false;
        p->after_value = true;
        return OOMSIGHT_OK;
    }
    if (c >= 0) p->cursor.at++;
    return value(p, c);
}

oomsight_status oos_pull_skip(oos_pull *p)
{
    if (p->token != OOS_TOKEN_OBJECT && p->token != OOS_TOKEN_ARRAY) return OOMSIGHT_OK;
    oos_assert(p->depth > 0); /* that of the bracket that was opened */
    unsigned const until = p->depth - 1;
    while (p->depth > until) OOS_TRY(oos_pull_next(p));
    return OOMSIGHT_OK;
}

bool oos_pull_u64(const oos_pull *p, uint64_t *ret_number)
{
    if (p->token != OOS_TOKEN_INTEGER || (p->negative && p->integer)) return false;
    *ret_number = p->integer;
    return true;
}
