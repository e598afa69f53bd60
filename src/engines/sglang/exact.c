/* What the installed engine resolved and built, in the place of what was resolved and counted here: only what has the same meaning in both, and
 * only within what a start can have. What helps is looked for by the rules alone. */
#include "engines/sglang/sglang.h"
#include "base/check.h"

#include <string.h>

enum { MANY = 1 << 24 };

static const char *word_of(const oos_exact *exact, const char *name)
{
    const oos_setting *told = oos_exact_value(exact, name);
    return told && told->kind == OOS_SETTING_TEXT ? told->text : NULL;
}

static void number_take(const oos_exact *exact, const char *name, uint64_t most, oos_u64 *value)
{
    uint64_t number;
    if (oos_exact_whole(exact, name, most, &number)) *value = oos_u64_of(number);
}

void oos_sglang_take_asked(const oos_exact *exact, sglang_request *r)
{
    const char *kv = word_of(exact, "kv_cache_dtype"), *dtype = word_of(exact, "dtype"),
               *backend = word_of(exact, "attention_backend");
    r->exact = exact;
    number_take(exact, "max_model_len", (uint64_t)1 << 40, &r->context);
    number_take(exact, "max_num_seqs", MANY, &r->requests);
    number_take(exact, "speculative_steps", 1024, &r->steps);
    oos_exact_whole(exact, "page_size", 1 << 16, &r->page);
    if (r->drafter) oos_exact_whole(exact, "speculative_tokens", 1024, &r->draft_tokens);
    if (kv && strcmp(kv, "auto") != 0) r->kv_dtype = kv;
    if (dtype && oos_dtype_find(dtype) != OOS_DTYPE_UNKNOWN) r->dtype = dtype;
    if (backend) r->attention = backend;
}

void oos_sglang_take_resolved(const oos_exact *exact, sglang_setup *s)
{
    const oos_setting *share = oos_exact_value(exact, "gpu_memory_utilization"),
                      *prefill = oos_exact_value(exact, "prefill_capture_sizes");
    if (share && share->kind == OOS_SETTING_REAL && share->real > 0 && share->real < 1000)
        s->fraction = share->real;
    oos_exact_whole(exact, "max_num_batched_tokens", MANY, &s->chunk);
    if (exact->sizes_known) {
        oos_assert(exact->size_count <= OOS_EXACT_SIZES_MAX);
        s->decode_graphs = exact->size_count;
        if (exact->size_count) s->decode_batch = exact->sizes[exact->size_count - 1];
    }
    if (!prefill || prefill->kind != OOS_SETTING_WHOLE || prefill->whole > OOS_EXACT_SIZES_MAX) return;
    s->prefill_graphs = prefill->whole;
    if (s->prefill_graphs) oos_exact_whole(exact, "prefill_capture_top", MANY, &s->prefill_tokens);
}

/* Its own classes on the first rank: what they create, and how many tokens its own sizing puts into so much. */
bool oos_sglang_take_built(const oos_exact *exact, bool drafted, oos_weights *weights, sglang_pool *pool)
{
    if (!exact || exact->stage_count != 1) return false;
    uint64_t const now = exact->param_bytes[0], was = weights->param_bytes;
    if (!drafted && now != was) {
        weights->param_bytes = now;
        weights->loaded_bytes = oos_sub(oos_add(weights->loaded_bytes, now), was);
        weights->loaded_low = weights->loaded_high = weights->loaded_bytes;
    }
    if (!drafted && weights->source == OOS_SOURCE_ESTIMATED) weights->source = OOS_SOURCE_DERIVED;
    if (!exact->tokens || !exact->budget_bytes) return false;
    double const budget = (double)exact->budget_bytes - (double)pool->fixed_bytes;
    uint64_t const page = oos_max(1, pool->paged);
    bool const same =
        pool->cell > 0 && budget > 0 && (uint64_t)(budget / pool->cell) / page * page == exact->tokens;
    if (!same) pool->cell = (double)exact->budget_bytes / (double)exact->tokens;
    if (!same) pool->fixed_bytes = 0;
    return true;
}
