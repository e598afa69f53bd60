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

struct oos_linescan {
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
    oos_linescan_result result;
    size_t head; /* bytes at the start of the window that wait for the decision how to read them */
    bool decided;
    char *raw; /* NULL: nothing has to be cleaned */
    oos_cleaner cleaner;
    oos_text clean;
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
        oos_hit_line const line = {.number = w->lines + 1,
                                   .text = {w->bytes + start, end - start},
                                   .after = {w->bytes + end, oos_min(w->len - end, AFTER_BYTES)},
                                   .literals = literals,
                                   .literal_count = count};
        w->on_line(w->context, &line);
    }
}

/* Forget what no later line can need. */
static void move_on(oos_linescan *w)
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
static oomsight_status scan_tail(oos_linescan *w, size_t count, oomsight_error *reterr)
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

static oomsight_status scan_text(oos_linescan *w, oos_view text, oomsight_error *reterr)
{
    while (text.len) {
        size_t const count = oos_min(text.len, WINDOW_BYTES - w->len);
        memcpy(w->bytes + w->len, text.ptr, count);
        OOS_TRY(scan_tail(w, count, reterr));
        text = oos_view_slice(text, count, SIZE_MAX);
    }
    return OOMSIGHT_OK;
}

/* Bytes that were put into w->raw, cleaned on their way into the window. */
static oomsight_status scan_raw(oos_linescan *w, size_t count, bool last, oomsight_error *reterr)
{
    w->clean.len = 0;
    oos_cleaner_feed(&w->cleaner, (oos_view){w->raw, count}, last, &w->clean);
    if (w->clean.failed) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a log");
    return w->clean.len ? scan_text(w, (oos_view){w->clean.ptr, w->clean.len}, reterr) : OOMSIGHT_OK;
}

/* The first bytes decide whether the text has to be cleaned. */
static oomsight_status decide(oos_linescan *w, oomsight_error *reterr)
{
    size_t const head = w->head;
    w->decided = true;
    w->head = 0;
    w->result.cleaned = oos_clean_sniff((oos_view){w->bytes, head});
    if (!w->result.cleaned) return head ? scan_tail(w, head, reterr) : OOMSIGHT_OK;
    w->raw = malloc(READ_BYTES);
    if (!w->raw) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a log");
    oos_cleaner_init(&w->cleaner, w->result.cleaned);
    memcpy(w->raw, w->bytes, head);
    return scan_raw(w, head, false, reterr);
}

oomsight_status oos_linescan_open(oos_literal_scan *literals,
                                  void (*on_line)(void *context, const oos_hit_line *line), void *context,
                                  oos_linescan **ret_scan, oomsight_error *reterr)
{
    oos_linescan *w = calloc(1, sizeof *w);
    if (w) {
        w->bytes = malloc(WINDOW_BYTES);
        w->hits = malloc(HITS_MAX * sizeof(oos_hit));
        w->scan = literals;
        w->on_line = on_line;
        w->context = context;
    }
    if (!w || !w->bytes || !w->hits) {
        oos_linescan_close(w);
        return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a log");
    }
    oomsight_status const status = oos_literal_scan_restart(literals, reterr);
    if (status != OOMSIGHT_OK)
        oos_linescan_close(w);
    else
        *ret_scan = w;
    return status;
}

void oos_linescan_close(oos_linescan *w)
{
    if (!w) return;
    oos_cleaner_free(&w->cleaner);
    oos_text_free(&w->clean);
    free(w->raw);
    free(w->hits);
    free(w->bytes);
    free(w);
}

char *oos_linescan_room(oos_linescan *w, size_t *ret_capacity)
{
    *ret_capacity = w->decided ? READ_BYTES : SNIFF_BYTES - w->head;
    if (w->raw) return w->raw;
    return w->decided ? w->bytes + w->len : w->bytes + w->head;
}

oomsight_status oos_linescan_took(oos_linescan *w, size_t count, oomsight_error *reterr)
{
    if (w->raw) return scan_raw(w, count, false, reterr);
    if (w->decided) return scan_tail(w, count, reterr);
    w->head += count;
    return w->head == SNIFF_BYTES ? decide(w, reterr) : OOMSIGHT_OK;
}

oomsight_status oos_linescan_settle(oos_linescan *w, oomsight_error *reterr)
{
    if (!w->decided && w->head) OOS_TRY(decide(w, reterr));
    hand_on(w, true);
    return OOMSIGHT_OK;
}

oomsight_status oos_linescan_finish(oos_linescan *w, oos_linescan_result *ret_result, oomsight_error *reterr)
{
    if (!w->decided) OOS_TRY(decide(w, reterr));
    if (w->raw) OOS_TRY(scan_raw(w, 0, true, reterr));
    hand_on(w, true);
    w->result.lines = w->lines + count_newlines(w->bytes + w->counted, w->len - w->counted) +
                      (w->len && w->bytes[w->len - 1] != '\n');
    *ret_result = w->result;
    return OOMSIGHT_OK;
}
