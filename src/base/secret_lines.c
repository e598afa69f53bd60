/* Secrets that take several lines: values below their names, `name:` and `value:` of Kubernetes, its Secrets, private keys. */
#include "base/secret_parts.h"

enum { KEY_QUIET_LINES = 8, PAIR_LINES = 3 };

/* `  - "key": value`: the line's own field. */
typedef struct field {
    bool there, item; /* item: behind a dash */
    size_t column;    /* of the key */
    oos_view key;
    size_t value; /* where it begins, blanks skipped */
    char sign;
} field;

static size_t skip_dashes(oos_view text, size_t at)
{
    while (at + 1 < text.len && text.ptr[at] == '-' && (text.ptr[at + 1] == ' ' || text.ptr[at + 1] == '\t'))
        at = oos_secret_skip_blanks(text, at + 1);
    return at;
}

static field field_of(oos_view text)
{
    field f = {0};
    size_t const first = oos_secret_skip_blanks(text, 0);
    size_t at = skip_dashes(text, first);
    f.item = at > first;
    f.column = at;
    if (at < text.len && text.ptr[at] == '{') at = oos_secret_skip_blanks(text, at + 1);
    bool const quoted = at < text.len && oos_secret_in_set(text.ptr[at], "\"'");
    at += quoted;
    size_t end = at;
    while (end < text.len && end - at <= OOS_SECRET_NAME_MAX && oos_secret_name_byte(text.ptr[end])) end++;
    f.key = oos_secret_between(text, at, end);
    end += quoted && end < text.len && oos_secret_in_set(text.ptr[end], "\"'");
    end = oos_secret_skip_blanks(text, end);
    if (!f.key.len || end >= text.len || (text.ptr[end] != ':' && text.ptr[end] != '=')) return f;
    f.there = true;
    f.sign = text.ptr[end];
    f.value = oos_secret_skip_blanks(text, end + 1);
    return f;
}

/* The words of a field's value, without quotation marks. */
static oos_view plain_value(oos_view text, const field *f)
{
    size_t from = f->value, end = from;
    bool const quoted = from < text.len && oos_secret_in_set(text.ptr[from], "\"'");
    from += quoted;
    end = from;
    while (end < text.len && end - from <= OOS_SECRET_NAME_MAX && oos_secret_name_byte(text.ptr[end])) end++;
    return oos_secret_between(text, from, end);
}

static bool is_named(const field *f, const char *one, const char *other)
{
    return f->there && (oos_secret_word_is(f->key, one) || oos_secret_word_is(f->key, other));
}

bool oos_secret_is_key(oos_view text, size_t from, size_t *ret_column)
{
    field const f = field_of(text);
    *ret_column = f.column;
    return f.there && f.key.ptr == text.ptr + from;
}

bool oos_secret_is_block_mark(oos_view text, size_t at)
{
    if (at >= text.len || (text.ptr[at] != '|' && text.ptr[at] != '>')) return false;
    at++;
    while (at < text.len && (oos_is_digit(text.ptr[at]) || text.ptr[at] == '-' || text.ptr[at] == '+')) at++;
    at = oos_secret_skip_blanks(text, at);
    return at == text.len || text.ptr[at] == '#';
}

bool oos_secret_is_value_line(oos_view line)
{
    field const f = field_of(line);
    return is_named(&f, "value", "default") && f.value < line.len;
}

oos_name_kind oos_secret_named_by(oos_view line)
{
    field const f = field_of(line);
    if (!is_named(&f, "name", "key")) return OOS_NAME_PLAIN;
    oos_name_kind const kind = oos_secret_kind(plain_value(line, &f));
    return kind == OOS_NAME_WEAK ? OOS_NAME_NUMBERLESS : kind; /* no prose */
}

/* ---- marking ---- */

static size_t content_end(oos_view text)
{
    size_t end = text.len;
    while (end > 0 && oos_is_space(text.ptr[end - 1])) end--;
    return end;
}

/* From `from` on, to the end of the line; quotation marks and a comma behind them stay. */
static void value_hide(oos_secret_scan *scan, size_t from, oos_name_kind kind)
{
    oos_view const text = scan->text;
    if (from >= text.len) return;
    oos_secret_value value = oos_secret_value_at(scan, from, false);
    if (!value.quoted && !value.longer) { /* a plain scalar may hold blanks; a comment follows ` #` */
        size_t end = from;
        while (end < text.len && !(text.ptr[end] == '#' && end > from && text.ptr[end - 1] == ' ')) end++;
        end = content_end(oos_view_slice(text, 0, end));
        while (end > from && oos_secret_in_set(text.ptr[end - 1], ",}")) end--;
        value.from = from;
        value.to = end;
        value.closed = true;
    }
    if (value.longer ||
        oos_secret_value_counts(kind, oos_secret_between(text, value.from, value.to), value.quoted))
        oos_secret_take(scan, value);
}

