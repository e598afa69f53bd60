/* The search for flags that help: shares and numbers that fit, points among levers. What a lever is, and whether a point starts, an
 * engine says. */
#include "plan/plan.h"

#include <limits.h>

/* ---- the share of the device ---------------------------------------------------------------------------------------- */

enum { SHARE_STEP = 10 }; /* thousandths */

/* Shares that are known to be too small and too large. */
typedef struct span {
    uint64_t small, large;
} span;

static span whole_span(const oos_share *s)
{
    return (span){s->lowest - SHARE_STEP, s->highest + SHARE_STEP};
}

static oos_side look(const oos_share *s, uint64_t share, span *at)
{
    uint64_t const value = share ? share : s->own;
    oos_side const side = s->at(s->of, share);
    if (side == OOS_SIDE_SMALL) at->small = oos_max(at->small, value / SHARE_STEP * SHARE_STEP);
    if (side == OOS_SIDE_LARGE) at->large = oos_min(at->large, oos_round_up(value, SHARE_STEP));
    return side;
}

/* Halving the span, led by the phase that a share fails in. */
static bool find_between(const oos_share *s, span at, uint64_t *ret_share)
{
    while (at.small + SHARE_STEP < at.large) {
        *ret_share = (at.small + (at.large - at.small) / 2) / SHARE_STEP * SHARE_STEP;
        oos_side const side = look(s, *ret_share, &at);
        if (side == OOS_SIDE_FITS || side == OOS_SIDE_NEITHER) return side == OOS_SIDE_FITS;
    }
    return false;
}

bool oos_share_any(const oos_share *s, uint64_t *ret_share)
{
    return find_between(s, whole_span(s), ret_share);
}

bool oos_share_find(const oos_share *s, uint64_t hint, uint64_t *ret_share)
{
    span at = whole_span(s);
    for (int i = 0; i < (hint ? 2 : 1); i++) {
        *ret_share = i ? hint : 0;
        oos_side const side = look(s, *ret_share, &at);
        if (side == OOS_SIDE_FITS || side == OOS_SIDE_NEITHER) return side == OOS_SIDE_FITS;
    }
    return find_between(s, at, ret_share);
}

/* From `good`, which fits, towards `bad`, which does not: the last that does. */
static uint64_t last_good(const oos_share *s, uint64_t good, uint64_t bad)
{
    while (good > bad ? good - bad > SHARE_STEP : bad - good > SHARE_STEP) {
        uint64_t const middle = (good + bad) / 2 / SHARE_STEP * SHARE_STEP;
        if (s->at(s->of, middle) == OOS_SIDE_FITS)
            good = middle;
        else
            bad = middle;
    }
    return good;
}

uint64_t oos_share_towards(const oos_share *s, uint64_t good, uint64_t to)
{
    return good == to || s->at(s->of, to) == OOS_SIDE_FITS ? to : last_good(s, good, to);
}

uint64_t oos_share_nearest(const oos_share *s, uint64_t share)
{
    if (!share || s->at(s->of, 0) == OOS_SIDE_FITS) return 0;
    return last_good(s, share,
                     share > s->own ? s->own / SHARE_STEP * SHARE_STEP : oos_round_up(s->own, SHARE_STEP));
}

uint64_t oos_share_highest(const oos_share *s, uint64_t share)
{
    uint64_t const from = share ? share : s->own / SHARE_STEP * SHARE_STEP;
    if (from >= s->highest) return share;
    uint64_t const best = oos_share_towards(s, from, s->highest);
    return best > from ? best : share;
}

/* ---- a number ------------------------------------------------------------------------------------------------------- */

uint64_t oos_largest(oos_fits fits, void *of, uint64_t low, uint64_t high, uint64_t step)
{
    uint64_t best = 0, from = oos_cdiv(low, step), to = high / step;
    while (from <= to && to > 0) {
        uint64_t const middle = from + (to - from) / 2;
        if (fits(of, middle * step)) {
            best = middle * step;
            from = middle + 1;
        } else {
            if (middle == 0) break;
            to = middle - 1;
        }
    }
    return best && fits(of, best) ? best : 0;
}

uint64_t oos_longest(oos_fits fits, void *of, uint64_t good, uint64_t least, uint64_t most, uint64_t step)
{
    uint64_t const low = good ? good : least;
    if (most < low) return 0;
    if (fits(of, most)) return most;
    if (!good && !fits(of, low)) return 0;
    uint64_t const longest = oos_largest(fits, of, low, most, step);
    if (longest) return longest;
    return fits(of, low) ? low : 0; /* asked for, if no whole block */
}

