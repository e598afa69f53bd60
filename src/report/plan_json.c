/* A plan as JSON, schema oomsight.plan/1 (CONTRACT). */
#include "report/report.h"

static void put_device(oos_json_writer *w, const oos_device_facts *device)
{
    oos_json_field_object(w, "gpu");
    oos_json_field_str(w, "name", device->name);
    oos_json_field_u64(w, "count", device->count);
    oos_json_field_u64(w, "total_bytes", device->total_bytes);
    oos_json_field_f64(w, "compute_capability", device->capability / 10.0);
    oos_json_field_u64(w, "used_bytes", device->used_bytes);
    oos_json_end_object(w);
}

static void put_setting(oos_json_writer *w, const oos_setting *setting)
{
    switch (setting->kind) {
    case OOS_SETTING_TEXT: oos_json_field_str(w, setting->name, setting->text); break;
    case OOS_SETTING_REAL: oos_json_field_f64(w, setting->name, setting->real); break;
    case OOS_SETTING_YES: oos_json_field_bool(w, setting->name, setting->whole); break;
    case OOS_SETTING_WHOLE:
    case OOS_SETTING_SIZES:
    case OOS_SETTING_GIB: oos_json_field_u64(w, setting->name, setting->whole); break;
    }
}

static void put_setup(oos_json_writer *w, const oos_plan *plan)
{
    oos_json_field_object(w, "setup");
    for (size_t i = 0; i < plan->told.setting_count; i++) put_setting(w, &plan->told.settings[i]);
    if (plan->told.own_count) {
        oos_json_field_object(w, "own");
        for (size_t i = 0; i < plan->told.own_count; i++) {
            double const value = plan->told.own[i].value;
            if (value >= 0 && value == (double)oos_u64_from(value))
                oos_json_field_u64(w, plan->told.own[i].name, oos_u64_from(value));
            else
                oos_json_field_f64(w, plan->told.own[i].name, value);
        }
        oos_json_end_object(w);
    }
    oos_json_end_object(w);
}

static void put_weights(oos_json_writer *w, const oos_plan *plan)
{
    const oos_weights *weights = &plan->sizes.weights;
    oos_json_field_object(w, "weights");
    oos_json_field_array(w, "param_bytes");
    for (uint64_t i = 0; i < plan->serving.pp; i++) oos_json_put_u64(w, plan->sizes.stage_param_bytes[i]);
    oos_json_end_array(w);
    oos_json_field_u64(w, "draft_param_bytes", weights->draft_param_bytes);
    oos_json_field_u64(w, "buffer_bytes", weights->buffer_bytes);
    oos_json_field_u64(w, "lora_bytes", weights->lora_bytes);
    oos_json_key(w, "after_load_bytes");
    oos_json_put_i64(w, weights->after_load_bytes);
    oos_json_field_str(w, "source", oos_source_word(weights->source));
    oos_json_field_object(w, "parts");
    for (size_t i = 0; i < weights->part_count; i++)
        oos_json_field_u64(w, weights->parts[i].module, weights->parts[i].bytes);
    oos_json_end_object(w);
    oos_json_end_object(w);
}

/* What is left for the cache, negative as the engine prints it when it is less than nothing, and its range. */
static void put_available(oos_json_writer *w, const oos_plan *plan)
{
    bool const given = plan->sizes.non_kv.bytes == 0;
    int64_t const budget = (int64_t)plan->sizes.budget_bytes, kv = (int64_t)plan->kv.available_bytes;
    oos_json_key(w, "available_bytes");
    oos_json_put_i64(w, given || kv > 0 ? kv : budget - (int64_t)plan->sizes.non_kv.bytes);
    oos_json_key(w, "available_low_bytes");
    oos_json_put_i64(w, given ? kv : budget - (int64_t)plan->sizes.non_kv.high);
    oos_json_key(w, "available_high_bytes");
    oos_json_put_i64(w, given ? kv : budget - (int64_t)plan->sizes.non_kv.low);
}

