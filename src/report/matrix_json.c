/* A matrix as JSON: a line for each point (oomsight.matrix/1), and the sums as one document (oomsight.matrix-summary/1), which
 * is also what the page shows. docs/reference/formats/matrix.md */
#include "base/json_write.h"
#include "report/report.h"

static void put_known(oos_json_writer *w, const char *key, uint64_t value)
{
    oos_json_field_known(w, key, (oos_u64){value != OOMSIGHT_UNKNOWN, value});
}

/* Two decimals, as the engine prints it: the shortest form that reads back equal would be half the time of a line. */
static void put_concurrency(oos_json_writer *w, double value)
{
    oos_json_key(w, "max_concurrency");
    if (!(value >= 0 && value < 1e15)) {
        oos_json_put_null(w);
        return;
    }
    uint64_t const hundredths = (uint64_t)(value * 100 + 0.5);
    oos_json_put_u64(w, hundredths / 100);
    if (hundredths % 100) oos_text_printf(w->text, ".%02u", (unsigned)(hundredths % 100));
}

void oos_report_matrix_line(oos_text *text, const oomsight_matrix_point *point, bool dryrun, const char *key)
{
    /* A million lines: labels and sentences were freed of secrets when they were made. */
    oos_json_writer writer = {.text = text, .plain = true}, *w = &writer;
    oos_json_begin_object(w);
    oos_json_field_str(w, "schema", "oomsight.matrix/1");
    if (key) oos_json_field_str(w, "key", key); /* the cache looks for it here */
    oos_json_field_u64(w, "point", point->number);
    oos_json_field_str(w, "model", point->model);
    oos_json_field_str(w, "gpu", point->gpu);
    oos_json_field_str(w, "flags", point->flags);
    oos_json_field_str(w, "version", point->version);
    oos_json_field_str(w, "verdict", point->readable ? oos_matrix_kind_word((unsigned)point->verdict) : NULL);
    oos_json_field_str(w, "likely", !point->readable ? NULL : point->starts ? "starts" : "fails");
    oos_json_field_str(w, "phase", point->phase);
    oos_json_field_str(w, "cause", point->cause);
    put_known(w, "tried_bytes", point->tried_bytes);
    put_known(w, "weights_bytes", point->weights_bytes);
    oos_json_field_object(w, "kv");
    put_known(w, "available_bytes", point->kv_available_bytes);
    put_known(w, "tokens", point->kv_tokens);
    put_concurrency(w, point->max_concurrency);
    oos_json_end_object(w);
    oos_json_field_str(w, "unknown_flag", point->unknown_flag);
    oos_json_field_str(w, "why", point->readable ? point->why : NULL);
    oos_json_field_str(w, "problem", point->readable ? NULL : point->why);
    oos_json_field_str(w, "command", point->command);
    if (point->exact) {
        oos_json_field_str(w, "exact", point->exact);
        oos_json_field_str(w, "exact_said", point->exact_said);
    }
    if (dryrun) {
        oos_json_field_f64(w, "seconds", point->seconds);
        oos_json_field_u64(w, "attempts", point->attempts);
        oos_json_field_bool(w, "cached", point->cached != 0);
    }
    oos_json_end_object(w);
}

static void put_tally(oos_json_writer *w, const oos_matrix_sum *sum)
{
    const oomsight_matrix_tally *t = &sum->tally;
    oos_json_field_object(w, "points");
    oos_json_field_u64(w, "seen", t->seen);
    oos_json_field_u64(w, "starts", t->starts);
    oos_json_field_u64(w, "fits", t->fits);
    oos_json_field_u64(w, "tight", t->tight);
    oos_json_field_u64(w, "fails", t->fails);
    oos_json_field_u64(w, "refused", t->refused);
    oos_json_field_u64(w, "unknown", t->unknown);
    oos_json_field_u64(w, "unreadable", t->unreadable);
    oos_json_field_u64(w, "cached", t->cached);
    oos_json_field_u64(w, "unknown_flags", t->unknown_flags);
    oos_json_end_object(w);
}

static void put_heads(oos_json_writer *w, const char *key, const oos_matrix_head *heads, size_t count)
{
    oos_json_field_array(w, key);
    for (size_t i = 0; i < count; i++) {
        oos_json_begin_object(w);
        if (heads[i].model) oos_json_field_str(w, "model", heads[i].model);
        if (heads[i].gpu) oos_json_field_str(w, "gpu", heads[i].gpu);
        if (heads[i].flags) oos_json_field_str(w, "flags", heads[i].flags);
        oos_json_end_object(w);
    }
    oos_json_end_array(w);
}

/* [row, column, version, [fits, tight, fails, refused, unknown, unreadable], low, high, phase, why, starts, command], empty
 * cells left out */
