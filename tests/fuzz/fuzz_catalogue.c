/* Any bytes as a list of models: what `oomsight models --update` kept, or a file of --data. */
#include "fuzz.h"

#include "model/model.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    oos_view const text = {(const char *)bytes, len};
    oos_view id, value;
    oos_arena *arena = oos_arena_create(4096);
    oos_walk walk = oos_walk_begin(text);
    for (size_t i = 0; arena && i < 64 && oos_walk_next(&walk, &id, &value); i++) {
        oos_listed listed;
        oos_model model;
        oomsight_error error;
        const char *name = oos_scan_text(arena, id);
        FUZZ_REQUIRE(id.ptr >= text.ptr && id.ptr + id.len <= text.ptr + text.len);
        FUZZ_REQUIRE(value.ptr >= text.ptr && value.ptr + value.len <= text.ptr + text.len);
        if (!name || oos_catalogue_find_in(arena, text, name, &listed, &error) != OOMSIGHT_OK) continue;
        FUZZ_REQUIRE(listed.level && listed.wide < 1000);
        if (oos_catalogue_open(arena, NULL, &listed, NULL, &model, &error) == OOMSIGHT_OK)
            (void)oos_model_parameters(&model);
    }
    oos_arena_free(arena);
    return 0;
}
