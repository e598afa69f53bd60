/* against_pcre2 COUNT [SEED] [FILE...]: texts made of the words of explain, whole, cut, in another case and run into one another,
 * and noise between them; the matcher and PCRE2 must find the same in each. With files, those are scanned too. */
#include "base/file.h"
#include "compare.h"
#include "explain/explain.h"

#include <stdio.h>
#include <stdlib.h>

enum { TEXT_MAX = 600, FILE_MAX = 64 << 20 };

static uint64_t state;
static uint32_t pick(uint32_t below)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((state >> 33) % below);
}

static size_t add_word(char *text, size_t len, const char *word)
{
    size_t const all = strlen(word), from = pick(8) ? 0 : pick((uint32_t)all),
                 to = pick(8) ? all : from + pick((uint32_t)(all - from) + 1);
    bool const other_case = pick(4) == 0;
    for (size_t i = from; i < to && len < TEXT_MAX; i++) {
        char c = word[i];
        if (other_case && ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) && pick(2)) c ^= 0x20;
        if (pick(200) == 0) c = (char)pick(256);
        text[len++] = c;
    }
    return len;
}

static oos_view make_text(char *text, const oos_signals *signals)
{
    size_t len = 0;
    for (uint32_t parts = 1 + pick(12); parts; parts--) {
        len = add_word(text, len, signals->words[pick((uint32_t)signals->literal_count)]);
        for (uint32_t noise = pick(3) ? 0 : pick(20); noise && len < TEXT_MAX; noise--)
            text[len++] = (char)pick(256);
    }
    return (oos_view){text, len};
}

int main(int argc, char **argv)
{
    unsigned long const texts = argc > 1 ? strtoul(argv[1], NULL, 10) : 20000;
    state = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    oos_arena *arena = oos_arena_create(1 << 20);
    oos_signals signals;
    oomsight_error error = {0};
    if (!arena || oos_signals_load(arena, NULL, &signals, &error) != OOMSIGHT_OK) return puts(error.text), 1;
    comparison *both = comparison_create(arena, signals.words, signals.literal_count);
    if (!both) return puts("the words are refused"), 1;
    uint64_t hits = 0, bytes = 0;
    size_t found;
    for (unsigned long i = 0; i < texts; i++) {
        char text[TEXT_MAX];
        oos_view const made = make_text(text, &signals);
        if (!comparison_run(both, made, pick(3) ? pick(1u << 31) : 0, &found)) {
            printf("text %lu differs: %.*s\n", i, (int)made.len, made.ptr);
            return 1;
        }
        hits += found;
        bytes += made.len;
    }
    for (int i = 3; i < argc; i++) {
        oos_arena *own = oos_arena_create(1 << 20);
        oos_view file;
        if (!own || oos_file_read(own, argv[i], FILE_MAX, &file, &error) != OOMSIGHT_OK)
            return puts(error.text), 1;
        if (!comparison_run(both, file, 0, &found) || !comparison_run(both, file, 7, &found))
            return printf("%s differs\n", argv[i]), 1;
        hits += found;
        bytes += file.len;
        oos_arena_free(own);
    }
    printf("%lu texts and %d files, %llu bytes, %llu hits: equal\n", texts, argc > 3 ? argc - 3 : 0,
           (unsigned long long)bytes, (unsigned long long)hits);
    oos_arena_free(arena);
    return 0;
}
