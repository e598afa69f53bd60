/* Choosing the attention backend: the order in which a version tries them, what the user forced, and the words for why
 * the preferred one was passed over. What each can serve is in backend_fit.c, what it holds in backend_space.c.
 *
 * Sources: vllm/platforms/cuda.py, get_attn_backend_cls() to 0.11.0 and _get_backend_priorities() since 0.11.1. */
#include "engines/vllm/backend/backend.h"
#include "base/ascii.h"
#include "base/check.h"

#include <inttypes.h>

/* Name, smallest kernel block, block size when none was given (0: the default of 16 is fine), FULL graphs. */
static const struct {
    const char *name;
    uint64_t kernel_block, preferred_block;
    bool full_graphs;
} traits[OOS_BACKEND_COUNT] = {
    [OOS_BACKEND_FLASH_ATTN] = {"FLASH_ATTN", 16, 0, true},
    [OOS_BACKEND_FLASHINFER] = {"FLASHINFER", 16, 0, true},
    [OOS_BACKEND_TRITON_ATTN] = {"TRITON_ATTN", 16, 0, true},
    [OOS_BACKEND_FLEX_ATTENTION] = {"FLEX_ATTENTION", 16, 0, true}, /* since 0.20: see full_graphs() */
    [OOS_BACKEND_TURBOQUANT] = {"TURBOQUANT", 16, 0, true},
    [OOS_BACKEND_TRITON_FLASH_ATTN] = {"TRITON_FLASH_ATTN", 16, 0, true},
    [OOS_BACKEND_TRITON_FLASHINFER] = {"TRITON_FLASHINFER", 64, 64, true},
    [OOS_BACKEND_FLASH_ATTN_DIFFKV] = {"FLASH_ATTN_DIFFKV", 16, 0, true},
    [OOS_BACKEND_TRITON_ATTN_DIFFKV] = {"TRITON_ATTN_DIFFKV", 16, 0, true},
    [OOS_BACKEND_FLASH_ATTN_MLA] = {"FLASH_ATTN_MLA", 16, 0, true},
    [OOS_BACKEND_FLASHMLA] = {"FLASHMLA", 64, 64, true},
    [OOS_BACKEND_FLASHINFER_MLA] = {"FLASHINFER_MLA", 32, 32, true},
    [OOS_BACKEND_TOKENSPEED_MLA] = {"TOKENSPEED_MLA", 32, 32, true},
    [OOS_BACKEND_CUTLASS_MLA] = {"CUTLASS_MLA", 128, 128, true},
    [OOS_BACKEND_TRITON_MLA] = {"TRITON_MLA", 16, 0, true},
    /* 64 for all sparse ones: the indexer beside them takes no other (mla/indexer.py) */
    [OOS_BACKEND_FLASHMLA_SPARSE] = {"FLASHMLA_SPARSE", 64, 64, true},
    [OOS_BACKEND_FLASHINFER_MLA_SPARSE] = {"FLASHINFER_MLA_SPARSE", 64, 64, true},
    [OOS_BACKEND_FLASH_ATTN_MLA_SPARSE] = {"FLASH_ATTN_MLA_SPARSE", 64, 64, true},
    [OOS_BACKEND_FLASHINFER_MLA_SPARSE_SM90] = {"FLASHINFER_MLA_SPARSE_SM90", 64, 64, true},
    [OOS_BACKEND_FLASHINFER_MLA_SPARSE_SM120] = {"FLASHINFER_MLA_SPARSE_SM120", 64, 64, true},
    [OOS_BACKEND_FLASHMLA_SPARSE_DSV4] = {"FLASHMLA_SPARSE_DSV4", 64, 256, true},
    [OOS_BACKEND_FLASHINFER_MLA_SPARSE_DSV4] = {"FLASHINFER_MLA_SPARSE_DSV4", 64, 256, true},
    [OOS_BACKEND_XFORMERS] = {"XFORMERS", 16, 0, false},
};

