#pragma once
#include "base/arena.h"
#include "base/error.h"
#include "base/json.h"
#include "base/scan.h"
#include "base/size.h"
#include "match/match.h"

/* A model as an engine would build it: its layers, its weight matrices before any sharding, its attention and state
 * geometry, its quantisation. Read from config.json (and hf_quant_config.json); weight file headers, when there, are
 * kept beside it. How a matrix is cut over ranks is said here as a role; the arithmetic of it is plan/'s. */

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
    OOS_MIXER_ENCODER, /* to both sides within a request: nothing is cached (BERT) */
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
    uint64_t image_pixels, video_pixels; /* at most, by the processor's files; 0: none says */
    uint64_t image_tiles, image_tokens;  /* the same, of processors that count those */
    uint64_t stated_layers,
        stated_hidden; /* num_hidden_layers and hidden_size as they stand in the config; 0: not there */
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
    uint64_t tiles; /* of the largest image, and one of all of it beside them; 0: it is not cut */
    bool by_edge;   /* the processor's limit is the longer side of an image */
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
    const char *level;        /* ... and how those are known; NULL: the config itself was read */
    const char *rests_on;     /* the id that stands behind it there; NULL: none */
    uint64_t wide;            /* thousandths by which its weights may differ */
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
    bool rope_fixed;           /* its rotary angles depend on that length: a longer table is another model */
    uint64_t
        stated_length; /* the first length that the text part states, times a rope factor that names no original length */
    uint64_t max_position_default; /* LongRoPE: the shorter default when no length is given; 0: as above */
    bool tied;                     /* lm_head shares the embedding */
    bool tied_by_wrapper;          /* ... only by the default of the wrapper's class */
    bool lora_embeddings;          /* LoRA slots also for embedding and head */
    bool attention_free, encoder_only, hybrid, mla, sparse, pooling, encoder_decoder, multimodal,
        bidirectional_images;
    bool pooling_modules; /* in modules.json of Sentence Transformers: vLLM serves it as a pooling model */
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

/* Files beside config.json that say how large an image or a video may be, in the order of this list. */
enum { OOS_PROCESSOR_FILES = 3 };
extern const char *const oos_processor_files[OOS_PROCESSOR_FILES];

/* Their texts, empty: not there, into a model that was read; `paths` is where they are. */
/* modules.json names a pooling layer. What is no such list names none. */
bool oos_modules_pool(oos_view text);

oomsight_status oos_processors_read(oos_arena *arena, const char *const paths[OOS_PROCESSOR_FILES],
                                    const oos_view texts[OOS_PROCESSOR_FILES], oos_model *model,
                                    oomsight_error *reterr);

/* Parameters as a checkpoint stores them, before any quantisation; those of a tied head once. */
typedef struct oos_parameters {
    uint64_t decoder, tower, drafter;
} oos_parameters;
oos_parameters oos_model_parameters(const oos_model *model);

/* The matrix of that name in a layer; NULL: it has none. */
const oos_matrix *oos_layer_matrix(const oos_model *model, const oos_layer *layer, const char *name);
/* Queries and keys are normed in this layer, head by head or all at once. */
bool oos_layer_norms_heads(const oos_model *model, const oos_layer *layer);

/* Half of its linear layers, or more, have weights of 4 bits; the head is not counted. */
bool oos_model_in_four_bits(const oos_model *model);

/* The most GPUs, not above `most`, that the attention heads and the KV heads can be divided among; 1 at least. */
#define OOS_PARALLEL_MAX 4096 /* more than anybody has */
uint64_t oos_ranks_that_divide(const oos_model *model, uint64_t most);

/* A directory with config.json and, where there, hf_quant_config.json, *.safetensors and their index. `overrides`
 * is the JSON of --hf-overrides, NULL for none. */
oomsight_status oos_model_open_dir(oos_arena *arena, const char *data_dir, const char *dir,
                                   const char *overrides, oos_model *ret_model, oomsight_error *reterr);

/* Models in common use, known by their id: data/catalogue.json. For when neither the cache nor the hub has an answer. */

