/* What people read for the words of the JSON reports: phases, components, sources, trade-offs. */
#include "report/report.h"
#include "base/ascii.h"

const char *oos_report_owner_title(oos_owner owner)
{
    switch ((unsigned)owner) {
    case OOS_OWNER_OUTSIDE: return "non-PyTorch memory";
    case OOS_OWNER_KEPT: return "retained after profiling";
    case OOS_OWNER_TRIAL_KV: return "profiling KV cache";
    case OOS_OWNER_TRIAL_GRAPHS: return "profiling CUDA graphs";
    case OOS_OWNER_GROWTH: return "growth during serving";
    case OOS_OWNER_ASKED: return "requested";
    case OOS_OWNER_ONE_REQUEST: return "one request at max_model_len";
    default: return oos_owner_word(owner);
    }
}

const char *oos_report_source_title(oos_source source)
{
    switch (source) {
    case OOS_SOURCE_READ: return "reported";
    case OOS_SOURCE_DERIVED: return "computed";
    case OOS_SOURCE_MEASURED:
    case OOS_SOURCE_ESTIMATED: break;
    }
    return oos_source_word(source);
}

const char *oos_report_incident_where(const oos_incident *incident, oos_phase phase)
{
    bool const serves = phase == OOS_PHASE_RUNTIME_PREFILL || phase == OOS_PHASE_RUNTIME_SAMPLER ||
                        phase == OOS_PHASE_RUNTIME_OTHER;
    return incident->program && serves ? "while the program was running" : oos_report_where(phase);
}

const char *oos_report_where(oos_phase phase)
{
    switch (phase) {
    case OOS_PHASE_ARGUMENTS: return "while reading the arguments";
    case OOS_PHASE_ENV: return "at start";
    case OOS_PHASE_INIT_FREE_MEMORY_CHECK: return "in the free-memory check";
    case OOS_PHASE_DISTRIBUTED_INIT: return "while setting up communicators";
    case OOS_PHASE_WEIGHT_LOAD: return "while loading weights";
    case OOS_PHASE_QUANT_POSTPROCESS: return "while repacking weights";
    case OOS_PHASE_PROFILE_RUN: return "in the profiling run";
    case OOS_PHASE_MM_PROFILE: return "while profiling images or audio";
    case OOS_PHASE_CUDAGRAPH_PROFILE: return "while profiling CUDA graphs";
    case OOS_PHASE_KV_SIZING: return "in KV cache sizing";
    case OOS_PHASE_KV_ALLOC: return "while allocating the KV cache";
    case OOS_PHASE_COMPILE: return "during kernel warm-up";
    case OOS_PHASE_CUDAGRAPH_CAPTURE: return "during CUDA graph capture";
    case OOS_PHASE_SAMPLER_WARMUP: return "during sampler warm-up";
    case OOS_PHASE_RUNTIME_PREFILL: return "while serving a prompt";
    case OOS_PHASE_RUNTIME_SAMPLER: return "while sampling";
    case OOS_PHASE_RUNTIME_OTHER: return "while serving";
    case OOS_PHASE_SLEEP_WAKE: return "during wake-up from sleep mode";
    case OOS_PHASE_HOST_MEMORY: return "on the host";
    case OOS_PHASE_NOT_OOM:
    case OOS_PHASE_UNKNOWN:
    case OOS_PHASE_COUNT: break;
    }
    return "";
}

const char *oos_report_point(oos_phase phase)
{
    const char *where = oos_report_where(phase), *blank = strchr(where, ' ');
    if (phase == OOS_PHASE_ENV) return "the start";
    return blank ? blank + 1 : where;
}

/* "31744" of 31744 tokens as "31,744". */
static void put_grouped(oos_text *text, oos_view words)
{
    for (size_t i = 0; i < words.len;) {
        size_t len = 0;
        while (i + len < words.len && oos_is_digit(words.ptr[i + len])) len++;
        oos_view const next = oos_view_slice(words, i + len, words.len);
        bool const whole = (i == 0 || words.ptr[i - 1] == ' ' || words.ptr[i - 1] == '(') &&
                           (next.len == 0 || oos_view_starts(next, " tokens") || oos_view_starts(next, ":") ||
                            oos_view_starts(next, " blocks") || oos_view_starts(next, " sequences"));
        for (size_t k = 0; k < len; k++) {
            oos_text_add(text, oos_view_slice(words, i + k, 1));
            if (whole && len > 3 && k + 1 < len && (len - k - 1) % 3 == 0) oos_text_put(text, ",");
        }
        i += len;
        if (i < words.len && !oos_is_digit(words.ptr[i])) oos_text_add(text, oos_view_slice(words, i++, 1));
    }
}

void oos_report_grouped(oos_text *text, const char *words)
{
    put_grouped(text, oos_view_of(words));
}

/* The next piece of a list, and its length in `rest`. */
static oos_view piece_of(oos_view *rest)
{
    const char *end = memmem(rest->ptr, rest->len, "; ", 2);
    oos_view const piece = oos_view_slice(*rest, 0, end ? (size_t)(end - rest->ptr) : rest->len);
    *rest = oos_view_slice(*rest, end ? piece.len + 2 : piece.len, SIZE_MAX);
    return piece;
}

void oos_report_trade_off(oos_text *text, const char *gives_up)
{
    oos_report_grouped(text, gives_up ? gives_up : "none");
}

void oos_report_trade_off_put(const oos_style *style, const char *gives_up)
{
    oos_view rest = oos_view_of(gives_up ? gives_up : "none");
    while (rest.len) {
        oos_text trade = {0};
        put_grouped(&trade, piece_of(&rest));
        oos_style_put(style, "%s", trade.ptr ? trade.ptr : "");
        oos_text_put(style->text, rest.len ? "; " : "");
        style->text->failed |= trade.failed;
        oos_text_free(&trade);
    }
}
