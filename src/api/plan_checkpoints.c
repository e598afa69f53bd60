/* Where the weights are too large: quantised checkpoints of the same model that are built in, each planned in its place. Where no PyTorch of
 * the release has code for the GPU: these and the model itself with the newest release that has. */
#include "api/api.h"
#include "base/check.h"
#include "base/file.h"
#include "model/model.h"

#include <stdlib.h>
#include <string.h>

enum { SOLVED_MAX = 2 }; /* of those that do not start as they are, how many are searched for flags */
enum { USUAL_TOKENS = 8192, WITHOUT_MAX = sizeof((oos_engine_words){0}.weights_flags) / sizeof(char *) };

typedef struct look {
    oomsight_plan *plan;
    const oos_plan_ask *ask;
    const oos_doubt_facts *doubts;
    oos_serve serve; /* without those flags */
    const char *without[WITHOUT_MAX];
    size_t without_count;
    oos_version version; /* with which they are planned */
    const char *release; /* its word, where it is another one; NULL: that of the plan */
} look;

typedef struct candidate {
    const oos_listed *listed;
    uint64_t loss;
    oos_model model;
    oos_plan plan;
    oos_fix fix; /* of what starts */
    bool starts, roomy, four_bits, emulated;
    bool itself; /* no checkpoint, but the model of the command */
} candidate;

/* bitsandbytes is a package beside the engine, and SGLang loads it by a flag of its own: such a checkpoint is not named. */
static bool needs_package(const oos_model *model)
{
    for (size_t i = 0; i < model->matrix_count; i++)
        if (model->quants[model->matrices[i].quant].kind == OOS_QUANT_BNB) return true;
    return false;
}

/* NVFP4 has kernels of its own from 10.0 on, FP8 from 8.9: below, they are unpacked in others. On 8.x that is usual for FP8. */
static bool is_emulated(const oos_model *model, unsigned capability)
{
    for (size_t i = 0; capability && i < model->matrix_count; i++) {
        oos_quant_kind const kind = model->quants[model->matrices[i].quant].kind;
        bool const fp8 = kind >= OOS_QUANT_FP8_TENSOR && kind <= OOS_QUANT_FP8_BLOCK;
        if ((kind == OOS_QUANT_NVFP4 && capability < 100) || (fp8 && capability < 80)) return true;
    }
    return false;
}

static bool weights_fit(const oos_plan *plan)
{
    for (size_t i = 0; i < plan->phase_count; i++)
        if (plan->phases[i].phase <= OOS_PHASE_QUANT_POSTPROCESS && !plan->phases[i].ok) return false;
    return plan->phase_count && plan->answer.phase != OOS_PHASE_ARGUMENTS;
}

/* Planned as its own command would be: with the doubts of this machine, and with flags where those are searched for. */
static oomsight_status plan_one(look *l, candidate *c, oos_arena *scratch, oomsight_error *reterr)
{
    oomsight_plan *plan = l->plan;
    oos_start start = plan->start;
    l->serve.model = c->listed->id;
    start.model = &c->model;
    start.serve = &l->serve;
    start.version = l->version;
    if (l->release) start.beyond = 0; /* it is one of the book */
    OOS_TRY(plan->engine->plan(plan->arena, &start, plan->facts, &c->plan, reterr));
    c->plan.engine_version = l->release ? l->release : plan->plan.engine_version;
    if (scratch)
        OOS_TRY(plan->engine->solve(plan->arena, scratch, &start, plan->facts, NULL, &c->plan, reterr));
    oos_fix *fixes = OOS_NEW_ARRAY(plan->arena, oos_fix, c->plan.help.fix_count + 1);
    if (!fixes) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the fixes");
    for (size_t i = 0; i < c->plan.help.fix_count; i++) fixes[i] = c->plan.help.fixes[i];
    OOS_TRY(oos_doubts_find(plan->arena, l->doubts, &c->plan, reterr));
    oos_doubts_apply(&c->plan, fixes);
    c->plan.help.fixes = fixes;
    return OOMSIGHT_OK;
}

