/* Memory outside PyTorch's allocator, and what CUDA graphs and serving take beside the budget. Each constant is a fit on
 * 102 measured starts (docs/accuracy.md says how well); the graph counts themselves are exact. */
#include "plan/outside.h"
#include "plan/activation.h"

static oos_amount guess(uint64_t bytes, uint64_t low, uint64_t high, const char *how)
{
    return oos_amount_guess(bytes, oos_min(low, bytes), oos_max(high, bytes), how);
}

/* Driver, context and the modules loaded at start. Where no reading of the device is known: total - free at start was
 * 0.25 GiB on L4, 0.49 on L40S and A100, 0.61 on H100. */
static oos_amount context_of(const oos_setup *setup)
{
    const oos_device_facts *device = &setup->device;
    if (device->context_bytes)
        return guess(device->context_bytes, device->context_low, device->context_high,
                     "CUDA context of this device");
    return guess(480 * OOS_MIB, 250 * OOS_MIB, 640 * OOS_MIB, "CUDA context, no reading of this device");
}

/* Communicators and the custom all-reduce buffers. Free memory at the start of TP 4, less a context: RTX PRO 6000 0.45
 * GiB, A30 0.9, GH200 1.9: NCCL keeps buffers for each channel, two to four of them over PCIe, up to 32 over NVLink. Before
 * 0.11 they come after the engine's first look and count as its own growth; what was left unexplained there was 0.05
 * (A100 80 GB, TP 2) to 0.9 GiB (A100 40 GB, TP 2). */
static oos_amount nccl_of(const oos_setup *setup)
{
    uint64_t const ranks = oos_mul(setup->tp, setup->pp);
    if (ranks <= 1 && setup->dp <= 1) return oos_amount_exact(0, OOS_SOURCE_DERIVED, NULL);
    uint64_t const bytes = setup->rules->nccl_before_snapshot ? 500 * OOS_MIB : 200 * OOS_MIB;
    unsigned const capability = setup->device.capability;
    bool const nvlink = capability == 70 || capability == 80 || capability == 90 || capability / 10 == 10;
    return guess(bytes, 50 * OOS_MIB, (nvlink ? 1900 : 900) * OOS_MIB,
                 "NCCL communicators and all-reduce buffers");
}

/* "non-torch forward increase": kernel images and the stack of spilling kernels. Read on starts without communicators:
 * L4 0.02, T4 0.03 - 0.05, L40S 0.04, A100 0.09, V100 0.09, H100 0.07 - 0.13 GiB. The first large all-reduce adds NCCL's
 * buffers: next to nothing on A30 and GH200 (0.1, once 0.6), 1.0 GiB on 8 H100, 2.2 on 4 H100 without the custom
 * all-reduce. On unified memory the engine's own host memory is taken from the same free bytes: 0.8 less to 4 GiB more
 * than without it on GB10. */
/* Experts in MXFP4 on Hopper with torch 2.8 (before, Marlin runs them): the layout is not swizzled, and Triton's kernel for it spills. CUDA keeps
 * the local memory of every thread that can be resident: 2,048 a multiprocessor. Two starts of GPT-OSS-120B with 0.11.0 on
 * one H100: 9.8 GiB outside PyTorch when it ran out, and 8.6 GiB less cache than the rest explains, 33 KiB a thread. */
static uint64_t spill_of(const oos_setup *setup)
{
    if (setup->device.capability != 90 || setup->rules->torch_minor != 8) return 0;
    bool mxfp4 = false;
    for (size_t i = 0; i < setup->model->quant_count; i++)
        mxfp4 = mxfp4 || setup->model->quants[i].kind == OOS_QUANT_MXFP4;
    uint64_t const units = setup->device.sms ? setup->device.sms : 132;
    return mxfp4 ? oos_mul(oos_mul(units, 2048), 33 * OOS_KIB) : 0;
}

static oos_amount growth_of(const oos_setup *setup)
{
    unsigned const capability = setup->device.capability;
    bool const large = capability == 70 || capability == 80 || capability == 90 || capability >= 100;
    uint64_t bytes = large ? 100 * OOS_MIB : 45 * OOS_MIB, high = large ? 500 * OOS_MIB : 150 * OOS_MIB;
    if (setup->tp > 1 && capability == 90) {
        bytes = oos_add(bytes, OOS_GIB);
        high = oos_add(high, 2 * OOS_GIB);
    }
    if (setup->device.unified) {
        bytes = oos_add(bytes, 1536 * OOS_MIB);
        high = oos_add(high, 6 * OOS_GIB);
    }
    uint64_t const spill = spill_of(setup);
    return guess(
        oos_add(bytes, spill), oos_add(15 * OOS_MIB, spill / 2), oos_add(high, spill),
        spill ? "kernel images, library buffers, and what the spilling MXFP4 kernel keeps for each thread"
              : "kernel images and library buffers of the profile run");
}

