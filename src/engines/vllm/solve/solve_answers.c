/* Answers by the rungs of the ladder: a rung is gone down to only where nothing above it starts. Within one the least change has the
 * fewest flags; with every lever at its strongest the longest length is known, and each is let go as far as that length allows, the
 * dearest first. */
#include "engines/vllm/solve/solve.h"

/* The dearest first; the length and the budget are found by themselves. */
static const oos_lever let_go[] = {OOS_LEVER_TEXT,    OOS_LEVER_MEDIA,   OOS_LEVER_GRAPHS, OOS_LEVER_KV,
                                   OOS_LEVER_SEQS,    OOS_LEVER_WEIGHTS, OOS_LEVER_TOKENS, OOS_LEVER_SLEEP,
                                   OOS_LEVER_BACKEND, OOS_LEVER_PARALLEL};

typedef struct hunt {
    oos_search *s;
    oos_levers levers;
    oos_stage stage;
    bool forced; /* weights are made smaller: that lever always stands */
} hunt;

typedef struct answer {
    const char *name;
    oos_lever_point point;
    unsigned flags, price;
    oos_rung rung;
    uint64_t length, likely_length, requests;
    bool found;
} answer;

static bool holds(unsigned mask, oos_lever lever)
{
    return mask & 1U << lever;
}

static bool fits_at(hunt *h, const oos_lever_point *point, oos_trial *ret_trial)
{
    *ret_trial = oos_point_start(h->s, &h->levers, point);
    return oos_trial_plan(h->s, ret_trial) && oos_trial_fits(h->s, ret_trial);
}

/* With some budget: the command's own, the one that stands, and if `free` any other. The point is left at the first that does. */
static bool fits_somewhere(hunt *h, oos_lever_point *point, bool free, oos_trial *ret_trial)
{
    if (!free) return fits_at(h, point, ret_trial);
    *ret_trial = oos_point_start(h->s, &h->levers, point);
    oos_budget b = oos_budget_of(h->s, ret_trial, NULL);
    b.lowest = h->levers.lowest;
    return oos_budget_find(&b, point->budget, &point->budget);
}

static oos_lever_point strongest(const hunt *h, unsigned mask)
{
    oos_lever_point point = {.length = holds(mask, OOS_LEVER_LENGTH) ? h->levers.least : 0};
    for (size_t i = 0; i < OOS_LEVER_COUNT; i++)
        if (holds(mask, (oos_lever)i) && i != OOS_LEVER_BUDGET && i != OOS_LEVER_LENGTH)
            point.at[i] = (uint8_t)(h->levers.counts[i] - 1);
    uint64_t const seqs = oos_point_seqs(h->s, &h->levers, &point);
    while (point.at[OOS_LEVER_TOKENS] && oos_point_value(&h->levers, &point, OOS_LEVER_TOKENS) < seqs)
        point.at[OOS_LEVER_TOKENS]--; /* a step has a token of each */
    if (h->forced) point.at[OOS_LEVER_WEIGHTS] = (uint8_t)(h->levers.counts[OOS_LEVER_WEIGHTS] - 1);
    return point;
}

/* The largest budget leaves the most for the cache, and the one next to the command's own is the least change. */
static void move_budget(hunt *h, oos_lever_point *point, uint64_t (*to)(oos_budget *b, uint64_t share))
{
    oos_trial t = oos_point_start(h->s, &h->levers, point);
    oos_budget b = oos_budget_of(h->s, &t, NULL);
    point->budget = to(&b, point->budget);
}

/* The longest length, if `free` with the largest budget; the point is left there. */
static void lengthen(hunt *h, oos_lever_point *point, bool free)
{
    if (point->length >= h->levers.most) return;
    if (free) move_budget(h, point, oos_budget_highest);
    oos_trial t = oos_point_start(h->s, &h->levers, point);
    uint64_t const length = oos_trial_longest(h->s, &t, point->length, h->levers.most);
    if (length > point->length) point->length = length;
}