static void put_kv(oos_json_writer *w, const oos_plan *plan)
{
    const oos_kv_layout *shape = &plan->layout;
    oos_json_field_object(w, "kv");
    oos_json_field_f64(w, "bytes_per_token", shape->bytes_per_token);
    oos_json_field_u64(w, "block_tokens", shape->block_tokens);
    oos_json_field_u64(w, "page_bytes", shape->page_bytes);
    oos_json_field_u64(w, "block_bytes", shape->block_bytes);
    oos_json_field_u64(w, "tensors", shape->tensor_count);
    oos_json_field_u64(w, "padding_layers", shape->padding_layers);
    put_available(w, plan);
    oos_json_field_u64(w, "needed_bytes", plan->kv.needed_bytes);
    oos_json_field_u64(w, "blocks", plan->kv.blocks);
    oos_json_field_u64(w, "tokens", plan->kv.tokens);
    oos_json_field_f64(w, "max_concurrency", plan->kv.max_concurrency);
    oos_json_field_known(w, "estimated_max_len", plan->kv.estimated_max_len);
    oos_json_field_bool(w, "estimated", shape->estimated);
    oos_json_field_array(w, "groups");
    for (size_t i = 0; i < shape->group_count; i++) {
        const oos_kv_set *group = &shape->groups[i];
        oos_json_begin_object(w);
        oos_json_field_str(w, "kind", group->kind);
        oos_json_field_u64(w, "layers", group->layers);
        oos_json_field_u64(w, "block_tokens", group->block_tokens);
        oos_json_field_u64(w, "page_bytes", group->page_bytes);
        oos_json_field_u64(w, "request_blocks", group->request_blocks);
        oos_json_end_object(w);
    }
    oos_json_end_array(w);
    oos_json_end_object(w);
}

/* The parts of the peak and of what lies outside, for people who compare with a log. */
static void put_parts(oos_json_writer *w, const oos_plan *plan)
{
    oos_json_field_array(w, "parts");
    for (size_t i = 0; i < plan->sizes.part_count; i++)
        oos_report_amount_json(w, plan->sizes.parts[i].name, &plan->sizes.parts[i].amount);
    oos_json_end_array(w);
}

static void put_phases(oos_json_writer *w, const oos_plan *plan)
{
    oos_json_field_array(w, "phases");
    for (size_t i = 0; i < plan->phase_count; i++) {
        const oos_moment *moment = &plan->phases[i];
        oos_json_begin_object(w);
        oos_json_field_str(w, "phase", oos_phase_word(moment->phase));
        oos_json_field_u64(w, "peak_bytes", moment->peak_bytes);
        oos_json_field_u64(w, "peak_low", moment->peak_low);
        oos_json_field_u64(w, "peak_high", moment->peak_high);
        oos_json_field_u64(w, "limit_bytes", moment->limit_bytes);
        oos_json_field_u64(w, "limit_low", moment->limit_low);
        oos_json_field_u64(w, "limit_high", moment->limit_high);
        oos_json_field_bool(w, "ok", moment->ok);
        oos_json_field_bool(w, "tight", moment->tight);
        oos_json_key(w, "holds");
        oos_report_holds_json(w, &moment->ledger);
        if (!moment->ok && moment->message) oos_json_field_str(w, "message", moment->message);
        oos_json_end_object(w);
    }
    oos_json_end_array(w);
}

static void put_way(oos_json_writer *w, const oos_fork *fork, bool meant)
{
    oos_json_begin_object(w);
    oos_json_field_str(w, "name", meant ? fork->meant : fork->other);
    oos_json_field_str(w, "closed_by", fork->closed_by);
    oos_json_field_u64(w, "kv_bytes", meant ? fork->kv_bytes : fork->other_kv_bytes);
    oos_json_field_u64(w, "kv_tokens", meant ? fork->kv_tokens : fork->other_kv_tokens);
    oos_json_field_str(w, "verdict", oos_report_verdict_word(meant ? fork->verdict : fork->other_verdict));
    oos_phase const phase = meant ? fork->phase : fork->other_phase;
    oos_json_field_str(w, "phase", phase == OOS_PHASE_COUNT ? NULL : oos_phase_word(phase));
    oos_json_field_bool(w, "meant", meant);
    oos_json_end_object(w);
}

/* Both ways of what no flag tells; the plan's own figures are those of the one that is meant. */
static void put_forks(oos_json_writer *w, const oos_plan *plan)
{
    oos_json_field_array(w, "forks");
    for (size_t i = 0; i < plan->help.fork_count; i++) {
        put_way(w, &plan->help.forks[i], true);
        put_way(w, &plan->help.forks[i], false);
    }
    oos_json_end_array(w);
}

static void put_words(oos_json_writer *w, const char *key, const char *const *words, size_t count)
{
    oos_json_field_strs(w, key, words, count);
}

static void put_change(oos_json_writer *w, const oos_fix *fix)
{
    put_words(w, "change", fix->change, fix->change_count);
    if (fix->model) oos_json_field_str(w, "model", fix->model);
    if (fix->without) oos_json_field_str(w, "without", fix->without);
    if (fix->release) oos_json_field_str(w, "release", fix->release);
    char const rung[] = {oos_rung_letter(fix->rung), 0};
    oos_json_field_str(w, "rung", rung);
}

