/* Literals without Vectorscan: Aho and Corasick's machine, all transitions filled in. One step per byte and nothing to go
 * back to, so that hostile bytes cost what others do, and a block may end anywhere. Bytes that mean the same to every word
 * (the two cases of a letter, all that are in no word) share a column.
 *
 *     next: | state 0: a column per class | state 1 | ... | states that end a word come last |
 *
 * A state is written as the index of its row, so that a step is one addition and one load. */
#include "base/ascii.h"
#include "match/literals.h"

#include <stdlib.h>

enum { NONE = UINT32_MAX };
/* 9 000 states of 52 classes are what explain needs; a set of words beyond this is a mistake. */
#define ENTRIES_MAX ((size_t)64 << 20)

struct oos_literals {
    uint8_t class_of[256];
    uint32_t classes;
    uint32_t first_end; /* rows from here on end a word */
    uint32_t *next;
    /* by the number of such a row, counted from first_end: */
    uint32_t *word;    /* the first word that ends here, or NONE; others follow in `same` */
    uint32_t *shorter; /* the next row that ends a shorter one, or NONE */
    uint32_t *same;    /* by word: another with the same letters, or NONE */
};

struct oos_literal_scan {
    const oos_literals *literals;
    uint32_t at;
    uint64_t offset;
};

/* While it is built: states in the order of their making, which is not yet that of the rows. */
typedef struct trie {
    size_t classes, count;
    uint32_t *child; /* [state * classes + class]; NONE, later the state to go on with */
    uint32_t *fail;  /* the longest other state whose letters end this one's */
    uint32_t *word;  /* the first word that ends here */
    uint32_t *ends;  /* the nearest state on the way of `fail` that ends a word, itself included */
    uint32_t *queue; /* breadth first */
} trie;

static size_t classify(oos_literals *literals, const char *const *words, size_t count)
{
    size_t bytes = 0;
    literals->classes = 1; /* class 0: in no word */
    for (size_t i = 0; i < count; i++)
        for (const char *c = words[i]; *c; c++, bytes++) {
            unsigned char const small = (unsigned char)oos_lower(*c);
            if (literals->class_of[small]) continue;
            literals->class_of[small] = (uint8_t)literals->classes++;
            if (small >= 'a' && small <= 'z')
                literals->class_of[small - 'a' + 'A'] = literals->class_of[small];
        }
    return bytes;
}

static void trie_release(trie *t)
{
    free(t->child);
    free(t->fail);
    free(t->word);
    free(t->ends);
    free(t->queue);
}

static uint32_t *filled(size_t count)
{
    uint32_t *list = malloc(count * sizeof *list);
    if (list) memset(list, 0xff, count * sizeof *list);
    return list;
}

static bool trie_init(trie *t, size_t classes, size_t states_max)
{
    *t = (trie){.classes = classes,
                .count = 1,
                .child = filled(states_max * classes),
                .fail = filled(states_max),
                .word = filled(states_max),
                .ends = filled(states_max),
                .queue = filled(states_max)};
    return t->child && t->fail && t->word && t->ends && t->queue;
}

static void trie_add(trie *t, oos_literals *literals, const char *word, uint32_t number)
{
    size_t at = 0;
    for (; *word; word++) {
        uint32_t *child = &t->child[at * t->classes + literals->class_of[(unsigned char)*word]];
        if (*child == NONE) *child = (uint32_t)t->count++;
        at = *child;
    }
    literals->same[number] = t->word[at];
    t->word[at] = number;
}

/* Fill in every transition, nearest to the root first: what a state lacks is where the state it fails to goes. */
static void trie_complete(trie *t)
{
    size_t taken = 0, put = 0;
    t->fail[0] = 0;
    t->queue[put++] = 0;
    while (taken < put) {
        uint32_t const at = t->queue[taken++], back = t->fail[at];
        t->ends[at] = t->word[at] != NONE ? at : at ? t->ends[back] : NONE;
        for (size_t c = 0; c < t->classes; c++) {
            uint32_t *child = &t->child[at * t->classes + c];
            uint32_t const instead = at ? t->child[back * t->classes + c] : 0;
            if (*child == NONE) {
                *child = instead;
            } else {
                t->fail[*child] = instead;
                t->queue[put++] = *child;
            }
        }
    }
}

/* Number the rows: first the states that end nothing, the root before all, then the others. */
static size_t number_rows(const trie *t, uint32_t *row_of)
{
    size_t row = 0, quiet;
    for (size_t i = 0; i < t->count; i++)
        if (t->ends[t->queue[i]] == NONE) row_of[t->queue[i]] = (uint32_t)row++;
    quiet = row;
    for (size_t i = 0; i < t->count; i++)
        if (t->ends[t->queue[i]] != NONE) row_of[t->queue[i]] = (uint32_t)row++;
    return quiet;
}

