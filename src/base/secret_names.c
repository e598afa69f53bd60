/* Secrets by their names: which name tells, and which value behind it may still be shown. */
#include "base/secret_parts.h"
#include "base/check.h"

enum { SEGMENTS_MAX = 12 };

typedef struct segments {
    oos_view list[SEGMENTS_MAX];
    size_t count;
    bool upper; /* as variables are written; not so in two words */
} segments;

/* `clientSecret`, `HF_TOKEN`, `--api-key` -> client, secret. Longer names keep their last segments. */
static segments split(oos_view name)
{
    segments s = {.upper = true};
    size_t from = 0;
    for (size_t i = 0; i <= name.len; i++) {
        bool const separator = i == name.len || !oos_is_alnum(name.ptr[i]);
        bool const hump = !separator && i > from && name.ptr[i] >= 'A' && name.ptr[i] <= 'Z' &&
                          name.ptr[i - 1] >= 'a' && name.ptr[i - 1] <= 'z';
        if (i < name.len && (name.ptr[i] == ' ' || (name.ptr[i] >= 'a' && name.ptr[i] <= 'z')))
            s.upper = false;
        if (i < name.len && name.ptr[i] == '.') s.upper = true; /* env.HF_TOKEN */
        if (!separator && !hump) continue;
        if (i > from) {
            if (s.count == SEGMENTS_MAX) memmove(s.list, s.list + 1, --s.count * sizeof *s.list);
            oos_assert(s.count < SEGMENTS_MAX);
            s.list[s.count++] = oos_secret_between(name, from, i);
        }
        from = separator ? i + 1 : i;
    }
    return s;
}

bool oos_secret_word_is(oos_view word, const char *other)
{
    return strlen(other) == word.len && oos_same_start(word.ptr, other, word.len);
}

bool oos_secret_word_among(oos_view word, const char *const *words)
{
    for (; *words; words++)
        if (oos_secret_word_is(word, *words)) return true;
    return false;
}

bool oos_secret_last_is(oos_view name, const char *segment)
{
    segments const s = split(name);
    return s.count && oos_secret_word_is(s.list[s.count - 1], segment);
}

static bool ends_with_one_of(oos_view word, const char *const *tails)
{
    for (; *tails; tails++) {
        size_t const len = strlen(*tails);
        if (word.len > len && oos_same_start(word.ptr + word.len - len, *tails, len)) return true;
    }
    return false;
}

/* `sk`, `HUAWEICLOUD_SDK_AK`: as clouds call the two halves of a key. */
static bool is_short_key(oos_view name)
{
    return name.len >= 2 && oos_lower(name.ptr[name.len - 1]) == 'k' &&
           oos_secret_in_set(oos_lower(name.ptr[name.len - 2]), "as") &&
           (name.len == 2 || !oos_is_alnum(name.ptr[name.len - 3]));
}

/* A quick no for nearly every word: each telling name holds one of these. */
static bool may_tell(oos_view name)
{
    static const char *const roots[] = {"key",  "token", "pass",   "pwd", "secr",   "cook",
                                        "cred", "auth",  "bearer", "sig", "dockerc"};
    if (is_short_key(name)) return true;
    for (size_t i = 0; i + 3 <= name.len; i++) {
        char const c = oos_lower(name.ptr[i]);
        if (c != 'k' && c != 't' && c != 'p' && c != 's' && c != 'c' && c != 'a' && c != 'b' && c != 'd')
            continue;
        for (size_t k = 0; k < sizeof roots / sizeof *roots; k++) {
            if (roots[k][0] != c) continue;
            size_t const len = strlen(roots[k]);
            if (name.len - i >= len && oos_same_start(name.ptr + i, roots[k], len)) return true;
        }
    }
    return false;
}

/* `api`, `access` before the token or the key at `at`: somebody's, wherever it stands in the name. */
static bool is_owned(const segments *s, size_t at)
{
    static const char *const owners[] = {
        "api",     "access",     "auth",    "refresh", "user",   "session",      "service",     "secret",
        "private", "encryption", "signing", "ssh",     "master", "account",      "admin",       "deploy",
        "license", "hmac",       "shared",  "storage", "client", "subscription", "server",      "app",
        "openai",  "wandb",      "hf",      "bearer",  "bot",    "hub",          "application", NULL};
    return at > 0 && oos_secret_word_among(s->list[at - 1], owners);
}