static const char *state_backend(oos_mixer mixer)
{
    switch (mixer) {
    case OOS_MIXER_MAMBA1: return "MAMBA1_ATTN";
    case OOS_MIXER_MAMBA2: return "MAMBA2_ATTN";
    case OOS_MIXER_GDN:
    case OOS_MIXER_KDA: return "GDN_ATTN";
    case OOS_MIXER_LINEAR: return "LINEAR_ATTN";
    case OOS_MIXER_CONV: return "SHORT_CONV_ATTN";
    case OOS_MIXER_NONE:
    case OOS_MIXER_FULL:
    case OOS_MIXER_SLIDING:
    case OOS_MIXER_CHUNKED:
    case OOS_MIXER_MLA:
    case OOS_MIXER_ENCODER:
    case OOS_MIXER_CROSS: break;
    }
    return NULL;
}

/* vLLM models/config.py, Gemma4Config */
static bool gemma4_mixed(const oos_setup *setup)
{
    const oos_model *model = setup->model;
    if (!oos_setup_says(setup, "one_backend")) return false;
    for (size_t i = 1; i < model->attention_count; i++)
        if (model->attentions[i].head_dim != model->attentions[0].head_dim) return true;
    return false;
}

static oos_backend_question question_of(const oos_setup *setup, const oos_attention *attention)
{
    oos_kv_dtype kv = setup->kv_dtype;
    bool const mla = attention->mixer == OOS_MIXER_MLA;
    return (oos_backend_question){
        .setup = setup,
        .attention = attention,
        .head = attention->head_dim,
        .major = setup->device.capability / 10,
        .kv = kv,
        .kv_word = setup->kv_dtype_word ? setup->kv_dtype_word : "auto",
        .block = setup->rules->mla_block_rule >= 3 ? oos_u64_or(setup->block_size_given, 0) : 0,
        .mla = mla,
        .sparse = mla && (setup->model->sparse || attention->indexer_topk > 0),
        .sliding = attention->mixer == OOS_MIXER_SLIDING,
        .sinks = attention->sinks,
        .mm_prefix = setup->model->bidirectional_images && setup->rules->mm_prefix_checked &&
                     (setup->multimodal || !setup->rules->mm_prefix_of_inputs),
        .gemma4_mixed = gemma4_mixed(setup),
    };
}

/* ---- the orders ------------------------------------------------------------------------------------------------- */

enum { ORDER_MAX = 10 };

typedef struct order {
    oos_attention_backend items[ORDER_MAX];
    size_t count;
} order;

static void then(order *list, oos_attention_backend backend)
{
    oos_assert(list->count < ORDER_MAX); /* or a backend would never be tried */
    if (list->count < ORDER_MAX) list->items[list->count++] = backend;
}

static order plain_order(const oos_backend_question *q)
{
    order list = {.count = 0};
    if (q->major == 10) {
        if (q->mm_prefix) then(&list, OOS_BACKEND_TRITON_FLASHINFER);
        then(&list, OOS_BACKEND_FLASHINFER);
        then(&list, OOS_BACKEND_FLASH_ATTN);
    } else {
        if (q->mm_prefix && q->major == 9) then(&list, OOS_BACKEND_TRITON_FLASH_ATTN);
        then(&list, OOS_BACKEND_FLASH_ATTN);
        then(&list, OOS_BACKEND_FLASHINFER);
    }
    then(&list, OOS_BACKEND_TRITON_ATTN);
    then(&list, OOS_BACKEND_FLEX_ATTENTION);
    then(&list, OOS_BACKEND_TURBOQUANT);
    return list;
}

