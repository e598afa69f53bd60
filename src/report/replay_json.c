/* The replay report for programs: schema oomsight.replay/1 (data/schema/replay.schema.json). */
#include "report/report.h"

static void put_settings(oos_json_writer *w, const oos_analysis *a, const oos_scenario *scenario,
                         const char *settings)
{
    static const char *const backends[] = {"driver", "clean", "sticky"};
    bool known;
    uint64_t const total = oos_device_total(a, scenario, &known);
    oos_json_field_object(w, "settings");
    oos_json_field_str(w, "torch", oos_torch_word(a).text);
    oos_json_field_str(w, "conf", settings);
    oos_json_field_known(w, "device_total_bytes", (oos_u64){known, total});
    oos_json_key(w, "sweep_ratio");
    if (scenario->sweep_ratio > 0)
        oos_json_put_f64(w, scenario->sweep_ratio);
    else
        oos_json_put_null(w);
    oos_json_field_str(w, "pool_backend", scenario->set_backend ? backends[scenario->backend] : NULL);
    oos_json_end_object(w);
}

static void put_outcome(oos_json_writer *w, const oos_outcome *o)
{
    oos_json_field_str(w, "outcome", o->oom ? "oom" : "ok");
    oos_json_field_known(w, "oom_at", (oos_u64){o->oom, o->first_oom});
    oos_json_field_u64(w, "ooms", o->ooms);
    oos_json_field_u64(w, "peak_allocated_bytes", o->peak_allocated_bytes);
    oos_json_field_u64(w, "peak_reserved_bytes", o->peak_reserved_bytes);
    oos_json_field_u64(w, "stranded_bytes", o->stranded_bytes);
    oos_json_field_u64(w, "stranded_private_bytes", o->stranded_private_bytes);
    oos_json_field_u64(w, "segments", o->segments);
    oos_json_field_u64(w, "device_allocs", o->device_allocs);
    oos_json_field_u64(w, "device_frees", o->device_frees);
    oos_json_field_u64(w, "retries", o->retries);
    oos_json_field_str(w, "oom_message", o->oom_text);
}

static void put_what_ifs(oos_json_writer *w, const oos_analysis *a)
{
    oos_json_field_array(w, "what_if");
    for (size_t i = 0; i < a->what_if_count; i++) {
        const oos_what_if *x = &a->what_ifs[i];
        oos_json_begin_object(w);
        oos_json_field_str(w, "label", x->label);
        put_settings(w, a, &x->scenario, x->settings);
        if (x->refused) {
            oos_json_field_str(w, "outcome", "refused");
            oos_json_field_str(w, "why", x->why);
        } else {
            put_outcome(w, &x->outcome);
            oos_json_field_known(w, "smallest_device_bytes", x->smallest_bytes);
        }
        oos_json_end_object(w);
    }
    oos_json_end_array(w);
}

void oos_replay_holders(oos_json_writer *w, const char *key, const oos_block_holder *list, size_t count)
{
    oos_json_field_array(w, key);
    for (size_t i = 0; i < count; i++) {
        oos_json_begin_object(w);
        oos_json_field_str(w, "name", list[i].name);
        oos_json_field_u64(w, "bytes", list[i].bytes);
        oos_json_field_u64(w, "blocks", list[i].blocks);
        oos_json_end_object(w);
    }
    oos_json_end_array(w);
}

static void put_stranded(oos_json_writer *w, const oos_analysis *a)
{
    oos_json_field_array(w, "free_by_pool");
    for (size_t i = 0; i < a->stranded_count; i++) {
        const oos_stranded *s = &a->stranded[i];
        oos_json_begin_object(w);
        oos_json_field_array(w, "pool");
        oos_json_put_u64(w, s->pool.first);
        oos_json_put_u64(w, s->pool.second);
        oos_json_end_array(w);
        oos_json_field_str(w, "size", s->large ? "large" : "small");
        oos_json_field_u64(w, "free_bytes", s->free_bytes);
        oos_json_field_u64(w, "whole_segment_bytes", s->whole_bytes);
        oos_json_field_u64(w, "segments", s->segments);
        oos_json_field_u64(w, "whole_segments", s->whole_segments);
        oos_json_end_object(w);
    }
    oos_json_end_array(w);
}

static void put_pins(oos_json_writer *w, const oos_analysis *a)
{
    oos_json_field_array(w, "pins");
    for (size_t i = 0; i < a->pin_count; i++) {
        const oos_pin *p = &a->pins[i];
        oos_arena *scratch = oos_arena_create(256);
        oos_json_begin_object(w);
        oos_json_field_u64(w, "event", p->event);
        oos_json_field_u64(w, "bytes", p->bytes);
        oos_json_field_u64(w, "segment_bytes", p->segment_bytes);
        oos_json_field_u64(w, "free_bytes", p->free_bytes);
        oos_json_field_str(w, "frame",
                           p->stack && scratch ? oos_stack_name(scratch, a->trace, p->stack) : NULL);
        oos_json_end_object(w);
        oos_arena_free(scratch);
    }
    oos_json_end_array(w);
}

static void put_advice(oos_json_writer *w, const oos_analysis *a)
{
    const oos_what_if *advice = oos_replay_advice(a);
    oos_json_key(w, "advice");
    if (!advice) {
        oos_json_put_null(w);
        return;
    }
    oos_json_begin_object(w);
    oos_json_field_str(w, "conf", advice->settings);
    oos_json_field_u64(w, "peak_reserved_bytes", advice->outcome.peak_reserved_bytes);
    oos_json_field_u64(w, "device_allocs", advice->outcome.device_allocs);
    oos_json_end_object(w);
}

void oos_replay_json(const oos_analysis *a, oos_text *text)
{
    oos_json_writer w = {.text = text, .pretty_depth = 2};
    oos_json_begin_object(&w);
    oos_json_field_str(&w, "schema", "oomsight.replay/1");
    oos_json_field_str(&w, "source", a->trace->driver_calls ? "driver_calls" : "requests");
    put_settings(&w, a, &a->scenario, a->settings);
    oos_json_field_u64(&w, "events", a->trace->event_count);
    put_outcome(&w, &a->outcome);
    oos_json_field_known(&w, "smallest_device_bytes", a->smallest_bytes);
    oos_json_key(&w, "reproduced");
    if (a->reproduced.known)
        oos_json_put_bool(&w, a->reproduced.value);
    else
        oos_json_put_null(&w);
    put_advice(&w, a);
    put_what_ifs(&w, a);
    oos_replay_holders(&w, "held", a->holders, a->holder_count);
    oos_replay_holders(&w, "held_by_category", a->categories, a->category_count);
    oos_json_field_u64(&w, "strained_event", a->strained_event);
    oos_json_key(&w, "ledger");
    oos_report_holds_json(&w, &a->strain.ledger);
    put_stranded(&w, a);
    put_pins(&w, a);
    oos_json_end_object(&w);
    oos_text_put(text, "\n");
}
