/* A check for people and for programs. */
#include "report/report.h"
#include "base/json_write.h"
#include "base/size.h"

const char *oos_check_level_word(oos_level level)
{
    static const char *const words[] = {"ok", "note", "warning", "error"};
    _Static_assert(sizeof words / sizeof *words == OOS_LEVEL_ERROR + 1, "a word for each level");
    return words[level];
}

static const char *kept(oos_arena *arena, const char *text)
{
    return text ? oos_arena_copy(arena, oos_view_of(text)) : NULL;
}

oos_checked_plan *oos_checked_plan_keep(oos_arena *arena, const oos_plan *plan, const char *best_flags,
                                        const char *best_command)
{
    oos_checked_plan *made = OOS_NEW(arena, oos_checked_plan);
    if (!made) return NULL;
    char reason[512];
    oos_report_reason(plan, reason, sizeof reason);
    *made = (oos_checked_plan){.verdict = plan->answer.verdict,
                               .likely = oos_plan_likely(plan),
                               .word = oos_report_answer_word(plan),
                               .phase = plan->answer.phase,
                               .cause = plan->answer.cause,
                               .reason = *reason ? kept(arena, reason) : NULL,
                               .why = kept(arena, plan->answer.why),
                               .tried_bytes = plan->answer.tried_bytes,
                               .device = kept(arena, plan->device.name),
                               .engine = plan->engine->title,
                               .engine_version = kept(arena, plan->engine_version),
                               .exact = oos_exact_told_word(plan->exact),
                               .exact_said = plan->exact ? kept(arena, plan->exact->said) : NULL,
                               .total_bytes = plan->device.total_bytes,
                               .ranks = plan->serving.ranks,
                               .weights_bytes = plan->sizes.weights.loaded_bytes,
                               .best_flags = kept(arena, best_flags),
                               .best_command = kept(arena, best_command)};
    for (size_t i = 0; i < plan->phase_count; i++)
        if (plan->phases[i].phase >= OOS_PHASE_KV_ALLOC)
            made->held_bytes = oos_max(made->held_bytes, plan->phases[i].peak_bytes);
    return made;
}

const oos_checked_plan *oos_checked_mend(const oos_checked *checked)
{
    return checked->mend ? checked->mend : checked->plan;
}

oos_level oos_check_level(const oos_checked *checked)
{
    if (checked->doubt) return checked->doubt_level;
    if (checked->host_needs_bytes) return OOS_LEVEL_ERROR;
    if (!checked->plan) return OOS_LEVEL_NOTE;
    switch (checked->plan->verdict) {
    case OOMSIGHT_VERDICT_FITS: return OOS_LEVEL_OK;
    case OOMSIGHT_VERDICT_TIGHT: return checked->plan->likely ? OOS_LEVEL_WARNING : OOS_LEVEL_ERROR;
    case OOMSIGHT_VERDICT_UNKNOWN: return OOS_LEVEL_NOTE;
    case OOMSIGHT_VERDICT_FAILS:
    case OOMSIGHT_VERDICT_REFUSED: return OOS_LEVEL_ERROR;
    }
    return OOS_LEVEL_NOTE;
}

/* What happens and why, on what. */
static void put_sentence(oos_text *text, const oos_checked *checked)
{
    const oos_checked_plan *plan = checked->plan;
    if (checked->doubt)
        oos_text_put(text, checked->problem);
    else if (!plan)
        oos_text_printf(text, "cannot be planned: %s", checked->problem);
    else if (checked->host_needs_bytes)
        oos_text_printf(
            text,
            "will not start: the command keeps %.2f GiB in host memory, the container's limit is %.2f GiB",
            (double)checked->host_needs_bytes / 0x1p30, (double)checked->found->host_limit_bytes / 0x1p30);
    else
        oos_text_printf(text, "%s%s%s", plan->word, plan->reason ? ": " : "",
                        plan->reason ? plan->reason : "");
}

static bool is_planned(const oos_checked *checked)
{
    return !checked->doubt && checked->plan && !checked->host_needs_bytes;
}

/* On what. */
static void put_setup(oos_text *text, const oos_checked *checked)
{
    const oos_checked_plan *plan = checked->plan;
    oos_text_printf(text, "on %s (%.2f GiB", plan->device ? plan->device : "this GPU",
                    (double)plan->total_bytes / 0x1p30);
    if (checked->beside)
        oos_text_printf(text, ", %.2f GiB used by %s", (double)checked->beside_bytes / 0x1p30,
                        checked->beside);
    oos_text_printf(text, "), %s %s", plan->engine, plan->engine_version);
}

