/* How ranks are launched and requests are scheduled: options that exclude one another. Sources: vllm/engine/arg_utils.py
 * (create_engine_config), vllm/config/parallel.py, vllm/config/vllm.py. */
#include "engines/vllm/arguments/arguments.h"

typedef unsigned long long ull;

/* Ranks of data parallelism behind a balancer outside: create_engine_config(), before the parallel configuration. */
bool oos_check_launch(oos_check *c)
{
    const oos_setup *setup = c->setup;
    uint64_t local = 0, ignored;
    bool const ranked = oos_check_number(c, "--data-parallel-rank", &ignored);
    bool const outside = ranked || oos_check_has(c, "--data-parallel-external-lb");
    bool const hybrid = oos_check_has(c, "--data-parallel-hybrid-lb");
    bool const has_local = oos_check_number(c, "--data-parallel-size-local", &local);
    if (oos_check_given(c, "--nnodes")) return false; /* several nodes infer what one must be told */
    if (oos_check_has(c, "--enable-fault-tolerance") && !outside) {
        oos_check_mend_without(c, "--enable-fault-tolerance");
        return oos_check_refuse(c,
                                "Fault tolerance requires external load balancer mode "
                                "(--data-parallel-external-lb or --data-parallel-rank). Internal LB mode is "
                                "not supported.");
    }
    if (!outside && !has_local) {
        if (!hybrid) return false;
        oos_check_mend_without(c, "--data-parallel-hybrid-lb");
        return oos_check_refuse(
            c, "Invalid data-parallel launch options: `--data-parallel-hybrid-lb` requires "
               "`--data-parallel-size-local`. Set it to the number of data-parallel ranks on "
               "this node: data_parallel_size_local must be set to use "
               "data_parallel_hybrid_lb.");
    }
    if (!outside) return false;
    if (setup->dp > 1 && setup->rules->external_ranks_need_experts && setup->model->moe.experts == 0) {
        oos_check_mend_without(c, ranked ? "--data-parallel-rank" : "--data-parallel-external-lb");
        return oos_check_refuse(
            c,
            "Non-MoE models do not support external data parallel mode. For external load balancing, launch "
            "independent vLLM instances without --data-parallel-* arguments.");
    }
    if (!ranked) {
        oos_check_mend_without(c, "--data-parallel-external-lb");
        return oos_check_refuse(
            c, "Invalid data-parallel launch options: `--data-parallel-external-lb` requires a "
               "data-parallel rank. Set `--data-parallel-rank`.");
    }
    if (has_local && local != 1) {
        oos_check_mend_without(c, "--data-parallel-size-local");
        return oos_check_refuse(
            c,
            "Invalid data-parallel launch options: an external data-parallel rank requires "
            "`--data-parallel-size-local 1`; got %llu.",
            (ull)local);
    }
    return false;
}

/* ParallelConfig.__post_init__() */
bool oos_check_data_parallel(oos_check *c)
{
    const oos_setup *setup = c->setup;
    uint64_t local, rank;
    if (oos_check_given(c, "--nnodes")) return false;
    if (oos_check_number(c, "--data-parallel-size-local", &local) && local > setup->dp) {
        oos_check_mend_without(c, "--data-parallel-size-local");
        return oos_check_refuse(c, "data_parallel_size_local (%llu) must be <= data_parallel_size (%llu)",
                                (ull)local, (ull)setup->dp);
    }
    if (!oos_check_number(c, "--data-parallel-rank", &rank)) return false;
    oos_check_mend_without(c, "--data-parallel-rank");
    if (setup->dp <= 1)
        return oos_check_refuse(c, "data_parallel_external_lb can only be set when data_parallel_size > 1");
    if (rank >= setup->dp)
        return oos_check_refuse(c, "data_parallel_rank (%llu) must be in the range [0, %llu)", (ull)rank,
                                (ull)setup->dp);
    c->refusal->mend_count = 0;
    return false;
}

