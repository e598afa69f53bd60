/* Line by line, with at most one line held back. */
#include "log/log.h"
#include "base/json.h"
#include "base/size.h"

/* A longer line is passed on as it is: nobody prints such a line for people. */
enum {
    LINE_MAX_BYTES = 256 << 10,
    WRAP_MIN_COLUMNS = 60,
    WRAP_MAX_COLUMNS = 400,
    WRAP_JOIN_MAX = 16,
    SNIFF_LINES = 200,
    FRAME_LINE_BYTES = 1024
};

static oos_view trim_end(oos_view line)
{
    while (line.len && strchr(" \t\r\n", line.ptr[line.len - 1])) line.len--;
    return line;
}

/* Length of a CRI prefix, 0 when there is none. *ret_partial: the line goes on in the next record. */
static size_t cri_prefix(oos_view line, bool *ret_partial)
{
    if (line.len < 30 || line.ptr[4] != '-' || line.ptr[10] != 'T') return 0;
    const char *space = memchr(line.ptr, ' ', 40 < line.len ? 40 : line.len);
    if (!space) return 0;
    oos_view const after = oos_view_slice(line, (size_t)(space - line.ptr) + 1, SIZE_MAX);
    if (!oos_view_starts(after, "stdout ") && !oos_view_starts(after, "stderr ")) return 0;
    if (after.len < 9 || (after.ptr[7] != 'F' && after.ptr[7] != 'P') || after.ptr[8] != ' ') return 0;
    *ret_partial = after.ptr[7] == 'P';
    return (size_t)(after.ptr - line.ptr) + 9;
}

static bool has(oos_view text, const char *word)
{
    return text.len && memmem(text.ptr, text.len, word, strlen(word));
}

static bool looks_json(oos_view line)
{
    line = trim_end(line);
    /* A document of many records, of which the first bytes may show the beginning only. */
    oos_view const start = oos_view_slice(line, 0, 256);
    if (has(start, "\"role\"")) return false; /* a chat that somebody sent */
    if (oos_view_starts(line, "[{\"") ||
        (oos_view_starts(line, "{\"") && (has(start, "[{\"") || has(start, "[[\""))))
        return true;
    if (line.len < 12 || line.ptr[0] != '{' || line.ptr[1] != '"' || line.ptr[line.len - 1] != '}')
        return false;
    return has(line, "\"log\"") || has(line, "\"message\"") || has(line, "\"msg\"") ||
           has(line, "\"MESSAGE\"") || has(line, "\"text\"") || has(line, "\"textPayload\"") ||
           has(line, "\"body\"") || has(line, "\"event\"");
}

/* A labelled line that fills the terminal, then one that starts in the middle of a word or sentence. vLLM repeats the
 * label on each line of a message, so an unlabelled line behind it was never a line of its own. */
static bool continues(oos_view line, oos_view next)
{
    if (line.len < WRAP_MIN_COLUMNS || next.len == 0) return false;
    char const first = next.ptr[0];
    if (!((first >= 'a' && first <= 'z') || (first >= '0' && first <= '9') || strchr("_.)]\"'/", first)))
        return false;
    oos_logline const head = oos_logline_read(line);
    if (!head.process.len || strchr(":", line.ptr[line.len - 1])) return false;
    return !oos_logline_read(next).labelled;
}

/* A line as wide as the terminal, then one that is no record and no indented line of its own. */
static bool continues_at(size_t width, oos_view line, oos_view next)
{
    if (line.len != width || next.len == 0 || next.ptr[0] == '\t') return false;
    if (next.len > 1 && next.ptr[0] == ' ' && next.ptr[1] == ' ') return false;
    return !oos_logline_read(next).labelled && !oos_view_starts(next, "Traceback") &&
           !oos_view_starts(next, "```");
}

/* A line without the prefix and the padding that every line of its text has. */
static oos_view undressed(unsigned what, oos_view line)
{
    if (what & OOS_CLEAN_COMPOSE) line = oos_view_slice(line, oos_logline_compose(line), SIZE_MAX);
    return what & OOS_CLEAN_PADDED ? trim_end(line) : line;
}