static void put_cell(oos_json_writer *w, const oos_matrix_cell *cell, size_t row, size_t col, size_t version)
{
    oos_json_begin_array(w);
    oos_json_put_u64(w, row);
    oos_json_put_u64(w, col);
    oos_json_put_u64(w, version);
    oos_json_begin_array(w);
    for (unsigned i = 0; i < OOS_MATRIX_KINDS; i++) oos_json_put_u64(w, cell->counts[i]);
    oos_json_end_array(w);
    oos_json_put_known(w, (oos_u64){cell->kv_low != OOMSIGHT_UNKNOWN, cell->kv_low});
    oos_json_put_known(w, (oos_u64){cell->kv_high != OOMSIGHT_UNKNOWN, cell->kv_high});
    oos_json_put_str(w, cell->phase);
    oos_json_put_str(w, cell->why);
    oos_json_put_u64(w, cell->starts);
    oos_json_put_str(w, cell->command);
    oos_json_end_array(w);
}

static void put_grid(oos_json_writer *w, const oos_matrix_sum *sum)
{
    oos_json_field_object(w, "grid");
    oos_json_field_bool(w, "over_flags", sum->over_flags);
    oos_json_field_u64(w, "models_left_out", sum->models_left_out);
    put_heads(w, "rows", sum->rows, sum->row_count);
    put_heads(w, "columns", sum->columns, sum->column_count);
    oos_json_field_array(w, "cells");
    for (size_t r = 0; r < sum->row_count; r++)
        for (size_t c = 0; c < sum->column_count; c++)
            for (size_t v = 0; v < sum->version_count; v++) {
                const oos_matrix_cell *cell = oos_matrix_cell_at(sum, r, c, v);
                if (oos_matrix_cell_total(cell)) put_cell(w, cell, r, c, v);
            }
    oos_json_end_array(w);
    oos_json_end_object(w);
}

static void put_side(oos_json_writer *w, const char *key, const oos_matrix_side *side)
{
    oos_json_field_object(w, key);
    oos_json_field_str(w, "verdict", oos_matrix_kind_word(side->kind));
    oos_json_field_str(w, "likely", side->starts ? "starts" : "fails");
    oos_json_field_str(w, "phase", side->phase);
    put_known(w, "kv_tokens", side->kv_tokens);
    oos_json_field_str(w, "unknown_flag", side->unknown_flag);
    oos_json_field_str(w, "why", side->why);
    oos_json_end_object(w);
}

static void put_diff(oos_json_writer *w, const oos_matrix_sum *sum)
{
    static const char *const words[] = {"broken", "mended", "moved"};
    const oomsight_matrix_tally *t = &sum->tally;
    uint64_t const counts[] = {t->broken, t->mended, t->moved};
    oos_json_field_object(w, "diff");
    oos_json_field_str(w, "from", sum->file->version_labels[0]);
    oos_json_field_str(w, "to", sum->file->version_labels[1]);
    oos_json_field_f64(w, "moved_ratio", sum->moved_ratio);
    oos_json_field_u64(w, "compared", t->compared);
    oos_json_field_u64(w, "not_compared", t->uncompared);
    for (size_t i = 0; i < 3; i++) {
        oos_json_field_object(w, words[i]);
        oos_json_field_u64(w, "count", counts[i]);
        oos_json_field_array(w, "listed");
        for (size_t p = 0; p < sum->pair_counts[i]; p++) {
            const oos_matrix_pair *pair = &sum->pairs[i][p];
            oos_json_begin_object(w);
            oos_json_field_str(w, "model", pair->model);
            oos_json_field_str(w, "gpu", pair->gpu);
            oos_json_field_str(w, "flags", pair->flags);
            put_side(w, "from", &pair->from);
            put_side(w, "to", &pair->to);
            oos_json_field_f64(w, "kv_tokens_change", pair->ratio);
            oos_json_end_object(w);
        }
        oos_json_end_array(w);
        oos_json_end_object(w);
    }
    oos_json_end_object(w);
}

/* "vLLM 0.32.0", "SGLang 0.5.23": the versions as people say them. */
static void put_releases(oos_json_writer *w, const oos_matrix_sum *sum)
{
    oos_json_field_array(w, "releases");
    for (size_t i = 0; i < sum->version_count; i++) {
        char release[64];
        oos_json_put_str(w, oos_engine_release(sum->file->version_labels[i], release, sizeof release));
    }
    oos_json_end_array(w);
}

void oos_report_matrix_json(oos_text *text, const oos_matrix_sum *sum)
{
    oos_json_writer writer = {.text = text}, *w = &writer;
    oos_text sentence = {0};
    oos_matrix_sentence(sum, &sentence);
    oos_json_begin_object(w);
    oos_json_field_str(w, "schema", "oomsight.matrix-summary/1");
    oos_json_field_str(w, "says", sentence.ptr ? sentence.ptr : "");
    oos_json_field_str(w, "mode", sum->file->dryrun ? "dryrun" : "plan");
    oos_json_field_strs(w, "versions", sum->file->version_labels, sum->version_count);
    put_releases(w, sum);
    put_tally(w, sum);
    if (sum->diff)
        put_diff(w, sum);
    else {
        oos_json_field_str(w, "diff", NULL);
    }
    put_grid(w, sum);
    oos_json_end_object(w);
    oos_text_put(text, "\n");
    text->failed |= sentence.failed;
    oos_text_free(&sentence);
}
