#pragma once
#include "engines/vllm/setup/setup.h"

/* Which attention backend the engine chooses, and why the ones before it were not. */

typedef struct oos_backend_choice {
    const char *name; /* "FLASH_ATTN", "FLEX_ATTENTION", ... as the engine prints it; NULL when it refuses */
    const char
        *reason;  /* why a preferred one was passed over ("head size 80 is not ..."), NULL when it was first;
                           the engine's sentence when it refuses */
    bool refused; /* the engine raises instead of choosing */
    bool raises;  /* ... once it runs, when it has chosen */
    bool forced;  /* the user chose it */
    uint64_t
        preferred_block;   /* block size the backend asks for when none was given, 0: the engine's default */
    uint64_t kernel_block; /* smallest block its kernels take */
    oos_kv_dtype kv_dtype; /* what it stores: sparse kernels replace the type that was asked for */
    uint64_t workspace_bytes; /* held outside weights and KV once it runs */
    bool full_graphs;         /* can be captured in FULL decode graphs */
} oos_backend_choice;

/* For one attention of the model. */
oomsight_status oos_backend_choose(oos_arena *arena, const oos_setup *setup, const oos_attention *attention,
                                   oos_backend_choice *ret_choice, oomsight_error *reterr);

/* The same without words and workspace: name, block sizes and stored type only. For use inside loops. */
void oos_backend_pick(const oos_setup *setup, const oos_attention *attention, oos_backend_choice *ret_choice);

/* Between the files of the backend choice: what the engine asks about one attention, and what a backend answers. */

typedef enum oos_attention_backend {
    OOS_BACKEND_FLASH_ATTN,
    OOS_BACKEND_FLASHINFER,
    OOS_BACKEND_TRITON_ATTN,
    OOS_BACKEND_FLEX_ATTENTION,
    OOS_BACKEND_TURBOQUANT,
    OOS_BACKEND_TRITON_FLASH_ATTN, /* Triton for image masks, FlashAttention for the rest */
    OOS_BACKEND_TRITON_FLASHINFER,
    OOS_BACKEND_FLASH_ATTN_DIFFKV, /* K and V of different head sizes */
    OOS_BACKEND_TRITON_ATTN_DIFFKV,
    OOS_BACKEND_FLASH_ATTN_MLA,
    OOS_BACKEND_FLASHMLA,
    OOS_BACKEND_FLASHINFER_MLA,
    OOS_BACKEND_TOKENSPEED_MLA,
    OOS_BACKEND_CUTLASS_MLA,
    OOS_BACKEND_TRITON_MLA,
    OOS_BACKEND_FLASHMLA_SPARSE,
    OOS_BACKEND_FLASHINFER_MLA_SPARSE,
    OOS_BACKEND_FLASH_ATTN_MLA_SPARSE,
    OOS_BACKEND_FLASHINFER_MLA_SPARSE_SM90,
    OOS_BACKEND_FLASHINFER_MLA_SPARSE_SM120,
    OOS_BACKEND_FLASHMLA_SPARSE_DSV4,
    OOS_BACKEND_FLASHINFER_MLA_SPARSE_DSV4,
    OOS_BACKEND_XFORMERS,
    OOS_BACKEND_COUNT
} oos_attention_backend;

/* What a backend takes by release and compute capability: data/engines/vllm/backends.json, made from the engine's classes by
 * tests/oracle/backends.py and written in C by tools/backend_table.py. */

typedef struct oos_backend_span {
    uint16_t first, last, step;
} oos_backend_span;

typedef enum oos_refused_by {
    OOS_REFUSED_BY_CHECK,
    OOS_REFUSED_BY_CONSTRUCTOR,
    OOS_REFUSED_BY_KERNEL
} oos_refused_by;

