/* Four shapes: a shell command whose lines end in backslashes; `LLM(` up to its closing bracket; `image: vllm/vllm-openai:TAG`
 * with `command:` and `args:` below it, as a list on one line, a list of dashes, or folded text. Nothing is executed or
 * expanded; what is not understood ends the command. */
#include "command/command.h"
#include "base/size.h"
#include "facts/facts.h"

#include <stdio.h>

typedef struct out {
    char *to;
    size_t len, capacity;
} out;

static void put(out *o, oos_view text)
{
    size_t const count = oos_min(text.len, o->capacity - o->len);
    memcpy(o->to + o->len, text.ptr, count);
    o->len += count;
}

static oos_view trimmed(oos_view text)
{
    while (text.len && strchr(" \t\r", text.ptr[0])) text = oos_view_slice(text, 1, SIZE_MAX);
    while (text.len && strchr(" \t\r", text.ptr[text.len - 1])) text.len--;
    return text;
}

/* The next line of `rest`, which moves behind it. */
static oos_view next_line(oos_view *rest)
{
    if (rest->len && rest->ptr[0] == '\n') *rest = oos_view_slice(*rest, 1, SIZE_MAX);
    const char *end = rest->len ? memchr(rest->ptr, '\n', rest->len) : NULL;
    oos_view const line = oos_view_slice(*rest, 0, end ? (size_t)(end - rest->ptr) : SIZE_MAX);
    *rest = oos_view_slice(*rest, line.len, SIZE_MAX);
    return line;
}

static const char *find(oos_view text, const char *word)
{
    return text.len ? memmem(text.ptr, text.len, word, strlen(word)) : NULL;
}

static oos_view from(oos_view text, const char *at)
{
    return oos_view_slice(text, (size_t)(at - text.ptr), SIZE_MAX);
}

/* Lines that end in a backslash go on. */
static size_t shell_command(oos_view text, oos_view after, out *o)
{
    for (int lines = 0; lines < 64; lines++) {
        text = trimmed(text);
        bool const more = text.len && text.ptr[text.len - 1] == '\\';
        if (more) text.len--;
        put(o, text);
        if (!more || !after.len) break;
        put(o, oos_view_of(" "));
        text = next_line(&after);
    }
    return o->len;
}

/* Up to the bracket that closes the first one; comments and line ends become blanks. */
static size_t python_call(oos_view text, oos_view after, out *o)
{
    int depth = 0;
    char quote = 0;
    for (int lines = 0; lines < 64; lines++) {
        for (size_t i = 0; i < text.len; i++) {
            char const c = text.ptr[i];
            if (!quote && c == '#') break;
            if (quote ? c == quote : c == '"' || c == '\'') quote = quote ? 0 : c;
            if (!quote) depth += (strchr("([{", c) != NULL) - (strchr(")]}", c) != NULL);
            put(o, (oos_view){&text.ptr[i], 1});
            if (!quote && depth == 0 && c == ')') return o->len;
        }
        if (!after.len) break;
        put(o, oos_view_of(" "));
        text = trimmed(next_line(&after));
    }
    return 0;
}

static size_t indent_of(oos_view line)
{
    size_t blanks = 0;
    while (blanks < line.len && line.ptr[blanks] == ' ') blanks++;
    return blanks;
}

/* A word of YAML: without its quotes, in a shell's where it holds blanks or quotes. */
static void put_word(oos_view word, out *o)
{
    word = trimmed(word);
    if (word.len > 1 && (word.ptr[0] == '"' || word.ptr[0] == '\'') && word.ptr[word.len - 1] == word.ptr[0])
        word = oos_view_slice(word, 1, word.len - 2);
    if (!word.len) return;
    bool const quoted = word.ptr[0] == '{';
    if (o->len) put(o, oos_view_of(" "));
    if (quoted) put(o, oos_view_of("'"));
    put(o, word);
    if (quoted) put(o, oos_view_of("'"));
}

/* ["--model", "x", ...] */
static void inline_list(oos_view text, out *o)
{
    size_t start = 1;
    char quote = 0;
    int depth = 0;
    for (size_t i = 1; i < text.len; i++) {
        char const c = text.ptr[i];
        if (quote ? c == quote : c == '"' || c == '\'') quote = quote ? 0 : c;
        if (!quote) depth += (c == '{') - (c == '}');
        if (quote || depth || (c != ',' && c != ']')) continue;
        put_word(oos_view_slice(text, start, i - start), o);
        start = i + 1;
        if (c == ']') return;
    }
}

