/* oomsight dryrun: start the real engine on a GPU that is not there. */
#include "dryrun.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { EXIT_TIMED_OUT = 124 }; /* as timeout(1) */

static const char help[] =
    "usage: oomsight dryrun [options] -- vllm serve MODEL [vllm flags...]\n\n"
    "Starts the command on devices that are not there: its own PyTorch and vLLM run unchanged over stand-ins "
    "for the\n"
    "CUDA libraries, which count every byte and compute nothing. The engine's log goes to stderr, the report "
    "to stdout.\n\n"
    "  --gpu NAME[xN]        the device, e.g. A30x4 ('oomsight gpus' lists them)\n"
    "  --gpu-total SIZE      what the device shows, e.g. 23.5GiB\n"
    "  --gpu-used SIZE       held by others\n"
    "  --slice SIZE          what a slicing layer (HAMi, vGPU) lets through of it\n"
    "  --gpu-cc X.Y        compute capability, for a device that is not listed\n"
    "  --outside SIZE        what each process takes outside PyTorch (context, NCCL, kernels, graphs), if "
    "you know it\n"
    "  --load N:IN:OUT[,WORD...]  when ready, send N requests of IN tokens for OUT tokens each; IN and OUT "
    "are numbers "
    "or\n"
    "                        ranges (16-512). N:@FILE takes lengths from a file, \"IN OUT\" a line. Words: "
    "concurrency=32,\n"
    "                        rate=10 (a second), abort=5%, prefix=50% (of each prompt, shared), logprobs=5, "
    "seed=7, hang=60\n"
    "                        (seconds without a step), body={JSON for each request} (last). Several --load "
    "go "
    "one by one\n"
    "  --serve               keep the server when it is ready, until it is interrupted\n"
    "  --until PHASE         stop when that phase begins, e.g. profile_run: the weights are in place\n"
    "  --snapshot FILE       PyTorch's own memory history, for 'oomsight replay FILE'; with several ranks "
    "FILE.rankN\n"
    "  --trace FILE          write every device allocation\n"
    "  --cuda 12|13          for commands that are not a Python program of their own\n"
    "  --timeout SECONDS     give up (3600)\n"
    "  --warm                start twice and report the second: what compiling took is over then\n"
    "  --quiet               no engine log\n"
    "  --json, --format text|json|html, --output FILE, --color WHEN, --explain, --data DIR\n\n"
    "Exit: the command's own code (128 and the number of a signal that ended it); 1 when it ran out of "
    "memory or\n"
    "a request of --load was not answered; 124 when it was not ready in time; 128 and the number of a signal "
    "that\n"
    "interrupted us; 0 when it was stopped because it was ready.\n";

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

static bool take_load(const char *value, dryrun_options *options)
{
    if (options->load_count < DRYRUN_LOADS)
        return dryrun_mix_read(value, &options->loads[options->load_count++]);
    complain("oomsight dryrun: more than %d loads", DRYRUN_LOADS);
    return false;
}

