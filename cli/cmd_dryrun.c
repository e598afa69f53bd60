/* oomsight dryrun: start the real engine on a GPU that is not there. */
#include "cmd_dryrun.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { EXIT_TIMED_OUT = 124 }; /* as timeout(1) */

static bool take_capability(const char *value, unsigned *ret_capability)
{
    unsigned major, minor;
    char rest;
    if (sscanf(value, "%u.%u%c", &major, &minor, &rest) != 2 || major < 5 || major > 99 || minor > 9) {
        complain("oomsight dryrun: '%s' is no compute capability (8.0, 12.0)", value);
        return false;
    }
    *ret_capability = major * 10 + minor;
    return true;
}

/* --soak N is a --load of N requests of mixed lengths, with prefixes that they share and clients that leave. */
static bool take_soak(unsigned requests, dryrun_options *options)
{
    static char value[96];
    snprintf(value, sizeof value, "%u:16-512:4-64,concurrency=64,abort=5%%,prefix=30%%,hang=300", requests);
    if (options->load_count == DRYRUN_LOADS) {
        complain("oomsight dryrun: --soak and %u times --load are too many", DRYRUN_LOADS);
        return false;
    }
    return dryrun_mix_read(value, &options->loads[options->load_count++]);
}

/* False: told. */
static bool take_options(const cli_options *given, dryrun_options *options)
{
    oomsight_dryrun_params *params = &options->params;
    params->gpu = given->gpu;
    params->gpu_total_bytes = given->gpu_total.bytes;
    params->gpu_used_bytes = given->gpu_used.bytes;
    params->slice_bytes = given->slice.bytes;
    params->machine_bytes = given->machine.bytes;
    params->fail_after = (uint64_t)given->fail_after.number;
    params->outside_bytes = given->outside.bytes;
    params->outside_known = given->outside.text != NULL;
    params->trace_path = given->trace;
    params->until = given->until;
    params->engine_version = LAST(given, release);
    options->cuda_major = (unsigned)given->cuda.number;
    for (size_t i = 0; i < given->load_count; i++)
        if (!dryrun_mix_read(given->load[i], &options->loads[options->load_count++])) return false;
    if (given->soak.given && !take_soak((unsigned)given->soak.number, options)) return false;
    return !given->gpu_cc || take_capability(given->gpu_cc, &params->capability);
}

/* The command's own code, unless something else is to be told. */
static int exit_code(const dryrun_options *options, const dryrun_result *result, oomsight_verdict verdict)
{
    if (verdict == OOMSIGHT_VERDICT_FAILS) return EXIT_DOES_NOT_FIT;
    if (result->interrupted) return 128 + result->interrupted;
    if (result->timed_out && verdict != OOMSIGHT_VERDICT_FITS) return EXIT_TIMED_OUT;
    if (!result->stopped && result->exit_code) return result->exit_code;
    for (unsigned i = 0; i < options->load_count; i++)
        if (result->loads[i].answered + result->loads[i].aborted < options->loads[i].requests)
            return EXIT_DOES_NOT_FIT;
    return 0;
}

static oomsight_dryrun_load load_told(const dryrun_mix *mix, const dryrun_load_result *result)
{
    return (oomsight_dryrun_load){.requests = mix->requests,
                                  .answered = result->answered,
                                  .refused = result->refused,
                                  .failed = result->failed,
                                  .aborted = result->aborted,
                                  .hung = result->hung,
                                  .seconds = result->seconds,
                                  .device_first_bytes = result->device_first_bytes,
                                  .device_last_bytes = result->device_last_bytes,
                                  .host_first_bytes = result->host_first_bytes,
                                  .host_last_bytes = result->host_last_bytes};
}

