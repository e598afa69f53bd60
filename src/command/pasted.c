/* Cleaning of pasted text, in one buffer of its length: what is taken off only makes it shorter. Finding commands in it is left to
 * found.c. */
#include "command/command.h"
#include "base/ascii.h"
#include "facts/facts.h"

enum {
    PROMPT_MAX = 160,  /* bytes before a command that may be a prompt */
    PROGRAM_MAX = 256, /* bytes of the word that is looked at behind it */
    ESC = 0x1b,
    BEL = 0x07
};

/* ---- lines -------------------------------------------------------------------------------------------------------- */

static oos_view line_at(oos_view text, size_t at)
{
    const char *end = at < text.len ? memchr(text.ptr + at, '\n', text.len - at) : NULL;
    return oos_view_slice(text, at, end ? (size_t)(end - text.ptr) - at : text.len);
}

static oos_view trimmed(oos_view line)
{
    while (line.len && oos_is_space(line.ptr[0])) line = oos_view_slice(line, 1, line.len);
    while (line.len && oos_is_space(line.ptr[line.len - 1])) line.len--;
    return line;
}

oos_view oos_pasted_first(oos_view text)
{
    for (size_t at = 0; at < text.len;) {
        oos_view const line = line_at(text, at), words = trimmed(line);
        if (words.len && (words.ptr[0] != '#' || oos_view_starts(words, "#!"))) return words;
        at += line.len + 1;
    }
    return (oos_view){"", 0};
}

/* ---- colours ------------------------------------------------------------------------------------------------------- */

/* The length of a control sequence at the start: CSI up to its last letter, OSC up to BEL or ST; 0: none. */
static size_t escape_len(oos_view text)
{
    size_t at = 2;
    if (text.len < 2 || text.ptr[0] != ESC) return 0;
    if (text.ptr[1] == '[') {
        while (at < text.len && text.ptr[at] >= 0x20 && text.ptr[at] < 0x40) at++;
        return at < text.len && text.ptr[at] >= 0x40 ? at + 1 : at;
    }
    if (text.ptr[1] != ']') return text.ptr[1] == '\n' ? 1 : 2;
    while (at < text.len && text.ptr[at] != BEL && text.ptr[at] != ESC && text.ptr[at] != '\n') at++;
    if (at + 1 < text.len && text.ptr[at] == ESC && text.ptr[at + 1] == '\\') return at + 2;
    return at < text.len && text.ptr[at] == BEL ? at + 1 : at;
}

static size_t uncolour(oos_view text, char *to)
{
    size_t len = 0;
    if (oos_view_starts(text, "\xef\xbb\xbf")) text = oos_view_slice(text, 3, text.len);
    for (size_t at = 0; at < text.len;) {
        oos_view const rest = oos_view_slice(text, at, text.len);
        size_t const escape = escape_len(rest);
        if (escape) {
            at += escape;
        } else if (rest.ptr[0] == '\r') { /* an end of line, once */
            if (rest.len < 2 || rest.ptr[1] != '\n') to[len++] = '\n';
            at++;
        } else if (oos_view_starts(rest, "\xc2\xa0")) { /* a blank that does not break */
            to[len++] = ' ';
            at += 2;
        } else {
            to[len++] = rest.ptr[0];
            at++;
        }
    }
    return len;
}

/* ---- fences ---------------------------------------------------------------------------------------------------------- */

static bool is_fence(oos_view line)
{
    oos_view const words = trimmed(line);
    return oos_view_starts(words, "```") || oos_view_starts(words, "~~~");
}

/* Between pairs of fences stands what is meant; around them somebody talks. A single one is only taken off. */
static size_t unfence(oos_view text, char *to)
{
    size_t fences = 0, len = 0;
    for (size_t at = 0; at < text.len; at += line_at(text, at).len + 1) fences += is_fence(line_at(text, at));
    bool inside = fences % 2 != 0 || fences == 0;
    bool const paired = !inside;
    for (size_t at = 0; at < text.len;) {
        oos_view const line = line_at(text, at);
        bool const fence = fences && is_fence(line);
        if (fence && paired) inside = !inside;
        if (inside && !fence) {
            memmove(to + len, line.ptr, line.len);
            len += line.len;
        }
        at += line.len + 1;
        if (at <= text.len) to[len++] = '\n';
    }
    return len;
}

/* ---- prompts --------------------------------------------------------------------------------------------------------- */

/* Does a command begin with this word: an engine, what runs one, or a variable that is set for it? */
static bool starts_command(oos_view line)
{
    static const char *const programs[] = {"docker", "podman", "nerdctl", "sudo",   "exec",     "nohup",
                                           "env",    "python", "python3", "uv",     "uvx",      "bash",
                                           "sh",     "srun",   "time",    "export", "torchrun", "numactl"};
    char word[PROGRAM_MAX];
    size_t len = 0, name = 0;
    while (len < line.len && len + 1 < sizeof word && !oos_is_space(line.ptr[len])) len++;
    memcpy(word, line.ptr, len);
    word[len] = '\0';
    while (oos_is_alnum(word[name]) || word[name] == '_') name++;
    if (name && oos_is_alpha(word[0]) && word[name] == '=') return true;
    const char *slash = strrchr(word, '/'), *program = slash ? slash + 1 : word;
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++)
        if (strcmp(program, programs[i]) == 0) return true;
    for (size_t i = 0; i < OOS_ENGINE_COUNT; i++)
        if (strcmp(program, oos_engine_list[i]->name) == 0) return true;
    return len && oos_engine_other(program) != NULL;
}