static void content_hide(oos_secret_scan *scan)
{
    oos_secret_mark(scan, oos_secret_skip_blanks(scan->text, 0), content_end(scan->text));
}

/* Words of letters, digits and few signs, and no field of their own; ` #` begins a comment. */
size_t oos_secret_phrase_end(oos_view text, size_t at)
{
    size_t end = at;
    while (at < text.len) {
        size_t const word = oos_secret_skip_blanks(text, at);
        size_t stop = word;
        while (stop < text.len && (oos_is_alnum(text.ptr[stop]) || (unsigned char)text.ptr[stop] >= 0x80 ||
                                   oos_secret_in_set(text.ptr[stop], "'_-!?")))
            stop++;
        if (stop == word || (stop < text.len && text.ptr[stop] != ' ' && text.ptr[stop] != '\t')) return end;
        end = at = stop;
    }
    return end;
}

/* ---- private keys ---- */

static bool is_base64(char c)
{
    return oos_is_alnum(c) || c == '+' || c == '/' || c == '=';
}

/* Nothing but base64, or a header such as `DEK-Info: ...`. */
static bool is_key_line(oos_view text, size_t from, size_t end)
{
    static const char *const headers[] = {
        "Proc-Type:", "DEK-Info:", "Version:", "Comment:", "Charset:", NULL};
    for (size_t i = 0; headers[i]; i++)
        if (oos_secret_starts_at(text, from, headers[i])) return true;
    while (from < end && oos_secret_in_set(text.ptr[from], "|>#+\"'")) from++;
    while (from < end && oos_secret_in_set(text.ptr[end - 1], "\"'\\,")) end--;
    for (; from < end; from++)
        if (!is_base64(text.ptr[from])) return false;
    return true;
}

/* Other lines may stand between those of a key: they are shown, and after some of them the key is over. */
static size_t key_line(oos_secret_scan *scan)
{
    oos_view const text = scan->text;
    size_t const from = oos_secret_skip_blanks(text, 0), end = content_end(text),
                 last = oos_secret_key_end(text, 0);
    if (last != SIZE_MAX) {
        scan->state->key.open = false;
        size_t body = last;
        while (body > 0 && is_base64(text.ptr[body - 1])) body--;
        oos_secret_mark(scan, body, last);
        return last;
    }
    if (is_key_line(text, from, end)) {
        content_hide(scan);
        scan->state->key.quiet = 0;
        return SIZE_MAX;
    }
    size_t word = end;
    while (word > from && is_base64(text.ptr[word - 1])) word--;
    bool const part = end - word >= 16 || (end - word >= 4 && text.ptr[end - 1] == '=');
    if (part) oos_secret_mark(scan, word, end);
    scan->state->key.quiet = part ? 0 : scan->state->key.quiet + 1;
    if (scan->state->key.quiet > KEY_QUIET_LINES) scan->state->key.open = false;
    return 0;
}

/* ---- values on the line below ---- */

static size_t next_line(oos_secret_scan *scan)
{
    oos_secret_state *state = scan->state;
    oos_view const text = scan->text;
    int const form = (int)state->next.form;
    size_t at = oos_secret_skip_blanks(text, 0);
    state->next.form = OOS_NEXT_NONE;
    if (at == text.len) return 0;
    bool const item = skip_dashes(text, at) > at, quoted = oos_secret_in_set(text.ptr[at], "\"'");
    if (form == OOS_NEXT_ITEM) {
        if (!item) return 0;
        at = skip_dashes(text, at);
    }
    if (form == OOS_NEXT_QUOTED && !quoted) return 0;
    oos_secret_value const value = oos_secret_value_at(scan, at, false);
    size_t const end = content_end(text);
    if (form == OOS_NEXT_LONE && value.rest < end) return 0;
    oos_view const words = oos_secret_between(text, value.from, value.to);
    if (words.len && words.ptr[0] == '-') return 0;
    if (!value.longer && !oos_secret_value_counts(state->next.kind, words, value.quoted)) return 0;
    size_t const to = oos_secret_take(scan, value);
    if (!state->next.more) return to;
    if (form == OOS_NEXT_CONTINUED) return oos_secret_more(scan, to);
    state->next.form = (__typeof__(state->next.form))form;
    return to;
}