static void take_as_it_is(const look *l, candidate *c)
{
    const oos_plan *p = &c->plan;
    bool const untold = p->answer.verdict == OOMSIGHT_VERDICT_UNKNOWN && weights_fit(p);
    c->starts = untold || (p->answer.verdict != OOMSIGHT_VERDICT_UNKNOWN && oos_plan_likely(p) &&
                           !oos_plan_too_full(p, p->doubtful.share));
    c->fix = (oos_fix){.verdict = p->answer.verdict,
                       .probability = p->answer.probability,
                       .phase = p->answer.phase,
                       .kv_tokens = p->kv.tokens,
                       .release = l->release,
                       .unmeasured = l->release && !l->doubts->measured};
    *(p->answer.verdict == OOMSIGHT_VERDICT_FITS ? &c->fix.certain_length : &c->fix.likely_length) =
        p->serving.length;
}

/* The first answer that neither asks for another release nor for much speed. */
static void take_answer(const look *l, candidate *c)
{
    for (size_t i = 0; i < c->plan.help.answer_count && !c->starts; i++) {
        const oos_fix *fix = &c->plan.help.fixes[i];
        if (fix->release || fix->rung >= OOS_RUNG_ELSEWHERE) continue;
        c->fix = *fix;
        c->fix.release = l->release;
        c->fix.unmeasured = l->release && !l->doubts->measured;
        c->starts = true;
    }
}

/* ---- what is lost ---------------------------------------------------------------------------------------------------- */

/* A context or a number of requests that few can work with: that is more than a checkpoint loses. */
enum { SHORT_TOKENS = 16384, FEW_REQUESTS = 8 };

/* The record of a word of a change; of one flag with several words that of the word behind it. */
static const oos_lever_record *record_of(const look *l, const char *flag, const char *value)
{
    const oos_ladder *ladder = l->plan->facts->ladder;
    for (size_t i = 0; i < ladder->count; i++) {
        const oos_lever_record *lever = &ladder->list[i];
        if (!lever->flag || !oos_lever_here(lever, l->version)) continue;
        bool const set = lever->move == OOS_MOVE_SET && lever->value;
        if (set && strcmp(lever->value, flag) == 0) return lever; /* the word that turns it off */
        if (strcmp(lever->flag, flag) == 0 && (!set || !value || strcmp(lever->value, value) == 0))
            return lever;
    }
    return NULL;
}

/* GPUs that are there and idle are no loss. */
static uint64_t loss_of_flag(const look *l, const char *flag, const char *value)
{
    const oos_lever_record *lever = record_of(l, flag, value);
    if (!lever || lever->role == OOS_ROLE_ranks) return 0;
    bool const few = lever->role == OOS_ROLE_requests && value && strtoull(value, NULL, 10) < FEW_REQUESTS;
    return oos_lever_loss(l->plan->facts->ladder, lever, few || oos_serve_given(&l->plan->serve, flag));
}

static uint64_t loss_of_checkpoint(const look *l)
{
    const oos_lever_record *lever = oos_ladder_find(l->plan->facts->ladder, "checkpoint");
    return lever ? oos_lever_loss(l->plan->facts->ladder, lever, false) : 0;
}

/* The dearest of what is lost. */
static uint64_t loss_of(const look *l, const oos_plan *plan, const oos_fix *fix)
{
    uint64_t const length = fix->certain_length ? fix->certain_length : fix->likely_length;
    bool const is_short = length && length < oos_min(plan->serving.length / 2, SHORT_TOKENS);
    uint64_t loss = is_short ? loss_of_checkpoint(l) + 1 : 0;
    for (size_t i = 0; i < fix->change_count; i++) {
        const char *value = i + 1 < fix->change_count ? fix->change[i + 1] : NULL;
        loss = oos_max(loss, loss_of_flag(l, fix->change[i], value));
    }
    for (size_t i = 0; i < fix->leave_out_count; i++)
        loss = oos_max(loss, loss_of_flag(l, fix->leave_out[i], NULL));
    return loss;
}

/* ---- the order of checkpoints ---------------------------------------------------------------------------------------- */

/* What is certain, then kernels for the GPU, then what loses least, then what holds a usual request, then what changes
 * least, then the weights that lose least. */
