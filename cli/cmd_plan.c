/* oomsight plan: will it start, and how much is left. */
#include "cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VERSIONS_MAX = 16, ENVIRONMENT_MAX = 1024 };

typedef struct plan_options {
    output_options output;
    oomsight_plan_params params;
    struct {
        char engine[32], version[32]; /* "": the command's, the newest or the one that is here */
    } asked[VERSIONS_MAX];
    size_t asked_count;
    const char *environment[ENVIRONMENT_MAX];
    char *taken[ENVIRONMENT_MAX]; /* those of them that are ours to free */
    size_t taken_count;
    bool max_fit, null, strict;
} plan_options;

static const char help[] =
    "usage: oomsight plan [options] -- vllm serve MODEL [vllm flags...]\n\n"
    "Will it start, and if not: why, the whole command to paste, and what it gives up; or which checkpoint "
    "or "
    "GPU it\n"
    "takes. MODEL is a directory, a Hugging Face id in the local cache, or an id fetched from the hub "
    "(config and "
    "headers\n"
    "only); where the hub gives no answer, models in common use are known.\n\n"
    "  --gpu NAME[xN]      the device, for example 4090 or A30x4 ('oomsight gpus' lists them);\n"
    "                      without it: this machine's; all: which GPU does it take, the smallest first\n"
    "  --gpu-total SIZE    what the device or slice really shows, for example 23.5GiB\n"
    "  --gpu-used SIZE     held by other processes\n"
    "  --gpu-cc X.Y        compute capability, for a device that is not listed\n"
    "  --engine NAME[=VERSION]  vllm or sglang; without it: the engine that the command starts; both: side "
    "by\n"
    "                      side, the flags said in the words of each\n"
    "  --vllm VERSION      engine version; several (0.19.1,0.32.0): side by side; without it: that of the "
    "image, the one "
    "installed\n"
    "                      here, or the newest known\n"
    "  --env NAME[=VALUE]  an environment variable the engine would see; without a value, as it is here\n"
    "  --offline           never ask the hub\n"
    "  --insecure          send HF_TOKEN to an http:// hub on another machine\n"
    "  --host-ram SIZE     RAM of the machine, for weights kept there (64GiB are assumed)\n"
    "  --max-fit           print only the flags to add ('' when it fits as it is): one line for $( )\n"
    "  --null              with --max-fit: each word ends with a NUL, for xargs -0\n"
    "  --strict            exit 1 unless it certainly starts (0: it starts or likely starts, 3: can't tell)\n"
    "  --verbose           the start-up phases as bars, and who holds what in the one that decides\n"
    "  --explain           the same, and how each number came to be\n"
    "  --json, --format text|json|md|html, --output FILE, --color auto|always|never, --ascii, --lang en|zh, "
    "--data DIR\n";

/* NAME=VALUE with the value that NAME has here; NULL: it has none, or no memory. A value that is a secret need not stand on a
 * command line. */
static const char *environment_entry(plan_options *options, const char *name)
{
    const char *const value = getenv(name);
    char *entry = NULL;
    if (!value || asprintf(&entry, "%s=%s", name, value) < 0) return NULL;
    return options->taken[options->taken_count++] = entry;
}

/* One engine, at one release or several with commas between them. 1, or -1: wrong. */
static int engines_asked(plan_options *options, const char *engine, size_t engine_len, const char *versions)
{
    for (bool more = true; more;) {
        size_t const len = strcspn(versions, ",");
        if (options->asked_count == VERSIONS_MAX) {
            fprintf(stderr, "oomsight plan: at most %d versions at once\n", VERSIONS_MAX);
            return -1;
        }
        snprintf(options->asked[options->asked_count].engine, sizeof options->asked->engine, "%.*s",
                 (int)engine_len, engine);
        snprintf(options->asked[options->asked_count++].version, sizeof options->asked->version, "%.*s",
                 (int)len, versions);
        more = versions[len] != '\0';
        versions += len + more;
    }
    return 1;
}

