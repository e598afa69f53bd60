/* A matrix for people: what came out in one sentence, then a table with a row per configuration and a column per version. */
#include "facts/facts.h"
#include "report/report.h"

#include <stdio.h>

enum { ROWS_MAX = 60, PAIRS_MAX = 40, PROBLEMS_MAX = 8, COMMANDS_MAX = 24 };

static void count_text(char *ret_text, size_t capacity, uint64_t number)
{
    if (number == OOMSIGHT_UNKNOWN)
        snprintf(ret_text, capacity, "-");
    else
        oos_style_count(ret_text, capacity, number);
}

static void put_count(oos_text *text, uint64_t number)
{
    char word[32];
    count_text(word, sizeof word, number);
    oos_text_put(text, word);
}

static void diff_sentence(const oos_matrix_sum *sum, oos_text *text)
{
    const oomsight_matrix_tally *t = &sum->tally;
    char release[64];
    oos_text_printf(text, "%s -> %s ",
                    oos_engine_release(sum->file->version_labels[0], release, sizeof release),
                    sum->file->version_labels[1]);
    if (t->broken) {
        oos_text_put(text, "breaks ");
        put_count(text, t->broken);
        oos_text_put(text, " of ");
    } else {
        oos_text_put(text, "breaks none of ");
    }
    put_count(text, t->compared);
    oos_text_put(text, t->compared == 1 ? " configuration, fixes " : " configurations, fixes ");
    put_count(text, t->mended);
    oos_text_put(text, ", changes the KV cache of ");
    put_count(text, t->moved);
    oos_text_printf(text, " by more than %g %%", sum->moved_ratio * 100);
    if (t->uncompared) {
        oos_text_put(text, "; ");
        put_count(text, t->uncompared);
        oos_text_put(text, " could not be compared");
    }
}

void oos_matrix_sentence(const oos_matrix_sum *sum, oos_text *text)
{
    const oomsight_matrix_tally *t = &sum->tally;
    if (sum->diff) {
        diff_sentence(sum, text);
        return;
    }
    const struct {
        uint64_t count;
        const char *words;
    } rest[] = {{t->fits + t->tight - t->starts, "will probably not start"},
                {t->fails, "out of memory"},
                {t->refused, "rejected by the engine"},
                {t->unknown, "not known"},
                {t->unreadable, "could not be read"},
                {t->unknown_flags, "with a flag that the version does not know"}};
    uint64_t const start = t->starts;
    oos_text_put(text, sum->file->dryrun ? "dry runs: " : "planned: ");
    if (start == t->seen)
        oos_text_put(text, "all ");
    else {
        put_count(text, start);
        oos_text_put(text, " of ");
    }
    put_count(text, t->seen);
    oos_text_put(text, t->seen == 1 ? " point starts" : " points start");
    if (start > t->fits) {
        oos_text_put(text, " (");
        put_count(text, start - t->fits);
        oos_text_put(text, " probably)");
    }
    for (size_t i = 0; i < sizeof rest / sizeof *rest; i++) {
        if (!rest[i].count) continue;
        oos_text_put(text, ", ");
        put_count(text, rest[i].count);
        oos_text_printf(text, " %s", rest[i].words);
    }
}

/* "fits 595,456", "fails profile_run", "812 of 1,000 start"; tokens are of those that start. */
static void cell_words(const oos_matrix_cell *cell, oos_text *text)
{
    uint64_t const total = oos_matrix_cell_total(cell);
    unsigned const worst = oos_matrix_cell_worst(cell);
    if (total == 0) {
        oos_text_put(text, "-");
        return;
    }
    uint64_t const start = cell->starts;
    if (total == 1) {
        oos_text_put(text, oos_matrix_answer_word(worst, start != 0));
        if (start) {
            oos_text_put(text, " ");
            put_count(text, cell->kv_low);
        } else if (cell->phase) {
            oos_text_printf(text, ": %s", oos_report_point(oos_phase_find(cell->phase)));
        }
        return;
    }
    put_count(text, start);
    oos_text_put(text, "/");
    put_count(text, total);
    if (!start || cell->kv_low == OOMSIGHT_UNKNOWN) return;
    oos_text_put(text, " ");
    put_count(text, cell->kv_low);
    if (cell->kv_high == cell->kv_low) return;
    oos_text_put(text, "..");
    put_count(text, cell->kv_high);
}

