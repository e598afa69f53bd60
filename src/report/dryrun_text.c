/* A dry run for a terminal: the verdict, the engine's own words, the phases as bars, the rows of the one that decides. */
#include "base/locale.h"
#include "report/report.h"

#include <signal.h>

static bool hung(const oos_dryrun *run)
{
    for (size_t i = 0; i < run->load_count; i++)
        if (run->loads[i].hung) return true;
    return false;
}

/* Neither ready and well, nor for lack of memory. */
static void put_ended(const oos_style *style, const oos_dryrun *run)
{
    bool const ready = run->log.ready;
    if (run->child_signal && !run->timed_out && !run->interrupted)
        oos_style_ink(style, OOS_INK_BAD, ready ? "ENDED by signal %d while serving" : "ENDED by signal %d",
                      run->child_signal);
    else if (run->child_exit && ready && !run->timed_out && !run->interrupted)
        oos_style_ink(style, OOS_INK_BAD, "ENDED with code %d while serving", run->child_exit);
    else if (ready)
        oos_style_ink(style, OOS_INK_BAD,
                      hung(run) ? "HUNG: %u of %u requests were answered"
                                : "UNANSWERED: %u of %u requests were answered",
                      run->load_answered, run->load_requests);
    else if (run->timed_out || run->interrupted)
        oos_style_ink(style, OOS_INK_WARN, "STOPPED before its end");
    else if (run->child_exit == 0)
        oos_style_ink(style, OOS_INK_WARN, "ENDED without being ready for requests");
    else
        oos_style_ink(style, OOS_INK_WARN, "ENDED, but not because of memory");
}

static void put_denied(const oos_style *style, const oos_dryrun *run)
{
    const oos_segment_failure *denied = run->denied;
    char words[320];
    if (denied)
        oos_format(words, sizeof words,
                   "Allocation %llu was denied as requested: %.2f MiB by %s %s, with %.2f GiB free. %s",
                   (unsigned long long)run->fail_after, (double)denied->bytes / (1 << 20), run->denied_call,
                   oos_report_where((oos_phase)(denied->phase % OOS_PHASE_COUNT)),
                   oos_gib(denied->free_bytes),
                   run->verdict == OOMSIGHT_VERDICT_FITS    ? "The engine went on."
                   : run->verdict == OOMSIGHT_VERDICT_FAILS ? "The engine ended out of memory."
                                                            : "Whether that ended it is unknown.");
    else
        oos_format(words, sizeof words, "--fail-after %llu denied nothing: there were %llu allocations.",
                   (unsigned long long)run->fail_after, (unsigned long long)run->asked_count);
    oos_style_paragraph(style, 2, words);
}

/* An allocation that the program outlived: nothing else shows it. */
static void put_outlived(const oos_style *style, const oos_dryrun *run)
{
    char words[320];
    oos_format(words, sizeof words,
               "%llu %s for device memory %s refused, the largest of %.2f GiB; the program went on.",
               (unsigned long long)run->failure_count, run->failure_count == 1 ? "call" : "calls",
               run->failure_count == 1 ? "was" : "were", oos_gib(run->failed_most_bytes));
    oos_style_paragraph(style, 2, words);
}

static void put_headline(const oos_style *style, const oos_dryrun *run)
{
    switch (run->verdict) {
    case OOMSIGHT_VERDICT_FITS: oos_style_ink(style, OOS_INK_GOOD, run->log.ready ? "STARTED" : "RAN"); break;
    case OOMSIGHT_VERDICT_TIGHT: oos_style_ink(style, OOS_INK_WARN, "TIGHT"); break;
    case OOMSIGHT_VERDICT_FAILS:
        oos_style_ink(style, OOS_INK_BAD, run->wedged ? "SYSTEM HANG" : "OUT OF MEMORY");
        break;
    case OOMSIGHT_VERDICT_REFUSED: oos_style_ink(style, OOS_INK_BAD, "REFUSED"); break;
    case OOMSIGHT_VERDICT_UNKNOWN: put_ended(style, run); break;
    }
    if (run->log.failed != OOS_PHASE_COUNT)
        oos_style_ink(style, OOS_INK_BOLD, " %s", oos_report_where(run->log.failed));
    oos_style_put(style, " on %u x %s (simulated, %.2f GiB)", run->device_count, run->device->name,
                  oos_gib(run->device->total_bytes));
    if (run->engine_version) {
        oos_text_printf(style->text, ", %s ", run->engine->title);
        oos_style_word(style, run->engine_version);
    }
    oos_text_put(style->text, "\n");
    if (run->log.message[0] && run->verdict != OOMSIGHT_VERDICT_FITS)
        oos_style_quote(style, 2, run->log.message);
    else if (run->log.error[0] && run->verdict == OOMSIGHT_VERDICT_UNKNOWN)
        oos_style_quote(style, 2, run->log.error);
    if (run->child_signal == SIGKILL && run->verdict == OOMSIGHT_VERDICT_UNKNOWN && !run->timed_out &&
        !run->interrupted && !run->log.error[0])
        oos_style_paragraph(style, 2,
                            "Signal 9 is also what a host sends that runs out of its own memory: see its "
                            "kernel log. That is no answer about the device.");
    if (run->wedged)
        oos_style_paragraph(
            style, 2,
            "Host and device together needed more than the machine has. A real one of that kind stops "
            "answering; 'oomsight run --unified RESERVE' in front of the command makes it an error of the "
            "engine.");
    if (run->fail_after)
        put_denied(style, run);
    else if (run->failure_count && run->verdict == OOMSIGHT_VERDICT_FITS)
        put_outlived(style, run);
    if (run->damaged)
        oos_style_paragraph(
            style, 2, "The shared segment was damaged during the run: the figures are not to be trusted.");
    if (run->host_failure_count)
        oos_style_paragraph(
            style, 2,
            "This machine had no address space left for device memory (ulimit -v, overcommit). That is "
            "a limit of the host here, not of the device.");
}

