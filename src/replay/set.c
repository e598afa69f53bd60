/* Bins of keys: a short row each, and a directory of long rows for a bin that many equal sizes meet in.
 *
 *   set -> octaves[50] -> bins[64] -> row of at most 4          nearly every bin
 *                                  -> directory -> long rows    from the fifth item until two are left
 *
 * A question to a short row compares the key with all four places, filled or not, and moving items moves all four: no
 * branch depends on the keys, because a wrong guess of the processor costs more than the work it would save. */
#include "replay/replay.h"
#include "base/check.h"

#include <stdlib.h>

enum { OCTAVE_BINS = 64, OCTAVES = 50, ROW_ITEMS = 4, LONG_ITEMS = 32 };

/* major above, minor below: one comparison without a branch */
typedef unsigned __int128 key;
#define NO_KEY (~(key)0) /* above every key; fills the places behind the last item */
_Static_assert(OCTAVE_BINS == 64 && OCTAVES <= 64, "a bit for each bin and each octave");
_Static_assert(63 - 9 - 5 < OCTAVES, "place_of() stays inside for every key");

/* Two keys or four numbers, loaded and stored as one. */
typedef uint64_t key_pair __attribute__((vector_size(32), aligned(8), may_alias));
typedef uint32_t block_quad __attribute__((vector_size(16), aligned(4), may_alias));

_Static_assert(ROW_ITEMS * sizeof(key) == 2 * sizeof(key_pair), "row_move() moves all keys of a row");
_Static_assert(ROW_ITEMS * sizeof(uint32_t) == sizeof(block_quad), "... and all blocks");

typedef struct row {
    key keys[2 * ROW_ITEMS]; /* ascending; the second half is only room to move into */
    uint32_t blocks[2 * ROW_ITEMS];
    uint32_t count;
} row;

typedef struct long_row {
    uint32_t count; /* never 0 */
    uint32_t blocks[LONG_ITEMS];
    key keys[LONG_ITEMS];
} long_row;

typedef struct directory {
    uint32_t count, capacity; /* never 0 */
    long_row *rows[];         /* ascending, no overlap */
} directory;

typedef struct bin {
    row *row;        /* NULL until the bin is first used */
    directory *many; /* instead of the row, when not NULL */
} bin;

typedef struct octave {
    uint64_t filled; /* bit per bin that has an item */
    bin bins[OCTAVE_BINS];
} octave;

struct oos_set {
    size_t count;
    uint64_t filled; /* bit per octave that has an item */
    octave *octaves[OCTAVES];
};

typedef struct place {
    unsigned octave, bin;
} place;

/* Monotone in `major`, so that order between bins is order between keys. */
static inline place place_of(uint64_t major)
{
    uint64_t const units = major >> 9;
    if (units < OCTAVE_BINS) return (place){0, (unsigned)units};
    unsigned const top = 63 - (unsigned)__builtin_clzll(units);
    return (place){top - 5, (unsigned)(units >> (top - 6)) & (OCTAVE_BINS - 1)};
}

static inline key key_of(uint64_t major, uint64_t minor)
{
    return (key)major << 64 | minor;
}

oos_set *oos_set_create(void)
{
    return calloc(1, sizeof(oos_set));
}

static void directory_free(directory *many)
{
    if (!many) return;
    for (uint32_t i = 0; i < many->count; i++) free(many->rows[i]);
    free(many);
}

void oos_set_free(oos_set *set)
{
    if (!set) return;
    for (unsigned i = 0; i < OCTAVES; i++) {
        for (unsigned k = 0; set->octaves[i] && k < OCTAVE_BINS; k++) {
            free(set->octaves[i]->bins[k].row);
            directory_free(set->octaves[i]->bins[k].many);
        }
        free(set->octaves[i]);
    }
    free(set);
}

size_t oos_set_count(const oos_set *set)
{
    return set->count;
}

/* ---- short rows ------------------------------------------------------------------------------------------------ */

static inline uint32_t row_below(const row *r, key k)
{
    uint32_t below = 0;
    for (unsigned i = 0; i < ROW_ITEMS; i++) below += r->keys[i] < k;
    return below;
}

static inline void row_move(row *r, uint32_t from, uint32_t to)
{
    key_pair const a = *(const key_pair *)(r->keys + from), b = *(const key_pair *)(r->keys + from + 2);
    block_quad const c = *(const block_quad *)(r->blocks + from);
    *(key_pair *)(r->keys + to) = a;
    *(key_pair *)(r->keys + to + 2) = b;
    *(block_quad *)(r->blocks + to) = c;
}

