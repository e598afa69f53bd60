/* The inside of the simulator, shared by the files sim_*.c only. Everything is linked by index: block 0, home 0 and use 0
 * stand for "none", and are harmless to write to when host memory has run out. */
#pragma once
#include "base/size.h"
#include "replay/replay.h"

/* c10/cuda/CUDACachingAllocator.h, unchanged from torch 2.1 to 2.15. */
#define MIN_BLOCK ((uint64_t)512)
#define SMALL_LIMIT OOS_MIB         /* a rounded size up to this goes to the small pool */
#define SMALL_SEGMENT (2 * OOS_MIB) /* segment of the small pool, page of its expandable segments */
#define OWN_SEGMENT (10 * OOS_MIB)  /* from here a request gets a segment of its own */
#define SEGMENT_ROUND (2 * OOS_MIB) /* ... rounded up to this */

enum { NO_OWNER = 0, DEFAULT_SMALL = 0, DEFAULT_LARGE = 1 };

typedef struct block {
    uint64_t address, bytes, requested_bytes;
    uint64_t order;      /* breaks ties between equal sizes; see torch_rules.h */
    uint32_t prev, next; /* neighbours inside the segment */
    uint32_t home;
    uint32_t range;    /* expandable range, 0: a cudaMalloc segment; for spare blocks: the next spare */
    uint32_t age_base; /* pool.calls when it became free */
    uint32_t uses;     /* other streams that use it: list of use */
    uint32_t
        capture_uses; /* those of them that were told during a capture; torch keeps them with the block object until
                              a free is deferred by a capture, even into the block's next life */
    uint16_t events; /* that must complete before it is free */
    bool live : 1;   /* this slot is a block */
    bool allocated : 1, mapped : 1;
} block;

/* A stream, other than its own, that uses a block. */
typedef struct use {
    uint64_t stream;
    uint32_t next;
} use;

typedef struct home {
    oos_set *free, *unmapped; /* unmapped: by address; NULL until there is one */
    uint64_t stream;
    uint32_t pool;
} home;

typedef struct pool {
    bool small;
    uint32_t owner; /* NO_OWNER: a default pool */
    uint64_t calls;
    uint64_t free_bytes; /* of its free, mapped blocks */
    uint32_t *homes;     /* by stream handle */
    uint32_t home_count, home_capacity;
    uint32_t last_home; /* the one asked for last; 0: none */
} pool;

/* A private pool. Its pools are 2 * index (small) and 2 * index + 1 (large); index 0 is the default. */
typedef struct owner {
    oos_pool_id id;
    uint32_t count;   /* references */
    int64_t segments; /* as torch counts them: also expandable mappings */
    oos_backend backend;
    bool broken; /* the sticky error of its backend */
    bool no_split, known;
    uint32_t next; /* another owner of the same bucket; NO_OWNER: none */
} owner;

/* Address range of an expandable segment. */
typedef struct range {
    uint64_t address, page_bytes;
    uint64_t number;
} range;

typedef struct pending {
    uint64_t event;
    uint32_t block;
} pending;

typedef struct stream {
    uint64_t handle, issued, done; /* event numbers */
    bool capturing;
    pending *queue; /* from `first` */
    size_t first, count, capacity;
} stream;

/* Growing arrays of plain items. */
#define ARRAY(type)                                                                                          \
    struct {                                                                                                 \
        type *list;                                                                                          \
        uint32_t count, capacity;                                                                            \
    }

/* One malloc on its way. */
typedef struct request {
    uint64_t asked_bytes, bytes, segment_bytes, stream;
    uint32_t home, block;
    bool expandable, too_large_for_range, rejected;
} request;

struct oos_sim {
    oos_torch_rules rules;
    oos_settings settings;
    oos_device device;
    oos_sim_params params;
    bool failed;

    ARRAY(block) blocks;
    ARRAY(home) homes;
    ARRAY(pool) pools;
    ARRAY(owner) owners;
    uint32_t *owner_buckets; /* heads of chains, by id; a power of two of them */
    uint32_t owner_bucket_count;
    uint64_t private_free_bytes; /* free_bytes of all pools that is_private() names */
    ARRAY(range) ranges;
    ARRAY(use) uses;
    ARRAY(stream) streams;
    uint32_t spare_block, spare_use;

    bool limited;
    uint64_t allowed_bytes, reserved_bytes;
    uint64_t creations; /* numbers of blocks or segments */

    ARRAY(uint32_t) routes;        /* owners, newest last */
    oos_id_table freeable;         /* owners without references */
    oos_id_table lenders;          /* owners marked use_on_oom */
    ARRAY(uint32_t) deferred;      /* blocks freed during capture, waiting for other streams */
    ARRAY(uint32_t) event_streams; /* streams with pending events, in the order they got them */
    ARRAY(uint32_t) scratch;       /* a list of blocks that is about to change */
    uint32_t captures;
    uint64_t current_stream;

    request last; /* the last malloc, for its text */
    oos_stats stats;
    ARRAY(oos_sim_event) log;
};