/* ---- a point among levers ------------------------------------------------------------------------------------------- */

static unsigned bit(unsigned lever)
{
    return lever < OOS_LEVERS_MAX ? 1U << lever : 0;
}

static unsigned bits(unsigned mask)
{
    unsigned count = 0;
    for (; mask; mask &= mask - 1) count++;
    return count;
}

uint64_t oos_point_value(const oos_levers *levers, const oos_point *point, unsigned lever)
{
    bool const exact = point->at[lever] && point->exact[lever];
    return exact ? point->exact[lever] : levers->values[lever][point->at[lever]];
}

static unsigned flags_of(const oos_levers *levers, const oos_point *point)
{
    unsigned count = point->share ? 1 : 0;
    if (point->length && point->length < levers->most) count++;
    for (unsigned i = 0; i < OOS_LEVERS_MAX; i++) count += point->at[i] != 0;
    return count;
}

/* The levers that can be moved at all. */
static unsigned movable(const oos_search *s, const oos_levers *levers)
{
    unsigned mask = 0;
    for (unsigned i = 0; i < OOS_LEVERS_MAX; i++)
        if (levers->counts[i] > 1 && i != s->table->forced) mask |= bit(i);
    return mask;
}

static bool is_forced(const oos_search *s, const oos_levers *levers, unsigned lever)
{
    return lever < OOS_LEVERS_MAX && lever == s->table->forced && levers->counts[lever] > 1;
}

static bool is_free(const oos_search *s, const oos_levers *levers, unsigned mask)
{
    return levers->share_moves || mask & bit(s->table->share);
}

static bool fits_at(oos_search *s, const oos_levers *levers, const oos_point *point, oos_trial *ret_trial)
{
    return s->table->plan(s, levers, point, ret_trial) == OOS_SIDE_FITS;
}

/* A point with one share or length after another. */
typedef struct changing {
    oos_search *s;
    const oos_levers *levers;
    oos_point point;
    oos_trial *t;
} changing;

static oos_side with_share(void *of, uint64_t share)
{
    changing *c = of;
    c->point.share = share;
    return c->s->table->plan(c->s, c->levers, &c->point, c->t);
}

static bool with_length(void *of, uint64_t length)
{
    changing *c = of;
    c->point.length = length;
    return fits_at(c->s, c->levers, &c->point, c->t);
}

static oos_share share_of(changing *c)
{
    return (oos_share){with_share, c, c->levers->own, c->levers->lowest, c->levers->highest};
}

/* One that the command gives moves least; else it is the one next to the engine's own that has nearly the largest cache. */
static bool place_by_tokens(oos_levers *levers, oos_point *point, changing *c)
{
    uint64_t const need = levers->need;
    oos_share const share = share_of(c);
    if (!oos_share_any(&share, &point->share)) return false;
    if (!levers->share_given) {
        point->share = oos_share_towards(&share, point->share, share.highest);
        if (!fits_at(c->s, levers, point, c->t)) return false;
        uint64_t const length = c->t->length, reached = oos_min(c->t->kv_tokens, length);
        levers->need = oos_max(need, reached >= length ? reached : reached - reached / 64);
    }
    point->share = oos_share_towards(&share, point->share, share.own);
    levers->need = need;
    return true;
}

/* With the command's own share, the one that stands, and if `free` any other. */
bool oos_point_place(oos_search *s, oos_levers *levers, oos_point *point, bool free, oos_trial *ret_trial)
{
    changing c = {s, levers, *point, ret_trial};
    oos_share const share = share_of(&c);
    if (s->table->by_tokens) point->share = 0;
    if (s->table->by_tokens || !free)
        return fits_at(s, levers, point, ret_trial) || (free && place_by_tokens(levers, point, &c));
    return oos_share_find(&share, point->share, &point->share);
}

