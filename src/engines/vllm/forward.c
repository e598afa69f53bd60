/* What a start of vLLM makes of a forward step, by release: the profiling batch, its kernels, its sampler, its images, its compiler. */
#include "engines/vllm/vllm.h"

#define VALUE(name) vllm_value(setup, VLLM_##name)
#define FITTED(name) vllm_constant_of(setup, VLLM_##name)

static bool quantised_as(const oos_setup *setup, const char *method)
{
    const char *given = setup->serve->quantization, *own = setup->model->quant_method;
    return (given && strcmp(given, method) == 0) || (own && strcmp(own, method) == 0);
}

/* The older engine runs where the newer one does not: on request, on devices before 8.0, for an fp8 cache that no
 * FlashAttention 3 reads, and in the first releases for what the newer one had yet to learn
 * (EngineArgs._is_v1_supported_oracle). */
bool oos_activation_first_engine(const oos_setup *setup)
{
    const vllm_rules *rules = setup->rules;
    if (!rules->old_engine) return false;
    if (setup->env->use_v1.known) return !setup->env->use_v1.value;
    unsigned const capability = setup->device.capability;
    if (rules->old_engine_below_80 && capability > 0 && capability < 80) return true;
    if (rules->old_engine_for_fp8 && setup->kv_dtype == OOS_KV_FP8 && capability != 90) return true;
    if (rules->old_engine_for_gguf && quantised_as(setup, "gguf")) return true;
    if (!rules->old_engine_for_adapters) return false;
    return setup->loras > 0 || quantised_as(setup, "bitsandbytes") || setup->pp > 1 ||
           oos_f64_or(setup->serve->cpu_offload_gb, 0) > 0;
}

/* It compiles nothing, takes 256 requests, and without chunked prefill a batch is one prompt of the longest length. */
static void first_engine_batch(const oos_setup *setup, uint64_t *tokens, uint64_t *requests)
{
    const oos_serve *serve = setup->serve;
    bool const chunked = oos_flag_or(serve->enable_chunked_prefill, setup->max_model_len > 32 * OOS_KIB);
    if (!serve->max_num_batched_tokens.known && !chunked) *tokens = oos_max(setup->max_model_len, 2048);
    if (!serve->max_num_seqs.known) *requests = 256;
}

/* A model that takes images is compiled from its input embeddings (gpu_model_runner.py _dummy_run, supports_mm_inputs): the embedding is
 * outside of the compiled part and no compile copies it. Qwen3.8-27B on 0.29.0: 31.24 GiB of cache cold and warm. */
static bool embeds_outside(const oos_setup *setup)
{
    return setup->multimodal && !setup->model->encoder_decoder;
}

static bool compiles(const oos_setup *setup)
{
    return setup->rules->cold_embeddings && setup->compiles && !setup->uncompiled && !embeds_outside(setup) &&
           !oos_activation_first_engine(setup);
}

bool oos_activation_compile_open(const oos_setup *setup)
{
    return compiles(setup) && !setup->env->cold_compile.known;
}

/* The first start compiles: Inductor times combined kernels on made-up arguments, and the first piece takes the whole
 * embedding (Gemma 2 9B on 0.32: 1750 MiB beside two hidden-wide tensors; Qwen3-8B on 0.19.1 and 0.24.0: 1220 MiB, 1 MiB
 * more than planned). From 0.27 to 0.31 it is charged twice, as a peak and as a cached segment that free memory lacks, if cuBLAS puts its
 * workspace there: 32 MiB find no other room (two starts on 12.0), 8 MiB on 8.x do where the 20 MiB segments that the weights share have as
 * much left. Small models fill those with their matrices (twice: Qwen3-4B, a start of 0.30 and one of 0.28, dry, 230,224 tokens of 230,208
 * planned; Qwen2.5-3B, dry, and as AWQ on 0.29), wider ones leave room (once: Llama-3.1-8B on 0.31, and dry as Qwen2.5-7B and Qwen3-14B; AWQ
 * of 7B and 8B; but Qwen3-8B, dry, twice). A container and every first start are cold, so that is meant where nothing tells. */
static uint64_t cold_copies(const oos_setup *setup)
{
    uint64_t const most = setup->rules->cold_embeddings;
    return setup->device.capability / 10 == 8 && setup->model->hidden > VALUE(cold_width) ? oos_min(most, 1)
                                                                                          : most;
}

