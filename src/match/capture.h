/* Captures inside one line: PCRE2 with JIT and limits, so that no line, however hostile, costs more than a bounded
 * amount of time and memory. A pattern is compiled at its first use. Not safe to share between threads. */
#ifndef OOS_MATCH_CAPTURE_H
#define OOS_MATCH_CAPTURE_H

#include "base/arena.h"
#include "base/error.h"

enum { OOS_CAPTURES_MAX = 16 };

typedef struct oos_pattern oos_pattern;

/* One named group that took part in a match. The name lives as long as the pattern. */
typedef struct oos_capture {
    const char *name;
    oos_view text;
    size_t at; /* offset in the subject */
} oos_capture;

typedef struct oos_match {
    size_t start, end; /* of the whole match in the subject */
    oos_capture captures[OOS_CAPTURES_MAX];
    size_t count;
} oos_match;

/* Only remembers `regex` (which must outlive the arena). NULL: out of memory. */
oos_pattern *oos_pattern_create(oos_arena *arena, const char *regex, bool caseless);

/* Compile now and say what is wrong with it. */
oomsight_status oos_pattern_check(oos_pattern *pattern, oomsight_error *reterr);

/* The subject is cut off where the pattern would have gone on, behind at least `least` bytes of it. Nothing is captured. */
bool oos_pattern_begins(oos_pattern *pattern, oos_view subject, size_t least);

/* First match at or after `start`. A pattern that does not compile or runs into a limit does not match. */
bool oos_pattern_find(oos_pattern *pattern, oos_view subject, size_t start, oos_match *ret_match);

#endif
