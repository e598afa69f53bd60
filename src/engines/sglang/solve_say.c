/* An answer in words: flags, what is lost, how long requests may be. */
#include "engines/sglang/sglang.h"

#include <inttypes.h>

static void reach(oos_trial *t, oos_rung rung)
{
    if (rung > t->rung && rung < OOS_RUNG_COUNT) t->rung = rung;
}

static void say_lever(oos_saying *w, sglang_lever which, uint64_t value)
{
    oos_lever_words words = oos_sglang_levers[which];
    const sglang_search *s = w->s->of;
    if (which == LEVER_GRAPHS &&
        !oos_flags_find(&s->facts->flags, oos_view_of(words.flag), w->s->version).here)
        words.flag = "--cuda-graph-max-bs";
    oos_say_lever(w, &words, value);
    reach(w->t, oos_trial_rung(w->s, words.id));
}

static void say_fraction(oos_saying *w, const oos_point *p)
{
    bool const higher = sglang_share_said(p->share) > sglang_of(w->s->plan)->static_fraction;
    const char *id = higher ? "fraction_up" : "fraction_down";
    oos_say_word(w, "--mem-fraction-static");
    oos_say_word(w, oos_arena_format(w->s->arena, "%.2f", sglang_share_said(p->share)));
    oos_say_lost(w, oos_trial_cost(w->s, id));
    reach(w->t, oos_trial_rung(w->s, id));
}

bool oos_sglang_offer(oos_search *search, const oos_levers *levers, const oos_answer *answer)
{
    const oos_mended mended = search->mended;
    const oos_point *p = &answer->point;
    oos_trial t = {0};
    oos_plan plan;
    oos_saying w = {.s = search, .t = &t};
    if (search->count == FIXES_MAX || oos_sglang_try(search->of, levers, p, &plan) != OOS_SIDE_FITS)
        return true;
    oos_sglang_tell(&plan, &t);
    uint64_t const held = oos_min(t.kv_tokens, t.length), usual = oos_min(t.length, OOS_USUAL_TOKENS);
    bool const graphs = !sglang_of(search->plan)->eager && !p->at[LEVER_GRAPHS] && !p->at[LEVER_EAGER];
    for (size_t i = 0; i < LEVERS; i++)
        if (p->at[i]) say_lever(&w, (sglang_lever)i, oos_point_value(levers, p, (unsigned)i));
    if (p->share) say_fraction(&w, p);
    if (held < t.length) {
        oos_say_lost(&w,
                     oos_arena_format(search->arena, "no requests of more than %" PRIu64 " tokens", held));
        reach(&t, oos_trial_rung(search, "context"));
    }
    t.keeps = oos_say_kept(search, held >= t.length && !p->at[LEVER_CONTEXT], !p->at[LEVER_REQUESTS],
                           graphs ? "CUDA graphs" : "");
    if (p->at[LEVER_CONTEXT]) search->mended = (oos_mended){0}; /* a length is said once */
    if (!t.gives_up && !search->mended.gives_up) t.gives_up = "none";
    oos_reached const reached = {
        .certain_length = t.verdict == OOMSIGHT_VERDICT_FITS ? held : 0,
        .likely_length = held,
        .requests = oos_min(t.kv_tokens / oos_max(1, usual), sglang_of(&plan)->max_running_requests),
        .request_tokens = usual};
    bool const enough_memory = !w.failed && t.keeps && oos_answer_offer(search, &t, answer, &reached);
    search->mended = mended;
    return enough_memory;
}
