/* Any bytes as a matrix file; of those that are one, the first, the last and some points between. */
#include "fuzz.h"

#include "matrix/matrix.h"

static void point_look(const oos_matrix_file *matrix, uint64_t number)
{
    oos_matrix_place place;
    const char *words[OOS_MATRIX_WORDS];
    char label[300];
    oos_matrix_place_of(matrix, number, &place);
    const oos_matrix_block *block = place.block;
    FUZZ_REQUIRE(place.model < block->model_count && place.gpu < block->gpu_count);
    FUZZ_REQUIRE(place.version < block->version_count && place.flags < block->flag_count);
    for (size_t a = 0; a < block->axis_count; a++) FUZZ_REQUIRE(place.choices[a] < block->axes[a].count);
    FUZZ_REQUIRE(block->models[place.model].id < matrix->model_count);
    FUZZ_REQUIRE(block->gpus[place.gpu].id < matrix->gpu_count);
    FUZZ_REQUIRE(block->versions[place.version].id < matrix->version_count);
    FUZZ_REQUIRE(oos_matrix_set_of(&place) < matrix->set_count);
    size_t const count = oos_matrix_flag_words(&place, words);
    FUZZ_REQUIRE(count <= OOS_MATRIX_WORDS);
    for (size_t i = 0; i < count; i++) FUZZ_REQUIRE(words[i]);
    oos_matrix_flag_label(&place, label, sizeof label);
    FUZZ_REQUIRE(strlen(label) < sizeof label);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    oos_arena *arena = oos_arena_create(4096);
    oos_matrix_file matrix;
    oomsight_error error;
    if (arena && oos_matrix_read(arena, (oos_view){(const char *)bytes, len}, "0.32.0", NULL, 0, &matrix,
                                 &error) == OOMSIGHT_OK) {
        FUZZ_REQUIRE(matrix.points > 0 && matrix.points <= OOS_MATRIX_POINTS);
        for (uint64_t i = 0; i < 64; i++) point_look(&matrix, i * 7919 % matrix.points);
        point_look(&matrix, matrix.points - 1);
    }
    oos_arena_free(arena);
    return 0;
}
