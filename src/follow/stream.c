/* A record is one line, or several, of one stream. What is told of a stream stands between two cursors: everything up to the one that is
 * acknowledged was told or tells nothing, so that whoever sends may begin again behind it. */
#include "follow/follow.h"
#include "base/file.h"
#include "base/hash.h"
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
    FIRST_BYTES = 8 << 10,      /* of a stream, by which it is told how to read it: as they come */
    KEEP_BYTES = 8 << 10        /* of room for lines */
};

/* Where a record ends in the text of its stream. */
typedef struct mark {
    uint64_t begin, end, print;
    size_t cursor, cursor_bytes; /* in `cursors`, as JSON with its zero; 0: none */
} mark;

typedef struct stream {
    char *name;
    oos_label labels[OOS_LABELS_MAX];
    size_t label_count;
    oos_streams *all;
    oos_reader reader;
    mark *marks;
    size_t count, capacity;
    oos_text cursors; /* of the marks, in their order */
    uint64_t bytes;
    oos_text waiting; /* lines that are read together with those that come soon */
    bool clean;       /* each line is given with its time in front, as containers' logs have it */
    char time[OOS_TIME_TEXT_BYTES];
    int64_t pushed_at, acknowledged_at;
    UT_hash_handle hh;
} stream;

struct oos_streams {
    oos_streams_params params;
    oos_readers readers;
    oos_state *state;
    stream *list;
    char *part; /* of a record, whose end has not come */
    size_t part_len, part_capacity;
    bool too_long; /* ... and which is passed over */
    int64_t saved_at, now;
    oos_text room[3]; /* of the record at hand: stream, line, cursor */
    oos_streams_figures figures;
};

static const char *cursor_of(const stream *s, const mark *m)
{
    return m && m->cursor_bytes ? s->cursors.ptr + m->cursor : NULL;
}

/* The first `count` go; of those that are `thin` every second, but for the first of all: an incident begins in it. */
static void drop_marks(stream *s, size_t count, bool thin)
{
    size_t kept = 0, bytes = 0;
    oos_assert(count <= s->count);
    for (size_t i = count; i < s->count; i++) {
        mark m = s->marks[i];
        if (thin && i % 2 && i + 1 < s->count) {
            s->marks[i + 1].begin = m.begin;
            continue;
        }
        if (m.cursor_bytes) memmove(s->cursors.ptr + bytes, s->cursors.ptr + m.cursor, m.cursor_bytes);
        m.cursor = bytes;
        bytes += m.cursor_bytes;
        s->marks[kept++] = m;
    }
    oos_assert(kept <= s->count && bytes <= s->cursors.len);
    s->count = kept;
    s->cursors.len = bytes;
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
    free(s->marks);
    oos_explainer_close(s->reader.explainer);
    forget_labels(s);
    oos_text_free(&s->cursors);
    oos_text_free(&s->waiting);
    free(s->name);
    free(s);
}

static void on_incident(void *context, const oos_incident *incident)
{
    const stream *s = context;
    const mark *at = s->marks, *end = s->marks + s->count;
    while (at < end && at->end <= incident->first_byte) at++;
    if (at == end) at = NULL;
    const char *cursor = cursor_of(s, at);
    uint64_t const figures[] = {at ? at->print : 0,
                                at && !cursor ? (uint64_t)(incident->first_time % OOS_DAY_NS) : 0,
                                at ? oos_sub(incident->first_byte, at->begin) : incident->first_byte};
    uint64_t id = oos_hash_add(OOS_HASH_START, s->name, strlen(s->name));
    if (cursor) id = oos_hash_add(id, cursor, strlen(cursor));
    oos_stream_told const told = {.id = oos_hash_add(id, figures, sizeof figures),
                                  .stream = s->name,
                                  .cursor = cursor,
                                  .labels = s->labels,
                                  .label_count = s->label_count,
                                  .origin = &s->reader.origin,
                                  .incident = incident};
    s->all->params.on_incident(s->all->params.context, &told);
}

oomsight_status oos_streams_open(const oos_knowledge *knowledge, const oos_streams_params *params,
                                 oos_streams **ret_streams, oomsight_error *reterr)
{
    oos_streams *all = calloc(1, sizeof *all);
    if (!all) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory to read streams");
    all->params = *params;
    oomsight_status status = oos_readers_open(knowledge, &all->readers, reterr);
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
    oos_readers_close(&all->readers);
    for (size_t i = 0; i < 3; i++) oos_text_free(&all->room[i]);
    free(all->part);
    free(all);
}

/* ---- what is acknowledged -------------------------------------------------------------------------------------------- */

/* Up to here everything is told or tells nothing. */
static oos_standing settled(const stream *s)
{
    oos_standing point = {.id = {.inode = 1}, /* there is one */ .time = oos_logtime_now()};
    oos_collector_point const at = oos_reader_stands(&s->reader, &point);
    if (at.open) point.byte = oos_min(point.byte, at.first_byte);
    return point;
}

