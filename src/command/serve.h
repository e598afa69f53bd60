/* The serve command: what the user gave, typed. Unset stays unset here; defaults are plan/'s, by engine version. */
#ifndef OOS_INPUT_SERVE_H
#define OOS_INPUT_SERVE_H

#include "base/arena.h"
#include "base/error.h"
#include "base/size.h"
#include "base/text.h"
#include "facts/env.h"

/* Who asks: the engine's defaults differ. */
typedef enum oos_usage { OOS_USAGE_SERVER, OOS_USAGE_LLM_CLASS } oos_usage;

/* A flag as given, and what it means for memory. */
typedef enum oos_flag_effect {
    OOS_FLAG_MODELLED,   /* enters the plan */
    OOS_FLAG_NO_MEMORY,  /* known, does not move memory */
    OOS_FLAG_UNMODELLED, /* known to move memory, but not modelled: said in the notes */
    OOS_FLAG_UNKNOWN     /* not a flag of this version */
} oos_flag_effect;

typedef struct oos_given_flag {
    const char *name;  /* canonical: "--max-num-seqs" */
    const char *value; /* as given, NULL for a switch */
    oos_flag_effect effect;
    const char *nearest;             /* for an unknown flag: the closest known spelling, or NULL */
    const char *note;                /* "not in 0.11.0, new in 0.19.1", NULL */
    bool absent;                     /* only another version has it */
    uint32_t first_word, word_count; /* in oos_serve_words; count 0: no words of the command stand for it */
} oos_given_flag;

typedef struct oos_speculative {
    bool present;
    const char *method; /* "mtp", "eagle", "eagle3", "ngram", "draft_model", ... ; NULL: by the model */
    const char *model;  /* draft model path or id, NULL */
    oos_u64 tokens;     /* num_speculative_tokens */
    oos_u64 draft_tensor_parallel_size;
    bool tokens_wrong;          /* a number of tokens that is not above 0 */
    bool method_wrong;          /* a method that the release does not have */
    const char *unexpected_key; /* one that the release stops at, NULL */
} oos_speculative;

typedef struct oos_compilation {
    oos_u64 max_capture_size;        /* max_cudagraph_capture_size */
    bool max_in_json, sizes_in_json; /* said inside --compilation-config */
    const uint64_t *capture_sizes;
    size_t capture_size_count; /* 0 with capture_sizes_given: an empty list */
    bool capture_sizes_given;
    const char
        *cudagraph_mode; /* "NONE", "PIECEWISE", "FULL", "FULL_DECODE_ONLY", "FULL_AND_PIECEWISE"; NULL */
    oos_u64 level;       /* level / mode as a number, and -O where it means that */
    oos_u64
        optimization_level; /* --optimization-level, and -O from the version that has it; of no number UINT64_MAX */
    const char *level_flag,
        *level_value; /* what `-O.key=value` meant, which such a version takes for a level; NULL */
} oos_compilation;

/* What the engine's own parser stops at, the first of it; sentence NULL: nothing. */
typedef struct oos_serve_refusal {
    const char *sentence; /* as the parser says it */
    const char *flag;     /* as given, or canonical where it is known */
    const char
        *nearest;      /* the closest known spelling of an unknown flag, or the switch that was meant; NULL */
    const char *value; /* NULL: none */
    bool unrecognized; /* nobody takes these words; `flag` is all of them */
    uint32_t first_word, word_count; /* where it stopped; count 0: when all words were read */
} oos_serve_refusal;

/* How the command starts an engine. */
typedef struct oos_serve_entry {
    oos_usage usage;
    bool bench, keywords, latency, client;
    size_t first; /* index of the first word behind it */
} oos_serve_entry;

struct oos_engine_env;

/* How the command of one engine is read: its entry, and what becomes of its flags. */
typedef struct oos_dialect {
    /* Whether words[at] begins the engine's command; then the entry says how it goes on. */
    bool (*entry_at)(const char *const *words, size_t count, size_t at, oos_serve_entry *ret_entry);
    const char *expected; /* what a command that is none should have been */
    const char *start;    /* its usual form */
    const char *client;   /* what is said of an entry that is a client; NULL: there are none */
    const char *image;    /* in the name of an image that starts it; NULL: none does */
    /* Takes a variable into account; false: it does not. The value is copied. NULL: none but PyTorch's are. */
    bool (*variable_set)(oos_arena *arena, struct oos_engine_env *env, oos_view name, const char *value);
    bool typed; /* its flags are the fields of oos_serve, JSON and keywords included */
    /* of one that is not: its flag for the model, and flags that its plan looks up by oos_serve_given(); NULL behind the last */
    const char *model_flag;
    const char *const *modelled;
} oos_dialect;

