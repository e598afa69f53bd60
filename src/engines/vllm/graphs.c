/* CUDA graphs: how many, of how many nodes, what they take of the driver (D) and of PyTorch (T), what the engine estimates
 * before it sizes the cache, and what it prints afterwards. The counts are exact; the bytes of a graph, a node and a
 * captured collective are fitted on measured starts (data/constants.json and constants.json of the engine; docs/evidence/accuracy.md says how
 * well). */
#include "engines/vllm/vllm.h"

#define VALUE(name) vllm_value(setup, VLLM_##name)
#define END(name) vllm_end(setup, VLLM_##name, end) /* value, low or high end: whichever is computed with */

static oos_amount guess(uint64_t bytes, uint64_t low_percent, uint64_t high_percent, const char *how)
{
    return oos_amount_guess(bytes, bytes / 100 * low_percent, oos_mul(bytes / 100, high_percent), how);
}

typedef struct graph_count {
    uint64_t pieces; /* graphs of one stretch between attentions */
    uint64_t whole;  /* layers captured in FULL decode graphs */
    uint64_t sizes, full_sizes;
} graph_count;

/* Pieces end at every mixer; a layer that is an MLP or experts alone (Nemotron-H) ends none: 15 layers with 9 mixers were 10 pieces of a size. */
static uint64_t pieces_of(const oos_setup *setup)
{
    const oos_model *model = setup->model;
    uint64_t mixers = 0;
    for (size_t i = 0; i < model->layer_count; i++)
        if (model->attentions[model->layers[i].attention].mixer != OOS_MIXER_NONE) mixers++;
    return oos_add(oos_cdiv(mixers, oos_max(1, setup->pp)), 1);
}

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
    uint64_t const loras = setup->loras && setup->rules->graphs_with_and_without_lora ? 2 : 1;
    bool const pieces =
        setup->graph_mode == OOS_GRAPH_PIECEWISE || setup->graph_mode == OOS_GRAPH_FULL_AND_PIECEWISE;
    bool const whole = setup->graph_mode != OOS_GRAPH_PIECEWISE;
    count.sizes = pieces ? oos_mul(setup->capture_count, loras) : 0;
    count.full_sizes =
        whole ? oos_mul(setup->graph_mode == OOS_GRAPH_FULL ? setup->capture_count : full, loras) : 0;
    count.pieces = oos_mul(count.sizes, pieces_of(setup));
    count.whole = oos_mul(count.full_sizes, layers);
    return count;
}

/* FlashAttention 3 splits long contexts: inside a FULL graph it holds fp32 partial outputs of up to 32 splits for every
 * row (seen in the pool of 0.32.0: 512 rows x 32 heads x 128 x 32 x 4 B = 256 MiB). */
static uint64_t split_bytes(const oos_setup *setup, const oos_backend_choice *backend, graph_count count)
{
    bool const flash3 =
        setup->device.capability == 90 && backend->name && strcmp(backend->name, "FLASH_ATTN") == 0;
    if (!flash3 || count.full_sizes == 0 || !setup->rules->flash3_splits_in_graphs) return 0;
    uint64_t const rows = oos_min(setup->capture_top, setup->max_num_seqs);
    uint64_t const heads = oos_cdiv(setup->model->heads, oos_max(1, setup->tp));
    return oos_mul(oos_mul(rows, oos_mul(heads, setup->model->head_dim)), 32 * 4);
}

/* Sparse attention scores every position of the longest length for every row of a decode batch, in fp32, before it keeps the best: inside a
 * FULL graph that stays in the pool (sparse_attn_indexer.py, fp8_paged_mqa_logits: rows x max_model_len). GLM-5.2 on GB200, 0.26.0: 512 rows
 * of 819,200, 1.6 of the 4.1 GiB that its graphs take; the rest of it is not explained. */
static uint64_t indexer_logits(const oos_setup *setup, graph_count count)
{
    const oos_model *model = setup->model;
    uint64_t positions = 0;
    if (count.full_sizes == 0) return 0;
    for (size_t i = 0; i < model->attention_count; i++)
        if (model->attentions[i].mixer == OOS_MIXER_MLA && model->attentions[i].indexer_dim > 0)
            positions =
                oos_max(positions, setup->max_model_len / oos_max(1, model->attentions[i].compress_ratio));
    uint64_t const decode = oos_mul(setup->max_num_seqs, oos_add(1, setup->speculative_tokens));
    return oos_mul(oos_mul(oos_min(setup->capture_top, decode), positions), 4);
}

