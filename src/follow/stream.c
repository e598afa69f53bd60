/* A record is one line, or several, of one stream. What is told of a stream stands between two cursors: everything up to the one that is
 * acknowledged was told or tells nothing, so that whoever sends may begin again behind it. */
#include "follow/follow.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/locale.h"
#include "base/scan.h"
#include "base/size.h"
#include "base/table.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    MARKS_MAX = 1024, /* cursors behind the last that is acknowledged: with more, every second is forgotten */
    ACKNOWLEDGE_MS = 200,   /* of a stream so often at most */
    SAVE_MS = 1000,         /* likewise what is known of all */
    NAME_MAX_BYTES = 1024,  /* of a stream */
    CURSOR_MAX_BYTES = 512, /* as JSON */
    LABEL_MAX_BYTES = 512,
    RECORD_MAX_BYTES = 1 << 20, /* of the input, between two line ends */
    FIRST_BYTES = 8 << 10       /* of a stream, by which it is told how to read it: as they come */
};

/* Where a record ends in the text of its stream. */
typedef struct mark {
    uint64_t begin, end, print;
    char *cursor; /* as JSON; NULL: none */
} mark;

typedef struct stream {
    char *name;
    oos_label labels[OOS_LABELS_MAX];
    size_t label_count;
    oos_origin origin;
    oos_streams *all;
    oos_explainer *explainer;
    mark *marks;
    size_t count, capacity;
    uint64_t bytes;
    oos_text waiting; /* lines that are read together with those that come soon */
    bool clean;       /* each line is given with its time in front, as containers' logs have it */
    char time[OOS_TIME_TEXT_BYTES];
    oos_settling settling;
    int64_t pushed_at, acknowledged_at;
    UT_hash_handle hh;
} stream;

struct oos_streams {
    oos_streams_params params;
    const oos_knowledge *knowledge;
    oos_bench *bench;
    oos_arena *results;
    oos_explanation found;
    oos_state *state;
    stream *list;
    char *part; /* of a record, whose end has not come */
    size_t part_len, part_capacity;
    bool too_long; /* ... and which is passed over */
    int64_t saved_at, now;
    oos_text line; /* of the record at hand, without its escapes */
    oos_streams_figures figures;
};

static void free_marks(stream *s, size_t count)
{
    oos_assert(count <= s->count);
    for (size_t i = 0; i < count; i++) free(s->marks[i].cursor);
    memmove(s->marks, s->marks + count, (s->count - count) * sizeof *s->marks);
    s->count -= count;
}

static void forget_labels(stream *s)
{
    for (size_t i = 0; i < s->label_count; i++) {
        free(s->labels[i].key);
        free(s->labels[i].value);
    }
    s->label_count = 0;
}

static void free_stream(stream *s)
{
    free_marks(s, s->count);
    free(s->marks);
    oos_explainer_close(s->explainer);
    forget_labels(s);
    oos_text_free(&s->waiting);
    free(s->name);
    free(s);
}

static void on_incident(void *context, const oos_incident *incident, bool again)
{
    stream *s = context;
    (void)again;
    if (!incident->failed) return;
    const mark *at = NULL;
    for (size_t i = 0; i < s->count && !at; i++)
        if (s->marks[i].end > incident->first_byte) at = &s->marks[i];
    uint64_t const figures[] = {at ? at->print : 0,
                                at && !at->cursor ? (uint64_t)(incident->first_time % OOS_DAY_NS) : 0,
                                at ? oos_sub(incident->first_byte, at->begin) : incident->first_byte};
    uint64_t id = oos_hash_add(OOS_HASH_START, s->name, strlen(s->name));
    if (at && at->cursor) id = oos_hash_add(id, at->cursor, strlen(at->cursor));
    oos_stream_told const told = {.id = oos_hash_add(id, figures, sizeof figures),
                                  .stream = s->name,
                                  .cursor = at ? at->cursor : NULL,
                                  .labels = s->labels,
                                  .label_count = s->label_count,
                                  .origin = &s->origin,
                                  .incident = incident};
    s->all->params.on_incident(s->all->params.context, &told);
}

