#include "unit.h"

#include "facts/facts.h"

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

static const oos_gpu *gpu_of(const oos_gpus *gpus, const char *word)
{
    uint64_t count;
    const oos_gpu *gpu = oos_gpus_find(gpus, oos_view_of(word), &count);
    assert_non_null(gpu);
    return gpu;
}

static oos_driver driver_of(const oos_gpu *gpu, uint64_t torch_minor)
{
    return oos_driver_of(gpu->capability, &gpu->costs, torch_minor);
}

static void a_board_on_the_bus_has_no_nvlink_whatever_its_family(void **state)
{
    (void)state;
    oos_arena *arena = oos_arena_create(1 << 16);
    oos_gpus gpus;
    assert_int_equal(oos_gpus_load(arena, NULL, &gpus, NULL), OOMSIGHT_OK);
    assert_true(driver_of(gpu_of(&gpus, "h100"), 0).nvlink);
    assert_true(driver_of(gpu_of(&gpus, "v100-sxm2-32gb"), 0).nvlink);
    assert_false(driver_of(gpu_of(&gpus, "h100-pcie"), 0).nvlink);
    assert_false(driver_of(gpu_of(&gpus, "a30"), 0).nvlink);
    assert_false(driver_of(gpu_of(&gpus, "4090"), 0).nvlink);
    oos_arena_free(arena);
}

static void a_graph_takes_half_on_hopper_from_torch_2_9_on(void **state)
{
    (void)state;
    oos_driver_costs const none = {0};
    assert_int_equal(oos_driver_of(90, &none, 8).graph_node.value, 12 * OOS_KIB);
    assert_int_equal(oos_driver_of(90, &none, 9).graph_node.value, 6 * OOS_KIB);
    assert_int_equal(oos_driver_of(90, &none, 0).graph_node.value, 6 * OOS_KIB);
    assert_int_equal(oos_driver_of(89, &none, 9).graph_node.value, 12 * OOS_KIB);
}

/* A row holds where the table says; ends are asked for one by one; outside of every row there is nothing. */
static void a_constant_is_the_row_of_its_place(void **state)
{
    (void)state;
    static const oos_constant_row rows[] = {
        {{0, 89}, {0, 999}, {0, 2}, 0, UINT64_MAX, -1, -1, {10, 5, 20, 1}, false},
        {{90, 999},
         {9, 999},
         {0, 2},
         OOS_VERSION(0, 18, 0),
         OOS_VERSION(0, 19, 0),
         1,
         0,
         {30, 15, 60, 2},
         false}};
    static const uint16_t first[] = {0, 1, 2};
    static const oos_constants table = {rows, first, 2};
    oos_constant_where where = {.capability = 89, .ranks = 2};
    assert_int_equal(oos_constant_of(&table, 0, &where), 10);
    where.end = OOS_CONSTANT_LOW;
    assert_int_equal(oos_constant_of(&table, 0, &where), 5);
    where.end = OOS_CONSTANT_HIGH;
    assert_int_equal(oos_constant_of(&table, 0, &where), 20);
    where.capability = 90;
    assert_int_equal(oos_constant_of(&table, 0, &where), 0);
    where.version = OOS_VERSION(0, 18, 1), where.nvlink = true;
    assert_int_equal(oos_constant_of(&table, 1, &where), 60); /* no minor: the newest torch */
    where.torch_minor = 8;
    assert_int_equal(oos_constant_of(&table, 1, &where), 0);
    where.torch_minor = 9, where.version = OOS_VERSION(0, 19, 0);
    assert_int_equal(oos_constant_of(&table, 1, &where), 0);
    where.version = OOS_VERSION(0, 18, 0), where.unified = true;
    assert_int_equal(oos_constant_of(&table, 1, &where), 0);
    where.unified = false, where.ranks = 3;
    assert_int_equal(oos_constant_of(&table, 1, &where), 0);
    where.ranks = UINT64_MAX;
    assert_int_equal(oos_constant_at(&table, 2, &where).sources, 0);
}