/* VllmConfig.__post_init__(): halves of a batch in turn need a way between experts that can wait. */
bool oos_check_microbatches(oos_check *c)
{
    uint64_t size = 0;
    const char *way = oos_check_given(c, "--all2all-backend");
    bool const halves = oos_check_number(c, "--ubatch-size", &size) && size > 1;
    if (!oos_check_has(c, "--enable-dbo") && !halves) return false;
    if (way && (strncmp(way, "deepep_", 7) == 0 || strcmp(way, "nixl_ep") == 0)) return false;
    if (!way && !c->setup->rules->async_takes_drafts) return false; /* said by a variable then */
    oos_check_mend_without(c, halves ? "--ubatch-size" : "--enable-dbo");
    return oos_check_refuse(c,
                            "Microbatching currently only supports the deepep_low_latency and "
                            "deepep_high_throughput all2all backends. %s is not supported.",
                            way ? way : "allgather_reducescatter");
}

/* EngineArgs._check_feature_supported(): what the only engine that is left cannot do. Before 0.11.1 it was left to the other. */
bool oos_check_features(oos_check *c)
{
    const oos_setup *setup = c->setup;
    const char *executor = oos_check_given(c, "--distributed-executor-backend");
    uint64_t prefills;
    if (!setup->rules->bounds_declared) return false;
    if ((oos_check_number(c, "--max-num-partial-prefills", &prefills) && prefills != 1) ||
        (oos_check_number(c, "--max-long-partial-prefills", &prefills) && prefills != 1)) {
        oos_check_mend_without(c, oos_check_has(c, "--max-num-partial-prefills")
                                      ? "--max-num-partial-prefills"
                                      : "--max-long-partial-prefills");
        return oos_check_refuse(c, "Concurrent Partial Prefill is not supported. We recommend to remove "
                                   "Concurrent Partial Prefill from your config.");
    }
    if (setup->pp > 1 && executor && strcmp(executor, "ray") != 0 && strcmp(executor, "mp") != 0 &&
        strcmp(executor, "external_launcher") != 0 && strcmp(executor, "None") != 0) {
        oos_check_mend_without(c, "--distributed-executor-backend");
        return oos_check_refuse(c, "Pipeline Parallelism without Ray distributed executor or multiprocessing "
                                   "executor or external launcher is not supported.");
    }
    return false;
}

/* Executor.get_class(): another name is that of a class in a module. */
bool oos_check_executor(oos_check *c)
{
    static const char *const known[] = {"ray", "mp", "uni", "external_launcher"};
    const char *name = oos_check_given(c, "--distributed-executor-backend");
    if (!name || strchr(name, '.') || strcmp(name, "None") == 0 || !c->setup->rules->bounds_declared)
        return false; /* before 0.11.1 the class is looked for when the workers are made */
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(name, known[i]) == 0) return false;
    oos_check_mend_without(c, "--distributed-executor-backend");
    return oos_check_refuse(
        c, "not enough values to unpack (expected 2, got 1): '%s' is no executor and no class", name);
}

/* A draft that a scheduler which runs ahead cannot take: what is looked up in the prompt, and the oldest kinds. */
static bool looked_up(const oos_speculative *spec)
{
    static const char *const methods[] = {"ngram", "suffix", "medusa", "mlp_speculator"};
    for (size_t i = 0; spec->method && i < sizeof methods / sizeof *methods; i++)
        if (strcmp(spec->method, methods[i]) == 0) return true;
    return false;
}

/* VllmConfig.__post_init__(), before 0.11.1 create_engine_config() */
bool oos_check_async(oos_check *c)
{
    const oos_setup *setup = c->setup;
    const oos_serve *serve = setup->serve;
    if (!oos_flag_or(serve->async_scheduling, false)) return false;
    oos_check_mend_without(c, "--async-scheduling");
    if (!setup->rules->async_takes_drafts) {
        if (setup->pp > 1)
            return oos_check_refuse(c, "Async scheduling is not supported with pipeline-parallel-size > 1.");
        if (serve->speculative.present)
            return oos_check_refuse(
                c, "Currently, speculative decoding is not supported with async scheduling.");
    } else if (serve->speculative.present && looked_up(&serve->speculative)) {
        return oos_check_refuse(
            c, "Currently, async scheduling is only supported with EAGLE/MTP/Draft Model/NGram "
               "GPU kind of speculative decoding");
    }
    c->refusal->mend_count = 0;
    return false;
}
