/* The patterns quantisation configs name modules by: Python regular expressions and shell globs. They come from
 * strangers, so a match takes time linear in pattern and text. Captures, back-references and look-behind are not
 * understood, and said so. */
#ifndef OOS_INPUT_PATTERN_H
#define OOS_INPUT_PATTERN_H

#include "base/arena.h"

typedef struct oos_pattern oos_pattern;

/* NULL when the pattern is not understood, too large, or memory is out. */
const oos_pattern *oos_pattern_compile(oos_arena *arena, oos_view text);

bool oos_pattern_matches(const oos_pattern *pattern, const char *text);  /* from the start on, as re.match */
bool oos_pattern_searches(const oos_pattern *pattern, const char *text); /* anywhere, as re.search */

/* The whole text against `*`, `?` and `[...]`, as fnmatch. */
bool oos_glob_matches(const char *glob, const char *text);

#endif
