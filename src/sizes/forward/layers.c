/* The layers of a stage in their order: token mixing, then an MLP or experts, and the residual stream around them. The
 * expert workspace stays once the first expert layer has run, so layers after it are the busier ones. Equal
 * layers are counted once. */
#include "sizes/forward/parts.h"

/* Two hidden-wide tensors live through every layer: the residual, and what the layer was given (its caller holds it).
 * OPT keeps the token and position embeddings besides. Gemma's norm is written in PyTorch and leaves copies. Compiled
 * code drops everything after its last use: residual, normed input and attention's output are left (0.32.0, Llama). */
static oos_residual stream_of(const oos_forward *step)
{
    const oos_code *code = &step->model->code;
    if (step->compiled) return (oos_residual){.outer = 2, .drops_gate_up = true};
    return (oos_residual){.outer = code->outer ? code->outer : 2,
                          .copies = code->norm_copies,
                          .drops_gate_up = code->drops_gate_up,
                          .gated = code->output_gate};
}

/* Gemma 3n and the small Gemma 4 feed every layer an input of its own: looked up and projected for all layers at once,
 * both kept until the last. */
static uint64_t per_layer_inputs(const oos_forward *step)
{
    const oos_model *model = step->model;
    if (model->layer_count == 0) return 0;
    const oos_matrix *gate = oos_layer_matrix(model, &model->layers[0], "per_layer_input_gate");
    return gate ? oos_mul(oos_mul(oos_mul(2, gate->out), model->layer_count), oos_forward_column(step)) : 0;
}

/* Quantised products have kernels of their own; without matrices it is not known and assumed. */
static bool uses_cublas(const oos_model *model, const oos_layer *layer)
{
    if (layer->matrix_count == 0) return true;
    for (uint32_t i = 0; i < layer->matrix_count; i++) {
        const oos_matrix *matrix = &model->matrices[layer->first_matrix + i];
        bool const plain =
            matrix->quant >= model->quant_count || model->quants[matrix->quant].kind == OOS_QUANT_NONE;
        if (plain && !matrix->expert && matrix->in > 1 && matrix->out > 1) return true;
    }
    return false;
}

/* ---- feed-forward ---- */

/* Widths of an MLP on one rank: what the first product writes, and what goes into the second. */
typedef struct mlp {
    uint64_t up, act;
} mlp;

static mlp mlp_of(const oos_forward *step, const oos_layer *layer, const char *module)
{
    const oos_model *model = step->model;
    mlp widths = {0, 0};
    for (uint32_t i = 0; i < layer->matrix_count; i++) {
        const oos_matrix *matrix = &model->matrices[layer->first_matrix + i];
        if (matrix->in <= 1 || !matrix->module || *matrix->module != *module) continue;
        if (strcmp(matrix->module, module) != 0) continue;
        if (matrix->split == OOS_SPLIT_OUT) widths.up = oos_max(widths.up, matrix->out);
        if (matrix->split == OOS_SPLIT_IN) widths.act = oos_max(widths.act, matrix->in);
    }
    return (mlp){oos_per_rank(widths.up, step->tp), oos_per_rank(widths.act, step->tp)};
}

/* From the config alone, for models whose matrices are not known. */
static mlp mlp_from_fields(const oos_forward *step, const oos_layer *layer)
{
    const oos_model *model = step->model;
    bool const mixes = model->attentions[layer->attention].mixer != OOS_MIXER_NONE;
    if (mixes && model->attention_free) return (mlp){0, 0};
    uint64_t const act = oos_per_rank(model->intermediate, step->tp);
    return (mlp){oos_mul(2, act), act};
}

/* Input, gate_up, activation, and the output unless gate_up is forgotten before it. */
static uint64_t mlp_bytes(const oos_forward *step, const oos_layer *layer, const oos_residual *stream)
{
    mlp const widths = step->model->matrix_count ? mlp_of(step, layer, "mlp") : mlp_from_fields(step, layer);
    if (widths.up == 0) return 0;
    uint64_t const own = (uint64_t)(stream->copies == 0) + (uint64_t)!stream->drops_gate_up;
    uint64_t const hidden =
        oos_mul(oos_add(oos_add(stream->outer, stream->copies), own), step->model->hidden);
    return oos_mul(oos_add(oos_add(widths.up, widths.act), hidden), oos_forward_column(step));
}

