/* The screen of `oomsight top`: the GPUs, then a row for each process. Columns that do not fit are left out, the least needed first. */
#include "report/report.h"
#include "base/locale.h"
#include "base/shown.h"
#include "run/run.h"

#include <stdio.h>

enum { NAME_LEAST = 10, HEADS = 3 /* the first line, the blank one, the heads of the columns */ };

typedef enum column {
    C_PID,
    C_GPU,
    C_NAME,
    C_STATE,
    C_MEMORY,
    C_PEAK,
    C_GROWTH,
    C_LEFT,
    C_LIMIT,
    C_COUNT
} column;

/* Shown from so many columns of the screen on; the name takes what the others leave. */
static const struct {
    const char *title;
    int width; /* negative: to the right */
    unsigned from;
} columns[C_COUNT] = {{"PID", -7, 0},          {"GPU", 4, 60},    {"PROCESS", 0, 0},
                      {"STATE", 24, 120},      {"MEMORY", -9, 0}, {"PEAK", -9, 60},
                      {"GROWTH/MIN", -11, 50}, {"LEFT", -9, 0},   {"LIMIT", -9, 100}};

static unsigned columns_of(column c)
{
    return (unsigned)(columns[c].width < 0 ? -columns[c].width : columns[c].width);
}

static unsigned name_columns(unsigned width)
{
    unsigned others = 0;
    for (column c = 0; c < C_COUNT; c++)
        if (c != C_NAME && width >= columns[c].from) others += columns_of(c) + 1;
    return width > others + NAME_LEAST ? width - others : NAME_LEAST;
}

/* Somebody else's words: fit to be shown first, and then cut at a character's end. */
static void put_name(const oos_style *style, const char *words, unsigned width)
{
    oos_text shown = {0};
    unsigned taken = 0, wide;
    size_t at = 0;
    oos_shown_put(&shown, oos_view_of(words), false);
    oos_view const all = {shown.ptr ? shown.ptr : "", shown.len};
    while (at < all.len) {
        oos_view const rest = oos_view_slice(all, at, all.len);
        size_t const len = oos_words_char(rest, &wide);
        if (taken + wide > width) break;
        oos_text_add(style->text, oos_view_slice(rest, 0, len));
        at += len;
        taken += wide;
    }
    oos_text_repeat(style->text, " ", width - taken);
    style->text->failed |= shown.failed;
    oos_text_free(&shown);
}

static const char *bytes_word(char word[24], bool known, double bytes, const char *sign)
{
    bool const small = bytes < 0x1p30 && bytes > -0x1p30;
    if (!known) return "-";
    oos_format(word, 24, small && *sign ? "%s%.0f MiB" : "%s%.2f GiB", sign,
               (bytes < 0 ? -bytes : bytes) / (small && *sign ? 0x1p20 : 0x1p30));
    return word;
}

static const char *gpus_word(char *word, size_t capacity, const oos_top *top, const oos_top_row *row)
{
    size_t len = 0;
    word[0] = '\0';
    for (unsigned i = 0; i < top->gpu_count && len + 6 < capacity; i++)
        if (row->gpus >> i & 1)
            len += (size_t)snprintf(word + len, capacity - len, len ? ",%u" : "%u", top->gpus[i].number);
    return len > 4 ? "many" : len ? word : "-";
}

/* Of what its limit leaves: nothing grows for long there. */
static oos_ink left_ink(const oos_top_row *row)
{
    if (row->refused) return OOS_INK_BAD;
    return row->left_known && row->left_bytes < row->limit_bytes / 20 ? OOS_INK_WARN : OOS_INK_PLAIN;
}

static void put_cell(const oos_style *style, column c, oos_ink ink, const char *words)
{
    if (style->width < columns[c].from) return;
    oos_text_put(style->text, c ? " " : "");
    oos_ink_begin(style, ink);
    oos_style_cell(style, columns[c].width, words);
    oos_ink_end(style, ink);
}

static void put_row(const oos_style *style, const oos_top *top, const oos_top_row *row)
{
    char word[24], gpus[16];
    double per_minute = 0;
    bool const gone = row->ended_at > 0, grows = !gone && oos_top_growth(row, &per_minute);
    oos_ink const dim = gone ? OOS_INK_DIM : OOS_INK_PLAIN;
    snprintf(word, sizeof word, "%u", row->pid);
    put_cell(style, C_PID, dim, word);
    put_cell(style, C_GPU, dim, gpus_word(gpus, sizeof gpus, top, row));
    oos_text_put(style->text, " ");
    oos_ink_begin(style, dim);
    put_name(style, row->name[0] ? row->name : "-", name_columns(style->width));
    oos_ink_end(style, dim);
    const char *state = row->phase == OOS_PHASE_RUNTIME_PREFILL ? "ready" : oos_report_point(row->phase);
    put_cell(style, C_STATE, dim, row->phase < OOS_PHASE_COUNT && *state ? state : "-");
    put_cell(style, C_MEMORY, dim,
             gone ? "ended" : bytes_word(word, row->now_known, (double)row->now_bytes, ""));
    put_cell(style, C_PEAK, dim, bytes_word(word, row->peak_bytes > 0, (double)row->peak_bytes, ""));
    bool const soon = grows && per_minute > 0 && row->left_known && (double)row->left_bytes < 10 * per_minute;
    put_cell(style, C_GROWTH, soon ? OOS_INK_WARN : dim,
             bytes_word(word, grows, per_minute, per_minute < 0 ? "-" : "+"));
    bool const left = !gone && row->left_known;
    put_cell(style, C_LEFT, left ? left_ink(row) : dim, bytes_word(word, left, (double)row->left_bytes, ""));
    put_cell(style, C_LIMIT, dim, bytes_word(word, left, (double)row->limit_bytes, ""));
    oos_text_put(style->text, "\n");
}

