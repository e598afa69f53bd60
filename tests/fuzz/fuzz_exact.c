/* Any bytes as what the installed engine answered: what is taken of it stays within its bounds, and a line for one of many commands is the same
 * in whatever pieces it comes. */
#include "fuzz.h"

#include "oomsight_private.h"
#include "plan/plan.h"

#include <string.h>

enum { ID = 1, PIECES = 16 };

static void lines_look(const char *text, size_t len)
{
    const char *end = len ? memchr(text, '\n', len) : NULL;
    size_t used = 0, before = 0;
    oomsight_answer_state const state = oomsight_answer_look(text, len, ID, &used);
    FUZZ_REQUIRE((state == OOMSIGHT_ANSWER_PART) == (!end && len < OOMSIGHT_ANSWER_BYTES));
    if (state == OOMSIGHT_ANSWER_WHOLE) {
        FUZZ_REQUIRE(text + used == end && used + 1 == len);
        FUZZ_REQUIRE(oomsight_answer_look(text, len, ID + 1, &before) == OOMSIGHT_ANSWER_BROKEN);
    }
    for (size_t i = 1; i < PIECES && len; i++) { /* what came before the rest did */
        size_t const part = len * i / PIECES;
        bool const ended = part && memchr(text, '\n', part);
        if (part < OOMSIGHT_ANSWER_BYTES && !ended)
            FUZZ_REQUIRE(oomsight_answer_look(text, part, ID, &before) == OOMSIGHT_ANSWER_PART);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    lines_look((const char *)bytes, len);
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
