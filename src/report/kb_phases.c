/* Which flag for which phase: the ladders of levers, phase by phase in the order of a start, as text or JSON. */
#include "base/json_write.h"
#include "report/report.h"

#include <string.h>

typedef struct view {
    const oos_advisers *advisers;
    const oos_style *style;
    oos_json_writer *json; /* NULL: text */
    size_t engine;         /* its place in oos_engine_list */
    oos_phase phase;
} view;

/* A text that one lever fills at a time. */
static const char *filled(const view *v, oos_text *text)
{
    v->style->text->failed |= text->failed;
    return text->ptr && !text->failed ? text->ptr : "";
}

static const char *in_language(const view *v, const char *en, const char *zh)
{
    return v->style->chinese ? zh : en;
}

static bool is_share(const view *v, const oos_lever_record *lever)
{
    const oos_ladder *ladder = v->advisers->ladders[v->engine];
    unsigned ways = 0;
    for (size_t i = 0; lever->flag && i < ladder->count; i++)
        if (ladder->list[i].flag && strcmp(ladder->list[i].flag, lever->flag) == 0)
            ways |= ladder->list[i].move == OOS_MOVE_RAISE   ? 1u
                    : ladder->list[i].move == OOS_MOVE_LOWER ? 2u
                                                             : 0;
    return ways == 3;
}

static void put_way(const view *v, const oos_lever_record *lever, oos_text *text)
{
    oos_text_put(text, lever->move == OOS_MOVE_RAISE ? in_language(v, " higher", " 调高")
                                                     : in_language(v, " lower", " 调低"));
}

/* "--flag lower, e.g. 512", "without --flag", "NAME=value", or something to do. */
static void put_change(const view *v, const oos_lever_record *lever, oos_text *text)
{
    const char *begin = lever->begin;
    bool const json = begin && *begin == '{',
               moved = lever->move == OOS_MOVE_RAISE || lever->move == OOS_MOVE_LOWER;
    if (lever->move == OOS_MOVE_DO)
        oos_text_put(text, in_language(v, lever->action.en, lever->action.zh));
    else if (lever->variable)
        oos_text_printf(text, "%s=%s", lever->variable, lever->value ? lever->value : "");
    else if (lever->move == OOS_MOVE_DROP)
        oos_text_printf(text, in_language(v, "without %s", "去掉 %s"), lever->flag);
    else if (lever->value && strncmp(lever->value, "--", 2) == 0)
        oos_text_put(text, lever->value);
    else {
        oos_text_put(text, lever->flag);
        if (moved && !json) put_way(v, lever, text);
        if (!moved && lever->value)
            oos_text_printf(text, " %s", lever->value);
        else if (begin)
            oos_text_printf(text,
                            json     ? " '%s'"
                            : !moved ? " %s"
                                     : in_language(v, ", e.g. %s", "，例如 %s"),
                            begin);
    }
}

/* What has no effect whatever its value is. */
static void put_name(const view *v, const oos_lever_record *lever, oos_text *text)
{
    if (!lever->flag)
        put_change(v, lever, text);
    else
        oos_text_put(text, lever->flag);
    if (is_share(v, lever)) put_way(v, lever, text);
}

/* Why it has no effect here before a release; "" where there is no such release. */
static void put_spent(const view *v, const oos_lever_record *lever, oos_text *text)
{
    for (size_t i = 0; i < v->advisers->spent_count; i++) {
        const oos_spent *one = &v->advisers->spent[i];
        if (strcmp(one->lever, lever->id) != 0 || !(one->phases >> v->phase & 1) ||
            strcmp(one->engine, oos_engine_list[v->engine]->name) != 0)
            continue;
        oos_text_put(text, text->len ? in_language(v, "; ", "；") : "");
        oos_text_put(text, in_language(v, one->why.en, one->why.zh));
    }
}

static bool helps(const view *v, const oos_lever_record *lever)
{
    return lever->phases >> v->phase & 1;
}

/* Said once of a flag with two levers. */
static bool is_inert(const view *v, const oos_lever_record *lever)
{
    const oos_ladder *ladder = v->advisers->ladders[v->engine];
    if (!(lever->useless_phases >> v->phase & 1)) return false;
    for (const oos_lever_record *other = ladder->list; other < lever; other++)
        if (other->flag && lever->flag && strcmp(other->flag, lever->flag) == 0 &&
            other->useless_phases >> v->phase & 1 && !is_share(v, lever))
            return false;
    return true;
}

static size_t count_of(const view *v, bool (*is)(const view *, const oos_lever_record *))
{
    const oos_ladder *ladder = v->advisers->ladders[v->engine];
    size_t count = 0;
    for (size_t i = 0; i < ladder->count; i++) count += is(v, &ladder->list[i]);
    return count;
}

