/* Engines by their words. */
#include "facts/facts.h"
#include "base/check.h"
#include "base/file.h"

#include <stdio.h>
#include <string.h>

const oos_engine_words *const oos_engine_list[OOS_ENGINE_COUNT] = {
#define ENGINE(name) &oos_words_##name,
#include "facts/engine.def"
#undef ENGINE
};

size_t oos_engine_place(const oos_engine_words *engine)
{
    size_t at = 0;
    while (at + 1 < OOS_ENGINE_COUNT && oos_engine_list[at] != engine) at++;
    oos_assert(oos_engine_list[at] == engine);
    return at;
}

bool oos_engine_is(const oos_engine_words *engine, const char *name)
{
    return strncmp(name, engine->name, strlen(engine->name)) == 0;
}

bool oos_engine_is_server(const char *name)
{
    static const char *const others[] = {
#define OTHER_SERVER(name) name,
#include "facts/engine_other.def"
    };
    for (size_t i = 0; i < OOS_ENGINE_COUNT; i++)
        if (oos_engine_is(oos_engine_list[i], name)) return true;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp(name, others[i]) == 0) return true;
    return false;
}

const oos_engine_words *oos_engine_words_find(const char *name)
{
    for (size_t i = 0; i < OOS_ENGINE_COUNT; i++)
        if (strcmp(name, oos_engine_list[i]->name) == 0) return oos_engine_list[i];
    return NULL;
}

static bool is_program(const char *word, const char *name)
{
    const char *slash = strrchr(word, '/');
    return strcmp(slash ? slash + 1 : word, name) == 0;
}

const oos_engine_words *oos_engine_words_of_image(const char *image)
{
    for (size_t i = 0; image && i < OOS_ENGINE_COUNT; i++)
        if (oos_engine_list[i]->image && strstr(image, oos_engine_list[i]->image)) return oos_engine_list[i];
    return NULL;
}

const oos_engine_words *oos_engine_words_at(const char *word, const char *next)
{
    bool const runs = strcmp(next, "serve") == 0 || strcmp(next, "bench") == 0;
    for (size_t i = 0; i < OOS_ENGINE_COUNT; i++) {
        const oos_engine_words *engine = oos_engine_list[i];
        if (runs && is_program(word, engine->name)) return engine;
        if (strcmp(word, "-m") == 0 && strncmp(next, engine->module, strlen(engine->module)) == 0)
            return engine;
    }
    return NULL;
}

const oos_engine_words *oos_engine_words_of(const char *const *words, size_t count)
{
    const oos_engine_words *found = NULL;
    for (size_t i = 0; i + 1 < count && !found; i++) found = oos_engine_words_at(words[i], words[i + 1]);
    for (size_t i = 0; i < count && !found; i++)
        if (words[i][0] != '-') found = oos_engine_words_of_image(words[i]);
    size_t at = 0; /* `sglang serv`: the program is meant, whatever comes behind it */
    while (at < count && strchr(words[at], '=')) at++;
    return found || at == count ? found : oos_engine_words_find(oos_base_name(words[at]));
}

const char *oos_engine_release(const char *label, char *buffer, size_t size)
{
    const oos_engine_words *engine = oos_engine_default;
    for (size_t i = 0; i < OOS_ENGINE_COUNT; i++) {
        size_t const len = strlen(oos_engine_list[i]->name);
        if (strncmp(label, oos_engine_list[i]->name, len) != 0 || label[len] != '=') continue;
        engine = oos_engine_list[i];
        label += len + 1;
    }
    snprintf(buffer, size, "%s %s", engine->title, label);
    return buffer;
}

const char *oos_engine_title(const char *name)
{
    static const struct {
        const char *title, *name;
    } others[] = {
#define OTHER_TITLE(title, name) {title, name},
#include "facts/engine_other.def"
    };
    for (size_t i = 0; i < OOS_ENGINE_COUNT; i++)
        if (strcmp(oos_engine_list[i]->name, name) == 0) return oos_engine_list[i]->title;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp(others[i].name, name) == 0) return others[i].title;
    return name;
}

const char *oos_engine_other(const char *word)
{
    static const struct {
        const char *title, *word;
    } others[] = {
#define OTHER(title, word) {title, word},
#include "facts/engine_other.def"
    };
    for (size_t i = 0; word && i < sizeof others / sizeof *others; i++)
        if (strstr(word, others[i].word)) return others[i].title;
    return NULL;
}

/* "org/name" with nothing but flags behind it is a model; "bin/name serve" and "/usr/bin/name" are programs. */
static bool is_model_id(const char *word, const char *next)
{
    return strchr(word, '/') && word[0] != '/' && word[0] != '.' && (!next || next[0] == '-');
}

static const char *taken_over(const oos_engine_words *engine, const char *const *words, size_t count)
{
    static const struct {
        const char *title, *name, *flag;
    } flags[] = {
#define OTHER_FLAG(title, name, flag) {title, name, flag},
#include "facts/engine_other.def"
    };
    for (size_t k = 0; k < sizeof flags / sizeof *flags; k++)
        for (size_t i = 0; strcmp(engine->name, flags[k].name) == 0 && i < count; i++)
            if (strcmp(words[i], flags[k].flag) == 0) return flags[k].title;
    return NULL;
}

const char *oos_engine_other_of(const char *const *words, size_t count)
{
    const oos_engine_words *engine = oos_engine_words_of(words, count);
    if (engine) return taken_over(engine, words, count);
    size_t at = 0;
    while (at < count && strchr(words[at], '=')) at++;
    if (at == count) return NULL;
    const char *next = at + 1 < count ? words[at + 1] : NULL, *program = oos_base_name(words[at]);
    if (is_model_id(words[at], next)) return NULL;
    const char *other = oos_engine_other(program);
    bool const container = next && (strcmp(next, "run") == 0 || strcmp(next, "create") == 0);
    for (size_t i = at + 1; i < count && !other; i++)
        if (container ? words[i][0] != '-' && strchr(words[i], '/') : strcmp(words[i - 1], "-m") == 0)
            other = oos_engine_other(words[i]);
    return other;
}

oos_titles oos_titles_join(void)
{
    oos_titles titles = {""};
    size_t const size = sizeof titles.text;
    for (size_t i = 0, len = 0; i < OOS_ENGINE_COUNT && len < size; i++)
        len +=
            (size_t)snprintf(titles.text + len, size - len, "%s%s", i ? ", " : "", oos_engine_list[i]->title);
    return titles;
}

bool oos_engine_named(const char *text)
{
    for (size_t i = 0; i < OOS_ENGINE_COUNT; i++)
        if (strstr(text, oos_engine_list[i]->name)) return true;
    return false;
}

const oomsight_engine_words *oomsight_engine_at(size_t index)
{
    return index < OOS_ENGINE_COUNT ? oos_engine_list[index] : NULL;
}

const oomsight_engine_words *oomsight_engine_of(const char *const *words, size_t count)
{
    return oos_engine_words_of(words, count);
}

const char *oomsight_engine_release(const char *label, char *buffer, size_t size)
{
    return oos_engine_release(label, buffer, size);
}
