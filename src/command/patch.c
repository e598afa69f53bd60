/* Words of commands changed in the text that they stand in: a value in the place of another, a flag taken out, flags behind the last
 * word. How a word is written there is guessed by its line; whether the guess was right tells the reader of commands: the text is read
 * again, and has these words there and all others as they were. */
#include "base/ascii.h"
#include "base/check.h"
#include "command/command.h"

#include <stdlib.h>
#include <string.h>

/* A text of a stranger: all readings of it together take no more. */
enum { TEXT_MAX = 1 << 20, LINES_MAX = 20000, SPENT_MAX = 16 << 20, LOOK_LINES = 4 };

#define NOT_AS_WORDS                                                                                         \
    "its words do not stand in the file as they are: a variable, a key or another file has them"

/* A word in a line as it is now. */
typedef struct place {
    size_t line, column;
    bool known;
} place;

/* How words are added. */
typedef enum adding { ADD_ITEMS, ADD_LISTED, ADD_BEHIND, ADD_BEHIND_QUOTE, ADDINGS } adding;

static oos_view line_body(oos_view line)
{
    while (line.len && (line.ptr[line.len - 1] == '\n' || line.ptr[line.len - 1] == '\r')) line.len--;
    return line;
}

static bool is_edge(char c)
{
    return strchr(" \t\"',[](){}=", c) != NULL; /* '\0', too */
}

/* The word as it is between blanks, quotes or brackets, from `column` on; SIZE_MAX: it is not there. */
static size_t find_in(oos_view line, const char *word, size_t column)
{
    oos_view const body = line_body(line);
    size_t const len = strlen(word);
    while (len && column + len <= body.len) {
        const char *at = memmem(body.ptr + column, body.len - column, word, len);
        if (!at) break;
        size_t const first = (size_t)(at - body.ptr), end = first + len;
        bool const address = first > 1 && memcmp(body.ptr + first - 2, "//", 2) == 0; /* hf://MODEL */
        if ((!first || address || is_edge(body.ptr[first - 1])) &&
            (end == body.len || is_edge(body.ptr[end])))
            return first;
        column = first + 1;
    }
    return SIZE_MAX;
}

static size_t line_numbered(const oos_patch *p, uint32_t number)
{
    for (size_t i = 0; i < p->count; i++)
        if (p->lines[i].number >= number) return i;
    return p->count;
}

/* Where each word stands: in its line or soon after; `on`: behind the word before it. A word that the reader made of a key stands nowhere. */
static place *places_of(const oos_patch *p, const oos_found *found, bool on)
{
    place *list = OOS_NEW_ARRAY(p->arena, place, found->count + 1);
    place at = {0};
    uint32_t at_hint = 0;
    for (size_t i = 0; list && i < found->count; i++) {
        size_t const first = line_numbered(p, found->lines[i]);
        place from = {.line = first};
        if (on && at.known && at.line >= first && (at.line == first || at_hint == found->lines[i])) from = at;
        for (size_t k = from.line; k < p->count && k < from.line + LOOK_LINES && !list[i].known; k++) {
            if (p->lines[k].removed) continue;
            size_t const column = find_in(p->lines[k].now, found->words[i], k == from.line ? from.column : 0);
            if (column != SIZE_MAX) list[i] = (place){k, column, true};
        }
        if (!list[i].known) continue;
        at = list[i];
        at_hint = found->lines[i];
        at.column += strlen(found->words[i]);
    }
    return list;
}

static bool put_between(const oos_patch *p, oos_patch_line *line, size_t from, size_t to, oos_view text)
{
    if (from > to || to > line->now.len) return false;
    size_t const len = line->now.len - (to - from) + text.len;
    char *now = oos_arena_take(p->arena, len + 1);
    if (!now) return false;
    memcpy(now, line->now.ptr, from);
    memcpy(now + from, text.ptr, text.len);
    memcpy(now + from + text.len, line->now.ptr + to, line->now.len - to);
    oos_assert(from + text.len <= len);
    line->now = (oos_view){now, len};
    return true;
}

/* Behind "${": what is put there the file itself does not say. */
static bool is_put_in(oos_view line, size_t column)
{
    while (column--) {
        if (line.ptr[column] == '}') return false;
        if (line.ptr[column] == '{' && column && line.ptr[column - 1] == '$') return true;
    }
    return false;
}

