/* Secrets in one line: the words from left to right, names and the values behind them. Each look ahead is bounded, and what is
 * taken is not looked at again, so that a line costs its length times a small number. */
#include "base/secret_parts.h"
#include "base/check.h"

enum { OPEN_LINES = 16, WORDS_MORE = 64 };

/* Programs that give short options a meaning, in scan->state->programs. */
enum {
    PROGRAM_CURL = 1,
    PROGRAM_MYSQL = 2,
    PROGRAM_LOGIN = 4,
    PROGRAM_SSHPASS = 8,
    PROGRAM_REDIS = 16,
    PROGRAM_WANDB = 32,
    PROGRAM_MC = 64
};

void oos_secret_mark(oos_secret_scan *scan, size_t from, size_t to)
{
    bool const stars = to - from >= 3 && oos_secret_starts_at(scan->text, from, OOS_HIDDEN);
    if (to <= from || (stars && (to - from == 3 || !oos_is_alnum(scan->text.ptr[from + 3])))) return;
    scan->found = true;
    oos_assert(to <= scan->text.len);
    if (scan->hidden) memset(scan->hidden + from, 1, to - from);
}

size_t oos_secret_skip_blanks(oos_view text, size_t at)
{
    while (at < text.len && (text.ptr[at] == ' ' || text.ptr[at] == '\t')) at++;
    return at;
}

/* ---- values ---- */

static bool is_decoded(const oos_secret_scan *scan, size_t at)
{
    return scan->places && at + 1 < scan->text.len && scan->places[at + 1] - scan->places[at] == 3;
}

static bool assignment_follows(oos_view text, size_t at)
{
    size_t const end = oos_secret_word_end(text, at, OOS_SECRET_NAME_MAX);
    return end > at && end < text.len && (text.ptr[end] == '=' || text.ptr[end] == ':');
}

/* Does the byte at `at` end a value without quotation marks? */
static bool ends_word(const oos_secret_scan *scan, size_t at, bool parameter)
{
    oos_view const text = scan->text;
    char const c = text.ptr[at], next = at + 1 < text.len ? text.ptr[at + 1] : ' ';
    if (oos_secret_name_byte(c) || is_decoded(scan, at)) return false;
    if ((unsigned char)c >= 0xe3)
        return oos_secret_starts_at(text, at, "\xe3\x80") ||
               oos_secret_starts_at(text, at, "\xef\xbc"); /* ，。、 */
    switch (c) {
    case '\0':
    case ' ':
    case '\t':
    case '\r':
    case '\n':
    case '"':
    case '\'':
    case '`':
    case ';':
    case '<': return true;
    case '\\':
        return oos_secret_in_set(next, "nrt") && (at + 2 == text.len || assignment_follows(text, at + 2));
    case '&': return parameter || oos_secret_in_set(next, "& \t\"'") || assignment_follows(text, at + 1);
    case '|': return parameter || oos_secret_in_set(next, "| \t");
    case ',': return oos_secret_in_set(next, " \t\r\"'`[({)]}\\") || assignment_follows(text, at + 1);
    case ')':
    case ']':
    case '}':
    case '>': return oos_secret_in_set(next, " \t\r\"'`,;.:)]}>\\");
    default: return false;
    }
}

/* `b'...'`, `SecretStr('...')`: what stands before the quotation mark; 0: nothing does. */
static size_t wrapper_len(oos_view text, size_t at)
{
    size_t len = 0;
    while (at + len < text.len && len < 40 && (oos_is_alpha(text.ptr[at + len]) || text.ptr[at + len] == '_'))
        len++;
    if (len == 0 || at + len >= text.len) return 0;
    bool const call = text.ptr[at + len] == '(', named = text.ptr[at] >= 'A' && text.ptr[at] <= 'Z';
    if (call && named) len++;
    if (call != named || (!call && len > 2)) return 0;
    while (call && at + len < text.len && oos_secret_in_set(text.ptr[at + len], "bru") &&
           !oos_secret_quote_at(text, at + len))
        len++;
    return oos_secret_quote_at(text, at + len) ? len : 0;
}