static bool goes_before(const candidate *a, const candidate *b)
{
    bool const a_certain = a->fix.verdict == OOMSIGHT_VERDICT_FITS;
    bool const b_certain = b->fix.verdict == OOMSIGHT_VERDICT_FITS;
    if (a_certain != b_certain) return a_certain;
    if (a->emulated != b->emulated) return b->emulated;
    if (a->loss != b->loss) return a->loss < b->loss;
    if (a->roomy != b->roomy) return a->roomy;
    if (a->fix.rung != b->fix.rung) return a->fix.rung < b->fix.rung;
    if (a->fix.change_count != b->fix.change_count) return a->fix.change_count < b->fix.change_count;
    return !a->four_bits && b->four_bits;
}

/* Flags are searched for where the weights leave most room. */
static bool solved_before(const candidate *a, const candidate *b)
{
    if (a->four_bits != b->four_bits) return a->four_bits;
    return a->emulated < b->emulated;
}

/* The model itself with the other release first: its flags may lose less than a checkpoint does. */
static oomsight_status solve_some(look *l, candidate *list, size_t count, bool found, oomsight_error *reterr)
{
    bool *done = OOS_NEW_ARRAY(l->plan->arena, bool, count + 1);
    oos_arena *scratch = oos_arena_create(64 << 10);
    oomsight_status status =
        done && scratch ? OOMSIGHT_OK : oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the search");
    for (size_t i = 0; done && i < count; i++) done[i] = list[i].starts || !weights_fit(&list[i].plan);
    candidate *own = count && list[count - 1].itself && !done[count - 1] ? &list[count - 1] : NULL;
    size_t left = SOLVED_MAX + (own ? 1 : 0);
    while (status == OOMSIGHT_OK && (own || (left > 0 && !found))) {
        candidate *best = own;
        for (size_t i = 0; !own && i < count; i++)
            if (!done[i] && (!best || solved_before(&list[i], best))) best = &list[i];
        if (!best) break;
        own = NULL;
        left--;
        done[best - list] = true;
        status = plan_one(l, best, scratch, reterr);
        take_answer(l, best);
        found |= best->starts;
    }
    oos_arena_free(scratch);
    return status;
}

/* The command that was read with this model, those flags left out and the others of the fix in it. */
static oomsight_status command_fill(look *l, candidate *c, oomsight_error *reterr)
{
    oomsight_plan *plan = l->plan;
    const oos_plan_ask *ask = l->ask;
    oos_serve serve;
    oos_engine_env env;
    const char *const *words =
        oos_serve_with_model(plan->arena, ask->words, ask->word_count, &plan->serve, c->listed->id);
    if (!words) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the command");
    OOS_TRY(oos_serve_read_as(plan->engine->dialect, plan->arena, words, ask->word_count, &plan->facts->flags,
                              l->version, &serve, &env, reterr));
    size_t const more = c->fix.leave_out_count;
    const char **without = OOS_NEW_ARRAY(plan->arena, const char *, more + WITHOUT_MAX);
    if (!without) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the command");
    memcpy(without, l->without, l->without_count * sizeof *without);
    for (size_t i = 0; i < more; i++) without[l->without_count + i] = c->fix.leave_out[i];
    c->fix.leave_out = without;
    c->fix.leave_out_count = l->without_count + more;
    c->fix.without = NULL;
    for (size_t i = 0; i < c->fix.leave_out_count; i++) {
        c->fix.without = i ? oos_arena_format(plan->arena, "%s %s", c->fix.without, without[i]) : without[i];
        if (!c->fix.without) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the command");
    }
    c->fix.command = oos_offers_command(plan, ask, words, &serve, &c->fix);
    return c->fix.command ? OOMSIGHT_OK : oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the command");
}

