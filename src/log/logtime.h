/* The time a line of a log bears, in the forms that containers and engines write. */
#ifndef OOS_INPUT_LOGTIME_H
#define OOS_INPUT_LOGTIME_H

#include "base/view.h"

#define OOS_TIME_NONE INT64_MIN

enum { OOS_TIME_TEXT_BYTES = 40 };

/* Nanoseconds since 1970, or OOS_TIME_NONE. Looked for at the start of the line (behind a level, a process, an opening
 * bracket) and, in a line that is a JSON object, in its time fields. Without a zone it counts as UTC; without a year it is the
 * latest one that does not lie after `now` by more than two days. */
int64_t oos_logtime_read(oos_view line, int64_t now);

int64_t oos_logtime_now(void);

/* RFC 3339 in UTC with milliseconds; NULL for OOS_TIME_NONE, else `to`. */
const char *oos_logtime_print(int64_t time, char to[OOS_TIME_TEXT_BYTES]);

#endif
