/* Which values of each flag are worth trying, what they are called, and what they cost the user. */
#include "engines/vllm/solve/solve.h"
#include "base/locale.h"

#include <stdio.h>

enum {
    LEAST_SEQS = 4,           /* fewer requests at once are no service */
    LEAST_TOKENS = 512,       /* smaller pieces of a prompt cost more than they save */
    OFFLOAD_DEFAULT_GIB = 64, /* host memory where nobody has told */
    HOST_TENTHS = 19 /* ... of which weights there take 1.9 times their size, in tenths (vllm#56410) */
};

static void add(oos_levers *levers, oos_lever lever, uint64_t value)
{
    size_t *count = &levers->counts[lever];
    if (*count < OOS_LEVER_VALUES_MAX) levers->values[lever][(*count)++] = value;
}

static uint64_t power_below(uint64_t value)
{
    uint64_t power = 1;
    while (power * 2 < value) power *= 2;
    return power;
}

static void add_powers(oos_levers *levers, oos_lever lever, uint64_t now, uint64_t least)
{
    levers->values[lever][0] = now;
    if (now <= least) return;
    for (uint64_t value = power_below(now); value >= least && value < now; value /= 2)
        add(levers, lever, value);
}

/* Sizes above the number of sequences are of no use to a step of one token each. */
static const char *graph_lever(const oos_search *s, uint64_t size)
{
    const oos_setup *setup = vllm_setup(s->plan);
    if (size == OOS_EAGER) return "eager";
    return size >= setup->max_num_seqs && !setup->serve->speculative.present ? "capture_unused" : "capture";
}

static void add_graphs(oos_levers *levers, const oos_search *s, const oos_stage *stage)
{
    static const uint64_t sizes[] = {512, 256, 128, 64, 32, 16, 8};
    const oos_setup *setup = vllm_setup(s->plan);
    const char *given;
    if (setup->eager) return;
    levers->values[OOS_LEVER_GRAPHS][0] = setup->capture_top;
    bool const listed = setup->rules->capture_list >= 2 &&
                        oos_compilation_look(setup->serve, &given) != OOS_COMPILATION_PARTS;
    for (size_t i = 0; listed && i < sizeof sizes / sizeof *sizes; i++)
        if (sizes[i] < setup->capture_top && oos_trial_rung(s, graph_lever(s, sizes[i])) <= stage->rung)
            add(levers, OOS_LEVER_GRAPHS, sizes[i]);
    if (stage->eager && oos_may_go_eager(s)) add(levers, OOS_LEVER_GRAPHS, OOS_EAGER);
}

/* The first cut over so many GPUs that the engine takes, tensors before stages. Written as 100 x TP + PP; 0: there is none. */
static uint64_t cut_over(oos_search *s, uint64_t count)
{
    const oos_setup *setup = vllm_setup(s->plan);
    for (uint64_t pp = setup->pp; pp <= count; pp *= 2) {
        uint64_t const tp = count / pp;
        if (tp * pp < count || tp < setup->tp) break;
        oos_trial t = oos_trial_start(s);
        t.serve.tensor_parallel_size = oos_u64_of(tp);
        t.serve.pipeline_parallel_size = oos_u64_of(pp);
        if (!oos_trial_plan(s, &t) || t.phase == OOS_PHASE_ARGUMENTS || t.phase == OOS_PHASE_ENV ||
            (t.phase == OOS_PHASE_WEIGHT_LOAD && t.verdict == OOMSIGHT_VERDICT_REFUSED))
            continue;
        return 100 * tp + pp;
    }
    return 0;
}

/* GPUs that are there and idle: twice what is used, and twice that, as far as there are; the most of them. Five divide no usual model. */
static uint64_t idle_cut(oos_search *s)
{
    const oos_setup *setup = vllm_setup(s->plan);
    uint64_t const used = setup->tp * setup->pp * setup->dp;
    uint64_t count = used, cut = 0;
    if (setup->device.count > 64 || setup->dp > 1) return 0;
    while (count * 2 <= setup->device.count) count *= 2;
    for (; count > used && !cut; count /= 2) cut = cut_over(s, count);
    return cut;
}