/* ---- graphs ---- */

typedef struct graph_count {
    uint64_t pieces; /* graphs of one stretch between attentions */
    uint64_t whole;  /* layers captured in FULL decode graphs */
    uint64_t sizes, full_sizes;
} graph_count;

static graph_count count_graphs(const oos_setup *setup)
{
    graph_count count = {0};
    if (setup->eager || setup->graph_mode == OOS_GRAPH_NONE) return count;
    uint64_t const layers = oos_cdiv(setup->model->layer_count, setup->pp);
    if (oos_activation_first_engine(setup)) { /* 1, 2, 4, 8, 16, ... 256 requests, nothing in pieces */
        uint64_t const requests = oos_min(oos_u64_or(setup->serve->max_num_seqs, 256), 256);
        count.full_sizes = oos_add(requests / 8, oos_min(requests, 3));
        count.whole = oos_mul(count.full_sizes, layers);
        return count;
    }
    uint64_t const query = oos_add(1, setup->speculative_tokens);
    uint64_t const decode_top = oos_mul(setup->max_num_seqs, query);
    uint64_t full = 0;
    for (size_t i = 0; i < setup->capture_count; i++)
        if (setup->capture_sizes[i] >= query && setup->capture_sizes[i] <= decode_top) full++;
    /* cudagraph_specialize_lora: with and without */
    uint64_t const loras = setup->loras && setup->rules->version >= OOS_VERSION(0, 11, 1) ? 2 : 1;
    bool const pieces =
        setup->graph_mode == OOS_GRAPH_PIECEWISE || setup->graph_mode == OOS_GRAPH_FULL_AND_PIECEWISE;
    bool const whole = setup->graph_mode != OOS_GRAPH_PIECEWISE;
    count.sizes = pieces ? oos_mul(setup->capture_count, loras) : 0;
    count.full_sizes =
        whole ? oos_mul(setup->graph_mode == OOS_GRAPH_FULL ? setup->capture_count : full, loras) : 0;
    count.pieces = oos_mul(count.sizes, oos_add(layers, 1));
    count.whole = oos_mul(count.full_sizes, layers);
    return count;
}

/* FlashAttention 3 splits long contexts: inside a FULL graph it holds fp32 partial outputs of up to 32 splits for every
 * row (seen in the pool of 0.32.0: 512 rows x 32 heads x 128 x 32 x 4 B = 256 MiB). */
static uint64_t split_bytes(const oos_setup *setup, const oos_backend_choice *backend, graph_count count)
{
    bool const flash3 =
        setup->device.capability == 90 && backend->name && strcmp(backend->name, "FLASH_ATTN") == 0;
    if (!flash3 || count.full_sizes == 0 || setup->rules->version < OOS_VERSION(0, 14, 0)) return 0;
    uint64_t const rows = oos_min(setup->capture_top, setup->max_num_seqs);
    uint64_t const heads = oos_cdiv(setup->model->heads, oos_max(1, setup->tp));
    return oos_mul(oos_mul(rows, oos_mul(heads, setup->model->head_dim)), 32 * 4);
}

/* Bytes of one graph object, by what it holds; with their driver Blackwell parts take less for each and more to begin
 * with. Fitted on starts of 0.10.1 to 0.27: Qwen2.5-3B (0.52, 0.69 GiB), Qwen2-7B (0.50; TP 2: 0.65), Llama-3.2-3B (0.55,
 * 0.65), Qwen3-235B (0.96) on A100, L40S and H100, within 25 %; on 5090 and RTX PRO 6000 Gemma-4-26B (0.48; two requests:
 * 0.25) and Qwen3-235B (0.32), within 40 %; Llama-3.2-3B with the older engine on T4 (0.17). Two starts with LoRA took 2.4
 * times as much (its kernels are nodes too); MXFP4 experts at TP 4 and a drafter took two to ten times. */