/* Between the value of the list that fits and the next weaker one, which does not: the weakest number that does. */
static void refine(hunt *h, oos_lever_point *point, oos_lever lever)
{
    uint64_t const step = oos_point_step(&h->levers, point, lever);
    if (!step) return;
    uint64_t good = oos_point_value(&h->levers, point, lever) / step,
             bad = oos_cdiv(h->levers.values[lever][point->at[lever] - 1], step);
    while (bad > good + 1) {
        uint64_t const middle = good + (bad - good) / 2;
        oos_lever_point trial = *point;
        oos_trial t;
        trial.exact[lever] = middle * step;
        if (fits_at(h, &trial, &t))
            *point = trial, good = middle;
        else
            bad = middle;
    }
}

/* Let go of every lever as far as the length stays, or nearly. */
static void relax(hunt *h, oos_lever_point *point, unsigned mask)
{
    uint64_t const reached = point->length;
    bool const free = holds(mask, OOS_LEVER_BUDGET);
    if (reached && reached < h->levers.most)
        point->length = oos_min(reached, oos_round_up(oos_max(h->levers.least, reached - reached / 64),
                                                      oos_trial_step(h->s, "model_len")));
    for (size_t i = 0; i < sizeof let_go / sizeof *let_go; i++) {
        oos_lever const lever = let_go[i];
        size_t const from = lever == OOS_LEVER_WEIGHTS && h->forced ? 1 : 0;
        for (size_t at = from; at < point->at[lever]; at++) {
            oos_lever_point trial = *point;
            oos_trial t;
            trial.at[lever] = (uint8_t)at;
            if (!fits_somewhere(h, &trial, free, &t)) continue;
            *point = trial;
            break;
        }
    }
    if (free && point->budget) move_budget(h, point, oos_budget_nearest);
    for (size_t i = 0; i < sizeof let_go / sizeof *let_go; i++) refine(h, point, let_go[i]);
    if (reached) lengthen(h, point, false);
}

static unsigned flags_of(const hunt *h, const oos_lever_point *point)
{
    unsigned count = point->length && point->length < h->levers.most;
    count += point->budget != 0;
    for (size_t i = 0; i < OOS_LEVER_LENGTH; i++) count += point->at[i] != 0;
    return count;
}

/* What a point gives: its certain and its likely length, and how many requests of a usual length run at once. */
static void measure(hunt *h, answer *a)
{
    oos_trial t;
    uint64_t const usual = oos_min(h->levers.most, OOS_USUAL_TOKENS);
    a->found = fits_at(h, &a->point, &t);
    if (!a->found) return;
    a->length = a->point.length ? a->point.length : h->levers.most;
    a->rung = oos_point_rung(h->s, &h->levers, &a->point);
    a->requests = oos_min(oos_point_seqs(h->s, &h->levers, &a->point), t.kv_tokens / oos_max(1, usual));
    a->flags = flags_of(h, &a->point);
    a->found = a->flags > 0;
    a->price = oos_point_price(&h->levers, &a->point);
}

static void likely_length(hunt *h, answer *a)
{
    bool const before = h->s->tight_too;
    oos_lever_point point = a->point;
    a->likely_length = a->length;
    if (a->length >= h->levers.most) return;
    h->s->tight_too = true;
    lengthen(h, &point, false);
    h->s->tight_too = before;
    a->likely_length = oos_max(a->length, point.length);
}

static answer settle(hunt *h, unsigned mask, oos_lever_point point)
{
    answer a = {.point = point};
    if (holds(mask, OOS_LEVER_LENGTH)) lengthen(h, &a.point, holds(mask, OOS_LEVER_BUDGET));
    relax(h, &a.point, mask);
    if (a.point.length >= h->levers.most) a.point.length = 0;
    measure(h, &a);
    return a;
}

static unsigned bits(unsigned mask)
{
    unsigned count = 0;
    for (; mask; mask &= mask - 1) count++;
    return count;
}

/* The levers that can be moved at all. */
static unsigned movable(const hunt *h)
{
    unsigned mask = 0;
    for (size_t i = 0; i < OOS_LEVER_COUNT; i++)
        if (h->levers.counts[i] > 1 && i != OOS_LEVER_WEIGHTS) mask |= 1U << i;
    return mask;
}

