/* Refusals that are rows of data: what each sign means, and rows with faults planted in them, each of which the reader finds. */
#include "unit.h"

#include "plan/plan.h"

#include <stdio.h>
#include <string.h>

static const char *const fields[] = {"tp", "heads", "word", "none"}, *const checks[] = {"own"};
static const oos_refusal_names names = {fields, checks, 4, 1};
typedef struct rules {
    bool yes;
    uint64_t whole;
    double real;
} rules;
static const oos_rule_place places[] = {{"yes", offsetof(rules, yes), OOS_RULE_YES},
                                        {"whole", offsetof(rules, whole), OOS_RULE_WHOLE},
                                        {"real", offsetof(rules, real), OOS_RULE_REAL}};

static oos_term_value field(const oos_check *c, size_t id)
{
    (void)c;
    return id == 0   ? oos_number_value(3)
           : id == 1 ? oos_number_value(32)
                     : (oos_term_value){.word = id == 2 ? "deepep_low" : NULL};
}

static bool own(oos_check *c)
{
    return oos_check_refuse(c, "by code");
}
static bool (*const code[])(oos_check *c) = {own};

static oos_refusal refusal;
static oos_arena *arena;

static oomsight_status read_text(const char *text, const oos_refusals **ret_refusals, oomsight_error *reterr)
{
    if (arena) oos_arena_free(arena);
    arena = oos_arena_create(1 << 14);
    return oos_refusals_read(arena, oos_view_of(text), &names, places, 3, ret_refusals, reterr);
}

/* What the steps say of `--max-a 1.5 --max-a 12 --on --name x:y --low -2 --loose`. */
static const char *said(const char *steps)
{
    static const oos_given_flag flags[] = {
        {.name = "--max-a", .value = "1.5"}, {.name = "--max-a", .value = "12"}, {.name = "--on"},
        {.name = "--name", .value = "x:y"},  {.name = "--low", .value = "-2"},   {.name = "--no-loose"}};
    static const oos_serve serve = {.flags = flags, .flag_count = sizeof flags / sizeof *flags};
    static const rules r = {true, 5, 0.5};
    const oos_refusals *refusals = NULL;
    oomsight_error error = {0};
    if (read_text(steps, &refusals, &error) != OOMSIGHT_OK) fail_msg("%s", error.text);
    oos_check c = {.arena = arena,
                   .serve = &serve,
                   .refusals = refusals,
                   .rules = &r,
                   .field = field,
                   .checks = code,
                   .refusal = &refusal};
    assert_int_equal(oos_check_run(&c, &error), OOMSIGHT_OK);
    return refusal.sentence;
}

static void each_condition_holds_as_it_is_written(void **state)
{
    (void)state;
    static const char *const hold[] = {
        "--on",        "!--off",        "--max-a",       "--max-a = 12", "--max-a != 11",
        "--max-a > 1", "--max-a >= 12", "--max-a <= 12", "--max-a < 13", "--low < 0",
        "!--off < 3",  "!--name > 0",   "heads % tp",    "tp",           "yes",
        "whole = 5",   "real < 1",      "word",          "!none",        "word in a,deepep_*",
        "word in *_*", "word in *low",  "--name in *:*", "tp < --max-a", "word in deepep_low"};
    static const char *const fail[] = {"!--on",         "--off",          "--off < 3", "--max-a = 1",
                                       "--max-a != 12", "--name > 0",     "tp % 3",    "tp % 0",
                                       "none",          "none in *",      "word in a", "word in deepep",
                                       "word in *dee",  "word in *lows*", "--on = 0"};
    char text[256];
    for (size_t i = 0; i < sizeof hold / sizeof *hold; i++) {
        snprintf(text, sizeof text, "[{\"when\":[\"%s\"],\"says\":\"no\"}]", hold[i]);
        if (!said(text)) fail_msg("does not hold: %s", hold[i]);
    }
    for (size_t i = 0; i < sizeof fail / sizeof *fail; i++) {
        snprintf(text, sizeof text, "[{\"when\":[\"%s\"],\"says\":\"no\"}]", fail[i]);
        if (said(text)) fail_msg("holds: %s", fail[i]);
    }
}