/* The width of the terminal a text was copied from: no line is wider, and at least two as wide go on in the next. */
static size_t wrap_width(unsigned what, oos_view head)
{
    size_t width = 0, wraps = 0, lines = 0;
    oos_view before = {0};
    for (size_t at = 0; at < head.len && lines < SNIFF_LINES; lines++) {
        const char *end = memchr(head.ptr + at, '\n', head.len - at);
        size_t const len = end ? (size_t)(end - head.ptr) - at : head.len - at;
        oos_view line = oos_view_slice(head, at, len);
        if (line.len && line.ptr[line.len - 1] == '\r') line.len--;
        line = undressed(what, line);
        if (line.len > WRAP_MAX_COLUMNS) return 0;
        if (line.len > width) {
            width = line.len;
            wraps = 0;
        }
        wraps += continues_at(width, before, line);
        before = line;
        at += len + 1;
    }
    return width >= WRAP_MIN_COLUMNS && wraps >= 2 ? width : 0;
}

/* Rows of a terminal, copied with their blanks: all of one width, and most of them not full. */
static bool is_padded(oos_view line, size_t width)
{
    return line.len == width && width >= WRAP_MIN_COLUMNS &&
           oos_view_starts(oos_view_slice(line, width - 4, 4), "    ");
}

/* A frame that was typed, or printed by another program than Python. */
static bool has_frame(oos_view line)
{
    char bytes[FRAME_LINE_BYTES];
    if (line.len > sizeof bytes / 2 || !has(line, ".py") || has(line, ".py\"") || has(line, "File "))
        return false;
    return has((oos_view){bytes, oos_normal_line(line, (oos_view){0}, bytes, sizeof bytes)}, "File \"");
}

unsigned oos_clean_sniff(oos_view head)
{
    size_t lines = 0, json = 0, cri = 0, journal = 0, escapes = 0, wraps = 0, compose = 0, padded = 0,
           width = 0;
    bool frames = false;
    oos_view before = {0};
    for (size_t at = 0; at < head.len && lines < SNIFF_LINES; lines++) {
        const char *end = memchr(head.ptr + at, '\n', head.len - at);
        size_t const len = end ? (size_t)(end - head.ptr) - at : head.len - at;
        oos_view const line = oos_view_slice(head, at, len);
        bool partial;
        if (!lines) width = line.len;
        padded += is_padded(line, width);
        compose += oos_logline_compose(line) > 0;
        frames = frames || has_frame(line);
        json += looks_json(line);
        cri += cri_prefix(line, &partial) > 0;
        journal += oos_view_starts(line, "MESSAGE=") || oos_view_starts(line, "__REALTIME_TIMESTAMP=");
        escapes += has(line, ".py:") && has(line, "\\[") && has(line, "\\]");
        escapes += has(line, "&quot;") || has(line, "&#39;") || has(line, "\\_");
        wraps += continues(trim_end(before), line);
        before = line;
        at += len + 1;
    }
    unsigned what = 0, worn = 0;
    if (padded * 2 > lines) worn |= OOS_CLEAN_PADDED;
    if (compose * 2 > lines) worn |= OOS_CLEAN_COMPOSE;
    if (frames) worn |= OOS_CLEAN_FRAMES;
    if (json * 2 > lines) what |= OOS_CLEAN_JSON;
    if (cri * 2 > lines) what |= OOS_CLEAN_CRI;
    if (journal >= 2 && !json) what |= OOS_CLEAN_JOURNAL;
    if (escapes >= 1 && !json) what |= OOS_CLEAN_MARKDOWN;
    if (wraps >= 2) what |= OOS_CLEAN_WRAPPED;
    width = what & ~(unsigned)OOS_CLEAN_WRAPPED ? 0 : wrap_width(worn, head);
    what |= worn;
    if (width) what |= OOS_CLEAN_WRAPPED | (unsigned)width * OOS_CLEAN_WIDTH;
    return what;
}

/* Text of a field that holds a message: a string, or journald's array of bytes for what is not UTF-8. Line breaks
 * become '\v'; a last one is dropped. */
static void add_message(const json_t *value, oos_text *out)
{
    size_t const from = out->len;
    if (json_is_string(value)) {
        oos_text_add(out, (oos_view){json_string_value(value), json_string_length(value)});
    } else if (json_is_array(value)) {
        size_t index;
        json_t *byte;
        json_array_foreach(value, index, byte)
        {
            char const c = (char)json_integer_value(byte);
            oos_text_add(out, (oos_view){&c, 1});
        }
    }
    if (out->failed) return;
    while (out->len > from && strchr("\r\n", out->ptr[out->len - 1])) out->len--;
    for (size_t i = from; i < out->len; i++)
        if (out->ptr[i] == '\n' || out->ptr[i] == '\0') out->ptr[i] = '\v';
}

