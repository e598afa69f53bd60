/* The peak of a step, put together: layers, sampler and encoder are moments that follow one another, so the largest one decides;
 * workspaces and the encoder's outputs stay alive beside them. */
#include "base/check.h"
#include "sizes/forward/parts.h"

static oos_constant constant(const oos_forward *step, oos_device_constant id)
{
    oos_constant_where const where = {.capability = step->device->capability,
                                      .torch_minor = step->torch_minor,
                                      .ranks = step->tp,
                                      .unified = step->device->unified};
    return oos_constant_at(&oos_device_constants, id, &where);
}
#define VALUE(name) constant(step, OOS_DEVICE_##name).value

/* PyTorch, CUDABlas.cpp parseChosenWorkspaceSize(): 32 MiB on 9.0 and 10.x, else :4096:2:16:8. */
uint64_t oos_forward_cublas(const oos_forward *step)
{
    unsigned const major = step->device->capability / 10;
    if (major == 9 || (major == 10 && step->torch_minor >= 7)) return 32 * OOS_MIB;
    return 8 * OOS_MIB + 128 * OOS_KIB;
}

/* Error bars, from whole starts on a stand-in device (docs/evidence/accuracy.md): the forward is within 5 % or
 * 0.05 GiB there; a compiled forward and older releases are less well known. */
static oos_amount guess(const oos_forward *step, uint64_t bytes, uint64_t low_percent, uint64_t high_percent,
                        const char *how)
{
    uint64_t const slack = VALUE(activation_slack);
    uint64_t const low = oos_sub(bytes, oos_add(bytes / 100 * low_percent, slack));
    uint64_t const high = oos_add(bytes, oos_add(oos_mul(bytes / 100, high_percent), slack));
    return bytes == 0 ? oos_amount_exact(0, OOS_SOURCE_DERIVED, NULL)
                      : oos_amount_guess(bytes, low, high, how);
}

static uint64_t cold_embedding(const oos_forward *step)
{
    return oos_mul(oos_mul(oos_per_rank(step->model->vocab, step->tp), step->model->hidden),
                   oos_forward_item(step));
}

static uint64_t cold_compile(const oos_forward *step)
{
    if (!step->first || !step->compile.here || !step->compile.cold) return 0;
    return oos_add(oos_mul(step->compile.copies, cold_embedding(step)),
                   oos_mul(oos_mul(2, step->model->hidden), oos_forward_column(step)));
}

