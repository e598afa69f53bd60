#include "unit.h"

#include "compare.h"
#include "explain/explain.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct scene {
    oos_arena *arena;
    oos_literal_scan *scan;
} scene;

static scene scene_of(const char *const *words, size_t count)
{
    scene s = {.arena = oos_arena_create(4096)};
    oos_literals *literals;
    assert_int_equal(oos_literals_create(s.arena, words, count, "", &literals, NULL), OOMSIGHT_OK);
    assert_int_equal(oos_literal_scan_open(literals, &s.scan, NULL), OOMSIGHT_OK);
    return s;
}

static void scene_end(scene s)
{
    oos_literal_scan_close(s.scan);
    oos_arena_free(s.arena);
}

static size_t feed(scene s, const char *text, oos_hit *hits, size_t most, bool *ret_cut)
{
    size_t count;
    assert_int_equal(oos_literal_scan_feed(s.scan, oos_view_of(text), hits, most, &count, ret_cut, NULL),
                     OOMSIGHT_OK);
    return count;
}

static void words_are_found_where_they_end_whatever_their_case(void **state)
{
    (void)state;
    scene const s = scene_of((const char *const[]){"out of memory", "CUDA", "kv"}, 3);
    oos_hit hits[8];
    bool cut;
    assert_int_equal(feed(s, "cuda Out Of Memory: KV", hits, 8, &cut), 3);
    assert_false(cut);
    assert_true(hits[0].end == 4 && hits[0].literal == 1);
    assert_true(hits[1].end == 18 && hits[1].literal == 0);
    assert_true(hits[2].end == 22 && hits[2].literal == 2);
    scene_end(s);
}

static void a_word_across_two_blocks_is_found_and_a_restart_forgets_its_beginning(void **state)
{
    (void)state;
    scene const s = scene_of((const char *const[]){"memory"}, 1);
    oos_hit hits[2];
    bool cut;
    assert_int_equal(feed(s, "out of mem", hits, 2, &cut), 0);
    assert_int_equal(feed(s, "ory", hits, 2, &cut), 1);
    assert_true(hits[0].end == 13);
    assert_int_equal(feed(s, "mem", hits, 2, &cut), 0);
    assert_int_equal(oos_literal_scan_restart(s.scan, NULL), OOMSIGHT_OK);
    assert_int_equal(feed(s, "ory", hits, 2, &cut), 0);
    assert_int_equal(feed(s, " memory", hits, 2, &cut), 1);
    assert_true(hits[0].end == 10);
    scene_end(s);
}

static void hits_beyond_the_most_are_dropped_and_said_to_be(void **state)
{
    (void)state;
    scene const s = scene_of((const char *const[]){"a"}, 1);
    oos_hit hits[3];
    bool cut;
    assert_int_equal(feed(s, "aaa", hits, 3, &cut), 3);
    assert_false(cut);
    assert_int_equal(feed(s, "aaaa", hits, 3, &cut), 3);
    assert_true(cut);
    scene_end(s);
}

/* Longer words are found by windows in their middle, which are not in the order of the words' ends. */
static void the_hits_that_are_kept_are_those_that_end_first(void **state)
{
    (void)state;
    static const char *const words[] = {"abcdefghijklmnop", "cdefgh", "ghij", "bcdefghijklmnopq"};
    static const uint64_t ends[] = {8, 10, 16, 17};
    for (size_t most = 0; most <= 4; most++) {
        scene const s = scene_of(words, 4);
        oos_hit hits[4];
        bool cut;
        assert_int_equal(feed(s, "ABCDEFGHIJKLMNOPQ", hits, most, &cut), most);
        assert_true(cut == (most < 4));
        for (size_t i = 0; i < most; i++) assert_true(hits[i].end == ends[i]);
        scene_end(s);
    }
}

static bool equal(const char *const *words, size_t count, oos_view text, uint32_t seed, size_t *ret_hits)
{
    oos_arena *arena = oos_arena_create(4096);
    comparison *both = comparison_create(arena, words, count);
    bool const same = both && comparison_run(both, text, seed, ret_hits);
    oos_arena_free(arena);
    return same;
}

/* Every way in which one word can lie in another, in all texts of three letters: words of one byte and more are looked at one way, those
 * of three and more another. */
static void words_that_overlap_are_all_found(void **state)
{
    (void)state;
    static const char *const words[] = {"a",   "aa",  "b",   "ab",   "bc",     "aab",
                                        "bab", "AAB", "cab", "abab", "abcabca"};
    enum { WORDS = sizeof words / sizeof *words, SHORT = 5, LETTERS = 7 }; /* SHORT: of one or two bytes */
    oos_arena *arena = oos_arena_create(4096);
    comparison *all = comparison_create(arena, words, WORDS);
    comparison *longer = comparison_create(arena, words + SHORT, WORDS - SHORT);
    assert_true(all && longer);
    for (unsigned number = 0; number < 2187; number++) { /* 3 to the power of LETTERS */
        char text[LETTERS];
        unsigned rest = number;
        for (size_t i = 0; i < LETTERS; i++, rest /= 3) text[i] = "aBc"[rest % 3];
        for (uint32_t seed = 0; seed < 3; seed++) {
            assert_true(comparison_run(all, (oos_view){text, LETTERS}, seed, NULL));
            assert_true(comparison_run(longer, (oos_view){text, LETTERS}, seed, NULL));
        }
    }
    oos_arena_free(arena);
}

