/* A dry run as JSON, schema oomsight.dryrun/1 (docs/reference/formats/dryrun.md). */
#include "report/report.h"

static void put_phase(oos_json_writer *w, const oos_moment *moment)
{
    oos_json_begin_object(w);
    oos_json_field_str(w, "phase", oos_phase_word(moment->phase));
    oos_json_field_u64(w, "device", moment->device);
    oos_json_field_u64(w, "peak_bytes", moment->peak_bytes);
    oos_json_field_u64(w, "limit_bytes", moment->limit_bytes);
    oos_json_field_bool(w, "ok", moment->ok);
    oos_json_key(w, "holds");
    oos_report_holds_json(w, &moment->ledger);
    oos_json_end_object(w);
}

static void put_calls(oos_json_writer *w, const char *key, const oos_call_count *list, size_t count)
{
    oos_json_field_object(w, key);
    for (size_t i = 0; i < count; i++) oos_json_field_u64(w, list[i].name, list[i].count);
    oos_json_end_object(w);
}

static void put_f64(oos_json_writer *w, const char *key, double value)
{
    oos_json_field_f64(w, key, value);
}

static void put_held(oos_json_writer *w, const char *key, uint64_t bytes)
{
    oos_json_field_known(w, key, (oos_u64){bytes != 0, bytes});
}

static void put_slope(oos_json_writer *w, const char *key, const oos_slope *slope)
{
    oos_json_field_object(w, key);
    put_f64(w, "bytes_per_request", slope->per);
    put_f64(w, "low", slope->low);
    put_f64(w, "high", slope->high);
    oos_json_end_object(w);
}

static void put_growth(oos_json_writer *w, const oos_load_growth *growth)
{
    oos_json_key(w, "growth");
    if (!growth || !growth->known) {
        oos_json_put_null(w);
        return;
    }
    oos_json_begin_object(w);
    oos_json_field_u64(w, "requests", oos_u64_from(growth->host.span));
    put_slope(w, "device", &growth->device);
    put_slope(w, "host", &growth->host);
    oos_json_end_object(w);
}

static void put_mix(oos_json_writer *w, const oomsight_dryrun_load *load, const oos_load_growth *growth)
{
    oos_json_begin_object(w);
    oos_json_field_u64(w, "requests", load->requests);
    oos_json_field_u64(w, "answered", load->answered);
    oos_json_field_u64(w, "refused", load->refused);
    oos_json_field_u64(w, "failed", load->failed);
    oos_json_field_u64(w, "aborted", load->aborted);
    oos_json_field_bool(w, "hung", load->hung != 0);
    put_f64(w, "seconds", load->seconds);
    put_held(w, "device_first_bytes", load->device_first_bytes);
    put_held(w, "device_last_bytes", load->device_last_bytes);
    put_held(w, "host_first_bytes", load->host_first_bytes);
    put_held(w, "host_last_bytes", load->host_last_bytes);
    put_growth(w, growth);
    oos_json_end_object(w);
}

static void put_load(oos_json_writer *w, const oos_dryrun *run)
{
    oos_json_key(w, "load");
    if (!run->load_requests) {
        oos_json_put_null(w);
        return;
    }
    oos_json_begin_object(w);
    oos_json_field_u64(w, "requests", run->load_requests);
    oos_json_field_u64(w, "answered", run->load_answered);
    oos_json_field_array(w, "mixes");
    for (size_t i = 0; i < run->load_count; i++)
        put_mix(w, &run->loads[i], run->growths ? &run->growths[i] : NULL);
    oos_json_end_array(w);
    oos_json_end_object(w);
}

static void put_steps(oos_json_writer *w, const oos_dryrun *run)
{
    oos_json_field_object(w, "steps");
    for (unsigned i = 0; i < OOS_STEP_PARTS; i++) {
        const oos_step_peak *peak = &run->steps[i];
        oos_json_key(w, oos_step_word(i));
        if (!peak->bytes.known) {
            oos_json_put_null(w);
            continue;
        }
        oos_json_begin_object(w);
        oos_json_field_u64(w, "peak_bytes", peak->bytes.value);
        oos_json_field_u64(w, "step", peak->step);
        oos_json_field_u64(w, "requests", peak->requests);
        oos_json_field_u64(w, "tokens", peak->tokens);
        oos_json_end_object(w);
    }
    oos_json_end_object(w);
}

static void put_host_process(oos_json_writer *w, const oos_host_row *row)
{
    oos_json_begin_object(w);
    oos_json_field_u64(w, "pid", row->process.pid);
    oos_json_field_str(w, "name", row->process.name);
    oos_json_field_u64(w, "resident_bytes", row->process.resident_bytes);
    oos_json_field_u64(w, "shared_bytes", row->process.shared_bytes);
    oos_json_field_u64(w, "pinned_bytes", row->pinned_bytes);
    oos_json_end_object(w);
}

static void put_host(oos_json_writer *w, const oos_dryrun *run)
{
    oos_json_field_array(w, "host");
    for (unsigned place = 0; place < OOS_PHASE_COUNT; place++) {
        oos_phase const phase = oos_dryrun_in_order(place);
        const oos_host_moment *moment = run->hosts[phase];
        if (!moment || !moment->resident_bytes) continue;
        oos_json_begin_object(w);
        oos_json_field_str(w, "phase", oos_phase_word(phase));
        oos_json_field_u64(w, "resident_bytes", moment->resident_bytes);
        oos_json_field_u64(w, "shared_bytes", moment->shared_bytes);
        oos_json_field_u64(w, "pinned_bytes", moment->pinned_bytes);
        oos_json_field_array(w, "processes");
        for (size_t i = 0; i < moment->process_count && i < OOS_HOST_PROCESSES; i++)
            put_host_process(w, &moment->rows[i]);
        oos_json_end_array(w);
        oos_json_end_object(w);
    }
    oos_json_end_array(w);
}

