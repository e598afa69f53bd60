#include "unit.h"

#include "facts/gpu.h"
#include "facts/version.h"

static oos_version version(const char *text)
{
    oos_version parsed = 0;
    assert_true(oos_version_parse(oos_view_of(text), &parsed));
    return parsed;
}

static void versions_are_ordered_and_a_dev_build_is_older_than_its_release(void **state)
{
    (void)state;
    assert_true(version("0.9.2") < version("0.10.0"));
    assert_true(version("v0.11.0") == version("0.11.0"));
    assert_true(version("0.11.1.dev12+g5ded9e9aa") < version("0.11.1"));
    assert_true(version("0.11.1.dev12+g5ded9e9aa") >= version("0.11.0"));
    assert_true(version("0.20.0.dev1") > version("0.19.1"));
    assert_true(version("0.8") == OOS_VERSION(0, 8, 0));
    oos_version parsed;
    assert_false(oos_version_parse(oos_view_of("latest"), &parsed));
    assert_false(oos_version_parse(oos_view_of("0.999999"), &parsed));
}

static void a_gpu_is_found_by_any_usual_spelling_with_a_count(void **state)
{
    (void)state;
    oos_arena *arena = oos_arena_create(4096);
    oos_gpus gpus;
    assert_int_equal(oos_gpus_load(arena, NULL, &gpus, NULL), OOMSIGHT_OK);
    static const char *const words[] = {"A30x4", "NVIDIA A30 x4", "4xa30"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        uint64_t count = 0;
        const oos_gpu *gpu = oos_gpus_find(&gpus, oos_view_of(words[i]), &count);
        assert_non_null(gpu);
        assert_string_equal(gpu->name, "NVIDIA A30");
        assert_int_equal(gpu->capability, 80);
        assert_true(count == 4);
    }
    uint64_t count;
    assert_null(oos_gpus_find(&gpus, oos_view_of("no such card"), &count));
    assert_null(oos_gpus_find(&gpus, oos_view_of(""), &count));
    oos_arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(versions_are_ordered_and_a_dev_build_is_older_than_its_release),
        cmocka_unit_test(a_gpu_is_found_by_any_usual_spelling_with_a_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