static order mla_order(const oos_backend_question *q)
{
    const vllm_rules *rules = q->setup->rules;
    order list = {.count = 0};
    if (q->major == 10) {
        bool const quantised = q->kv != OOS_KV_MODEL_DTYPE && q->kv != OOS_KV_BF16 && q->kv != OOS_KV_F16;
        uint64_t const heads = oos_max(1, q->attention->heads / oos_max(1, q->setup->tp));
        bool const flashinfer_first = (quantised && rules->sparse_order_by_dtype) || heads <= 16;
        then(&list, rules->flashinfer_mla_first ? OOS_BACKEND_FLASHINFER_MLA : OOS_BACKEND_CUTLASS_MLA);
        then(&list, OOS_BACKEND_TOKENSPEED_MLA);
        then(&list, rules->flashinfer_mla_first ? OOS_BACKEND_CUTLASS_MLA : OOS_BACKEND_FLASHINFER_MLA);
        then(&list, OOS_BACKEND_FLASH_ATTN_MLA);
        then(&list, OOS_BACKEND_FLASHMLA);
        then(&list, OOS_BACKEND_TRITON_MLA);
        then(&list, flashinfer_first ? OOS_BACKEND_FLASHINFER_MLA_SPARSE : OOS_BACKEND_FLASHMLA_SPARSE);
        then(&list, flashinfer_first ? OOS_BACKEND_FLASHMLA_SPARSE : OOS_BACKEND_FLASHINFER_MLA_SPARSE);
        return list;
    }
    if (q->major == 12 && rules->mla_sm120) {
        then(&list, OOS_BACKEND_TRITON_MLA);
        then(&list, OOS_BACKEND_FLASHINFER_MLA_SPARSE_SM120);
        return list;
    }
    then(&list, OOS_BACKEND_FLASH_ATTN_MLA);
    then(&list, OOS_BACKEND_FLASHMLA);
    then(&list, OOS_BACKEND_FLASHINFER_MLA);
    then(&list, OOS_BACKEND_TRITON_MLA);
    if (q->head == 512) then(&list, OOS_BACKEND_FLASHINFER_MLA_SPARSE_SM90);
    then(&list, OOS_BACKEND_FLASH_ATTN_MLA_SPARSE);
    then(&list, OOS_BACKEND_FLASHMLA_SPARSE);
    if (q->head != 512) then(&list, OOS_BACKEND_FLASHINFER_MLA_SPARSE_SM90);
    return list;
}

/* What was picked, and what the first choice lacked. */
typedef struct pick {
    oos_attention_backend backend;
    bool none; /* nothing serves it */
    bool passed_over;
    oos_attention_backend preferred;
    oos_objection objection; /* of `preferred` */
} pick;

static pick take(oos_attention_backend backend)
{
    return (pick){.backend = backend};
}

static pick instead(oos_attention_backend backend, oos_attention_backend preferred, oos_objection objection)
{
    return (pick){.backend = backend, .passed_over = true, .preferred = preferred, .objection = objection};
}

static pick pick_by_list(const oos_backend_question *q)
{
    order const list = q->mla ? mla_order(q) : plain_order(q);
    pick result = {.none = true};
    for (size_t i = 0; i < list.count; i++) {
        oos_objection const objection = oos_backend_objection(q, list.items[i]);
        if (objection == OOS_OBJECTION_NONE) {
            result.none = false;
            result.backend = list.items[i];
            return result;
        }
        /* A sparse model passes over the dense ones by nature, and no version misses what it never had. */
        bool const told = objection != OOS_OBJECTION_ABSENT && objection != OOS_OBJECTION_SPARSE &&
                          !(q->mla && objection == OOS_OBJECTION_CAPABILITY);
        if (told && !result.passed_over) {
            result.passed_over = true;
            result.preferred = list.items[i];
            result.objection = objection;
        }
    }
    return result;
}

/* To 0.11.0 the order was written out as conditions. MLA takes what its forced block size asks for. */
static pick pick_mla_before_lists(const oos_backend_question *q)
{
    if (q->sparse) return take(OOS_BACKEND_FLASHMLA_SPARSE);
    if (q->setup->rules->mla_block_rule >= 1 && q->setup->device.capability == 100)
        return take(OOS_BACKEND_CUTLASS_MLA);
    if (q->major == 9) return take(OOS_BACKEND_FLASHMLA);
    return take(OOS_BACKEND_TRITON_MLA);
}

/* 0.8 to 0.10: what the V1 engine does not serve starts the old one, whose fallback is XFormers. */
static bool old_engine(const oos_backend_question *q)
{
    const vllm_rules *rules = q->setup->rules;
    if (oos_flag_or(q->setup->env->use_v1, true) == false && rules->old_engine) return true;
    if (rules->old_engine_below_80 && q->major < 8) return true;
    return rules->old_engine_for_fp8 && q->kv == OOS_KV_FP8 && q->major != 9;
}

