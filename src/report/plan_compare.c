/* Several plans of one command side by side: what an upgrade changes. */
#include "report/plan.h"
#include "base/json_write.h"
#include "base/locale.h"
#include "report/style.h"

#include <stdio.h>

typedef void (*cell_writer)(const oos_plan *plan, char *ret_cell, size_t capacity);

static void cell_verdict(const oos_plan *plan, char *ret_cell, size_t capacity)
{
    snprintf(ret_cell, capacity, "%s", oos_report_answer_word(plan));
}
static void cell_phase(const oos_plan *plan, char *ret_cell, size_t capacity)
{
    snprintf(ret_cell, capacity, "%s", plan->phase == OOS_PHASE_COUNT ? "-" : oos_phase_word(plan->phase));
}
static void cell_gmu(const oos_plan *plan, char *ret_cell, size_t capacity)
{
    oos_format(ret_cell, capacity, "%g", plan->setup->gpu_memory_utilization);
}
static void cell_seqs(const oos_plan *plan, char *ret_cell, size_t capacity)
{
    oos_style_count(ret_cell, capacity, plan->setup->max_num_seqs);
}
static void cell_batched(const oos_plan *plan, char *ret_cell, size_t capacity)
{
    oos_style_count(ret_cell, capacity, plan->setup->max_num_batched_tokens);
}
static void cell_backend(const oos_plan *plan, char *ret_cell, size_t capacity)
{
    snprintf(ret_cell, capacity, "%s", plan->backend.name ? plan->backend.name : "none");
}
static void cell_runner(const oos_plan *plan, char *ret_cell, size_t capacity)
{
    snprintf(ret_cell, capacity, "%s", plan->setup->v2_runner ? "V2" : "V1");
}
static void cell_graphs(const oos_plan *plan, char *ret_cell, size_t capacity)
{
    if (plan->setup->eager)
        snprintf(ret_cell, capacity, "none");
    else
        snprintf(ret_cell, capacity, "%zu to %llu", plan->setup->capture_count,
                 (unsigned long long)plan->setup->capture_top);
}
static void cell_trial(const oos_plan *plan, char *ret_cell, size_t capacity)
{
    oos_format(ret_cell, capacity, "%.2f", oos_gib(oos_mul(plan->trial_blocks, plan->kv_shape.block_bytes)));
}
static void cell_budget(const oos_plan *plan, char *ret_cell, size_t capacity)
{
    oos_format(ret_cell, capacity, "%.2f", oos_gib(plan->budget_bytes));
}
static void cell_weights(const oos_plan *plan, char *ret_cell, size_t capacity)
{
    oos_format(ret_cell, capacity, "%.2f", oos_gib(plan->weights.loaded_bytes));
}
static void cell_peak(const oos_plan *plan, char *ret_cell, size_t capacity)
{
    oos_format(ret_cell, capacity, "%.2f", oos_gib(plan->activation.peak.bytes));
}
static void cell_estimate(const oos_plan *plan, char *ret_cell, size_t capacity)
{
    oos_format(ret_cell, capacity, "%.2f",
               plan->setup->graph_estimate_applied ? oos_gib(plan->graphs.estimate.bytes) : 0.0);
}
static void cell_available(const oos_plan *plan, char *ret_cell, size_t capacity)
{
    oos_format(ret_cell, capacity, "%.2f", oos_gib(plan->kv.available_bytes));
}
static void cell_tokens(const oos_plan *plan, char *ret_cell, size_t capacity)
{
    oos_style_count(ret_cell, capacity, plan->kv.tokens);
}

static const struct {
    const char *name;
    cell_writer write;
} rows[] = {
    {"verdict", cell_verdict},
    {"phase", cell_phase},
    {"gpu_memory_utilization", cell_gmu},
    {"max_num_seqs", cell_seqs},
    {"max_num_batched_tokens", cell_batched},
    {"attention backend", cell_backend},
    {"model runner", cell_runner},
    {"graph sizes", cell_graphs},
    {"budget GiB", cell_budget},
    {"weights GiB", cell_weights},
    {"activation peak GiB", cell_peak},
    {"trial KV cache GiB", cell_trial},
    {"graph estimate charged GiB", cell_estimate},
    {"KV available GiB", cell_available},
    {"KV tokens", cell_tokens},
};

static void compare_text(oos_text *text, const oos_plan *const *plans, size_t count,
                         const oomsight_render_params *params)
{
    oos_style const style = oos_style_of(text, params);
    char cell[64], first[64];
    oos_text_printf(text, "%-28s", plans[0]->engine->title);
    for (size_t i = 0; i < count; i++) oos_style_ink(&style, OOS_INK_BOLD, "%24s", plans[i]->engine_version);
    oos_text_put(text, "\n");
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        bool differs = false;
        rows[r].write(plans[0], first, sizeof first);
        for (size_t i = 1; i < count; i++) {
            rows[r].write(plans[i], cell, sizeof cell);
            differs |= strcmp(cell, first) != 0;
        }
        oos_text_put(text, differs ? "* " : "  ");
        oos_style_cell(&style, 26, rows[r].name);
        for (size_t i = 0; i < count; i++) {
            rows[r].write(plans[i], cell, sizeof cell);
            oos_style_ink(&style, differs ? OOS_INK_WARN : OOS_INK_PLAIN, "%24s", cell);
        }
        oos_text_put(text, "\n");
    }
    for (size_t i = 0; i < count; i++)
        if (plans[i]->why) {
            oos_text_printf(text, "\n%s: ", plans[i]->engine_version);
            oos_style_paragraph(&style, 0, plans[i]->why);
        }
    oos_style_put(&style, "* differs\n");
}

void oos_report_plans(oos_text *text, const oos_plan *const *plans, size_t count,
                      const oomsight_render_params *params)
{
    if (params->format == OOMSIGHT_FORMAT_JSON) { /* one object per line */
        for (size_t i = 0; i < count; i++) oos_report_plan_json(text, plans[i]);
        return;
    }
    compare_text(text, plans, count, params);
}

void oos_report_plan_changes(oos_json_writer *writer, const oos_plan *before, const oos_plan *after)
{
    char old[64], new[64];
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        rows[r].write(before, old, sizeof old);
        rows[r].write(after, new, sizeof new);
        if (strcmp(old, new) == 0) continue;
        oos_json_begin_object(writer);
        oos_json_field_str(writer, "name", rows[r].name);
        oos_json_field_str(writer, "before", old);
        oos_json_field_str(writer, "after", new);
        oos_json_end_object(writer);
    }
}
