/* Addresses of device memory: one large stretch of address space per process, set aside at the first allocation and
 * backed by nothing until somebody writes. Whole granules of 2 MiB; a table tells for each granule which range it
 * belongs to, so a pointer is found in constant time. Bytes are charged elsewhere (charge.c).
 *
 *   stretch   | range 1 | range 1 | free | range 2 (slab) | reserved 3 | mapped 4 | reserved 3 | ...
 *   owner[]        1         1       0         2                3           4            3                        */
#include "device/internal.h"

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

enum { RANGES = 1 << 20, SLAB_PIECE = 512, SLAB_PIECES = (2 << 20) / SLAB_PIECE };

/* A slab hands out pieces of 512 bytes, as the driver does below 1 MiB. length[i] is how many pieces begin at i. */
typedef struct slab {
    uint16_t length[SLAB_PIECES];
    uint16_t used;
    uint64_t bytes[SLAB_PIECES]; /* as asked for, at the first piece */
} slab;

typedef struct entry {
    oos_range range; /* first: an oos_range * is an entry * */
    uint32_t granules, parent;
    uint32_t next_free;
    bool touched;
    slab *slab;
} entry;

static pthread_mutex_t arena_mutex = PTHREAD_MUTEX_INITIALIZER;
static char *stretch;
static uint32_t *owner;
static entry *entries;
static uint64_t granule_count, lowest_free;
static uint32_t entry_count = 1, free_entry, newest_slab;

void oos_arena_lock(void)
{
    pthread_mutex_lock(&arena_mutex);
}

void oos_arena_unlock(void)
{
    pthread_mutex_unlock(&arena_mutex);
}

/* The child's copies of the parent's ranges stay readable; nothing of them is the child's to give back. */
void oos_arena_forked(void)
{
    for (uint32_t i = 1; i < entry_count; i++) entries[i].range.charge.bytes = 0;
}

static void *lazily(uint64_t bytes)
{
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return at == MAP_FAILED ? NULL : at;
}

/* Where address space is short (ulimit -v, strict overcommit) a smaller stretch has to do. */
static bool stretch_make(void)
{
    const oos_segment *segment = oos_run();
    if (!segment) return false;
    for (uint64_t bytes = segment->arena_bytes; bytes >= (uint64_t)64 << 20; bytes /= 2) {
        char *at = lazily(bytes + OOS_GRANULE);
        if (!at) continue;
        madvise(at, bytes + OOS_GRANULE, MADV_NOHUGEPAGE);
        madvise(at, bytes + OOS_GRANULE, MADV_DONTDUMP);
        granule_count = bytes / OOS_GRANULE;
        owner = lazily(granule_count * sizeof *owner);
        entries = lazily(RANGES * sizeof *entries);
        if (!owner || !entries) {
            munmap(at, bytes + OOS_GRANULE);
            if (owner) munmap(owner, granule_count * sizeof *owner);
            if (entries) munmap(entries, RANGES * sizeof *entries);
            continue;
        }
        uint64_t const over = (uint64_t)(uintptr_t)at % OOS_GRANULE;
        __atomic_store_n(&stretch, at + (over ? OOS_GRANULE - over : 0), __ATOMIC_RELEASE);
        return true;
    }
    return false;
}

static uint32_t entry_new(void)
{
    uint32_t index = free_entry;
    if (index)
        free_entry = entries[index].next_free;
    else if (entry_count < RANGES)
        index = entry_count++;
    if (index) entries[index] = (entry){.range = {.base = 0}};
    return index;
}

static void entry_drop(uint32_t index)
{
    entries[index].range.kind = OOS_RANGE_FREE;
    entries[index].next_free = free_entry;
    free_entry = index;
}

