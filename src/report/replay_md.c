/* The replay report for an issue or a pull request. */
#include "report/replay.h"

static void put_what_ifs(const oos_analysis *a, oos_text *text)
{
    if (!a->what_if_count) return;
    oos_text_put(text, "\n| settings | outcome | peak reserved | stranded | cudaMallocs | smallest GPU |\n"
                       "| --- | --- | ---: | ---: | ---: | ---: |\n");
    for (size_t i = 0; i < a->what_if_count; i++) {
        const oos_what_if *w = &a->what_ifs[i];
        if (w->refused) {
            oos_text_printf(text, "| `%s` | refused: %s | | | | |\n", w->label, w->why ? w->why : "");
            continue;
        }
        oos_text_printf(
            text, "| `%s` | %s | %s | %s | %llu | %s |\n", w->label,
            oos_outcome_word(&w->outcome, false).text, oos_size_of(w->outcome.peak_reserved_bytes).text,
            oos_size_of(w->outcome.stranded_bytes).text, (unsigned long long)w->outcome.device_allocs,
            w->smallest_bytes.known ? oos_size_of(w->smallest_bytes.value).text : "");
    }
}

void oos_replay_markdown(const oos_analysis *a, oos_text *text)
{
    const oos_outcome *o = &a->outcome;
    oos_replay_verdict(a, text);
    oos_text_printf(text, "\n**Replay** of %zu events, torch %s, settings `%s`: %s\n\n",
                    a->trace->event_count, oos_torch_word(a).text, *a->settings ? a->settings : "(defaults)",
                    oos_outcome_word(o, false).text);
    oos_text_printf(
        text, "| | |\n| --- | ---: |\n| peak allocated | %s |\n| peak reserved | %s |\n| stranded | %s |\n",
        oos_size_of(o->peak_allocated_bytes).text, oos_size_of(o->peak_reserved_bytes).text,
        oos_size_of(o->stranded_bytes).text);
    if (o->oom_text) oos_text_printf(text, "\n> %s\n", o->oom_text);
    put_what_ifs(a, text);
    if (!a->holder_count) return;
    oos_text_put(text, "\n| held at the peak | bytes | blocks |\n| --- | ---: | ---: |\n");
    for (size_t i = 0; i < a->holder_count && i < 10; i++)
        oos_text_printf(text, "| `%s` | %s | %llu |\n", a->holders[i].name,
                        oos_size_of(a->holders[i].bytes).text, (unsigned long long)a->holders[i].blocks);
}
