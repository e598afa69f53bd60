/* A command printed again with other flags, as a shell or Python takes it. */
#include "base/ascii.h"
#include "base/check.h"
#include "base/secret.h"
#include "base/shown.h"
#include "command/command.h"
#include "facts/facts.h"

#include <string.h>

bool oos_serve_is_plain(const char *word)
{
    for (const char *at = word; *at; at++)
        if (!oos_is_alnum(*at) && !strchr("-_./=:,@%+", *at)) return false;
    return *word != '\0';
}

void oos_serve_quote(oos_text *text, const char *word)
{
    if (oos_serve_is_plain(word)) {
        oos_text_put(text, word);
        return;
    }
    oos_text_put(text, "'");
    for (; *word; word++) {
        if (*word == '\'')
            oos_text_put(text, "'\\''");
        else
            oos_text_add(text, (oos_view){word, 1});
    }
    oos_text_put(text, "'");
}

static bool is_assignment(const char *word)
{
    return *word >= 'A' && *word <= 'Z' && strchr(word, '=');
}

/* `--no-x` is the same switch as `--x`. */
static bool same_flag(const char *given, const char *flag)
{
    if (strcmp(given, flag) == 0) return true;
    const char *plain = strncmp(given, "--no-", 5) == 0 ? given + 5 : given + 2;
    const char *other = strncmp(flag, "--no-", 5) == 0 ? flag + 5 : flag + 2;
    return strncmp(given, "--", 2) == 0 && strncmp(flag, "--", 2) == 0 && strcmp(plain, other) == 0;
}

typedef struct edit {
    const oos_serve *serve;
    const char *const *change;
    size_t change_count;
    const char *const *without;
    size_t without_count;
} edit;

/* Left out, or given anew by the change. */
static bool is_replaced(const edit *e, const char *flag)
{
    for (size_t i = 0; i < e->without_count; i++)
        if (same_flag(flag, e->without[i])) return true;
    for (size_t i = 0; i < e->change_count; i++)
        if (e->change[i][0] == '-' && same_flag(flag, e->change[i])) return true;
    return false;
}

/* The words that no flag of the release takes go together, also when another refusal came first: then what is left out has blanks
 * in it ("--new --newer 3"), which the name of a flag has not. */
static bool unrecognized_go(const edit *e)
{
    bool go = e->serve->refusal.unrecognized;
    for (size_t i = 0; i < e->without_count && !go; i++)
        go = strncmp(e->without[i], "--", 2) == 0 && strchr(e->without[i], ' ');
    return go;
}

static bool is_gone(const edit *e, const oos_given_flag *given)
{
    if ((given->effect == OOS_FLAG_UNKNOWN || given->absent) && unrecognized_go(e)) return true;
    return is_replaced(e, given->name);
}

static bool stands_at(uint32_t first, uint32_t count, size_t at)
{
    return at >= first && at - first < count;
}

/* `at` counts as oos_serve_words does. */
static bool word_is_gone(const edit *e, size_t at)
{
    const oos_serve_refusal *r = &e->serve->refusal;
    for (size_t i = 0; i < e->serve->flag_count; i++) {
        const oos_given_flag *given = &e->serve->flags[i];
        if (stands_at(given->first_word, given->word_count, at) && is_gone(e, given)) return true;
    }
    return r->flag && stands_at(r->first_word, r->word_count, at) && is_replaced(e, r->flag);
}

static bool is_container(const char *const *words, size_t at)
{
    const char *slash = strrchr(words[at], '/'), *name = slash ? slash + 1 : words[at];
    return strcmp(name, "docker") == 0 || strcmp(name, "podman") == 0 || strcmp(name, "nerdctl") == 0;
}

/* An image of an engine alone, as a manifest names it: nothing that a shell runs. */
static bool is_bare_image(const char *const *words, size_t count, size_t at)
{
    while (at < count && is_assignment(words[at])) at++;
    return at < count && oos_engine_words_of_image(words[at]);
}

/* Variables go before the command; into a container they are handed in. */
static size_t put_variables(const char **out, const edit *e, bool inside)
{
    size_t count = 0;
    for (size_t i = 0; i < e->change_count; i++) {
        if (!is_assignment(e->change[i])) continue;
        if (inside) out[count++] = "-e";
        out[count++] = e->change[i];
    }
    return count;
}

