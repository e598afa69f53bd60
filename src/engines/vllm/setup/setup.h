#pragma once
#include "command/command.h"
#include "facts/facts.h"
#include "model/model.h"
#include "sizes/sizes.h"

/* The engine's own configuration of one start: every default resolved, as `create_engine_config` would. All parts of the
 * plan read this and none reads the user's flags again. */

/* What changed from release to release: data/engines/vllm/rules.json. */
typedef struct vllm_rules {
    oos_version version;
    const oos_argument_facts *facts; /* NULL: none */
    const oos_refusals *refusals;
    const oos_learned_terms *terms; /* of starts of what is installed; NULL: none */
    oos_view architectures,
        quantization; /* that what is installed has classes and methods for; empty: it was not asked */
    bool measured;    /* starts of this release were compared with its rules */
    unsigned beyond;  /* releases after the newest that is known; 0: none */
#define REAL(name) double name;
#define WHOLE(name) uint64_t name;
#define YES(name) bool name;
#include "engines/vllm/rules.def"
#undef REAL
#undef WHOLE
#undef YES
} vllm_rules;

oomsight_status oos_vllm_book_load(oos_arena *arena, const char *data_dir, oos_rule_book **ret_book,
                                   oomsight_error *reterr);
oomsight_status oos_vllm_rules_of(const oos_rule_book *book, oos_version version, vllm_rules *ret_rules,
                                  bool *ret_beyond, oomsight_error *reterr);

typedef enum oos_graph_mode {
    OOS_GRAPH_NONE,
    OOS_GRAPH_PIECEWISE,
    OOS_GRAPH_FULL,
    OOS_GRAPH_FULL_DECODE_ONLY,
    OOS_GRAPH_FULL_AND_PIECEWISE
} oos_graph_mode;

enum { OOS_CAPTURE_SIZES_MAX = 512 };

/* What a KV entry is made of. */
typedef enum oos_kv_dtype {
    OOS_KV_MODEL_DTYPE,
    OOS_KV_F32,
    OOS_KV_F16,
    OOS_KV_BF16,
    OOS_KV_FP8, /* fp8, fp8_e4m3, fp8_e5m2, fp8_inc */
    OOS_KV_FP8_DS_MLA,
    OOS_KV_INT8_PER_TOKEN_HEAD,
    OOS_KV_FP8_PER_TOKEN_HEAD,
    OOS_KV_INT4_PER_TOKEN_HEAD,
    OOS_KV_NVFP4,
    OOS_KV_NVFP4_DS_MLA,
    OOS_KV_TURBOQUANT,
    OOS_KV_OTHER
} oos_kv_dtype;

/* What the engine does with recurrent state when prefix caching is on. */
typedef enum oos_mamba_mode { OOS_MAMBA_NONE, OOS_MAMBA_ALIGN, OOS_MAMBA_ALL } oos_mamba_mode;

typedef struct oos_setup {
    const oos_model *model;
    const oos_model *draft; /* speculative draft model, NULL: none (MTP uses the model's own layers) */
    const oos_serve *serve;
    const oos_engine_env *env;
    const vllm_rules *rules;
    oos_device_facts device;

    uint64_t tp, pp, dp, ep, dcp; /* ep: 1 without expert parallelism */
    oos_dtype dtype;              /* activations and unquantised weights */
    oos_kv_dtype kv_dtype;
    const char *kv_dtype_word; /* as the engine names it: "auto", "fp8_e5m2" */
    oos_dtype mamba_conv_dtype, mamba_ssm_dtype;
    oos_mamba_mode mamba_mode;
    bool length_of_draft;           /* max_model_len is that of the draft model, which is shorter */
    uint64_t mamba_block, draft_tp; /* tokens between states that are kept; ranks of the draft model */
    const char *attention_backend;  /* asked for by flag or variable; NULL: neither */
    uint64_t max_model_len, max_num_seqs, max_num_batched_tokens, max_in_flight_tokens;
    bool auto_model_len, ssm_dtype_given;
    uint64_t speculative_tokens; /* 0: none */
    uint64_t mtp_layers;         /* layers of the model's own drafter that join the cache */
    bool
        draft_unknown; /* it drafts with layers of its own that are not known here: their memory is not counted */
    bool uncompiled; /* the architecture has no compiled form */
    bool compiles;   /* mode or level 1 and above: also where no graph is captured */
    bool prefix_caching, chunked_prefill, async_scheduling, v2_runner, sleep_pool, hybrid_manager;
    double gpu_memory_utilization;
    oos_u64 kv_cache_memory_bytes, blocks_override, block_size_given;

    bool beyond; /* more ranks than anybody has: refused, and planned as one */
    bool eager;
    oos_graph_mode graph_mode;
    bool captures;                                 /* graphs are asked for, be there sizes for them or not */
    uint64_t capture_sizes[OOS_CAPTURE_SIZES_MAX]; /* ascending */
    size_t capture_count;
    uint64_t capture_top; /* max_cudagraph_capture_size */
    bool graph_estimate_applied;

    bool multimodal; /* encoder is built and profiled */
    uint64_t loras, lora_rank;
    bool trial;                    /* of a search: nobody reads its sentences */
    const struct oos_exact *exact; /* resolved by the installed engine; NULL: here */
} oos_setup;

