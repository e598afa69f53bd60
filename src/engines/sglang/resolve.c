/* Defaults by the memory of the device, graphs, the reserve and the static fraction (0.5.23, srt/arg_groups/memory_hook.py). */
#include "engines/sglang/sglang.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* By MiB of the device: tokens of a chunk, largest captured decode batch with fewer than four ranks and with more. */
static const struct {
    uint64_t below_mib, chunk, few, many;
} tiers[] = {
    {20 * 1024, 2048, 8, 8},     {35 * 1024, 0, 0, 0},         {60 * 1024, 4096, 32, 160},
    {90 * 1024, 8192, 256, 512}, {160 * 1024, 8192, 256, 512}, {UINT64_MAX, 16384, 512, 512},
};

static void size_by_tier(sglang_setup *s)
{
    const sglang_request *r = s->request;
    const sglang_rules *rules = s->rules;
    size_t at = 0;
    while (s->device_mib >= tiers[at].below_mib) at++;
    bool const second = at == 1; /* the one that changed */
    uint64_t const few = second ? rules->batch_24gib : tiers[at].few;
    uint64_t const many = second ? rules->batch_24gib_four : tiers[at].many;
    uint64_t batch = r->tp < 4 ? few : many;
    if (r->requests.known && rules->requests_bound_batch) batch = oos_min(batch, r->requests.value);
    s->chunk = oos_u64_or(r->chunk, second ? rules->chunk_24gib : tiers[at].chunk);
    s->decode_batch = oos_u64_or(r->decode_batch, batch);
}

static uint64_t count_steps(uint64_t first, uint64_t last, uint64_t step, uint64_t most)
{
    last = oos_min(last, most);
    return last < first ? 0 : (last - first) / step + 1;
}

static bool put(uint64_t size, uint64_t most, uint64_t *list, size_t capacity, uint64_t *count)
{
    if (size > most) return false;
    if (list && *count < capacity) list[*count] = size;
    ++*count;
    return true;
}

/* What follows a size: 1 2 4 8 12, then by 8 to 256, by 16 to 512, by 32; with a drafter by 1 to 8, by 2 to 32, by 4 (from 40) to 64, by 8
 * to 256, by 16. */
static uint64_t size_after(uint64_t size, bool drafted)
{
    if (drafted && size < 8) return size + 1;
    if (drafted && size < 32) return size + 2;
    if (drafted && size < 64) return size == 32 ? 40 : size + 4;
    if (size < 2) return size + 1;
    if (size < 8) return size * 2;
    if (size < 16) return size + 4;
    if (size < 256) return size + 8;
    return size + (drafted || size < 512 ? 16 : 32);
}

/* The largest is always among them, be it 0. */
uint64_t oos_sglang_decode_sizes(uint64_t most, bool drafted, uint64_t *list, size_t capacity)
{
    uint64_t count = 0, last = 0;
    for (uint64_t size = 1; size <= most && size <= 1 << 20; size = size_after(size, drafted))
        if (put(size, most, list, capacity, &count)) last = size;
    if (last != most || !most) put(most, most, list, capacity, &count);
    return count;
}

uint64_t oos_sglang_prefill_sizes(uint64_t most)
{
    return count_steps(4, 32, 4, most) + count_steps(48, 256, 16, most) + count_steps(288, 512, 32, most) +
           count_steps(576, 1024, 64, most) + count_steps(1280, 4096, 256, most) +
           count_steps(4608, most, 512, most);
}

static void size_graphs(sglang_setup *s, bool latent, bool multimodal)
{
    enum { STAGES_PREFILL_TOKENS = 8192 }; /* captured at most where there are stages */
    const sglang_request *r = s->request;
    if (!r->decode_off)
        s->decode_graphs = r->decode_sizes.known ? r->decode_sizes.value
                           : r->every_batch
                               ? s->decode_batch
                               : oos_sglang_decode_sizes(s->decode_batch, r->drafter != NULL, NULL, 0);
    uint64_t const whole = s->chunk ? s->chunk : 0;
    uint64_t const latent_most = s->rules->latent_prefill_in_chunk
                                     ? oos_min(s->rules->latent_prefill_tokens, whole)
                                     : s->rules->latent_prefill_tokens;
    uint64_t most = oos_u64_or(r->prefill_tokens, latent ? latent_most : whole);
    bool const stages = r->pp > 1 && s->rules->stages_bound_prefill;
    if (!r->prefill_tokens.known && stages) most = oos_min(most, STAGES_PREFILL_TOKENS);
    if (!r->prefill_tokens.known && r->tokens_most.known) most = oos_min(most, r->tokens_most.value);
    s->prefill_tokens = most;
    /* stages turn it off unless its backend is named */
    bool const off =
        r->prefill_off || !s->rules->prefill_graphs || multimodal || (stages && !r->prefill_named);
    s->prefill_captured = !off;
    if (!off) s->prefill_graphs = oos_u64_or(r->prefill_sizes, oos_sglang_prefill_sizes(most));
}

enum {
    REPLICATED_LARGE = 300
}; /* requests of a captured batch from which more is kept, where attention is replicated */

