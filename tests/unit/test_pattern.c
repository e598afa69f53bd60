#include "unit.h"

#include "match/match.h"

static const oos_regex *compiled(oos_arena *arena, const char *text)
{
    const oos_regex *pattern = oos_regex_compile(arena, text);
    if (!pattern) print_error("not understood: %s\n", text);
    assert_non_null(pattern);
    return pattern;
}

static void names_are_matched_as_python_matches_them(void **state)
{
    (void)state;
    static const struct {
        const char *pattern, *text;
        bool matches, searches;
    } cases[] = {
        {".*self_attn.*", "model.layers.0.self_attn.q_proj", true, true},
        {"self_attn", "model.layers.0.self_attn.q_proj", false, true},
        {".*mlp\\.(gate|up|gate_up|down)_proj.*", "model.layers.1.mlp.gate_up_proj", true, true},
        {".*mlp\\.(gate|up|gate_up|down)_proj.*", "model.layers.1.mlp.experts.0.up_proj", false, false},
        {".*mlp\\.gate$", "model.layers.1.mlp.gate", true, true},
        {".*mlp\\.gate$", "model.layers.1.mlp.gate_up_proj", false, false},
        {".*\\.(?:1[0-5])\\..*", "model.layers.12.mlp", true, true},
        {".*\\.(?:1[0-5])\\..*", "model.layers.16.mlp", false, false},
        {"^(?!.*experts).*proj$", "model.layers.3.mlp.down_proj", true, true},
        {"^(?!.*experts).*proj$", "model.layers.3.mlp.experts.down_proj", false, false},
        {".*layers\\.\\d+\\.mlp.*", "model.layers.33.mlp.x", true, true},
        {"a{2,3}b", "aab", true, true},
        {"a{2,3}b", "ab", false, false},
        {"a{2,3}b$", "aaaab", false, true},
        {"(a|b|cd)*e", "abcdabe", true, true},
        {"(ab)?c", "c", true, true},
        {"[^.]+\\.x", "lm_head.x", true, true},
        {"[^.]+\\.x", "a.b.x", false, true},
        {"x{,2}y", "xxy", true, true},
        {"a{b", "a{b", true, true},
        {"\\bgate\\b", "mlp.gate.x", false, true},
        {"a+?b+", "aabb", true, true},
        {"|a", "b", true, true},
        {"(?<=mlp\\.)gate$", "mlp.gate", false, true},
        {"(?P<part>up|down)_proj", "up_proj", true, true},
    };
    oos_arena *arena = oos_arena_create(1 << 16);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const oos_regex *pattern = compiled(arena, cases[i].pattern);
        if (oos_regex_matches(pattern, cases[i].text) != cases[i].matches ||
            oos_regex_searches(pattern, cases[i].text) != cases[i].searches)
            fail_msg("%s on %s", cases[i].pattern, cases[i].text);
    }
    oos_arena_free(arena);
}

static void what_is_not_understood_is_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"(", "a)", "*a", "[a", "a\\", ""};
    oos_arena *arena = oos_arena_create(1 << 16);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (oos_regex_compile(arena, bad[i])) fail_msg("understood: %s", bad[i]);
    oos_arena_free(arena);
}

static void a_hostile_pattern_is_not_slow(void **state)
{
    (void)state;
    oos_arena *arena = oos_arena_create(1 << 16);
    char text[2001];
    memset(text, 'a', 2000);
    text[2000] = '\0';
    assert_false(oos_regex_matches(compiled(arena, "(a*)*(a|aa)*b"), text));
    oos_arena_free(arena);
}

static void globs_match_the_whole_name(void **state)
{
    (void)state;
    assert_true(oos_glob_matches("model.layers.0*", "model.layers.0.self_attn.q_proj"));
    assert_true(oos_glob_matches("*.mlp.shared_expert.*", "m.layers.0.mlp.shared_expert.up"));
    assert_false(oos_glob_matches("model.layers.1.*", "model.layers.10.mlp"));
    assert_true(oos_glob_matches("layers.[0-3].?", "layers.2.x"));
    assert_false(oos_glob_matches("layers.[!0-3].?", "layers.2.x"));
    assert_false(oos_glob_matches("lm_head", "model.lm_head"));
    assert_true(oos_glob_matches("*", ""));
    assert_true(oos_glob_matches("a[", "a["));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_matched_as_python_matches_them),
        cmocka_unit_test(what_is_not_understood_is_refused),
        cmocka_unit_test(a_hostile_pattern_is_not_slow),
        cmocka_unit_test(globs_match_the_whole_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