static bool lay_out(oos_arena *arena, const trie *t, const uint32_t *row_of, size_t quiet,
                    oos_literals *literals)
{
    size_t const ending = t->count - quiet;
    literals->first_end = (uint32_t)(quiet * t->classes);
    literals->next = OOS_NEW_ARRAY(arena, uint32_t, t->count * t->classes);
    literals->word = OOS_NEW_ARRAY(arena, uint32_t, ending + 1);
    literals->shorter = OOS_NEW_ARRAY(arena, uint32_t, ending + 1);
    if (!literals->next || !literals->word || !literals->shorter) return false;
    for (size_t state = 0; state < t->count; state++) {
        size_t const row = row_of[state];
        for (size_t c = 0; c < t->classes; c++)
            literals->next[row * t->classes + c] =
                (uint32_t)(row_of[t->child[state * t->classes + c]] * t->classes);
        if (row < quiet) continue;
        uint32_t const below = state ? t->ends[t->fail[state]] : NONE;
        literals->word[row - quiet] = t->word[state];
        literals->shorter[row - quiet] = below == NONE ? NONE : (uint32_t)(row_of[below] - quiet);
    }
    return true;
}

oomsight_status oos_literals_create(oos_arena *arena, const char *const *words, size_t count,
                                    oos_literals **ret_literals, oomsight_error *reterr)
{
    oos_literals *literals = OOS_NEW(arena, oos_literals);
    if (literals) literals->same = OOS_NEW_ARRAY(arena, uint32_t, count + 1);
    if (!literals || !literals->same || count >= NONE)
        return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for %zu literals", count);
    size_t const states_max = classify(literals, words, count) + 1;
    if (states_max > ENTRIES_MAX / literals->classes)
        return oos_fail(reterr, OOMSIGHT_UNSUPPORTED, "%zu literals of %zu bytes are too many", count,
                        states_max - 1);
    trie t;
    uint32_t *row_of = malloc(states_max * sizeof *row_of);
    bool good = trie_init(&t, literals->classes, states_max) && row_of;
    if (good) {
        for (size_t i = count; i-- > 0;) trie_add(&t, literals, words[i], (uint32_t)i);
        trie_complete(&t);
        good = lay_out(arena, &t, row_of, number_rows(&t, row_of), literals);
    }
    free(row_of);
    trie_release(&t);
    if (!good) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for %zu literals", count);
    *ret_literals = literals;
    return OOMSIGHT_OK;
}

oomsight_status oos_literal_scan_open(const oos_literals *literals, oos_literal_scan **ret_scan,
                                      oomsight_error *reterr)
{
    oos_literal_scan *scan = calloc(1, sizeof *scan);
    if (!scan) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a scan");
    scan->literals = literals;
    *ret_scan = scan;
    return OOMSIGHT_OK;
}

void oos_literal_scan_close(oos_literal_scan *scan)
{
    free(scan);
}

typedef struct found {
    oos_hit *hits;
    size_t count, most;
    bool cut;
} found;

static void note(const oos_literals *literals, uint32_t row, uint64_t end, found *f)
{
    uint32_t at = (row - literals->first_end) / literals->classes;
    for (; at != NONE; at = literals->shorter[at])
        for (uint32_t word = literals->word[at]; word != NONE; word = literals->same[word]) {
            if (f->count == f->most) {
                f->cut = true;
                return;
            }
            f->hits[f->count++] = (oos_hit){end, word};
        }
}

oomsight_status oos_literal_scan_feed(oos_literal_scan *scan, oos_view block, oos_hit *ret_hits, size_t most,
                                      size_t *ret_count, bool *ret_cut, oomsight_error *reterr)
{
    (void)reterr;
    const oos_literals *literals = scan->literals;
    const uint32_t *next = literals->next;
    uint32_t const first_end = literals->first_end;
    uint32_t at = scan->at;
    found f = {.hits = ret_hits, .most = most};
    for (size_t i = 0; i < block.len; i++) {
        at = next[at + literals->class_of[(unsigned char)block.ptr[i]]];
        if (at >= first_end) note(literals, at, scan->offset + i + 1, &f);
    }
    scan->at = at;
    scan->offset += block.len;
    *ret_count = f.count;
    *ret_cut = f.cut;
    return OOMSIGHT_OK;
}

oomsight_status oos_literal_scan_restart(oos_literal_scan *scan, oomsight_error *reterr)
{
    (void)reterr;
    scan->at = 0;
    scan->offset = 0;
    return OOMSIGHT_OK;
}