/* Everything the engine resolves before it touches the device. `draft` may be NULL. */
oomsight_status oos_setup_resolve(oos_arena *arena, const oos_model *model, const oos_model *draft,
                                  const oos_serve *serve, const oos_engine_env *env,
                                  const oos_device_facts *device, const vllm_rules *rules,
                                  oos_setup *ret_setup, oomsight_error *reterr);

/* What the installed engine resolved in the place of what was resolved here. */
void oos_setup_take_exact(oos_setup *setup, const struct oos_exact *exact);

/* What of the device the engine leaves outside its budget. */
static inline double oos_outside_budget(const oos_setup *setup)
{
    double const share = 1 - setup->gpu_memory_utilization;
    return share > 0 ? share : 0;
}

/* Models that the engine does not run in float16. */
bool oos_setup_unstable_in_float16(const oos_setup *setup);
bool oos_setup_pools(const oos_setup *setup); /* a pooler runs in the place of head and sampler */
const char *oos_setup_speculative_method(const oos_setup *setup);
/* What the engine does for the model's architecture alone, by the words of architectures.json; 0: as for all others. */
uint64_t oos_setup_says(const oos_setup *setup, const char *word);

/* Whether a prefill of gated delta nets leaves states at block boundaries in passing, each of which needs a page. */
bool oos_setup_delta_checkpoints(const oos_setup *setup);

/* The longest length the engine takes from the model's config, by version. */
uint64_t oos_setup_derived_length(const oos_setup *setup);

/* One rank of it, for sizes/. Before rules, flags or environment are known their fields are NULL. */
oos_shard oos_setup_shard(const oos_setup *setup);

/* Layers of pipeline stage `stage`: [*ret_first, *ret_first + count). */
static inline uint64_t oos_setup_stage_layers(const oos_setup *setup, uint64_t stage, uint64_t *ret_first)
{
    oos_shard const shard = oos_setup_shard(setup);
    return oos_shard_layers(&shard, stage, ret_first);
}

/* What lies outside PyTorch on its device. */
static inline oos_driver oos_setup_driver(const oos_setup *setup)
{
    return oos_device_driver(&setup->device, setup->rules->torch_minor);
}

/* GiB of weights that each rank keeps in host memory. The newer runner takes the flag and does nothing with it in its first
 * releases. */
static inline bool oos_setup_offload_ignored(const oos_setup *setup)
{
    return setup->v2_runner && !setup->rules->cpu_offload_newer_runner;
}
static inline double oos_setup_offload_gib(const oos_setup *setup)
{
    return setup->serve && !oos_setup_offload_ignored(setup) ? oos_f64_or(setup->serve->cpu_offload_gb, 0)
                                                             : 0;
}

/* Parts of resolving a setup that have files of their own. */

/* Types and state caching that the engine sets for particular architectures. Needs types and speculation. */
void oos_setup_for_architecture(oos_setup *setup);

/* max_num_seqs and max_num_batched_tokens. Needs lengths and chunked prefill. */
void oos_setup_batch_limits(oos_setup *setup);

/* By the word of its flag. */
void oos_setup_kv_dtype(oos_setup *setup, const char *word);
oos_graph_mode oos_setup_graph_mode(const char *word, oos_graph_mode fallback);

/* Tokens of the steps that may be under way at once. Needs batch limits and scheduling. */
void oos_setup_flight(oos_setup *setup);

/* Graph mode, capture sizes, whether the graph estimate is charged. Needs batch limits and speculation. */
void oos_setup_graphs(oos_setup *setup);

/* Ranks on this machine: `world` of each replica that runs here. EngineArgs.create_engine_config() and Worker.init_device(). *ret_placed: Ray or
 * torchrun places them, wherever there is room. */
uint64_t oos_setup_ranks_here(const oos_serve *serve, uint64_t world, uint64_t dp, bool *ret_placed);
