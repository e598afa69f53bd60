/* The one edge to PCRE2. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "match/match.h"

#include <pcre2.h>

/* A log line is matched in a few hundred steps; a hundred thousand are some milliseconds at most. */
enum { MATCH_LIMIT = 100000, DEPTH_LIMIT = 1000, HEAP_LIMIT_KIB = 1024 };
/* Most patterns are used once or twice in a log. Callgrind: 46.7 million instructions with 32, 49.6 with 5, where patterns are used most. */
enum { JIT_AT_USES = 32 };

struct oos_pattern {
    oos_arena *arena;
    const char *regex;
    pcre2_code *code;
    pcre2_match_data *data;
    pcre2_match_context *context;
    bool tried, caseless;
    unsigned uses; /* up to JIT_AT_USES */
};

static void release(void *thing)
{
    oos_pattern *pattern = thing;
    pcre2_match_context_free(pattern->context);
    pcre2_match_data_free(pattern->data);
    pcre2_code_free(pattern->code);
    pattern->code = NULL;
}

oos_pattern *oos_pattern_create(oos_arena *arena, const char *regex, bool caseless)
{
    oos_pattern *pattern = OOS_NEW(arena, oos_pattern);
    if (!pattern || !oos_arena_adopt(arena, release, pattern)) return NULL;
    *pattern = (oos_pattern){.arena = arena, .regex = regex, .caseless = caseless};
    return pattern;
}

oomsight_status oos_pattern_check(oos_pattern *pattern, oomsight_error *reterr)
{
    if (pattern->code) return OOMSIGHT_OK;
    pattern->tried = true;
    int error;
    PCRE2_SIZE offset;
    pattern->code = pcre2_compile((PCRE2_SPTR)pattern->regex, PCRE2_ZERO_TERMINATED,
                                  pattern->caseless ? PCRE2_CASELESS : 0, &error, &offset, NULL);
    if (!pattern->code) {
        PCRE2_UCHAR text[128] = "";
        pcre2_get_error_message(error, text, sizeof text);
        return oos_fail(reterr, OOMSIGHT_MALFORMED, "regex '%.200s', at %zu: %s", pattern->regex,
                        (size_t)offset, (const char *)text);
    }
    pattern->data = pcre2_match_data_create_from_pattern(pattern->code, NULL);
    pattern->context = pcre2_match_context_create(NULL);
    if (!pattern->data || !pattern->context) {
        release(pattern);
        return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a pattern");
    }
    pcre2_set_match_limit(pattern->context, MATCH_LIMIT);
    pcre2_set_depth_limit(pattern->context, DEPTH_LIMIT);
    pcre2_set_heap_limit(pattern->context, HEAP_LIMIT_KIB);
    return OOMSIGHT_OK;
}

/* Without JIT it is slower, not different. */
static bool is_ready(oos_pattern *pattern)
{
    if (!pattern->code && (pattern->tried || oos_pattern_check(pattern, NULL) != OOMSIGHT_OK)) return false;
    if (pattern->uses < JIT_AT_USES && ++pattern->uses == JIT_AT_USES)
        pcre2_jit_compile(pattern->code, PCRE2_JIT_COMPLETE | PCRE2_JIT_PARTIAL_SOFT);
    return true;
}

static void take_captures(const oos_pattern *pattern, oos_view subject, oos_match *match)
{
    uint32_t names = 0, entry_bytes = 0;
    PCRE2_SPTR table = NULL;
    pcre2_pattern_info(pattern->code, PCRE2_INFO_NAMECOUNT, &names);
    pcre2_pattern_info(pattern->code, PCRE2_INFO_NAMEENTRYSIZE, &entry_bytes);
    pcre2_pattern_info(pattern->code, PCRE2_INFO_NAMETABLE, &table);
    const PCRE2_SIZE *ends = pcre2_get_ovector_pointer(pattern->data);
    uint32_t const groups = pcre2_get_ovector_count(pattern->data);
    for (uint32_t i = 0; i < names && match->count < OOS_CAPTURES_MAX; i++) {
        PCRE2_SPTR entry = table + (size_t)i * entry_bytes; /* two bytes of number, then the name */
        unsigned const group = (unsigned)entry[0] << 8 | entry[1];
        if (group >= groups || ends[2 * group] == PCRE2_UNSET) continue;
        size_t const at = ends[2 * group];
        match->captures[match->count++] =
            (oos_capture){(const char *)entry + 2, oos_view_slice(subject, at, ends[2 * group + 1] - at), at};
    }
}

