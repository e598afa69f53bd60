/* Words that every form of a plan uses. */
#include "report/plan.h"

#include <stdlib.h>

const char *oos_report_verdict_word(oomsight_verdict verdict)
{
    switch (verdict) {
    case OOMSIGHT_VERDICT_FITS: return "fits";
    case OOMSIGHT_VERDICT_TIGHT: return "tight";
    case OOMSIGHT_VERDICT_FAILS: return "fails";
    case OOMSIGHT_VERDICT_REFUSED: return "refused";
    case OOMSIGHT_VERDICT_UNKNOWN: return "unknown";
    }
    return "unknown";
}

const char *oos_report_answer_word(const oos_plan *plan)
{
    switch (plan->verdict) {
    case OOMSIGHT_VERDICT_FITS: return "starts";
    case OOMSIGHT_VERDICT_TIGHT: return oos_plan_likely(plan) ? "likely starts" : "likely fails";
    case OOMSIGHT_VERDICT_FAILS:
    case OOMSIGHT_VERDICT_REFUSED: return "fails";
    case OOMSIGHT_VERDICT_UNKNOWN: break;
    }
    return "can't tell";
}

const char *oos_report_answer_heading(const oos_plan *plan)
{
    switch (plan->verdict) {
    case OOMSIGHT_VERDICT_FITS: return "STARTS";
    case OOMSIGHT_VERDICT_TIGHT: return oos_plan_likely(plan) ? "LIKELY STARTS" : "LIKELY FAILS";
    case OOMSIGHT_VERDICT_FAILS:
    case OOMSIGHT_VERDICT_REFUSED: return "FAILS";
    case OOMSIGHT_VERDICT_UNKNOWN: break;
    }
    return "CAN'T TELL";
}

/* Single quotes where a shell would take the word apart. */
static void put_word(oos_text *text, const char *word)
{
    if (!strpbrk(word, " \"{}[]$`\\*?<>|&;()'")) {
        oos_text_put(text, word);
        return;
    }
    oos_text_put(text, "'");
    for (; *word; word++) {
        if (*word == '\'')
            oos_text_put(text, "'\\''");
        else
            oos_text_add(text, (oos_view){word, 1});
    }
    oos_text_put(text, "'");
}

void oos_report_change(oos_text *text, const oos_fix *fix)
{
    for (size_t i = 0; i < fix->change_count; i++) {
        if (i) oos_text_put(text, " ");
        put_word(text, fix->change[i]);
    }
}

const char *oos_report_plan_change(oos_arena *arena, const oos_fix *fix)
{
    oos_text text = {0};
    oos_report_change(&text, fix);
    const char *copy = text.failed ? NULL : oos_arena_copy(arena, (oos_view){text.ptr, text.len});
    oos_text_free(&text);
    return copy;
}

/* .../models--org--name/snapshots/<commit> */
const char *oos_report_model_name(const char *path, char *name, size_t size)
{
    static const char snapshots[] = "/snapshots/";
    if (!path) return "the model";
    const char *end = strstr(path, snapshots), *from = NULL;
    for (const char *at = path; end && (at = strstr(at, "/models--")) && at < end; at++) from = at + 9;
    if (from) {
        size_t len = 0;
        for (; from < end && len + 1 < size; from++) {
            bool const slash = from[0] == '-' && from[1] == '-';
            name[len++] = slash ? '/' : *from;
            from += slash;
        }
        name[len] = '\0';
        return name;
    }
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}
