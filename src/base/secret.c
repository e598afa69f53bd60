/* Finding secrets in text. One pass from left to right; what is looked at ahead is bounded by the line, so that hostile
 * input costs no more than its length times a small number. */
#include "base/secret.h"
#include "base/ascii.h"

#define HIDDEN "***"
enum { NAME_MAX_BYTES = 80, SEGMENTS_MAX = 12 };

/* Where in a text a secret was found, and what of it may be seen. */
typedef struct finding {
    size_t from, to; /* the bytes to be replaced */
    size_t rest;     /* where to look on */
} finding;

static oos_view between(oos_view text, size_t from, size_t to)
{
    return oos_view_slice(text, from, to > from ? to - from : 0);
}

static bool is_name_byte(char c)
{
    return oos_is_alnum(c) || c == '_' || c == '-' || c == '.';
}

/* ---- names ---- */

typedef struct segments {
    oos_view list[SEGMENTS_MAX];
    size_t count;
} segments;

/* `clientSecret`, `HF_TOKEN`, `--api-key` -> client, secret. Longer names keep their last segments. */
static segments split(oos_view name)
{
    segments s = {0};
    size_t from = 0;
    for (size_t i = 0; i <= name.len; i++) {
        bool const separator = i == name.len || !oos_is_alnum(name.ptr[i]);
        bool const hump = !separator && i > from && name.ptr[i] >= 'A' && name.ptr[i] <= 'Z' &&
                          name.ptr[i - 1] >= 'a' && name.ptr[i - 1] <= 'z';
        if (!separator && !hump) continue;
        if (i > from) {
            if (s.count == SEGMENTS_MAX) memmove(s.list, s.list + 1, --s.count * sizeof *s.list);
            s.list[s.count++] = between(name, from, i);
        }
        from = separator ? i + 1 : i;
    }
    return s;
}

static bool is(oos_view segment, const char *word)
{
    return strlen(word) == segment.len && oos_same_start(segment.ptr, word, segment.len);
}

static bool is_among(oos_view segment, const char *const *words)
{
    for (; *words; words++)
        if (is(segment, *words)) return true;
    return false;
}

/* How much a name says. A weak one needs a value that looks like a secret, a numberless one any that is no number. */
typedef enum name_kind { NAME_PLAIN, NAME_WEAK, NAME_NUMBERLESS, NAME_SURE } name_kind;

static name_kind token_kind(const segments *s)
{
    /* Tokens of a vocabulary, not of a person. */
    static const char *const vocabulary[] = {
        "eos",   "bos",     "pad",    "unk",     "sep",   "cls",    "mask",   "per", "image", "video",
        "audio", "special", "next",   "first",   "last",  "each",   "start",  "end", "max",   "min",
        "think", "stop",    "one",    "draft",   "every", "vision", "prompt", "new", "input", "output",
        "extra", "added",   "tool",   "decoder", "boi",   "eoi",    "a",      "of",  "any",   "sot",
        "eot",   "time",    "single", "bytes",   "fim",   "chat",   NULL};
    if (s->count == 1) return NAME_WEAK;
    return is_among(s->list[s->count - 2], vocabulary) ? NAME_PLAIN : NAME_NUMBERLESS;
}

static name_kind key_kind(const segments *s)
{
    static const char *const before[] = {
        "api",  "access",  "secret",       "private", "auth",    "encryption", "signing",
        "ssh",  "master",  "account",      "admin",   "deploy",  "service",    "license",
        "hmac", "session", "subscription", "shared",  "storage", "client",     "server",
        "user", "app",     "application",  "openai",  "wandb",   NULL};
    return s->count > 1 && is_among(s->list[s->count - 2], before) ? NAME_NUMBERLESS : NAME_PLAIN;
}