static oos_ink cell_ink(const oos_matrix_cell *cell)
{
    switch (oos_matrix_cell_worst(cell)) {
    case OOMSIGHT_VERDICT_FITS: return OOS_INK_GOOD;
    case OOMSIGHT_VERDICT_TIGHT:
        return cell->starts == oos_matrix_cell_total(cell) ? OOS_INK_WARN : OOS_INK_BAD;
    case OOMSIGHT_VERDICT_FAILS:
    case OOMSIGHT_VERDICT_REFUSED: return OOS_INK_BAD;
    default: return OOS_INK_DIM;
    }
}

/* One line of the table: a cell, or (col ALL) everything of a model. */
#define ALL SIZE_MAX
typedef struct line {
    size_t row, col;
} line;

static bool same_model(const oos_matrix_sum *sum, size_t a, size_t b)
{
    return strcmp(sum->rows[a].model, sum->rows[b].model) == 0;
}

static void cell_sum(oos_matrix_cell *total, const oos_matrix_cell *cell)
{
    for (unsigned k = 0; k < OOS_MATRIX_KINDS; k++) total->counts[k] += cell->counts[k];
    if (cell->kv_low == OOMSIGHT_UNKNOWN) return;
    if (total->kv_low == OOMSIGHT_UNKNOWN || cell->kv_low < total->kv_low) total->kv_low = cell->kv_low;
    if (total->kv_high == OOMSIGHT_UNKNOWN || cell->kv_high > total->kv_high) total->kv_high = cell->kv_high;
}

static oos_matrix_cell cell_of_line(const oos_matrix_sum *sum, const line *l, size_t version)
{
    if (l->col != ALL) return *oos_matrix_cell_at(sum, l->row, l->col, version);
    oos_matrix_cell total = {.kv_low = OOMSIGHT_UNKNOWN, .kv_high = OOMSIGHT_UNKNOWN};
    for (size_t r = 0; r < sum->row_count; r++)
        for (size_t c = 0; same_model(sum, r, l->row) && c < sum->column_count; c++)
            cell_sum(&total, oos_matrix_cell_at(sum, r, c, version));
    return total;
}

/* A line per model; 0 when even those are too many. */
static size_t models_choose(const oos_matrix_sum *sum, line *ret_lines, size_t most)
{
    size_t count = 0;
    for (size_t r = 0; r < sum->row_count; r++) {
        bool seen = false;
        for (size_t i = 0; i < count && !seen; i++) seen = same_model(sum, ret_lines[i].row, r);
        if (seen) continue;
        if (count == most) return 0;
        ret_lines[count++] = (line){r, ALL};
    }
    return count;
}

static bool line_fails(const oos_matrix_sum *sum, const line *l)
{
    for (size_t v = 0; v < sum->version_count; v++) {
        const oos_matrix_cell *cell = oos_matrix_cell_at(sum, l->row, l->col, v);
        if (oos_matrix_cell_total(cell) && oos_matrix_cell_worst(cell) != OOMSIGHT_VERDICT_FITS) return true;
    }
    return false;
}

static bool line_there(const oos_matrix_sum *sum, const line *l)
{
    for (size_t v = 0; v < sum->version_count; v++)
        if (oos_matrix_cell_total(oos_matrix_cell_at(sum, l->row, l->col, v))) return true;
    return false;
}

/* All lines in the order of the file; when they are too many, one per model, or those first that do not all fit. */
static size_t lines_choose(const oos_matrix_sum *sum, line *ret_lines, size_t most, size_t *ret_all)
{
    size_t all = 0, count = 0;
    for (size_t r = 0; r < sum->row_count; r++)
        for (size_t c = 0; c < sum->column_count; c++) all += line_there(sum, &(line){r, c});
    *ret_all = all;
    if (all > most && (count = models_choose(sum, ret_lines, most))) return count;
    for (int pass = all > most ? 0 : 2; pass < 3 && count < most; pass++) {
        if (pass == 2 && all > most) break;
        for (size_t r = 0; r < sum->row_count; r++)
            for (size_t c = 0; c < sum->column_count && count < most; c++) {
                line const l = {r, c};
                if (!line_there(sum, &l) || (pass < 2 && line_fails(sum, &l) != (pass == 0))) continue;
                ret_lines[count++] = l;
            }
    }
    return count;
}