/* Backslashes before punctuation, and the five entities of HTML. */
static void add_unescaped(oos_view line, oos_text *out)
{
    static const struct {
        const char *from, *to;
    } entities[] = {{"&lt;", "<"}, {"&gt;", ">"}, {"&quot;", "\""}, {"&#39;", "'"}, {"&amp;", "&"}};
    size_t done = 0;
    for (size_t i = 0; i < line.len; i++) {
        const char *with = NULL;
        size_t skip = 0;
        if (line.ptr[i] == '\\' && i + 1 < line.len && strchr("[]_*()#+-.!<>|~{}`", line.ptr[i + 1])) {
            with = "";
            skip = 1;
        } else if (line.ptr[i] == '&') {
            oos_view const at = oos_view_slice(line, i, SIZE_MAX);
            for (size_t e = 0; e < sizeof entities / sizeof *entities && !with; e++)
                if (oos_view_starts(at, entities[e].from)) {
                    with = entities[e].to;
                    skip = strlen(entities[e].from);
                }
        }
        if (!with) continue;
        oos_text_add(out, oos_view_slice(line, done, i - done));
        oos_text_put(out, with);
        done = i + skip;
        i = done - (skip == 1 ? 0 : 1);
    }
    oos_text_add(out, oos_view_slice(line, done, SIZE_MAX));
}

/* Of a document that holds log lines somewhere inside (Loki, CloudWatch, exports): every sentence in it, one after another. */
static void add_sentences(const json_t *value, unsigned depth, oos_text *out)
{
    enum { DEPTH_MAX = 12, SENTENCE_MIN = 12 };
    size_t index;
    const char *key;
    json_t *item;
    if (json_is_string(value)) {
        oos_view const text = {json_string_value(value), json_string_length(value)};
        if (text.len < SENTENCE_MIN || !memchr(text.ptr, ' ', text.len)) return;
        if (out->len && out->ptr[out->len - 1] != '\n') oos_text_put(out, "\v");
        if (has(text, ".py:") && has(text, "\\["))
            add_unescaped(text, out);
        else
            add_message(value, out);
    } else if (json_is_array(value) && depth < DEPTH_MAX) {
        json_array_foreach(value, index, item) add_sentences(item, depth + 1, out);
    } else if (json_is_object(value) && depth < DEPTH_MAX) {
        json_object_foreach((json_t *)value, key, item) add_sentences(item, depth + 1, out);
    }
}

static bool add_json(oos_view line, oos_text *out)
{
    static const char *const messages[] = {"log",         "MESSAGE", "message", "msg",
                                           "textPayload", "text",    "body",    "event"};
    static const char *const traces[] = {"exc_info",    "exception", "traceback",
                                         "stack_trace", "stack",     "error"};
    json_t *root = oos_json_parse(line, JSON_ALLOW_NUL);
    size_t const from = out->len;
    if (!json_is_object(root)) {
        add_sentences(root, 0, out);
        json_decref(root);
        return out->len > from;
    }
    const json_t *object =
        json_is_object(json_object_get(root, "jsonPayload")) ? json_object_get(root, "jsonPayload") : root;
    for (size_t i = 0; i < sizeof messages / sizeof *messages && out->len == from; i++)
        add_message(json_object_get(object, messages[i]), out);
    for (size_t i = 0; i < sizeof traces / sizeof *traces; i++) {
        const json_t *trace = json_object_get(object, traces[i]);
        if (!json_is_string(trace)) continue;
        oos_text_put(out, "\v");
        add_message(trace, out);
    }
    /* What this program printed quotes failures, and is none. */
    const char *schema = json_string_value(json_object_get(root, "schema"));
    if (out->len == from && !(schema && strncmp(schema, "oomsight.", 9) == 0)) add_sentences(root, 0, out);
    json_decref(root);
    return out->len > from;
}

static void add_frame(oos_view line, oos_text *out)
{
    char bytes[FRAME_LINE_BYTES];
    oos_text_add(out, (oos_view){bytes, oos_normal_line(line, (oos_view){0}, bytes, sizeof bytes)});
}

/* One whole line without its end. */
static void clean_line(unsigned what, oos_view line, oos_text *out)
{
    if (what & OOS_CLEAN_JSON && line.len && (line.ptr[0] == '{' || line.ptr[0] == '[') &&
        add_json(line, out))
        return;
    if (what & OOS_CLEAN_JOURNAL) {
        if (oos_view_starts(line, "MESSAGE=")) oos_text_add(out, oos_view_slice(line, 8, SIZE_MAX));
        return;
    }
    if (what & OOS_CLEAN_MARKDOWN)
        add_unescaped(line, out);
    else if (what & OOS_CLEAN_FRAMES && has_frame(line))
        add_frame(line, out);
    else
        oos_text_add(out, line);
}