static name_kind kind_of_name(oos_view name)
{
    static const char *const sure[] = {"password",   "passwd",      "passphrase", "passcode",
                                       "secret",     "secrets",     "cookie",     "cookies",
                                       "credential", "credentials", "apikey",     "authorization",
                                       "apitoken",   "authtoken",   "accesskey",  "secretkey",
                                       "privatekey", "accesstoken", NULL};
    /* Behind these it is a name, a place or a number of a secret. */
    static const char *const about[] = {
        "name",  "names",  "ref",     "refs",    "file",     "path",    "dir",       "type",
        "count", "len",    "size",    "limit",   "index",    "url",     "uri",       "mode",
        "ttl",   "expiry", "expires", "enabled", "required", "version", "namespace", "provider",
        "hash",  "length", "manager", "engine",  "store",    "class",   NULL};
    static const char *const owners[] = {"db",    "user",     "smtp",  "mysql", "redis", "root",
                                         "admin", "postgres", "mongo", "proxy", NULL};
    if (name.len < 3 || name.len > NAME_MAX_BYTES) return NAME_PLAIN;
    segments const s = split(name);
    if (s.count == 0) return NAME_PLAIN;
    oos_view const last = s.list[s.count - 1];
    if (is_among(last, about)) return NAME_PLAIN;
    for (size_t i = 0; i < s.count; i++)
        if (is_among(s.list[i], sure)) return NAME_SURE;
    if (is(last, "token")) return token_kind(&s);
    if (is(last, "key") || is(last, "keys")) return key_kind(&s);
    if (is(last, "id") && s.count > 2 && is(s.list[s.count - 2], "key"))
        return NAME_NUMBERLESS; /* AWS_ACCESS_KEY_ID */
    if (is(last, "pwd") && s.count > 1) return NAME_SURE;
    if (is(last, "pass") && s.count > 1 && is_among(s.list[s.count - 2], owners)) return NAME_SURE;
    if (is(last, "bearer")) return NAME_WEAK;
    return NAME_PLAIN;
}

bool oos_secret_name(oos_view name)
{
    return kind_of_name(name) != NAME_PLAIN;
}

/* In addresses more names are used, and nothing there is prose. */
static name_kind kind_of_parameter(oos_view name)
{
    static const char *const words[] = {"key",  "sig", "signature",  "auth", "token",
                                        "code", "sas", "credential", NULL};
    segments const s = split(name);
    if (s.count && is_among(s.list[s.count - 1], words)) return NAME_SURE;
    return kind_of_name(name);
}

/* ---- shapes ---- */

typedef struct shape {
    const char *prefix;
    const char *more; /* bytes beside letters and digits */
    unsigned least;   /* bytes behind the prefix */
    bool mixed;       /* a digit or capital must be among them: the prefix alone is a word */
} shape;

static const shape shapes[] = {
    {"hf_", "", 16, false},         {"api_org_", "", 16, false},
    {"sk-", "-_", 16, true},        {"sk_live_", "", 12, false},
    {"sk_test_", "", 12, false},    {"rk_live_", "", 12, false},
    {"ghp_", "", 16, false},        {"gho_", "", 16, false},
    {"ghu_", "", 16, false},        {"ghs_", "", 16, false},
    {"ghr_", "", 16, false},        {"github_pat_", "_", 16, false},
    {"glpat-", "-_", 16, false},    {"gldt-", "-_", 16, false},
    {"glcbt-", "-_", 16, false},    {"AKIA", "", 16, false},
    {"ASIA", "", 16, false},        {"xoxb-", "-", 10, false},
    {"xoxp-", "-", 10, false},      {"xoxa-", "-", 10, false},
    {"xoxr-", "-", 10, false},      {"xoxs-", "-", 10, false},
    {"xapp-", "-", 10, false},      {"nvapi-", "-_", 16, false},
    {"AIza", "-_", 30, false},      {"ya29.", "-_.", 16, false},
    {"pypi-", "-_", 32, true},      {"npm_", "", 30, false},
    {"dckr_pat_", "-_", 16, false}, {"dop_v1_", "", 32, false},
    {"r8_", "", 30, false},         {"gsk_", "", 20, false},
    {"tgp_v1_", "-_", 16, false},   {"SG.", "-_.", 32, true},
    {"hvs.", "-_", 20, true},       {"xai-", "", 20, true},
    {"pplx-", "", 20, true},        {"AGE-SECRET-KEY-", "", 20, false},
    {"ms-", "-", 32, true},         {"wandb_v1_", "_", 16, false},
    {"lsv2_", "_", 16, false},      {"csk-", "", 20, true},
};