static void put_heads(const oos_style *style)
{
    for (column c = 0; c < C_COUNT; c++) {
        if (style->width < columns[c].from) continue;
        oos_text_put(style->text, c ? " " : "");
        oos_ink_begin(style, OOS_INK_BOLD);
        int const wide = c == C_NAME ? (int)name_columns(style->width) : columns[c].width;
        oos_style_cell(style, wide, columns[c].title);
        oos_ink_end(style, OOS_INK_BOLD);
    }
    oos_text_put(style->text, "\n");
}

static void put_gpu(const oos_style *style, const oos_top_gpu *gpu)
{
    unsigned const cells = style->width >= 120 ? 40 : style->width >= 72 ? 20 : 0;
    unsigned const others = 9 + (cells ? cells + 3 : 0) + 28;
    char figures[48];
    double const share = gpu->total_bytes ? (double)gpu->used_bytes / (double)gpu->total_bytes : 0;
    oos_ink const ink = share > 0.95 ? OOS_INK_WARN : OOS_INK_GOOD;
    snprintf(figures, sizeof figures, gpu->is_slice ? "MIG %-3u  " : "GPU %-3u  ", gpu->number);
    oos_text_put(style->text, figures);
    put_name(style, gpu->name, style->width > others + NAME_LEAST ? style->width - others : NAME_LEAST);
    if (cells) {
        oos_text_put(style->text, " ");
        oos_style_bar(style, gpu->used_bytes, gpu->total_bytes, cells, ink);
        oos_text_put(style->text, " ");
    }
    if (gpu->total_bytes)
        oos_format(figures, sizeof figures, "%7.2f / %7.2f GiB %4.0f %%", oos_gib(gpu->used_bytes),
                   oos_gib(gpu->total_bytes), 100 * share);
    else
        snprintf(figures, sizeof figures, "shares the host's memory");
    oos_style_put(style, "%s", figures);
    oos_text_put(style->text, "\n");
}

static void put_first(const oos_style *style, const oos_top_words *words)
{
    oos_text line = {0};
    oos_style inside = *style;
    char right[64];
    inside.text = &line;
    oos_format(right, sizeof right, "%.16s  %g s", words->clock, words->every);
    size_t const taken = strlen(right);
    unsigned const room = style->width > 14 + (unsigned)taken ? style->width - 14 - (unsigned)taken : 0;
    oos_style_ink(&inside, OOS_INK_BOLD, "oomsight top");
    oos_text_put(&line, room ? "  " : "");
    put_name(&inside, words->host, room);
    if (room) oos_text_put(&line, right);
    oos_text_put(&line, "\n");
    oos_text_add(style->text, (oos_view){line.ptr ? line.ptr : "", line.len});
    style->text->failed |= line.failed;
    oos_text_free(&line);
}

/* What is not in the rows. Its lines. */
static unsigned put_notes(const oos_style *style, const oos_top *top, unsigned rows)
{
    unsigned lines = 0;
    if (!top->nvml_known && rows) {
        oos_style_ink(style, OOS_INK_DIM,
                      style->width >= 80
                          ? "NVML does not answer: only what runs under 'oomsight run' is listed.\n"
                          : "NVML does not answer.\n");
        lines++;
    }
    if (!top->row_count && rows > lines) {
        oos_style_put(style, "No process uses a GPU.\n");
        lines++;
    }
    if (top->unlimited_pid && rows > lines) {
        oos_style_ink(style, OOS_INK_BAD, "run %u: its limit does not hold for all of its processes (d)\n",
                      top->unlimited_pid);
        lines++;
    }
    return lines;
}

static void put_keys(const oos_style *style, const oos_top_words *words)
{
    static const char *const orders[] = {"memory", "growth", "PID"};
    if (words->paused) oos_style_ink(style, OOS_INK_WARN, "paused  ");
    oos_style_put(style, style->width >= 60 ? "q quit  s sort: %s  p pause  d components" : "q s:%s p d",
                  orders[words->order]);
}

void oos_report_top(oos_text *text, const oos_top *top, const oos_top_words *words,
                    const oomsight_render_params *params)
{
    oos_style const style = oos_style_of(text, params);
    unsigned const lines = words->lines > HEADS + 3 ? words->lines : HEADS + 3;
    unsigned left = lines - HEADS - 1; /* for GPUs, rows and notes */
    unsigned const gpus = top->gpu_count <= left / 2 ? top->gpu_count : left / 2 - 1;
    put_first(&style, words);
    for (unsigned i = 0; i < gpus; i++) put_gpu(&style, &top->gpus[i]);
    if (gpus < top->gpu_count) oos_style_put(&style, "... %u more GPUs\n", top->gpu_count - gpus);
    left -= gpus + (gpus < top->gpu_count);
    oos_text_put(text, "\n");
    put_heads(&style);
    unsigned const notes =
        (top->nvml_known ? 0u : 1u) + (top->row_count ? 0u : 1u) + (top->unlimited_pid ? 1u : 0u);
    unsigned const room = left > notes ? left - notes : 0;
    unsigned const rows = top->row_count <= room ? top->row_count : room ? room - 1 : 0;
    for (unsigned i = 0; i < rows; i++) put_row(&style, top, &top->rows[i]);
    left -= rows;
    if (rows < top->row_count && left) {
        oos_style_ink(&style, OOS_INK_DIM, "... %u more processes\n", top->row_count - rows);
        left--;
    }
    left -= put_notes(&style, top, left);
    oos_text_repeat(text, "\n", left);
    put_keys(&style, words);
}