static pick pick_before_lists(const oos_backend_question *q)
{
    const vllm_rules *rules = q->setup->rules;
    if (q->mla) return pick_mla_before_lists(q);
    oos_objection const fa = oos_backend_objection(q, OOS_BACKEND_FLASH_ATTN);
    if (old_engine(q))
        return fa == OOS_OBJECTION_NONE ? take(OOS_BACKEND_FLASH_ATTN)
                                        : instead(OOS_BACKEND_XFORMERS, OOS_BACKEND_FLASH_ATTN, fa);
    bool const shape = fa == OOS_OBJECTION_HEAD_SIZE || fa == OOS_OBJECTION_DTYPE;
    if (!rules->backend_flex_fallback) { /* 0.8.0 to 0.9.1: FlashAttention, whose constructor raises */
        if (rules->flashinfer_sm100 && q->setup->device.capability == 100)
            return take(OOS_BACKEND_FLASHINFER);
        if (!shape) return take(OOS_BACKEND_FLASH_ATTN);
        return (pick){
            .none = true, .passed_over = true, .preferred = OOS_BACKEND_FLASH_ATTN, .objection = fa};
    }
    if (q->setup->device.capability == 100) {
        oos_backend_question plain = *q; /* only head size and type were asked */
        plain.sinks = plain.mm_prefix = false;
        plain.kv = OOS_KV_MODEL_DTYPE;
        plain.kv_word = "auto";
        plain.block = 0;
        if (oos_backend_objection(&plain, OOS_BACKEND_FLASHINFER) == OOS_OBJECTION_NONE)
            return take(OOS_BACKEND_FLASHINFER);
    }
    if (q->major < 8)
        return instead(OOS_BACKEND_FLEX_ATTENTION, OOS_BACKEND_FLASH_ATTN, OOS_OBJECTION_CAPABILITY);
    bool const sinks = q->sinks && rules->triton_instead >= 1;
    bool const fp8 = q->kv == OOS_KV_FP8 && rules->triton_instead >= 2;
    if ((sinks || fp8) && q->setup->device.capability != 90)
        return instead(OOS_BACKEND_TRITON_ATTN, OOS_BACKEND_FLASH_ATTN,
                       sinks ? OOS_OBJECTION_SINKS : OOS_OBJECTION_KV_DTYPE);
    return shape ? instead(OOS_BACKEND_FLEX_ATTENTION, OOS_BACKEND_FLASH_ATTN, fa)
                 : take(OOS_BACKEND_FLASH_ATTN);
}

/* ---- forced ----------------------------------------------------------------------------------------------------- */

/* The name given by flag or environment; spellings of older releases end in _VLLM_V1. */
static bool forced_backend(const oos_setup *setup, oos_attention_backend *ret_backend)
{
    const char *word = setup->attention_backend;
    if (!word || !*word || oos_same(word, "auto")) return false;
    size_t length = strlen(word);
    static const char suffix[] = "_VLLM_V1";
    if (length > sizeof suffix - 1 && oos_same(word + length - (sizeof suffix - 1), suffix))
        length -= sizeof suffix - 1;
    for (size_t i = 0; i < OOS_BACKEND_COUNT; i++)
        if (strlen(traits[i].name) == length && oos_same_start(word, traits[i].name, length)) {
            *ret_backend = (oos_attention_backend)i;
            return true;
        }
    return false;
}

static bool is_mla_backend(oos_attention_backend backend)
{
    return backend >= OOS_BACKEND_FLASH_ATTN_MLA && backend <= OOS_BACKEND_FLASHINFER_MLA_SPARSE_SM120;
}

typedef struct decision {
    pick pick;
    bool forced, forced_invalid;
    const char *built; /* with which what is built once it is chosen refuses; NULL: it does not */
} decision;

/* DeepSeek V4 brings kernels of its own (vllm/models/deepseek_v4). */
static bool is_compressed(const oos_attention *a)
{
    return a->mixer == OOS_MIXER_MLA && a->kv_lora_rank == 0 && a->window > 0;
}

static decision decide_compressed(const oos_backend_question *q, oos_attention_backend wanted)
{
    uint64_t const rule = q->setup->rules->dsv4_flashinfer;
    bool const flash = wanted == OOS_BACKEND_FLASHMLA_SPARSE || wanted == OOS_BACKEND_FLASHMLA_SPARSE_DSV4;
    bool const infer = wanted == OOS_BACKEND_FLASHINFER_MLA_SPARSE_DSV4 && rule >= 1;
    if (infer || (q->major == 12 && rule >= 2 && !flash))
        return (decision){.pick = take(OOS_BACKEND_FLASHINFER_MLA_SPARSE_DSV4), .forced = infer};
    return (decision){.pick = take(OOS_BACKEND_FLASHMLA_SPARSE_DSV4), .forced = flash};
}