static bool better(const answer *a, const answer *b)
{
    if (!a->found || !b->found) return a->found;
    return a->rung != b->rung     ? a->rung < b->rung
           : a->flags != b->flags ? a->flags < b->flags
           : a->price != b->price ? a->price < b->price
                                  : a->length > b->length;
}

/* All choices of `count` levers, and of those that can do it the one that costs least. */
static answer least_of(hunt *h, unsigned count, unsigned allowed)
{
    answer best = {0};
    for (unsigned mask = allowed;; mask = (mask - 1) & allowed) {
        oos_trial t;
        if (bits(mask) == count) {
            oos_lever_point point = strongest(h, mask);
            if (fits_somewhere(h, &point, holds(mask, OOS_LEVER_BUDGET), &t)) {
                answer const a = settle(h, mask, point);
                if (better(&a, &best)) best = a;
            }
        }
        if (mask == 0) break;
    }
    return best;
}

static answer least_change(hunt *h)
{
    unsigned const allowed = movable(h);
    answer best = {0};
    for (unsigned count = h->forced ? 0 : 1; count <= bits(allowed) && !best.found; count++)
        best = least_of(h, count, allowed);
    best.name = "least_change";
    return best;
}

/* A smaller cache entry may bring another backend, and its workspace: the model's own is looked at, too. */
static answer longest_context(hunt *h)
{
    unsigned const all = movable(h), own = all & ~(1U << OOS_LEVER_KV);
    answer best = {0};
    for (unsigned i = 0; i < 2 && (i == 0 || own != all) && best.length < h->levers.most; i++) {
        unsigned const mask = i ? own : all;
        oos_lever_point point = strongest(h, mask);
        oos_trial t;
        if (!fits_somewhere(h, &point, holds(mask, OOS_LEVER_BUDGET), &t)) continue;
        answer const a = settle(h, mask, point);
        if (a.found && a.length > best.length) best = a;
    }
    best.name = "longest_context";
    return best;
}

/* Most of a usual length at once: every budget and number of sequences, with graphs where it starts with them. */
static answer most_requests(hunt *h)
{
    static const oos_lever kept[] = {OOS_LEVER_GRAPHS, OOS_LEVER_TEXT};
    answer best = {0};
    for (unsigned less = 0; less < 4 && !best.found; less++) {
        oos_lever_point point = strongest(h, movable(h));
        for (unsigned k = 0; k < 2; k++)
            if (!(less & 1U << k)) point.at[kept[k]] = 0;
        for (size_t seqs = 0; seqs < h->levers.counts[OOS_LEVER_SEQS]; seqs++) {
            answer a = {.point = point};
            oos_trial t;
            a.point.at[OOS_LEVER_SEQS] = (uint8_t)seqs;
            if (best.found && best.requests >= oos_point_seqs(h->s, &h->levers, &a.point)) break;
            if (!fits_somewhere(h, &a.point, true, &t)) continue;
            move_budget(h, &a.point, oos_budget_highest);
            measure(h, &a);
            if (a.found && (!best.found || a.requests > best.requests)) best = a;
        }
    }
    uint64_t const enough = best.requests - best.requests / 10;
    for (size_t i = 0; best.found && i < sizeof let_go / sizeof *let_go; i++) {
        oos_lever const lever = let_go[i];
        size_t const from = lever == OOS_LEVER_WEIGHTS && h->forced ? 1 : 0;
        for (size_t at = from; at < best.point.at[lever]; at++) {
            answer a = {.point = best.point};
            a.point.at[lever] = (uint8_t)at;
            measure(h, &a);
            if (!a.found || a.requests < enough) continue;
            best = a;
            break;
        }
    }
    if (best.found && best.point.length) {
        lengthen(h, &best.point, false);
        if (best.point.length >= h->levers.most) best.point.length = 0;
        measure(h, &best);
    }
    best.name = "most_requests";
    return best;
}

/* ---- why each flag is there ------------------------------------------------------------------------------------------ */

