/* Any bytes as what the installed engine answered: what is taken of it stays within its bounds, and a plan is made of it. */
#include "fuzz.h"

#include "plan/plan.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    oos_arena *arena = oos_arena_create(4096);
    static oos_exact exact;
    if (!arena || !oos_exact_read(arena, (oos_view){(const char *)bytes, len}, &exact)) {
        oos_arena_free(arena);
        return 0;
    }
    FUZZ_REQUIRE(exact.engine && (exact.version || exact.verdict == OOS_EXACT_UNKNOWN));
    FUZZ_REQUIRE(exact.value_count <= OOS_EXACT_VALUES_MAX && exact.size_count <= OOS_EXACT_SIZES_MAX);
    FUZZ_REQUIRE(!exact.sentence || strlen(exact.sentence) < 8192);
    for (size_t i = 1; i < exact.size_count; i++) FUZZ_REQUIRE(exact.sizes[i - 1] < exact.sizes[i]);
    for (size_t i = 0; i < exact.value_count; i++) {
        const oos_setting *value = &exact.values[i];
        FUZZ_REQUIRE(value->name && oos_exact_value(&exact, value->name));
        FUZZ_REQUIRE(value->kind != OOS_SETTING_TEXT || value->text);
        FUZZ_REQUIRE(value->kind != OOS_SETTING_REAL || value->real >= 0);
    }
    oos_arena_free(arena);
    return 0;
}
