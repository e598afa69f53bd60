#include "compare.h"

#include <stdio.h>
#include <stdlib.h>

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

static bool equal(comparison *both, const size_t count[2], const bool cut[2])
{
    if (cut[0] || cut[1]) return cut[0] == cut[1] && count[0] == count[1];
    if (count[0] != count[1] || !in_order(both->hits[0], count[0]) || !in_order(both->hits[1], count[1]))
        return false;
    for (size_t k = 0; k < 2; k++) qsort(both->hits[k], count[k], sizeof *both->hits[k], by_end);
    for (size_t i = 0; i < count[0]; i++)
        if (by_end(&both->hits[0][i], &both->hits[1][i]) != 0) return false;
    return true;
}

bool comparison_run(comparison *both, oos_view text, uint32_t seed, size_t *ret_hits)
{
    size_t at = 0, total = 0;
    oos_literal_scan_restart(both->one, NULL);
    beside_literal_scan_restart(both->other, NULL);
    while (at < text.len) {
        seed = seed ? seed * 1664525u + 1013904223u : 0;
        oos_view const block = oos_view_slice(text, at, seed ? 1 + (seed >> 24) % 97 : text.len);
        size_t count[2] = {0};
        bool cut[2] = {0};
        if (oos_literal_scan_feed(both->one, block, both->hits[0], HITS_MAX, &count[0], &cut[0], NULL) !=
                OOMSIGHT_OK ||
            beside_literal_scan_feed(both->other, block, both->hits[1], HITS_MAX, &count[1], &cut[1], NULL) !=
                OOMSIGHT_OK)
            return false;
        if (!equal(both, count, cut)) {
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
