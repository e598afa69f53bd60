/* The patterns quantisation configs name modules by: Python regular expressions and shell globs. They come from strangers: PCRE2
 * walks all paths at once (no backtracking) and within limits, so no pattern and no name costs more than a bounded time. */
#ifndef OOS_MATCH_NAMES_H
#define OOS_MATCH_NAMES_H

#include "base/arena.h"

typedef struct oos_regex oos_regex; /* may be shared between threads */

/* NULL when the expression is empty, not understood, too large, or memory is out. */
const oos_regex *oos_regex_compile(oos_arena *arena, const char *text);

bool oos_regex_matches(const oos_regex *regex, const char *text);  /* from the start on, as re.match */
bool oos_regex_searches(const oos_regex *regex, const char *text); /* anywhere, as re.search */

/* The whole text against `*`, `?` and `[...]`, as fnmatch. */
bool oos_glob_matches(const char *glob, const char *text);

#endif
