#pragma once
#include "base/arena.h"
#include "base/error.h"

/* Captures inside one line: PCRE2 with JIT and limits, so that no line, however hostile, costs more than a bounded
 * amount of time and memory. A pattern is compiled at its first use. Not safe to share between threads. */

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

/* Many literals over a stream of bytes at once. Blocks go in, (end offset, literal) pairs come out, also for a literal that lies across two blocks. Case does not matter. One set may be shared by threads; a scan may not. */

typedef struct oos_literals oos_literals;
typedef struct oos_literal_scan oos_literal_scan;

/* In the order of `end`; of those with the same end in any order. `end` counts from the start of the stream and is the offset behind the last byte of the literal. */
typedef struct oos_hit {
    uint64_t end;
    uint32_t literal;
} oos_hit;

/* Released with the arena. `words` are numbered from 0 in the order given; none may be empty. `common`: some text as it is read all day, "" when it
 * is not known. What is found does not hang on it. */
oomsight_status oos_literals_create(oos_arena *arena, const char *const *words, size_t count,
                                    const char *common, oos_literals **ret_literals, oomsight_error *reterr);

oomsight_status oos_literal_scan_open(const oos_literals *literals, oos_literal_scan **ret_scan,
                                      oomsight_error *reterr);
void oos_literal_scan_close(oos_literal_scan *scan); /* NULL is fine */

/* Scan the next block. At most `most` hits are kept; *ret_count is how many, *ret_cut says that there were more. */
oomsight_status oos_literal_scan_feed(oos_literal_scan *scan, oos_view block, oos_hit *ret_hits, size_t most,
                                      size_t *ret_count, bool *ret_cut, oomsight_error *reterr);

/* Forget what came before: the next block starts a new stream at offset 0. */
oomsight_status oos_literal_scan_restart(oos_literal_scan *scan, oomsight_error *reterr);

/* The patterns quantisation configs name modules by: Python regular expressions and shell globs. They come from strangers: PCRE2
 * walks all paths at once (no backtracking) and within limits, so no pattern and no name costs more than a bounded time. */

typedef struct oos_regex oos_regex; /* may be shared between threads */

/* NULL when the expression is empty, not understood, too large, or memory is out. */
const oos_regex *oos_regex_compile(oos_arena *arena, const char *text);

bool oos_regex_matches(const oos_regex *regex, const char *text);  /* from the start on, as re.match */
bool oos_regex_searches(const oos_regex *regex, const char *text); /* anywhere, as re.search */

/* The whole text against `*`, `?` and `[...]`, as fnmatch. */
bool oos_glob_matches(const char *glob, const char *text);
