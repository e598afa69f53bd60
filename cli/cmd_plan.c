/* oomsight plan: will it start, and how much is left. */
#include "cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VERSIONS_MAX = 16 };

typedef struct plan_options {
    cli_options *given;
    oomsight_plan_params params;
    struct {
        char engine[32], version[32]; /* "": the command's, the newest or the one that is here */
    } asked[VERSIONS_MAX];
    size_t asked_count;
} plan_options;

/* One engine, at one release or several with commas between them. False: too many, told. */
static bool engines_asked(plan_options *plan, const char *engine, size_t engine_len, const char *versions)
{
    for (bool more = true; more;) {
        size_t const len = strcspn(versions, ",");
        if (plan->asked_count == VERSIONS_MAX) {
            fprintf(stderr, "oomsight plan: at most %d versions at once\n", VERSIONS_MAX);
            return false;
        }
        snprintf(plan->asked[plan->asked_count].engine, sizeof plan->asked->engine, "%.*s", (int)engine_len,
                 engine);
        snprintf(plan->asked[plan->asked_count++].version, sizeof plan->asked->version, "%.*s", (int)len,
                 versions);
        more = versions[len] != '\0';
        versions += len + more;
    }
    return true;
}

static bool take_engines(plan_options *plan)
{
    const cli_options *given = plan->given;
    for (size_t i = 0; i < given->engine_count; i++) {
        size_t const len = strcspn(given->engine[i], "=");
        if (!engines_asked(plan, given->engine[i], len,
                           given->engine[i] + len + (given->engine[i][len] != 0)))
            return false;
    }
    const char *const first = oomsight_engine_at(0)->name;
    for (size_t i = 0; i < given->release_count; i++)
        if (!engines_asked(plan, first, strlen(first), given->release[i])) return false;
    return true;
}

/* Variables given without a value get the one that they have here, so that a secret need not stand on a command line; those that have
 * none are left out. What is made lives as long as the program. */
static void environment_complete(cli_options *given)
{
    size_t kept = 0;
    for (size_t i = 0; i < given->env_count; i++) {
        const char *const value = strchr(given->env[i], '=') ? NULL : getenv(given->env[i]);
        char *entry = NULL;
        if (strchr(given->env[i], '='))
            given->env[kept++] = given->env[i];
        else if (value && asprintf(&entry, "%s=%s", given->env[i], value) >= 0)
            given->env[kept++] = entry;
    }
    given->env_count = kept;
}

oomsight_plan_params plan_params(cli_options *given)
{
    environment_complete(given);
    oomsight_plan_params params = OOMSIGHT_PLAN_PARAMS_INIT;
    params.command = (const char *const *)given->words;
    params.command_count = (size_t)given->word_count;
    params.allow_hub = !given->offline;
    params.gpu = given->gpu;
    params.gpu_total_bytes = given->gpu_total.bytes;
    params.gpu_used_bytes = given->gpu_used.bytes;
    params.gpu_used_known = given->gpu_used.text != NULL;
    params.compute_capability = given->gpu_cc;
    params.environment = given->env;
    params.environment_count = given->env_count;
    return params;
}