static void put_load(const dryrun_mix *mix, const dryrun_load_result *result)
{
    fprintf(stderr, "oomsight dryrun: %u of %u requests were answered", result->answered, mix->requests);
    if (result->refused) fprintf(stderr, ", %u refused", result->refused);
    if (result->failed) fprintf(stderr, ", %u failed", result->failed);
    if (result->aborted) fprintf(stderr, ", %u aborted by the client", result->aborted);
    if (result->seconds > 0) fprintf(stderr, ", %.1f a second", result->answered / result->seconds);
    fputc('\n', stderr);
    if (result->refusal[0]) fprintf(stderr, "oomsight dryrun: the first that was not: %s\n", result->refusal);
    if (result->hung)
        fprintf(stderr, "oomsight dryrun: it hung: no step and no answer for %u seconds\n",
                mix->hang_seconds);
}

/* The engine's own words are of the stub tokenizer's folder. */
static void put_missing(const dryrun_options *options, const dryrun_engine *engine)
{
    if (engine->model && oomsight_model_lacks_processor(options->params.data, engine->model))
        fprintf(
            stderr,
            "oomsight dryrun: %s takes images or sound, and has none of processor_config.json, "
            "preprocessor_config.json and video_preprocessor_config.json: give a folder with those of the "
            "model, its tokenizer's files and its config.json\n",
            engine->asked ? engine->asked : engine->model);
}

static int report(const dryrun_options *options, const dryrun_engine *engine, oomsight_dryrun *dryrun,
                  const dryrun_result *result)
{
    oomsight_error error = {0};
    char *text = NULL;
    oomsight_dryrun_ending ending = OOMSIGHT_DRYRUN_ENDING_INIT;
    ending.child_exit = result->stopped ? 0 : result->exit_code;
    ending.child_signal = result->stopped ? 0 : result->signal;
    ending.timed_out = result->timed_out;
    ending.interrupted = result->interrupted != 0;
    oomsight_dryrun_load loads[DRYRUN_LOADS];
    ending.loads = loads;
    ending.load_count = options->load_count;
    ending.samples = result->samples;
    ending.sample_count = result->sample_count;
    for (unsigned i = 0; i < options->load_count; i++) {
        loads[i] = load_told(&options->loads[i], &result->loads[i]);
        ending.load_requests += loads[i].requests;
        ending.load_answered += loads[i].answered + loads[i].aborted;
    }
    oomsight_dryrun_about(dryrun, engine->asked ? engine->asked : engine->model,
                          dryrun_now() - options->started);
    if (oomsight_dryrun_end(dryrun, &ending, &error) != OOMSIGHT_OK) return fail_with(&error);
    if (options->given->report) {
        cli_options to_file = *options->given;
        to_file.render.format = OOMSIGHT_FORMAT_JSON;
        to_file.output = to_file.report;
        oomsight_status const told = oomsight_dryrun_render(dryrun, &to_file.render, &text, &error);
        int const written = output_give(&to_file, told, text, &error);
        if (written != EXIT_FITS) return written;
        text = NULL;
    }
    oomsight_status const status = oomsight_dryrun_render(dryrun, &options->given->render, &text, &error);
    int const code = output_give(options->given, status, text, &error);
    if (code != EXIT_FITS) return code;
    if (result->interrupted)
        fputs("oomsight dryrun: interrupted\n", stderr);
    else if (result->timed_out)
        fprintf(stderr, "oomsight dryrun: stopped after %.0f seconds (--timeout)\n", DRYRUN_SECONDS(options));
    for (unsigned i = 0; i < options->load_count; i++) put_load(&options->loads[i], &result->loads[i]);
    if (options->given->snapshot) dryrun_snapshot_tell(options->given);
    oomsight_dryrun_result found = {.size = sizeof found};
    oomsight_dryrun_result_get(dryrun, &found);
    if (found.verdict == OOMSIGHT_VERDICT_UNKNOWN) put_missing(options, engine);
    return exit_code(options, result, found.verdict);
}

