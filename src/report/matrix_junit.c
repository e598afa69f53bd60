/* A matrix as JUnit XML, which every CI system shows: a suite per version and a case per cell of the grid; or, for two versions,
 * a case per change. A cell that sums several points fails when one of them does. */
#include "facts/facts.h"
#include "report/report.h"
#include "base/shown.h"

/* Text as it may stand in XML 1.0: control characters have no place there, and bytes must be UTF-8. */
static void put_xml(oos_text *text, const char *words)
{
    oos_text shown = {0};
    oos_shown_put(&shown, oos_view_of(words), true);
    for (const char *at = shown.ptr ? shown.ptr : ""; *at; at++) {
        if (*at == '<')
            oos_text_put(text, "&lt;");
        else if (*at == '>')
            oos_text_put(text, "&gt;");
        else if (*at == '&')
            oos_text_put(text, "&amp;");
        else if (*at == '"')
            oos_text_put(text, "&quot;");
        else if (*at == '\n' || *at == '\t')
            oos_text_put(text, " ");
        else
            oos_text_add(text, (oos_view){at, 1});
    }
    text->failed |= shown.failed;
    oos_text_free(&shown);
}

static void put_case(oos_text *text, const char *model, const char *gpu, const char *flags)
{
    oos_text_put(text, "    <testcase classname=\"");
    put_xml(text, model);
    oos_text_put(text, "\" name=\"");
    put_xml(text, gpu);
    oos_text_put(text, " ");
    put_xml(text, flags ? flags : "(all flags)");
    oos_text_put(text, "\"");
}

static void put_trouble(oos_text *text, const char *tag, const char *head, const char *phase, const char *why)
{
    oos_text_printf(text, ">\n      <%s message=\"", tag);
    put_xml(text, head);
    if (phase) oos_text_put(text, " in ");
    put_xml(text, phase);
    oos_text_put(text, "\">");
    put_xml(text, why);
    oos_text_printf(text, "</%s>\n    </testcase>\n", tag);
}

typedef enum outcome { PASSED, FAILED, ERROR } outcome;

static outcome cell_outcome(const oos_matrix_cell *cell)
{
    switch (oos_matrix_cell_worst(cell)) {
    case OOMSIGHT_VERDICT_FITS: return PASSED;
    case OOMSIGHT_VERDICT_TIGHT: return cell->starts == oos_matrix_cell_total(cell) ? PASSED : FAILED;
    case OOS_MATRIX_UNREADABLE: return ERROR;
    default: return FAILED;
    }
}

static void put_cell(oos_text *text, const oos_matrix_sum *sum, size_t row, size_t col,
                     const oos_matrix_cell *cell)
{
    const char *flags = sum->rows[row].flags ? sum->rows[row].flags : sum->columns[col].flags;
    put_case(text, sum->rows[row].model, sum->columns[col].gpu, flags);
    outcome const end = cell_outcome(cell);
    uint64_t const total = oos_matrix_cell_total(cell);
    uint64_t const start = cell->starts;
    if (end != PASSED) {
        oos_text head = {0};
        oos_text_put(&head, oos_matrix_answer_word(oos_matrix_cell_worst(cell), false));
        if (total > 1)
            oos_text_printf(&head, " (%llu of %llu start)", (unsigned long long)start,
                            (unsigned long long)total);
        put_trouble(text, end == ERROR ? "error" : "failure", head.ptr ? head.ptr : "", cell->phase,
                    cell->why);
        text->failed |= head.failed;
        oos_text_free(&head);
        return;
    }
    if (cell->kv_low == OOMSIGHT_UNKNOWN) {
        oos_text_put(text, "/>\n");
        return;
    }
    oos_text_printf(text, ">\n      <system-out>%s, %llu KV tokens%s</system-out>\n    </testcase>\n",
                    oos_matrix_answer_word(oos_matrix_cell_worst(cell), true),
                    (unsigned long long)cell->kv_low, total > 1 ? " at least" : "");
}

static void put_version(oos_text *text, const oos_matrix_sum *sum, size_t version)
{
    size_t counts[3] = {0};
    for (size_t i = 0; i < sum->row_count * sum->column_count; i++) {
        const oos_matrix_cell *cell = &sum->cells[i * sum->version_count + version];
        if (oos_matrix_cell_total(cell)) counts[cell_outcome(cell)]++;
    }
    char release[64];
    oos_text_put(text, "  <testsuite name=\"");
    put_xml(text, oos_engine_release(sum->file->version_labels[version], release, sizeof release));
    oos_text_printf(text, "\" tests=\"%zu\" failures=\"%zu\" errors=\"%zu\">\n",
                    counts[0] + counts[1] + counts[2], counts[FAILED], counts[ERROR]);
    for (size_t r = 0; r < sum->row_count; r++)
        for (size_t c = 0; c < sum->column_count; c++) {
            const oos_matrix_cell *cell = oos_matrix_cell_at(sum, r, c, version);
            if (oos_matrix_cell_total(cell)) put_cell(text, sum, r, c, cell);
        }
    oos_text_put(text, "  </testsuite>\n");
}

static void put_diff(oos_text *text, const oos_matrix_sum *sum)
{
    size_t const listed = sum->pair_counts[0] + sum->pair_counts[1] + sum->pair_counts[2];
    char release[64];
    oos_text_put(text, "  <testsuite name=\"");
    put_xml(text, oos_engine_release(sum->file->version_labels[0], release, sizeof release));
    oos_text_put(text, " to ");
    put_xml(text, sum->file->version_labels[1]);
    oos_text_printf(text, "\" tests=\"%zu\" failures=\"%zu\" errors=\"0\">\n", listed + 1,
                    sum->pair_counts[0]);
    oos_text_put(text, "    <testcase classname=\"matrix\" name=\"all\">\n      <system-out>");
    oos_text sentence = {0};
    oos_matrix_sentence(sum, &sentence);
    put_xml(text, sentence.ptr);
    text->failed |= sentence.failed;
    oos_text_free(&sentence);
    oos_text_put(text, "</system-out>\n    </testcase>\n");
    for (size_t k = 0; k < 3; k++)
        for (size_t i = 0; i < sum->pair_counts[k]; i++) {
            const oos_matrix_pair *pair = &sum->pairs[k][i];
            put_case(text, pair->model, pair->gpu, pair->flags);
            if (k == OOS_MATRIX_BROKEN && pair->to.unknown_flag)
                put_trouble(text, "failure", "a flag that the newer version does not know", NULL,
                            pair->to.unknown_flag);
            else if (k == OOS_MATRIX_BROKEN)
                put_trouble(text, "failure", oos_matrix_kind_word(pair->to.kind), pair->to.phase,
                            pair->to.why);
            else
                oos_text_printf(text,
                                ">\n      <system-out>%s, KV tokens %+.1f %%</system-out>\n    </testcase>\n",
                                k == OOS_MATRIX_MENDED ? "mended" : "moved", pair->ratio * 100);
        }
    oos_text_put(text, "  </testsuite>\n");
}

void oos_report_matrix_junit(oos_text *text, const oos_matrix_sum *sum)
{
    oos_text_put(text, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"oomsight matrix\">\n");
    if (sum->diff)
        put_diff(text, sum);
    else
        for (size_t v = 0; v < sum->version_count; v++) put_version(text, sum, v);
    oos_text_put(text, "</testsuites>\n");
}
