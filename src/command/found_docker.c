/* Dockerfiles and systemd units: lines of a key and its words, continued with a backslash. */
#include "base/ascii.h"
#include "base/json.h"
#include "base/text.h"
#include "command/command.h"

/* One logical line: comments inside a continuation are left out, as Docker does. */
typedef struct lines {
    const char *at, *end;
    uint32_t next; /* number of the line at `at` */
} lines;

static bool take_line(lines *in, oos_text *text, uint32_t *ret_line)
{
    text->len = 0;
    *ret_line = in->next;
    bool more = true, any = false;
    while (more && in->at < in->end) {
        const char *stop = memchr(in->at, '\n', (size_t)(in->end - in->at));
        if (!stop) stop = in->end;
        const char *from = in->at, *to = stop;
        in->at = stop < in->end ? stop + 1 : in->end;
        in->next++;
        while (to > from && oos_is_space(to[-1])) to--;
        const char *first = from;
        while (first < to && oos_is_space(*first)) first++;
        if (any && (first == to || *first == '#')) continue;
        any = true;
        more = to > from && to[-1] == '\\';
        oos_text_add(text, (oos_view){from, (size_t)(to - from) - more});
        if (more) oos_text_put(text, " \\\n"); /* keeps the count of lines */
    }
    return any;
}

static bool word_is(oos_view word, const char *name)
{
    return word.len == strlen(name) && oos_same_start(word.ptr, name, word.len);
}

static oos_view trimmed(oos_view text)
{
    while (text.len && oos_is_space(*text.ptr)) text = oos_view_slice(text, 1, text.len);
    while (text.len && oos_is_space(text.ptr[text.len - 1])) text.len--;
    return text;
}

/* The words of CMD or ENTRYPOINT: a JSON array, or shell text. False when it is shell text. */
static bool exec_form(oos_finder *finder, oos_view text, uint32_t line, oos_word_list *words)
{
    json_t *root;
    char *joined = oos_arena_copy(finder->arena, text);
    for (char *at = joined; at && (at = strstr(at, "\\\n"));) *at = ' ';
    text.ptr = joined ? joined : "";
    text.len = strlen(text.ptr);
    if (!text.len || text.ptr[0] != '[' || oos_json_load(finder->arena, text, &root, NULL) != OOMSIGHT_OK ||
        !json_is_array(root))
        return false;
    size_t index;
    json_t *item;
    json_array_foreach(root, index, item)
    {
        const char *word = json_string_value(item);
        if (word) oos_words_add(finder->arena, words, oos_arena_copy(finder->arena, oos_view_of(word)), line);
    }
    return true;
}

static void offer(oos_finder *finder, const oos_word_list *words, const oos_place *place)
{
    if (words->count >= 3 && strcmp(words->list[1], "-c") == 0 && strstr(words->list[0], "sh"))
        oos_finder_shell(finder, oos_view_of(words->list[2]), words->lines[2], 1, place);
    else
        oos_finder_offer(finder, words, place);
}

typedef struct stage {
    oos_word_list entrypoint, command, environment;
    bool entrypoint_is_text, command_is_text;
    oos_view entrypoint_text, command_text;
    uint32_t entrypoint_line, command_line;
    oos_place place;
} stage;

/* What the image of this stage would start. */
static void stage_end(oos_finder *finder, stage *s)
{
    s->place.environment = &s->environment;
    s->place.arguments = true;
    finder->unknown = NULL;
    if (s->entrypoint_is_text) {
        oos_finder_shell(finder, s->entrypoint_text, s->entrypoint_line, 0, &s->place);
    } else if (s->command_is_text && !s->entrypoint.count) {
        oos_finder_shell(finder, s->command_text, s->command_line, 0, &s->place);
    } else {
        if (s->command_is_text) oos_finder_split(finder, s->command_text, s->command_line, &s->command);
        for (size_t i = 0; i < s->command.count; i++)
            oos_words_add(finder->arena, &s->entrypoint, s->command.list[i], s->command.lines[i]);
        offer(finder, &s->entrypoint, &s->place);
    }
    *s = (stage){0};
}

