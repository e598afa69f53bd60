/* The front door: which command, and help. What each takes is in cli/options.def. */
#include "cli.h"

#include <stdio.h>
#include <string.h>

/* What most people come for, each with one line to try. */
static const struct {
    const char *name, *example;
} first[] = {{"plan", "oomsight plan --gpu 4090 -- {engine} serve Qwen/Qwen3-8B"},
             {"explain", "docker logs {engine} 2>&1 | oomsight explain"},
             {"dryrun", "oomsight dryrun --gpu A30x4 -- {engine} serve ./model --tensor-parallel-size 4"},
             {"run", "oomsight run --budget 20GiB -- {engine} serve ./model"},
             {"check", "oomsight check --gpu l4 deploy/"}};

static const char *example_of(const char *name)
{
    for (size_t i = 0; i < sizeof first / sizeof *first; i++)
        if (strcmp(name, first[i].name) == 0) return first[i].example;
    return NULL;
}

static int print_help(FILE *out)
{
    char text[HELP_BYTES];
    fputs("oomsight predicts, explains, reproduces and prevents GPU out-of-memory in LLM serving.\n\n"
          "usage: oomsight COMMAND [options] [-- the command you already have]\n\n",
          out);
    for (size_t i = 0; i < command_count; i++)
        if (example_of(commands[i].name))
            fprintf(out, "  %-10s %s\n             %s\n", commands[i].name, commands[i].summary,
                    engines_fill(example_of(commands[i].name), text));
    fputs("\nmore\n", out);
    for (size_t i = 0; i < command_count; i++)
        if (!example_of(commands[i].name))
            fprintf(out, "  %-10s %s\n", commands[i].name, commands[i].summary);
    fputs("\n'oomsight COMMAND --help' shows the options of one.\n"
          "Exit codes: 0 it starts or nothing was found, 1 it does not start or an out-of-memory was found,\n"
          "2 usage error, 3 an input could not be read, 4 internal error.\n",
          out);
    return out == stdout ? EXIT_FITS : EXIT_USAGE;
}

static void say_waiting(const char *endpoint)
{
    fprintf(stderr, "oomsight: waiting for %.300s (--offline does not contact it)\n", endpoint);
}

int main(int argc, char **argv)
{
    static cli_options given; /* too large for a small stack */
    const char *const word = argc < 2 ? "" : argv[1];
    if (argc < 2) return print_help(stderr);
    bool const help = strcmp(word, "help") == 0;
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || (help && argc == 2))
        return print_help(stdout);
    if (strcmp(word, "--version") == 0 || strcmp(word, "version") == 0)
        return printf("oomsight %s\n", oomsight_version()) < 0;
    const command *which = command_find(help ? argv[2] : word);
    if (!which) return EXIT_USAGE;
    if (help) {
        char *ask[] = {"--help"};
        return options_read(which, 1, ask, &given);
    }
    oomsight_on_waiting(say_waiting);
    int const code = options_read(which, argc - 2, argv + 2, &given);
    return code < 0 ? which->run(&given) : code;
}