static size_t block_line(oos_secret_scan *scan)
{
    oos_secret_state *state = scan->state;
    oos_view const text = scan->text;
    size_t const indent = oos_secret_skip_blanks(text, 0);
    if (indent == content_end(text) || indent == text.len) return 0;
    if (indent <= state->block.indent) {
        state->block.form = OOS_BLOCK_NONE;
        return 0;
    }
    if (state->block.form == OOS_BLOCK_SCALAR) {
        content_hide(scan);
        return SIZE_MAX;
    }
    size_t const at = skip_dashes(text, indent);
    field const f = field_of(text);
    bool const colon = f.there && f.sign == ':' && (f.value == text.len || text.ptr[f.value - 1] == ' ');
    if (colon || oos_secret_in_set(text.ptr[at], "{[")) { /* a mapping: its own names tell */
        state->block.form = OOS_BLOCK_NONE;
        return 0;
    }
    if (oos_secret_phrase_end(text, at) < content_end(text) &&
        oos_secret_value_at(scan, at, false).rest < content_end(text)) {
        state->block.form = OOS_BLOCK_NONE; /* a line of a log, and no value */
        return 0;
    }
    value_hide(scan, at, state->block.kind);
    return SIZE_MAX;
}

static size_t pair_line(oos_secret_scan *scan)
{
    oos_secret_state *state = scan->state;
    oos_view const text = scan->text;
    field const f = field_of(text);
    if (is_named(&f, "value", "default") && (!f.item || state->pair.below)) {
        oos_name_kind const kind = state->pair.kind;
        state->pair.kind = OOS_NAME_PLAIN;
        state->pair.below = false;
        if (oos_secret_is_block_mark(text, f.value) || f.value == text.len) {
            state->block.form = f.value == text.len ? OOS_BLOCK_BELOW : OOS_BLOCK_SCALAR;
            state->block.indent = f.column;
            state->block.kind = kind;
        } else
            value_hide(scan, f.value, kind);
        return SIZE_MAX;
    }
    if (f.item || --state->pair.lines == 0) state->pair.kind = OOS_NAME_PLAIN;
    return 0;
}

/* ---- Secrets of Kubernetes ---- */

/* Is it text in base64? `kubectl get -o yaml` prints `data` before `kind`, and ConfigMaps have data too. */
static bool holds_text(oos_view value)
{
    return value.len >= 8 && value.len % 4 == 0 &&
           oos_secret_decode(oos_view_slice(value, 0, OOS_SECRET_LOOK), NULL);
}

static size_t data_line(oos_secret_scan *scan)
{
    oos_secret_state *state = scan->state;
    oos_view const text = scan->text;
    field const f = field_of(text);
    size_t const indent = oos_secret_skip_blanks(text, 0);
    if (indent == text.len) return 0;
    if (indent <= state->document.indent) {
        state->document.in_data = false;
        return 0;
    }
    if (!f.there || f.value == text.len) return 0;
    if (oos_secret_is_block_mark(text, f.value)) {
        if (!state->document.sure) return 0;
        state->block.form = OOS_BLOCK_SCALAR;
        state->block.indent = f.column;
        return SIZE_MAX;
    }
    oos_secret_value const value = oos_secret_value_at(scan, f.value, false);
    oos_view const words = oos_secret_between(text, value.from, value.to);
    if (!state->document.sure && !(value.longer || holds_text(words))) return 0;
    value_hide(scan, f.value, OOS_NAME_SURE);
    return SIZE_MAX;
}

/* `{"kind":"Secret","data":{"a":"b"}}` in one line, in any order, quoted or not: where it ends. */
static size_t flow_hide(oos_secret_scan *scan, size_t at)
{
    oos_view const text = scan->text;
    for (bool value = false; at < text.len && text.ptr[at] != '}'; at++) {
        if (text.ptr[at] == ',') value = false;
        if (text.ptr[at] == ':' && !value) {
            value = true;
            oos_secret_value const v = oos_secret_value_at(scan, oos_secret_skip_blanks(text, at + 1), false);
            size_t const to = v.to > v.from || v.longer ? oos_secret_take(scan, v) : v.rest;
            at = to > at ? to - 1 : at;
        }
    }
    return at;
}

static size_t skip_marks(oos_view text, size_t at)
{
    while (at < text.len && oos_secret_in_set(text.ptr[at], "\\\"' \t:")) at++;
    return at;
}

