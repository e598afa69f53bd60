/* What reports show of a start of vLLM, in the words of its log and of its flags. */
#include "engines/vllm/vllm.h"
#include "base/check.h"

#include <stdio.h>

static oomsight_status settings_tell(oos_arena *arena, oos_plan *plan, oomsight_error *reterr)
{
    const oos_setup *setup = vllm_setup(plan);
    oos_setting const list[] = {
        oos_setting_text("architecture", setup->model->architecture),
        oos_setting_text("dtype", oos_dtype_word(setup->dtype)),
        oos_setting_text("kv_cache_dtype", setup->kv_dtype_word),
        oos_setting_whole("tensor_parallel_size", setup->tp),
        oos_setting_whole("pipeline_parallel_size", setup->pp),
        oos_setting_whole("data_parallel_size", setup->dp),
        oos_setting_whole("max_model_len", plan->serving.length),
        oos_setting_whole("max_num_seqs", setup->max_num_seqs),
        oos_setting_whole("max_num_batched_tokens", setup->max_num_batched_tokens),
        oos_setting_real("gpu_memory_utilization", setup->gpu_memory_utilization),
        oos_setting_yes("enforce_eager", setup->eager),
        oos_setting_yes("v2_model_runner", setup->v2_runner),
        oos_setting_whole("max_cudagraph_capture_size", setup->capture_top),
        oos_setting_whole("cudagraph_capture_sizes", setup->capture_count),
    };
    plan->told.settings = oos_arena_keep(arena, list, sizeof list);
    plan->told.setting_count = sizeof list / sizeof *list;
    return plan->told.settings ? OOMSIGHT_OK : oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the setup");
}

static oomsight_status compared_tell(oos_arena *arena, oos_plan *plan, oomsight_error *reterr)
{
    const oos_setup *setup = vllm_setup(plan);
    const vllm_detail *detail = vllm_of(plan);
    oos_setting const list[] = {
        oos_setting_real("gpu_memory_utilization", setup->gpu_memory_utilization),
        oos_setting_whole("max_num_seqs", setup->max_num_seqs),
        oos_setting_whole("max_num_batched_tokens", setup->max_num_batched_tokens),
        oos_setting_text("attention backend", detail->backend.name ? detail->backend.name : "none"),
        oos_setting_text("model runner", setup->v2_runner ? "V2" : "V1"),
        oos_setting_sizes("graph sizes", setup->eager ? 0 : setup->capture_count, setup->capture_top),
        oos_setting_gib("budget GiB", plan->sizes.budget_bytes),
        oos_setting_gib("weights GiB", plan->sizes.weights.loaded_bytes),
        oos_setting_gib("activation peak GiB", detail->activation.peak.bytes),
        oos_setting_gib("profiling KV cache GiB",
                        oos_mul(detail->trial_blocks, detail->kv_shape.block_bytes)),
        oos_setting_gib("graph estimate charged GiB",
                        setup->graph_estimate_applied ? detail->graphs.estimate.bytes : 0),
    };
    plan->told.compared = oos_arena_keep(arena, list, sizeof list);
    plan->told.compared_count = sizeof list / sizeof *list;
    return plan->told.compared ? OOMSIGHT_OK : oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the setup");
}

static oomsight_status layout_tell(oos_arena *arena, oos_plan *plan, oomsight_error *reterr)
{
    const oos_kv_shape *shape = &vllm_of(plan)->kv_shape;
    oos_kv_set *groups = OOS_NEW_ARRAY(arena, oos_kv_set, shape->group_count + 1);
    if (!groups) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the cache");
    for (size_t i = 0; i < shape->group_count; i++) {
        const oos_kv_group *group = &shape->groups[i];
        groups[i] = (oos_kv_set){.kind = oos_kv_kind_word(group->kind),
                                 .layers = group->layers,
                                 .block_tokens = group->block_tokens,
                                 .page_bytes = group->page_bytes,
                                 .request_blocks = group->request_blocks};
    }
    plan->layout = (oos_kv_layout){.bytes_per_token = shape->bytes_per_token,
                                   .block_tokens = shape->block_tokens,
                                   .page_bytes = shape->page_bytes,
                                   .block_bytes = shape->block_bytes,
                                   .tensor_count = shape->tensor_count,
                                   .padding_layers = shape->padding_layers,
                                   .estimated = shape->estimated,
                                   .blocks_given = vllm_setup(plan)->blocks_override.known,
                                   .groups = groups,
                                   .group_count = shape->group_count};
    return OOMSIGHT_OK;
}

void oos_vllm_doubtful_tell(oos_plan *plan)
{
    const oos_setup *setup = vllm_setup(plan);
    const vllm_detail *detail = vllm_of(plan);
    plan->doubtful = (oos_doubtful){
        .torch_minor = setup->rules->torch_minor,
        .share_flag = "--gpu-memory-utilization",
        .share = setup->gpu_memory_utilization,
        .cache_flag = "--kv-cache-memory-bytes",
        .cache_bytes = oos_u64_or(setup->kv_cache_memory_bytes, 0),
        .beside_bytes = oos_add(detail->graphs.taken.high, detail->outside.runtime_growth.high),
        .offload_flag = setup->rules->cpu_offload_taken ? "--cpu-offload-gb" : NULL,
        .offload_gib = setup->serve ? oos_f64_or(setup->serve->cpu_offload_gb, 0) : 0,
        .offload_cache_flag = "--kv-offloading-size",
        .drafter = setup->draft,
        .drafter_unknown = setup->draft_unknown,
    };
}

static oomsight_status notes_tell(oos_arena *arena, oos_plan *plan, oomsight_error *reterr)
{
    const oos_setup *setup = vllm_setup(plan);
    const oos_backend_choice *backend = &vllm_of(plan)->backend;
    const char **notes = OOS_NEW_ARRAY(arena, const char *, 3);
    if (!notes) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the notes");
    size_t count = 0;
    if (backend->reason && !backend->forced && !backend->refused)
        notes[count++] = oos_arena_format(arena, "attention backend %s: %s", backend->name, backend->reason);
    if (setup->serve->cpu_offload_gb.known && oos_setup_offload_ignored(setup))
        notes[count++] =
            "--cpu-offload-gb: without effect here: the V2 model runner of this release has no offloader";
    if (setup->length_of_draft)
        notes[count++] = oos_arena_format(arena, "max_model_len is lowered to %llu, that of the draft model",
                                          (unsigned long long)setup->max_model_len);
    oos_assert(count <= 3);
    plan->told.resolved = notes;
    plan->told.resolved_count = count;
    return OOMSIGHT_OK;
}

oomsight_status oos_plan_tell(oos_arena *arena, oos_plan *plan, oomsight_error *reterr)
{
    const oos_setup *setup = vllm_setup(plan);
    const vllm_detail *detail = vllm_of(plan);
    const oos_backend_choice *backend = &detail->backend;
    plan->serving.length = setup->auto_model_len && !plan->kv.refused
                               ? oos_u64_or(plan->kv.estimated_max_len, setup->max_model_len)
                               : setup->max_model_len;
    plan->serving.requests = setup->max_num_seqs;
    plan->serving.step_tokens = setup->max_num_batched_tokens;
    plan->serving.attention = backend->name;
    plan->serving.attention_reason = backend->reason;
    OOS_TRY(settings_tell(arena, plan, reterr));
    OOS_TRY(compared_tell(arena, plan, reterr));
    OOS_TRY(oos_parts_tell(arena, &detail->activation, &detail->outside, &detail->graphs, plan, reterr));
    OOS_TRY(layout_tell(arena, plan, reterr));
    return notes_tell(arena, plan, reterr);
}
