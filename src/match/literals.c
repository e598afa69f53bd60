/* Many words over a stream at once, in two steps. At every second place of the text the four bytes that begin there, letters
 * made small, are hashed into a table of bits; for one place in sixteen of a serving log the bit is set. There the words that have
 * these four bytes are compared.
 *
 *     text       C U D A   o u t   o f   m e m o r y
 *     looked at  ^   ^   ^   ^   ^   ^   ^   ^   ^
 *
 * A word has two windows of four bytes in the table, one at an even distance from its start and one at an odd one: wherever
 * the word begins, one of the two is looked at. Those are taken that are rarest in all words and in a text that is read all day.
 *
 * The words bound how much there is to compare at a place, so that hostile bytes cost a few times what others do. */
#include "base/ascii.h"
#include "base/check.h"
#include "base/size.h"
#include "match/match.h"

#include <stdlib.h>

enum {
    WINDOW = 4,
    HASH_BITS = 17,   /* 16 KiB of bits, which stay in the nearest cache */
    BUCKET_SHIFT = 5, /* 32 bits share a bucket of entries */
    BUCKETS = 1 << (HASH_BITS - BUCKET_SHIFT),
    SEEN_SHIFT = 2,
    SEEN = 1 << (HASH_BITS - SEEN_SHIFT),
    SMALL =
        0x20 /* the bit by which letters differ in case. In other bytes it is lost: the comparison sees to them */
};
/* Of all words: twenty thousand are what explain needs, so that more than this is a mistake. */
#define BYTES_MAX ((size_t)16 << 20)

typedef struct entry {
    uint32_t key, word;
    int32_t offset; /* of the window from the start of the word: -1 when it begins before it */
} entry;

struct oos_literals {
    uint32_t bits[(1 << HASH_BITS) / 32];
    uint32_t first[BUCKETS + 1]; /* entries of a bucket; they end where the next ones begin */
    entry *entries;
    const char **words; /* in small letters */
    uint32_t *lens;
    uint32_t mask; /* of the bytes of a window that count */
    size_t width;  /* how many these are */
    size_t stride; /* between two places that are looked at */
    size_t longest;
};

struct oos_literal_scan {
    const oos_literals *literals;
    uint64_t offset; /* of the next block */
    size_t kept;     /* bytes of `seam` that came before it */
    char seam[];     /* these, and the beginning of a block: a word that lies across the two lies in here */
};

static uint32_t key_at(const oos_literals *literals, const char *at)
{
    uint32_t key;
    memcpy(&key, at, sizeof key);
    return (key | 0x01010101u * SMALL) & literals->mask;
}

static uint32_t hash_of(uint32_t key)
{
    return key * 0x9e3779b1u >> (32 - HASH_BITS);
}

/* ---- making ---- */

/* While it is made. */
typedef struct making {
    oos_literals *literals;
    uint16_t *seen; /* by hash: in how many windows of all words, and of the common text many times */
    entry *entries;
    size_t count, room;
} making;

static bool entry_add(making *m, entry e)
{
    if (m->count == m->room) {
        size_t const room = m->room ? m->room * 2 : 4096;
        entry *entries = realloc(m->entries, room * sizeof *entries);
        if (!entries) return false;
        m->entries = entries;
        m->room = room;
    }
    m->entries[m->count++] = e;
    return true;
}

/* A window of which one byte is not the word's: once for every byte that may stand there. */
static bool entries_add(making *m, uint32_t word, int offset)
{
    const oos_literals *literals = m->literals;
    int const len = (int)literals->lens[word];
    char window[WINDOW] = {0};
    int open = -1;
    for (int i = 0; i < WINDOW; i++) {
        if (offset + i >= 0 && offset + i < len)
            window[i] = literals->words[word][offset + i];
        else if ((size_t)i < literals->width) {
            oos_assert(open < 0); /* one byte at most */
            open = i;
        }
    }
    if (open < 0) return entry_add(m, (entry){key_at(literals, window), word, offset});
    for (int byte = 0; byte < 256; byte++) {
        if (!(byte & SMALL)) continue;
        window[open] = (char)byte;
        if (!entry_add(m, (entry){key_at(literals, window), word, offset})) return false;
    }
    return true;
}

/* The window at a distance of `from`, `from` + stride and so on that fewest words have. */
static bool choose(making *m, uint32_t word, size_t from)
{
    const oos_literals *literals = m->literals;
    size_t const len = literals->lens[word];
    if (from + literals->width > len) return entries_add(m, word, from == 1 ? -1 : (int)from);
    size_t best = from;
    uint16_t fewest = UINT16_MAX;
    for (size_t at = from; at + literals->width <= len; at += literals->stride) {
        uint16_t const seen = m->seen[hash_of(key_at(literals, literals->words[word] + at)) >> SEEN_SHIFT];
        if (seen >= fewest) continue;
        fewest = seen;
        best = at;
    }
    return entries_add(m, word, (int)best);
}

