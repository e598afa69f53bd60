#include "compare.h"

#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

enum { HITS_MAX = 64 << 10 };

typedef struct beside_literals beside_literals;
typedef struct beside_literal_scan beside_literal_scan;
oomsight_status beside_literals_create(oos_arena *, const char *const *, size_t, beside_literals **,
                                       oomsight_error *);
oomsight_status beside_literal_scan_open(const beside_literals *, beside_literal_scan **, oomsight_error *);
void beside_literal_scan_close(beside_literal_scan *);
oomsight_status beside_literal_scan_feed(beside_literal_scan *, oos_view, oos_hit *, size_t, size_t *, bool *,
                                         oomsight_error *);
oomsight_status beside_literal_scan_restart(beside_literal_scan *, oomsight_error *);

struct comparison {
    oos_literal_scan *one;
    beside_literal_scan *other;
    oos_hit *hits[2];
};

static void release(void *thing)
{
    comparison *both = thing;
    oos_literal_scan_close(both->one);
    beside_literal_scan_close(both->other);
    free(both->hits[0]);
    free(both->hits[1]);
}

comparison *comparison_create(oos_arena *arena, const char *const *words, size_t count)
{
    oos_literals *literals;
    beside_literals *beside;
    comparison *both = OOS_NEW(arena, comparison);
    if (!both || oos_literals_create(arena, words, count, &literals, NULL) != OOMSIGHT_OK ||
        beside_literals_create(arena, words, count, &beside, NULL) != OOMSIGHT_OK)
        return NULL;
    if (!oos_arena_adopt(arena, release, both) ||
        oos_literal_scan_open(literals, &both->one, NULL) != OOMSIGHT_OK ||
        beside_literal_scan_open(beside, &both->other, NULL) != OOMSIGHT_OK)
        return NULL;
    both->hits[0] = malloc(HITS_MAX * sizeof *both->hits[0]);
    both->hits[1] = malloc(HITS_MAX * sizeof *both->hits[1]);
    return both->hits[0] && both->hits[1] ? both : NULL;
}

static int by_end(const void *a, const void *b)
{
    const oos_hit *x = a, *y = b;
    if (x->end != y->end) return x->end < y->end ? -1 : 1;
    return x->literal < y->literal ? -1 : x->literal > y->literal;
}

static bool in_order(const oos_hit *hits, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (hits[i].end < hits[i - 1].end) return false;
    return true;
}

static bool equal(oos_hit *const hits[2], const size_t count[2])
{
    if (count[0] != count[1] || !in_order(hits[0], count[0]) || !in_order(hits[1], count[1])) return false;
    for (size_t k = 0; k < 2; k++) qsort(hits[k], count[k], sizeof *hits[k], by_end);
    for (size_t i = 0; i < count[0]; i++)
        if (by_end(&hits[0][i], &hits[1][i]) != 0) return false;
    return true;
}

static oos_view next_block(oos_view text, size_t at, uint32_t *seed)
{
    *seed = *seed ? *seed * 1664525u + 1013904223u : 0;
    return oos_view_slice(text, at, *seed ? 1 + (*seed >> 24) % 97 : text.len);
}

bool comparison_run(comparison *both, oos_view text, uint32_t seed, size_t *ret_hits)
{
    size_t at = 0, total = 0;
    oos_literal_scan_restart(both->one, NULL);
    beside_literal_scan_restart(both->other, NULL);
    while (at < text.len) {
        oos_view const block = next_block(text, at, &seed);
        size_t count[2] = {0};
        bool cut[2] = {0};
        if (oos_literal_scan_feed(both->one, block, both->hits[0], HITS_MAX, &count[0], &cut[0], NULL) !=
                OOMSIGHT_OK ||
            beside_literal_scan_feed(both->other, block, both->hits[1], HITS_MAX, &count[1], &cut[1], NULL) !=
                OOMSIGHT_OK)
            return false;
        bool const same =
            cut[0] || cut[1] ? cut[0] == cut[1] && count[0] == count[1] : equal(both->hits, count);
        if (!same) {
            fprintf(stderr, "%zu and %zu hits in the block of %zu bytes at %zu\n", count[0], count[1],
                    block.len, at);
            return false;
        }
        total += count[0];
        at += block.len;
    }
    if (ret_hits) *ret_hits = total;
    return true;
}

/* Every place, every word. */
static size_t look(const char *const *words, size_t count, oos_view text, oos_hit *hits)
{
    size_t found = 0;
    for (size_t end = 1; end <= text.len; end++)
        for (size_t i = 0; i < count; i++) {
            size_t const len = strlen(words[i]);
            if (len > end || found == HITS_MAX) continue;
            if (strncasecmp(text.ptr + end - len, words[i], len) == 0)
                hits[found++] = (oos_hit){end, (uint32_t)i};
        }
    return found;
}

bool comparison_own(oos_arena *arena, const char *const *words, size_t count, oos_view text, uint32_t seed,
                    size_t *ret_hits)
{
    beside_literals *literals;
    beside_literal_scan *scan = NULL;
    oos_hit *hits[2] = {malloc(HITS_MAX * sizeof *hits[0]), malloc(HITS_MAX * sizeof *hits[1])};
    size_t found[2] = {0};
    bool cut = false;
    bool good = hits[0] && hits[1] &&
                beside_literals_create(arena, words, count, &literals, NULL) == OOMSIGHT_OK &&
                beside_literal_scan_open(literals, &scan, NULL) == OOMSIGHT_OK;
    for (size_t at = 0, some; good && !cut && at < text.len;) {
        oos_view const block = next_block(text, at, &seed);
        good = beside_literal_scan_feed(scan, block, hits[0] + found[0], HITS_MAX - found[0], &some, &cut,
                                        NULL) == OOMSIGHT_OK;
        found[0] += some;
        at += block.len;
    }
    found[1] = good ? look(words, count, text, hits[1]) : 0;
    good = good && (cut ? found[1] == HITS_MAX : equal(hits, found));
    if (!good) fprintf(stderr, "%zu and %zu hits in %zu bytes\n", found[0], found[1], text.len);
    beside_literal_scan_close(scan);
    free(hits[0]);
    free(hits[1]);
    *ret_hits = found[0];
    return good;
}