static size_t run_of(oos_view text, size_t at, const char *more, bool *ret_mixed)
{
    size_t len = 0;
    *ret_mixed = false;
    for (; at + len < text.len; len++) {
        char const c = text.ptr[at + len];
        if (!oos_is_alnum(c) && !(c && strchr(more, c))) break;
        *ret_mixed |= oos_is_digit(c) || (c >= 'A' && c <= 'Z');
    }
    return len;
}

/* Three parts of base64 with points between, the first a JSON object. */
static bool jwt_at(oos_view text, size_t at, finding *ret_finding)
{
    bool mixed;
    if (text.len - at < 20 || memcmp(text.ptr + at, "eyJ", 3) != 0) return false;
    size_t const first = run_of(text, at, "-_", &mixed);
    if (first < 10 || at + first >= text.len || text.ptr[at + first] != '.') return false;
    size_t const rest = run_of(text, at + first + 1, "-_.=", &mixed);
    if (rest < 4) return false;
    *ret_finding = (finding){at + 3, at + first + 1 + rest, at + first + 1 + rest};
    return true;
}

static bool starts_at(oos_view text, size_t at, const char *words)
{
    size_t const len = strlen(words);
    return text.len - at >= len && memcmp(text.ptr + at, words, len) == 0;
}

/* A private key, from its first line to its last. */
static bool pem_at(oos_view text, size_t at, finding *ret_finding)
{
    static const char begin[] = "-----BEGIN ", end[] = "PRIVATE KEY-----";
    if (!starts_at(text, at, begin)) return false;
    oos_view const rest = oos_view_slice(text, at, text.len);
    const char *head = memmem(rest.ptr, rest.len < 80 ? rest.len : 80, end, sizeof end - 1);
    if (!head) return false;
    size_t const from = at + (size_t)(head - rest.ptr) + sizeof end - 1;
    const char *tail = from < text.len ? memmem(text.ptr + from, text.len - from, "-----END ", 9) : NULL;
    size_t const to = tail ? (size_t)(tail - text.ptr) : text.len;
    *ret_finding = (finding){from, to, to};
    return to > from;
}

static bool webhook_at(oos_view text, size_t at, finding *ret_finding)
{
    static const char *const places[] = {"hooks.slack.com/services/", "discord.com/api/webhooks/", NULL};
    bool mixed;
    for (size_t i = 0; places[i]; i++) {
        if (!starts_at(text, at, places[i])) continue;
        size_t const from = at + strlen(places[i]), len = run_of(text, from, "/-_", &mixed);
        *ret_finding = (finding){from, from + len, from + len};
        return len > 0;
    }
    return false;
}

static bool shape_at(oos_view text, size_t at, finding *ret_finding)
{
    static const char first_letters[] = "hasrgAxnydpteSLmwlcHDEB-";
    if (!strchr(first_letters, text.ptr[at]) || !text.ptr[at]) return false;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        if (shapes[i].prefix[0] != text.ptr[at] || !starts_at(text, at, shapes[i].prefix)) continue;
        bool mixed;
        size_t const from = at + strlen(shapes[i].prefix), len = run_of(text, from, shapes[i].more, &mixed);
        if (len < shapes[i].least || (shapes[i].mixed && !mixed)) continue;
        *ret_finding = (finding){from, from + len, from + len};
        return true;
    }
    return jwt_at(text, at, ret_finding) || pem_at(text, at, ret_finding) ||
           webhook_at(text, at, ret_finding);
}

/* ---- values behind names ---- */

/* `$HF_TOKEN`, `${X}`, `$(cmd)`, `{{ x }}`, `<token>`, `%s`, `***`: not the secret, but where it would stand. */
static bool is_reference(oos_view value)
{
    if (value.len == 0) return true;
    char const c = value.ptr[0], next = value.len > 1 ? value.ptr[1] : '\0';
    if (c == '$' && (next == '{' || next == '(')) return true;
    if (c == '$') {
        size_t i = 1;
        while (i < value.len && (oos_is_alnum(value.ptr[i]) || value.ptr[i] == '_')) i++;
        return i == value.len && i > 1 && !oos_is_digit(next);
    }
    return c == '<' || (c == '{' && next == '{') || (c == '%' && value.len <= 3) ||
           oos_view_starts(value, HIDDEN);
}