static oos_name_kind token_kind(const segments *s, size_t at)
{
    /* Tokens of a vocabulary, not of a person. */
    static const char *const vocabulary[] = {
        "eos",   "bos",     "pad",    "unk",     "sep",   "cls",    "mask",   "per", "image", "video",
        "audio", "special", "next",   "first",   "last",  "each",   "start",  "end", "max",   "min",
        "think", "stop",    "one",    "draft",   "every", "vision", "prompt", "new", "input", "output",
        "extra", "added",   "tool",   "decoder", "boi",   "eoi",    "a",      "of",  "any",   "sot",
        "eot",   "time",    "single", "bytes",   "fim",   "chat",   NULL};
    if (at == 0) return OOS_NAME_WEAK;
    if (oos_secret_word_among(s->list[at - 1], vocabulary)) return OOS_NAME_PLAIN;
    return s->upper || is_owned(s, at) ? OOS_NAME_LONG : OOS_NAME_NUMBERLESS;
}

static oos_name_kind key_kind(const segments *s)
{
    static const char *const harmless[] = {"cache",   "public", "primary", "sort",  "partition", "foreign",
                                           "routing", "model",  "graph",   "group", NULL};
    if (s->count < 2) return OOS_NAME_PLAIN;
    oos_view const owner = s->list[s->count - 2];
    if (is_owned(s, s->count - 1)) return OOS_NAME_LONG;
    if (oos_secret_word_is(owner, "x")) return OOS_NAME_RANDOM; /* a header */
    return s->upper && !oos_secret_word_among(owner, harmless) ? OOS_NAME_PATHLESS : OOS_NAME_PLAIN;
}

static oos_name_kind pass_kind(const segments *s)
{
    static const char *const owners[] = {"db",    "user",     "smtp",  "mysql", "redis", "root",
                                         "admin", "postgres", "mongo", "proxy", NULL};
    if (s->count < 2) return OOS_NAME_PLAIN;
    if (oos_secret_word_among(s->list[s->count - 2], owners)) return OOS_NAME_SURE;
    return s->upper ? OOS_NAME_NUMBERLESS : OOS_NAME_PLAIN;
}

static bool is_sure(oos_view segment)
{
    static const char *const sure[] = {
        "password",      "passwd",           "passphrase",  "passcode",   "secret",
        "secrets",       "cookie",           "cookies",     "credential", "apikey",
        "authorization", "apitoken",         "authtoken",   "accesskey",  "secretkey",
        "privatekey",    "credentials",      "accesstoken", "dockercfg",  "passin",
        "passout",       "dockerconfigjson", NULL};
    static const char *const tails[] = {"password", "passwd", "passphrase", "apikey", "secretkey", NULL};
    return oos_secret_word_among(segment, sure) || ends_with_one_of(segment, tails);
}

