/* Bins of chunks of keys. */
#include "replay/set.h"

#include <assert.h>
#include <stdlib.h>

enum { BINS = 832, BIN_WORDS = BINS / 64, CHUNK_ITEMS = 32 };

/* major above, minor below: one comparison without a branch */
typedef unsigned __int128 key;

typedef struct chunk {
    uint32_t count;
    uint32_t blocks[CHUNK_ITEMS];
    key keys[CHUNK_ITEMS]; /* ascending; never empty while in a directory */
    struct chunk *next_spare;
} chunk;

typedef struct bin {
    chunk *first;   /* chunks[0]: nearly every question ends here, and needs no directory */
    chunk **chunks; /* ascending, no overlap */
    uint32_t count, capacity;
} bin;

struct oos_set {
    size_t count;
    chunk *spare;
    uint64_t filled[BIN_WORDS]; /* bit per bin that has a chunk */
    bin bins[BINS];
};

/* Monotone in `major`, so that order between bins is order between keys. */
static unsigned bin_of(uint64_t major)
{
    uint64_t const units = major >> 9;
    if (units < 16) return (unsigned)units;
    unsigned const top = 63 - (unsigned)__builtin_clzll(units);
    return (top - 3) * 16 + (unsigned)(units >> (top - 4) & 15);
}

static key key_of(uint64_t major, uint64_t minor)
{
    return (key)major << 64 | minor;
}

oos_set *oos_set_create(void)
{
    return calloc(1, sizeof(oos_set));
}

void oos_set_free(oos_set *set)
{
    if (!set) return;
    for (unsigned i = 0; i < BINS; i++) {
        for (uint32_t k = 0; k < set->bins[i].count; k++) free(set->bins[i].chunks[k]);
        free(set->bins[i].chunks);
    }
    while (set->spare) {
        chunk *next = set->spare->next_spare;
        free(set->spare);
        set->spare = next;
    }
    free(set);
}

size_t oos_set_count(const oos_set *set)
{
    return set->count;
}

/* Halving without a branch that depends on the keys: a wrong guess would cost more than the search. */
static uint32_t first_item_not_below(const chunk *c, key k)
{
    const key *at = c->keys;
    for (uint32_t len = c->count; len > 1;) {
        uint32_t const half = len / 2;
        at += at[half - 1] < k ? half : 0;
        len -= half;
    }
    return (uint32_t)(at - c->keys) + (*at < k);
}

/* The chunk whose range holds the key: the last one that does not begin behind it, or the first one. */
static uint32_t chunk_for(const bin *b, key k)
{
    uint32_t low = 0, high = b->count; /* most bins have one chunk */
    while (high - low > 1) {
        uint32_t const middle = low + (high - low) / 2;
        if (k < b->chunks[middle]->keys[0])
            high = middle;
        else
            low = middle;
    }
    return low;
}

static unsigned next_filled(const oos_set *set, unsigned from)
{
    for (unsigned w = from / 64; w < BIN_WORDS; w++) {
        uint64_t const bits = set->filled[w] & (w == from / 64 ? ~(uint64_t)0 << from % 64 : ~(uint64_t)0);
        if (bits) return w * 64 + (unsigned)__builtin_ctzll(bits);
    }
    return BINS;
}

/* BINS when every bin up to and with `until` is empty. */
static unsigned previous_filled(const oos_set *set, unsigned until)
{
    for (unsigned w = until / 64 + 1; w-- > 0;) {
        unsigned const drop = w == until / 64 ? 63 - until % 64 : 0;
        uint64_t const bits = set->filled[w] & ~(uint64_t)0 >> drop;
        if (bits) return w * 64 + 63 - (unsigned)__builtin_clzll(bits);
    }
    return BINS;
}

uint32_t oos_set_from(const oos_set *set, uint64_t major, uint64_t minor)
{
    key const k = key_of(major, minor);
    unsigned const at = bin_of(major);
    const bin *b = &set->bins[at];
    if (b->count) {
        uint32_t const which = chunk_for(b, k);
        const chunk *c = which ? b->chunks[which] : b->first;
        uint32_t const item = first_item_not_below(c, k);
        if (item < c->count) return c->blocks[item];
        if (which + 1 < b->count) return b->chunks[which + 1]->blocks[0];
    }
    if (at + 1 >= BINS) return 0;
    unsigned const next = next_filled(set, at + 1);
    return next < BINS ? set->bins[next].first->blocks[0] : 0;
}