oomsight_status oos_streams_open(const oos_knowledge *knowledge, const oos_streams_params *params,
                                 oos_streams **ret_streams, oomsight_error *reterr)
{
    oos_streams *all = calloc(1, sizeof *all);
    if (all) {
        all->params = *params;
        all->knowledge = knowledge;
        all->results = oos_arena_create(64 << 10);
    }
    oomsight_status status = all && all->results
                                 ? oos_bench_create(knowledge->signals.literals, &all->bench, reterr)
                                 : oos_fail(reterr, OOMSIGHT_NOMEM, "no memory to read streams");
    if (status == OOMSIGHT_OK)
        status = oos_state_open(params->state_folder, &knowledge->signals, &all->state, reterr);
    if (status == OOMSIGHT_OK)
        *ret_streams = all;
    else
        oos_streams_close(all);
    return status;
}

void oos_streams_close(oos_streams *all)
{
    if (!all) return;
    stream *s, *next;
    HASH_ITER(hh, all->list, s, next)
    {
        HASH_DEL(all->list, s);
        free_stream(s);
    }
    oos_state_close(all->state);
    oos_bench_free(all->bench);
    oos_arena_free(all->results);
    oos_text_free(&all->line);
    free(all->part);
    free(all);
}

/* ---- what is acknowledged -------------------------------------------------------------------------------------------- */

/* Up to here everything is told or tells nothing. */
static uint64_t settled_until(const stream *s)
{
    uint64_t byte, lines;
    oos_collector_point const at = oos_collector_at(oos_explainer_collector(s->explainer));
    oos_linescan_place(oos_explainer_scan(s->explainer), &byte, &lines);
    return at.open ? oos_min(byte, at.first_byte) : byte;
}

static void acknowledge(stream *s)
{
    uint64_t const until = settled_until(s);
    size_t done = 0;
    oos_assert(until <= s->bytes);
    while (done < s->count && s->marks[done].end <= until) done++;
    if (!done) return;
    char *cursor = NULL;
    for (size_t i = done; i-- > 0 && !cursor;) {
        cursor = s->marks[i].cursor;
        s->marks[i].cursor = NULL;
    }
    free_marks(s, done);
    if (!cursor) return;
    oos_assert(*cursor);
    s->all->params.on_acknowledged(s->all->params.context, s->name, cursor);
    free(cursor);
}

static void keep(stream *s)
{
    oos_collector_point const at = oos_collector_at(oos_explainer_collector(s->explainer));
    oos_tail_point const point = {.id = {.inode = 1}, /* there is one */
                                  .byte = settled_until(s),
                                  .time = oos_logtime_now(),
                                  .clock = at.time,
                                  .history = at.history,
                                  .version = at.version,
                                  .told = at.told};
    oos_state_put(s->all->state, s->name, &point);
}

static oomsight_status feed(stream *s, oos_view text, oomsight_error *reterr)
{
    for (size_t at = 0; at < text.len;) {
        size_t capacity;
        char *room = oos_linescan_room(oos_explainer_scan(s->explainer), &capacity);
        if (!room) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a log");
        size_t const count = oos_min(text.len - at, capacity);
        memcpy(room, text.ptr + at, count);
        OOS_TRY(oos_linescan_took(oos_explainer_scan(s->explainer), count, reterr));
        at += count;
    }
    return OOMSIGHT_OK;
}

static oomsight_status feed_waiting(stream *s, oomsight_error *reterr)
{
    oomsight_status status = OOMSIGHT_OK;
    if (s->waiting.failed) status = oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a log");
    if (status == OOMSIGHT_OK) status = feed(s, (oos_view){s->waiting.ptr, s->waiting.len}, reterr);
    oos_text_free(&s->waiting);
    return status;
}

static void add_text(stream *s, oos_view text)
{
    s->bytes += text.len;
    oos_text_add(&s->waiting, text);
}

/* The first stays: an incident begins in it. */
static void thin(stream *s)
{
    size_t kept = 1;
    for (size_t i = 1; i < s->count; i++) {
        if (i % 2 && i + 1 < s->count) {
            free(s->marks[i].cursor);
            s->marks[i + 1].begin = s->marks[i].begin;
        } else {
            s->marks[kept++] = s->marks[i];
        }
    }
    oos_assert(kept && kept <= MARKS_MAX / 2 + 1);
    s->count = kept;
}

static bool add_mark(stream *s, uint64_t begin, uint64_t print, char *cursor)
{
    if (s->count >= MARKS_MAX && feed_waiting(s, NULL) != OOMSIGHT_OK) return false;
    if (s->count >= MARKS_MAX) acknowledge(s);
    if (s->count >= MARKS_MAX) thin(s);
    if (s->count == s->capacity) {
        size_t const capacity = s->capacity ? 2 * s->capacity : 8;
        mark *marks = realloc(s->marks, capacity * sizeof *marks);
        if (!marks) return false;
        s->marks = marks, s->capacity = capacity;
    }
    oos_assert(!s->count || s->marks[s->count - 1].end <= begin);
    s->marks[s->count++] = (mark){begin, s->bytes, print, cursor};
    return true;
}