static void acknowledge(stream *s)
{
    uint64_t const until = settled(s).byte;
    const char *cursor = NULL;
    size_t done = 0;
    oos_assert(until <= s->bytes);
    for (; done < s->count && s->marks[done].end <= until; done++)
        if (s->marks[done].cursor_bytes) cursor = cursor_of(s, &s->marks[done]);
    if (cursor) s->all->params.on_acknowledged(s->all->params.context, s->name, cursor);
    if (done) drop_marks(s, done, false);
}

static void keep(stream *s)
{
    oos_standing point = settled(s);
    point.lines = 0;
    oos_state_put(s->all->state, s->name, &point);
}

static oomsight_status feed(stream *s, oos_view text, oomsight_error *reterr)
{
    for (size_t at = 0; at < text.len;) {
        size_t capacity;
        char *room = oos_linescan_room(oos_explainer_scan(s->reader.explainer), &capacity);
        if (!room) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a log");
        size_t const count = oos_min(text.len - at, capacity);
        memcpy(room, text.ptr + at, count);
        OOS_TRY(oos_linescan_took(oos_explainer_scan(s->reader.explainer), count, reterr));
        at += count;
    }
    return OOMSIGHT_OK;
}

static oomsight_status feed_waiting(stream *s, oomsight_error *reterr)
{
    oomsight_status status = OOMSIGHT_OK;
    if (s->waiting.failed) status = oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a log");
    if (status == OOMSIGHT_OK) status = feed(s, (oos_view){s->waiting.ptr, s->waiting.len}, reterr);
    s->waiting.len = 0;
    if (s->waiting.capacity > KEEP_BYTES) oos_text_free(&s->waiting);
    return status;
}

static void add_text(stream *s, oos_view text)
{
    s->bytes += text.len;
    oos_text_add(&s->waiting, text);
}

static bool add_mark(stream *s, uint64_t begin, uint64_t print, oos_view cursor)
{
    if (s->count >= MARKS_MAX && feed_waiting(s, NULL) != OOMSIGHT_OK) return false;
    if (s->count >= MARKS_MAX) acknowledge(s);
    if (s->count >= MARKS_MAX) drop_marks(s, 0, true);
    if (s->count == s->capacity) {
        size_t const capacity = s->capacity ? 2 * s->capacity : 8;
        mark *marks = realloc(s->marks, capacity * sizeof *marks);
        if (!marks) return false;
        s->marks = marks, s->capacity = capacity;
    }
    oos_assert(!s->count || s->marks[s->count - 1].end <= begin);
    size_t const at = s->cursors.len;
    oos_text_add(&s->cursors, cursor);
    s->cursors.len += cursor.len > 0; /* its zero stays */
    s->marks[s->count++] = (mark){begin, s->bytes, print, at, s->cursors.len - at};
    return !s->cursors.failed;
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
        bool const waits = oos_explainer_waits(s->reader.explainer);
        bool const better =
            !oldest || waits < oos_explainer_waits(oldest->reader.explainer) ||
            (waits == oos_explainer_waits(oldest->reader.explainer) && s->pushed_at < oldest->pushed_at);
        if (better) oldest = s;
    }
    if (!oldest) return OOMSIGHT_OK;
    OOS_TRY(feed_waiting(oldest, reterr));
    OOS_TRY(oos_explainer_settle(oldest->reader.explainer, reterr));
    acknowledge(oldest);
    drop(all, oldest);
    return OOMSIGHT_OK;
}