/* How many images and videos one request may have was not said. */
static bool may_limit_media(const oos_search *s)
{
    const oos_setup *setup = vllm_setup(s->plan);
    return setup->multimodal && !setup->serve->mm_limits_given && !setup->serve->language_model_only.known;
}

static bool levers_weights(const oos_search *s, oos_levers *levers, oos_weights_way way);

bool oos_levers_of(oos_search *s, const oos_stage *stage, oos_levers *ret_levers)
{
    const oos_setup *setup = vllm_setup(s->plan);
    oos_rung const most = stage->rung;
    oos_levers levers = {.least = oos_min(stage->tokens, setup->max_model_len), .most = setup->max_model_len};
    bool const up = oos_trial_rung(s, "utilization_up") <= most;
    for (size_t i = 0; i < OOS_LEVERS_MAX; i++) levers.counts[i] = 1;
    levers.values[OOS_LEVER_SEQS][0] = setup->max_num_seqs;
    levers.steps[OOS_LEVER_TOKENS] = oos_trial_step(s, "batched_tokens");
    levers.steps[OOS_LEVER_SEQS] = oos_trial_step(s, "num_seqs");
    levers.steps[OOS_LEVER_GRAPHS] = oos_trial_step(s, "capture");
    levers.steps[OOS_LEVER_LENGTH] = oos_trial_step(s, "model_len");
    if (up) levers.counts[OOS_LEVER_BUDGET] = 2;
    oos_budget_bounds(s, &levers.own, &levers.lowest, &levers.highest);
    if (oos_trial_rung(s, "utilization_down") > most) levers.lowest = oos_round_up(levers.own, 10);
    if (stage->parallel) {
        if (!s->parallel.known) s->parallel = oos_u64_of(idle_cut(s));
        if (s->parallel.value) add(&levers, OOS_LEVER_PARALLEL, s->parallel.value);
    }
    if (setup->sleep_pool && oos_trial_rung(s, "sleep_off") <= most) add(&levers, OOS_LEVER_SLEEP, 1);
    if (vllm_of(s->plan)->outside.runtime_cause && !setup->serve->attention_backend &&
        OOS_RUNG_LITTLE <= most) /* a variable, before there is the flag */
        add(&levers, OOS_LEVER_BACKEND, 1);
    /* without chunked prefill a step holds the longest request, and the engine refuses less */
    if (setup->chunked_prefill && oos_trial_rung(s, "batched_tokens") <= most)
        add_powers(&levers, OOS_LEVER_TOKENS, setup->max_num_batched_tokens, LEAST_TOKENS);
    if (oos_trial_rung(s, "num_seqs") <= most)
        add_powers(&levers, OOS_LEVER_SEQS, setup->max_num_seqs, LEAST_SEQS);
    if (oos_trial_rung(s, "lora_slots") <= most) add_powers(&levers, OOS_LEVER_LORAS, setup->loras, 1);
    if (oos_trial_rung(s, "kv_fp8") <= most && oos_may_shrink_cache(s)) add(&levers, OOS_LEVER_KV, 1);
    add_graphs(&levers, s, stage);
    if (oos_trial_rung(s, "mm_limit") <= most && may_limit_media(s)) add(&levers, OOS_LEVER_MEDIA, 1);
    if (stage->text && oos_may_drop_media(s)) add(&levers, OOS_LEVER_TEXT, 1);
    if (oos_trial_rung(s, "model_len") <= most && levers.least < levers.most)
        levers.counts[OOS_LEVER_LENGTH] = 2;
    if (!levers_weights(s, &levers, (oos_weights_way)stage->way)) return false;
    *ret_levers = levers;
    return true;
}

