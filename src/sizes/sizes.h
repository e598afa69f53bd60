#pragma once
#include "facts/facts.h"
#include "ledger/ledger.h"
#include "model/model.h"

/* The device every rank sees, as its table or the caller describes it. */

typedef struct oos_device_facts {
    const char *name;
    unsigned capability;                         /* 90 */
    unsigned sms;                                /* 0: unknown */
    uint64_t total_bytes, total_low, total_high; /* what cudaMemGetInfo shows */
    uint64_t nvml_total_bytes;                   /* what NVML shows: the whole card under a slice */
    uint64_t used_bytes;                         /* held by others */
    bool used_known;                             /* it was said, if only as 0 */
    oos_driver_costs costs;
    uint64_t count;
    uint64_t host_bytes; /* RAM of the machine, 0: not told */
    bool count_given;    /* "h100x1": these and no more; a name alone is as many as the command needs */
    bool unified;
} oos_device_facts;

/* `count` devices of a model that is known, empty. `gpu` NULL: nothing is known but what the caller fills in. */
oos_device_facts oos_device_of_gpu(const oos_gpu *gpu, uint64_t count, uint64_t host_bytes);

/* What a release that was not read may take more of a device than the newest that was, and less. vLLM 0.33.0 takes 1.2 GiB more of an H100
 * than 0.32.0, a 64th of it: that for each release, up to eight. */
typedef struct oos_drift {
    uint64_t more, less;
} oos_drift;
oos_drift oos_device_drift(const oos_device_facts *device, unsigned beyond);

/* What lies outside PyTorch on it. */
oos_driver oos_device_driver(const oos_device_facts *device, uint64_t torch_minor);

/* A forward step of one rank: so many tokens of so many requests through so many layers. An engine fills oos_forward with what it has
 * resolved; activations, what stays behind, communicators and the growth outside of PyTorch follow from it, the same for every engine.
 * Nothing here knows a flag, a release or a variable. */

/* What the kernels of expert layers hold beside the layer's input and output, in columns of topk rows (I: inner width, H: hidden). */
typedef enum oos_expert_kernel {
    OOS_EXPERTS_CALL,    /* I and max(2I, H), given back */
    OOS_EXPERTS_CACHES,  /* max(I, H) and max(2I, H), kept for the next call */
    OOS_EXPERTS_OPENAI,  /* activated and final rows */
    OOS_EXPERTS_CUTLASS, /* the two caches, the permuted input, the rows put back in order */
    OOS_EXPERTS_FLASH,   /* permuted input, both halves and their product, output */
    OOS_EXPERTS_TRTLLM   /* product and output */
} oos_expert_kernel;

/* One workspace for kernels that run one after another; as large as the largest that asked, and kept. */
typedef struct oos_workspace {
    uint64_t built; /* asked for while the layers are built: part of what loading took */
    uint64_t
        indexer; /* asked for in the step: by the indexer of sparse attention, or for states that are kept in passing */
    uint64_t logits; /* the indexer's logits, there for a moment of it */
} oos_workspace;

/* How tokens are drawn behind the last layer. */
typedef struct oos_forward_sampler {
    bool gathers; /* the parts of all ranks are put side by side, and no second copy of the rows is made */
    bool widens;  /* ... then copied to fp32 */
    bool sorts, open;         /* the whole row is sorted; `open`: whether it does is not known */
    bool few_apart;           /* fewer than 128 rows are sorted as one long row */
    uint64_t rejection_bytes; /* of a logit, where drafts are rejected or taken; 0: there are none */
    uint64_t profiled_bytes; /* of a logit beside the model's type, where every option is tried; 0: none is */
    uint64_t
        learned_logit; /* thousandths of a byte for a logit, as measured: instead of what is known of it; 0: not measured */
    uint64_t warm_rows, warm_copies; /* a warm-up with the cache there; 0: none */
    uint64_t chunk_bytes;            /* of its logits in fp32 that are worked on at once; 0: all */
    uint64_t kept_rows;              /* rows of the vocabulary in fp32 that stay */
} oos_forward_sampler;

