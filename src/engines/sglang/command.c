/* SGLang's command: where it begins, and what its flags ask for. */
#include "base/locale.h"
#include "engines/sglang/sglang.h"

#include <stdlib.h>
#include <string.h>

/* `sglang serve ...` and `python -m sglang.launch_server ...` */
static bool entry_at(const char *const *words, size_t count, size_t at, oos_serve_entry *ret_entry)
{
    if (at + 1 >= count || strcmp(words[at + 1], "bench") == 0 ||
        oos_engine_words_at(words[at], words[at + 1]) != oos_engine_sglang.words)
        return false;
    ret_entry->first = at + 2;
    ret_entry->flags_only = strcmp(words[at], "-m") == 0;
    return true;
}

static const char *const modelled[] = {"--tp-size",
                                       "--pp-size",
                                       "--dp-size",
                                       "--ep-size",
                                       "--mem-fraction-static",
                                       "--context-length",
                                       "--max-running-requests",
                                       "--max-total-tokens",
                                       "--chunked-prefill-size",
                                       "--max-prefill-tokens",
                                       "--page-size",
                                       "--swa-full-tokens-ratio",
                                       "--disable-hybrid-swa-memory",
                                       "--enable-multimodal",
                                       "--language-only",
                                       "--language-model-only",
                                       "--mm-feature-transport",
                                       "--speculative-algorithm",
                                       "--speculative-draft-model-path",
                                       "--speculative-num-draft-tokens",
                                       "--speculative-num-steps",
                                       "--speculative-eagle-topk",
                                       "--max-mamba-cache-size",
                                       "--mamba-full-memory-ratio",
                                       "--mamba-ssm-dtype",
                                       "--mamba-radix-cache-strategy",
                                       "--mamba-scheduler-strategy",
                                       "--enable-dp-attention",
                                       "--attn-dp-size",
                                       "--enable-dp-lm-head",
                                       "--linear-attn-backend",
                                       "--disable-radix-cache",
                                       "--disable-overlap-schedule",
                                       "--disable-cuda-graph",
                                       "--disable-decode-cuda-graph",
                                       "--disable-prefill-cuda-graph",
                                       "--disable-piecewise-cuda-graph",
                                       "--enable-piecewise-cuda-graph",
                                       "--enforce-piecewise-cuda-graph",
                                       "--piecewise-cuda-graph-max-tokens",
                                       "--piecewise-cuda-graph-tokens",
                                       "--disable-cuda-graph-padding",
                                       "--cuda-graph-max-bs",
                                       "--cuda-graph-bs",
                                       "--cuda-graph-max-bs-decode",
                                       "--cuda-graph-max-bs-prefill",
                                       "--cuda-graph-bs-decode",
                                       "--cuda-graph-bs-prefill",
                                       "--cuda-graph-backend-decode",
                                       "--cuda-graph-backend-prefill",
                                       "--dtype",
                                       "--kv-cache-dtype",
                                       "--quantization",
                                       "--load-format",
                                       "--attention-backend",
                                       "--disaggregation-mode",
                                       "--disaggregation-decode-extra-slots",
                                       "--disaggregation-decode-enable-radix-cache",
                                       "--dsa-prefill-backend",
                                       "--dsa-decode-backend",
                                       "--nsa-prefill-backend",
                                       "--nsa-decode-backend",
                                       "--enable-lora",
                                       "--lora-paths",
                                       "--max-lora-rank",
                                       "--max-loras-per-batch",
                                       "--lora-target-modules",
                                       "--enable-deterministic-inference",
                                       NULL};

/* The model that drafts is opened beside the one that is served. */
static oomsight_status command_finish(oos_serve_reader *in, bool latency)
{
    (void)latency;
    for (size_t i = 0; i < in->flag_count; i++) {
        if (strcmp(in->flags[i].name, "--speculative-draft-model-path") != 0 || !in->flags[i].value) continue;
        in->serve->speculative.present = true;
        in->serve->speculative.model = in->flags[i].value;
    }
    return OOMSIGHT_OK;
}

const oos_dialect oos_sglang_dialect = {
    .entry_at = entry_at,
    .expected = "SGLang: expected `sglang serve MODEL ...` or `python -m sglang.launch_server --model-path "
                "MODEL ...`",
    .start = "sglang serve MODEL ...",
    .model_flag = "--model-path",
    .share_flag = "--mem-fraction-static",
    .model_first = true,
    .config_flag = "--config",
    .finish = command_finish,
    .modelled = modelled,
};

