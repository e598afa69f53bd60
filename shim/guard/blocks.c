/* Open addressing on a mapping of its own: the engine's malloc is left alone. */
#include "guard/guard.h"

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

enum { FIRST_SLOTS = 4096 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static oos_guard_block *slots;
static size_t slot_count, used_count; /* used: also those whose key was taken out again */

enum { EMPTY = 0, GONE = 1 }; /* keys that no address and no handle has */

static size_t home_of(uint64_t key, uint32_t kind)
{
    uint64_t const mixed = (key ^ (uint64_t)kind << 60) * 0x9E3779B97F4A7C15u;
    return (size_t)(mixed >> 17) & (slot_count - 1);
}

static oos_guard_block *find(uint32_t kind, uint64_t key)
{
    if (!slot_count) return NULL;
    for (size_t at = home_of(key, kind);; at = (at + 1) & (slot_count - 1)) {
        if (slots[at].key == EMPTY) return NULL;
        if (slots[at].key == key && slots[at].kind == kind) return &slots[at];
    }
}

static void insert(const oos_guard_block *block)
{
    size_t at = home_of(block->key, block->kind);
    while (slots[at].key > GONE) at = (at + 1) & (slot_count - 1);
    used_count += slots[at].key == EMPTY;
    slots[at] = *block;
}

/* To a table with room: twice as many slots, or as many when it was full of holes. */
static bool grow(void)
{
    oos_guard_block *const old = slots;
    size_t const old_count = slot_count;
    size_t live = 0;
    for (size_t i = 0; i < old_count; i++) live += old[i].key > GONE;
    size_t const count = !old_count ? FIRST_SLOTS : live > old_count / 4 ? 2 * old_count : old_count;
    void *fresh =
        mmap(NULL, count * sizeof *slots, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (fresh == MAP_FAILED) return false;
    slots = fresh;
    slot_count = count;
    used_count = 0;
    for (size_t i = 0; i < old_count; i++)
        if (old[i].key > GONE) insert(&old[i]);
    if (old) munmap(old, old_count * sizeof *old);
    return true;
}

bool oos_guard_block_put(const oos_guard_block *block)
{
    if (block->key <= GONE) return false;
    pthread_mutex_lock(&lock);
    bool done = used_count < slot_count / 2 || grow();
    if (done) insert(block);
    pthread_mutex_unlock(&lock);
    if (!done) oos_guard_unseen(OOS_UNSEEN_TABLE);
    return done;
}

static void take_out(oos_guard_block *block, oos_guard_block *ret_block)
{
    *ret_block = *block;
    block->key = GONE;
}

bool oos_guard_block_pop(oos_guard_kind kind, uint64_t key, oos_guard_block *ret_block)
{
    pthread_mutex_lock(&lock);
    oos_guard_block *block = find(kind, key);
    if (block) take_out(block, ret_block);
    pthread_mutex_unlock(&lock);
    return block != NULL;
}

bool oos_guard_handle_hold(uint64_t handle)
{
    pthread_mutex_lock(&lock);
    oos_guard_block *block = find(OOS_GUARD_HANDLE, handle);
    if (block) block->holders++;
    pthread_mutex_unlock(&lock);
    return block != NULL;
}

bool oos_guard_handle_drop(uint64_t handle, oos_guard_block *ret_last, bool *ret_is_last)
{
    *ret_is_last = false;
    pthread_mutex_lock(&lock);
    oos_guard_block *block = find(OOS_GUARD_HANDLE, handle);
    if (block && --block->holders == 0) {
        *ret_is_last = true;
        take_out(block, ret_last);
    }
    pthread_mutex_unlock(&lock);
    return block != NULL;
}

bool oos_guard_mapped_pop(uint64_t at, uint64_t bytes, oos_guard_block *ret_block)
{
    pthread_mutex_lock(&lock);
    oos_guard_block *block = find(OOS_GUARD_MAPPED, at); /* nearly always the one that was mapped there */
    for (size_t i = 0; !block && i < slot_count; i++)
        if (slots[i].key > GONE && slots[i].kind == OOS_GUARD_MAPPED && slots[i].key >= at &&
            slots[i].key - at < bytes)
            block = &slots[i];
    if (block) take_out(block, ret_block);
    pthread_mutex_unlock(&lock);
    return block != NULL;
}

bool oos_guard_device_pop(uint32_t device, oos_guard_block *ret_block)
{
    oos_guard_block *block = NULL;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; !block && i < slot_count; i++)
        if (slots[i].key > GONE && slots[i].kind == OOS_GUARD_BLOCK && slots[i].charge.device == device)
            block = &slots[i];
    if (block) take_out(block, ret_block);
    pthread_mutex_unlock(&lock);
    return block != NULL;
}

void oos_guard_blocks_forked(void)
{
    pthread_mutex_init(&lock, NULL);
    if (slots) memset(slots, 0, slot_count * sizeof *slots);
    used_count = 0;
}
