/* Commands as people paste them around a log: over several lines, in compose and Kubernetes YAML, as Python. */
#ifndef OOS_EXPLAIN_PASTE_H
#define OOS_EXPLAIN_PASTE_H

#include "base/view.h"

/* The command that begins in `line` and goes on in `after`, on one line as a shell would take it, or `LLM(...)`. Returns
 * its length, 0 when there is none. At most `capacity` bytes are written. */
size_t oos_paste_command(oos_view line, oos_view after, char *to, size_t capacity);

#endif