static oos_expert_kernel marlin(const oos_setup *setup)
{
    return setup->rules->marlin_experts_cached ? OOS_EXPERTS_CACHES : OOS_EXPERTS_CALL;
}

/* fused_moe/oracle of 0.20 to 0.32: the first of each list that the device supports. FlashInfer's kernels are passed over
 * on Hopper; before 0.20 they had to be asked for. */
static oos_expert_kernel kernel_of(const oos_setup *setup)
{
    unsigned const family = setup->device.capability / 10;
    const char *asked = setup->serve->moe_backend;
    bool const flash = setup->rules->flashinfer_experts && setup->loras == 0;
    oos_expert_kernel const triton =
        setup->rules->triton_experts_cached ? OOS_EXPERTS_CACHES : OOS_EXPERTS_CALL;
    oos_expert_kernel const blackwell = family == 12 ? OOS_EXPERTS_FLASH : OOS_EXPERTS_TRTLLM;
    switch (oos_expert_quant(setup->model)) {
    case OOS_QUANT_NONE: return flash && family >= 10 ? blackwell : triton;
    case OOS_QUANT_FP8_TENSOR:
    case OOS_QUANT_FP8_CHANNEL:
    case OOS_QUANT_FP8_BLOCK:
    case OOS_QUANT_MXFP8: return flash && family == 10 ? OOS_EXPERTS_TRTLLM : triton;
    case OOS_QUANT_NVFP4:
        if (family >= 10 && asked && strcmp(asked, "cutlass") == 0) return OOS_EXPERTS_CUTLASS;
        return family >= 10 ? blackwell : marlin(setup);
    case OOS_QUANT_MXFP4:
        if (family == 9) return OOS_EXPERTS_OPENAI;
        return family == 10 ? OOS_EXPERTS_TRTLLM : marlin(setup);
    case OOS_QUANT_AWQ:
    case OOS_QUANT_GPTQ:
    case OOS_QUANT_PACKED_INT: return marlin(setup);
    case OOS_QUANT_INT8:
    case OOS_QUANT_BNB:
    case OOS_QUANT_UNKNOWN: break;
    }
    return triton;
}

enum { SAMPLER_SORTS, SAMPLER_BY_PACKAGE, SAMPLER_BY_REQUEST, SAMPLER_IN_PLACE };

bool oos_activation_sampler_open(const oos_setup *setup)
{
    return setup->rules->sampler == SAMPLER_BY_PACKAGE && !setup->v2_runner &&
           !setup->env->flashinfer_sampler.known && !setup->env->image && !oos_activation_first_engine(setup);
}

/* Sorting is the larger of the two, so it is meant where nothing tells. */
static bool sorts(const oos_setup *setup)
{
    oos_flag const asked = setup->env->flashinfer_sampler;
    if (oos_activation_first_engine(setup)) return true;
    switch (setup->rules->sampler) {
    case SAMPLER_BY_PACKAGE: return !oos_flag_or(asked, setup->env->image);
    case SAMPLER_BY_REQUEST: return !oos_flag_or(asked, false);
    case SAMPLER_IN_PLACE: return false;
    default: return true;
    }
}

/* vLLM 0.32, v1/worker/gpu: penalties.py, structured_outputs.py, logit_bias.py, bad_words.py, logprob.py. For every request a
 * count and two bits per token of the vocabulary, another for each draft, and tables of fixed size: 4 x 1024 int32 and 5 smaller.
 * They come with the sampler (GPUModelRunner.load_model): on the last stage, of a model that does not pool. */
static uint64_t v2_buffers(const oos_setup *setup, uint64_t tokens, bool last)
{
    uint64_t const bits = oos_mul(oos_cdiv(setup->model->vocab, 32), 4);
    uint64_t const masks = oos_mul(bits, oos_add(2, setup->speculative_tokens));
    uint64_t const table = oos_add(oos_mul(setup->model->vocab, 4), masks);
    uint64_t const request = last && !oos_setup_pools(setup) ? oos_add(table, 18 * OOS_KIB) : 0;
    uint64_t const token = 13; /* input_ids int32, positions int64, is_padding bool */
    return oos_add(oos_mul(request, setup->max_num_seqs), oos_mul(token, tokens));
}

/* The drafter's copy of the model's hidden states (llm_base_proposer.py; of the newer runner target_dependent_ar/speculator.py: not for a
 * draft model of its own). */
