/* Defaults by the memory of the device, graphs, the reserve and the static fraction (0.5.23, srt/arg_groups/memory_hook.py; earlier
 * srt/server_args.py). */
#include "engines/sglang/sglang.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { RUNNER_SIZES = 512 };

/* By MiB of the device: tokens of a chunk, largest captured decode batch with fewer than four ranks and with more (0: none is set, see
 * runner_sizes), and what is kept out of the static share, with so much for each rank, where that is a table too. */
typedef struct tier {
    uint64_t below_mib, chunk, few, many;
    double reserve_mib, rank_mib;
} tier;

static const tier tiers_first[] = {{25000, 2048, 8, 80, 0, 0}, {UINT64_MAX, 8192, 0, 0, 0, 0}};
static const tier tiers_tabled[] = {
    {35 * 1024, 2048, 8, 80, 2.8 * 1024, 102.4},
    {90 * 1024, 8192, 0, 0, 9728, 512},
    {160 * 1024, 8192, 0, 0, 12288, 512},
    {UINT64_MAX, 16384, 0, 0, 32768, 0},
};
static const tier tiers_reckoned[] = {
    {20 * 1024, 2048, 8, 8, 0, 0},      {35 * 1024, 0, 0, 0, 0, 0},
    {60 * 1024, 4096, 32, 160, 0, 0},   {90 * 1024, 8192, 256, 512, 0, 0},
    {160 * 1024, 8192, 256, 512, 0, 0}, {UINT64_MAX, 16384, 512, 512, 0, 0},
};
enum { TIERS_FIRST, TIERS_TABLED }; /* the rule `tiers`; above: reckoned */

static const tier *tier_of(const sglang_setup *s)
{
    uint64_t const which = s->rules->tiers;
    const tier *at = which == TIERS_FIRST    ? tiers_first
                     : which == TIERS_TABLED ? tiers_tabled
                                             : tiers_reckoned;
    while (s->device_mib >= at->below_mib) at++;
    return at;
}

