/* A quick reader of JSON for what nearly all files are: Jansson goes through a call for every byte, and reading our own data that way
 * was most of a cold start. Whatever is unusual here or wrong is left to Jansson, from the beginning: it decides and says why. */
#include "base/json.h"
#include "base/check.h"
#include "base/locale.h"
#include "base/scan.h"
#include "base/shown.h"

#include <math.h>
#include <stdlib.h>

enum { LEVELS_MAX = 48, KEY_MAX = 256, DIGITS_MAX = 18 };

typedef struct reader {
    oos_scan scan;
    char *text; /* a string without its escapes */
    size_t room;
} reader;

static json_t *value_read(reader *in, unsigned level);

static char unescaped(char byte)
{
    switch (byte) {
    case '"':
    case '\\':
    case '/': return byte;
    case 'b': return '\b';
    case 'f': return '\f';
    case 'n': return '\n';
    case 'r': return '\r';
    case 't': return '\t';
    default: return 0;
    }
}

/* Sixteen bytes at once, as GCC and Clang have them for every machine. */
typedef signed char block __attribute__((vector_size(16)));

static bool is_plain_block(const char *at)
{
    block bytes;
    uint64_t odd[2];
    memcpy(&bytes, at, sizeof bytes);
    block const wrong = (bytes < 0x20) | (bytes == '\\'); /* from 0x80 on they are negative */
    memcpy(odd, &wrong, sizeof odd);
    return !(odd[0] | odd[1]);
}

/* How many bytes from here on stand for themselves; the last block overlaps the one before. */
static size_t plain_run(const char *at, size_t len)
{
    size_t run = 0;
    while (run + sizeof(block) <= len && is_plain_block(at + run)) run += sizeof(block);
    if (len >= sizeof(block) && run + sizeof(block) > len && is_plain_block(at + len - sizeof(block)))
        return len;
    while (run < len && (signed char)at[run] >= 0x20 && at[run] != '\\') run++;
    return run;
}

/* The four digits of \uXXXX; 0: a zero, or none. */
static unsigned digits_of(oos_view digits)
{
    unsigned code = 0;
    if (digits.len < 4) return 0;
    for (size_t i = 0; i < 4; i++) {
        char const c = digits.ptr[i], small = (char)(c | 0x20);
        bool const decimal = c >= '0' && c <= '9';
        if (!decimal && (small < 'a' || small > 'f')) return 0;
        code = code << 4 | (unsigned)(decimal ? c - '0' : small - 'a' + 10);
    }
    return code;
}

/* The character that begins at `raw` with \u, as UTF-8; the bytes of `raw` that it takes. 0: half of a pair, or none. */
static size_t unicode_read(oos_view raw, char to[4], size_t *ret_count)
{
    unsigned code = digits_of(oos_view_slice(raw, 2, 4));
    bool const pair = code >= 0xd800 && code < 0xdc00 && oos_view_starts(oos_view_slice(raw, 6, 2), "\\u");
    unsigned const second = pair ? digits_of(oos_view_slice(raw, 8, 4)) : 0;
    if (pair && second >= 0xdc00 && second < 0xe000)
        code = 0x10000 + ((code - 0xd800) << 10) + (second - 0xdc00);
    if (code == 0 || (code >= 0xd800 && code < 0xe000)) return 0;
    *ret_count = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static unsigned char const lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = *ret_count; i-- > 1; code >>= 6) to[i] = (char)(0x80 | code % 64);
    to[0] = (char)(lead[*ret_count] | code);
    return second ? 12 : 6;
}

bool oos_json_plain_text(oos_view raw, char *to, size_t *ret_len)
{
    size_t len = 0;
    for (size_t at = 0; at < raw.len;) {
        size_t run = plain_run(raw.ptr + at, raw.len - at);
        if (at + run < raw.len && (unsigned char)raw.ptr[at + run] >= 0x80) {
            size_t const more = oos_utf8_len(oos_view_slice(raw, at + run, SIZE_MAX));
            if (more == 0) return false;
            run += more;
        }
        if (to) memmove(to + len, raw.ptr + at, run);
        at += run;
        len += run;
        if (run || at == raw.len) continue;
        if (raw.ptr[at] != '\\' || at + 1 == raw.len) return false;
        char code[4] = {unescaped(raw.ptr[at + 1])};
        size_t count = 1, taken = code[0] ? 2 : 0;
        if (raw.ptr[at + 1] == 'u') taken = unicode_read(oos_view_slice(raw, at, SIZE_MAX), code, &count);
        if (taken == 0) return false;
        if (to) memcpy(to + len, code, count);
        at += taken;
        len += count;
    }
    *ret_len = len;
    return true;
}

