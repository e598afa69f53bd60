/* A line is put into small letters with one space between words, and cut into sentences; phrases are looked for as whole
 * words. Only lines that hold one of the words of the signal "words.memory" come here. */
#include "explain/explain.h"
#include "base/json.h"
#include "base/size.h"
#include "facts/facts.h"

enum { TEXT_MAX_BYTES = 1200 };

/* Of a sentence. */
enum {
    LACKING = 1,   /* out of memory: noun and lack in one */
    FAILING = 2,   /* failed, unable */
    TAKING = 4,    /* allocate, map, reserve, fit */
    SHORT = 8,     /* not enough, insufficient, no free */
    RELATING = 16, /* exceeds, larger than */
    MEMORY = 32,   /* memory, VRAM, KV cache */
    HOLDING = 64,  /* buffer, pool, block: memory only beside a size or a failure */
    ADVISING = 128,
    OTHER = 256,   /* illegal memory access: the word, and not the thing */
    DENYING = 512, /* not for lack of memory */
    TOPICS = 1024  /* and the bits above it */
};

typedef struct phrase {
    const char *text; /* " out of memory " */
    size_t len;
    unsigned means;
} phrase;

struct oos_grammar {
    phrase *phrases;
    size_t count;
};

static oomsight_status phrases_read(oos_arena *arena, const json_t *root, oos_grammar *grammar,
                                    oomsight_error *reterr)
{
    static const struct {
        const char *key;
        unsigned means;
    } kinds[] = {{"lacking", LACKING},
                 {"failing", FAILING},
                 {"taking", TAKING},
                 {"short", SHORT},
                 {"relating", RELATING},
                 {"memory", MEMORY},
                 {"holding", HOLDING},
                 {"advising", ADVISING},
                 {"other", OTHER},
                 {"denying", DENYING},
                 {"of_kv", TOPICS * OOS_TOPIC_KV},
                 {"of_shared", TOPICS * OOS_TOPIC_SHARED},
                 {"of_host", TOPICS * OOS_TOPIC_HOST},
                 {"of_load", TOPICS * OOS_TOPIC_LOAD},
                 {"of_graph", TOPICS * OOS_TOPIC_GRAPH},
                 {"of_comm", TOPICS * OOS_TOPIC_COMM},
                 {"of_serve", TOPICS * OOS_TOPIC_SERVE},
                 {"of_prefill", TOPICS * OOS_TOPIC_PREFILL}};
    size_t count = 0;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        count += json_array_size(json_object_get(root, kinds[k].key));
    grammar->phrases = OOS_NEW_ARRAY(arena, phrase, count ? count : 1);
    if (!grammar->phrases) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the words");
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        const json_t *list = json_object_get(root, kinds[k].key), *word;
        size_t at;
        json_array_foreach(list, at, word)
        {
            const char *text = json_string_value(word);
            size_t const len = text ? strlen(text) : 0;
            bool const open = len && text[len - 1] == '*'; /* any ending */
            const char *padded =
                len ? oos_arena_format(arena, open ? " %.*s" : " %.*s ", (int)(len - open), text) : NULL;
            if (!padded) return oos_fail(reterr, OOMSIGHT_MALFORMED, "a list of words holds no word");
            grammar->phrases[grammar->count++] = (phrase){padded, strlen(padded), kinds[k].means};
        }
    }
    return OOMSIGHT_OK;
}

oomsight_status oos_grammar_load(oos_arena *arena, const char *data_dir, const oos_grammar **ret_grammar,
                                 oomsight_error *reterr)
{
    static const char path[] = "explain/words.json";
    json_t *root;
    oos_grammar *grammar = OOS_NEW(arena, oos_grammar);
    if (!grammar) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the words");
    OOS_TRY(oos_data_json(arena, data_dir, path, &root, reterr));
    OOS_TRY(phrases_read(arena, root, grammar, reterr));
    *ret_grammar = grammar;
    return OOMSIGHT_OK;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* A number and a unit of memory: "31.27 gib", "20971520 bytes", "559243264 b". "8 b" of "Qwen3-8B" are parameters. */
static bool unit_follows(const char *at)
{
    static const char *const units[] = {"b",   "kb",  "mb",  "gb",    "tb",  "kib",
                                        "mib", "gib", "tib", "bytes", "byte"};
    enum { BYTES_LEAST_DIGITS = 5 };
    const char *const number = at;
    while (is_digit(*at) || *at == '.') at++;
    bool const few = at - number < BYTES_LEAST_DIGITS;
    if (*at == ' ') at++;
    size_t const len = strcspn(at, " ");
    if (few && len == 1) return false;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strlen(units[i]) == len && strncmp(at, units[i], len) == 0) return true;
    return false;
}

static size_t count_sizes(const char *text)
{
    size_t count = 0;
    for (const char *at = text; *at; at++)
        if (is_digit(*at) && at > text && at[-1] == ' ') count += unit_follows(at);
    return count;
}

/* The first two letters of every word of a sentence. Most phrases begin with a pair that is not there. */
typedef struct {
    uint32_t second[32]; /* by the first letter, one bit for each second letter */
} openings;

static openings openings_of(const char *text, size_t len)
{
    openings it = {0};
    for (size_t i = 0; i + 2 < len; i++)
        if (text[i] == ' ') it.second[text[i + 1] & 31] |= UINT32_C(1) << (text[i + 2] & 31);
    return it;
}