static oos_matrix_head head_of(const oos_matrix_sum *sum, const line *l)
{
    if (l->col == ALL) return (oos_matrix_head){sum->rows[l->row].model, "(all)", "(all)"};
    const oos_matrix_head *r = &sum->rows[l->row], *c = &sum->columns[l->col];
    return (oos_matrix_head){r->model, c->gpu, r->flags ? r->flags : c->flags ? c->flags : "(all)"};
}

static void put_table(const oos_style *style, const oos_matrix_sum *sum)
{
    line lines[ROWS_MAX];
    size_t all;
    size_t const count = lines_choose(sum, lines, ROWS_MAX, &all);
    oos_table table = {.columns = 3 + sum->version_count, .kept = 3, .indent = 2};
    static const char *const titles[] = {"model", "GPU", "flags"};
    for (size_t k = 0; k < 3; k++) oos_table_put(&table, style, OOS_INK_PLAIN, titles[k]);
    for (size_t v = 0; v < sum->version_count; v++)
        oos_table_put(&table, style, OOS_INK_PLAIN, sum->file->version_labels[v]);
    for (size_t i = 0; i < count; i++) {
        oos_matrix_head const head = head_of(sum, &lines[i]);
        const char *const labels[] = {head.model, head.gpu, head.flags};
        for (size_t k = 0; k < 3; k++) oos_table_put(&table, style, OOS_INK_PLAIN, labels[k]);
        for (size_t v = 0; v < sum->version_count; v++) {
            oos_matrix_cell const cell = cell_of_line(sum, &lines[i], v);
            oos_text words = {0};
            cell_words(&cell, &words);
            oos_table_put(&table, style, cell_ink(&cell), words.ptr);
            style->text->failed |= words.failed;
            oos_text_free(&words);
        }
    }
    oos_text_put(style->text, "\n");
    oos_table_end(&table, style);
    bool const summed = count && lines[0].col == ALL;
    if (sum->over_flags || summed) {
        oos_style_ink(style, OOS_INK_DIM,
                      "  %s are summed over: N/M start, KV tokens from the least to the most\n",
                      summed ? "GPUs and flags" : "flags");
        oos_style_ink(style, OOS_INK_DIM, "  --points FILE keeps every point\n");
    }
    if (count < all && !summed)
        oos_style_ink(style, OOS_INK_DIM,
                      "  %zu of %zu lines, those with failures first; --format html shows them all\n", count,
                      all);
}

static void side_words(oos_text *text, const oos_matrix_side *side)
{
    if (side->unknown_flag) {
        oos_text_printf(text, "does not know %s", side->unknown_flag);
        return;
    }
    oos_text_put(text, oos_matrix_answer_word(side->kind, side->starts));
    if (side->phase && !side->starts)
        oos_text_printf(text, " %s", oos_report_where(oos_phase_find(side->phase)));
    else if (side->kv_tokens != OOMSIGHT_UNKNOWN) {
        oos_text_put(text, " ");
        put_count(text, side->kv_tokens);
    }
}

static void put_side(const oos_style *style, const oos_matrix_side *side)
{
    oos_text words = {0};
    side_words(&words, side);
    oos_style_put(style, "%s", words.ptr ? words.ptr : "");
    style->text->failed |= words.failed;
    oos_text_free(&words);
}

static bool is_open(const oos_matrix_cell *cell)
{
    return cell->why && (cell->counts[OOS_MATRIX_UNREADABLE] || cell->counts[OOMSIGHT_VERDICT_UNKNOWN]);
}

/* Cells in the order of the table. */
static const oos_matrix_cell *cell_of(const oos_matrix_sum *sum, size_t index, line *ret_line,
                                      size_t *ret_version)
{
    size_t const column = index / sum->version_count;
    *ret_version = index % sum->version_count;
    *ret_line = (line){column / sum->column_count, column % sum->column_count};
    return oos_matrix_cell_at(sum, ret_line->row, ret_line->col, *ret_version);
}