static void put_answer(oos_json_writer *w, const oos_fix *fix)
{
    oos_json_begin_object(w);
    oos_json_field_str(w, "name", fix->name);
    put_change(w, fix);
    oos_json_field_str(w, "command", fix->command);
    oos_json_field_str(w, "verdict", oos_report_verdict_word(fix->verdict));
    oos_report_probability_json(w, "probability", fix->probability);
    oos_json_field_u64(w, "kv_tokens", fix->kv_tokens);
    oos_json_field_object(w, "max_model_len");
    oos_json_field_known(w, "likely", (oos_u64){fix->likely_length != 0, fix->likely_length});
    oos_json_field_known(w, "certain", (oos_u64){fix->certain_length != 0, fix->certain_length});
    oos_json_field_known(w, "middle", (oos_u64){fix->middle_length != 0, fix->middle_length});
    oos_json_end_object(w);
    oos_json_field_known(w, "requests", (oos_u64){fix->request_tokens != 0, fix->requests});
    oos_json_field_known(w, "request_tokens", (oos_u64){fix->request_tokens != 0, fix->request_tokens});
    oos_json_field_str(w, "keeps", fix->keeps);
    oos_json_field_str(w, "gives_up", fix->gives_up);
    oos_json_end_object(w);
}

static void put_answers(oos_json_writer *w, const oos_plan *plan)
{
    oos_json_field_array(w, "answers");
    for (size_t i = 0; i < plan->help.answer_count; i++) put_answer(w, &plan->help.fixes[i]);
    oos_json_end_array(w);
}

static void put_checkpoints(oos_json_writer *w, const oos_needs *needs)
{
    oos_json_field_array(w, "checkpoints");
    for (size_t i = 0; i < needs->checkpoint_count; i++) {
        const oos_need_checkpoint *need = &needs->checkpoints[i];
        bool const known = need->fix.verdict != OOMSIGHT_VERDICT_UNKNOWN;
        oos_json_begin_object(w);
        oos_json_field_str(w, "model", need->id);
        oos_json_field_u64(w, "weights_bytes", need->weights_bytes);
        put_change(w, &need->fix);
        oos_json_field_str(w, "command", need->fix.command);
        oos_json_field_str(w, "verdict", oos_report_verdict_word(need->fix.verdict));
        oos_report_probability_json(w, "probability", need->fix.probability);
        oos_json_field_known(w, "kv_tokens", (oos_u64){known, need->fix.kv_tokens});
        oos_json_end_object(w);
    }
    oos_json_end_array(w);
}

static void put_needs(oos_json_writer *w, const oos_plan *plan)
{
    const oos_needs *needs = plan->help.needs;
    char words[160];
    if (!needs) {
        oos_json_field_str(w, "needs", NULL);
        return;
    }
    oos_json_field_object(w, "needs");
    oos_json_field_str(w, "checkpoint", oos_report_checkpoint(needs, words, sizeof words));
    put_checkpoints(w, needs);
    oos_json_field_str(w, "release", needs->release);
    oos_json_field_bool(w, "no_release", needs->no_release);
    oos_json_field_bool(w, "no_device", needs->no_device);
    oos_json_field_array(w, "gpus");
    for (size_t i = 0; i < needs->gpu_count; i++) {
        const oos_need_gpu *need = &needs->gpus[i];
        oos_json_begin_object(w);
        oos_json_field_str(w, "gpu", need->gpu);
        oos_json_field_u64(w, "count", need->count);
        put_words(w, "flags", need->flags, need->flag_count);
        if (need->command) oos_json_field_str(w, "command", need->command);
        oos_json_field_known(w, "kv_tokens",
                             (oos_u64){need->verdict != OOMSIGHT_VERDICT_UNKNOWN, need->kv_tokens});
        oos_json_end_object(w);
    }
    oos_json_end_array(w);
    oos_json_end_object(w);
}

void oos_report_fixes_json(oos_json_writer *w, const oos_fix *fixes, size_t count)
{
    oos_json_field_array(w, "fixes");
    for (size_t i = 0; i < count; i++) {
        const oos_fix *fix = &fixes[i];
        oos_json_begin_object(w);
        put_change(w, fix);
        oos_json_field_str(w, "command", fix->command);
        oos_json_field_str(w, "verdict", oos_report_verdict_word(fix->verdict));
        oos_json_field_str(w, "phase", fix->phase == OOS_PHASE_COUNT ? NULL : oos_phase_word(fix->phase));
        oos_json_field_u64(w, "kv_tokens", fix->kv_tokens);
        oos_json_field_str(w, "keeps", fix->keeps);
        oos_json_field_str(w, "gives_up", fix->gives_up);
        oos_json_end_object(w);
    }
    oos_json_end_array(w);
}