static void peaks_of(const oos_forward *step, oos_layer_peak layers, oos_activation *ret_activation)
{
    uint64_t encoder = 0, outputs = 0, inputs = 0;
    if (step->first) oos_forward_encoder(step, &encoder, &outputs, &inputs);
    uint64_t const hidden = oos_mul(oos_forward_column(step), step->model->hidden);
    uint64_t sampler = hidden, sampler_low = hidden;
    if (step->last) {
        sampler = oos_add(hidden, oos_forward_sampling(step, &sampler_low));
        sampler_low = oos_add(hidden, sampler_low);
    }
    uint64_t const cublas = step->cublas_early ? 0 : oos_forward_cublas(step);
    uint64_t const buffer = step->last ? oos_mul(oos_mul(step->sampler.kept_rows, step->model->vocab), 4) : 0;
    uint64_t const kept = oos_add(buffer, step->kept_more);
    uint64_t const retained = oos_add(oos_add(layers.workspace, cublas), kept);

    uint64_t const in_layers =
        oos_add(oos_add(layers.peak, oos_add(outputs, inputs)), layers.cublas ? cublas : 0);
    uint64_t const in_sampler = oos_add(oos_add(sampler, retained), oos_add(outputs, inputs));
    uint64_t const copied = step->media.cast ? 0 : inputs; /* else they are among the encoder's columns */
    uint64_t const in_encoder = oos_add(oos_add(encoder, oos_add(outputs, copied)), cublas);
    uint64_t const warm = oos_max(oos_max(in_layers, in_sampler), in_encoder);
    uint64_t const cold = cold_compile(step);
    uint64_t const in_compile = cold; /* before the first product: cuBLAS has no workspace yet */
    uint64_t const peak = oos_max(warm, in_compile);
    uint64_t const least = oos_max(oos_max(oos_max(in_layers, in_encoder), in_compile),
                                   oos_add(oos_add(sampler_low, retained), oos_add(outputs, inputs)));

    uint64_t const spread = step->compiled ? VALUE(spread_compiled) : VALUE(spread_eager);
    uint64_t const most_spread =
        peak > warm ? VALUE(spread_cold) : spread; /* an embedding is known to its size */
    *ret_activation = (oos_activation){
        .forward = guess(step, layers.moment, spread, spread,
                         "columns alive at the busiest instant of a layer x tokens"),
        .sampler = guess(step, sampler, spread, spread,
                         "hidden states, and the copies of the logits that live at once"),
        .warmup = guess(step, step->last ? oos_forward_sampler_warmup(step) : 0, VALUE(spread_warmup),
                        VALUE(spread_warmup), "logits of the warm-up, which asks for top-k and top-p"),
        .encoder = guess(step, encoder, VALUE(spread_encoder_low), VALUE(spread_encoder_high),
                         "vision encoder on the largest dummy images"),
        .encoder_cache = guess(step, outputs, VALUE(spread_cache), VALUE(spread_cache),
                               "encoder outputs kept during the run"),
        .peak = guess(step, peak, most_spread, most_spread,
                      "peak of encoder, forward and sampler, with what stays"),
        .retained = guess(step, retained, 0, VALUE(spread_retained),
                          "workspaces of experts, sparse attention and cuBLAS stay after the run"),
        .persistent = guess(step, step->runner_bytes, VALUE(spread_buffers_low), VALUE(spread_buffers_high),
                            "the runner's input rows, penalties and bitmasks"),
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
        if (step->compile.open) /* from a warm cache: in the range, too */
            most->low = oos_min(most->low, oos_sub(warm, oos_add(warm / 20, 32 * OOS_MIB)));
        if (step->compile.copies < step->compile.copies_most)
            most->high = oos_add(most->high, cold_embedding(step));
    }
}

void oos_forward_activation(const oos_forward *step, oos_activation *ret_activation)
{
    oos_assert(step->model && step->device);
    oos_assert(step->requests <= step->tokens);
    oos_layer_peak layers;
    oos_forward_layers(step, &layers);
    oos_assert(layers.moment <= layers.peak);
    peaks_of(step, layers, ret_activation);
}

void oos_forward_activation_again(const oos_forward *step, oos_layer_peak layers,
                                  oos_activation *ret_activation)
{
    peaks_of(step, layers, ret_activation);
}

/* ---- outside of PyTorch ---- */

#define FITTED(name) constant(step, OOS_DEVICE_##name)

static oos_amount between(uint64_t bytes, uint64_t low, uint64_t high, const char *how)
{
    return oos_amount_guess(bytes, oos_min(low, bytes), oos_max(high, bytes), how);
}

/* Driver, context and the modules loaded at start; cuBLAS with them, where it is asked before the engine looks. */
static oos_amount context_of(const oos_forward *step, const oos_driver *driver)
{
    uint64_t const cublas = step->cublas_early ? oos_forward_cublas(step) : 0;
    uint64_t const early = oos_add(cublas, step->early_more);
    return between(oos_add(driver->context_bytes, early), oos_add(driver->context_low, early),
                   oos_add(driver->context_high, early),
                   cublas ? "CUDA context of this device, and the workspace of cuBLAS"
                          : "CUDA context of this device");
}

/* Communicators and the custom all-reduce buffers. NCCL keeps buffers for each channel, two to four of them over PCIe, up to 32 over NVLink.
 * Before 0.11 they come after the engine's first look and count as its own growth. */
static oos_amount nccl_of(const oos_forward *step, const oos_driver *driver)
{
    if (oos_mul(step->tp, step->pp) <= 1 && step->dp <= 1)
        return oos_amount_exact(0, OOS_SOURCE_DERIVED, NULL);
    uint64_t const bytes = step->communicators_early
                               ? oos_mul(step->communicators, driver->communicator_bytes)
                               : FITTED(communicators_late).value;
    uint64_t const most = step->communicators_early ? oos_mul(step->communicators, driver->communicator_high)
                                                    : FITTED(communicators_late).high;
    return between(bytes, 0, oos_max(oos_max(driver->communicators_high, most), oos_mul(bytes, 5) / 4),
                   "NCCL communicators and all-reduce buffers");
}

