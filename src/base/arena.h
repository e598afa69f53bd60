/* Arenas: memory that is freed all at once. One arena per request; the result handle owns it. Allocation returns NULL
 * when the host is out of memory; nothing allocated here is freed alone. Things that are not memory can be given to
 * the arena's clean-up list and are released with it. */
#pragma once
#include "base/view.h"

#include <stdarg.h>

typedef struct oos_arena oos_arena;

oos_arena *oos_arena_create(size_t first_block_bytes); /* NULL when out of memory */
void oos_arena_free(oos_arena *arena);                 /* NULL is fine */
void oos_arena_reset(oos_arena *arena);                /* forget everything, keep the first block */

void *oos_arena_take(oos_arena *arena, size_t bytes); /* zeroed, aligned for any type */
void *oos_arena_take_raw(oos_arena *arena,
                         size_t bytes); /* ... not zeroed: for what is written whole at once */
void *oos_arena_take_array(oos_arena *arena, size_t count, size_t item_bytes);

/* How often this thread was denied memory so far, here or in a growing text. Code in between may go on without a note or a row: the
 * public entry compares the count before and after, and gives no answer that was made with less. */
uint64_t oos_memory_denied(void);
void oos_memory_deny(void); /* one more */

/* Run `release(thing)` when the arena is freed or reset. False when out of memory: then it has not been adopted. */
bool oos_arena_adopt(oos_arena *arena, void (*release)(void *), void *thing);

void *oos_arena_keep(oos_arena *arena, const void *bytes, size_t size); /* a copy */
char *oos_arena_copy(oos_arena *arena, oos_view text);                  /* zero-terminated copy */
char *oos_arena_format(oos_arena *arena, const char *format, ...) __attribute__((format(printf, 2, 3)));
char *oos_arena_vformat(oos_arena *arena, const char *format, va_list args)
    __attribute__((format(printf, 2, 0)));

#define OOS_NEW(arena, type) ((type *)oos_arena_take((arena), sizeof(type)))
#define OOS_NEW_ARRAY(arena, type, count) ((type *)oos_arena_take_array((arena), (count), sizeof(type)))
