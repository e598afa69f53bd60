/* The pool of recurrent states: what a slot takes, how many a request holds, and its share of what is left behind the weights (0.5.23,
 * srt/configs/mamba_utils.py and srt/mem_cache/kv_cache_configurator.py, _handle_max_mamba_cache; equal in 0.5.18). */
#include "engines/sglang/sglang.h"
#include "base/check.h"

#include <string.h>

/* What "state_pool" of an architecture says: slots for tracking where requests overlap, or none. */
enum { POOL_PLAIN = 1, POOL_TRACKED = 2 };
enum { SLOTS_BASE = 3, SLOTS_TRACKED = 2, SLOTS_TRACKED_ONE = 1 };

/* A variable that names a type; UNKNOWN: it is not there, or the engine goes on without it. */
static oos_dtype named(const sglang_start *setup, const char *variable)
{
    const oos_given_variable *given = setup->env ? oos_engine_env_given(setup->env, variable) : NULL;
    return given && given->value ? oos_dtype_find(given->value) : OOS_DTYPE_UNKNOWN;
}

static oos_dtype first_of(oos_dtype a, oos_dtype b)
{
    return a != OOS_DTYPE_UNKNOWN ? a : b;
}

/* mamba2_state_dtype(): windows of convolutions in bfloat16 whatever the model's type; states in float32 unless the config says
 * otherwise in the field of Qwen's hybrids. The flag sets the variable. */
static uint64_t layer_bytes(const sglang_request *request, const sglang_start *setup, const oos_attention *a)
{
    oos_layer_state const state = oos_layer_state_of(a, setup->tp);
    oos_dtype const conv = first_of(named(setup, "SGLANG_MAMBA_CONV_DTYPE"), OOS_DTYPE_BF16);
    oos_dtype const asked =
        request->state_dtype ? oos_dtype_find(request->state_dtype) : named(setup, "SGLANG_MAMBA_SSM_DTYPE");
    oos_dtype const own =
        first_of(a->mixer == OOS_MIXER_GDN ? a->state_dtype : OOS_DTYPE_UNKNOWN, OOS_DTYPE_F32);
    return oos_add(oos_mul(oos_mul(state.rows, state.channels), oos_dtype_bytes(conv)),
                   oos_mul(state.elements, oos_dtype_bytes(first_of(asked, own))));
}

static bool keeps_state(const oos_attention *a)
{
    return a->mixer >= OOS_MIXER_MAMBA1;
}

/* Slots of a request (_calculate_mamba_ratio): those of its cached prefixes, and those in which the state is tracked while it decodes. */
static uint64_t slots_of(const sglang_request *request, const sglang_start *setup, uint64_t kind)
{
    const char *strategy = request->state_strategy ? request->state_strategy : "auto";
    const oos_given_variable *skips =
        setup->env ? oos_engine_env_given(setup->env, "SGLANG_OPT_MAMBA_SKIP_DECODE_LOCK") : NULL;
    bool const skip = skips && skips->on.known && skips->on.value;
    bool const by_itself = kind == POOL_TRACKED && (!request->overlap_off || request->page > 1) &&
                           (!request->linear_backend || strcmp(request->linear_backend, "triton") == 0);
    bool const tracked = strcmp(strategy, "auto") == 0 ? by_itself : strcmp(strategy, "no_buffer") != 0;
    bool const lazy = strcmp(strategy, "extra_buffer_lazy") == 0;
    if (request->radix_off) return 1;
    if (!tracked) return SLOTS_BASE;
    uint64_t const base = skip ? SLOTS_BASE - 1 : SLOTS_BASE;
    return base + (lazy || request->overlap_off ? SLOTS_TRACKED_ONE : SLOTS_TRACKED);
}

sglang_states oos_sglang_states_of(const sglang_request *request, const sglang_start *setup)
{
    const oos_model *model = setup->model;
    sglang_states states = {0};
    for (uint64_t i = 0; i < model->layer_count; i++) {
        const oos_attention *a = &model->attentions[model->layers[i].attention];
        if (!keeps_state(a)) continue;
        states.slot_bytes = oos_add(states.slot_bytes, layer_bytes(request, setup, a));
        states.layers++;
    }
    if (!states.layers) return states;
    uint64_t const kind =
        setup->rules ? oos_architecture_says(setup->rules->facts, model->architecture, "state_pool") : 0;
    states.per_request = slots_of(request, setup, kind);
    if (!kind || !states.slot_bytes)
        states.unread = "the recurrent states of this model are not modelled for SGLang";
    return states;
}

double oos_sglang_states_take(const sglang_request *request, const sglang_drafts *drafts,
                              sglang_states *states, double left)
{
    uint64_t const slot = states->slot_bytes, replicas = request->replicated ? request->dp : 1;
    uint64_t const running =
        oos_max(1, oos_u64_or(request->requests, SGLANG_DRAFTED_REQUESTS) / oos_max(1, replicas));
    if (!states->layers || !slot) return left;
    oos_assert(states->per_request > 0);
    /* verification keeps a state for each drafted token of each request, and for those of a padded one */
    double const tokens = drafts->present ? (double)drafts->tokens : 0;
    uint64_t most = running;
    if (request->states_most.known) {
        states->slots = request->states_most.value / replicas;
        most = oos_min(running, states->slots / states->per_request);
    } else if (request->radix_off && (request->requests.known || drafts->present)) {
        states->slots = running;
    } else {
        double const share = left * request->state_share / (1 + request->state_share);
        double const rest = share - (double)slot * (1 + tokens);
        states->slots =
            rest > 0 ? oos_u64_from(rest / ((double)slot * (1 + tokens / (double)states->per_request))) : 0;
        most = oos_min(running, states->slots / states->per_request);
    }
    if (!states->slots) return 0;
    states->bytes = oos_mul(oos_add(states->slots, 1), slot); /* and one for padding */
    if (drafts->present)
        states->bytes = oos_add(states->bytes, oos_mul(oos_mul(slot, oos_add(most, 1)), drafts->tokens));
    return left - (double)states->bytes;
}