/* `- word`, alone in its line. */
static bool is_item(oos_view line, size_t column, size_t len)
{
    oos_view const body = line_body(line);
    size_t first = 0, end = column + len;
    while (first < body.len && (body.ptr[first] == ' ' || body.ptr[first] == '\t')) first++;
    if (first + 1 >= body.len || body.ptr[first] != '-' || body.ptr[first + 1] != ' ') return false;
    for (first++; first < column && body.ptr[first] == ' '; first++) continue;
    if (first + 1 == column && (body.ptr[first] == '"' || body.ptr[first] == '\'')) first++, end++;
    while (end < body.len && body.ptr[end] == ' ') end++;
    return first == column && (end >= body.len || body.ptr[end] == '#');
}

/* ---- one word ---- */

static const char *replace(oos_patch *p, const place *at, const char *word, const char *by)
{
    if (!at->known) return NOT_AS_WORDS;
    oos_patch_line *line = &p->lines[at->line];
    if (is_put_in(line->now, at->column)) return "a variable that is set elsewhere stands there";
    if (memmem(line->now.ptr, line->now.len, "{{", 2)) return "it is a template";
    bool const listed = is_item(line->now, at->column, strlen(word));
    if (!listed && !oos_serve_is_plain(by)) return "the new value needs quotes of its own";
    for (const char *c = by; *c; c++)
        if (strchr("\"'\\#", *c) || (unsigned char)*c < ' ') return "the new value needs quotes of its own";
    return put_between(p, line, at->column, at->column + strlen(word), oos_view_of(by)) ? NULL : "no memory";
}

static const char *take_out(oos_patch *p, const place *at, const char *word)
{
    if (!at->known) return NOT_AS_WORDS;
    oos_patch_line *line = &p->lines[at->line];
    size_t from = at->column, to = from + strlen(word);
    if (is_put_in(line->now, from)) return "a variable that is set elsewhere stands there";
    if (is_item(line->now, from, to - from)) {
        line->removed = true;
        return NULL;
    }
    const char *text = line->now.ptr;
    bool const marked = from && to < line->now.len && text[from - 1] == text[to] && strchr("\"'", text[to]);
    if (marked) from--, to++;
    size_t before = from;
    while (before && (text[before - 1] == ' ' || text[before - 1] == '\t')) before--;
    if (before && text[before - 1] == ',') before--; /* of a list */
    bool const first = before == 0;
    if (!first) from = before;
    if (!put_between(p, line, from, to, oos_view_of(""))) return "no memory";
    oos_view const body = line_body(line->now);
    size_t blank = 0;
    while (blank < body.len && strchr(" \t\\", body.ptr[blank])) blank++;
    if (blank == body.len) line->removed = true; /* nothing, or only the backslash that went on */
    return NULL;
}

/* A string of JSON, which is one of YAML, too. NULL: no memory, or it has a control character. */
static const char *quoted(const oos_patch *p, const char *word)
{
    char *copy = oos_arena_take(p->arena, 2 * strlen(word) + 3);
    size_t len = 0;
    if (!copy) return NULL;
    copy[len++] = '"';
    for (; *word; word++) {
        if ((unsigned char)*word < ' ') return NULL;
        if (*word == '"' || *word == '\\') copy[len++] = '\\';
        copy[len++] = *word;
    }
    copy[len++] = '"';
    return copy;
}

/* A flag needs no quotes. */
static const char *listed_word(const oos_patch *p, const char *word)
{
    return strncmp(word, "--", 2) == 0 && oos_serve_is_plain(word) ? word : quoted(p, word);
}

static const char *shell_word(const oos_patch *p, const char *word)
{
    oos_text text = {0};
    oos_serve_quote(&text, word);
    const char *copy = text.failed ? NULL : oos_arena_copy(p->arena, (oos_view){text.ptr, text.len});
    oos_text_free(&text);
    return copy;
}

static bool add_line(oos_patch *p, size_t behind, oos_view now)
{
    oos_patch_line *lines = OOS_NEW_ARRAY(p->arena, oos_patch_line, p->count + 2);
    if (!lines) return false;
    memcpy(lines, p->lines, (behind + 1) * sizeof *lines);
    lines[behind + 1] = (oos_patch_line){.now = now};
    memcpy(lines + behind + 2, p->lines + behind + 1, (p->count - behind - 1) * sizeof *lines);
    p->lines = lines;
    p->count++;
    oos_assert(behind + 1 < p->count);
    return true;
}