static void put_denied(oos_json_writer *w, const oos_dryrun *run)
{
    oos_json_key(w, "denied");
    if (!run->denied) {
        oos_json_put_null(w);
        return;
    }
    oos_json_begin_object(w);
    oos_json_field_u64(w, "allocation", run->fail_after);
    oos_json_field_u64(w, "bytes", run->denied->bytes);
    oos_json_field_u64(w, "free_bytes", run->denied->free_bytes);
    oos_json_field_str(w, "call", run->denied_call);
    oos_json_field_str(w, "phase", oos_phase_word((oos_phase)(run->denied->phase % OOS_PHASE_COUNT)));
    oos_json_end_object(w);
}

void oos_report_dryrun_json(oos_text *text, const oos_dryrun *run)
{
    oos_json_writer writer = {.text = text, .pretty_depth = 2}, *w = &writer;
    const oos_dryrun_log *log = &run->log;
    oos_json_begin_object(w);
    oos_json_field_str(w, "schema", "oomsight.dryrun/1");
    oos_json_field_object(w, "engine");
    oos_json_field_str(w, "name", run->engine->name);
    oos_json_field_str(w, "version", run->engine_version);
    oos_json_end_object(w);
    oos_json_field_object(w, "gpu");
    oos_json_field_str(w, "name", run->device->name);
    oos_json_field_u64(w, "count", run->device_count);
    oos_json_field_u64(w, "total_bytes", run->device->total_bytes);
    oos_json_field_u64(w, "used_bytes", run->device->others_bytes);
    oos_json_end_object(w);
    oos_json_field_str(w, "verdict", oos_report_verdict_word(run->verdict));
    oos_json_field_str(w, "phase", log->failed == OOS_PHASE_COUNT ? NULL : oos_phase_word(log->failed));
    oos_json_field_str(w, "cause", NULL);
    oos_json_field_known(w, "tried_bytes", log->tried_bytes);
    oos_json_field_known(w, "weights_bytes", log->weights.bytes);
    oos_json_key(w, "training");
    if (log->parameters.bytes.known) {
        oos_json_begin_object(w);
        oos_json_field_known(w, "parameters_bytes", log->parameters.bytes);
        oos_json_field_known(w, "gradients_bytes", log->gradients.bytes);
        oos_json_field_known(w, "optimizer_bytes", log->optimizer.bytes);
        oos_json_end_object(w);
    } else
        oos_json_put_null(w);
    oos_json_field_known(w, "peak_activation_bytes", log->activation_peak.bytes);
    oos_json_field_object(w, "kv");
    oos_json_field_known(w, "available_bytes", log->kv_available.bytes);
    oos_json_field_known(w, "tokens", log->kv_tokens);
    oos_json_key(w, "max_concurrency");
    if (log->max_concurrency.known)
        oos_json_put_f64(w, log->max_concurrency.value);
    else
        oos_json_put_null(w);
    oos_json_end_object(w);
    oos_json_field_str(w, "attention_backend", log->backend[0] ? log->backend : NULL);
    oos_json_field_array(w, "phases");
    for (size_t i = 0; i < run->phase_count; i++) put_phase(w, &run->phases[i]);
    oos_json_end_array(w);
    oos_json_field_object(w, "child");
    oos_json_key(w, "exit");
    oos_json_put_i64(w, run->child_exit);
    oos_json_key(w, "signal");
    if (run->child_signal)
        oos_json_put_i64(w, run->child_signal);
    else
        oos_json_put_null(w);
    oos_json_field_str(w, "stopped", run->timed_out ? "timeout" : run->interrupted ? "interrupt" : NULL);
    oos_json_field_str(w, "oom_message", log->ran_out && log->message[0] ? log->message : NULL);
    oos_json_field_str(w, "error", log->error[0] ? log->error : NULL);
    oos_json_field_str(w, "refusal", log->refused && !log->ran_out ? log->message : NULL);
    oos_json_field_known(w, "torch_allocated_bytes", log->allocated_bytes);
    oos_json_field_known(w, "private_pools_bytes", log->private_pool_bytes);
    oos_json_field_u64(w, "failed_allocations", run->failure_count);
    oos_json_field_u64(w, "host_exhausted", run->host_failure_count);
    oos_json_field_u64(w, "dead_processes", run->reaped_count);
    oos_json_field_bool(w, "wedged", run->wedged);
    put_denied(w, run);
    oos_json_field_u64(w, "graphs", run->graph_count);
    oos_json_field_u64(w, "graph_nodes", run->graph_node_count);
    oos_json_end_object(w);
    oos_json_field_str(w, "compile_cache", run->log.compiled ? "cold" : run->log.from_cache ? "warm" : NULL);
    oos_json_field_str(w, "with", run->with);
    put_load(w, run);
    put_steps(w, run);
    put_host(w, run);
    put_calls(w, "calls", run->calls, run->call_count);
    put_calls(w, "noop_calls", run->unknown, run->unknown_count);
    put_calls(w, "refused_calls", run->refused, run->refused_count);
    oos_json_field_str(w, "trace", run->trace_path);
    oos_json_end_object(w);
    oos_text_put(text, "\n");
}