static oos_point strongest(const oos_search *s, const oos_levers *levers, unsigned mask)
{
    const oos_lever_table *table = s->table;
    oos_point point = {.length = mask & bit(table->length) ? levers->least : 0};
    for (unsigned i = 0; i < OOS_LEVERS_MAX; i++)
        if ((mask & bit(i) && i != table->share && i != table->length) || is_forced(s, levers, i))
            point.at[i] = (uint8_t)(levers->counts[i] - 1);
    if (table->step == OOS_LEVERS_MAX) return point;
    uint64_t const requests = oos_point_value(levers, &point, table->requests);
    while (point.at[table->step] && oos_point_value(levers, &point, table->step) < requests)
        point.at[table->step]--; /* a step has a token of each */
    return point;
}

/* The largest share leaves the most for the cache, and the one next to the command's own is the least change. */
static void move_share(oos_search *s, const oos_levers *levers, oos_point *point,
                       uint64_t (*to)(const oos_share *s, uint64_t share))
{
    oos_trial t;
    changing c = {s, levers, *point, &t};
    oos_share const share = share_of(&c);
    point->share = to(&share, point->share);
}

/* The longest length, if `free` with the largest share; the point is left there. */
static void lengthen(oos_search *s, const oos_levers *levers, oos_point *point, bool free)
{
    if (point->length >= levers->most) return;
    if (free) move_share(s, levers, point, oos_share_highest);
    oos_trial t;
    changing c = {s, levers, *point, &t};
    uint64_t const length = oos_longest(with_length, &c, point->length, levers->least, levers->most,
                                        levers->steps[s->table->length]);
    if (length > point->length) point->length = length;
}

/* Each lever is let go as far as it still starts, the dearest first. */
static void let_go(oos_search *s, oos_levers *levers, oos_point *point, bool free)
{
    for (size_t i = 0; i < s->table->let_go_count; i++) {
        unsigned const lever = s->table->let_go[i];
        for (unsigned at = is_forced(s, levers, lever) ? 1 : 0; at < point->at[lever]; at++) {
            oos_point trial = *point;
            oos_trial t;
            trial.at[lever] = (uint8_t)at;
            if (!oos_point_place(s, levers, &trial, free, &t)) continue;
            if (s->table->by_tokens && trial.share && !point->share) continue; /* no flag more */
            *point = trial;
            break;
        }
    }
}

/* Between the value of the list that fits and the next weaker one, which does not: the weakest number that does. */
static void refine(oos_search *s, const oos_levers *levers, oos_point *point, unsigned lever)
{
    uint64_t const step = levers->steps[lever], value = oos_point_value(levers, point, lever);
    if (!point->at[lever] || !step || !value) return;
    uint64_t good = value / step, bad = oos_cdiv(levers->values[lever][point->at[lever] - 1], step);
    while (bad > good + 1) {
        uint64_t const middle = good + (bad - good) / 2;
        oos_point trial = *point;
        oos_trial t;
        trial.exact[lever] = middle * step;
        if (fits_at(s, levers, &trial, &t))
            *point = trial, good = middle;
        else
            bad = middle;
    }
}

static void refine_all(oos_search *s, const oos_levers *levers, oos_point *point)
{
    for (size_t i = 0; i < s->table->let_go_count; i++) refine(s, levers, point, s->table->let_go[i]);
}

/* ---- answers -------------------------------------------------------------------------------------------------------- */

/* What a point gives: its certain and its likely length, and how many requests of a usual length run at once. */
static void measure(oos_search *s, const oos_levers *levers, oos_answer *a)
{
    oos_trial t;
    const oos_lever_table *table = s->table;
    uint64_t const usual = oos_min(levers->most, OOS_USUAL_TOKENS);
    a->flags = flags_of(levers, &a->point);
    a->found = (a->flags > 0 || s->as_it_is) && fits_at(s, levers, &a->point, &t);
    if (!a->found || table->first_of_size) return;
    a->length = a->point.length ? a->point.length : levers->most;
    a->rung = table->rung(s, levers, &a->point);
    a->requests =
        oos_min(oos_point_value(levers, &a->point, table->requests), t.kv_tokens / oos_max(1, usual));
    a->price = table->price(levers, &a->point);
}

static void likely_length(oos_search *s, const oos_levers *levers, oos_answer *a)
{
    bool const before = s->tight_too;
    oos_point point = a->point;
    a->likely_length = a->length;
    if (a->length >= levers->most || !point.length) return;
    s->tight_too = true;
    lengthen(s, levers, &point, false);
    s->tight_too = before;
    a->likely_length = oos_max(a->length, point.length);
}

/* These levers at their strongest, each let go as far as the length stays, or nearly. With as many flags as `fewer` the first that was
 * found may be enough. */
