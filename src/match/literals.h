/* Many literals over a stream of bytes at once. Blocks go in, (end offset, literal) pairs come out, also for a literal that lies across two blocks. Case does not matter. One set may be shared by threads; a scan may not. */
#ifndef OOS_MATCH_LITERALS_H
#define OOS_MATCH_LITERALS_H

#include "base/arena.h"
#include "base/error.h"

typedef struct oos_literals oos_literals;
typedef struct oos_literal_scan oos_literal_scan;

/* In the order of `end`; of those with the same end in any order. `end` counts from the start of the stream and is the offset behind the last byte of the literal. */
typedef struct oos_hit {
    uint64_t end;
    uint32_t literal;
} oos_hit;

/* Released with the arena. `words` are numbered from 0 in the order given; none may be empty. */
oomsight_status oos_literals_create(oos_arena *arena, const char *const *words, size_t count,
                                    oos_literals **ret_literals, oomsight_error *reterr);

oomsight_status oos_literal_scan_open(const oos_literals *literals, oos_literal_scan **ret_scan,
                                      oomsight_error *reterr);
void oos_literal_scan_close(oos_literal_scan *scan); /* NULL is fine */

/* Scan the next block. At most `most` hits are kept; *ret_count is how many, *ret_cut says that there were more. */
oomsight_status oos_literal_scan_feed(oos_literal_scan *scan, oos_view block, oos_hit *ret_hits, size_t most,
                                      size_t *ret_count, bool *ret_cut, oomsight_error *reterr);

/* Forget what came before: the next block starts a new stream at offset 0. */
oomsight_status oos_literal_scan_restart(oos_literal_scan *scan, oomsight_error *reterr);

#endif