/* The words behind the entry, kept so that the command can be read again with other ones. */
typedef struct oos_serve_words {
    const oos_dialect *dialect;
    const char *const *list; /* those that the config file stands for come first */
    size_t count, from_config;
    const oos_flag_table *table;
    oos_version version;
    bool bench, latency;
} oos_serve_words;

typedef struct oos_serve {
    oos_usage usage;
    const char *model;   /* NULL: none given */
    const char *program; /* the words before the flags, to be printed again in fixes: "vllm serve MODEL" */

/* name, kind, flag */
#define OOS_SERVE_MAP(U64, F64, YES, STR)                                                                    \
    U64(tensor_parallel_size, "--tensor-parallel-size")                                                      \
    U64(pipeline_parallel_size, "--pipeline-parallel-size")                                                  \
    U64(data_parallel_size, "--data-parallel-size")                                                          \
    U64(decode_context_parallel_size, "--decode-context-parallel-size")                                      \
    YES(enable_expert_parallel, "--enable-expert-parallel")                                                  \
    F64(gpu_memory_utilization, "--gpu-memory-utilization")                                                  \
    STR(max_model_len_word, "--max-model-len") /* as given: "16k", "auto", "-1"; see max_model_len */        \
    U64(max_num_seqs, "--max-num-seqs")                                                                      \
    U64(max_num_batched_tokens, "--max-num-batched-tokens")                                                  \
    U64(block_size, "--block-size")                                                                          \
    STR(kv_cache_dtype, "--kv-cache-dtype")                                                                  \
    U64(kv_cache_memory_bytes, "--kv-cache-memory-bytes")                                                    \
    U64(num_gpu_blocks_override, "--num-gpu-blocks-override")                                                \
    STR(dtype, "--dtype")                                                                                    \
    STR(quantization, "--quantization")                                                                      \
    STR(load_format, "--load-format")                                                                        \
    YES(enforce_eager, "--enforce-eager")                                                                    \
    F64(cpu_offload_gb, "--cpu-offload-gb")                                                                  \
    F64(swap_space, "--swap-space")                                                                          \
    YES(enable_sleep_mode, "--enable-sleep-mode")                                                            \
    YES(enable_cumem_allocator, "--enable-cumem-allocator")                                                  \
    YES(enable_lora, "--enable-lora")                                                                        \
    U64(max_loras, "--max-loras")                                                                            \
    U64(max_lora_rank, "--max-lora-rank")                                                                    \
    YES(fully_sharded_loras, "--fully-sharded-loras")                                                        \
    YES(enable_prefix_caching, "--enable-prefix-caching")                                                    \
    YES(enable_chunked_prefill, "--enable-chunked-prefill")                                                  \
    YES(async_scheduling, "--async-scheduling")                                                              \
    YES(language_model_only, "--language-model-only")                                                        \
    YES(skip_mm_profiling, "--skip-mm-profiling")                                                            \
    YES(disable_hybrid_kv_cache_manager, "--disable-hybrid-kv-cache-manager")                                \
    STR(mamba_cache_dtype, "--mamba-cache-dtype")                                                            \
    STR(mamba_ssm_cache_dtype, "--mamba-ssm-cache-dtype")                                                    \
    U64(mamba_block_size, "--mamba-block-size")                                                              \
    STR(mamba_cache_mode, "--mamba-cache-mode")                                                              \
    STR(attention_backend, "--attention-backend")                                                            \
    STR(moe_backend, "--moe-backend")                                                                        \
    STR(performance_mode, "--performance-mode")                                                              \
    YES(disable_custom_all_reduce, "--disable-custom-all-reduce")                                            \
    U64(max_logprobs, "--max-logprobs")                                                                      \
    STR(runner, "--runner")                                                                                  \
    STR(revision, "--revision")

#define U64(name, flag) oos_u64 name;
#define F64(name, flag) oos_f64 name;
#define YES(name, flag) oos_flag name;
#define STR(name, flag) const char *name;
    OOS_SERVE_MAP(U64, F64, YES, STR)
#undef U64
#undef F64
#undef YES
#undef STR

    oos_u64 max_model_len;   /* unset when not given or "auto" */
    bool max_model_len_auto; /* "auto" or -1 */
    oos_compilation compilation;
    oos_speculative speculative;
    bool mm_limits_given, mm_all_zero; /* --limit-mm-per-prompt; all that it names are zero */
    bool mm_limit_negative;            /* ... one of them is below */
    oos_u64 redundant_experts;         /* in --eplb-config */
    const char *media_wrong;           /* a key of --media-io-kwargs whose value is no object; NULL: none */
    oos_u64 mm_images, mm_videos, mm_audios;
    oos_u64 mm_max_pixels;         /* of an image, in --mm-processor-kwargs */
    const char *hf_overrides_json; /* NULL: none */

    oos_serve_refusal refusal;
    const oos_given_flag *flags; /* every flag given, in order */
    size_t flag_count;
    oos_serve_words words; /* count 0: none to be read again, as of LLM(...) */
} oos_serve;