static oos_answer settle(oos_search *s, oos_levers *levers, unsigned mask, unsigned fewer)
{
    oos_answer a = {.point = strongest(s, levers, mask)};
    oos_point *p = &a.point;
    bool const free = is_free(s, levers, mask);
    oos_trial t;
    if (!oos_point_place(s, levers, p, free, &t)) return a;
    if (mask & bit(s->table->length)) lengthen(s, levers, p, free);
    uint64_t const reached = p->length;
    if (reached && reached < levers->most)
        p->length = oos_min(reached, oos_round_up(oos_max(levers->least, reached - reached / 64),
                                                  levers->steps[s->table->length]));
    let_go(s, levers, p, free);
    if (s->table->first_of_size && flags_of(levers, p) >= fewer) return a;
    if (free && p->share && !s->table->by_tokens) move_share(s, levers, p, oos_share_nearest);
    refine_all(s, levers, p);
    if (reached) lengthen(s, levers, p, false);
    if (p->length >= levers->most) p->length = 0;
    measure(s, levers, &a);
    return a;
}

static bool better(const oos_search *s, const oos_answer *a, const oos_answer *b)
{
    if (!a->found || !b->found) return a->found;
    if (s->table->first_of_size) return a->flags < b->flags;
    return a->rung != b->rung     ? a->rung < b->rung
           : a->flags != b->flags ? a->flags < b->flags
           : a->price != b->price ? a->price < b->price
                                  : a->length > b->length;
}

/* All choices of `count` levers, and of those that can do it the one that costs least. */
static oos_answer least_of(oos_search *s, oos_levers *levers, unsigned count, unsigned allowed)
{
    bool const up = s->table->upwards;
    oos_answer best = {0};
    for (unsigned mask = up ? 0 : allowed;; mask = (up ? mask - allowed : mask - 1) & allowed) {
        oos_answer const a = bits(mask) == count ? settle(s, levers, mask, best.found ? best.flags : UINT_MAX)
                                                 : (oos_answer){0};
        if (better(s, &a, &best)) best = a;
        if (mask == (up ? allowed : 0)) break;
    }
    return best;
}

static oos_answer least_change(oos_search *s, oos_levers *levers)
{
    unsigned const allowed = movable(s, levers), all = bits(allowed), most = s->table->sizes_max;
    bool const none = levers->share_moves || s->as_it_is || is_forced(s, levers, s->table->forced);
    oos_answer best = {0};
    for (unsigned count = none ? 0 : 1; count <= oos_min(all, most) && !best.found; count++)
        best = least_of(s, levers, count, allowed);
    if (!best.found && most < all) best = least_of(s, levers, all, allowed);
    best.name = "least_change";
    return best;
}

/* A smaller cache entry may bring another backend, and its workspace: the model's own is looked at, too. */
static oos_answer longest_context(oos_search *s, oos_levers *levers)
{
    unsigned const all = movable(s, levers), own = all & ~bit(s->table->cache);
    oos_answer best = {0};
    for (unsigned i = 0; i < 2 && (i == 0 || own != all) && best.length < levers->most; i++) {
        oos_answer const a = settle(s, levers, i ? own : all, UINT_MAX);
        if (a.found && a.length > best.length) best = a;
    }
    best.name = "longest_context";
    return best;
}

/* Of a usual length at once: every share and limit of requests down to the first answer's, with graphs where it starts with them. */
static oos_answer most_at_once(oos_search *s, oos_levers *levers, uint64_t least)
{
    const oos_lever_table *table = s->table;
    oos_answer best = {0};
    for (unsigned less = 0; less < 4 && !best.found; less++) {
        oos_point point = strongest(s, levers, movable(s, levers));
        for (unsigned k = 0; k < 2; k++)
            if (!(less & 1U << k)) point.at[table->kept[k]] = 0;
        for (size_t at = 0; at < levers->counts[table->requests]; at++) {
            oos_answer a = {.point = point};
            oos_trial t;
            a.point.at[table->requests] = (uint8_t)at;
            if (oos_point_value(levers, &a.point, table->requests) < oos_max(least, best.requests + 1)) break;
            if (!oos_point_place(s, levers, &a.point, true, &t)) continue;
            move_share(s, levers, &a.point, oos_share_highest);
            measure(s, levers, &a);
            if (a.found && (!best.found || a.requests > best.requests)) best = a;
        }
    }
    return best;
}