static oomsight_status name_them(look *l, candidate *list, size_t count, oos_needs *needs,
                                 const candidate **ret_first, oomsight_error *reterr)
{
    *ret_first = NULL;
    for (size_t i = 0; i < count; i++)
        list[i].roomy = list[i].fix.kv_tokens >= oos_min(list[i].plan.serving.length, USUAL_TOKENS);
    for (size_t i = 0; i < count; i++)
        list[i].loss =
            oos_max(list[i].itself ? 0 : loss_of_checkpoint(l), loss_of(l, &list[i].plan, &list[i].fix));
    while (needs->checkpoint_count < OOS_NEED_CHECKPOINTS_MAX) {
        candidate *best = NULL;
        for (size_t i = 0; i < count; i++)
            if (list[i].starts && (!best || goes_before(&list[i], best))) best = &list[i];
        if (!best) return OOMSIGHT_OK;
        best->starts = false; /* named */
        OOS_TRY(command_fill(l, best, reterr));
        if (!*ret_first) *ret_first = best;
        if (best->itself) continue;
        needs->checkpoints[needs->checkpoint_count++] =
            (oos_need_checkpoint){best->listed->id, best->plan.sizes.weights.loaded_bytes, best->fix};
    }
    return OOMSIGHT_OK;
}

/* Of the first answer; a length that another one keeps is not lost. UINT64_MAX: there is no answer, or no code for the GPU. */
static uint64_t loss_of_flags(const look *l)
{
    const oos_plan *p = &l->plan->plan;
    if (!p->help.answer_count || (p->no_code && !p->help.fixes[0].release)) return UINT64_MAX;
    oos_fix first = p->help.fixes[0];
    for (size_t i = 1; first.certain_length && i < p->help.answer_count; i++)
        first.certain_length = oos_max(first.certain_length, p->help.fixes[i].certain_length);
    return loss_of(l, p, &first);
}

/* The first of the answers where it loses less than they do. */
static oomsight_status lead(const look *l, const candidate *first, oomsight_error *reterr)
{
    oomsight_plan *plan = l->plan;
    oos_plan_help *help = &plan->plan.help;
    if (first->fix.verdict == OOMSIGHT_VERDICT_UNKNOWN || first->loss >= loss_of_flags(l)) return OOMSIGHT_OK;
    oos_fix *fixes = OOS_NEW_ARRAY(plan->arena, oos_fix, help->fix_count + 2);
    const oos_lever_record *lever =
        oos_ladder_find(plan->facts->ladder, first->itself ? "release" : "checkpoint");
    const char *cost = lever ? lever->cost.en : "another checkpoint";
    if (first->fix.gives_up && first->itself)
        cost = first->fix.gives_up; /* a pin costs nothing */
    else if (first->fix.gives_up)
        cost = oos_arena_format(plan->arena, "%s; %s", cost, first->fix.gives_up);
    if (!fixes || !cost) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the fixes");
    fixes[0] = first->fix;
    fixes[0].name = first->itself ? "least_change" : "checkpoint";
    if (!first->itself) fixes[0].model = first->listed->id;
    if (!first->itself) fixes[0].rung = OOS_RUNG_ELSEWHERE;
    fixes[0].gives_up = cost;
    if (!fixes[0].keeps) fixes[0].keeps = "everything else";
    for (size_t i = 0; i < help->fix_count; i++) fixes[i + 1] = help->fixes[i];
    help->fixes = fixes;
    help->fix_count++;
    help->answer_count = oos_min(help->answer_count + 1, OOS_ANSWERS_MAX);
    oos_assert(help->answer_count <= help->fix_count && fixes[0].command);
    return OOMSIGHT_OK;
}

/* Flags cannot do it, or lose more than a checkpoint does; or the engine refuses these weights on this GPU. */
static bool is_asked(const look *l)
{
    const oos_plan *p = &l->plan->plan;
    if (p->no_code) return l->release;
    if (p->answer.verdict == OOMSIGHT_VERDICT_FITS || p->answer.verdict == OOMSIGHT_VERDICT_UNKNOWN ||
        oos_plan_likely(p))
        return false;
    return p->help.needs ||
           (p->help.answer_count ? loss_of_flags(l) > loss_of_checkpoint(l) : !weights_fit(p));
}