static int take_option(void *given, int argc, char **argv, int *at)
{
    dryrun_options *options = given;
    bool wrong = false;
    const char *value;
    oomsight_dryrun_params *params = &options->params;
    if (strcmp(argv[*at], "--serve") == 0) return options->serve = true, ++*at, 1;
    if (strcmp(argv[*at], "--warm") == 0) return options->warm = true, ++*at, 1;
    if (strcmp(argv[*at], "--quiet") == 0) return options->quiet = true, ++*at, 1;
    if ((value = option_value("--gpu", argc, argv, at, &wrong))) return params->gpu = value, 1;
    if ((value = option_value("--trace", argc, argv, at, &wrong))) return params->trace_path = value, 1;
    if ((value = option_value("--snapshot", argc, argv, at, &wrong)))
        return options->snapshot_path = value, 1;
    if ((value = option_value("--until", argc, argv, at, &wrong))) return params->until = value, 1;
    if ((value = option_value("--vllm", argc, argv, at, &wrong))) return params->engine_version = value, 1;
    if ((value = option_value("--gpu-total", argc, argv, at, &wrong)))
        return size_value("dryrun", "--gpu-total", value, &params->gpu_total_bytes);
    if ((value = option_value("--gpu-used", argc, argv, at, &wrong)))
        return size_value("dryrun", "--gpu-used", value, &params->gpu_used_bytes);
    if ((value = option_value("--slice", argc, argv, at, &wrong)))
        return size_value("dryrun", "--slice", value, &params->slice_bytes);
    if ((value = option_value("--outside", argc, argv, at, &wrong)))
        return params->outside_known = 1, size_value("dryrun", "--outside", value, &params->outside_bytes);
    if ((value = capability_value(argc, argv, at, &wrong)))
        return take_capability(value, &params->capability) ? 1 : -1;
    if ((value = option_value("--load", argc, argv, at, &wrong))) return take_load(value, options) ? 1 : -1;
    if ((value = option_value("--timeout", argc, argv, at, &wrong)))
        return options->timeout_seconds = (unsigned)strtoul(value, NULL, 10), 1;
    if ((value = option_value("--cuda", argc, argv, at, &wrong))) {
        options->cuda_major = (unsigned)strtoul(value, NULL, 10);
        return 1;
    }
    return wrong ? -1 : 0;
}

/* 0, -1 wrong usage, -2 help was asked for */
static int read_options(dryrun_options *options, int argc, char **argv)
{
    command_line const line = {.name = "dryrun",
                               .help = help,
                               .what = "engine flags go",
                               .example = "oomsight dryrun --gpu A30x4 -- vllm serve MODEL",
                               .output = &options->output,
                               .take = take_option,
                               .options = options};
    int const at = command_line_read(&line, argc, argv);
    if (at < 0) return at;
    options->command = argv + at;
    options->command_count = argc - at;
    return 0;
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
    if (result->aborted) fprintf(stderr, ", %u aborted as asked", result->aborted);
    if (result->seconds > 0) fprintf(stderr, ", %.1f a second", result->answered / result->seconds);
    fputc('\n', stderr);
    if (result->refusal[0]) fprintf(stderr, "oomsight dryrun: the first that was not: %s\n", result->refusal);
    if (result->hung)
        fprintf(stderr, "oomsight dryrun: it hung: no step and no answer for %u seconds\n",
                mix->hang_seconds);
}

static int report(const dryrun_options *options, oomsight_dryrun *dryrun, const dryrun_result *result)
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
    for (unsigned i = 0; i < options->load_count; i++) {
        loads[i] = load_told(&options->loads[i], &result->loads[i]);
        ending.load_requests += loads[i].requests;
        ending.load_answered += loads[i].answered + loads[i].aborted;
    }
    if (oomsight_dryrun_end(dryrun, &ending, &error) != OOMSIGHT_OK) return fail_with(&error);
    if (oomsight_dryrun_render(dryrun, &options->output.render, &text, &error) != OOMSIGHT_OK)
        return fail_with(&error);
    int const code = output_write(&options->output, text);
    oomsight_text_free(text);
    if (code != EXIT_FITS) return code;
    if (result->interrupted)
        fputs("oomsight dryrun: interrupted\n", stderr);
    else if (result->timed_out)
        fprintf(stderr, "oomsight dryrun: stopped after %u seconds (--timeout)\n", options->timeout_seconds);
    for (unsigned i = 0; i < options->load_count; i++) put_load(&options->loads[i], &result->loads[i]);
    if (options->snapshot_path) dryrun_snapshot_tell(options->snapshot_path);
    return exit_code(options, result, oomsight_dryrun_verdict(dryrun));
}

