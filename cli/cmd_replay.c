/* oomsight replay: what would other allocator settings have done. */
#include "cli.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_TRIES = 64 };

typedef struct request {
    output_options output;
    oomsight_replay_params params;
    const char *tries[MAX_TRIES];
    bool events;
} request;

static void print_help(void)
{
    fputs("usage: oomsight replay [options] SNAPSHOT|TRACE\n\n"
          "Runs a recorded history of PyTorch's caching allocator again, under other settings. The input is "
          "a memory\n"
          "snapshot (pickle or JSON), a trace of `dryrun`, or a trace written by hand; gz, zst and xz are "
          "unwrapped.\n\n"
          "  --settings TEXT      as in PYTORCH_CUDA_ALLOC_CONF, in place of the recorded ones\n"
          "  --try TEXT           one more line in the what-if table (may be repeated)\n"
          "  --no-what-if         only the run itself\n"
          "  --smallest           search the smallest device on which each setting survives\n"
          "  --torch VERSION      whose rules: 2.1 to 2.15\n"
          "  --gpu-total SIZE     the device; --gpu-used SIZE: held by others\n"
          "  --device N           which device of the input\n"
          "  --pool-backend WORD  what stands behind private pools: driver, clean, sticky (vLLM's cumem)\n"
          "  --sweep RATIO        policy: give free segments back before reserving more than this part of "
          "the GPU\n"
          "  --events             the trace with every answer of the simulator, as JSON lines\n"
          "  --json, --format text|json|md|html, --output FILE, --color, --explain\n",
          stdout);
}

static bool parse_number(const char *name, const char *word, double most, double *ret_number)
{
    char *end;
    errno = 0;
    double const number = strtod(word, &end);
    if (*word && !*end && errno == 0 && number >= 0 && number <= most) {
        *ret_number = number;
        return true;
    }
    complain("oomsight replay: %s takes a number from 0 to %g, not '%s'", name, most, word);
    return false;
}

/* `23.5GiB`, `24GB`, plain bytes. */
static bool parse_size(const char *name, const char *word, uint64_t *ret_bytes)
{
    static const struct {
        const char *unit;
        double factor;
    } units[] = {{"", 1},         {"B", 1},    {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30},
                 {"TiB", 0x1p40}, {"KB", 1e3}, {"MB", 1e6},     {"GB", 1e9},     {"TB", 1e12}};
    char *end;
    double const number = strtod(word, &end);
    while (*end == ' ') end++;
    for (size_t i = 0; end != word && i < sizeof units / sizeof *units; i++)
        if (strcasecmp(end, units[i].unit) == 0 && number >= 0 && number * units[i].factor < 0x1p62) {
            *ret_bytes = (uint64_t)(number * units[i].factor + 0.5);
            return true;
        }
    complain("oomsight replay: %s takes a size such as 23.5GiB, not '%s'", name, word);
    return false;
}

/* 1: taken, 0: not an option with a value, -1: wrong. */
static int take_valued(request *r, int argc, char **argv, int *at)
{
    bool wrong = false;
    const char *value;
    double number;
    oomsight_replay_params *p = &r->params;
    if ((value = option_value("--settings", argc, argv, at, &wrong))) return p->settings = value, 1;
    if ((value = option_value("--torch", argc, argv, at, &wrong))) return p->torch = value, 1;
    if ((value = option_value("--pool-backend", argc, argv, at, &wrong))) return p->pool_backend = value, 1;
    if ((value = option_value("--gpu-total", argc, argv, at, &wrong)))
        return parse_size("--gpu-total", value, &p->gpu_total_bytes) ? 1 : -1;
    if ((value = option_value("--gpu-used", argc, argv, at, &wrong)))
        return parse_size("--gpu-used", value, &p->gpu_used_bytes) ? 1 : -1;
    if ((value = option_value("--device", argc, argv, at, &wrong))) {
        if (!parse_number("--device", value, 63, &number)) return -1;
        return p->device = (unsigned)number, 1;
    }
    if ((value = option_value("--sweep", argc, argv, at, &wrong)))
        return parse_number("--sweep", value, 1, &p->sweep_ratio) ? 1 : -1;
    if ((value = option_value("--try", argc, argv, at, &wrong))) {
        if (p->try_settings_count == MAX_TRIES) {
            fprintf(stderr, "oomsight replay: at most %d --try\n", MAX_TRIES);
            return -1;
        }
        return r->tries[p->try_settings_count++] = value, 1;
    }
    return wrong ? -1 : 0;
}

static int take_plain(request *r, const char *word, int *at)
{
    if (strcmp(word, "--no-what-if") == 0)
        r->params.skip_what_if = 1;
    else if (strcmp(word, "--smallest") == 0)
        r->params.find_smallest = 1;
    else if (strcmp(word, "--events") == 0)
        r->events = true;
    else if (word[0] != '-' || strcmp(word, "-") == 0) {
        if (r->params.path) {
            complain("oomsight replay: one input, please: '%s' or '%s'?", r->params.path, word);
            return -1;
        }
        r->params.path = word;
    } else {
        complain("oomsight replay: no option '%s'", word);
        return -1;
    }
    ++*at;
    return 1;
}

static int run(request *r)
{
    oomsight_error error = {0};
    oomsight_replay *replay = NULL;
    if (r->events) r->params.skip_what_if = 1;
    if (oomsight_replay_create(&r->params, &replay, &error) != OOMSIGHT_OK) return fail_with(&error);
    char *text = NULL;
    oomsight_status const status = r->events
                                       ? oomsight_replay_render_events(replay, &text, &error)
                                       : oomsight_replay_render(replay, &r->output.render, &text, &error);
    int const oom = oomsight_replay_oom(replay);
    oomsight_replay_free(replay);
    if (status != OOMSIGHT_OK) return fail_with(&error);
    int const code = output_write(&r->output, text);
    oomsight_text_free(text);
    return code != EXIT_FITS ? code : oom ? EXIT_DOES_NOT_FIT : EXIT_FITS;
}

int cmd_replay(int argc, char **argv)
{
    request r = {.params = OOMSIGHT_REPLAY_PARAMS_INIT};
    output_options_init(&r.output);
    r.params.try_settings = r.tries;
    for (int at = 0; at < argc;) {
        if (strcmp(argv[at], "--help") == 0) {
            print_help();
            return 0;
        }
        int taken = output_options_take(&r.output, argc, argv, &at);
        if (taken == 0) taken = take_valued(&r, argc, argv, &at);
        if (taken == 0) taken = take_plain(&r, argv[at], &at);
        if (taken < 0) return EXIT_USAGE;
    }
    if (!r.params.path) {
        fputs("oomsight replay: a snapshot or a trace is missing; 'oomsight replay --help' tells more\n",
              stderr);
        return EXIT_USAGE;
    }
    output_options_settle(&r.output);
    return run(&r);
}
