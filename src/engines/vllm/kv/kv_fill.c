/* Memory into blocks, blocks into the tokens and the concurrency the engine prints, and the checks it makes first, with
 * its own sentences.
 *
 * Source: vllm/v1/core/kv_cache_utils.py, get_kv_cache_configs(), _check_enough_kv_cache_memory(), by version. */
#include "base/check.h"
#include "engines/vllm/kv/kv.h"
#include "base/locale.h"

#include <inttypes.h>
#include <stdio.h>

#define DOCS "See https://docs.vllm.ai/en/latest/configuration/conserving_memory/ for more details."

uint64_t oos_kv_request_blocks(const oos_setup *setup, const oos_kv_spec *spec, uint64_t tokens)
{
    uint64_t const block = oos_max(1, spec->block_tokens);
    uint64_t const in_flight =
        setup->rules->in_flight_window ? setup->max_in_flight_tokens : setup->max_num_batched_tokens;
    switch (spec->kind) {
    case OOS_KV_KIND_FULL:
    case OOS_KV_KIND_MLA:
    case OOS_KV_KIND_INDEXER: return oos_cdiv(oos_cdiv(tokens, oos_max(1, setup->dcp)), block);
    case OOS_KV_KIND_SLIDING:
    case OOS_KV_KIND_SLIDING_MLA: {
        /* the window need not start at the beginning of a block: one more */
        uint64_t const held = oos_min(oos_add(oos_sub(spec->window, 1), in_flight), tokens);
        return oos_cdiv(held, block) + 1;
    }
    case OOS_KV_KIND_CHUNKED: return oos_cdiv(oos_min(oos_add(spec->window, in_flight), tokens), block);
    case OOS_KV_KIND_STATE:
        return oos_add(spec->state_blocks, spec->state_by_length ? oos_cdiv(tokens, block) : 0);
    case OOS_KV_KIND_CROSS: return oos_cdiv(spec->window, block);
    }
    return 0;
}

/* Bytes one request of this length must find on a stage. To 0.13 layer by layer; 0.14 to 0.18 by the first group. */
static uint64_t needed_bytes(const oos_setup *setup, const oos_kv_shape *shape, const oos_kv_stage *stage,
                             uint64_t tokens)
{
    uint64_t const rule = setup->rules->length_check;
    if (rule == 0) {
        uint64_t bytes = 0;
        for (size_t i = 0; i < stage->spec_count; i++) {
            const oos_kv_spec *spec = &stage->specs[i];
            uint64_t const blocks = oos_kv_request_blocks(setup, spec, tokens);
            bytes = oos_add(bytes, oos_mul(spec->layers, oos_mul(blocks, spec->page_bytes)));
        }
        return bytes;
    }
    uint64_t blocks = 0;
    size_t const counted = rule == 1 ? oos_min(1, shape->group_count) : shape->group_count;
    for (size_t i = 0; i < counted; i++)
        blocks = oos_add(blocks, oos_kv_request_blocks(setup, &shape->groups[i].spec, tokens));
    return oos_mul(stage->check_bytes, blocks);
}

/* Longest length that fits; 0: not even one token. The engine's binary search: need grows with length. */
static uint64_t longest(const oos_setup *setup, const oos_kv_shape *shape, const oos_kv_stage *stage,
                        uint64_t available)
{
    uint64_t left = 1, right = setup->max_model_len, result = 1;
    if (needed_bytes(setup, shape, stage, 1) > available) return 0;
    while (left <= right) {
        uint64_t const middle = left + (right - left) / 2;
        if (needed_bytes(setup, shape, stage, middle) <= available) {
            result = middle;
            left = middle + 1;
        } else {
            right = middle - 1;
        }
    }
    return result;
}

/* ---- sentences -------------------------------------------------------------------------------------------------- */

/* Since 0.14 format_gib(): str(round(b / 2**30, 2)), so "16.0" and "0.9"; before, two decimals. */
static void gib(const oos_setup *setup, double bytes, char *text, size_t capacity)
{
    int const length = oos_format(text, capacity, "%.2f", bytes / (double)OOS_GIB);
    if (setup->rules->refusal_words < 5 || length < 1 || (size_t)length >= capacity) return;
    if (text[length - 1] == '0') text[length - 1] = '\0';
}