static const char *shell_command(oos_arena *arena, const char *const *words, size_t count, size_t from,
                                 const edit *e)
{
    static const char *const run[] = {"docker", "run", "--gpus", "all"};
    enum { RUN = sizeof run / sizeof *run };
    size_t const most = 2 * (count + e->change_count) + RUN;
    const char **out = OOS_NEW_ARRAY(arena, const char *, most);
    if (!out) return NULL;
    size_t at = 0;
    bool container = false, handed_in = false, bare = is_bare_image(words, count, from);
    const oos_serve_words *read = &e->serve->words;
    size_t const own = read->count - read->from_config, entry = count > own ? count - own : 0;
    for (size_t i = from; i < count; i++) container |= is_container(words, i);
    for (size_t i = 0; bare && i < RUN; i++) out[at++] = run[i];
    if (!container) at += put_variables(out + at, e, bare);
    for (size_t i = from; i < count; i++) {
        if (i >= entry && word_is_gone(e, i - entry + read->from_config)) continue;
        bare = bare && is_assignment(words[i]);
        if (bare) out[at++] = "-e";
        out[at++] = words[i];
        if (!container || handed_in || strcmp(words[i], "run") != 0) continue;
        at += put_variables(out + at, e, true);
        handed_in = true;
    }
    for (size_t i = 0; i < e->change_count; i++)
        if (!is_assignment(e->change[i])) out[at++] = e->change[i];
    oos_text text = {0};
    oos_assert(at <= most);
    oos_command_put(arena, &text, out, at);
    const char *copy = text.failed ? NULL : oos_arena_copy(arena, (oos_view){text.ptr, text.len});
    oos_text_free(&text);
    return copy;
}

/* The one flag that was given with a value and is given anew with `value`: the word that has it. SIZE_MAX: there is none. */
static size_t value_place(const edit *e, const char *flag, size_t entry)
{
    size_t place = SIZE_MAX, seen = 0;
    for (size_t i = 0; i < e->serve->flag_count; i++) {
        const oos_given_flag *given = &e->serve->flags[i];
        if (!same_flag(given->name, flag)) continue;
        if (seen++ || !given->value || given->first_word < e->serve->words.from_config) return SIZE_MAX;
        size_t const first = given->first_word - e->serve->words.from_config + entry;
        if (given->word_count == 1 || given->word_count == 2) place = first + given->word_count - 1;
    }
    return place;
}

static const char *valued(oos_arena *arena, const char *word, const char *value)
{
    const char *equals = word[0] == '-' ? strchr(word, '=') : NULL;
    return equals ? oos_arena_format(arena, "%.*s=%s", (int)(equals - word), word, value) : value;
}

const oos_edited_word *oos_serve_edited(oos_arena *arena, const char *const *words, size_t word_count,
                                        const oos_serve *serve, const char *const *change,
                                        size_t change_count, const char *const *without, size_t without_count,
                                        const char *model, size_t *ret_count)
{
    edit const e = {serve, change, change_count, without, without_count};
    const oos_serve_words *read = &serve->words;
    size_t const own = read->count - read->from_config, entry = word_count > own ? word_count - own : 0;
    const char *const *named = model ? oos_serve_with_model(arena, words, word_count, serve, model) : words;
    oos_edited_word *list = OOS_NEW_ARRAY(arena, oos_edited_word, word_count + change_count + 1);
    bool *done = OOS_NEW_ARRAY(arena, bool, change_count + 1),
         *kept = OOS_NEW_ARRAY(arena, bool, word_count + 1);
    const char **now = OOS_NEW_ARRAY(arena, const char *, word_count + 1);
    size_t count = 0;
    if (!read->count || !named || !list || !done || !kept || !now) return NULL;
    for (size_t i = 0; i < word_count; i++) {
        now[i] = named[i];
        kept[i] = i < entry || !word_is_gone(&e, i - entry + read->from_config);
    }
    for (size_t i = 0; i < change_count; i++) {
        if (is_assignment(change[i])) return NULL;
        bool const value = i + 1 < change_count && strncmp(change[i + 1], "--", 2) != 0;
        size_t const place = change[i][0] == '-' && value ? value_place(&e, change[i], entry) : SIZE_MAX;
        if (place >= word_count) continue;
        now[place] = valued(arena, words[place], change[i + 1]);
        if (!now[place]) return NULL;
        kept[place] = done[i] = done[i + 1] = true;
        if (words[place][0] != '-' || !strchr(words[place], '=')) kept[place - 1] = true;
    }
    for (size_t i = 0; i < word_count; i++)
        if (kept[i]) list[count++] = (oos_edited_word){now[i], i};
    for (size_t i = 0; i < change_count; i++)
        if (!done[i]) list[count++] = (oos_edited_word){change[i], SIZE_MAX};
    oos_assert(count <= word_count + change_count);
    *ret_count = count;
    return list;
}

/* ---- Python --------------------------------------------------------------------------------------------------------- */

static bool is_number(const char *value)
{
    const char *digits = value + (*value == '-');
    return oos_is_digit(*digits) && digits[strspn(digits, "0123456789.eE+-_")] == '\0';
}

