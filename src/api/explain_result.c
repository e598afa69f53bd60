/* The answers of an explanation, one by one. */
#include "api/api.h"
#include "report/report.h"

static oomsight_fix advice_fix(oos_arena *arena, const oos_advice *advice)
{
    oos_text text = {0};
    oos_report_advice_change(advice, &text);
    const char *flags =
        text.failed ? NULL : oos_arena_copy(arena, (oos_view){text.ptr ? text.ptr : "", text.len});
    oos_text_free(&text);
    return (oomsight_fix){.flags = flags,
                          .verdict = OOMSIGHT_VERDICT_UNKNOWN,
                          .kv_tokens = OOMSIGHT_UNKNOWN,
                          .probability = -1,
                          .gives_up = advice->cost.en,
                          .why = advice->why.en,
                          .command = advice->command};
}

static oomsight_status fixes_form(oos_arena *arena, const oos_incident *incident,
                                  const oos_incident_notes *notes, struct oos_incident_fixes *ret_fixes,
                                  oomsight_error *reterr)
{
    oomsight_fix *list = OOS_NEW_ARRAY(arena, oomsight_fix, notes->fix_count + incident->fix_count + 1);
    size_t count = 0;
    bool whole = list != NULL;
    for (size_t i = 0; whole && i < notes->fix_count; i++)
        list[count++] = oos_api_fix_of(&notes->fixes[i], oos_report_plan_change(arena, &notes->fixes[i]));
    for (size_t i = 0; whole && !notes->fix_count && i < incident->fix_count; i++)
        list[count++] = advice_fix(arena, &incident->fixes[i]);
    for (size_t i = 0; whole && i < count; i++) whole = list[i].flags != NULL;
    if (!whole) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the fixes");
    ret_fixes->list = list;
    ret_fixes->count = count;
    return OOMSIGHT_OK;
}

oomsight_status oos_api_explain_fixes(oomsight_explanation *e, oomsight_error *reterr)
{
    size_t const count = e->explanation.count;
    e->fixes = OOS_NEW_ARRAY(e->arena, struct oos_incident_fixes, count + 1);
    if (!e->fixes) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the fixes");
    for (size_t i = 0; i < count; i++)
        OOS_TRY(fixes_form(e->arena, &e->explanation.incidents[i], &e->notes[i], &e->fixes[i], reterr));
    return OOMSIGHT_OK;
}

size_t oomsight_explain_count(const oomsight_explanation *explanation)
{
    return explanation->explanation.count;
}

/* NULL: there is no such incident. */
static const oos_incident *incident_at(const oomsight_explanation *explanation, size_t index)
{
    const oos_explanation *all = &explanation->explanation;
    return index < all->count ? &all->incidents[index] : NULL;
}

/* The rows of what was in use; none where nothing is known of it. */
static const oos_ledger *ledger_of(const oos_incident *incident)
{
    static const oos_ledger none;
    return incident->held.peak_bytes ? &incident->held.ledger : &none;
}

int oomsight_explain_incident(const oomsight_explanation *explanation, size_t index,
                              oomsight_incident *ret_incident)
{
    const oos_incident *from = incident_at(explanation, index);
    if (!from) return 0;
    const oos_incident_notes *notes = &explanation->notes[index];
    oomsight_incident incident = {.is_oom = from->is_oom,
                                  .state = oos_report_incident_state(from),
                                  .phase = oos_phase_word(from->phase),
                                  .phase_why = from->phase_why,
                                  .cause = from->cause,
                                  .cause_why = from->cause_why,
                                  .confidence = from->confidence,
                                  .phase_sure = from->phase_sure,
                                  .cause_sure = from->cause_sure,
                                  .would_decide = from->ask,
                                  .signature = from->record ? from->record->id : NULL,
                                  .engine = from->engine,
                                  .engine_version = from->setup.version,
                                  .model = from->setup.model,
                                  .gpu = oos_report_gpu(from, notes),
                                  .plan_check = notes->plan_check,
                                  .file = from->file,
                                  .first_line = from->first_line,
                                  .last_line = from->last_line,
                                  .count = from->count,
                                  .hold_count = oos_api_hold_count(ledger_of(from)),
                                  .fix_count = explanation->fixes[index].count};
    for (size_t i = 0; i < from->also_count && i < 2; i++) incident.also[i] = from->also[i];
    for (oos_number_id id = 0; id < OOS_NUMBER_COUNT; id++) incident.figure_count += from->numbers[id].known;
    oos_params_give(ret_incident, &incident, sizeof incident);
    return 1;
}

int oomsight_explain_figure(const oomsight_explanation *explanation, size_t incident, size_t index,
                            oomsight_figure *ret_figure)
{
    const oos_incident *from = incident_at(explanation, incident);
    oos_number_id id = 0;
    for (; from && id < OOS_NUMBER_COUNT; id++)
        if (from->numbers[id].known && index-- == 0) break;
    if (!from || id == OOS_NUMBER_COUNT) return 0;
    const oos_number *number = &from->numbers[id];
    int64_t const size = number->value > INT64_MAX ? INT64_MAX : (int64_t)number->value;
    bool const ratio = oos_number_unit(id) == 'R'; /* kept as millionths */
    oomsight_figure const figure = {.name = oos_number_key(id),
                                    .unit = oos_number_unit(id),
                                    .value = ratio              ? 0
                                             : number->negative ? -size
                                                                : size,
                                    .ratio = ratio ? (double)number->value / 1e6 : 0,
                                    .line = number->line};
    oos_params_give(ret_figure, &figure, sizeof figure);
    return 1;
}

int oomsight_explain_hold(const oomsight_explanation *explanation, size_t incident, size_t index,
                          oomsight_hold *ret_hold)
{
    const oos_incident *from = incident_at(explanation, incident);
    return from && oos_api_hold_give(ledger_of(from), index, ret_hold);
}

int oomsight_explain_fix(const oomsight_explanation *explanation, size_t incident, size_t index,
                         oomsight_fix *ret_fix)
{
    if (!incident_at(explanation, incident) || index >= explanation->fixes[incident].count) return 0;
    oos_params_give(ret_fix, &explanation->fixes[incident].list[index], sizeof *ret_fix);
    return 1;
}
