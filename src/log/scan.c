/* One window over the stream:
 *
 *     | history, for line starts | bytes being scanned | lookahead, for line ends and the lines after |
 *
 * Hits wait until their line and some bytes behind it are in the window; then the window moves on. */
#include "log/log.h"
#include "base/check.h"
#include "base/size.h"

#include <stdlib.h>

enum {
    SNIFF_BYTES = 64 << 10,
    SNIFF_GROWING_BYTES = 4 << 10, /* who waits longer is late */
    LITERAL_MAX_BYTES = 1 << 10,   /* no literal is longer */
    TIME_LATER_BYTES = 16 << 10    /* shorter lines are in the window when their time is wanted */
};
#define TIME_LATER (OOS_TIME_NONE + 1) /* it is read when it is wanted: few lines are handed on */

_Static_assert((int)SNIFF_BYTES <= (int)OOS_BENCH_READ_BYTES, "what waits fits the raw buffer");
_Static_assert((int)LITERAL_MAX_BYTES <= (int)OOS_BENCH_KEEP_BYTES, "a literal across two reads is kept");

struct oos_linescan {
    oos_bench *bench;
    char *bytes; /* the bench's window while this scan holds it, else what was kept of it */
    size_t len;
    uint64_t base;  /* offset of bytes[0] in the stream */
    size_t counted; /* newlines before this index are in `lines` */
    uint64_t lines;
    oos_hit *hits; /* as `bytes` */
    size_t hit_count, hit_at;
    uint64_t stream_base; /* where the literal scan was last restarted */
    void (*on_line)(void *, const oos_hit_line *);
    void *context;
    oos_linescan_result result;
    size_t head; /* bytes at the start of the window that wait for the decision how to read them */
    bool decided, cleans;
    bool document, page, source;
    oos_cleaner cleaner;
    oos_scan_origin origin;
    uint64_t read_bytes;  /* of the file, from the origin */
    uint64_t read_lines;  /* newlines among them */
    uint64_t place_lines; /* lines before places.list[0] */
    oos_places places;    /* as `bytes` */
};

/* Written so that the compiler turns it into vector code. */
static uint64_t count_newlines(const char *bytes, size_t len)
{
    uint64_t count = 0;
    for (size_t at = 0; at < len;) {
        size_t const end = oos_min(len, at + 255);
        uint8_t some = 0;
        for (; at < end; at++) some = (uint8_t)(some + (bytes[at] == '\n'));
        count += some;
    }
    return count;
}

static bool ends_line(char c)
{
    return c == '\n' || c == '\r' || c == '\v';
}

/* The line around index `at`. False: its end, or enough after it, is not there yet. */
static bool find_line(oos_linescan *w, size_t at, bool last, size_t *ret_start, size_t *ret_end)
{
    oos_assert(at < w->len);
    size_t const earliest = at > OOS_LINE_MAX_BYTES ? at - OOS_LINE_MAX_BYTES : 0;
    size_t const latest = oos_min(w->len, at + OOS_LINE_MAX_BYTES);
    size_t start = earliest, end = latest;
    /* Line feeds first: the other two are rare, and are then looked for in one line only. */
    for (const char *ends = "\n\r\v"; *ends; ends++) {
        if (*ends != '\n' && !memchr(w->bytes + start, *ends, end - start)) continue;
        const char *before = memrchr(w->bytes + start, *ends, at - start);
        const char *behind = memchr(w->bytes + at, *ends, end - at);
        if (before) start = (size_t)(before - w->bytes) + 1;
        if (behind) end = (size_t)(behind - w->bytes);
    }
    if (!last && (end == w->len || w->len - end < OOS_BENCH_AFTER_BYTES)) return false;
    if ((start == earliest && start > 0 && !ends_line(w->bytes[start - 1])) ||
        (end == latest && end < w->len && !ends_line(w->bytes[end])))
        w->result.cut_lines = true;
    oos_assert(start <= at && at <= end && end <= w->len);
    *ret_start = start;
    *ret_end = end;
    return true;
}

static const oos_line_place *place_of(const oos_linescan *w, uint64_t number)
{
    uint64_t const at = number - 1 - w->place_lines;
    return number > w->place_lines && at < w->places.count ? &w->places.list[at] : NULL;
}

