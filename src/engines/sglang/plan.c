/* One start of SGLang, phase by phase: communicators, weights, the pool out of the static share, the table of requests, graphs, and the
 * first full chunk of prefill, for which the engine has only guessed. */
#include "engines/sglang/sglang.h"
#include "base/check.h"
#include "plan/plan.h"
#include "sizes/sizes.h"
#include "facts/facts.h"

enum {
#define CONSTANT(name) SGLANG_##name,
#include "engines/sglang/constants.def"
#undef CONSTANT
};
extern const oos_constants oos_sglang_constants;
#define VALUE(name) oos_constant_of(&oos_sglang_constants, SGLANG_##name, &(oos_constant_where){0})

#include <math.h>

enum { CAPTURES_MOST = 512, OWN_SETTINGS = 11, EXTRA_CONTEXT = 4, ROTARY_ALIGN = 128, DECODING_MOST = 512 };

/* Bytes of a logit while requests decode, beside the one in the model's type: fp32, its softmax, noise and quotient of the sampler, and
 * what the batch before it still holds, as batches overlap. A dry start of 0.5.23 that decoded 200 requests at once took 22 in all
 * (Qwen3-0.6B, sampler of PyTorch); FlashInfer's needs no noise, and prefill steps of other sizes leave segments of their own. */
enum { LOGIT_LEAST = 12, LOGIT_USUAL = 20, LOGIT_MOST = 28 };

/* What is known of one start while its phases are put together. */
typedef struct work {
    oos_arena *arena;
    oos_plan *plan;
    const sglang_setup *sglang;
    sglang_pool pool;
    sglang_states states;
    sglang_drafts drafts;
    oos_activation activation;
    oos_outside outside;
    oos_graphs graphs;
    oos_amount
        captured_step; /* the largest captured step of prefill: held by its graphs, and used again by steps that are not captured */
    oos_amount free; /* before loading: what the static fraction is a fraction of */
    uint64_t table_bytes, attention_bytes;
    uint64_t *param_bytes; /* of each stage */
    uint64_t cached_bytes; /* rests of segments beside the weights */
    bool built;            /* sizes are those of the installed engine's classes */
} work;

/* ---- the start and its forward step ---- */

/* 'auto' is the checkpoint's type; float32 becomes float16, and so does bfloat16 where the device has none (ModelConfig). */
static oos_dtype dtype_of(const sglang_request *request, const oos_model *model, unsigned capability)
{
    oos_dtype dtype = request->dtype ? oos_dtype_find(request->dtype) : OOS_DTYPE_UNKNOWN;
    if (dtype != OOS_DTYPE_UNKNOWN) return dtype;
    dtype = model->dtype;
    if (dtype == OOS_DTYPE_UNKNOWN || dtype == OOS_DTYPE_F32) dtype = OOS_DTYPE_F16;
    return dtype == OOS_DTYPE_BF16 && capability && capability < 80 ? OOS_DTYPE_F16 : dtype;
}

static bool kv_is_fp8(const sglang_request *request, const oos_model *model, unsigned capability,
                      bool *ret_unread)
{
    const char *word = request->kv_dtype ? request->kv_dtype : "auto";
    *ret_unread = false;
    if (strncmp(word, "fp8_", 4) == 0) return true;
    bool const sparse = model->mla && model->sparse && capability >= 100; /* _dsa_kv_cache_dtype_default */
    if (strcmp(word, "auto") == 0 && oos_sglang_is_compressed(model)) return true;
    if (strcmp(word, "auto") == 0) return sparse || model->kv_cache_dtype == OOS_DTYPE_F8;
    *ret_unread = strcmp(word, "bf16") != 0 && strcmp(word, "bfloat16") != 0;
    return false;
}

/* --quantization names the checkpoint's own form by another word (_verify_quantization, compatible_quantization_methods, and what
 * override_quantization_method() makes of it). */
static bool is_own_form(const char *asked, const char *own)
{
    static const struct {
        const char *asked, *own;
    } pairs[] = {{"awq_marlin", "awq"},
                 {"gptq_marlin", "gptq"},
                 {"modelopt", "modelopt"},
                 {"modelopt_fp4", "modelopt"},
                 {"modelopt_fp8", "modelopt"},
                 {"modelopt_mixed", "modelopt"},
                 {"w8a8_int8", "compressed"},
                 {"w8a8_fp8", "compressed"},
                 {"compressed-tensors", "compressed"},
                 {"compressed_tensors", "compressed"}};
    for (size_t i = 0; asked && own && i < sizeof pairs / sizeof *pairs; i++)
        if (strcmp(asked, pairs[i].asked) == 0 && strncmp(own, pairs[i].own, strlen(pairs[i].own)) == 0)
            return true;
    return false;
}

static void setup_fill(const oos_start *start, const sglang_request *request, const sglang_rules *rules,
                       const sglang_setup *sglang, sglang_start *setup)
{
    bool unread;
    setup->asked = start;
    setup->model = start->model;
    setup->env = start->env;
    setup->rules = rules;
    setup->device = start->device;
    setup->quantization =
        is_own_form(request->quantization, start->model->quant_method) ? NULL : request->quantization;
    setup->load_format = request->load_format;
    setup->tp = oos_min(request->tp, 4096);
    setup->attention_tp = request->replicated ? oos_max(1, setup->tp / request->dp) : setup->tp;
    setup->dp = request->replicated ? 1 : request->dp; /* replicated attention divides the ranks of `tp` */
    setup->ep = request->ep > 1 ? setup->tp : 1;
    setup->pp = oos_min(request->pp, oos_max(1, start->model->layer_count));
    setup->last_layer = start->model->layer_count;
    setup->dtype = dtype_of(request, start->model, start->device.capability);
    setup->head_replicated = request->head_replicated;
    setup->kv_fp8 = kv_is_fp8(request, start->model, start->device.capability, &unread);
    setup->page = oos_sglang_page_of(request, start->model);
    setup->kv_dtype_word = request->kv_dtype ? request->kv_dtype : "auto";
    setup->context_length = oos_max(1, oos_u64_or(request->context, oos_max(1, start->model->max_position)));
    setup->chunk_tokens = sglang->chunk ? sglang->chunk : request->prefill_most;
    setup->static_fraction = sglang->fraction > 0 ? sglang->fraction : 0;
    setup->eager = !sglang->decode_graphs;
    setup->multimodal = start->model->multimodal && !request->images_off;
    if (setup->eager) return;
    setup->capture_top = sglang->decode_batch;
    setup->capture_count = oos_min(CAPTURES_MOST, sglang->decode_graphs);
}

/* What "stages" of an architecture says: its head is built on the last, or on each. */
enum { HEAD_ON_LAST = 1, HEAD_EVERYWHERE = 2 };

/* get_pp_indices(): even shares; the rest goes to the last stages, one each, or before all of it to the last. NULL: no memory. */
static const char *stages_of(oos_arena *arena, const sglang_start *setup)
{
    uint64_t const layers = setup->model->layer_count, share = layers / setup->pp, rest = layers % setup->pp;
    const oos_given_variable *given =
        setup->env ? oos_engine_env_given(setup->env, "SGLANG_PP_LAYER_PARTITION") : NULL;
    const char *list = "";
    if (given && given->value) return oos_arena_copy(arena, oos_view_of(given->value));
    for (uint64_t i = 0; list && i < setup->pp; i++) {
        uint64_t const from_end = setup->pp - i;
        uint64_t const more = setup->rules->stages_even ? from_end <= rest : from_end == 1 ? rest : 0;
        list = oos_arena_format(arena, "%s%s%llu", list, i ? "," : "", (unsigned long long)(share + more));
    }
    return list;
}