/* The lowest run of free granules, stepping over ranges whole. */
static bool run_find(uint64_t granules, uint64_t *ret_first)
{
    uint64_t at = lowest_free, run_start = at;
    bool first_gap = true;
    while (at < granule_count) {
        if (owner[at]) {
            const entry *e = &entries[owner[at]];
            const entry *whole = e->parent ? &entries[e->parent] : e;
            uint64_t const base = (whole->range.base - (uint64_t)(uintptr_t)stretch) / OOS_GRANULE;
            if (first_gap && at == lowest_free) lowest_free = base + whole->granules;
            at = run_start = base + whole->granules;
            continue;
        }
        first_gap = false;
        if (++at - run_start == granules) {
            *ret_first = run_start;
            return true;
        }
    }
    return false;
}

oos_range *oos_arena_take(uint64_t bytes, oos_range_kind kind)
{
    if (!stretch && !stretch_make()) return NULL;
    uint64_t const granules = bytes / OOS_GRANULE + (bytes % OOS_GRANULE != 0);
    uint64_t first;
    if (granules == 0 || granules > granule_count || !run_find(granules, &first)) return NULL;
    uint32_t const index = entry_new();
    if (!index) return NULL;
    entry *e = &entries[index];
    e->range = (oos_range){
        .base = (uint64_t)(uintptr_t)(stretch + first * OOS_GRANULE), .size = bytes, .kind = kind};
    e->granules = (uint32_t)granules;
    for (uint64_t i = 0; i < granules; i++) owner[first + i] = index;
    if (first == lowest_free) lowest_free += granules;
    return &e->range;
}

oos_range *oos_arena_at(const void *at)
{
    const char *base = __atomic_load_n(&stretch, __ATOMIC_ACQUIRE);
    if (!base || (const char *)at < base) return NULL;
    uint64_t const granule = (uint64_t)((const char *)at - base) / OOS_GRANULE;
    if (granule >= granule_count || !owner[granule]) return NULL;
    return &entries[owner[granule]].range;
}

void oos_arena_drop(oos_range *range)
{
    entry *e = (entry *)range;
    if (!__atomic_load_n(&e->touched, __ATOMIC_RELAXED)) return;
    madvise((void *)(uintptr_t)range->base, (uint64_t)e->granules * OOS_GRANULE, MADV_DONTNEED);
    e->touched = false;
}

void oos_arena_give(oos_range *range)
{
    entry *e = (entry *)range;
    uint64_t const first = (range->base - (uint64_t)(uintptr_t)stretch) / OOS_GRANULE;
    oos_arena_drop(range);
    for (uint64_t i = 0; i < e->granules; i++) owner[first + i] = 0;
    if (first < lowest_free) lowest_free = first;
    if (e->slab) munmap(e->slab, sizeof *e->slab);
    if (newest_slab == (uint32_t)(e - entries)) newest_slab = 0;
    entry_drop((uint32_t)(e - entries));
}

oos_range *oos_arena_overlay(oos_range *reserved, const void *at, uint64_t bytes)
{
    entry *under = (entry *)reserved;
    uint64_t const base = (uint64_t)(uintptr_t)at;
    if (reserved->kind != OOS_RANGE_RESERVED || base % OOS_GRANULE || bytes % OOS_GRANULE || !bytes ||
        base - reserved->base > reserved->size || bytes > reserved->size - (base - reserved->base))
        return NULL;
    uint64_t const first = (base - (uint64_t)(uintptr_t)stretch) / OOS_GRANULE;
    uint32_t const under_index = (uint32_t)(under - entries);
    for (uint64_t i = 0; i < bytes / OOS_GRANULE; i++)
        if (owner[first + i] != under_index) return NULL; /* something is mapped there */
    uint32_t const index = entry_new();
    if (!index) return NULL;
    entry *e = &entries[index];
    e->range = (oos_range){.base = base, .size = bytes, .kind = OOS_RANGE_MAPPED};
    e->granules = (uint32_t)(bytes / OOS_GRANULE);
    e->parent = under_index;
    for (uint64_t i = 0; i < e->granules; i++) owner[first + i] = index;
    return &e->range;
}

void oos_arena_uncover(oos_range *mapped)
{
    entry *e = (entry *)mapped;
    uint64_t const first = (mapped->base - (uint64_t)(uintptr_t)stretch) / OOS_GRANULE;
    oos_arena_drop(mapped);
    for (uint64_t i = 0; i < e->granules; i++) owner[first + i] = e->parent;
    entry_drop((uint32_t)(e - entries));
}