static char *no_memory(oos_arena *arena, const oos_setup *setup)
{
    uint64_t const words = setup->rules->refusal_words;
    const char *cpu =
        words >= 6 ? " (this flag also controls CPU memory reservation on the CPU backend, despite its "
                     "name)"
                   : "";
    return oos_arena_format(
        arena,
        "No available memory for the cache blocks. Try increasing `gpu_memory_utilization` "
        "when initializing the engine%s.%s",
        cpu, words >= 4 ? " " DOCS : "");
}

static char *too_long(oos_arena *arena, const oos_setup *setup, uint64_t needed, int64_t available,
                      uint64_t estimate)
{
    uint64_t const words = setup->rules->refusal_words;
    char need[32], have[32], hint[96] = "";
    gib(setup, (double)needed, need, sizeof need);
    gib(setup, (double)available, have, sizeof have);
    if (words == 2 && estimate) /* 0.8.4 to 0.9.0 lost the second half of the sentence */
        snprintf(hint, sizeof hint, "%s", " Based on the available memory,");
    else if (words >= 3 && estimate)
        snprintf(hint, sizeof hint,
                 "%sBased on the available memory, the estimated maximum model length is %" PRIu64 ".", " ",
                 estimate);
    const char *gap = words == 2 ? "  " : words >= 3 && words <= 4 && !estimate ? "  " : " ";
    const char *cpu = words >= 6 ? " (which also controls CPU memory on the CPU backend)" : "";
    return oos_arena_format(
        arena,
        "To serve at least one request with the %s max seq len (%" PRIu64
        "), (%s %s KV cache is needed, which is "
        "larger than the available KV cache memory (%s %s).%s%sTry increasing `gpu_memory_utilization`%s or "
        "decreasing `max_model_len` when initializing the engine.%s",
        words >= 6 ? "model's" : "models's", setup->max_model_len, need, words == 0 ? "GB" : "GiB", have,
        words == 0 ? "GB" : "GiB", hint, gap, cpu, words >= 4 ? " " DOCS : "");
}

static char *too_few_states(oos_arena *arena, uint64_t requests, uint64_t blocks)
{
    return oos_arena_format(arena,
                            "max_num_seqs (%" PRIu64 ") exceeds available Mamba cache blocks (%" PRIu64
                            "). Each "
                            "decode sequence requires one Mamba cache block, so CUDA graph capture cannot "
                            "proceed. Please lower max_num_seqs to at most %" PRIu64 " or increase "
                            "gpu_memory_utilization.",
                            requests, blocks, blocks);
}

static char unsaid[] = ""; /* where nobody asks for the words */

static oomsight_status refuse(oos_kv_fill *fill, char *sentence, oomsight_error *reterr)
{
    if (!sentence) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a sentence");
    if (fill->refused) return OOMSIGHT_OK; /* the first one is what the engine says */
    fill->refused = true;
    fill->refusal = sentence;
    return OOMSIGHT_OK;
}

/* ---- the two figures -------------------------------------------------------------------------------------------- */

/* Blocks of one request over all groups; to 0.26 by their bytes, in pages of the first group. */
static uint64_t request_total(const oos_setup *setup, const oos_kv_shape *shape, uint64_t tokens)
{
    oos_assert(shape->group_count > 0);
    uint64_t blocks = 0, bytes = 0, first = shape->groups[0].page_bytes;
    bool equal = true;
    for (size_t i = 0; i < shape->group_count; i++) {
        uint64_t const own = oos_kv_request_blocks(setup, &shape->groups[i].spec, tokens);
        blocks = oos_add(blocks, own);
        bytes = oos_add(bytes, oos_mul(own, shape->groups[i].page_bytes));
        equal = equal && shape->groups[i].page_bytes == first;
    }
    return equal || !setup->rules->concurrency_by_bytes ? blocks : oos_cdiv(bytes, oos_max(1, first));
}