/* ---- streams --------------------------------------------------------------------------------------------------------- */

static void drop(oos_streams *all, stream *s)
{
    oos_assert(all->figures.streams > 0);
    keep(s);
    HASH_DEL(all->list, s);
    free_stream(s);
    all->figures.streams--;
}

/* Of those in which nothing is open the one that was quiet longest; else of all. */
static oomsight_status make_room(oos_streams *all, oomsight_error *reterr)
{
    stream *oldest = NULL;
    for (stream *s = all->list; s; s = s->hh.next) {
        bool const waits = oos_explainer_waits(s->explainer);
        bool const better =
            !oldest || waits < oos_explainer_waits(oldest->explainer) ||
            (waits == oos_explainer_waits(oldest->explainer) && s->pushed_at < oldest->pushed_at);
        if (better) oldest = s;
    }
    if (!oldest) return OOMSIGHT_OK;
    OOS_TRY(feed_waiting(oldest, reterr));
    OOS_TRY(oos_explainer_settle(oldest->explainer, reterr));
    acknowledge(oldest);
    drop(all, oldest);
    return OOMSIGHT_OK;
}

static oomsight_status open_stream(oos_streams *all, const char *name, stream **ret_stream,
                                   oomsight_error *reterr)
{
    if (all->figures.streams >= all->params.most_streams) OOS_TRY(make_room(all, reterr));
    stream *s = calloc(1, sizeof *s);
    if (!s || !(s->name = strdup(name))) {
        free(s);
        return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a stream");
    }
    s->all = all;
    s->origin = oos_origin_of(name);
    oos_tail_point from;
    bool const known = oos_state_find(all->state, name, &from);
    oomsight_status const status = oos_explainer_open_growing(
        all->results, all->knowledge, all->bench, &(oos_scan_origin){.growing = true}, &all->found,
        on_incident, s, &s->explainer, reterr);
    if (status == OOMSIGHT_OK) {
        if (known && from.history)
            oos_collector_resume(oos_explainer_collector(s->explainer), from.history, from.told, from.clock);
        HASH_ADD_KEYPTR(hh, all->list, s->name, strlen(s->name), s);
    }
    if (status != OOMSIGHT_OK || !OOS_IN_TABLE(s)) {
        free_stream(s);
        return status != OOMSIGHT_OK ? status : oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a stream");
    }
    all->figures.streams++;
    *ret_stream = s;
    return OOMSIGHT_OK;
}

static void add_lines(stream *s, oos_view text)
{
    char front[OOS_TIME_TEXT_BYTES + 16];
    int const len = s->clean ? snprintf(front, sizeof front, "%s stderr F ", s->time) : 0;
    while (text.len && (text.ptr[text.len - 1] == '\n' || text.ptr[text.len - 1] == '\r')) text.len--;
    for (bool more = true; more;) {
        const char *end = text.len ? memchr(text.ptr, '\n', text.len) : NULL;
        oos_view const line = oos_view_slice(text, 0, end ? (size_t)(end - text.ptr) : SIZE_MAX);
        more = end != NULL;
        if (more) text = oos_view_slice(text, line.len + 1, SIZE_MAX);
        add_text(s, (oos_view){front, (size_t)len});
        add_text(s, line);
        add_text(s, (oos_view){"\n", 1});
    }
}

/* ---- records --------------------------------------------------------------------------------------------------------- */

/* Since 1970, in seconds or any unit down to nanoseconds: the size of the number tells which. */
static bool print_number(double number, bool whole, char to[OOS_TIME_TEXT_BYTES])
{
    if (!(number > 0) || number >= 9e18) return false;
    int64_t time = whole || number >= 1e11 ? (int64_t)number : (int64_t)(number * 1e6 + .5) * 1000;
    if (time <= 0) return false;
    while (time < (int64_t)1e17) time *= 1000;
    return oos_logtime_print(time, to) != NULL;
}