/* Words of a report in the reader's language. */
static void put_title(const view *v, const char *title, oos_text *text)
{
    if (v->style->chinese)
        oos_words_put(text, oos_view_of(title));
    else
        oos_text_put(text, title);
}

/* ---- text */

static void put_releases(const view *v, const oos_lever_record *lever, oos_text *text)
{
    char version[32];
    if (lever->since) {
        oos_version_print(lever->since, version, sizeof version);
        oos_text_printf(text, in_language(v, " Since %s %s.", "自 %s %s 起。"),
                        oos_engine_list[v->engine]->title, version);
    }
    if (lever->until != UINT64_MAX) {
        oos_version_print(lever->until, version, sizeof version);
        oos_text_printf(text, in_language(v, " Until %s %s.", "到 %s %s 为止。"),
                        oos_engine_list[v->engine]->title, version);
    }
}

static void put_freed(const view *v, const oos_lever_record *lever, oos_text *text)
{
    bool first = true;
    for (oos_owner owner = 0; owner < OOS_OWNER_COUNT; owner++) {
        if (!(lever->owners >> owner & 1)) continue;
        oos_text_put(text, !first ? in_language(v, ", ", "、") : in_language(v, " Frees: ", "释放："));
        put_title(v, oos_report_owner_title(owner), text);
        first = false;
    }
    if (!first) oos_text_put(text, in_language(v, ".", "。"));
}

static void put_helping(const view *v, const oos_lever_record *lever)
{
    oos_text change = {0}, line = {0}, before = {0};
    put_spent(v, lever, &before);
    put_change(v, lever, &change);
    oos_text_printf(v->style->text, "  %c%c%c  ", oos_rung_letter(lever->rung),
                    lever->given != lever->rung ? '/' : ' ',
                    lever->given != lever->rung ? oos_rung_letter(lever->given) : ' ');
    oos_style_ink(v->style, OOS_INK_GOOD, "%s\n", filled(v, &change));
    if (lever->why.en)
        oos_text_printf(&line, in_language(v, "%s.", "%s。"), in_language(v, lever->why.en, lever->why.zh));
    put_freed(v, lever, &line);
    oos_text_printf(&line, in_language(v, " Trade-off: %s.", "代价：%s。"),
                    in_language(v, lever->cost.en, lever->cost.zh));
    if (before.len) oos_text_printf(&line, in_language(v, " But %s.", "但%s。"), filled(v, &before));
    put_releases(v, lever, &line);
    oos_style_quote(v->style, 7, filled(v, &line) + (line.len && *line.ptr == ' '));
    oos_text_free(&change);
    oos_text_free(&line);
    oos_text_free(&before);
}

static void put_inert(const view *v, const oos_lever_record *lever)
{
    oos_text line = {0};
    put_name(v, lever, &line);
    oos_text_printf(&line, in_language(v, ": %s", "：%s"),
                    in_language(v, lever->useless_why.en, lever->useless_why.zh));
    oos_style_quote(v->style, 2, filled(v, &line));
    oos_text_free(&line);
}

static void engine_text(const view *v)
{
    const oos_ladder *ladder = v->advisers->ladders[v->engine];
    const char *title = oos_engine_list[v->engine]->title;
    if (count_of(v, helps)) oos_style_ink(v->style, OOS_INK_BOLD, "%s: what to change\n", title);
    for (size_t i = 0; i < ladder->count; i++)
        if (helps(v, &ladder->list[i])) put_helping(v, &ladder->list[i]);
    if (count_of(v, is_inert)) oos_style_ink(v->style, OOS_INK_BOLD, "%s: no effect\n", title);
    for (size_t i = 0; i < ladder->count; i++)
        if (is_inert(v, &ladder->list[i])) put_inert(v, &ladder->list[i]);
    if (!count_of(v, helps) && !count_of(v, is_inert))
        oos_style_put(v->style, "%s: no flag is known to help\n", title);
}

/* ---- JSON */

static void version_json(oos_json_writer *w, const char *key, oos_version version, bool known)
{
    char text[32];
    oos_version_print(version, text, sizeof text);
    oos_json_field_str(w, key, known ? text : NULL);
}

static void helping_json(const view *v, const oos_lever_record *lever)
{
    oos_json_writer *w = v->json;
    char const rung[] = {oos_rung_letter(lever->rung), '\0'}, given[] = {oos_rung_letter(lever->given), '\0'};
    oos_text change = {0}, before = {0};
    put_spent(v, lever, &before);
    put_change(v, lever, &change);
    oos_json_begin_object(w);
    oos_json_field_str(w, "id", lever->id);
    oos_json_field_str(w, "change", filled(v, &change));
    oos_json_field_str(w, "rung", rung);
    oos_json_field_str(w, "given", given);
    oos_json_field_str(w, "why", in_language(v, lever->why.en, lever->why.zh));
    oos_json_field_array(w, "frees");
    for (oos_owner owner = 0; owner < OOS_OWNER_COUNT; owner++) {
        oos_text title = {0};
        if (!(lever->owners >> owner & 1)) continue;
        put_title(v, oos_report_owner_title(owner), &title);
        oos_json_put_str(w, filled(v, &title));
        oos_text_free(&title);
    }
    oos_json_end_array(w);
    oos_json_field_str(w, "cost", in_language(v, lever->cost.en, lever->cost.zh));
    oos_json_field_str(w, "except", before.len ? filled(v, &before) : NULL);
    version_json(w, "since", lever->since, lever->since != 0);
    version_json(w, "until", lever->until, lever->until != UINT64_MAX);
    oos_json_end_object(w);
    oos_text_free(&change);
    oos_text_free(&before);
}

