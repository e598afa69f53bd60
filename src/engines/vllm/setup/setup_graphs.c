/* CUDA graphs: the mode, the list of batch sizes that are captured, and whether their memory is budgeted. */
#include "engines/vllm/setup/setup.h"
#include "base/ascii.h"
#include "base/check.h"

static void add_size(oos_setup *setup, uint64_t size)
{
    if (setup->capture_count < OOS_CAPTURE_SIZES_MAX) setup->capture_sizes[setup->capture_count++] = size;
}

/* A largest size may be any number: the list is full long before that. */
static void add_range(oos_setup *setup, uint64_t first, uint64_t end, uint64_t step)
{
    for (uint64_t size = first; size < end && setup->capture_count < OOS_CAPTURE_SIZES_MAX; size += step)
        add_size(setup, size);
}

/* Ascending, without repeats, none above `most`. */
static void tidy_sizes(oos_setup *setup, uint64_t most)
{
    uint64_t *sizes = setup->capture_sizes;
    for (size_t i = 1; i < setup->capture_count; i++) { /* nearly sorted: one or a few come last */
        uint64_t const size = sizes[i];
        size_t at = i;
        for (; at > 0 && sizes[at - 1] > size; at--) sizes[at] = sizes[at - 1];
        sizes[at] = size;
    }
    size_t kept = 0;
    for (size_t i = 0; i < setup->capture_count; i++) {
        uint64_t const size = sizes[i];
        if (size == 0 || size > most || (kept && sizes[kept - 1] == size)) continue;
        sizes[kept++] = size;
    }
    setup->capture_count = kept;
    setup->capture_top = kept ? sizes[kept - 1] : 0;
    oos_assert(kept <= OOS_CAPTURE_SIZES_MAX && setup->capture_top <= most);
}

/* A uniform decode batch has query_len tokens per request: those sizes are captured too where they fit
 * (0.29 for speculation, 0.31 for max_num_seqs itself). VllmConfig._set_cudagraph_sizes */
static void add_decode_sizes(oos_setup *setup, uint64_t query_len, uint64_t top, uint64_t most_requests)
{
    if (query_len == 1) {
        if (setup->rules->capture_appends_max_num_seqs && setup->max_num_seqs <= top)
            add_size(setup, setup->max_num_seqs);
        return;
    }
    if (!setup->rules->capture_appends_decode_sizes) return;
    uint64_t const requests = oos_min(setup->max_num_seqs, most_requests);
    for (uint64_t n = 1; n <= requests; n = n < 4 ? n * 2 : n < 8 ? 8 : n < 256 ? n + 8 : n + 16)
        if (n * query_len <= top) add_size(setup, n * query_len);
    if (requests * query_len <= top) add_size(setup, requests * query_len);
}

/* GptOssForCausalLMConfig: captured further than others, in steps of 16 already when others had steps of 8. */
static uint64_t oss_top(const oos_setup *setup)
{
    return oos_setup_says(setup, "capture_top") ? setup->rules->oss_capture_top : 0;
}

static void default_sizes(oos_setup *setup)
{
    const vllm_rules *rules = setup->rules;
    uint64_t const cap = rules->capture_cap_blackwell && setup->device.capability / 10 == 10 ? 1024 : 512;
    uint64_t const query_len = rules->capture_counts_speculation ? 1 + setup->speculative_tokens : 1;
    uint64_t const tokens = setup->max_num_batched_tokens;
    oos_u64 const given = setup->serve->compilation.max_capture_size;

    if (rules->capture_list == 0) { /* 0.8, 0.9: a fixed list */
        uint64_t const top = oos_u64_or(given, 512);
        add_size(setup, 1), add_size(setup, 2), add_size(setup, 4);
        add_range(setup, 8, top + 1, 8);
        tidy_sizes(setup, tokens);
        return;
    }
    uint64_t top = oos_min(oos_mul(oos_mul(setup->max_num_seqs, query_len), 2), cap);
    uint64_t const further = given.known ? 0 : oss_top(setup);
    if (further) top = further;
    if (given.known) top = given.value;
    top = oos_min(top, tokens);

    bool const fine =
        setup->serve->performance_mode && strcmp(setup->serve->performance_mode, "interactivity") == 0;
    if (fine)
        add_range(setup, 1, oos_min(top, 32) + 1, 1);
    else
        add_size(setup, 1), add_size(setup, 2), add_size(setup, 4);
    if (rules->capture_list == 1 && !further) { /* the first three whatever is the largest */
        add_range(setup, 8, top + 1, 8);
        top = oos_min(oos_max(top, 4), tokens);
    } else {
        add_range(setup, 8, oos_min(top + 1, 256), 8);
        add_range(setup, 256, top + 1, 16);
    }
    if (rules->capture_appends_batched_tokens && tokens <= top) add_size(setup, tokens);
    if (!given.known) add_decode_sizes(setup, query_len, top, cap);
    tidy_sizes(setup, top);
}