/* The reason of an unknown answer is told with it. */
static bool has_why(const oos_checked_plan *plan)
{
    return plan->why && plan->verdict != OOMSIGHT_VERDICT_UNKNOWN;
}

void oos_check_sentence(oos_text *text, const oos_checked *checked)
{
    const oos_checked_plan *plan = checked->plan;
    put_sentence(text, checked);
    if (!is_planned(checked)) return;
    oos_text_put(text, ", ");
    put_setup(text, checked);
    if (has_why(plan)) {
        oos_text_put(text, ". ");
        oos_report_grouped(text, plan->why);
    }
    const char *flags = oos_checked_mend(checked)->best_flags;
    if (flags && *flags) oos_text_printf(text, " Suggested: %s", flags);
}

/* The command on the line of its kind and name, or wrapped below it. */
static void put_found(const oos_style *style, const oos_found *found)
{
    oos_text head = {0}, words = {0};
    oos_style const inside = {.text = &head, .chinese = style->chinese}, plain = {.text = &words};
    oos_style_put(&inside, "%s", found->kind);
    if (found->name) {
        oos_text_put(&head, " ");
        oos_style_word(&inside, found->name);
    }
    for (size_t i = 0; i < found->shown_count; i++) {
        if (i) oos_text_put(&words, " ");
        oos_style_word(&plain, found->shown[i]);
    }
    style->text->failed |= head.failed || words.failed;
    if (!style->text->failed && head.len + words.len + 6 <= style->width)
        oos_text_printf(style->text, "    %s: %s\n", head.ptr, words.ptr ? words.ptr : "");
    else if (!style->text->failed) {
        oos_text_printf(style->text, "    %s:\n", head.ptr);
        oos_report_command(style, 8, words.ptr ? words.ptr : "");
    }
    oos_text_free(&head);
    oos_text_free(&words);
}

/* Where a sentence goes on in the next line: behind its first colon. */
static size_t part_of(oos_view words, size_t *ret_next)
{
    static const char *const colons[] = {": ", "\xef\xbc\x9a"};
    for (size_t i = 0; i < sizeof colons / sizeof *colons; i++) {
        const char *at = words.len ? memmem(words.ptr, words.len, colons[i], strlen(colons[i])) : NULL;
        if (!at) continue;
        *ret_next = (size_t)(at - words.ptr) + strlen(colons[i]);
        return (size_t)(at - words.ptr);
    }
    return *ret_next = 0;
}

/* Behind what stands in the line; on the next what is too long, a command among it as one. */
static void put_behind(const oos_style *style, size_t from, const char *mark, const char *words)
{
    oos_view const line = oos_view_slice((oos_view){style->text->ptr, style->text->len}, from, SIZE_MAX);
    oos_text text = {0};
    oos_style const inside = {.text = &text, .chinese = style->chinese};
    oos_style_put(&inside, "%s", words);
    oos_view said = {text.ptr ? text.ptr : "", text.len};
    size_t const taken = oos_words_columns(line) + strlen(mark) + 1;
    size_t next = said.len, head = said.len;
    if (taken + oos_words_columns(said) > style->width) head = part_of(said, &next);
    if (taken + oos_words_columns(oos_view_slice(said, 0, head)) > style->width) head = next = 0;
    oos_text_put(style->text, mark);
    if (head) oos_text_printf(style->text, " %.*s", (int)head, said.ptr);
    oos_text_put(style->text, "\n");
    if (next < said.len) oos_style_quote(style, 4, said.ptr + next);
    style->text->failed |= text.failed;
    oos_text_free(&text);
}

void oos_checked_mend_put(const oos_style *style, const oos_checked *checked)
{
    const char *command = oos_checked_mend(checked)->best_command;
    const oos_found *mate = checked->mate;
    if (!mate) {
        oos_style_put(style, "helps:");
        return;
    }
    const char *said = checked->plan->likely       ? "so that %s (line %u) starts next to it:"
                       : checked->first && command ? "helps, when it is started before %s (line %u):"
                       : checked->first            ? "helps: start it before %s (line %u)"
                       : command                   ? "helps, with what is suggested for %s (line %u):"
                                                   : "helps: what is suggested for %s (line %u)";
    oos_style_put(style, said, mate->name ? mate->name : "the other command", (unsigned)mate->line);
}