static void size_by_tier(sglang_setup *s)
{
    enum {
        ROLE_CHUNK = 16384
    }; /* of the first releases, where prefill and decode have servers of their own */
    const sglang_request *r = s->request;
    const sglang_rules *rules = s->rules;
    const tier *at = tier_of(s);
    bool const second = !at->chunk; /* the one that changed */
    uint64_t const few = second ? rules->batch_24gib : at->few;
    uint64_t const many = second ? rules->batch_24gib_four : at->many;
    bool const role = rules->tiers == TIERS_FIRST && at->chunk > 2048 && (r->prefill_only || r->decode_only);
    uint64_t batch = r->tp < 4 ? few : many;
    if (r->requests.known && rules->requests_bound_batch) batch = oos_min(batch, r->requests.value);
    s->chunk = oos_u64_or(r->chunk, role ? ROLE_CHUNK : second ? rules->chunk_24gib : at->chunk);
    s->decode_batch = oos_u64_or(r->decode_batch, batch);
    s->batch_unnamed = oos_u64_or(r->decode_asked, batch);
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

/* The largest is always among them, be it 0; before, only where a step meets it. */
uint64_t oos_sglang_decode_sizes(const sglang_rules *rules, uint64_t most, bool drafted, uint64_t *list,
                                 size_t capacity)
{
    uint64_t count = 0, last = 0;
    for (uint64_t size = 1; size <= most && size <= 1 << 20; size = size_after(size, drafted)) {
        bool const skipped = drafted && size == 64 && !rules->drafted_64;
        if (!skipped && put(size, most, list, capacity, &count)) last = size;
    }
    if (rules->decode_largest && (last != most || !most)) put(most, most, list, capacity, &count);
    return count;
}

uint64_t oos_sglang_prefill_sizes(const sglang_rules *rules, uint64_t most)
{
    uint64_t const fine = rules->prefill_step_fine, coarse = rules->prefill_step_coarse;
    return count_steps(4, 32, 4, most) + count_steps(48, 256, 16, most) + count_steps(288, 512, 32, most) +
           count_steps(rules->prefill_first_fine, 1024, fine, most) +
           count_steps(1024 + coarse, 4096, coarse, most) +
           count_steps(4096 + 2 * coarse, most, 2 * coarse, most);
}

/* ---- sizes that the runner of the graphs makes (get_batch_sizes_to_capture, model_executor/cuda_graph_runner.py) ---- */

typedef struct sizes {
    uint64_t list[RUNNER_SIZES];
    size_t count;
} sizes;

/* A range of Python, its end among it. Sizes come in their order, but for those of a small table of requests. */
static void sizes_add(sizes *of, uint64_t first, uint64_t last, uint64_t step)
{
    for (uint64_t size = first; size <= last && of->count < RUNNER_SIZES; size += step) {
        bool known = !size;
        for (size_t i = 0; i < of->count; i++) known |= of->list[i] == size;
        if (!known) of->list[of->count++] = size;
    }
}

static void sizes_keep(sizes *of, uint64_t most, uint64_t multiple)
{
    size_t kept = 0;
    for (size_t i = 0; i < of->count; i++)
        if (of->list[i] <= most && of->list[i] % multiple == 0) of->list[kept++] = of->list[i];
    of->count = kept;
}

static uint64_t sizes_largest(const sizes *of)
{
    uint64_t largest = 0;
    for (size_t i = 0; i < of->count; i++) largest = oos_max(largest, of->list[i]);
    return largest;
}

static void sizes_usual(const sglang_setup *s, sizes *of)
{
    bool const first = s->rules->tiers == TIERS_FIRST;
    if (s->request->drafter) {
        sizes_add(of, 1, 8, 1);
        sizes_add(of, 10, 32, 2);
        sizes_add(of, 40, first ? 160 : 63, first ? 16 : 8);
        if (!first) sizes_add(of, 80, 160, 16);
    } else if (s->request->every_batch) {
        sizes_add(of, 1, 32, 1);
        sizes_add(of, first ? 40 : 48, 160, 16);
    } else {
        for (uint64_t size = 1; size <= 8; size *= 2) sizes_add(of, size, size, 1);
        sizes_add(of, 16, 160, 8);
    }
    if (s->device_mib > (first ? 96 : 90) * 1024) sizes_add(of, 160, 256, 8);
    if (!first && s->device_mib > 160 * 1000) sizes_add(of, 256, 512, 16);
}

static void sizes_named(const char *words, sizes *of)
{
    for (char *end; words && *words; words = end + strspn(end, " ")) {
        unsigned long long const size = strtoull(words, &end, 10);
        if (end == words) return;
        sizes_add(of, size, size, 1);
    }
}

/* How many, and the largest of them in place of the batch. */
static uint64_t runner_sizes(sglang_setup *s)
{
    const sglang_request *r = s->request;
    bool const first = s->rules->tiers == TIERS_FIRST;
    uint64_t const replicas = r->replicated ? r->dp : 1;
    uint64_t const rows = r->requests.known ? r->requests.value / replicas + first : UINT64_MAX;
    uint64_t const most = r->decode_sizes.known ? s->batch_unnamed : s->decode_batch;
    sizes of = {.count = 0};
    if (r->decode_sizes.known)
        sizes_named(r->decode_words, &of);
    else
        sizes_usual(s, &of);
    if (sizes_largest(&of) > rows) {
        if (first) sizes_add(&of, rows - 1, rows - 1, 1);
        sizes_add(&of, rows, rows, 1);
    }
    sizes_keep(&of, UINT64_MAX, r->replicated && s->rules->gathered_sizes ? oos_max(1, r->tp / r->dp) : 1);
    if (most) {
        sizes_keep(&of, most, 1);
        if (of.count)
            sizes_add(&of, sizes_largest(&of), most, 16); /* of none the engine takes the largest, and ends */
    }
    sizes_keep(&of, rows, 1);
    s->decode_batch = sizes_largest(&of);
    return of.count;
}

static uint64_t decode_graphs(sglang_setup *s)
{
    const sglang_request *r = s->request;
    bool const idle = r->decode_idle && !s->rules->idle_decode_captured && !r->prefill_asked;
    if (s->rules->runner_sizes) {
        uint64_t const count = runner_sizes(s);
        return r->decode_off || idle ? 0 : count;
    }
    if (r->decode_off || idle) return 0;
    if (r->decode_sizes.known) return r->decode_sizes.value;
    if (r->every_batch) return s->decode_batch;
    return oos_sglang_decode_sizes(s->rules, s->decode_batch, r->drafter != NULL, NULL, 0);
}

/* The largest captured prefill where the command names none. */
static uint64_t prefill_most(const sglang_setup *s, bool latent)
{
    enum { STAGES_PREFILL_TOKENS = 8192 }; /* captured at most where there are stages */
    const sglang_rules *rules = s->rules;
    const sglang_request *r = s->request;
    uint64_t const latent_tokens = rules->latent_prefill_tokens;
    uint64_t most = rules->prefill_tokens ? rules->prefill_tokens : s->chunk;
    if (latent && latent_tokens)
        most = rules->latent_prefill_in_chunk ? oos_min(latent_tokens, s->chunk) : latent_tokens;
    if (r->pp > 1 && rules->stages_bound_prefill) most = oos_min(most, STAGES_PREFILL_TOKENS);
    return most;
}

/* What turns captured prefill off by itself. */
static bool prefill_stopped(const sglang_setup *s, bool latent, bool unfit)
{
    const sglang_rules *rules = s->rules;
    const sglang_request *r = s->request;
    if (!rules->prefill_graphs && !r->prefill_asked) return true;
    if (unfit && rules->prefill_graphs) return true;
    if (r->prefill_named || !rules->prefill_graphs) return false;
    return (r->pp > 1 && rules->stages_bound_prefill) ||
           ((r->pp > 1 || r->prefill_blocked) && rules->piecewise_prefill) ||
           (r->replicated && rules->replicas_stop_prefill) || (latent && rules->latent_stops_prefill) ||
           (r->drafter && rules->drafts_stop_prefill) || r->decode_only ||
           (r->prefill_only && rules->piecewise_prefill);
}

static void size_graphs(sglang_setup *s, bool latent, bool unfit)
{
    const sglang_rules *rules = s->rules;
    const sglang_request *r = s->request;
    s->decode_graphs = decode_graphs(s);
    uint64_t most = oos_u64_or(r->prefill_tokens, prefill_most(s, latent));
    bool const open = !r->prefill_tokens.known;
    if (open && rules->total_bounds_prefill && r->tokens_most.known)
        most = oos_min(most, r->tokens_most.value);
    if (open && rules->context_bounds_prefill && r->context.known) most = oos_min(most, r->context.value);
    s->prefill_tokens = most;
    bool const off =
        (r->eager && rules->eager_stops_prefill) || r->prefill_off || prefill_stopped(s, latent, unfit);
    s->prefill_captured = !off;
    if (!off) s->prefill_graphs = oos_u64_or(r->prefill_sizes, oos_sglang_prefill_sizes(rules, most));
}

enum {
    REPLICATED_LARGE = 300
}; /* requests of a captured batch from which more is kept, where attention is replicated */

static double drafter_mib(const sglang_setup *s)
{
    const char *drafter = s->request->drafter;
    if (!drafter || (strcmp(drafter, "NGRAM") == 0 && s->rules->tiers > TIERS_TABLED)) return 0;
    return strcmp(drafter, "STANDALONE") == 0 ? s->rules->reserve_standalone_mib
                                              : s->rules->reserve_drafter_mib;
}

static bool kda_stops(const sglang_rules *rules, const oos_model *model)
{
    bool kda = false;
    for (size_t i = 0; i < model->attention_count; i++) kda |= model->attentions[i].mixer == OOS_MIXER_KDA;
    return kda && rules->kda_stops_prefill &&
           !oos_architecture_says(rules->facts, model->architecture, "kda_captured");
}

static bool trtllm_stops(const sglang_setup *s, const oos_model *model, unsigned capability)
{
    const char *asked = s->request->attention;
    bool const used = asked ? strcmp(asked, "trtllm_mla") == 0 : capability / 10 == 10;
    return used && s->rules->trtllm_stops_prefill && !s->request->prefill_named &&
           oos_architecture_says(s->rules->facts, model->architecture, "trtllm_mla");
}

/* What the engine keeps out of the static share for activations and graphs: a guess of its own, no measurement. */
static double reserve_of(const sglang_setup *s, bool latent)
{
    const sglang_rules *rules = s->rules;
    const sglang_request *r = s->request;
    if (rules->tiers == TIERS_TABLED) {
        const tier *at = tier_of(s);
        return at->reserve_mib + at->rank_mib * (double)(r->tp * r->pp) + drafter_mib(s) +
               (r->replicated ? rules->reserve_replicas_mib : 0);
    }
    uint64_t const running = oos_max(1, oos_u64_or(r->requests, s->decode_batch));
    uint64_t const step = r->decode_only && rules->reserve_by_role ? oos_mul(running, r->draft_tokens)
                          : s->chunk                               ? s->chunk
                                                                   : r->prefill_most;
    uint64_t const tokens = oos_max(step, rules->reserve_least_tokens);
    double mib = rules->reserve_mib + (double)tokens * rules->reserve_token_mib +
                 (double)(r->tp * r->pp) * rules->reserve_rank_mib;
    if (!(r->decode_off || r->prefill_only) || !rules->reserve_by_role)
        mib += (double)s->decode_batch * rules->reserve_batch_mib;
    if (r->replicated && !(r->prefill_only && rules->reserve_by_role))
        mib += (double)(s->decode_batch * r->dp) *
               (rules->reserve_replicated_mib +
                (s->decode_batch > REPLICATED_LARGE ? rules->reserve_replicated_large_mib : 0));
    if (s->prefill_captured)
        mib += (latent && rules->reserve_latent_graphs_mib > 0
                    ? rules->reserve_latent_graphs_mib
                    : (double)s->prefill_graphs * rules->reserve_prefill_graph_mib) +
               floor((double)s->prefill_tokens * rules->reserve_prefill_token_mib);
    if (s->device_mib > rules->large_device_mib) mib = fmax(mib, rules->reserve_large_mib);
    return mib + drafter_mib(s);
}

/* Each replica has its share of a chunk, and captures no more; the reserve was for the whole. */
static void replicate(sglang_setup *s)
{
    s->chunk /= s->request->dp;
    if (!s->rules->replicas_bound_prefill || !s->chunk || s->prefill_tokens <= s->chunk ||
        s->request->prefill_tokens.known)
        return;
    s->prefill_tokens = s->chunk;
    if (s->prefill_graphs && !s->request->prefill_sizes.known)
        s->prefill_graphs = oos_sglang_prefill_sizes(s->rules, s->chunk);
}

/* Python's round(x, 3) of a share: of the number that x is, where the product only looks like a half. */
static double round3(double share)
{
    double const product = share * 1000, rest = fma(share, 1000, -product);
    if (product - floor(product) != 0.5 || rest == 0) return rint(product) / 1000;
    return (rest > 0 ? ceil(product) : floor(product)) / 1000;
}

/* The first releases: a share by ranks, of which a large device leaves less than 18 GiB over. */
static double share_by_ranks(const sglang_setup *s)
{
    static const struct {
        uint64_t ranks;
        double share;
    } table[] = {{16, 0.79}, {8, 0.81}, {4, 0.85}, {2, 0.87}, {0, 0.88}};
    double const mib = (double)oos_max(1, s->device_mib);
    uint64_t const ranks = oos_mul(s->request->tp, s->request->pp);
    size_t at = s->device_mib <= 80 * 1024 ? 0 : sizeof table / sizeof *table - 1;
    while (ranks < table[at].ranks) at++;
    double const share = table[at].share;
    oos_assert(share > 0 && share < 1);
    return s->device_mib > 96 * 1024 ? fmin(share + 48 * 1024 * (1 - share) / mib, (mib - 18 * 1024) / mib)
                                     : share;
}

/* What "images" of an architecture says; 0: images are taken, and no prefill is captured. */
enum { IMAGES_CAPTURED = 2, IMAGES_ON_DEMAND = 3 };
#define SHARE_WITH_IMAGES                                                                                    \
    0.90 /* of the first releases, be the share given or not (model_runner.py, model_specific_adjustment) */

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
    oos_assert(layers > 0 && hidden > 0);
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
    bool const compressed = oos_sglang_is_compressed(model), latent = model->mla && !compressed;
    bool const beside_images = kind == IMAGES_CAPTURED && rules->images_captured;
    size_graphs(&s, latent, (s.images && !beside_images) || compressed || kda_stops(rules, model));
    s.reserve_mib = reserve_of(&s, latent);
    if (trtllm_stops(&s, model, device->capability)) s.prefill_graphs = 0;
    if (request->replicated) replicate(&s);
    double const mib = (double)oos_max(1, s.device_mib);
    bool const first = rules->tiers == TIERS_FIRST;
    double usual = first ? share_by_ranks(&s) : round3((mib - s.reserve_mib) / mib);
    if (s.images && rules->tower_share && (!request->decode_only || !rules->tower_unused_by_decode))
        usual = share_beside(model, usual);
    if (s.images && rules->images_reserved) s.images_mib = images_mib(&s, start->env, model, device);
    double fraction = oos_f64_or(request->fraction, usual);
    if (s.images && !rules->tower_share) fraction *= SHARE_WITH_IMAGES;
    if (first) s.reserve_mib = mib - mib * fraction;
    s.fraction = fraction > 1000 ? 1000 : fraction > -1000 ? fraction : -1000;
    *ret_setup = s;
}