/* The largest images and videos a step may bring. */
typedef struct oos_forward_media {
    bool runs;                          /* the encoder is built and tried */
    oos_u64 images, videos, max_pixels; /* of a request; not known: the engine's own limit */
    uint64_t images_most;               /* that limit */
    bool cast, released;        /* pixels come in the model's type; they are gone when the decoder runs */
    bool embeds_only;           /* words around an image claim nothing */
    bool widened;               /* outputs are padded to the encoder's budget */
    uint64_t rotation;          /* how queries and keys are turned: rows of a table in encoder.c */
    bool frames_together;       /* frames run as many as fit at once */
    bool beside_image, stamped; /* a video leaves room for an image; its time stamps count */
    uint64_t frames;            /* of a video, at most */
} oos_forward_media;

/* A compiler that runs in the first step of a start. */
typedef struct oos_forward_compile {
    bool here, cold, open;        /* it may run; it does; whether it does is not known */
    uint64_t copies, copies_most; /* of the embedding that it makes */
} oos_forward_compile;

typedef struct oos_forward {
    const oos_model *model;
    const oos_device_facts *device;
    uint64_t torch_minor;
    /* the cut */
    uint64_t tp, pp, dp, ep;
    bool first, last;      /* pipeline stage with the embedding, with the logits */
    uint64_t layer, count; /* its decoder layers: [layer, layer + count) */
    /* the rows */
    uint64_t tokens;   /* of the step */
    uint64_t requests; /* whose logits are computed in it */
    uint64_t slots;    /* requests at once, at most */
    uint64_t length;   /* tokens of the longest request */
    uint64_t context;  /* tokens whose keys and values latent attention unfolds at once; 0: none */
    oos_dtype dtype;
    /* how it runs */
    bool compiled; /* what is no longer needed is dropped at once */
    oos_expert_kernel experts;
    uint64_t expert_rows; /* that go through the kernels at once; 0: all */
    oos_workspace shared;
    bool drafts;           /* the model's own drafter runs after its layers */
    uint64_t runner_bytes; /* input rows and tables that the runner keeps */
    oos_forward_sampler sampler;
    oos_forward_media media;
    oos_forward_compile compile;
    /* outside of PyTorch */
    bool cublas_early;              /* its workspace is there before the engine looks at what is free */
    uint64_t early_more, kept_more; /* what else is: by then, and behind the profile run */
    uint64_t communicators;         /* groups of ranks that get one */
    bool communicators_early;       /* before the engine looks at what is free */
    uint64_t serving_workspace;     /* of attention, taken when it serves */
    oos_constant more_kernels,
        more_spill; /* what a release takes beyond the usual: images, local memory of its kernels */
    uint64_t more_collectives; /* ... buffers of its first all-reduce */
    bool mxfp4_swizzled;       /* experts in MXFP4 have their layout on every PyTorch */
} oos_forward;

/* Bytes above the weights in the layers of a stage. */
typedef struct oos_layer_peak {
    uint64_t moment; /* busiest instant of any layer, without what stays */
    uint64_t peak; /* the same in the order of the layers, with the expert workspace from when it is there */
    uint64_t workspace; /* the expert kernels' buffers, when they are kept from call to call */
    bool cublas; /* some product in the layers is not quantised, so that cuBLAS has its workspace by then */
} oos_layer_peak;

/* `forward`, `sampler` and `encoder` are moments on top of `retained`; `peak` has everything in it. */
typedef struct oos_activation {
    oos_amount forward, sampler, warmup, encoder, encoder_cache, peak, retained, persistent;
    uint64_t compile_bytes; /* what a cold compile cache makes of the peak; 0: it is not larger */
    oos_layer_peak layers;  /* what the figures are made of */
} oos_activation;

/* Outside of PyTorch's allocator. */
typedef struct oos_outside {
    oos_amount context, nccl;
    oos_amount profile_growth; /* kernels and workspaces loaded by the first steps */
    oos_amount runtime_growth; /* ... and by serving */
    const char *runtime_cause; /* an engine's own, where it is more than the usual; NULL */
} oos_outside;