static uint64_t drafter_rows(const oos_setup *setup, uint64_t tokens)
{
    const oos_model *drafter = setup->draft ? setup->draft : setup->mtp_layers ? setup->model : NULL;
    bool const own = strcmp(oos_setup_speculative_method(setup), "draft_model") == 0;
    if (!drafter || (setup->v2_runner && own)) return 0;
    return oos_mul(oos_mul(tokens, drafter->hidden), oos_dtype_bytes(setup->dtype));
}

/* The older runner: ids, positions, slot mappings per token; the block table per request (v1/worker/block_table.py). */
static uint64_t v1_buffers(const oos_setup *setup, uint64_t tokens)
{
    uint64_t const blocks = oos_cdiv(setup->max_model_len, 16);
    return oos_add(oos_mul(tokens, 40), oos_mul(oos_mul(setup->max_num_seqs, blocks), 4));
}

/* One for every group of ranks (parallel_state.py): tensor parallel; experts, to 0.13 whatever the model; decode context; stages; replicas; and
 * from 0.23 that of all ranks, which is made at once so that others can be split from it. */
static uint64_t communicators_of(const oos_setup *setup)
{
    const vllm_rules *rules = setup->rules;
    uint64_t const ranks = oos_mul(setup->tp, setup->pp);
    bool const experts = rules->experts_group_always || setup->model->moe.experts > 0;
    return (uint64_t)(setup->tp > 1) + (setup->pp > 1) + (setup->dp > 1) + (setup->dcp > 1) +
           (experts && oos_mul(setup->tp, setup->dp) > 1) + (rules->world_group_eager && ranks > 1);
}

/* determine_chunked_prefill_workspace_size(): min(max(8 lengths, 4 blocks a sequence), 64 Ki tokens); Kimi's own wrapper (0.27) does not
 * claim it. */
static uint64_t context_of(const oos_setup *setup)
{
    uint64_t const wish = oos_max(oos_mul(8, setup->max_model_len), oos_mul(4 * 16, setup->max_num_seqs));
    bool const none = oos_setup_says(setup, "claims_no_context") && !setup->rules->kimi_gathers_context;
    return none ? 0 : oos_min(wish, setup->rules->mla_context_tokens);
}

/* The newer runner's profile run from 0.33 on: a copy of the logits in fp32; FlashInfer has two more, masked and as probabilities
 * (top_k_top_p_sampling_from_logits), and does not run below 7.5 or on 16 multiprocessors. */
static uint64_t profiled_bytes(const oos_setup *setup)
{
    if (!setup->v2_runner || !setup->rules->v2_profiles_sampler || oos_setup_pools(setup)) return 0;
    bool const small = setup->device.sms && setup->device.sms <= 16;
    bool const flash = oos_flag_or(setup->env->flashinfer_sampler, true);
    return flash && setup->device.capability >= 75 && !small ? 12 : 4;
}

/* What starts of the installed release have told: thousandths of a byte for a logit, that in the model's type among them. They ran the newer
 * runner; a pooling model samples nothing. */
static uint64_t learned_logit(const oos_setup *setup)
{
    const oos_learned_terms *terms = setup->rules->terms;
    bool const here = terms && terms->sampler.known && setup->v2_runner && !oos_setup_pools(setup);
    return here ? (uint64_t)(terms->sampler.value * 1000) : 0;
}

static bool cublas_early(const oos_setup *setup)
{
    const oos_learned_terms *terms = setup->rules->terms;
    bool const told = terms && terms->early_cublas.known;
    return told ? terms->early_cublas.value > 0 : setup->rules->cublas_before_snapshot;
}

/* topk_topp_triton.py, from 0.17: a row of the vocabulary in fp32 for every program, as many as multiprocessors. The
 * newer runner's dummy request asks for neither top-k nor top-p before 0.33. */
static uint64_t topk_rows(const oos_setup *setup, uint64_t requests)
{
    bool const asked = setup->v2_runner ? profiled_bytes(setup) == 4 : requests >= 8;
    if (!setup->rules->topk_triton_buffer || !asked) return 0;
    uint64_t const units = setup->device.sms ? setup->device.sms : 100;
    uint64_t rows = 1;
    while (rows < oos_min(units, requests)) rows *= 2;
    return oos_min(rows, units);
}