static void put_mend(const oos_style *style, const oos_checked *checked)
{
    const char *command = oos_checked_mend(checked)->best_command;
    if (!command && !checked->mate) return;
    oos_text line = {0};
    oos_style const words = {.text = &line, .chinese = style->chinese};
    oos_checked_mend_put(&words, checked);
    style->text->failed |= line.failed;
    oos_style_paragraph(style, 4, line.ptr ? line.ptr : "");
    if (command) oos_report_command(style, 8, command);
    oos_text_free(&line);
}

/* As a compiler says it, a place, a level and a sentence; below it the command, why, and what helps. */
static void put_finding(const oos_style *style, const oos_checked *checked, bool explain)
{
    static const struct {
        oos_ink ink;
        const char *word;
    } levels[] = {
        {OOS_INK_GOOD, "ok"}, {OOS_INK_DIM, "note"}, {OOS_INK_WARN, "warning"}, {OOS_INK_BAD, "error"}};
    oos_level const level = oos_check_level(checked);
    const oos_found *found = checked->found;
    const oos_checked_plan *plan = is_planned(checked) ? checked->plan : NULL;
    size_t const from = style->text->len;
    oos_text line = {0};
    oos_style const plain = {.text = style->text, .width = style->width, .chinese = style->chinese};
    if (found->line)
        oos_style_ink(style, OOS_INK_BOLD, "%s:%u: ", checked->path, (unsigned)found->line);
    else
        oos_style_ink(style, OOS_INK_BOLD, "%s: ", checked->path);
    oos_style_ink(style, levels[level].ink, "%s", levels[level].word);
    if (plan) {
        oos_text_put(style->text, ": ");
        oos_style_put(style, "%s", plan->word);
        if (plan->reason) put_behind(&plain, from, ":", plan->reason);
        put_setup(&line, checked);
        if (plan->reason)
            oos_style_paragraph(style, 4, line.ptr ? line.ptr : "");
        else
            put_behind(&plain, from, "", line.ptr ? line.ptr : "");
    } else {
        put_sentence(&line, checked);
        put_behind(&plain, from, ":", line.ptr ? line.ptr : "");
    }
    style->text->failed |= line.failed;
    oos_text_free(&line);
    if (checked->doubt) return;
    put_found(style, found);
    if (plan && has_why(plan) && (level >= OOS_LEVEL_WARNING || explain))
        oos_report_sentence(style, 4, "", plan->why);
    if (plan && plan->exact_said) oos_report_sentence(style, 4, "", plan->exact_said);
    if (plan && (level != OOS_LEVEL_OK || checked->mend)) put_mend(style, checked);
}

void oos_report_check_text(oos_text *text, const oos_check_page *page, const oomsight_render_params *params)
{
    oos_style const style = oos_style_of(text, params);
    enum { DOUBTS_SHOWN = 10 }; /* files that only name an engine: of many, the commands are looked for */
    size_t counts[4] = {0}, doubts = 0;
    for (size_t i = 0; i < page->count; i++) {
        if (page->list[i].doubt)
            doubts++;
        else
            counts[oos_check_level(&page->list[i])]++;
        if (!page->list[i].doubt || doubts <= DOUBTS_SHOWN || params->explain)
            put_finding(&style, &page->list[i], params->explain != 0);
    }
    oos_style_put(&style, "%zu %s in %zu %s: %zu fit, %zu uncertain, %zu do not fit, %zu skipped\n",
                  page->count - doubts, page->count - doubts == 1 ? "command" : "commands", page->files,
                  page->files == 1 ? "file" : "files", counts[OOS_LEVEL_OK], counts[OOS_LEVEL_WARNING],
                  counts[OOS_LEVEL_ERROR], counts[OOS_LEVEL_NOTE] + doubts);
    if (doubts > DOUBTS_SHOWN && !params->explain)
        oos_style_put(&style, "not looked at: %zu; the first %d stand above, --explain shows all\n", doubts,
                      DOUBTS_SHOWN);
    else if (doubts)
        oos_style_put(&style, "not looked at: %zu, see above\n", doubts);
}