int dryrun_work(const dryrun_options *given, const char *scratch)
{
    char segment_path[600];
    dryrun_options options = *given;
    oomsight_error error = {0};
    oomsight_data *data = NULL;
    oomsight_dryrun *dryrun = NULL;
    dryrun_engine engine = {0};
    dryrun_result result = {0};
    snprintf(segment_path, sizeof segment_path, "%s/segment", scratch);
    options.params.segment_path = segment_path;
    int code = dryrun_engine_find(&options, scratch, &engine);
    if (dryrun_interrupted()) code = 128 + dryrun_interrupted();
    if (code) goto out;
    if (engine.vllm_version[0]) options.params.engine_version = engine.vllm_version;
    if (oomsight_data_open(options.output.data_dir, &data, &error) != OOMSIGHT_OK) {
        code = fail_with(&error);
        goto out;
    }
    options.params.data = data;
    if (oomsight_dryrun_create(&options.params, &dryrun, &error) != OOMSIGHT_OK) {
        code = fail_with(&error);
        goto out;
    }
    if (options.snapshot_path && !dryrun_snapshot_begin(options.snapshot_path)) {
        code = EXIT_INPUT;
        goto out;
    }
    code = dryrun_child_run(&options, &engine, segment_path, dryrun, &result);
    if (code == 0) code = report(&options, dryrun, &result);
out:
    oomsight_dryrun_free(dryrun);
    oomsight_data_close(data);
    free(engine.command);
    return code;
}

/* How many words an option takes that names a file to write: 2, 1 with `=`, 0 when it is another. */
static unsigned names_file(const char *word)
{
    static const char *const names[] = {"--output", "--trace", "--snapshot"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        size_t const len = strlen(names[i]);
        if (strncmp(word, names[i], len) == 0 && (word[len] == '=' || !word[len])) return word[len] ? 1 : 2;
    }
    return 0;
}

/* The same words without --warm and without files to write, in a process of its own: it fills the compile cache, and its report is not
 * read. The first `own` words are ours. 0, or the code of what interrupted it. */
static int start_before(int own, int argc, char **argv)
{
    char **words = calloc((size_t)argc + 3, sizeof *words);
    int count = 0, status = 0;
    if (!words) return EXIT_OUR_FAULT;
    words[count++] = (char *)"oomsight";
    words[count++] = (char *)"dryrun";
    for (int at = 0; at < argc; at++) {
        unsigned const file = at < own ? names_file(argv[at]) : 0;
        if (file == 0 && (at >= own || strcmp(argv[at], "--warm") != 0)) words[count++] = argv[at];
        at += file == 2;
    }
    fputs("oomsight dryrun: the first start fills the compile cache\n", stderr);
    pid_t const child = fork();
    if (child == 0) {
        int const nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        if (nowhere >= 0) dup2(nowhere, STDOUT_FILENO);
        execv("/proc/self/exe", words);
        _exit(127);
    }
    free(words);
    while (child > 0 && waitpid(child, &status, 0) < 0) continue;
    int const code = child < 0           ? EXIT_OUR_FAULT
                     : WIFEXITED(status) ? WEXITSTATUS(status)
                                         : 128 + WTERMSIG(status);
    if (code == 128 + SIGINT || code == 128 + SIGTERM || code == 128 + SIGHUP) return code;
    if (code) fprintf(stderr, "oomsight dryrun: the first start ended with %d\n", code);
    return 0;
}

int cmd_dryrun(int argc, char **argv)
{
    dryrun_options options = {
        .params = OOMSIGHT_DRYRUN_PARAMS_INIT, .timeout_seconds = 3600, .started = dryrun_now()};
    output_options_init(&options.output);
    int const read = read_options(&options, argc, argv);
    if (read == -2) return 0;
    if (read < 0) return EXIT_USAGE;
    output_options_settle(&options.output);

    if (options.warm) {
        int const interrupted = start_before((int)(options.command - argv), argc, argv);
        if (interrupted) return interrupted;
        options.started = dryrun_now();
    }
    /* A start that `oomsight matrix` asked for ends with whoever asked, whatever stands between them. */
    if (getenv("OOMSIGHT_WITH_PARENT")) prctl(PR_SET_PDEATHSIG, SIGTERM);
    return dryrun_guard(&options);
}