/* The newest release whose PyTorch has code for the GPU, with the command as it reads it. *ret_release NULL: there is none. */
static oomsight_status release_find(look *l, oos_doubt_facts *doubts, oomsight_error *reterr)
{
    oomsight_plan *plan = l->plan;
    const oos_version *versions;
    const oos_rule_book *book = plan->facts->rules;
    size_t i = plan->engine->torch_minor ? oos_rule_book_versions(book, &versions) : 0;
    for (; i > 0; i--) {
        uint64_t const minor = plan->engine->torch_minor(book, versions[i - 1]);
        oos_torch_support const support =
            oos_torch_supports(oos_torch_find(&plan->facts->torch, minor), plan->start.device.capability);
        if (support == OOS_TORCH_WHEEL) break;
    }
    if (i == 0 || versions[i - 1] == plan->start.version) return OOMSIGHT_OK;
    oos_engine_env env;
    char word[32];
    oos_version_print(versions[i - 1], word, sizeof word);
    l->version = versions[i - 1];
    l->release = oos_arena_copy(plan->arena, oos_view_of(word));
    if (!l->release) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the release");
    doubts->release = l->release;
    doubts->measured = oos_rule_book_measured(book, l->version);
    doubts->newer = NULL;
    doubts->serve = &l->serve;
    return oos_serve_read_as(plan->engine->dialect, plan->arena, l->ask->words, l->ask->word_count,
                             &plan->facts->flags, l->version, &l->serve, &env, reterr);
}

oomsight_status oos_ask_checkpoints(oomsight_plan *plan, const oos_plan_ask *ask,
                                    const oos_doubt_facts *doubts, oomsight_error *reterr)
{
    const char *id = plan->serve.model;
    const oos_listed *listed;
    size_t listed_count, count = 0;
    oos_doubt_facts there = *doubts;
    look l = {
        .plan = plan, .ask = ask, .doubts = &there, .serve = plan->serve, .version = plan->start.version};
    if (plan->plan.no_code) OOS_TRY(release_find(&l, &there, reterr));
    if (!is_asked(&l) || !id || !strchr(id, '/') || oos_file_exists(id) ||
        oos_catalogue_checkpoints(plan->arena, ask->params->data->dir, id, &listed, &listed_count, NULL) !=
            OOMSIGHT_OK ||
        (listed_count == 0 && !l.release) ||
        !oos_serve_with_model(plan->arena, ask->words, ask->word_count, &plan->serve, id))
        return OOMSIGHT_OK;
    for (size_t i = 0; i < WITHOUT_MAX; i++) {
        const char *flag = plan->engine->words->weights_flags[i];
        if (!flag || !oos_serve_given(&plan->serve, flag)) continue;
        l.without[l.without_count++] = flag;
        if (!oos_serve_leave_out(plan->arena, &l.serve, flag)) return OOMSIGHT_OK;
    }
    candidate *list = OOS_NEW_ARRAY(plan->arena, candidate, listed_count + 1);
    oos_needs *needs = OOS_NEW(plan->arena, oos_needs);
    if (!list || !needs) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the checkpoints");
    bool found = false;
    oos_listed const own = {.id = id};
    for (size_t i = 0; i < listed_count + (l.release ? 1 : 0); i++) {
        candidate *c = &list[count];
        bool const itself = i == listed_count;
        *c = (candidate){.listed = itself ? &own : &listed[i], .itself = itself};
        if (itself) c->model = *plan->start.model;
        if ((!itself && oos_catalogue_open(plan->arena, ask->params->data->dir, &listed[i],
                                           l.serve.hf_overrides_json, &c->model, NULL) != OOMSIGHT_OK) ||
            needs_package(&c->model) || plan_one(&l, c, NULL, NULL) != OOMSIGHT_OK)
            continue;
        c->four_bits = oos_model_in_four_bits(&c->model);
        c->emulated = is_emulated(&c->model, plan->start.device.capability);
        take_as_it_is(&l, c);
        found |= c->starts;
        count++;
    }
    OOS_TRY(solve_some(&l, list, count, found, reterr));
    *needs = plan->plan.help.needs ? *plan->plan.help.needs : (oos_needs){0};
    const candidate *first;
    OOS_TRY(name_them(&l, list, count, needs, &first, reterr));
    if (needs->checkpoint_count) plan->plan.help.needs = needs;
    return first ? lead(&l, first, reterr) : OOMSIGHT_OK;
}