static void inert_json(const view *v, const oos_lever_record *lever)
{
    oos_text name = {0};
    put_name(v, lever, &name);
    oos_json_begin_object(v->json);
    oos_json_field_str(v->json, "id", lever->id);
    oos_json_field_str(v->json, "change", filled(v, &name));
    oos_json_field_str(v->json, "why", in_language(v, lever->useless_why.en, lever->useless_why.zh));
    oos_json_end_object(v->json);
    oos_text_free(&name);
}

static void engine_json(const view *v)
{
    const oos_ladder *ladder = v->advisers->ladders[v->engine];
    oos_json_begin_object(v->json);
    oos_json_field_str(v->json, "engine", oos_engine_list[v->engine]->name);
    oos_json_key(v->json, "helps");
    oos_json_begin_array(v->json);
    for (size_t i = 0; i < ladder->count; i++)
        if (helps(v, &ladder->list[i])) helping_json(v, &ladder->list[i]);
    oos_json_end_array(v->json);
    oos_json_key(v->json, "no_effect");
    oos_json_begin_array(v->json);
    for (size_t i = 0; i < ladder->count; i++)
        if (is_inert(v, &ladder->list[i])) inert_json(v, &ladder->list[i]);
    oos_json_end_array(v->json);
    oos_json_end_object(v->json);
}

/* ---- all of it */

static void put_phase(view *v, const oos_engine_words *engine)
{
    oos_text where = {0};
    put_title(v, oos_report_where(v->phase), &where);
    if (v->json) {
        oos_json_begin_object(v->json);
        oos_json_field_str(v->json, "phase", oos_phase_word(v->phase));
        oos_json_field_str(v->json, "where", filled(v, &where));
        oos_json_key(v->json, "engines");
        oos_json_begin_array(v->json);
    } else
        oos_style_ink(v->style, OOS_INK_BOLD, in_language(v, "Failure %s  [%s]\n", "%s失败  [%s]\n"),
                      filled(v, &where), oos_phase_word(v->phase));
    for (v->engine = 0; v->engine < OOS_ENGINE_COUNT; v->engine++)
        if (!engine || engine == oos_engine_list[v->engine]) {
            if (!engine && v->engine && !v->json) oos_text_put(v->style->text, "\n");
            (v->json ? engine_json : engine_text)(v);
        }
    if (v->json) {
        oos_json_end_array(v->json);
        oos_json_end_object(v->json);
    } else
        oos_text_put(v->style->text, "\n");
    oos_text_free(&where);
}

/* A phase of which no engine has anything to say is left out of the whole list. */
static bool is_known(view *v, const oos_engine_words *engine)
{
    bool known = false;
    for (v->engine = 0; v->engine < OOS_ENGINE_COUNT; v->engine++)
        if (!engine || engine == oos_engine_list[v->engine]) known |= count_of(v, helps) > 0;
    return known;
}

void oos_report_kb_phases(const oos_advisers *advisers, oos_phase only, const oos_engine_words *engine,
                          const oos_style *style, bool json)
{
    oos_json_writer writer = {.text = style->text, .pretty_depth = 4};
    view v = {.advisers = advisers, .style = style, .json = json ? &writer : NULL};
    if (json) {
        oos_json_begin_object(&writer);
        oos_json_field_str(&writer, "schema", "oomsight.phases/1");
        oos_json_field_array(&writer, "phases");
    }
    bool any = false;
    for (v.phase = 0; v.phase < OOS_PHASE_COUNT; v.phase++) {
        bool const known = is_known(&v, engine);
        if (only == OOS_PHASE_COUNT ? !known : only != v.phase) continue;
        any |= known;
        put_phase(&v, engine);
    }
    if (json) {
        oos_json_end_array(&writer);
        oos_json_end_object(&writer);
        oos_text_put(style->text, "\n");
        return;
    }
    if (any)
        oos_style_paragraph(
            style, 0,
            "What is lost: a nothing, b a default that was not given, c a little quality or speed, d what "
            "was requested, e another checkpoint or GPU, or much speed. b/d: d where the command has the "
            "flag.");
}