oos_name_kind oos_secret_kind(oos_view name)
{
    /* Behind these it is a name, a place or a number of a secret. */
    static const char *const about[] = {
        "name",  "names",  "ref",     "refs",    "file",     "path",    "dir",       "type",
        "count", "len",    "size",    "limit",   "index",    "url",     "uri",       "mode",
        "ttl",   "expiry", "expires", "enabled", "required", "version", "namespace", "provider",
        "hash",  "length", "manager", "engine",  "store",    "class",   NULL};
    static const char *const several[] = {"api", "auth", "access", "bearer", NULL};
    if (name.len < 2 || name.len > OOS_SECRET_NAME_MAX || !may_tell(name)) return OOS_NAME_PLAIN;
    while (name.len && !oos_is_alpha(name.ptr[name.len - 1])) name.len--; /* API_KEY_2 */
    segments const s = split(name);
    if (s.count == 0) return OOS_NAME_PLAIN;
    oos_view const last = s.list[s.count - 1], owner = s.list[s.count > 1 ? s.count - 2 : 0];
    if (oos_secret_word_among(last, about)) return OOS_NAME_PLAIN;
    for (size_t i = 0; i < s.count; i++)
        if (is_sure(s.list[i])) return OOS_NAME_SURE;
    if (oos_secret_word_is(last, "token")) return token_kind(&s, s.count - 1);
    if (oos_secret_word_is(last, "tokens") && s.count > 1 && oos_secret_word_among(owner, several))
        return OOS_NAME_NUMBERLESS;
    if (oos_secret_word_is(last, "key") || oos_secret_word_is(last, "keys")) return key_kind(&s);
    if (oos_secret_word_is(last, "id") && s.count > 2 && oos_secret_word_is(owner, "key"))
        return OOS_NAME_LONG; /* AWS_ACCESS_KEY_ID */
    if (oos_secret_word_is(last, "id") && s.count > 2 && oos_secret_word_is(owner, "token"))
        return s.upper ? token_kind(&s, s.count - 2) : OOS_NAME_PLAIN;
    for (size_t i = 1; i + 1 < s.count; i++) /* API_KEY_PROD */
        if ((oos_secret_word_is(s.list[i], "key") || oos_secret_word_is(s.list[i], "token")) &&
            is_owned(&s, i))
            return OOS_NAME_NUMBERLESS;
    if (oos_secret_word_is(last, "pwd")) return s.count > 1 ? OOS_NAME_SURE : OOS_NAME_PATHLESS;
    if (oos_secret_word_is(last, "sig") && s.count == 1) return OOS_NAME_RANDOM;
    if (is_short_key(name)) return s.count > 1 && s.upper ? OOS_NAME_PATHLESS : OOS_NAME_RANDOM;
    if (oos_secret_word_is(last, "pass")) return pass_kind(&s);
    if (oos_secret_word_is(last, "bearer")) return OOS_NAME_WEAK;
    return oos_secret_word_is(last, "auth") ? OOS_NAME_RANDOM : OOS_NAME_PLAIN;
}

bool oos_secret_name(oos_view name)
{
    return oos_secret_kind(name) != OOS_NAME_PLAIN;
}

oos_name_kind oos_secret_parameter_kind(oos_view name)
{
    static const char *const words[] = {"key",  "sig", "signature",  "auth", "token",
                                        "code", "sas", "credential", "pass", NULL};
    segments const s = split(name);
    if (s.count && oos_secret_word_among(s.list[s.count - 1], words)) return OOS_NAME_SURE;
    return oos_secret_kind(name);
}

/* ---- values ---- */

/* `os.environ["X"]`, `self.token`, `config.get("x")`: code that fetches it. */
static bool is_code(oos_view value)
{
    static const char *const owners[] = {"self.",  "args.",   "cfg.",        "config.", "settings.",
                                         "os.",    "ctx.",    "options.",    "getpass", "getenv",
                                         "input(", "environ", "process.env", NULL};
    for (size_t i = 0; owners[i]; i++)
        if (oos_view_starts(value, owners[i])) return true;
    return false;
}

bool oos_secret_is_reference(oos_view value)
{
    if (value.len == 0) return true;
    char const c = value.ptr[0], next = value.len > 1 ? value.ptr[1] : '\0';
    if (c == '$' && (next == '{' || next == '(')) return true;
    if (c == '$') {
        size_t i = 1;
        while (i < value.len && (oos_is_alnum(value.ptr[i]) || value.ptr[i] == '_')) i++;
        return i == value.len && i > 1 && !oos_is_digit(next);
    }
    if (c == '<') return memchr(value.ptr, '>', value.len) || value.len == 1 || oos_is_alpha(next);
    return (c == '{' && next == '{') || (c == '%' && value.len <= 3) || is_code(value) ||
           (oos_view_starts(value, OOS_HIDDEN) && (value.len == 3 || !oos_is_alnum(value.ptr[3])));
}

