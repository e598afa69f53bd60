#include "unit.h"

#include "compare.h"

#include <string.h>

typedef struct scene {
    oos_arena *arena;
    oos_literal_scan *scan;
} scene;

static scene scene_of(const char *const *words, size_t count)
{
    scene s = {.arena = oos_arena_create(4096)};
    oos_literals *literals;
    assert_int_equal(oos_literals_create(s.arena, words, count, &literals, NULL), OOMSIGHT_OK);
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

/* Every way in which one word can lie in another, in all texts of three letters. */
static void our_own_matcher_finds_all_words_that_overlap(void **state)
{
    (void)state;
    static const char *const words[] = {"a", "aa", "aab", "ab",      "abab", "bab",
                                        "b", "AB", "cab", "abcabca", "bc"};
    enum { WORDS = sizeof words / sizeof *words, LETTERS = 7 };
    for (unsigned number = 0; number < 2187; number++) { /* 3 to the power of LETTERS */
        oos_arena *arena = oos_arena_create(4096);
        char text[LETTERS];
        unsigned rest = number;
        size_t hits;
        for (size_t i = 0; i < LETTERS; i++, rest /= 3) text[i] = "aBc"[rest % 3];
        assert_true(comparison_own(arena, words, WORDS, (oos_view){text, LETTERS}, number % 2, &hits));
        oos_arena_free(arena);
    }
}

static void our_own_matcher_takes_every_byte(void **state)
{
    (void)state;
    static const char *const words[] = {"\xff\xfe", "\x80", "\xc3\xa9", "\x01\x02", "[]{|}@`"};
    oos_arena *arena = oos_arena_create(4096);
    char text[512];
    size_t hits;
    for (size_t i = 0; i < sizeof text; i++) text[i] = (char)(i * 255 / 256);
    memcpy(text + 100, "\xff\xfe\xc3\xa9\xc3\x89[]{|}@`{}[|]`@", 20);
    assert_true(comparison_own(arena, words, 5, (oos_view){text, sizeof text}, 0, &hits));
    assert_true(hits >= 4);
    assert_true(comparison_own(arena, words, 5, (oos_view){text, sizeof text}, 3, &hits));
    oos_arena_free(arena);
}

/* What Vectorscan misses: hence it is held to the words of explain alone, by tests/match/differential.c. */
static void our_own_matcher_finds_every_one_of_a_few_words_at_any_length_of_blocks(void **state)
{
    (void)state;
    static const char *const words[] = {"\r", "mem\raaaaaaaaaaaaaaaaaaaaaaa"};
    size_t const len = strlen(words[1]);
    for (size_t before = 0; before < 160; before += 3) {
        oos_arena *arena = oos_arena_create(4096);
        char text[256];
        size_t hits;
        memset(text, '#', sizeof text);
        memcpy(text + before, words[1], len);
        assert_true(comparison_own(arena, words, 2, (oos_view){text, sizeof text}, (uint32_t)before, &hits));
        assert_int_equal(hits, 2);
        oos_arena_free(arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_are_found_where_they_end_whatever_their_case),
        cmocka_unit_test(a_word_across_two_blocks_is_found_and_a_restart_forgets_its_beginning),
        cmocka_unit_test(hits_beyond_the_most_are_dropped_and_said_to_be),
        cmocka_unit_test(our_own_matcher_finds_all_words_that_overlap),
        cmocka_unit_test(our_own_matcher_takes_every_byte),
        cmocka_unit_test(our_own_matcher_finds_every_one_of_a_few_words_at_any_length_of_blocks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
