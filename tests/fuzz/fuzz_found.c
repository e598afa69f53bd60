/* Any bytes as a deployment file; the first one says of which kind, or that it is pasted. */
#include "fuzz.h"

#include "command/command.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    static const char *const names[] = {"a.sh", "a.yaml", "Dockerfile", "a.service"};
    if (len == 0) return 0;
    oos_arena *arena = oos_arena_create(4096);
    const oos_found *list;
    size_t count;
    oomsight_error error;
    oos_view const text = {(const char *)bytes + 1, len - 1};
    oos_found_doubt doubt;
    if (arena && oos_found_read(arena, bytes[0] & 4 ? "-" : names[bytes[0] & 3], text, &list, &count, &doubt,
                                &error) == OOMSIGHT_OK)
        for (size_t i = 0; i < count; i++) {
            FUZZ_REQUIRE(list[i].count > 0 && list[i].line > 0 && list[i].kind);
            for (size_t k = 0; k < list[i].count; k++) FUZZ_REQUIRE(list[i].words[k]);
        }
    oos_arena_free(arena);
    return 0;
}