static row *row_create(void)
{
    void *memory;
    if (posix_memalign(&memory, 64, sizeof(row))) return NULL;
    row *r = memory;
    *r = (row){0};
    for (unsigned i = 0; i < 2 * ROW_ITEMS; i++) r->keys[i] = NO_KEY;
    return r;
}

/* ---- long rows ------------------------------------------------------------------------------------------------- */

/* Halving without a branch that depends on the keys. */
static uint32_t long_below(const long_row *r, key k)
{
    const key *at = r->keys;
    for (uint32_t len = r->count; len > 1;) {
        uint32_t const half = len / 2;
        at += at[half - 1] < k ? half : 0;
        len -= half;
    }
    return (uint32_t)(at - r->keys) + (*at < k);
}

/* The row whose range holds the key: the last one that does not begin behind it, or the first one. */
static uint32_t row_for(const directory *many, key k)
{
    uint32_t low = 0, high = many->count;
    while (high - low > 1) {
        uint32_t const middle = low + (high - low) / 2;
        if (k < many->rows[middle]->keys[0])
            high = middle;
        else
            low = middle;
    }
    return low;
}

/* Rare, and out of line, so that the common way stays short. */
#define RARE __attribute__((noinline))

RARE static uint32_t many_from(const directory *many, key k)
{
    uint32_t const which = row_for(many, k), at = long_below(many->rows[which], k);
    if (at < many->rows[which]->count) return many->rows[which]->blocks[at];
    return which + 1 < many->count ? many->rows[which + 1]->blocks[0] : 0;
}

RARE static uint32_t many_below(const directory *many, key k)
{
    uint32_t const which = row_for(many, k), at = long_below(many->rows[which], k);
    if (at > 0) return many->rows[which]->blocks[at - 1];
    return which > 0 ? many->rows[which - 1]->blocks[many->rows[which - 1]->count - 1] : 0;
}

/* A directory with the items of a full short row. */
static directory *many_create(const row *r)
{
    enum { FIRST_CAPACITY = 4 };
    directory *many = malloc(sizeof *many + FIRST_CAPACITY * sizeof(long_row *));
    long_row *first = malloc(sizeof *first);
    if (!many || !first) {
        free(many);
        free(first);
        return NULL;
    }
    oos_assert(r->count == ROW_ITEMS);
    *many = (directory){.count = 1, .capacity = FIRST_CAPACITY};
    many->rows[0] = first;
    first->count = r->count;
    memcpy(first->keys, r->keys, r->count * sizeof *r->keys);
    memcpy(first->blocks, r->blocks, r->count * sizeof *r->blocks);
    return many;
}

/* Half of a full row moves into a new one behind it. The directory may move. */
static bool many_split(directory **many_link, uint32_t which)
{
    directory *many = *many_link;
    if (many->count == many->capacity) {
        many = realloc(many, sizeof *many + 2 * (size_t)many->capacity * sizeof(long_row *));
        if (!many) return false;
        many->capacity *= 2;
        *many_link = many;
    }
    long_row *right = malloc(sizeof *right), *left = many->rows[which];
    if (!right) return false;
    oos_assert(left->count == LONG_ITEMS && many->count < many->capacity);
    left->count = right->count = LONG_ITEMS / 2;
    memcpy(right->keys, left->keys + left->count, right->count * sizeof *right->keys);
    memcpy(right->blocks, left->blocks + left->count, right->count * sizeof *right->blocks);
    memmove(many->rows + which + 2, many->rows + which + 1, (many->count - which - 1) * sizeof *many->rows);
    many->rows[which + 1] = right;
    many->count++;
    return true;
}

RARE static bool many_add(bin *b, key k, uint32_t block)
{
    uint32_t which = row_for(b->many, k);
    if (b->many->rows[which]->count == LONG_ITEMS) {
        if (!many_split(&b->many, which)) return false;
        which = row_for(b->many, k);
    }
    long_row *r = b->many->rows[which];
    uint32_t const at = long_below(r, k);
    memmove(r->keys + at + 1, r->keys + at, (r->count - at) * sizeof *r->keys);
    memmove(r->blocks + at + 1, r->blocks + at, (r->count - at) * sizeof *r->blocks);
    r->keys[at] = k;
    r->blocks[at] = block;
    r->count++;
    return true;
}

