/* Pages that are one table: a check, and which GPUs are enough. web/table.html with the rows put into it; it has no script, so that whoever
 * shows files of others (a forge, a build server) shows it as it is. */
#include "report/report.h"
#include "base/locale.h"
#include "base/shown.h"

#include <stdio.h>

extern const char oos_table_page[]; /* web/table.html, made by tools/embed_text.py */

enum {
    LINE_COLUMNS = 1 << 20, /* a paragraph is one line */
    UNBROKEN_BYTES = 28,    /* a word that is shorter stays whole on a phone */
    ROWS_OPEN = 8,
    CARDS_OPEN = 6 /* the others are folded */
};

/* What people read in place of a mark of the page. */
static void put_part(oos_text *text, const oos_text *part)
{
    oos_html_put_plain(text, (oos_view){part->ptr ? part->ptr : "", part->len});
    text->failed |= part->failed;
}

/* The sentence that `part` has so far, as it may stand between tags, and `part` empty again. */
static void take_part(oos_text *text, oos_text *part)
{
    while (part->len && part->ptr[part->len - 1] == '\n') part->len--;
    put_part(text, part);
    oos_text_free(part);
}

static void put_words(oos_text *text, bool chinese, const char *words)
{
    oos_text part = {0};
    oos_style const style = {.text = &part, .width = LINE_COLUMNS, .chinese = chinese};
    oos_style_paragraph(&style, 0, words);
    take_part(text, &part);
}

/* The same as an element: `open` is its tag with what it has, for example "span class=line". */
static void put_element(oos_text *text, bool chinese, const char *open, const char *words)
{
    oos_text_printf(text, "<%s>", open);
    put_words(text, chinese, words);
    oos_text_printf(text, "</%.*s>", (int)strcspn(open, " "), open);
}

/* Somebody else's words. */
static void put_code(oos_text *text, const char *open, const char *words)
{
    oos_text part = {0};
    oos_shown_put(&part, oos_view_of(words), false);
    oos_text_printf(text, "<%s>", open);
    take_part(text, &part);
    oos_text_printf(text, "</%.*s>", (int)strcspn(open, " "), open);
}

static void put_head(oos_text *body, bool chinese, const char *class, const char *const *heads, size_t count)
{
    oos_text_printf(body, "<table class=%s><thead><tr>", class);
    for (size_t i = 0; i < count; i += 2) {
        oos_text_printf(body, "<th scope=col class=\"%s\">", heads[i]);
        put_words(body, chinese, heads[i + 1]);
        oos_text_put(body, "</th>");
    }
    oos_text_put(body, "</tr></thead><tbody>\n");
}

/* The page with its marks filled; `body` is freed. */
static void put_page(oos_text *text, bool chinese, const char *command, const char *title, oos_text *body)
{
    for (const char *from = oos_table_page; *from;) {
        static const char *const marks[] = {"@LANGUAGE@", "@TITLE@", "@COMMAND@", "@BODY@", "@MADE@"};
        const char *const at = strchr(from, '@');
        size_t which = 0;
        oos_text_add(text, (oos_view){from, at ? (size_t)(at - from) : strlen(from)});
        if (!at) break;
        while (which < 5 && strncmp(at, marks[which], strlen(marks[which])) != 0) which++;
        from = at + (which < 5 ? strlen(marks[which]) : 1);
        switch (which) {
        case 0: oos_text_put(text, chinese ? "zh-CN" : "en"); break;
        case 1: put_words(text, chinese, title); break;
        case 2: oos_text_put(text, command); break;
        case 3: oos_text_add(text, (oos_view){body->ptr ? body->ptr : "", body->len}); break;
        case 4:
            put_words(text, chinese,
                      "Made by oomsight " OOMSIGHT_VERSION
                      " from the same figures as its text and JSON. This file needs no network.");
            break;
        default: oos_text_put(text, "@");
        }
    }
    text->failed |= body->failed;
    oos_text_free(body);
}

/* ---- a check ---- */