static void put_ask(oos_json_writer *w, const oos_checked *checked)
{
    oos_json_key(w, "plan");
    if (!checked->ask) {
        oos_json_put_null(w);
        return;
    }
    oos_json_begin_array(w);
    for (size_t i = 0; i < checked->ask_count; i++) oos_json_put_str(w, checked->ask[i]);
    oos_json_end_array(w);
}

static void put_checked(oos_json_writer *w, const oos_checked *checked)
{
    const oos_found *found = checked->found;
    const oos_checked_plan *plan = checked->plan;
    oos_json_begin_object(w);
    oos_json_field_str(w, "file", checked->path);
    oos_json_field_u64(w, "line", found->line);
    oos_json_field_str(w, "kind", found->kind);
    oos_json_field_str(w, "name", found->name);
    oos_json_field_strs(w, "command", found->shown, found->shown_count);
    oos_json_field_str(w, "engine", checked->engine);
    oos_json_field_str(w, "model", checked->model);
    put_ask(w, checked);
    oos_json_field_known(w, "gpus", (oos_u64){found->gpus != 0, found->gpus});
    oos_json_field_str(w, "engine_version", plan ? plan->engine_version : found->engine_version);
    oos_json_field_str(w, "gpu", plan ? plan->device : found->gpu);
    oos_json_field_str(w, "level", oos_check_level_word(oos_check_level(checked)));
    oos_json_field_str(w, "verdict", plan ? oos_report_verdict_word(plan->verdict) : NULL);
    oos_json_field_str(w, "likely",
                       !plan || plan->verdict == OOMSIGHT_VERDICT_UNKNOWN ? NULL
                       : plan->likely                                     ? "starts"
                                                                          : "fails");
    oos_json_field_str(w, "phase",
                       plan && plan->phase != OOS_PHASE_COUNT ? oos_phase_word(plan->phase) : NULL);
    oos_json_field_str(w, "cause", plan ? oos_cause_word(plan->cause) : NULL);
    oos_json_field_known(w, "tried_bytes", plan ? plan->tried_bytes : (oos_u64){0});
    oos_json_field_str(w, "why", plan ? plan->why : NULL);
    if (plan && plan->exact) {
        oos_json_field_str(w, "exact", plan->exact);
        oos_json_field_str(w, "exact_said", plan->exact_said);
    }
    oos_json_field_str(w, "best_flags", plan ? oos_checked_mend(checked)->best_flags : NULL);
    oos_json_field_str(w, "best_command", plan ? oos_checked_mend(checked)->best_command : NULL);
    oos_json_field_known(w, "together_with",
                         (oos_u64){checked->mate != NULL, checked->mate ? checked->mate->line : 0});
    oos_json_field_str(w, "beside", checked->beside);
    oos_json_field_known(w, "beside_bytes", (oos_u64){checked->beside != NULL, checked->beside_bytes});
    oos_json_field_known(w, "host_limit_bytes",
                         (oos_u64){found->host_limit_bytes != 0, found->host_limit_bytes});
    oos_json_field_known(w, "host_needs_bytes",
                         (oos_u64){checked->host_needs_bytes != 0, checked->host_needs_bytes});
    oos_json_field_str(w, "problem", checked->problem);
    oos_json_end_object(w);
}

static void put_not_looked_at(oos_json_writer *w, const oos_checked *checked)
{
    oos_json_begin_object(w);
    oos_json_field_str(w, "file", checked->path);
    oos_json_field_u64(w, "line", checked->found->line);
    oos_json_field_str(w, "level", oos_check_level_word(oos_check_level(checked)));
    oos_json_field_str(w, "problem", checked->problem);
    oos_json_end_object(w);
}

void oos_report_check_json(oos_text *text, const oos_check_page *page)
{
    oos_json_writer writer = {.text = text, .pretty_depth = 2}, *w = &writer;
    oos_json_begin_object(w);
    oos_json_field_str(w, "schema", "oomsight.check/1");
    oos_json_field_u64(w, "files", page->files);
    oos_json_field_array(w, "commands");
    for (size_t i = 0; i < page->count; i++)
        if (!page->list[i].doubt) put_checked(w, &page->list[i]);
    oos_json_end_array(w);
    oos_json_field_array(w, "not_looked_at");
    for (size_t i = 0; i < page->count; i++)
        if (page->list[i].doubt) put_not_looked_at(w, &page->list[i]);
    oos_json_end_array(w);
    oos_json_end_object(w);
    oos_text_put(text, "\n");
}
