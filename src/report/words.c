/* Finding sentences in the catalogue. Patterns are compared from left to right without going back, so that a hostile name
 * inside a sentence costs no more than its length. */
#include "report/report.h"

#include <stdlib.h>

enum { SLOTS_MAX = 12, NESTED_MAX = 3, SENTENCE_MAX_BYTES = 4096 };

bool oos_words_chinese(const oomsight_render_params *params)
{
    const char *language = params->language;
    static const char *const variables[] = {"LC_ALL", "LC_MESSAGES", "LANG"};
    for (size_t i = 0; (!language || !*language) && i < sizeof variables / sizeof *variables; i++)
        language = getenv(variables[i]);
    return language && strncmp(language, "zh", 2) == 0;
}

static bool ends_with(oos_view view, oos_view tail)
{
    return view.len >= tail.len && memcmp(view.ptr + view.len - tail.len, tail.ptr, tail.len) == 0;
}

/* The literal text of a pattern up to its next slot or end. */
static oos_view literal_at(const char *pattern)
{
    const char *slot = strstr(pattern, "{}");
    return (oos_view){pattern, slot ? (size_t)(slot - pattern) : strlen(pattern)};
}

/* What the slots of `pattern` hold in `sentence`; false: it is another sentence. */
static bool fits(const char *pattern, oos_view sentence, oos_view held[SLOTS_MAX])
{
    oos_view literal = literal_at(pattern);
    if (sentence.len < literal.len || memcmp(sentence.ptr, literal.ptr, literal.len) != 0) return false;
    size_t at = literal.len;
    pattern += literal.len;
    for (size_t slot = 0; *pattern && slot < SLOTS_MAX; slot++) {
        literal = literal_at(pattern += 2);
        pattern += literal.len;
        if (at >= sentence.len) return false;
        oos_view const rest = oos_view_slice(sentence, at, sentence.len);
        if (!*pattern) { /* the last one reaches to the end */
            if (rest.len <= literal.len || !ends_with(rest, literal)) return false;
            held[slot] = oos_view_slice(rest, 0, rest.len - literal.len);
            return true;
        }
        const char *found = memmem(rest.ptr + 1, rest.len - 1, literal.ptr, literal.len);
        if (!found) return false;
        held[slot] = oos_view_slice(rest, 0, (size_t)(found - rest.ptr));
        at += held[slot].len + literal.len;
    }
    return !*pattern && at == sentence.len;
}

/* A pattern of little text, "in {}", is about one word; anything else that begins so is another sentence. */
static bool is_vague(const char *pattern, const oos_view *held)
{
    size_t slots = 0, len = 0;
    for (const char *at = pattern; *at; at++) {
        bool const slot = at[0] == '{' && at[1] == '}';
        slots += slot;
        at += slot;
        len += !slot;
    }
    for (size_t i = 0; len < 5 && i < slots; i++)
        if (memchr(held[i].ptr, ' ', held[i].len)) return true;
    return false;
}

static const oos_phrase *find(oos_view sentence, oos_view held[SLOTS_MAX])
{
    if (sentence.len == 0 || sentence.len > SENTENCE_MAX_BYTES) return NULL;
    for (const oos_phrase *phrase = oos_phrases_zh; phrase->en; phrase++)
        if (fits(phrase->en, sentence, held) && !is_vague(phrase->en, held)) return phrase;
    return NULL;
}

static bool put(oos_text *text, oos_view sentence, unsigned depth);

/* Two parts around `mark` where each is known by itself. */
static bool put_parts(oos_text *text, oos_view sentence, char mark, unsigned depth)
{
    for (size_t i = 1; i + 2 < sentence.len; i++) {
        if (sentence.ptr[i] != mark || sentence.ptr[i + 1] != ' ') continue;
        oos_text head = {0}, tail = {0};
        bool const known = put(&head, oos_view_slice(sentence, 0, i), depth + 1) &&
                           put(&tail, oos_view_slice(sentence, i + 2, sentence.len), depth);
        if (known) {
            oos_text_add(text, (oos_view){head.ptr, head.len});
            oos_text_put(text, mark == ',' ? "、" : "；");
            oos_text_add(text, (oos_view){tail.ptr, tail.len});
        }
        oos_text_free(&head);
        oos_text_free(&tail);
        return known;
    }
    return false;
}