/* One rank of it. */
static oos_shard shard_of(const sglang_start *setup)
{
    const sglang_rules *rules = setup->rules;
    const char *conf = setup->env ? setup->env->alloc_conf : NULL;
    uint64_t const heads = oos_architecture_says(rules->facts, setup->model->architecture, "stages");
    return (oos_shard){
        .model = setup->model,
        .tp = setup->tp,
        .pp = setup->pp,
        .dp = setup->dp,
        .ep = setup->ep,
        .layers_given = setup->stage_layers,
        .capability = setup->device.capability,
        .dtype = setup->dtype,
        .multimodal = setup->multimodal,
        .ways = {.quantization = setup->quantization,
                 .load_format = setup->load_format,
                 .expandable_segments = conf && strstr(conf, "expandable_segments:True"),
                 .torch_minor = rules->torch_minor,
                 .mxfp4_by_triton = rules->mxfp4_by_triton,
                 .mxfp4_keeps_scales = true,
                 .mxfp4_pads_values = rules->mxfp4_pads_values,
                 .mxfp4_copies_scales = rules->mxfp4_copies_scales,
                 .bnb_nests_constants = !rules->bnb_unfolds_constants,
                 .online_quantisation = rules->online_quantisation,
                 .ends_everywhere =
                     heads == HEAD_EVERYWHERE && !setup->model->tied && setup->pp > 1 ? OOS_END_HEAD : 0,
                 .head_untied = !rules->wrapper_ties_embeddings}};
}

/* Not read in SGLang: what the kernels were in the oldest releases of another engine. */
static oos_expert_kernel experts_of(const sglang_start *setup)
{
    unsigned const family = setup->device.capability / 10;
    oos_expert_kernel const blackwell = family == 12 ? OOS_EXPERTS_FLASH : OOS_EXPERTS_TRTLLM;
    oos_quant_kind const kind = oos_expert_quant(setup->model);
    if (kind == OOS_QUANT_NVFP4 && family >= 10) return blackwell;
    if (kind == OOS_QUANT_MXFP4 && family == 9) return OOS_EXPERTS_OPENAI;
    if (kind == OOS_QUANT_MXFP4 && family == 10) return OOS_EXPERTS_TRTLLM;
    return OOS_EXPERTS_CALL;
}

/* A kernel that has run before the engine looks at what is free, and the segment of its tensor. What communicators print has it in it. */
static uint64_t kernel_early(const sglang_start *setup)
{
    enum { SEGMENT_MIB = 2 };
    oos_driver const driver = oos_device_driver(&setup->device, setup->rules->torch_minor);
    if (!setup->rules->kernel_before_snapshot || oos_mul(setup->tp, setup->pp) > 1) return 0;
    return oos_add(oos_first_kernel(setup->device.capability, setup->device.sms, &driver),
                   SEGMENT_MIB * OOS_MIB);
}

/* The first full chunk: layers run one operation at a time, in graphs and without. */
static oos_forward step_of(const sglang_start *setup, uint64_t decoding, bool images)
{
    uint64_t const requests = oos_max(1, oos_min(setup->chunk_tokens, decoding));
    uint64_t const tables = oos_mul(oos_mul(requests, oos_cdiv(setup->context_length, 16)), 4);
    bool const experts = setup->model->moe.experts > 0;
    return (oos_forward){.model = setup->model,
                         .device = &setup->device,
                         .torch_minor = setup->rules->torch_minor,
                         .tp = setup->attention_tp,
                         .pp = 1,
                         .dp = setup->dp,
                         .ep = setup->ep,
                         .first = true,
                         .last = true,
                         .count = setup->model->layer_count,
                         .tokens =
                             oos_mul(setup->chunk_tokens,
                                     setup->tp / setup->attention_tp), /* experts run those of all replicas */
                         .requests = oos_min(requests, setup->chunk_tokens),
                         .slots = requests,
                         .length = setup->context_length,
                         .dtype = setup->dtype,
                         .experts = experts_of(setup),
                         .mxfp4_swizzled = true, /* quantization/mxfp4.py, _swizzle_mxfp4 */
                         .runner_bytes = oos_add(oos_mul(setup->chunk_tokens, 40), tables),
                         .sampler = {.sorts = true, .few_apart = true},
                         .media = {.runs = setup->multimodal && images, .images_most = 999},
                         .communicators = (uint64_t)(setup->tp > 1) + (setup->pp > 1) + (setup->dp > 1) +
                                          (experts && oos_mul(setup->tp, setup->dp) > 1),
                         .communicators_early = setup->rules->nccl_before_snapshot,
                         .early_more = kernel_early(setup)};
}

/* ---- sizes ---- */

/* Rotary tables stay in float32, and are made longer when the weights are there: for the longest context and a margin
 * (reserve_rope_cache_for_long_sequences). */
/* Gemma 3's tables are as long as its own limit, though its angles are scaled for eight times as much (models/gemma3_causal.py). */
static uint64_t rope_rows(const sglang_start *setup, const oos_rope *rope)
{
    const oos_model *model = setup->model;
    bool const plain =
        setup->rules && oos_architecture_says(setup->rules->facts, model->architecture, "rope_unscaled");
    return plain ? oos_min(rope->max_position, oos_max(1, model->max_position)) : rope->max_position;
}

static size_t tables_of(const sglang_start *setup, const sglang_rules *rules, oos_weights_table *ret_tables)
{
    uint64_t const rows = oos_round_up(oos_add(setup->context_length, rules->rotary_margin), ROTARY_ALIGN);
    size_t count = 0;
    for (size_t i = 0; i < setup->model->rope_count && count < OOS_WEIGHTS_TABLES; i++) {
        const oos_rope *rope = &setup->model->rope[i];
        uint64_t const row = oos_mul(rope->rotary_dim, rules->rotary_bytes);
        ret_tables[count++] = (oos_weights_table){
            oos_mul(rope_rows(setup, rope), row),
            rules->rotary_margin && rows > rope_rows(setup, rope) ? oos_mul(rows, row) : 0};
    }
    return count;
}

static void rotary_add(const sglang_start *setup, const oos_weights_table *tables, size_t count,
                       oos_weights *weights)
{
    for (size_t i = 0; i < count; i++) {
        const oos_rope *rope = &setup->model->rope[i];
        oos_dtype const dtype = rope->dtype == OOS_DTYPE_UNKNOWN ? setup->dtype : rope->dtype;
        uint64_t const counted =
            oos_mul(oos_mul(rope->max_position, rope->rotary_dim), oos_dtype_bytes(dtype));
        bool const halves = setup->rules->rotary_halves && setup->model->mla && rope->type &&
                            strstr(rope->type, "yarn") && !oos_sglang_is_compressed(setup->model);
        uint64_t const bytes = oos_add(tables[i].later_bytes ? tables[i].later_bytes : tables[i].bytes,
                                       halves ? oos_mul(2, tables[i].bytes) : 0);
        oos_weights_add_built(weights, oos_sub(bytes, counted));
        oos_weights_leave_built(weights, oos_sub(counted, bytes));
    }
}

/* Latent attention keeps both halves of its up-projection once more, each as one piece (post_load_weights: w_kc, w_vc). Beside one rank
 * of 16 heads and 12 layers: 48 MiB, as much as was measured beyond parameters and buffers. */
static void latent_add(const sglang_start *setup, oos_weights *weights)
{
    if (setup->model->quant_method || setup->quantization) return; /* then the shared sizes have them */
    for (uint64_t i = setup->first_layer; i < setup->last_layer; i++) {
        const oos_attention *a = &setup->model->attentions[setup->model->layers[i].attention];
        if (a->mixer != OOS_MIXER_MLA) continue;
        uint64_t const columns =
            oos_mul(oos_cdiv(a->heads, setup->attention_tp), oos_add(a->nope_dim, a->value_dim));
        uint64_t const bytes = oos_mul(oos_mul(columns, a->kv_lora_rank), oos_dtype_bytes(setup->dtype));
        weights->after_load_bytes += (int64_t)oos_min(bytes, INT64_MAX / 4096);
        weights->loaded_bytes = oos_add(weights->loaded_bytes, bytes);
        weights->loaded_low = oos_add(weights->loaded_low, bytes);
        weights->loaded_high = oos_add(weights->loaded_high, bytes);
    }
}

