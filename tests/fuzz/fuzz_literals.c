/* The matcher and PCRE2 over the same bytes. The first byte says how long the blocks are, the lines up to an empty one are the
 * words, the rest is the text; without an empty line the words are those of explain. */
#include "compare.h"
#include "explain/explain.h"
#include "fuzz.h"

enum { WORDS_MAX = 24 };

static comparison *of_explain(void)
{
    static comparison *both;
    static oos_arena *arena;
    oos_signals signals;
    if (both) return both;
    arena = oos_arena_create(1 << 20);
    FUZZ_REQUIRE(arena && oos_signals_load(arena, NULL, &signals, NULL) == OOMSIGHT_OK);
    both = comparison_create(arena, signals.words, signals.literal_count);
    FUZZ_REQUIRE(both);
    return both;
}

/* Words are cut out of `text`; those with a NUL byte end there, and empty ones are none. */
static size_t split(char *text, const char **words)
{
    size_t count = 0;
    for (char *line = text, *end; line && count < WORDS_MAX; line = end) {
        end = strchr(line, '\n');
        if (end) *end++ = '\0';
        if (*line) words[count++] = line;
    }
    return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    if (len < 2) return 0;
    oos_view const rest = {(const char *)bytes + 1, len - 1};
    const char *gap = memmem(rest.ptr, rest.len, "\n\n", 2);
    if (!gap) {
        FUZZ_REQUIRE(comparison_run(of_explain(), rest, bytes[0], NULL));
        return 0;
    }
    oos_arena *arena = oos_arena_create(4096);
    const char *words[WORDS_MAX];
    size_t const at = (size_t)(gap - rest.ptr);
    char *lines = arena ? oos_arena_copy(arena, oos_view_slice(rest, 0, at)) : NULL;
    size_t const count = lines ? split(lines, words) : 0;
    comparison *both = count ? comparison_create(arena, words, count) : NULL;
    if (count)
        FUZZ_REQUIRE(both && comparison_run(both, oos_view_slice(rest, at + 2, SIZE_MAX), bytes[0], NULL));
    oos_arena_free(arena);
    return 0;
}