/* The first answer without one of its flags: the phase that then fails is what the flag is there for. */
static void note_later(hunt *h, const oos_lever_point *point)
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
    oos_search *s = h->s;
    for (size_t i = 0; i < sizeof flags / sizeof *flags && s->later_count < OOS_LATER_MAX; i++) {
        oos_lever_point less = *point;
        oos_trial t;
        less.at[flags[i].lever] = 0;
        if (flags[i].lever == OOS_LEVER_GRAPHS && oos_point_step(&h->levers, point, OOS_LEVER_GRAPHS))
            continue; /* fewer graphs */
        if (flags[i].lever == OOS_LEVER_BUDGET) less.budget = 0;
        if (flags[i].lever == OOS_LEVER_LENGTH) less.length = 0;
        bool const same = memcmp(less.at, point->at, sizeof less.at) == 0 && less.budget == point->budget &&
                          less.length == point->length;
        if (same || fits_at(h, &less, &t)) continue;
        s->later_flags[s->later_count] = flags[i].flag;
        s->later_phases[s->later_count++] = t.phase;
    }
}

/* ---- offering ----------------------------------------------------------------------------------------------------- */

static bool offer(hunt *h, answer *a)
{
    oos_search *s = h->s;
    oos_trial t;
    if (s->count == OOS_FIXES_MAX) return true;
    likely_length(h, a);
    if (!fits_at(h, &a->point, &t)) return true;
    if (s->count == 0) note_later(h, &a->point);
    if (!oos_point_say(s, &h->levers, &a->point, &t)) return false;
    if (!oos_trial_offer(s, &t)) return false;
    oos_fix *fix = &s->fixes[s->count - 1];
    fix->name = a->name;
    fix->certain_length = s->tight_too ? 0 : a->length;
    fix->likely_length = a->likely_length;
    fix->requests = a->requests;
    fix->request_tokens = oos_min(h->levers.most, OOS_USUAL_TOKENS);
    return true;
}

/* Another answer earns its name by giving more of what it is called. */
static bool offer_all(hunt *h, answer *least, hunt *wide, answer *longest, answer *most)
{
    bool const longer = longest->found && longest->length > least->length + least->length / 20;
    uint64_t const requests = oos_max(least->requests, longer ? longest->requests : 0);
    bool const more = most->found && most->requests > requests + requests / 10;
    if (least->found && !offer(h, least)) return false;
    if (longer && !offer(wide, longest)) return false;
    return !more || h->s->count == OOS_ANSWERS_MAX || offer(wide, most);
}

/* No more of the weights in host memory than a usual length needs: they slow every step. */
static void choose_offload(hunt *h)
{
    size_t *count = &h->levers.counts[OOS_LEVER_WEIGHTS];
    uint64_t *values = h->levers.values[OOS_LEVER_WEIGHTS];
    for (unsigned mask = 0; mask <= 1; mask++)
        for (size_t at = 1; at < *count; at++) {
            oos_lever_point point = strongest(h, mask ? movable(h) : 0);
            oos_trial t;
            point.at[OOS_LEVER_WEIGHTS] = (uint8_t)at;
            point.length = oos_min(h->levers.most, OOS_USUAL_TOKENS);
            if (!fits_somewhere(h, &point, mask, &t)) continue;
            values[1] = values[at];
            *count = 2;
            return;
        }
}

/* ---- down the ladder ------------------------------------------------------------------------------------------------- */

/* Rungs of flags first with a length that one can work with; then with any. Of what is left: GPUs that are idle, text alone, weights of
 * fewer bits, no graphs, weights in host memory. */