/* A head in float32, with the embedding where they are one (Falcon-H1); a head that stays apart although the config ties it (LFM2). */
static void head_widened(const sglang_start *setup, oos_weights *weights)
{
    const oos_model *model = setup->model;
    bool const wide = oos_architecture_says(setup->rules->facts, model->architecture, "head_fp32"),
               apart = oos_architecture_says(setup->rules->facts, model->architecture, "head_apart");
    if (!wide && !(apart && model->tied)) return;
    const char *part = model->tied ? "embed" : "lm_head";
    for (size_t i = 0; i < weights->part_count; i++)
        if (strcmp(weights->parts[i].module, part) == 0 && oos_dtype_bytes(setup->dtype) == 2)
            oos_weights_add_built(weights, weights->parts[i].bytes);
}

static uint64_t part_bytes(const oos_weights *weights, const char *module)
{
    for (size_t i = 0; i < weights->part_count; i++)
        if (strcmp(weights->parts[i].module, module) == 0) return weights->parts[i].bytes;
    return 0;
}

/* Replicated attention: its matrices and the embedding as on the ranks of one replica, all else as on all (layers/dp_attention.py,
 * get_attention_tp_size; enable_tp and use_attn_tp_group in the models). */
static oomsight_status replicate(oos_arena *arena, const sglang_start *setup, oos_shard shard,
                                 oos_weights *weights, oomsight_error *reterr)
{
    static const char *const parts[] = {"attn", "embed", "lm_head"};
    enum { HEAD = 2 };
    oos_weights whole;
    shard.tp = setup->attention_tp;
    OOS_TRY(oos_weights_of_stage(arena, &shard, 0, &whole, reterr));
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (i == HEAD && !setup->head_replicated) continue;
        uint64_t const more = oos_sub(part_bytes(&whole, parts[i]), part_bytes(weights, parts[i]));
        oos_weights_add_built(weights, more);
        weights->param_bytes = oos_add(weights->param_bytes, more);
    }
    int64_t const after = whole.after_load_bytes - weights->after_load_bytes;
    if (after > 0) oos_weights_add_built(weights, (uint64_t)after);
    return OOMSIGHT_OK;
}

/* Free memory before loading, after communicators. */
static oos_amount free_before(const oos_plan *plan)
{
    oos_amount const others = oos_moment_others(plan), *context = &plan->sizes.context,
                     *nccl = &plan->sizes.communicators;
    oos_limit const device = oos_limit_device(plan, 1);
    uint64_t const taken = oos_add(oos_add(others.bytes, context->bytes), nccl->bytes);
    double const more = hypot((double)(context->high - context->bytes), (double)(nccl->high - nccl->bytes));
    double const less = hypot((double)(context->bytes - context->low), (double)(nccl->bytes - nccl->low));
    uint64_t const bytes = oos_sub(device.bytes, taken);
    uint64_t const fewer =
        oos_add(oos_u64_from(more), oos_add(others.high - others.bytes, device.bytes - device.low));
    return oos_amount_guess(bytes, oos_sub(bytes, fewer),
                            oos_add(bytes, oos_add(oos_u64_from(less), device.high - device.bytes)),
                            "free before loading: the device less context and communicators");
}

/* int(token_capacity / context * 512) between 2,048 and 4,096, at most half as many as tokens, and as the pool of states has slots for
 * (resolve_max_num_reqs). */
static uint64_t requests_of(const sglang_setup *s, const sglang_start *setup, const sglang_states *states,
                            uint64_t tokens)
{
    const sglang_rules *rules = s->rules;
    uint64_t const by_context =
        oos_u64_from((double)tokens / (double)setup->context_length * (double)rules->requests_per_context);
    uint64_t const guess = oos_max(oos_min(by_context, rules->requests_most), rules->requests_least);
    oos_u64 const given = oos_sglang_requests_asked(s->request, setup->model);
    uint64_t const asked = given.known ? oos_max(1, given.value / s->request->dp) : guess;
    bool const by_tokens = !given.known || rules->tokens_bound_requests;
    uint64_t const bound = by_tokens ? tokens / 2 : rules->guess_bounds_requests ? guess : asked;
    uint64_t const most = oos_min(asked, bound);
    return states->layers ? oos_min(most, states->slots / oos_max(1, states->per_request)) : most;
}

/* Rows of the table for requests whose cache comes from another server: two for each of few (handle_pd_disaggregation). */
static uint64_t rows_arriving(const sglang_request *r)
{
    enum { FEW = 32 };
    if (!r->decode_only) return 0;
    uint64_t const each = r->requests.known ? oos_max(1, r->requests.value / r->dp) : FEW + 1;
    return oos_u64_or(r->extra_slots, each <= FEW ? 2 * each : 0);
}

/* Slots of the pool of states that are fewer than one request holds (resolve_max_num_reqs). */
static bool states_too_few(const work *w)
{
    return w->states.layers && w->states.slots && w->sglang->rules->states_refused &&
           w->states.slots < w->states.per_request;
}

static void pool_fill(work *w, double left)
{
    oos_plan *plan = w->plan;
    const sglang_request *r = w->sglang->request;
    oos_assert(sglang_of(plan)->page > 0 && sglang_of(plan)->context_length > 0);
    uint64_t const page = sglang_of(plan)->page;
    left = oos_sglang_states_take(r, w->sglang->rules, &w->drafts, &w->states, left);
    plan->kv.available_bytes = left > 0 ? oos_u64_from(left) : 0;
    double const shared = (double)plan->kv.available_bytes - (double)w->pool.fixed_bytes;
    uint64_t tokens = w->pool.cell > 0 && shared > 0 ? oos_u64_from(shared / w->pool.cell) : 0;
    if (r->tokens_most.known) tokens = oos_min(tokens, r->tokens_most.value);
    tokens = tokens / page * page;
    plan->kv.refused =
        left <= 0 || tokens == 0 || (w->states.layers && !w->states.slots) || states_too_few(w);
    plan->kv.tokens = tokens;
    plan->kv.blocks = tokens / page;
    plan->kv.max_concurrency = (double)tokens / (double)sglang_of(plan)->context_length;
    plan->kv.needed_bytes = oos_u64_from(w->pool.cell);
    plan->layout.bytes_per_token = w->pool.cell;
    plan->layout.block_tokens = page;
    plan->layout.block_bytes = plan->layout.page_bytes = oos_u64_from(w->pool.cell * (double)page);
    plan->layout.tensor_count = sglang_of(plan)->model->layer_count;
}

/* Both pools with the page that padding takes, as they are allocated. */
static uint64_t pool_bytes(const work *w)
{
    uint64_t const tokens = w->plan->kv.tokens, page = sglang_of(w->plan)->page;
    if (w->pool.paged)
        return oos_add(w->pool.fixed_bytes, oos_u64_from((double)oos_add(tokens, page) * w->pool.held));
    double const share = w->pool.full_bytes ? w->sglang->request->swa_ratio : 1;
    uint64_t const sliding = oos_u64_from((double)tokens * share) / page * page;
    uint64_t const drafted = oos_mul(oos_add(tokens, page), w->drafts.token_bytes);
    return oos_add(
        drafted, oos_add(oos_mul(oos_add(tokens, page), w->pool.full_bytes),
                         w->pool.sliding_bytes ? oos_mul(oos_add(sliding, page), w->pool.sliding_bytes) : 0));
}

/* ---- phases ---- */

static oomsight_status distributed_init(work *w, oomsight_error *reterr)
{
    if (w->outside.nccl.bytes == 0) return OOMSIGHT_OK;
    oos_moment *moment = oos_moment_open(w->arena, w->plan, OOS_PHASE_DISTRIBUTED_INIT);
    return oos_moment_close(moment, oos_limit_device(w->plan, 1), reterr);
}