/* One option of this command. 1 taken, 0 not ours, -1 wrong. */
static int take_option(void *given, int argc, char **argv, int *at)
{
    plan_options *options = given;
    bool wrong = false;
    const char *value;
    oomsight_plan_params *params = &options->params;
    if (strcmp(argv[*at], "--max-fit") == 0) {
        options->max_fit = true;
        return ++*at, 1;
    }
    if (strcmp(argv[*at], "--null") == 0) {
        options->null = true;
        return ++*at, 1;
    }
    if (strcmp(argv[*at], "--strict") == 0) {
        options->strict = true;
        return ++*at, 1;
    }
    if (strcmp(argv[*at], "--offline") == 0) {
        params->allow_hub = 0;
        return ++*at, 1;
    }
    if (take_insecure(argv[*at])) return ++*at, 1;
    if ((value = option_value("--gpu-total", argc, argv, at, &wrong)))
        return size_value("plan", "--gpu-total", value, &params->gpu_total_bytes);
    if ((value = option_value("--gpu-used", argc, argv, at, &wrong)))
        return params->gpu_used_known = 1, size_value("plan", "--gpu-used", value, &params->gpu_used_bytes);
    if ((value = option_value("--host-ram", argc, argv, at, &wrong)))
        return size_value("plan", "--host-ram", value, &params->host_ram_bytes);
    if ((value = capability_value(argc, argv, at, &wrong))) return params->compute_capability = value, 1;
    if ((value = option_value("--gpu", argc, argv, at, &wrong))) return params->gpu = value, 1;
    if ((value = option_value("--kv-layers", argc, argv, at, &wrong)))
        return params->kv_layers_json = value, 1;
    if ((value = option_value("--engine", argc, argv, at, &wrong))) {
        size_t const len = strcspn(value, "=");
        return engines_asked(options, value, len, value[len] ? value + len + 1 : "");
    }
    if ((value = option_value("--vllm", argc, argv, at, &wrong)))
        return engines_asked(options, "vllm", strlen("vllm"), value);
    if ((value = option_value("--env", argc, argv, at, &wrong))) {
        if (params->environment_count == ENVIRONMENT_MAX) {
            fprintf(stderr, "oomsight plan: at most %d variables\n", ENVIRONMENT_MAX);
            return -1;
        }
        value = strchr(value, '=') ? value : environment_entry(options, value);
        if (value) options->environment[params->environment_count++] = value;
        return 1;
    }
    return wrong ? -1 : 0;
}

/* 0, -1 wrong usage, -2 help was asked for */
static int read_options(plan_options *options, int argc, char **argv)
{
    command_line const line = {.name = "plan",
                               .help = help,
                               .what = "engine flags go",
                               .example = "oomsight plan --gpu 4090 -- vllm serve MODEL",
                               .output = &options->output,
                               .take = take_option,
                               .options = options};
    int const at = command_line_read(&line, argc, argv);
    if (at < 0) return at;
    if (options->params.gpu && strcmp(options->params.gpu, "all") == 0 &&
        (options->max_fit || options->asked_count > 1)) {
        fputs("oomsight plan: --gpu all is for one version, and without --max-fit\n", stderr);
        return -1;
    }
    options->params.command = (const char *const *)(argv + at);
    options->params.command_count = (size_t)(argc - at);
    options->params.environment = options->environment;
    return 0;
}

/* 0 for what starts and likely starts; with --strict only for what starts. */
static int exit_code(const oomsight_plan *plan, bool strict)
{
    if (oomsight_plan_choices(plan) >= 0) return oomsight_plan_choices(plan) ? EXIT_FITS : EXIT_DOES_NOT_FIT;
    switch (oomsight_plan_verdict(plan)) {
    case OOMSIGHT_VERDICT_FITS: return EXIT_FITS;
    case OOMSIGHT_VERDICT_TIGHT:
        return !strict && oomsight_plan_probability(plan) >= 0.5 ? EXIT_FITS : EXIT_DOES_NOT_FIT;
    case OOMSIGHT_VERDICT_FAILS:
    case OOMSIGHT_VERDICT_REFUSED: return EXIT_DOES_NOT_FIT;
    case OOMSIGHT_VERDICT_UNKNOWN: return strict ? EXIT_DOES_NOT_FIT : EXIT_INPUT;
    }
    return EXIT_OUR_FAULT;
}

