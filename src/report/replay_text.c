/* The replay report for a terminal. */
#include "report/replay.h"

#include <stdio.h>

static void put_row(oos_text *text, const char *name, const char *value)
{
    oos_text_printf(text, "  %-16s %s\n", name, value);
}

static void put_heading(oos_text *text, const oomsight_render_params *params, const char *heading)
{
    oos_text_printf(text, params->color ? "\n\033[1m%s\033[0m\n" : "\n%s\n", heading);
}

static void put_run(const oos_analysis *a, oos_text *text)
{
    const oos_outcome *o = &a->outcome;
    bool known;
    uint64_t const total = oos_device_total(a, &a->scenario, &known);
    char line[256];
    oos_replay_verdict(a, text);
    oos_text_printf(text, "\n%zu events, torch %s, settings %s, device %s\n\n", a->trace->event_count,
                    oos_torch_word(a).text, *a->settings ? a->settings : "(defaults)",
                    known ? oos_size_of(total).text : "not known (taken as large enough)");
    put_row(text, "outcome", oos_outcome_word(o, false).text);
    put_row(text, "peak allocated", oos_size_of(o->peak_allocated_bytes).text);
    put_row(text, "peak reserved", oos_size_of(o->peak_reserved_bytes).text);
    snprintf(line, sizeof line, "%s free inside reserved memory at event %zu, %s of it in private pools",
             oos_size_of(o->stranded_bytes).text, a->strained_event,
             oos_size_of(o->stranded_private_bytes).text);
    put_row(text, "stranded", line);
    snprintf(line, sizeof line, "%llu taken, %llu given back, %llu retries",
             (unsigned long long)o->device_allocs, (unsigned long long)o->device_frees,
             (unsigned long long)o->retries);
    put_row(text, "driver calls", line);
    if (a->reproduced.known)
        put_row(text, "end state",
                a->reproduced.value ? "the same as in the snapshot, block by block"
                                    : "NOT the same as in the snapshot");
    if (a->smallest_bytes.known) put_row(text, "smallest GPU", oos_size_of(a->smallest_bytes.value).text);
    if (o->oom_text) oos_text_printf(text, "\n  %s\n", o->oom_text);
}

static void put_what_ifs(const oos_analysis *a, const oomsight_render_params *params, oos_text *text)
{
    if (!a->what_if_count) return;
    put_heading(text, params, "what if");
    oos_text_printf(text, "  %-66s %-18s %13s %11s %11s %s\n", "settings", "outcome", "peak reserved",
                    "stranded", "cudaMallocs", a->smallest_bytes.known ? "smallest GPU" : "");
    for (size_t i = 0; i < a->what_if_count; i++) {
        const oos_what_if *w = &a->what_ifs[i];
        if (w->refused) {
            oos_text_printf(text, "  %-66s refused: %s\n", w->label, w->why ? w->why : "");
            continue;
        }
        oos_text_printf(
            text, "  %-66s %-18s %13s %11s %11llu %s\n", w->label, oos_outcome_word(&w->outcome, false).text,
            oos_size_of(w->outcome.peak_reserved_bytes).text, oos_size_of(w->outcome.stranded_bytes).text,
            (unsigned long long)w->outcome.device_allocs,
            w->smallest_bytes.known ? oos_size_of(w->smallest_bytes.value).text : "");
    }
}

static void put_holders(const oos_analysis *a, const oomsight_render_params *params, oos_text *text)
{
    put_heading(text, params, "held at the peak");
    for (size_t i = 0; i < a->category_count; i++)
        oos_text_printf(text, "  %12s  %6llu blocks  %s\n", oos_size_of(a->categories[i].bytes).text,
                        (unsigned long long)a->categories[i].blocks, a->categories[i].name);
    if (a->holder_count && a->holders[0].stack) oos_text_put(text, "  by frame\n");
    for (size_t i = 0; i < a->holder_count && i < 10 && a->holders[0].stack; i++)
        oos_text_printf(text, "  %12s  %6llu blocks  %s\n", oos_size_of(a->holders[i].bytes).text,
                        (unsigned long long)a->holders[i].blocks, a->holders[i].name);
}

static void put_stranded(const oos_analysis *a, const oomsight_render_params *params, oos_text *text)
{
    if (!a->stranded_count) return;
    char heading[96];
    snprintf(heading, sizeof heading, "free inside reserved memory at event %zu", a->strained_event);
    put_heading(text, params, heading);
    for (size_t i = 0; i < a->stranded_count; i++) {
        const oos_stranded *s = &a->stranded[i];
        char pool[64];
        snprintf(pool, sizeof pool, "pool %llu.%llu", (unsigned long long)s->pool.first,
                 (unsigned long long)s->pool.second);
        oos_text_printf(text, "  %12s  %-16s %-5s  %llu segments, %llu of them wholly free (%s)\n",
                        oos_size_of(s->free_bytes).text,
                        s->pool.first || s->pool.second ? pool : "default pool", s->large ? "large" : "small",
                        (unsigned long long)s->segments, (unsigned long long)s->whole_segments,
                        oos_size_of(s->whole_bytes).text);
    }
}

static void put_pins(const oos_analysis *a, const oomsight_render_params *params, oos_text *text)
{
    if (!a->pin_count) return;
    put_heading(text, params, "allocations that keep mostly free segments");
    for (size_t i = 0; i < a->pin_count; i++) {
        const oos_pin *p = &a->pins[i];
        oos_arena *scratch = oos_arena_create(256);
        const char *name = scratch ? oos_stack_name(scratch, a->trace, p->stack) : NULL;
        oos_text_printf(text, "  event %-8zu %12s keeps %s free in a segment of %s (%llu live)%s%s\n",
                        p->event, oos_size_of(p->bytes).text, oos_size_of(p->free_bytes).text,
                        oos_size_of(p->segment_bytes).text, (unsigned long long)p->live_blocks,
                        p->stack ? "  " : "", p->stack && name ? name : "");
        oos_arena_free(scratch);
    }
}

void oos_replay_text(const oos_analysis *a, const oomsight_render_params *params, oos_text *text)
{
    put_run(a, text);
    put_what_ifs(a, params, text);
    put_holders(a, params, text);
    put_stranded(a, params, text);
    put_pins(a, params, text);
}