static void see(making *m, const char *text, size_t len, unsigned times)
{
    for (size_t at = 0; at + m->literals->width <= len; at++) {
        char window[WINDOW] = {0};
        memcpy(window, text + at, m->literals->width);
        uint16_t *seen = &m->seen[hash_of(key_at(m->literals, window)) >> SEEN_SHIFT];
        *seen = (uint16_t)oos_min(*seen + times, UINT16_MAX - 1);
    }
}

static bool choose_all(making *m, size_t count, const char *common)
{
    enum { COMMON_TIMES = 256 };
    const oos_literals *literals = m->literals;
    for (size_t i = 0; i < count; i++) see(m, literals->words[i], literals->lens[i], 1);
    see(m, common, strlen(common), COMMON_TIMES);
    for (size_t i = 0; i < count; i++)
        for (size_t from = 0; from < literals->stride; from++)
            if (!choose(m, (uint32_t)i, from)) return false;
    return true;
}

static bool lay_out(oos_arena *arena, const making *m, oos_literals *literals)
{
    literals->entries = OOS_NEW_ARRAY(arena, entry, m->count + 1);
    if (!literals->entries) return false;
    uint32_t *first = literals->first;
    for (size_t i = 0; i < m->count; i++) {
        uint32_t const hash = hash_of(m->entries[i].key);
        literals->bits[hash / 32] |= 1u << hash % 32;
        first[(hash >> BUCKET_SHIFT) + 1]++;
    }
    for (size_t i = 0; i < BUCKETS; i++) first[i + 1] += first[i];
    for (size_t i = m->count;
         i-- > 0;) /* from the end of each bucket: `first` is then the end of the one before */
        literals->entries[--first[(hash_of(m->entries[i].key) >> BUCKET_SHIFT) + 1]] = m->entries[i];
    for (size_t i = 0; i < BUCKETS; i++) first[i] = first[i + 1];
    first[BUCKETS] = (uint32_t)m->count;
    oos_assert(first[0] == 0);
    return true;
}

static oomsight_status words_take(oos_arena *arena, oos_literals *literals, const char *const *words,
                                  size_t count, oomsight_error *reterr)
{
    size_t shortest = WINDOW, bytes = 0;
    literals->words = OOS_NEW_ARRAY(arena, const char *, count + 1);
    literals->lens = OOS_NEW_ARRAY(arena, uint32_t, count + 1);
    if (!literals->words || !literals->lens)
        return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for %zu literals", count);
    for (size_t i = 0; i < count; i++) {
        size_t const len = strlen(words[i]);
        bytes += len;
        if (bytes > BYTES_MAX)
            return oos_fail(reterr, OOMSIGHT_UNSUPPORTED, "%zu literals are too many", count);
        char *small = oos_arena_take_raw(arena, len + 1);
        if (!small) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for %zu literals", count);
        for (size_t k = 0; k <= len; k++) small[k] = oos_lower(words[i][k]);
        literals->words[i] = small;
        literals->lens[i] = (uint32_t)len;
        literals->longest = oos_max(literals->longest, len);
        shortest = oos_min(shortest, len);
    }
    /* One byte of a window may be another's; with words of one or two bytes more of them would have to be. */
    bool const tiny = shortest + 1 < WINDOW;
    literals->width = tiny ? shortest : WINDOW;
    literals->stride = tiny ? 1 : 2;
    char mask[WINDOW] = {0};
    memset(mask, 0xff, literals->width);
    memcpy(&literals->mask, mask, sizeof mask);
    return OOMSIGHT_OK;
}

oomsight_status oos_literals_create(oos_arena *arena, const char *const *words, size_t count,
                                    const char *common, oos_literals **ret_literals, oomsight_error *reterr)
{
    oos_literals *literals = OOS_NEW(arena, oos_literals);
    if (!literals) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for %zu literals", count);
    OOS_TRY(words_take(arena, literals, words, count, reterr));
    making m = {.literals = literals, .seen = calloc(SEEN, sizeof *m.seen)};
    bool const good = m.seen && choose_all(&m, count, common) && lay_out(arena, &m, literals);
    free(m.seen);
    free(m.entries);
    if (!good) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for %zu literals", count);
    *ret_literals = literals;
    return OOMSIGHT_OK;
}

/* ---- scanning ---- */