/* "a, b; c" */
static bool put_list(oos_text *text, oos_view sentence, unsigned depth)
{
    return put_parts(text, sentence, ';', depth) || put_parts(text, sentence, ',', depth);
}

/* "{}" of the Chinese pattern is the next slot, "{2}" the second one of the English pattern. */
static void put_filled(oos_text *text, const char *pattern, const oos_view *held, unsigned depth)
{
    size_t next = 0;
    while (*pattern) {
        bool const numbered =
            pattern[0] == '{' && pattern[1] >= '1' && pattern[1] <= '9' && pattern[2] == '}';
        if (!numbered && strncmp(pattern, "{}", 2) != 0) {
            size_t const len = strcspn(pattern + 1, "{") + 1;
            oos_text_add(text, (oos_view){pattern, len});
            pattern += len;
            continue;
        }
        oos_view const piece = held[numbered ? (size_t)(pattern[1] - '1') : next++];
        pattern += numbered ? 3 : 2;
        if (!put(text, piece, depth + 1)) oos_text_add(text, piece);
    }
}

/* false: not in the catalogue, and nothing was written. */
static bool put(oos_text *text, oos_view sentence, unsigned depth)
{
    oos_view held[SLOTS_MAX] = {{0}};
    /* a list that was put in: its parts are known better than what looks like the whole */
    if (depth > 0 && depth < NESTED_MAX && put_parts(text, sentence, ';', depth)) return true;
    const oos_phrase *phrase = depth < NESTED_MAX ? find(sentence, held) : NULL;
    if (!phrase) return depth < NESTED_MAX && put_list(text, sentence, depth);
    for (size_t i = 0; depth > 0 && i < SLOTS_MAX; i++) /* of what holds such a list, too */
        if (held[i].len && memmem(held[i].ptr, held[i].len, ", ", 2))
            return put_parts(text, sentence, ',', depth) || (put_filled(text, phrase->zh, held, depth), true);
    put_filled(text, phrase->zh, held, depth);
    return true;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\n';
}

void oos_words_put(oos_text *text, oos_view english)
{
    size_t before = 0, after = 0;
    while (before < english.len && is_blank(english.ptr[before])) before++;
    while (after < english.len - before && is_blank(english.ptr[english.len - 1 - after])) after++;
    oos_view const sentence = oos_view_slice(english, before, english.len - before - after);
    oos_text chinese = {0};
    bool const known = put(&chinese, sentence, 0);
    oos_view const words = known ? (oos_view){chinese.ptr, chinese.len} : sentence;
    /* Marks as wide as these have their blank inside. */
    bool const marked = oos_view_starts(words, "（") || oos_view_starts(words, "，");
    if (!marked || before != 1 || english.ptr[0] != ' ')
        oos_text_add(text, oos_view_slice(english, 0, before));
    oos_text_add(text, words);
    oos_text_add(text, oos_view_slice(english, english.len - after, after));
    text->failed |= chinese.failed;
    oos_text_free(&chinese);
}

static bool is_wide(uint32_t c)
{
    return (c >= 0x1100 && c <= 0x115f) || (c >= 0x2e80 && c <= 0xa4cf) || (c >= 0xac00 && c <= 0xd7a3) ||
           (c >= 0xf900 && c <= 0xfaff) || (c >= 0xfe30 && c <= 0xfe4f) || (c >= 0xff00 && c <= 0xff60) ||
           (c >= 0xffe0 && c <= 0xffe6) || (c >= 0x1f300 && c <= 0x1faff) || (c >= 0x20000 && c <= 0x3fffd);
}

size_t oos_words_char(oos_view words, unsigned *ret_columns)
{
    unsigned char const lead = (unsigned char)words.ptr[0];
    size_t const len = lead < 0xc0 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    uint32_t c = lead & (len == 1 ? 0x7fU : 0xffU >> (len + 1));
    *ret_columns = 1;
    if (len > words.len) return words.len;
    for (size_t i = 1; i < len; i++) c = c << 6 | ((unsigned char)words.ptr[i] & 0x3f);
    if (is_wide(c)) *ret_columns = 2;
    return len;
}

unsigned oos_words_columns(oos_view words)
{
    unsigned sum = 0, columns;
    for (size_t at = 0; at < words.len; sum += columns)
        at += oos_words_char(oos_view_slice(words, at, words.len), &columns);
    return sum;
}
