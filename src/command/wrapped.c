/* Taking an engine's command out of its shell and its container. */
#include "base/file.h"
#include "command/command.h"
#include "facts/facts.h"

#include <string.h>

/* ---- a shell ---------------------------------------------------------------------------------------------------- */

/* The next word of a command line: quotes and backslashes are taken off; `;`, `&&`, `||` and `|` are words of their own.
 * Nothing is expanded. `out` has room for what is left of the text. */
static const char *word_next(const char *at, char *out)
{
    char quote = 0;
    while (*at == ' ' || *at == '\t' || *at == '\n') at++;
    if (*at == ';' || *at == '&' || *at == '|') {
        char const first = *at;
        while (*at == first) *out++ = *at++;
        *out = '\0';
        return at;
    }
    for (; *at; at++) {
        if (quote ? *at == quote : *at == '\'' || *at == '"')
            quote = quote ? 0 : *at;
        else if (*at == '\\' && quote != '\'' && at[1] == '\n')
            at++;
        else if (*at == '\\' && quote != '\'' && at[1])
            *out++ = *++at;
        else if (!quote && strchr(" \t\n;&|", *at))
            break;
        else
            *out++ = *at;
    }
    *out = '\0';
    return at;
}

static bool ends_a_command(const char *word)
{
    return *word == ';' || *word == '&' || *word == '|';
}

/* Of the commands of one line, the one that names an engine; words before and behind it are dropped. */
static bool line_split(oos_arena *arena, const char *line, const char ***ret_words, size_t *ret_count)
{
    size_t const len = strlen(line);
    const char **words = OOS_NEW_ARRAY(arena, const char *, len + 1);
    char *text = oos_arena_take(arena, 2 * len + 2);
    if (!words || !text) return false;
    size_t count = 0;
    bool ours = false;
    for (const char *at = line; *at;) {
        bool const quoted = at[strspn(at, " \t\n")] == '\'' || at[strspn(at, " \t\n")] == '"';
        at = word_next(at, text);
        if (*text == '\0' && !quoted) break;
        if (!quoted && ends_a_command(text)) {
            if (ours) break;
            count = 0;
            continue;
        }
        ours |= oos_engine_named(text);
        if (count || strcmp(text, "exec") != 0) words[count++] = text;
        text += strlen(text) + 1;
    }
    *ret_words = words;
    *ret_count = count;
    return true;
}

static bool is_shell(const char *word)
{
    const char *name = oos_base_name(word);
    return strcmp(name, "bash") == 0 || strcmp(name, "sh") == 0;
}

static bool takes_line(const char *word)
{
    size_t const len = strlen(word);
    return len >= 2 && word[0] == '-' && word[1] != '-' && word[len - 1] == 'c';
}

/* `bash -c LINE`, `--entrypoint bash IMAGE -c LINE`, and a line alone: a whole command in quotes */
size_t oos_wrapped_line(const char *const *words, size_t count)
{
    bool shell = false;
    if (count == 1 && strchr(words[0], ' ') && oos_engine_named(words[0]) && !strstr(words[0], "LLM("))
        return 0;
    for (size_t i = 0; i + 1 < count; i++) {
        if (shell && takes_line(words[i]) && oos_engine_named(words[i + 1]) && strchr(words[i + 1], ' '))
            return i + 1;
        shell |= is_shell(words[i]);
    }
    return count;
}

size_t oos_wrapped_line_first(const char *const *words, size_t line)
{
    size_t first = 0;
    for (size_t i = 0; i + 1 < line; i++) first += !is_shell(words[i]);
    return first;
}

bool oos_wrapped_open(oos_arena *arena, const char *const *words, size_t count, const char *const **ret_words,
                      size_t *ret_count)
{
    size_t const line = oos_wrapped_line(words, count);
    const char **inner;
    size_t inner_count;
    *ret_words = words;
    *ret_count = count;
    if (line == count) return true;
    if (!line_split(arena, words[line], &inner, &inner_count)) return false;
    const char **whole = OOS_NEW_ARRAY(arena, const char *, count + inner_count);
    if (!whole) return false;
    size_t at = 0;
    for (size_t k = 0; k + 1 < line; k++)
        if (!is_shell(words[k])) whole[at++] = words[k];
    for (size_t k = 0; k < inner_count; k++) whole[at++] = inner[k];
    *ret_words = whole;
    *ret_count = at;
    return true;
}