/* An entry, with the texts of its config.json and hf_quant_config.json (empty: none), in the arena or in the binary. */
typedef struct oos_listed {
    const char *id;
    oos_view config, quant;
    const char *level;    /* how its sizes are known: docs/reference/formats/catalogue.md */
    const char *rests_on; /* the id that it is a checkpoint of, like, or another name of; NULL: none */
    uint64_t wide;        /* thousandths by which its weights may differ */
} oos_listed;

/* NOT_FOUND: it is not listed; MALFORMED: what stands there is no model. */
oomsight_status oos_catalogue_find(oos_arena *arena, const char *data_dir, const char *id,
                                   oos_listed *ret_listed, oomsight_error *reterr);
oomsight_status oos_catalogue_entry(oos_arena *arena, oos_view text, const char *id, oos_listed *ret_listed,
                                    oomsight_error *reterr); /* without its config */
oomsight_status oos_catalogue_find_in(oos_arena *arena, oos_view text, const char *id, oos_listed *ret_listed,
                                      oomsight_error *reterr);

/* Quantised checkpoints of the model that `id` is, or is a checkpoint of; not `id` itself. In the order of the file; the first have
 * the owner of the model. */
enum { OOS_CHECKPOINTS_MAX = 32 };
oomsight_status oos_catalogue_checkpoints(oos_arena *arena, const char *data_dir, const char *id,
                                          const oos_listed **ret_list, size_t *ret_count,
                                          oomsight_error *reterr);

/* The id that is listed and is least far from `name`, which may lack its owner; NULL: none is near. Capitals do not matter where
 * the names are equal. */
const char *oos_catalogue_nearest(oos_arena *arena, const char *data_dir, const char *name);

/* The model of an id that is listed; its `from_catalogue` is set. */
oomsight_status oos_catalogue_open(oos_arena *arena, const char *data_dir, const oos_listed *listed,
                                   const char *overrides, oos_model *ret_model, oomsight_error *reterr);

/* The file of the models that are known by their id: data/catalogue.json, or the newer one that the user took. */

#define OOS_CATALOGUE_FILE "catalogue.json"
#define OOS_CATALOGUE_SCHEMA "oomsight.catalogue/2"
enum { OOS_CATALOGUE_BYTES_MAX = 8 << 20, OOS_CATALOGUE_IDS_MAX = 20000 };

/* `data_dir` NULL: what `oomsight models --update` took, where it is this user's and made for this version; else what is built in. */
oomsight_status oos_catalogue_text(oos_arena *arena, const char *data_dir, oos_view *ret_text,
                                   oomsight_error *reterr);

/* Where that stands. NULL: no home is known, or memory is out. */
const char *oos_catalogue_place(oos_arena *arena);
/* ... and is there to be used. */
bool oos_catalogue_is_updated(oos_arena *arena, oos_view *ret_text);

/* Has it an entry in each line, in the order of the ids? What is built in and what was taken have: one is found by halving, and
 * nothing else is read. Any other text is read from its start. */
bool oos_catalogue_is_lined(oos_view text);
bool oos_catalogue_halve(oos_view text, const char *id, oos_view *ret_value);

/* One id after the other. */
typedef struct oos_walk {
    oos_scan scan;
    const char *at, *end; /* NULL: by `scan` */
} oos_walk;
oos_walk oos_walk_begin(oos_view text);
bool oos_walk_next(oos_walk *walk, oos_view *ret_id, oos_view *ret_value);

/* The local Hugging Face cache: which directory holds a model that was downloaded before.
 *
 *     <cache>/models--org--name/refs/main             a commit, as text
 *     <cache>/models--org--name/snapshots/<commit>/   its files
 *
 * <cache> is HF_HUB_CACHE, or HUGGINGFACE_HUB_CACHE, or HF_HOME/hub, or XDG_CACHE_HOME/huggingface/hub, or
 * ~/.cache/huggingface/hub. */

/* A model as people name it: "org/name", "org/name@revision". */
typedef struct oos_hub_id {
    const char *name;     /* "org/name" */
    const char *revision; /* "main" when none was given */
} oos_hub_id;