static oomsight_status weight_load(work *w, oomsight_error *reterr)
{
    const oos_weights *weights = &w->plan->sizes.weights;
    oos_moment *moment = oos_moment_open(w->arena, w->plan, OOS_PHASE_WEIGHT_LOAD);
    oos_moment_hold(moment, OOS_OWNER_WEIGHTS, oos_weights_amount(weights));
    oos_moment_hold(moment, OOS_OWNER_LOADING_COPIES,
                    oos_amount_exact(weights->load_transient_bytes, OOS_SOURCE_DERIVED,
                                     "held until the weights are in their final form"));
    OOS_TRY(oos_moment_close(moment, oos_limit_device(w->plan, 1), reterr));
    if (!weights->repack_transient_bytes) return OOMSIGHT_OK;
    moment = oos_moment_open(w->arena, w->plan, OOS_PHASE_QUANT_POSTPROCESS);
    oos_moment_hold(moment, OOS_OWNER_WEIGHTS, oos_weights_amount(weights));
    oos_moment_hold(moment, OOS_OWNER_REPACK_COPY,
                    oos_amount_exact(weights->repack_transient_bytes, OOS_SOURCE_DERIVED,
                                     "second copy of the largest layer while it is repacked"));
    return oos_moment_close(moment, oos_limit_device(w->plan, 1), reterr);
}

/* The engine looks at what is free on the device, and there segments count whole. */
static oos_amount cached(const work *w)
{
    return oos_amount_exact(w->cached_bytes, OOS_SOURCE_DERIVED,
                            "unused remainders of the allocator segments that hold the weights");
}

static oos_limit static_share(const work *w)
{
    double const f = w->sglang->fraction > 0 ? w->sglang->fraction : 0;
    return (oos_limit){oos_u64_from((double)w->free.bytes * f), oos_u64_from((double)w->free.low * f),
                       oos_u64_from((double)w->free.high * f)};
}

/* Fraction of free memory, less what was loaded (_profile_available_bytes). */
static oomsight_status kv_sizing(work *w, oomsight_error *reterr)
{
    oos_plan *plan = w->plan;
    oos_limit const share = static_share(w);
    oos_assert(plan->phase_count < OOS_PHASE_COUNT);
    oos_moment *moment = &plan->phases[plan->phase_count++];
    oos_moment_init(moment, w->arena, OOS_PHASE_KV_SIZING);
    moment->refusal = true;
    oos_moment_hold(moment, OOS_OWNER_WEIGHTS, oos_weights_amount(&plan->sizes.weights));
    oos_moment_hold(moment, OOS_OWNER_ONE_REQUEST,
                    oos_amount_exact(oos_add(oos_u64_from(w->pool.cell), w->pool.fixed_bytes),
                                     OOS_SOURCE_DERIVED, "one token is enough for the engine to go on"));
    oos_moment_hold(moment, OOS_OWNER_CACHED, cached(w));
    plan->sizes.budget_bytes = share.bytes;
    plan->sizes.non_kv = oos_weights_amount(&plan->sizes.weights);
    plan->sizes.non_kv.bytes = oos_add(plan->sizes.non_kv.bytes, w->cached_bytes);
    oos_drift const drift = oos_device_drift(&sglang_of(plan)->device, sglang_of(plan)->asked->beyond);
    plan->sizes.non_kv.low = oos_sub(oos_add(plan->sizes.non_kv.low, w->cached_bytes), drift.less);
    plan->sizes.non_kv.high = oos_add(oos_add(plan->sizes.non_kv.high, w->cached_bytes), drift.more);
    double const kept = (double)w->sglang->images_mib * (double)OOS_MIB;
    pool_fill(w, (double)share.bytes - (double)plan->sizes.non_kv.bytes - kept);
    OOS_TRY(oos_moment_close(moment, share, reterr));
    moment->ok = !plan->kv.refused;
    if (moment->ok) return OOMSIGHT_OK;
    double const least =
        1 - ((double)w->free.bytes - (double)plan->sizes.non_kv.bytes) / (double)oos_max(1, w->free.bytes);
    moment->message =
        w->states.layers && !w->states.slots
            ? "Not enough GPU memory for hybrid (mamba/linear-attention) state cache."
        : states_too_few(w)
            ? oos_arena_format(w->arena,
                               "Hybrid (mamba/linear-attention) state cache is too small to serve any "
                               "requests. max_mamba_cache_size=%llu, mamba_ratio=%llu, resulting "
                               "max_num_reqs=0.",
                               (unsigned long long)w->states.slots, (unsigned long long)w->states.per_request)
        : plan->sizes.non_kv.bytes >= share.bytes
            ? oos_arena_format(
                  w->arena,
                  "Loaded weights leave no GPU memory for the KV cache under --mem-fraction-static=%g. "
                  "Raise --mem-fraction-static above %.3f",
                  w->sglang->fraction, ceil(least * 1000) / 1000)
            : oos_arena_format(
                  w->arena,
                  "Not enough memory. Please try to increase --mem-fraction-static. Current value: "
                  "mem_fraction_static=%g",
                  w->sglang->fraction);
    plan->kv.refusal = moment->message;
    return moment->message ? OOMSIGHT_OK : oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a message");
}

/* Were the weights more, the pool would be less by as much. */
static oos_amount settled(oos_amount amount)
{
    amount.settled = true;
    return amount;
}

static void hold_static(oos_moment *moment, const work *w)
{
    oos_moment_hold(moment, OOS_OWNER_WEIGHTS, settled(oos_weights_amount(&w->plan->sizes.weights)));
    oos_moment_hold(moment, OOS_OWNER_CACHED, settled(cached(w)));
    oos_moment_hold(
        moment, OOS_OWNER_KV_CACHE,
        oos_amount_exact(oos_add(pool_bytes(w), w->states.bytes), OOS_SOURCE_DERIVED,
                         w->states.layers
                             ? "tokens x bytes of a token, and slots of recurrent states, allocated once"
                             : "tokens x bytes of a token, allocated once"));
    oos_moment_hold(
        moment, OOS_OWNER_BATCH_BUFFERS,
        oos_amount_exact(oos_add(w->table_bytes, w->attention_bytes), OOS_SOURCE_DERIVED,
                         "table of requests x longest context, 4 bytes each, and workspaces of attention, "
                         "outside the static share"));
}

/* What is free before loading is divided by the fraction: only the rest of a larger device is room. */
static oos_limit rest(const work *w)
{
    double const f = w->sglang->fraction;
    return oos_limit_device(w->plan, f > 0 && f < 1 ? 1 - f : 1);
}

static oomsight_status kv_alloc(work *w, oomsight_error *reterr)
{
    oos_moment *moment = oos_moment_open(w->arena, w->plan, OOS_PHASE_KV_ALLOC);
    hold_static(moment, w);
    moment->tried_bytes = w->table_bytes;
    return oos_moment_close(moment, rest(w), reterr);
}

/* Prefill that the command has captured, unless layers that mix no tokens stop it, which the engine sees when it captures. */
static bool captures_prefill(const work *w)
{
    const sglang_rules *rules = w->sglang->rules;
    const sglang_start *setup = sglang_of(w->plan);
    const oos_model *model = setup->model;
    bool gaps = false, experts = rules->expert_gaps_captured && setup->device.capability == 120;
    for (uint64_t i = 0; i < model->layer_count; i++) {
        const oos_layer *layer = &model->layers[i];
        if (model->attentions[layer->attention].mixer != OOS_MIXER_NONE) continue;
        gaps = true;
        experts = experts && layer->moe;
    }
    return w->sglang->prefill_graphs && !(rules->gaps_stop_prefill && gaps && !experts);
}

/* The pool of captured prefill in MiB: the engine's allowance for its sizes, or what its largest step takes: more than at
 * its worst moment, most where tensors of a layer lie side by side. */
