/* Writing JSON into a text: commas, nesting and escapes are taken care of. One value or one key at a time, in order.
 * `pretty` puts each field of the outer levels on a line of its own; otherwise all is one line. */
#pragma once
#include "base/size.h"
#include "base/text.h"

enum { OOS_JSON_DEPTH = 16 };

typedef struct oos_json_writer {
    oos_text *text;
    unsigned depth;
    unsigned pretty_depth; /* levels that get lines of their own, 0: none */
    bool has_items[OOS_JSON_DEPTH];
    bool after_key;
    bool plain; /* strings are our own, or free of secrets already */
} oos_json_writer;

void oos_json_begin_object(oos_json_writer *writer);
void oos_json_end_object(oos_json_writer *writer);
void oos_json_begin_array(oos_json_writer *writer);
void oos_json_end_array(oos_json_writer *writer);
void oos_json_key(oos_json_writer *writer, const char *key);

void oos_json_put_u64(oos_json_writer *writer, uint64_t value);
void oos_json_put_i64(oos_json_writer *writer, int64_t value);
void oos_json_put_f64(oos_json_writer *writer,
                      double value); /* shortest form that reads back equal; not finite: null */
void oos_json_put_bool(oos_json_writer *writer, bool value);
void oos_json_put_str(
    oos_json_writer *writer,
    const char *value); /* NULL: null; bytes that are not UTF-8 become U+FFFD, secrets *** */
void oos_json_put_null(oos_json_writer *writer);
void oos_json_put_json(oos_json_writer *writer, const char *value); /* it is JSON already, on one line */
void oos_json_put_known(oos_json_writer *writer, oos_u64 value);    /* null when unknown */

/* A key and its value, or where that begins. */
void oos_json_field_object(oos_json_writer *writer, const char *key);
void oos_json_field_array(oos_json_writer *writer, const char *key);
void oos_json_field_strs(oos_json_writer *writer, const char *key, const char *const *values, size_t count);
void oos_json_field_u64(oos_json_writer *writer, const char *key, uint64_t value);
void oos_json_field_f64(oos_json_writer *writer, const char *key, double value);
void oos_json_field_bool(oos_json_writer *writer, const char *key, bool value);
void oos_json_field_str(oos_json_writer *writer, const char *key, const char *value);
void oos_json_field_known(oos_json_writer *writer, const char *key, oos_u64 value);