/* Several of its properties together. Masks and spans of `oos_backend_kv_words` and `oos_backend_spans`. */
typedef struct oos_backend_refusal {
    uint32_t kv;
    uint16_t heads, head_count;
    uint16_t blocks, block_count; /* block sizes that it takes instead; none: whichever is asked for */
    int8_t sinks, mm_prefix;      /* -1: with or without */
    uint8_t by;                   /* oos_refused_by: only a check makes the engine try the next backend */
    const char *reason;           /* the engine's sentence; {gpu} and {capability} stand in it */
} oos_backend_refusal;

enum { OOS_BACKEND_DOES_MM_PREFIX = 1, OOS_BACKEND_DOES_SINKS = 2, OOS_BACKEND_DOES_SLIDING = 4 };

typedef struct oos_backend_row {
    oos_attention_backend backend;
    oos_version since;
    uint32_t capabilities; /* of oos_backend_capabilities */
    uint16_t heads, head_count, blocks, block_count;
    uint32_t kv; /* 0: it is gone, or does not run there any more */
    uint32_t dtypes;
    uint8_t does;
    uint16_t refusals, refusal_count;
} oos_backend_row;

typedef struct oos_backend_part {
    uint16_t first, count;
} oos_backend_part;

extern const char *const oos_backend_kv_words[];
extern const unsigned oos_backend_capabilities[];
extern const oos_backend_span oos_backend_spans[];
extern const oos_backend_refusal oos_backend_refusals[];
extern const oos_backend_row oos_backend_rows[];   /* by backend, then by release */
extern const oos_backend_part oos_backend_parts[]; /* the rows of each backend */

/* Why a backend does not serve an attention (vLLM, AttentionBackend.validate_configuration). */
typedef enum oos_objection {
    OOS_OBJECTION_NONE,
    OOS_OBJECTION_HEAD_SIZE,
    OOS_OBJECTION_DTYPE,
    OOS_OBJECTION_KV_DTYPE,
    OOS_OBJECTION_BLOCK_SIZE,
    OOS_OBJECTION_MM_PREFIX,
    OOS_OBJECTION_MLA,
    OOS_OBJECTION_SINKS,
    OOS_OBJECTION_SPARSE,
    OOS_OBJECTION_CAPABILITY,
    OOS_OBJECTION_SLIDING_WINDOW,
    OOS_OBJECTION_LATENT_SHAPE, /* the kernel wants other MLA dimensions */
    OOS_OBJECTION_DCP,
    OOS_OBJECTION_COMBINATION, /* oos_backend_refuses() has the sentence */
    OOS_OBJECTION_ABSENT       /* not in this version */
} oos_objection;

typedef struct oos_backend_question {
    const oos_setup *setup;
    const oos_attention *attention;
    uint64_t head;       /* head size as the engine asks for it; MLA: latent + rope */
    unsigned major;      /* of the compute capability */
    oos_kv_dtype kv;     /* as asked; model dtype for auto */
    const char *kv_word; /* the same as the engine names it */
    uint64_t block;      /* --block-size as far as backends are asked; 0: not given */
    bool mla, sparse, sliding, sinks, mm_prefix;
    bool gemma4_mixed; /* Gemma 4 with two head sizes: the engine treats it apart */
} oos_backend_question;

/* FlashAttention generation that would run for these sizes: 2, 3, 4; 0: none. `head` 0: any. */
unsigned oos_backend_flash_version(const oos_backend_question *question, uint64_t head);

oos_objection oos_backend_objection(const oos_backend_question *question, oos_attention_backend backend);

/* The first that refuses several properties together: of its checks, or of what is built once it is chosen. NULL: none. */
const oos_backend_refusal *oos_backend_refuses(const oos_backend_question *question,
                                               oos_attention_backend backend, bool built);

/* The smallest block that its kernels read. */
uint64_t oos_backend_least_block(const oos_backend_question *question, oos_attention_backend backend);

/* Bytes a backend holds beside weights and KV cache. */
uint64_t oos_backend_workspace(const oos_backend_question *question, oos_attention_backend backend,
                               uint64_t block_tokens);