static bool may_hold(const openings *it, const phrase *p)
{
    return p->len < 3 || it->second[p->text[1] & 31] & UINT32_C(1) << (p->text[2] & 31);
}

/* One sentence, in small letters, words between single spaces, a space at either end. */
static oos_says sentence_says(const oos_grammar *grammar, const char *text, size_t len, unsigned *ret_topics)
{
    unsigned found = 0;
    size_t lack_at = len, advice_at = len;
    openings const words = openings_of(text, len);
    for (size_t i = 0; i < grammar->count; i++) {
        const phrase *p = &grammar->phrases[i];
        if (!may_hold(&words, p)) continue;
        const char *at = memmem(text, len, p->text, p->len);
        if (!at) continue;
        found |= p->means;
        size_t const place = (size_t)(at - text);
        if (p->means == ADVISING) advice_at = oos_min(advice_at, place);
        if (p->means & (LACKING | TAKING | SHORT | RELATING)) lack_at = oos_min(lack_at, place);
    }
    *ret_topics = found / TOPICS;
    if (found & DENYING || (found & OTHER && !(found & LACKING))) return OOS_SAYS_NOTHING;
    size_t const sizes = count_sizes(text);
    bool const memory = found & MEMORY;
    bool const lack =
        found & LACKING || (found & FAILING && found & TAKING && (memory || found & HOLDING || sizes)) ||
        (found & SHORT && (memory || sizes || (found & TAKING && found & HOLDING))) ||
        (found & RELATING && (memory || found & TAKING) && sizes >= 1) || (found & RELATING && sizes >= 2);
    if (lack) return advice_at < lack_at ? OOS_SAYS_ADVICE : OOS_SAYS_LACK;
    if (memory) return found & ADVISING ? OOS_SAYS_ADVICE : OOS_SAYS_MEMORY;
    return OOS_SAYS_NOTHING;
}

/* "31 GiB >= 25 GiB", and no arrow. */
static bool is_relation(oos_view text, size_t at)
{
    char const c = text.ptr[at], next = at + 1 < text.len ? text.ptr[at + 1] : ' ';
    char const before = at ? text.ptr[at - 1] : ' ';
    return (c == '<' || c == '>') && (next == '=' || next == ' ') && before == ' ';
}

/* "/src/utils/allocator.h:163" names a file, not what happened: its length, 0 if `text` does not begin with one. */
static size_t source_path(oos_view text)
{
    static const char *const endings[] = {".h",   ".hpp", ".cuh", ".c",  ".cc",
                                          ".cpp", ".cu",  ".py",  ".rs", ".go"};
    size_t len = 0, dot = 0;
    bool deep = false;
    for (; len < text.len && text.ptr[len] > ' ' && !strchr("\"'`()[]<>,;", text.ptr[len]); len++) {
        if (text.ptr[len] == '.' && len + 1 < text.len && !is_digit(text.ptr[len + 1])) dot = len;
        deep |= text.ptr[len] == '/' || text.ptr[len] == '\\';
    }
    if (!dot || !deep) return 0;
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        size_t const end = dot + strlen(endings[i]);
        if (end <= len && memcmp(text.ptr + dot, endings[i], end - dot) == 0 &&
            (end == len || text.ptr[end] == ':'))
            return len;
    }
    return 0;
}

/* Length of what names a place in a program. */
static size_t no_words(oos_view text)
{
    size_t const path = source_path(text);
    return path ? path : oos_native_name(text);
}

/* The next sentence of `text` from *at on, as sentence_says() wants it. Dots between digits are kept. */
static size_t next_sentence(oos_view text, size_t *at, char *to)
{
    size_t len = 0;
    to[len++] = ' ';
    for (; *at < text.len && len + 4 < TEXT_MAX_BYTES; (*at)++) {
        if (to[len - 1] == ' ') *at += no_words(oos_view_slice(text, *at, SIZE_MAX));
        if (*at >= text.len) break;
        char const c = text.ptr[*at], next = *at + 1 < text.len ? text.ptr[*at + 1] : ' ';
        bool const word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) ||
                          (c == '.' && is_digit(next) && is_digit(to[len - 1])) || (unsigned char)c >= 0x80;
        if (word) {
            /* "20GiB" is a number and its unit. */
            bool const letter = !is_digit(c) && c != '.';
            if (letter && is_digit(to[len - 1])) to[len++] = ' ';
            to[len++] = c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
            continue;
        }
        if (to[len - 1] != ' ') to[len++] = ' ';
        if (is_relation(text, *at) && len + 12 < TEXT_MAX_BYTES) {
            memcpy(to + len, "exceeds ", 8);
            len += 8;
        }
        if ((c == '.' || c == ';' || c == '!') && (next == ' ' || next == '\t')) {
            (*at)++;
            break;
        }
    }
    if (to[len - 1] != ' ') to[len++] = ' ';
    to[len] = '\0';
    return len;
}

oos_says oos_grammar_read(const oos_grammar *grammar, oos_view text, unsigned *ret_topics)
{
    char sentence[TEXT_MAX_BYTES];
    oos_says most = OOS_SAYS_NOTHING;
    for (size_t at = 0; at < text.len;) {
        size_t const before = at, len = next_sentence(text, &at, sentence);
        unsigned topics;
        oos_says const says = sentence_says(grammar, sentence, len, &topics);
        if (says == OOS_SAYS_LACK && ret_topics) *ret_topics |= topics;
        if (says > most) most = says;
        if (at == before) break;
    }
    return most;
}