static oos_secret_value quoted_at(oos_view text, size_t from, size_t quote, char mark)
{
    oos_secret_value value = {from, text.len, text.len, true, false, false};
    while (value.from + 1 < text.len && value.from - from < 2 && quote == 1 && text.ptr[value.from] == mark &&
           text.ptr[value.from + 1] == mark)
        value.from += 2; /* three of them */
    size_t slashes = 0;
    for (size_t i = value.from; i < text.len; i++) {
        if (text.ptr[i] == '\\') {
            slashes++;
            continue;
        }
        bool const escaped = slashes > quote - 1 && slashes % 2 != (quote - 1) % 2; /* one inside */
        if (text.ptr[i] == mark && !escaped) {
            value.to = i - (slashes < quote - 1 ? slashes : quote - 1);
            value.rest = i + 1;
            value.closed = true;
            break;
        }
        slashes = 0;
        value.longer = i - value.from > OOS_SECRET_LOOK;
        if (value.longer) break;
    }
    return value;
}

oos_secret_value oos_secret_value_at(oos_secret_scan *scan, size_t at, bool parameter)
{
    oos_view const text = scan->text;
    at += wrapper_len(text, at);
    size_t const quote = oos_secret_quote_at(text, at);
    if (quote) return quoted_at(text, at + quote, quote, text.ptr[at + quote - 1]);
    bool const known = !parameter && at >= scan->word_from && at < scan->word_end;
    size_t end = known ? scan->word_end : at;
    while (end < text.len && end - at <= OOS_SECRET_LOOK && !ends_word(scan, end, parameter)) end++;
    if (!parameter) {
        scan->word_from = at;
        scan->word_end = end;
    }
    bool const longer = end - at > OOS_SECRET_LOOK;
    return (oos_secret_value){at, end, end, false, !longer && end < text.len, longer};
}

/* Where an open value ends: behind its mark, or SIZE_MAX when it goes on behind this text. */
static size_t open_end(const oos_secret_scan *scan, size_t from, size_t *ret_to)
{
    const oos_secret_state *state = scan->state;
    size_t slashes = 0;
    for (size_t i = from; i < scan->text.len; i++) {
        char const c = scan->text.ptr[i];
        *ret_to = i;
        switch (state->open.kind) {
        case OOS_OPEN_NONE: return i;
        case OOS_OPEN_LINE: break;
        case OOS_OPEN_LIST:
            if (c == ']') return i;
            break;
        case OOS_OPEN_WORD:
            if (ends_word(scan, i, state->open.mark != 0)) return i;
            break;
        case OOS_OPEN_RUN:
            if (!oos_is_alnum(c) && !oos_secret_in_set(c, state->open.more)) return i;
            break;
        case OOS_OPEN_QUOTE: {
            unsigned const own = state->open.slashes;
            if (c == state->open.mark && (slashes <= own || slashes % 2 == own % 2)) {
                *ret_to = i - (slashes < own ? slashes : own);
                return i + 1;
            }
            break;
        }
        }
        slashes = c == '\\' ? slashes + 1 : 0;
    }
    *ret_to = scan->text.len;
    return SIZE_MAX;
}

size_t oos_secret_open_rest(oos_secret_scan *scan)
{
    oos_secret_state *state = scan->state;
    size_t from = 0, to = 0;
    if (state->open.kind == OOS_OPEN_NONE) return 0;
    if (!state->before) from = oos_secret_skip_blanks(scan->text, 0);
    size_t const rest = open_end(scan, from, &to);
    oos_secret_mark(scan, from, to);
    bool const over =
        rest != SIZE_MAX || (scan->whole && (state->open.kind != OOS_OPEN_QUOTE || --state->open.lines == 0));
    if (over) state->open.kind = OOS_OPEN_NONE;
    return rest == SIZE_MAX ? scan->text.len : rest;
}

size_t oos_secret_take(oos_secret_scan *scan, oos_secret_value value)
{
    oos_secret_state *state = scan->state;
    if (value.closed) {
        oos_secret_mark(scan, value.from, value.to);
        return value.rest;
    }
    size_t const len = scan->text.len;
    state->open.kind = value.quoted ? OOS_OPEN_QUOTE : OOS_OPEN_WORD;
    state->open.lines = OPEN_LINES;
    if (value.quoted) {
        size_t before = value.from; /* the mark, and the slashes before it */
        state->open.mark = scan->text.ptr[--before];
        for (state->open.slashes = 0;
             before > 0 && scan->text.ptr[before - 1] == '\\' && state->open.slashes < 8; before--)
            state->open.slashes++;
    } else
        state->open.mark = 0;
    size_t to = len;
    size_t const rest = open_end(scan, value.from, &to);
    oos_secret_mark(scan, value.from, rest == SIZE_MAX ? len : to);
    if (rest != SIZE_MAX || (scan->whole && !value.quoted)) state->open.kind = OOS_OPEN_NONE;
    if (rest == SIZE_MAX && scan->whole && !value.quoted) oos_secret_note_cut(scan, value.from);
    return rest == SIZE_MAX ? len : rest;
}

