/* A model as an engine would build it: its layers, its weight matrices before any sharding, its attention and state
 * geometry, its quantisation. Read from config.json (and hf_quant_config.json); weight file headers, when there, are
 * kept beside it. How a matrix is cut over ranks is said here as a role; the arithmetic of it is plan/'s. */
#ifndef OOS_INPUT_MODEL_H
#define OOS_INPUT_MODEL_H

#include "base/arena.h"
#include "base/error.h"
#include "base/size.h"

typedef enum oos_dtype {
    OOS_DTYPE_UNKNOWN,
    OOS_DTYPE_F32,
    OOS_DTYPE_F16,
    OOS_DTYPE_BF16,
    OOS_DTYPE_F8, /* any one-byte float */
    OOS_DTYPE_I64,
    OOS_DTYPE_I32,
    OOS_DTYPE_I8,
    OOS_DTYPE_U8
} oos_dtype;

uint64_t oos_dtype_bytes(oos_dtype dtype);  /* 0 for unknown */
oos_dtype oos_dtype_find(const char *word); /* "bfloat16", "torch.float16", "half", "F8_E4M3", ... */
const char *oos_dtype_word(oos_dtype dtype);

/* ---- attention and state --------------------------------------------------------------------------------------- */

typedef enum oos_mixer {
    OOS_MIXER_NONE, /* a layer without tokens mixing (Nemotron-H MLP layers, skipped attention) */
    OOS_MIXER_FULL,
    OOS_MIXER_SLIDING, /* window */
    OOS_MIXER_CHUNKED, /* Llama 4 local attention: window = chunk */
    OOS_MIXER_MLA,     /* latent attention; `indexer_dim` set: sparse (DeepSeek V3.2, GLM-5) */
    OOS_MIXER_CROSS,   /* over encoder states (Mllama, Whisper) */
    OOS_MIXER_MAMBA1,
    OOS_MIXER_MAMBA2,
    OOS_MIXER_GDN,    /* gated delta net (Qwen3-Next, 3.5, 3.6) */
    OOS_MIXER_KDA,    /* Kimi linear attention */
    OOS_MIXER_LINEAR, /* MiniMax lightning attention */
    OOS_MIXER_CONV    /* LFM2 short convolution */
} oos_mixer;

/* One way of mixing tokens. Layers with equal values share one record. Numbers are of the whole model, not of a rank.
 * head_dim_v == head_dim unless the model says otherwise. MLA: kv_heads 1, head_dim kv_lora_rank + rope_dim (what is
 * cached), head_dim_v 0; DeepSeek V4: head_dim is the cached latent, `window` its sliding cache. */
typedef struct oos_attention {
    oos_mixer mixer;
    uint64_t heads, kv_heads, head_dim, head_dim_v;
    uint64_t window; /* sliding window or chunk, 0: none */
    bool sinks;      /* learned attention sinks (gpt-oss) */
    bool shares_kv;  /* reuses the cache of an earlier layer (Gemma 3n/4 E-models): no KV */
    /* MLA */
    uint64_t kv_lora_rank, q_lora_rank, rope_dim, nope_dim, value_dim;
    uint64_t indexer_heads, indexer_dim, indexer_topk; /* sparse attention (MiniMax M3 too); 0: dense, or the
                                                          layer uses the choice of an earlier one */
    uint64_t compress_ratio; /* DeepSeek V4: tokens per cached state, 0: sliding cache only */
    /* recurrent state */
    uint64_t key_heads, value_heads, key_dim, value_dim_state; /* GDN, KDA */
    uint64_t conv_kernel, conv_dim;                            /* convolution window and channels */
    uint64_t state_heads, state_head_dim, state_size, groups;  /* Mamba */
    oos_dtype state_dtype; /* of the recurrent state; UNKNOWN: model dtype */
} oos_attention;

/* ---- weights --------------------------------------------------------------------------------------------------- */

/* What tensor parallelism does to a matrix `out x in`. */
typedef enum oos_split {
    OOS_SPLIT_NONE, /* a full copy on every rank */
    OOS_SPLIT_OUT,  /* column parallel: rows of the output, and the bias, are divided */
    OOS_SPLIT_IN,   /* row parallel: the input is divided, the bias is a full copy */
    OOS_SPLIT_KV,   /* as OUT, but the `kv_out` rows are never divided below one of their `kv_heads` */
    OOS_SPLIT_VOCAB /* rows padded to 64, then divided */
} oos_split;

