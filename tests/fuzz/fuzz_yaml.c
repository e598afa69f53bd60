/* Any bytes as a --config file. */
#include "fuzz.h"

#include "command/command.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    oos_arena *arena = oos_arena_create(4096);
    const oos_yaml_option *options;
    size_t count;
    oomsight_error error;
    if (arena &&
        oos_yaml_read(arena, (oos_view){(const char *)bytes, len}, &options, &count, &error) == OOMSIGHT_OK)
        for (size_t i = 0; i < count; i++) {
            FUZZ_REQUIRE(options[i].key);
            for (size_t k = 0; k < options[i].value_count; k++) FUZZ_REQUIRE(options[i].values[k]);
        }
    oos_arena_free(arena);
    return 0;
}
