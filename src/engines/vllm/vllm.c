/* vLLM behind the seam. */
#include "engines/vllm/vllm.h"
#include "engines/vllm/solve/solve.h"

static const oos_rule_place places[] = {
#define REAL(name) {#name, offsetof(vllm_rules, name), OOS_RULE_REAL},
#define WHOLE(name) {#name, offsetof(vllm_rules, name), OOS_RULE_WHOLE},
#define YES(name) {#name, offsetof(vllm_rules, name), OOS_RULE_YES},
#include "engines/vllm/rules.def"
#undef REAL
#undef WHOLE
#undef YES
};

oomsight_status oos_vllm_book_load(oos_arena *arena, const char *data_dir, oos_rule_book **ret_book,
                                   oomsight_error *reterr)
{
    const char *name = oos_engine_vllm.words->name;
    OOS_TRY(oos_rule_book_load(arena, data_dir, name, places, sizeof places / sizeof *places,
                               sizeof(vllm_rules), ret_book, reterr));
    OOS_TRY(oos_rule_book_arguments(arena, data_dir, name, *ret_book, reterr));
    return oos_rule_book_refuse(arena, data_dir, name, &oos_vllm_refusal_names, *ret_book, reterr);
}

oomsight_status oos_vllm_rules_of(const oos_rule_book *book, oos_version version, vllm_rules *ret_rules,
                                  bool *ret_beyond, oomsight_error *reterr)
{
    *ret_rules = (vllm_rules){.version = version,
                              .facts = oos_rule_book_facts(book),
                              .refusals = oos_rule_book_refusals(book),
                              .measured = oos_rule_book_measured(book, version)};
    return oos_rules_fill(book, version, ret_rules, ret_beyond, reterr);
}

static uint64_t torch_minor(const oos_rule_book *book, oos_version version)
{
    vllm_rules rules;
    bool beyond;
    return oos_vllm_rules_of(book, version, &rules, &beyond, NULL) == OOMSIGHT_OK ? rules.torch_minor : 0;
}

static oos_ranks ranks(const oos_serve *serve)
{
    bool placed;
    const oos_given_flag *device = oos_serve_given(serve, "--device");
    uint64_t const world = oos_mul(oos_max(1, oos_u64_or(serve->tensor_parallel_size, 1)),
                                   oos_max(1, oos_u64_or(serve->pipeline_parallel_size, 1))),
                   here = oos_setup_ranks_here(serve, world,
                                               oos_max(1, oos_u64_or(serve->data_parallel_size, 1)), &placed);
    return (oos_ranks){here, here, device ? device->value : NULL};
}

static oomsight_status plan_start(oos_arena *arena, const oos_start *start, const oos_engine_facts *facts,
                                  oos_plan *ret_plan, oomsight_error *reterr)
{
    vllm_rules *rules = oos_arena_take_raw(arena, sizeof *rules);
    oos_setup *setup = oos_arena_take_raw(arena, sizeof *setup); /* large, and all of it is filled below */
    if (!rules || !setup) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the setup");
    bool beyond;
    OOS_TRY(oos_vllm_rules_of(facts->rules, start->version, rules, &beyond, reterr));
    rules->beyond = start->beyond;
    rules->terms = facts->terms;
    rules->architectures = facts->architectures;
    rules->quantization = facts->quantization;
    rules->measured |= facts->terms != NULL;
    if (start->trial) oos_rule_put(facts->rules, start->trial, rules);
    OOS_TRY(oos_setup_resolve(arena, start->model, start->draft, start->serve, start->env, &start->device,
                              rules, setup, reterr));
    if (start->exact) oos_setup_take_exact(setup, start->exact);
    OOS_TRY(oos_plan_make(arena, setup, start->kv_layers_json, ret_plan, reterr));
    OOS_TRY(oos_forks_plan(arena, ret_plan, reterr));
    return oos_plan_tell(arena, ret_plan, reterr);
}

static oos_search_facts solve_facts(const oos_start *start, const oos_engine_facts *facts,
                                    const oos_gpus *gpus)
{
    return (oos_search_facts){.flags = &facts->flags,
                              .ladder = facts->ladder,
                              .torch = &facts->torch,
                              .gpus = gpus,
                              .rules = facts->rules,
                              .kv_layers_json = start->kv_layers_json};
}

static oomsight_status solve(oos_arena *arena, oos_arena *scratch, const oos_start *start,
                             const oos_engine_facts *facts, const oos_gpus *gpus, oos_plan *plan,
                             oomsight_error *reterr)
{
    oos_search_facts asked = solve_facts(start, facts, gpus);
    asked.flags_alone = gpus == NULL;
    return oos_plan_solve(arena, scratch, plan, &asked, reterr);
}

static oomsight_status choose(oos_arena *arena, oos_arena *scratch, const oos_start *start,
                              const oos_engine_facts *facts, const oos_gpus *gpus, oos_plan *plan,
                              oomsight_error *reterr)
{
    oos_search_facts const asked = solve_facts(start, facts, gpus);
    return oos_plan_choose(arena, scratch, plan, &asked, reterr);
}

const oos_engine oos_engine_vllm = {
    .words = &oos_words_vllm,
    .dialect = &oos_vllm_dialect,
    .book_load = oos_vllm_book_load,
    .torch_minor = torch_minor,
    .ranks = ranks,
    .plan = plan_start,
    .solve = solve,
    .choose = choose,
};
