/* After the cache is sized: its allocation, capture, the sampler, and serving. */
#include "plan/plan.h"
#include "engines/vllm/phases/phases.h"

/* What the engine measured before it sized the cache: had it been more, the cache would be smaller by as much. Not where
 * the cache's bytes were given. */
static bool sized_by_budget(const oos_setup *setup)
{
    return !setup->kv_cache_memory_bytes.known && !setup->blocks_override.known &&
           !setup->model->encoder_only;
}

static oos_amount settled(const oos_plan *plan, oos_amount amount)
{
    amount.settled = sized_by_budget(vllm_setup(plan));
    return amount;
}

static oos_limit limit(const oos_plan *plan)
{
    return oos_limit_device(plan,
                            sized_by_budget(vllm_setup(plan)) ? oos_outside_budget(vllm_setup(plan)) : 1);
}

/* At the best guess more than the budget is taken before there is a cache, and the engine refuses; it may be less. Where it
 * goes on, it is less by that much at least. */
static oos_amount weights_left(const oos_plan *plan)
{
    oos_amount const weights = settled(plan, oos_weights_amount(&plan->sizes.weights));
    if (!weights.settled || plan->sizes.non_kv.bytes <= plan->sizes.budget_bytes) return weights;
    uint64_t const beyond = plan->sizes.non_kv.bytes - plan->sizes.budget_bytes;
    uint64_t const low = oos_sub(weights.bytes, oos_max(beyond, weights.bytes - weights.low));
    return oos_amount_guess(weights.bytes, low, weights.bytes, "less, where the cache can be sized at all");
}

static void hold_engine(oos_moment *moment, const oos_plan *plan)
{
    oos_moment_hold(moment, OOS_OWNER_BATCH_BUFFERS, vllm_of(plan)->activation.persistent);
    oos_moment_hold(moment, OOS_OWNER_WEIGHTS, weights_left(plan));
    oos_moment_hold(moment, OOS_OWNER_KEPT, settled(plan, vllm_of(plan)->activation.retained));
    oos_moment_hold(moment, OOS_OWNER_KERNELS, settled(plan, vllm_of(plan)->outside.profile_growth));
    oos_moment_hold(moment, OOS_OWNER_KV_CACHE,
                    oos_amount_exact(oos_mul(plan->kv.blocks, vllm_of(plan)->kv_shape.block_bytes),
                                     OOS_SOURCE_DERIVED, "blocks x bytes per block, allocated once"));
}

/* Where the engine's own estimate of its graphs entered the size of the cache it stands for them: it was 1.0 to 1.6 times
 * what capture then took. A drafter's graphs are not in it. */
static oos_amount graphs_left(const oos_plan *plan)
{
    oos_amount const graphs = vllm_of(plan)->graphs.taken;
    bool const estimated =
        vllm_setup(plan)->graph_estimate_applied && vllm_of(plan)->graphs.estimate.bytes > 0;
    if (!estimated || vllm_setup(plan)->speculative_tokens > 0) return graphs;
    return settled(plan, graphs);
}

/* What it holds is what every later phase begins with. */
static oomsight_status kv_alloc(oos_arena *arena, oos_plan *plan, const oos_ledger **ret_rows,
                                oomsight_error *reterr)
{
    oos_moment *moment = oos_moment_open(arena, plan, OOS_PHASE_KV_ALLOC);
    hold_engine(moment, plan);
    *ret_rows = &moment->ledger;
    uint64_t const whole = oos_mul(plan->kv.blocks, vllm_of(plan)->kv_shape.block_bytes);
    moment->tried_bytes = vllm_setup(plan)->rules->kv_in_one_tensor
                              ? whole
                              : oos_mul(plan->kv.blocks, vllm_of(plan)->kv_shape.page_bytes);
    return oos_moment_close(moment, limit(plan), reterr);
}

/* What has not been profiled runs for the first time before capture, at the largest step (Worker.compile_or_warm_up_model). */
static oomsight_status first_step(oos_arena *arena, oos_plan *plan, const oos_ledger *rows,
                                  oomsight_error *reterr)
{
    if (!plan->model->encoder_only) return OOMSIGHT_OK;
    const oos_activation *activation = &vllm_of(plan)->activation;
    oos_moment *moment = oos_moment_open_as(arena, plan, OOS_PHASE_COMPILE, rows);
    oos_moment_hold(moment, activation->compile_bytes ? OOS_OWNER_COMPILING : OOS_OWNER_ACTIVATIONS,
                    activation->compile_bytes ? activation->peak : activation->forward);
    return oos_moment_close(moment, limit(plan), reterr);
}

