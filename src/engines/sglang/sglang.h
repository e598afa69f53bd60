#pragma once
#include "engines/engines.h"
#include "plan/plan.h"

/* SGLang: weights and KV pool share a fraction of what is free before loading, and nothing is profiled. The files of this folder share
 * this: what a command asks for, and what the engine makes of it. Read in 0.5.23. */

typedef struct sglang_rules {
    oos_version version;
    const oos_argument_facts *facts;
    const oos_refusals *refusals;
#define REAL(name) double name;
#define WHOLE(name) uint64_t name;
#define YES(name) bool name;
#include "engines/sglang/rules.def"
#undef REAL
#undef WHOLE
#undef YES
} sglang_rules;

extern const oos_rule_place oos_sglang_rule_places[];
extern const size_t oos_sglang_rule_place_count;
extern const oos_dialect oos_sglang_dialect;

/* What the command asks for. A lever of the search changes this. */
typedef struct sglang_request {
    uint64_t tp, pp, dp, ep;
    uint64_t nodes, base, step;           /* --nnodes, --base-gpu-id, --gpu-id-step */
    bool override_broken;                 /* --json-model-override-args is no JSON */
    oos_f64 fraction;                     /* --mem-fraction-static */
    oos_u64 context, requests;            /* --context-length, --max-running-requests */
    oos_u64 tokens_most;                  /* --max-total-tokens */
    oos_u64 chunk;                        /* --chunked-prefill-size; 0: prefill is not cut */
    bool chunk_negative;                  /* ... because a negative number is given */
    uint64_t prefill_most;                /* --max-prefill-tokens */
    uint64_t page;                        /* --page-size */
    oos_u64 decode_batch, prefill_tokens; /* largest captured, --cuda-graph-max-bs-decode and -prefill */
    oos_u64 decode_sizes, prefill_sizes;  /* how many are named one by one */
    bool decode_off, prefill_off, every_batch, swa_off;
    bool replicated;                /* attention, between `dp` of the ranks of `tp` */
    bool head_replicated;           /* ... and the head */
    const char *drafter;            /* --speculative-algorithm; NULL: none */
    bool prefill_only, decode_only; /* --disaggregation-mode */
    oos_u64 extra_slots;   /* --disaggregation-decode-extra-slots: of requests that are on their way */
    uint64_t draft_tokens; /* --speculative-num-draft-tokens, 1 without */
    bool draft_tokens_given;
    oos_u64 steps, branches;  /* --speculative-num-steps, --speculative-eagle-topk */
    bool prefill_named;       /* --cuda-graph-backend-prefill, and not "disabled" */
    bool prefill_asked;       /* --enable-piecewise-cuda-graph */
    bool decode_idle;         /* a server of prefill, whose decode backend is not named */
    bool prefill_blocked;     /* by a flag that one of its backends does not take */
    bool eager;               /* --disable-cuda-graph */
    const char *decode_words; /* sizes named one by one, as they stand there */
    oos_u64 decode_asked;     /* the largest, whatever is named */
    bool sliding_by_requests; /* --disable-radix-cache and a number of requests */
    double swa_ratio;
    bool swa_given;
    bool rows_uniform;          /* --dsv4-attn-backend trtllm: rows in fp8 without scales */
    oos_u64 states_most;        /* --max-mamba-cache-size */
    double state_share;         /* --mamba-full-memory-ratio: of states to the cache of tokens */
    const char *state_dtype;    /* --mamba-ssm-dtype */
    const char *state_strategy; /* --mamba-radix-cache-strategy */
    const char *linear_backend; /* --linear-attn-backend */
    bool radix_off, overlap_off;
    bool images_on, images_off;   /* --enable-multimodal; --language-only and --language-model-only */
    const char *images_transport; /* --mm-feature-transport */
    const char *dtype, *kv_dtype, *quantization, *load_format, *attention;
    const char *experts_runner;                 /* --moe-runner-backend; NULL: the usual one */
    const char *sparse_prefill, *sparse_decode; /* --dsa-prefill-backend, --dsa-decode-backend */
    uint64_t adapters;                          /* slots for them; 0: none are taken */
    oos_u64 adapter_rank;                       /* --max-lora-rank */
    unsigned adapter_modules;                   /* --lora-target-modules; 0: those of the files */
    bool deterministic;                         /* --enable-deterministic-inference */
    bool hierarchical; /* --enable-hierarchical-cache: a pool in host memory beside that of the device */
    oos_f64 host_ratio, host_gb; /* ... of so many of its tokens; of so much on each rank, as 10^9 bytes */
    bool release_unread;         /* the release lies between two that were read */
    bool release_early;     /* ... or before the first: states, images and draft models were not read there */
    const char *unread;     /* a mechanism that nobody has read here, as a sentence; NULL: none */
    const oos_exact *exact; /* resolved by the installed engine; NULL: here */
} sglang_request;

