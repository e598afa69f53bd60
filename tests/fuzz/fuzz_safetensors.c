/* Any bytes as a weight file; behind a first byte 'i', as an index; behind 'h', as a header whose length is right. */
#include "fuzz.h"

#include "model/model.h"

static void table_check(const oos_tensor_table *table)
{
    uint64_t total = 0;
    for (size_t i = 0; i < table->count; i++) {
        const oos_tensor *tensor = &table->list[i];
        uint64_t bytes = oos_dtype_bytes(tensor->dtype);
        FUZZ_REQUIRE(tensor->name && tensor->rank <= 8);
        for (unsigned k = 0; k < tensor->rank; k++) bytes = oos_mul(bytes, tensor->shape[k]);
        FUZZ_REQUIRE(tensor->dtype == OOS_DTYPE_UNKNOWN || bytes == tensor->bytes);
        total = oos_add(total, tensor->bytes);
    }
    FUZZ_REQUIRE(total == table->total_bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    oos_view const file = {(const char *)bytes, len};
    oos_arena *arena = oos_arena_create(4096);
    oos_tensor_table table;
    oomsight_error error;
    if (!arena) return 0;
    if (oos_safetensors_read(arena, file, &table, &error) == OOMSIGHT_OK) table_check(&table);
    if (len && bytes[0] == 'h') {
        oos_tensor_builder *builder = oos_tensor_builder_create(arena);
        if (builder &&
            oos_tensor_builder_add(builder, oos_view_slice(file, 1, len), 0, &error) == OOMSIGHT_OK) {
            table = oos_tensor_builder_table(builder);
            table_check(&table);
        }
    }
    if (len && bytes[0] == 'i') {
        const char *const *names;
        size_t count;
        if (oos_safetensors_index_read(arena, oos_view_slice(file, 1, len), &names, &count, &error) ==
            OOMSIGHT_OK)
            for (size_t i = 0; i < count; i++)
                FUZZ_REQUIRE(names[i][0] != '/' && strncmp(names[i], "../", 3) != 0);
    }
    oos_arena_free(arena);
    return 0;
}