static decision decide(const oos_backend_question *q)
{
    const vllm_rules *rules = q->setup->rules;
    oos_attention_backend wanted;
    bool const asked = forced_backend(q->setup, &wanted);
    if (is_compressed(q->attention)) return decide_compressed(q, asked ? wanted : OOS_BACKEND_COUNT);
    const oos_attention *a = q->attention;
    if (!q->mla && a->head_dim_v && a->head_dim_v != a->head_dim && !(asked && is_mla_backend(wanted)))
        return (decision){.pick =
                              take(oos_backend_flash_version(q, 0) >= 3 ? OOS_BACKEND_FLASH_ATTN_DIFFKV
                                                                        : OOS_BACKEND_TRITON_ATTN_DIFFKV)};
    if (asked && (rules->backend_by_list || is_mla_backend(wanted) == q->mla)) {
        oos_objection const objection =
            rules->backend_by_list ? oos_backend_objection(q, wanted) : OOS_OBJECTION_NONE;
        decision result = {.pick = take(wanted), .forced = true};
        result.forced_invalid = objection != OOS_OBJECTION_NONE;
        result.pick.objection = objection;
        return result;
    }
    /* SM100 had its MLA backend set before the list was asked, 0.11.1 to 0.14 (cuda.py check_and_update_config) */
    if (q->gemma4_mixed && rules->gemma4_backend) {
        bool const fa4 = rules->gemma4_backend >= 2 && rules->fa4 && q->major >= 9 && q->major <= 11;
        if (!fa4)
            return (decision){
                .pick = instead(OOS_BACKEND_TRITON_ATTN, OOS_BACKEND_FLASH_ATTN, OOS_OBJECTION_HEAD_SIZE)};
    }
    return (decision){.pick = rules->backend_by_list ? pick_by_list(q) : pick_before_lists(q)};
}

/* ---- words ------------------------------------------------------------------------------------------------------ */

static const char *engine_words(oos_objection objection)
{
    switch (objection) {
    case OOS_OBJECTION_HEAD_SIZE: return "head_size not supported";
    case OOS_OBJECTION_DTYPE: return "dtype not supported";
    case OOS_OBJECTION_KV_DTYPE: return "kv_cache_dtype not supported";
    case OOS_OBJECTION_BLOCK_SIZE: return "block_size not supported";
    case OOS_OBJECTION_MM_PREFIX: return "partial multimodal token full attention not supported";
    case OOS_OBJECTION_MLA: return "MLA not supported";
    case OOS_OBJECTION_SINKS: return "attention sinks not supported";
    case OOS_OBJECTION_SPARSE: return "sparse not supported";
    case OOS_OBJECTION_CAPABILITY: return "compute capability not supported";
    case OOS_OBJECTION_SLIDING_WINDOW: return "sliding window not supported";
    case OOS_OBJECTION_LATENT_SHAPE: return "MLA dimensions not supported";
    case OOS_OBJECTION_DCP: return "DCP not supported";
    case OOS_OBJECTION_ABSENT: return "not available in this version";
    case OOS_OBJECTION_COMBINATION:
    case OOS_OBJECTION_NONE: break;
    }
    return "";
}

/* The engine's sentence with the device in it. NULL: no memory. */
static const char *filled(oos_arena *arena, const oos_backend_question *q, const char *sentence)
{
    static const char name[] = "{gpu}", number[] = "{capability}", block[] = "{block}";
    const char *size = strstr(sentence, block);
    if (size)
        return oos_arena_format(arena, "%.*s%" PRIu64 "%s", (int)(size - sentence), sentence,
                                oos_u64_or(q->setup->block_size_given, 0), size + sizeof block - 1);
    unsigned const capability = q->setup->device.capability;
    const char *at = strstr(sentence, name), *then_at = at ? strstr(at, number) : NULL;
    if (!then_at) return oos_arena_format(arena, "%s", sentence);
    const char *between = at + sizeof name - 1;
    return oos_arena_format(arena, "%.*s%s%.*s%u.%u%s", (int)(at - sentence), sentence,
                            q->setup->device.name ? q->setup->device.name : "this GPU",
                            (int)(then_at - between), between, capability / 10, capability % 10,
                            then_at + sizeof number - 1);
}

