/* The public side of bisect: one command over the releases between two, planned here or answered by dry starts that the caller
 * makes. Plans are cheap, so every release is planned; dry starts are asked for by halves. */
#include "api/api.h"
#include "dryrun/dryrun.h"
#include "report/report.h"

enum { STEPS_MAX = 128 };

struct oomsight_bisect {
    oos_arena *arena;
    oos_bisect_result result;
    oos_bisect_step steps[STEPS_MAX];
    oos_version versions[STEPS_MAX];
    oomsight_plan *plans[STEPS_MAX]; /* beside the steps, NULL where there is none */
    bool closed[STEPS_MAX];          /* asked, whatever came of it */
    const oos_version *known;        /* every release that the data has */
    size_t known_count;
};

/* The releases from the older of the two to the newer; those that the caller has, when it names them. */
static oomsight_status steps_gather(oomsight_bisect *bisect, const oomsight_bisect_params *params,
                                    oomsight_error *reterr)
{
    oos_version good, bad, only;
    if (!oos_version_parse(oos_view_of(params->good), &good) ||
        !oos_version_parse(oos_view_of(params->bad), &bad))
        return oos_fail(reterr, OOMSIGHT_USAGE, "good and bad are releases, such as 0.19.1");
    if (good == bad) return oos_fail(reterr, OOMSIGHT_USAGE, "good and bad are the same release");
    oos_version const from = oos_min(good, bad), to = oos_max(good, bad);
    bool ends[2] = {false, false};
    for (size_t i = 0; i < bisect->known_count; i++) {
        oos_version const version = bisect->known[i];
        bool wanted = version >= from && version <= to && bisect->result.count < STEPS_MAX;
        for (size_t j = 0, there = false; wanted && j < params->only_count; j++) {
            there |= oos_version_parse(oos_view_of(params->only[j]), &only) && only == version;
            if (j + 1 == params->only_count) wanted = there;
        }
        if (!wanted) continue;
        char word[32];
        oos_version_print(version, word, sizeof word);
        const char *kept = oos_arena_copy(bisect->arena, oos_view_of(word));
        if (!kept) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a release");
        bisect->versions[bisect->result.count] = version;
        bisect->steps[bisect->result.count++].version = kept;
        ends[0] |= version == good;
        ends[1] |= version == bad;
    }
    for (size_t i = 0; i < 2; i++)
        if (!ends[i])
            return oos_fail(reterr, OOMSIGHT_USAGE,
                            params->only_count ? "%s is not among the engines that were given"
                                               : "%s is not a release that is known: see 'oomsight engines'",
                            i ? params->bad : params->good);
    bisect->result.newer_is_good = good > bad;
    return OOMSIGHT_OK;
}

/* A release for which the command can't be read has no answer; the others still have. */
static oomsight_status step_plan(oomsight_bisect *bisect, size_t index, const oomsight_plan_params *given,
                                 bool helped, oomsight_error *reterr)
{
    oomsight_plan_params params = *given;
    oos_bisect_step *step = &bisect->steps[index];
    params.engine_version = step->version;
    params.skip_fixes = !helped;
    oomsight_error error = {0};
    oomsight_plan_free(bisect->plans[index]);
    bisect->plans[index] = NULL;
    oomsight_status const status = oomsight_plan_create(&params, &bisect->plans[index], &error);
    bisect->closed[index] = true;
    bool const end = index == 0 || index + 1 == bisect->result.count;
    if (status != OOMSIGHT_OK && (end || status == OOMSIGHT_NOMEM)) {
        if (reterr) *reterr = error;
        return status;
    }
    if (status != OOMSIGHT_OK) {
        step->why = oos_arena_copy(bisect->arena, oos_view_of(error.text));
        return OOMSIGHT_OK;
    }
    const oos_plan *plan = oos_api_plan(bisect->plans[index]);
    step->plan = plan;
    step->verdict = plan->answer.verdict;
    step->answered = plan->answer.verdict != OOMSIGHT_VERDICT_UNKNOWN;
    step->starts = oos_answer_starts(plan->answer.verdict, plan->answer.probability);
    step->answer = oos_report_answer_word(plan);
    step->phase =
        step->starts || plan->answer.phase == OOS_PHASE_COUNT ? NULL : oos_phase_word(plan->answer.phase);
    step->why = step->starts ? NULL : plan->answer.why;
    step->kv_tokens = plan->kv.tokens;
    for (size_t i = 0; step->phase && i < plan->phase_count; i++)
        if (plan->phases[i].phase == plan->answer.phase) step->need_bytes = plan->phases[i].peak_bytes;
    return OOMSIGHT_OK;
}

