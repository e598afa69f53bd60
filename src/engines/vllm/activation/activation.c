/* The peak of the profiling forward, put together: layers, sampler and encoder are moments that follow one another, so
 * the largest one decides; workspaces and the encoder's outputs stay alive beside them. The moments themselves are in
 * activation_layers.c, activation_sampler.c and activation_encoder.c, the runner's buffers in activation_buffers.c. */
#include "engines/vllm/activation/activation_parts.h"
#include "engines/vllm/constants.h"

#define VALUE(name) vllm_value(setup, VLLM_##name)

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
    const oos_rules *rules = setup->rules;
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

static void batch_of(const oos_setup *setup, const oos_backend_choice *backend, uint64_t stage,
                     oos_batch *ret_batch)
{
    uint64_t const item = oos_max(1, oos_dtype_bytes(setup->dtype));
    uint64_t tokens = setup->max_num_batched_tokens, requests = setup->max_num_seqs;
    bool const older = oos_activation_first_engine(setup);
    if (older) first_engine_batch(setup, &tokens, &requests);
    *ret_batch = (oos_batch){.setup = setup,
                             .tokens = tokens,
                             .requests = oos_min(requests, tokens),
                             .item = item,
                             .column = oos_mul(tokens, item),
                             .first_engine = older,
                             .compiled = setup->compiles && !older,
                             .first = stage == 0,
                             .last = stage + 1 == setup->pp,
                             .shared = oos_workspace_of(setup, backend)};
    ret_batch->count = oos_setup_stage_layers(setup, stage, &ret_batch->layer);
}

/* Error bars, from the whole starts of 0.32.0 on a stand-in device (docs/evidence/accuracy.md): the forward is within 5 % or
 * 0.05 GiB there; a compiled forward and older releases are less well known. */