/* ---- a container ------------------------------------------------------------------------------------------------ */

size_t oos_wrapped_container(const char *const *words, size_t count)
{
    static const char *const programs[] = {"docker", "podman",  "nerdctl", "apptainer", "singularity",
                                           "enroot", "kubectl", "ctr",     "lxc",       "ssh"};
    for (size_t i = 0; i < count && words[i][0] != '-'; i++) {
        const char *word = oos_base_name(words[i]);
        for (size_t k = 0; k < sizeof programs / sizeof *programs; k++)
            if (word[0] == programs[k][0] && strcmp(word, programs[k]) == 0) return i;
    }
    return count;
}

const char *oos_wrapped_version(oos_arena *arena, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const char *equals = strchr(words[i], '=');
        const char *pinned = equals ? strstr(equals, "==") : NULL; /* uv run --with vllm==0.24.0 */
        const char *name = pinned ? pinned : words[i];
        while (name > words[i] && name[-1] != '=' && name[-1] != ' ') name--;
        char package[32];
        size_t const len = pinned ? (size_t)(pinned - name) : sizeof package;
        if (len < sizeof package) {
            memcpy(package, name, len);
            package[len] = '\0';
            if (oos_engine_words_find(package)) return pinned + 2;
        }
        if (words[i][0] == '-' || !oos_engine_words_of_image(words[i])) continue;
        const char *version = oos_image_version(arena, words[i]);
        if (version) return version;
    }
    return NULL;
}

/* `host:/inside[:ro]`, or the `source=..,target=..` of --mount. */
static bool volume_read(oos_arena *arena, const char *text, const char **ret_host, const char **ret_inside)
{
    const char *source = strstr(text, "source="), *target = strstr(text, "target=");
    if (!source) source = strstr(text, "src=");
    if (!target) target = strstr(text, "dst=");
    if (source && target) {
        source = strchr(source, '=') + 1;
        target = strchr(target, '=') + 1;
        *ret_host = oos_arena_copy(arena, (oos_view){source, strcspn(source, ",")});
        *ret_inside = oos_arena_copy(arena, (oos_view){target, strcspn(target, ",")});
        return *ret_host && *ret_inside;
    }
    const char *colon = strchr(text, ':');
    if (!colon || colon[1] != '/') return false;
    *ret_host = oos_arena_copy(arena, (oos_view){text, (size_t)(colon - text)});
    *ret_inside = oos_arena_copy(arena, (oos_view){colon + 1, strcspn(colon + 1, ":")});
    return *ret_host && *ret_inside;
}

static const char *volume_of(const char *const *words, size_t count, size_t *at)
{
    static const char *const flags[] = {"-v", "--volume", "--mount"};
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        size_t const len = strlen(flags[i]);
        if (strncmp(words[*at], flags[i], len) != 0) continue;
        if (words[*at][len] == '=') return words[*at] + len + 1;
        if (words[*at][len] == '\0' && *at + 1 < count) return words[++*at];
    }
    return NULL;
}

const char *oos_wrapped_path(oos_arena *arena, const char *const *words, size_t count, const char *path)
{
    for (size_t i = 0; *path == '/' && i < count; i++) {
        const char *host, *inside, *text = volume_of(words, count, &i);
        if (!text || !volume_read(arena, text, &host, &inside)) continue;
        size_t len = strlen(inside);
        while (len > 1 && inside[len - 1] == '/') len--;
        if (strncmp(path, inside, len) != 0 || (path[len] != '/' && path[len] != '\0')) continue;
        return oos_arena_format(arena, "%s%s", host, path + len);
    }
    return path;
}
