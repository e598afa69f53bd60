/* The redactor: text passes, and secrets in it become `***`. It works line by line; what a line says of the next one (a key whose value
 * stands below it, a private key that has begun) is its state. A line is scanned once, every look ahead is bounded, and of a line
 * without end 32 KiB are held: a megabyte of the worst input takes less than half a second. Where secrets are in a line is left to the files
 * secret_*.c beside this one. */
#include "base/check.h"
#include "base/secret_parts.h"

#include <stdlib.h>

enum { HELD_MAX = 4096 };

/* ---- what the eye sees ---- */

static int hex(char c)
{
    return oos_is_digit(c)        ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* A byte as an address writes it, `%3D`. Blanks and `&` stay as they are: they would end a value that goes on. */
static char decoded(oos_view text, size_t at)
{
    if (text.ptr[at] != '%' || text.len - at < 3) return '\0';
    int const high = hex(text.ptr[at + 1]), low = hex(text.ptr[at + 2]);
    int const c = high < 0 || low < 0 ? 0 : high * 16 + low;
    return c > 0x20 && c < 0x7f && c != '&' && c != '%' ? (char)c : '\0';
}

/* Bytes at `at` that nobody sees: colours and other commands to a terminal, characters without width. */
static size_t unseen(oos_view text, size_t at)
{
    static const char *const widthless[] = {
        "\xe2\x80\x8b", "\xe2\x80\x8c", "\xe2\x80\x8d", "\xe2\x81\xa0", "\xef\xbb\xbf", "\xc2\xad", NULL};
    unsigned char const c = (unsigned char)text.ptr[at];
    if (c == 0x1b && at + 1 < text.len && text.ptr[at + 1] == '[') {
        size_t end = at + 2;
        while (end < text.len && end - at < 32 &&
               (oos_is_digit(text.ptr[end]) || oos_secret_in_set(text.ptr[end], ";?:")))
            end++;
        return end < text.len && oos_is_alpha(text.ptr[end]) ? end + 1 - at : 0;
    }
    if (c < 0xc2) return 0;
    for (size_t i = 0; widthless[i]; i++)
        if (oos_secret_starts_at(text, at, widthless[i])) return strlen(widthless[i]);
    return 0;
}

static bool is_clean(oos_view text)
{
    for (size_t i = 0; i < text.len; i++) {
        unsigned char const c = (unsigned char)text.ptr[i];
        if ((c == 0x1b || c >= 0xc2) && unseen(text, i)) return false;
        if (c == '%' && decoded(text, i)) return false;
    }
    return true;
}

/* The line as it is read, and where each byte of it stood. False: no memory. */
static bool clean(oos_redactor *r, oos_view text)
{
    r->clean.len = r->places.len = 0;
    for (size_t i = 0; i < text.len;) {
        size_t const skip = unseen(text, i);
        if (skip) {
            i += skip;
            continue;
        }
        char const c = decoded(text, i);
        uint32_t const place = (uint32_t)i;
        oos_text_add(&r->clean, (oos_view){c ? &c : text.ptr + i, 1});
        oos_text_add(&r->places, (oos_view){(const char *)&place, sizeof place});
        i += c ? 3 : 1;
    }
    uint32_t const end = (uint32_t)text.len;
    oos_text_add(&r->places, (oos_view){(const char *)&end, sizeof end});
    return !r->clean.failed && !r->places.failed;
}

/* ---- a line ---- */

static void put(oos_redactor *r, const oos_secret_scan *scan, oos_view raw, size_t to, oos_text *out)
{
    size_t at = 0;
    for (size_t i = 0; i < to;) {
        size_t end = i;
        while (end < to && scan->hidden[end] == scan->hidden[i]) end++;
        size_t const next = scan->places ? scan->places[end] : end;
        if (!scan->hidden[i])
            oos_text_add(out, oos_secret_between(raw, at, next));
        else if (!(r->dotted && i == 0))
            oos_text_put(out, OOS_HIDDEN);
        at = next;
        i = end;
    }
    if (at < raw.len && to == scan->text.len)
        oos_text_add(out, oos_view_slice(raw, at, raw.len)); /* unseen */
}

/* One line without its end, or with `whole` false as much of a long one as can be decided: returns how many of its bytes. */
static size_t scan_text(oos_redactor *r, oos_view raw, bool whole, oos_text *out)
{
    bool const same = is_clean(raw);
    if (!same && !clean(r, raw)) {
        r->found = true;
        if (out) out->failed = true;
        return raw.len;
    }
    oos_secret_scan scan = {.text = same ? raw : (oos_view){r->clean.ptr ? r->clean.ptr : "", r->clean.len},
                            .places = same ? NULL : (const uint32_t *)(const void *)r->places.ptr,
                            .whole = whole,
                            .state = &r->state};
    scan.limit = whole                              ? scan.text.len
                 : scan.text.len > OOS_SECRET_AHEAD ? scan.text.len - OOS_SECRET_AHEAD
                                                    : 0;
    if (out) {
        r->hidden.len = 0;
        static const char zeros[512];
        for (size_t left = scan.text.len; left; left -= left < 512 ? left : 512)
            oos_text_add(&r->hidden, (oos_view){zeros, left < 512 ? left : 512});
        if (r->hidden.failed) {
            out->failed = true;
            return raw.len;
        }
        scan.hidden = (unsigned char *)r->hidden.ptr;
    }
    size_t at = oos_secret_line_begin(&scan);
    if (at == SIZE_MAX) at = scan.text.len;
    at = oos_secret_scan_words(&scan, at);
    oos_assert(at <= scan.text.len);
    if (whole) oos_secret_line_end(&scan);
    size_t taken = whole ? raw.len : scan.places ? scan.places[at] : at;
    if (!whole) /* not within a character */
        while (taken < raw.len && ((unsigned char)raw.ptr[taken] & 0xc0) == 0x80 && at < scan.text.len)
            taken++, at++;
    r->found |= scan.found;
    if (out && scan.found)
        put(r, &scan, raw, at, out);
    else if (out)
        oos_text_add(out, oos_view_slice(raw, 0, taken));
    r->dotted = !whole && out && at > 0 && scan.hidden[at - 1];
    r->state.before = whole ? '\0' : taken ? raw.ptr[taken - 1] : r->state.before;
    return taken;
}

static void line_scan(oos_redactor *r, oos_view line, oos_text *out)
{
    size_t len = line.len;
    while (len > 0 && (line.ptr[len - 1] == '\n' || line.ptr[len - 1] == '\r')) len--;
    scan_text(r, oos_view_slice(line, 0, len), true, out);
    if (out) oos_text_add(out, oos_view_slice(line, len, line.len));
}

static void held_release(oos_redactor *r, oos_view next, oos_text *out)
{
    if (!r->held.len) return;
    oos_name_kind const kind = oos_secret_named_by(next);
    if (kind) {
        r->state.pair.kind = kind;
        r->state.pair.lines = 1;
        r->state.pair.below = true;
    }
    oos_text held = r->held;
    r->held.len = 0;
    line_scan(r, (oos_view){held.ptr, held.len}, out);
}

/* A complete line. `value: x` waits for the next one, which may say whose value it is. */
static void line_take(oos_redactor *r, oos_view line, bool last, oos_text *out)
{
    const oos_secret_state *state = &r->state;
    held_release(r, line, out);
    bool const waits = !last && line.len <= HELD_MAX && !state->pair.kind && !state->before &&
                       !state->open.kind && !state->block.form && !state->key.open &&
                       oos_secret_is_value_line(line);
    if (!waits) {
        line_scan(r, line, out);
        return;
    }
    oos_text_add(&r->held, line);
    if (r->held.failed && out) out->failed = true;
}

/* Of a piece in which hardly a byte is seen nothing could be decided: those that nobody sees go, and there is room for more of the line. */
static bool unseen_drop(oos_redactor *r)
{
    oos_view const piece = {r->line.ptr, r->line.len};
    size_t kept = 0;
    if (is_clean(piece) || !clean(r, piece) || r->clean.len > OOS_SECRET_AHEAD) return false;
    for (size_t i = 0; i < piece.len;) {
        size_t const skip = unseen(piece, i);
        if (!skip) r->line.ptr[kept++] = r->line.ptr[i];
        i += skip ? skip : 1;
    }
    r->line.len = kept;
    return true;
}

static void piece_take(oos_redactor *r, oos_text *out)
{
    if (unseen_drop(r)) return;
    oos_view const piece = {r->line.ptr, r->line.len};
    held_release(r, (oos_view){"", 0}, out);
    size_t const taken = scan_text(r, piece, false, out);
    oos_assert(taken > 0 && taken <= piece.len); /* or the line would never end */
    memmove(r->line.ptr, r->line.ptr + taken, piece.len - taken);
    r->line.len -= taken;
}

void oos_redactor_feed(oos_redactor *r, oos_view piece, oos_text *to)
{
    while (piece.len) {
        const char *newline = memchr(piece.ptr, '\n', piece.len);
        size_t const line = newline ? (size_t)(newline - piece.ptr) + 1 : piece.len,
                     room = OOS_SECRET_PIECE - r->line.len;
        if (!r->line.len && newline && line <= OOS_SECRET_PIECE) {
            line_take(r, oos_view_slice(piece, 0, line), false, to);
            piece = oos_view_slice(piece, line, piece.len);
            continue;
        }
        size_t const len = line < room ? line : room;
        oos_text_add(&r->line, oos_view_slice(piece, 0, len));
        if (r->line.failed) {
            if (to) to->failed = true;
            return;
        }
        if (newline && len == line) {
            line_take(r, (oos_view){r->line.ptr, r->line.len}, false, to);
            r->line.len = 0;
        } else if (r->line.len == OOS_SECRET_PIECE)
            piece_take(r, to);
        piece = oos_view_slice(piece, len, piece.len);
    }
}

void oos_redactor_free(oos_redactor *r)
{
    oos_text *const texts[] = {&r->line, &r->held, &r->clean, &r->places, &r->hidden};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) oos_text_free(texts[i]);
    *r = (oos_redactor){0};
}

