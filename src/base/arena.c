/* A chain of blocks, each twice as large as the one before, filled from the front. */
#include "base/arena.h"
#include "base/check.h"
#include "base/locale.h"

#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct block {
    struct block *older;
    size_t capacity, used;
    alignas(max_align_t) char bytes[];
} block;

typedef struct cleanup {
    struct cleanup *older;
    void (*release)(void *);
    void *thing;
} cleanup;

struct oos_arena {
    block *newest;
    cleanup *cleanups;
};

static _Thread_local uint64_t denied;

uint64_t oos_memory_denied(void)
{
    return denied;
}

void oos_memory_deny(void)
{
    denied++;
}

static block *block_create(size_t capacity, block *older)
{
    if (capacity > SIZE_MAX - sizeof(block)) return NULL;
    block *b = malloc(sizeof *b + capacity);
    if (!b) {
        oos_memory_deny();
        return NULL;
    }
    b->older = older;
    b->capacity = capacity;
    b->used = 0;
    return b;
}

oos_arena *oos_arena_create(size_t first_block_bytes)
{
    oos_arena *arena = calloc(1, sizeof *arena);
    if (!arena) {
        oos_memory_deny();
        return NULL;
    }
    arena->newest = block_create(first_block_bytes < 256 ? 256 : first_block_bytes, NULL);
    if (arena->newest) return arena;
    free(arena);
    return NULL;
}

static void cleanups_run(oos_arena *arena)
{
    for (cleanup *c = arena->cleanups; c; c = c->older) c->release(c->thing);
    arena->cleanups = NULL;
}

void oos_arena_reset(oos_arena *arena)
{
    cleanups_run(arena);
    while (arena->newest->older) {
        block *older = arena->newest->older;
        free(arena->newest);
        arena->newest = older;
    }
    arena->newest->used = 0;
}

void oos_arena_free(oos_arena *arena)
{
    if (!arena) return;
    oos_arena_reset(arena);
    free(arena->newest);
    free(arena);
}

void *oos_arena_take_raw(oos_arena *arena, size_t bytes)
{
    size_t const align = alignof(max_align_t);
    if (bytes > SIZE_MAX - align) return NULL;
    bytes = (bytes + align - 1) & ~(align - 1);
    block *b = arena->newest;
    if (bytes > b->capacity - b->used) {
        size_t capacity = b->capacity < SIZE_MAX / 4 ? b->capacity * 2 : b->capacity;
        if (capacity < bytes) capacity = bytes;
        b = block_create(capacity, b);
        if (!b) return NULL;
        arena->newest = b;
    }
    void *at = b->bytes + b->used;
    b->used += bytes;
    oos_assert(b->used <= b->capacity);
    return at;
}

void *oos_arena_take(oos_arena *arena, size_t bytes)
{
    void *at = oos_arena_take_raw(arena, bytes);
    if (at) memset(at, 0, bytes);
    return at;
}

void *oos_arena_take_array(oos_arena *arena, size_t count, size_t item_bytes)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, item_bytes, &bytes)) return NULL;
    return oos_arena_take(arena, bytes);
}

bool oos_arena_adopt(oos_arena *arena, void (*release)(void *), void *thing)
{
    cleanup *c = OOS_NEW(arena, cleanup);
    if (!c) return false;
    *c = (cleanup){arena->cleanups, release, thing};
    arena->cleanups = c;
    return true;
}

void *oos_arena_keep(oos_arena *arena, const void *bytes, size_t size)
{
    void *copy = oos_arena_take_raw(arena, size);
    if (copy) memcpy(copy, bytes, size);
    return copy;
}

char *oos_arena_copy(oos_arena *arena, oos_view text)
{
    if (text.len == SIZE_MAX) return NULL;
    char *copy = oos_arena_take(arena, text.len + 1);
    if (copy && text.len) memcpy(copy, text.ptr, text.len);
    return copy;
}

/* Written straight into the rest of the block; only a text that does not fit is formatted twice. */
char *oos_arena_vformat(oos_arena *arena, const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    block *b = arena->newest;
    size_t const room = b->capacity - b->used;
    char *text = b->bytes + b->used;
    int const len = oos_vformat(text, room, format, args);
    if (len < 0) {
        text = NULL;
    } else if ((size_t)len < room) {
        size_t const align = alignof(max_align_t);
        size_t const taken = ((size_t)len + align) & ~(align - 1);
        b->used += taken < room ? taken : room;
        oos_assert(b->used <= b->capacity && (size_t)len < taken);
    } else {
        text = oos_arena_take(arena, (size_t)len + 1);
        if (text) oos_vformat(text, (size_t)len + 1, format, again);
    }
    va_end(again);
    return text;
}

char *oos_arena_format(oos_arena *arena, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *text = oos_arena_vformat(arena, format, args);
    va_end(args);
    return text;
}