/* Captured steps. How many and of what is the engine's. */
typedef struct oos_graphs {
    oos_amount taken;       /* pool and driver objects */
    oos_amount estimate;    /* what the engine measures of it beforehand; 0 bytes where it does not */
    oos_amount not_printed; /* what goes back inside the stretch that is measured */
} oos_graphs;

void oos_forward_activation(const oos_forward *step, oos_activation *ret_activation);
/* Of a step that differs in the compiler or the sampler alone: the layers are the same. */
void oos_forward_activation_again(const oos_forward *step, oos_layer_peak layers,
                                  oos_activation *ret_activation);
void oos_forward_outside(const oos_forward *step, oos_outside *ret_outside);

oos_quant_kind oos_expert_quant(const oos_model *model); /* of the experts, or of the rest */
uint64_t oos_forward_cublas(const oos_forward *step);    /* PyTorch hands it one workspace and keeps it */

/* What the shared workspace adds in a step when `asked` is the largest of it. */
static inline uint64_t oos_workspace_grown(const oos_workspace *workspace, uint64_t asked)
{
    return asked > workspace->built ? asked : 0;
}

/* One rank of a model: how the model is cut over devices, and what an engine does with its tensors. An engine fills it; what is counted
 * from it is the same for every engine. */

enum { OOS_END_EMBED = 1, OOS_END_NORM = 2, OOS_END_HEAD = 4 };

/* What an engine and its release do with tensors. All zero is a plain PyTorch program of the oldest release. */
typedef struct oos_weight_ways {
    const char *quantization, *load_format; /* asked for; NULL: the checkpoint's own */
    double offload_gib;                     /* of weights that stay in host memory */
    bool expandable_segments;               /* of PyTorch's allocator */
    uint64_t torch_minor;                   /* UINT64_MAX: the newest */
    uint64_t split_limit_bytes; /* the allocator does not split blocks of this size on; 0: no limit */
    uint64_t awq_unpacks; /* 1: to 32 bits each while Marlin's are made; 2: also where "awq" is asked for */
    bool mxfp4_by_triton, mxfp4_keeps_scales, mxfp4_pads_values, mxfp4_copies_scales;
    bool fp8_blocks_by_marlin; /* also on 8.9, which has FP8 arithmetic */
    bool bnb_nests_constants;  /* bitsandbytes: constants that are quantised again stay so */
    uint64_t
        online_quantisation;    /* 0: beside what stays, the rest of the model; 1: all of it; 2: one layer */
    bool head_untied;           /* a head that only the class of a wrapper ties is a tensor of its own */
    bool shared_layers_keep_kv; /* layers that read the cache of another have keys and values all the same */
    bool mrope_fourfold;        /* tables of sectioned rotary embeddings are four times as long */
    uint64_t attention_scales;  /* fp32 scales of each attention layer, a tensor each */
    bool qkv_ranges;            /* three constants of each attention layer are on the device */
    bool lora_on_experts, lora_sharded;
    const char *draft_method; /* "eagle", "eagle3", ...; NULL: by the model */
    bool draft_whole;         /* embedding and head of a drafter are its own until the cache is allocated */
    bool no_head;             /* a pooler runs in the place of it */
    bool tower_first;         /* the encoder is built on the first stage alone */
    uint64_t ends_everywhere; /* OOS_END_...: what is built on every stage */
} oos_weight_ways;

typedef struct oos_shard {
    const oos_model *model;
    const oos_model *draft;    /* NULL: none, or layers of the model's own */
    uint64_t tp, pp, dp, ep;   /* ep: 1 without expert parallelism */
    uint64_t draft_tp;         /* 0: as the model */
    const char *layers_given;  /* of each stage: "20,22,22"; NULL: even shares */
    unsigned capability;       /* of the device: 90 */
    oos_dtype dtype;           /* activations and unquantised weights */
    bool multimodal;           /* the encoder is built */
    uint64_t mtp_layers;       /* layers of the model's own drafter */
    uint64_t loras, lora_rank; /* slots for adapters */
    uint64_t batch_tokens;
    oos_weight_ways ways;
} oos_shard;

/* Whether a matrix before the layers, or behind them, is built on that stage. */
bool oos_shard_begins(const oos_shard *shard, uint64_t stage);
bool oos_shard_ends(const oos_shard *shard, uint64_t stage, const oos_matrix *matrix);

