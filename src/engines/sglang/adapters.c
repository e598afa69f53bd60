/* Slots of LoRA adapters, allocated behind the weights and before the pools are sized (0.5.23, srt/lora/mem_pool.py): of each layer, slot and
 * module a matrix A of rank x input, once for each matrix that is fused, and B of output x rank. Dense sums are equal from 0.4.9 on. */
#include "engines/sglang/sglang.h"

#include <string.h>

enum { QKV = 1, OUT = 2, GATE_UP = 4, DOWN = 8, EMBED = 16, HEAD = 32, LATENT = 64, ALL = 63 };

static unsigned module_of(const char *word, size_t len)
{
    static const struct {
        const char *word;
        unsigned module;
    } names[] = {{"q_proj", QKV},         {"k_proj", QKV},           {"v_proj", QKV},
                 {"qkv_proj", QKV},       {"o_proj", OUT},           {"gate_proj", GATE_UP},
                 {"up_proj", GATE_UP},    {"gate_up_proj", GATE_UP}, {"down_proj", DOWN},
                 {"embed_tokens", EMBED}, {"lm_head", HEAD},         {"all", ALL}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strlen(names[i].word) == len && strncmp(names[i].word, word, len) == 0) return names[i].module;
    return LATENT; /* of latent attention, and others */
}

/* The words of --lora-target-modules; 0: none. */
unsigned oos_sglang_adapter_modules(const char *words)
{
    unsigned modules = 0;
    for (const char *at = words; at && *at;) {
        size_t const len = strcspn(at, " ");
        if (len) modules |= module_of(at, len);
        at += len + strspn(at + len, " ");
    }
    return modules;
}

const char *oos_sglang_adapters_unread(const sglang_request *r, const oos_model *model)
{
    static const char what[] = "adapters of this kind of model are not modelled for SGLang";
    if (!r->adapters) return NULL;
    if (r->adapter_modules & LATENT || model->multimodal || model->moe.shared_intermediate) return what;
    for (uint64_t i = 0; i < model->layer_count; i++) {
        const oos_mixer mixer = model->attentions[model->layers[i].attention].mixer;
        bool const plain = mixer == OOS_MIXER_FULL || mixer == OOS_MIXER_SLIDING;
        if (!plain || model->layers[i].moe != model->layers[0].moe) return what;
    }
    return r->drafter ? "adapters together with a model that drafts are not modelled for SGLang" : NULL;
}

/* A and B of one module in one slot. */
static uint64_t cells(uint64_t rank, uint64_t fused, uint64_t in, uint64_t out)
{
    return oos_mul(rank, oos_add(oos_mul(fused, in), out));
}

static uint64_t attention_cells(const sglang_request *r, const sglang_start *setup, const oos_attention *a)
{
    enum { FUSED = 3 };
    uint64_t const tp = setup->attention_tp, rank = r->adapter_rank.value, hidden = setup->model->hidden;
    uint64_t const heads = a->heads / tp, kv_heads = oos_max(1, a->kv_heads / tp);
    uint64_t const query = oos_mul(heads, a->head_dim);
    uint64_t const both = oos_mul(kv_heads, oos_add(a->head_dim, a->head_dim_v));
    uint64_t const in = r->adapter_modules & QKV ? cells(rank, FUSED, hidden, oos_add(query, both)) : 0;
    return oos_add(in, r->adapter_modules & OUT ? cells(rank, 1, oos_mul(heads, a->head_dim_v), hidden) : 0);
}

/* Of the MLP, or of each expert. */
static uint64_t mlp_cells(const sglang_request *r, const sglang_start *setup, bool moe)
{
    enum { FUSED = 2 };
    const oos_model *model = setup->model;
    uint64_t const ranks = moe && setup->ep > 1 ? 1 : setup->tp, rank = r->adapter_rank.value;
    uint64_t const inner = oos_cdiv(moe ? model->moe.intermediate : model->intermediate, ranks);
    uint64_t const up =
        r->adapter_modules & GATE_UP ? cells(rank, FUSED, model->hidden, oos_mul(FUSED, inner)) : 0;
    uint64_t const down = r->adapter_modules & DOWN ? cells(rank, 1, inner, model->hidden) : 0;
    uint64_t const count = moe ? model->moe.experts / (setup->ep > 1 ? setup->ep : 1) : 1;
    return oos_mul(count, oos_add(up, down));
}

uint64_t oos_sglang_adapter_bytes(const sglang_request *r, const sglang_start *setup)
{
    const oos_model *model = setup->model;
    uint64_t const rank = r->adapter_rank.value;
    if (!r->adapters || !r->adapter_rank.known) return 0;
    /* of embedding and head, on every stage: A of the one and B of the other over the vocabulary */
    uint64_t sum = r->adapter_modules & EMBED ? cells(rank, 1, model->vocab, model->hidden) : 0;
    if (r->adapter_modules & HEAD)
        sum = oos_add(sum, cells(rank, 1, model->hidden, oos_cdiv(model->vocab, setup->tp)));
    for (uint64_t i = 0; i < model->layer_count;
         i++) { /* its buffers are of all layers, whatever the stage has */
        const oos_layer *layer = &model->layers[i];
        sum = oos_add(sum, attention_cells(r, setup, &model->attentions[layer->attention]));
        sum = oos_add(sum, mlp_cells(r, setup, layer->moe));
    }
    return oos_mul(oos_mul(r->adapters, sum), oos_dtype_bytes(setup->dtype));
}
