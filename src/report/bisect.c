/* What `oomsight bisect` prints: the release, what the releases around it say, and the settings that moved there. */
#include "report/report.h"
#include "base/json_write.h"
#include "base/locale.h"

bool oos_bisect_apart(uint64_t one, uint64_t other, double ratio)
{
    uint64_t const larger = oos_max(one, other), apart = larger - oos_min(one, other);
    return (double)apart > ratio * (double)larger;
}

static bool same_words(const char *one, const char *other)
{
    return one == other || (one && other && strcmp(one, other) == 0);
}

/* Where it fails, in words. */
static const char *point_of(const oos_bisect_step *step)
{
    return oos_report_point(oos_phase_find(step->phase));
}

/* A line for the first and the last, and for every release that says something else than the one before it. */
static bool tells(const oos_bisect_result *result, size_t index)
{
    const oos_bisect_step *step = &result->steps[index];
    if (!step->answered) return false;
    if (index == 0 || index + 1 == result->count || index == result->before || index == result->found)
        return true;
    size_t last = index;
    while (last > 0 && !result->steps[last - 1].answered) last--;
    if (last == 0) return true;
    const oos_bisect_step *earlier = &result->steps[last - 1];
    return !same_words(step->answer, earlier->answer) || !same_words(step->phase, earlier->phase) ||
           (step->starts ? oos_bisect_apart(step->kv_tokens, earlier->kv_tokens, result->moved_ratio)
                         : oos_bisect_apart(step->need_bytes, earlier->need_bytes, result->moved_ratio));
}

static void put_steps(const oos_style *style, const oos_bisect_result *result)
{
    oos_table table = {.columns = 6, .kept = 1, .right = 1U << 3 | 1U << 4};
    static const char *const heads[] = {"release", "answer", "phase", "needs GiB", "KV tokens", ""};
    size_t left_out = 0;
    for (size_t i = 0; i < 6; i++) oos_table_put(&table, style, OOS_INK_PLAIN, i < 5 ? heads[i] : " ");
    for (size_t i = 0; i < result->count; i++) {
        const oos_bisect_step *step = &result->steps[i];
        char tokens[32] = "", need[32] = "";
        if (!tells(result, i)) {
            left_out++;
            continue;
        }
        if (step->starts && step->kv_tokens) oos_style_count(tokens, sizeof tokens, step->kv_tokens);
        if (step->need_bytes) oos_format(need, sizeof need, "%.2f", oos_gib(step->need_bytes));
        bool const moved = result->moved != OOS_BISECT_NOTHING && i == result->found;
        const char *const cells[] = {step->version, step->answer, point_of(step), need, tokens};
        for (size_t k = 0; k < 5; k++) oos_table_put(&table, style, OOS_INK_PLAIN, cells[k]);
        oos_table_put(&table, style, OOS_INK_WARN, moved ? "<-" : " ");
    }
    oos_table_end(&table, style);
    if (left_out)
        oos_style_put(style,
                      left_out == 1 ? "(%zu release with the same result not shown)\n"
                                    : "(%zu releases with the same result not shown)\n",
                      left_out);
}

/* The marks that the answers do not bear out. */
static void put_contradictions(const oos_style *style, const oos_bisect_result *result)
{
    const oos_bisect_step *first = &result->steps[0], *last = &result->steps[result->count - 1];
    const oos_bisect_step *good = result->newer_is_good ? last : first;
    const oos_bisect_step *bad = result->newer_is_good ? first : last;
    if (good->answered && !good->starts)
        oos_style_put(style, "%s is called good, and it does not start there\n", good->version);
    if (bad->answered && bad->starts)
        oos_style_put(style, "%s is called bad, and it starts there\n", bad->version);
}

/* Whether the answer of a step turns from that of the last one before it that has any; *ret_before: that one. */
static bool turns(const oos_bisect_result *result, size_t index, size_t *ret_before)
{
    const oos_bisect_step *steps = result->steps;
    if (!steps[index].answered) return false;
    for (size_t i = index; i-- > 0;) {
        if (!steps[i].answered) continue;
        *ret_before = i;
        return steps[i].starts != steps[index].starts;
    }
    return false;
}