/* Lines like the one behind which they come. */
static const char *add_items(oos_patch *p, const place *at, const char *word, const oos_edited_word *words,
                             size_t count)
{
    oos_patch_line *line = &p->lines[at->line];
    if (!is_item(line->now, at->column, strlen(word))) return NOT_AS_WORDS;
    size_t indent = 0;
    while (line->now.ptr[indent] == ' ' || line->now.ptr[indent] == '\t') indent++;
    oos_view const body = line_body(line->now),
                   own = oos_view_slice(line->now, body.len, SIZE_MAX); /* the end of its line */
    const char *start = oos_arena_copy(p->arena, (oos_view){line->now.ptr, indent});
    const char *end = oos_arena_copy(p->arena, own.len ? own : oos_view_of("\n"));
    if (!start || !end) return "no memory";
    if (!own.len && !put_between(p, line, line->now.len, line->now.len, oos_view_of("\n")))
        return "no memory";
    for (size_t i = 0; i < count; i++) {
        const char *item = listed_word(p, words[i].word);
        const char *text = item ? oos_arena_format(p->arena, "%s- %s%s", start, item, end) : NULL;
        if (!text || !add_line(p, at->line + i, oos_view_of(text))) return "no memory";
    }
    return NULL;
}

static const char *add_words(oos_patch *p, const place *at, const char *word, const oos_edited_word *words,
                             size_t count, adding how)
{
    oos_patch_line *line = &p->lines[at->line];
    size_t end = at->column + strlen(word);
    if (how != ADD_BEHIND) {
        bool const marked = end < line->now.len && strchr("\"'", line->now.ptr[end]);
        if (how == ADD_BEHIND_QUOTE && !marked) return NOT_AS_WORDS;
        end += marked;
    }
    if (is_put_in(line->now, end)) return "a variable that is set elsewhere stands there";
    for (size_t i = 0; i < count; i++) {
        const char *text = how == ADD_LISTED ? quoted(p, words[i].word) : shell_word(p, words[i].word);
        if (text) text = oos_arena_format(p->arena, "%s%s", how == ADD_LISTED ? ", " : " ", text);
        if (!text || !put_between(p, line, end, end, oos_view_of(text))) return "no memory";
        end += strlen(text);
    }
    return NULL;
}

/* ---- a command ---- */

static bool same_words(const oos_found *found, const char *const *words, size_t count)
{
    if (found->count != count) return false;
    for (size_t i = 0; i < count; i++)
        if (strcmp(found->words[i], words[i]) != 0) return false;
    return true;
}

/* The text as it is now, read again. */
static const char *read_again(oos_patch *p, size_t at, const oos_edited_word *words, size_t count)
{
    oos_text text = {0};
    const oos_found *list;
    size_t found;
    oos_found_doubt doubt;
    for (size_t i = 0; i < p->count; i++)
        if (!p->lines[i].removed) oos_text_add(&text, p->lines[i].now);
    const char *copy = text.failed ? NULL : oos_arena_copy(p->arena, (oos_view){text.ptr, text.len});
    oos_view const bytes = {copy, text.len};
    oos_text_free(&text);
    p->spent_bytes += bytes.len;
    const char **wanted = OOS_NEW_ARRAY(p->arena, const char *, count + 1);
    if (!copy || !wanted) return "no memory";
    if (oos_found_read(p->arena, p->path, bytes, &list, &found, &doubt, NULL) != OOMSIGHT_OK ||
        found != p->found_count)
        return NOT_AS_WORDS;
    for (size_t i = 0; i < count; i++) wanted[i] = words[i].word;
    if (!same_words(&list[at], wanted, count)) return NOT_AS_WORDS;
    for (size_t i = 0; i < found; i++)
        if (i != at && !same_words(&list[i], p->list[i].words, p->list[i].count))
            return "another command of the file takes the same words, as by an anchor";
    p->list = list;
    p->changed = true;
    return NULL;
}

/* A line became longer or shorter behind a column, lines came behind it. */
static void shift(place *places, size_t count, place at, size_t longer, size_t lines)
{
    for (size_t i = 0; i < count; i++) {
        if (places[i].line > at.line) places[i].line += lines;
        if (places[i].line == at.line && places[i].column > at.column) places[i].column += longer;
    }
}

