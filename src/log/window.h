/* A message that was broken over lines, as one text. */
#ifndef OOS_EXPLAIN_WINDOW_H
#define OOS_EXPLAIN_WINDOW_H

#include "base/view.h"

enum { OOS_JOINED_MAX_BYTES = 6 << 10, OOS_JOINED_MAX_LINES = 8 };

/* `line` (without colour) and those of the lines in `after` that go on with it, prefixes peeled off, put together
 * without a gap: patterns for such messages allow white space, and the lack of it, between words. Returns the length. */
size_t oos_window_join(oos_view line, oos_view after, char *to, size_t capacity);

#endif