oomsight_status oos_literal_scan_open(const oos_literals *literals, oos_literal_scan **ret_scan,
                                      oomsight_error *reterr)
{
    oos_literal_scan *scan = calloc(1, sizeof *scan + 2 * literals->longest);
    if (!scan) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a scan");
    scan->literals = literals;
    *ret_scan = scan;
    return OOMSIGHT_OK;
}

void oos_literal_scan_close(oos_literal_scan *scan)
{
    free(scan);
}

oomsight_status oos_literal_scan_restart(oos_literal_scan *scan, oomsight_error *reterr)
{
    (void)reterr;
    scan->offset = 0;
    scan->kept = 0;
    return OOMSIGHT_OK;
}

/* What is scanned, and what is found in it. */
typedef struct search {
    const oos_literals *literals;
    oos_view text;
    size_t across;   /* only words that begin before this index and end behind it; 0: all */
    uint64_t offset; /* of the text */
    oos_hit *hits;   /* in the order of their end; with the same end, in the order they were found in */
    size_t count, most;
    bool cut;
} search;

/* Windows are found in order, and so are words but for those that overlap: a few steps back at most. */
static void note(search *s, oos_hit hit)
{
    if (s->count == s->most) {
        s->cut = true;
        if (!s->most || s->hits[s->most - 1].end <= hit.end) return;
        s->count--;
    }
    size_t at = s->count++;
    for (; at && s->hits[at - 1].end > hit.end; at--) s->hits[at] = s->hits[at - 1];
    s->hits[at] = hit;
    oos_assert(s->count <= s->most);
}

static bool same(const char *text, const char *small, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (oos_lower(text[i]) != small[i]) return false;
    return true;
}

/* Compare the words that have this window. */
static void look(search *s, size_t at, uint32_t key, uint32_t hash)
{
    const oos_literals *literals = s->literals;
    const uint32_t *first = &literals->first[hash >> BUCKET_SHIFT];
    for (const entry *e = literals->entries + first[0], *end = literals->entries + first[1]; e < end; e++) {
        if (e->key != key || (e->offset > 0 && (size_t)e->offset > at)) continue;
        size_t const start = at - (size_t)e->offset, len = literals->lens[e->word];
        oos_assert(start <= s->text.len);
        if (len > s->text.len - start) continue;
        if (s->across && (start >= s->across || start + len <= s->across)) continue;
        if (same(s->text.ptr + start, literals->words[e->word], len))
            note(s, (oos_hit){s->offset + start + len, e->word});
    }
}

static void search_text(search *s)
{
    const oos_literals *literals = s->literals;
    oos_view const text = s->text;
    size_t const stride = literals->stride;
    size_t at = 0;
    for (; at + WINDOW <= text.len; at += stride) {
        uint32_t const key = key_at(literals, text.ptr + at), hash = hash_of(key);
        if (literals->bits[hash / 32] >> hash % 32 & 1) look(s, at, key, hash);
    }
    for (; at < text.len; at += stride) { /* the window goes on behind the text */
        char window[WINDOW] = {0};
        memcpy(window, text.ptr + at, text.len - at);
        uint32_t const key = key_at(literals, window), hash = hash_of(key);
        if (literals->bits[hash / 32] >> hash % 32 & 1) look(s, at, key, hash);
    }
}

/* Keep the last bytes, one less than the longest word has. */
static void keep(oos_literal_scan *scan, oos_view block)
{
    size_t const most = scan->literals->longest - 1, some = oos_min(block.len, most);
    size_t const old = oos_min(scan->kept, most - some);
    memmove(scan->seam, scan->seam + scan->kept - old, old);
    memcpy(scan->seam + old, block.ptr + block.len - some, some);
    scan->kept = old + some;
    oos_assert(scan->kept < scan->literals->longest); /* half of the seam */
}

oomsight_status oos_literal_scan_feed(oos_literal_scan *scan, oos_view block, oos_hit *ret_hits, size_t most,
                                      size_t *ret_count, bool *ret_cut, oomsight_error *reterr)
{
    (void)reterr;
    const oos_literals *literals = scan->literals;
    search s = {.literals = literals, .hits = ret_hits, .most = most};
    if (block.len && literals->longest) {
        if (scan->kept) {
            size_t const some = oos_min(block.len, literals->longest - 1);
            memcpy(scan->seam + scan->kept, block.ptr, some);
            s.text = (oos_view){scan->seam, scan->kept + some};
            s.across = scan->kept;
            s.offset = scan->offset - scan->kept;
            search_text(&s);
        }
        s.text = block;
        s.across = 0;
        s.offset = scan->offset;
        search_text(&s);
        keep(scan, block);
    }
    scan->offset += block.len;
    *ret_count = s.count;
    *ret_cut = s.cut;
    return OOMSIGHT_OK;
}
