#define PCRE2_CODE_UNIT_WIDTH 8
#include "compare.h"

#include <pcre2.h>
#include <stdio.h>
#include <stdlib.h>

/* Hits of one text; a block may have BLOCK_HITS of them. */
enum { BLOCK_HITS = 64 << 10, FIRST_ROOM = 4096 };

typedef struct hits {
    oos_hit *list;
    size_t count, room;
} hits;

struct comparison {
    oos_literal_scan *scan;
    pcre2_code **words;
    size_t word_count;
    pcre2_match_data *data;
    oos_hit *block;
    hits ours, theirs;
};

static void release(void *thing)
{
    comparison *both = thing;
    oos_literal_scan_close(both->scan);
    for (size_t i = 0; i < both->word_count; i++) pcre2_code_free(both->words[i]);
    pcre2_match_data_free(both->data);
    free(both->block);
    free(both->ours.list);
    free(both->theirs.list);
}

comparison *comparison_create(oos_arena *arena, const char *const *words, size_t count)
{
    oos_literals *literals;
    comparison *both = OOS_NEW(arena, comparison);
    if (!both || !oos_arena_adopt(arena, release, both)) return NULL;
    both->words = OOS_NEW_ARRAY(arena, pcre2_code *, count);
    both->data = pcre2_match_data_create(1, NULL);
    both->block = malloc(BLOCK_HITS * sizeof *both->block);
    if (!both->words || !both->data || !both->block) return NULL;
    for (size_t i = 0; i < count; i++) {
        int error;
        PCRE2_SIZE at;
        both->words[i] = pcre2_compile((PCRE2_SPTR)words[i], PCRE2_ZERO_TERMINATED,
                                       PCRE2_LITERAL | PCRE2_CASELESS, &error, &at, NULL);
        if (!both->words[i]) return NULL;
        both->word_count++;
        pcre2_jit_compile(both->words[i], PCRE2_JIT_COMPLETE);
    }
    return oos_literals_create(arena, words, count, "", &literals, NULL) == OOMSIGHT_OK &&
                   oos_literal_scan_open(literals, &both->scan, NULL) == OOMSIGHT_OK
               ? both
               : NULL;
}

static bool hits_add(hits *to, const oos_hit *some, size_t count)
{
    if (to->count + count > to->room) {
        size_t const room = 2 * (to->count + count) + FIRST_ROOM;
        oos_hit *list = realloc(to->list, room * sizeof *list);
        if (!list) return false;
        to->list = list;
        to->room = room;
    }
    for (size_t i = 0; i < count; i++) to->list[to->count++] = some[i];
    return true;
}

static int by_end(const void *a, const void *b)
{
    const oos_hit *x = a, *y = b;
    if (x->end != y->end) return x->end < y->end ? -1 : 1;
    return x->literal < y->literal ? -1 : x->literal > y->literal;
}

/* In blocks; what one block gives must be in order, and end in it. False as well when a block has too many hits. */
static bool scan(comparison *both, oos_view text, uint32_t seed)
{
    both->ours.count = 0;
    oos_literal_scan_restart(both->scan, NULL);
    for (size_t at = 0; at < text.len;) {
        seed = seed ? seed * 1664525u + 1013904223u : 0;
        oos_view const block = oos_view_slice(text, at, seed ? 1 + (seed >> 24) % 97 : text.len);
        size_t count;
        bool cut;
        if (oos_literal_scan_feed(both->scan, block, both->block, BLOCK_HITS, &count, &cut, NULL) !=
                OOMSIGHT_OK ||
            cut || !hits_add(&both->ours, both->block, count))
            return false;
        uint64_t least = at + 1;
        for (size_t i = 0; i < count; i++) {
            if (both->block[i].end < least || both->block[i].end > at + block.len) return false;
            least = both->block[i].end;
        }
        at += block.len;
    }
    return true;
}

/* Every word by itself, also where it overlaps with itself. */
static bool look(comparison *both, oos_view text)
{
    const PCRE2_SIZE *ends = pcre2_get_ovector_pointer(both->data);
    both->theirs.count = 0;
    for (size_t i = 0; i < both->word_count; i++)
        for (size_t from = 0; from < text.len; from = ends[0] + 1) {
            if (pcre2_match(both->words[i], (PCRE2_SPTR)text.ptr, text.len, from, 0, both->data, NULL) < 0)
                break;
            if (!hits_add(&both->theirs, &(oos_hit){ends[1], (uint32_t)i}, 1)) return false;
        }
    return true;
}

bool comparison_run(comparison *both, oos_view text, uint32_t seed, size_t *ret_hits)
{
    hits *ours = &both->ours, *theirs = &both->theirs;
    bool same = scan(both, text, seed) && look(both, text) && ours->count == theirs->count;
    if (same && ours->count) {
        qsort(ours->list, ours->count, sizeof *ours->list, by_end);
        qsort(theirs->list, theirs->count, sizeof *theirs->list, by_end);
        for (size_t i = 0; i < ours->count; i++) same = same && !by_end(&ours->list[i], &theirs->list[i]);
    }
    if (!same)
        fprintf(stderr, "%zu hits, and %zu by PCRE2, in %zu bytes\n", ours->count, theirs->count, text.len);
    if (ret_hits) *ret_hits = ours->count;
    return same;
}