/* The nearest answered step from `from` on, going by `by`; `count` when there is none. */
static size_t answered_from(const oomsight_bisect *bisect, size_t from, int by)
{
    size_t const count = bisect->result.count;
    for (size_t i = from; i < count; i += (size_t)by) /* below 0 it is past the end, too */
        if (bisect->steps[i].answered) return i;
    return count;
}

static bool alike(const oos_bisect_step *one, const oos_bisect_step *other)
{
    if (one->starts != other->starts) return false;
    return one->starts || one->phase == other->phase ||
           (one->phase && other->phase && strcmp(one->phase, other->phase) == 0);
}

/* Where it came to be as it is at the newer end; where both ends are alike, the first turn towards what was asked for: the loss from
 * good to bad, else the first release that is not like the one before it. */
static void find_answer(oomsight_bisect *bisect, size_t first, size_t last)
{
    oos_bisect_result *result = &bisect->result;
    const oos_bisect_step *steps = bisect->steps;
    bool const verdict = steps[first].starts != steps[last].starts;
    bool const differ = !alike(&steps[first], &steps[last]);
    bool found_asked = false;
    for (size_t i = first; i < last;) {
        size_t const next = answered_from(bisect, i + 1, 1);
        bool const turned = steps[i].starts != steps[next].starts;
        bool const here = verdict ? turned : !alike(&steps[i], &steps[next]);
        bool const asked = turned && steps[next].starts == result->newer_is_good;
        if (here && (differ || result->moved == OOS_BISECT_NOTHING || (asked && !found_asked))) {
            found_asked = asked;
            result->moved = turned ? OOS_BISECT_ANSWER : OOS_BISECT_PHASE;
            result->before = i;
            result->found = next;
        }
        i = next;
    }
}

static uint64_t tokens_of(const oos_bisect_step *step)
{
    return step->kv_tokens;
}
static uint64_t need_of(const oos_bisect_step *step)
{
    return step->need_bytes;
}

/* The largest single step of a figure towards what it is at the newer end; where both ends are alike, the largest loss from good to
 * bad, if it is one that counts. */
static void find_figure(oomsight_bisect *bisect, size_t first, size_t last,
                        uint64_t (*figure)(const oos_bisect_step *step), oos_bisect_moved moved)
{
    oos_bisect_result *result = &bisect->result;
    const oos_bisect_step *steps = bisect->steps;
    bool const differ = oos_bisect_apart(figure(&steps[first]), figure(&steps[last]), result->moved_ratio);
    bool const up = differ ? figure(&steps[last]) > figure(&steps[first])
                           : (moved == OOS_BISECT_NEED) != result->newer_is_good;
    uint64_t most = 0;
    for (size_t i = first; i < last;) {
        size_t const next = answered_from(bisect, i + 1, 1);
        uint64_t const from = figure(&steps[i]), to = figure(&steps[next]);
        uint64_t const less = up ? from : to, more = up ? to : from;
        if (more > less && more - less > most &&
            (differ || oos_bisect_apart(from, to, result->moved_ratio))) {
            most = more - less;
            result->before = i;
            result->found = next;
            result->moved = moved;
        }
        i = next;
    }
}

static void find(oomsight_bisect *bisect)
{
    oos_bisect_result *result = &bisect->result;
    result->steps = bisect->steps;
    result->moved = OOS_BISECT_NOTHING;
    result->between = false;
    size_t const first = answered_from(bisect, 0, 1), last = answered_from(bisect, result->count - 1, -1);
    if (first >= last || last >= result->count) return;
    find_answer(bisect, first, last);
    if (result->moved == OOS_BISECT_NOTHING && !bisect->steps[first].starts)
        find_figure(bisect, first, last, need_of, OOS_BISECT_NEED);
    if (result->moved == OOS_BISECT_NOTHING && bisect->steps[first].starts)
        find_figure(bisect, first, last, tokens_of, OOS_BISECT_TOKENS);
    if (result->moved == OOS_BISECT_NOTHING) return;
    for (size_t i = 0; i < bisect->known_count; i++)
        result->between |= bisect->known[i] > bisect->versions[result->before] &&
                           bisect->known[i] < bisect->versions[result->found];
}

