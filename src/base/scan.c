/* A forward reader of JSON text. Strings are found with memchr, skipped values are only checked for their brackets:
 * what is skipped need not be right in detail, but it can never end outside itself. */
#include "base/scan.h"
#include "base/check.h"

/* Deeper than any file we read; the engine's own files stay below ten. */
enum { DEPTH_MAX = 256 };

oos_scan oos_scan_begin(oos_view text)
{
    if (!text.ptr) text = oos_view_of("");
    return (oos_scan){.at = text.ptr, .end = text.ptr + text.len, .start = text.ptr};
}

static bool fail(oos_scan *scan)
{
    scan->failed = true;
    return false;
}

static inline bool space(oos_scan *scan) /* false: nothing is left */
{
    while (scan->at < scan->end &&
           (*scan->at == ' ' || *scan->at == '\n' || *scan->at == '\r' || *scan->at == '\t'))
        scan->at++;
    return scan->at < scan->end;
}

oos_scan_kind oos_scan_peek(oos_scan *scan)
{
    oos_assert(scan->start <= scan->at && scan->at <= scan->end);
    if (scan->failed || !space(scan)) return OOS_SCAN_NOTHING;
    switch (*scan->at) {
    case '{': return OOS_SCAN_OBJECT;
    case '[': return OOS_SCAN_ARRAY;
    case '"': return OOS_SCAN_STRING;
    case 't':
    case 'f':
    case 'n': return OOS_SCAN_WORD;
    case '-':
    case '0':
    case '1':
    case '2':
    case '3':
    case '4':
    case '5':
    case '6':
    case '7':
    case '8':
    case '9': return OOS_SCAN_NUMBER;
    default: fail(scan); return OOS_SCAN_NOTHING;
    }
}

bool oos_scan_open(oos_scan *scan, char bracket)
{
    if (scan->failed || !space(scan) || *scan->at != bracket || scan->depth == DEPTH_MAX) return fail(scan);
    scan->at++;
    scan->depth++;
    scan->fresh = true;
    return true;
}

/* The comma before the next member, or the closing bracket. */
static inline bool member(oos_scan *scan, char bracket)
{
    if (scan->failed || !space(scan)) return fail(scan);
    if (*scan->at == bracket) {
        scan->at++;
        oos_assert(scan->depth > 0);
        scan->depth--;
        scan->fresh = false;
        return false;
    }
    if (!scan->fresh) {
        if (*scan->at++ != ',' || !space(scan)) return fail(scan);
    }
    scan->fresh = false;
    return true;
}

bool oos_scan_item(oos_scan *scan)
{
    return member(scan, ']');
}

bool oos_scan_key(oos_scan *scan, oos_view *ret_key)
{
    oos_view key;
    if (!member(scan, '}') || !oos_scan_string(scan, &key)) return false;
    if (!space(scan) || *scan->at++ != ':') return fail(scan);
    *ret_key = key;
    return true;
}

bool oos_scan_string(oos_scan *scan, oos_view *ret_raw)
{
    if (scan->failed || !space(scan) || *scan->at != '"') return fail(scan);
    const char *first = scan->at + 1;
    for (const char *from = first; from < scan->end;) {
        const char *quote = memchr(from, '"', (size_t)(scan->end - from));
        if (!quote) break;
        /* an odd run of backslashes before it: the quote belongs to the text */
        size_t slashes = 0;
        while (quote - (ptrdiff_t)slashes > first && quote[-1 - (ptrdiff_t)slashes] == '\\') slashes++;
        from = quote + 1;
        if (slashes % 2) continue;
        *ret_raw = (oos_view){first, (size_t)(quote - first)};
        scan->at = from;
        return true;
    }
    return fail(scan);
}

bool oos_scan_u64(oos_scan *scan, uint64_t *ret_number)
{
    if (scan->failed || !space(scan)) return fail(scan);
    const char *at = scan->at;
    uint64_t number = 0;
    for (; at < scan->end && *at >= '0' && *at <= '9'; at++)
        if (__builtin_mul_overflow(number, 10, &number) ||
            __builtin_add_overflow(number, (uint64_t)(*at - '0'), &number))
            return fail(scan);
    if (at == scan->at || (at - scan->at > 1 && *scan->at == '0')) return fail(scan);
    if (at < scan->end && (*at == '.' || *at == 'e' || *at == 'E')) return fail(scan);
    scan->at = at;
    *ret_number = number;
    return true;
}