/* Flags with which memory goes ways that were not read: what they do, and the value that changes nothing (NULL: a switch). */
static const struct {
    const char *flag, *idle, *what;
} unread[] = {
    {"--speculative-adaptive", NULL, "drafts of changing lengths"},
    {"--speculative-token-map", "", "a head of fewer words"},
    {"--speculative-draft-model-quantization", "", "a draft model in another form"},
    {"--speculative-draft-kv-cache-dtype", "auto", "a draft cache of another type"},
    {"--enable-multi-layer-eagle", NULL, "several draft models"},
    {"--moe-a2a-backend", "none", "buffers through which experts exchange tokens"},
    {"--enable-deepep-moe", NULL, "buffers through which experts exchange tokens"},
    {"--moe-dense-tp-size", "", "dense layers that are split otherwise"},
    {"--cpu-offload-gb", "0", "weights kept on the host"},
    {"--offload-group-size", "-1", "weights kept on the host"},
    {"--dcp-size", "1", "tokens of the cache shared between ranks"},
    {"--attn-cp-size", "1", "prefill shared between ranks"},
    {"--enable-kv-cache-sharding", NULL, "tokens of the cache shared between ranks"},
    {"--moe-a2a-backend", "none", "buffers between the ranks of experts"},
    {"--enable-unified-memory", NULL, "one pool for all kinds of layers"},
    {"--enable-hisparse", NULL, "a sparse cache"},
    {"--enable-int8-mamba-checkpoint", NULL, "states kept in int8"},
    {"--enable-linear-replayssm", NULL, "records of states"},
    {"--enable-linear-replayssm-spec", NULL, "records of states"},
    {"--enable-torch-compile", NULL, "compiled graphs"},
    {"--cuda-graph-config", "", "graphs configured in JSON"},
    {"--json-model-override-args", "{}", "a changed model config"},
    {"--enable-symm-mem", NULL, "symmetric memory between ranks"},
    {"--enable-two-batch-overlap", NULL, "two batches at once"},
    {"--enable-deepep-moe", NULL, "buffers between the ranks of experts"},
    {"--enable-double-sparsity", NULL, "a sparse cache"},
    {"--torchao-config", "", "weights in another form"},
};

static const char *value_of(const oos_serve *serve, const char *flag)
{
    const oos_given_flag *given = oos_serve_given(serve, flag);
    return given ? given->value : NULL;
}

static bool is_given(const oos_serve *serve, const char *flag)
{
    return oos_serve_given(serve, flag) != NULL;
}

/* What is no number was refused when the command was read. */
static oos_u64 number_of(const oos_serve *serve, const char *flag)
{
    static const oos_flag_form human = {.suffixes = "kMGTi"};
    const char *text = value_of(serve, flag);
    bool negative;
    uint64_t number;
    if (!text || !oos_serve_int(&human, text, &negative, &number) || negative) return (oos_u64){0};
    return oos_u64_of(number);
}

static oos_f64 real_of(const oos_serve *serve, const char *flag)
{
    const char *text = value_of(serve, flag);
    char *end;
    double const number = text ? oos_real_read(text, &end) : 0;
    return text && end != text ? (oos_f64){true, number} : (oos_f64){0};
}

/* The words of a flag that takes several. */
static oos_u64 words_of(const oos_serve *serve, const char *flag, uint64_t *ret_largest)
{
    const char *text = value_of(serve, flag);
    uint64_t count = 0;
    *ret_largest = 0;
    while (text && *text) {
        char *end;
        unsigned long long const number = strtoull(text, &end, 10);
        if (end == text) break;
        *ret_largest = oos_max(*ret_largest, number);
        count++;
        text = end + strspn(end, " ");
    }
    return count ? oos_u64_of(count) : (oos_u64){0};
}

static const char *unread_of(oos_arena *arena, const oos_serve *serve, const sglang_request *request)
{
    for (size_t i = 0; i < sizeof unread / sizeof *unread; i++) {
        const oos_given_flag *given = oos_serve_given(serve, unread[i].flag);
        bool const idle =
            given && unread[i].idle && given->value && strcmp(given->value, unread[i].idle) == 0;
        if (given && !idle)
            return oos_arena_format(arena, "%s brings %s, which is not modelled for SGLang", unread[i].flag,
                                    unread[i].what);
    }
    if (request->adapters && (!request->adapter_rank.known || !request->adapter_modules))
        return "adapters without --max-lora-rank and --lora-target-modules take what their files say, which "
               "is "
               "not read for SGLang";
    if (request->ep > 1 && request->ep != request->tp)
        return "experts shared between some of the ranks only are not modelled for SGLang";
    return NULL;
}

static bool is_disabled(const oos_serve *serve, const char *backend_flag, const char *off_flag)
{
    const char *backend = value_of(serve, backend_flag);
    return backend ? strcmp(backend, "disabled") == 0 : is_given(serve, off_flag);
}

