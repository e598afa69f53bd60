/* What the commands share: the table of commands, exit codes, options of the output. */
#ifndef OOMSIGHT_CLI_H
#define OOMSIGHT_CLI_H

#include <oomsight/oomsight.h>

#include <stdbool.h>

enum { EXIT_FITS = 0, EXIT_DOES_NOT_FIT = 1, EXIT_USAGE = 2, EXIT_INPUT = 3, EXIT_OUR_FAULT = 4 };

/* A command gets the words behind its name. */
typedef struct command {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *summary;
} command;

int cmd_replay(int argc, char **argv);
int cmd_bisect(int argc, char **argv);
int cmd_plan(int argc, char **argv);
int cmd_dryrun(int argc, char **argv);
int cmd_gpus(int argc, char **argv);
int cmd_engines(int argc, char **argv);
int cmd_explain(int argc, char **argv);
int cmd_check(int argc, char **argv);
int cmd_completion(int argc, char **argv);
int cmd_doctor(int argc, char **argv);
int cmd_kb(int argc, char **argv);
int cmd_matrix(int argc, char **argv);
int cmd_redact(int argc, char **argv);
int cmd_run(int argc, char **argv);
int cmd_top(int argc, char **argv);

/* Where `oomsight run` keeps what `oomsight top` looks at: one file for each, called so and with the pid of the launcher. */
#define RUN_SEGMENT_PREFIX "oomsight-run-"

/* cli/launch.c */
const char *segment_folder(void); /* where shared segments are kept */
void environment_put_front(const char *name,
                           const char *value); /* of a list with colons; without memory the value alone */
double seconds_since_boot(void);               /* counted while the machine sleeps, too */
/* Behind the guard: a program that tries it (cli/selftest.c). */
int selftest_inside(const char *budget_text);

/* Output options that every command takes: --json, --format, --output, --color, --ascii, --lang, --verbose, --explain, --data. */
typedef struct output_options {
    oomsight_render_params render;
    const char *output_path; /* NULL: stdout */
    const char *data_dir;    /* NULL: embedded */
} output_options;

void output_options_init(output_options *options);

/* If argv[*at] is one of them, take it (and its value), move *at past it and return 1. 0: not ours. -1: wrong usage,
 * already told on stderr. */
int output_options_take(output_options *options, int argc, char **argv, int *at);

/* Decide colour and width once all options are read. */
void output_options_settle(output_options *options);

/* Write the answer. Returns EXIT_FITS or EXIT_INPUT. */
int output_write(const output_options *options, const char *text);

/* A line on stderr that may quote somebody's words: secrets in it are hidden, control characters written out. */
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Print an error on stderr and give the exit code that fits it. */
int fail_with(const oomsight_error *error);

/* Value of an option given as `--name value` or `--name=value`: NULL when argv[*at] is another option; *at moves past
 * what was used. When the value is missing, says so and sets *ret_wrong. */
const char *option_value(const char *name, int argc, char **argv, int *at, bool *ret_wrong);

/* A size as every command takes it: 1, or -1 when it is none, already told. */
int size_value(const char *name, const char *option, const char *value, uint64_t *ret_bytes);

/* What a command that has `[options] -- the command` reads its words with. `take` is handed each word that is no output option and says
 * 1 taken, 0 not ours, -1 wrong usage. */
typedef struct command_line {
    const char *name; /* "plan" */
    const char *help;
    const char *what; /* what goes behind `--`: "engine flags go" */
    const char *example;
    output_options *output;
    int (*take)(void *options, int argc, char **argv, int *at);
    void *options;
} command_line;

/* Where the command begins among the words: behind `--`, or at the first word that is no option. -1 wrong usage, already told; -2 help
 * was asked for and given. */
int command_line_read(const command_line *line, int argc, char **argv);

/* --gpu-cc, in every command; --compute-capability is its older spelling. */
const char *capability_value(int argc, char **argv, int *at, bool *ret_wrong);

/* --insecure, of every command that may ask the hub: true when `word` is it. */
bool take_insecure(const char *word);

#endif