static oos_answer most_requests(oos_search *s, oos_levers *levers, uint64_t least)
{
    oos_answer best = most_at_once(s, levers, least);
    uint64_t const enough = best.requests - best.requests / 10;
    for (size_t i = 0; best.found && i < s->table->let_go_count; i++) {
        unsigned const lever = s->table->let_go[i];
        for (unsigned at = is_forced(s, levers, lever) ? 1 : 0; at < best.point.at[lever]; at++) {
            oos_answer a = {.point = best.point};
            a.point.at[lever] = (uint8_t)at;
            measure(s, levers, &a);
            if (!a.found || a.requests < enough) continue;
            best = a;
            break;
        }
    }
    if (best.found && best.point.length) {
        lengthen(s, levers, &best.point, false);
        if (best.point.length >= levers->most) best.point.length = 0;
        measure(s, levers, &best);
    }
    best.name = "most_requests";
    return best;
}

/* The largest cache that the levers give; then each is let go as far as the cache stays, nearly. */
static bool most_tokens(oos_search *s, oos_levers *levers, oos_point *ret_point)
{
    oos_point *p = ret_point;
    oos_trial t;
    *p = strongest(s, levers, movable(s, levers) & ~bit(s->table->context));
    changing c = {s, levers, *p, &t};
    oos_share const share = share_of(&c);
    if (!oos_point_place(s, levers, p, levers->share_moves, &t)) return false;
    if (levers->share_moves && !p->share && !oos_share_any(&share, &p->share)) return false;
    if (p->share) p->share = oos_share_towards(&share, p->share, share.highest);
    if (!fits_at(s, levers, p, &t)) return false;
    levers->need = oos_max(levers->need, oos_min(t.kv_tokens - t.kv_tokens / 32, t.length));
    let_go(s, levers, p, levers->share_moves);
    refine_all(s, levers, p);
    return true;
}

/* ---- offering ------------------------------------------------------------------------------------------------------- */

static bool offer(oos_search *s, const oos_levers *levers, oos_answer *a)
{
    if (s->count == OOS_PLAN_FIXES_MAX) return true;
    likely_length(s, levers, a);
    return s->table->offer(s, levers, a);
}

/* What gives more may cost a little, and use GPUs that are idle. */
static oos_stage wider(oos_stage stage)
{
    if (stage.rung < OOS_RUNG_LITTLE) stage.rung = OOS_RUNG_LITTLE;
    stage.parallel = true;
    return stage;
}

/* A longer request, or more of them: one answer that earns its name by more of what it is called. */
static bool offer_more(oos_search *s, oos_levers *levers)
{
    if (!s->count) return true;
    const oos_fix first = s->fixes[s->count - 1];
    size_t const before = s->count;
    bool const longer = first.kv_tokens < levers->most;
    oos_stage const stage = wider(levers->stage);
    oos_answer more = {.name = longer ? "longest_context" : "most_requests"};
    if (!s->table->levers_of(s, &stage, levers) || !most_tokens(s, levers, &more.point)) return true;
    if (!offer(s, levers, &more)) return false;
    if (s->count == before) return true;
    const oos_fix *fix = &s->fixes[before];
    bool const worth = longer ? oos_min(fix->kv_tokens, levers->most) > first.kv_tokens + first.kv_tokens / 20
                              : fix->requests > first.requests + first.requests / 10;
    if (!worth) s->count = before;
    return true;
}

/* A longer request, and more of them. */
static bool offer_both(oos_search *s, oos_levers *levers, const oos_answer *least)
{
    oos_levers wide = *levers;
    oos_stage stage = wider(levers->stage);
    oos_answer longest = {0};
    stage.tokens = OOS_LEAST_TOKENS;
    if (stage.chosen || !s->table->levers_of(s, &stage, &wide)) wide = *levers;
    if (least->length < levers->most) longest = longest_context(s, &wide);
    oos_answer most = most_requests(s, &wide, oos_point_value(levers, &least->point, s->table->requests));
    bool const longer = longest.found && longest.length > least->length + least->length / 20;
    uint64_t const requests = oos_max(least->requests, longer ? longest.requests : 0);
    bool const more = most.found && most.requests > requests + requests / 10;
    if (longer && !offer(s, &wide, &longest)) return false;
    return !more || s->count == OOS_ANSWERS_MAX || offer(s, &wide, &most);
}