void oos_redactor_finish(oos_redactor *r, oos_text *to)
{
    if (r->line.len)
        line_take(r, (oos_view){r->line.ptr, r->line.len}, true, to);
    else
        held_release(r, (oos_view){"", 0}, to);
    oos_redactor_free(r);
}

/* ---- texts that are there ---- */

static void text_take(oos_redactor *r, oos_view text, oos_text *to)
{
    size_t lines = text.len; /* those that are complete */
    while (lines > 0 && text.ptr[lines - 1] != '\n') lines--;
    if (text.len - lines > OOS_SECRET_PIECE) {
        oos_redactor_feed(r, text, to);
        return;
    }
    oos_redactor_feed(r, oos_view_slice(text, 0, lines), to);
    if (text.len > lines)
        line_take(r, oos_view_slice(text, lines, text.len), true, to); /* need not be copied */
}

bool oos_secret_inside_deep(oos_view text, unsigned depth)
{
    oos_redactor r = {.state.depth = depth};
    text_take(&r, text, NULL);
    if (r.line.len)
        line_take(&r, (oos_view){r.line.ptr, r.line.len}, true, NULL);
    else
        held_release(&r, (oos_view){"", 0}, NULL);
    bool const found = r.found;
    oos_redactor_free(&r);
    return found;
}