static const char *words_of(oos_arena *arena, const oos_backend_question *q, oos_attention_backend backend,
                            oos_objection objection)
{
    if (objection == OOS_OBJECTION_MLA && !q->mla) return "non-MLA not supported";
    if (objection == OOS_OBJECTION_SPARSE && !q->sparse) return "non-sparse not supported";
    if (objection != OOS_OBJECTION_COMBINATION) return engine_words(objection);
    return filled(arena, q, oos_backend_refuses(q, backend, false)->reason);
}

static const char *why(oos_arena *arena, const oos_backend_question *q, oos_attention_backend backend,
                       oos_objection objection)
{
    const char *name = traits[backend].name;
    unsigned const capability = q->setup->device.capability;
    switch (objection) {
    case OOS_OBJECTION_HEAD_SIZE:
        if (backend == OOS_BACKEND_FLASH_ATTN && q->setup->rules->fa_head_sizes == 0)
            return oos_arena_format(arena,
                                    "head size %" PRIu64
                                    " is not one %s takes in this version (32, 64, 96, 128, "
                                    "160, 192, 224, 256)",
                                    q->head, name);
        return oos_arena_format(arena, "head size %" PRIu64 " is not one %s takes", q->head, name);
    case OOS_OBJECTION_DTYPE:
        return oos_arena_format(arena, "%s does not compute in %s", name, oos_dtype_word(q->setup->dtype));
    case OOS_OBJECTION_KV_DTYPE:
        return oos_arena_format(arena, "%s does not read a KV cache of type %s on compute capability %u.%u",
                                name, q->kv_word, capability / 10, capability % 10);
    case OOS_OBJECTION_CAPABILITY:
        return oos_arena_format(arena, "%s does not run on compute capability %u.%u", name, capability / 10,
                                capability % 10);
    case OOS_OBJECTION_MM_PREFIX:
        return oos_arena_format(arena, "image tokens attend in both directions, which %s does not do here",
                                name);
    case OOS_OBJECTION_SINKS:
        return oos_arena_format(arena, "%s has no attention sinks on compute capability %u.%u", name,
                                capability / 10, capability % 10);
    case OOS_OBJECTION_LATENT_SHAPE:
        return oos_arena_format(arena, "%s has no kernel for these MLA dimensions", name);
    case OOS_OBJECTION_COMBINATION:
    case OOS_OBJECTION_BLOCK_SIZE:
    case OOS_OBJECTION_MLA:
    case OOS_OBJECTION_SPARSE:
    case OOS_OBJECTION_SLIDING_WINDOW:
    case OOS_OBJECTION_DCP:
    case OOS_OBJECTION_ABSENT:
        return oos_arena_format(arena, "%s: %s", name, words_of(arena, q, backend, objection));
    case OOS_OBJECTION_NONE: break;
    }
    return NULL;
}

static const char *refusal(oos_arena *arena, const oos_backend_question *q, const decision *decided)
{
    const pick *picked = &decided->pick;
    char block[40] = "";
    if (decided->built) return filled(arena, q, decided->built);
    if (decided->forced_invalid)
        return oos_arena_format(
            arena,
            "Selected backend AttentionBackendEnum.%s is not valid for this configuration. "
            "Reason: ['%s']",
            traits[picked->backend].name, words_of(arena, q, picked->backend, picked->objection));
    if (!q->setup->rules->backend_by_list)
        return oos_arena_format(
            arena,
            "Head size %" PRIu64 " is not supported by FlashAttention. Supported head sizes "
            "are: [32, 64, 96, 128, 160, 192, 224, 256]. Set VLLM_USE_V1=0 to use another "
            "attention backend.",
            q->head);
    if (q->block) snprintf(block, sizeof block, ", block_size=%" PRIu64, q->block);
    return oos_arena_format(arena,
                            "No valid attention backend found for cuda with head_size=%" PRIu64 ", "
                            "dtype=torch.%s, kv_cache_dtype=%s%s. Reasons: {%s: [%s]}.",
                            q->head, oos_dtype_word(q->setup->dtype), q->kv_word, block,
                            traits[picked->preferred].name,
                            words_of(arena, q, picked->preferred, picked->objection));
}