bool oos_secret_is_stop_word(oos_view value)
{
    static const char *const words[] = {
        "none",  "null",      "true",  "false",  "yes",      "no",        "is",      "was",      "not",
        "are",   "and",       "or",    "if",     "for",      "to",        "in",      "on",       "from",
        "with",  "must",      "may",   "should", "expected", "required",  "missing", "invalid",  "unset",
        "nil",   "undefined", "empty", "str",    "string",   "the",       "has",     "can",      "cannot",
        "could", "of",        "by",    "as",     "auto",     "optional",  "default", "redacted", "bearer",
        "will",  "when",      "flag",  "option", "argument", "parameter", "field",   "header",   NULL};
    return oos_secret_word_among(value, words);
}

static bool is_number(oos_view value)
{
    size_t i = 0;
    while (i < value.len && (oos_is_digit(value.ptr[i]) || oos_secret_in_set(value.ptr[i], ".,+-_"))) i++;
    return i == value.len || (i > 0 && value.len - i <= 2); /* 8192, 1.5k, 20%, 0x is not */
}

bool oos_secret_looks_random(oos_view value, size_t least)
{
    bool digit = false, letter = false;
    for (size_t i = 0; i < value.len; i++) {
        digit |= oos_is_digit(value.ptr[i]);
        letter |= oos_is_alpha(value.ptr[i]);
    }
    return value.len >= least && digit && letter;
}

bool oos_secret_has_drawn_part(oos_view word, const char *marks)
{
    for (size_t i = 0, from = 0; i <= word.len; i++) {
        if (i < word.len && !oos_secret_in_set(word.ptr[i], marks)) continue;
        if (oos_secret_looks_random(oos_secret_between(word, from, i), 12)) return true;
        from = i + 1;
    }
    return false;
}

bool oos_secret_is_opaque(oos_view value)
{
    bool capital = false, small = false, hex = true;
    for (size_t i = 0; i < value.len; i++) {
        char const c = value.ptr[i];
        if (!oos_is_alnum(c) && c != '_') return false;
        capital |= c >= 'A' && c <= 'Z';
        small |= c >= 'a' && c <= 'z';
        hex &= oos_is_digit(c) || (c >= 'a' && c <= 'f');
    }
    return oos_secret_looks_random(value, 16) && ((capital && small) || (hex && value.len >= 32));
}

bool oos_secret_is_variable(oos_view name)
{
    return split(name).upper;
}

oos_name_kind oos_secret_foreign_kind(oos_view text, size_t at, size_t *ret_end)
{
    static const struct {
        const char *name;
        oos_name_kind kind;
    } names[] = {{"密码", OOS_NAME_SURE},       {"密碼", OOS_NAME_SURE},      {"口令", OOS_NAME_SURE},
                 {"密钥", OOS_NAME_LONG},       {"密鑰", OOS_NAME_LONG},      {"金鑰", OOS_NAME_LONG},
                 {"令牌", OOS_NAME_NUMBERLESS}, {"パスワード", OOS_NAME_SURE}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (!oos_secret_starts_at(text, at, names[i].name)) continue;
        *ret_end = at + strlen(names[i].name);
        return names[i].kind;
    }
    return OOS_NAME_PLAIN;
}

bool oos_secret_value_counts(oos_name_kind kind, oos_view value, bool quoted)
{
    if (oos_secret_is_reference(value) || (!quoted && oos_secret_is_stop_word(value))) return false;
    if (quoted && (oos_secret_word_is(value, "none") || oos_secret_word_is(value, "null"))) return false;
    bool const number = is_number(value), home = oos_view_starts(value, "~/") || oos_view_starts(value, "./");
    if (home && kind != OOS_NAME_SURE) return false;
    switch (kind) {
    case OOS_NAME_PLAIN: return false;
    case OOS_NAME_RANDOM:
        return oos_secret_looks_random(value, 12) && !oos_secret_in_set(value.ptr[0], "/.~");
    case OOS_NAME_WEAK: return oos_secret_looks_random(value, 8) || (quoted && value.len >= 8 && !number);
    case OOS_NAME_NUMBERLESS: return !number;
    case OOS_NAME_PATHLESS: return (!number || value.len >= 8) && value.ptr[0] != '/';
    case OOS_NAME_LONG: return !number || value.len >= 8;
    case OOS_NAME_SURE: return true;
    }
    return false;
}