/* Flags beside which the backend tc_piecewise captures no prefill (_handle_piecewise_cuda_graph), and the value that leaves it alone. */
static bool piecewise_blocked(const oos_serve *serve)
{
    static const struct {
        const char *flag, *idle;
    } blocks[] = {{"--enable-torch-compile", NULL},
                  {"--enable-hierarchical-cache", NULL},
                  {"--enable-lora", NULL},
                  {"--lora-paths", NULL},
                  {"--moe-a2a-backend", "none"},
                  {"--dllm-algorithm", NULL},
                  {"--cpu-offload-gb", "0"},
                  {"--enable-deterministic-inference", NULL},
                  {"--enable-symm-mem", NULL},
                  {"--enable-eplb", NULL},
                  {"--expert-distribution-recorder-mode", NULL},
                  {"--attn-cp-size", "1"},
                  {"--debug-cuda-graph", NULL}};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) {
        const char *value = value_of(serve, blocks[i].flag);
        if (is_given(serve, blocks[i].flag) &&
            !(value && blocks[i].idle && strcmp(value, blocks[i].idle) == 0))
            return true;
    }
    return false;
}

static void graphs_read(const oos_serve *serve, sglang_request *r)
{
    uint64_t largest;
    const char *role = value_of(serve, "--disaggregation-mode");
    r->prefill_only = role && strcmp(role, "prefill") == 0;
    r->decode_only = role && strcmp(role, "decode") == 0;
    bool const eager = is_given(serve, "--disable-cuda-graph");
    r->eager = eager && !is_given(serve, "--cuda-graph-backend-prefill");
    r->decode_off = is_disabled(serve, "--cuda-graph-backend-decode", "--disable-decode-cuda-graph") ||
                    (eager && !is_given(serve, "--cuda-graph-backend-decode"));
    r->decode_idle = r->prefill_only && !is_given(serve, "--cuda-graph-backend-decode");
    r->prefill_off = is_disabled(serve, "--cuda-graph-backend-prefill", "--disable-prefill-cuda-graph") ||
                     is_given(serve, "--disable-piecewise-cuda-graph");
    r->prefill_blocked = piecewise_blocked(serve);
    r->prefill_asked = is_given(serve, "--enable-piecewise-cuda-graph");
    r->prefill_named = !r->prefill_off && (is_given(serve, "--cuda-graph-backend-prefill") ||
                                           is_given(serve, "--enforce-piecewise-cuda-graph"));
    r->every_batch = is_given(serve, "--disable-cuda-graph-padding");
    r->decode_batch =
        number_of(serve, is_given(serve, "--cuda-graph-max-bs-decode") ? "--cuda-graph-max-bs-decode"
                                                                       : "--cuda-graph-max-bs");
    r->prefill_tokens = number_of(serve, is_given(serve, "--cuda-graph-max-bs-prefill")
                                             ? "--cuda-graph-max-bs-prefill"
                                             : "--piecewise-cuda-graph-max-tokens");
    r->decode_sizes = words_of(
        serve, is_given(serve, "--cuda-graph-bs-decode") ? "--cuda-graph-bs-decode" : "--cuda-graph-bs",
        &largest);
    r->decode_words = value_of(serve, is_given(serve, "--cuda-graph-bs-decode") ? "--cuda-graph-bs-decode"
                                                                                : "--cuda-graph-bs");
    r->decode_asked = r->decode_batch;
    if (r->decode_sizes.known) r->decode_batch = oos_u64_of(largest);
    r->prefill_sizes = words_of(serve,
                                is_given(serve, "--cuda-graph-bs-prefill") ? "--cuda-graph-bs-prefill"
                                                                           : "--piecewise-cuda-graph-tokens",
                                &largest);
}