/* False when the word cannot be the name of a model on the hub, or memory is out. */
bool oos_hub_id_parse(oos_arena *arena, const char *word, oos_hub_id *ret_id);

/* The folder where the cache is, or would be. NULL: no home is known, or memory is out. */
const char *oos_hfcache_folder(oos_arena *arena);

/* The directory of a cached model with a config.json; NULL: not there. */
const char *oos_hfcache_find(oos_arena *arena, const oos_hub_id *id);

/* A model from the hub: its config files and the headers of its weight files, by ranged reads. Never the weights, and
 * nothing is written to disk. HF_ENDPOINT names the hub, HF_TOKEN opens what is gated (not over http:// to
 * another machine, unless OOMSIGHT_INSECURE=1), HF_HUB_OFFLINE=1 forbids it, HF_HUB_DOWNLOAD_TIMEOUT is the patience with a silent
 * server; the whole takes three of it at most. */

bool oos_hub_offline(void); /* the environment forbids it */

oomsight_status oos_hub_open(oos_arena *arena, const char *data_dir, const oos_hub_id *id,
                             const char *overrides, oos_model *ret_model, oomsight_error *reterr);

/* HTTP transfers, several at a time. The one edge to libcurl, which is loaded when the first transfer is asked for:
 * linking it costs 5 ms at every start (33 libraries), and most plans never leave the machine. */

/* One file, or the first bytes of one. */
typedef struct oos_fetch {
    const char *url;
    size_t
        first_bytes; /* 0: the whole file; else a ranged read of so many bytes, of which there may be fewer */
    size_t limit_bytes; /* a whole file longer than this is refused */
    /* answer */
    long http;            /* 200, 206, 404, ...; 0: no answer came */
    oos_view bytes;       /* the arena's */
    uint64_t total_bytes; /* of the whole file, 0: not told */
} oos_fetch;

typedef struct oos_fetch_options {
    const char *endpoint; /* "https://huggingface.co": the token goes to this host and to no other */
    const char *token;    /* NULL: none */
    long timeout_s;       /* to connect, and with less than a kilobyte a second */
    int64_t deadline_ms;  /* of CLOCK_MONOTONIC: what has not come by then does not come; 0: none */
} oos_fetch_options;

/* Every answer of the server is success here, 404 too: see `http`. Failure is NETWORK (no answer, a body cut short, a
 * redirect without end, too late), MALFORMED (too long), UNSUPPORTED (no libcurl) or NOMEM; then some answers may be empty. */
oomsight_status oos_fetch_all(oos_arena *arena, const oos_fetch_options *options, oos_fetch *list,
                              size_t count, oomsight_error *reterr);

/* Is its host this machine, by name or number: nobody on the way, and no proxy? */
bool oos_hub_is_here(const char *url);

/* From the MODEL word of a command to a model: a directory, a model in the local cache, or one on the hub. */

/* `data_dir` has the families, NULL: the embedded ones. `overrides` is the JSON of --hf-overrides, NULL for none. Failure says what was tried and what to do. */
oomsight_status oos_locate(oos_arena *arena, const char *data_dir, const char *word, bool allow_hub,
                           const char *overrides, oos_model *ret_model, oomsight_error *reterr);

/* --hf-overrides: fields of config.json that the command sets otherwise. */

/* The config as the engine would see it, as text in the arena. `overrides` NULL: the config itself. */
oomsight_status oos_config_override(oos_arena *arena, oos_view config, const char *overrides,
                                    oos_view *ret_config, oomsight_error *reterr);

/* Quantisation configs: which scheme each module of a model gets. Follows the engine's own reading of quantization_config
 * (config.json) and hf_quant_config.json: method, groups, ignore lists, per-module rules. */

/* What a module is to the quantiser. */
typedef enum oos_quant_role { OOS_QUANT_LINEAR, OOS_QUANT_EXPERTS, OOS_QUANT_LM_HEAD } oos_quant_role;

/* Checkpoint names that the engine's classes call differently; applied to the lists of the config. A NULL `to` drops
 * the name. */