/* ---- the answer ------------------------------------------------------------------------------------------------- */

/* To 0.17 the platform set MLA's block size before a backend was chosen; since then the backend is asked. */
static uint64_t preferred_block(const oos_backend_question *q, oos_attention_backend backend, bool forced)
{
    const vllm_rules *rules = q->setup->rules;
    if (rules->mla_block_rule >= 3) {
        /* FA4's kernel for head size 256 on SM100 reads pages of 128 (flash_attn.py, since 0.29); FA4 with fp8 pages
         * on SM90 reads 64 */
        if (backend == OOS_BACKEND_FLASH_ATTN && q->head == 256 && q->major == 10 &&
            rules->fa4_blackwell_head_256 == 2 && oos_backend_flash_version(q, 256) == 4)
            return 128;
        if (backend == OOS_BACKEND_FLASH_ATTN && q->head == 512 && q->major == 9 && q->kv == OOS_KV_FP8 &&
            rules->fa_fp8_kv >= 3)
            return 64;
        return traits[backend].preferred_block;
    }
    if (!q->mla) return 0;
    if (q->sparse) return 64;
    if (forced) {
        if (backend == OOS_BACKEND_FLASHMLA && q->major == 9) return 64;
        if (backend == OOS_BACKEND_CUTLASS_MLA) return 128;
        return backend == OOS_BACKEND_FLASHINFER_MLA ? 64 : 0;
    }
    if (q->major == 10 && rules->mla_block_rule >= 2) return q->attention->nope_dim == 128 ? 64 : 128;
    if (q->setup->device.capability == 100 && rules->mla_block_rule >= 1) return 128;
    return q->major == 9 ? 64 : 0;
}

static oos_kv_dtype stored(const oos_backend_question *q, oos_attention_backend backend)
{
    if (backend == OOS_BACKEND_FLASHMLA_SPARSE_DSV4) return OOS_KV_FP8_DS_MLA;
    if (backend == OOS_BACKEND_FLASHINFER_MLA_SPARSE_DSV4) /* plain rows on SM100 */
        return q->major == 12 ? OOS_KV_FP8_DS_MLA : q->kv;
    if (backend == OOS_BACKEND_FLASHMLA_SPARSE && q->kv == OOS_KV_FP8) return OOS_KV_FP8_DS_MLA;
    if (backend == OOS_BACKEND_FLASHINFER_MLA_SPARSE_SM120 &&
        (q->kv == OOS_KV_FP8 || q->kv == OOS_KV_MODEL_DTYPE))
        return OOS_KV_FP8_DS_MLA;
    return q->kv;
}

static bool full_graphs(const oos_backend_question *q, oos_attention_backend backend)
{
    const vllm_rules *rules = q->setup->rules;
    bool const drafts = q->setup->speculative_tokens > 0;
    if (backend == OOS_BACKEND_FLEX_ATTENTION) return rules->flex_full_graphs;
    /* one token a request, unless TensorRT-LLM's kernels (XQA on SM12x and SM90) take the drafts along */
    if (backend == OOS_BACKEND_FLASHINFER && drafts)
        return q->major == 10 || (q->major == 12 && rules->flashinfer_xqa >= 1) ||
               (q->setup->device.capability == 90 && rules->flashinfer_xqa >= 2);
    if (backend == OOS_BACKEND_CUTLASS_MLA && drafts) return false;
    if (backend == OOS_BACKEND_TRITON_MLA) return rules->triton_mla_full_graphs;
    return traits[backend].full_graphs;
}

static bool answer_state(const oos_setup *setup, const oos_attention *attention,
                         oos_backend_choice *ret_choice)
{
    const char *name = state_backend(attention->mixer);
    if (!name) return false;
    *ret_choice = (oos_backend_choice){
        .name = name, .kernel_block = 1, .kv_dtype = setup->kv_dtype, .full_graphs = true};
    return true;
}