/* ---- values behind names ---- */

static bool is_scheme(oos_view word)
{
    static const char *const words[] = {"bearer", "basic", "token", "negotiate", "digest", "apikey", NULL};
    return oos_secret_word_among(word, words);
}

/* `['one', 'two']`: all of it up to the bracket that closes it, or the end of the line. */
static size_t list_take(oos_secret_scan *scan, size_t at)
{
    oos_view const text = scan->text;
    if (at >= text.len || text.ptr[at] != '[') return 0;
    const char *close = memchr(text.ptr + at, ']', text.len - at);
    size_t const to = close ? (size_t)(close - text.ptr) : text.len;
    if (to <= at + 1) return 0;
    oos_secret_mark(scan, at + 1, to);
    if (!close && !scan->whole) scan->state->open.kind = OOS_OPEN_LIST;
    return to;
}

/* A name at the end of its line, or with `|` or `\` behind it: the value is on the next. */
static void value_below(oos_secret_scan *scan, size_t from, size_t end, oos_secret_join j, oos_name_kind kind)
{
    static const char *const several[] = {"secrets", "credentials", "cookies", NULL};
    oos_secret_state *state = scan->state;
    oos_view const text = scan->text, name = oos_secret_between(text, from, end);
    bool const continued = j.begin < text.len && text.ptr[j.begin] == '\\';
    size_t column = 0;
    if (!scan->whole) return;
    if (!continued && j.how == OOS_JOIN_ASSIGNED) {
        if (!oos_secret_is_key(text, from, &column)) return;
        if (j.begin == text.len && oos_secret_word_among(name, several)) return;
        state->block.form = j.begin == text.len ? OOS_BLOCK_BELOW : OOS_BLOCK_SCALAR;
        state->block.indent = column;
        state->block.kind = kind;
        return;
    }
    if (text.ptr[from] != '-' && !continued) return;
    size_t const first = oos_secret_skip_blanks(text, 0);
    bool const item = first + 1 < from && text.ptr[first] == '-' && text.ptr[first + 1] == ' ';
    state->next.form = continued                  ? OOS_NEXT_CONTINUED
                       : j.how == OOS_JOIN_LISTED ? OOS_NEXT_QUOTED
                       : item                     ? OOS_NEXT_ITEM
                       : first == from            ? OOS_NEXT_LONE
                                                  : OOS_NEXT_NONE;
    state->next.kind = kind;
    state->next.more = memmem(name.ptr, name.len, "api", 3) != NULL;
}

/* `org/model`, `meta-llama`, `a=b`: words joined by signs, none of which looks drawn. */
static bool names_model(oos_view word)
{
    if (memchr(word.ptr, '/', word.len) || memchr(word.ptr, '=', word.len)) return true;
    return memchr(word.ptr, '-', word.len) && !oos_secret_has_drawn_part(word, "-");
}

/* Words behind the first value of `--api-key`, which takes a list: up to the next flag, operator or word of a sentence. */
size_t oos_secret_more(oos_secret_scan *scan, size_t at)
{
    oos_view const text = scan->text;
    for (int i = 0; i < WORDS_MORE; i++) {
        size_t next = oos_secret_skip_blanks(text, at);
        bool const comma = next < text.len && text.ptr[next] == ',';
        next = oos_secret_skip_blanks(text, next + comma);
        if (next == at || next >= text.len) return at;
        size_t const quote = oos_secret_quote_at(text, next), word = next + quote;
        if (comma && !quote) return at;
        if (word >= text.len || oos_secret_in_set(text.ptr[word], "-|&;<>#()[]{}\\")) return at;
        oos_secret_value const value = oos_secret_value_at(scan, next, false);
        oos_view const words = oos_secret_between(text, value.from, value.to);
        if (!value.longer &&
            (oos_secret_is_stop_word(words) || oos_secret_is_reference(words) || names_model(words)))
            return at;
        at = oos_secret_take(scan, value);
    }
    return at;
}