/* What stands behind such a name in a sentence or as "there is none". */
static bool is_stop_word(oos_view value)
{
    static const char *const words[] = {
        "none",    "null",     "true",    "false",    "yes",       "no",     "is",       "was",
        "not",     "are",      "and",     "or",       "if",        "for",    "to",       "in",
        "on",      "from",     "with",    "must",     "may",       "should", "expected", "required",
        "missing", "invalid",  "unset",   "nil",      "undefined", "empty",  "str",      "string",
        "the",     "has",      "can",     "cannot",   "could",     "of",     "by",       "as",
        "auto",    "optional", "default", "redacted", "bearer",    NULL};
    return is_among(value, words);
}

static bool is_number(oos_view value)
{
    size_t i = 0;
    while (i < value.len && (oos_is_digit(value.ptr[i]) || (value.ptr[i] && strchr(".,+-_", value.ptr[i]))))
        i++;
    return i == value.len || (i > 0 && value.len - i <= 2); /* 8192, 1.5k, 20%, 0x is not */
}

static bool looks_random(oos_view value)
{
    bool digit = false, letter = false;
    for (size_t i = 0; i < value.len; i++) {
        digit |= oos_is_digit(value.ptr[i]);
        letter |= oos_is_alpha(value.ptr[i]);
    }
    return value.len >= 8 && digit && letter;
}

static bool is_value(name_kind kind, oos_view value, bool quoted)
{
    if (is_reference(value) || (!quoted && is_stop_word(value))) return false;
    if (quoted && (is(value, "none") || is(value, "null"))) return false;
    switch (kind) {
    case NAME_PLAIN: return false;
    case NAME_WEAK: return looks_random(value) || (quoted && value.len >= 8 && !is_number(value));
    case NAME_NUMBERLESS: return !is_number(value);
    case NAME_SURE: return true;
    }
    return false;
}

static size_t skip_spaces(oos_view text, size_t at)
{
    while (at < text.len && (text.ptr[at] == ' ' || text.ptr[at] == '\t')) at++;
    return at;
}

/* A quotation mark, with the backslashes of a text inside a text before it: its bytes, 0 when there is none. */
static size_t quote_at(oos_view text, size_t at)
{
    size_t len = 0;
    while (at + len < text.len && text.ptr[at + len] == '\\' && len < 4) len++;
    return at + len < text.len && strchr("\"'`", text.ptr[at + len]) && text.ptr[at + len] ? len + 1 : 0;
}

/* Between name and value: `=`, ` : `, `": "`, `", "` behind a flag, `", "value": "` behind a name that is a value itself.
 * 0: nothing that joins them. */
static size_t join_at(oos_view text, size_t at, bool flag)
{
    size_t end = at + quote_at(text, at);
    size_t const after_quote = end;
    end = skip_spaces(text, end);
    bool const spaced = end > after_quote;
    bool const comma = end < text.len && text.ptr[end] == ',';
    if (end < text.len && (text.ptr[end] == '=' || text.ptr[end] == ':')) {
        if (starts_at(text, end, "://")) return 0;
        end += text.len - end > 1 && (text.ptr[end + 1] == '=' || text.ptr[end + 1] == '>') ? 2 : 1;
        return skip_spaces(text, end);
    }
    if (flag && (spaced || comma)) return skip_spaces(text, end + comma);
    if (!comma && !spaced) return 0;
    size_t word = skip_spaces(text, end + comma);
    word += quote_at(text, word);
    if (!starts_at(text, word, "value")) return 0;
    word += 5;
    word += quote_at(text, word);
    word = skip_spaces(text, word);
    if (word >= text.len || (text.ptr[word] != ':' && text.ptr[word] != '=')) return 0;
    return skip_spaces(text, word + 1);
}

static size_t line_end(oos_view text, size_t at)
{
    const char *end = at < text.len ? memchr(text.ptr + at, '\n', text.len - at) : NULL;
    return end ? (size_t)(end - text.ptr) : text.len;
}

