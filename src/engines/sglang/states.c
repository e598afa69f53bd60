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
    oos_layer_state const state = oos_layer_state_of(a, setup->attention_tp);
    oos_dtype const conv = first_of(named(setup, "SGLANG_MAMBA_CONV_DTYPE"), OOS_DTYPE_BF16);
    oos_dtype const asked =
        request->state_dtype ? oos_dtype_find(request->state_dtype) : named(setup, "SGLANG_MAMBA_SSM_DTYPE");
    bool const stated = a->mixer == OOS_MIXER_GDN && setup->rules && setup->rules->states_as_stated;
    oos_dtype const own = first_of(stated ? a->state_dtype : OOS_DTYPE_UNKNOWN, OOS_DTYPE_F32);
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
    bool const by_itself = kind == POOL_TRACKED && setup->rules->states_tracked &&
                           (!request->overlap_off || request->page > 1) &&
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
    for (uint64_t i = setup->first_layer; i < setup->last_layer; i++) {
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

/* Where the pool is no share: what the flag says, or a slot for each request where prefixes are not kept. */
static oos_u64 slots_given(const sglang_request *r, const sglang_rules *rules, uint64_t replicas,
                           uint64_t running, bool drafts)
{
    enum { SLOTS_UNASKED = 512 }; /* of the first releases */
    if (r->states_most.known && (r->radix_off || rules->states_flag_always))
        return oos_u64_of(r->states_most.value / replicas);
    if (r->radix_off && (r->requests.known || drafts)) return oos_u64_of(running);
    return (oos_u64){r->radix_off && !rules->states_share_unasked, SLOTS_UNASKED / replicas};
}

double oos_sglang_states_take(const sglang_request *request, const sglang_rules *rules,
                              const sglang_drafts *drafts, sglang_states *states, double left)
{
    uint64_t const slot = states->slot_bytes, replicas = request->replicated ? oos_max(1, request->dp) : 1;
    uint64_t const running = oos_max(1, oos_u64_or(request->requests, SGLANG_DRAFTED_REQUESTS) / replicas);
    if (!states->layers || !slot) return left;
    oos_assert(states->per_request > 0);
    /* verification keeps a state for each drafted token of each request, and for those of a padded one */
    double const tokens = drafts->present ? (double)drafts->tokens : 0;
    bool const joint = rules->states_drafts_joint;
    uint64_t const padding = rules->states_padded ? 1 : 0,
                   verified = drafts->present ? oos_mul(slot, drafts->tokens) : 0;
    if (!joint) left -= (double)oos_mul(verified, running);
    oos_u64 const given = slots_given(request, rules, replicas, running, drafts->present);
    double const rest = left * request->state_share / (1 + request->state_share) -
                        (double)(padding * (slot + (joint ? verified : 0)));
    double const each =
        (double)slot * (1 + (joint && drafts->present ? tokens / (double)states->per_request : 0));
    states->slots = given.known ? given.value : rest > 0 ? oos_u64_from(rest / each) : 0;
    if (!states->slots) return 0;
    uint64_t const most = joint ? oos_min(running, states->slots / states->per_request) : running;
    states->bytes = oos_mul(oos_add(states->slots, 1), slot); /* and one for padding */
    double const charged = (double)oos_mul(oos_add(states->slots, padding), slot) +
                           (joint ? (double)oos_mul(verified, oos_add(most, padding)) : 0);
    if (drafts->present)
        states->bytes = oos_add(states->bytes, oos_mul(oos_mul(slot, oos_add(most, 1)), drafts->tokens));
    return left - charged;
}