/* Is it the secret of a name of this kind? The looser they are joined, the more the value itself has to say. */
static bool counts(const oos_secret_scan *scan, oos_secret_join j, oos_name_kind kind, oos_view name,
                   oos_secret_value value)
{
    oos_view const words = oos_secret_between(scan->text, value.from, value.to);
    bool const drawn = oos_secret_looks_random(words, 8);
    if (value.longer) return j.how != OOS_JOIN_NEXT;
    if (words.len == 0 || oos_secret_is_reference(words)) return false;
    if (j.how == OOS_JOIN_TOLD) { /* a sentence: `the password is x` */
        if (value.quoted) return kind == OOS_NAME_SURE && words.len >= 4;
        return oos_secret_looks_random(words, kind >= OOS_NAME_LONG ? 6 : 12);
    }
    if (j.how == OOS_JOIN_NEXT) return kind >= OOS_NAME_LONG && oos_secret_is_opaque(words);
    if (j.how == OOS_JOIN_CELL) { /* of one word */
        size_t const next = oos_secret_skip_blanks(scan->text, value.rest);
        if (next < scan->text.len && oos_is_alnum(scan->text.ptr[next])) return false;
    }
    bool const loose = j.how == OOS_JOIN_CELL || j.how == OOS_JOIN_BESIDE;
    if (loose && (words.len < 4 || oos_secret_name(words) || !(drawn || oos_secret_is_variable(name))))
        return false;
    return oos_secret_value_counts(kind, words, value.quoted);
}

/* A passphrase has blanks. A password that is the field of its line has them, too: up to a comment or the next field. */
static void phrase_extend(const oos_secret_scan *scan, oos_view name, oos_secret_value *value)
{
    oos_view const text = scan->text;
    size_t column = 0, end = value->rest;
    if (value->quoted || value->longer || !scan->whole ||
        !oos_secret_in_set(text.ptr[value->from - 1], " \t"))
        return;
    if (oos_secret_last_is(name, "passphrase"))
        end = oos_secret_phrase_end(text, end);
    else if (oos_view_starts(name, "pass") && oos_secret_is_key(text, (size_t)(name.ptr - text.ptr), &column))
        for (size_t next = end; next < text.len && next > 0;) {
            size_t const word = oos_secret_skip_blanks(text, next);
            if (word == next || text.ptr[word] == '#' || assignment_follows(text, word)) break;
            for (end = word; end < text.len && text.ptr[end] != ' ' && text.ptr[end] != '\t';) end++;
            next = end;
        }
    if (end > value->rest) *value = (oos_secret_value){value->from, end, end, false, true, false};
}

static size_t cookie_take(oos_secret_scan *scan, size_t from)
{
    oos_view const text = scan->text;
    size_t end = from;
    while (end < text.len && !oos_secret_in_set(text.ptr[end], "\r\"'`")) end++;
    oos_secret_mark(scan, from, end);
    if (end == text.len && !scan->whole) scan->state->open.kind = OOS_OPEN_LINE;
    return end;
}

static size_t value_take(oos_secret_scan *scan, oos_secret_join j, oos_name_kind kind, oos_view name,
                         bool parameter)
{
    oos_view const text = scan->text;
    bool const flag = name.ptr[0] == '-';
    size_t const list = j.how == OOS_JOIN_ASSIGNED || flag ? list_take(scan, j.begin) : 0;
    if (list) return list;
    if (!parameter && j.how != OOS_JOIN_NEXT && oos_secret_last_is(name, "cookie") &&
        !oos_secret_quote_at(text, j.begin))
        return cookie_take(scan, j.begin);
    oos_secret_value value = oos_secret_value_at(scan, j.begin, parameter);
    /* `Authorization: Bearer x`: the scheme stays. */
    size_t blank = value.from;
    while (blank < value.to && blank - value.from < 16 && text.ptr[blank] != ' ') blank++;
    if (is_scheme(oos_secret_between(text, value.from, blank))) {
        size_t const next = oos_secret_skip_blanks(text, blank);
        if (value.quoted && next < value.to)
            value.from = next;
        else if (!value.quoted && next > blank)
            value = oos_secret_value_at(scan, next, false);
    }
    if (!counts(scan, j, kind, name, value)) return 0;
    if (kind == OOS_NAME_SURE && j.how == OOS_JOIN_ASSIGNED) phrase_extend(scan, name, &value);
    size_t const to = oos_secret_take(scan, value);
    bool const more = flag && j.how != OOS_JOIN_ASSIGNED && memmem(name.ptr, name.len, "api", 3);
    return more ? oos_secret_more(scan, to) : to;
}