typedef struct graph_weights {
    uint64_t piece; /* one stretch between attentions, of one size */
    uint64_t layer; /* one layer of a whole graph */
    uint64_t begin; /* first capture: modules, workspaces */
} graph_weights;

static graph_weights weights_of(const oos_setup *setup)
{
    if (oos_activation_first_engine(setup)) return (graph_weights){0, 200 * OOS_KIB, 20 * OOS_MIB};
    if (setup->device.capability >= 100) return (graph_weights){75 * OOS_KIB, 30 * OOS_KIB, 150 * OOS_MIB};
    return (graph_weights){(setup->tp > 1 ? 283 : 203) * OOS_KIB, 100 * OOS_KIB, 60 * OOS_MIB};
}

static oos_amount graphs_of(const oos_setup *setup, const oos_backend_choice *backend, graph_count count)
{
    if (count.pieces == 0 && count.whole == 0) return oos_amount_exact(0, OOS_SOURCE_DERIVED, NULL);
    graph_weights const weights = weights_of(setup);
    uint64_t objects = oos_add(oos_mul(count.pieces, weights.piece), oos_mul(count.whole, weights.layer));
    if (setup->loras && count.pieces) objects = oos_mul(objects, 12) / 5;
    uint64_t const wide = oos_add(oos_mul(4, setup->model->hidden),
                                  oos_mul(3, oos_cdiv(setup->model->intermediate, oos_max(1, setup->tp))));
    uint64_t const rows =
        count.pieces ? setup->capture_top : oos_min(setup->capture_top, setup->max_num_seqs);
    uint64_t const pool = oos_mul(oos_mul(rows, wide), oos_max(1, oos_dtype_bytes(setup->dtype)));
    uint64_t const bytes =
        oos_add(oos_add(objects, pool), oos_add(split_bytes(setup, backend, count), weights.begin));
    return guess(bytes, bytes / 2, oos_mul(bytes, 2), "graphs x pieces, and the pool of the largest size");
}

/* Two samples are extrapolated to all sizes: 1.0 to 1.6 times what capture then took on cards, and up to 9 times on
 * unified memory, where the reading itself wanders. */
static oos_amount estimate_of(const oos_setup *setup, oos_amount graphs)
{
    bool const runs = setup->rules->graph_profiling && graphs.bytes && !setup->kv_cache_memory_bytes.known &&
                      (!setup->v2_runner || setup->rules->v2_runner_estimates_graphs);
    if (!runs) return oos_amount_exact(0, OOS_SOURCE_DERIVED, NULL);
    return guess(graphs.bytes, graphs.bytes / 3, oos_mul(graphs.bytes, 3),
                 "two captures extrapolated to all sizes");
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
    uint64_t const growth = oos_min(oos_mul(tables, 40), OOS_GIB);
    uint64_t const bytes = oos_add(mask, growth);
    *ret_growth = guess(bytes, mask, oos_add(bytes, 512 * OOS_MIB),
                        "mask of batch tokens x KV tokens, and tables of every step");
    return true;
}

static oos_amount runtime_of(const oos_setup *setup, const oos_backend_choice *backend, uint64_t kv_tokens,
                             const char **ret_cause)
{
    oos_amount growth;
    *ret_cause = NULL;
    if (flex_mask(setup, backend, kv_tokens, &growth)) {
        *ret_cause =
            "FlexAttention builds a mask of batch tokens x KV tokens bytes that no profiling run has seen";
        return growth;
    }
    return guess(oos_add(backend->workspace_bytes, 64 * OOS_MIB), 0,
                 oos_add(backend->workspace_bytes, 400 * OOS_MIB),
                 "attention workspaces, kernels first used under load, fragmentation");
}

oomsight_status oos_outside_of(oos_arena *arena, const oos_setup *setup, const oos_backend_choice *backend,
                               uint64_t kv_tokens, oos_outside *ret_outside, oomsight_error *reterr)
{
    (void)arena, (void)reterr;
    graph_count const count = count_graphs(setup);
    oos_outside outside = {
        .context = context_of(setup), .nccl = nccl_of(setup), .profile_growth = growth_of(setup)};
    outside.graphs = graphs_of(setup, backend, count);
    outside.graph_estimate = estimate_of(setup, outside.graphs);
    outside.runtime_growth = runtime_of(setup, backend, kv_tokens, &outside.runtime_cause);
    *ret_outside = outside;
    return OOMSIGHT_OK;
}
