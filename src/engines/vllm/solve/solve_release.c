/* The same command with another release of the engine. Defaults that differ between releases are held as they are: a flag is the smaller
 * change where one of them is the reason. */
#include "engines/vllm/vllm.h"
#include "engines/vllm/solve/solve.h"

bool oos_vllm_starts_with(oos_search *s, oos_version version, oos_trial *ret_trial)
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
    if (oos_vllm_rules_of(s->facts->rules, version, &rules, &beyond, NULL) != OOMSIGHT_OK) return false;
    oos_torch_support const support =
        oos_torch_supports(oos_torch_find(s->facts->torch, rules.torch_minor), old->device.capability);
    if (support == OOS_TORCH_NONE || support == OOS_TORCH_OTHER) return false;
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
    t.length = old->max_model_len;
    t.host_open = oos_doubts_host(&plan);
    *ret_trial = t;
    return true;
}