bool oos_pattern_begins(oos_pattern *pattern, oos_view subject, size_t least)
{
    if (!is_ready(pattern)) return false;
    int const found = pcre2_match(pattern->code, (PCRE2_SPTR)subject.ptr, subject.len, 0, PCRE2_PARTIAL_SOFT,
                                  pattern->data, pattern->context);
    const PCRE2_SIZE *ends = pcre2_get_ovector_pointer(pattern->data);
    return found == PCRE2_ERROR_PARTIAL && ends[1] - ends[0] >= least;
}

bool oos_pattern_find(oos_pattern *pattern, oos_view subject, size_t start, oos_match *ret_match)
{
    if (start > subject.len || !is_ready(pattern)) return false;
    int const found = pcre2_match(pattern->code, (PCRE2_SPTR)subject.ptr, subject.len, start, 0,
                                  pattern->data, pattern->context);
    if (found < 0) return false;
    const PCRE2_SIZE *ends = pcre2_get_ovector_pointer(pattern->data);
    *ret_match = (oos_match){.start = ends[0], .end = ends[1]};
    take_captures(pattern, subject, ret_match);
    return true;
}

/* ---- names of modules ---- */

struct oos_regex {
    pcre2_code *code;
};

static void regex_release(void *thing)
{
    pcre2_code_free(((oos_regex *)thing)->code);
}

/* Python reads {,n} as {0,n}; PCRE2 does so from 10.43 on. */
static char *as_pcre(oos_arena *arena, const char *text)
{
    char *out = oos_arena_take(arena, 2 * strlen(text) + 1), *to = out;
    for (const char *at = text; out && *at; at++) {
        *to++ = *at;
        if (*at == '\\' && at[1]) *to++ = *++at;
        if (*at == '{' && at[1] == ',' && at[2] >= '0' && at[2] <= '9') *to++ = '0';
    }
    if (out) *to = '\0';
    return out;
}

const oos_regex *oos_regex_compile(oos_arena *arena, const char *text)
{
    oos_regex *regex = OOS_NEW(arena, oos_regex);
    char *pattern = regex && *text ? as_pcre(arena, text) : NULL;
    int error;
    PCRE2_SIZE offset;
    if (!pattern || !oos_arena_adopt(arena, regex_release, regex)) return NULL;
    regex->code = pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED, 0, &error, &offset, NULL);
    return regex->code ? regex : NULL;
}

static bool regex_run(const oos_regex *regex, const char *text, uint32_t how)
{
    int workspace[2048];
    pcre2_match_data *data = pcre2_match_data_create(1, NULL);
    pcre2_match_context *context = pcre2_match_context_create(NULL);
    int found = PCRE2_ERROR_NOMEMORY;
    if (data && context) {
        pcre2_set_match_limit(context, MATCH_LIMIT);
        pcre2_set_depth_limit(context, DEPTH_LIMIT);
        pcre2_set_heap_limit(context, HEAP_LIMIT_KIB);
        found = pcre2_dfa_match(regex->code, (PCRE2_SPTR)text, strlen(text), 0, PCRE2_DFA_SHORTEST | how,
                                data, context, workspace, sizeof workspace / sizeof *workspace);
    }
    pcre2_match_context_free(context);
    pcre2_match_data_free(data);
    return found >= 0;
}

bool oos_regex_matches(const oos_regex *regex, const char *text)
{
    return regex_run(regex, text, PCRE2_ANCHORED);
}

bool oos_regex_searches(const oos_regex *regex, const char *text)
{
    return regex_run(regex, text, 0);
}