/* What the name says, with the word before it where people write it as two: `API key`. */
static oos_name_kind kind_of(const oos_secret_scan *scan, oos_view name, bool parameter)
{
    oos_name_kind const own = parameter ? oos_secret_parameter_kind(name) : oos_secret_kind(name);
    oos_view const before = scan->previous;
    static const char *const seconds[] = {"key", "keys", "token", NULL};
    bool const two = own <= OOS_NAME_WEAK && before.len && before.ptr + before.len + 1 == name.ptr &&
                     name.ptr[-1] == ' ' && oos_secret_word_among(name, seconds);
    oos_name_kind const both =
        two ? oos_secret_kind((oos_view){before.ptr, before.len + 1 + name.len}) : OOS_NAME_PLAIN;
    return both >= OOS_NAME_LONG ? both : own;
}

/* Behind a name at [from, at): the value that has to go. */
static size_t value_behind(oos_secret_scan *scan, size_t from, size_t at, oos_name_kind kind, bool parameter)
{
    oos_view const text = scan->text, name = oos_secret_between(text, from, at);
    if (kind == OOS_NAME_PLAIN) return 0;
    oos_secret_join j = oos_secret_join_at(scan, from, at);
    if (j.begin == 0) return 0;
    bool const below = j.begin >= text.len || oos_secret_is_block_mark(text, j.begin) ||
                       (text.ptr[j.begin] == '\\' && oos_secret_skip_blanks(text, j.begin + 1) == text.len);
    if (below && j.how != OOS_JOIN_NEXT) {
        value_below(scan, from, at, j, kind);
        return text.len;
    }
    if (name.ptr[0] == '-' && j.how == OOS_JOIN_BLANK && text.ptr[j.begin] == '-') return 0;
    return value_take(scan, j, kind, name, parameter);
}

/* `密码：x`: a name that is not of ASCII. */
static size_t foreign_look(oos_secret_scan *scan, size_t at)
{
    size_t end = at;
    oos_name_kind const kind = oos_secret_foreign_kind(scan->text, at, &end);
    size_t const to = value_behind(scan, at, end, kind, false);
    return to ? to : end;
}

/* ---- words that are no names ---- */

/* `Bearer x` without a header before it. */
static size_t bearer_take(oos_secret_scan *scan, oos_view word, size_t at)
{
    if (!oos_secret_word_is(word, "bearer")) return 0;
    size_t const next = oos_secret_skip_blanks(scan->text, at);
    if (next == at || next >= scan->text.len) return 0;
    oos_secret_value const value = oos_secret_value_at(scan, next, false);
    oos_view const words = oos_secret_between(scan->text, value.from, value.to);
    if (!value.longer && (words.len < 8 || oos_secret_is_stop_word(words) || oos_secret_is_reference(words) ||
                          assignment_follows(scan->text, next)))
        return 0;
    return oos_secret_take(scan, value);
}

static unsigned program_of(oos_view word)
{
    static const struct {
        const char *name;
        unsigned bit;
    } list[] = {{"curl", PROGRAM_CURL},       {"wget", PROGRAM_CURL},          {"mysql", PROGRAM_MYSQL},
                {"mysqldump", PROGRAM_MYSQL}, {"mysqladmin", PROGRAM_MYSQL},   {"mariadb", PROGRAM_MYSQL},
                {"login", PROGRAM_LOGIN},     {"sshpass", PROGRAM_SSHPASS},    {"redis-cli", PROGRAM_REDIS},
                {"wandb", PROGRAM_WANDB},     {"mariadb-dump", PROGRAM_MYSQL}, {"mc", PROGRAM_MC}};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        if (list[i].name[0] == word.ptr[0] && oos_view_is(word, list[i].name)) return list[i].bit;
    return 0;
}

