/* An answer in words: flags, what is lost, how long requests may be. */
#include "engines/sglang/sglang.h"

#include <inttypes.h>

typedef struct saying {
    sglang_search *s;
    const char **words;
    size_t count;
    const char *gives_up; /* NULL: nothing yet */
    oos_rung rung;
    bool failed;
} saying;

static void word(saying *w, const char *text)
{
    if (!text || w->count == WORDS_MAX)
        w->failed = true;
    else
        w->words[w->count++] = text;
}

static void price(saying *w, oos_rung rung, const char *text)
{
    w->gives_up = w->gives_up && text ? oos_arena_format(w->s->arena, "%s; %s", w->gives_up, text) : text;
    w->failed |= !w->gives_up;
    if (rung > w->rung && rung < OOS_RUNG_COUNT) w->rung = rung;
}

static const char *number(saying *w, uint64_t value)
{
    return oos_arena_format(w->s->arena, "%" PRIu64, value);
}

static void say_lever(saying *w, const sglang_point *p, sglang_lever which)
{
    sglang_search *s = w->s;
    uint64_t const value = sglang_value_at(s, p, which);
    oos_rung const rung = sglang_rung_of(s, sglang_levers[which].id);
    const char *cost = sglang_cost_of(s, sglang_levers[which].id);
    const char *flag = sglang_levers[which].flag;
    if (which == LEVER_GRAPHS && !oos_flags_find(&s->facts->flags, oos_view_of(flag), s->start->version).here)
        flag = "--cuda-graph-max-bs";
    word(w, flag);
    switch (which) {
    case LEVER_KV: word(w, "fp8_e4m3"); break;
    case LEVER_WEIGHTS: word(w, "fp8"); break;
    case LEVER_EAGER: break;
    case LEVER_GRAPHS:
        word(w, number(w, value));
        cost =
            oos_arena_format(s->arena, "no CUDA graphs for more than %" PRIu64 " concurrent requests", value);
        break;
    case LEVER_REQUESTS:
        word(w, number(w, value));
        cost = oos_arena_format(s->arena, "at most %" PRIu64 " concurrent requests", value);
        break;
    case LEVER_CONTEXT:
        word(w, number(w, value));
        cost = oos_arena_format(s->arena, "no requests longer than %" PRIu64 " tokens", value);
        break;
    case LEVER_CHUNK:
    case LEVER_PARALLEL:
    case LEVERS: word(w, number(w, value)); break;
    }
    price(w, rung, cost);
}

static void say_fraction(saying *w, const sglang_point *p)
{
    bool const higher = p->fraction / 100.0 > sglang_of(w->s->plan)->static_fraction;
    const char *id = higher ? "fraction_up" : "fraction_down";
    word(w, "--mem-fraction-static");
    word(w, oos_arena_format(w->s->arena, "%.2f", p->fraction / 100.0));
    price(w, sglang_rung_of(w->s, id), sglang_cost_of(w->s, id));
}

/* What was not touched; NULL: no memory. */
static const char *kept(const sglang_search *s, const sglang_point *p, bool length)
{
    bool const graphs = !sglang_of(s->plan)->eager && !p->at[LEVER_GRAPHS] && !p->at[LEVER_EAGER];
    const char *const all[] = {length && !p->at[LEVER_CONTEXT] ? "context length" : "",
                               p->at[LEVER_REQUESTS] ? "" : "concurrent requests",
                               graphs ? "CUDA graphs" : ""};
    const char *text = "";
    for (size_t i = 0; text && i < sizeof all / sizeof *all; i++)
        if (all[i][0]) text = oos_arena_format(s->arena, "%s%s%s", text, *text ? ", " : "", all[i]);
    return text && !*text ? "the model" : text;
}

bool sglang_offer(sglang_search *s, const sglang_point *p, const char *name)
{
    oos_plan plan;
    if (s->count == FIXES_MAX || sglang_try(s, p, &plan) != FIT_GOOD) return true;
    uint64_t const length = sglang_of(&plan)->context_length, held = oos_min(plan.kv.tokens, length);
    saying w = {.s = s, .words = OOS_NEW_ARRAY(s->arena, const char *, WORDS_MAX)};
    oos_fix fix = {.verdict = plan.answer.verdict,
                   .probability = plan.answer.probability,
                   .phase = plan.answer.phase,
                   .kv_tokens = plan.kv.tokens,
                   .name = name,
                   .requests = plan.kv.tokens / oos_max(1, oos_min(length, USUAL_TOKENS)),
                   .request_tokens = oos_min(length, USUAL_TOKENS),
                   .likely_length = held,
                   .certain_length = plan.answer.verdict == OOMSIGHT_VERDICT_FITS ? held : 0};
    fix.requests = oos_min(fix.requests, sglang_of(&plan)->max_running_requests);
    if (!w.words) return false;
    if (s->mended.known && !p->at[LEVER_CONTEXT]) {
        word(&w, "--context-length");
        word(&w, number(&w, s->mended.value));
        price(&w, OOS_RUNG_NOTHING,
              oos_arena_format(s->arena, "no requests longer than %" PRIu64 " tokens", s->mended.value));
    }
    for (size_t i = 0; i < LEVERS; i++)
        if (p->at[i]) say_lever(&w, p, (sglang_lever)i);
    if (p->fraction) say_fraction(&w, p);
    if (held < length) {
        oos_rung const rung = sglang_rung_of(s, "context");
        price(&w, rung, oos_arena_format(s->arena, "no requests of more than %" PRIu64 " tokens", held));
    }
    fix.change = w.words;
    fix.change_count = w.count;
    fix.rung = w.rung;
    fix.gives_up = w.gives_up ? w.gives_up : "none";
    fix.keeps = kept(s, p, held >= length);
    w.failed |= !fix.keeps;
    if (!w.failed) s->fixes[s->count++] = fix;
    return !w.failed;
}
