/* Words that every form of a plan uses. */
#include "report/report.h"
#include "base/json_write.h"
#include "base/locale.h"

#include "command/command.h"

#include <stdio.h>
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

/* The answers that people read: in a sentence, and as a heading. */
static const char *const answers[][2] = {{"will start", "WILL START"},
                                         {"will probably start", "WILL PROBABLY START"},
                                         {"will probably not start", "WILL PROBABLY NOT START"},
                                         {"will not start", "WILL NOT START"},
                                         {"unknown", "UNKNOWN"}};

static size_t answer_of(const oos_plan *plan)
{
    switch (plan->answer.verdict) {
    case OOMSIGHT_VERDICT_FITS: return 0;
    case OOMSIGHT_VERDICT_TIGHT: return oos_plan_likely(plan) ? 1 : 2;
    case OOMSIGHT_VERDICT_FAILS:
    case OOMSIGHT_VERDICT_REFUSED: return 3;
    case OOMSIGHT_VERDICT_UNKNOWN: break;
    }
    return 4;
}

const char *oos_report_answer_word(const oos_plan *plan)
{
    return answers[answer_of(plan)][0];
}

const char *oos_report_answer_heading(const oos_plan *plan)
{
    return answers[answer_of(plan)][1];
}

/* Why it does not start in few words, by the phase that decides; where it will probably start, what is tightest. */
void oos_report_reason(const oos_plan *plan, char *ret_words, size_t size)
{
    static const char unknown[] = "Cannot determine: ";
    const char *where = oos_report_where(plan->answer.phase), *why = plan->answer.why ? plan->answer.why : "";
    size_t const len = strlen(why);
    ret_words[0] = '\0';
    if (plan->answer.verdict == OOMSIGHT_VERDICT_UNKNOWN && len) {
        bool const marked = strncmp(why, unknown, sizeof unknown - 1) == 0;
        size_t const from = marked ? sizeof unknown - 1 : 0;
        snprintf(ret_words, size, "%.*s", (int)(len - from) - (why[len - 1] == '.'), why + from);
    }
    if (plan->host_short && plan->answer.verdict == OOMSIGHT_VERDICT_TIGHT && !oos_plan_likely(plan))
        snprintf(ret_words, size, "not enough host memory");
    else if (plan->answer.parted && !plan->refusal.sentence)
        snprintf(ret_words, size, "%s", plan->answer.parted);
    if (*ret_words || plan->answer.phase == OOS_PHASE_COUNT || plan->answer.verdict == OOMSIGHT_VERDICT_FITS)
        return;
    if (plan->answer.verdict == OOMSIGHT_VERDICT_TIGHT && oos_plan_likely(plan)) {
        snprintf(ret_words, size, "the tightest point is %s", oos_report_point(plan->answer.phase));
        return;
    }
    bool const refused = plan->answer.verdict == OOMSIGHT_VERDICT_REFUSED;
    if (plan->refusal.sentence || plan->answer.phase == OOS_PHASE_ARGUMENTS ||
        plan->answer.phase == OOS_PHASE_ENV || (refused && plan->answer.cause == OOS_CAUSE_CONFIG))
        snprintf(ret_words, size, "%s rejects this configuration", plan->engine->title);
    else if (plan->answer.phase == OOS_PHASE_INIT_FREE_MEMORY_CHECK)
        snprintf(ret_words, size, "not enough free memory at start");
    else if (plan->answer.phase == OOS_PHASE_KV_SIZING && plan->answer.cause == OOS_CAUSE_CONTEXT)
        snprintf(ret_words, size, "not enough KV cache for one request");
    else if (plan->answer.phase == OOS_PHASE_KV_SIZING && plan->answer.cause == OOS_CAUSE_STATE_SLOTS)
        snprintf(ret_words, size, "not enough state blocks for max_num_seqs");
    else if (plan->answer.phase == OOS_PHASE_KV_SIZING && refused)
        snprintf(ret_words, size, "no memory left for the KV cache");
    else
        snprintf(ret_words, size, "out of memory %s", where);
}

bool oos_report_chance(const oos_plan *plan, char *ret_words, size_t size)
{
    unsigned const tenths =
        (unsigned)(10 * (plan->answer.probability > 0 ? plan->answer.probability : 0) + 0.5);
    ret_words[0] = '\0';
    /* about one in two says nothing */
    if (plan->answer.verdict != OOMSIGHT_VERDICT_TIGHT || plan->answer.phase == OOS_PHASE_COUNT ||
        plan->answer.parted || (tenths > 3 && tenths < 7))
        return false;
    snprintf(ret_words, size, "(%u %% chance)", 10 * tenths);
    return true;
}

void oos_report_probability_json(oos_json_writer *w, const char *key, double probability)
{
    if (probability < 0)
        oos_json_field_str(w, key, NULL);
    else
        oos_json_field_f64(w, key, probability);
}

const char *oos_report_checkpoint(const oos_needs *needs, char *words, size_t size)
{
    char tokens[40];
    if (!needs->checkpoint_bytes) return NULL;
    oos_style_count(tokens, sizeof tokens, needs->checkpoint_tokens);
    oos_format(words, size, "about %.1f GiB: 4 bit, leaves %s tokens", oos_gib(needs->checkpoint_bytes),
               tokens);
    return words;
}

const char *oos_report_named(const oos_need_checkpoint *need, char *words, size_t size)
{
    double const gib = oos_gib(need->weights_bytes);
    char tokens[40];
    oos_style_count(tokens, sizeof tokens, need->fix.kv_tokens);
    if (need->fix.verdict == OOMSIGHT_VERDICT_UNKNOWN)
        oos_format(words, size, "this GPU with %.120s (%.1f GiB)", need->id, gib);
    else if (need->fix.verdict == OOMSIGHT_VERDICT_FITS)
        oos_format(words, size, "this GPU with %.120s (%.1f GiB, %s KV tokens)", need->id, gib, tokens);
    else
        oos_format(words, size, "this GPU with %.120s (%.1f GiB, %s KV tokens; not certain)", need->id, gib,
                   tokens);
    return words;
}

void oos_report_change(oos_text *text, const oos_fix *fix)
{
    if (fix->model) oos_serve_quote(text, fix->model);
    for (size_t i = 0; i < fix->change_count; i++) {
        if (i || fix->model) oos_text_put(text, " ");
        oos_serve_quote(text, fix->change[i]);
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