void oos_cleaner_init(oos_cleaner *cleaner, unsigned what)
{
    *cleaner = (oos_cleaner){.what = what};
}

void oos_cleaner_free(oos_cleaner *cleaner)
{
    oos_text_free(&cleaner->pending);
}

static void flush(oos_cleaner *cleaner, oos_text *out)
{
    clean_line(cleaner->what, (oos_view){cleaner->pending.ptr, cleaner->pending.len}, out);
    /* A line that was joined to the one above it is no empty line, which would end a sentence. */
    oos_text_put(out, "\n");
    oos_text_repeat(out, cleaner->what & OOS_CLEAN_WRAPPED ? "\v\n" : "\n", cleaner->joined);
    cleaner->pending.len = cleaner->joined = 0;
    cleaner->wants_more = false;
}

static bool goes_on(const oos_cleaner *cleaner, oos_view before, oos_view line)
{
    size_t const width = cleaner->what / OOS_CLEAN_WIDTH;
    if (!width) return continues(before, line);
    /* Of a line that was joined already, the last piece decides. */
    size_t const columns = cleaner->joined ? oos_min(cleaner->last_columns, before.len) : before.len;
    return continues_at(width, oos_view_slice(before, before.len - columns, SIZE_MAX), line);
}

/* A complete line, without its '\n'. */
static void take_line(oos_cleaner *cleaner, oos_view line, oos_text *out)
{
    bool partial = false;
    bool const exact = cleaner->what >= OOS_CLEAN_WIDTH; /* then blanks at the end count as columns */
    if (exact && line.len && line.ptr[line.len - 1] == '\r') line.len--;
    line = undressed(cleaner->what, line);
    if (cleaner->what & OOS_CLEAN_CRI) line = oos_view_slice(line, cri_prefix(line, &partial), SIZE_MAX);
    if (cleaner->wants_more) {
        oos_view const before = {cleaner->pending.ptr, cleaner->pending.len};
        if (cleaner->what & OOS_CLEAN_CRI ||
            (cleaner->joined < WRAP_JOIN_MAX && goes_on(cleaner, before, line))) {
            cleaner->joined++;
            cleaner->last_columns = line.len;
        } else {
            flush(cleaner, out);
        }
    }
    oos_text_add(&cleaner->pending, cleaner->what & OOS_CLEAN_WRAPPED && !exact ? trim_end(line) : line);
    cleaner->wants_more = partial || cleaner->what & OOS_CLEAN_WRAPPED;
    if (!cleaner->wants_more || cleaner->pending.len > LINE_MAX_BYTES) flush(cleaner, out);
}

void oos_cleaner_feed(oos_cleaner *cleaner, oos_view bytes, bool last, oos_text *out)
{
    static const char empty[1];
    oos_text open = {0}; /* a line that lies across two feeds */
    size_t at = 0;
    if (!cleaner->wants_more && cleaner->pending.len) {
        open = cleaner->pending;
        cleaner->pending = (oos_text){0};
    }
    while (at < bytes.len) {
        const char *end = memchr(bytes.ptr + at, '\n', bytes.len - at);
        oos_view const piece = oos_view_slice(bytes, at, end ? (size_t)(end - bytes.ptr) - at : SIZE_MAX);
        at += piece.len + (end != NULL);
        if (!end) {
            if (!cleaner->wants_more || last) {
                oos_text_add(&open, piece);
            } else {
                /* The held line keeps its place; an open piece behind it cannot be judged yet. */
                flush(cleaner, out);
                oos_text_add(&open, piece);
            }
            break;
        }
        if (open.len) {
            oos_text_add(&open, piece);
            take_line(cleaner, (oos_view){open.ptr, open.len}, out);
            open.len = 0;
        } else {
            take_line(cleaner, piece.len ? piece : (oos_view){empty, 0}, out);
        }
    }
    if (open.len > LINE_MAX_BYTES) { /* a line without end passes through as it is */
        if (cleaner->wants_more) flush(cleaner, out);
        oos_text_add(out, (oos_view){open.ptr, open.len});
        open.len = 0;
    }
    if (last) {
        if (open.len) take_line(cleaner, (oos_view){open.ptr, open.len}, out);
        if (cleaner->wants_more || cleaner->pending.len) flush(cleaner, out);
        oos_text_free(&open);
    } else if (open.len) {
        if (cleaner->wants_more) flush(cleaner, out);
        oos_text_free(&cleaner->pending);
        cleaner->pending = open;
    } else {
        oos_text_free(&open);
    }
}