/* Make room for one more item. False when out of memory; then sim->failed is set. */
bool oos_sim_grow(oos_sim *sim, void *array, size_t item_bytes);
#define GROW(sim, array) oos_sim_grow((sim), &(array), sizeof *(array).list)

static inline block *block_at(oos_sim *sim, uint32_t index)
{
    return &sim->blocks.list[index];
}
static inline pool *pool_of(oos_sim *sim, const block *b)
{
    return &sim->pools.list[sim->homes.list[b->home].pool];
}
static inline owner *owner_of(oos_sim *sim, const pool *p)
{
    return p->owner == NO_OWNER ? NULL : &sim->owners.list[p->owner];
}
/* Of a pool that torch still knows, other than the two default ones. */
static inline bool is_private(const oos_sim *sim, const pool *p)
{
    return p->owner != NO_OWNER && sim->owners.list[p->owner].known;
}
static inline bool is_split(const block *b)
{
    return b->prev || b->next;
}
static inline bool is_active(const block *b)
{
    return b->allocated || b->events || b->uses;
}

/* sim_block.c: blocks and the sets they are in */
bool oos_sim_is_sound(const oos_sim *sim); /* a walk over all blocks, for oos_assert */
bool oos_blocks_grow(oos_sim *sim);
uint32_t oos_block_create(oos_sim *sim, uint32_t home, uint64_t address, uint64_t bytes);
void oos_block_drop(oos_sim *sim, uint32_t index);
void oos_block_number(oos_sim *sim, uint32_t index, uint32_t parent); /* parent 0: a new segment */
uint32_t oos_free_after(const oos_sim *sim,
                        uint32_t index); /* neighbours in the order of best fit; 0: none */
uint32_t oos_free_before(const oos_sim *sim, uint32_t index);
void oos_free_insert(oos_sim *sim, uint32_t index);
void oos_free_remove(oos_sim *sim, uint32_t index);
void oos_unmapped_insert(oos_sim *sim, uint32_t index);
void oos_unmapped_remove(oos_sim *sim, uint32_t index);
uint64_t oos_block_merge(oos_sim *sim, uint32_t into, uint32_t from); /* bytes swallowed */
uint32_t oos_home_of(oos_sim *sim, uint32_t pool, uint64_t stream);
uint32_t oos_pool_list(oos_sim *sim, const pool *p); /* free blocks in order to sim->scratch; how many */

/* sim_stat.c */
void oos_log_append(oos_sim *sim, oos_sim_event event);

static inline void oos_log_put(oos_sim *sim, oos_action action, uint64_t address, uint64_t bytes,
                               uint64_t handle)
{
    if (sim->params.log) oos_log_append(sim, (oos_sim_event){action, address, bytes, handle});
}
static inline void oos_counter_up(oos_counter *counter, uint64_t amount)
{
    counter->current += amount;
    counter->added += amount;
    /* signed as in torch: oversize counters can fall below zero when the limit is changed between up and down */
    if ((int64_t)counter->current > (int64_t)counter->peak) counter->peak = counter->current;
}
static inline void oos_counter_down(oos_counter *counter, uint64_t amount)
{
    counter->current -= amount;
}
static inline void oos_count_up(oos_sim *sim, oos_stat stat, bool small, uint64_t amount)
{
    oos_counter *c = sim->stats.counters[stat];
    oos_counter_up(&c[OOS_STAT_ALL], amount);
    oos_counter_up(&c[small ? OOS_STAT_SMALL : OOS_STAT_LARGE], amount);
}
static inline void oos_count_down(oos_sim *sim, oos_stat stat, bool small, uint64_t amount)
{
    oos_counter *c = sim->stats.counters[stat];
    oos_counter_down(&c[OOS_STAT_ALL], amount);
    oos_counter_down(&c[small ? OOS_STAT_SMALL : OOS_STAT_LARGE], amount);
}

/* sim_free.c: frees, streams, events */
void oos_events_process(oos_sim *sim);
void oos_events_synchronize(oos_sim *sim, uint32_t only_owner); /* NO_OWNER: all */
void oos_uses_release(oos_sim *sim, uint32_t index);
stream *oos_stream_at(oos_sim *sim, uint64_t handle);
bool oos_in_capture(oos_sim *sim);

/* sim_release.c: giving segments back */
void oos_release_block(oos_sim *sim, uint32_t index);
void oos_release_pool(oos_sim *sim, uint32_t pool);
bool oos_release_available(oos_sim *sim, const request *r);
void oos_release_cached(oos_sim *sim, oos_pool_id id);
void oos_collect_garbage(oos_sim *sim);
void oos_sweep(oos_sim *sim, const request *r);

/* sim_expand.c: expandable segments */
uint32_t oos_expand(oos_sim *sim, request *r);
void oos_unmap(oos_sim *sim, uint32_t index);
uint64_t oos_range_bytes(const oos_sim *sim);

/* sim_pool.c: private pools */
uint32_t oos_owner_find(const oos_sim *sim, oos_pool_id id); /* NO_OWNER when unknown */
uint32_t oos_route(const oos_sim *sim, bool small);          /* pool of a request */
