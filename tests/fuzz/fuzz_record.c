/* Any bytes as a record of data/models, and behind the first zero as the config it reads. The record is taken for a family (its
 * class is "Fuzzed") and for a tower. */
#include "fuzz.h"

#include "model/arch/arch.h"

static void read_as_both(oos_arena *arena, oos_view record, const json_t *config)
{
    oomsight_error error = {0};
    oos_model model = {
        .hidden = 64, .heads = 4, .kv_heads = 2, .head_dim = 16, .intermediate = 128, .vocab = 512};
    oos_arch a = {.arena = arena, .root = config, .text = config, .model = &model, .reterr = &error};
    a.vision = a.audio = json_object_get(config, "vision_config");
    model.architecture = "Fuzzed";
    model.vision.present = a.vision != NULL;
    model.moe.experts = json_object_get(config, "experts") ? 4 : 0;
    a.quants = OOS_NEW_ARRAY(arena, oos_quant, 8);
    a.quant_room = 8;
    a.quant_count = 1;
    a.prefix = "model.";
    a.layer_prefix = "model.layers.";
    const oos_family *family = oos_family_of(&a, record, "models/fuzzed.json", "Fuzzed", false);
    if (!family || !a.quants) {
        FUZZ_REQUIRE(a.status == OOMSIGHT_OK || error.text[0]);
        return;
    }
    a.family = family;
    family->build(&a);
    family->rope(&a);
    oos_tower_record(&a, family->tower ? family->tower : family->record);
    FUZZ_REQUIRE(a.status == OOMSIGHT_OK || error.text[0]);
    for (size_t i = 0; a.status == OOMSIGHT_OK && i < model.layer_count; i++)
        FUZZ_REQUIRE((uint64_t)model.layers[i].first_matrix + model.layers[i].matrix_count <= a.matrix_count);
    for (size_t i = 0; i < a.matrix_count; i++) FUZZ_REQUIRE(a.matrices[i].name && a.matrices[i].module);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    const char *text = (const char *)bytes;
    const char *zero = len ? memchr(text, '\0', len) : NULL;
    oos_view const record = {text, zero ? (size_t)(zero - text) : len};
    oos_view const config = zero ? (oos_view){zero + 1, len - record.len - 1} : oos_view_of("{}");
    oos_arena *arena = oos_arena_create(4096);
    json_t *root = NULL;
    if (arena && oos_json_load(arena, config, &root, NULL) == OOMSIGHT_OK && json_is_object(root))
        read_as_both(arena, record, root);
    oos_arena_free(arena);
    return 0;
}