/* The first reasons for no answer, each once with the first configuration that has it. */
static void put_problems(const oos_style *style, const oos_matrix_sum *sum)
{
    size_t const count = sum->row_count * sum->column_count * sum->version_count;
    const char *told[PROBLEMS_MAX];
    unsigned told_count = 0;
    line at, other;
    size_t version, other_version;
    for (size_t i = 0; i < count && told_count < PROBLEMS_MAX; i++) {
        const oos_matrix_cell *cell = cell_of(sum, i, &at, &version);
        bool known = !is_open(cell);
        for (unsigned k = 0; k < told_count && !known; k++) known = strcmp(told[k], cell->why) == 0;
        if (known) continue;
        size_t more = 0;
        for (size_t k = i + 1; k < count; k++) {
            const oos_matrix_cell *later = cell_of(sum, k, &other, &other_version);
            more += is_open(later) && strcmp(later->why, cell->why) == 0;
        }
        oos_matrix_head const head = head_of(sum, &at);
        char release[64];
        if (!told_count) oos_style_put(style, "\n  no answer\n");
        told[told_count++] = cell->why;
        oos_style_put(style, "    %s on %s, %s, %s\n", head.model, head.gpu, head.flags,
                      oos_engine_release(sum->file->version_labels[version], release, sizeof release));
        if (more) oos_style_put(style, "    and %zu more for the same reason\n", more);
        oos_style_paragraph(style, 8, cell->why);
    }
}

static bool has_command(const oos_matrix_cell *cell)
{
    return cell->command && *cell->command && !cell->starts;
}

/* Under the first point that fails the command with which it starts; where the others of its column say the same it stands once. */
static void put_commands(const oos_style *style, const oos_matrix_sum *sum)
{
    size_t const count = sum->row_count * sum->column_count * sum->version_count;
    const char *told[COMMANDS_MAX];
    unsigned told_count = 0;
    size_t left = 0;
    line at, other;
    size_t version, other_version;
    for (size_t i = 0; i < count; i++) {
        const oos_matrix_cell *cell = cell_of(sum, i, &at, &version);
        bool known = !has_command(cell);
        for (unsigned k = 0; k < told_count && !known; k++) known = strcmp(told[k], cell->command) == 0;
        if (known) continue;
        left += told_count == COMMANDS_MAX;
        if (told_count == COMMANDS_MAX) continue;
        size_t more = 0;
        for (size_t k = i + 1; k < count; k++) {
            const oos_matrix_cell *later = cell_of(sum, k, &other, &other_version);
            more += has_command(later) && strcmp(later->command, cell->command) == 0;
        }
        oos_matrix_head const head = head_of(sum, &at);
        char release[64];
        if (!told_count) oos_style_put(style, "\n  what would start\n");
        told[told_count++] = cell->command;
        oos_style_put(style, "    %s on %s, %s, %s\n", head.model, head.gpu, head.flags,
                      oos_engine_release(sum->file->version_labels[version], release, sizeof release));
        if (more) oos_style_put(style, "    and %zu more with the same command\n", more);
        oos_report_command(style, 8, cell->command);
    }
    if (left) oos_style_put(style, "    and %zu more, in JSON\n", left);
}

static void put_pairs(const oos_style *style, const oos_matrix_sum *sum)
{
    static const struct {
        const char *title;
        oos_ink ink;
    } parts[] = {{"breaks", OOS_INK_BAD}, {"fixes", OOS_INK_GOOD}, {"changes (KV tokens)", OOS_INK_WARN}};
    const oomsight_matrix_tally *t = &sum->tally;
    uint64_t const counts[] = {t->broken, t->mended, t->moved};
    for (size_t k = 0; k < 3; k++) {
        size_t const shown = sum->pair_counts[k] < PAIRS_MAX ? sum->pair_counts[k] : PAIRS_MAX;
        if (!shown) continue;
        oos_style_ink(style, parts[k].ink, "\n  %s\n", parts[k].title);
        for (size_t i = 0; i < shown; i++) {
            const oos_matrix_pair *pair = &sum->pairs[k][i];
            oos_style_put(style, "    %s on %s: %s\n        ", pair->model, pair->gpu, pair->flags);
            put_side(style, &pair->from);
            oos_text_put(style->text, " -> ");
            put_side(style, &pair->to);
            if (pair->change == OOS_MATRIX_MOVED)
                oos_text_printf(style->text, " (%+.1f %%)", pair->ratio * 100);
            oos_text_put(style->text, "\n");
            if (pair->change == OOS_MATRIX_BROKEN && pair->to.why && *pair->to.why)
                oos_style_paragraph(style, 8, pair->to.why);
        }
        if (shown < counts[k]) {
            char more[32];
            count_text(more, sizeof more, counts[k] - shown);
            oos_style_ink(style, OOS_INK_DIM, "    and %s more\n", more);
        }
    }
}