static oos_forward_sampler sampler_of(const oos_setup *setup, uint64_t tokens, uint64_t requests)
{
    const vllm_rules *rules = setup->rules;
    uint64_t const query = oos_add(1, setup->speculative_tokens);
    bool const warms = setup->v2_runner && rules->v2_warms_sampler; /* warmup.py of the newer runner */
    uint64_t const warm = oos_max(1, oos_min(setup->max_num_seqs, tokens / oos_add(query, 1)));
    return (oos_forward_sampler){
        .gathers = setup->v2_runner,
        .widens = rules->v2_logits_in_fp32,
        .sorts = sorts(setup),
        .open = oos_activation_sampler_open(setup),
        .few_apart = rules->sampler != SAMPLER_IN_PLACE,
        .rejection_bytes = setup->speculative_tokens ? rules->rejection_logit_bytes : 0,
        .profiled_bytes = profiled_bytes(setup),
        .learned_logit = learned_logit(setup),
        .warm_rows = warms ? oos_mul(warm, query) : 0,
        .warm_copies = rules->v2_warmup_clones_logits ? 2 : 1,
        .chunk_bytes = setup->speculative_tokens ? rules->v2_rejection_chunk_bytes : 0,
        .kept_rows = topk_rows(setup, requests)};
}

static oos_forward_media media_of(const oos_setup *setup)
{
    const vllm_rules *rules = setup->rules;
    const oos_serve *serve = setup->serve;
    return (oos_forward_media){.runs = setup->multimodal && !oos_flag_or(serve->skip_mm_profiling, false),
                               .images = serve->mm_images,
                               .videos = serve->mm_videos,
                               .max_pixels = serve->mm_max_pixels,
                               .images_most = oos_activation_first_engine(setup) ? 1 : 999,
                               .cast = rules->pixels_cast,
                               .released = setup->v2_runner,
                               .embeds_only = rules->items_by_embeds,
                               .widened = rules->encoder_outputs_widened,
                               .rotation = rules->encoder_rotation,
                               .frames_together = rules->frames_in_chunks,
                               .beside_image = rules->video_beside_image,
                               .stamped = rules->video_timestamps_counted,
                               .frames = rules->video_frames};
}

/* Gated delta nets: from 0.18 the profile run tries every variant of their Triton kernels (_warmup_prefill_kernels), and on 12.x some of them
 * spill; what they needed stays with the context, for 1,536 threads a multiprocessor. None of it on 8.x (0.19.0 to 0.27.1, four starts). */
static oos_constant delta_spill(const oos_setup *setup)
{
    if (setup->device.capability / 10 != 12) return (oos_constant){0};
    bool delta = false;
    for (size_t i = 0; i < setup->model->attention_count; i++)
        delta = delta || setup->model->attentions[i].mixer == OOS_MIXER_GDN;
    uint64_t const units = setup->device.sms ? setup->device.sms : 170;
    if (!delta) return (oos_constant){0};
    oos_constant spill = FITTED(delta_spill);
    spill.value = oos_mul(oos_mul(units, 1536), spill.value);
    spill.low = oos_mul(oos_mul(units, 1536), spill.low);
    spill.high = oos_mul(oos_mul(units, 1536), spill.high);
    return spill;
}

