/* SGLang behind the seam. */
#include "engines/sglang/sglang.h"

const oos_rule_place oos_sglang_rule_places[] = {
#define REAL(name) {#name, offsetof(sglang_rules, name), OOS_RULE_REAL},
#define WHOLE(name) {#name, offsetof(sglang_rules, name), OOS_RULE_WHOLE},
#define YES(name) {#name, offsetof(sglang_rules, name), OOS_RULE_YES},
#include "engines/sglang/rules.def"
#undef REAL
#undef WHOLE
#undef YES
};
const size_t oos_sglang_rule_place_count = sizeof oos_sglang_rule_places / sizeof *oos_sglang_rule_places;

static oomsight_status book_load(oos_arena *arena, const char *data_dir, oos_rule_book **ret_book,
                                 oomsight_error *reterr)
{
    const char *name = oos_engine_sglang.words->name;
    OOS_TRY(oos_rule_book_load(arena, data_dir, name, oos_sglang_rule_places, oos_sglang_rule_place_count, 0,
                               ret_book, reterr));
    OOS_TRY(oos_rule_book_architectures(arena, data_dir, name, *ret_book, reterr));
    return oos_rule_book_refuse(arena, data_dir, name, &oos_sglang_refusal_names, *ret_book, reterr);
}

/* managers/data_parallel_controller.py and entrypoints/engine.py, _calculate_rank_ranges(): the device of each rank of a machine. Replicated
 * attention divides the ranks of `tp`, replicas have ranks of their own. */
uint64_t oos_sglang_reach(const sglang_request *r)
{
    uint64_t const stages = oos_max(1, r->pp / r->nodes),
                   here = oos_max(1, r->tp / oos_max(1, r->nodes / r->pp)),
                   replicas = r->replicated ? 1 : r->dp;
    uint64_t const last = oos_mul(oos_mul(oos_mul(replicas - 1, r->tp), r->pp), r->step);
    return oos_add(oos_add(last, r->base),
                   oos_add(oos_mul(stages - 1, here), oos_add(oos_mul(here - 1, r->step), 1)));
}

static oos_ranks ranks(const oos_serve *serve)
{
    oos_arena *arena = oos_arena_create(1 << 10);
    if (!arena) return (oos_ranks){1, 1, NULL};
    sglang_request r;
    oos_sglang_request_read(arena, serve, &r);
    oos_arena_free(arena);
    const oos_given_flag *device = oos_serve_given(serve, "--device");
    uint64_t const all = oos_mul(oos_mul(r.tp, r.pp), r.replicated ? 1 : r.dp);
    return (oos_ranks){oos_max(1, all / r.nodes), oos_sglang_reach(&r), device ? device->value : NULL};
}

static bool is_listed(const oos_rule_book *book, oos_version version)
{
    const oos_version *versions;
    size_t const count = oos_rule_book_versions(book, &versions);
    bool listed = version > versions[count - 1]; /* said elsewhere */
    for (size_t i = 0; i < count; i++) listed |= versions[i] == version;
    return listed;
}

static oomsight_status plan_start(oos_arena *arena, const oos_start *start, const oos_engine_facts *facts,
                                  oos_plan *ret_plan, oomsight_error *reterr)
{
    sglang_rules *rules = OOS_NEW(arena, sglang_rules);
    sglang_request *request = OOS_NEW(arena, sglang_request);
    if (!rules || !request) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the setup");
    bool beyond;
    OOS_TRY(oos_rules_fill(facts->rules, start->version, rules, &beyond, reterr));
    rules->version = start->version;
    rules->facts = oos_rule_book_facts(facts->rules);
    rules->refusals = oos_rule_book_refusals(facts->rules);
    oos_sglang_request_read(arena, start->serve, request);
    request->release_unread = !is_listed(facts->rules, start->version);
    request->release_early = oos_rule_book_early(facts->rules, start->version);
    if (start->exact) oos_sglang_take_asked(start->exact, request);
    return oos_sglang_plan(arena, start, rules, request, ret_plan, reterr);
}

const oos_engine oos_engine_sglang = {
    .words = &oos_words_sglang,
    .dialect = &oos_sglang_dialect,
    .book_load = book_load,
    .ranks = ranks,
    .plan = plan_start,
    .solve = oos_sglang_solve,
    .choose = oos_sglang_choose,
    .logged = oos_sglang_logged,
};