/* What stands between quotes: as it is, or without its escapes in in->text. */
static bool text_of(reader *in, oos_view raw, oos_view *ret_text)
{
    size_t len = 0;
    bool const copied = memchr(raw.ptr, '\\', raw.len);
    if (copied && in->room < raw.len) {
        char *text = realloc(in->text, raw.len * 2);
        if (!text) return false;
        in->text = text;
        in->room = raw.len * 2;
    }
    if (!oos_json_plain_text(raw, copied ? in->text : NULL, &len)) return false;
    *ret_text = copied ? (oos_view){in->text, len} : raw;
    return true;
}

static size_t digits_read(oos_scan *in)
{
    const char *first = in->at;
    while (in->at < in->end && *in->at >= '0' && *in->at <= '9') in->at++;
    return (size_t)(in->at - first);
}

static json_t *number_read(oos_scan *in)
{
    const char *first = in->at;
    bool const negative = *in->at == '-';
    if (negative) in->at++;
    const char *whole = in->at;
    size_t const count = digits_read(in);
    if (count == 0 || (count > 1 && *whole == '0') || in->at == in->end) return NULL;
    if (*in->at != '.' && *in->at != 'e' && *in->at != 'E') {
        json_int_t number = 0;
        if (count > DIGITS_MAX) return NULL;
        for (const char *at = whole; at < in->at; at++) number = number * 10 + (*at - '0');
        return json_integer(negative ? -number : number);
    }
    if (*in->at == '.') {
        in->at++;
        if (digits_read(in) == 0) return NULL;
    }
    if (in->at < in->end && (*in->at == 'e' || *in->at == 'E')) {
        in->at++;
        if (in->at < in->end && (*in->at == '+' || *in->at == '-')) in->at++;
        if (digits_read(in) == 0) return NULL;
    }
    char *end;
    if (in->at == in->end) return NULL; /* nothing would stop the next line */
    double const number = oos_real_read(first, &end);
    return end == in->at && isfinite(number) ? json_real(number) : NULL;
}

static json_t *word_read(oos_scan *in)
{
    oos_view const left = {in->at, (size_t)(in->end - in->at)};
    size_t const len = *in->at == 'f' ? 5 : 4;
    json_t *word = oos_view_starts(left, "true")    ? json_true()
                   : oos_view_starts(left, "false") ? json_false()
                   : oos_view_starts(left, "null")  ? json_null()
                                                    : NULL;
    in->at += word ? len : 0;
    if (word && in->at < in->end && ((*in->at | 0x20) >= 'a' && (*in->at | 0x20) <= 'z')) return NULL;
    return word;
}

/* Members up to the closing bracket. */
static bool members_read(reader *in, json_t *into, unsigned level)
{
    bool const object = json_is_object(into);
    oos_view key;
    char name[KEY_MAX];
    if (!oos_scan_open(&in->scan, object ? '{' : '[')) return false;
    while (object ? oos_scan_key(&in->scan, &key) : oos_scan_item(&in->scan)) {
        if (object && (!text_of(in, key, &key) || key.len >= sizeof name)) return false;
        if (object) memcpy(name, key.ptr, key.len), name[key.len] = '\0';
        json_t *value = value_read(in, level);
        if (!value) return false;
        if (object ? json_object_set_new_nocheck(into, name, value) : json_array_append_new(into, value))
            return false;
    }
    return !in->scan.failed;
}

static json_t *value_read(reader *in, unsigned level)
{
    oos_view text;
    oos_scan_kind const kind = oos_scan_peek(&in->scan);
    if (level == LEVELS_MAX) return NULL;
    switch (kind) {
    case OOS_SCAN_STRING:
        return oos_scan_string(&in->scan, &text) && text_of(in, text, &text)
                   ? json_stringn_nocheck(text.ptr, text.len)
                   : NULL;
    case OOS_SCAN_OBJECT:
    case OOS_SCAN_ARRAY: {
        json_t *whole = kind == OOS_SCAN_OBJECT ? json_object() : json_array();
        if (whole && members_read(in, whole, level + 1)) return whole;
        json_decref(whole);
        return NULL;
    }
    case OOS_SCAN_NUMBER: return number_read(&in->scan);
    case OOS_SCAN_WORD: return word_read(&in->scan);
    case OOS_SCAN_NOTHING: break;
    }
    return NULL;
}

json_t *oos_json_parse_plain(oos_view bytes)
{
    reader in = {.scan = oos_scan_begin(bytes)};
    json_t *root = value_read(&in, 0);
    if (root && !oos_scan_done(&in.scan)) {
        json_decref(root);
        root = NULL;
    }
    free(in.text);
    return root;
}
