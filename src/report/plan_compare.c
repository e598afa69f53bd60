/* Several plans of one command side by side: what an upgrade changes, and which engine leaves more. */
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

/* The moment with the least left once the cache is there: those before it compare with a budget, or need less. */
static const oos_moment *busiest(const oos_plan *plan)
{
    const oos_moment *worst = NULL;
    double least = 0;
    for (size_t i = 0; i < plan->phase_count; i++) {
        const oos_moment *m = &plan->phases[i];
        double const left = (double)m->limit_bytes - (double)m->peak_bytes;
        if (m->phase < OOS_PHASE_KV_ALLOC || (worst && left >= least)) continue;
        worst = m;
        least = left;
    }
    return worst;
}
static void cell_concurrency(const oos_plan *plan, char *ret_cell, size_t capacity)
{
    oos_format(ret_cell, capacity, "%.2f", plan->kv.max_concurrency);
}
static void cell_length(const oos_plan *plan, char *ret_cell, size_t capacity)
{
    oos_style_count(ret_cell, capacity, plan->setup->max_model_len);
}
static void cell_left(const oos_plan *plan, char *ret_cell, size_t capacity)
{
    const oos_moment *m = busiest(plan);
    if (!m)
        snprintf(ret_cell, capacity, "-");
    else
        oos_format(ret_cell, capacity, "%.2f",
                   ((double)m->limit_bytes - (double)m->peak_bytes) / (double)OOS_GIB);
}

typedef struct compare_row {
    const char *name;
    cell_writer write;
} compare_row;

static const compare_row release_rows[] = {
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
    {"profiling KV cache GiB", cell_trial},
    {"graph estimate charged GiB", cell_estimate},
    {"KV available GiB", cell_available},
    {"KV tokens", cell_tokens},
};

/* What means the same in every engine. */
static const compare_row engine_rows[] = {
    {"verdict", cell_verdict},
    {"phase", cell_phase},
    {"KV tokens", cell_tokens},
    {"tokens of a request", cell_length},
    {"concurrency at that length", cell_concurrency},
    {"concurrent requests, limit", cell_seqs},
    {"tokens of a prefill step", cell_batched},
    {"weights GiB", cell_weights},
    {"KV available GiB", cell_available},
    {"left when busiest GiB", cell_left},
};

enum {
    RELEASE_ROWS = sizeof release_rows / sizeof *release_rows,
    ENGINE_ROWS = sizeof engine_rows / sizeof *engine_rows
};

static bool several_engines(const oos_plan *const *plans, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (plans[i]->engine != plans[0]->engine) return true;
    return false;
}

static void put_row(oos_text *text, const oos_style *style, const compare_row *row,
                    const oos_plan *const *plans, size_t count)
{
    char cell[64], first[64];
    bool differs = false;
    row->write(plans[0], first, sizeof first);
    for (size_t i = 1; i < count; i++) {
        row->write(plans[i], cell, sizeof cell);
        differs |= strcmp(cell, first) != 0;
    }
    oos_text_put(text, differs ? "* " : "  ");
    oos_style_cell(style, 26, row->name);
    for (size_t i = 0; i < count; i++) {
        row->write(plans[i], cell, sizeof cell);
        oos_style_ink(style, differs ? OOS_INK_WARN : OOS_INK_PLAIN, "%24s", cell);
    }
    oos_text_put(text, "\n");
}

/* Of those that start, the one with the most tokens, beside each other one that starts. */
static void put_winner(oos_text *text, const oos_style *style, const oos_plan *const *plans, size_t count)
{
    const oos_plan *best = NULL;
    for (size_t i = 0; i < count; i++)
        if (oos_answer_starts(plans[i]->verdict, plans[i]->probability) &&
            (!best || plans[i]->kv.tokens > best->kv.tokens))
            best = plans[i];
    for (size_t i = 0; i < count && best; i++) {
        const oos_plan *other = plans[i];
        if (other == best || !other->kv.tokens || !oos_answer_starts(other->verdict, other->probability))
            continue;
        char line[160];
        oos_format(line, sizeof line, "%s %s has room for %.2f times the tokens of %s %s.",
                   best->engine->title, best->engine_version,
                   (double)best->kv.tokens / (double)other->kv.tokens, other->engine->title,
                   other->engine_version);
        oos_text_put(text, "\n");
        oos_style_paragraph(style, 0, line);
    }
}

/* What one plan says beyond its column: why it fails, the command it was translated to, what could not be. */
static void put_words(oos_text *text, const oos_style *style, const oos_plan *plan, bool named)
{
    const char *title = named ? plan->engine->title : "", *gap = named ? " " : "";
    if (plan->why) {
        oos_text_printf(text, "\n%s%s%s: ", title, gap, plan->engine_version);
        oos_style_paragraph(style, 0, plan->why);
    }
    if (plan->asked) {
        oos_text_printf(text, "\n%s%s%s: ", title, gap, plan->engine_version);
        oos_style_put(style, "the command in its words\n");
        oos_text_printf(text, "  %s\n", plan->asked);
        for (size_t i = 0; i < plan->note_count; i++)
            if (strstr(plan->notes[i], "carried over")) oos_style_paragraph(style, 2, plan->notes[i]);
    }
}

static void compare_text(oos_text *text, const oos_plan *const *plans, size_t count,
                         const oomsight_render_params *params)
{
    oos_style const style = oos_style_of(text, params);
    bool const several = several_engines(plans, count);
    const compare_row *rows = several ? engine_rows : release_rows;
    size_t const row_count = several ? ENGINE_ROWS : RELEASE_ROWS;
    oos_text_printf(text, "%-28s", several ? "" : plans[0]->engine->title);
    for (size_t i = 0; i < count; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s%s%s", several ? plans[i]->engine->title : "", several ? " " : "",
                 plans[i]->engine_version);
        oos_style_ink(&style, OOS_INK_BOLD, "%24s", name);
    }
    oos_text_put(text, "\n");
    for (size_t r = 0; r < row_count; r++) put_row(text, &style, &rows[r], plans, count);
    if (several) put_winner(text, &style, plans, count);
    for (size_t i = 0; i < count; i++) put_words(text, &style, plans[i], several);
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
    for (size_t r = 0; r < RELEASE_ROWS; r++) {
        release_rows[r].write(before, old, sizeof old);
        release_rows[r].write(after, new, sizeof new);
        if (strcmp(old, new) == 0) continue;
        oos_json_begin_object(writer);
        oos_json_field_str(writer, "name", release_rows[r].name);
        oos_json_field_str(writer, "before", old);
        oos_json_field_str(writer, "after", new);
        oos_json_end_object(writer);
    }
}