/* `wandb login KEY`, options between allowed; `login('KEY')`. */
static size_t login_take(oos_secret_scan *scan, size_t at)
{
    oos_view const text = scan->text;
    if (at + 1 < text.len && text.ptr[at] == '(' && oos_secret_quote_at(text, at + 1)) {
        oos_secret_value const value = oos_secret_value_at(scan, at + 1, false);
        bool const drawn =
            value.longer || oos_secret_looks_random(oos_secret_between(text, value.from, value.to), 8);
        return drawn ? oos_secret_take(scan, value) : 0;
    }
    size_t next = oos_secret_skip_blanks(text, at);
    for (int i = 0; i < 4 && next < text.len && (scan->state->programs & PROGRAM_WANDB); i++) {
        oos_secret_value const value = oos_secret_value_at(scan, next, false);
        oos_view const word = oos_secret_between(text, value.from, value.to);
        if (word.len >= 16 && word.ptr[0] != '-' && !oos_secret_is_reference(word))
            return oos_secret_take(scan, value);
        next = oos_secret_skip_blanks(text, value.rest);
        if (value.rest == next) break;
    }
    return 0;
}

/* `mc alias set NAME ADDRESS USER PASSWORD`: the last two go. */
static size_t alias_take(oos_secret_scan *scan, size_t at)
{
    oos_view const text = scan->text;
    size_t next = at;
    for (int i = 0; i < 4; i++) {
        size_t const from = oos_secret_skip_blanks(text, next);
        if (from == next || from == text.len) return 0;
        oos_secret_value const value = oos_secret_value_at(scan, from, false);
        bool const shown = i < 2 || oos_secret_is_reference(oos_secret_between(text, value.from, value.to));
        if (value.longer && shown) return 0;
        next = shown ? value.rest : oos_secret_take(scan, value);
    }
    return next;
}

/* `-u user:password`, `-pPASSWORD`, `-p PASSWORD`: by the program whose option it is. */
static size_t option_take(oos_secret_scan *scan, size_t from, size_t at)
{
    oos_view const text = scan->text, word = oos_secret_between(text, from, at);
    unsigned const programs = scan->state->programs;
    bool const user = oos_view_starts(word, "-u") || oos_view_starts(word, "-U"),
               users = oos_view_is(word, "--user") || oos_view_is(word, "--proxy-user");
    bool const glued = word.len > 2 && word.ptr[1] != '-';
    size_t next = glued ? from + 2 : oos_secret_skip_blanks(text, at);
    if (!glued && next < text.len && text.ptr[next] == '=') next++;
    if (next >= text.len || (!glued && next == at)) return 0;
    if ((programs & PROGRAM_CURL) && (user || users)) {
        oos_secret_value value = oos_secret_value_at(scan, next, false);
        const char *colon = memchr(text.ptr + value.from, ':', value.to - value.from);
        if (!colon || value.longer) return 0;
        value.from = (size_t)(colon - text.ptr) + 1;
        if (oos_secret_is_reference(oos_secret_between(text, value.from, value.to))) return 0;
        return oos_secret_take(scan, value);
    }
    bool const p = word.len >= 2 && word.ptr[1] == 'p', a = oos_view_is(word, "-a");
    bool const secret = ((programs & PROGRAM_MYSQL) && p && glued) ||
                        ((programs & (PROGRAM_LOGIN | PROGRAM_SSHPASS)) && p) ||
                        ((programs & PROGRAM_REDIS) && a);
    if (!secret || text.ptr[next] == '-') return 0;
    oos_secret_value const value = oos_secret_value_at(scan, next, false);
    if (!value.longer && oos_secret_is_reference(oos_secret_between(text, value.from, value.to))) return 0;
    return oos_secret_take(scan, value);
}