uint32_t oos_set_below(const oos_set *set, uint64_t major, uint64_t minor)
{
    key const k = key_of(major, minor);
    unsigned const at = bin_of(major);
    const bin *b = &set->bins[at];
    if (b->count) {
        uint32_t const c = chunk_for(b, k);
        uint32_t const item = first_item_not_below(b->chunks[c], k);
        if (item > 0) return b->chunks[c]->blocks[item - 1];
        if (c > 0) return b->chunks[c - 1]->blocks[b->chunks[c - 1]->count - 1];
    }
    if (at == 0) return 0;
    unsigned const previous = previous_filled(set, at - 1);
    if (previous == BINS) return 0;
    const bin *p = &set->bins[previous];
    const chunk *last = p->chunks[p->count - 1];
    return last->blocks[last->count - 1];
}

static chunk *chunk_take(oos_set *set)
{
    chunk *c = set->spare;
    if (c)
        set->spare = c->next_spare;
    else
        c = malloc(sizeof *c);
    if (c) c->count = 0;
    return c;
}

/* A new, empty chunk at place `at` of the directory. */
static chunk *chunk_insert(oos_set *set, bin *b, uint32_t at)
{
    if (b->count == b->capacity) {
        uint32_t const capacity = b->capacity ? b->capacity * 2 : 1;
        chunk **grown = realloc(b->chunks, capacity * sizeof *grown);
        if (!grown) return NULL;
        b->chunks = grown;
        b->capacity = capacity;
    }
    chunk *c = chunk_take(set);
    if (!c) return NULL;
    memmove(b->chunks + at + 1, b->chunks + at, (b->count - at) * sizeof *b->chunks);
    b->chunks[at] = c;
    b->count++;
    b->first = b->chunks[0];
    return c;
}

static bool chunk_split(oos_set *set, bin *b, uint32_t at)
{
    chunk *right = chunk_insert(set, b, at + 1);
    if (!right) return false;
    chunk *left = b->chunks[at];
    right->count = CHUNK_ITEMS / 2;
    left->count = CHUNK_ITEMS - CHUNK_ITEMS / 2;
    memcpy(right->keys, left->keys + left->count, right->count * sizeof *right->keys);
    memcpy(right->blocks, left->blocks + left->count, right->count * sizeof *right->blocks);
    return true;
}

bool oos_set_add(oos_set *set, uint64_t major, uint64_t minor, uint32_t block)
{
    key const k = key_of(major, minor);
    unsigned const at = bin_of(major);
    bin *b = &set->bins[at];
    if (b->count == 0) {
        if (!chunk_insert(set, b, 0)) return false;
        set->filled[at / 64] |= (uint64_t)1 << at % 64;
    }
    uint32_t const which = chunk_for(b, k);
    chunk *c = which ? b->chunks[which] : b->first;
    if (c->count == CHUNK_ITEMS) {
        if (!chunk_split(set, b, which)) return false;
        c = b->chunks[chunk_for(b, k)];
    }
    uint32_t const item = c->count ? first_item_not_below(c, k) : 0;
    for (uint32_t i = c->count++; i > item; i--) { /* a few items: cheaper than a call */
        c->keys[i] = c->keys[i - 1];
        c->blocks[i] = c->blocks[i - 1];
    }
    c->keys[item] = k;
    c->blocks[item] = block;
    set->count++;
    return true;
}

void oos_set_remove(oos_set *set, uint64_t major, uint64_t minor)
{
    key const k = key_of(major, minor);
    unsigned const at = bin_of(major);
    bin *b = &set->bins[at];
    if (b->count == 0) return;
    uint32_t const which = chunk_for(b, k);
    chunk *c = which ? b->chunks[which] : b->first;
    uint32_t const item = first_item_not_below(c, k);
    bool const there = item < c->count && c->keys[item] == k;
    assert(there);
    if (!there) return;
    c->count--;
    for (uint32_t i = item; i < c->count; i++) {
        c->keys[i] = c->keys[i + 1];
        c->blocks[i] = c->blocks[i + 1];
    }
    set->count--;
    if (c->count) return;
    c->next_spare = set->spare;
    set->spare = c;
    b->count--;
    memmove(b->chunks + which, b->chunks + which + 1, (b->count - which) * sizeof *b->chunks);
    b->first = b->chunks[0];
    if (b->count == 0) set->filled[at / 64] &= ~((uint64_t)1 << at % 64);
}

void oos_set_list(const oos_set *set, uint32_t *ret_blocks)
{
    for (unsigned i = next_filled(set, 0); i < BINS; i = i + 1 < BINS ? next_filled(set, i + 1) : BINS)
        for (uint32_t k = 0; k < set->bins[i].count; k++) {
            const chunk *c = set->bins[i].chunks[k];
            memcpy(ret_blocks, c->blocks, c->count * sizeof *ret_blocks);
            ret_blocks += c->count;
        }
}