static double prefill_pool(const work *w)
{
    const sglang_setup *s = w->sglang;
    double const step = (double)w->captured_step.bytes / (double)OOS_MIB,
                 sizes = (double)s->prefill_graphs * s->rules->reserve_prefill_graph_mib,
                 all = sglang_of(w->plan)->model->mla && !w->pool.paged ? s->rules->reserve_latent_graphs_mib
                                                                        : 0;
    if (!captures_prefill(w)) return 0;
    if (all > 0) return fmax(all, step);
    double const whole = (double)VALUE(in_one_piece), beside = (double)VALUE(side_by_side);
    return fmax(sizes, step * (s->rules->prefill_step_first ? whole : beside) / 100);
}

/* ... beside that of decode, or the larger of both where they share one; what attention keeps for captured batches, those of a drafter apart. */
static void graphs_of(const work *w, oos_graphs *graphs)
{
    const sglang_setup *s = w->sglang;
    const sglang_start *setup = sglang_of(w->plan);
    double const decode = (double)(s->decode_graphs ? s->decode_batch : 0) * s->rules->reserve_batch_mib,
                 prefill = prefill_pool(w),
                 mib = s->rules->graphs_share_pool ? fmax(decode, prefill) : decode + prefill;
    uint64_t const drafted = w->drafts.method ? 2 : 1,
                   rows = s->decode_graphs ? oos_mul(s->decode_batch, oos_max(1, w->drafts.tokens)) : 0,
                   length = oos_add(setup->context_length, oos_add(EXTRA_CONTEXT, w->drafts.tokens)),
                   kept = oos_mul(
                       drafted, oos_sglang_captured_bytes(s->request, setup, s->decode_graphs, rows, length)),
                   bytes = oos_u64_from(mib * (double)OOS_MIB);
    graphs->taken =
        bytes ? oos_amount_guess(
                    oos_add(bytes, kept), oos_add(oos_mul(bytes, VALUE(graphs_low)) / 100, kept),
                    oos_add(oos_mul(bytes, VALUE(graphs_high)) / 100, kept),
                    "the engine's own allowance for its graphs, indices of captured batches, and the "
                    "pool of captured prefill")
              : oos_amount_exact(0, OOS_SOURCE_DERIVED, NULL);
}

static oomsight_status capture(work *w, oomsight_error *reterr)
{
    if (!w->sglang->decode_graphs && !captures_prefill(w)) return OOMSIGHT_OK;
    oos_moment *moment = oos_moment_open(w->arena, w->plan, OOS_PHASE_CUDAGRAPH_CAPTURE);
    hold_static(moment, w);
    oos_moment_hold(moment, OOS_OWNER_CUDA_GRAPHS, w->graphs.taken);
    oos_moment_hold(moment, OOS_OWNER_ACTIVATIONS,
                    w->captured_step); /* run once without, before it is captured */
    return oos_moment_close(moment, rest(w), reterr);
}

/* Requests that decode at once: as many as the command allows, else the largest batch that is captured. A limit above all usual batches
 * is seldom reached. */
static uint64_t decoding(const work *w)
{
    uint64_t const asked = w->sglang->request->requests.known
                               ? sglang_of(w->plan)->max_running_requests
                               : oos_min(sglang_of(w->plan)->max_running_requests, w->sglang->decode_batch);
    return oos_max(1, oos_min(asked, DECODING_MOST));
}

static uint64_t logit_bytes(const work *w, uint64_t rows, uint64_t each)
{
    const sglang_start *setup = sglang_of(w->plan);
    return oos_mul(oos_mul(rows, setup->model->vocab), oos_add(each, oos_dtype_bytes(setup->dtype)));
}

static oos_amount logits(const work *w)
{
    uint64_t const rows = oos_mul(decoding(w), oos_max(1, w->drafts.tokens));
    return oos_amount_guess(logit_bytes(w, rows, LOGIT_USUAL), logit_bytes(w, rows, LOGIT_LEAST),
                            logit_bytes(w, rows, LOGIT_MOST),
                            "logits and sampler of the requests that decode");
}

/* What a step takes beyond the pool of captured ones. */
static oos_amount beyond(oos_amount step, oos_amount captured)
{
    step.bytes = oos_sub(step.bytes, captured.bytes);
    step.low = oos_sub(step.low, captured.low);
    step.high = oos_max(step.bytes, oos_sub(step.high, captured.high));
    step.low = oos_min(step.low, step.bytes);
    return step;
}

/* The first full chunk beside the requests that decode: nothing has tried it before. */
static oomsight_status prefill(work *w, oomsight_error *reterr)
{
    oos_moment *moment = oos_moment_open(w->arena, w->plan, OOS_PHASE_RUNTIME_PREFILL);
    hold_static(moment, w);
    oos_moment_hold(moment, OOS_OWNER_CUDA_GRAPHS, w->graphs.taken);
    oos_moment_hold(moment, OOS_OWNER_KERNELS, w->outside.profile_growth);
    oos_moment_hold(moment, OOS_OWNER_ENCODER_OUTPUTS,
                    oos_amount_exact(oos_mul(w->sglang->images_mib, OOS_MIB), OOS_SOURCE_DERIVED,
                                     "embeddings of images that are kept, features on their way"));
    /* the encoder is done when the layers begin */
    bool const encodes = w->activation.encoder.bytes > w->activation.forward.bytes;
    oos_amount const forward = w->sglang->request->decode_only
                                   ? oos_amount_exact(0, OOS_SOURCE_DERIVED, "a server of decode")
                                   : beyond(w->activation.forward, w->captured_step);
    oos_moment_hold(moment, encodes ? OOS_OWNER_ENCODER : OOS_OWNER_ACTIVATIONS,
                    encodes ? w->activation.encoder : forward);
    oos_moment_hold(moment, OOS_OWNER_SAMPLER, logits(w));
    oos_moment_hold(moment, OOS_OWNER_GROWTH, w->outside.runtime_growth);
    return oos_moment_close(moment, rest(w), reterr);
}

/* ---- the answer ---- */

static const oos_moment *moment_of(const oos_plan *plan, oos_phase phase)
{
    for (size_t i = 0; i < plan->phase_count; i++)
        if (plan->phases[i].phase == phase) return &plan->phases[i];
    return NULL;
}

/* What fills the device: the weights alone, or with what is in use before them. */
static const char *explain_load(const work *w, const oos_moment *moment, double needs, double of)
{
    uint64_t const loaded = w->plan->sizes.weights.loaded_bytes;
    if (loaded >= moment->limit_bytes)
        return oos_arena_format(w->arena, "Weights need %.2f GiB per GPU; the GPU has %.2f GiB.",
                                (double)loaded / 0x1p30, of);
    if (moment->phase == OOS_PHASE_QUANT_POSTPROCESS)
        return oos_arena_format(
            w->arena, "Weights and their repacked copies need %.2f GiB per GPU; the GPU has %.2f GiB.", needs,
            of);
    return oos_arena_format(w->arena,
                            "Weights need %.2f GiB per GPU, and %.2f GiB are in use before they are loaded; "
                            "the GPU has %.2f GiB.",
                            (double)loaded / 0x1p30, needs - (double)loaded / 0x1p30, of);
}

static void explain(work *w)
{
    oos_plan *plan = w->plan;
    const oos_moment *moment = moment_of(plan, plan->answer.phase);
    if (!moment) return;
    double const needs = (double)moment->peak_bytes / 0x1p30, of = (double)moment->limit_bytes / 0x1p30;
    if (plan->answer.phase == OOS_PHASE_KV_SIZING) {
        plan->answer.cause = OOS_CAUSE_GMU_LOW;
        plan->answer.why =
            states_too_few(w)
                ? oos_arena_format(
                      w->arena, "The pool of recurrent states has %llu slots, and one request holds %llu.",
                      (unsigned long long)w->states.slots, (unsigned long long)w->states.per_request)
                : oos_arena_format(
                      w->arena,
                      "Weights take %.2f GiB, and the static share of what is free before loading is "
                      "%.2f GiB: nothing is left for the pool.",
                      (double)plan->sizes.non_kv.bytes / 0x1p30, of);
    } else if (plan->answer.phase <= OOS_PHASE_QUANT_POSTPROCESS) {
        plan->answer.cause = OOS_CAUSE_WEIGHTS;
        plan->answer.why = explain_load(w, moment, needs, of);
    } else {
        plan->answer.cause =
            plan->answer.phase == OOS_PHASE_RUNTIME_PREFILL ? OOS_CAUSE_ACTIVATION : OOS_CAUSE_GMU_HIGH;
        plan->answer.why = oos_arena_format(
            w->arena,
            "SGLang sizes its KV pool without measuring what else it needs: together %.2f GiB, and the GPU "
            "has %.2f GiB.",
            needs, of);
    }
}