/* What the engine resolves of it. */
typedef struct sglang_setup {
    const sglang_request *request;
    const sglang_rules *rules;
    uint64_t device_mib;
    uint64_t chunk;                       /* tokens of a prefill step */
    uint64_t batch_unnamed;               /* the largest captured batch, were no sizes named */
    uint64_t decode_batch, decode_graphs; /* largest, and how many; 0 graphs: not captured */
    uint64_t prefill_tokens, prefill_graphs;
    bool prefill_captured; /* prefill is to be captured, be it in no size at all */
    double reserve_mib, fraction;
    bool images; /* taken */
    uint64_t
        images_mib; /* kept out of the pool for what is allocated after it: embeddings, features on their way */
} sglang_setup;

/* A start: what of it sizes and phases follow from. */
typedef struct sglang_start {
    const oos_start *asked;
    const oos_model *model;
    const oos_engine_env *env;
    const sglang_rules *rules;
    oos_device_facts device;
    const char *quantization, *load_format, *kv_dtype_word;
    uint64_t tp, dp, ep, attention_tp; /* the last: ranks that one attention is split over */
    uint64_t pp, stage;                /* stages of the pipeline, and the one whose device is planned */
    const char *stage_layers;          /* of each stage, "14,14" */
    uint64_t first_layer, last_layer;  /* of the stage: [first, last) */
    oos_dtype dtype;
    bool kv_fp8;
    uint64_t context_length, max_running_requests, chunk_tokens;
    double static_fraction;
    bool eager, multimodal, head_replicated;
    uint64_t page;
    uint64_t capture_top, capture_count;
} sglang_start;

static inline const sglang_start *sglang_of(const oos_plan *plan)
{
    return plan->detail;
}

/* The rule `sparse_index`: whose keys are counted; 0: nobody's. */
enum { SPARSE_ALL_LAYERS = 1, SPARSE_WITH_INDEXER = 2 };

/* The pool of a model: bytes of a token over the layers of a rank. */
typedef struct sglang_pool {
    uint64_t full_bytes,
        sliding_bytes;    /* of a token: layers that keep all of them, and layers with a window */
    uint64_t layers;      /* with a cache */
    uint64_t window;      /* 0: one pool for all */
    uint64_t index_bytes; /* of a token in a layer with an indexer: counted apart for layers that draft */
    double cell;          /* bytes that a token of the pool takes, sliding layers by their share */
    uint64_t fixed_bytes; /* of requests, however many tokens there are */
    uint64_t paged;       /* compressed attention: tokens of its pages; 0: another pool */
    double held;          /* ... what a token of it takes when it is allocated */
    const char *unread;   /* as above */
} sglang_pool;

/* The pool of recurrent states: slots that requests and cached prefixes share. No layers: there is none. */
typedef struct sglang_states {
    uint64_t layers, slot_bytes; /* of a rank */
    uint64_t per_request;        /* slots */
    uint64_t slots, bytes;       /* what was taken, with a slot for padding and the states of drafts */
    const char *unread;          /* as above */
} sglang_states;