static const oos_stage stages[] = {
#define WITH(...)                                                                                            \
    {.rung = OOS_RUNG_ASKED, .usable = true, __VA_ARGS__},                                                   \
    {                                                                                                        \
        .rung = OOS_RUNG_ASKED, __VA_ARGS__                                                                  \
    }
    {.rung = OOS_RUNG_NOTHING, .usable = true},
    {.rung = OOS_RUNG_UNASKED, .usable = true},
    {.rung = OOS_RUNG_LITTLE, .usable = true},
    {.rung = OOS_RUNG_ASKED, .usable = true},
    {.rung = OOS_RUNG_UNASKED},
    {.rung = OOS_RUNG_LITTLE},
    {.rung = OOS_RUNG_ASKED},
    WITH(.parallel = true),
    WITH(.text = true),
    WITH(.parallel = true, .way = OOS_WEIGHTS_FP8),
    WITH(.parallel = true, .way = OOS_WEIGHTS_BNB),
    WITH(.parallel = true, .text = true, .way = OOS_WEIGHTS_FP8),
    WITH(.parallel = true, .text = true, .eager = true),
    WITH(.parallel = true, .text = true, .eager = true, .way = OOS_WEIGHTS_FP8),
    WITH(.parallel = true, .text = true, .eager = true, .way = OOS_WEIGHTS_BNB),
    WITH(.parallel = true, .way = OOS_WEIGHTS_OFFLOAD),
    WITH(.parallel = true, .text = true, .eager = true, .way = OOS_WEIGHTS_OFFLOAD),
#undef WITH
};
enum { STAGES = sizeof stages / sizeof *stages };

/* Stages between which it is not worth while to be certain: with each of these groups everything is tried again where it is tight. */
static const size_t groups[] = {3, 4, 7, STAGES};

static bool same_levers(const oos_levers *a, const oos_levers *b)
{
    return memcmp(a->counts, b->counts, sizeof a->counts) == 0 && a->least == b->least &&
           a->lowest == b->lowest &&
           memcmp(a->values[OOS_LEVER_WEIGHTS], b->values[OOS_LEVER_WEIGHTS], sizeof a->values[0]) == 0;
}

/* Does anything start at all with these levers? */
static bool reach(oos_search *s, const oos_stage *stage, hunt *h)
{
    oos_levers const before = h->levers;
    oos_trial t;
    if (!oos_levers_of(s, stage, &h->levers) || same_levers(&before, &h->levers)) return false;
    h->stage = *stage;
    h->forced = stage->way != OOS_WEIGHTS_AS_THEY_ARE;
    if (stage->way == OOS_WEIGHTS_OFFLOAD) choose_offload(h);
    for (unsigned mask = movable(h), own = mask & ~(1U << OOS_LEVER_KV);; mask = own) {
        oos_lever_point point = strongest(h, mask);
        if (fits_somewhere(h, &point, holds(mask, OOS_LEVER_BUDGET), &t)) return true;
        if (mask == own) return false; /* another type of cache may bring another backend */
    }
}

/* What gives more may cost a little, and use GPUs that are idle. */
static bool answer_stage(oos_search *s, hunt *h)
{
    answer least = least_change(h), longest = {0}, most = {0};
    hunt wide = *h;
    oos_stage stage = h->stage;
    if (stage.rung < OOS_RUNG_LITTLE) stage.rung = OOS_RUNG_LITTLE;
    stage.usable = false;
    stage.parallel = true;
    if (stage.way == OOS_WEIGHTS_OFFLOAD || !oos_levers_of(s, &stage, &wide.levers)) wide = *h;
    bool const more = least.found && !s->facts->flags_alone;
    if (more && least.length < h->levers.most) longest = longest_context(&wide);
    if (more) most = most_requests(&wide);
    return offer_all(h, &least, &wide, &longest, &most);
}

bool oos_answers_find(oos_search *s, size_t *ret_count, bool *ret_last)
{
    hunt h = {.s = s};
    size_t const before = s->count;
    bool enough_memory = true, found = false;
    size_t const most = sizeof groups / sizeof *groups - (s->facts->flags_alone ? 1 : 0);
    for (size_t group = 0; group < most && !found; group++)
        for (int round = 0; round < 2 && !found; round++) {
            s->tight_too = round > 0;
            h.levers = (oos_levers){0};
            for (size_t i = group ? groups[group - 1] : 0; i < groups[group] && !found; i++) {
                found = reach(s, &stages[i], &h);
                if (found) enough_memory = answer_stage(s, &h);
            }
            if (oos_plan_likely(s->plan)) break; /* no more certain than what there is */
        }
    s->tight_too = false;
    *ret_last = found && (h.stage.eager || h.stage.way == OOS_WEIGHTS_OFFLOAD);
    *ret_count = s->count - before;
    return enough_memory;
}