typedef struct oos_rename {
    enum { OOS_RENAME_END, OOS_RENAME_PREFIX, OOS_RENAME_INSIDE } where;
    const char *from, *to;
} oos_rename;

typedef struct oos_quantizer oos_quantizer;

/* *ret_quantizer is NULL when nothing is quantised. `root` is config.json, `text` its text part, `legacy` is
 * hf_quant_config.json or NULL. `renames` may be NULL. */
oomsight_status oos_quantizer_read(oos_arena *arena, const json_t *root, const json_t *text,
                                   const json_t *legacy, const oos_rename *renames,
                                   oos_quantizer **ret_quantizer, oomsight_error *reterr);

/* The config names an algorithm, but no method that the engine would recognise by itself. */
bool oos_quantizer_unknown(const oos_quantizer *q); /* its method is not known here */
bool oos_quantizer_by_flag(const oos_quantizer *quantizer);
const char *oos_quantizer_method(const oos_quantizer *quantizer);

/* ModelOpt's own word for the scheme, NULL: none; and whether the file says so by its producer. */
const char *oos_quantizer_algo(const oos_quantizer *quantizer, bool *ret_produced);
oos_dtype oos_quantizer_kv_dtype(const oos_quantizer *quantizer); /* UNKNOWN: as the model */
const char *oos_quantizer_note(const oos_quantizer *quantizer);   /* what was not understood, or NULL */

/* Parameters the method adds to each attention layer: fp32 scales, and zero points in the model's dtype. */
void oos_quantizer_kv_parameters(const oos_quantizer *quantizer, bool latent, uint64_t *ret_floats,
                                 uint64_t *ret_zeros);

/* The scheme of the module `prefix` + `name` ("model.layers.3." + "self_attn.qkv_proj"). `layer` is the number inside
 * the prefix, UINT64_MAX when there is none. */
oos_quant oos_quantizer_scheme(oos_quantizer *quantizer, const char *prefix, const char *name, uint64_t layer,
                               oos_quant_role role);

/* The text the engine's own name has after the renames, in the arena; NULL: dropped. */
const char *oos_rename_apply(oos_arena *arena, const oos_rename *renames, const char *name);

/* Lists of module names as quantisation configs write them, searched by layer: configs name every module of every
 * layer, and a plan must not compare each with each. Used by quant.c only. */

typedef struct oos_name {
    const char *text;
    const oos_regex *pattern; /* `re:` and regular keys; NULL: a plain name or glob */
    uint64_t layer;           /* the N of "layers.N.", UINT64_MAX: any */
    uint32_t value;           /* what the caller keeps with it */
    uint32_t order;           /* place in the config */
} oos_name;

typedef struct oos_names {
    oos_name *list; /* sorted by layer, in the order given within a layer */
    size_t count, room;
    bool sorted;
} oos_names;

bool oos_names_add(oos_arena *arena, oos_names *names, const char *text, bool regular, uint32_t value);
void oos_names_sort(oos_names *names);

/* Entries that may concern `layer`: its own and those of any layer. UINT64_MAX: all. Visit until `visit` says true. */
typedef bool oos_name_visit(const oos_name *name, void *context);
const oos_name *oos_names_find(const oos_names *names, uint64_t layer, oos_name_visit *visit, void *context);

/* True when no entry of any layer names a digit: what they say of a module is the same in all layers. */
bool oos_names_layerless(const oos_names *names);

/* A quantiser from the inside: what quant.c reads and quant_match.c looks names up in. */

typedef enum oos_quant_method {
    OOS_METHOD_AWQ,
    OOS_METHOD_GPTQ,
    OOS_METHOD_FP8,
    OOS_METHOD_COMPRESSED,
    OOS_METHOD_MODELOPT,
    OOS_METHOD_MIXED,
    OOS_METHOD_MXFP4,
    OOS_METHOD_AUTOROUND,
    OOS_METHOD_BNB,
    OOS_METHOD_FBGEMM,
    OOS_METHOD_EXPERTS_ONLY, /* DeepSeek V4: experts in FP4 beside FP8 blocks */
    OOS_METHOD_UNKNOWN
} oos_quant_method;

