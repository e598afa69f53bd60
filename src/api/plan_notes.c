/* The notes of a plan: what was assumed, what is not modelled, what may be mistyped. */
#include "api/api.h"

enum { NOTES_MAX = 64, ASSUMED_MAX = 8 };

static void note(const char **notes, size_t *count, const char *text)
{
    if (text && *count < NOTES_MAX) notes[(*count)++] = text;
}

static void assume(oos_plan *plan, const char **list, const char *text)
{
    if (text && plan->assumed_count < ASSUMED_MAX) list[plan->assumed_count++] = text;
}

/* How the sizes of a built-in model are known. */
static const char *built_in(oos_arena *arena, const oos_model *model)
{
    if (model->wide)
        return oos_arena_format(
            arena, "built-in model sizes that are not proven: weights may differ by %llu.%llu %%",
            (unsigned long long)(model->wide / 10), (unsigned long long)(model->wide % 10));
    if (strcmp(model->level, "proven") == 0)
        return "built-in model sizes, proven by their number of parameters";
    if (strcmp(model->level, "alias") == 0)
        return oos_arena_format(arena, "built-in config of %s, which has as many parameters",
                                model->rests_on);
    return "built-in model config";
}

/* What stands in the first lines. */
static oomsight_status assumed_gather(oomsight_plan *plan, const oos_plan_ask *ask, oomsight_error *reterr)
{
    const char **list = OOS_NEW_ARRAY(plan->arena, const char *, ASSUMED_MAX);
    if (!list) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the notes");
    plan->plan.assumed = list;
    assume(&plan->plan, list, ask->gpu_note);
    assume(&plan->plan, list, ask->held);
    if (plan->plan.asked)
        assume(&plan->plan, list,
               oos_arena_format(plan->arena, "the command in the words of %s: `%s`", plan->plan.engine->title,
                                plan->plan.asked));
    if (plan->start.model && plan->start.model->from_catalogue)
        assume(&plan->plan, list, built_in(plan->arena, plan->start.model));
    uint64_t const ranks = ask->ranks.here, count = plan->start.device.count;
    uint64_t const each = count / oos_max(1, plan->plan.serving.pp);
    bool const idle = count > ranks && plan->plan.serving.dp <= 1;
    const oos_lever_record *cut =
        idle && plan->facts->ladder ? oos_ladder_find(plan->facts->ladder, "parallel") : NULL;
    if (idle)
        assume(&plan->plan, list,
               cut && (each & (each - 1)) == 0
                   ? oos_arena_format(plan->arena, "%llu of %llu GPUs (%s %llu uses all)",
                                      (unsigned long long)ranks, (unsigned long long)count, cut->flag,
                                      (unsigned long long)each)
                   : oos_arena_format(plan->arena, "%llu of %llu GPUs", (unsigned long long)ranks,
                                      (unsigned long long)count));
    if (ask->release_from)
        assume(&plan->plan, list,
               oos_arena_format(plan->arena, "%s %s (%s)", plan->plan.engine->title,
                                plan->plan.engine_version, ask->release_from));
    return OOMSIGHT_OK;
}

/* What becomes of each environment variable that does not enter the plan. */
static void variables_note(oomsight_plan *plan, const char **notes, size_t *count)
{
    char version[32];
    oos_version_print(plan->start.version, version, sizeof version);
    for (size_t i = 0; i < plan->env.variable_count; i++) {
        const oos_given_variable *v = &plan->env.variables[i];
        if (v->effect == OOS_ENV_ABSENT)
            note(notes, count,
                 oos_arena_format(plan->arena, "%s is no variable of %s %s: it has no effect%s", v->name,
                                  plan->engine->words->title, version,
                                  v->logged ? ", and the engine logs it as unknown" : ""));
        else if (v->effect == OOS_ENV_UNMODELLED && v->why)
            note(notes, count,
                 oos_arena_format(plan->arena, "%s can move memory but is not modelled (%s)", v->name,
                                  v->why));
        else if (v->effect == OOS_ENV_UNMODELLED)
            note(notes, count,
                 oos_arena_format(plan->arena, "%s: whether it moves memory is not known", v->name));
    }
}

/* What is not modelled, what the user may have mistyped. */
static oomsight_status notes_gather(oomsight_plan *plan, oomsight_error *reterr)
{
    const char **notes = OOS_NEW_ARRAY(plan->arena, const char *, NOTES_MAX);
    if (!notes) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the notes");
    size_t count = 0;
    const oos_plan *p = &plan->plan;
    for (size_t i = 0; i < plan->translation.left_out_count; i++)
        note(notes, &count, plan->translation.left_out[i]);
    for (size_t i = 0; i < p->model->note_count; i++) note(notes, &count, p->model->notes[i]);
    for (size_t i = 0; i < p->told.resolved_count; i++) note(notes, &count, p->told.resolved[i]);
    for (size_t i = 0; i < plan->serve.flag_count; i++) {
        const oos_given_flag *flag = &plan->serve.flags[i];
        if (flag->effect == OOS_FLAG_UNKNOWN)
            note(notes, &count,
                 oos_arena_format(plan->arena, "%s is not a flag of this version%s%s", flag->name,
                                  flag->nearest ? "; nearest: " : "", flag->nearest ? flag->nearest : ""));
        else if (flag->effect == OOS_FLAG_UNMODELLED)
            note(notes, &count,
                 oos_arena_format(plan->arena, "%s can move memory but is not modelled", flag->name));
        else if (flag->effect == OOS_FLAG_NO_MEMORY)
            note(notes, &count, oos_arena_format(plan->arena, "%s: no effect on memory", flag->name));
        if (flag->note) note(notes, &count, oos_arena_format(plan->arena, "%s: %s", flag->name, flag->note));
    }
    variables_note(plan, notes, &count);
    plan->plan.told.notes = notes;
    plan->plan.told.note_count = count;
    return OOMSIGHT_OK;
}

oomsight_status oos_ask_notes(oomsight_plan *plan, const oos_plan_ask *ask, oomsight_error *reterr)
{
    if (plan->translation.count)
        plan->plan.asked =
            oos_serve_whole(plan->arena, ask->words, ask->word_count, 0, &plan->serve, NULL, 0, NULL, 0);
    OOS_TRY(assumed_gather(plan, ask, reterr));
    return notes_gather(plan, reterr);
}