/* A mechanism that was not read makes every figure after the weights a guess. */
static void admit(work *w, const char *unread)
{
    oos_plan *plan = w->plan;
    bool const before_pool =
        plan->answer.verdict == OOMSIGHT_VERDICT_FAILS && plan->answer.phase < OOS_PHASE_KV_SIZING;
    if (!unread || before_pool) return;
    plan->answer.verdict = OOMSIGHT_VERDICT_UNKNOWN;
    plan->answer.phase = OOS_PHASE_COUNT;
    plan->answer.phase_probability = 0;
    plan->answer.probability = OOS_PROBABILITY_NONE;
    plan->answer.cause = OOS_CAUSE_UNKNOWN;
    plan->answer.tried_bytes = (oos_u64){0};
    plan->answer.why = oos_arena_format(w->arena, "Cannot determine: %s.", unread);
    plan->kv = (oos_kv_fill){0};
    while (plan->phase_count && plan->phases[plan->phase_count - 1].phase >= OOS_PHASE_KV_SIZING)
        plan->phase_count--;
}

/* Another release has it: Transformers' own class would run, or the start would end. */
static bool is_elsewhere(const work *w)
{
    const sglang_rules *rules = sglang_of(w->plan)->rules;
    oos_version other;
    oos_architecture_known const known =
        oos_architecture_known_at(rules ? rules->facts : NULL, sglang_of(w->plan)->model->architecture,
                                  rules ? rules->version : 0, &other);
    return known == OOS_ARCHITECTURE_LATER || known == OOS_ARCHITECTURE_GONE;
}

static const char *unread_of(const work *w)
{
    bool kv;
    const oos_model *model = sglang_of(w->plan)->model;
    (void)kv_is_fp8(w->sglang->request, model, sglang_of(w->plan)->device.capability, &kv);
    if (is_elsewhere(w)) return "this release of SGLang has no class for this architecture";
    if (w->sglang->request->unread) return w->sglang->request->unread;
    if (w->pool.unread) return w->pool.unread;
    const sglang_rules *rules = w->sglang->rules;
    if (w->sglang->request->replicated && model->moe.experts == 0)
        return "attention that is replicated between ranks is modelled for SGLang's MoE models "
               "alone";
    if (w->states.layers && !rules->states_read)
        return "recurrent states of this release are not modelled for SGLang";
    if (w->drafts.present && !rules->drafts_read)
        return "draft models of this release are not modelled for SGLang";
    if (w->states.layers && (w->sglang->request->prefill_only || w->sglang->request->decode_only))
        return "recurrent states between servers of prefill and of decode are not modelled for SGLang";
    if (w->states.unread) return w->states.unread;
    const char *adapters = oos_sglang_adapters_unread(w->sglang->request, model);
    if (adapters) return adapters;
    if (w->sglang->request->pp > 1) {
        if (!oos_architecture_says(rules->facts, model->architecture, "stages"))
            return "stages of a pipeline are not modelled for this model and SGLang";
        if (w->states.layers || w->drafts.present || w->sglang->request->replicated)
            return "stages of a pipeline with recurrent states, drafts or replicated attention are not "
                   "modelled for SGLang";
    }
    if (w->drafts.unread) return w->drafts.unread;
    if (kv) return "this --kv-cache-dtype is not modelled for SGLang";
    const char *asked = sglang_of(w->plan)->quantization;
    if (!w->built && asked && model->quant_method && strcmp(asked, model->quant_method) != 0)
        return "--quantization is another than the checkpoint's own, and which pairs SGLang takes is not "
               "modelled";
    if (w->built) return NULL;
    if (model->common || !model->known) return "this architecture is not known here";
    if (model->quant_unknown && w->plan->sizes.weights.source == OOS_SOURCE_ESTIMATED)
        return "this quantisation is not known here";
    return NULL;
}

/* All images of a step are encoded together (managers/mm_schedule.py), and no start tries one: for how many of the largest size there is
 * room. NULL: none come, or the start fails. */
static const char *untried(const work *w)
{
    const oos_moment *moment = moment_of(w->plan, OOS_PHASE_RUNTIME_PREFILL);
    uint64_t const one = w->activation.encoder.bytes, layers = w->activation.forward.bytes;
    if (moment && moment->ok && w->sglang->request->replicated)
        return "No start with replicated attention was measured: it is planned as the source has it.";
    if (!moment || !moment->ok || !w->sglang->images) return NULL;
    if (!one) return "SGLang tries no image when it starts, and what its encoder takes is not known here.";
    uint64_t const beside = oos_sub(moment->peak_bytes, oos_max(one, layers));
    uint64_t const most = oos_sub(moment->limit_bytes, beside) / one;
    return oos_arena_format(w->arena,
                            "SGLang tries no image when it starts: encoding one of the largest size takes "
                            "%.2f GiB, and there is room for %llu at once.",
                            (double)one / 0x1p30, (unsigned long long)oos_max(1, most));
}

/* The settings under the names that reports have for them. */
static oomsight_status settings_tell(work *w, oomsight_error *reterr)
{
    oos_plan *plan = w->plan;
    const sglang_start *setup = sglang_of(plan);
    oos_setting const list[] = {
        oos_setting_text("architecture", setup->model->architecture),
        oos_setting_text("dtype", oos_dtype_word(setup->dtype)),
        oos_setting_text("kv_cache_dtype", setup->kv_dtype_word),
        oos_setting_called("tp_size", oos_setting_whole("tensor_parallel_size", setup->tp)),
        oos_setting_called("pp_size", oos_setting_whole("pipeline_parallel_size", setup->pp)),
        oos_setting_called("dp_size", oos_setting_whole("data_parallel_size", setup->dp)),
        oos_setting_called("context_length", oos_setting_whole("max_model_len", setup->context_length)),
        oos_setting_called("max_running_requests",
                           oos_setting_whole("max_num_seqs", setup->max_running_requests)),
        oos_setting_called("chunked_prefill_size",
                           oos_setting_whole("max_num_batched_tokens", setup->chunk_tokens)),
        oos_setting_called("mem_fraction_static",
                           oos_setting_real("gpu_memory_utilization", setup->static_fraction)),
        oos_setting_called("disable_cuda_graph", oos_setting_yes("enforce_eager", setup->eager)),
        oos_setting_yes("v2_model_runner", 0),
        oos_setting_called("cuda_graph_max_bs",
                           oos_setting_whole("max_cudagraph_capture_size", setup->capture_top)),
        oos_setting_called("sizes of CUDA graphs",
                           oos_setting_whole("cudagraph_capture_sizes", setup->capture_count)),
    };
    plan->told.settings = oos_arena_keep(w->arena, list, sizeof list);
    plan->told.setting_count = sizeof list / sizeof *list;
    plan->serving.length = setup->context_length;
    plan->serving.requests = setup->max_running_requests;
    plan->serving.step_tokens = setup->chunk_tokens;
    plan->doubtful = (oos_doubtful){
        .torch_minor = setup->rules->torch_minor,
        .share_flag = "--mem-fraction-static",
        .share = setup->static_fraction,
        .beside_bytes = oos_add(w->graphs.taken.high, w->outside.runtime_growth.high),
        .untried = untried(w),
    };
    if (!plan->told.settings) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the setup");
    return oos_parts_tell(w->arena, &w->activation, &w->outside, &w->graphs, plan, reterr);
}