/* The value of `command:` or `args:`; `rest` moves behind it. */
static void yaml_value(oos_view key_line, oos_view value, oos_view *rest, out *o)
{
    size_t const indent = indent_of(key_line);
    value = trimmed(value);
    if (value.len && value.ptr[0] == '[') {
        inline_list(value, o);
        return;
    }
    if (value.len && value.ptr[0] != '>' && value.ptr[0] != '|') {
        if (o->len) put(o, oos_view_of(" "));
        put(o, value);
        return;
    }
    for (int lines = 0; lines < 96 && rest->len; lines++) {
        oos_view look = *rest;
        oos_view const line = next_line(&look);
        oos_view const text = trimmed(line);
        bool const item = text.len > 1 && text.ptr[0] == '-' && text.ptr[1] == ' ';
        if (!text.len || indent_of(line) < indent || (indent_of(line) == indent && !item)) return;
        if (item) {
            put_word(oos_view_slice(text, 2, SIZE_MAX), o);
        } else if (text.ptr[0] != '#') {
            oos_view folded = text;
            if (folded.ptr[folded.len - 1] == '\\') folded.len--;
            if (o->len) put(o, oos_view_of(" "));
            put(o, trimmed(folded));
        }
        *rest = look;
    }
}

/* `image:` was seen; what it is started with stands below, or above and then is not looked for. */
static size_t yaml_service(oos_view after, out *o)
{
    const oos_engine_words *engine = oos_engine_default;
    char prefix[96], starts[2][96];
    size_t const size = (size_t)snprintf(prefix, sizeof prefix, "python3 -m %s", engine->server) + 1;
    snprintf(starts[0], sizeof starts[0], "%s serve", engine->name);
    snprintf(starts[1], sizeof starts[1], "-m %s", engine->module);
    out words = {o->to + size, 0, o->capacity > size ? o->capacity - size : 0};
    for (int lines = 0; lines < 64 && after.len; lines++) {
        oos_view const line = next_line(&after);
        oos_view text = trimmed(line);
        if (oos_view_starts(text, "- ")) text = trimmed(oos_view_slice(text, 2, SIZE_MAX));
        if (oos_view_starts(text, "image:")) break; /* another service */
        if (oos_view_starts(text, "command:"))
            yaml_value(line, oos_view_slice(text, 8, SIZE_MAX), &after, &words);
        else if (oos_view_starts(text, "args:"))
            yaml_value(line, oos_view_slice(text, 5, SIZE_MAX), &after, &words);
    }
    if (!words.len) return 0;
    oos_view const all = {words.to, words.len};
    const char *serve = find(all, starts[0]);
    const char *module = find(all, starts[1]);
    const char *start = serve ? serve : module ? module : NULL;
    if (start) {
        size_t const len = words.len - (size_t)(start - words.to);
        size_t const lead = serve ? 0 : 8; /* "python3 " */
        if (lead) memcpy(o->to, prefix, lead);
        memmove(o->to + lead, start, len);
        return lead + len;
    }
    if (find(all, "serve ") == words.to) { /* the image's own entry point is the program */
        size_t const name = strlen(engine->name);
        memmove(o->to + name + 1, words.to, words.len);
        memcpy(o->to, engine->name, name);
        o->to[name] = ' ';
        return words.len + name + 1;
    }
    memcpy(o->to, prefix, size - 1);
    o->to[size - 1] = ' ';
    return size + words.len;
}

size_t oos_paste_command(oos_view line, oos_view after, char *to, size_t capacity)
{
    static const char *const shells[] = {"docker run ", "podman run ",   "%s serve ",
                                         "%s bench ",   "python -m %s.", "python3 -m %s."};
    const char *name = oos_engine_default->name;
    out o = {to, 0, capacity};
    if (capacity < 128) return 0;
    if (find(line, "image:") && find(line, name)) return yaml_service(after, &o);
    for (size_t i = 0; i < sizeof shells / sizeof *shells; i++) {
        char start[64];
        snprintf(start, sizeof start, shells[i], name);
        const char *at = find(line, start);
        if (at) return shell_command(from(line, at), after, &o);
    }
    for (size_t i = 0; i < OOS_ENGINE_COUNT; i++) {
        char starts[2][64];
        snprintf(starts[0], sizeof starts[0], "%s serve ", oos_engine_list[i]->name);
        snprintf(starts[1], sizeof starts[1], "-m %s", oos_engine_list[i]->module);
        for (size_t k = 0; k < 2; k++) {
            const char *at = find(line, starts[k]);
            if (!at) continue;
            if (k) put(&o, oos_view_of("python3 "));
            return shell_command(from(line, at), after, &o);
        }
    }
    const char *call = find(line, "LLM(");
    return call ? python_call(from(line, call), after, &o) : 0;
}
