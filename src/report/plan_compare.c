/* Several plans of one command side by side: what an upgrade changes, and which engine leaves more. */
#include "report/report.h"
#include "base/json_write.h"
#include "base/locale.h"

#include <stdio.h>

typedef void (*cell_writer)(const oos_plan *plan, char *ret_cell, size_t capacity);

static void cell_verdict(const oos_plan *plan, char *ret_cell, size_t capacity)
{
    snprintf(ret_cell, capacity, "%s", oos_report_answer_word(plan));
}
static void cell_phase(const oos_plan *plan, char *ret_cell, size_t capacity)
{
    snprintf(ret_cell, capacity, "%s",
             plan->answer.phase == OOS_PHASE_COUNT ? "-" : oos_phase_word(plan->answer.phase));
}
static void cell_seqs(const oos_plan *plan, char *ret_cell, size_t capacity)
{
    oos_style_count(ret_cell, capacity, plan->serving.requests);
}
static void cell_batched(const oos_plan *plan, char *ret_cell, size_t capacity)
{
    oos_style_count(ret_cell, capacity, plan->serving.step_tokens);
}
static void cell_weights(const oos_plan *plan, char *ret_cell, size_t capacity)
{
    oos_format(ret_cell, capacity, "%.2f", oos_gib(plan->sizes.weights.loaded_bytes));
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
    oos_style_count(ret_cell, capacity, plan->serving.length);
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

/* Around what the engine itself compares its releases by. */
static const compare_row first_rows[] = {{"verdict", cell_verdict}, {"phase", cell_phase}};
static const compare_row last_rows[] = {{"KV available GiB", cell_available}, {"KV tokens", cell_tokens}};

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
    FIRST_ROWS = sizeof first_rows / sizeof *first_rows,
    LAST_ROWS = sizeof last_rows / sizeof *last_rows,
    ENGINE_ROWS = sizeof engine_rows / sizeof *engine_rows
};

static size_t row_count(const oos_plan *plan, bool several)
{
    return several ? ENGINE_ROWS : FIRST_ROWS + plan->told.compared_count + LAST_ROWS;
}

static const compare_row *fixed_row(const oos_plan *plan, size_t row, bool several)
{
    if (several) return &engine_rows[row];
    if (row < FIRST_ROWS) return &first_rows[row];
    size_t const own = FIRST_ROWS + plan->told.compared_count;
    return row < own ? NULL : &last_rows[oos_min(row - own, LAST_ROWS - 1)];
}

/* The name of the row. */
static const char *cell(const oos_plan *plan, size_t row, bool several, char *ret_cell, size_t capacity)
{
    const compare_row *fixed = fixed_row(plan, row, several);
    if (fixed) {
        fixed->write(plan, ret_cell, capacity);
        return fixed->name;
    }
    const oos_setting *own = &plan->told.compared[row - FIRST_ROWS];
    switch (own->kind) {
    case OOS_SETTING_TEXT: snprintf(ret_cell, capacity, "%s", own->text); break;
    case OOS_SETTING_REAL: oos_format(ret_cell, capacity, "%g", own->real); break;
    case OOS_SETTING_YES: snprintf(ret_cell, capacity, "%s", own->whole ? "yes" : "no"); break;
    case OOS_SETTING_WHOLE: oos_style_count(ret_cell, capacity, own->whole); break;
    case OOS_SETTING_GIB: oos_format(ret_cell, capacity, "%.2f", oos_gib(own->whole)); break;
    case OOS_SETTING_SIZES:
        if (own->whole)
            snprintf(ret_cell, capacity, "%llu to %llu", (unsigned long long)own->whole,
                     (unsigned long long)own->most);
        else
            snprintf(ret_cell, capacity, "none");
        break;
    }
    return own->name;
}

static bool several_engines(const oos_plan *const *plans, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (plans[i]->engine != plans[0]->engine) return true;
    return false;
}

