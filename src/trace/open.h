/* Any input of `replay` -> a trace. The form is told by the first bytes, not by the name. */
#ifndef OOS_INPUT_OPEN_H
#define OOS_INPUT_OPEN_H

#include "trace/trace.h"

oomsight_status oos_trace_open(const char *path, oos_trace **ret_trace, oomsight_error *reterr);
oomsight_status oos_trace_read(oos_stream *stream, oos_trace **ret_trace, oomsight_error *reterr);

/* Do the first bytes begin a snapshot or a trace? Any input that does not, but is given to `replay`, is read as one written by hand. */
bool oos_trace_begins(oos_view head);

#endif
