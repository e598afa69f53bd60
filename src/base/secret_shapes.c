/* Secrets by their shape or place: prefixes of tokens, JSON web tokens, private keys, addresses that let their bearer in. */
#include "base/secret_parts.h"
#include "base/check.h"

enum {
    SHAPE_LOOK = 64, /* bytes behind a prefix that decide */
    CODED_DEPTH = 2,
    CODED_LEAST = 16,
    CUT_LEAST = 6
};

/* What must be among those bytes, as some prefixes are words. */
typedef enum need {
    ANY,
    MIXED,  /* a digit or a capital */
    STRONG, /* a digit, a capital and a small letter */
    DRAWN,  /* twelve letters and digits without a dash between */
    HEX     /* nothing but hexadecimal digits and `more`, and no more than `least` */
} need;

typedef struct shape {
    const char *prefix;
    const char *more; /* bytes beside letters and digits */
    unsigned least;   /* bytes behind the prefix */
    need need;
    unsigned whole; /* bytes behind the prefix that there always are; 0: it varies */
} shape;

/* clang-format off */
static const shape shapes[] = {
    {"hf_oauth_", "", 16, ANY, 0},     {"hf_jwt_", "-_.", 16, ANY, 0},    {"hf_", "", 16, ANY, 34},
    {"api_org_", "", 16, ANY, 34},     {"sk-", "-_", 16, DRAWN, 0},       {"sk_live_", "", 12, ANY, 0},
    {"sk_test_", "", 12, ANY, 0},      {"rk_live_", "", 12, ANY, 0},      {"rk_test_", "", 12, ANY, 0},
    {"ghp_", "", 16, ANY, 36},         {"gho_", "", 16, ANY, 36},         {"ghu_", "", 16, ANY, 36},
    {"ghs_", "", 16, ANY, 36},         {"ghr_", "", 16, ANY, 36},         {"github_pat_", "_", 16, ANY, 0},
    {"glpat-", "-_.", 16, ANY, 0},     {"gldt-", "-_", 16, ANY, 0},       {"glcbt-", "-_", 16, ANY, 0},
    {"glrt-", "-_.", 16, ANY, 0},      {"glptt-", "-_", 16, ANY, 0},      {"glft-", "-_", 16, ANY, 0},
    {"gloas-", "-_", 16, ANY, 0},      {"glagent-", "-_", 16, ANY, 0},    {"glsoat-", "-_", 16, ANY, 0},
    {"AKIA", "", 16, ANY, 0},          {"ASIA", "", 16, ANY, 0},          {"LTAI", "", 16, STRONG, 0},
    {"xoxb-", "-", 10, ANY, 0},        {"xoxp-", "-", 10, ANY, 0},        {"xoxa-", "-", 10, ANY, 0},
    {"xoxr-", "-", 10, ANY, 0},        {"xoxs-", "-", 10, ANY, 0},        {"xoxe-", "-", 10, ANY, 0},
    {"xapp-", "-", 10, ANY, 0},        {"nvapi-", "-_", 16, ANY, 0},      {"AIza", "-_", 30, ANY, 0},
    {"ya29.", "-_.", 16, ANY, 0},      {"GOCSPX-", "-_", 16, ANY, 0},     {"pypi-", "-_", 32, MIXED, 0},
    {"npm_", "", 30, ANY, 36},         {"dckr_pat_", "-_", 16, ANY, 0},   {"dckr_oat_", "-_", 16, ANY, 0},
    {"dop_v1_", "", 32, ANY, 0},       {"doo_v1_", "", 32, ANY, 0},       {"dapi", "-", 32, HEX, 0},
    {"r8_", "", 30, ANY, 0},           {"gsk_", "", 20, ANY, 0},          {"tgp_v1_", "-_", 16, ANY, 0},
    {"SG.", "-_.", 32, MIXED, 0},      {"hvs.", "-_", 20, MIXED, 0},      {"hvb.", "-_", 20, MIXED, 0},
    {"hvr.", "-_", 20, MIXED, 0},      {"xai-", "", 20, MIXED, 0},        {"pplx-", "", 20, MIXED, 0},
    {"AGE-SECRET-KEY-", "", 20, ANY, 0}, {"ms-", "-", 36, HEX, 0},        {"wandb_v1_", "_", 16, ANY, 0},
    {"lsv2_", "_", 16, ANY, 0},        {"csk-", "", 20, MIXED, 0},        {"fw_", "", 20, STRONG, 0},
    {"whsec_", "+/=", 16, MIXED, 0},   {"SK", "", 32, HEX, 0},            {"lin_api_", "", 20, ANY, 0},
    {"fm2_", "+/=_-", 30, MIXED, 0},   {"fm1_", "+/=_-", 30, MIXED, 0},   {"fo1_", "-_", 30, MIXED, 0},
    {"glsa_", "_", 20, ANY, 0},        {"glc_", "+/=", 30, ANY, 0},       {"shpat_", "", 20, ANY, 0},
    {"sntrys_", "+/=_", 20, ANY, 0},   {"figd_", "-_", 20, ANY, 0},       {"ATATT3", "-_=", 30, ANY, 0},
    {"NRAK-", "", 20, ANY, 0},         {"PMAK-", "-", 20, ANY, 0},        {"ntn_", "", 30, STRONG, 0},
    {"tskey-", "-", 16, ANY, 0},       {"tvly-", "-", 20, ANY, 0},
    {"pcsk_", "_", 20, ANY, 0},        {"xkeysib-", "-", 20, ANY, 0},     {"sbp_", "", 30, ANY, 0},
    {"e2b_", "", 20, ANY, 0},
};
/* clang-format on */