/* Experts in MXFP4 on Hopper with torch 2.8 (before, Marlin runs them): the layout is not swizzled, and Triton's kernel for it spills. CUDA keeps
 * the local memory of every thread that can be resident: 2,048 a multiprocessor. */
static uint64_t mxfp4_spill(const oos_forward *step, oos_constant_end end)
{
    if (step->device->capability != 90 || step->torch_minor != 8) return 0;
    bool mxfp4 = false;
    for (size_t i = 0; i < step->model->quant_count; i++)
        mxfp4 = mxfp4 || step->model->quants[i].kind == OOS_QUANT_MXFP4;
    uint64_t const units = step->device->sms ? step->device->sms : 132;
    if (step->mxfp4_swizzled) {
        if (end != OOS_CONSTANT_HIGH) return 0;
        end = OOS_CONSTANT_VALUE; /* nobody has seen that layout spill, nor that it does not */
    }
    return mxfp4 ? oos_mul(oos_mul(units, 2048), oos_constant_end_of(FITTED(mxfp4_spill), end)) : 0;
}

/* NCCL's buffers of the first large all-reduce. Before 0.11 the communicators come later and count here. Next to nothing on A30 and other
 * parts without NVLink. */
static uint64_t collectives_of(const oos_forward *step, uint64_t *ret_low, uint64_t *ret_high)
{
    unsigned const capability = step->device->capability;
    *ret_low = *ret_high = 0;
    if (step->tp <= 1) return 0;
    if (capability / 10 == 10) *ret_high = FITTED(first_reduce_10x).high;
    if (capability != 90) return 0;
    oos_constant const first = step->communicators_early ? FITTED(first_reduce) : FITTED(first_reduce_late);
    uint64_t const compiled = step->more_collectives;
    uint64_t const bytes = oos_add(first.value, compiled);
    *ret_low = oos_min(bytes / 2, oos_add(first.low, compiled / 2));
    *ret_high = oos_max(oos_max(oos_mul(bytes, 3) / 2, oos_add(first.high, compiled)),
                        oos_add(bytes, FITTED(first_reduce_more).value));
    return bytes;
}

static uint64_t spill_of(const oos_forward *step, oos_constant_end end)
{
    return oos_add(mxfp4_spill(step, end), oos_constant_end_of(step->more_spill, end));
}

/* "non-torch forward increase": kernel images (facts/driver.c), NCCL's buffers, the stack of spilling kernels; on unified memory the engine's
 * own host memory is taken from the same free bytes. */
static oos_amount growth_of(const oos_forward *step, const oos_driver *driver)
{
    uint64_t bytes = driver->kernels_bytes, high = driver->kernels_high;
    uint64_t low, collectives_high;
    uint64_t const collectives = collectives_of(step, &low, &collectives_high);
    bytes = oos_add(bytes, step->more_kernels.value);
    high = oos_add(high, step->more_kernels.high);
    bytes = oos_add(bytes, collectives);
    high = oos_add(high, collectives_high);
    if (step->device->unified) {
        bytes = oos_add(bytes, FITTED(unified_growth).value);
        high = oos_add(high, FITTED(unified_growth).high);
    }
    uint64_t const spill = spill_of(step, OOS_CONSTANT_VALUE);
    return between(oos_add(bytes, spill), oos_add(low, spill_of(step, OOS_CONSTANT_LOW)),
                   oos_add(high, spill_of(step, OOS_CONSTANT_HIGH)),
                   spill ? "kernel images, library buffers, and what spilling kernels keep for each thread"
                         : "kernel images and library buffers of the profile run");
}

void oos_forward_outside(const oos_forward *step, oos_outside *ret_outside)
{
    oos_driver const driver = oos_device_driver(step->device, step->torch_minor);
    oos_constant const serving = FITTED(serving_growth);
    *ret_outside = (oos_outside){
        .context = context_of(step, &driver),
        .nccl = nccl_of(step, &driver),
        .profile_growth = growth_of(step, &driver),
        .runtime_growth = between(oos_add(step->serving_workspace, serving.value), 0,
                                  oos_add(step->serving_workspace, serving.high),
                                  "attention workspaces, kernels first used under load, fragmentation")};
}