/* How one group of matrices is quantised. Index 0 of a model is always "not quantised". */
typedef enum oos_quant_kind {
    OOS_QUANT_NONE,
    OOS_QUANT_AWQ,
    OOS_QUANT_GPTQ,
    OOS_QUANT_PACKED_INT, /* compressed-tensors W4A16 / W8A16 */
    OOS_QUANT_INT8,
    OOS_QUANT_FP8_TENSOR,
    OOS_QUANT_FP8_CHANNEL,
    OOS_QUANT_FP8_BLOCK,
    OOS_QUANT_NVFP4,
    OOS_QUANT_MXFP4,
    OOS_QUANT_BNB,
    OOS_QUANT_UNKNOWN,
    OOS_QUANT_MXFP8
} oos_quant_kind;

typedef struct oos_quant {
    oos_quant_kind kind;
    unsigned bits;
    uint64_t group;               /* elements per scale along the input, 0: per channel or tensor */
    uint64_t block_out, block_in; /* FP8 blocks */
    bool symmetric, act_order, dynamic_activation, double_quant;
    bool weight_only; /* activations stay in the model's dtype: no input scale, a Marlin-like kernel */
    bool
        spare_scale; /* weight-only, yet with a placeholder for input scales, dropped after loading (ModelOpt) */
    bool byte_scales; /* block scales of one byte (UE8M0) instead of four */
} oos_quant;

typedef struct oos_matrix {
    const char
        *module;      /* "embed", "lm_head", "attn", "mlp", "experts", "shared_expert", "norm", "vision", ...;
                           one pointer per module */
    const char *name; /* "self_attn.qkv_proj"; for --explain and for quantisation's ignore lists */
    uint64_t out, in; /* in == 1 for vectors */
    uint64_t count;   /* experts, or equal copies */
    uint64_t unit;    /* rows of a rank are padded to a multiple of it, 1: not */
    uint64_t kv_out, kv_heads; /* SPLIT_KV: of `out`, the rows of keys and values (or Mamba groups), and their
                                  heads */
    oos_split split;
    bool bias;
    bool linear; /* a linear layer: quantisation and LoRA apply */
    bool
        unfolds; /* quantised, it is kept once more in the model's dtype (up projection of latent attention) */
    bool expert; /* `count` is divided by expert parallelism instead of the matrix by TP */
    uint8_t
        shards; /* matrices fused into this one (qkv 3, gate_up 2): each has its own per-tensor scale; 0: one */
    uint16_t quant;  /* index into model->quants */
    oos_dtype dtype; /* UNKNOWN: the model's dtype */
} oos_matrix;

typedef struct oos_layer {
    uint32_t attention;                  /* index into model->attentions */
    uint32_t first_matrix, matrix_count; /* into model->matrices; equal layers share a range */
    uint32_t shape;                      /* number of that range, < model->shape_count */
    bool moe;
} oos_layer;

/* ---- the model ------------------------------------------------------------------------------------------------- */

typedef struct oos_moe {
    uint64_t experts, per_token, shared, intermediate, shared_intermediate;
} oos_moe;

typedef struct oos_vision {
    bool present;
    uint64_t depth, hidden, intermediate, heads, patch, temporal_patch, merge, out_hidden, image_size,
        channels;
    uint64_t max_image_tokens; /* tokens of the largest dummy image the engine profiles with, 0: unknown */
    uint64_t deepstack;        /* levels of features that are handed over beside the last one */
    uint64_t
        one_hot_rows; /* of the table of positions, where they are looked up by a one-hot matrix; 0: not so */
} oos_vision;

/* What the code of a class does that its layers do not tell (data/models, "code"). All zero: the usual. */
typedef struct oos_code {
    uint64_t outer;       /* hidden-wide tensors that live through every layer, 0: two */
    uint64_t norm_copies; /* of the hidden state, where the norm is written in PyTorch */
    bool drops_gate_up;   /* the MLP forgets what its first product wrote before the second writes */
    bool output_gate;     /* attention's output is gated */
    bool query_norm_fp32; /* queries are normed and scaled in fp32 */
    bool interleaved_gdn; /* heads of the gated delta net are put in order by copying */
    bool ungated_experts; /* experts write one half only */
    /* the tower, and the largest item of its processor */
    bool rotates;               /* queries and keys of the tower are rotated in PyTorch */
    bool mlp_gated;             /* its MLP has a gate */
    bool learnt_positions;      /* rows of its learnt positions are alive */
    bool frame_pairs;           /* a video is pairs of frames of the size of the largest image */
    uint64_t frame_tokens_most; /* ... which are made smaller, to this many tokens; 0: not */
    uint64_t
        image_tokens; /* of the largest image unless --mm-processor-kwargs says otherwise; 0: by the tower's sizes */
    uint64_t video_tokens; /* of a video, whatever its length; 0: not so */
    uint64_t video_claims; /* what that video claims of the budget for its time stamps; 0: its tokens */
    uint64_t frames, frame_tokens; /* of that video */
    uint64_t around;               /* words around an image */
} oos_code;