/* Python's int(): a product beyond 64 bits does not occur in an engine. */
static uint64_t whole(double value)
{
    return value >= 1.8e19 ? UINT64_MAX : value > 0 ? (uint64_t)value : 0;
}

static void count_tokens(const oos_setup *setup, const oos_kv_shape *shape, uint64_t length,
                         oos_kv_fill *fill)
{
    const vllm_rules *rules = setup->rules;
    uint64_t const per_request = request_total(setup, shape, length);
    if (rules->tokens_from_concurrency == 0) { /* 0.8 to 0.9.0 */
        fill->tokens = oos_mul(fill->blocks, shape->block_tokens);
        fill->max_concurrency = (double)fill->tokens / (double)length;
        return;
    }
    fill->max_concurrency = per_request ? (double)fill->blocks / (double)per_request : 0;
    if (rules->tokens_from_concurrency >= 2) {
        fill->tokens = whole(fill->max_concurrency * (double)length);
        return;
    }
    uint64_t smallest = UINT64_MAX;
    for (size_t i = 0; i < shape->group_count; i++)
        smallest = oos_min(smallest, shape->groups[i].block_tokens);
    fill->tokens = oos_mul(oos_mul(fill->blocks / shape->group_count, smallest), setup->dcp);
}

static bool has_state(const oos_kv_shape *shape)
{
    for (size_t i = 0; i < shape->group_count; i++)
        if (shape->groups[i].kind == OOS_KV_KIND_STATE) return true;
    return false;
}

/* FULL decode graphs need a state for every request (CompilationConfig.resolve_cudagraph_mode_and_sizes, 0.20; before,
 * in 0.18, larger graphs were left out instead). */
static oomsight_status check_states(oos_arena *arena, const oos_setup *setup, const oos_kv_shape *shape,
                                    oos_kv_fill *fill, oomsight_error *reterr)
{
    bool const full = setup->graph_mode == OOS_GRAPH_FULL ||
                      setup->graph_mode == OOS_GRAPH_FULL_DECODE_ONLY ||
                      setup->graph_mode == OOS_GRAPH_FULL_AND_PIECEWISE;
    if (!full || setup->rules->state_blocks_check == 0 || !has_state(shape)) return OOMSIGHT_OK;
    if (setup->rules->state_blocks_check == 1) {
        if (setup->capture_top > fill->blocks) fill->capture_cap = oos_u64_of(fill->blocks);
        return OOMSIGHT_OK;
    }
    fill->insisted_bytes = oos_max(fill->insisted_bytes, oos_mul(setup->max_num_seqs, shape->block_bytes));
    if (setup->max_num_seqs <= fill->blocks) return OOMSIGHT_OK;
    return refuse(fill, arena ? too_few_states(arena, setup->max_num_seqs, fill->blocks) : unsaid, reterr);
}

/* What the checks compare with on a stage: the memory or what an override makes of it, less the null block. */
static int64_t checked_bytes(const oos_setup *setup, const oos_kv_stage *stage, int64_t available)
{
    int64_t checked = available;
    if (setup->blocks_override.known && setup->rules->override_in_check)
        checked = (int64_t)oos_min(oos_mul(setup->blocks_override.value, stage->block_bytes), INT64_MAX);
    if (setup->rules->null_block_checked) checked -= (int64_t)oos_min(stage->block_bytes, INT64_MAX / 2);
    return checked;
}

static oomsight_status auto_fit(oos_arena *arena, const oos_setup *setup, const oos_kv_shape *shape,
                                int64_t available, uint64_t *ret_length, oos_kv_fill *fill,
                                oomsight_error *reterr)
{
    uint64_t fitted = setup->max_model_len;
    for (size_t i = 0; i < shape->stage_count; i++) {
        int64_t const checked = checked_bytes(setup, &shape->stages[i], available);
        fitted =
            oos_min(fitted, longest(setup, shape, &shape->stages[i], checked > 0 ? (uint64_t)checked : 0));
    }
    if (fitted == 0 && !arena) return refuse(fill, unsaid, reterr);
    if (fitted == 0)
        return refuse(
            fill,
            oos_arena_format(arena, "Cannot auto-fit max_model_len: not enough GPU memory available to serve "
                                    "even a single token. Try increasing `gpu_memory_utilization`."),
            reterr);
    fill->estimated_max_len = oos_u64_of(fitted);
    *ret_length = fitted;
    return OOMSIGHT_OK;
}