static void take_instruction(oos_finder *finder, stage *s, oos_view name, oos_view rest, uint32_t line)
{
    oos_view const kept = oos_view_of(oos_arena_copy(finder->arena, rest));
    if (!kept.ptr) return;
    if (word_is(name, "FROM")) {
        stage_end(finder, s);
        oos_word_list words = {0};
        oos_finder_split(finder, kept, line, &words);
        for (size_t i = 0; i < words.count && !s->place.image; i++)
            if (words.list[i][0] != '-') s->place.image = words.list[i];
    } else if (word_is(name, "ENV") || word_is(name, "ARG")) {
        oos_word_list words = {0};
        oos_finder_split(finder, kept, line, &words);
        for (size_t i = 0; i < words.count; i++) {
            if (!strchr(words.list[i], '=')) continue;
            oos_finder_set_assignment(finder, words.list[i]);
            if (word_is(name, "ENV")) oos_words_add(finder->arena, &s->environment, words.list[i], line);
        }
    } else if (word_is(name, "ENTRYPOINT")) {
        s->entrypoint = (oos_word_list){0};
        s->entrypoint_is_text = !exec_form(finder, kept, line, &s->entrypoint);
        s->entrypoint_text = kept;
        s->entrypoint_line = line;
    } else if (word_is(name, "CMD")) {
        s->command = (oos_word_list){0};
        s->command_is_text = !exec_form(finder, kept, line, &s->command);
        s->command_text = kept;
        s->command_line = line;
    }
}

void oos_finder_dockerfile(oos_finder *finder, oos_view text)
{
    lines in = {text.ptr, text.ptr + text.len, 1};
    oos_text whole = {0};
    stage s = {0};
    uint32_t line;
    while (take_line(&in, &whole, &line) && !whole.failed) {
        oos_view const trim = trimmed((oos_view){whole.ptr ? whole.ptr : "", whole.len});
        size_t len = 0;
        while (len < trim.len && !oos_is_space(trim.ptr[len])) len++;
        if (!trim.len || trim.ptr[0] == '#') continue;
        take_instruction(finder, &s, (oos_view){trim.ptr, len}, trimmed(oos_view_slice(trim, len, trim.len)),
                         line);
    }
    stage_end(finder, &s);
    finder->failed |= whole.failed;
    oos_text_free(&whole);
}

void oos_finder_unit(oos_finder *finder, oos_view text)
{
    lines in = {text.ptr, text.ptr + text.len, 1};
    oos_text whole = {0};
    oos_word_list environment = {0};
    oos_place const place = {.environment = &environment};
    uint32_t line;
    while (take_line(&in, &whole, &line) && !whole.failed) {
        oos_view const trim = trimmed((oos_view){whole.ptr ? whole.ptr : "", whole.len});
        const char *equals = trim.len ? memchr(trim.ptr, '=', trim.len) : NULL;
        if (!equals || trim.ptr[0] == '#' || trim.ptr[0] == ';') continue;
        oos_view const key = trimmed((oos_view){trim.ptr, (size_t)(equals - trim.ptr)});
        oos_view value = trimmed(oos_view_slice(trim, (size_t)(equals - trim.ptr) + 1, trim.len));
        oos_word_list words = {0};
        if (oos_view_is(key, "Environment")) {
            oos_finder_split(finder, value, line, &words);
            for (size_t i = 0; i < words.count; i++) {
                oos_finder_set_assignment(finder, words.list[i]);
                oos_words_add(finder->arena, &environment, words.list[i], line);
            }
        } else if (oos_view_is(key, "ExecStart")) {
            while (value.len && strchr("@-:+!|", *value.ptr)) value = oos_view_slice(value, 1, value.len);
            finder->unknown = NULL;
            oos_finder_shell(finder, value, line, 0, &place);
        }
    }
    finder->failed |= whole.failed;
    oos_text_free(&whole);
}