/* In a few words what becomes of it. */
static const char *answer_of(const oos_checked *checked)
{
    if (checked->doubt) return "not looked at";
    if (checked->host_needs_bytes) return "will not start";
    return checked->plan ? checked->plan->word : "cannot be planned";
}

static void put_where(oos_text *body, bool chinese, const oos_checked *checked)
{
    const oos_found *found = checked->found;
    oos_text words = {0};
    oos_style const plain = {.text = &words};
    oos_text_put(body, "<td class=where>");
    oos_style_word(&plain, checked->path);
    if (found->line) oos_text_printf(&words, ":%u", (unsigned)found->line);
    oos_text_put(body, "<b class=line>");
    take_part(body, &words);
    oos_text_put(body, "</b>");
    if (!checked->doubt) {
        oos_text_put(body, "<span class=\"line dim\">");
        put_words(body, chinese, found->kind);
        if (found->name) put_code(body, "span", " "), put_code(body, "span", found->name);
        oos_text_put(body, "</span><code class=line>");
        for (size_t i = 0; i < found->shown_count; i++) {
            const char *word = found->shown[i];
            if (i) oos_text_put(body, " ");
            put_code(body, strlen(word) < UNBROKEN_BYTES ? "span class=whole" : "span", word);
        }
        oos_text_put(body, "</code>");
    }
    oos_text_put(body, "</td>");
}

static void put_who(oos_text *body, bool chinese, const oos_checked *checked)
{
    const oos_checked_plan *plan = checked->plan;
    char line[256];
    oos_text_put(body, "<td class=who>");
    if (plan && !checked->doubt) {
        oos_format(line, sizeof line, "%s (%.2f GiB)", plan->device ? plan->device : "this GPU",
                   oos_gib(plan->total_bytes));
        put_element(body, chinese, "span class=line", line);
        if (checked->beside) {
            oos_format(line, sizeof line, "%.2f GiB used by %s", oos_gib(checked->beside_bytes),
                       checked->beside);
            put_element(body, chinese, "span class=line", line);
        }
        snprintf(line, sizeof line, "%s %s", plan->engine, plan->engine_version);
        put_element(body, chinese, "span class=\"line dim\"", line);
    }
    oos_text_put(body, "</td>");
}

static void put_mend(oos_text *body, bool chinese, const oos_checked *checked)
{
    const char *command = oos_checked_mend(checked)->best_command;
    oos_text line = {0};
    oos_style const style = {.text = &line, .chinese = chinese};
    if (checked->mate) oos_checked_mend_put(&style, checked);
    if (command || checked->mate)
        put_element(body, chinese && !checked->mate, "span class=line",
                    checked->mate && line.ptr ? line.ptr : "Suggested command");
    if (command) put_code(body, "code class=command", command);
    body->failed |= line.failed;
    oos_text_free(&line);
}

static void put_why(oos_text *body, bool chinese, const oos_checked *checked)
{
    const oos_checked_plan *plan = checked->doubt || checked->host_needs_bytes ? NULL : checked->plan;
    oos_text part = {0};
    oos_style const style = {.text = &part, .width = LINE_COLUMNS, .chinese = chinese};
    oos_text_put(body, "<td>");
    if (checked->host_needs_bytes) {
        char line[160];
        oos_format(line, sizeof line,
                   "the command keeps %.2f GiB in host memory, the container's limit is %.2f GiB",
                   oos_gib(checked->host_needs_bytes), oos_gib(checked->found->host_limit_bytes));
        put_words(body, chinese, line);
    } else if (!plan) {
        put_words(body, chinese, checked->problem);
    } else {
        if (plan->reason) put_element(body, chinese, "span class=line", plan->reason);
        if (plan->why && plan->verdict != OOMSIGHT_VERDICT_UNKNOWN) {
            oos_report_sentence(&style, 0, "", plan->why);
            oos_text_put(body, "<span class=\"line dim\">");
            take_part(body, &part);
            oos_text_put(body, "</span>");
        }
        if (oos_check_level(checked) != OOS_LEVEL_OK || checked->mend) put_mend(body, chinese, checked);
    }
    oos_text_put(body, "</td>");
}