static void put_offers(oos_json_writer *w, const oos_plan *plan)
{
    oos_report_fixes_json(w, plan->help.fixes, plan->help.fix_count);
    put_answers(w, plan);
    put_needs(w, plan);
    oos_json_field_array(w, "inert");
    for (size_t i = 0; i < plan->help.inert_count; i++) {
        oos_json_begin_object(w);
        oos_json_field_str(w, "flag", plan->help.inert[i].flag);
        oos_json_field_str(w, "why", plan->help.inert[i].why);
        oos_json_field_str(w, "needed_by",
                           plan->help.inert[i].needed_by == OOS_PHASE_COUNT
                               ? NULL
                               : oos_phase_word(plan->help.inert[i].needed_by));
        oos_json_end_object(w);
    }
    oos_json_end_array(w);
}

/* A field of its own only where the installed engine was asked. */
static void put_exact(oos_json_writer *w, const oos_plan *plan)
{
    const oos_exact_told *told = plan->exact;
    if (!told) return;
    oos_json_field_object(w, "exact");
    oos_json_field_str(w, "verdict", oos_exact_told_word(told));
    oos_json_field_str(w, "version", told->answer ? told->answer->version : NULL);
    oos_json_field_str(w, "problem", told->problem);
    oos_json_field_str(w, "stage", told->answer ? told->answer->stage : NULL);
    oos_json_field_str(w, "text", told->answer ? told->answer->sentence : NULL);
    oos_json_field_bool(w, "sized", told->sized);
    oos_json_field_array(w, "replaced");
    for (size_t i = 0; i < told->change_count; i++) {
        oos_setting was = told->changes[i].plan, is = told->changes[i].engine;
        oos_json_begin_object(w);
        oos_json_field_str(w, "name", is.name);
        was.name = "plan", is.name = "engine";
        put_setting(w, &was);
        put_setting(w, &is);
        oos_json_end_object(w);
    }
    oos_json_end_array(w);
    oos_json_end_object(w);
}

static void put_plan(oos_json_writer *w, const oos_plan *plan)
{
    oos_json_begin_object(w);
    oos_json_field_str(w, "schema", "oomsight.plan/1");
    oos_json_field_object(w, "engine");
    oos_json_field_str(w, "name", plan->engine->name);
    oos_json_field_str(w, "version", plan->engine_version);
    oos_json_end_object(w);
    put_device(w, &plan->device);
    oos_json_field_str(w, "verdict", oos_report_verdict_word(plan->answer.verdict));
    bool const known = plan->answer.verdict != OOMSIGHT_VERDICT_UNKNOWN;
    oos_json_field_str(w, "likely", !known ? NULL : oos_plan_likely(plan) ? "starts" : "fails");
    oos_report_probability_json(w, "probability", plan->answer.probability);
    oos_json_field_str(w, "phase",
                       plan->answer.phase == OOS_PHASE_COUNT ? NULL : oos_phase_word(plan->answer.phase));
    if (plan->answer.phase != OOS_PHASE_COUNT)
        oos_json_field_f64(w, "phase_probability", plan->answer.phase_probability);
    oos_json_field_str(w, "cause", oos_cause_word(plan->answer.cause));
    oos_json_field_str(w, "why", plan->answer.why);
    put_words(w, "doubts", plan->doubts, plan->doubt_count);
    oos_json_field_known(w, "tried_bytes", plan->answer.tried_bytes);
    oos_json_field_u64(w, "weights_bytes", plan->sizes.weights.loaded_bytes);
    oos_json_field_u64(w, "budget_bytes", plan->sizes.budget_bytes);
    put_kv(w, plan);
    oos_json_field_str(w, "attention_backend", plan->serving.attention);
    oos_json_field_str(w, "attention_backend_reason", plan->serving.attention_reason);
    put_weights(w, plan);
    put_setup(w, plan);
    put_parts(w, plan);
    put_phases(w, plan);
    put_offers(w, plan);
    put_forks(w, plan);
    put_exact(w, plan);
    put_words(w, "assumed", plan->assumed, plan->assumed_count);
    oos_json_field_strs(w, "notes", plan->told.notes, plan->told.note_count);
    oos_json_end_object(w);
}

void oos_report_plan_json(oos_text *text, const oos_plan *plan)
{
    oos_json_writer writer = {.text = text, .pretty_depth = 2};
    put_plan(&writer, plan);
    oos_text_put(text, "\n");
}