bool oos_secret_inside(oos_view text)
{
    return oos_secret_inside_deep(text, 0);
}

void oos_secret_hide(oos_text *to, oos_view text)
{
    oos_redactor r = {0};
    oos_text_add(to, (oos_view){"", 0}); /* an empty text is a text */
    text_take(&r, text, to);
    oos_redactor_finish(&r, to);
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
    while (oos_secret_name_byte(word[len])) len++;
    if (!equals || len == 0 || word + len != equals) return NULL;
    oos_name_kind kind = oos_secret_kind((oos_view){word, len});
    if (kind == OOS_NAME_WEAK) kind = OOS_NAME_NUMBERLESS; /* TOKEN=x is no prose */
    if (!oos_secret_value_counts(kind, oos_view_of(equals + 1), false)) return NULL;
    return oos_arena_format(arena, "%.*s" OOS_HIDDEN, (int)len + 1, word);
}

const char *const *oos_secret_hidden_words(oos_arena *arena, const char *const *words, size_t count)
{
    const char **copy = NULL;
    bool behind = false, list = false; /* a flag that names a secret; one that takes several */
    for (size_t i = 0; i < count; i++) {
        const char *word = words[i], *shown;
        bool const flag = word[0] == '-' && word[1];
        if (behind && !flag)
            shown = oos_secret_is_reference(oos_view_of(word)) ? word : OOS_HIDDEN;
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
        copy[i] = shown ? shown : OOS_HIDDEN;
    }
    return copy ? copy : words;
}
