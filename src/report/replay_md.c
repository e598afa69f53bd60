/* The replay report for an issue or a pull request. */
#include "report/report.h"

static void put_what_ifs(const oos_analysis *a, const oos_style *style)
{
    oos_text *text = style->text;
    if (!a->what_if_count) return;
    oos_style_put(style,
                  "\n| settings | outcome | peak reserved | stranded | cudaMallocs | smallest GPU |\n");
    oos_text_put(text, "| --- | --- | ---: | ---: | ---: | ---: |\n");
    for (size_t i = 0; i < a->what_if_count; i++) {
        const oos_what_if *w = &a->what_ifs[i];
        oos_text_put(text, "| `");
        oos_style_put(style, "%s", w->label);
        oos_text_put(text, "` | ");
        if (w->refused) {
            oos_style_put(style, "refused: %s", w->why ? w->why : "");
            oos_text_put(text, " | | | | |\n");
            continue;
        }
        oos_style_put(style, "%s", oos_outcome_word(&w->outcome, false).text);
        oos_text_printf(text, " | %s | %s | %llu | %s |\n", oos_size_of(w->outcome.peak_reserved_bytes).text,
                        oos_size_of(w->outcome.stranded_bytes).text,
                        (unsigned long long)w->outcome.device_allocs,
                        w->smallest_bytes.known ? oos_size_of(w->smallest_bytes.value).text : "");
    }
}

void oos_replay_markdown(const oos_analysis *a, const oomsight_render_params *params, oos_text *text)
{
    oos_style const own = oos_style_of(text, params), *style = &own;
    const oos_outcome *o = &a->outcome;
    oos_replay_verdict(a, style);
    if (a->trace->driver_calls) return;
    oos_style_put(style, "\n**Replay** of %zu events, torch %s, settings `%s`: %s\n\n", a->trace->event_count,
                  oos_torch_word(a).text, *a->settings ? a->settings : "(defaults)",
                  oos_outcome_word(o, false).text);
    oos_text_put(text, "| | |\n| --- | ---: |\n");
    oos_style_put(style, "| peak allocated | %s |\n", oos_size_of(o->peak_allocated_bytes).text);
    oos_style_put(style, "| peak reserved | %s |\n", oos_size_of(o->peak_reserved_bytes).text);
    oos_style_put(style, "| stranded | %s |\n", oos_size_of(o->stranded_bytes).text);
    if (o->oom_text) {
        oos_text_put(text, "\n> ");
        oos_style_word(style, o->oom_text);
        oos_text_put(text, "\n");
    }
    put_what_ifs(a, style);
    if (!a->holder_count) return;
    oos_style_put(style, "\n| held at the peak | bytes | blocks |\n");
    oos_text_put(text, "| --- | ---: | ---: |\n");
    for (size_t i = 0; i < a->holder_count && i < 10; i++) {
        oos_text_put(text, "| `");
        oos_style_word(style, a->holders[i].name);
        oos_text_printf(text, "` | %s | %llu |\n", oos_size_of(a->holders[i].bytes).text,
                        (unsigned long long)a->holders[i].blocks);
    }
}
