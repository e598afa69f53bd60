/* The same command with another release of the engine. Defaults that differ between releases are held as they are: a flag is the smaller
 * change where one of them is the reason. */
#include "engines/vllm/vllm.h"
#include "engines/vllm/solve/solve.h"

enum { NEWER_MAX = 8, OLDER_MAX = 3 }; /* what an upgrade mended, and what was broken lately */

static bool has_flags(const oos_search *s, oos_version version)
{
    const oos_serve *serve = vllm_setup(s->plan)->serve;
    for (size_t i = 0; i < serve->flag_count; i++)
        if (!oos_flags_find(s->facts->flags, oos_view_of(serve->flags[i].name), version).here) return false;
    return true;
}

static bool starts_with(oos_search *s, oos_version version, oos_trial *ret_trial)
{
    const oos_setup *old = vllm_setup(s->plan);
    vllm_rules rules;
    oos_setup setup;
    oos_plan plan;
    oos_trial t = oos_trial_start(s);
    bool beyond;
    t.serve.gpu_memory_utilization = (oos_f64){true, old->gpu_memory_utilization};
    oos_set_seqs(&t.serve, old->max_num_seqs);
    oos_set_tokens(&t.serve, old->max_num_batched_tokens);
    oos_arena_reset(s->scratch);
    if (vllm_rules_of(s->facts->rules, version, &rules, &beyond, NULL) != OOMSIGHT_OK) return false;
    oos_torch_support const support =
        oos_torch_supports(oos_torch_find(s->facts->torch, rules.torch_minor), old->device.capability);
    if (support == OOS_TORCH_NONE || support == OOS_TORCH_OTHER || !has_flags(s, version)) return false;
    for (int own = 0; own < 2; own++) { /* with its defaults, too: that is what is started */
        if (own) t = oos_trial_start(s);
        if (oos_setup_resolve(s->scratch, old->model, old->draft, &t.serve, old->env, &old->device, &rules,
                              &setup, NULL) != OOMSIGHT_OK ||
            oos_plan_make(s->scratch, &setup, s->facts->kv_layers_json, &plan, NULL) != OOMSIGHT_OK ||
            plan.answer.verdict != OOMSIGHT_VERDICT_FITS ||
            oos_forks_plan(s->scratch, &plan, NULL) != OOMSIGHT_OK ||
            plan.answer.verdict != OOMSIGHT_VERDICT_FITS)
            return false;
    }
    t.verdict = plan.answer.verdict;
    t.probability = plan.answer.probability;
    t.phase = plan.answer.phase;
    t.kv_tokens = plan.kv.tokens;
    *ret_trial = t;
    return true;
}

/* The next newer one that starts, or else the next older. */
static oos_version find(oos_search *s, oos_trial *ret_trial)
{
    const oos_version *list;
    size_t const count = oos_rule_book_versions(s->facts->rules, &list);
    oos_version const now = vllm_setup(s->plan)->rules->version;
    size_t at = 0;
    while (at < count && list[at] <= now) at++;
    for (size_t i = at; i < count && i < at + NEWER_MAX; i++)
        if (starts_with(s, list[i], ret_trial)) return list[i];
    for (size_t i = at; i > 0 && i + OLDER_MAX > at; i--)
        if (list[i - 1] < now && starts_with(s, list[i - 1], ret_trial)) return list[i - 1];
    return 0;
}

bool oos_release_find(oos_search *s)
{
    oos_trial t;
    if (!s->facts->rules || oos_plan_likely(s->plan) || oos_trial_rung(s, "release") != OOS_RUNG_NOTHING)
        return true;
    oos_version const version = find(s, &t);
    char word[32];
    if (!version) return true;
    oos_version_print(version, word, sizeof word);
    t.keeps = "everything else";
    t.gives_up = oos_trial_cost(s, "release");
    if (!oos_trial_offer(s, &t)) return false;
    oos_fix *fix = &s->fixes[s->count - 1];
    fix->release = oos_arena_copy(s->arena, oos_view_of(word));
    fix->unmeasured = !oos_rule_book_measured(s->facts->rules, version);
    fix->name = "least_change";
    fix->certain_length = fix->likely_length = vllm_setup(s->plan)->max_model_len;
    return fix->release;
}
