/* One window over the stream:
 *
 *     | history, for line starts | bytes being scanned | lookahead, for line ends and the lines after |
 *
 * Hits wait until their line and some bytes behind it are in the window; then the window moves on. */
#include "explain/scan.h"
#include "base/size.h"
#include "input/clean.h"

#include <stdlib.h>

enum {
    READ_BYTES = 512 << 10,
    AFTER_BYTES = 4 << 10,
    KEEP_BYTES = OOS_LINE_MAX_BYTES * 2 + AFTER_BYTES,
    WINDOW_BYTES = READ_BYTES + 2 * KEEP_BYTES,
    SNIFF_BYTES = 64 << 10,
    HITS_MAX = 64 << 10
};

typedef struct window {
    char *bytes;
    size_t len;
    uint64_t base;  /* offset of bytes[0] in the stream */
    size_t counted; /* newlines before this index are in `lines` */
    uint64_t lines;
    oos_hit *hits;
    size_t hit_count, hit_at;
    oos_literal_scan *scan;
    void (*on_line)(void *, const oos_hit_line *);
    void *context;
    oos_scan_result result;
} window;

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
static bool find_line(window *w, size_t at, bool last, size_t *ret_start, size_t *ret_end)
{
    size_t const earliest = at > OOS_LINE_MAX_BYTES ? at - OOS_LINE_MAX_BYTES : 0;
    size_t const latest = oos_min(w->len, at + OOS_LINE_MAX_BYTES);
    size_t start = earliest, end = latest;
    /* Line feeds first: the other two are rare, and are then looked for in one line only. */
    for (const char *ends = "\n\r\v"; *ends; ends++) {
        const char *before = memrchr(w->bytes + start, *ends, at - start);
        const char *behind = memchr(w->bytes + at, *ends, end - at);
        if (before) start = (size_t)(before - w->bytes) + 1;
        if (behind) end = (size_t)(behind - w->bytes);
    }
    if (!last && (end == w->len || w->len - end < AFTER_BYTES)) return false;
    if ((start == earliest && start > 0 && !ends_line(w->bytes[start - 1])) ||
        (end == latest && end < w->len && !ends_line(w->bytes[end])))
        w->result.cut_lines = true;
    *ret_start = start;
    *ret_end = end;
    return true;
}

static void hand_on(window *w, bool last)
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
        oos_hit_line const line = {.number = w->lines + 1,
                                   .text = {w->bytes + start, end - start},
                                   .after = {w->bytes + end, oos_min(w->len - end, AFTER_BYTES)},
                                   .literals = literals,
                                   .literal_count = count};
        w->on_line(w->context, &line);
    }
}

/* Forget what no later line can need. */
static void move_on(window *w)
{
    size_t keep = w->len > KEEP_BYTES ? w->len - KEEP_BYTES : 0;
    if (w->hit_at < w->hit_count) {
        size_t const at = (size_t)(w->hits[w->hit_at].end - 1 - w->base);
        keep = oos_min(keep, at > OOS_LINE_MAX_BYTES ? at - OOS_LINE_MAX_BYTES : 0);
    }
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
}

/* Scan bytes that were put behind w->len. */
static oomsight_status scan_tail(window *w, size_t count, oomsight_error *reterr)
{
    size_t found;
    bool cut;
    OOS_TRY(oos_literal_scan_feed(w->scan, (oos_view){w->bytes + w->len, count}, w->hits + w->hit_count,
                                  HITS_MAX - w->hit_count, &found, &cut, reterr));
    w->hit_count += found;
    w->len += count;
    w->result.cut_hits |= cut;
    w->result.bytes += count;
    hand_on(w, false);
    move_on(w);
    return OOMSIGHT_OK;
}

static oomsight_status scan_text(window *w, oos_view text, oomsight_error *reterr)
{
    while (text.len) {
        size_t const count = oos_min(text.len, WINDOW_BYTES - w->len);
        memcpy(w->bytes + w->len, text.ptr, count);
        OOS_TRY(scan_tail(w, count, reterr));
        text = oos_view_slice(text, count, SIZE_MAX);
    }
    return OOMSIGHT_OK;
}