/* Nodes of one layer in tenths: kernels between and with attention. */
static bool mxfp4_experts(const oos_model *model)
{
    for (size_t i = 0; i < model->quant_count; i++)
        if (model->quants[i].kind == OOS_QUANT_MXFP4) return true;
    return false;
}

/* A layer of Nemotron-H or of a plain Mamba is a mixer, an MLP or experts alone. */
static bool has_feed(const oos_model *model, const oos_layer *layer)
{
    if (layer->moe || layer->matrix_count == 0) return true;
    for (uint32_t i = 0; i < layer->matrix_count; i++) {
        const oos_matrix *matrix = &model->matrices[layer->first_matrix + i];
        if (matrix->module && matrix->module[0] == 'm' && strcmp(matrix->module, "mlp") == 0) return true;
    }
    return false;
}

static uint64_t layer_nodes(const oos_setup *setup, const oos_layer *layer, oos_constant_end end)
{
    const oos_model *model = setup->model;
    oos_mixer const mixer = model->attentions[layer->attention].mixer;
    const char *asked = setup->serve->quantization, *own = model->quant_method;
    bool const fewer = setup->rules->fewer_nodes;
    uint64_t nodes = END(nodes_dense);
    if (layer->moe) nodes = fewer ? END(nodes_experts_fewer) : END(nodes_experts);
    if (mixer == OOS_MIXER_NONE || !has_feed(model, layer)) nodes = oos_sub(nodes, END(nodes_half));
    if (mixer == OOS_MIXER_MLA) nodes += fewer ? END(nodes_latent_fewer) : END(nodes_latent);
    if (layer->moe && setup->device.capability == 90 && mxfp4_experts(model)) nodes = END(nodes_mxfp4);
    if (layer->moe && oos_layer_matrix(model, layer, "mlp.gate_up_proj"))
        nodes += END(nodes_mlp_beside); /* Gemma 4: both */
    if (mixer == OOS_MIXER_GDN || mixer == OOS_MIXER_KDA) {
        /* from torch 2.9 their core is outside of the pieces */
        uint64_t const more = layer->moe ? END(nodes_delta_experts) : END(nodes_delta);
        nodes = setup->rules->torch_minor >= 9 ? nodes + more : END(nodes_delta_old);
    }
    if (setup->loras) nodes += END(nodes_lora);
    if ((asked && strcmp(asked, "bitsandbytes") == 0) || (own && strcmp(own, "bitsandbytes") == 0))
        nodes += END(nodes_bitsandbytes);
    return nodes;
}

/* Nodes of the layers, each kind of them counted once. */
typedef struct kinds {
    const oos_layer *layers[8];
    uint64_t nodes[8];
    size_t count;
} kinds;

static uint64_t kind_nodes(kinds *seen, const oos_setup *setup, const oos_layer *layer, oos_constant_end end)
{
    for (size_t i = 0; i < seen->count; i++) {
        const oos_layer *other = seen->layers[i];
        if (other->shape == layer->shape && other->attention == layer->attention && other->moe == layer->moe)
            return seen->nodes[i];
    }
    uint64_t const nodes = layer_nodes(setup, layer, end);
    if (seen->count == sizeof seen->nodes / sizeof *seen->nodes) return nodes;
    seen->layers[seen->count] = layer;
    seen->nodes[seen->count++] = nodes;
    return nodes;
}

static uint64_t stage_nodes(const oos_setup *setup, oos_constant_end end)
{
    uint64_t nodes = 0;
    kinds seen;
    seen.count = 0;
    for (size_t i = 0; i < setup->model->layer_count; i++)
        nodes += kind_nodes(&seen, setup, &setup->model->layers[i], end);
    return nodes / 10 / oos_max(1, setup->pp);
}

/* custom_all_reduce.py: two GPUs that reach each other (GeForce cards do not, _can_p2p), or NVLink between all of them, in one node, and not
 * switched off. */
static bool custom_all_reduce(const oos_setup *setup, bool nvlink)
{
    if (oos_flag_or(setup->serve->disable_custom_all_reduce, false) || setup->tp > 8) return false;
    if (nvlink) return true;
    return setup->tp == 2 && !(setup->device.name && strstr(setup->device.name, "GeForce"));
}

/* What the driver takes (facts/driver.c), and a captured collective: from torch 2.9 a plain node where it is the engine's own, and on devices
 * whose links NCCL captures so. */
typedef struct cost {
    uint64_t graph, node, collective;
} cost;