bool oos_secret_starts_at(oos_view text, size_t at, const char *words)
{
    oos_assert(at <= text.len);
    size_t const len = strlen(words);
    return text.len - at >= len && memcmp(text.ptr + at, words, len) == 0;
}

static bool in_run(char c, const char *more)
{
    return oos_is_alnum(c) || oos_secret_in_set(c, more);
}

static size_t run_end(oos_view text, size_t at, const char *more)
{
    while (at < text.len && in_run(text.ptr[at], more)) at++;
    return at;
}

/* A look at the first bytes only: what begins the same way at every third byte stays cheap. */
static bool is_run(oos_view text, size_t at, const shape *s)
{
    bool digit = false, capital = false, small = false, hex = true;
    size_t len = 0;
    for (; len < SHAPE_LOOK && at + len < text.len && in_run(text.ptr[at + len], s->more); len++) {
        char const c = text.ptr[at + len];
        digit |= oos_is_digit(c);
        capital |= c >= 'A' && c <= 'Z';
        small |= c >= 'a' && c <= 'z';
        hex &= oos_is_digit(c) || (c >= 'a' && c <= 'f') || c == '-';
    }
    if (len < s->least) return false;
    switch (s->need) {
    case ANY: return true;
    case MIXED: return digit || capital;
    case STRONG: return digit && capital && small;
    case DRAWN: return digit && oos_secret_has_drawn_part(oos_view_slice(text, at, len), "-");
    case HEX: return hex && (len == s->least || text.ptr[at + s->least] == '-');
    }
    return false;
}

static size_t run_take(oos_secret_scan *scan, size_t from, const char *more)
{
    size_t const to = run_end(scan->text, from, more);
    oos_secret_mark(scan, from, to);
    if (to == scan->text.len && !scan->whole) {
        scan->state->open.kind = OOS_OPEN_RUN;
        scan->state->open.more = more;
    }
    return to;
}

/* The second half of a pair of Amazon's stands behind the first: `AKIA...:40 bytes`. */
static size_t pair_take(oos_secret_scan *scan, size_t at)
{
    size_t from = at;
    while (from < scan->text.len && from - at < 4 && oos_secret_in_set(scan->text.ptr[from], ":,;| \t\"'="))
        from++;
    size_t const to = run_end(oos_view_slice(scan->text, 0, from + 41), from, "+/");
    if (from == at || to - from != 40) return at;
    oos_secret_mark(scan, from, to);
    return to;
}

static size_t shape_take(oos_secret_scan *scan, size_t from, const shape *s)
{
    size_t const to = run_take(scan, from, s->more);
    if (s->whole && scan->whole && to == scan->text.len) oos_secret_note_cut(scan, from - strlen(s->prefix));
    return strcmp(s->prefix + 1, "KIA") == 0 || strcmp(s->prefix + 1, "SIA") == 0 ? pair_take(scan, to) : to;
}

/* Three parts of base64 with points between, the first a JSON object. */
static size_t jwt_at(oos_secret_scan *scan, size_t at)
{
    if (!oos_secret_starts_at(scan->text, at, "eyJ")) return 0;
    if (scan->run_end <= at) scan->run_end = run_end(scan->text, at, "-_");
    size_t const first = scan->run_end;
    if (first - at < 10) return 0;
    bool const cut = first == scan->text.len && !scan->whole && first - at > OOS_SECRET_LOOK;
    if (!cut && (first == scan->text.len || scan->text.ptr[first] != '.')) return 0;
    if (!cut && run_end(oos_view_slice(scan->text, 0, first + 5), first + 1, "-_.=") < first + 5) return 0;
    return run_take(scan, at + 3, "-_.=");
}