/* RFC 3339, or such a number. */
static bool print_time(const char *text, char to[OOS_TIME_TEXT_BYTES])
{
    char *end;
    int64_t const time = oos_logtime_read(oos_view_of(text), oos_logtime_now());
    if (time != OOS_TIME_NONE) return oos_logtime_print(time, to) != NULL;
    double const number = oos_real_read(text, &end);
    return *text && !*end && print_number(number, true, to);
}

static bool read_time(const json_t *value, char to[OOS_TIME_TEXT_BYTES])
{
    if (json_is_string(value)) return print_time(json_string_value(value), to);
    return json_is_number(value) && print_number(json_number_value(value), false, to);
}

static char *text_of(const json_t *value, size_t most)
{
    char *text = value && !json_is_null(value)
                     ? oos_json_text(value, JSON_COMPACT | JSON_ENCODE_ANY | JSON_SORT_KEYS)
                     : NULL;
    if (!text || strlen(text) <= most) return text;
    free(text);
    return NULL;
}

/* What the sender knows of where it comes from, and names as Kubernetes does. */
static void name_origin(stream *s, const char *key, const char *value)
{
    const struct {
        const char *key;
        char *to;
        size_t capacity;
    } parts[] = {{"namespace", s->origin.space, sizeof s->origin.space},
                 {"pod", s->origin.pod, sizeof s->origin.pod},
                 {"pod_uid", s->origin.pod_uid, sizeof s->origin.pod_uid},
                 {"container", s->origin.container, sizeof s->origin.container}};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (strcmp(parts[i].key, key) == 0)
            (void)oos_origin_name(oos_view_of(value), i == 1, parts[i].to, parts[i].capacity);
}

static void take_label(stream *s, const char *key, const json_t *value)
{
    static const char *const own[] = {"stream", "line", "time", "cursor", "end"};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (strcmp(own[i], key) == 0) return;
    for (size_t i = 0; i < s->label_count; i++)
        if (strcmp(s->labels[i].key, key) == 0) return;
    if (json_is_object(value) || json_is_array(value) || s->label_count == OOS_LABELS_MAX) return;
    char *text = json_is_string(value) ? strdup(json_string_value(value)) : text_of(value, LABEL_MAX_BYTES);
    oos_label const label = {strdup(key), text};
    if (!label.key || !text || strlen(key) > LABEL_MAX_BYTES || strlen(text) > LABEL_MAX_BYTES) {
        free(label.key);
        free(text);
        return;
    }
    s->labels[s->label_count++] = label;
    name_origin(s, key, text);
}

/* Everything that has no meaning here; also what `labels` holds. Those of the first record are the stream's. */
static void take_labels(stream *s, json_t *record)
{
    const char *key;
    json_t *value, *inner = json_object_get(record, "labels");
    json_object_foreach(record, key, value) take_label(s, key, value);
    if (json_is_object(inner)) json_object_foreach(inner, key, value) take_label(s, key, value);
}

/* A record's line, if it has one; the cursor becomes the stream's. */
static oomsight_status take_line(stream *s, const oos_view *line, char *cursor, oomsight_error *reterr)
{
    uint64_t const begin = s->bytes,
                   print = oos_hash_add(OOS_HASH_START, line ? line->ptr : "", line ? line->len : 0);
    s->pushed_at = s->all->now;
    if (line) add_lines(s, *line);
    oomsight_status const status = begin < FIRST_BYTES ? feed_waiting(s, reterr) : OOMSIGHT_OK;
    if (status == OOMSIGHT_OK && add_mark(s, begin, print, cursor)) return OOMSIGHT_OK;
    free(cursor);
    return status != OOMSIGHT_OK ? status : oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a stream");
}

static oomsight_status take_record(oos_streams *all, json_t *record, oomsight_error *reterr)
{
    const char *name, *text = NULL;
    stream *s;
    bool const over = json_is_true(json_object_get(record, "end"));
    if (!oos_json_str(record, "stream", &name) || !*name || strlen(name) > NAME_MAX_BYTES ||
        (!oos_json_str(record, "line", &text) && !over)) {
        all->figures.refused++;
        return OOMSIGHT_OK;
    }
    HASH_FIND_STR(all->list, name, s);
    bool const fresh = !s;
    if (fresh) {
        OOS_TRY(open_stream(all, name, &s, reterr));
        take_labels(s, record);
    }
    char *cursor = text_of(json_object_get(record, "cursor"), CURSOR_MAX_BYTES);
    char time[OOS_TIME_TEXT_BYTES];
    bool const timed = text && read_time(json_object_get(record, "time"), time);
    if (timed) memcpy(s->time, time, sizeof time);
    if (text && fresh) s->clean = timed && !(oos_clean_sniff(oos_view_of(text)) & OOS_CLEAN_CRI);
    oos_view const line = {text, text ? json_string_length(json_object_get(record, "line")) : 0};
    OOS_TRY(take_line(s, text ? &line : NULL, cursor, reterr));
    if (!over) return OOMSIGHT_OK;
    OOS_TRY(feed_waiting(s, reterr));
    OOS_TRY(oos_explainer_settle(s->explainer, reterr));
    acknowledge(s);
    drop(all, s);
    return OOMSIGHT_OK;
}