static oos_amount guess(const oos_setup *setup, uint64_t bytes, uint64_t low_percent, uint64_t high_percent,
                        const char *how)
{
    uint64_t const slack = VALUE(activation_slack);
    uint64_t const low = oos_sub(bytes, oos_add(bytes / 100 * low_percent, slack));
    uint64_t const high = oos_add(bytes, oos_add(oos_mul(bytes / 100, high_percent), slack));
    return bytes == 0 ? oos_amount_exact(0, OOS_SOURCE_DERIVED, NULL)
                      : oos_amount_guess(bytes, low, high, how);
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

static uint64_t cold_embedding(const oos_batch *batch)
{
    const oos_setup *setup = batch->setup;
    return oos_mul(oos_mul(oos_per_rank(setup->model->vocab, setup->tp), setup->model->hidden), batch->item);
}

static uint64_t cold_compile(const oos_batch *batch)
{
    const oos_setup *setup = batch->setup;
    if (!batch->first || !compiles(setup) || !oos_flag_or(setup->env->cold_compile, true)) return 0;
    return oos_add(oos_mul(cold_copies(setup), cold_embedding(batch)),
                   oos_mul(oos_mul(2, setup->model->hidden), batch->column));
}

static void peaks_of(const oos_batch *batch, oos_layer_peak layers, oos_activation *ret_activation)
{
    const oos_setup *setup = batch->setup;
    uint64_t encoder = 0, outputs = 0, inputs = 0;
    if (batch->first) oos_activation_encoder(batch, &encoder, &outputs, &inputs);
    uint64_t const hidden = oos_mul(batch->column, setup->model->hidden);
    uint64_t sampler = hidden, sampler_low = hidden;
    if (batch->last) {
        sampler = oos_add(hidden, oos_activation_sampler(batch, &sampler_low));
        sampler_low = oos_add(hidden, sampler_low);
    }
    uint64_t const cublas = oos_activation_cublas(setup);
    uint64_t const buffer = batch->last ? oos_activation_topk_buffer(batch) : 0;
    uint64_t const retained = oos_add(oos_add(layers.workspace, cublas), buffer);

    uint64_t const in_layers =
        oos_add(oos_add(layers.peak, oos_add(outputs, inputs)), layers.cublas ? cublas : 0);
    uint64_t const in_sampler = oos_add(oos_add(sampler, retained), oos_add(outputs, inputs));
    uint64_t const copied =
        setup->rules->pixels_cast ? 0 : inputs; /* else they are among the encoder's columns */
    uint64_t const in_encoder = oos_add(oos_add(encoder, oos_add(outputs, copied)), cublas);
    uint64_t const warm = oos_max(oos_max(in_layers, in_sampler), in_encoder);
    uint64_t const cold = cold_compile(batch);
    uint64_t const in_compile = cold; /* before the first product: cuBLAS has no workspace yet */
    uint64_t const peak = oos_max(warm, in_compile);
    uint64_t const least = oos_max(oos_max(oos_max(in_layers, in_encoder), in_compile),
                                   oos_add(oos_add(sampler_low, retained), oos_add(outputs, inputs)));

    uint64_t const spread = batch->compiled ? VALUE(spread_compiled) : VALUE(spread_eager);
    uint64_t const most_spread =
        peak > warm ? VALUE(spread_cold) : spread; /* an embedding is known to its size */
    *ret_activation = (oos_activation){
        .forward = guess(setup, layers.moment, spread, spread,
                         "columns alive at the busiest instant of a layer x tokens"),
        .sampler = guess(setup, sampler, spread, spread,
                         "hidden states, and the copies of the logits that live at once"),
        .warmup = guess(setup, batch->last ? oos_activation_sampler_warmup(batch) : 0, VALUE(spread_warmup),
                        VALUE(spread_warmup), "logits of the warm-up, which asks for top-k and top-p"),
        .encoder = guess(setup, encoder, VALUE(spread_encoder_low), VALUE(spread_encoder_high),
                         "vision encoder on the largest dummy images"),
        .encoder_cache = guess(setup, outputs, VALUE(spread_cache), VALUE(spread_cache),
                               "encoder outputs kept during the run"),
        .peak = guess(setup, peak, most_spread, most_spread,
                      "peak of encoder, forward and sampler, with what stays"),
        .retained = guess(setup, retained, 0, VALUE(spread_retained),
                          "workspaces of experts, sparse attention and cuBLAS stay after the run"),
        .persistent = guess(setup, oos_activation_buffers(batch), VALUE(spread_buffers_low),
                            VALUE(spread_buffers_high), "the runner's input rows, penalties and bitmasks"),
        .layers = layers};
    oos_amount *in_sampling = &ret_activation->sampler, *most = &ret_activation->peak;
    if (sampler_low < sampler) { /* which of the two is not known: the range has both */
        in_sampling->low = oos_min(in_sampling->low, oos_sub(sampler_low, sampler_low / 20));
        most->low = oos_min(most->low, oos_sub(least, oos_add(least / 20, 64 * OOS_MIB)));
    }
    if (encoder >
        0) { /* the encoder is known less well than the rest: where it decides, or may, its range is the peak's */
        uint64_t const rest = oos_max(oos_max(in_layers, in_sampler), in_compile),
                       beside = oos_add(oos_add(outputs, copied), cublas);
        if (in_encoder > rest)
            most->low =
                oos_min(most->low, oos_max(oos_sub(rest, rest / 20), oos_add(encoder / 100 * 85, beside)));
        most->high = oos_max(most->high, oos_add(ret_activation->encoder.high, beside));
    }
    if (peak > warm) {
        ret_activation->compile_bytes = peak;
        if (oos_activation_compile_open(setup)) /* from a warm cache: in the range, too */
            most->low = oos_min(most->low, oos_sub(warm, oos_add(warm / 20, 32 * OOS_MIB)));
        if (cold_copies(setup) < setup->rules->cold_embeddings)
            most->high = oos_add(most->high, cold_embedding(batch));
    }
}

oomsight_status oos_activation_of(oos_arena *arena, const oos_setup *setup, const oos_backend_choice *backend,
                                  uint64_t stage, oos_activation *ret_activation, oomsight_error *reterr)
{
    (void)arena, (void)reterr;
    oos_batch batch;
    oos_layer_peak layers;
    batch_of(setup, backend, stage, &batch);
    oos_activation_layers(&batch, &layers);
    peaks_of(&batch, layers, ret_activation);
    return OOMSIGHT_OK;
}

void oos_activation_other_way(const oos_activation *before, const oos_setup *setup,
                              const oos_backend_choice *backend, uint64_t stage,
                              oos_activation *ret_activation)
{
    oos_batch batch;
    batch_of(setup, backend, stage, &batch);
    peaks_of(&batch, before->layers, ret_activation);
}