static cost cost_of(const oos_setup *setup, const oos_driver *driver, oos_constant_end end)
{
    cost c = {.graph = oos_constant_end_of(driver->graph, end),
              .node = oos_constant_end_of(driver->graph_node, end)};
    bool const custom = custom_all_reduce(setup, driver->nvlink), newer = setup->rules->torch_minor >= 9;
    bool const large =
        setup->device.capability / 10 == 8 || (setup->device.capability == 90 && !driver->nvlink);
    if (newer && (custom || !large))
        c.collective = c.node;
    else
        c.collective = custom ? END(collective_custom) : END(collective_captured);
    if (setup->tp <= 1) c.collective = 0;
    return c;
}

/* Of one size, `stage` nodes in all: the pieces between attentions, and a whole decode graph. */
static uint64_t size_bytes(const oos_setup *setup, cost c, uint64_t stage, uint64_t graphs)
{
    uint64_t const layers = oos_cdiv(setup->model->layer_count, setup->pp);
    uint64_t const nodes = oos_add(oos_mul(stage, c.node), oos_mul(oos_mul(2, layers), c.collective));
    return oos_add(oos_mul(graphs, c.graph), nodes);
}

/* What the first capture takes of PyTorch: the columns of the largest size in segments of 2 and 20 MiB, workspaces. */
static uint64_t torch_bytes(const oos_setup *setup, const oos_backend_choice *backend, graph_count count,
                            oos_constant_end end)
{
    uint64_t const wide = oos_add(oos_mul(4, setup->model->hidden),
                                  oos_mul(3, oos_cdiv(setup->model->intermediate, oos_max(1, setup->tp))));
    uint64_t const rows =
        count.pieces ? setup->capture_top : oos_min(setup->capture_top, setup->max_num_seqs);
    uint64_t const pool = oos_mul(oos_mul(rows, wide), oos_max(1, oos_dtype_bytes(setup->dtype)));
    uint64_t const attention = oos_add(split_bytes(setup, backend, count), indexer_logits(setup, count));
    return oos_add(oos_add(pool, attention), END(capture_begin));
}

/* FlashInfer: each metadata builder has a workspace, and a wrapper for every whole graph. TensorRT-LLM's kernels on
 * 10.x need no wrapper, and their workspace is there before the estimate is made. */
static uint64_t wrapper_bytes(const oos_setup *setup, const oos_backend_choice *backend, graph_count count,
                              uint64_t builders, bool *ret_before)
{
    *ret_before = setup->device.capability / 10 == 10;
    if (!backend->name || strcmp(backend->name, "FLASHINFER") != 0) return 0;
    uint64_t const wrappers = *ret_before ? 0 : oos_mul(count.full_sizes, VALUE(wrapper_bytes));
    return oos_mul(builders, oos_add(backend->workspace_bytes, wrappers));
}

/* The engine before V1: one graph of every size. */
static uint64_t first_engine_bytes(const oos_setup *setup, const oos_driver *driver, graph_count count,
                                   oos_constant_end end)
{
    uint64_t const nodes = oos_mul(count.full_sizes, stage_nodes(setup, end));
    uint64_t const collectives =
        setup->tp > 1 ? oos_mul(oos_mul(2, count.whole), cost_of(setup, driver, end).collective) : 0;
    return oos_add(oos_add(oos_mul(nodes, END(first_engine_node)), collectives), END(first_engine_begin));
}

/* profile_cudagraph_memory(): the larger first capture, and for each kind its second one for the rest. The older runner's second still makes
 * the pool grow, which later ones do not. */
static uint64_t estimate(const oos_setup *setup, graph_count count, uint64_t first, uint64_t piece,
                         uint64_t full, oos_constant_end end)
{
    uint64_t const grows = setup->v2_runner ? 0 : END(estimate_growth), least = END(estimate_least);
    uint64_t const pieces = oos_mul(oos_sub(count.sizes, 1), oos_max(oos_add(piece, grows), least));
    uint64_t const whole = oos_mul(oos_sub(count.full_sizes, 1), oos_max(oos_add(full, grows), least));
    return oos_add(oos_add(first, oos_max(count.sizes ? piece : 0, count.full_sizes ? full : 0)),
                   oos_add(count.sizes ? pieces : 0, count.full_sizes ? whole : 0));
}

static bool estimates(const oos_setup *setup)
{
    return setup->rules->graph_profiling && !setup->kv_cache_memory_bytes.known &&
           (!setup->v2_runner || setup->rules->v2_runner_estimates_graphs);
}