/* The line that begins at `start`, or behind a carriage return before it, when its time is read later. */
static oos_view timed_of(const oos_linescan *w, const oos_line_place *place, size_t start, size_t end)
{
    if (!place || place->time != TIME_LATER) return (oos_view){0};
    const char *before = start ? memrchr(w->bytes, '\n', start) : NULL;
    size_t const from = before ? (size_t)(before - w->bytes) + 1 : 0;
    return (oos_view){w->bytes + from, end - from};
}

static void hand_on(oos_linescan *w, bool last)
{
    while (w->hit_at < w->hit_count) {
        size_t const at = (size_t)(w->hits[w->hit_at].end - 1 - w->base);
        size_t start, end;
        if (!find_line(w, at, last, &start, &end)) return;
        uint32_t literals[OOS_LINE_HITS_MAX];
        size_t count = 0;
        for (; w->hit_at < w->hit_count && w->hits[w->hit_at].end - w->base <= end; w->hit_at++) {
            uint32_t const literal = w->hits[w->hit_at].literal;
            bool known = false;
            for (size_t i = 0; i < count; i++) known |= literals[i] == literal;
            if (!known && count < OOS_LINE_HITS_MAX) literals[count++] = literal;
        }
        if (start > w->counted) {
            w->lines += count_newlines(w->bytes + w->counted, start - w->counted);
            w->counted = start;
        }
        const oos_line_place *place = place_of(w, w->lines + 1), *next = place_of(w, w->lines + 2);
        oos_hit_line const line = {.number = w->lines + 1,
                                   .text = {w->bytes + start, end - start},
                                   .torn = start > 0 && !ends_line(w->bytes[start - 1]),
                                   .document = w->document,
                                   .page = w->page,
                                   .source = w->source,
                                   .after = {w->bytes + end, oos_min(w->len - end, OOS_BENCH_AFTER_BYTES)},
                                   .literals = literals,
                                   .literal_count = count,
                                   .first_byte = place ? place->byte : 0,
                                   .end_byte = next ? next->byte : w->origin.byte + w->read_bytes,
                                   .timed = timed_of(w, place, start, end),
                                   .time = place ? place->time : OOS_TIME_NONE};
        if (!w->result.binary) w->on_line(w->context, &line);
    }
}

/* Forget what lies before index `keep`. */
static void forget(oos_linescan *w, size_t keep)
{
    oos_assert(keep <= w->len && w->hit_at <= w->hit_count);
    if (keep > w->counted) {
        w->lines += count_newlines(w->bytes + w->counted, keep - w->counted);
        w->counted = keep;
    }
    memmove(w->bytes, w->bytes + keep, w->len - keep);
    memmove(w->hits, w->hits + w->hit_at, (w->hit_count - w->hit_at) * sizeof *w->hits);
    w->base += keep;
    w->len -= keep;
    w->counted -= keep;
    w->hit_count -= w->hit_at;
    w->hit_at = 0;
    if (w->lines > w->place_lines && w->places.count) {
        size_t const gone = (size_t)oos_min(w->lines - w->place_lines, (uint64_t)w->places.count);
        w->places.count -= gone;
        w->place_lines += gone;
        memmove(w->places.list, w->places.list + gone, w->places.count * sizeof *w->places.list);
    }
}

/* Forget what no later line can need, when there would be no room for the next bytes. */
static void move_on(oos_linescan *w)
{
    if (w->len + OOS_BENCH_READ_BYTES <= OOS_BENCH_WINDOW_BYTES && w->hit_at == w->hit_count) {
        w->hit_at = w->hit_count = 0;
        return;
    }
    size_t keep = w->len > OOS_BENCH_KEEP_BYTES ? w->len - OOS_BENCH_KEEP_BYTES : 0;
    if (w->hit_at < w->hit_count) {
        size_t const at = (size_t)(w->hits[w->hit_at].end - 1 - w->base);
        keep = oos_min(keep, at > OOS_LINE_MAX_BYTES ? at - OOS_LINE_MAX_BYTES : 0);
    }
    forget(w, keep);
}

