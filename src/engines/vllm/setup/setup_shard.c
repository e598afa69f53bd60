/* What the arithmetic of sizes/ is told of a start of vLLM. */
#include "engines/vllm/setup/setup.h"

#include <string.h>

static void ways_by_rules(const vllm_rules *rules, oos_weight_ways *ways)
{
    ways->torch_minor = rules->torch_minor;
    ways->split_limit_bytes = oos_mul(rules->load_split_limit_mib, OOS_MIB);
    ways->awq_unpacks = rules->awq_unpacks;
    ways->fp8_blocks_by_marlin = rules->fp8_blocks_by_marlin;
    ways->mxfp4_by_triton = rules->mxfp4_by_triton;
    ways->mxfp4_keeps_scales = rules->mxfp4_keeps_scales;
    ways->bnb_nests_constants = !rules->bnb_unfolds_constants;
    ways->online_quantisation = rules->online_quantisation;
    ways->head_untied = !rules->wrapper_ties_embeddings;
    ways->shared_layers_keep_kv = rules->shared_layers_keep_kv;
    ways->mrope_fourfold = rules->mrope_fourfold;
    ways->qkv_ranges = rules->qkv_ranges_on_device;
    ways->lora_on_experts = rules->lora_on_experts;
}

bool oos_setup_pools(const oos_setup *setup)
{
    const oos_given_flag *convert = oos_serve_given(setup->serve, "--convert");
    const char *to = convert && convert->value ? convert->value : "";
    const char *runner = setup->serve->runner ? setup->serve->runner : "";
    bool const only = setup->model->pooling || setup->model->encoder_only;
    if (only || strcmp(runner, "generate") == 0) return only;
    return setup->model->pooling_modules || strcmp(runner, "pooling") == 0 || strcmp(to, "embed") == 0 ||
           strcmp(to, "classify") == 0;
}

oos_shard oos_setup_shard(const oos_setup *setup)
{
    const oos_serve *serve = setup->serve;
    const char *conf = setup->env ? setup->env->alloc_conf : NULL;
    oos_shard shard = {.model = setup->model,
                       .draft = setup->draft,
                       .tp = setup->tp,
                       .pp = setup->pp,
                       .dp = setup->dp,
                       .ep = setup->ep,
                       .layers_given = setup->env ? setup->env->pp_layer_partition : NULL,
                       .capability = setup->device.capability,
                       .dtype = setup->dtype,
                       .multimodal = setup->multimodal,
                       .mtp_layers = setup->mtp_layers,
                       .loras = setup->loras,
                       .lora_rank = setup->lora_rank,
                       .batch_tokens = setup->max_num_batched_tokens};
    shard.ways = (oos_weight_ways){.torch_minor = UINT64_MAX,
                                   .attention_scales = 4, /* q, k, v and the probabilities */
                                   .expandable_segments = conf && strstr(conf, "expandable_segments:True")};
    if (setup->rules) ways_by_rules(setup->rules, &shard.ways);
    if (setup->rules) shard.ways.tower_first = setup->v2_runner && setup->rules->v2_tower_first;
    shard.ways.ends_everywhere = setup->rules ? oos_setup_says(setup, "ends_everywhere") : 0;
    if (!serve) return shard;
    shard.ways.no_head = oos_setup_pools(setup);
    shard.ways.quantization = serve->quantization;
    shard.ways.load_format = serve->load_format;
    shard.ways.offload_gib = oos_setup_offload_gib(setup);
    shard.ways.lora_sharded = oos_flag_or(serve->fully_sharded_loras, false);
    shard.ways.draft_method = serve->speculative.method;
    if (serve->speculative.draft_tensor_parallel_size.known)
        shard.draft_tp = oos_max(1, serve->speculative.draft_tensor_parallel_size.value);
    return shard;
}