void oos_sglang_request_read(oos_arena *arena, const oos_serve *serve, sglang_request *ret_request)
{
    sglang_request r = {
        .tp = oos_max(1, oos_u64_or(number_of(serve, "--tp-size"), 1)),
        .pp = oos_max(1, oos_u64_or(number_of(serve, "--pp-size"), 1)),
        .dp = oos_max(1, oos_u64_or(number_of(serve, "--dp-size"), 1)),
        .ep = oos_max(1, oos_u64_or(number_of(serve, "--ep-size"), 1)),
        .nodes = oos_max(1, oos_u64_or(number_of(serve, "--nnodes"), 1)),
        .base = oos_u64_or(number_of(serve, "--base-gpu-id"), 0),
        .step = oos_max(1, oos_u64_or(number_of(serve, "--gpu-id-step"), 1)),
        .fraction = real_of(serve, "--mem-fraction-static"),
        .context = number_of(serve, "--context-length"),
        .requests = number_of(serve, "--max-running-requests"),
        .tokens_most = number_of(serve, "--max-total-tokens"),
        .chunk = number_of(serve, "--chunked-prefill-size"),
        .prefill_most = oos_u64_or(number_of(serve, "--max-prefill-tokens"), 16384),
        .page = oos_max(1, oos_u64_or(number_of(serve, "--page-size"), 1)),
        .swa_off = is_given(serve, "--disable-hybrid-swa-memory"),
        .swa_ratio = oos_f64_or(real_of(serve, "--swa-full-tokens-ratio"), 0.8),
        .swa_given = is_given(serve, "--swa-full-tokens-ratio"),
        .states_most = number_of(serve, "--max-mamba-cache-size"),
        .state_share = oos_f64_or(real_of(serve, "--mamba-full-memory-ratio"), 0.9),
        .state_dtype = value_of(serve, "--mamba-ssm-dtype"),
        .state_strategy =
            value_of(serve, is_given(serve, "--mamba-radix-cache-strategy") ? "--mamba-radix-cache-strategy"
                                                                            : "--mamba-scheduler-strategy"),
        .linear_backend = value_of(serve, "--linear-attn-backend"),
        .radix_off = is_given(serve, "--disable-radix-cache"),
        .overlap_off = is_given(serve, "--disable-overlap-schedule"),
        .images_on = is_given(serve, "--enable-multimodal"),
        .images_off = is_given(serve, "--language-only") || is_given(serve, "--language-model-only"),
        .images_transport = value_of(serve, "--mm-feature-transport"),
        .dtype = value_of(serve, "--dtype"),
        .kv_dtype = value_of(serve, "--kv-cache-dtype"),
        .quantization = value_of(serve, "--quantization"),
        .load_format = value_of(serve, "--load-format"),
        .attention = value_of(serve, "--attention-backend"),
        .sparse_prefill = value_of(serve, is_given(serve, "--dsa-prefill-backend") ? "--dsa-prefill-backend"
                                                                                   : "--nsa-prefill-backend"),
        .sparse_decode = value_of(serve, is_given(serve, "--dsa-decode-backend") ? "--dsa-decode-backend"
                                                                                 : "--nsa-decode-backend"),
    };
    if (is_given(serve, "--enable-ep-moe")) r.ep = r.tp;
    enum { SLOTS_USUAL = 8 };
    if (is_given(serve, "--enable-lora") || is_given(serve, "--lora-paths"))
        r.adapters = oos_max(1, oos_u64_or(number_of(serve, "--max-loras-per-batch"), SLOTS_USUAL));
    r.adapter_rank = number_of(serve, "--max-lora-rank");
    r.adapter_modules = oos_sglang_adapter_modules(value_of(serve, "--lora-target-modules"));
    r.hierarchical = is_given(serve, "--enable-hierarchical-cache");
    r.host_ratio = real_of(serve, "--hicache-ratio");
    r.host_gb = real_of(serve, "--hicache-size");
    r.deterministic = is_given(serve, "--enable-deterministic-inference");
    const char *compressed = value_of(serve, "--dsv4-attn-backend");
    r.experts_runner = value_of(serve, "--moe-runner-backend");
    if (r.experts_runner && strcmp(r.experts_runner, "auto") == 0) r.experts_runner = NULL;
    r.rows_uniform = compressed && strcmp(compressed, "trtllm") == 0;
    const char *overrides = value_of(serve, "--json-model-override-args");
    json_t *parsed = overrides ? oos_json_parse(oos_view_of(overrides), JSON_DECODE_ANY) : NULL;
    r.override_broken = overrides && !parsed;
    json_decref(parsed);
    const char *chunk = value_of(serve, "--chunked-prefill-size");
    r.chunk_negative = chunk && *chunk == '-';
    if (r.chunk_negative) r.chunk = oos_u64_of(0);
    r.drafter = value_of(serve, "--speculative-algorithm");
    oos_u64 const drafted = number_of(serve, "--speculative-num-draft-tokens");
    r.draft_tokens = oos_max(1, oos_u64_or(drafted, 1));
    r.draft_tokens_given = drafted.known;
    r.steps = number_of(serve, "--speculative-num-steps");
    r.branches = number_of(serve, "--speculative-eagle-topk");
    uint64_t const replicas = oos_u64_or(number_of(serve, "--attn-dp-size"), 1);
    if (replicas > 1) r.dp = replicas;
    r.replicated = r.dp > 1 && (replicas > 1 || is_given(serve, "--enable-dp-attention"));
    r.head_replicated = r.replicated && is_given(serve, "--enable-dp-lm-head");
    graphs_read(serve, &r);
    if (r.decode_only && !is_given(serve, "--disaggregation-decode-enable-radix-cache")) r.radix_off = true;
    r.extra_slots = number_of(serve, "--disaggregation-decode-extra-slots");
    r.sliding_by_requests = r.requests.known && r.radix_off;
    r.unread = unread_of(arena, serve, &r);
    *ret_request = r;
}
