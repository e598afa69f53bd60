/* Compressed attention (DeepSeek-V4): a sliding cache in every layer, beside it a row for four tokens with keys of an indexer, or for 128,
 * and what the compressors have of unfinished rows (0.5.23, srt/model_executor/pool_configurator.py, DSV4PoolConfigurator; rows are those
 * of srt/mem_cache/deepseek_v4_memory_pool.py). */
#include "engines/sglang/sglang.h"
#include "sizes/sizes.h"

#include <string.h>

enum { PAGE = 256, FOUR = 4, MANY = 128 };
enum { ROW_SCALES = 8, ROW_ALIGN = 576, ROTARY_ITEM = 2, KEY_BLOCK = 128, KEY_SCALE = 4 };
enum { STATE_ITEM = 4, RING_FOUR = 8, RING_MANY = 128, RING_DRAFTED = 2 };
enum { REQUESTS = 256, SLIDING_INDEX = 8 }; /* of a token: where its sliding row is */
/* The rule `compressed`: how the bytes of a token are counted. */
enum { ALL_ENTRIES = 1, OWN_ENTRIES, STATES_BY_REQUEST, WHOLE_PAGES };
static const double SLIDING_SHARE = 0.1;

typedef struct layers {
    const oos_attention *any; /* all have rows of the same size */
    uint64_t all, four, many;
    uint64_t key_dim;
    bool others; /* other ratios */
} layers;

static layers layers_of(const oos_model *model)
{
    layers found = {.all = model->layer_count};
    for (uint64_t i = 0; i < model->layer_count; i++) {
        const oos_attention *a = &model->attentions[model->layers[i].attention];
        found.four += a->compress_ratio == FOUR;
        found.many += a->compress_ratio == MANY;
        found.others |= a->compress_ratio && a->compress_ratio != FOUR && a->compress_ratio != MANY;
        found.key_dim = oos_max(found.key_dim, a->indexer_dim);
        found.any = a;
    }
    return found;
}

bool oos_sglang_is_compressed(const oos_model *model)
{
    layers const of = layers_of(model);
    return of.four || of.many || of.others;
}

uint64_t oos_sglang_compressed_page(void)
{
    return PAGE;
}

oos_u64 oos_sglang_requests_asked(const sglang_request *request, const oos_model *model)
{
    if (request->requests.known) return request->requests;
    if (oos_sglang_is_compressed(model)) return oos_u64_of(REQUESTS);
    return request->drafter ? oos_u64_of(SGLANG_DRAFTED_REQUESTS) : (oos_u64){0};
}

/* Bytes of a row where a page has so many of them. */
static double row_of(const sglang_request *r, const oos_attention *a, uint64_t rows, bool paged)
{
    if (r->rows_uniform) return (double)oos_add(a->nope_dim, a->rope_dim);
    uint64_t const row = oos_add(oos_add(a->nope_dim, oos_mul(a->rope_dim, ROTARY_ITEM)), ROW_SCALES);
    return paged ? (double)oos_round_up(oos_mul(rows, row), ROW_ALIGN) / (double)rows : (double)row;
}

static uint64_t many_states(const sglang_request *r, uint64_t dim, uint64_t ring)
{
    uint64_t const replicas = r->replicated ? oos_max(1, r->dp) : 1;
    uint64_t const each = oos_max(1, oos_u64_or(r->requests, REQUESTS) / replicas);
    uint64_t const slots = oos_add(each, r->decode_only ? oos_add(1, oos_u64_or(r->extra_slots, 0)) : 1);
    uint64_t const rows = oos_round_up(oos_add(oos_mul(slots, ring), ring + 1), MANY);
    return oos_mul(oos_mul(rows, 2 * STATE_ITEM), dim);
}

/* Rotary tables of the layers that compress and of those that do not, in fp32 for the whole length of the model: of rotations, and of
 * cosines and sines (models/deepseek_v4.py, freqs_cis and rotary_emb). One of them is counted with the model. */
uint64_t oos_sglang_compressed_tables(const sglang_start *setup)
{
    const oos_model *model = setup->model;
    layers const of = layers_of(model);
    if (!of.any || !setup->rules->compressed) return 0;
    uint64_t const kinds = (uint64_t)(of.four + of.many > 0) + (of.four + of.many < of.all);
    uint64_t const each = setup->rules->compressed >= OWN_ENTRIES ? 2 : 1;
    return oos_mul(kinds * each - 1, oos_mul(oos_mul(model->max_position, of.any->rope_dim), STATE_ITEM));
}