/* A word of every length at every place, the first and the last of the text included. */
static void a_word_is_found_wherever_it_lies(void **state)
{
    (void)state;
    enum { LONGEST = 12, TEXT = 40 };
    for (size_t len = 1; len <= LONGEST; len++) {
        char word[LONGEST + 1] = "abcdefghijkl";
        word[len] = '\0';
        for (size_t before = 0; before + len <= TEXT; before++) {
            char text[TEXT];
            size_t hits;
            memset(text, '#', sizeof text);
            memcpy(text + before, word, len);
            for (uint32_t seed = 0; seed < 4; seed++) {
                assert_true(equal((const char *const[]){word}, 1, (oos_view){text, TEXT}, seed, &hits));
                assert_int_equal(hits, 1);
            }
        }
    }
}

static void every_byte_is_taken(void **state)
{
    (void)state;
    static const char *const words[] = {"\xff\xfe", "\x80", "\xc3\xa9", "\x01\x02", "[]{|}@`"};
    char text[512];
    size_t hits;
    for (size_t i = 0; i < sizeof text; i++) text[i] = (char)(i * 255 / 256);
    memcpy(text + 100, "\xff\xfe\xc3\xa9\xc3\x89[]{|}@`{}[|]`@", 20);
    assert_true(equal(words, 5, (oos_view){text, sizeof text}, 0, &hits));
    assert_true(hits >= 4);
    assert_true(equal(words, 5, (oos_view){text, sizeof text}, 3, &hits));
    assert_true(equal(words + 4, 1, (oos_view){text, sizeof text}, 0, &hits));
    assert_int_equal(hits, 1); /* not `{}[|]`@`, which differs by the bit that letters differ by in case */
}

static void a_few_words_are_found_at_any_length_of_blocks(void **state)
{
    (void)state;
    static const char *const words[] = {"\r", "mem\raaaaaaaaaaaaaaaaaaaaaaa"};
    size_t const len = strlen(words[1]);
    for (size_t before = 0; before < 160; before += 3) {
        char text[256];
        size_t hits;
        memset(text, '#', sizeof text);
        memcpy(text + before, words[1], len);
        assert_true(equal(words, 2, (oos_view){text, sizeof text}, (uint32_t)before, &hits));
        assert_int_equal(hits, 2);
    }
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* explain makes the set at every start, which must not be felt beside a small log. Best of ten each: about a third. */
static void the_words_of_explain_are_made_ready_in_less_time_than_a_megabyte_is_scanned(void **state)
{
    (void)state;
    enum { BYTES = 1 << 20, ROUNDS = 10 };
    oos_arena *arena = oos_arena_create(1 << 20);
    oos_signals signals;
    assert_int_equal(oos_signals_load(arena, NULL, &signals, NULL), OOMSIGHT_OK);
    char *text = malloc(BYTES);
    memset(text, '#', BYTES);
    double making = 1e9, scanning = 1e9;
    for (int round = 0; round < ROUNDS; round++) {
        double const start = now();
        scene const s = scene_of(signals.words, signals.literal_count);
        double const made = now();
        oos_hit hits[1];
        size_t count;
        bool cut;
        oos_literal_scan_feed(s.scan, (oos_view){text, BYTES}, hits, 1, &count, &cut, NULL);
        double const scanned = now();
        if (made - start < making) making = made - start;
        if (scanned - made < scanning) scanning = scanned - made;
        scene_end(s);
    }
    free(text);
    oos_arena_free(arena);
    if (clocks_decide() && making >= scanning)
        fail_msg("%.2f ms to make, %.2f ms to scan", making * 1e3, scanning * 1e3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_are_found_where_they_end_whatever_their_case),
        cmocka_unit_test(a_word_across_two_blocks_is_found_and_a_restart_forgets_its_beginning),
        cmocka_unit_test(hits_beyond_the_most_are_dropped_and_said_to_be),
        cmocka_unit_test(the_hits_that_are_kept_are_those_that_end_first),
        cmocka_unit_test(words_that_overlap_are_all_found),
        cmocka_unit_test(a_word_is_found_wherever_it_lies),
        cmocka_unit_test(every_byte_is_taken),
        cmocka_unit_test(a_few_words_are_found_at_any_length_of_blocks),
        cmocka_unit_test(the_words_of_explain_are_made_ready_in_less_time_than_a_megabyte_is_scanned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