/* A variable as given, and what it means for memory at the release. Its value is not kept: it may be a secret. */
typedef struct oos_given_variable {
    const char *name;
    oos_env_effect effect;
    bool own;        /* has a beginning that the engine's variables have */
    bool listed;     /* in the release's own table of variables */
    bool logged;     /* of one that is absent: the engine logs it as unknown */
    const char *why; /* what it moves, for one that is not modelled; NULL: nobody has looked */
    oos_flag on;     /* of a value that says yes or no */
} oos_given_variable;

enum { OOS_VARIABLES_MAX = 4096 };

/* Environment variables the engine would see: those that move memory, typed, and the list of all that were given. */
typedef struct oos_engine_env {
    const char *attention_backend;      /* VLLM_ATTENTION_BACKEND */
    oos_flag estimate_cudagraphs;       /* VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS */
    oos_flag v2_model_runner;           /* VLLM_USE_V2_MODEL_RUNNER */
    oos_flag flashinfer_sampler;        /* VLLM_USE_FLASHINFER_SAMPLER */
    oos_flag use_v1;                    /* VLLM_USE_V1 */
    oos_u64 flashinfer_workspace_bytes; /* VLLM_FLASHINFER_WORKSPACE_BUFFER_SIZE */
    const char *alloc_conf;             /* PYTORCH_CUDA_ALLOC_CONF or PYTORCH_ALLOC_CONF */
    const char *pp_layer_partition;     /* VLLM_PP_LAYER_PARTITION */
    bool image;                         /* the command starts a published image (vllm/vllm-openai) */
    oos_flag cold_compile; /* VLLM_DISABLE_COMPILE_CACHE says cold, VLLM_CACHE_ROOT that a cache is kept */
    oos_flag allow_long_length;          /* VLLM_ALLOW_LONG_MAX_MODEL_LEN */
    oos_flag rust_frontend;              /* VLLM_USE_RUST_FRONTEND */
    const oos_given_variable *variables; /* each name once, as it was given last */
    size_t variable_count;
} oos_engine_env;

/* `words` is the whole command: `vllm serve MODEL ...`, `vllm bench throughput ...`, `python -m vllm.entrypoints...`,
 * `LLM(model=..., tensor_parallel_size=4)` or its keyword words; leading NAME=value words are environment.
 * A YAML file given with --config is read from disk. Nothing of `words` is kept: all is copied to the arena. `table` must
 * live as long as the command may be changed.
 * What the engine's parser would stop at is no failure: it is kept in `refusal`. */
oomsight_status oos_serve_read_as(const oos_dialect *dialect, oos_arena *arena, const char *const *words,
                                  size_t word_count, const oos_flag_table *table, oos_version version,
                                  oos_serve *ret_serve, oos_engine_env *ret_env, oomsight_error *reterr);

/* Whole numbers as the engine's parser takes them; false: not one. */
bool oos_serve_int(const oos_flag_form *form, const char *text, bool *ret_negative, uint64_t *ret_value);

/* A variable as it was given last; NULL: it was not. */
const oos_given_variable *oos_engine_env_given(const oos_engine_env *env, const char *name);

/* A flag as it was given last, by its canonical spelling; NULL: it was not. */
const oos_given_flag *oos_serve_given(const oos_serve *serve, const char *flag);

/* The words of a command put together for a shell to take apart again. */
void oos_serve_quote(oos_text *text, const char *word);
/* A shell takes it as it is, without quotation. */
bool oos_serve_is_plain(const char *word);

/* The whole command with other flags: those of `change` in place of the user's own, `without` left out (both may be NULL).
 * Quoted for a shell and fit to be shown: secrets are `***`. `words` are those that were read; those before `from` are left
 * out. NULL: no memory. */
const char *oos_serve_whole(oos_arena *arena, const char *const *words, size_t word_count, size_t from,
                            const oos_serve *serve, const char *const *change, size_t change_count,
                            const char *const *without, size_t without_count);

/* The words with another model in the place of the command's own. NULL: it does not stand among them, or there is no memory. */
const char *const *oos_serve_with_model(oos_arena *arena, const char *const *words, size_t word_count,
                                        const oos_serve *serve, const char *model);

/* A changed command, for planning again: `flag` left out, or its whole number set as the last word. The words are read again,
 * so that everything the flag had its part in is as the engine would find it. Where there are no words the fields are changed.
 * False: it cannot be done, or there is no memory. */
bool oos_serve_leave_out(oos_arena *arena, oos_serve *serve, const char *flag);
bool oos_serve_set_u64(oos_arena *arena, oos_serve *serve, const char *flag, uint64_t value);
bool oos_serve_give(oos_arena *arena, oos_serve *serve, const char *flag,
                    const char *text); /* NULL: a switch */

#endif
