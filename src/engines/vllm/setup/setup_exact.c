/* What the installed engine resolved, in the place of what was resolved here. Only what has the same meaning in both, and only within what
 * a start can have: an answer that is out of its mind changes nothing. */
#include "engines/vllm/setup/setup.h"
#include "plan/plan.h"

static void switch_take(const oos_exact *exact, const char *name, bool *value)
{
    const oos_setting *told = oos_exact_value(exact, name);
    if (told && told->kind == OOS_SETTING_YES) *value = told->whole;
}

static void types_take(oos_setup *setup, const oos_exact *exact)
{
    const oos_setting *told = oos_exact_value(exact, "dtype");
    oos_dtype const dtype =
        told && told->kind == OOS_SETTING_TEXT ? oos_dtype_find(told->text) : OOS_DTYPE_UNKNOWN;
    if (dtype != OOS_DTYPE_UNKNOWN) setup->dtype = dtype;
    told = oos_exact_value(exact, "kv_cache_dtype");
    if (told && told->kind == OOS_SETTING_TEXT) oos_setup_kv_dtype(setup, told->text);
}

static void lengths_take(oos_setup *setup, const oos_exact *exact)
{
    enum { MANY = 1 << 24 };
    uint64_t length = setup->max_model_len;
    if (!setup->auto_model_len && oos_exact_whole(exact, "max_model_len", (uint64_t)1 << 40, &length) &&
        length != setup->max_model_len) {
        setup->max_model_len = length;
        setup->length_of_draft = false; /* whatever it is that cut it */
    }
    oos_exact_whole(exact, "max_num_seqs", MANY, &setup->max_num_seqs);
    oos_exact_whole(exact, "max_num_batched_tokens", MANY, &setup->max_num_batched_tokens);
    const oos_setting *told = oos_exact_value(exact, "gpu_memory_utilization");
    double const share = !told ? 0 : told->kind == OOS_SETTING_REAL ? told->real : (double)told->whole;
    if (share > 0 && share <= 1) setup->gpu_memory_utilization = share;
}

static void graphs_take(oos_setup *setup, const oos_exact *exact)
{
    const oos_setting *mode = oos_exact_value(exact, "cudagraph_mode");
    if (!exact->sizes_known || !mode || mode->kind != OOS_SETTING_TEXT ||
        exact->size_count > OOS_CAPTURE_SIZES_MAX)
        return;
    setup->graph_mode =
        exact->size_count ? oos_setup_graph_mode(mode->text, setup->graph_mode) : OOS_GRAPH_NONE;
    setup->eager = setup->graph_mode == OOS_GRAPH_NONE;
    setup->capture_count = setup->eager ? 0 : exact->size_count;
    for (size_t i = 0; i < setup->capture_count; i++) setup->capture_sizes[i] = exact->sizes[i];
    setup->capture_top = setup->capture_count ? setup->capture_sizes[setup->capture_count - 1] : 0;
}

void oos_setup_take_exact(oos_setup *setup, const oos_exact *exact)
{
    setup->exact = exact;
    types_take(setup, exact);
    lengths_take(setup, exact);
    switch_take(exact, "v2_model_runner", &setup->v2_runner);
    switch_take(exact, "async_scheduling", &setup->async_scheduling);
    switch_take(exact, "prefix_caching", &setup->prefix_caching);
    switch_take(exact, "chunked_prefill", &setup->chunked_prefill);
    if (!setup->prefix_caching) setup->mamba_mode = OOS_MAMBA_NONE;
    graphs_take(setup, exact);
    oos_setup_flight(setup);
}