/* The bytes of a value that begins at `at`, and what closes it. */
static finding value_at(oos_view text, size_t at, bool whole_line, bool *ret_quoted)
{
    size_t const quote = quote_at(text, at);
    *ret_quoted = quote > 0;
    if (quote) {
        char const mark = text.ptr[at + quote - 1];
        size_t const from = at + quote;
        for (size_t i = from; i < text.len; i++) {
            if (text.ptr[i] != mark) continue;
            size_t slashes = 0;
            while (slashes < i - from && text.ptr[i - slashes - 1] == '\\') slashes++;
            if (slashes > quote - 1 && slashes % 2 != (quote - 1) % 2) continue; /* an escaped one inside */
            return (finding){from, i - (slashes < quote - 1 ? slashes : quote - 1), i + 1};
        }
        return (finding){from, text.len, text.len};
    }
    size_t end = at;
    if (whole_line) {
        while (end < text.len && !strchr("\r\n\"'`", text.ptr[end])) end++;
    } else {
        while (end < text.len && text.ptr[end] && !strchr(" \t\r\n\"'`,;)]}>&|", text.ptr[end])) end++;
    }
    return (finding){at, end, end};
}

/* `['one', 'two']`: all of it up to the bracket that closes it, or the end of the line. */
static bool list_at(oos_view text, size_t at, finding *ret_finding)
{
    if (at >= text.len || text.ptr[at] != '[') return false;
    size_t const end = line_end(text, at);
    const char *close = memchr(text.ptr + at, ']', end - at);
    size_t const to = close ? (size_t)(close - text.ptr) : end;
    *ret_finding = (finding){at + 1, to, to};
    return to > at + 1;
}

static bool is_scheme(oos_view word)
{
    static const char *const words[] = {"bearer", "basic", "token", "negotiate", "digest", "apikey", NULL};
    return is_among(word, words);
}

/* Behind a name at [from, at): the value that has to go. */
static bool value_behind(oos_view text, size_t from, size_t at, bool parameter, finding *ret_finding)
{
    oos_view const name = between(text, from, at);
    bool const flag = text.ptr[from] == '-';
    name_kind const kind = parameter ? kind_of_parameter(name) : kind_of_name(name);
    if (kind == NAME_PLAIN) return false;
    size_t const begin = join_at(text, at, flag);
    if (begin == 0 || begin >= text.len) return false;
    if (flag && text.ptr[begin] == '-') return false;
    if (list_at(text, begin, ret_finding)) return true;
    segments const s = split(name);
    bool const cookie = is(s.list[s.count - 1], "cookie");
    bool quoted;
    finding value = value_at(text, begin, cookie && !parameter, &quoted);
    /* `Authorization: Bearer x`: the scheme stays. */
    size_t blank = value.from;
    while (blank < value.to && text.ptr[blank] != ' ') blank++;
    if (is_scheme(between(text, value.from, blank))) {
        size_t const next = skip_spaces(text, blank);
        if (quoted && next < value.to)
            value.from = next;
        else if (!quoted && next > blank)
            value = value_at(text, next, false, &quoted);
    }
    if (!is_value(kind, between(text, value.from, value.to), quoted)) return false;
    *ret_finding = value;
    return value.to > value.from;
}

/* `Bearer x` without a header before it. */
static bool bearer_at(oos_view text, size_t from, size_t at, finding *ret_finding)
{
    bool quoted;
    if (!is(between(text, from, at), "bearer")) return false;
    size_t const next = skip_spaces(text, at);
    if (next == at) return false;
    finding const value = value_at(text, next, false, &quoted);
    oos_view const word = between(text, value.from, value.to);
    if (word.len < 8 || is_stop_word(word) || is_reference(word)) return false;
    *ret_finding = value;
    return true;
}

