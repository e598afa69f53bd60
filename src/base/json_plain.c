/* A quick reader of JSON for what nearly all files are: Jansson goes through a call for every byte, and reading our own data that way
 * was most of a cold start. Whatever is unusual here or wrong is left to Jansson, from the beginning: it decides and says why. */
#include "base/json.h"
#include "base/check.h"
#include "base/locale.h"
#include "base/shown.h"

#include <math.h>
#include <stdlib.h>

enum { LEVELS_MAX = 48, KEY_MAX = 256, DIGITS_MAX = 18 };

typedef struct reader {
    const char *at, *end;
    char *text; /* a string without its escapes */
    size_t room;
} reader;

static json_t *value_read(reader *in, unsigned level);

static bool next(reader *in, char *ret_byte) /* of what follows white space, which is not consumed */
{
    while (in->at < in->end && (*in->at == ' ' || *in->at == '\n' || *in->at == '\r' || *in->at == '\t'))
        in->at++;
    if (in->at == in->end) return false;
    *ret_byte = *in->at;
    return true;
}

static bool is_next(reader *in, char byte)
{
    char found;
    if (!next(in, &found) || found != byte) return false;
    in->at++;
    return true;
}

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
    default: return 0; /* \uXXXX is Jansson's */
    }
}

static bool text_put(reader *in, size_t at, const char *bytes, size_t len)
{
    oos_assert(at <= in->room);
    if (in->room - at <= len) {
        size_t const room = (at + len + 64) * 2;
        char *text = realloc(in->text, room);
        if (!text) return false;
        in->text = text;
        in->room = room;
    }
    memcpy(in->text + at, bytes, len);
    in->text[at + len] = '\0';
    return true;
}

/* What stands behind an opening quote: in the file itself, or without its escapes in in->text. */
static bool string_read(reader *in, oos_view *ret_text)
{
    const char *run = in->at;
    size_t len = 0;
    bool copied = false;
    while (in->at < in->end) {
        unsigned char const byte = (unsigned char)*in->at;
        if (byte == '"') {
            if (copied && !text_put(in, len, run, (size_t)(in->at - run))) return false;
            *ret_text = copied ? (oos_view){in->text, len + (size_t)(in->at - run)}
                               : (oos_view){run, (size_t)(in->at - run)};
            in->at++;
            return true;
        }
        if (byte < 0x20) return false;
        if (byte == '\\') {
            char const meant = in->at + 1 < in->end ? unescaped(in->at[1]) : 0;
            if (!meant || !text_put(in, len, run, (size_t)(in->at - run))) return false;
            len += (size_t)(in->at - run);
            if (!text_put(in, len++, &meant, 1)) return false;
            copied = true;
            in->at += 2;
            run = in->at;
            continue;
        }
        size_t const bytes = byte < 0x80 ? 1 : oos_utf8_len((oos_view){in->at, (size_t)(in->end - in->at)});
        if (bytes == 0) return false;
        in->at += bytes;
    }
    return false;
}

static size_t digits_read(reader *in)
{
    const char *first = in->at;
    while (in->at < in->end && *in->at >= '0' && *in->at <= '9') in->at++;
    return (size_t)(in->at - first);
}

static json_t *number_read(reader *in)
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

static json_t *word_read(reader *in)
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

static bool member_read(reader *in, json_t *object, unsigned level)
{
    oos_view key;
    char name[KEY_MAX];
    if (!is_next(in, '"') || !string_read(in, &key) || key.len >= sizeof name) return false;
    memcpy(name, key.ptr, key.len);
    name[key.len] = '\0';
    if (!is_next(in, ':')) return false;
    json_t *value = value_read(in, level);
    return value && json_object_set_new_nocheck(object, name, value) == 0;
}

/* Members up to the closing bracket. */
static bool members_read(reader *in, json_t *into, char closing, unsigned level)
{
    if (is_next(in, closing)) return true;
    for (;;) {
        if (closing == '}') {
            if (!member_read(in, into, level)) return false;
        } else {
            json_t *value = value_read(in, level);
            if (!value || json_array_append_new(into, value) != 0) return false;
        }
        if (is_next(in, closing)) return true;
        if (!is_next(in, ',')) return false;
    }
}

static json_t *value_read(reader *in, unsigned level)
{
    char byte;
    oos_view text;
    if (!next(in, &byte) || level == LEVELS_MAX) return NULL;
    if (byte == '"') {
        in->at++;
        return string_read(in, &text) ? json_stringn_nocheck(text.ptr, text.len) : NULL;
    }
    if (byte == '{' || byte == '[') {
        json_t *whole = byte == '{' ? json_object() : json_array();
        in->at++;
        if (whole && members_read(in, whole, byte == '{' ? '}' : ']', level + 1)) return whole;
        json_decref(whole);
        return NULL;
    }
    if (byte == '-' || (byte >= '0' && byte <= '9')) return number_read(in);
    return word_read(in);
}

json_t *oos_json_parse_plain(oos_view bytes)
{
    reader in = {.at = bytes.ptr, .end = bytes.ptr + bytes.len};
    char more;
    json_t *root = value_read(&in, 0);
    if (root && next(&in, &more)) {
        json_decref(root);
        root = NULL;
    }
    free(in.text);
    return root;
}