oos_graph_mode oos_setup_graph_mode(const char *word, oos_graph_mode fallback)
{
    static const struct {
        const char *word;
        oos_graph_mode mode;
    } words[] = {{"NONE", OOS_GRAPH_NONE},
                 {"PIECEWISE", OOS_GRAPH_PIECEWISE},
                 {"FULL", OOS_GRAPH_FULL},
                 {"FULL_DECODE_ONLY", OOS_GRAPH_FULL_DECODE_ONLY},
                 {"FULL_AND_PIECEWISE", OOS_GRAPH_FULL_AND_PIECEWISE}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (oos_same(word, words[i].word)) return words[i].mode;
    return fallback;
}

/* Not compiled, but captured in pieces all the same (VLLM_USE_BREAKABLE_CUDAGRAPH, which these set for themselves). */
static bool breaks(const oos_setup *setup)
{
    uint64_t const since =
        oos_setup_says(setup, "breakable_graphs"); /* of the lists that the releases have had */
    return since && since <= setup->rules->breakable_graphs;
}

static oos_graph_mode resolve_mode(const oos_setup *setup)
{
    const oos_compilation *compilation = &setup->serve->compilation;
    if (oos_flag_or(setup->serve->enforce_eager, false)) return OOS_GRAPH_NONE;
    oos_graph_mode mode =
        setup->rules->full_graphs_default ? OOS_GRAPH_FULL_AND_PIECEWISE : OOS_GRAPH_PIECEWISE;
    bool const whole = !compilation->level.known || compilation->level.value == 3;
    uint64_t const follows = setup->rules->graphs_follow_mode;
    if (!whole && !follows) mode = OOS_GRAPH_NONE;
    if (compilation->optimization_level.known && compilation->optimization_level.value < 2)
        mode = compilation->optimization_level.value ? OOS_GRAPH_PIECEWISE : OOS_GRAPH_NONE;
    if (compilation->cudagraph_mode) mode = oos_setup_graph_mode(compilation->cudagraph_mode, mode);
    bool const compiled =
        compilation->level.known ? whole : oos_u64_or(compilation->optimization_level, 2) > 0;
    bool const pieces = mode == OOS_GRAPH_PIECEWISE || mode == OOS_GRAPH_FULL_AND_PIECEWISE;
    bool const stock = compilation->level.known && compilation->level.value == 1;
    if (stock && setup->v2_runner && follows > 1)
        return OOS_GRAPH_NONE; /* the second runner captures none there */
    if (pieces && follows && !compiled && !breaks(setup))
        mode =
            follows > 1 && mode == OOS_GRAPH_FULL_AND_PIECEWISE ? OOS_GRAPH_FULL_DECODE_ONLY : OOS_GRAPH_NONE;
    if (mode == OOS_GRAPH_FULL_AND_PIECEWISE && (setup->model->pooling || setup->model->encoder_decoder))
        mode = OOS_GRAPH_PIECEWISE;
    return mode;
}

/* torch.compile and CUDA graphs are two switches: mode 0 captures graphs of code that is not compiled, and cudagraph_mode NONE runs compiled
 * code without graphs. */
static bool compile_mode(const oos_setup *setup)
{
    const oos_compilation *compilation = &setup->serve->compilation;
    if (oos_flag_or(setup->serve->enforce_eager, false)) return false;
    return oos_u64_or(compilation->level, oos_u64_or(compilation->optimization_level, 3)) > 0;
}

void oos_setup_graphs(oos_setup *setup)
{
    const oos_compilation *compilation = &setup->serve->compilation;
    bool const no_sizes = compilation->capture_sizes_given && compilation->capture_size_count == 0;
    setup->graph_mode = resolve_mode(setup);
    setup->captures = setup->graph_mode != OOS_GRAPH_NONE;
    if (no_sizes) setup->graph_mode = OOS_GRAPH_NONE;
    setup->compiles = compile_mode(setup);
    setup->uncompiled = breaks(setup);
    setup->eager = setup->graph_mode == OOS_GRAPH_NONE;
    setup->graph_estimate_applied =
        oos_flag_or(setup->env->estimate_cudagraphs, setup->rules->graph_estimate_applied_default);
    if (setup->eager) return;
    if (compilation->capture_sizes_given) {
        for (size_t i = 0; i < compilation->capture_size_count; i++)
            add_size(setup, compilation->capture_sizes[i]);
        tidy_sizes(setup, setup->max_num_batched_tokens);
    } else {
        default_sizes(setup);
    }
}
