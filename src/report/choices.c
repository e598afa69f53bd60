/* Which GPU does it take: cards of one size in one row, the least memory first. */
#include "base/json_write.h"
#include "report/report.h"

#include <stdio.h>
#include <string.h>

enum { ROWS_MAX = 8, NAMES_MAX = 3, NAMES_BYTES = 52, FLAGS_COLUMN = 28 };

unsigned long long oos_choice_gib(const oos_need_gpu *choice)
{
    return (choice->memory_bytes + OOS_GIB / 2) / OOS_GIB;
}

bool oos_choice_same_row(const oos_need_gpu *a, const oos_need_gpu *b)
{
    bool same =
        oos_choice_gib(a) == oos_choice_gib(b) && a->count == b->count && a->flag_count == b->flag_count;
    for (size_t i = 0; same && i < a->flag_count; i++) same = strcmp(a->flags[i], b->flags[i]) == 0;
    return same;
}

bool oos_choice_begins_row(const oos_plan *plan, size_t at)
{
    for (size_t i = 0; i < at; i++)
        if (oos_choice_same_row(&plan->help.choices[i], &plan->help.choices[at])) return false;
    return true;
}

const char *oos_choice_name(const char *name)
{
    static const char *const heads[] = {"NVIDIA ", "GeForce "};
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
        if (strncmp(name, heads[i], strlen(heads[i])) == 0) name += strlen(heads[i]);
    return name;
}

oos_choice_row oos_choice_row_of(const oos_plan *plan, size_t first)
{
    const oos_need_gpu *head = &plan->help.choices[first];
    oos_choice_row row = {.least = head->kv_tokens};
    for (size_t i = first; i < plan->help.choice_count; i++) {
        const oos_need_gpu *choice = &plan->help.choices[i];
        if (!oos_choice_same_row(head, choice)) continue;
        row.least = oos_min(row.least, choice->kv_tokens);
        row.most = oos_max(row.most, choice->kv_tokens);
        row.certain += choice->verdict == OOMSIGHT_VERDICT_FITS;
        row.count++;
    }
    return row;
}

void oos_choice_tokens(char *ret_cell, size_t capacity, uint64_t tokens)
{
    if (tokens)
        oos_style_count(ret_cell, capacity, tokens);
    else
        snprintf(ret_cell, capacity, "-");
}

static void put_row(const oos_style *style, const oos_plan *plan, size_t first)
{
    const oos_need_gpu *row = &plan->help.choices[first];
    oos_choice_row const all = oos_choice_row_of(plan, first);
    oos_text names = {0};
    size_t count = 0, named = 0;
    char size[32], told[40], least[44];
    for (size_t i = first; i < plan->help.choice_count; i++) {
        const oos_need_gpu *choice = &plan->help.choices[i];
        if (!oos_choice_same_row(row, choice)) continue;
        const char *name = oos_choice_name(choice->gpu);
        bool const shown =
            named == count && named < NAMES_MAX && (!named || names.len + strlen(name) <= NAMES_BYTES);
        if (shown) oos_text_printf(&names, "%s%s", named++ ? ", " : "", name);
        count++;
    }
    if (count > named) oos_text_printf(&names, " +%zu", count - named);
    snprintf(size, sizeof size, "%llu x %llu GB", (unsigned long long)row->count, oos_choice_gib(row));
    oos_choice_tokens(told, sizeof told, all.least);
    snprintf(least, sizeof least, "%s%s", all.most > all.least ? ">= " : "", told);
    oos_text_printf(style->text, "  %-11s %12s  ", size, least);
    oos_text_put(style->text, names.ptr ? names.ptr : "");
    if (all.certain < all.count) oos_style_put(style, " (probably)");
    if (row->flag_count) oos_text_printf(style->text, "\n%*s", FLAGS_COLUMN, "");
    for (size_t i = 0; i < row->flag_count; i++)
        oos_text_printf(style->text, "%s%s", i ? " " : "", row->flags[i]);
    oos_text_put(style->text, "\n");
    style->text->failed |= names.failed;
    oos_text_free(&names);
}

void oos_report_choices_text(oos_text *text, const oos_plan *plan, const oomsight_render_params *params)
{
    oos_style const style = oos_style_of(text, params);
    char name[160], line[512];
    const char *model = oos_report_model_name(plan->model->path, name, sizeof name);
    size_t rows = 0, more = 0;
    snprintf(line, sizeof line, "%s with %s %s: %zu of the known GPUs are enough", model, plan->engine->title,
             plan->engine_version, plan->help.choice_count);
    oos_style_paragraph(&style, 0, line);
    if (plan->help.choice_count == 0) {
        if (plan->answer.why) oos_style_paragraph(&style, 2, plan->answer.why);
        return;
    }
    oos_text_put(text, "  ");
    oos_style_cell(&style, 11, "GPUs");
    oos_text_put(text, " ");
    oos_style_cell(&style, -12, "KV tokens");
    oos_text_put(text, "  ");
    oos_style_put(&style, "the least memory first\n");
    for (size_t i = 0; i < plan->help.choice_count; i++) {
        if (!oos_choice_begins_row(plan, i)) continue;
        if (rows < ROWS_MAX)
            put_row(&style, plan, i);
        else
            more++;
        rows++;
    }
    if (more) oos_style_put(&style, "%zu more sizes with --json.\n", more);
}

void oos_report_choices_json(oos_text *text, const oos_plan *plan)
{
    oos_json_writer writer = {.text = text, .pretty_depth = 2}, *w = &writer;
    char name[160];
    oos_json_begin_object(w);
    oos_json_field_str(w, "schema", "oomsight.choices/1");
    oos_json_field_object(w, "engine");
    oos_json_field_str(w, "name", plan->engine->name);
    oos_json_field_str(w, "version", plan->engine_version);
    oos_json_end_object(w);
    oos_json_field_str(w, "model", oos_report_model_name(plan->model->path, name, sizeof name));
    oos_json_field_array(w, "choices");
    for (size_t i = 0; i < plan->help.choice_count; i++) {
        const oos_need_gpu *choice = &plan->help.choices[i];
        oos_json_begin_object(w);
        oos_json_field_str(w, "gpu", choice->gpu);
        oos_json_field_u64(w, "count", choice->count);
        oos_json_field_u64(w, "memory_bytes", choice->memory_bytes);
        oos_json_field_array(w, "flags");
        for (size_t k = 0; k < choice->flag_count; k++) oos_json_put_str(w, choice->flags[k]);
        oos_json_end_array(w);
        oos_json_field_str(w, "verdict", oos_report_verdict_word(choice->verdict));
        oos_report_probability_json(w, "probability", choice->probability);
        oos_json_field_u64(w, "kv_tokens", choice->kv_tokens);
        oos_json_end_object(w);
    }
    oos_json_end_array(w);
    oos_json_field_str(w, "why", plan->help.choice_count ? NULL : plan->answer.why);
    oos_json_field_strs(w, "assumed", plan->assumed, plan->assumed_count);
    oos_json_end_object(w);
    oos_text_put(text, "\n");
}
