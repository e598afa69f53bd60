/* Any bytes as config.json, and behind the first zero as hf_quant_config.json. */
#include "fuzz.h"

#include "model/model.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    const char *text = (const char *)bytes;
    const char *zero = len ? memchr(text, '\0', len) : NULL;
    oos_view const config = {text, zero ? (size_t)(zero - text) : len};
    oos_view const quant = zero ? (oos_view){zero + 1, len - config.len - 1} : (oos_view){NULL, 0};
    oos_arena *arena = oos_arena_create(4096);
    oos_model model;
    oomsight_error error;
    if (arena && oos_model_read(arena, NULL, config, quant, &model, &error) == OOMSIGHT_OK) {
        /* what a reader promises: indexes point into what is there */
        for (size_t i = 0; i < model.layer_count; i++) {
            const oos_layer *layer = &model.layers[i];
            FUZZ_REQUIRE(layer->attention < model.attention_count);
            FUZZ_REQUIRE(layer->matrix_count == 0 ||
                         (uint64_t)layer->first_matrix + layer->matrix_count <= model.matrix_count);
        }
        for (size_t i = 0; i < model.matrix_count; i++)
            FUZZ_REQUIRE(model.matrices[i].quant < model.quant_count);
        FUZZ_REQUIRE(model.rope_count <= 4);
        FUZZ_REQUIRE(model.path && model.architecture);
    }
    oos_arena_free(arena);
    return 0;
}