static void put_capacity(const oos_style *style, const oos_dryrun *run)
{
    char tokens[40];
    if (run->log.weights.bytes.known)
        oos_style_put(style, "  weights %.2f GiB", oos_gib(run->log.weights.bytes.value));
    if (run->log.kv_tokens.known) {
        oos_style_count(tokens, sizeof tokens, run->log.kv_tokens.value);
        oos_style_put(style, "; KV cache %.2f GiB = %s tokens", oos_gib(run->log.kv_available.bytes.value),
                      tokens);
    }
    if (run->log.max_concurrency.known)
        oos_style_put(style, ", maximum concurrency %.2fx", run->log.max_concurrency.value);
    if (run->log.backend[0]) {
        oos_text_put(style->text, " (");
        oos_style_word(style, run->log.backend);
        oos_text_put(style->text, ")");
    }
    if (run->log.weights.bytes.known || run->log.kv_tokens.known) oos_text_put(style->text, "\n");
}

/* Of a program that trains: what its optimizer holds. The rest of the peak are activations and workspaces. */
static void put_training(const oos_style *style, const oos_dryrun_log *log)
{
    if (!log->parameters.bytes.known) return;
    char words[256];
    oos_format(words, sizeof words,
               "parameters %.2f GiB, gradients %.2f GiB, optimizer state %.2f GiB; activations and "
               "workspaces make up the remainder of the peak",
               oos_gib(log->parameters.bytes.value), oos_gib(oos_u64_or(log->gradients.bytes, 0)),
               oos_gib(oos_u64_or(log->optimizer.bytes, 0)));
    oos_style_paragraph(style, 2, words);
}

static void put_rows(const oos_style *style, const oos_moment *moment, bool explain)
{
    oos_style_put(style, "\n  Memory %s on device %u (GiB)\n", oos_report_where(moment->phase),
                  moment->device);
    oos_report_rows(style, &moment->ledger, explain);
}

static void put_calls(const oos_style *style, const char *title, const oos_call_count *list, size_t count)
{
    if (!count) return;
    oos_style_put(style, "\n  %s:", title);
    for (size_t i = 0; i < count && i < 12; i++)
        oos_text_printf(style->text, "%s %s %llu", i ? "," : "", list[i].name,
                        (unsigned long long)list[i].count);
    if (count > 12) oos_style_put(style, ", and %zu more", count - 12);
    oos_text_put(style->text, "\n");
}

/* MiB with a sign. */
static double grown_mib(uint64_t first, uint64_t last)
{
    return ((double)last - (double)first) / 0x1p20;
}

static void put_growth(const oos_style *style, const char *what, const oos_slope *slope)
{
    if (oos_slope_grows(slope))
        oos_style_put(style, "    %s grows by %.2f KiB per request (%.2f to %.2f), the last %.0f of them\n",
                      what, slope->per / 1024, slope->low / 1024, slope->high / 1024, slope->span);
    else
        oos_style_put(style,
                      "    %s: no sure growth over the last %.0f requests (%.2f to %.2f KiB per request)\n",
                      what, slope->span, slope->low / 1024, slope->high / 1024);
}