/* The last items move into the short row, and the directory goes. */
static void many_end(bin *b)
{
    const long_row *r = b->many->rows[0];
    oos_assert(b->row->count == 0 && r->count < ROW_ITEMS);
    memcpy(b->row->keys, r->keys, r->count * sizeof *r->keys);
    memcpy(b->row->blocks, r->blocks, r->count * sizeof *r->blocks);
    b->row->count = r->count;
    directory_free(b->many);
    b->many = NULL;
}

RARE static void many_remove(bin *b, key k)
{
    directory *many = b->many;
    uint32_t const which = row_for(many, k);
    long_row *r = many->rows[which];
    uint32_t const at = long_below(r, k);
    oos_assert(at < r->count && r->keys[at] == k);
    r->count--;
    memmove(r->keys + at, r->keys + at + 1, (r->count - at) * sizeof *r->keys);
    memmove(r->blocks + at, r->blocks + at + 1, (r->count - at) * sizeof *r->blocks);
    if (r->count == 0) {
        free(r);
        many->count--;
        memmove(many->rows + which, many->rows + which + 1, (many->count - which) * sizeof *many->rows);
    }
    if (many->count == 1 && many->rows[0]->count <= ROW_ITEMS / 2) many_end(b);
}

/* ---- bins ------------------------------------------------------------------------------------------------------ */

static uint32_t bin_first(const bin *b)
{
    oos_assert(b->many || b->row->count > 0); /* the bits name bins that have an item */
    return b->many ? b->many->rows[0]->blocks[0] : b->row->blocks[0];
}

static uint32_t bin_last(const bin *b)
{
    if (!b->many) return b->row->blocks[b->row->count - 1];
    const long_row *last = b->many->rows[b->many->count - 1];
    return last->blocks[last->count - 1];
}

uint32_t oos_set_from(const oos_set *set, uint64_t major, uint64_t minor)
{
    key const k = key_of(major, minor);
    place const p = place_of(major);
    const octave *o = set->octaves[p.octave];
    uint64_t const filled = o ? o->filled >> p.bin : 0;
    if (filled & 1) {
        const bin *b = &o->bins[p.bin];
        uint32_t const found = b->many ? many_from(b->many, k) : b->row->blocks[row_below(b->row, k)];
        if (found) return found;
    }
    if (filled >> 1) return bin_first(&o->bins[p.bin + 1 + (unsigned)__builtin_ctzll(filled >> 1)]);
    uint64_t const above = set->filled >> p.octave >> 1;
    if (!above) return 0;
    o = set->octaves[p.octave + 1 + (unsigned)__builtin_ctzll(above)];
    return bin_first(&o->bins[__builtin_ctzll(o->filled)]);
}

uint32_t oos_set_below(const oos_set *set, uint64_t major, uint64_t minor)
{
    key const k = key_of(major, minor);
    place const p = place_of(major);
    const octave *o = set->octaves[p.octave];
    uint64_t const filled = o ? o->filled << (OCTAVE_BINS - 1 - p.bin) : 0;
    if (filled >> 63) {
        const bin *b = &o->bins[p.bin];
        uint32_t const at = b->many ? 0 : row_below(b->row, k);
        uint32_t const found = b->many ? many_below(b->many, k) : at ? b->row->blocks[at - 1] : 0;
        if (found) return found;
    }
    if (filled << 1) return bin_last(&o->bins[p.bin - 1 - (unsigned)__builtin_clzll(filled << 1)]);
    uint64_t const lower = set->filled & (((uint64_t)1 << p.octave) - 1);
    if (!lower) return 0;
    o = set->octaves[63 - __builtin_clzll(lower)];
    return bin_last(&o->bins[63 - __builtin_clzll(o->filled)]);
}

/* Keys ascend over all bins and lie in their own, the bits say which bins have items, and their number is the count. */
static bool bin_is_sound(const bin *b, place at, key *last, size_t *count)
{
    uint32_t const rows = b->many ? b->many->count : b->row ? 1 : 0;
    for (uint32_t i = 0; i < rows; i++) {
        const key *keys = b->many ? b->many->rows[i]->keys : b->row->keys;
        uint32_t const items = b->many ? b->many->rows[i]->count : b->row->count;
        if (b->many && items == 0) return false;
        for (uint32_t k = 0; k < items; k++) {
            place const own = place_of((uint64_t)(keys[k] >> 64));
            if (own.octave != at.octave || own.bin != at.bin || (*count && keys[k] <= *last)) return false;
            *last = keys[k];
            (*count)++;
        }
    }
    return true;
}