/* kernel_warmup.py: where FlashInfer is, a forward of the whole batch runs before capture. */
static bool warmed_before(const oos_setup *setup)
{
    if (setup->device.capability < 90) return false;
    uint64_t const rule = setup->rules->capture_after_forward;
    return rule == 2 || (rule == 1 && oos_flag_or(setup->env->flashinfer_sampler, setup->env->image));
}

/* What all graphs take, what the engine estimates, and the pieces alone. */
typedef struct sums {
    uint64_t taken, estimate, pieces;
} sums;

static sums sums_with(const oos_setup *setup, const oos_driver *driver, const oos_backend_choice *backend,
                      graph_count count, uint64_t builders, oos_constant_end end)
{
    if (oos_activation_first_engine(setup))
        return (sums){.taken = first_engine_bytes(setup, driver, count, end)};
    uint64_t const stage = stage_nodes(setup, end);
    cost const c = cost_of(setup, driver, end);
    uint64_t const piece = size_bytes(setup, c, stage, pieces_of(setup)),
                   full = size_bytes(setup, c, stage, 1);
    bool before;
    uint64_t const wrappers = wrapper_bytes(setup, backend, count, oos_max(1, builders), &before);
    uint64_t const pool = torch_bytes(setup, backend, count, end);
    uint64_t const first = oos_add(pool, before ? 0 : wrappers);
    uint64_t const objects = oos_add(oos_mul(count.sizes, piece), oos_mul(count.full_sizes, full));
    return (sums){.taken = oos_add(objects, oos_add(pool, wrappers)),
                  .estimate = estimate(setup, count, first, piece, full, end),
                  .pieces = oos_mul(count.sizes, piece)};
}

/* The range of a sum is at least that of its constants, all at their low or at their high ends. */
static oos_amount widened(oos_amount amount, uint64_t low, uint64_t high)
{
    amount.low = oos_min(amount.low, low);
    amount.high = oos_max(amount.high, high);
    return amount;
}

void oos_graphs_of(const oos_setup *setup, const oos_backend_choice *backend, uint64_t builders,
                   uint64_t forward_bytes, oos_graphs *ret_graphs)
{
    oos_amount const none = oos_amount_exact(0, OOS_SOURCE_DERIVED, NULL);
    *ret_graphs = (oos_graphs){.taken = none, .estimate = none, .not_printed = none};
    graph_count const count = count_graphs(setup);
    if (count.pieces == 0 && count.whole == 0) return;
    oos_driver const driver = oos_setup_driver(setup);
    sums const sum = sums_with(setup, &driver, backend, count, builders, OOS_CONSTANT_VALUE),
               low = sums_with(setup, &driver, backend, count, builders, OOS_CONSTANT_LOW),
               high = sums_with(setup, &driver, backend, count, builders, OOS_CONSTANT_HIGH);
    if (oos_activation_first_engine(setup)) {
        ret_graphs->taken = widened(guess(sum.taken, VALUE(first_engine_low), VALUE(first_engine_high),
                                          "graphs of every size x layers"),
                                    low.taken, high.taken);
        return;
    }
    ret_graphs->taken = widened(guess(sum.taken, VALUE(graphs_low), VALUE(graphs_high),
                                      "graphs, their nodes, and the pool of the largest size"),
                                low.taken, high.taken);
    if (estimates(setup))
        ret_graphs->estimate =
            widened(guess(sum.estimate, VALUE(estimate_low), VALUE(estimate_high),
                          "first capture, and the second of each kind for all other sizes"),
                    low.estimate, high.estimate);
    /* an all-reduce of more than a few MiB writes into a new tensor: three starts of two sources (0.11.2, 0.12) print 0.16 to 0.25 GiB less
     * than without that column, starts on one GPU do not */
    uint64_t const rows = oos_mul(setup->max_num_batched_tokens, oos_max(1, oos_dtype_bytes(setup->dtype)));
    uint64_t const reduced = setup->tp > 1 ? oos_mul(rows, setup->model->hidden) : 0;
    if (warmed_before(setup))
        ret_graphs->not_printed =
            guess(oos_add(forward_bytes, reduced), VALUE(not_printed_low), VALUE(not_printed_high),
                  "segments of the warm-up forward, given back while capture is measured");
    /* The newer runner captures every piece while it estimates and drops the graphs; the driver keeps their memory, so that the capture that
     * counts finds it there: 0.62 and 0.30 GiB in one start of 0.29.0, 0.43 and 0.23 in one of 0.31.0. */
    if (setup->v2_runner && estimates(setup))
        ret_graphs->not_printed = guess(sum.pieces, VALUE(not_printed_low), VALUE(not_printed_high),
                                        "pieces captured for the estimate, whose memory the driver keeps");
}