/* --max-fit: one line of words that a shell's $( ) takes apart where they end; --null: each word with a NUL behind it. */
static int answer_words(const plan_options *options, const oomsight_plan *plan)
{
    size_t count = 0;
    const char *const *words = oomsight_plan_best_words(plan, &count);
    if (!words) {
        fputs("oomsight plan: no flags make it fit\n", stderr);
        return EXIT_DOES_NOT_FIT;
    }
    for (size_t i = 0; options->null && i < count; i++) {
        fputs(words[i], stdout);
        putchar(0);
    }
    for (size_t i = 0; !options->null && i < count; i++) {
        int const code = i ? output_write(&options->output, " ") : EXIT_FITS;
        if (code || output_write(&options->output, words[i])) return EXIT_INPUT;
    }
    if (options->null) return fflush(stdout) == 0 ? EXIT_FITS : EXIT_INPUT;
    return output_write(&options->output, "\n");
}

static int answer(const plan_options *options, oomsight_plan *const *plans, size_t count)
{
    oomsight_error error = {0};
    char *text = NULL;
    oomsight_status status;
    if (options->max_fit) return answer_words(options, plans[0]);
    if (count == 1)
        status = oomsight_plan_render(plans[0], &options->output.render, &text, &error);
    else
        status = oomsight_plans_render((const oomsight_plan *const *)plans, count, &options->output.render,
                                       &text, &error);
    if (status != OOMSIGHT_OK) return fail_with(&error);
    int code = output_write(&options->output, text);
    oomsight_text_free(text);
    for (size_t i = 0; i < count && code == EXIT_FITS; i++) code = exit_code(plans[i], options->strict);
    return code;
}

/* What was not said is asked of the machine: its GPU, the engine that is installed. NULL: nothing is to be asked. */
static oomsight_machine *machine_of(const plan_options *options)
{
    oomsight_machine *machine = NULL;
#if OOMSIGHT_PROCESSES
    oomsight_machine_params params = OOMSIGHT_MACHINE_PARAMS_INIT;
    params.program = options->params.command[0];
    params.skip_devices = options->params.gpu || options->params.gpu_total_bytes;
    if (params.skip_devices && options->asked_count && options->asked[0].version[0]) return NULL;
    if (oomsight_machine_open(&params, &machine, NULL) != OOMSIGHT_OK) return NULL;
#else
    (void)options;
#endif
    return machine;
}

static void machine_close(oomsight_machine *machine)
{
#if OOMSIGHT_PROCESSES
    oomsight_machine_close(machine);
#else
    (void)machine;
#endif
}

static int plan_and_answer(plan_options *options)
{
    output_options_settle(&options->output);
    oomsight_machine *machine = machine_of(options);
    options->params.machine = machine;
    if (options->asked_count == 0) options->asked_count = 1; /* whatever the command says */

    oomsight_error error = {0};
    oomsight_data *data = NULL;
    oomsight_plan *plans[VERSIONS_MAX] = {0};
    int code = EXIT_OUR_FAULT;
    size_t count = 0;
    if (oomsight_data_open(options->output.data_dir, &data, &error) != OOMSIGHT_OK) {
        code = fail_with(&error);
        goto out;
    }
    options->params.data = data;
    for (; count < options->asked_count; count++) {
        const char *engine = options->asked[count].engine, *version = options->asked[count].version;
        options->params.engine = *engine ? engine : NULL;
        options->params.engine_version = *version ? version : NULL;
        if (oomsight_plan_create(&options->params, &plans[count], &error) != OOMSIGHT_OK) {
            code = fail_with(&error);
            goto out;
        }
    }
    code = answer(options, plans, count);
out:
    for (size_t i = 0; i < count; i++) oomsight_plan_free(plans[i]);
    oomsight_data_close(data);
    machine_close(machine);
    return code;
}

int cmd_plan(int argc, char **argv)
{
    plan_options options = {.params = OOMSIGHT_PLAN_PARAMS_INIT};
    output_options_init(&options.output);
    options.params.allow_hub = 1;
    int const read = read_options(&options, argc, argv);
    int const code = read == -2 ? 0 : read < 0 ? EXIT_USAGE : plan_and_answer(&options);
    while (options.taken_count) free(options.taken[--options.taken_count]);
    return code;
}
