/* The replay report for a terminal. */
#include "report/report.h"

#include <stdio.h>

static void put_row(const oos_style *style, const char *name, const char *value)
{
    oos_text_put(style->text, "  ");
    oos_style_cell(style, 16, name);
    oos_style_put(style, " %s\n", value);
}

static void put_heading(const oos_style *style, const char *heading)
{
    oos_text_put(style->text, "\n");
    oos_style_ink(style, OOS_INK_BOLD, "%s", heading);
    oos_text_put(style->text, "\n");
}

static void put_run(const oos_analysis *a, const oos_style *style)
{
    const oos_outcome *o = &a->outcome;
    bool known;
    uint64_t const total = oos_device_total(a, &a->scenario, &known);
    char line[256];
    oos_replay_verdict(a, style);
    oos_style_put(style, "\n%zu events, torch %s, settings %s, device %s\n\n", a->trace->event_count,
                  oos_torch_word(a).text, *a->settings ? a->settings : "(defaults)",
                  known ? oos_size_of(total).text : "not known (taken as large enough)");
    put_row(style, "outcome", oos_outcome_word(o, false).text);
    put_row(style, "peak allocated", oos_size_of(o->peak_allocated_bytes).text);
    put_row(style, "peak reserved", oos_size_of(o->peak_reserved_bytes).text);
    snprintf(line, sizeof line, "%s at event %zu, %s of it in private pools",
             oos_size_of(o->stranded_bytes).text, a->strained_event,
             oos_size_of(o->stranded_private_bytes).text);
    put_row(style, "stranded", line);
    snprintf(line, sizeof line, "%llu taken, %llu given back, %llu retries",
             (unsigned long long)o->device_allocs, (unsigned long long)o->device_frees,
             (unsigned long long)o->retries);
    put_row(style, "driver calls", line);
    if (a->reproduced.known)
        put_row(style, "end state",
                a->reproduced.value ? "the same as in the snapshot, block by block"
                                    : "NOT the same as in the snapshot");
    if (a->smallest_bytes.known) put_row(style, "smallest GPU", oos_size_of(a->smallest_bytes.value).text);
    if (o->oom_text) {
        oos_text_put(style->text, "\n");
        oos_style_quote(style, 2, o->oom_text);
    }
}

/* The settings, to be pasted, and below them what came of them. */
static void put_what_ifs(const oos_analysis *a, const oos_style *style)
{
    if (!a->what_if_count) return;
    put_heading(style, "what if");
    for (size_t i = 0; i < a->what_if_count; i++) {
        const oos_what_if *w = &a->what_ifs[i];
        char line[512];
        oos_text_put(style->text, "  ");
        oos_style_put(style, "%s\n", w->label);
        if (w->refused) {
            snprintf(line, sizeof line, "refused: %s", w->why ? w->why : "");
            oos_style_paragraph(style, 6, line);
            continue;
        }
        char smallest[64] = "";
        if (w->smallest_bytes.known)
            snprintf(smallest, sizeof smallest, ", smallest GPU %s",
                     oos_size_of(w->smallest_bytes.value).text);
        snprintf(line, sizeof line, "%s: peak reserved %s, stranded %s, %llu driver allocations%s",
                 oos_outcome_word(&w->outcome, false).text, oos_size_of(w->outcome.peak_reserved_bytes).text,
                 oos_size_of(w->outcome.stranded_bytes).text, (unsigned long long)w->outcome.device_allocs,
                 smallest);
        oos_style_paragraph(style, 6, line);
    }
}

static void put_held(const oos_style *style, const char *size, uint64_t blocks, const char *who)
{
    oos_text_printf(style->text, "  %12s ", size);
    oos_style_put(style, " %6llu blocks", (unsigned long long)blocks);
    oos_style_put(style, "  %s\n", who);
}

static void put_holders(const oos_analysis *a, const oos_style *style)
{
    put_heading(style, "held at the peak");
    for (size_t i = 0; i < a->category_count; i++)
        put_held(style, oos_size_of(a->categories[i].bytes).text, a->categories[i].blocks,
                 a->categories[i].name);
    if (a->holder_count && a->holders[0].stack) oos_style_put(style, "  by frame\n");
    for (size_t i = 0; i < a->holder_count && i < 10 && a->holders[0].stack; i++)
        put_held(style, oos_size_of(a->holders[i].bytes).text, a->holders[i].blocks, a->holders[i].name);
}

static void put_stranded(const oos_analysis *a, const oos_style *style)
{
    if (!a->stranded_count) return;
    char heading[96];
    snprintf(heading, sizeof heading, "free inside reserved memory at event %zu", a->strained_event);
    put_heading(style, heading);
    for (size_t i = 0; i < a->stranded_count; i++) {
        const oos_stranded *s = &a->stranded[i];
        char pool[64];
        snprintf(pool, sizeof pool, "pool %llu.%llu", (unsigned long long)s->pool.first,
                 (unsigned long long)s->pool.second);
        oos_text_printf(style->text, "  %12s  ", oos_size_of(s->free_bytes).text);
        oos_style_cell(style, 17, s->pool.first || s->pool.second ? pool : "default pool");
        oos_style_cell(style, 5, s->large ? "large" : "small");
        oos_style_put(style, "  %llu segments, %llu of them wholly free (%s)\n",
                      (unsigned long long)s->segments, (unsigned long long)s->whole_segments,
                      oos_size_of(s->whole_bytes).text);
    }
}

static void put_pins(const oos_analysis *a, const oos_style *style)
{
    if (!a->pin_count) return;
    put_heading(style, "allocations that keep mostly free segments");
    for (size_t i = 0; i < a->pin_count; i++) {
        const oos_pin *p = &a->pins[i];
        oos_arena *scratch = oos_arena_create(256);
        const char *name = scratch ? oos_stack_name(scratch, a->trace, p->stack) : NULL;
        oos_style_put(style, "  event %-8zu", p->event);
        oos_text_printf(style->text, " %12s ", oos_size_of(p->bytes).text);
        oos_style_put(style, "keeps %s free in a segment of %s (%llu live)", oos_size_of(p->free_bytes).text,
                      oos_size_of(p->segment_bytes).text, (unsigned long long)p->live_blocks);
        if (p->stack && name) oos_text_printf(style->text, "\n%*s", 31, "");
        if (p->stack && name) oos_style_word(style, name);
        oos_text_put(style->text, "\n");
        oos_arena_free(scratch);
    }
}

void oos_replay_text(const oos_analysis *a, const oomsight_render_params *params, oos_text *text)
{
    oos_style const style = oos_style_of(text, params);
    if (a->trace->driver_calls) {
        oos_replay_verdict(a, &style);
        return;
    }
    put_run(a, &style);
    put_what_ifs(a, &style);
    put_holders(a, &style);
    put_stranded(a, &style);
    put_pins(a, &style);
}
