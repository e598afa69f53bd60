/* `non-default args: {'model': 'x', 'max_model_len': 16384, 'speculative_config': {...}}` is a Python dict: keys become
 * flags, True becomes a switch, a nested dict becomes JSON. A command line is split as a shell would. */
#include "facts/facts.h"
#include "command/command.h"

typedef struct words {
    oos_arena *arena;
    const char **list;
    size_t count;
    bool failed;
} words;

static void add(words *w, oos_view word)
{
    char *copy = w->count < OOS_COMMAND_WORDS_MAX ? oos_arena_copy(w->arena, word) : NULL;
    if (copy)
        w->list[w->count++] = copy;
    else
        w->failed = true;
}

/* ---- a command line ---- */

static void split_shell(words *w, const char *line)
{
    char word[4096];
    while (*line && !w->failed) {
        while (*line == ' ' || *line == '\t') line++;
        if (!*line || *line == '#' || *line == '|' || *line == '>' || *line == ';' || *line == '&') return;
        size_t len = 0;
        char quote = 0;
        int depth = 0; /* a JSON value whose quotes a log has already eaten */
        for (; *line && (quote || depth || (*line != ' ' && *line != '\t')); line++) {
            if (quote && *line == quote && !depth) {
                quote = 0;
                continue;
            }
            if (!quote && !depth && (*line == '\'' || (*line == '"' && len == 0))) {
                quote = *line;
                continue;
            }
            if (!quote) depth += (*line == '{') - (*line == '}');
            if (len + 1 < sizeof word) word[len++] = *line;
        }
        if (!(len == 1 && word[0] == '\\')) add(w, (oos_view){word, len});
    }
}

/* ---- a Python dict ---- */

static void flag_add(words *w, const char *key, const char *value)
{
    char flag[128] = "--";
    size_t len = 2;
    for (; *key && len + 1 < sizeof flag; key++) flag[len++] = *key == '_' ? '-' : *key;
    if (strcmp(value, "False") == 0 || strcmp(value, "None") == 0) return;
    add(w, (oos_view){flag, len});
    if (strcmp(value, "True") != 0) add(w, oos_view_of(value));
}

static bool dict_read(words *w, const char *text)
{
    char model[1024] = "";
    size_t const first = w->count;
    oos_logged list;
    for (oos_logged_open(text, &list); oos_logged_next(&list);) {
        if (strcmp(list.key, "model") == 0 || (strcmp(list.key, "model_tag") == 0 && !*model))
            memcpy(model, list.value, strnlen(list.value, sizeof model - 1) + 1);
        else if (strcmp(list.key, "model_tag") != 0)
            flag_add(w, list.key, list.value);
        if (w->failed) return false;
    }
    if (list.broken) return false;
    if (!*model || w->count + 3 > OOS_COMMAND_WORDS_MAX) return false;
    memmove(w->list + first + 3, w->list + first, (w->count - first) * sizeof *w->list);
    w->list[first] = oos_engine_default->name;
    w->list[first + 1] = "serve";
    w->list[first + 2] = oos_arena_copy(w->arena, oos_view_of(model));
    w->count += 3;
    return w->list[first + 2] != NULL;
}

bool oos_command_words(oos_arena *arena, const char *args, const char *command, const char **ret_words,
                       size_t *ret_count)
{
    words w = {.arena = arena, .list = ret_words};
    /* The engine's own list is what it really got; what was pasted beside it may be another command. */
    if (!args || args[0] != '{' || !dict_read(&w, args)) {
        w.count = 0;
        w.failed = false;
        if (!command) return false;
        bool const python = strncmp(command, "LLM(", 4) == 0;
        if (python)
            add(&w, oos_view_of(command));
        else
            split_shell(&w, command);
        if (!python && w.count < 3) return false;
    }
    *ret_count = w.count;
    return !w.failed;
}