static const char *apply(oos_patch *p, size_t at, const oos_edited_word *words, size_t count, adding how,
                         bool on)
{
    const oos_found *found = &p->list[at];
    place *places = places_of(p, found, on);
    const char *why = NULL;
    size_t kept = 0;
    if (!places) return "no memory";
    while (kept < count && words[kept].from != SIZE_MAX) kept++;
    size_t const anchor = kept ? words[kept - 1].from : 0;
    /* From the end, so that the places before stay true. */
    if (kept < count) {
        place const last = places[anchor];
        if (!kept || !last.known) return NOT_AS_WORDS;
        size_t const lines = p->count, len = p->lines[last.line].now.len;
        if (memmem(p->lines[last.line].now.ptr, len, "{{", 2)) return "it is a template";
        why = how == ADD_ITEMS ? add_items(p, &last, found->words[anchor], words + kept, count - kept)
                               : add_words(p, &last, found->words[anchor], words + kept, count - kept, how);
        shift(places, found->count, last, p->lines[last.line].now.len - len, p->count - lines);
    }
    for (size_t i = found->count, k = kept; i-- > 0 && !why;) {
        while (k && words[k - 1].from > i) k--;
        bool const stays = k && words[k - 1].from == i;
        size_t const len = places[i].known ? p->lines[places[i].line].now.len : 0;
        if (!stays)
            why = take_out(p, &places[i], found->words[i]);
        else if (strcmp(words[k - 1].word, found->words[i]) != 0)
            why = replace(p, &places[i], found->words[i], words[k - 1].word);
        if (places[i].known)
            shift(places, found->count, places[i], p->lines[places[i].line].now.len - len, 0);
    }
    return why ? why : read_again(p, at, words, count);
}

const char *oos_patch_command(oos_patch *patch, size_t at, const oos_edited_word *words, size_t count)
{
    const char *why = NOT_AS_WORDS;
    if (at >= patch->found_count) return "it has changed since";
    for (unsigned turn = 0; turn < 2 * ADDINGS; turn++) {
        oos_patch const before = *patch;
        oos_patch_line *copy = OOS_NEW_ARRAY(patch->arena, oos_patch_line, patch->count + 1);
        patch->spent_bytes += patch->count * sizeof *copy;
        if (patch->spent_bytes > SPENT_MAX) return "the file is too large for so many changes";
        if (!copy) return "no memory";
        memcpy(copy, patch->lines, patch->count * sizeof *copy);
        patch->lines = copy;
        const char *other = apply(patch, at, words, count, (adding)(turn % ADDINGS), turn < ADDINGS);
        if (!other) return NULL;
        uint64_t const spent = patch->spent_bytes;
        *patch = before;
        patch->spent_bytes = spent;
        if (strcmp(other, NOT_AS_WORDS) != 0) why = other;
    }
    return why;
}

oomsight_status oos_patch_open(oos_arena *arena, const char *path, oos_view bytes, oos_patch *ret_patch,
                               oomsight_error *reterr)
{
    oos_patch patch = {.arena = arena, .path = path};
    oos_found_doubt doubt;
    if (bytes.len > TEXT_MAX)
        return oos_fail(reterr, OOMSIGHT_UNSUPPORTED, "a file of more than 1 MiB is not changed");
    if (bytes.len && memchr(bytes.ptr, '\0', bytes.len))
        return oos_fail(reterr, OOMSIGHT_UNSUPPORTED, "it is not a text");
    for (size_t i = 0; i < bytes.len; i++) patch.count += bytes.ptr[i] == '\n';
    if (patch.count > LINES_MAX)
        return oos_fail(reterr, OOMSIGHT_UNSUPPORTED, "a file of more than 20,000 lines is not changed");
    patch.lines = OOS_NEW_ARRAY(arena, oos_patch_line, patch.count + 2);
    if (!patch.lines) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the lines");
    patch.count = 0;
    while (bytes.len) {
        const char *stop = memchr(bytes.ptr, '\n', bytes.len);
        size_t const len = stop ? (size_t)(stop - bytes.ptr) + 1 : bytes.len;
        oos_view const line = oos_view_slice(bytes, 0, len);
        patch.lines[patch.count] = (oos_patch_line){line, line, (uint32_t)patch.count + 1, false};
        patch.count++;
        bytes = oos_view_slice(bytes, len, SIZE_MAX);
    }
    oos_view whole = {patch.count ? patch.lines[0].was.ptr : "", 0};
    for (size_t i = 0; i < patch.count; i++) whole.len += patch.lines[i].was.len;
    OOS_TRY(oos_found_read(arena, path, whole, &patch.list, &patch.found_count, &doubt, reterr));
    *ret_patch = patch;
    return OOMSIGHT_OK;
}