/* Who drafts, and what it holds. */
typedef struct sglang_drafts {
    bool present, own;  /* own: layers of the checkpoint itself */
    bool counted;       /* its cache is part of a token's bytes when the pool is sized */
    const char *method; /* NULL: no model does */
    uint64_t tokens;    /* verified at once */
    uint64_t layers, token_bytes;
    const char *unread;
} sglang_drafts;

/* adapters.c: slots of LoRA adapters on a rank, and why they are not known (NULL: they are). */
unsigned oos_sglang_adapter_modules(const char *words);
uint64_t oos_sglang_adapter_bytes(const sglang_request *request, const sglang_start *setup);
const char *oos_sglang_adapters_unread(const sglang_request *request, const oos_model *model);

sglang_drafts oos_sglang_drafts_of(const sglang_request *request, const sglang_start *setup);

/* Of one token in one layer; false: not a cache that was read. */
bool oos_sglang_layer_bytes(const sglang_start *setup, const oos_attention *attention, uint64_t *ret_bytes,
                            bool *ret_sliding);

sglang_states oos_sglang_states_of(const sglang_request *request, const sglang_start *setup);
/* Of `left` bytes; returns what is left for tokens. */
double oos_sglang_states_take(const sglang_request *request, const sglang_rules *rules,
                              const sglang_drafts *drafts, sglang_states *states, double left);

uint64_t oos_sglang_reach(const sglang_request *request); /* devices that a machine must have for its ranks */
void oos_sglang_request_read(oos_arena *arena, const oos_serve *serve, sglang_request *ret_request);
void oos_sglang_resolve(const sglang_request *request, const sglang_rules *rules, const oos_start *start,
                        sglang_setup *ret_setup);
/* attention.c: the kernels, and what they keep beside the pool; for captured batches: their sizes, rows of the largest, tokens of a row. */
const char *oos_sglang_attention(const sglang_request *request, const sglang_start *setup);
uint64_t oos_sglang_attention_bytes(const sglang_request *request, const sglang_start *setup);
uint64_t oos_sglang_captured_bytes(const sglang_request *request, const sglang_start *setup, uint64_t sizes,
                                   uint64_t rows, uint64_t row_tokens);
uint64_t oos_sglang_page_of(const sglang_request *request, const oos_model *model);
/* compressed.c */
bool oos_sglang_is_compressed(const oos_model *model);
uint64_t oos_sglang_compressed_page(void);
uint64_t oos_sglang_wide_scales(const sglang_request *request, const sglang_start *setup,
                                uint64_t expert_bytes);
uint64_t oos_sglang_compressed_tables(const sglang_start *setup); /* bytes of rotary tables, but one */
sglang_pool oos_sglang_compressed_of(const sglang_request *request, const sglang_start *setup);
/* At once: asked for, or set by the engine before it looks at the pool. */
oos_u64 oos_sglang_requests_asked(const sglang_request *request, const oos_model *model);
sglang_pool oos_sglang_pool_of(const sglang_request *request, const sglang_start *setup);

/* exact.c: what the installed engine says of it. `drafted`: weights of drafts are among ours, and not among its; false: it has not built the
 * model. */
void oos_sglang_take_asked(const oos_exact *exact, sglang_request *request);
void oos_sglang_take_resolved(const oos_exact *exact, sglang_setup *setup);
bool oos_sglang_take_built(const oos_exact *exact, bool drafted, oos_weights *weights, sglang_pool *pool);

/* The numbers of generate_*_cuda_graph_batch_sizes() up to `most`; with a drafter they are closer. */
uint64_t oos_sglang_decode_sizes(const sglang_rules *rules, uint64_t most, bool drafted, uint64_t *ret_list,
                                 size_t capacity);
uint64_t oos_sglang_prefill_sizes(const sglang_rules *rules, uint64_t most);