/* What most records are: of a stream that is known, with nothing unusual in what is read of it. No tree is made of them. */
typedef struct fields {
    oos_view stream, line, cursor, time; /* as they stand there; strings without their quotes */
    char kinds[4];                       /* oos_scan_kind of these */
} fields;

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

static bool read_fields(oos_view text, fields *f)
{
    static const char *const names[] = {"stream", "line", "cursor", "time"};
    oos_view *const to[] = {&f->stream, &f->line, &f->cursor, &f->time};
    oos_scan in = oos_scan_begin(text);
    *f = (fields){0};
    if (!oos_scan_open(&in, '{')) return false;
    for (oos_view key, value; oos_scan_key(&in, &key);) {
        oos_scan_kind const kind = oos_scan_peek(&in);
        size_t at = 0, len;
        if (memchr(key.ptr, '\\', key.len) || !oos_json_plain_text(key, NULL, &len)) return false;
        if (oos_view_is(key, "end")) return false;
        while (at < 4 && !oos_view_is(key, names[at])) at++;
        if (kind == OOS_SCAN_STRING ? !oos_scan_string(&in, &value) : !oos_scan_skip(&in, &value))
            return false;
        if (at == 4 && kind == OOS_SCAN_STRING && !oos_json_plain_text(value, NULL, &len)) return false;
        if (kind == OOS_SCAN_NUMBER && !is_simple_number(value)) return false;
        if (kind == OOS_SCAN_WORD && !oos_view_is(value, "true") && !oos_view_is(value, "false") &&
            !oos_view_is(value, "null"))
            return false;
        if (at == 4) continue;
        if (f->kinds[at]) return false;
        f->kinds[at] = (char)kind;
        *to[at] = value;
    }
    return oos_scan_done(&in) && f->kinds[0] == OOS_SCAN_STRING && f->kinds[1] == OOS_SCAN_STRING;
}

/* A cursor as JSON; *ret_cursor NULL: there is none. */
static bool quick_cursor(const fields *f, char **ret_cursor)
{
    oos_view const raw = f->cursor;
    bool const string = f->kinds[2] == OOS_SCAN_STRING;
    size_t len = 0;
    *ret_cursor = NULL;
    if (!f->kinds[2]) return true;
    if (raw.len > CURSOR_MAX_BYTES / 2) return false;
    if (string && (memchr(raw.ptr, '\\', raw.len) || !oos_json_plain_text(raw, NULL, &len))) return false;
    while (!string && len < raw.len && raw.ptr[len] >= '0' && raw.ptr[len] <= '9') len++;
    if (!string && (len < raw.len || len > 18 || (len > 1 && *raw.ptr == '0'))) return false;
    char *cursor = malloc(raw.len + 3);
    if (cursor) {
        cursor[0] = '"';
        memcpy(cursor + string, raw.ptr, raw.len);
        if (string) cursor[raw.len + 1] = '"';
        cursor[raw.len + 2 * (size_t)string] = '\0';
    }
    *ret_cursor = cursor;
    return cursor != NULL;
}