/* What the engine keeps out of the static share for activations and graphs: a guess of its own, no measurement. */
static double reserve_of(const sglang_setup *s, bool latent)
{
    const sglang_rules *rules = s->rules;
    const sglang_request *r = s->request;
    uint64_t const running = oos_max(1, oos_u64_or(r->requests, s->decode_batch));
    uint64_t const step = r->decode_only ? oos_mul(running, r->draft_tokens)
                          : s->chunk     ? s->chunk
                                         : r->prefill_most;
    uint64_t const tokens = oos_max(step, rules->reserve_least_tokens);
    double mib = rules->reserve_mib + (double)tokens * rules->reserve_token_mib +
                 (double)(r->tp * r->pp) * rules->reserve_rank_mib;
    if (!r->decode_off) mib += (double)s->decode_batch * rules->reserve_batch_mib;
    if (r->replicated && !r->prefill_only)
        mib += (double)(s->decode_batch * r->dp) *
               (rules->reserve_replicated_mib +
                (s->decode_batch > REPLICATED_LARGE ? rules->reserve_replicated_large_mib : 0));
    if (s->prefill_captured)
        mib += latent ? rules->reserve_latent_graphs_mib
                      : (double)s->prefill_graphs * rules->reserve_prefill_graph_mib;
    return s->device_mib > rules->large_device_mib ? fmax(mib, rules->reserve_large_mib) : mib;
}

/* Each replica has its share of a chunk, and captures no more; the reserve was for the whole. */
static void replicate(sglang_setup *s)
{
    s->chunk /= s->request->dp;
    if (!s->chunk || s->prefill_tokens <= s->chunk || s->request->prefill_tokens.known) return;
    s->prefill_tokens = s->chunk;
    if (s->prefill_graphs && !s->request->prefill_sizes.known)
        s->prefill_graphs = oos_sglang_prefill_sizes(s->chunk);
}

/* Python's round(x, 3) of a share: of the number that x is, where the product only looks like a half. */
static double round3(double share)
{
    double const product = share * 1000, rest = fma(share, 1000, -product);
    if (product - floor(product) != 0.5 || rest == 0) return rint(product) / 1000;
    return (rest > 0 ? ceil(product) : floor(product)) / 1000;
}

/* What "images" of an architecture says; 0: images are taken, and no prefill is captured. */
enum { IMAGES_CAPTURED = 2, IMAGES_ON_DEMAND = 3 };

/* A tower makes the share smaller by its size (adjust_mem_fraction_for_vlm): the fields of the config that most towers have, and for
 * those that call them otherwise the usual tower. */
static double share_beside(const oos_model *model, double share)
{
    enum { TOWER_LAYERS = 24, TOWER_HIDDEN = 1024 };
    const oos_vision *vision = &model->vision;
    if (!vision->present) return share;
    double const layers = (double)(vision->stated_layers ? vision->stated_layers : TOWER_LAYERS),
                 hidden = (double)(vision->stated_hidden ? vision->stated_hidden
                                   : vision->hidden      ? vision->hidden
                                                         : TOWER_HIDDEN);
    double const size = layers * hidden * hidden / ((double)TOWER_LAYERS * TOWER_HIDDEN * TOWER_HIDDEN);
    return share * (0.95 * fmax(0.8, fmin(1.05, 1 - 0.1 * (size - 1))));
}

static uint64_t variable_mib(const oos_engine_env *env, const char *name, uint64_t usual)
{
    const oos_given_variable *given = env ? oos_engine_env_given(env, name) : NULL;
    return given && given->value ? strtoull(given->value, NULL, 10) : usual;
}

/* mm_runtime_reservation_gb(), and what a large Hopper does for Qwen3-VL (arg_groups/model_overrides/qwen3_vl.py). */
static uint64_t images_mib(const sglang_setup *s, const oos_engine_env *env, const oos_model *model,
                           const oos_device_facts *device)
{
    enum { EMBEDDINGS = 100, FEATURES = 1024, FEATURES_MANY = 3072, MANY = 400, LARGE = 60 * 1024 };
    const sglang_request *r = s->request;
    bool const hopper = s->rules->images_on_hopper && device->capability == 90 && s->device_mib >= LARGE &&
                        oos_architecture_says(s->rules->facts, model->architecture, "features_on_hopper");
    uint64_t const kept = variable_mib(env, "SGLANG_VLM_CACHE_SIZE_MB", hopper ? 0 : EMBEDDINGS);
    bool const by_itself = hopper && r->nodes == 1 && !kept;
    bool const on_device = r->images_transport ? strncmp(r->images_transport, "cuda_", 5) == 0 : by_itself;
    bool const many = by_itself && r->requests.known && r->requests.value >= MANY;
    return on_device ? kept + variable_mib(env, "SGLANG_MM_FEATURE_CACHE_MB", many ? FEATURES_MANY : FEATURES)
                     : kept;
}

void oos_sglang_resolve(const sglang_request *request, const sglang_rules *rules, const oos_start *start,
                        sglang_setup *ret_setup)
{
    const oos_model *model = start->model;
    const oos_device_facts *device = &start->device;
    sglang_setup s = {.request = request, .rules = rules};
    uint64_t const kind =
        model->multimodal ? oos_architecture_says(rules->facts, model->architecture, "images") : 0;
    s.images = model->multimodal && !request->images_off && (kind != IMAGES_ON_DEMAND || request->images_on);
    /* nvidia-smi's figure, in whole MiB */
    s.device_mib = (device->nvml_total_bytes ? device->nvml_total_bytes : device->total_bytes) / OOS_MIB;
    size_by_tier(&s);
    size_graphs(&s, model->mla, s.images && kind != IMAGES_CAPTURED);
    s.reserve_mib = reserve_of(&s, model->mla);
    if (request->replicated) replicate(&s);
    double const mib = (double)oos_max(1, s.device_mib);
    double usual = round3((mib - s.reserve_mib) / mib);
    if (s.images && !request->decode_only) usual = share_beside(model, usual);
    if (s.images) s.images_mib = images_mib(&s, start->env, model, device);
    double const fraction = oos_f64_or(request->fraction, usual);
    s.fraction = fraction > 1000 ? 1000 : fraction > -1000 ? fraction : -1000;
    *ret_setup = s;
}