/* Does the word end as prompts do? *ret_folder: with a sign behind which the folder stands. A `#` alone is a comment. */
static bool ends_prompt(oos_view word, bool *ret_folder)
{
    static const char *const signs[] = {"$", "%", "#", ">", "\xe2\x9d\xaf", "\xe2\x9e\x9c", "\xce\xbb"};
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++) {
        size_t const len = strlen(signs[i]);
        if (word.len < len || memcmp(word.ptr + word.len - len, signs[i], len) != 0) continue;
        *ret_folder = i >= 4;
        return signs[i][0] != '#' || word.len > 1;
    }
    return false;
}

/* The length of `user@host:~$ ` before a command; 0: there is no prompt, or no command behind it. */
static size_t prompt_len(oos_view line)
{
    bool behind = false, folder = false; /* the words before this one end as a prompt */
    for (size_t at = 0; at < line.len && at < PROMPT_MAX;) {
        oos_view word = oos_view_slice(line, at, line.len);
        size_t len = 0;
        while (len < word.len && !oos_is_space(word.ptr[len])) len++;
        if (len && behind && starts_command(word)) return at;
        word.len = len;
        for (size_t i = 0; i < len; i++)
            if (strchr("\"'`=;|&<{}", word.ptr[i])) return 0;
        if (len) behind = ends_prompt(word, &folder) || (behind && folder);
        at += len + 1;
    }
    return 0;
}

/* Of a text that has nothing but lines with `# ` before a command: a root's prompt, not comments. */
static bool is_root(oos_view text)
{
    bool any = false, goes_on = false;
    for (size_t at = 0; at < text.len;) {
        oos_view const line = line_at(text, at), words = trimmed(line);
        bool const begins =
            oos_view_starts(words, "# ") && starts_command(trimmed(oos_view_slice(words, 2, words.len)));
        if (words.len && !begins && !goes_on) return false;
        any |= begins;
        goes_on = words.len && words.ptr[words.len - 1] == '\\';
        at += line.len + 1;
    }
    return any;
}

/* `whole command` in a sentence's own quotes. */
static oos_view unquoted(oos_view line)
{
    oos_view const words = trimmed(line);
    bool const quoted = words.len > 2 && words.ptr[0] == '`' && words.ptr[words.len - 1] == '`' &&
                        !memchr(words.ptr + 1, '`', words.len - 2);
    return quoted ? oos_view_slice(words, 1, words.len - 2) : line;
}

static size_t unprompt(oos_view text, char *to)
{
    bool const root = is_root(text);
    bool goes_on = false;
    size_t len = 0;
    for (size_t at = 0; at < text.len;) {
        oos_view const line = line_at(text, at);
        oos_view words = trimmed(line), kept = unquoted(line);
        size_t const prompt = prompt_len(line);
        if (prompt) kept = oos_view_slice(line, prompt, line.len);
        if (!prompt && root && !goes_on && words.len) kept = oos_view_slice(words, 2, words.len);
        if (!prompt && goes_on && oos_view_starts(words, "> ")) kept = oos_view_slice(words, 2, words.len);
        goes_on = words.len && words.ptr[words.len - 1] == '\\';
        memmove(to + len, kept.ptr, kept.len);
        len += kept.len;
        at += line.len + 1;
        if (at <= text.len) to[len++] = '\n';
    }
    return len;
}

bool oos_pasted_clean(oos_arena *arena, oos_view text, oos_view *ret_text)
{
    char *bytes = OOS_NEW_ARRAY(arena, char, text.len + 1);
    if (!bytes) return false;
    oos_view clean = {bytes, uncolour(text, bytes)};
    clean.len = unfence(clean, bytes);
    clean.len = unprompt(clean, bytes);
    bytes[clean.len] = '\0';
    *ret_text = clean;
    return true;
}

/* ---- a model alone ----------------------------------------------------------------------------------------------------- */

static bool is_name(oos_view word)
{
    size_t slashes = 0;
    for (size_t i = 0; i < word.len; i++) {
        char const c = word.ptr[i];
        bool const part = i == 0 || word.ptr[i - 1] == '/'; /* where a part begins */
        slashes += c == '/';
        if (!oos_is_alnum(c) && (part || !strchr("_.-/", c))) return false;
    }
    return slashes == 1 && word.ptr[word.len - 1] != '/';
}

bool oos_pasted_model(oos_view text)
{
    oos_view const words = trimmed(text);
    size_t len = 0, next;
    while (len < words.len && !oos_is_space(words.ptr[len])) len++;
    if (len == 0 || !is_name(oos_view_slice(words, 0, len))) return false;
    for (next = len; next < words.len && (oos_is_space(words.ptr[next]) || words.ptr[next] == '\\'); next++) {
        if (words.ptr[next] == '\n' && words.ptr[next - 1] != '\\') return false;
    }
    return next == words.len || words.ptr[next] == '-';
}