static void put_row(oos_text *body, bool chinese, const oos_checked *checked)
{
    static const char *const inks[] = {"good", "none", "warn", "bad"};
    oos_text_printf(body, "<tr><td class=first><span class=\"pill %s\">", inks[oos_check_level(checked)]);
    put_words(body, chinese, answer_of(checked));
    oos_text_put(body, "</span></td>");
    put_where(body, chinese, checked);
    put_who(body, chinese, checked);
    put_why(body, chinese, checked);
    oos_text_put(body, "</tr>\n");
}

/* The worst that is there, and of how many commands. */
static void check_title(char *line, size_t size, const size_t *counts, size_t commands, bool certain)
{
    const char *noun = commands == 1 ? "command" : "commands";
    if (counts[OOS_LEVEL_ERROR])
        snprintf(line, size, "%zu of %zu %s %s", counts[OOS_LEVEL_ERROR], commands, noun,
                 certain ? "will not start" : "will probably not start");
    else if (counts[OOS_LEVEL_WARNING])
        snprintf(line, size, "%zu of %zu %s will probably start", counts[OOS_LEVEL_WARNING], commands, noun);
    else if (counts[OOS_LEVEL_OK])
        snprintf(line, size, "%zu of %zu %s will start", counts[OOS_LEVEL_OK], commands, noun);
    else
        snprintf(line, size, "No command could be planned");
}

void oos_report_check_html(oos_text *text, const oos_check_page *page, const oomsight_render_params *params)
{
    static const oos_level worst_first[] = {OOS_LEVEL_ERROR, OOS_LEVEL_WARNING, OOS_LEVEL_NOTE, OOS_LEVEL_OK};
    static const char *const heads[] = {"first", "answer", "where", "place and command",
                                        "who",   "GPU",    "",      "why"};
    bool const chinese = oos_words_chinese(params);
    size_t counts[4] = {0}, commands = 0;
    bool certain = false;
    char line[256];
    oos_text body = {0};
    for (size_t i = 0; i < page->count; i++) {
        const oos_checked *checked = &page->list[i];
        if (checked->doubt) continue;
        counts[oos_check_level(checked)]++;
        commands++;
        certain |= oos_check_level(checked) == OOS_LEVEL_ERROR &&
                   (!checked->plan || checked->plan->verdict != OOMSIGHT_VERDICT_TIGHT);
    }
    check_title(line, sizeof line, counts, commands, certain);
    put_element(&body, chinese, "h1", line);
    put_head(&body, chinese, "check", heads, sizeof heads / sizeof *heads);
    for (size_t level = 0; level < 4; level++)
        for (size_t i = 0; i < page->count; i++)
            if (oos_check_level(&page->list[i]) == worst_first[level])
                put_row(&body, chinese, &page->list[i]);
    oos_text_put(&body, "</tbody></table>");
    put_page(text, chinese, "check", line, &body);
}

/* ---- which GPUs are enough ---- */

/* A card and the tokens that it leaves, where not all of the row leave as many. */
static void put_card(oos_text *body, bool chinese, const oos_need_gpu *choice, bool alike, bool certain)
{
    char tokens[40];
    const char *name = oos_choice_name(choice->gpu);
    oos_text_put(body, strlen(name) < UNBROKEN_BYTES - 8 ? "<span class=whole>" : "<span>");
    put_code(body, "span", name);
    oos_choice_tokens(tokens, sizeof tokens, choice->kv_tokens);
    if (!alike) oos_text_printf(body, " <span class=dim>%s</span>", tokens);
    if (certain && choice->verdict != OOMSIGHT_VERDICT_FITS) {
        oos_text_put(body, " ");
        put_words(body, chinese, "(probably)");
    }
    oos_text_put(body, "</span>");
}