static bool skip_word(oos_scan *scan)
{
    oos_view const left = {scan->at, (size_t)(scan->end - scan->at)};
    static const char *const words[] = {"true", "false", "null"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (oos_view_starts(left, words[i])) {
            scan->at += strlen(words[i]);
            return true;
        }
    return fail(scan);
}

static bool skip_number(oos_scan *scan)
{
    const char *at = scan->at;
    while (at < scan->end &&
           ((*at >= '0' && *at <= '9') || *at == '-' || *at == '+' || *at == '.' || *at == 'e' || *at == 'E'))
        at++;
    scan->at = at;
    return true;
}

oos_view oos_scan_string_or_none(oos_scan *scan)
{
    oos_view raw = {"", 0};
    if (oos_scan_peek(scan) == OOS_SCAN_STRING)
        oos_scan_string(scan, &raw);
    else
        oos_scan_skip(scan, NULL);
    return raw;
}

bool oos_scan_skip(oos_scan *scan, oos_view *ret_raw)
{
    bool object[DEPTH_MAX];
    unsigned const base = scan->depth;
    oos_scan_peek(scan);
    const char *first = scan->at;
    do {
        oos_view text;
        if (scan->depth > base) { /* inside: the next member, or a closing bracket */
            bool const more = object[scan->depth - 1] ? oos_scan_key(scan, &text) : oos_scan_item(scan);
            if (scan->failed) return false;
            if (!more) continue;
        }
        switch (oos_scan_peek(scan)) {
        case OOS_SCAN_OBJECT:
        case OOS_SCAN_ARRAY: {
            bool const is_object = *scan->at == '{';
            if (!oos_scan_open(scan, *scan->at)) return false;
            object[scan->depth - 1] = is_object;
            break;
        }
        case OOS_SCAN_STRING:
            if (!oos_scan_string(scan, &text)) return false;
            break;
        case OOS_SCAN_NUMBER: skip_number(scan); break;
        case OOS_SCAN_WORD:
            if (!skip_word(scan)) return false;
            break;
        case OOS_SCAN_NOTHING: return fail(scan);
        }
    } while (scan->depth > base);
    if (ret_raw) *ret_raw = (oos_view){first, (size_t)(scan->at - first)};
    return true;
}

bool oos_scan_done(oos_scan *scan)
{
    return !scan->failed && scan->depth == 0 && !space(scan);
}

/* ---- text ------------------------------------------------------------------------------------------------------ */

static int hex4(const char *at, const char *end)
{
    int value = 0;
    if (end - at < 4) return -1;
    for (int i = 0; i < 4; i++) {
        char const c = at[i];
        int const digit = c >= '0' && c <= '9'   ? c - '0'
                          : c >= 'a' && c <= 'f' ? c - 'a' + 10
                          : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                                 : -1;
        if (digit < 0) return -1;
        value = value << 4 | digit;
    }
    return value;
}

static char *utf8(char *out, unsigned code)
{
    oos_assert(code > 0 && code <= 0x10ffff && (code < 0xd800 || code >= 0xe000));
    if (code < 0x80) {
        *out++ = (char)code;
    } else if (code < 0x800) {
        *out++ = (char)(0xc0 | code >> 6);
        *out++ = (char)(0x80 | (code & 0x3f));
    } else if (code < 0x10000) {
        *out++ = (char)(0xe0 | code >> 12);
        *out++ = (char)(0x80 | (code >> 6 & 0x3f));
        *out++ = (char)(0x80 | (code & 0x3f));
    } else {
        *out++ = (char)(0xf0 | code >> 18);
        *out++ = (char)(0x80 | (code >> 12 & 0x3f));
        *out++ = (char)(0x80 | (code >> 6 & 0x3f));
        *out++ = (char)(0x80 | (code & 0x3f));
    }
    return out;
}

/* One \uXXXX, or two that make a pair; `at` stands behind the u. Six bytes of escape make three of text, twelve make
 * four, so the text never outgrows the escape. */
static char *unicode(char *out, const char **at, const char *end)
{
    unsigned code = 0xfffd;
    int const first = hex4(*at, end);
    if (first >= 0) {
        *at += 4;
        code = (unsigned)first;
        if (code >= 0xd800 && code < 0xdc00) {
            int const second =
                end - *at >= 6 && (*at)[0] == '\\' && (*at)[1] == 'u' ? hex4(*at + 2, end) : -1;
            if (second >= 0xdc00 && second < 0xe000) {
                *at += 6;
                code = 0x10000 + ((code - 0xd800) << 10 | ((unsigned)second - 0xdc00));
            }
        }
        if ((code >= 0xd800 && code < 0xe000) || code == 0) code = 0xfffd;
    }
    return utf8(out, code);
}

char *oos_scan_text(oos_arena *arena, oos_view raw)
{
    if (!memchr(raw.ptr, '\\', raw.len)) return oos_arena_copy(arena, raw);
    /* "\u" cut short is two bytes that become three */
    char *text = oos_arena_take(arena, raw.len + raw.len / 2 + 1);
    if (!text) return NULL;
    char *out = text;
    const char *at = raw.ptr, *end = raw.ptr + raw.len;
    while (at < end) {
        if (*at != '\\' || at + 1 == end) {
            *out++ = *at++;
            continue;
        }
        char const escape = at[1];
        at += 2;
        switch (escape) {
        case 'b': *out++ = '\b'; break;
        case 'f': *out++ = '\f'; break;
        case 'n': *out++ = '\n'; break;
        case 'r': *out++ = '\r'; break;
        case 't': *out++ = '\t'; break;
        case 'u': out = unicode(out, &at, end); break;
        default: *out++ = escape; break; /* the quote, the slashes, and what should not be escaped */
        }
    }
    oos_assert((size_t)(out - text) <= raw.len + raw.len / 2);
    *out = '\0';
    return text;
}
