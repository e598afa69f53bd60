/* Writing JSON. */
#include "base/json_write.h"
#include "base/check.h"
#include "base/locale.h"
#include "base/secret.h"
#include "base/shown.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static void line_break(oos_json_writer *writer)
{
    if (writer->depth > writer->pretty_depth || writer->pretty_depth == 0) return;
    oos_text_put(writer->text, "\n");
    oos_text_repeat(writer->text, "  ", writer->depth);
}

/* What stands between the values before this one and this one. */
static void separate(oos_json_writer *writer)
{
    if (writer->after_key) {
        writer->after_key = false;
        return;
    }
    if (writer->depth == 0) return;
    if (writer->has_items[writer->depth - 1])
        oos_text_put(writer->text, writer->depth > writer->pretty_depth ? ", " : ",");
    writer->has_items[writer->depth - 1] = true;
    line_break(writer);
}

static void begin(oos_json_writer *writer, const char *bracket)
{
    separate(writer);
    oos_text_put(writer->text, bracket);
    if (writer->depth < OOS_JSON_DEPTH)
        writer->has_items[writer->depth++] = false;
    else
        writer->text->failed = true;
}

static void end(oos_json_writer *writer, const char *bracket)
{
    oos_assert((writer->depth > 0 && !writer->after_key) || writer->text->failed);
    bool const had_items = writer->depth && writer->has_items[writer->depth - 1];
    bool const own_line = had_items && writer->depth <= writer->pretty_depth;
    if (writer->depth) writer->depth--;
    if (own_line) {
        oos_text_put(writer->text, "\n");
        oos_text_repeat(writer->text, "  ", writer->depth);
    }
    oos_text_put(writer->text, bracket);
}

void oos_json_begin_object(oos_json_writer *writer)
{
    begin(writer, "{");
}
void oos_json_end_object(oos_json_writer *writer)
{
    end(writer, "}");
}
void oos_json_begin_array(oos_json_writer *writer)
{
    begin(writer, "[");
}
void oos_json_end_array(oos_json_writer *writer)
{
    end(writer, "]");
}

static void put_escaped(oos_text *text, oos_view value)
{
    const unsigned char *at = (const unsigned char *)value.ptr, *end = at + value.len;
    while (at < end && *at) {
        size_t plain = 0; /* most of any string: taken at once */
        while (at + plain < end && at[plain] >= 0x20 && at[plain] < 0x7f && at[plain] != '"' &&
               at[plain] != '\\')
            plain++;
        if (plain) {
            oos_text_add(text, (oos_view){(const char *)at, plain});
            at += plain;
            continue;
        }
        size_t const len = oos_utf8_len((oos_view){(const char *)at, (size_t)(end - at)});
        if (*at == '"' || *at == '\\')
            oos_text_printf(text, "\\%c", *at);
        else if (*at == '\n')
            oos_text_put(text, "\\n");
        else if (*at == '\t')
            oos_text_put(text, "\\t");
        else if (*at < 0x20 || *at == 0x7f)
            oos_text_printf(text, "\\u%04x", *at);
        else if (len == 0)
            oos_text_put(text, "\xef\xbf\xbd");
        else if (oos_utf8_is_control((const char *)at, len)) /* whoever prints the JSON raw is safe too */
            oos_text_printf(text, "\\u%04x", oos_utf8_code((const char *)at, len));
        else
            oos_text_add(text, (oos_view){(const char *)at, len});
        at += len ? len : 1;
    }
}

static void quoted(const oos_json_writer *writer, const char *value)
{
    oos_text *text = writer->text;
    oos_text_put(text, "\"");
    if (writer->plain || !oos_secret_inside(oos_view_of(value))) {
        put_escaped(text, oos_view_of(value));
    } else {
        oos_text hidden = {0};
        oos_secret_hide(&hidden, oos_view_of(value));
        put_escaped(text, (oos_view){hidden.ptr, hidden.len});
        text->failed |= hidden.failed;
        oos_text_free(&hidden);
    }
    oos_text_put(text, "\"");
}

void oos_json_key(oos_json_writer *writer, const char *key)
{
    oos_assert(!writer->after_key && writer->depth > 0);
    separate(writer);
    quoted(writer, key);
    oos_text_put(writer->text, ": ");
    writer->after_key = true;
}

void oos_json_put_u64(oos_json_writer *writer, uint64_t value)
{
    if (value > INT64_MAX) value = INT64_MAX; /* readers have 63 bits; nothing real has as many bytes */
    separate(writer);
    oos_text_printf(writer->text, "%" PRIu64, value);
}

void oos_json_put_i64(oos_json_writer *writer, int64_t value)
{
    separate(writer);
    oos_text_printf(writer->text, "%" PRId64, value);
}

void oos_json_put_f64(oos_json_writer *writer, double value)
{
    char shortest[40];
    if (!isfinite(value)) {
        oos_json_put_null(writer);
        return;
    }
    separate(writer);
    for (int digits = 1; digits <= 17; digits++) {
        oos_format(shortest, sizeof shortest, "%.*g", digits, value);
        if (oos_real_read(shortest, NULL) == value) break;
    }
    oos_text_put(writer->text, shortest);
}

void oos_json_put_bool(oos_json_writer *writer, bool value)
{
    separate(writer);
    oos_text_put(writer->text, value ? "true" : "false");
}

void oos_json_put_str(oos_json_writer *writer, const char *value)
{
    separate(writer);
    if (value)
        quoted(writer, value);
    else
        oos_text_put(writer->text, "null");
}

void oos_json_put_null(oos_json_writer *writer)
{
    oos_json_put_str(writer, NULL);
}

void oos_json_put_json(oos_json_writer *writer, const char *value)
{
    separate(writer);
    oos_text_put(writer->text, value);
}

void oos_json_put_known(oos_json_writer *writer, oos_u64 value)
{
    if (value.known)
        oos_json_put_u64(writer, value.value);
    else
        oos_json_put_null(writer);
}

void oos_json_field_object(oos_json_writer *writer, const char *key)
{
    oos_json_key(writer, key);
    oos_json_begin_object(writer);
}

void oos_json_field_array(oos_json_writer *writer, const char *key)
{
    oos_json_key(writer, key);
    oos_json_begin_array(writer);
}

void oos_json_field_strs(oos_json_writer *writer, const char *key, const char *const *values, size_t count)
{
    oos_json_field_array(writer, key);
    for (size_t i = 0; i < count; i++) oos_json_put_str(writer, values[i]);
    oos_json_end_array(writer);
}

void oos_json_field_u64(oos_json_writer *writer, const char *key, uint64_t value)
{
    oos_json_key(writer, key);
    oos_json_put_u64(writer, value);
}
void oos_json_field_f64(oos_json_writer *writer, const char *key, double value)
{
    oos_json_key(writer, key);
    oos_json_put_f64(writer, value);
}
void oos_json_field_bool(oos_json_writer *writer, const char *key, bool value)
{
    oos_json_key(writer, key);
    oos_json_put_bool(writer, value);
}
void oos_json_field_str(oos_json_writer *writer, const char *key, const char *value)
{
    oos_json_key(writer, key);
    oos_json_put_str(writer, value);
}
void oos_json_field_known(oos_json_writer *writer, const char *key, oos_u64 value)
{
    oos_json_key(writer, key);
    oos_json_put_known(writer, value);
}
