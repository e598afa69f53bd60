/* How a model is cut into stages. */
#include "sizes/sizes.h"
#include "base/check.h"

#include <stdlib.h>
#include <string.h>

static bool stage_given(const char *list, uint64_t stage, uint64_t *ret_first, uint64_t *ret_count)
{
    uint64_t first = 0;
    for (uint64_t i = 0;; i++) {
        char *end;
        unsigned long long const count = strtoull(list, &end, 10);
        if (end == list || count > 65536) return false;
        if (i == stage) {
            *ret_first = first;
            *ret_count = count;
            return true;
        }
        first += count;
        if (*end != ',') return false;
        list = end + 1;
    }
}

bool oos_shard_begins(const oos_shard *shard, uint64_t stage)
{
    return stage == 0 || (shard->ways.ends_everywhere & OOS_END_EMBED) != 0;
}

bool oos_shard_ends(const oos_shard *shard, uint64_t stage, const oos_matrix *matrix)
{
    bool const head = strcmp(matrix->module, "lm_head") == 0;
    uint64_t const everywhere = shard->ways.ends_everywhere & (head ? OOS_END_HEAD : OOS_END_NORM);
    return !(head && shard->ways.no_head) && (stage + 1 >= shard->pp || everywhere != 0);
}

/* distributed/utils.py get_pp_indices() of vLLM and SGLang: even shares; the remainder goes to the stages before the last, counted
 * from the end. */
uint64_t oos_shard_layers(const oos_shard *shard, uint64_t stage, uint64_t *ret_first)
{
    uint64_t const layers = shard->model->layer_count, pp = shard->pp;
    uint64_t first = 0, count = 0;
    if (shard->layers_given && stage_given(shard->layers_given, stage, &first, &count) && first <= layers) {
        *ret_first = first;
        return oos_min(count, layers - first);
    }
    oos_assert(stage < pp);
    uint64_t const share = layers / pp, rest = layers % pp;
    for (uint64_t i = 0; i <= stage; i++) {
        first += count;
        /* stages -2, -3, ... -(rest+1) take one more */
        uint64_t const from_end = pp - i;
        count = share + (from_end >= 2 && from_end <= rest + 1 ? 1 : 0);
    }
    oos_assert(first + count <= layers);
    *ret_first = first;
    return count;
}