typedef struct oos_rope {
    uint64_t max_position; /* rows of the cos/sin table the engine keeps */
    uint64_t rotary_dim;
    double theta, factor;
    const char *type; /* "default", "yarn", ... */
    oos_dtype dtype;  /* of the table; UNKNOWN: the model's */
    bool sections;    /* turns by sections (mrope), in a table of one times the length */
} oos_rope;

/* What the headers of the weight files add up to. Floats of 16 and 32 bits take the engine's dtype when loaded. */
typedef struct oos_header_sum {
    uint64_t floats; /* elements */
    uint64_t other_bytes;
} oos_header_sum;
typedef struct oos_headers {
    bool known;
    oos_header_sum decoder, tower, drafter;
} oos_headers;

typedef struct oos_model {
    const char *path;         /* directory, or the id it was fetched under */
    bool from_catalogue;      /* its sizes are those of data/catalogue.json */
    const char *architecture; /* "LlamaForCausalLM" */
    const char *model_type;
    bool known;  /* false: an architecture we do not know; KV from the common fields, estimated */
    bool common; /* ... and no decoder inside that we know: all of it from the fields most configs share */
    oos_dtype dtype; /* of the checkpoint */
    uint64_t hidden, intermediate, vocab, heads, kv_heads, head_dim;
    uint64_t max_position; /* what the engine derives as the longest max_model_len */
    uint64_t
        max_position_yarn; /* with YaRN, what it derived before 0.30: original length x factor; 0: as above */
    bool max_position_assumed; /* the config states none: any length is taken */
    uint64_t
        stated_length; /* the first length that the text part states, times a rope factor that names no original length */
    uint64_t max_position_default; /* LongRoPE: the shorter default when no length is given; 0: as above */
    bool tied;                     /* lm_head shares the embedding */
    bool tied_by_wrapper;          /* ... only by the default of the wrapper's class */
    bool lora_embeddings;          /* LoRA slots also for embedding and head */
    bool attention_free, hybrid, mla, sparse, pooling, encoder_decoder, multimodal, bidirectional_images;
    oos_moe moe;
    oos_vision vision;
    oos_code code;
    oos_rope rope[4]; /* distinct tables */
    size_t rope_count;

    const oos_layer *layers; /* decoder layers in order */
    uint64_t layer_count;
    const oos_layer
        *mtp_layers; /* multi-token-prediction layers, built only when speculative decoding asks for them */
    size_t mtp_layer_count;
    const oos_attention *attentions;
    size_t attention_count;
    const oos_matrix *matrices;
    size_t matrix_count;
    /* outside the layers: ranges of matrices */
    uint32_t first_stage[2], last_stage[2],
        every_stage[2]; /* {first, count}: embed; final norm + lm_head; positions... */
    uint32_t vision_matrices[2];
    uint32_t
        mtp_matrices[2]; /* of the drafter, outside its layers; what it shares with the model is not listed */
    size_t shape_count;  /* distinct ranges of layer matrices */
    bool vision_first_only; /* the tower is built on the first pipeline stage only */

    const char *quant_method;  /* "compressed-tensors", NULL */
    const char *modelopt_algo; /* ModelOpt's word for its scheme, "NVFP4"; NULL */
    bool modelopt_produced;    /* ... said in the form that names its producer */
    bool
        quant_unknown; /* ... or a scheme of it that we do not know: its matrices are taken as not quantised */
    bool quant_by_flag; /* the config names a scheme but no method: applied only when --quantization does */
    const oos_quant *quants;
    size_t quant_count;
    oos_dtype kv_cache_dtype; /* asked for by the checkpoint, UNKNOWN: none */

    const struct oos_tensor_table *tensors; /* headers of the weight files, NULL when there are none */
    oos_headers headers;                    /* their sums */
    const char *const *notes;               /* what had to be assumed */
    size_t note_count;
} oos_model;

/* `config` is config.json; `quant` is hf_quant_config.json or empty; families are those of `data_dir`, NULL for the embedded
 * ones. The model lives in the arena. */
oomsight_status oos_model_read(oos_arena *arena, const char *data_dir, oos_view config, oos_view quant,
                               oos_model *ret_model, oomsight_error *reterr);

/* The matrix of that name in a layer; NULL: it has none. */
const oos_matrix *oos_layer_matrix(const oos_model *model, const oos_layer *layer, const char *name);
/* Queries and keys are normed in this layer, head by head or all at once. */
bool oos_layer_norms_heads(const oos_model *model, const oos_layer *layer);

/* Half of its linear layers, or more, have weights of 4 bits; the head is not counted. */
bool oos_model_in_four_bits(const oos_model *model);

/* A directory with config.json and, where there, hf_quant_config.json, *.safetensors and their index. `overrides`
 * is the JSON of --hf-overrides, NULL for none. */
oomsight_status oos_model_open_dir(oos_arena *arena, const char *data_dir, const char *dir,
                                   const char *overrides, oos_model *ret_model, oomsight_error *reterr);

#endif