/* GiB of host memory that the weights of one rank may take: three quarters of what the machine has; 64 GiB are assumed where
 * nobody has told. Memory that the device shares with the host is not more of it. */
static uint64_t offload_most(const oos_search *s)
{
    const oos_setup *setup = vllm_setup(s->plan);
    if (setup->device.unified) return 0;
    uint64_t const host =
        (setup->device.host_bytes ? setup->device.host_bytes / 4 * 3 / OOS_GIB : OFFLOAD_DEFAULT_GIB) * 10 /
        HOST_TENTHS;
    uint64_t const ranks = oos_max(1, oos_mul(oos_mul(setup->tp, setup->pp), setup->dp));
    return oos_min(s->plan->sizes.weights.loaded_bytes / OOS_GIB, host / ranks);
}

static bool levers_weights(const oos_search *s, oos_levers *levers, oos_weights_way way)
{
    const oos_setup *setup = vllm_setup(s->plan);
    bool const plain =
        !setup->model->quant_method && !setup->serve->quantization && !setup->serve->load_format;
    levers->counts[OOS_LEVER_WEIGHTS] = 1;
    switch (way) {
    case OOS_WEIGHTS_AS_THEY_ARE: return true;
    case OOS_WEIGHTS_FP8: /* before 8.0 no kernel reads FP8 weights */
        if (!plain || setup->device.capability < 80) return false;
        break;
    case OOS_WEIGHTS_BNB: /* experts and other mixers: not every one can be packed */
        if (!plain || setup->model->moe.experts || setup->model->hybrid || setup->model->mla || setup->draft)
            return false;
        break;
    case OOS_WEIGHTS_OFFLOAD: { /* with weights that are quantised on the way: not known */
        uint64_t const most = offload_most(s);
        if ((setup->serve->quantization && !setup->model->quant_method) ||
            setup->serve->cpu_offload_gb.known || !setup->rules->cpu_offload_taken ||
            oos_setup_offload_ignored(setup) || most == 0)
            return false;
        for (unsigned i = 1; i <= 22; i++) { /* few of them: none is far from another */
            uint64_t const gib = oos_max(i, most * i / 22);
            if (gib <= most &&
                gib != levers->values[OOS_LEVER_WEIGHTS][levers->counts[OOS_LEVER_WEIGHTS] - 1])
                add(levers, OOS_LEVER_WEIGHTS, gib);
        }
        levers->values[OOS_LEVER_WEIGHTS][0] = OOS_WEIGHTS_OFFLOAD;
        return levers->counts[OOS_LEVER_WEIGHTS] > 1;
    }
    }
    levers->values[OOS_LEVER_WEIGHTS][0] = way;
    add(levers, OOS_LEVER_WEIGHTS, way);
    return true;
}

static oos_weights_way way_at(const oos_levers *levers, const oos_point *point)
{
    return point->at[OOS_LEVER_WEIGHTS] ? (oos_weights_way)levers->values[OOS_LEVER_WEIGHTS][0]
                                        : OOS_WEIGHTS_AS_THEY_ARE;
}

static void set_weights(oos_serve *serve, const oos_levers *levers, const oos_point *point)
{
    switch (way_at(levers, point)) {
    case OOS_WEIGHTS_FP8: serve->quantization = "fp8"; break;
    case OOS_WEIGHTS_BNB: serve->quantization = "bitsandbytes"; break;
    case OOS_WEIGHTS_OFFLOAD:
        serve->cpu_offload_gb = (oos_f64){true, (double)oos_point_value(levers, point, OOS_LEVER_WEIGHTS)};
        break;
    case OOS_WEIGHTS_AS_THEY_ARE: break;
    }
}

static void set_graphs(oos_serve *serve, uint64_t value)
{
    if (value == OOS_EAGER)
        serve->enforce_eager = (oos_flag){true, true};
    else
        oos_set_capture(serve, value);
}

