/* vLLM's levers: in which order they are tried and let go, how far down the ladder, and an answer as a fix. The search is in
 * plan/search.c. */
#include "engines/vllm/solve/solve.h"

static const uint8_t let_go[] = {OOS_LEVER_TEXT,  OOS_LEVER_MEDIA,   OOS_LEVER_GRAPHS,  OOS_LEVER_KV,
                                 OOS_LEVER_SEQS,  OOS_LEVER_LORAS,   OOS_LEVER_WEIGHTS, OOS_LEVER_TOKENS,
                                 OOS_LEVER_SLEEP, OOS_LEVER_BACKEND, OOS_LEVER_PARALLEL};

static oos_side plan(oos_search *s, const oos_levers *levers, const oos_point *point, oos_trial *ret_trial)
{
    *ret_trial = oos_point_start(s, levers, point);
    return oos_trial_plan(s, ret_trial) ? oos_trial_side(s, ret_trial) : OOS_SIDE_NEITHER;
}

/* ---- why each flag is there ------------------------------------------------------------------------------------------ */

/* The first answer without one of its flags: the phase that then fails is what the flag is there for. */
static void note_later(oos_search *s, const oos_levers *levers, const oos_point *point)
{
    static const struct {
        oos_lever lever;
        const char *flag;
    } flags[] = {{OOS_LEVER_BUDGET, "--gpu-memory-utilization"},
                 {OOS_LEVER_LENGTH, "--max-model-len"},
                 {OOS_LEVER_SEQS, "--max-num-seqs"},
                 {OOS_LEVER_TOKENS, "--max-num-batched-tokens"},
                 {OOS_LEVER_KV, "--kv-cache-dtype"},
                 {OOS_LEVER_GRAPHS, "--enforce-eager"}};
    for (size_t i = 0; i < sizeof flags / sizeof *flags && s->later_count < OOS_LATER_MAX; i++) {
        oos_point less = *point;
        oos_trial t;
        less.at[flags[i].lever] = 0;
        if (flags[i].lever == OOS_LEVER_GRAPHS &&
            oos_point_value(levers, point, OOS_LEVER_GRAPHS) != OOS_EAGER)
            continue; /* fewer graphs */
        if (flags[i].lever == OOS_LEVER_BUDGET) less.share = 0;
        if (flags[i].lever == OOS_LEVER_LENGTH) less.length = 0;
        bool const same = memcmp(less.at, point->at, sizeof less.at) == 0 && less.share == point->share &&
                          less.length == point->length;
        if (same || plan(s, levers, &less, &t) == OOS_SIDE_FITS) continue;
        s->later_flags[s->later_count] = flags[i].flag;
        s->later_phases[s->later_count++] = t.phase;
    }
}

static bool offer(oos_search *s, const oos_levers *levers, const oos_answer *a)
{
    oos_trial t;
    if (plan(s, levers, &a->point, &t) != OOS_SIDE_FITS) return true;
    if (s->count == 0) note_later(s, levers, &a->point);
    if (!oos_point_say(s, levers, &a->point, &t)) return false;
    oos_reached const reached = {.certain_length = s->tight_too ? 0 : a->length,
                                 .likely_length = a->likely_length,
                                 .requests = a->requests,
                                 .request_tokens = oos_min(levers->most, OOS_USUAL_TOKENS)};
    return oos_answer_offer(s, &t, a, &reached);
}

/* ---- down the ladder ------------------------------------------------------------------------------------------------- */

/* Rungs of flags first with a length that one can work with; then with any. Of what is left: GPUs that are idle, text alone, weights of
 * fewer bits, no graphs, weights in host memory. */
static const oos_stage stages[] = {
#define WITH(...)                                                                                            \
    {.rung = OOS_RUNG_ASKED, .tokens = OOS_USUAL_TOKENS, __VA_ARGS__},                                       \
    {                                                                                                        \
        .rung = OOS_RUNG_ASKED, .tokens = OOS_LEAST_TOKENS, __VA_ARGS__                                      \
    }
    {.rung = OOS_RUNG_NOTHING, .tokens = OOS_USUAL_TOKENS},
    {.rung = OOS_RUNG_UNASKED, .tokens = OOS_USUAL_TOKENS},
    {.rung = OOS_RUNG_LITTLE, .tokens = OOS_USUAL_TOKENS},
    {.rung = OOS_RUNG_ASKED, .tokens = OOS_USUAL_TOKENS},
    {.rung = OOS_RUNG_UNASKED, .tokens = OOS_LEAST_TOKENS},
    {.rung = OOS_RUNG_LITTLE, .tokens = OOS_LEAST_TOKENS},
    {.rung = OOS_RUNG_ASKED, .tokens = OOS_LEAST_TOKENS},
    WITH(.parallel = true),
    WITH(.text = true),
    WITH(.parallel = true, .way = OOS_WEIGHTS_FP8),
    WITH(.parallel = true, .way = OOS_WEIGHTS_BNB),
    WITH(.parallel = true, .text = true, .way = OOS_WEIGHTS_FP8),
    WITH(.parallel = true, .text = true, .eager = true, .last = true),
    WITH(.parallel = true, .text = true, .eager = true, .last = true, .way = OOS_WEIGHTS_FP8),
    WITH(.parallel = true, .text = true, .eager = true, .last = true, .way = OOS_WEIGHTS_BNB),
    WITH(.parallel = true, .last = true, .way = OOS_WEIGHTS_OFFLOAD, .chosen = true),
    WITH(.parallel = true, .text = true, .eager = true, .last = true, .way = OOS_WEIGHTS_OFFLOAD,
         .chosen = true),
#undef WITH
};
enum { STAGES = sizeof stages / sizeof *stages };

/* Stages between which it is not worth while to be certain: with each of these groups everything is tried again where it is tight. */
static const size_t groups[] = {3, 4, 7, STAGES};

const oos_lever_table oos_vllm_levers = {.stages = stages,
                                         .groups = groups,
                                         .group_count = sizeof groups / sizeof *groups,
                                         .let_go = let_go,
                                         .let_go_count = sizeof let_go / sizeof *let_go,
                                         .share = OOS_LEVER_BUDGET,
                                         .length = OOS_LEVER_LENGTH,
                                         .forced = OOS_LEVER_WEIGHTS,
                                         .cache = OOS_LEVER_KV,
                                         .context = OOS_LEVERS_MAX,
                                         .eager = OOS_LEVERS_MAX,
                                         .step = OOS_LEVER_TOKENS,
                                         .requests = OOS_LEVER_SEQS,
                                         .kept = {OOS_LEVER_GRAPHS, OOS_LEVER_TEXT},
                                         .sizes_max = OOS_LEVERS_MAX,
                                         .levers_of = oos_levers_of,
                                         .plan = plan,
                                         .rung = oos_point_rung,
                                         .price = oos_point_price,
                                         .offer = offer,
                                         .is_given = oos_vllm_is_given,
                                         .starts_with = oos_vllm_starts_with,
                                         .unmeasured = true,
                                         .plan_mended = oos_vllm_plan_mended,
                                         .mends_add = oos_vllm_mends_add,
                                         .is_held_down = oos_vllm_is_held_down};