/* Scan bytes that were put behind w->len. */
static oomsight_status scan_tail(oos_linescan *w, size_t count, oomsight_error *reterr)
{
    size_t found;
    bool cut;
    OOS_TRY(oos_literal_scan_feed(w->bench->literals, (oos_view){w->bytes + w->len, count},
                                  w->hits + w->hit_count, OOS_BENCH_HITS_MAX - w->hit_count, &found, &cut,
                                  reterr));
    for (size_t i = 0; i < found; i++) w->hits[w->hit_count + i].end += w->stream_base;
    w->hit_count += found;
    w->len += count;
    oos_assert(w->len <= OOS_BENCH_WINDOW_BYTES && w->hit_count <= OOS_BENCH_HITS_MAX);
    w->result.cut_hits |= cut;
    w->result.bytes += count;
    hand_on(w, false);
    move_on(w);
    return OOMSIGHT_OK;
}

static oomsight_status scan_text(oos_linescan *w, oos_view text, oomsight_error *reterr)
{
    while (text.len) {
        size_t const count = oos_min(text.len, OOS_BENCH_WINDOW_BYTES - w->len);
        oos_assert(count > 0); /* or the text would never end */
        memcpy(w->bytes + w->len, text.ptr, count);
        OOS_TRY(scan_tail(w, count, reterr));
        text = oos_view_slice(text, count, SIZE_MAX);
    }
    return OOMSIGHT_OK;
}

/* Bytes that were put into the raw buffer, cleaned on their way into the window. */
static oomsight_status scan_raw(oos_linescan *w, size_t count, bool last, oomsight_error *reterr)
{
    oos_text *clean = &w->bench->clean;
    clean->len = 0;
    oos_cleaner_feed(&w->cleaner, (oos_view){w->bench->raw, count}, last, clean);
    if (clean->failed) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a log");
    return clean->len ? scan_text(w, (oos_view){clean->ptr, clean->len}, reterr) : OOMSIGHT_OK;
}

/* The first bytes decide whether it is a log, and whether it has to be cleaned. What still grows is read in any case: its first
 * bytes may be few. */
static oomsight_status decide(oos_linescan *w, oomsight_error *reterr)
{
    size_t const head = w->head;
    w->decided = true;
    w->head = 0;
    w->result.binary = !w->origin.growing && oos_sniff_binary((oos_view){w->bytes, head}, head < SNIFF_BYTES);
    w->source = !w->origin.growing && oos_sniff_source((oos_view){w->bytes, head});
    w->document = w->source || (!w->origin.growing && oos_sniff_document((oos_view){w->bytes, head}));
    w->page = w->document && !w->source && oos_sniff_page((oos_view){w->bytes, head});
    w->result.cleaned = w->result.binary ? 0 : oos_clean_sniff((oos_view){w->bytes, head});
    if (!w->result.cleaned) return head ? scan_tail(w, head, reterr) : OOMSIGHT_OK;
    w->cleans = true;
    oos_cleaner_init(&w->cleaner, w->result.cleaned);
    memcpy(w->bench->raw, w->bytes, head);
    return scan_raw(w, head, false, reterr);
}

/* ---- sharing the bench ---- */

/* Leave the bench to another: what is still needed goes with us. That is the last line, or all from the first line that
 * waits; the state of the literal scan is not kept, since the beginning of a line can be scanned again. */
static bool step_aside(oos_linescan *w)
{
    size_t const wanted = w->hit_at < w->hit_count ? (size_t)(w->hits[w->hit_at].end - 1 - w->base) : w->len;
    const char *end = wanted && w->decided ? memrchr(w->bytes, '\n', wanted) : NULL;
    if (end) forget(w, (size_t)(end - w->bytes) + 1);
    size_t const len = w->decided ? w->len : w->head;
    char *bytes = malloc(len ? len : 1);
    oos_hit *hits = malloc(w->hit_count ? w->hit_count * sizeof *hits : 1);
    oos_line_place *places = malloc(w->places.count ? w->places.count * sizeof *places : 1);
    if (!bytes || !hits || !places) {
        free(bytes);
        free(hits);
        free(places);
        return false;
    }
    memcpy(bytes, w->bytes, len);
    memcpy(hits, w->hits, w->hit_count * sizeof *hits);
    if (w->places.count) memcpy(places, w->places.list, w->places.count * sizeof *places);
    w->bench->places.room = w->places.room;
    w->bench->places.list = w->places.list;
    w->bytes = bytes;
    w->hits = hits;
    w->places.list = places;
    w->bench->holder = NULL;
    return true;
}