oos_trial oos_point_start(const oos_search *s, const oos_levers *levers, const oos_point *point)
{
    oos_trial t = oos_trial_start(s);
    oos_serve *serve = &t.serve;
    if (point->share) oos_set_gmu_thousandths(serve, point->share);
    if (point->at[OOS_LEVER_PARALLEL]) {
        serve->tensor_parallel_size = oos_u64_of(oos_point_value(levers, point, OOS_LEVER_PARALLEL) / 100);
        serve->pipeline_parallel_size = oos_u64_of(oos_point_value(levers, point, OOS_LEVER_PARALLEL) % 100);
    }
    if (point->at[OOS_LEVER_SLEEP]) {
        serve->enable_sleep_mode = (oos_flag){true, false};
        serve->enable_cumem_allocator = (oos_flag){true, false};
    }
    if (point->at[OOS_LEVER_BACKEND]) serve->attention_backend = "TRITON_ATTN";
    if (point->at[OOS_LEVER_TOKENS]) oos_set_tokens(serve, oos_point_value(levers, point, OOS_LEVER_TOKENS));
    if (point->at[OOS_LEVER_SEQS]) oos_set_seqs(serve, oos_point_value(levers, point, OOS_LEVER_SEQS));
    if (point->at[OOS_LEVER_LORAS])
        serve->max_loras = oos_u64_of(oos_point_value(levers, point, OOS_LEVER_LORAS));
    if (point->at[OOS_LEVER_KV]) serve->kv_cache_dtype = "fp8";
    if (point->at[OOS_LEVER_GRAPHS]) set_graphs(serve, oos_point_value(levers, point, OOS_LEVER_GRAPHS));
    if (point->at[OOS_LEVER_MEDIA]) {
        serve->mm_limits_given = true;
        serve->mm_images = oos_u64_of(1);
        serve->mm_videos = oos_u64_of(0);
    }
    if (point->at[OOS_LEVER_TEXT]) serve->language_model_only = (oos_flag){true, true};
    set_weights(serve, levers, point);
    if (point->length) oos_set_length(serve, point->length);
    return t;
}

/* What moves by itself, in the order in which it is said; without a flag it has words of its own. */
static const struct {
    oos_lever lever;
    oos_lever_words words;
} records[] = {
    {OOS_LEVER_PARALLEL, {.id = "parallel", .price = {1}}},
    {OOS_LEVER_BACKEND, {.price = {1}}},
    {OOS_LEVER_KV, {.id = "kv_fp8", .flag = "--kv-cache-dtype", .word = "fp8", .price = {3}}},
    {OOS_LEVER_GRAPHS, {.mild = 32, .strong = 1, .price = {2, 3, 5}}},
    {OOS_LEVER_SEQS,
     {"num_seqs", "--max-num-seqs", NULL, "at most", "concurrent requests", 64, 16, {2, 3, 5}}},
    {OOS_LEVER_LORAS,
     {"lora_slots", "--max-loras", NULL, "at most", "adapters in one batch", 4, 2, {2, 2, 3}}},
    {OOS_LEVER_TOKENS, {"batched_tokens", "--max-num-batched-tokens", .mild = 2048, .price = {2, 3}}},
    {OOS_LEVER_MEDIA, {"mm_limit", "--limit-mm-per-prompt", "{\"image\":1,\"video\":0}", .price = {2}}},
    {OOS_LEVER_TEXT, {"text_only", "--language-model-only", "", .price = {6}}},
    {OOS_LEVER_SLEEP, {"sleep_off", "--no-enable-sleep-mode", "", .price = {2}}}};
enum { RECORDS = sizeof records / sizeof *records };

/* ---- what it costs ------------------------------------------------------------------------------------------------ */

static unsigned length_price(const oos_levers *levers, uint64_t length)
{
    if (length == 0 || length >= levers->most) return 0;
    return length >= levers->most / 2 || length >= 32768 ? 2 : length >= 8192 ? 3 : length >= 4096 ? 6 : 9;
}