static bool flow_is_secret(oos_view text)
{
    for (size_t at = 0; at + 10 < text.len;) {
        const char *found = memmem(text.ptr + at, text.len - at, "kind", 4);
        if (!found) return false;
        at = (size_t)(found - text.ptr) + 4;
        size_t const word = skip_marks(text, at);
        if (word > at && oos_secret_starts_at(text, word, "Secret") &&
            (word + 6 == text.len || !oos_secret_name_byte(text.ptr[word + 6])))
            return true;
    }
    return false;
}

static void flow_look(oos_secret_scan *scan)
{
    static const char *const maps[] = {"data", "stringData"};
    oos_view const text = scan->text;
    bool const known = scan->state->document.kind == OOS_KIND_SECRET;
    if (!memchr(text.ptr, '{', text.len) || (!known && !flow_is_secret(text))) return;
    for (size_t i = 0; i < 2; i++)
        for (size_t at = 0; at < text.len;) {
            const char *found = memmem(text.ptr + at, text.len - at, maps[i], strlen(maps[i]));
            if (!found) break;
            at = (size_t)(found - text.ptr) + strlen(maps[i]);
            size_t const open = skip_marks(text, at);
            if (open > at && open < text.len && text.ptr[open] == '{') at = flow_hide(scan, open + 1);
        }
}

static void document_look(oos_secret_scan *scan)
{
    oos_secret_state *state = scan->state;
    oos_view const text = scan->text;
    field const f = field_of(text);
    if (oos_view_starts(text, "---") && text.len == content_end(text) && text.len == 3) {
        memset(&state->document, 0, sizeof state->document);
        return;
    }
    if (!f.there || f.sign != ':') return;
    if (oos_view_is(f.key, "apiVersion")) {
        state->document.api = true;
        if (f.item || f.column == 0) state->document.kind = OOS_KIND_UNKNOWN;
    } else if (oos_view_is(f.key, "kind")) {
        bool const secret = oos_view_is(plain_value(text, &f), "Secret");
        state->document.kind = secret ? OOS_KIND_SECRET : OOS_KIND_OTHER;
    } else if (oos_view_is(f.key, "data") || oos_view_is(f.key, "stringData")) {
        bool const text_only = oos_view_is(f.key, "stringData"),
                   secret = state->document.kind == OOS_KIND_SECRET;
        bool const below =
            f.value == text.len || (text.ptr[f.value] == '{' && f.value + 1 == content_end(text));
        if (!below ||
            !(secret || text_only || (state->document.api && state->document.kind == OOS_KIND_UNKNOWN)))
            return;
        state->document.in_data = true;
        state->document.sure = secret || text_only;
        state->document.indent = f.column;
    }
}

/* ---- a line ---- */

size_t oos_secret_line_begin(oos_secret_scan *scan)
{
    oos_secret_state *state = scan->state;
    size_t from = oos_secret_open_rest(scan);
    if (from || state->before) return from;
    if (state->cut.width) from = oos_secret_cut_rest(scan);
    if (!from && state->key.ppk_lines) {
        state->key.ppk_lines--;
        content_hide(scan);
        return SIZE_MAX;
    }
    if (!from && state->key.open) from = key_line(scan);
    if (!from && state->block.form) from = block_line(scan);
    if (!from && state->next.form) from = next_line(scan);
    if (!from && state->pair.kind) from = pair_line(scan);
    if (!from && state->document.in_data) from = data_line(scan);
    return from;
}

static unsigned number_of(oos_view text)
{
    unsigned number = 0;
    for (size_t i = 0; i < text.len && i < 4 && oos_is_digit(text.ptr[i]); i++)
        number = number * 10 + (unsigned)(text.ptr[i] - '0');
    return number;
}

void oos_secret_line_end(oos_secret_scan *scan)
{
    oos_secret_state *state = scan->state;
    oos_view const text = scan->text;
    bool const continued = text.len && text.ptr[text.len - 1] == '\\';
    state->since_login = 0;
    if (!continued) state->programs = 0;
    if (state->netrc_lines) state->netrc_lines--;
    if (state->before) return;
    oos_name_kind const kind = oos_secret_named_by(text);
    if (kind) {
        state->pair.kind = kind;
        state->pair.lines = PAIR_LINES;
    }
    if (oos_view_starts(text, "Private-Lines: ")) {
        unsigned const lines = number_of(oos_view_slice(text, 15, 4));
        state->key.ppk_lines = lines < 400 ? lines : 400;
    }
    flow_look(scan);
    document_look(scan);
}