bool oos_set_is_sound(const oos_set *set)
{
    size_t count = 0;
    key last = 0;
    for (unsigned o = 0; o < OCTAVES; o++) {
        uint64_t filled = 0;
        for (unsigned i = 0; set->octaves[o] && i < OCTAVE_BINS; i++) {
            size_t const before = count;
            if (!bin_is_sound(&set->octaves[o]->bins[i], (place){o, i}, &last, &count)) return false;
            filled |= (uint64_t)(count > before) << i;
        }
        if (set->octaves[o] && filled != set->octaves[o]->filled) return false;
        if ((filled != 0) != (set->filled >> o & 1)) return false;
    }
    return count == set->count;
}

/* A walk takes as long as the set is large: every change of a small one, then at powers of two. */
static inline bool worth_a_walk(const oos_set *set)
{
    return set->count < 16 || (set->count & (set->count - 1)) == 0;
}

/* The bin's row is missing or full. */
RARE static bool make_room(bin *b)
{
    if (!b->row) return (b->row = row_create()) != NULL;
    b->many = many_create(b->row);
    if (!b->many) return false;
    b->row->count = 0;
    for (unsigned i = 0; i < ROW_ITEMS; i++) b->row->keys[i] = NO_KEY;
    memset(b->row->blocks, 0, sizeof b->row->blocks);
    return true;
}

bool oos_set_add(oos_set *set, uint64_t major, uint64_t minor, uint32_t block)
{
    key const k = key_of(major, minor);
    place const p = place_of(major);
    octave *o = set->octaves[p.octave];
    if (!o) {
        o = set->octaves[p.octave] = calloc(1, sizeof *o);
        if (!o) return false;
    }
    bin *b = &o->bins[p.bin];
    if (!b->many && (!b->row || b->row->count == ROW_ITEMS) && !make_room(b)) return false;
    if (b->many) {
        if (!many_add(b, k, block)) return false;
    } else {
        uint32_t const at = row_below(b->row, k);
        row_move(b->row, at, at + 1);
        b->row->keys[at] = k;
        b->row->blocks[at] = block;
        b->row->count++;
    }
    o->filled |= (uint64_t)1 << p.bin;
    set->filled |= (uint64_t)1 << p.octave;
    set->count++;
    oos_assert(!worth_a_walk(set) || oos_set_is_sound(set));
    return true;
}

void oos_set_remove(oos_set *set, uint64_t major, uint64_t minor)
{
    key const k = key_of(major, minor);
    place const p = place_of(major);
    octave *o = set->octaves[p.octave];
    oos_assert(o && o->filled >> p.bin & 1);
    bin *b = &o->bins[p.bin];
    bool empty = false;
    if (b->many) {
        many_remove(b, k);
    } else {
        uint32_t const at = row_below(b->row, k);
        oos_assert(b->row->keys[at] == k);
        row_move(b->row, at + 1, at);
        empty = --b->row->count == 0;
    }
    o->filled &= ~((uint64_t)empty << p.bin);
    set->filled &= ~((uint64_t)(o->filled == 0) << p.octave);
    set->count--;
    oos_assert(!worth_a_walk(set) || oos_set_is_sound(set));
}

void oos_set_list(const oos_set *set, uint32_t *ret_blocks)
{
    const uint32_t *const first = ret_blocks;
    for (uint64_t octaves = set->filled; octaves; octaves &= octaves - 1) {
        const octave *o = set->octaves[__builtin_ctzll(octaves)];
        for (uint64_t bins = o->filled; bins; bins &= bins - 1) {
            const bin *b = &o->bins[__builtin_ctzll(bins)];
            uint32_t const rows = b->many ? b->many->count : 1;
            for (uint32_t i = 0; i < rows; i++) {
                uint32_t const count = b->many ? b->many->rows[i]->count : b->row->count;
                memcpy(ret_blocks, b->many ? b->many->rows[i]->blocks : b->row->blocks,
                       count * sizeof *ret_blocks);
                ret_blocks += count;
            }
        }
    }
    oos_assert((size_t)(ret_blocks - first) == set->count);
}