/* What its releases are compared by. */
static oomsight_status compared_tell(work *w, oomsight_error *reterr)
{
    oos_plan *plan = w->plan;
    const sglang_start *setup = sglang_of(plan);
    oos_setting const list[] = {
        oos_setting_real("mem_fraction_static", setup->static_fraction),
        oos_setting_whole("max_running_requests", setup->max_running_requests),
        oos_setting_whole("chunked_prefill_size", setup->chunk_tokens),
        oos_setting_text("attention backend", plan->serving.attention),
        oos_setting_sizes("graph sizes", setup->eager ? 0 : setup->capture_count, setup->capture_top),
        oos_setting_gib("budget GiB", plan->sizes.budget_bytes),
        oos_setting_gib("weights GiB", plan->sizes.weights.loaded_bytes),
        oos_setting_gib("activation peak GiB", w->activation.peak.bytes),
    };
    plan->told.compared = oos_arena_keep(w->arena, list, sizeof list);
    plan->told.compared_count = sizeof list / sizeof *list;
    return plan->told.compared ? OOMSIGHT_OK : oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the setup");
}

static oomsight_status own_settings(work *w, oomsight_error *reterr)
{
    const sglang_setup *s = w->sglang;
    oos_own_setting const list[OWN_SETTINGS] = {
        {"device_mib", (double)s->device_mib},
        {"chunked_prefill_size", s->request->chunk_negative ? -1 : (double)s->chunk},
        {"cuda_graph_max_bs_decode", (double)s->decode_batch},
        {"cuda_graphs_decode", (double)s->decode_graphs},
        {"cuda_graphs_prefill", (double)s->prefill_graphs},
        {"reserve_mib", s->reserve_mib},
        {"mem_fraction_static", s->fraction},
        {"max_total_num_tokens", (double)w->plan->kv.tokens},
        {"max_running_requests", (double)sglang_of(w->plan)->max_running_requests},
        {w->pool.paged ? "compress_state_bytes" : "max_mamba_cache_size",
         (double)(w->pool.paged ? w->pool.fixed_bytes : w->states.slots)},
        {"mamba_cache_bytes", (double)w->states.bytes},
    };

    enum {
        RESOLVED = 7,
        POOLS = 9
    }; /* the first so many are known before the pools are, and without states */
    w->plan->told.own = oos_arena_keep(w->arena, list, sizeof list);
    if (!w->plan->told.own) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the setup");
    bool const unknown = w->plan->answer.verdict == OOMSIGHT_VERDICT_UNKNOWN;
    w->plan->told.own_count = w->states.layers ? OWN_SETTINGS : POOLS + (w->pool.paged > 0);
    if (unknown) w->plan->told.own_count = RESOLVED;
    return OOMSIGHT_OK;
}

/* Bytes on each rank of the hierarchical cache in host memory (mem_cache/pool_host/base.py); 0: none, or as much as there is. */
static double host_pool(const work *w)
{
    enum { RATIO = 2 };
    const sglang_request *r = w->sglang->request;
    if (!r->hierarchical || !w->plan->kv.tokens) return 0;
    if (r->host_gb.known && r->host_gb.value > 0) return r->host_gb.value * 1e9;
    if (!r->host_ratio.known && w->sglang->rules->host_pool_fits) return 0;
    return oos_f64_or(r->host_ratio, RATIO) * (double)w->plan->kv.tokens * w->plan->layout.bytes_per_token;
}

/* NULL: there is none, or no memory. The engine leaves so much of the host free. */
static const char *host_told(work *w)
{
    enum { KEPT_GIB = 10 };
    double const each = host_pool(w) / 0x1p30,
                 all = each * (double)(sglang_of(w->plan)->tp * sglang_of(w->plan)->pp),
                 host = (double)w->plan->device.host_bytes / 0x1p30;
    if (!(each > 0)) return NULL;
    w->plan->host_short = host > 0 && all + KEPT_GIB > host;
    return oos_arena_format(
        w->arena,
        w->plan->host_short
            ? "the hierarchical cache takes %.1f GiB of host memory on each rank, %.1f in all, with %d "
              "more kept free: \"Not enough host memory available\""
            : "the hierarchical cache takes %.1f GiB of host memory on each rank, %.1f in all, with %d "
              "more kept free",
        each, all, KEPT_GIB);
}

/* What no other figure says: the engine's guess beside what is counted. */
static oomsight_status notes_put(work *w, sglang_start *setup, oomsight_error *reterr)
{
    const oos_moment *serving = moment_of(w->plan, OOS_PHASE_RUNTIME_PREFILL);
    const char **notes = OOS_NEW_ARRAY(w->arena, const char *, 4);
    if (!notes) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the notes");
    if (serving && serving->ok && w->plan->answer.verdict != OOMSIGHT_VERDICT_UNKNOWN)
        notes[w->plan->told.resolved_count++] = oos_arena_format(
            w->arena,
            decoding(w) == 1 ? "%.2f GiB of the GPU stay free at peak load (%.2f to %.2f), with "
                               "%llu request decoding; every further one takes %.1f MiB"
                             : "%.2f GiB of the GPU stay free at peak load (%.2f to %.2f), with "
                               "%llu requests decoding; every further one takes %.1f MiB",
            (double)oos_sub(serving->limit_bytes, serving->peak_bytes) / 0x1p30,
            (double)oos_sub(serving->limit_low, serving->peak_high) / 0x1p30,
            (double)oos_sub(serving->limit_high, serving->peak_low) / 0x1p30, (unsigned long long)decoding(w),
            (double)logit_bytes(w, 1, LOGIT_USUAL) / 0x1p20);
    if (w->plan->kv.tokens && w->plan->kv.tokens < setup->context_length)
        notes[w->plan->told.resolved_count++] = oos_arena_format(
            w->arena,
            "one request of %llu tokens does not fit the pool of %llu: longer requests "
            "are turned away",
            (unsigned long long)setup->context_length, (unsigned long long)w->plan->kv.tokens);
    const char *host = host_told(w);
    if (host) notes[w->plan->told.resolved_count++] = host;
    if (w->sglang->request->release_unread)
        notes[w->plan->told.resolved_count++] =
            "this release was not read: the rules of the one before it are used";
    w->plan->told.resolved = notes;
    return OOMSIGHT_OK;
}

static oos_amount communicators_of(const sglang_start *setup)
{
    oos_constant_where const where = {
        .ranks = oos_mul(setup->tp, setup->pp),
        .nvlink = oos_device_driver(&setup->device, setup->rules->torch_minor).nvlink};
    oos_constant const seen = oos_constant_at(&oos_sglang_constants, SGLANG_communicators, &where);
    oos_assert(seen.low <= seen.value && seen.value <= seen.high);
    return oos_amount_guess(seen.value, seen.low, seen.high, "NCCL communicators and all-reduce buffers");
}

/* What layers that draft add to the bytes of a token: as many as the served layers have on average; each has keys of an indexer. */
static double drafted_cell(const work *w)
{
    if (!w->drafts.counted || !w->pool.layers) return 0;
    double const keys = sglang_of(w->plan)->rules->sparse_index ? (double)w->pool.index_bytes : 0;
    uint64_t indexers = 0;
    const oos_model *model = sglang_of(w->plan)->model;
    bool const all = sglang_of(w->plan)->rules->sparse_index < SPARSE_WITH_INDEXER;
    for (uint64_t i = 0; keys > 0 && i < model->layer_count; i++)
        indexers += all || model->attentions[model->layers[i].attention].indexer_dim > 0;
    double const rows = w->pool.cell - keys * (double)indexers, layers = (double)w->drafts.layers;
    return floor(rows * layers / (double)w->pool.layers) + keys * layers;
}