enum { OOS_SCHEMES_MAX = 64, OOS_MEMORY_MAX = 256, OOS_NAME_BYTES = 512 };

/* What was found for a name, where it is the same in all layers. */
typedef struct oos_quant_memory {
    const char *prefix, *name;
    oos_quant_role role;
    oos_quant scheme;
} oos_quant_memory;

struct oos_quantizer {
    oos_arena *arena;
    oos_quant_method method;
    const char *word;
    oos_quant base, experts;
    oos_names ignore;  /* modules left alone */
    oos_names targets; /* modules with a scheme of their own: value is its number */
    oos_quant schemes[OOS_SCHEMES_MAX];
    size_t scheme_count;
    bool by_flag;
    const char *algo;         /* ModelOpt: "NVFP4"; NULL: none said */
    bool produced;            /* ... in the form that names its producer */
    bool lm_head, has_linear; /* compressed-tensors: a group targets every Linear */
    oos_quant linear;         /* its scheme */
    const char **blocks;      /* AutoRound: only modules under these; NULL: all */
    size_t block_count;
    oos_dtype kv_dtype;
    const char *note;
    bool layerless;
    oos_quant_memory memories[OOS_MEMORY_MAX];
    size_t memory_count;
};

/* Headers of safetensors files: names, dtypes, shapes. The weights behind them are never touched. */

typedef struct oos_tensor {
    const char *name;
    oos_dtype dtype;
    uint8_t rank;
    uint64_t shape[8];
    uint64_t bytes;
} oos_tensor;

typedef struct oos_tensor_table {
    const oos_tensor *list;
    size_t count;
    uint64_t total_bytes;
    uint64_t
        largest_file_bytes; /* largest single weight file, for loaders that stage whole files; 0: unknown */
    const char *note;       /* why there are no headers although there should be; NULL */
} oos_tensor_table;

/* `file` begins with the header; what follows it may be missing (ranged reads). */
oomsight_status oos_safetensors_read(oos_arena *arena, oos_view file, oos_tensor_table *ret_table,
                                     oomsight_error *reterr);

/* All weight files of a directory, by model.safetensors.index.json or by name. *ret_table->count is 0 when it has none,
 * or not all that the index names: half a model would be planned as a smaller one. */
oomsight_status oos_safetensors_open_dir(oos_arena *arena, const char *dir, oos_tensor_table *ret_table,
                                         oomsight_error *reterr);

/* Headers to the model they belong to; the note, if there is one, to its notes. `table` must live as long. */
oomsight_status oos_tensors_attach(oos_arena *arena, const oos_tensor_table *table, oos_model *model,
                                   oomsight_error *reterr);

/* Sums of a table by part of the model, into model->headers. Called by oos_tensors_attach(). */
void oos_headers_weigh(const oos_tensor_table *table, oos_model *model);

/* ---- for those who fetch the bytes themselves ------------------------------------------------------------------ */

/* The length that the first 8 bytes give; refused when no honest file has it. */
oomsight_status oos_safetensors_length(const char first[8], uint64_t *ret_header_bytes,
                                       oomsight_error *reterr);

/* A table that grows file by file. It belongs to the arena. */
typedef struct oos_tensor_builder oos_tensor_builder;
oos_tensor_builder *oos_tensor_builder_create(oos_arena *arena); /* NULL: out of memory */
/* `header` is the JSON behind the length; `file_bytes` 0: unknown. Failure leaves the table as it was. */
oomsight_status oos_tensor_builder_add(oos_tensor_builder *builder, oos_view header, uint64_t file_bytes,
                                       oomsight_error *reterr);
oos_tensor_table oos_tensor_builder_table(const oos_tensor_builder *builder);

/* The distinct files of an index, in the order they are first named. A name that leaves the directory is refused. */
oomsight_status oos_safetensors_index_read(oos_arena *arena, oos_view index, const char *const **ret_files,
                                           size_t *ret_count, oomsight_error *reterr);