static oomsight_status open_stream(oos_streams *all, oos_view name, stream **ret_stream,
                                   oomsight_error *reterr)
{
    if (all->figures.streams >= all->params.most_streams) OOS_TRY(make_room(all, reterr));
    stream *s = calloc(1, sizeof *s);
    if (!s || !(s->name = strndup(name.ptr, name.len))) {
        free(s);
        return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a stream");
    }
    s->all = all;
    s->reader = (oos_reader){.origin = oos_origin_of(s->name), .context = s, .on_incident = on_incident};
    oos_standing from;
    bool const known = oos_state_find(all->state, s->name, &from);
    from.byte = from.lines = 0; /* its bytes are counted anew */
    oomsight_status status = oos_reader_open(&all->readers, known ? &from : NULL, &s->reader, reterr);
    if (status == OOMSIGHT_OK) HASH_ADD_KEYPTR(hh, all->list, s->name, strlen(s->name), s);
    if (status == OOMSIGHT_OK && !OOS_IN_TABLE(s))
        status = oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a stream");
    if (status != OOMSIGHT_OK) {
        free_stream(s);
        return status;
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
    for (const char *end; len && (end = memchr(text.ptr, '\n', text.len));) {
        size_t const line = (size_t)(end - text.ptr) + 1;
        add_text(s, (oos_view){front, (size_t)len});
        add_text(s, oos_view_slice(text, 0, line));
        text = oos_view_slice(text, line, SIZE_MAX);
    }
    if (len) add_text(s, (oos_view){front, (size_t)len});
    add_text(s, text);
    add_text(s, (oos_view){"\n", 1});
}

/* ---- records --------------------------------------------------------------------------------------------------------- */

/* What the sender knows of where it comes from, and names as Kubernetes does. */
static void name_origin(stream *s, const char *key, const char *value)
{
    const struct {
        const char *key;
        char *to;
        size_t capacity;
    } parts[] = {{"namespace", s->reader.origin.space, sizeof s->reader.origin.space},
                 {"pod", s->reader.origin.pod, sizeof s->reader.origin.pod},
                 {"pod_uid", s->reader.origin.pod_uid, sizeof s->reader.origin.pod_uid},
                 {"container", s->reader.origin.container, sizeof s->reader.origin.container}};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (strcmp(parts[i].key, key) == 0)
            (void)oos_origin_name(oos_view_of(value), i == 1, parts[i].to, parts[i].capacity);
}

/* Those of the first record are the stream's. */
static void on_label(void *context, oos_view key, oos_view value)
{
    stream *s = context;
    for (size_t i = 0; i < s->label_count; i++)
        if (oos_view_is(key, s->labels[i].key)) return;
    if (s->label_count == OOS_LABELS_MAX || key.len > LABEL_MAX_BYTES || value.len > LABEL_MAX_BYTES) return;
    oos_label const label = {strndup(key.ptr, key.len), strndup(value.ptr, value.len)};
    if (!label.key || !label.value) {
        free(label.key);
        free(label.value);
        return;
    }
    s->labels[s->label_count++] = label;
    name_origin(s, label.key, label.value);
}

/* Eight bytes at a time: of every line, so that an incident in it has an id. */
static uint64_t print_of(oos_view line)
{
    uint64_t hash = OOS_HASH_START ^ line.len;
    for (uint64_t some; line.len >= sizeof some;) {
        memcpy(&some, line.ptr, sizeof some);
        hash = (hash ^ some) * 0x9e3779b97f4a7c15u;
        hash ^= hash >> 32;
        line = oos_view_slice(line, sizeof hash, SIZE_MAX);
    }
    return oos_hash_add(hash, line.ptr, line.len);
}

/* A record's line, if it has one; the cursor becomes the stream's. */
static oomsight_status take_line(stream *s, const oos_stream_record *record, oomsight_error *reterr)
{
    uint64_t const begin = s->bytes, print = print_of(record->line);
    oos_view const cursor = oos_record_cursor(record, CURSOR_MAX_BYTES, &s->all->room[2]);
    s->pushed_at = s->all->now;
    if (record->has_line) add_lines(s, record->line);
    if (begin < FIRST_BYTES) OOS_TRY(feed_waiting(s, reterr));
    if (add_mark(s, begin, print, cursor)) return OOMSIGHT_OK;
    return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a stream");
}

static oomsight_status take_text(oos_streams *all, oos_view text, oomsight_error *reterr)
{
    oos_stream_record record;
    stream *s;
    if (!text.len || (text.len == 1 && *text.ptr == '\r')) return OOMSIGHT_OK;
    if (!oos_record_read(text, all->room, &record) || record.stream.len > NAME_MAX_BYTES) {
        all->figures.refused++;
        return OOMSIGHT_OK;
    }
    HASH_FIND(hh, all->list, record.stream.ptr, record.stream.len, s);
    bool const fresh = !s;
    if (fresh) {
        OOS_TRY(open_stream(all, record.stream, &s, reterr));
        oos_record_labels(&record, on_label, s);
    }
    bool const timed = record.time.len && oos_record_time(&record, s->time);
    if (record.has_line && fresh) s->clean = timed && !(oos_clean_sniff(record.line) & OOS_CLEAN_CRI);
    OOS_TRY(take_line(s, &record, reterr));
    if (!record.over) return OOMSIGHT_OK;
    OOS_TRY(feed_waiting(s, reterr));
    OOS_TRY(oos_explainer_settle(s->reader.explainer, reterr));
    acknowledge(s);
    drop(all, s);
    return OOMSIGHT_OK;
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
            OOS_TRY(oos_linescan_settle(oos_explainer_scan(s->reader.explainer), reterr));
        else
            OOS_TRY(oos_reader_step(&s->reader, now, reterr));
        if (s->count && (over || now - s->acknowledged_at >= ACKNOWLEDGE_MS)) {
            acknowledge(s);
            s->acknowledged_at = now;
        }
        /* The sender may have died within a failure: it is told, and told whole when it is sent again. */
        if (over) OOS_TRY(oos_explainer_settle(s->reader.explainer, reterr));
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
