/* Changing a command that was read, so that it can be planned again. */
#include "command/command.h"

#include <string.h>

static void field_clear(oos_serve *serve, const char *flag)
{
    const oos_flag_field *f = oos_serve_field(serve->words.dialect, oos_view_of(flag));
    if (f) memset((char *)serve + f->offset, 0, f->size);
}

/* `--no-x` is the same switch as `--x`, and `--x.key` a part of it. */
static bool same_flag(const char *given, const char *flag)
{
    size_t const len = strlen(flag);
    if (strncmp(given, flag, len) == 0 && (given[len] == '\0' || given[len] == '.')) return true;
    return strncmp(given, "--no-", 5) == 0 && strncmp(flag, "--", 2) == 0 && strcmp(given + 5, flag + 2) == 0;
}

static bool goes(const oos_serve *serve, const oos_given_flag *given, const char *flag)
{
    const oos_serve_refusal *r = &serve->refusal;
    if (r->unrecognized && strcmp(r->flag, flag) == 0)
        return given->effect == OOS_FLAG_UNKNOWN || given->absent;
    return same_flag(given->name, flag);
}

/* Where no words can be read again. */
static bool fields_leave_out(oos_arena *arena, oos_serve *serve, const char *flag)
{
    oos_given_flag *kept = OOS_NEW_ARRAY(arena, oos_given_flag, serve->flag_count);
    if (!kept) return false;
    size_t count = 0;
    for (size_t i = 0; i < serve->flag_count; i++) {
        const oos_given_flag *given = &serve->flags[i];
        if (goes(serve, given, flag))
            field_clear(serve, given->name); /* it was read, whether the release has it or not */
        else
            kept[count++] = *given;
    }
    serve->flags = kept;
    serve->flag_count = count;
    field_clear(serve, flag);
    if (serve->refusal.flag && same_flag(serve->refusal.flag, flag)) serve->refusal = (oos_serve_refusal){0};
    return true;
}

static void drop(bool *gone, uint32_t first, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) gone[first + i] = true;
}

bool oos_serve_leave_out(oos_arena *arena, oos_serve *serve, const char *flag)
{
    const oos_serve_refusal *r = &serve->refusal;
    oos_serve_words words = serve->words;
    if (words.count == 0) return fields_leave_out(arena, serve, flag);
    bool *gone = OOS_NEW_ARRAY(arena, bool, words.count);
    const char **list = OOS_NEW_ARRAY(arena, const char *, words.count);
    if (!gone || !list) return false;
    memset(gone, 0, words.count * sizeof *gone);
    for (size_t i = 0; i < serve->flag_count; i++) {
        const oos_given_flag *given = &serve->flags[i];
        if (goes(serve, given, flag)) drop(gone, given->first_word, given->word_count);
    }
    if (r->flag && same_flag(r->flag, flag)) drop(gone, r->first_word, r->word_count);

    size_t count = 0, from_config = 0;
    for (size_t i = 0; i < words.count; i++) {
        if (gone[i]) continue;
        list[count++] = words.list[i];
        from_config += i < words.from_config;
    }
    words.list = list;
    words.count = count;
    words.from_config = from_config;
    return oos_serve_read_words(arena, serve, &words, serve, NULL) == OOMSIGHT_OK;
}

static bool field_set_u64(oos_serve *serve, const char *flag, uint64_t value)
{
    const oos_flag_field *f = oos_serve_field(serve->words.dialect, oos_view_of(flag));
    if (!f || !f->number) return false;
    field_clear(serve, flag);
    *(oos_u64 *)((char *)serve + f->offset) = oos_u64_of(value);
    return true;
}

bool oos_serve_give(oos_arena *arena, oos_serve *serve, const char *flag, const char *text)
{
    oos_serve_words words = serve->words;
    if (words.count == 0) return false;
    const char **list = OOS_NEW_ARRAY(arena, const char *, words.count + 2);
    if (!list) return false;
    memcpy(list, words.list, words.count * sizeof *list);
    list[words.count++] = flag;
    if (text) list[words.count++] = text;
    words.list = list;
    return oos_serve_read_words(arena, serve, &words, serve, NULL) == OOMSIGHT_OK;
}

bool oos_serve_set_u64(oos_arena *arena, oos_serve *serve, const char *flag, uint64_t value)
{
    if (serve->words.count == 0) return field_set_u64(serve, flag, value);
    char *number = oos_arena_format(arena, "%llu", (unsigned long long)value);
    return number && oos_serve_give(arena, serve, flag, number);
}

/* ---- another model -------------------------------------------------------------------------------------------------- */

/* A value of another flag, such as the name that is served. `at` counts as oos_serve_words does. */
static bool is_anothers(const oos_serve *serve, size_t at)
{
    for (size_t i = 0; i < serve->flag_count; i++) {
        const oos_given_flag *given = &serve->flags[i];
        if (at >= given->first_word && at - given->first_word < given->word_count)
            return strcmp(given->name, serve->words.dialect->model_flag) != 0;
    }
    return false;
}

/* Where the name of the model stands in a word: alone, or behind `model=` of a flag or keyword, quoted or not. NULL: nowhere. */
static const char *model_in(const char *word, const char *model)
{
    static const char key[] = "model", path[] = "model-path";
    size_t const len = strlen(model);
    for (const char *at = strstr(word, model); at; at = strstr(at + 1, model)) {
        const char *end = at + len, *begin = at;
        bool const quoted = begin > word && (begin[-1] == '\'' || begin[-1] == '"');
        if (quoted ? *end != begin[-1] : *end != '\0' && *end != ',' && *end != ')') continue;
        begin -= quoted;
        if (begin == word) return quoted ? NULL : at;
        if (*--begin != '=') continue;
        size_t const before = (size_t)(begin - word);
        size_t const width =
            before >= sizeof path - 1 && strncmp(begin - (sizeof path - 1), path, sizeof path - 1) == 0
                ? sizeof path - 1
                : sizeof key - 1;
        if (before < width || strncmp(begin - width, width == sizeof key - 1 ? key : path, width) != 0)
            continue;
        if (before == width || strchr("-( ,", begin[-1 - (ptrdiff_t)width])) return at;
    }
    return NULL;
}

const char *const *oos_serve_with_model(oos_arena *arena, const char *const *words, size_t word_count,
                                        const oos_serve *serve, const char *model)
{
    const oos_serve_words *read = &serve->words;
    size_t const own = read->count - read->from_config, entry = word_count > own ? word_count - own : 0;
    const char **list = OOS_NEW_ARRAY(arena, const char *, word_count + 1);
    if (!list || !serve->model || !*serve->model) return NULL;
    memcpy(list, words, word_count * sizeof *list);
    for (size_t i = 0; i < word_count; i++) {
        const char *at = model_in(words[i], serve->model);
        if (!at || (i >= entry && is_anothers(serve, i - entry + read->from_config))) continue;
        list[i] = oos_arena_format(arena, "%.*s%s%s", (int)(at - words[i]), words[i], model,
                                   at + strlen(serve->model));
        return list[i] ? list : NULL;
    }
    return NULL;
}
