/* The table of commands. Each command reads its own words. */
#include "cli.h"

#include <stdio.h>
#include <string.h>

static const command commands[] = {
    {"plan", cmd_plan, "will it start, and how much is left"},
    {"explain", cmd_explain, "why did it run out, what to change"},
#if OOMSIGHT_PROCESSES
    {"dryrun", cmd_dryrun, "start the real engine on a GPU that is not there"},
    {"run", cmd_run, "the real engine on a real GPU, counted and kept inside a budget"},
    {"top", cmd_top, "what runs under 'oomsight run' here, and what it holds"},
#endif
    {"check", cmd_check, "the engine commands in deployment files, each planned"},
#if OOMSIGHT_PROCESSES
    {"matrix", cmd_matrix, "models x GPUs x flags x versions: which start, what an upgrade breaks"},
    {"bisect", cmd_bisect, "the release with which the answer to a command moved"},
#endif
#if OOMSIGHT_PROCESSES
    {"doctor", cmd_doctor, "this machine, ready to paste into an issue"},
#endif
    {"replay", cmd_replay, "what would other allocator settings have done"},
    {"gpus", cmd_gpus, "the GPUs that are known"},
    {"engines", cmd_engines, "the engine versions that are known"},
    {"kb", cmd_kb, "the error signatures that are known"},
    {"redact", cmd_redact, "a text without its secrets, to be shown to others"},
    {"completion", cmd_completion, "a script for bash, zsh or fish"},
};

/* What most people come for, each with one line to try. */
static const struct {
    const char *name, *example;
} first[] = {{"plan", "oomsight plan --gpu 4090 -- vllm serve Qwen/Qwen3-8B"},
             {"explain", "docker logs vllm 2>&1 | oomsight explain"},
             {"dryrun", "oomsight dryrun --gpu A30x4 -- vllm serve ./model --tensor-parallel-size 4"},
             {"run", "oomsight run --budget 20GiB -- vllm serve ./model"},
             {"check", "oomsight check --gpu l4 deploy/"}};

static const char *example_of(const char *name)
{
    for (size_t i = 0; i < sizeof first / sizeof *first; i++)
        if (strcmp(name, first[i].name) == 0) return first[i].example;
    return NULL;
}

static void print_help(FILE *out)
{
    fputs("oomsight foresees, explains, reproduces and prevents GPU out-of-memory in LLM serving.\n\n"
          "usage: oomsight COMMAND [options] [-- the command you already have]\n\n",
          out);
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (example_of(commands[i].name))
            fprintf(out, "  %-10s %s\n             %s\n", commands[i].name, commands[i].summary,
                    example_of(commands[i].name));
    fputs("\nmore\n", out);
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (!example_of(commands[i].name))
            fprintf(out, "  %-10s %s\n", commands[i].name, commands[i].summary);
    fputs("\n'oomsight COMMAND --help' tells more. Exit: 0 fits / nothing found, 1 does not fit / OOM found, "
          "2 wrong\n"
          "usage, 3 an input could not be read, 4 our own fault.\n",
          out);
}

/* Letters to change, add or leave out to come from one word to the other. */
static unsigned distance(const char *a, const char *b)
{
    enum { MOST = 16 };
    unsigned row[MOST + 1];
    size_t const len = strlen(b);
    if (len > MOST || strlen(a) > MOST) return MOST;
    for (unsigned k = 0; k <= len; k++) row[k] = k;
    for (unsigned i = 1; a[i - 1]; i++) {
        unsigned corner = row[0];
        row[0] = i;
        for (size_t k = 1; k <= len; k++) {
            unsigned const kept = corner + (a[i - 1] != b[k - 1]),
                           other = row[k] < row[k - 1] ? row[k] : row[k - 1];
            corner = row[k];
            row[k] = kept <= other ? kept : other + 1;
        }
    }
    return row[len];
}

/* The command of which at most a third of the letters differ; NULL: none. */
static const char *nearest(const char *word)
{
    const char *best = NULL;
    unsigned least = (unsigned)(strlen(word) + 2) / 3;
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        unsigned const far = distance(word, commands[i].name);
        if (far <= least && (!best || far < least)) best = commands[i].name, least = far;
    }
    return best;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        print_help(stderr);
        return EXIT_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "help") == 0) {
        print_help(stdout);
        return 0;
    }
    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "version") == 0) {
        printf("oomsight %s\n", oomsight_version());
        return 0;
    }
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (strcmp(argv[1], commands[i].name) == 0) return commands[i].run(argc - 2, argv + 2);
    const char *meant = nearest(argv[1]);
    if (meant)
        complain("oomsight: no command '%s'; did you mean '%s'?", argv[1], meant);
    else
        complain("oomsight: no command '%s'; 'oomsight help' lists them", argv[1]);
    return EXIT_USAGE;
}