/* `{"value": "x", "name": "HF_TOKEN"}`: the value came first. `--from-literal=name=x` of kubectl. */
static size_t pair_take(oos_secret_scan *scan, size_t from, size_t at)
{
    oos_view const text = scan->text, word = oos_secret_between(text, from, at);
    bool const value = oos_secret_word_is(word, "value"),
               name = oos_secret_word_is(word, "name") || oos_secret_word_is(word, "key");
    bool const literal = oos_view_is(word, "--from-literal") || oos_view_is(word, "from-literal");
    if (!value && !name && !literal) return 0;
    oos_secret_join const j = oos_secret_join_at(scan, from, at);
    if (!j.begin || j.begin >= text.len || j.how == OOS_JOIN_NEXT) return 0;
    oos_secret_value v = oos_secret_value_at(scan, j.begin, false);
    if (v.longer) return 0;
    if (value) {
        scan->value_from = v.from;
        scan->value_to = v.to;
    } else if (name && scan->value_to > scan->value_from) {
        oos_name_kind const kind = oos_secret_kind(oos_secret_between(text, v.from, v.to));
        if (oos_secret_value_counts(kind, oos_secret_between(text, scan->value_from, scan->value_to), true))
            oos_secret_mark(scan, scan->value_from, scan->value_to);
        scan->value_to = 0;
    } else if (literal) {
        const char *equals = memchr(text.ptr + v.from, '=', v.to - v.from);
        if (!equals) return 0;
        v.from = (size_t)(equals - text.ptr) + 1;
        return oos_secret_is_reference(oos_secret_between(text, v.from, v.to)) ? 0 : oos_secret_take(scan, v);
    }
    return 0;
}

/* Is this the letter of a line break that is written out: `A=b\\nC=d`? */
static bool is_written_break(oos_view text, size_t at)
{
    return at > 0 && at < text.len && text.ptr[at - 1] == '\\' && oos_secret_in_set(text.ptr[at], "nrt");
}

static char byte_before(const oos_secret_scan *scan, size_t at)
{
    if (at == 0) return scan->state->before;
    return is_written_break(scan->text, at - 1) ? '\n' : scan->text.ptr[at - 1];
}

/* A word of at most OOS_SECRET_NAME_MAX bytes. Where to look on, 0: behind it. */
static size_t word_look(oos_secret_scan *scan, size_t from, size_t at)
{
    oos_secret_state *state = scan->state;
    oos_view const word = oos_secret_between(scan->text, from, at);
    char const before = byte_before(scan, from);
    bool const parameter = before == '?' || before == '&';
    size_t to = value_behind(scan, from, at, kind_of(scan, word, parameter), parameter);
    if (!to) to = bearer_take(scan, word, at);
    if (!to && word.len >= 3 && word.len <= 16) to = pair_take(scan, from, at);
    if (!to && word.ptr[0] == '-' && state->programs) to = option_take(scan, from, at);
    unsigned const program = program_of(word);
    if (!to && oos_secret_last_is(word, "login")) to = login_take(scan, at);
    if (!to && (state->programs & PROGRAM_MC) && oos_view_is(word, "set")) to = alias_take(scan, at);
    state->programs |= program;
    state->since_login = program == PROGRAM_LOGIN ? 1 : state->since_login ? state->since_login + 1 : 0;
    if (oos_view_is(word, "machine") && !scan->previous.len) state->netrc_lines = 4;
    if (word.ptr[0] != '-') scan->previous = word;
    return to;
}

static size_t shape_in(oos_secret_scan *scan, size_t from, size_t end)
{
    for (size_t k = from; k < end; k++) {
        char const c = scan->text.ptr[k], before = byte_before(scan, k);
        size_t to = 0;
        if (!oos_is_alnum(before))
            to = scan->text.len - k >= 8 ? oos_secret_shape_at(scan, k, before) : 0;
        else if (c == '_' || c == '-')
            to = oos_secret_glued_at(scan, k);
        if (to) return to;
    }
    return 0;
}

size_t oos_secret_scan_words(oos_secret_scan *scan, size_t from)
{
    oos_view const text = scan->text;
    size_t i = from;
    while (i < scan->limit) {
        char const c = text.ptr[i], before = byte_before(scan, i);
        size_t to = 0;
        if (c == ':') {
            to = oos_secret_login_at(scan, i);
            if (!to) to = oos_secret_bot_at(scan, i);
        }
        if (c == '{' || c == '}') scan->value_to = 0;
        if ((unsigned char)c >= 0xe3) to = foreign_look(scan, i);
        if (!to && is_written_break(text, i)) to = i + 1;
        if (to > i || !oos_secret_name_byte(c)) {
            i = to > i ? to : i + 1;
            continue;
        }
        size_t const end = oos_secret_word_end(text, i, OOS_SECRET_NAME_MAX + 1);
        to = shape_in(scan, i, end);
        if (!to && !oos_secret_name_byte(before) && end - i <= OOS_SECRET_NAME_MAX)
            to = word_look(scan, i, end);
        i = to > i ? to : end;
    }
    return i;
}