static bool places_grow(oos_places *places, size_t count)
{
    if (count <= places->room) return true;
    size_t const room = count * 2 < 256 ? 256 : count * 2;
    oos_line_place *list = realloc(places->list, room * sizeof *list);
    if (!list) return false;
    places->list = list;
    places->room = room;
    return true;
}

/* Scan the beginning of the unfinished line again, for a literal that goes on in what comes next. */
static bool scan_again(oos_linescan *w)
{
    size_t found;
    bool cut;
    if (oos_literal_scan_restart(w->bench->literals, NULL) != OOMSIGHT_OK) return false;
    const char *end = w->len ? memrchr(w->bytes, '\n', w->len) : NULL;
    size_t from = end ? (size_t)(end - w->bytes) + 1 : 0;
    if (w->len - from > LITERAL_MAX_BYTES) from = w->len - LITERAL_MAX_BYTES;
    w->stream_base = w->base + from;
    return oos_literal_scan_feed(w->bench->literals, (oos_view){w->bytes + from, w->len - from},
                                 w->hits + w->hit_count, OOS_BENCH_HITS_MAX - w->hit_count, &found, &cut,
                                 NULL) == OOMSIGHT_OK;
}

static bool take_bench(oos_linescan *w)
{
    oos_bench *bench = w->bench;
    if (bench->holder == w) return true;
    if (bench->holder && !step_aside(bench->holder)) return false;
    if (!places_grow(&bench->places, w->places.count)) return false;
    size_t const len = w->decided ? w->len : w->head;
    if (len) memcpy(bench->window, w->bytes, len);
    if (w->hit_count) memcpy(bench->hits, w->hits, w->hit_count * sizeof *w->hits);
    if (w->places.count) memcpy(bench->places.list, w->places.list, w->places.count * sizeof *w->places.list);
    free(w->bytes);
    free(w->hits);
    free(w->places.list);
    w->bytes = bench->window;
    w->hits = bench->hits;
    w->places.list = bench->places.list;
    w->places.room = bench->places.room;
    bench->holder = w;
    return scan_again(w);
}

/* ---- places ---- */

/* Note where the lines of the next `count` bytes start. They are whole lines, but for the last of a text that stops. */
static bool note_places(oos_linescan *w, const char *bytes, size_t count)
{
    int64_t const now = oos_logtime_now();
    bool const as_they_are = w->decided && !w->cleans;
    size_t at = 0;
    while (at < count) {
        const char *end = memchr(bytes + at, '\n', count - at);
        size_t const len = end ? (size_t)(end - bytes) - at : count - at;
        if (!places_grow(&w->places, w->places.count + 2)) return false;
        oos_line_place *line = &w->places.list[w->places.count - 1];
        if (line->byte == w->origin.byte + w->read_bytes + at && line->time == OOS_TIME_NONE)
            line->time = as_they_are && end && len < TIME_LATER_BYTES
                             ? TIME_LATER
                             : oos_logtime_read((oos_view){bytes + at, len}, now);
        at += len + (end != NULL);
        if (!end) break;
        w->places.list[w->places.count++] =
            (oos_line_place){w->origin.byte + w->read_bytes + at, OOS_TIME_NONE};
        w->read_lines++;
    }
    w->bench->places = (oos_places){w->places.list, 0, w->places.room};
    w->read_bytes += count;
    return true;
}

/* ---- the life of a scan ---- */

oomsight_status oos_linescan_open(oos_bench *bench, const oos_scan_origin *origin,
                                  void (*on_line)(void *context, const oos_hit_line *line), void *context,
                                  oos_linescan **ret_scan, oomsight_error *reterr)
{
    oos_linescan *w = calloc(1, sizeof *w);
    if (!w) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a log");
    *w = (oos_linescan){.bench = bench,
                        .on_line = on_line,
                        .context = context,
                        .origin = *origin,
                        .lines = origin->lines,
                        .place_lines = origin->lines};
    if (origin->growing) {
        w->places.list = malloc(sizeof *w->places.list);
        if (w->places.list) w->places.list[w->places.count++] = (oos_line_place){origin->byte, OOS_TIME_NONE};
    }
    if (origin->growing && !w->places.list) {
        free(w);
        return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a log");
    }
    *ret_scan = w;
    return OOMSIGHT_OK;
}

void oos_linescan_close(oos_linescan *w)
{
    if (!w) return;
    oos_cleaner_free(&w->cleaner);
    if (w->bench->holder == w) {
        w->bench->holder = NULL;
    } else {
        free(w->bytes);
        free(w->hits);
        free(w->places.list);
    }
    free(w);
}

