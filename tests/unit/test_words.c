/* The catalogue of sentences, and lines of characters that take two columns. */
#include "report/report.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

static void says(const char *english, const char *chinese)
{
    oos_text text = {0};
    oos_words_put(&text, oos_view_of(english));
    assert_string_equal(text.ptr ? text.ptr : "", chinese);
    oos_text_free(&text);
}

static void a_sentence_is_found_by_its_pattern_and_so_are_its_pieces(void **state)
{
    (void)state;
    says("Memory while loading weights (GiB)", "加载权重时的显存（GiB）");
    says("1,024 KV tokens. Trade-off: smaller KV cache; no sleep mode.",
         "1,024 个 KV token。代价：KV 缓存更小；没有睡眠模式。");
}

static void slots_may_change_their_order(void **state)
{
    (void)state;
    says("Each running sequence needs a state block of its own: 3 blocks are there for 7 sequences.",
         "每个运行中的序列都需要自己的状态块：7 个序列只有 3 个块。");
}

static void a_list_is_known_when_each_of_its_parts_is(void **state)
{
    (void)state;
    says("no sleep mode; no images, video and audio; shorter requests only",
         "没有睡眠模式；不支持图像、视频和音频；只能用更短的请求");
    says("CUDA graphs, something new", "CUDA graphs, something new");
}

static void what_is_not_known_stays_as_it_is_with_the_blanks_around_it(void **state)
{
    (void)state;
    says("\n  a sentence nobody has written  \n", "\n  a sentence nobody has written  \n");
    says("\n  needed\n", "\n  需要\n");
    says("", "");
    says("   ", "   ");
}

static void a_pattern_of_little_text_takes_one_word_only(void **state)
{
    (void)state;
    says(" in weight_load", "（阶段 weight_load）");
    says("in the end it was something else", "in the end it was something else");
}

static void a_hostile_sentence_costs_its_length(void **state)
{
    (void)state;
    size_t const len = 4000;
    char *long_one = malloc(len + 1);
    assert_non_null(long_one);
    for (size_t i = 0; i < len; i++) long_one[i] = i % 2 ? ' ' : ';';
    long_one[len] = '\0';
    oos_text text = {0};
    oos_words_put(&text, oos_view_of(long_one));
    assert_int_equal(text.len, len);
    oos_text_free(&text);
    free(long_one);
}

static void characters_of_two_columns_are_counted_as_two(void **state)
{
    (void)state;
    assert_int_equal(oos_words_columns(oos_view_of("GiB")), 3);
    assert_int_equal(oos_words_columns(oos_view_of("显存")), 4);
    assert_int_equal(oos_words_columns(oos_view_of("█")), 1);
    assert_int_equal(oos_words_columns((oos_view){"\xe6\x98", 2}), 1); /* cut off */
}

static void no_line_is_wider_than_asked_and_none_begins_with_a_closing_mark(void **state)
{
    (void)state;
    oos_text text = {0};
    oos_style const style = {.text = &text, .width = 20, .chinese = true};
    oos_style_paragraph(&style, 2, "权重放得下，但重排时需要短暂的第二份副本（max_num_seqs）。完。");
    for (char *line = strtok(text.ptr, "\n"); line; line = strtok(NULL, "\n")) {
        assert_true(oos_words_columns(oos_view_of(line)) <= 20);
        assert_false(oos_view_starts(oos_view_of(line + 2), "，") ||
                     oos_view_starts(oos_view_of(line + 2), "。"));
    }
    oos_text_free(&text);
}

static void the_language_is_the_one_asked_for(void **state)
{
    (void)state;
    oomsight_render_params params = OOMSIGHT_RENDER_PARAMS_INIT;
    setenv("LC_ALL", "zh_CN.UTF-8", 1);
    assert_true(oos_words_chinese(&params));
    params.language = "en";
    assert_false(oos_words_chinese(&params));
    params.language = "zh";
    setenv("LC_ALL", "C", 1);
    assert_true(oos_words_chinese(&params));
}

/* A table of `rows` rows of `columns` cells on a screen of `width`. */
static void tabled(unsigned width, size_t columns, size_t kept, const char *const *cells, size_t rows,
                   const char *shown)
{
    oos_text text = {0};
    oos_style const style = {.text = &text, .width = width};
    oos_table table = {.columns = columns, .kept = kept, .right = 4};
    for (size_t i = 0; i < rows * columns; i++) oos_table_put(&table, &style, OOS_INK_PLAIN, cells[i]);
    oos_table_end(&table, &style);
    assert_string_equal(text.ptr ? text.ptr : "", shown);
    oos_text_free(&text);
}

static void cells_are_two_blanks_apart_and_none_is_empty(void **state)
{
    (void)state;
    static const char *const cells[] = {"release", "answer", "tokens", "0.9.2", "a long answer",
                                        "7",       "0.10",   NULL,     ""};
    tabled(80, 3, 1, cells, 3,
           "release  answer         tokens\n"
           "0.9.2    a long answer       7\n"
           "0.10     -                   -\n");
}

static void a_table_that_is_too_wide_goes_on_below_behind_its_first_columns(void **state)
{
    (void)state;
    static const char *const cells[] = {"model",      "first",   "second", "a-model-with-a-long-name",
                                        "will start", "will not"};
    tabled(30, 3, 1, cells, 2,
           "model               first\n"
           "a-model-with-a-l..  will start\n"
           "\n"
           "model                 second\n"
           "a-model-with-a-l..  will not\n");
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sentence_is_found_by_its_pattern_and_so_are_its_pieces),
        cmocka_unit_test(slots_may_change_their_order),
        cmocka_unit_test(a_list_is_known_when_each_of_its_parts_is),
        cmocka_unit_test(what_is_not_known_stays_as_it_is_with_the_blanks_around_it),
        cmocka_unit_test(a_pattern_of_little_text_takes_one_word_only),
        cmocka_unit_test(a_hostile_sentence_costs_its_length),
        cmocka_unit_test(characters_of_two_columns_are_counted_as_two),
        cmocka_unit_test(no_line_is_wider_than_asked_and_none_begins_with_a_closing_mark),
        cmocka_unit_test(cells_are_two_blanks_apart_and_none_is_empty),
        cmocka_unit_test(a_table_that_is_too_wide_goes_on_below_behind_its_first_columns),
        cmocka_unit_test(the_language_is_the_one_asked_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