/* Every other release with which it began or ceased to start. */
static void put_other_turns(const oos_style *style, const oos_bisect_result *result)
{
    size_t before;
    for (size_t i = 1; i < result->count; i++) {
        if (!turns(result, i, &before) || (result->moved == OOS_BISECT_ANSWER && i == result->found))
            continue;
        oos_style_put(style,
                      result->steps[i].starts ? "It also starts since %s (%s: %s)\n"
                                              : "It also fails since %s (%s: %s)\n",
                      result->steps[i].version, result->steps[before].version, result->steps[before].answer);
    }
}

/* Why it does not start, where it starts in no release. */
static void put_same_reason(const oos_style *style, const oos_bisect_result *result)
{
    const oos_bisect_step *first = &result->steps[0], *last = &result->steps[result->count - 1];
    if (!first->answered || first->starts || !first->why || !last->why) return;
    oos_report_sentence(style, 2, "", first->why);
    if (strcmp(first->why, last->why) == 0) return;
    oos_style_put(style, "%s:\n", last->version);
    oos_report_sentence(style, 2, "", last->why);
}

/* A figure that moved, with what it was and what it is. */
static void put_figure(const oos_style *style, const oos_bisect_result *result)
{
    const oos_bisect_step *found = &result->steps[result->found], *before = &result->steps[result->before];
    char one[32], other[32];
    if (result->moved == OOS_BISECT_NEED) {
        oos_format(one, sizeof one, "%.2f", oos_gib(before->need_bytes));
        oos_format(other, sizeof other, "%.2f", oos_gib(found->need_bytes));
        oos_style_ink(style, OOS_INK_BOLD,
                      found->need_bytes > before->need_bytes ? "NEEDS MORE MEMORY IN %s  (%s GiB; %s: %s)\n"
                                                             : "NEEDS LESS MEMORY IN %s  (%s GiB; %s: %s)\n",
                      found->version, other, before->version, one);
        return;
    }
    oos_style_count(one, sizeof one, before->kv_tokens);
    oos_style_count(other, sizeof other, found->kv_tokens);
    oos_style_ink(style, OOS_INK_BOLD,
                  found->kv_tokens > before->kv_tokens ? "MORE KV TOKENS IN %s  (%s; %s: %s)\n"
                                                       : "FEWER KV TOKENS IN %s  (%s; %s: %s)\n",
                  found->version, other, before->version, one);
}

static void put_found(const oos_style *style, const oos_bisect_result *result)
{
    const oos_bisect_step *found = &result->steps[result->found], *before = &result->steps[result->before];
    switch (result->moved) {
    case OOS_BISECT_NOTHING:
        oos_style_ink(style, OOS_INK_BOLD, "NOTHING MOVED  from %s to %s\n", result->steps[0].version,
                      result->steps[result->count - 1].version);
        put_same_reason(style, result);
        return;
    case OOS_BISECT_ANSWER:
        oos_style_ink(style, OOS_INK_BOLD,
                      found->starts ? "STARTS SINCE %s  (%s: %s)\n" : "FAILS SINCE %s  (%s: %s)\n",
                      found->version, before->version, before->answer);
        break;
    case OOS_BISECT_PHASE:
        oos_style_ink(style, OOS_INK_BOLD, "FAILS IN ANOTHER PHASE SINCE %s\n", found->version);
        oos_style_put(style, "%s fails %s; %s fails %s.\n", before->version,
                      oos_report_where(oos_phase_find(before->phase)), found->version,
                      oos_report_where(oos_phase_find(found->phase)));
        break;
    case OOS_BISECT_NEED:
    case OOS_BISECT_TOKENS: put_figure(style, result); break;
    }
    if (result->between)
        oos_style_put(style, "Releases between %s and %s were not started: one of them may be the one.\n",
                      before->version, found->version);
}