/* The first bytes decide whether the text has to be cleaned; a pipe may give them in small pieces. */
static oomsight_status read_head(oos_logstream *stream, window *w, size_t *ret_count, oomsight_error *reterr)
{
    size_t filled = 0, count = 1;
    while (filled < SNIFF_BYTES && count) {
        OOS_TRY(oos_logstream_read(stream, w->bytes + filled, SNIFF_BYTES - filled, &count, reterr));
        filled += count;
    }
    *ret_count = filled;
    return OOMSIGHT_OK;
}

static oomsight_status scan_plain(oos_logstream *stream, window *w, size_t count, bool (*keep_going)(void *),
                                  oomsight_error *reterr)
{
    for (;;) {
        if (count == 0) {
            hand_on(w, keep_going != NULL); /* a growing file is answered as it stands */
            if (!keep_going || !keep_going(w->context)) return OOMSIGHT_OK;
        } else {
            OOS_TRY(scan_tail(w, count, reterr));
        }
        OOS_TRY(oos_logstream_read(stream, w->bytes + w->len, READ_BYTES, &count, reterr));
    }
}

static oomsight_status scan_cleaned(oos_logstream *stream, window *w, oos_view head, unsigned what,
                                    oomsight_error *reterr)
{
    oos_cleaner cleaner;
    oos_text clean = {0};
    oos_cleaner_init(&cleaner, what);
    char *raw = malloc(READ_BYTES);
    if (!raw) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a log");
    memcpy(raw, head.ptr, head.len);
    oomsight_status status = OOMSIGHT_OK;
    for (size_t count = head.len; status == OOMSIGHT_OK;) {
        clean.len = 0;
        oos_cleaner_feed(&cleaner, (oos_view){raw, count}, count == 0, &clean);
        if (clean.failed) status = oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a log");
        if (status == OOMSIGHT_OK && clean.len)
            status = scan_text(w, (oos_view){clean.ptr, clean.len}, reterr);
        if (count == 0) break;
        if (status == OOMSIGHT_OK) status = oos_logstream_read(stream, raw, READ_BYTES, &count, reterr);
    }
    oos_text_free(&clean);
    oos_cleaner_free(&cleaner);
    free(raw);
    return status;
}

oomsight_status oos_scan_file(oos_logstream *stream, oos_literal_scan *literals,
                              void (*on_line)(void *context, const oos_hit_line *line), void *context,
                              bool (*keep_going)(void *context), oos_scan_result *ret_result,
                              oomsight_error *reterr)
{
    window w = {.bytes = malloc(WINDOW_BYTES),
                .hits = malloc(HITS_MAX * sizeof(oos_hit)),
                .scan = literals,
                .on_line = on_line,
                .context = context};
    if (!w.bytes || !w.hits) {
        free(w.hits);
        free(w.bytes);
        return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a log");
    }
    oomsight_status status = oos_literal_scan_restart(literals, reterr);
    size_t head = 0;
    if (status == OOMSIGHT_OK) status = read_head(stream, &w, &head, reterr);
    if (status == OOMSIGHT_OK) {
        unsigned const what = oos_clean_sniff((oos_view){w.bytes, head});
        w.result.cleaned = what;
        status = what ? scan_cleaned(stream, &w, (oos_view){w.bytes, head}, what, reterr)
                      : scan_plain(stream, &w, head, keep_going, reterr);
    }
    if (status == OOMSIGHT_OK) {
        hand_on(&w, true);
        w.result.lines = w.lines + count_newlines(w.bytes + w.counted, w.len - w.counted) +
                         (w.len && w.bytes[w.len - 1] != '\n');
        *ret_result = w.result;
    }
    free(w.hits);
    free(w.bytes);
    return status;
}