/* The largest step that is captured: mixers with states run between the pieces. */
static oos_amount captured_step(const work *w, const oos_forward *step)
{
    const sglang_setup *s = w->sglang;
    oos_activation activation;
    oos_forward captured = *step;
    if (!captures_prefill(w) || !s->rules->graphs_share_pool || w->states.layers) return (oos_amount){0};
    captured.tokens = oos_min(step->tokens, s->prefill_tokens);
    oos_forward_activation(&captured, &activation);
    return activation.forward;
}

static oomsight_status sizes_fill(work *w, sglang_start *setup, oomsight_error *reterr)
{
    oos_plan *plan = w->plan;
    w->drafts = oos_sglang_drafts_of(w->sglang->request, setup);
    oos_shard shard = shard_of(setup);
    shard.ways.draft_method = w->drafts.method;
    shard.ways.draft_whole = true;
    if (w->drafts.method && !w->drafts.own) shard.draft = setup->asked->draft;
    if (w->drafts.own) shard.mtp_layers = w->drafts.layers;
    plan->sizes.stage = setup->stage;
    OOS_TRY(oos_weights_of_stage(w->arena, &shard, setup->stage, &plan->sizes.weights, reterr));
    if (setup->attention_tp < setup->tp)
        OOS_TRY(replicate(w->arena, setup, shard, &plan->sizes.weights, reterr));
    oos_weights_table tables[OOS_WEIGHTS_TABLES];
    size_t const table_count = tables_of(setup, w->sglang->rules, tables);
    (void)oos_weights_cached(&shard, setup->stage, tables, table_count, &w->cached_bytes);
    rotary_add(setup, tables, table_count, &plan->sizes.weights);
    latent_add(setup, &plan->sizes.weights);
    if (oos_sglang_is_compressed(setup->model)) {
        uint64_t const wide =
            oos_sglang_wide_scales(w->sglang->request, setup, part_bytes(&plan->sizes.weights, "experts"));
        plan->sizes.weights.param_bytes = oos_add(plan->sizes.weights.param_bytes, wide);
        oos_weights_add_built(&plan->sizes.weights, oos_add(wide, oos_sglang_compressed_tables(setup)));
    }
    head_widened(setup, &plan->sizes.weights);
    uint64_t const adapters = oos_sglang_adapter_bytes(w->sglang->request, setup);
    plan->sizes.weights.lora_bytes = adapters;
    oos_weights_add_built(&plan->sizes.weights, adapters);
    oos_forward const step = step_of(setup, w->sglang->decode_batch, w->sglang->images);
    oos_forward_activation(&step, &w->activation);
    oos_forward ranks = step;
    ranks.pp = setup->pp;
    oos_forward_outside(&ranks, &w->outside);
    if (w->outside.nccl.bytes) w->outside.nccl = communicators_of(setup); /* its groups of ranks are others */
    w->outside.profile_growth =
        beyond(w->outside.profile_growth,
               oos_amount_exact(step.early_more, OOS_SOURCE_DERIVED, "in use before the weights"));
    plan->sizes.context = w->outside.context;
    plan->sizes.communicators = w->outside.nccl;
    w->pool = oos_sglang_pool_of(w->sglang->request, setup);
    w->states = oos_sglang_states_of(w->sglang->request, setup);
    w->captured_step = captured_step(w, &step);
    graphs_of(w, &w->graphs);
    w->pool.cell += drafted_cell(w);
    w->built = oos_sglang_take_built(w->sglang->request->exact, w->drafts.method != NULL,
                                     &plan->sizes.weights, &w->pool);
    w->param_bytes[setup->stage] = plan->sizes.weights.param_bytes;
    w->free = free_before(plan);
    return OOMSIGHT_OK;
}

/* Tokens that the pool of a stage would hold. */
static double stage_tokens(const work *w)
{
    const oos_weights *weights = &w->plan->sizes.weights;
    double const left = (double)static_share(w).bytes - (double)weights->loaded_bytes -
                        (double)w->cached_bytes - (double)w->pool.fixed_bytes;
    return w->pool.cell > 0 ? left / w->pool.cell : left;
}

/* All stages have the tokens of the one with the fewest, and its device is planned. */
static oomsight_status stage_find(work *w, sglang_start *setup, oomsight_error *reterr)
{
    uint64_t worst = 0;
    double fewest = 0;
    if (setup->pp > 1 && !(setup->stage_layers = stages_of(w->arena, setup)))
        return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the stages");
    oos_shard const shard = shard_of(setup);
    w->param_bytes = OOS_NEW_ARRAY(w->arena, uint64_t, setup->pp);
    if (!w->param_bytes) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the setup");
    w->plan->sizes.stage_param_bytes = w->param_bytes;
    for (uint64_t i = 0; i <= setup->pp; i++) {
        setup->stage = i < setup->pp ? i : worst;
        setup->last_layer = oos_shard_layers(&shard, setup->stage, &setup->first_layer);
        setup->last_layer += setup->first_layer;
        OOS_TRY(sizes_fill(w, setup, reterr));
        double const tokens = stage_tokens(w);
        if (i < setup->pp && (i == 0 || tokens < fewest)) {
            fewest = tokens;
            worst = i;
        }
        if (setup->pp == 1) break;
    }
    return OOMSIGHT_OK;
}

static oomsight_status phases(work *w, sglang_start *setup, oomsight_error *reterr)
{
    OOS_TRY(distributed_init(w, reterr));
    OOS_TRY(weight_load(w, reterr));
    OOS_TRY(kv_sizing(w, reterr));
    setup->max_running_requests = requests_of(w->sglang, setup, &w->states, w->plan->kv.tokens);
    /* one row more than requests, for padding (ReqToTokenPool) */
    w->table_bytes =
        oos_mul(oos_mul(oos_add(setup->max_running_requests, oos_add(1, rows_arriving(w->sglang->request))),
                        oos_add(setup->context_length, oos_add(EXTRA_CONTEXT, w->drafts.tokens))),
                4);
    w->attention_bytes = oos_sglang_attention_bytes(w->sglang->request, setup);
    if (w->plan->kv.refused && !w->plan->phases[w->plan->phase_count - 1].tight) return OOMSIGHT_OK;
    OOS_TRY(kv_alloc(w, reterr));
    OOS_TRY(capture(w, reterr));
    return prefill(w, reterr);
}

oomsight_status oos_sglang_plan(oos_arena *arena, const oos_start *start, const sglang_rules *rules,
                                const sglang_request *request, oos_plan *ret_plan, oomsight_error *reterr)
{
    sglang_setup *sglang = OOS_NEW(arena, sglang_setup);
    sglang_start *setup = OOS_NEW(arena, sglang_start);
    if (!sglang || !setup) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the setup");
    oos_sglang_resolve(request, rules, start, sglang);
    if (request->exact) oos_sglang_take_resolved(request->exact, sglang);
    setup_fill(start, request, rules, sglang, setup);
    *ret_plan = (oos_plan){.engine = oos_engine_sglang.words,
                           .answer.phase = OOS_PHASE_COUNT,
                           .detail = setup,
                           .model = setup->model,
                           .device = setup->device,
                           .serving.tp = setup->tp,
                           .serving.pp = setup->pp,
                           .serving.dp = setup->dp,
                           .serving.attention = oos_sglang_attention(request, setup)};
    work w = {.arena = arena, .plan = ret_plan, .sglang = sglang};
    if (!request->exact)
        OOS_TRY(oos_sglang_refuse(arena, start, request, sglang, &ret_plan->refusal, reterr));
    OOS_TRY(stage_find(&w, setup, reterr));
    OOS_TRY(phases(&w, setup, reterr));
    oos_plan_judge(ret_plan);
    explain(&w);
    admit(&w, unread_of(&w));
    OOS_TRY(own_settings(&w, reterr));
    OOS_TRY(settings_tell(&w, reterr));
    OOS_TRY(compared_tell(&w, reterr));
    OOS_TRY(notes_put(&w, setup, reterr));
    return ret_plan->refusal.sentence ? oos_plan_refuse(arena, ret_plan, reterr) : OOMSIGHT_OK;
}
