/* Where reading stands in each file, kept in a folder over restarts. Two kinds of files: `positions`, replaced as a whole, and
 * `history-<hash>`, what is known of an engine since its start, written when it changes. */
#ifndef OOS_EXPLAIN_STATE_H
#define OOS_EXPLAIN_STATE_H

#include "explain/signals.h"
#include "follow/tail.h"

typedef struct oos_state oos_state;

/* Makes the folder when it is not there, and takes it for this process alone. What is damaged is read as far as it goes. */
oomsight_status oos_state_open(const char *folder, const oos_signals *signals, oos_state **ret_state,
                               oomsight_error *reterr);
void oos_state_close(oos_state *state); /* NULL is fine */

/* What was saved for a path. The history lives until the next call. False: nothing. */
bool oos_state_find(oos_state *state, const char *path, oos_tail_point *ret_point);

/* Writing is a round: begin, one put per file, end. Files that are not put are forgotten, but for those that were never found
 * in this run: they are kept for a day. False with errno: not written, and what was there before stays. */
void oos_state_begin(oos_state *state);
void oos_state_put(oos_state *state, const char *path, const oos_tail_point *point);
bool oos_state_end(oos_state *state, bool to_disk, int64_t now);

#endif