static void put_loads(const oos_style *style, const oos_dryrun *run)
{
    if (run->load_count) oos_text_put(style->text, "\n");
    for (size_t i = 0; i < run->load_count; i++) {
        const oomsight_dryrun_load *load = &run->loads[i];
        oos_style_put(style, "  %u requests: %u answered, %u refused, %u failed, %u aborted by the client",
                      load->requests, load->answered, load->refused, load->failed, load->aborted);
        if (load->seconds > 0)
            oos_style_put(style, "; %.1f answers per second", load->answered / load->seconds);
        oos_text_put(style->text, "\n");
        if (load->host_last_bytes)
            oos_style_put(
                style,
                "    from its first part to its end: device %+.1f MiB, host %+.1f MiB over all processes\n",
                grown_mib(load->device_first_bytes, load->device_last_bytes),
                grown_mib(load->host_first_bytes, load->host_last_bytes));
        if (!run->growths || !run->growths[i].known) continue;
        put_growth(style, "device memory", &run->growths[i].device);
        put_growth(style, "host memory", &run->growths[i].host);
    }
}

static void put_steps(const oos_style *style, const oos_dryrun *run)
{
    bool any = false;
    for (unsigned i = 0; i < OOS_STEP_PARTS; i++) {
        const oos_step_peak *peak = &run->steps[i];
        if (!peak->bytes.known) continue;
        if (!any)
            oos_style_put(style, "\n  while serving, a step took at most beyond what was held before it\n");
        any = true;
        oos_style_put(style, "    %-8s %10.2f MiB  in step %llu: %llu requests, %llu tokens\n",
                      oos_step_word(i), (double)peak->bytes.value / 0x1p20, (unsigned long long)peak->step,
                      (unsigned long long)peak->requests, (unsigned long long)peak->tokens);
    }
}

/* The phase in which most of the host's memory was resident. */
static void put_host(const oos_style *style, const oos_dryrun *run)
{
    const oos_host_moment *most = NULL;
    oos_phase at = OOS_PHASE_COUNT;
    for (unsigned place = 0; place < OOS_PHASE_COUNT; place++) {
        oos_phase const phase = oos_dryrun_in_order(place);
        const oos_host_moment *moment = run->hosts[phase];
        if (!moment || (most && moment->resident_bytes <= most->resident_bytes)) continue;
        most = moment;
        at = phase;
    }
    if (!most || !run->phase_count) return; /* a program that used no device */
    char words[256];
    oos_format(words, sizeof words,
               "Host memory peak: %.2f GiB in %zu %s %s (%.2f GiB shared, %.2f GiB pinned)",
               oos_gib(most->resident_bytes), most->process_count,
               most->process_count == 1 ? "process" : "processes", oos_report_where(at),
               oos_gib(most->shared_bytes), oos_gib(most->pinned_bytes));
    oos_text_put(style->text, "\n");
    oos_style_paragraph(style, 2, words);
}

void oos_report_dryrun_text(oos_text *text, const oos_dryrun *run, const oomsight_render_params *params)
{
    oos_style const style = oos_style_of(text, params);
    put_headline(&style, run);
    put_capacity(&style, run);
    put_training(&style, &run->log);
    oos_text_put(text, "\n");
    const oos_moment *shown = NULL; /* the one that decides; where none does, the highest */
    for (size_t i = 0; i < run->phase_count; i++) {
        const oos_moment *moment = &run->phases[i];
        bool const decides = moment->phase == run->log.failed;
        bool const decided = shown && shown->phase == run->log.failed;
        if (decides || !shown || (!decided && moment->peak_bytes >= shown->peak_bytes)) shown = moment;
        oos_report_moment_bar(&style, moment, decides ? OOS_INK_BAD : OOS_INK_GOOD);
        if (decides) oos_style_ink(&style, OOS_INK_BAD, run->log.ran_out ? " dies here" : " refused");
        oos_text_put(text, "\n");
    }
    if (shown) put_rows(&style, shown, params->explain);
    put_steps(&style, run);
    put_loads(&style, run);
    put_host(&style, run);
    if (run->graph_count)
        oos_style_put(&style, "\n  %llu CUDA graphs with %llu nodes were made\n",
                      (unsigned long long)run->graph_count, (unsigned long long)run->graph_node_count);
    if (run->log.compiled)
        oos_style_put(
            &style,
            "\n  compile cache: cold, as in a container that is new; --warm shows what later starts have\n");
    else if (run->log.from_cache)
        oos_style_put(&style,
                      "\n  compile cache: warm; a container that is new starts cold, and profiles more\n");
    if (run->with)
        oos_style_put(&style, "\n  started with %s, for the requests; without --load as the engine would\n",
                      run->with);
    put_calls(&style, "calls that the simulated GPU refused", run->refused, run->refused_count);
    if (params->explain) put_calls(&style, "calls that did nothing", run->unknown, run->unknown_count);
    if (run->trace_path) oos_style_put(&style, "\n  trace: %s\n", run->trace_path);
}