oos_range *oos_slab_create(uint32_t device)
{
    slab *pieces = lazily(sizeof *pieces);
    if (!pieces) return NULL;
    oos_range *range = oos_arena_take(OOS_GRANULE, OOS_RANGE_SLAB);
    if (!range) {
        munmap(pieces, sizeof *pieces);
        return NULL;
    }
    range->device = device;
    ((entry *)range)->slab = pieces;
    newest_slab = (uint32_t)((entry *)range - entries);
    return range;
}

static bool pieces_find(const slab *s, unsigned count, unsigned *ret_first)
{
    for (unsigned at = 0, free_run = 0; at < SLAB_PIECES;) {
        if (s->length[at]) {
            at += s->length[at];
            free_run = 0;
            continue;
        }
        at++;
        if (++free_run == count) {
            *ret_first = at - count;
            return true;
        }
    }
    return false;
}

/* The newest slab first: small allocations come in crowds. */
oos_range *oos_slab_with_room(uint32_t device, oos_use use, uint64_t bytes)
{
    unsigned const count = (unsigned)((bytes + SLAB_PIECE - 1) / SLAB_PIECE);
    unsigned first;
    for (uint32_t i = 0; entries && i < entry_count; i++) {
        entry *e = &entries[i == 0 ? newest_slab : i];
        if (!e->slab || e->range.kind != OOS_RANGE_SLAB || e->range.device != device ||
            e->range.charge.use != use)
            continue;
        if (e->slab->used + count <= SLAB_PIECES && pieces_find(e->slab, count, &first)) return &e->range;
    }
    return NULL;
}

void *oos_slab_take(oos_range *range, uint64_t bytes)
{
    slab *s = ((entry *)range)->slab;
    unsigned const count = (unsigned)((bytes + SLAB_PIECE - 1) / SLAB_PIECE);
    unsigned first;
    if (!pieces_find(s, count, &first)) return NULL;
    s->length[first] = (uint16_t)count;
    s->bytes[first] = bytes;
    s->used = (uint16_t)(s->used + count);
    return (void *)(uintptr_t)(range->base + (uint64_t)first * SLAB_PIECE);
}

bool oos_slab_give(oos_range *range, const void *at, bool *ret_empty)
{
    slab *s = ((entry *)range)->slab;
    uint64_t const offset = (uint64_t)(uintptr_t)at - range->base;
    unsigned const first = (unsigned)(offset / SLAB_PIECE);
    if (offset % SLAB_PIECE || !s->length[first]) return false;
    s->used = (uint16_t)(s->used - s->length[first]);
    s->length[first] = 0;
    *ret_empty = s->used == 0;
    return true;
}

bool oos_slab_piece(const oos_range *range, const void *at, uint64_t *ret_base, uint64_t *ret_size)
{
    const slab *s = ((const entry *)range)->slab;
    unsigned const wanted = (unsigned)(((uint64_t)(uintptr_t)at - range->base) / SLAB_PIECE);
    for (unsigned first = wanted + 1; first-- > 0;)
        if (s->length[first]) {
            *ret_base = range->base + (uint64_t)first * SLAB_PIECE;
            *ret_size = s->bytes[first];
            return first + s->length[first] > wanted;
        }
    return false;
}

bool oos_range_find(const void *at, oos_range *ret_range)
{
    oos_arena_lock();
    const oos_range *range = oos_arena_at(at);
    bool found = range != NULL;
    if (found) {
        *ret_range = *range;
        if (range->kind == OOS_RANGE_SLAB) {
            found = oos_slab_piece(range, at, &ret_range->base, &ret_range->size);
            ret_range->kind = OOS_RANGE_DEVICE;
        }
    }
    oos_arena_unlock();
    return found;
}

/* Without the lock: the caller holds a live allocation, so its entry stays. */
void oos_range_touch(const void *at)
{
    oos_range *range = oos_arena_at(at);
    if (range) __atomic_store_n(&((entry *)range)->touched, true, __ATOMIC_RELAXED);
}