/* Where `-----END ` or `---- END ` stands; SIZE_MAX: nowhere. */
size_t oos_secret_key_end(oos_view text, size_t from)
{
    while (from < text.len) {
        const char *found = memmem(text.ptr + from, text.len - from, "END ", 4);
        if (!found) return SIZE_MAX;
        size_t at = (size_t)(found - text.ptr);
        from = at + 4;
        if (at > 0 && text.ptr[at - 1] == ' ') at--;
        size_t dashes = 0;
        while (dashes < 5 && dashes < at && text.ptr[at - dashes - 1] == '-') dashes++;
        if (dashes >= 4) return at - dashes;
    }
    return SIZE_MAX;
}

/* A private key, from behind its first line to its last, which may be lines away. */
static size_t key_at(oos_secret_scan *scan, size_t at)
{
    static const char *const ends[] = {"PRIVATE KEY-----", "PRIVATE KEY BLOCK-----", "PRIVATE KEY ----",
                                       NULL};
    if (!oos_secret_starts_at(scan->text, at, "-----BEGIN ") &&
        !oos_secret_starts_at(scan->text, at, "---- BEGIN "))
        return 0;
    oos_view const rest = oos_view_slice(scan->text, at, 100);
    for (size_t i = 0; ends[i]; i++) {
        const char *head = memmem(rest.ptr, rest.len, ends[i], strlen(ends[i]));
        if (!head) continue;
        size_t const from = at + (size_t)(head - rest.ptr) + strlen(ends[i]);
        size_t const end = oos_secret_key_end(scan->text, from), to = end == SIZE_MAX ? scan->text.len
                                                                      : end > from    ? end
                                                                                      : from;
        oos_secret_mark(scan, from, to);
        scan->state->key.open = end == SIZE_MAX;
        scan->state->key.quiet = 0;
        if (end == SIZE_MAX && !scan->whole) scan->state->open.kind = OOS_OPEN_LINE;
        return to;
    }
    return 0;
}

static size_t hook_at(oos_secret_scan *scan, size_t at)
{
    static const char *const places[] = {
        "hooks.slack.com/services/",     "discord.com/api/webhooks/",   "discordapp.com/api/webhooks/",
        "webhook.office.com/webhookb2/", "outlook.office.com/webhook/", "hooks.zapier.com/hooks/catch/",
        "open-apis/bot/v2/hook/",        "api.telegram.org/bot",        NULL};
    for (size_t i = 0; places[i]; i++) {
        if (places[i][0] != scan->text.ptr[at]) continue;
        size_t const from = at + strlen(places[i]);
        if (oos_secret_starts_at(scan->text, at, places[i]) && from < scan->text.len &&
            in_run(scan->text.ptr[from], "/-_@"))
            return run_take(scan, from, places[i][0] == 'a' ? ":-_" : "/-_@");
    }
    return 0;
}

/* ---- base64 ---- */

/* The six bits of a letter, in either alphabet; 64: it has none. */
static unsigned six_bits(char c)
{
    return c >= 'A' && c <= 'Z'   ? (unsigned)(c - 'A')
           : c >= 'a' && c <= 'z' ? (unsigned)(c - 'a') + 26
           : oos_is_digit(c)      ? (unsigned)(c - '0') + 52
           : c == '+' || c == '-' ? 62
           : c == '/' || c == '_' ? 63
                                  : 64;
}

bool oos_secret_decode(oos_view coded, oos_text *to)
{
    unsigned bits = 0, count = 0;
    for (size_t i = 0; i < coded.len && coded.ptr[i] != '='; i++) {
        unsigned const six = six_bits(coded.ptr[i]);
        if (six == 64) return false;
        bits = bits << 6 | six;
        count += 6;
        if (count < 8) continue;
        count -= 8;
        unsigned const code = bits >> count & 0xff;
        char const byte = (char)code;
        if ((code < 0x20 || code >= 0x7f) && !oos_secret_in_set(byte, "\n\r\t")) return false;
        if (to) oos_text_add(to, (oos_view){&byte, 1});
    }
    return true;
}