void oos_report_matrix_text(oos_text *text, const oos_matrix_sum *sum, const oomsight_render_params *params)
{
    oos_style const style = oos_style_of(text, params);
    const oomsight_matrix_tally *t = &sum->tally;
    bool const bad = sum->diff ? t->broken : t->starts < t->seen;
    oos_text sentence = {0};
    oos_matrix_sentence(sum, &sentence);
    oos_ink const ink = bad ? OOS_INK_BAD : OOS_INK_GOOD;
    oos_ink_begin(&style, ink);
    oos_style_paragraph(&style, 0, sentence.ptr ? sentence.ptr : "");
    oos_ink_end(&style, ink);
    text->failed |= sentence.failed;
    oos_text_free(&sentence);
    if (sum->diff)
        put_pairs(&style, sum);
    else if (t->seen)
        put_table(&style, sum);
    if (!sum->diff) put_commands(&style, sum);
    if (t->unreadable || t->unknown) put_problems(&style, sum);
}

/* ---- Markdown --------------------------------------------------------------------------------------------------- */

static void put_plain(oos_text *text, const char *words) /* a bar would end the cell */
{
    for (; *words; words++) {
        if (*words == '|' || *words == '<' || *words == '`') oos_text_put(text, "\\");
        oos_text_add(text, *words == '\n' ? (oos_view){" ", 1} : (oos_view){words, 1});
    }
}

static void markdown_pairs(const oos_style *style, const oos_matrix_sum *sum)
{
    oos_text *text = style->text;
    static const char *const words[] = {"breaks", "fixes", "changes"};
    oos_text_printf(text, "| | model | GPU | flags | %s | %s |\n| --- | --- | --- | --- | --- | --- |\n",
                    sum->file->version_labels[0], sum->file->version_labels[1]);
    for (size_t k = 0; k < 3; k++)
        for (size_t i = 0; i < sum->pair_counts[k] && i < PAIRS_MAX; i++) {
            const oos_matrix_pair *pair = &sum->pairs[k][i];
            const char *const labels[] = {words[k], pair->model, pair->gpu, pair->flags};
            oos_text_put(text, "|");
            for (size_t l = 0; l < 4; l++) {
                oos_text_put(text, " ");
                put_plain(text, labels[l]);
                oos_text_put(text, " |");
            }
            oos_text_put(text, " ");
            put_side(style, &pair->from);
            oos_text_put(text, " | ");
            put_side(style, &pair->to);
            if (pair->change == OOS_MATRIX_MOVED) oos_text_printf(text, " (%+.1f %%)", pair->ratio * 100);
            oos_text_put(text, " |\n");
        }
}

void oos_report_matrix_markdown(oos_text *text, const oos_matrix_sum *sum,
                                const oomsight_render_params *params)
{
    oos_style const own = oos_style_of(text, params), *style = &own;
    line lines[ROWS_MAX];
    size_t all;
    oos_text sentence = {0};
    oos_matrix_sentence(sum, &sentence);
    oos_text_put(text, "**");
    oos_style_put(style, "%s", sentence.ptr ? sentence.ptr : "");
    oos_text_put(text, "**\n\n");
    text->failed |= sentence.failed;
    oos_text_free(&sentence);
    if (sum->diff) {
        markdown_pairs(style, sum);
        return;
    }
    size_t const count = lines_choose(sum, lines, ROWS_MAX, &all);
    oos_style_put(style, "| model | GPU | flags |");
    for (size_t v = 0; v < sum->version_count; v++)
        oos_text_printf(text, " %s |", sum->file->version_labels[v]);
    oos_text_put(text, "\n| --- | --- | --- |");
    oos_text_repeat(text, " --- |", sum->version_count);
    for (size_t i = 0; i < count; i++) {
        oos_matrix_head const head = head_of(sum, &lines[i]);
        const char *const labels[] = {head.model, head.gpu, head.flags};
        oos_text_put(text, "\n|");
        for (size_t k = 0; k < 3; k++) {
            oos_text_put(text, " ");
            put_plain(text, labels[k]);
            oos_text_put(text, " |");
        }
        for (size_t v = 0; v < sum->version_count; v++) {
            oos_text words = {0};
            oos_matrix_cell const cell = cell_of_line(sum, &lines[i], v);
            cell_words(&cell, &words);
            oos_text_put(text, " ");
            oos_style_put(style, "%s", words.ptr ? words.ptr : "");
            oos_text_put(text, " |");
            text->failed |= words.failed;
            oos_text_free(&words);
        }
    }
    oos_text_put(text, "\n");
    if (count < all && lines[0].col != ALL)
        oos_style_put(style, "\n%zu of %zu lines, those with failures first.\n", count, all);
}