static oos_forward step_of(const oos_setup *setup, const oos_backend_choice *backend, uint64_t stage)
{
    uint64_t tokens = setup->max_num_batched_tokens, requests = setup->max_num_seqs;
    bool const older = oos_activation_first_engine(setup);
    if (older) first_engine_batch(setup, &tokens, &requests);
    requests = oos_min(requests, tokens);
    /* capture has taken FlashInfer's workspace already */
    bool const captured = !setup->eager && backend->name && strcmp(backend->name, "FLASHINFER") == 0;
    oos_forward step = {.model = setup->model,
                        .device = &setup->device,
                        .torch_minor = setup->rules->torch_minor,
                        .tp = setup->tp,
                        .pp = setup->pp,
                        .dp = setup->dp,
                        .ep = setup->ep,
                        .first = stage == 0,
                        .last = stage + 1 == setup->pp && !setup->model->encoder_only,
                        .tokens = tokens,
                        .requests = requests,
                        .slots = setup->max_num_seqs,
                        .length = setup->max_model_len,
                        .context = context_of(setup),
                        .dtype = setup->dtype,
                        .compiled = setup->compiles && !older,
                        .experts = kernel_of(setup),
                        .expert_rows = setup->rules->experts_chunk_rows,
                        .shared = oos_workspace_of(setup, backend),
                        .drafts = setup->mtp_layers && stage + 1 == setup->pp,
                        .runner_bytes = setup->v2_runner ? v2_buffers(setup, tokens, stage + 1 == setup->pp)
                                                         : v1_buffers(setup, tokens),
                        .sampler = sampler_of(setup, tokens, requests),
                        .media = media_of(setup),
                        .compile = {.here = compiles(setup),
                                    .cold = oos_flag_or(setup->env->cold_compile, true),
                                    .open = oos_activation_compile_open(setup),
                                    .copies = cold_copies(setup),
                                    .copies_most = setup->rules->cold_embeddings},
                        .cublas_early = cublas_early(setup),
                        .communicators = communicators_of(setup),
                        .communicators_early = setup->rules->nccl_before_snapshot,
                        .serving_workspace = captured ? 0 : backend->workspace_bytes};
    if (setup->device.capability == 90) step.more_kernels = FITTED(more_kernels);
    if (setup->rules->terms && setup->v2_runner) {
        step.early_more = oos_learned_bytes(&setup->rules->terms->early);
        step.kept_more = oos_learned_bytes(&setup->rules->terms->retained);
    }
    if (stage + 1 == setup->pp) step.runner_bytes = oos_add(step.runner_bytes, drafter_rows(setup, tokens));
    step.more_spill = delta_spill(setup);
    step.more_collectives = setup->eager ? 0 : FITTED(compiled_reduce).value;
    step.count = oos_setup_stage_layers(setup, stage, &step.layer);
    return step;
}

void oos_activation_of(const oos_setup *setup, const oos_backend_choice *backend, uint64_t stage,
                       oos_activation *ret_activation)
{
    oos_forward const step = step_of(setup, backend, stage);
    oos_forward_activation(&step, ret_activation);
}

void oos_activation_other_way(const oos_activation *before, const oos_setup *setup,
                              const oos_backend_choice *backend, uint64_t stage,
                              oos_activation *ret_activation)
{
    oos_forward const step = step_of(setup, backend, stage);
    oos_forward_activation_again(&step, before->layers, ret_activation);
}

/* ---- serving ---- */

static uint64_t round128(uint64_t number)
{
    return oos_round_up(number, 128);
}

/* FlexAttention before torch 2.9 builds its mask for the whole cache: batch tokens x KV tokens bytes in Inductor's own
 * graph pool, on the second batch shape; then about 1 GiB of per-step tables waits for the garbage collector. Read from
 * the generated code and the steps of 0.11.0 (OPT-2.7B: 1.72 GiB of mask, 0.9 - 1.3 GiB of growth). */
static bool flex_mask(const oos_setup *setup, const oos_backend_choice *backend, uint64_t kv_tokens,
                      oos_amount *ret_growth)
{
    if (!backend->name || strcmp(backend->name, "FLEX_ATTENTION") != 0 || setup->rules->torch_minor >= 9)
        return false;
    uint64_t const mask = oos_mul(round128(setup->max_num_batched_tokens), round128(kv_tokens));
    uint64_t const tables = oos_mul(oos_mul(setup->max_num_seqs, kv_tokens / 16), 8);
    uint64_t const growth = oos_min(oos_mul(tables, FITTED(flex_tables).value), FITTED(flex_most).value);
    uint64_t const bytes = oos_add(mask, growth);
    *ret_growth = oos_amount_guess(bytes, mask, oos_add(bytes, FITTED(flex_more).value),
                                   "mask of batch tokens x KV tokens, and tables of every step");
    return true;
}

void oos_outside_serving(const oos_setup *setup, const oos_backend_choice *backend, uint64_t kv_tokens,
                         oos_outside *outside)
{
    if (flex_mask(setup, backend, kv_tokens, &outside->runtime_growth))
        outside->runtime_cause =
            "FlexAttention builds a mask of batch tokens x KV tokens bytes that no profiling run has seen";
}

void oos_outside_of(const oos_setup *setup, const oos_backend_choice *backend, uint64_t kv_tokens,
                    oos_outside *ret_outside)
{
    oos_forward const step = step_of(setup, backend, 0);
    oos_forward_outside(&step, ret_outside);
    oos_outside_serving(setup, backend, kv_tokens, ret_outside);
}