static oomsight_status capture(oos_arena *arena, oos_plan *plan, const oos_ledger *rows,
                               oomsight_error *reterr)
{
    if (vllm_setup(plan)->eager) return OOMSIGHT_OK;
    oos_moment *moment = oos_moment_open_as(arena, plan, OOS_PHASE_CUDAGRAPH_CAPTURE, rows);
    oos_moment_hold(moment, OOS_OWNER_CUDA_GRAPHS, graphs_left(plan));
    return oos_moment_close(moment, limit(plan), reterr);
}

static oomsight_status sampler_warmup(oos_arena *arena, oos_plan *plan, const oos_ledger *rows,
                                      oomsight_error *reterr)
{
    bool const newer = vllm_setup(plan)->v2_runner;
    if (newer && vllm_of(plan)->activation.warmup.bytes == 0) return OOMSIGHT_OK;
    oos_moment *moment = oos_moment_open_as(arena, plan, OOS_PHASE_SAMPLER_WARMUP, rows);
    oos_moment_hold(moment, OOS_OWNER_CUDA_GRAPHS, graphs_left(plan));
    /* the newer runner's profile run has not seen this before 0.33, and later no rows of draft tokens */
    const oos_activation *activation = &vllm_of(plan)->activation;
    bool const seen = !newer || (vllm_setup(plan)->rules->v2_profiles_sampler &&
                                 activation->warmup.bytes <= activation->sampler.bytes);
    oos_amount const sampler = newer ? activation->warmup : activation->sampler;
    oos_moment_hold(moment, OOS_OWNER_SAMPLER, seen ? settled(plan, sampler) : sampler);
    return oos_moment_close(moment, limit(plan), reterr);
}

/* The busiest of what profiling tried: the batch, the sampler or the encoder. */
static oos_owner busiest(const oos_plan *plan, oos_amount *ret_amount)
{
    const oos_activation *activation = &vllm_of(plan)->activation;
    bool const sampler = activation->sampler.bytes > activation->forward.bytes;
    oos_amount const text = sampler ? activation->sampler : activation->forward;
    bool const encoder = vllm_setup(plan)->multimodal && activation->encoder.bytes > text.bytes;
    *ret_amount = settled(plan, encoder ? activation->encoder : text);
    return encoder ? OOS_OWNER_ENCODER : sampler ? OOS_OWNER_SAMPLER : OOS_OWNER_ACTIVATIONS;
}

/* Images are of other sizes than the one that was profiled, so what PyTorch keeps of one does not hold the next: up to that much again. */
static oos_amount growth_of(const oos_plan *plan)
{
    oos_amount growth = vllm_of(plan)->outside.runtime_growth;
    if (vllm_setup(plan)->multimodal)
        growth.high = oos_add(growth.high, vllm_of(plan)->activation.encoder.bytes);
    return growth;
}

/* Serving at the profiled batch: its peak comes back on top of everything, and what nobody budgeted. */
static oomsight_status serving(oos_arena *arena, oos_plan *plan, const oos_ledger *rows,
                               oomsight_error *reterr)
{
    oos_amount most;
    oos_owner const owner = busiest(plan, &most);
    oos_phase const phase = vllm_of(plan)->outside.runtime_cause ? OOS_PHASE_RUNTIME_OTHER
                            : owner == OOS_OWNER_SAMPLER         ? OOS_PHASE_RUNTIME_SAMPLER
                                                                 : OOS_PHASE_RUNTIME_PREFILL;
    oos_moment *moment = oos_moment_open_as(arena, plan, phase, rows);
    oos_moment_hold(moment, OOS_OWNER_CUDA_GRAPHS, graphs_left(plan));
    oos_moment_hold(moment, owner, most);
    oos_moment_hold(moment, OOS_OWNER_ENCODER_OUTPUTS, vllm_of(plan)->activation.encoder_cache);
    oos_moment_hold(moment, OOS_OWNER_GROWTH, growth_of(plan));
    moment->message = vllm_of(plan)->outside.runtime_cause;
    return oos_moment_close(moment, limit(plan), reterr);
}

oomsight_status oos_phases_after_kv(oos_arena *arena, oos_plan *plan, oomsight_error *reterr)
{
    const oos_ledger *rows;
    OOS_TRY(kv_alloc(arena, plan, &rows, reterr));
    oos_ledger const held = *rows;
    if (plan->model->encoder_only) plan->phase_count--; /* there is no cache to allocate */
    OOS_TRY(first_step(arena, plan, &held, reterr));
    OOS_TRY(capture(arena, plan, &held, reterr));
    OOS_TRY(sampler_warmup(arena, plan, &held, reterr));
    return serving(arena, plan, &held, reterr);
}