/* The engine's sentence when it refuses the command before it looks at memory. */
extern const oos_refusal_names oos_sglang_refusal_names;
oomsight_status oos_sglang_refuse(oos_arena *arena, const oos_start *start, const sglang_request *request,
                                  const sglang_setup *setup, oos_refusal *ret_refusal,
                                  oomsight_error *reterr);

oomsight_status oos_sglang_plan(oos_arena *arena, const oos_start *start, const sglang_rules *rules,
                                const sglang_request *request, oos_plan *ret_plan, oomsight_error *reterr);
oomsight_status oos_sglang_solve(oos_arena *arena, oos_arena *scratch, const oos_start *start,
                                 const oos_engine_facts *facts, const oos_gpus *gpus, oos_plan *plan,
                                 oomsight_error *reterr);

oomsight_status oos_sglang_choose(oos_arena *arena, oos_arena *scratch, const oos_start *start,
                                  const oos_engine_facts *facts, const oos_gpus *gpus, oos_plan *plan,
                                  oomsight_error *reterr);

bool oos_sglang_logged(oos_arena *arena, const oos_flag_table *flags, const char *text,
                       oos_logged_command *ret_command);

/* What helps SGLang, in parts: solve.c has its stages, solve_points.c its levers and plans a point, solve_say.c puts an answer into words, solve_elsewhere.c looks at other releases and other GPUs. */

/* In the order in which they are tried, the cheapest first. */
typedef enum sglang_lever {
    LEVER_CHUNK,
    LEVER_GRAPHS,
    LEVER_REQUESTS,
    LEVER_ADAPTERS,
    LEVER_CONTEXT,
    LEVER_KV,
    LEVER_PARALLEL,
    LEVER_WEIGHTS,
    LEVER_EAGER,
    LEVERS
} sglang_lever;

enum { FIXES_MAX = 4, VALUES_MAX = 12 };
enum { SGLANG_DRAFTED_REQUESTS = 48 };          /* at once, where something drafts and no number is given */
enum { REQUESTS_FEW = 32, REQUESTS_LEAST = 4 }; /* at once: before and after what is asked for goes */

typedef struct sglang_search {
    oos_search base;
    oos_search_facts asked;
    const oos_start *start;
    const oos_engine_facts *facts;
    const oos_gpus *gpus;
    const sglang_rules *rules;
    sglang_request request; /* as it is */
    oos_u64 mended;         /* the context length in place of one that the engine refuses: in every answer */
    bool unknown_too;       /* a GPU that holds the weights, where nobody can tell whether it starts */
} sglang_search;

extern const oos_lever_words oos_sglang_levers[LEVERS];

/* Planned at a point. Too small: the pool. Too large: what comes after the pool does not fit. */
oos_side oos_sglang_try(sglang_search *s, const oos_levers *levers, const oos_point *p, oos_plan *ret_plan);

void oos_sglang_tell(const oos_plan *plan, oos_trial *ret_trial);

/* A share in thousandths as the flag says it: two digits, rounded down. */
static inline double sglang_share_said(uint64_t share)
{
    uint64_t const hundredths = share / 10;
    return (double)hundredths / 100;
}

/* The share of a command as it is, and where another is looked for. */
void oos_sglang_share_bounds(const sglang_search *s, oos_levers *levers);

/* What the search asks of the engine: see oos_lever_table. */
oos_side oos_sglang_point_plan(oos_search *s, const oos_levers *levers, const oos_point *p,
                               oos_trial *ret_trial);
bool oos_sglang_levers_of(oos_search *s, const oos_stage *at, oos_levers *ret_levers);
bool oos_sglang_starts_with(oos_search *s, oos_version version, oos_trial *ret_trial);
bool oos_sglang_offer(oos_search *s, const oos_levers *levers, const oos_answer *answer);

/* The rest return false when memory runs out. */
oos_elsewhere oos_sglang_elsewhere(sglang_search *s);
bool oos_sglang_needs_find(sglang_search *s, const oos_needs **ret_needs);