/* Text in base64 with a secret in it. */
static size_t coded_at(oos_secret_scan *scan, size_t at, char before)
{
    oos_view const text = scan->text;
    if (scan->state->depth >= CODED_DEPTH || oos_secret_in_set(before, "+/-_.") || scan->coded_end > at ||
        !oos_secret_decode(oos_view_slice(text, at, 8), NULL))
        return 0;
    size_t const end = scan->coded_end = run_end(text, at, "+/=-_");
    oos_text plain = {0};
    bool const found = end - at >= CODED_LEAST &&
                       oos_secret_decode(oos_secret_between(text, at, end), &plain) && !plain.failed &&
                       oos_secret_inside_deep((oos_view){plain.ptr, plain.len}, scan->state->depth + 1);
    oos_text_free(&plain);
    if (!found) return 0;
    size_t const to = run_take(scan, at, "+/=-_");
    if (to == text.len && scan->whole) oos_secret_note_cut(scan, at);
    return to;
}

static size_t prefix_at(oos_secret_scan *scan, size_t at)
{
    static const char first_letters[] = "hasrgAxnydpteSLmwlcfGFNPTjZQbo-";
    if (!oos_secret_in_set(scan->text.ptr[at], first_letters)) return 0;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        const shape *s = &shapes[i];
        if (s->prefix[0] != scan->text.ptr[at] || !oos_secret_starts_at(scan->text, at, s->prefix)) continue;
        size_t const from = at + strlen(s->prefix);
        if (is_run(scan->text, from, s)) return shape_take(scan, from, s);
    }
    size_t to = jwt_at(scan, at);
    if (!to) to = key_at(scan, at);
    return to ? to : hook_at(scan, at);
}

size_t oos_secret_shape_at(oos_secret_scan *scan, size_t at, char before)
{
    size_t const to = prefix_at(scan, at);
    return to ? to : coded_at(scan, at, before);
}

/* ---- cut by a terminal ---- */

/* Bytes of a secret beside letters and digits, as bits; one more for all others. */
static const char known_marks[] = "-_.+/=:~";
enum { OTHER_MARK = 1 << (sizeof known_marks - 1) };

static unsigned marks_of(oos_view text)
{
    unsigned marks = 0;
    for (size_t i = 0; i < text.len; i++) {
        if (oos_is_alnum(text.ptr[i])) continue;
        const char *mark = text.ptr[i] ? strchr(known_marks, text.ptr[i]) : NULL;
        marks |= mark ? 1u << (mark - known_marks) : (unsigned)OTHER_MARK;
    }
    return marks;
}

void oos_secret_note_cut(oos_secret_scan *scan, size_t from)
{
    oos_view const value = oos_secret_between(scan->text, from, scan->text.len);
    if (value.len < CUT_LEAST) return;
    scan->state->cut.width = scan->text.len;
    scan->state->cut.marks = marks_of(value);
    scan->state->cut.missing = 0;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        size_t const prefix = strlen(shapes[i].prefix), len = value.len - prefix;
        if (!shapes[i].whole || !oos_view_starts(value, shapes[i].prefix)) continue;
        if (len < shapes[i].whole) scan->state->cut.missing = shapes[i].whole - (unsigned)len;
        if (len == shapes[i].whole) scan->state->cut.width = 0;
        return;
    }
}

/* Letters and digits mixed, or capitals and small letters in no order of a word. */
static bool looks_drawn(oos_view text, size_t least)
{
    size_t turns = 0;
    for (size_t i = 1; i < text.len && i < OOS_SECRET_LOOK; i++)
        turns += oos_is_alpha(text.ptr[i]) && oos_is_alpha(text.ptr[i - 1]) &&
                 (text.ptr[i] < 'a') != (text.ptr[i - 1] < 'a');
    return turns >= 4 || oos_secret_looks_random(text, least);
}

/* Does the line look like the rest of it: one word, no longer than the line before, of the same bytes, and drawn? */
static bool is_rest(oos_view line, const oos_secret_state *state)
{
    if (line.len < CUT_LEAST || line.len > state->cut.width || !looks_drawn(line, CUT_LEAST)) return false;
    unsigned const marks = marks_of(line);
    return !(marks & ~state->cut.marks) ||
           (marks < OTHER_MARK && oos_secret_has_drawn_part(line, known_marks));
}

