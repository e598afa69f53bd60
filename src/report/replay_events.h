/* A trace with the simulator's own answers, in the JSON lines of docs/reference/formats/trace.md: what a recorded run of the real
 * allocator can be compared with, line by line. */
#ifndef OOS_REPORT_REPLAY_EVENTS_H
#define OOS_REPORT_REPLAY_EVENTS_H

#include "replay/replay.h"

oomsight_status oos_replay_events_render(const oos_trace *trace, const oos_scenario *scenario, oos_text *text,
                                         oomsight_error *reterr);

#endif