/* Somebody may cut the segment short while we look at it. What is gone then reads as zeros, and the end says that it was damaged. */
static void page_blank(int number, siginfo_t *info, void *context)
{
    uintptr_t const page = (uintptr_t)sysconf(_SC_PAGESIZE), at = (uintptr_t)info->si_addr & ~(page - 1);
    (void)context;
    if (info->si_code == BUS_ADRERR && mmap((void *)at, page, PROT_READ | PROT_WRITE,
                                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED)
        return;
    signal(number, SIG_DFL); /* it comes again, and ends us */
}

int dryrun_work(const dryrun_options *given, const char *scratch)
{
    sigaction(SIGBUS, &(struct sigaction){.sa_sigaction = page_blank, .sa_flags = SA_SIGINFO}, NULL);
    char segment_path[600];
    dryrun_options options = *given;
    oomsight_error error = {0};
    oomsight_data *data = NULL;
    oomsight_dryrun *dryrun = NULL;
    dryrun_engine engine = {0};
    dryrun_result result = {0};
    snprintf(segment_path, sizeof segment_path, "%s/segment", scratch);
    options.params.segment_path = segment_path;
    int code = oomsight_data_open(options.given->data, &data, &error) == OOMSIGHT_OK ? 0 : fail_with(&error);
    if (!code) code = dryrun_engine_find(&options, data, scratch, &engine);
    if (dryrun_interrupted()) code = 128 + dryrun_interrupted();
    if (code) goto out;
    bool const told = options.params.engine_version != NULL; /* on the command line */
    if (engine.version[0]) options.params.engine_version = engine.version;
    options.params.engine = engine.name;
    if (!engine.name && !told) { /* any program; an engine in it says so itself */
        options.params.engine = "torch";
        options.params.engine_version = engine.torch[0] ? engine.torch : NULL;
    }
    options.params.data = data;
    options.params.device_count = oomsight_gpus_taken(
        data, &options.params, (const char *const *)options.given->words, (size_t)options.given->word_count);
    if (oomsight_dryrun_create(&options.params, &dryrun, &error) != OOMSIGHT_OK) {
        code = fail_with(&error);
        goto out;
    }
    if (options.given->snapshot && !dryrun_snapshot_begin(options.given->snapshot)) {
        code = EXIT_INPUT;
        goto out;
    }
    code = dryrun_child_run(&options, &engine, segment_path, dryrun, &result);
    if (code == 0) code = report(&options, &engine, dryrun, &result);
out:
    oomsight_dryrun_free(dryrun);
    oomsight_data_close(data);
    free(engine.command);
    return code;
}

/* The same without files to write, in a process of its own: it fills the compile cache, and its report is not read. 0, or the code of
 * what interrupted it. */
static int start_before(const dryrun_options *options)
{
    int status = 0;
    fputs("oomsight dryrun: the first start fills the compile cache\n", stderr);
    fflush(NULL);
    pid_t const child = fork();
    if (child == 0) {
        cli_options given = *options->given;
        given.output = given.snapshot = NULL;
        dryrun_options first = *options;
        first.given = &given;
        first.params.trace_path = NULL;
        int const nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        if (nowhere >= 0) dup2(nowhere, STDOUT_FILENO);
        _exit(dryrun_guard(&first));
    }
    while (child > 0 && waitpid(child, &status, 0) < 0) continue;
    int const code = child < 0           ? EXIT_OUR_FAULT
                     : WIFEXITED(status) ? WEXITSTATUS(status)
                                         : 128 + WTERMSIG(status);
    if (code == 128 + SIGINT || code == 128 + SIGTERM || code == 128 + SIGHUP) return code;
    if (code) fprintf(stderr, "oomsight dryrun: the first start ended with %d\n", code);
    return 0;
}

int cmd_dryrun(cli_options *given)
{
    dryrun_options options = {.given = given, .params = OOMSIGHT_DRYRUN_PARAMS_INIT, .started = dryrun_now()};
    if (!take_options(given, &options)) return EXIT_USAGE;
    if (given->warm) {
        int const interrupted = start_before(&options);
        if (interrupted) return interrupted;
        options.started = dryrun_now();
    }
    /* A start that `oomsight matrix` asked for ends with whoever asked, whatever stands between them. */
    if (getenv("OOMSIGHT_WITH_PARENT")) prctl(PR_SET_PDEATHSIG, SIGTERM);
    return dryrun_guard(&options);
}