/* Layers of pipeline stage `stage`: [*ret_first, *ret_first + count). */
uint64_t oos_shard_layers(const oos_shard *shard, uint64_t stage, uint64_t *ret_first);

/* What a layer keeps of a request between steps where it does not keep its tokens: a window of its convolution, and a state. */
typedef struct oos_layer_state {
    uint64_t rows, channels; /* of the convolution: its window less one, on one rank */
    uint64_t elements;       /* of the recurrent state */
} oos_layer_state;

/* On one of `tp` ranks; all 0 for a layer that keeps tokens. */
oos_layer_state oos_layer_state_of(const oos_attention *attention, uint64_t tp);

/* The tensors of one matrix on one rank: its cut over ranks, what its quantisation stores, and what becomes of it once
 * it is loaded. Used by weights*.c. */

/* What decides about a cut. Filled once per plan. */
typedef struct oos_cut {
    uint64_t tp, expert_tp, ep;
    uint64_t dtype_bytes;
    unsigned capability;
    bool online_fp8;       /* weights that are not quantised become FP8 while loading */
    bool online_bnb;       /* ... or bitsandbytes' 4 bits */
    bool unquantised;      /* the checkpoint's scheme is not applied: nothing the engine knows asks for it */
    bool marlin_blocks;    /* linear layers in block FP8 go through Marlin */
    bool triton_mxfp4;     /* experts in MXFP4 are padded for Triton's kernel on Hopper, or anywhere */
    bool wide_mxfp4_bias;  /* and have biases in fp32 after loading */
    bool swizzled_mxfp4;   /* experts in MXFP4 go through Triton's Hopper layout */
    bool keeps_scales;     /* ... and the scales they came with stay */
    bool pads_values;      /* ... whose tiles are 256 rows by 128 columns */
    bool copies_scales;    /* below 9.0 Triton's layout is theirs, and they are copied into it all the same */
    bool nested_constants; /* bitsandbytes: constants that are quantised again stay so */
    bool unpacks_awq;      /* while it is repacked for Marlin */
    uint64_t split_limit;  /* the allocator does not split blocks of this size on; 0: no limit */
    bool exact_blocks;     /* expandable segments: no rounding beyond 512 */
} oos_cut;

oos_cut oos_cut_of(const oos_shard *shard);

/* The part of a matrix that one rank holds. */
typedef struct oos_piece {
    uint64_t rows, columns, count; /* count: experts */
} oos_piece;

oos_piece oos_piece_of(const oos_cut *cut, const oos_matrix *matrix, const oos_quant *quant);

enum { OOS_TENSORS_MAX = 8 };

/* As created: parameters before process_weights_after_loading. As loaded: what stays after it. Returns their number. */
size_t oos_tensors_created(const oos_cut *cut, const oos_matrix *matrix, const oos_quant *quant,
                           uint64_t ret_bytes[OOS_TENSORS_MAX]);
size_t oos_tensors_loaded(const oos_cut *cut, const oos_matrix *matrix, const oos_quant *quant,
                          uint64_t ret_bytes[OOS_TENSORS_MAX]);
/* Whether the two lists can differ. */
bool oos_tensors_change(const oos_cut *cut, const oos_matrix *matrix, const oos_quant *quant);

/* A linear layer that is quantised while it is loaded, where that is asked for. */
bool oos_is_made_online(const oos_matrix *matrix, const oos_quant *quant);

/* Repacked for its kernel: a second copy is alive meanwhile. */
bool oos_is_repacked(const oos_cut *cut, const oos_matrix *matrix, const oos_quant *quant);

/* What is alive beside the matrix meanwhile, whose largest tensor has this many bytes; 0: it is not repacked. */
uint64_t oos_repack_bytes(const oos_cut *cut, const oos_matrix *matrix, const oos_quant *quant,
                          uint64_t largest);

/* What the caching allocator counts for a tensor beyond its bytes. */
uint64_t oos_block_waste(const oos_cut *cut, uint64_t bytes);

/* LoRA slots: the engine allocates room for max_loras adapters of max_lora_rank beside every linear layer. */