static oos_rung dearer(oos_rung a, oos_rung b)
{
    return a > b ? a : b;
}

oos_rung oos_point_rung(const oos_search *s, const oos_levers *levers, const oos_point *point)
{
    double const own = vllm_setup(s->plan)->gpu_memory_utilization;
    oos_rung rung = OOS_RUNG_NOTHING;
    for (size_t i = 0; i < RECORDS; i++)
        if (point->at[records[i].lever] && records[i].words.id)
            rung = dearer(rung, oos_trial_rung(s, records[i].words.id));
    if (point->share) {
        bool const up = (double)point->share / 1000 > own;
        rung = dearer(rung, oos_trial_rung(s, up ? "utilization_up" : "utilization_down"));
    }
    if (point->at[OOS_LEVER_BACKEND]) rung = dearer(rung, OOS_RUNG_LITTLE);
    if (point->at[OOS_LEVER_GRAPHS])
        rung =
            dearer(rung, oos_trial_rung(s, graph_lever(s, oos_point_value(levers, point, OOS_LEVER_GRAPHS))));
    if (point->length && point->length < levers->most) rung = dearer(rung, oos_trial_rung(s, "model_len"));
    return point->at[OOS_LEVER_WEIGHTS] ? OOS_RUNG_ELSEWHERE : rung;
}

/* What people would rather not do is dearer. Chosen by judgement, not measured: it decides between changes with as many flags. */
unsigned oos_point_price(const oos_levers *levers, const oos_point *point)
{
    unsigned price = length_price(levers, point->length);
    if (point->share) price += point->share > 950 ? 2 : 1;
    for (size_t i = 0; i < RECORDS; i++) {
        const oos_lever_words *words = &records[i].words;
        uint64_t const value = oos_point_value(levers, point, records[i].lever);
        if (point->at[records[i].lever])
            price += words->price[value >= words->mild ? 0 : value >= words->strong ? 1 : 2];
    }
    return price;
}

/* ---- what it is called ---------------------------------------------------------------------------------------------- */

static void say_graphs(oos_saying *w, uint64_t size)
{
    const char *given;
    if (size == OOS_EAGER) {
        oos_say_word(w, "--enforce-eager");
        oos_say_lost(w, oos_trial_cost(w->s, "eager"));
        return;
    }
    (void)oos_compilation_look(vllm_setup(w->s->plan)->serve, &given);
    bool const own = given != NULL;
    oos_say_word(w, own ? "--compilation-config" : "--compilation-config.max_cudagraph_capture_size");
    if (own)
        oos_say_word(w, oos_compilation_merged(w->s->arena, given, size));
    else
        oos_say_number(w, size);
    oos_say_lost(w, oos_arena_format(w->s->arena, "no CUDA graphs for more than %llu concurrent requests",
                                     (unsigned long long)size));
}

static void say_parallel(oos_saying *w, uint64_t value)
{
    const oos_setup *setup = vllm_setup(w->s->plan);
    if (value / 100 != setup->tp) oos_say_word(w, "--tensor-parallel-size"), oos_say_number(w, value / 100);
    if (value % 100 != setup->pp) oos_say_word(w, "--pipeline-parallel-size"), oos_say_number(w, value % 100);
}

static void say_backend(oos_saying *w)
{
    if (oos_trial_has_flag(w->s, "--attention-backend")) {
        oos_say_word(w, "--attention-backend");
        oos_say_word(w, "TRITON_ATTN");
    } else {
        oos_say_word(w, "VLLM_ATTENTION_BACKEND=TRITON_ATTN");
    }
}