/* A list or a dictionary in JSON as Python writes it. False: it is something else, and what was put is to be dropped. */
static bool put_nested(oos_text *text, const char *at)
{
    static const char *const words[][2] = {{"true", "True"}, {"false", "False"}, {"null", "None"}};
    unsigned depth = 0;
    do {
        size_t len = 1, word = 0;
        if (*at == '"') {
            while (at[len] && at[len] != '"') len += at[len] == '\\' && at[len + 1] ? 2 : 1;
            if (!at[len++]) return false;
        } else if (oos_is_alpha(*at)) {
            while (oos_is_alnum(at[len])) len++;
            while (word < 3 && !oos_view_is((oos_view){at, len}, words[word][0])) word++;
            if (word == 3) return false;
            oos_text_put(text, words[word][1]);
            at += len;
            continue;
        } else if (oos_is_digit(*at) || *at == '-')
            len = strspn(at, "0123456789.eE+-");
        else if (!*at || !strchr("[]{},: \t", *at))
            return false;
        if (*at == ']' || *at == '}') depth--;
        depth += *at == '[' || *at == '{';
        oos_text_add(text, (oos_view){at, len});
        at += len;
    } while (depth);
    return *at == '\0';
}

/* `value` has the escapes of its source already. */
static void put_string(oos_text *text, const char *value)
{
    oos_text_put(text, "'");
    for (; *value; value++) {
        size_t const len = *value == '\\' && value[1] ? 2 : 1;
        if (len == 1 && (*value == '\'' || *value == '\\')) oos_text_put(text, "\\");
        oos_text_add(text, (oos_view){value, len});
        value += len - 1;
    }
    oos_text_put(text, "'");
}

static void put_value(oos_text *text, const char *value)
{
    size_t const before = text->len;
    bool const word = strcmp(value, "True") == 0 || strcmp(value, "False") == 0 || strcmp(value, "None") == 0;
    if (word || is_number(value)) {
        oos_text_put(text, value);
        return;
    }
    if ((*value == '[' || *value == '{') && put_nested(text, value)) return;
    text->len = before;
    put_string(text, value);
}

/* `plain`: what needs quotation is hidden. */
static void put_keyword(oos_arena *arena, oos_text *text, const char *flag, const char *value, bool plain)
{
    bool const off = !value && strncmp(flag, "--no-", 5) == 0;
    const char *const words[] = {flag, value};
    const char *const *shown = value ? oos_secret_hidden_words(arena, words, 2) : words;
    text->failed |= !shown;
    oos_text_put(text, ", ");
    for (const char *at = flag + (off ? 5 : 2); *at; at++)
        oos_text_put(text, *at == '-' ? "_" : (const char[]){*at, '\0'});
    oos_text_put(text, "=");
    if (!value)
        oos_text_put(text, off ? "False" : "True");
    else
        put_value(text, !shown || (plain && !oos_serve_is_plain(value)) ? "***" : shown[1]);
}

static void put_call(oos_arena *arena, oos_text *text, const edit *e, bool plain)
{
    const char *model = oos_secret_hidden(arena, e->serve->model ? e->serve->model : "");
    text->failed |= !model;
    oos_text_put(text, "LLM(model=");
    put_string(text, !model || (plain && !oos_serve_is_plain(model)) ? "***" : model);
    for (size_t i = 0; i < e->serve->flag_count; i++) {
        const oos_given_flag *given = &e->serve->flags[i];
        if (strncmp(given->name, "--", 2) == 0 &&
            strcmp(given->name, oos_engine_default->model_flags[0]) != 0 && !is_gone(e, given))
            put_keyword(arena, text, given->name, given->value, plain);
    }
    for (size_t i = 0; i < e->change_count; i++) {
        if (strncmp(e->change[i], "--", 2) != 0) continue;
        bool const has_value = i + 1 < e->change_count && strncmp(e->change[i + 1], "--", 2) != 0;
        put_keyword(arena, text, e->change[i], has_value ? e->change[i + 1] : NULL, false);
    }
    oos_text_put(text, ")");
}

/* As in oos_command_put, a line in which a writer would hide more has nothing that needs quotation. */
static const char *python_command(oos_arena *arena, const edit *e)
{
    const char *copy = NULL;
    for (unsigned plain = 0; plain < 2; plain++) {
        oos_text text = {0}, escaped = {0};
        put_call(arena, &text, e, plain);
        oos_shown_escape(&escaped, (oos_view){text.ptr, text.len}, false);
        bool const failed = text.failed || escaped.failed,
                   enough = plain || !oos_secret_inside((oos_view){escaped.ptr, escaped.len});
        if (enough && !failed) copy = oos_arena_copy(arena, (oos_view){escaped.ptr, escaped.len});
        oos_text_free(&text);
        oos_text_free(&escaped);
        if (enough || failed) break;
    }
    return copy;
}

const char *oos_serve_whole(oos_arena *arena, const char *const *words, size_t word_count, size_t from,
                            const oos_serve *serve, const char *const *change, size_t change_count,
                            const char *const *without, size_t without_count)
{
    edit const e = {serve, change, change_count, without, without_count};
    if (serve->program && strcmp(serve->program, "LLM") == 0) return python_command(arena, &e);
    return shell_command(arena, words, word_count, from, &e);
}