uint64_t oos_lora_bytes(const oos_shard *shard, const oos_cut *cut, uint64_t stage);

/* The first parameter for which there is no room: the number in the engine's message when loading fails. */

/* Bytes of the segment that is asked for and refused when the parameters of a stage are created in `room_bytes`; 0 when
 * all of them fit, or when the order is not known (parts of them in host memory). */
uint64_t oos_weights_tried(const oos_shard *shard, uint64_t stage, uint64_t room_bytes);

/* A rotary table, made with the first layer; `later_bytes` (0: none) takes its place when all is there. */
typedef struct oos_weights_table {
    uint64_t bytes, later_bytes;
} oos_weights_table;

enum { OOS_WEIGHTS_TABLES = 8 };

/* Free rests of the segments that hold the parameters of a stage when there is room for all: of no use to a large tensor, and not free for
 * who asks the device. False: the order is not known. */
bool oos_weights_cached(const oos_shard *shard, uint64_t stage, const oos_weights_table *tables,
                        size_t table_count, uint64_t *ret_bytes);

/* What blocks of layers that are quantised as each is made have beyond their bytes: freed blocks are taken that are up to 20 MiB too large.
 * *ret_alone: the same where each had a block of its own. Both 0 where it is not done so. */
uint64_t oos_weights_online_waste(const oos_shard *shard, uint64_t stage, uint64_t *ret_alone);

/* Weights of one rank: exact arithmetic on the model's matrices, the parallel sizes and the quantisation. */

typedef struct oos_weight_part {
    const char *module; /* "experts", "attn", ... */
    uint64_t bytes;
} oos_weight_part;

enum { OOS_WEIGHT_PARTS_MAX = 16 };

typedef struct oos_weights {
    uint64_t param_bytes; /* parameters as the engine creates them, before process_weights_after_loading */
    uint64_t draft_param_bytes; /* MTP, EAGLE or draft model, without what is shared with the target */
    uint64_t buffer_bytes;      /* rotary tables, scales, expert maps */
    uint64_t lora_bytes;
    uint64_t
        offloaded_bytes; /* parameters that stay in host memory (--cpu-offload-gb): not in loaded_bytes */
    int64_t
        after_load_bytes; /* what repacking adds (MLA copies, padding) or takes away (online quantisation) */
    uint64_t load_transient_bytes;   /* largest second copy alive during copy-in (online quantisation) */
    uint64_t repack_transient_bytes; /* largest temporary of process_weights_after_loading */
    uint64_t loaded_bytes;           /* what "Model loading took" prints: the sum of the above that stays */
    oos_source source;               /* derived, read (headers), or estimated (unknown architecture) */
    uint64_t loaded_low, loaded_high;
    const char *note; /* what had to be decided, NULL */
    oos_weight_part parts[OOS_WEIGHT_PARTS_MAX];
    size_t part_count;
} oos_weights;

/* Rank 0 of pipeline stage `stage`. */
oomsight_status oos_weights_of_stage(oos_arena *arena, const oos_shard *shard, uint64_t stage,
                                     oos_weights *ret_weights, oomsight_error *reterr);

/* Workspace that layers take when they are built counts as loaded. */
static inline void oos_weights_add_built(oos_weights *weights, uint64_t bytes)
{
    weights->buffer_bytes = oos_add(weights->buffer_bytes, bytes);
    weights->loaded_bytes = oos_add(weights->loaded_bytes, bytes);
    weights->loaded_low = oos_add(weights->loaded_low, bytes);
    weights->loaded_high = oos_add(weights->loaded_high, bytes);
}

static inline void oos_weights_leave_built(oos_weights *weights, uint64_t bytes)
{
    weights->buffer_bytes = oos_sub(weights->buffer_bytes, bytes);
    weights->loaded_bytes = oos_sub(weights->loaded_bytes, bytes);
    weights->loaded_low = oos_sub(weights->loaded_low, bytes);
    weights->loaded_high = oos_sub(weights->loaded_high, bytes);
}

/* What stays after loading, as a row. */
oos_amount oos_weights_amount(const oos_weights *weights);
