/* What stands between a name and its value: `NAME=x`, `"NAME": "x"`, `env["NAME"] = "x"`, `("NAME", "x")`, `NAME：x`, `| NAME | x |`, `set -gx NAME x`. The one
 * place where the two are told apart; what the name says of the value is left to secret_names.c, where the value ends to secret_values.c. */
#include "base/secret_parts.h"

/* The longer ones first. */
static const struct {
    const char *text;
    oos_join_how how;
} joints[] = {{":=", OOS_JOIN_ASSIGNED}, {"==", OOS_JOIN_ASSIGNED}, {"=>", OOS_JOIN_ASSIGNED},
              {"=", OOS_JOIN_ASSIGNED},  {":", OOS_JOIN_ASSIGNED},  {"：", OOS_JOIN_ASSIGNED},
              {"＝", OOS_JOIN_ASSIGNED}, {"->", OOS_JOIN_BESIDE},   {"→", OOS_JOIN_BESIDE},
              {"|", OOS_JOIN_CELL},      {"│", OOS_JOIN_CELL},      {"┃", OOS_JOIN_CELL},
              {",", OOS_JOIN_LISTED}};

size_t oos_secret_word_end(oos_view text, size_t at, size_t most)
{
    size_t end = at;
    while (end < text.len && end - at < most && oos_secret_name_byte(text.ptr[end])) end++;
    return end;
}

size_t oos_secret_quote_at(oos_view text, size_t at)
{
    size_t len = 0;
    while (at + len < text.len && text.ptr[at + len] == '\\' && len < 8) len++;
    return at + len < text.len && oos_secret_in_set(text.ptr[at + len], "\"'`") ? len + 1 : 0;
}

/* `!!binary x`, `&anchor x` of YAML, and the end of bold text before a blank: none of them is the value. */
static size_t skip_marks(oos_view text, size_t at)
{
    size_t end = at;
    while (end < text.len && oos_secret_in_set(text.ptr[end], "!&*") && end - at < 2) end++;
    if (end > at && text.ptr[at] != '*') end = oos_secret_word_end(text, end, OOS_SECRET_NAME_MAX);
    size_t const next = oos_secret_skip_blanks(text, end);
    return end > at && next > end && next < text.len ? next : at;
}

/* `", "value": "` behind a name that is a value itself */
static oos_secret_join by_value(oos_view text, size_t at)
{
    size_t word = oos_secret_skip_blanks(text, at);
    word += oos_secret_quote_at(text, word);
    if (oos_secret_word_is(oos_view_slice(text, word, 5), "value")) {
        word += 5;
        word += oos_secret_quote_at(text, word);
        word = oos_secret_skip_blanks(text, word);
        if (word < text.len && (text.ptr[word] == ':' || text.ptr[word] == '='))
            return (oos_secret_join){oos_secret_skip_blanks(text, word + 1), OOS_JOIN_ASSIGNED};
    }
    return (oos_secret_join){0};
}

/* `the password is x` */
static oos_secret_join by_verb(oos_view text, size_t at, bool spaced)
{
    static const char *const verbs[] = {"is ", "was ", "is: ", "是", "为", NULL};
    for (size_t i = spaced ? 0 : 3; verbs[i]; i++)
        if (oos_secret_starts_at(text, at, verbs[i]))
            return (oos_secret_join){oos_secret_skip_blanks(text, at + strlen(verbs[i])), OOS_JOIN_TOLD};
    return (oos_secret_join){0};
}

/* Before the name: words whose next two words are a name and its value. */
static bool previous_sets(const oos_secret_scan *scan)
{
    static const char *const words[] = {"env", "set", "setenv", "setx", "arg", NULL};
    return oos_secret_word_among(scan->previous, words);
}

/* Is the name a cell of a table? A bar before it, or the line begins with it and it is a variable: `generate_password | tee f` is no table. */
static bool in_cell(const oos_secret_scan *scan, size_t from, size_t at)
{
    oos_view const text = scan->text;
    size_t before = from;
    while (before > 0 && oos_secret_in_set(text.ptr[before - 1], " \t*`")) before--;
    if (before == 0)
        return !scan->state->before && oos_secret_is_variable(oos_secret_between(text, from, at));
    return text.ptr[before - 1] == '|' || (before > 2 && (oos_secret_starts_at(text, before - 3, "│") ||
                                                          oos_secret_starts_at(text, before - 3, "┃")));
}

/* The names of a netrc file have nothing but blanks behind them. */
static bool in_netrc(const oos_secret_scan *scan, oos_view name)
{
    return oos_secret_word_is(name, "password") &&
           (scan->state->since_login == 2 || (scan->state->netrc_lines && !scan->previous.len));
}

/* Behind the sign at `at`, or nothing when it joins no value here. */
static oos_secret_join by_sign(const oos_secret_scan *scan, size_t from, size_t name_end, size_t at)
{
    oos_view const text = scan->text;
    for (size_t i = 0; i < sizeof joints / sizeof *joints; i++) {
        if (joints[i].text[0] != text.ptr[at] || !oos_secret_starts_at(text, at, joints[i].text)) continue;
        size_t const begin = oos_secret_skip_blanks(text, at + strlen(joints[i].text));
        oos_secret_join j = {begin, joints[i].how};
        bool const quoted = from > 0 && oos_secret_in_set(text.ptr[from - 1], "\"'") &&
                            oos_secret_quote_at(text, name_end) && oos_secret_quote_at(text, begin);
        if (j.how == OOS_JOIN_ASSIGNED) {
            j.begin = oos_secret_starts_at(text, at, "://") ? 0 : skip_marks(text, begin);
        } else if (j.how == OOS_JOIN_CELL && !in_cell(scan, from, name_end)) {
            j.begin = 0;
        } else if (j.how == OOS_JOIN_LISTED && text.ptr[from] != '-') {
            j.how = OOS_JOIN_BESIDE;
            if (!quoted) j.begin = 0;
        }
        return j;
    }
    return (oos_secret_join){0};
}

oos_secret_join oos_secret_join_at(const oos_secret_scan *scan, size_t from, size_t at)
{
    oos_view const text = scan->text;
    size_t end = at + oos_secret_quote_at(text, at);
    if (end > at && end < text.len && text.ptr[end] == ']') end++;
    while (end < text.len && text.ptr[end] == '*' && end - at < 2) end++;
    size_t const next = oos_secret_skip_blanks(text, end);
    bool const flag = text.ptr[from] == '-', spaced = next > end,
               comma = next < text.len && text.ptr[next] == ',';
    if (next == text.len) return flag ? (oos_secret_join){next, OOS_JOIN_BLANK} : (oos_secret_join){0};
    if (text.ptr[next] == '>' && from > 0 && text.ptr[from - 1] == '<' && next == at)
        return (oos_secret_join){next + 1, OOS_JOIN_ASSIGNED};
    oos_secret_join j = comma ? by_value(text, next + 1) : (oos_secret_join){0};
    if (!j.begin) j = by_sign(scan, from, at, next);
    if (j.begin || comma) return j;
    if (spaced && (flag || previous_sets(scan) || in_netrc(scan, oos_secret_between(text, from, at))))
        return (oos_secret_join){next, OOS_JOIN_BLANK};
    if (spaced) j = by_value(text, next);
    if (!j.begin) j = by_verb(text, next, spaced);
    return j.begin || !spaced ? j : (oos_secret_join){next, OOS_JOIN_NEXT};
}