/* Scales of experts in MXFP4 that stay in fp32, a byte each when they are counted with the weights: the runner of FP8 experts, which
 * later releases do not choose (layers/quantization/fp8.py). */
uint64_t oos_sglang_wide_scales(const sglang_request *r, const sglang_start *setup, uint64_t expert_bytes)
{
    enum { VALUES = 32, HALVES = 2, MORE = STATE_ITEM - 1 };
    bool const kept = setup->rules->scales_wide && !r->experts_runner && setup->device.capability / 10 == 9;
    if (!kept || !oos_sglang_is_compressed(setup->model)) return 0;
    if (oos_expert_quant(setup->model) != OOS_QUANT_MXFP4) return 0;
    return expert_bytes / (VALUES / HALVES + 1) * MORE;
}

/* What a token takes: `counted` as the engine reckons, else as it is allocated. */
static double token_bytes(const sglang_request *r, const sglang_start *setup, const layers *of, bool counted)
{
    uint64_t const how = setup->rules->compressed;
    const oos_attention *a = of->any;
    uint64_t const dim = oos_add(a->nope_dim, a->rope_dim), drafted = r->drafter ? RING_DRAFTED : 1;
    bool const pages = !counted || how >= WHOLE_PAGES;
    uint64_t const slid_by = how >= WHOLE_PAGES ? PAGE : a->window;
    uint64_t const entries = counted && how < OWN_ENTRIES ? of->all + setup->model->mtp_layer_count
                             : counted || !r->drafter     ? of->all
                                                          : of->all + 1;
    double const share = r->swa_given ? r->swa_ratio : SLIDING_SHARE;
    double const four = 4 * STATE_ITEM * (double)oos_add(dim, of->key_dim);
    double sliding = row_of(r, a, PAGE, pages) * (double)entries +
                     (double)(RING_FOUR * drafted) / (double)oos_max(1, slid_by) * four * (double)of->four;
    if (how < STATES_BY_REQUEST)
        sliding += (double)(RING_MANY * drafted) / (double)oos_max(1, slid_by) * 2 * STATE_ITEM *
                   (double)dim * (double)of->many;
    double const keys = (double)oos_add(of->key_dim, oos_mul(of->key_dim / KEY_BLOCK, KEY_SCALE));
    double const bytes = share * sliding +
                         (double)of->four / FOUR * (row_of(r, a, PAGE / FOUR, pages) + keys) +
                         (double)of->many / MANY * row_of(r, a, PAGE / MANY, pages);
    return counted && r->drafter ? bytes * (double)(of->all + 1) / (double)of->all : bytes;
}

sglang_pool oos_sglang_compressed_of(const sglang_request *r, const sglang_start *setup)
{
    static const char *const variables[] = {"SGLANG_OPT_USE_ONLINE_COMPRESS",
                                            "SGLANG_DSV4_COMPRESS_STATE_DTYPE", "SGLANG_DSV4_KV_LAYOUT"};
    layers const of = layers_of(setup->model);
    sglang_pool pool = {.layers = of.all, .paged = PAGE};
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
        if (setup->env && oos_engine_env_given(setup->env, variables[i]))
            pool.unread =
                "a variable that changes the pool of compressed attention is not modelled for SGLang";
    if (of.others || !of.any || !of.any->window || !setup->rules->compressed)
        pool.unread = "compressed attention of this kind is not modelled for SGLang";
    if (pool.unread) return pool;
    uint64_t const ring = RING_MANY * (r->drafter ? RING_DRAFTED : 1);
    uint64_t const dim = oos_add(of.any->nope_dim, of.any->rope_dim);
    if (setup->rules->compressed >= STATES_BY_REQUEST && of.many)
        pool.fixed_bytes = oos_mul(many_states(r, dim, ring), of.many);
    pool.window = of.any->window;
    pool.cell = token_bytes(r, setup, &of, true);
    pool.held = token_bytes(r, setup, &of, false) + SLIDING_INDEX;
    return pool;
}