static void put_fold(oos_text *body, bool chinese, size_t count, const char *one, const char *many)
{
    char line[64];
    snprintf(line, sizeof line, "%zu %s", count, count == 1 ? one : many);
    oos_text_put(body, "<details><summary>");
    put_words(body, chinese, line);
    oos_text_put(body, "</summary>");
}

static void put_cards(oos_text *body, bool chinese, const oos_plan *plan, size_t first,
                      const oos_choice_row *all)
{
    const oos_need_gpu *row = &plan->help.choices[first];
    size_t shown = 0;
    bool const folds = all->count > CARDS_OPEN + 1;
    for (size_t i = first; i < plan->help.choice_count; i++) {
        if (!oos_choice_same_row(row, &plan->help.choices[i])) continue;
        if (folds && shown == CARDS_OPEN)
            put_fold(body, chinese, all->count - shown, "more GPU", "more GPUs");
        else if (shown)
            oos_text_put(body, ", ");
        put_card(body, chinese, &plan->help.choices[i], all->most == all->least, all->certain > 0);
        shown++;
    }
    if (folds) oos_text_put(body, "</details>");
}

static void put_choice(oos_text *body, bool chinese, const oos_plan *plan, size_t first)
{
    const oos_need_gpu *row = &plan->help.choices[first];
    oos_choice_row const all = oos_choice_row_of(plan, first);
    bool const certain = all.certain > 0;
    char tokens[40];
    oos_text_printf(body, "<tr><td class=whole><b>%llu x %llu GB</b> <span class=\"pill %s\">",
                    (unsigned long long)row->count, oos_choice_gib(row), certain ? "good" : "warn");
    put_words(body, chinese, certain ? "will start" : "will probably start");
    oos_choice_tokens(tokens, sizeof tokens, all.least);
    oos_text_printf(body, "</span></td><td class=num>%s%s <span class=phone>",
                    all.most > all.least ? "\u2265 " : "", tokens);
    put_words(body, chinese, "KV tokens");
    oos_text_put(body, "</span></td><td>");
    put_cards(body, chinese, plan, first, &all);
    oos_text_put(body, "</td><td>");
    for (size_t i = 0; i < row->flag_count; i++) {
        if (i) oos_text_put(body, " ");
        put_code(body, "code class=whole", row->flags[i]);
    }
    oos_text_put(body, "</td></tr>\n");
}

void oos_report_choices_html(oos_text *text, const oos_plan *plan, const oomsight_render_params *params)
{
    static const char *const heads[] = {"", "GPUs",        "num", "KV tokens",
                                        "", "enough with", "",    "flags to add"};
    bool const chinese = oos_words_chinese(params);
    char name[160], line[512];
    oos_text body = {0};
    snprintf(line, sizeof line, "%s with %s %s: %zu of the known GPUs are enough",
             oos_report_model_name(plan->model->path, name, sizeof name), plan->engine->title,
             plan->engine_version, plan->help.choice_count);
    put_element(&body, chinese, "h1", line);
    if (plan->help.choice_count) {
        size_t rows = 0, shown = 0;
        for (size_t i = 0; i < plan->help.choice_count; i++) rows += oos_choice_begins_row(plan, i);
        bool const folds = rows > ROWS_OPEN + 1;
        put_head(&body, chinese, "choices", heads, sizeof heads / sizeof *heads);
        for (size_t i = 0; i < plan->help.choice_count; i++) {
            if (!oos_choice_begins_row(plan, i)) continue;
            if (folds && shown++ == ROWS_OPEN) {
                oos_text_put(&body, "</tbody></table>\n");
                put_fold(&body, chinese, rows - ROWS_OPEN, "more size of GPU", "more sizes of GPU");
                put_head(&body, chinese, "choices", heads, sizeof heads / sizeof *heads);
            }
            put_choice(&body, chinese, plan, i);
        }
        oos_text_put(&body, folds ? "</tbody></table></details>" : "</tbody></table>");
    } else if (plan->answer.why)
        put_element(&body, chinese, "p", plan->answer.why);
    put_page(text, chinese, "plan", line, &body);
}