/* False: the record is to be read in full. */
static bool take_quickly(oos_streams *all, oos_view text, oomsight_status *ret_status, oomsight_error *reterr)
{
    fields f;
    char name[NAME_MAX_BYTES + 1], time[OOS_TIME_TEXT_BYTES], *cursor;
    size_t name_len, time_len = 0;
    stream *s;
    if (!read_fields(text, &f) || f.stream.len > NAME_MAX_BYTES) return false;
    if (!oos_json_plain_text(f.stream, name, &name_len)) return false;
    HASH_FIND(hh, all->list, name, name_len, s);
    if (!s) return false;
    bool const number = f.kinds[3] == OOS_SCAN_NUMBER;
    if (f.kinds[3] && ((!number && f.kinds[3] != OOS_SCAN_STRING) || f.time.len >= sizeof time ||
                       !oos_json_plain_text(f.time, time, &time_len)))
        return false;
    time[time_len] = '\0';
    oos_text *line = &all->line;
    line->len = 0;
    while (line->capacity < f.line.len && !line->failed) oos_text_add(line, f.line);
    if (line->failed || !oos_json_plain_text(f.line, line->ptr, &line->len) || !quick_cursor(&f, &cursor))
        return false;
    char printed[OOS_TIME_TEXT_BYTES], *end;
    if (number ? print_number(oos_real_read(time, &end), false, printed)
               : time_len && print_time(time, printed))
        memcpy(s->time, printed, sizeof printed);
    *ret_status = take_line(s, &(oos_view){line->ptr, line->len}, cursor, reterr);
    return true;
}

static oomsight_status take_text(oos_streams *all, oos_view text, oomsight_error *reterr)
{
    if (!text.len || (text.len == 1 && *text.ptr == '\r')) return OOMSIGHT_OK;
    oomsight_status status;
    if (take_quickly(all, text, &status, reterr)) return status;
    json_t *record = oos_json_parse_plain(text);
    if (!record) record = oos_json_parse(text, 0);
    if (!json_is_object(record)) {
        all->figures.refused++;
        json_decref(record);
        return OOMSIGHT_OK;
    }
    status = take_record(all, record, reterr);
    json_decref(record);
    return status;
}

/* Half a record waits for the rest. */
static bool hold(oos_streams *all, oos_view text)
{
    if (all->too_long || all->part_len + text.len > RECORD_MAX_BYTES) {
        all->too_long = true;
        all->part_len = 0;
        return true;
    }
    if (all->part_len + text.len > all->part_capacity) {
        size_t const capacity = oos_max(all->part_len + text.len, 2 * all->part_capacity);
        char *part = realloc(all->part, capacity);
        if (!part) return false;
        all->part = part, all->part_capacity = capacity;
    }
    memcpy(all->part + all->part_len, text.ptr, text.len);
    all->part_len += text.len;
    return true;
}

oomsight_status oos_streams_push(oos_streams *all, oos_view text, oomsight_error *reterr)
{
    all->now = oos_clock_ms();
    while (text.len) {
        const char *end = memchr(text.ptr, '\n', text.len);
        oos_view const line = oos_view_slice(text, 0, end ? (size_t)(end - text.ptr) : SIZE_MAX);
        bool const whole = end && !all->part_len && !all->too_long && line.len <= RECORD_MAX_BYTES;
        if (!whole && !hold(all, line)) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a record");
        if (!end) break;
        if (whole)
            OOS_TRY(take_text(all, line, reterr));
        else if (all->too_long)
            all->figures.refused++;
        else
            OOS_TRY(take_text(all, (oos_view){all->part, all->part_len}, reterr));
        all->part_len = 0;
        all->too_long = false;
        text = oos_view_slice(text, line.len + 1, SIZE_MAX);
    }
    for (stream *s = all->list; s; s = s->hh.next) OOS_TRY(feed_waiting(s, reterr));
    return OOMSIGHT_OK;
}

oomsight_status oos_streams_step(oos_streams *all, bool over, oomsight_error *reterr)
{
    int64_t const now = oos_clock_ms();
    for (stream *s = all->list; s; s = s->hh.next) {
        if (over)
            OOS_TRY(oos_linescan_settle(oos_explainer_scan(s->explainer), reterr));
        else
            OOS_TRY(oos_settling_step(&s->settling, s->explainer, now, reterr));
        if (s->count && (over || now - s->acknowledged_at >= ACKNOWLEDGE_MS)) {
            acknowledge(s);
            s->acknowledged_at = now;
        }
        /* The sender may have died within a failure: it is told, and told whole when it is sent again. */
        if (over) OOS_TRY(oos_explainer_settle(s->explainer, reterr));
    }
    return OOMSIGHT_OK;
}

bool oos_streams_delivered(oos_streams *all, bool incidents)
{
    int64_t const now = oos_clock_ms();
    if (!all->params.state_folder || (!incidents && now - all->saved_at < SAVE_MS)) return true;
    for (stream *s = all->list; s; s = s->hh.next) keep(s);
    all->saved_at = now;
    return oos_state_save(all->state, incidents, oos_logtime_now());
}

oos_streams_figures oos_streams_look(const oos_streams *all)
{
    return all->figures;
}