/* Stage by stage, as the engine goes through its workers: "no available memory", then the length. */
static oomsight_status check_memory(oos_arena *arena, const oos_setup *setup, const oos_kv_shape *shape,
                                    int64_t available, uint64_t length, oos_kv_fill *fill,
                                    oomsight_error *reterr)
{
    for (size_t i = 0; i < shape->stage_count && !fill->refused; i++) {
        const oos_kv_stage *stage = &shape->stages[i];
        int64_t const checked = checked_bytes(setup, stage, available);
        if (stage->spec_count == 0 && setup->rules->length_check == 0) continue;
        if (checked <= 0) return refuse(fill, arena ? no_memory(arena, setup) : unsaid, reterr);
        uint64_t const usable = (uint64_t)checked, needed = needed_bytes(setup, shape, stage, length);
        if (needed <= usable) continue;
        if (!arena) return refuse(fill, unsaid, reterr);
        uint64_t const estimate = setup->rules->refusal_words >= 2 ? longest(setup, shape, stage, usable) : 0;
        if (estimate) fill->estimated_max_len = oos_u64_of(estimate);
        return refuse(fill, too_long(arena, setup, needed, checked, estimate), reterr);
    }
    return OOMSIGHT_OK;
}

oomsight_status oos_kv_fill_in(oos_arena *arena, const oos_setup *setup, const oos_kv_shape *shape,
                               int64_t available_bytes, oos_kv_fill *ret_fill, oomsight_error *reterr)
{
    oos_kv_fill fill = {.available_bytes = available_bytes > 0 ? (uint64_t)available_bytes : 0};
    uint64_t length = setup->max_model_len;
    bool const checks_first = setup->rules->length_check == 0; /* to 0.13: before layers are grouped */
    if (shape->error && !checks_first) {
        fill.refused = true;
        fill.refusal = shape->error;
    }
    if (shape->group_count == 0 ||
        shape->block_bytes == 0) { /* nothing is cached: one block, the null block */
        fill.blocks = 1;
        *ret_fill = fill;
        return OOMSIGHT_OK;
    }
    fill.blocks = fill.available_bytes / shape->block_bytes;
    if (setup->blocks_override.known && setup->rules->override_applied)
        fill.blocks = setup->blocks_override.value;
    if (setup->auto_model_len && setup->rules->auto_fit)
        OOS_TRY(auto_fit(arena, setup, shape, available_bytes, &length, &fill, reterr));
    for (size_t i = 0; i < shape->stage_count; i++)
        fill.needed_bytes = oos_max(fill.needed_bytes, needed_bytes(setup, shape, &shape->stages[i], length));
    fill.insisted_bytes =
        oos_add(fill.needed_bytes, setup->rules->null_block_checked ? shape->block_bytes : 0);
    OOS_TRY(check_memory(arena, setup, shape, available_bytes, length, &fill, reterr));
    if (shape->error && !fill.refused) {
        fill.refused = true;
        fill.refusal = shape->error;
    }
    if (arena) count_tokens(setup, shape, oos_max(1, length), &fill);
    OOS_TRY(check_states(arena, setup, shape, &fill, reterr));
    oos_assert(!fill.refused == !fill.refusal && fill.insisted_bytes >= fill.needed_bytes);
    *ret_fill = fill;
    return OOMSIGHT_OK;
}

bool oos_kv_refused(const oos_setup *setup, const oos_kv_shape *shape, int64_t available_bytes)
{
    oos_kv_fill fill;
    return oos_kv_fill_in(NULL, setup, shape, available_bytes, &fill, NULL) != OOMSIGHT_OK || fill.refused;
}