void oos_report_bisect_text(oos_text *text, const oos_bisect_result *result,
                            const oomsight_render_params *params)
{
    oos_style const style = oos_style_of(text, params);
    put_found(&style, result);
    put_other_turns(&style, result);
    put_contradictions(&style, result);
    oos_text_put(text, "\n");
    put_steps(&style, result);
    if (result->moved == OOS_BISECT_NOTHING) return;
    const oos_bisect_step *pair[] = {&result->steps[result->before], &result->steps[result->found]};
    oos_text_put(text, "\n");
    if (pair[0]->plan && pair[1]->plan) {
        const oos_plan *const plans[] = {pair[0]->plan, pair[1]->plan};
        oos_report_plans(text, plans, 2, params);
        return;
    }
    for (size_t i = 0; i < 2; i++)
        if (pair[i]->why) {
            oos_text_printf(text, "%s: ", pair[i]->version);
            oos_style_quote(&style, 0, pair[i]->why);
        }
}

static void put_step(oos_json_writer *w, const oos_bisect_step *step)
{
    oos_json_begin_object(w);
    oos_json_field_str(w, "version", step->version);
    oos_json_field_str(w, "verdict", step->answered ? oos_report_verdict_word(step->verdict) : NULL);
    oos_json_field_str(w, "likely", !step->answered ? NULL : step->starts ? "starts" : "fails");
    oos_json_field_str(w, "phase", step->phase);
    oos_json_field_known(w, "kv_tokens", step->answered ? oos_u64_of(step->kv_tokens) : (oos_u64){0});
    oos_json_field_known(w, "need_bytes", step->need_bytes ? oos_u64_of(step->need_bytes) : (oos_u64){0});
    oos_json_field_str(w, "why", step->why);
    oos_json_end_object(w);
}

void oos_report_bisect_json(oos_text *text, const oos_bisect_result *result)
{
    static const char *const words[] = {NULL, "verdict", "phase", "need", "kv_tokens"};
    _Static_assert(sizeof words / sizeof *words == OOS_BISECT_TOKENS + 1, "a word for each of what moves");
    oos_json_writer writer = {.text = text, .pretty_depth = 2}, *w = &writer;
    bool const moved = result->moved != OOS_BISECT_NOTHING;
    oos_json_begin_object(w);
    oos_json_field_str(w, "schema", "oomsight.bisect/1");
    oos_json_field_str(w, "good", result->good);
    oos_json_field_str(w, "bad", result->bad);
    oos_json_field_str(w, "by", result->by_dryrun ? "dryrun" : "plan");
    oos_json_field_str(w, "moved", words[result->moved]);
    oos_json_field_str(w, "before", moved ? result->steps[result->before].version : NULL);
    oos_json_field_str(w, "found", moved ? result->steps[result->found].version : NULL);
    oos_json_field_bool(w, "releases_between", moved && result->between);
    oos_json_field_array(w, "turns");
    for (size_t i = 1, before; i < result->count; i++) {
        if (!turns(result, i, &before)) continue;
        oos_json_begin_object(w);
        oos_json_field_str(w, "before", result->steps[before].version);
        oos_json_field_str(w, "found", result->steps[i].version);
        oos_json_field_str(w, "likely", result->steps[i].starts ? "starts" : "fails");
        oos_json_end_object(w);
    }
    oos_json_end_array(w);
    oos_json_field_array(w, "steps");
    for (size_t i = 0; i < result->count; i++) put_step(w, &result->steps[i]);
    oos_json_end_array(w);
    oos_json_field_array(w, "changes");
    if (moved && result->steps[result->before].plan && result->steps[result->found].plan)
        oos_report_plan_changes(w, result->steps[result->before].plan, result->steps[result->found].plan);
    oos_json_end_array(w);
    oos_json_end_object(w);
    oos_text_put(text, "\n");
}
