/* What the search has found, in words: a fix. */
#include "plan/plan.h"

#include <inttypes.h>

/* ---- the ladder ------------------------------------------------------------------------------------------------------ */

oos_rung oos_trial_rung(const oos_search *s, const char *id)
{
    const oos_lever_record *lever = oos_ladder_find(s->facts->ladder, id);
    if (!lever || !oos_lever_here(lever, s->version)) return OOS_RUNG_COUNT;
    return lever->flag && s->table->is_given(s->serve, lever->flag) ? lever->given : lever->rung;
}

uint64_t oos_trial_step(const oos_search *s, const char *id)
{
    const oos_lever_record *lever = oos_ladder_find(s->facts->ladder, id);
    return lever && lever->step ? lever->step : 1;
}

const char *oos_trial_cost(const oos_search *s, const char *id)
{
    const oos_lever_record *lever = oos_ladder_find(s->facts->ladder, id);
    bool const cheap =
        s->plan->model->encoder_only && strcmp(id, "utilization_down") == 0; /* there is no cache */
    return cheap ? "a smaller share of the GPU, which no KV cache needs" : lever ? lever->cost.en : NULL;
}

/* ---- words ----------------------------------------------------------------------------------------------------------- */

void oos_say_word(oos_saying *w, const char *text)
{
    if (!text || w->t->word_count == OOS_TRIAL_WORDS_MAX)
        w->failed = true;
    else
        w->t->words[w->t->word_count++] = text;
}

void oos_say_number(oos_saying *w, uint64_t value)
{
    oos_say_word(w, oos_arena_format(w->s->arena, "%" PRIu64, value));
}

void oos_say_lost(oos_saying *w, const char *text)
{
    const char **lost = &w->t->gives_up;
    *lost = *lost && text ? oos_arena_format(w->s->arena, "%s; %s", *lost, text) : text;
    w->failed |= !*lost;
}

void oos_say_lever(oos_saying *w, const oos_lever_words *lever, uint64_t value)
{
    oos_say_word(w, lever->flag);
    if (!lever->word)
        oos_say_number(w, value);
    else if (*lever->word)
        oos_say_word(w, lever->word);
    oos_say_lost(w, lever->most ? oos_arena_format(w->s->arena, "%s %" PRIu64 " %s", lever->most, value,
                                                   lever->of_what)
                                : oos_trial_cost(w->s, lever->id));
}

const char *oos_say_kept(const oos_search *s, bool length, bool requests, const char *graphs)
{
    const char *const all[] = {length ? "context length" : "", requests ? "concurrent requests" : "", graphs};
    const char *text = "";
    for (size_t i = 0; text && graphs && i < sizeof all / sizeof *all; i++)
        if (all[i][0]) text = oos_arena_format(s->arena, "%s%s%s", text, *text ? ", " : "", all[i]);
    return text && !*text ? "the model" : text;
}

/* The engine takes the last of two: only that one is said. */
static bool said_later(const char *const *words, size_t count, size_t at)
{
    for (size_t i = at + 1; i < count; i++)
        if (strcmp(words[i], words[at]) == 0) return true;
    return false;
}

static bool is_flag(const char *word)
{
    return strncmp(word, "--", 2) == 0;
}

/* What was mended, then what the trial changes; no flag twice. */
static bool change_words(oos_search *s, const oos_trial *t, oos_fix *fix)
{
    const oos_mended *m = &s->mended;
    size_t const most = m->word_count + t->word_count;
    const char **all = OOS_NEW_ARRAY(s->arena, const char *, most + 1);
    const char **words = OOS_NEW_ARRAY(s->arena, const char *, most + 1);
    if (!all || !words) return false;
    size_t count = 0;
    for (size_t i = 0; i < m->word_count; i++)
        if (m->words[i]) all[count++] = m->words[i]; /* behind a switch there is none */
    for (size_t i = 0; i < t->word_count; i++) all[count++] = t->words[i];
    for (size_t i = 0; i < count; i++) {
        if (is_flag(all[i]) && said_later(all, count, i)) {
            while (i + 1 < count && !is_flag(all[i + 1])) i++;
            continue;
        }
        words[fix->change_count] = oos_arena_copy(s->arena, oos_view_of(all[i]));
        if (!words[fix->change_count++]) return false;
    }
    fix->change = words;
    return true;
}

static bool leave_out_words(oos_search *s, oos_fix *fix)
{
    const oos_mended *m = &s->mended;
    const char **flags = OOS_NEW_ARRAY(s->arena, const char *, m->leave_out_count + 1);
    if (!flags) return false;
    for (size_t i = 0; i < m->leave_out_count; i++) {
        flags[i] = m->leave_out[i];
        fix->without = i ? oos_arena_format(s->arena, "%s %s", fix->without, flags[i]) : flags[i];
        if (!fix->without) return false;
    }
    fix->leave_out = flags;
    fix->leave_out_count = m->leave_out_count;
    return true;
}