static void put_row(oos_table *table, const oos_style *style, size_t row, bool several,
                    const oos_plan *const *plans, size_t count)
{
    char other[64], first[64];
    bool differs = false;
    const char *name = cell(plans[0], row, several, first, sizeof first);
    const compare_row *fixed = fixed_row(plans[0], row, several);
    for (size_t i = 1; i < count; i++) {
        (void)cell(plans[i], row, several, other, sizeof other);
        differs |= strcmp(other, first) != 0;
    }
    oos_table_put(table, style, OOS_INK_PLAIN, differs ? "*" : " ");
    oos_table_put(table, style, OOS_INK_PLAIN, name);
    for (size_t i = 0; i < count; i++) {
        (void)cell(plans[i], row, several, other, sizeof other);
        oos_table_put(table, style, differs ? OOS_INK_WARN : OOS_INK_PLAIN,
                      fixed && fixed->write == cell_phase ? oos_report_point(plans[i]->answer.phase) : other);
    }
}

/* Of those that start, the one with the most tokens, beside each other one that starts. */
static void put_winner(oos_text *text, const oos_style *style, const oos_plan *const *plans, size_t count)
{
    const oos_plan *best = NULL;
    for (size_t i = 0; i < count; i++)
        if (oos_answer_starts(plans[i]->answer.verdict, plans[i]->answer.probability) &&
            (!best || plans[i]->kv.tokens > best->kv.tokens))
            best = plans[i];
    for (size_t i = 0; i < count && best; i++) {
        const oos_plan *other = plans[i];
        if (other == best || !other->kv.tokens ||
            !oos_answer_starts(other->answer.verdict, other->answer.probability))
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
    bool const starts = oos_answer_starts(plan->answer.verdict, plan->answer.probability);
    if (plan->answer.why) {
        oos_style_ink(style, OOS_INK_BOLD, "\n%s%s%s\n", title, gap, plan->engine_version);
        oos_report_sentence(style, 2, "", plan->answer.why);
        if (!starts) oos_report_first_answer(style, plan);
    }
    if (plan->asked) {
        oos_text_printf(text, "\n%s%s%s: ", title, gap, plan->engine_version);
        oos_style_put(style, "the command in its words\n");
        oos_text_printf(text, "  %s\n", plan->asked);
        for (size_t i = 0; i < plan->told.note_count; i++)
            if (strstr(plan->told.notes[i], "carried over"))
                oos_style_paragraph(style, 2, plan->told.notes[i]);
    }
}

static void compare_text(oos_text *text, const oos_plan *const *plans, size_t count,
                         const oomsight_render_params *params)
{
    oos_style const style = oos_style_of(text, params);
    bool const several = several_engines(plans, count);
    oos_table table = {.columns = count + 2, .kept = 2, .right = ~3U};
    oos_table_put(&table, &style, OOS_INK_PLAIN, " ");
    oos_table_put(&table, &style, OOS_INK_PLAIN, several ? "engine" : plans[0]->engine->title);
    for (size_t i = 0; i < count; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s%s%s", several ? plans[i]->engine->title : "", several ? " " : "",
                 plans[i]->engine_version);
        oos_table_put(&table, &style, OOS_INK_BOLD, name);
    }
    for (size_t r = 0; r < row_count(plans[0], several); r++)
        put_row(&table, &style, r, several, plans, count);
    oos_table_end(&table, &style);
    if (several) put_winner(text, &style, plans, count);
    for (size_t i = 0; i < count; i++) put_words(text, &style, plans[i], several);
    oos_style_put(&style, "\n* differs\n");
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
    for (size_t r = 0; r < row_count(before, false); r++) {
        const char *name = cell(before, r, false, old, sizeof old);
        (void)cell(after, r, false, new, sizeof new);
        if (strcmp(old, new) == 0) continue;
        oos_json_begin_object(writer);
        oos_json_field_str(writer, "name", name);
        oos_json_field_str(writer, "before", old);
        oos_json_field_str(writer, "after", new);
        oos_json_end_object(writer);
    }
}
