/* The replay report as one page without network: web/replay.html with the data put into it. Figures are JSON; the long
 * tables of segments and blocks are little-endian arrays in base64, so that a million events stay a few megabytes. */
#include "base/json_write.h"
#include "replay/replay.h"
#include "report/report.h"

#include <stdlib.h>

extern const char oos_replay_page[]; /* web/replay.html, made by tools/embed_text.py */

static void put_base64(oos_text *text, const void *bytes, size_t len)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const unsigned char *b = bytes;
    char out[4096];
    size_t used = 0;
    for (size_t i = 0; i < len; i += 3) {
        size_t const left = len - i;
        uint32_t const three =
            (uint32_t)b[i] << 16 | (left > 1 ? (uint32_t)b[i + 1] << 8 : 0) | (left > 2 ? b[i + 2] : 0);
        out[used++] = digits[three >> 18];
        out[used++] = digits[three >> 12 & 63];
        out[used++] = left > 1 ? digits[three >> 6 & 63] : '=';
        out[used++] = left > 2 ? digits[three & 63] : '=';
        if (used == sizeof out) {
            oos_text_add(text, (oos_view){out, used});
            used = 0;
        }
    }
    oos_text_add(text, (oos_view){out, used});
}

static void field_array(oos_json_writer *w, const char *key, const void *bytes, size_t len)
{
    oos_json_key(w, key);
    oos_text_put(w->text, "\"");
    put_base64(w->text, bytes, len);
    oos_text_put(w->text, "\"");
    w->after_key = false;
    w->has_items[w->depth] = true;
}

static void put_spans(oos_json_writer *w, const oos_spans *s)
{
    size_t const n = s->segment_count, m = s->block_count;
    oos_json_field_object(w, "seg");
    field_array(w, "start", s->segment_start, n * sizeof(uint32_t));
    field_array(w, "end", s->segment_end, n * sizeof(uint32_t));
    field_array(w, "kind", s->segment_kind, n * sizeof(uint32_t));
    field_array(w, "addr", s->segment_address, n * sizeof(double));
    field_array(w, "size", s->segment_size, n * sizeof(double));
    oos_json_end_object(w);
    oos_json_field_u64(w, "shortest_life", s->shortest_life);
    oos_json_field_object(w, "blk");
    field_array(w, "start", s->block_start, m * sizeof(uint32_t));
    field_array(w, "end", s->block_end, m * sizeof(uint32_t));
    field_array(w, "size", s->block_size, m * sizeof(uint32_t));
    field_array(w, "stack", s->block_stack, m * sizeof(uint32_t));
    field_array(w, "addr", s->block_address, m * sizeof(double));
    oos_json_end_object(w);
}

static void put_run(oos_json_writer *w, const oos_analysis *a, bool chinese)
{
    const oos_outcome *o = &a->outcome;
    bool known;
    uint64_t const total = oos_device_total(a, &a->scenario, &known);
    oos_json_field_u64(w, "events", a->trace->event_count);
    oos_json_field_str(w, "torch", oos_torch_word(a).text);
    oos_json_field_str(w, "settings", a->settings);
    oos_json_field_known(w, "device", (oos_u64){known, total});
    oos_json_field_known(w, "oom_at", (oos_u64){o->oom, o->first_oom});
    oos_json_field_str(w, "oom_text", o->oom_text);
    oos_text verdict = {0};
    oos_style const style = {.text = &verdict, .width = 4096, .chinese = chinese}; /* one line each */
    oos_replay_verdict(a, &style);
    oos_json_field_str(w, "verdict", verdict.failed ? "" : verdict.ptr);
    oos_text_free(&verdict);
    oos_json_field_u64(w, "peak_allocated", o->peak_allocated_bytes);
    oos_json_field_u64(w, "peak_reserved", o->peak_reserved_bytes);
    oos_json_field_u64(w, "stranded", o->stranded_bytes);
    oos_json_field_u64(w, "mallocs", o->device_allocs);
    oos_json_field_u64(w, "strained", a->strained_event);
    oos_json_field_known(w, "smallest", a->smallest_bytes);
    oos_json_key(w, "reproduced");
    if (a->reproduced.known)
        oos_json_put_bool(w, a->reproduced.value);
    else
        oos_json_put_null(w);
    oos_json_field_array(w, "points");
    for (size_t i = 0; i < a->point_count; i++) {
        oos_json_begin_array(w);
        oos_json_put_u64(w, a->points[i].event);
        oos_json_put_u64(w, a->points[i].allocated_bytes);
        oos_json_put_u64(w, a->points[i].reserved_bytes);
        oos_json_end_array(w);
    }
    oos_json_end_array(w);
}