static void say_weights(oos_saying *w, const oos_levers *levers, const oos_point *point)
{
    const oos_setup *setup = vllm_setup(w->s->plan);
    oos_weights_way const way = way_at(levers, point);
    if (way == OOS_WEIGHTS_FP8 || way == OOS_WEIGHTS_BNB) {
        oos_say_word(w, "--quantization");
        oos_say_word(w, way == OOS_WEIGHTS_FP8 ? "fp8" : "bitsandbytes");
        oos_say_lost(w, oos_trial_cost(w->s, way == OOS_WEIGHTS_FP8 ? "weights_fp8" : "weights_bnb"));
    } else if (way == OOS_WEIGHTS_OFFLOAD) {
        uint64_t const gib = oos_point_value(levers, point, OOS_LEVER_WEIGHTS);
        oos_say_word(w, "--cpu-offload-gb");
        oos_say_number(w, gib);
        oos_say_lost(w, oos_trial_cost(w->s, "offload"));
        if (!setup->device.host_bytes)
            oos_say_lost(
                w,
                oos_arena_format(
                    w->s->arena, "needs %llu GiB of free host memory (--host-ram)",
                    (unsigned long long)((gib * setup->tp * setup->pp * setup->dp * HOST_TENTHS + 9) / 10)));
    }
}

/* A cache of the model's own kind, the whole length, all graphs, all requests: what was not touched. */
static const char *kept(const oos_search *s, const oos_levers *levers, const oos_point *point)
{
    bool const length = !point->length || point->length >= levers->most, seqs = !point->at[OOS_LEVER_SEQS];
    uint64_t const captured =
        point->at[OOS_LEVER_GRAPHS] ? oos_point_value(levers, point, OOS_LEVER_GRAPHS) : 0;
    const char *graphs = vllm_setup(s->plan)->eager ? "" : "CUDA graphs";
    if (point->at[OOS_LEVER_GRAPHS])
        graphs = captured == OOS_EAGER
                     ? ""
                     : oos_arena_format(s->arena, "CUDA graphs for up to %llu concurrent requests",
                                        (unsigned long long)captured);
    return oos_say_kept(s, length, seqs, graphs);
}

bool oos_point_say(oos_search *s, const oos_levers *levers, const oos_point *point, oos_trial *t)
{
    oos_saying w = {.s = s, .t = t};
    const oos_setup *setup = vllm_setup(s->plan);
    if (point->at[OOS_LEVER_PARALLEL]) say_parallel(&w, oos_point_value(levers, point, OOS_LEVER_PARALLEL));
    say_weights(&w, levers, point);
    if (point->at[OOS_LEVER_BACKEND]) say_backend(&w);
    if (point->share) {
        char text[32];
        oos_format(text, sizeof text, "%.2f", (double)point->share / 1000);
        oos_say_word(&w, "--gpu-memory-utilization");
        oos_say_word(&w, oos_arena_copy(s->arena, oos_view_of(text)));
        bool const higher = (double)point->share / 1000 > setup->gpu_memory_utilization;
        if (higher || !setup->kv_cache_memory_bytes.known)
            oos_say_lost(&w, oos_trial_cost(s, higher ? "utilization_up" : "utilization_down"));
    }
    for (size_t i = 0; i < RECORDS; i++) {
        uint64_t const value = oos_point_value(levers, point, records[i].lever);
        if (!point->at[records[i].lever]) continue;
        if (records[i].lever == OOS_LEVER_GRAPHS) say_graphs(&w, value);
        if (records[i].words.flag) oos_say_lever(&w, &records[i].words, value);
    }
    if (point->length && point->length < levers->most) {
        oos_say_word(&w, "--max-model-len"), oos_say_number(&w, point->length);
        oos_say_lost(&w, oos_arena_format(s->arena, "no requests longer than %llu tokens",
                                          (unsigned long long)point->length));
    }
    t->rung = oos_point_rung(s, levers, point);
    t->keeps = kept(s, levers, point);
    if (!t->gives_up) t->gives_up = "none";
    return !w.failed && t->word_count > 0;
}
