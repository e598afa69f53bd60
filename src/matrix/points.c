/* From the number of a point to its place on every axis, and from the place to words and labels. */
#include "matrix/matrix.h"
#include "base/check.h"

#include <stdio.h>

static bool excluded(const oos_matrix_block *block, const oos_matrix_place *place)
{
    for (size_t i = 0; i < block->exclude_count; i++) {
        const oos_matrix_exclude *e = &block->excludes[i];
        bool hit = (!e->models || e->models[place->model]) && (!e->gpus || e->gpus[place->gpu]) &&
                   (!e->versions || e->versions[place->version]);
        for (size_t a = 0; hit && a < block->axis_count; a++)
            hit = !e->axes[a] || e->axes[a][place->choices[a]];
        if (hit) return true;
    }
    return false;
}

bool oos_matrix_place_of(const oos_matrix_file *matrix, uint64_t number, oos_matrix_place *ret_place)
{
    size_t low = 0, high = matrix->block_count - 1;
    while (low < high) { /* the last block that begins at or before it */
        size_t const middle = (low + high + 1) / 2;
        if (matrix->blocks[middle].first <= number)
            low = middle;
        else
            high = middle - 1;
    }
    const oos_matrix_block *block = &matrix->blocks[low];
    oos_matrix_place *place = ret_place;
    oos_assert(number >= block->first);
    uint64_t rest = number - block->first;
    place->block = block;
    place->version = (size_t)(rest % block->version_count);
    rest /= block->version_count;
    place->flags = rest % block->flag_count;
    rest /= block->flag_count;
    place->gpu = (size_t)(rest % block->gpu_count);
    place->model = (size_t)(rest / block->gpu_count);
    oos_assert(place->model < block->model_count);
    rest = place->flags;
    for (size_t a = block->axis_count; a-- > 0;) {
        place->choices[a] = (uint32_t)(rest % block->axes[a].count);
        rest /= block->axes[a].count;
    }
    return !excluded(block, place);
}

static size_t put_words(const char **words, size_t count, const oos_matrix_words *more)
{
    for (size_t i = 0; i < more->count && count < OOS_MATRIX_WORDS; i++) words[count++] = more->list[i];
    return count;
}

size_t oos_matrix_flag_words(const oos_matrix_place *place, const char **ret_words)
{
    const oos_matrix_block *block = place->block;
    size_t count = put_words(ret_words, 0, &block->always);
    for (size_t a = 0; a < block->axis_count; a++)
        count = put_words(ret_words, count, &block->axes[a].choices[place->choices[a]].words);
    return count;
}

void oos_matrix_flag_label(const oos_matrix_place *place, char *ret_text, size_t capacity)
{
    const oos_matrix_block *block = place->block;
    if (block->axis_count == 1 && !block->axes[0].flag) {
        snprintf(ret_text, capacity, "%s", block->axes[0].choices[place->choices[0]].label);
        return;
    }
    size_t len = 0;
    snprintf(ret_text, capacity, "-");
    for (size_t a = 0; a < block->axis_count; a++) {
        const oos_matrix_choice *choice = &block->axes[a].choices[place->choices[a]];
        for (size_t i = 0; i < choice->words.count; i++) {
            int const more =
                snprintf(ret_text + len, capacity - len, "%s%s", len ? " " : "", choice->shown[i]);
            if (more < 0 || (size_t)more >= capacity - len) return;
            len += (size_t)more;
        }
    }
}

uint64_t oos_matrix_set_of(const oos_matrix_place *place)
{
    const oos_matrix_block *block = place->block;
    if (block->axis_count == 1 && !block->axes[0].flag) return block->axes[0].choices[place->choices[0]].id;
    return block->first_set + place->flags;
}