/* ---- down the ladder ------------------------------------------------------------------------------------------------ */

/* Does anything start at all with these levers? Another type of cache may bring another backend. */
static bool starts(oos_search *s, oos_levers *levers)
{
    unsigned const all = movable(s, levers), own = all & ~bit(s->table->cache);
    for (unsigned mask = all;; mask = own) {
        oos_point point = strongest(s, levers, mask);
        oos_trial t;
        if (oos_point_place(s, levers, &point, is_free(s, levers, mask), &t)) return true;
        if (mask == own) return false;
    }
}

bool oos_answers_least(oos_search *s, oos_levers *levers, oos_answer *ret_answer)
{
    if (!starts(s, levers)) return false;
    *ret_answer = least_change(s, levers);
    return ret_answer->found;
}

/* No more of the forced lever than a usual length needs: it slows every step. */
static void choose(oos_search *s, oos_levers *levers)
{
    unsigned const lever = s->table->forced;
    for (unsigned with = 0; with <= 1; with++)
        for (size_t at = 1; at < levers->counts[lever]; at++) {
            oos_point point = strongest(s, levers, with ? movable(s, levers) : 0);
            oos_trial t;
            point.at[lever] = (uint8_t)at;
            point.length = oos_min(levers->most, OOS_USUAL_TOKENS);
            if (!oos_point_place(s, levers, &point, with, &t)) continue;
            levers->values[lever][1] = levers->values[lever][at];
            levers->counts[lever] = 2;
            return;
        }
}

static bool same_levers(const oos_levers *a, const oos_levers *b)
{
    return memcmp(a->counts, b->counts, sizeof a->counts) == 0 &&
           memcmp(a->values, b->values, sizeof a->values) == 0 && a->least == b->least &&
           a->lowest == b->lowest && a->need == b->need && a->share_moves == b->share_moves;
}

static bool reach(oos_search *s, const oos_stage *stage, oos_levers *levers)
{
    oos_levers const before = *levers;
    if (!s->table->levers_of(s, stage, levers) || same_levers(&before, levers)) return false;
    levers->stage = *stage;
    if (stage->chosen) choose(s, levers);
    return starts(s, levers);
}

/* What it costs that the unfavourable end of the ranges decides: a request longer by a quarter and more. */
static void price_of_safety(oos_search *s, oos_levers *levers, const oos_answer *least, oos_fix *fix)
{
    oos_levers same = *levers;
    if (s->tight_too || s->table->by_tokens || least->length >= levers->most) return;
    s->tight_too = true;
    oos_answer middle = least_change(s, &same);
    s->tight_too = false;
    if (middle.found && middle.length > least->length + least->length / 4) fix->middle_length = middle.length;
}

/* *ret_done: further down nothing is looked for. */
static bool answer_stage(oos_search *s, oos_levers *levers, bool *ret_done, bool *ret_last)
{
    const oos_lever_table *table = s->table;
    oos_answer least = least_change(s, levers);
    *ret_done = least.found || !table->first_of_size; /* what needs no flag here may need one there */
    *ret_last = levers->stage.last && (table->eager == OOS_LEVERS_MAX || least.point.at[table->eager]);
    if (!least.found) return true;
    size_t const before = s->count;
    if (!offer(s, levers, &least)) return false;
    if (s->count > before) price_of_safety(s, levers, &least, &s->fixes[before]);
    if (s->facts->flags_alone) return true;
    return table->by_tokens ? offer_more(s, levers) : offer_both(s, levers, &least);
}

bool oos_answers_find(oos_search *s, bool *ret_last)
{
    const oos_lever_table *table = s->table;
    size_t const most = table->group_count - (s->facts->flags_alone ? 1 : 0);
    bool enough_memory = true, found = false;
    *ret_last = false;
    for (size_t group = 0; group < most && !found; group++)
        for (int round = 0; round < 2 && !found; round++) {
            oos_levers levers = {0};
            s->tight_too = round > 0;
            for (size_t i = group ? table->groups[group - 1] : 0; i < table->groups[group] && !found; i++)
                if (reach(s, &table->stages[i], &levers))
                    enough_memory = answer_stage(s, &levers, &found, ret_last);
            if (oos_plan_likely(s->plan)) break; /* no more certain than what there is */
        }
    s->tight_too = false;
    return enough_memory;
}
