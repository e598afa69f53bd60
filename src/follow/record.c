/* A record is read forward, without a tree: strings are taken as they stand where they have no escapes. What is not read must be JSON nevertheless;
 * lists and objects in it are left to Jansson. */
#include "base/hash.h"
#include "base/json.h"
#include "base/locale.h"
#include "base/scan.h"
#include "follow/follow.h"

#include <stdlib.h>

/* What stands between the quotes, in the room only when it has escapes. False: it is none. */
static bool text_of(oos_view raw, oos_text *room, oos_view *ret_text)
{
    size_t len;
    *ret_text = raw;
    if (!memchr(raw.ptr, '\\', raw.len)) return oos_json_plain_text(raw, NULL, &len);
    room->len = 0;
    while (room->capacity < raw.len && !room->failed) oos_text_add(room, raw);
    if (room->failed || !oos_json_plain_text(raw, room->ptr, &len)) return false;
    *ret_text = (oos_view){room->ptr, len};
    return true;
}

/* Digits, with a point within them or none: other numbers are rare. */
static bool is_simple_number(oos_view raw)
{
    size_t points = 0;
    for (size_t i = 0; i < raw.len; i++) {
        points += raw.ptr[i] == '.';
        if (raw.ptr[i] != '.' && (raw.ptr[i] < '0' || raw.ptr[i] > '9')) return false;
    }
    bool const zero = raw.len > 1 && raw.ptr[0] == '0' && raw.ptr[1] != '.';
    return raw.len && !zero && points < 2 && raw.ptr[0] != '.' && raw.ptr[raw.len - 1] != '.';
}

static bool is_sound(oos_view raw)
{
    size_t len;
    if (*raw.ptr == '"') return oos_json_plain_text(oos_view_slice(raw, 1, raw.len - 2), NULL, &len);
    if (is_simple_number(raw)) return true;
    json_t *value = oos_json_parse(raw, JSON_DECODE_ANY);
    bool const sound = value != NULL;
    json_decref(value);
    return sound;
}

typedef enum member { STREAM, LINE, TIME, CURSOR, END, LABEL } member;

static member member_of(oos_view key)
{
    static const oos_view names[] = {{"stream", 6}, {"line", 4}, {"time", 4}, {"cursor", 6}, {"end", 3}};
    size_t at = STREAM;
    while (at < LABEL && !oos_view_equal(key, names[at])) at++;
    return (member)at;
}

/* The next of an object, its key without escapes. */
static bool next_member(oos_scan *in, oos_text *room, oos_view *ret_key, oos_view *ret_value)
{
    if (!oos_scan_key(in, ret_key) || !oos_scan_skip(in, ret_value)) return false;
    if (member_of(*ret_key) == LABEL) in->failed = !text_of(*ret_key, room, ret_key);
    return !in->failed;
}

static bool is_string(oos_view raw)
{
    return raw.len && *raw.ptr == '"';
}

static oos_view within(oos_view raw)
{
    oos_assert(raw.len >= 2); /* its quotes */
    return oos_view_slice(raw, 1, raw.len - 2);
}

bool oos_record_read(oos_view text, oos_text room[2], oos_stream_record *ret_record)
{
    oos_view key, value, raw[LABEL + 1] = {{0}};
    oos_scan in = oos_scan_begin(text);
    *ret_record = (oos_stream_record){.text = text};
    if (!oos_scan_open(&in, '{')) return false;
    while (next_member(&in, room, &key, &value)) {
        member const which = member_of(key);
        raw[which] = value;
        if (which > LINE && !is_sound(value)) return false;
    }
    if (!oos_scan_done(&in) || !is_string(raw[STREAM])) return false;
    ret_record->over = oos_view_is(raw[END], "true");
    ret_record->has_line = is_string(raw[LINE]);
    ret_record->cursor = raw[CURSOR];
    ret_record->time = raw[TIME];
    if (!ret_record->has_line && !ret_record->over) return false;
    return text_of(within(raw[STREAM]), &room[0], &ret_record->stream) && ret_record->stream.len &&
           (!ret_record->has_line || text_of(within(raw[LINE]), &room[1], &ret_record->line));
}