bool oos_trial_offer(oos_search *s, const oos_trial *t)
{
    if (s->count == OOS_PLAN_FIXES_MAX) return true;
    const char *mended = s->mended.gives_up, *gives_up = t->gives_up ? t->gives_up : mended;
    if (mended && t->gives_up) gives_up = oos_arena_format(s->arena, "%s; %s", mended, t->gives_up);
    oos_fix fix = {.verdict = t->verdict,
                   .probability = t->probability,
                   .phase = t->phase,
                   .kv_tokens = t->kv_tokens,
                   .keeps = t->keeps,
                   .rung = t->rung,
                   .gives_up = gives_up};
    if (!gives_up || !change_words(s, t, &fix) || !leave_out_words(s, &fix)) return false;
    s->fixes[s->count++] = fix;
    return true;
}

bool oos_answer_offer(oos_search *s, const oos_trial *t, const oos_answer *a, const oos_reached *reached)
{
    size_t const before = s->count;
    if (!oos_trial_offer(s, t)) return false;
    if (s->count == before) return true;
    oos_fix *fix = &s->fixes[before];
    fix->name = a->name;
    fix->certain_length = reached->certain_length;
    fix->likely_length = reached->likely_length;
    fix->requests = reached->requests;
    fix->request_tokens = reached->request_tokens;
    return true;
}

bool oos_inert_settle(oos_arena *arena, oos_plan_help *help)
{
    oos_inert *list = OOS_NEW_ARRAY(arena, oos_inert, help->inert_count + 1);
    const oos_fix *first = help->fix_count ? &help->fixes[0] : NULL;
    if (!list) return false;
    for (size_t i = 0; i < help->inert_count; i++) {
        list[i] = help->inert[i];
        bool has = false;
        for (size_t k = 0; first && k < first->change_count; k++)
            has |= strcmp(first->change[k], list[i].flag) == 0;
        if (!has) list[i].needed_by = OOS_PHASE_COUNT;
        if (list[i].needed_by == OOS_PHASE_COUNT) continue;
        list[i].why =
            oos_arena_format(arena, "%s; the command that is suggested has it for %s, which comes later",
                             list[i].why, oos_phase_word(list[i].needed_by));
        if (!list[i].why) return false;
    }
    help->inert = list;
    return true;
}

/* ---- another release ------------------------------------------------------------------------------------------------- */

enum { NEWER_MAX = 8, OLDER_MAX = 3 }; /* what an upgrade mended, and what was broken lately */

static bool has_flags(const oos_search *s, oos_version version)
{
    const oos_serve *serve = s->serve;
    for (size_t i = 0; i < serve->flag_count; i++)
        if (!oos_flags_find(s->facts->flags, oos_view_of(serve->flags[i].name), version).here) return false;
    return true;
}

/* The next newer one that starts, or else the next older; 0: none. */
static oos_version find_release(oos_search *s, oos_trial *ret_trial)
{
    const oos_version *list;
    size_t const count = oos_rule_book_versions(s->facts->rules, &list);
    size_t at = 0;
    while (at < count && list[at] <= s->version) at++;
    for (size_t i = at; i < count && i < at + NEWER_MAX; i++)
        if (has_flags(s, list[i]) && s->table->starts_with(s, list[i], ret_trial)) return list[i];
    for (size_t i = at; i > 0 && i + OLDER_MAX > at; i--)
        if (list[i - 1] < s->version && has_flags(s, list[i - 1]) &&
            s->table->starts_with(s, list[i - 1], ret_trial))
            return list[i - 1];
    return 0;
}

bool oos_release_find(oos_search *s)
{
    oos_trial t = {0};
    char word[32];
    if (!s->facts->rules || oos_plan_likely(s->plan) || oos_trial_rung(s, "release") != OOS_RUNG_NOTHING)
        return true;
    oos_version const version = find_release(s, &t);
    if (!version) return true;
    oos_version_print(version, word, sizeof word);
    t.keeps = "everything else";
    t.gives_up = oos_trial_cost(s, "release");
    if (!oos_trial_offer(s, &t)) return false;
    oos_fix *fix = &s->fixes[s->count - 1];
    fix->release = oos_arena_copy(s->arena, oos_view_of(word));
    fix->unmeasured = s->table->unmeasured && !oos_rule_book_measured(s->facts->rules, version);
    fix->host_open = t.host_open;
    fix->name = "least_change";
    fix->certain_length = fix->likely_length = t.length;
    return fix->release;
}