static void put_what_ifs(oos_json_writer *w, const oos_analysis *a)
{
    oos_json_field_array(w, "what_if");
    for (size_t i = 0; i < a->what_if_count; i++) {
        const oos_what_if *x = &a->what_ifs[i];
        oos_json_begin_object(w);
        oos_json_field_str(w, "label", x->label);
        oos_json_field_str(w, "outcome", oos_outcome_word(&x->outcome, x->refused).text);
        if (x->refused) {
            oos_json_field_str(w, "why", x->why);
        } else {
            oos_json_field_u64(w, "peak_reserved", x->outcome.peak_reserved_bytes);
            oos_json_field_u64(w, "peak_allocated", x->outcome.peak_allocated_bytes);
            oos_json_field_u64(w, "stranded", x->outcome.stranded_bytes);
            oos_json_field_u64(w, "mallocs", x->outcome.device_allocs);
            oos_json_field_known(w, "smallest", x->smallest_bytes);
        }
        oos_json_end_object(w);
    }
    oos_json_end_array(w);
}

static void put_free(oos_json_writer *w, const oos_analysis *a, oos_arena *arena)
{
    oos_json_field_array(w, "free");
    for (size_t i = 0; i < a->stranded_count; i++) {
        const oos_stranded *s = &a->stranded[i];
        oos_json_begin_object(w);
        oos_json_field_str(w, "pool",
                           oos_arena_format(arena, "%llu.%llu %s", (unsigned long long)s->pool.first,
                                            (unsigned long long)s->pool.second,
                                            s->large ? "large" : "small"));
        oos_json_field_u64(w, "free", s->free_bytes);
        oos_json_field_u64(w, "segments", s->segments);
        oos_json_field_u64(w, "whole", s->whole_segments);
        oos_json_field_u64(w, "whole_bytes", s->whole_bytes);
        oos_json_end_object(w);
    }
    oos_json_end_array(w);
    oos_json_field_array(w, "pins");
    for (size_t i = 0; i < a->pin_count; i++) {
        const oos_pin *p = &a->pins[i];
        oos_json_begin_object(w);
        oos_json_field_str(w, "name", oos_stack_name(arena, a->trace, p->stack));
        oos_json_field_u64(w, "event", p->event);
        oos_json_field_u64(w, "bytes", p->bytes);
        oos_json_field_u64(w, "segment", p->segment_bytes);
        oos_json_field_u64(w, "free", p->free_bytes);
        oos_json_end_object(w);
    }
    oos_json_end_array(w);
}

/* Stacks at the peak, outermost frame first; names of frames and of stacks. */
static void put_flame(oos_json_writer *w, const oos_analysis *a, oos_arena *arena)
{
    enum { DEEPEST = 128, MOST = 5000 };
    const oos_trace *t = a->trace;
    oos_json_field_array(w, "flame");
    for (size_t i = 0; i < a->flame_count && i < MOST; i++) {
        uint32_t frames[DEEPEST], depth = 0;
        for (uint32_t at = a->flame[i].stack; at && depth < DEEPEST; at = t->stacks[at].caller)
            frames[depth++] = t->stacks[at].frame;
        oos_json_begin_array(w);
        oos_json_put_u64(w, a->flame[i].bytes);
        oos_json_begin_array(w);
        while (depth) oos_json_put_u64(w, frames[--depth]);
        oos_json_end_array(w);
        oos_json_end_array(w);
    }
    oos_json_end_array(w);
    oos_json_field_array(w, "names");
    for (uint32_t i = 0; i < t->frame_count; i++) {
        const oos_frame *f = &t->frames[i];
        oos_json_put_str(w, t->strings[f->file][0] ? oos_arena_format(arena, "%s  %s:%u", t->strings[f->name],
                                                                      t->strings[f->file], f->line)
                                                   : t->strings[f->name]);
    }
    oos_json_end_array(w);
    oos_json_field_array(w, "stacks");
    for (uint32_t i = 0; i < t->stack_count; i++) oos_json_put_str(w, oos_stack_name(arena, t, i));
    oos_json_end_array(w);
}

oomsight_status oos_replay_html(const oos_analysis *a, const oomsight_render_params *params, oos_text *text,
                                oomsight_error *reterr)
{
    bool const chinese = oos_words_chinese(params);
    oos_spans *spans = NULL;
    enum { MOST_BLOCKS = 150000 }; /* 32 characters each */
    OOS_TRY(oos_spans_create(a, &spans, reterr));
    oos_spans_thin(spans, MOST_BLOCKS, (uint32_t)a->strained_event);
    oos_arena *arena = oos_arena_create(64 << 10);
    oos_text json = {.failed = !arena};
    oos_json_writer w = {.text = &json};
    if (arena) {
        oos_json_begin_object(&w);
        put_run(&w, a, chinese);
        put_what_ifs(&w, a);
        oos_replay_holders(&w, "categories", a->categories, a->category_count);
        oos_replay_holders(&w, "holders", a->holders, a->holder_count);
        put_free(&w, a, arena);
        put_flame(&w, a, arena);
        put_spans(&w, spans);
        oos_json_end_object(&w);
    }
    oos_html_parts parts = {.page = oos_replay_page, .data = json, .chinese = chinese};
    oos_html_put_page(text, &parts);
    oos_arena_free(arena);
    oos_spans_free(spans);
    return OOMSIGHT_OK;
}