/* ---- the time of a record -------------------------------------------------------------------------------------------- */

/* Since 1970, in seconds or any unit down to nanoseconds: the size of the number tells which. */
static bool print_number(double number, bool whole, char to[OOS_TIME_TEXT_BYTES])
{
    if (!(number > 0) || number >= 9e18) return false;
    int64_t time = whole || number >= 1e11 ? (int64_t)number : (int64_t)(number * 1e6 + .5) * 1000;
    if (time <= 0) return false;
    while (time < (int64_t)1e17) time *= 1000;
    return oos_logtime_print(time, to) != NULL;
}

bool oos_record_time(const oos_stream_record *record, char to[OOS_TIME_TEXT_BYTES])
{
    bool const quoted = is_string(record->time);
    oos_view const raw = quoted ? within(record->time) : record->time;
    char text[OOS_TIME_TEXT_BYTES], *end;
    size_t len;
    if (!raw.len || raw.len >= sizeof text || !oos_json_plain_text(raw, text, &len)) return false;
    text[len] = '\0';
    int64_t const time = quoted ? oos_logtime_read((oos_view){text, len}, oos_logtime_now()) : OOS_TIME_NONE;
    if (time != OOS_TIME_NONE) return oos_logtime_print(time, to) != NULL;
    double const number = oos_real_read(text, &end);
    return !*end && print_number(number, quoted, to);
}

/* ---- what whoever sends it knows of it ------------------------------------------------------------------------------- */

static bool is_whole_number(oos_view raw)
{
    enum { DIGITS_MAX = 18 };
    return raw.len <= DIGITS_MAX && is_simple_number(raw) && !memchr(raw.ptr, '.', raw.len);
}

oos_view oos_record_cursor(const oos_stream_record *record, size_t most, oos_text *room)
{
    oos_view raw = record->cursor;
    bool const simple = is_whole_number(raw) || (is_string(raw) && !memchr(raw.ptr, '\\', raw.len));
    if (!raw.len || oos_view_is(raw, "null")) return (oos_view){0};
    if (!simple) { /* its members may stand in another order the next time */
        json_t *value = oos_json_parse(raw, JSON_DECODE_ANY);
        char *text = oos_json_text(value, JSON_COMPACT | JSON_ENCODE_ANY | JSON_SORT_KEYS);
        room->len = 0;
        oos_text_put(room, text ? text : "");
        raw = (oos_view){room->ptr, room->failed ? 0 : room->len};
        free(text);
        json_decref(value);
    }
    return raw.len > most ? (oos_view){0} : raw;
}

static void labels_in(oos_view object, void (*on_label)(void *context, oos_view key, oos_view value),
                      void *context, oos_view *ret_inner)
{
    oos_text room[2] = {{0}};
    oos_scan in = oos_scan_begin(object);
    oos_view key, raw, value;
    if (!oos_scan_open(&in, '{')) return;
    while (next_member(&in, &room[0], &key, &raw)) {
        if (*raw.ptr == '{' && oos_view_is(key, "labels")) *ret_inner = raw;
        if (member_of(key) != LABEL || *raw.ptr == '{' || *raw.ptr == '[' || oos_view_is(raw, "null"))
            continue;
        if (!is_string(raw))
            on_label(context, key, raw);
        else if (text_of(within(raw), &room[1], &value))
            on_label(context, key, value);
    }
    oos_text_free(&room[0]);
    oos_text_free(&room[1]);
}

void oos_record_labels(const oos_stream_record *record,
                       void (*on_label)(void *context, oos_view key, oos_view value), void *context)
{
    oos_view inner = {0}, deeper;
    labels_in(record->text, on_label, context, &inner);
    if (inner.len) labels_in(inner, on_label, context, &deeper);
}