static void the_first_step_that_holds_refuses_with_its_values_and_corrections(void **state)
{
    (void)state;
    assert_string_equal(said("[{\"when\":[\"--off\"],\"says\":\"a\",\"fix\":[\"---off\"]},"
                             "{\"when\":[\"--on\"],\"phase\":\"weight_load\",\"says\":\"{tp} of {--max-a:d}, "
                             "{--name}, {--low:.1f}, {none}.\","
                             "\"fix\":[\"--max-a=heads\",\"---loose\",\"--x=none\"]},{\"check\":\"own\"}]"),
                        "3 of 12, x:y, -2.0, 0.");
    assert_int_equal(refusal.phase, OOS_PHASE_WEIGHT_LOAD);
    assert_int_equal(refusal.mend_count, 2); /* a correction to nothing is none */
    assert_int_equal(refusal.mends[0].value, 32);
    assert_string_equal(refusal.mends[1].flag, "--no-loose");
    assert_string_equal(
        said("[{\"when\":[\"--off\"],\"says\":\"a\"},{\"check\":\"own\",\"when\":[\"yes\"]}]"), "by code");
    assert_null(said("[]"));
    assert_int_equal(refusal.mend_count, 0);
}

static void each_planted_fault_is_found(void **state)
{
    (void)state;
    static const char *const faults[][2] = {
        {"{}", "JSON"},
        {"[{}]", "a sentence, bounds or a check"},
        {"[{\"says\":\"a\",\"bounds\":\"b\"}]", "a sentence, bounds or a check"},
        {"[{\"says\":\"\"}]", "empty"},
        {"[{\"says\":\"a\",\"if\":[]}]", "unknown field"},
        {"[{\"says\":\"{nobody}\"}]", "no flag, number"},
        {"[{\"says\":\"{tp\"}]", "without an end"},
        {"[{\"says\":\"{tp}{tp}{tp}{tp}{tp}{tp}{tp}\"}]", "too many places"},
        {"[{\"says\":\"a\",\"when\":[\"nobody\"]}]", "no flag, number"},
        {"[{\"says\":\"a\",\"when\":[\"12x = 1\"]}]", "no flag, number"},
        {"[{\"says\":\"a\",\"when\":[\"tp ~ 1\"]}]", "a sign between"},
        {"[{\"says\":\"a\",\"when\":[\"tp <\"]}]", "a sign between"},
        {"[{\"says\":\"a\",\"when\":[\"tp  3\"]}]", "a sign between"},
        {"[{\"says\":\"a\",\"when\":[\"tp\",\"tp\",\"tp\",\"tp\",\"tp\",\"tp\",\"tp\",\"tp\",\"tp\"]}]",
         "too many conditions"},
        {"[{\"says\":\"a\",\"fix\":[\"--x\"]}]", "a correction is"},
        {"[{\"says\":\"a\",\"fix\":[\"x=tp\"]}]", "a correction is"},
        {"[{\"says\":\"a\",\"fix\":[\"---x=tp\"]}]", "a correction is"},
        {"[{\"says\":\"a\",\"fix\":[\"--x=nobody\"]}]", "no flag, number"},
        {"[{\"says\":\"a\",\"phase\":\"later\"}]", "another name"},
        {"[{\"check\":\"nobody\"}]", "no code"},
        {"[{\"says\":\"a\"}", "JSON"},
        {"[{\"says\":\"a\"}]x", "JSON"},
    };
    const oos_refusals *refusals;
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        oomsight_error error = {0};
        assert_int_equal(read_text(faults[i][0], &refusals, &error), OOMSIGHT_MALFORMED);
        if (!strstr(error.text, faults[i][1])) fail_msg("fault %zu: %s", i, error.text);
    }
}

static void there_is_an_end_to_steps_and_to_sentences(void **state)
{
    (void)state;
    enum { MANY = 513 };
    static const char one[] = "{\"says\":\"a\"},";
    char *text = calloc(MANY + 1, sizeof one);
    const oos_refusals *refusals;
    oomsight_error error = {0};
    text[0] = '[';
    for (size_t i = 0, len = 1; i < MANY; i++, len += sizeof one - 1) memcpy(text + len, one, sizeof one);
    text[strlen(text) - 1] = ']';
    assert_int_equal(read_text(text, &refusals, &error), OOMSIGHT_MALFORMED);
    assert_non_null(strstr(error.text, "too many steps"));
    memset(text, 'a', 600);
    memcpy(text, "[{\"says\":\"", 10);
    strcpy(text + 600, "{--name}\"}]");
    assert_int_equal(strlen(said(text)), 593);
    memset(text + 600, 'a', 100);
    strcpy(text + 700, "\"}]");
    assert_int_equal(read_text(text, &refusals, &error), OOMSIGHT_MALFORMED);
    free(text);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_condition_holds_as_it_is_written),
        cmocka_unit_test(the_first_step_that_holds_refuses_with_its_values_and_corrections),
        cmocka_unit_test(each_planted_fault_is_found),
        cmocka_unit_test(there_is_an_end_to_steps_and_to_sentences),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