char *oos_linescan_room(oos_linescan *w, size_t *ret_capacity)
{
    oos_assert(w->head < SNIFF_BYTES && w->len + OOS_BENCH_READ_BYTES <= OOS_BENCH_WINDOW_BYTES);
    *ret_capacity = w->decided ? OOS_BENCH_READ_BYTES : SNIFF_BYTES - w->head;
    if (!take_bench(w)) return NULL;
    if (w->cleans) return w->bench->raw;
    return w->decided ? w->bytes + w->len : w->bytes + w->head;
}

/* Containers put every line into the same wrapper: the first tells. */
static bool is_clear(const oos_linescan *w)
{
    if (w->head >= SNIFF_GROWING_BYTES) return true;
    return memchr(w->bytes, '\n', w->head) &&
           oos_clean_sniff((oos_view){w->bytes, w->head}) & (OOS_CLEAN_CRI | OOS_CLEAN_JSON);
}

oomsight_status oos_linescan_took(oos_linescan *w, size_t count, oomsight_error *reterr)
{
    if (w->origin.growing &&
        !note_places(w, w->cleans ? w->bench->raw : w->bytes + (w->decided ? w->len : w->head), count))
        return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a log");
    if (w->cleans) return scan_raw(w, count, false, reterr);
    if (w->decided) return scan_tail(w, count, reterr);
    w->head += count;
    return w->head == SNIFF_BYTES || (w->origin.growing && is_clear(w)) ? decide(w, reterr) : OOMSIGHT_OK;
}

/* A whole line is held back, since the next may belong to it. Not so the first part of a line that its writer has cut. */
static bool holds_line(const oos_linescan *w)
{
    return w->cleans && w->cleaner.wants_more && !(w->cleaner.what & OOS_CLEAN_CRI);
}

bool oos_linescan_waits(const oos_linescan *w)
{
    if (holds_line(w)) return true;
    return w->decided ? w->hit_at < w->hit_count : w->head > 0;
}

void oos_linescan_place(const oos_linescan *w, uint64_t *ret_byte, uint64_t *ret_lines)
{
    *ret_byte = w->origin.byte;
    *ret_lines = w->origin.lines;
    if (!w->decided) return;
    /* The line of the first hit that waits, else the last that was begun. Lines that the cleaner holds back wait as well. */
    uint64_t line = w->origin.lines + w->read_lines + 1;
    if (w->cleaner.wants_more) line -= oos_min(w->cleaner.joined + 1, line - 1);
    if (w->hit_at < w->hit_count) {
        size_t const at = (size_t)(w->hits[w->hit_at].end - 1 - w->base);
        uint64_t const counted = w->lines + 1;
        line = at > w->counted ? counted + count_newlines(w->bytes + w->counted, at - w->counted) : counted;
    }
    const oos_line_place *place = place_of(w, line);
    if (!place) place = place_of(w, w->place_lines + 1);
    if (!place) return;
    *ret_byte = place->byte;
    *ret_lines = w->place_lines + (uint64_t)(place - w->places.list);
}

uint64_t oos_linescan_lines(const oos_linescan *w)
{
    return w->origin.lines + w->read_lines;
}

oomsight_status oos_linescan_settle(oos_linescan *w, oomsight_error *reterr)
{
    if (!oos_linescan_waits(w)) return OOMSIGHT_OK;
    if (!take_bench(w)) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a log");
    if (!w->decided && w->head) OOS_TRY(decide(w, reterr));
    if (holds_line(w)) OOS_TRY(scan_raw(w, 0, true, reterr));
    hand_on(w, true);
    return OOMSIGHT_OK;
}

oomsight_status oos_linescan_finish(oos_linescan *w, oos_linescan_result *ret_result, oomsight_error *reterr)
{
    if (!take_bench(w)) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a log");
    if (!w->decided) OOS_TRY(decide(w, reterr));
    if (w->cleans) OOS_TRY(scan_raw(w, 0, true, reterr));
    hand_on(w, true);
    w->result.lines = w->lines + count_newlines(w->bytes + w->counted, w->len - w->counted) +
                      (w->len && w->bytes[w->len - 1] != '\n');
    *ret_result = w->result;
    return OOMSIGHT_OK;
}