static bool take_options(plan_options *plan)
{
    cli_options *given = plan->given;
    plan->params = plan_params(given);
    plan->params.host_ram_bytes = given->host_ram.bytes;
    plan->params.kv_layers_json = given->kv_layers;
    if (!take_engines(plan)) return false;
#if OOMSIGHT_PROCESSES
    if (given->exact && (plan->asked_count > 1 || (given->gpu && strcmp(given->gpu, "all") == 0))) {
        fputs("oomsight plan: --exact is for one version on one GPU\n", stderr);
        return false;
    }
    if (given->python && !given->exact) {
        fputs("oomsight plan: --python is for --exact\n", stderr);
        return false;
    }
#endif
    if (!given->gpu || strcmp(given->gpu, "all") != 0 || (!given->max_fit && plan->asked_count < 2))
        return true;
    fputs("oomsight plan: --gpu all is for one version, and without --max-fit\n", stderr);
    return false;
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
static int answer_words(const cli_options *given, const oomsight_plan *plan)
{
    size_t count = 0;
    const char *const *words = oomsight_plan_best_words(plan, &count);
    if (!words) {
        fputs("oomsight plan: no flags make it fit\n", stderr);
        return EXIT_DOES_NOT_FIT;
    }
    for (size_t i = 0; given->null && i < count; i++) {
        fputs(words[i], stdout);
        putchar(0);
    }
    for (size_t i = 0; !given->null && i < count; i++) {
        int const code = i ? output_write(given, " ") : EXIT_FITS;
        if (code || output_write(given, words[i])) return EXIT_INPUT;
    }
    if (given->null) return fflush(stdout) == 0 ? EXIT_FITS : EXIT_INPUT;
    return output_write(given, "\n");
}

/* An option of ours behind `--` is the engine's to refuse: no flag of an engine has the name of one (tests/cli/plan_behind.sh). */
static void tell_misplaced(const cli_options *given, const oomsight_plan *plan)
{
    if (oomsight_plan_verdict(plan) != OOMSIGHT_VERDICT_REFUSED) return;
    for (int i = 0; i < given->word_count; i++)
        if (strncmp(given->words[i], "--", 2) == 0 && option_find(command_find("plan"), given->words[i]))
            complain("oomsight plan: %.*s is an option of oomsight: it goes before '--'",
                     (int)strcspn(given->words[i], "="), given->words[i]);
}

static int answer(const cli_options *given, oomsight_plan *const *plans, size_t count)
{
    oomsight_error error = {0};
    char *text = NULL;
    oomsight_status status;
    if (given->max_fit) return answer_words(given, plans[0]);
    if (count == 1)
        status = oomsight_plan_render(plans[0], &given->render, &text, &error);
    else
        status =
            oomsight_plans_render((const oomsight_plan *const *)plans, count, &given->render, &text, &error);
    int code = output_give(given, status, text, &error);
    if (code == EXIT_FITS) tell_misplaced(given, plans[0]);
    for (size_t i = 0; i < count && code == EXIT_FITS; i++) code = exit_code(plans[i], given->strict);
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

/* With --exact the plan is made once more, with what the installed engine says of it. */
static oomsight_status plan_create(const plan_options *options, oomsight_plan **ret_plan,
                                   oomsight_error *reterr)
{
#if OOMSIGHT_PROCESSES
    oomsight_asker asker = {0};
    if (options->given->exact && plan_asker_open(options->given, options->params.data, &asker)) {
        oomsight_status const status = oomsight_plan_create_asked(&options->params, &asker, ret_plan, reterr);
        plan_asker_close(&asker);
        return status;
    }
#endif
    return oomsight_plan_create(&options->params, ret_plan, reterr);
}

static int plan_and_answer(plan_options *options)
{
    oomsight_machine *machine = machine_of(options);
    options->params.machine = machine;
    if (options->asked_count == 0) options->asked_count = 1; /* whatever the command says */

    oomsight_error error = {0};
    oomsight_data *data = NULL;
    oomsight_plan *plans[VERSIONS_MAX] = {0};
    int code = EXIT_OUR_FAULT;
    size_t count = 0;
    if (oomsight_data_open(options->given->data, &data, &error) != OOMSIGHT_OK) {
        code = fail_with(&error);
        goto out;
    }
    options->params.data = data;
    for (; count < options->asked_count; count++) {
        const char *engine = options->asked[count].engine, *version = options->asked[count].version;
        options->params.engine = *engine ? engine : NULL;
        options->params.engine_version = *version ? version : NULL;
        if (plan_create(options, &plans[count], &error) != OOMSIGHT_OK) {
            code = fail_with(&error);
            goto out;
        }
    }
    code = answer(options->given, plans, count);
out:
    for (size_t i = 0; i < count; i++) oomsight_plan_free(plans[i]);
    oomsight_data_close(data);
    machine_close(machine);
    return code;
}

int cmd_plan(cli_options *given)
{
    plan_options plan = {.given = given};
    return take_options(&plan) ? plan_and_answer(&plan) : EXIT_USAGE;
}