/* Input, router logits in fp32, then either the shared expert (gate_up, activation, output) or the experts' output and
 * the shared one's. */
static uint64_t moe_bytes(const oos_forward *step, const oos_residual *stream)
{
    const oos_moe *moe = &step->model->moe;
    uint64_t const hidden = step->model->hidden;
    uint64_t const whole =
        moe->shared_intermediate ? moe->shared_intermediate : oos_mul(moe->shared, moe->intermediate);
    uint64_t const shared = oos_per_rank(whole, step->tp);
    uint64_t columns =
        oos_mul(oos_add(oos_add(stream->outer, stream->copies), stream->copies ? 0 : 1), hidden);
    columns = oos_add(columns, oos_mul(moe->experts, 2));
    uint64_t const output = oos_mul(shared ? 2 : 1, hidden);
    uint64_t const beside = shared && !stream->drops_gate_up ? hidden : 0;
    return oos_mul(oos_add(columns, oos_max(output, oos_add(oos_mul(3, shared), beside))),
                   oos_forward_column(step));
}

/* Kinds of layers that were counted, each at most twice: before there is a workspace, and with it. */
typedef struct seen {
    const oos_layer *layers[16];
    size_t count;
} seen;

static bool seen_before(seen *list, const oos_layer *layer)
{
    for (size_t i = 0; i < list->count; i++) {
        const oos_layer *other = list->layers[i];
        if (other->attention == layer->attention && other->moe == layer->moe &&
            other->first_matrix == layer->first_matrix)
            return true;
    }
    if (list->count < sizeof list->layers / sizeof *list->layers) list->layers[list->count++] = layer;
    return false;
}

/* `beside`: what is alive around it. */
static void layer_add(const oos_forward *step, const oos_layer *layer, uint64_t beside, oos_layer_peak *peak)
{
    const oos_attention *attention = &step->model->attentions[layer->attention];
    oos_residual stream = stream_of(step);
    bool kept = false;
    uint64_t const experts = layer->moe ? oos_forward_experts(step, &kept) : 0;
    peak->cublas = peak->cublas || uses_cublas(step->model, layer);
    stream.head_norms = oos_layer_norms_heads(step->model, layer);
    uint64_t mixer = oos_add(oos_forward_mixer(step, attention, &stream), beside);
    uint64_t feed = oos_add(layer->moe ? moe_bytes(step, &stream) : mlp_bytes(step, layer, &stream), beside);
    if (attention->indexer_dim) mixer = oos_add(mixer, step->shared.logits);
    peak->peak = oos_max(peak->peak, oos_add(mixer, peak->workspace));
    if (kept) peak->workspace = oos_max(peak->workspace, oos_workspace_grown(&step->shared, experts));
    if (!kept) feed = oos_add(feed, experts);
    peak->peak = oos_max(peak->peak, oos_add(feed, peak->workspace));
    peak->moment = oos_max(peak->moment, oos_max(mixer, feed));
}

/* The model's own drafter runs on its hidden states, which are held, and on the embedding, masked; both are normed and joined
 * (deepseek_mtp.py, glm4_moe_mtp.py). Compiled code drops all but the first. */
static uint64_t beside_drafter(const oos_forward *step)
{
    return oos_mul(oos_mul(step->compiled ? 1 : 4, step->model->hidden), oos_forward_column(step));
}

void oos_forward_layers(const oos_forward *step, oos_layer_peak *ret_peak)
{
    const oos_model *model = step->model;
    *ret_peak = (oos_layer_peak){0};
    seen without = {.count = 0}, with = {.count = 0};
    ret_peak->workspace = oos_workspace_grown(&step->shared, step->shared.indexer);
    for (uint64_t i = 0; i < step->count && step->layer + i < model->layer_count; i++) {
        const oos_layer *layer = &model->layers[step->layer + i];
        if (!seen_before(ret_peak->workspace ? &with : &without, layer)) layer_add(step, layer, 0, ret_peak);
    }
    for (size_t i = 0; step->drafts && i < model->mtp_layer_count; i++)
        layer_add(step, &model->mtp_layers[i], beside_drafter(step), ret_peak);
    uint64_t const inputs = per_layer_inputs(step);
    ret_peak->moment = oos_add(ret_peak->moment, inputs);
    ret_peak->peak = oos_add(ret_peak->peak, inputs);
}