oomsight_status oomsight_bisect_create(const oomsight_bisect_params *params, oomsight_bisect **ret_bisect,
                                       oomsight_error *reterr)
{
    OOS_TAKE_PARAMS(oomsight_bisect_params, params);
    if (!params->good || !params->bad || !params->plan || !params->plan->data)
        return oos_fail(reterr, OOMSIGHT_USAGE, "a plan and two releases are needed");
    const oomsight_plan_params *plan = params->plan;
    const oos_engine_facts *facts;
    OOS_TRY(oos_api_facts(plan->data, oos_engine_asked(plan->engine, plan->command, plan->command_count),
                          &facts, reterr));
    oos_arena *arena = oos_arena_create(16 << 10);
    oomsight_bisect *bisect = arena ? OOS_NEW(arena, oomsight_bisect) : NULL;
    if (!bisect) {
        oos_arena_free(arena);
        return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the releases");
    }
    bisect->arena = arena;
    bisect->known_count = oos_rule_book_versions(facts->rules, &bisect->known);
    bisect->result.by_dryrun = params->by_report != 0;
    bisect->result.moved_ratio = params->moved_ratio > 0 ? params->moved_ratio : 0.02;
    bisect->result.good = oos_arena_copy(arena, oos_view_of(params->good));
    bisect->result.bad = oos_arena_copy(arena, oos_view_of(params->bad));
    oomsight_status status = steps_gather(bisect, params, reterr);
    for (size_t i = 0; status == OOMSIGHT_OK && !params->by_report && i < bisect->result.count; i++)
        status = step_plan(bisect, i, params->plan, false, reterr);
    find(bisect);
    /* What helps is looked for where the answer turns, and nowhere else: it takes a hundred plans. */
    const oos_bisect_result *result = &bisect->result;
    size_t const failing =
        result->moved && !bisect->steps[result->found].starts ? result->found : result->before;
    if (status == OOMSIGHT_OK && result->moved && !params->by_report && !bisect->steps[failing].starts)
        status = step_plan(bisect, failing, params->plan, true, reterr);
    status = OOS_WHOLE_STATUS(params, status);
    if (status == OOMSIGHT_OK)
        *ret_bisect = bisect;
    else
        oomsight_bisect_free(bisect);
    return status;
}

void oomsight_bisect_free(oomsight_bisect *bisect)
{
    if (!bisect) return;
    for (size_t i = 0; i < bisect->result.count; i++) oomsight_plan_free(bisect->plans[i]);
    oos_arena_free(bisect->arena);
}

/* Both ends, then the middle of what is still open between two that differ. */
const char *oomsight_bisect_next(const oomsight_bisect *bisect)
{
    size_t const last = bisect->result.count - 1;
    if (!bisect->closed[0]) return bisect->steps[0].version;
    if (!bisect->closed[last]) return bisect->steps[last].version;
    if (bisect->result.moved == OOS_BISECT_NOTHING) return NULL;
    size_t open = 0, from = bisect->result.before, to = bisect->result.found;
    for (size_t i = from + 1; i < to; i++) open += !bisect->closed[i];
    for (size_t i = from + 1, at = 0; i < to; i++)
        if (!bisect->closed[i] && at++ == open / 2) return bisect->steps[i].version;
    return NULL;
}

oomsight_status oomsight_bisect_answer(oomsight_bisect *bisect, const char *version, const char *report,
                                       const char *problem, oomsight_error *reterr)
{
    for (size_t i = 0; i < bisect->result.count; i++) {
        oos_bisect_step *step = &bisect->steps[i];
        oos_dryrun_answer answer = {0};
        if (strcmp(step->version, version) != 0) continue;
        bisect->closed[i] = true;
        step->answered = report && oos_dryrun_report_read(bisect->arena, oos_view_of(report), &answer) &&
                         answer.verdict != OOMSIGHT_VERDICT_UNKNOWN;
        step->verdict = answer.verdict;
        step->starts = answer.verdict == OOMSIGHT_VERDICT_FITS || answer.verdict == OOMSIGHT_VERDICT_TIGHT;
        step->answer = step->starts ? "starts" : "fails";
        step->phase = step->starts ? NULL : answer.phase;
        step->why = step->answered && step->starts ? NULL
                    : answer.why || !problem       ? answer.why
                                                   : oos_arena_copy(bisect->arena, oos_view_of(problem));
        step->kv_tokens = answer.kv_tokens.value;
        find(bisect);
        return OOMSIGHT_OK;
    }
    return oos_fail(reterr, OOMSIGHT_USAGE, "%s was not requested", version);
}

const char *oomsight_bisect_found(const oomsight_bisect *bisect)
{
    const oos_bisect_result *result = &bisect->result;
    return result->moved == OOS_BISECT_NOTHING ? NULL : result->steps[result->found].version;
}

oomsight_status oomsight_bisect_render(const oomsight_bisect *bisect, const oomsight_render_params *params,
                                       char **ret_text, oomsight_error *reterr)
{
    OOS_TAKE_PARAMS(oomsight_render_params, params);
    oos_text text = {0};
    if (params->format == OOMSIGHT_FORMAT_JSON)
        oos_report_bisect_json(&text, &bisect->result);
    else if (params->format == OOMSIGHT_FORMAT_TEXT)
        oos_report_bisect_text(&text, &bisect->result, params);
    else
        return oos_fail(reterr, OOMSIGHT_UNSUPPORTED, "releases are written as text or JSON");
    return OOS_WHOLE_TEXT(params, &text, ret_text);
}