size_t oos_secret_cut_rest(oos_secret_scan *scan)
{
    oos_secret_state *state = scan->state;
    size_t const missing = state->cut.missing, width = state->cut.width;
    size_t const len = run_end(oos_view_slice(scan->text, 0, missing + 1), 0, "");
    size_t rest = 0;
    if (missing && len == missing && looks_drawn(oos_view_slice(scan->text, 0, len), 2))
        rest = missing;
    else if (!missing && scan->whole && is_rest(scan->text, state))
        rest = scan->text.len;
    memset(&state->cut, 0, sizeof state->cut);
    oos_secret_mark(scan, 0, rest);
    if (rest == width) oos_secret_note_cut(scan, 0);
    return rest;
}

/* `tokenhf_...`: only where no word could go on like that. */
size_t oos_secret_glued_at(oos_secret_scan *scan, size_t at)
{
    static const shape glued[] = {{"hf_", "", 30, STRONG, 0},     {"ghp_", "", 30, STRONG, 0},
                                  {"ghs_", "", 30, STRONG, 0},    {"npm_", "", 30, STRONG, 0},
                                  {"gsk_", "", 30, STRONG, 0},    {"glpat-", "-_", 20, STRONG, 0},
                                  {"nvapi-", "-_", 40, STRONG, 0}};
    for (size_t i = 0; i < sizeof glued / sizeof *glued; i++) {
        size_t const len = strlen(glued[i].prefix);
        if (at + 1 < len || memcmp(scan->text.ptr + at + 1 - len, glued[i].prefix, len) != 0) continue;
        if (is_run(scan->text, at + 1, &glued[i])) return run_take(scan, at + 1, glued[i].more);
    }
    return 0;
}

/* ---- addresses ---- */

/* `host`, `host:8000`, and nothing behind it that a host has not. */
static bool is_host(oos_view text, size_t at, bool dotted)
{
    size_t i = at, dots = 0;
    for (; i < text.len && (oos_is_alnum(text.ptr[i]) || oos_secret_in_set(text.ptr[i], ".-_")); i++)
        dots += text.ptr[i] == '.';
    if (i == at || (dotted && !dots && !oos_secret_starts_at(text, at, "localhost"))) return false;
    if (i < text.len && text.ptr[i] == ':')
        for (i++; i < text.len && oos_is_digit(text.ptr[i]);) i++;
    return i == text.len || oos_secret_in_set(text.ptr[i], "/?#,;) \t\r");
}

/* Of several `@` the one before the host: a password may hold others. */
static size_t at_sign(oos_view word, size_t first)
{
    size_t last = first;
    for (size_t i = first; i < word.len; i++) {
        if (word.ptr[i] != '@') continue;
        if (is_host(word, i + 1, true)) return i;
        last = i;
    }
    return is_host(word, last + 1, false) ? last : first;
}

/* `://user:password@`, `://token@`. A short name alone is no secret: `ssh://git@host`. */
size_t oos_secret_login_at(oos_secret_scan *scan, size_t at)
{
    if (!oos_secret_starts_at(scan->text, at, "://")) return 0;
    size_t const from = at + 3;
    oos_view const rest = oos_view_slice(scan->text, 0, from + OOS_SECRET_LOOK);
    size_t end = from, mark = 0, colon = 0;
    for (; end < rest.len && rest.ptr[end] && !oos_secret_in_set(rest.ptr[end], "/?# \t\r\n\"'`<>"); end++) {
        if (rest.ptr[end] == '@' && !mark) mark = end;
        if (rest.ptr[end] == ':' && !colon) colon = end;
    }
    if (!mark || mark == from) return 0;
    bool const password = colon && colon < mark;
    if (!password && mark - from < 16) return 0;
    size_t const start = password ? colon + 1 : from;
    if (oos_secret_is_reference(oos_secret_between(scan->text, start, mark))) return 0;
    size_t word = end;
    while (password && word < rest.len && !oos_secret_in_set(rest.ptr[word], " \t\r\n\"'`<>")) word++;
    if (password) mark = at_sign(oos_view_slice(rest, 0, word), mark);
    if (mark <= start || oos_secret_is_reference(oos_secret_between(scan->text, start, mark))) return 0;
    oos_secret_mark(scan, start, mark);
    return mark;
}

/* Telegram: the number of a bot, and 35 bytes that begin with two capitals A. */
size_t oos_secret_bot_at(oos_secret_scan *scan, size_t at)
{
    static const shape token = {"", "-_", 33, MIXED, 0};
    if (!oos_secret_starts_at(scan->text, at, ":AA")) return 0;
    size_t digits = 0;
    while (digits < 10 && digits < at && oos_is_digit(scan->text.ptr[at - digits - 1])) digits++;
    if (digits < 8 || !is_run(scan->text, at + 1, &token)) return 0;
    return run_take(scan, at + 1, token.more);
}
