/* More cards, and other cards: how many are tried, and which are named. */
#include "unit.h"

#include "plan/plan.h"

static bool starts_from(void *of, const oos_gpu *gpu, uint64_t count, bool fewer, oos_need_gpu *ret_need)
{
    (void)fewer;
    if (count < *(const uint64_t *)of) return false;
    *ret_need = (oos_need_gpu){.gpu = gpu->name, .count = count};
    return true;
}

static void the_fewest_cards_that_are_enough_are_named_up_to_sixteen(void **state)
{
    (void)state;
    oos_arena *arena = oos_arena_create(64 << 10);
    oos_gpus gpus;
    uint64_t ignored;
    oomsight_error error = {0};
    assert_int_equal(oos_gpus_load(arena, NULL, &gpus, &error), OOMSIGHT_OK);
    const oos_gpu *own = oos_gpus_find(&gpus, oos_view_of("H100"), &ignored);
    assert_non_null(own);
    static oos_plan plan;
    plan.device.name = own->name;
    plan.device.total_bytes = own->total_bytes;
    for (uint64_t least = 1; least <= 32; least *= 2) {
        oos_needs needs = {0};
        oos_elsewhere const e = {&gpus, &plan, 1, starts_from, &least};
        oos_elsewhere_needs(&e, &needs);
        assert_int_equal(needs.gpu_count > 0, least <= 16);
        if (least > 16) continue;
        assert_string_equal(needs.gpus[0].gpu, own->name);
        assert_int_equal(needs.gpus[0].count, least > 1 ? least : 2);
        for (size_t i = 1; i < needs.gpu_count; i++) assert_int_equal(needs.gpus[i].count, least);
    }
    oos_arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_fewest_cards_that_are_enough_are_named_up_to_sixteen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
