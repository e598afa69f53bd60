/* The kernels of attention, and what they keep beside the pool, outside the static share: a workspace of their library, and the indices of
 * captured batches. Read from the sources of 0.4.6 to 0.5.23: layers/attention/..._backend.py, get_default_attn_backend(). */
#include "engines/sglang/sglang.h"

#include <stdlib.h>
#include <string.h>

/* MiB; the large one by a list of architectures in flashinfer_backend.py. */
enum { USUAL = 384, LARGE = 512, DETERMINISTIC = 2048, TRTLLM = 512, TRTLLM_LATENT = 150 };

/* The architecture's word `attention`. */
enum { TRITON_BEFORE_HOPPER = 1, TRITON_BEFORE_BLACKWELL = 2, TRITON_BY_STATES = 3 };

static uint64_t says(const sglang_start *setup, const char *word)
{
    return setup->rules ? oos_architecture_says(setup->rules->facts, setup->model->architecture, word) : 0;
}

/* Recurrent states of which prefixes are kept without a buffer of their own need pages of one token, which trtllm_mha has not. */
static bool states_need_triton(const sglang_request *r)
{
    const char *strategy = r->state_strategy ? r->state_strategy : "";
    return !r->radix_off && !r->drafter && !strstr(strategy, "extra_buffer");
}

const char *oos_sglang_attention(const sglang_request *r, const sglang_start *setup)
{
    unsigned const family = setup->device.capability / 10;
    bool const latent = setup->model->mla;
    bool const branches = r->drafter && oos_u64_or(r->branches, 1) > 1;
    uint64_t const own = says(setup, "attention");
    if (r->attention) return r->attention;
    if (oos_sglang_is_compressed(setup->model)) return "dsv4";
    if (latent && setup->model->sparse) return "dsa";
    bool const rare = own == TRITON_BEFORE_BLACKWELL || (own == TRITON_BEFORE_HOPPER && family != 9);
    if (family == 10 ? own == TRITON_BY_STATES && states_need_triton(r) : rare) return "triton";
    if (family == 9 && (latent || !branches)) return "fa3";
    if (family == 10 && latent) return says(setup, "trtllm_mla") ? "trtllm_mla" : "flashinfer";
    if (family == 10 && !branches && setup->rules && setup->rules->trtllm_default) return "trtllm_mha";
    return latent ? "triton" : "flashinfer";
}

/* Layers with a window have wrappers and indices of their own, whether they have a pool of their own or not. */
static uint64_t kinds_of(const sglang_start *setup)
{
    const oos_model *model = setup->model;
    for (size_t i = 0; i < model->attention_count; i++)
        if (model->attentions[i].mixer == OOS_MIXER_SLIDING) return 2;
    return 1;
}

/* FlashInfer's wrappers have 8 MiB each, of which the allocator puts two into 20. */
static uint64_t wrappers_bytes(const char *kernel, const sglang_start *setup, uint64_t count)
{
    enum { SEGMENT_MIB = 20, IN_SEGMENT = 2 };
    bool const named = strcmp(kernel, "flashinfer") == 0 || strcmp(kernel, "trtllm_mha") == 0,
               wraps = named && !setup->model->mla;
    return wraps ? oos_round_up(count, IN_SEGMENT) / IN_SEGMENT * SEGMENT_MIB * OOS_MIB : 0;
}

static uint64_t asked_mib(const sglang_start *setup, uint64_t usual)
{
    const oos_given_variable *given =
        setup->env ? oos_engine_env_given(setup->env, "SGLANG_FLASHINFER_WORKSPACE_SIZE") : NULL;
    return given && given->value ? strtoull(given->value, NULL, 10) / OOS_MIB : usual;
}

/* FlashInfer's: some classes set it, whatever the variable says, and so do kernels that give the same sums each time. */
static uint64_t library_mib(const sglang_request *r, const sglang_start *setup)
{
    if (!setup->model->mla && r->deterministic) return DETERMINISTIC;
    return !setup->model->mla && says(setup, "large_workspace") ? LARGE : asked_mib(setup, USUAL);
}

static uint64_t workspace_mib(const sglang_request *r, const char *kernel, const sglang_start *setup)
{
    uint64_t const library = library_mib(r, setup);
    if (strcmp(kernel, "dsa") == 0) return setup->device.capability >= 100 ? library : 0;
    if (strcmp(kernel, "trtllm_mha") == 0)
        return oos_add(library, asked_mib(setup, TRTLLM)); /* beside FlashInfer's */
    if (strcmp(kernel, "trtllm_mla") == 0) return library + TRTLLM_LATENT;
    bool const has = strcmp(kernel, "flashinfer") == 0 || strcmp(kernel, "flashmla") == 0 ||
                     strcmp(kernel, "cutlass_mla") == 0;
    return has ? library : 0;
}

/* Of each captured row and each token of the longest request: places in the pool, and a mask. */
static double row_bytes(const char *kernel, const sglang_start *setup)
{
    enum { PLACE = 4, WIDE_PLACE = 8, MASK = 1 };
    uint64_t const places = PLACE * kinds_of(setup);
    if (strcmp(kernel, "flashinfer") == 0) return (double)(setup->model->mla ? PLACE : places + MASK);
    if (strcmp(kernel, "triton") == 0) return WIDE_PLACE;
    return (double)places / (double)oos_max(1, setup->page);
}

uint64_t oos_sglang_attention_bytes(const sglang_request *r, const sglang_start *setup)
{
    const char *kernel = oos_sglang_attention(r, setup);
    uint64_t const wrappers =
        1 + 3 * kinds_of(setup); /* for prefill from the cache, for drafts, and for decode */
    return oos_add(oos_mul(workspace_mib(r, kernel, setup), OOS_MIB),
                   wrappers_bytes(kernel, setup, wrappers));
}

uint64_t oos_sglang_captured_bytes(const sglang_request *r, const sglang_start *setup, uint64_t sizes,
                                   uint64_t rows, uint64_t row_tokens)
{
    const char *kernel = oos_sglang_attention(r, setup);
    double const indices = row_bytes(kernel, setup) * (double)oos_mul(rows, row_tokens);
    return oos_add(wrappers_bytes(kernel, setup, kinds_of(setup) * sizes), oos_u64_from(indices));
}
