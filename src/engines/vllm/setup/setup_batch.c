/* max_num_seqs and max_num_batched_tokens when the user gave none: they depend on the size of the card (as NVML tells
 * it, so a slice of a big card counts as big), on who asks, and on the version. */
#include "engines/vllm/setup/setup.h"
#include "base/ascii.h"

/* NVML has no total of a memory shared with the host (GB10, Thor): the engine takes the error for a small card. */
static uint64_t bytes_seen(const oos_setup *setup)
{
    return setup->device.unified ? 0 : setup->device.nvml_total_bytes;
}

/* EngineArgs.get_batch_defaults / _set_default_args_v1 */
static bool is_big(const oos_setup *setup)
{
    const char *name = setup->device.name;
    bool const large = bytes_seen(setup) >= 70 * OOS_GIB;
    switch (setup->rules->big_gpu_test) {
    case 0: return oos_holds(name, "h100") || oos_holds(name, "h200");
    case 1: return large;
    default: return large && !oos_holds(name, "a100");
    }
}

static uint64_t default_tokens(const oos_setup *setup)
{
    bool const server = setup->serve->usage == OOS_USAGE_SERVER;
    if (setup->rules->huge_gpu_tier && bytes_seen(setup) >= 160 * OOS_GIB) return 16384;
    if (is_big(setup)) return server ? 8192 : 16384;
    return server ? 2048 : 8192;
}

static uint64_t default_seqs(const oos_setup *setup)
{
    bool const huge = setup->rules->huge_gpu_tier && bytes_seen(setup) >= 160 * OOS_GIB;
    return huge || is_big(setup) ? 1024 : setup->rules->small_gpu_max_num_seqs;
}

void oos_setup_batch_limits(oos_setup *setup)
{
    const oos_serve *serve = setup->serve;
    bool const doubled = serve->performance_mode && strcmp(serve->performance_mode, "throughput") == 0;
    uint64_t tokens = oos_u64_or(serve->max_num_batched_tokens, default_tokens(setup));
    uint64_t seqs = oos_u64_or(serve->max_num_seqs, default_seqs(setup));
    if (doubled && !serve->max_num_batched_tokens.known) tokens = oos_mul(tokens, 2);
    if (doubled && !serve->max_num_seqs.known) seqs = oos_mul(seqs, 2);

    if (!serve->max_num_batched_tokens.known) {
        if (!setup->chunked_prefill) tokens = oos_max(tokens, setup->max_model_len);
        bool const whole_items = setup->multimodal && setup->model->bidirectional_images;
        if (whole_items && oos_setup_says(setup, "least_batched_tokens"))
            tokens = oos_max(tokens, setup->rules->gemma4_least_tokens);
        if (setup->rules->tokens_capped_by_length)
            tokens = oos_min(tokens, oos_mul(seqs, setup->max_model_len));
    }
    if (!serve->max_num_seqs.known && setup->rules->seqs_capped_by_tokens) seqs = oos_min(seqs, tokens);
    setup->max_num_batched_tokens = oos_max(tokens, 1);
    setup->max_num_seqs = oos_max(seqs, 1);
}