/* To 0.11.0 no check was made before, and every type but "auto" counted as quantised (is_quantized_kv_cache). */
static const char *constructor_before_lists(const oos_backend_question *q, oos_attention_backend backend)
{
    bool const quantised = strcmp(q->kv_word, "auto") != 0;
    if (old_engine(q)) return NULL;
    if (backend == OOS_BACKEND_TRITON_ATTN && oos_backend_objection(q, backend) == OOS_OBJECTION_HEAD_SIZE)
        return "Head size is not supported by TritonAttention."; /* the engine names it and those it takes */
    if (!quantised) return NULL;
    if (backend == OOS_BACKEND_FLASH_ATTN && q->major != 9)
        return "FlashAttention does not support fp8 kv-cache on this device.";
    if (backend == OOS_BACKEND_FLEX_ATTENTION)
        return "FlexAttention does not support quantized kv-cache. Yet";
    if (backend == OOS_BACKEND_FLASH_ATTN_MLA) return "FlashAttnMLA V1 with FP8 KV cache not yet supported";
    return backend == OOS_BACKEND_TRITON_MLA ? "TritonMLA V1 with FP8 KV cache not yet supported" : NULL;
}

/* To 0.17 a block size was not asked of a backend before it was chosen. */
static const char *block_refused(const oos_backend_question *q, oos_attention_backend backend)
{
    uint64_t const given = oos_u64_or(q->setup->block_size_given, 0);
    bool const lists = q->setup->rules->backend_by_list;
    if (!given || q->mla || old_engine(q) || given % oos_backend_least_block(q, backend) == 0) return NULL;
    if (!lists && backend != OOS_BACKEND_FLASH_ATTN && backend != OOS_BACKEND_TRITON_ATTN) return NULL;
    return lists ? "No common block size for {block}." : "Block size must be a multiple of 16.";
}

static const char *built(const oos_backend_question *q, oos_attention_backend backend)
{
    const oos_backend_refusal *r = oos_backend_refuses(q, backend, true);
    const char *sentence = r ? r->reason : NULL;
    if (!sentence && !q->setup->rules->backend_by_list) sentence = constructor_before_lists(q, backend);
    return sentence || q->setup->rules->mla_block_rule >= 3 ? sentence : block_refused(q, backend);
}

static decision answer(const oos_backend_question *q, oos_backend_choice *ret_choice)
{
    decision decided = decide(q);
    oos_attention_backend const backend = decided.pick.backend;
    *ret_choice = (oos_backend_choice){.forced = decided.forced, .kernel_block = 16, .kv_dtype = q->kv};
    if (!decided.pick.none && !decided.forced_invalid) decided.built = built(q, backend);
    if (decided.pick.none || decided.forced_invalid || decided.built) {
        ret_choice->refused = true;
        if (decided.built) ret_choice->name = traits[backend].name; /* chosen, and it raises */
        return decided;
    }
    ret_choice->name = traits[backend].name;
    ret_choice->kernel_block = traits[backend].kernel_block;
    ret_choice->preferred_block = preferred_block(q, backend, decided.forced);
    ret_choice->kv_dtype = stored(q, backend);
    ret_choice->full_graphs = full_graphs(q, backend);
    return decided;
}

void oos_backend_pick(const oos_setup *setup, const oos_attention *attention, oos_backend_choice *ret_choice)
{
    if (answer_state(setup, attention, ret_choice)) return;
    oos_backend_question const q = question_of(setup, attention);
    answer(&q, ret_choice);
}

oomsight_status oos_backend_choose(oos_arena *arena, const oos_setup *setup, const oos_attention *attention,
                                   oos_backend_choice *ret_choice, oomsight_error *reterr)
{
    oos_backend_choice choice;
    if (answer_state(setup, attention, &choice)) {
        *ret_choice = choice;
        return OOMSIGHT_OK;
    }
    oos_backend_question const q = question_of(setup, attention);
    decision const decided = answer(&q, &choice);
    if (choice.refused) {
        choice.reason = refusal(arena, &q, &decided);
        if (!choice.reason) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a sentence");
    } else {
        uint64_t const block =
            oos_u64_or(setup->block_size_given, choice.preferred_block ? choice.preferred_block : 16);
        choice.workspace_bytes = oos_backend_workspace(&q, decided.pick.backend, block);
        if (decided.pick.passed_over) {
            choice.reason = why(arena, &q, decided.pick.preferred, decided.pick.objection);
            if (!choice.reason) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a sentence");
        }
    }
    *ret_choice = choice;
    return OOMSIGHT_OK;
}
