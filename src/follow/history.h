/* What a log told since the engine's start, as JSON and back: so that an incident after a restart of this program is judged as
 * it would have been before. */
#ifndef OOS_EXPLAIN_HISTORY_H
#define OOS_EXPLAIN_HISTORY_H

#include "base/text.h"
#include "explain/incident.h"

void oos_history_write(const oos_signals *signals, const oos_incident *history, oos_text *text);

/* Strings are copied into the arena. False: not a history. What this version does not know is left out. */
bool oos_history_read(oos_arena *arena, const oos_signals *signals, oos_view text, oos_incident *ret_history);

#endif