static void a_mistyped_gpu_is_answered_with_the_one_that_is_an_edit_away(void **state)
{
    (void)state;
    oos_arena *arena = oos_arena_create(1 << 16);
    oos_gpus gpus;
    const char *names[3];
    assert_int_equal(oos_gpus_load(arena, NULL, &gpus, NULL), OOMSIGHT_OK);
    assert_int_equal(oos_gpus_suggest(&gpus, oos_view_of("4009x2"), names, 3), 1);
    assert_string_equal(names[0], "NVIDIA GeForce RTX 4090");
    assert_int_equal(oos_gpus_suggest(&gpus, oos_view_of("4999"), names, 3), 0);
    oos_arena_free(arena);
}

static void a_device_is_found_by_what_is_said_of_it(void **state)
{
    (void)state;
    oos_arena *arena = oos_arena_create(1 << 16);
    oos_gpus gpus;
    oos_device_found found;
    oomsight_error error = {0};
    assert_int_equal(oos_gpus_load(arena, NULL, &gpus, NULL), OOMSIGHT_OK);
    const oos_gpu *h100 = gpu_of(&gpus, "h100");
    uint64_t const near = h100->total_bytes + 4 * OOS_MIB;
    assert_int_equal(oos_device_find(&gpus, &(oos_device_ask){.name = "h100x4"}, &found, NULL), OOMSIGHT_OK);
    assert_int_equal(found.count, 4);
    assert_true(found.count_given && found.by == OOS_DEVICE_NAMED);
    assert_int_equal(
        oos_device_find(&gpus, &(oos_device_ask){.name = "h100", .total_bytes = near}, &found, NULL),
        OOMSIGHT_OK);
    assert_int_equal(found.gpu.nvml_total_bytes, h100->nvml_total_bytes);
    assert_int_equal(
        oos_device_find(&gpus, &(oos_device_ask){.name = "h100", .total_bytes = 40 * OOS_GIB}, &found, NULL),
        OOMSIGHT_OK);
    assert_int_equal(found.gpu.nvml_total_bytes, 40 * OOS_GIB);
    assert_int_equal(oos_device_find(&gpus, &(oos_device_ask){.total_bytes = near}, &found, NULL),
                     OOMSIGHT_OK);
    assert_true(found.by == OOS_DEVICE_BY_TOTAL && found.gpu.capability == 90);
    assert_int_equal(found.gpu.total_bytes, near);
    assert_int_equal(oos_device_find(&gpus, &(oos_device_ask){.total_bytes = 7 * OOS_GIB}, &found, NULL),
                     OOMSIGHT_OK);
    assert_true(found.by == OOS_DEVICE_ASSUMED && found.gpu.capability == 80 && !found.gpu.name);
    assert_int_equal(
        oos_device_find(&gpus, &(oos_device_ask){.total_bytes = near, .capability = 120}, &found, NULL),
        OOMSIGHT_OK);
    assert_true(found.by == OOS_DEVICE_DESCRIBED && found.gpu.capability == 120 && !found.gpu.name);
    assert_int_equal(oos_device_find(&gpus, &(oos_device_ask){.capability = 90}, &found, &error),
                     OOMSIGHT_USAGE);
    unsigned capability = 0;
    assert_true(oos_capability_parse("12.0", &capability) && capability == 120);
    assert_true(oos_capability_parse("90", &capability) && capability == 90);
    assert_false(oos_capability_parse("9", &capability) || oos_capability_parse("9.", &capability) ||
                 oos_capability_parse("9.00", &capability) || oos_capability_parse("", &capability) ||
                 oos_capability_parse("99999999999.0", &capability));
    oos_arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(versions_are_ordered_and_a_dev_build_is_older_than_its_release),
        cmocka_unit_test(a_board_on_the_bus_has_no_nvlink_whatever_its_family),
        cmocka_unit_test(a_graph_takes_half_on_hopper_from_torch_2_9_on),
        cmocka_unit_test(a_constant_is_the_row_of_its_place),
        cmocka_unit_test(a_mistyped_gpu_is_answered_with_the_one_that_is_an_edit_away),
        cmocka_unit_test(a_device_is_found_by_what_is_said_of_it),
        cmocka_unit_test(a_gpu_is_found_by_any_usual_spelling_with_a_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