/* `://user:password@`, `://token@`; `at` stands on the colon. A short name alone is no secret: `ssh://git@host`. */
static bool login_at(oos_view text, size_t at, finding *ret_finding)
{
    if (!starts_at(text, at, "://")) return false;
    size_t const from = at + 3;
    size_t end = from, mark = 0, colon = 0;
    for (; end < text.len && text.ptr[end] && !strchr("/?# \t\r\n\"'`<>", text.ptr[end]); end++) {
        if (text.ptr[end] == '@') mark = end;
        if (text.ptr[end] == ':' && !colon) colon = end;
    }
    if (!mark || mark == from) return false;
    bool const password = colon && colon < mark;
    if (!password && mark - from < 16) return false;
    size_t const start = password ? colon + 1 : from;
    if (is_reference(between(text, start, mark))) return false;
    *ret_finding = (finding){start, mark, mark};
    return mark > start;
}

/* The next secret at or behind `at`. */
static bool find(oos_view text, size_t at, finding *ret_finding)
{
    for (size_t i = at; i < text.len;) {
        char const c = text.ptr[i];
        if (c == ':' && login_at(text, i, ret_finding)) return true;
        if (!is_name_byte(c)) {
            i++;
            continue;
        }
        size_t end = i;
        while (end < text.len && is_name_byte(text.ptr[end])) end++;
        for (size_t k = i; k < end; k++)
            if ((k == i || !oos_is_alnum(text.ptr[k - 1])) && end - k >= 8 && shape_at(text, k, ret_finding))
                return true;
        if (end - i <= NAME_MAX_BYTES) {
            bool const parameter = i > 0 && (text.ptr[i - 1] == '?' || text.ptr[i - 1] == '&');
            if (value_behind(text, i, end, parameter, ret_finding)) return true;
            if (bearer_at(text, i, end, ret_finding)) return true;
        }
        i = end;
    }
    return false;
}

bool oos_secret_inside(oos_view text)
{
    finding found;
    return find(text, 0, &found);
}

void oos_secret_hide(oos_text *to, oos_view text)
{
    finding found;
    size_t at = 0;
    while (find(text, at, &found)) {
        oos_text_add(to, between(text, at, found.from));
        oos_text_put(to, HIDDEN);
        at = found.to;
    }
    oos_text_add(to, oos_view_slice(text, at, text.len));
}

const char *oos_secret_hidden(oos_arena *arena, const char *text)
{
    if (!text || !oos_secret_inside(oos_view_of(text))) return text;
    oos_text hidden = {0};
    oos_secret_hide(&hidden, oos_view_of(text));
    const char *copy = hidden.failed ? NULL : oos_arena_copy(arena, (oos_view){hidden.ptr, hidden.len});
    oos_text_free(&hidden);
    return copy;
}

/* `NAME=value`, as a word of its own: the value reaches to the end. */
static const char *assignment_hidden(oos_arena *arena, const char *word)
{
    const char *equals = strchr(word, '=');
    size_t len = 0;
    while (is_name_byte(word[len])) len++;
    if (!equals || len == 0 || word + len != equals) return NULL;
    name_kind kind = kind_of_name((oos_view){word, len});
    if (kind == NAME_WEAK) kind = NAME_NUMBERLESS; /* TOKEN=x is no prose */
    if (!is_value(kind, oos_view_of(equals + 1), false)) return NULL;
    return oos_arena_format(arena, "%.*s" HIDDEN, (int)len + 1, word);
}

const char *const *oos_secret_hidden_words(oos_arena *arena, const char *const *words, size_t count)
{
    const char **copy = NULL;
    bool behind = false, list = false; /* a flag that names a secret; one that takes several */
    for (size_t i = 0; i < count; i++) {
        const char *word = words[i], *shown;
        bool const flag = word[0] == '-' && word[1];
        if (behind && !flag)
            shown = is_reference(oos_view_of(word)) ? word : HIDDEN;
        else if (!(shown = assignment_hidden(arena, word)))
            shown = oos_secret_hidden(arena, word);
        behind = flag ? !strchr(word, '=') && oos_secret_name(oos_view_of(word)) : behind && list;
        list = flag ? strstr(word, "api") != NULL : list;
        if (shown == word) continue;
        if (!copy) {
            copy = OOS_NEW_ARRAY(arena, const char *, count + 1);
            if (!copy) return NULL;
            memcpy(copy, words, count * sizeof *copy);
        }
        copy[i] = shown ? shown : HIDDEN;
    }
    return copy ? copy : words;
}
