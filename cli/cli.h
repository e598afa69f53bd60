/* What the commands share: the options of cli/options.def, exit codes, the way answers and errors leave the program. */
#pragma once
#include "oomsight_private.h"

#include <limits.h>
#include <stdbool.h>

enum { EXIT_FITS = 0, EXIT_DOES_NOT_FIT = 1, EXIT_USAGE = 2, EXIT_INPUT = 3, EXIT_OUR_FAULT = 4 };

/* One bit for each command. */
enum {
    PLAN = 1 << 0,
    EXPLAIN = 1 << 1,
    DRYRUN = 1 << 2,
    RUN = 1 << 3,
    TOP = 1 << 4,
    CHECK = 1 << 5,
    MATRIX = 1 << 6,
    BISECT = 1 << 7,
    DOCTOR = 1 << 8,
    REPLAY = 1 << 9,
    GPUS = 1 << 10,
    ENGINES = 1 << 11,
    KB = 1 << 12,
    REDACT = 1 << 13,
    COMPLETION = 1 << 14,
    WHAT = 1 << 15,
    MODELS = 1 << 16,
    LEARN = 1 << 17,
    EVERY = (1 << 18) - 1,
    ANSWERS =
        EVERY & ~(RUN | TOP | REDACT | COMPLETION | LEARN), /* they write one, in a form that can be chosen */
};
enum { ANY = INT_MAX - 1, BEHIND = INT_MAX };

typedef struct command command;

typedef struct size_option {
    const char *text; /* NULL: not given */
    uint64_t bytes;
} size_option;

typedef struct number_option {
    bool given;
    double number;
} number_option;

/* What was given: a field for each option of cli/options.def. Words are those of argv. */
typedef struct cli_options {
#define COMMAND(...)
#define FLAG(id, ...) bool id;
#define TEXT(id, ...) const char *id;
#define CHOICE(id, ...) const char *id;
#define SIZE(id, ...) size_option id;
#define COUNT(id, ...) number_option id;
#define NUMBER(id, ...) number_option id;
#define PAIR(id, ...) const char *id[2];
#define LIST(id, word, value, count, ...)                                                                    \
    size_t id##_count;                                                                                       \
    const char *id[count];
#define ALSO(...)
#define ALIAS(...)
#include "options.def"
    const command *command;
    char **words; /* besides options: files, or the command behind `--`, which ends with NULL */
    int word_count;
    oomsight_render_params render; /* what --json, --format, --color, ... and the terminal make of it */
} cli_options;

#define ARRAY_COUNT(array) (sizeof(array) / sizeof *(array))
/* Of a list that may be given once: what was given last; NULL: nothing. */
#define LAST(given, id) ((given)->id##_count ? (given)->id[(given)->id##_count - 1] : NULL)

static inline double number_or(number_option given, double otherwise)
{
    return given.given ? given.number : otherwise;
}

struct command {
    unsigned bit;
    const char *name;
    int (*run)(cli_options *given);
    int least, most; /* words besides options */
    const char *summary, *usage, *about, *missing, *exits;
};

typedef enum option_kind {
    OPTION_FLAG,
    OPTION_TEXT,
    OPTION_CHOICE,
    OPTION_SIZE,
    OPTION_COUNT,
    OPTION_NUMBER,
    OPTION_PAIR,
    OPTION_LIST,
} option_kind;

typedef struct option_row {
    const char *word, *value, *help; /* help NULL: in the last line; "": not told */
    unsigned commands;
    option_kind kind;
    size_t field; /* offset in cli_options */
    double least, most;
} option_row;

extern const command commands[];
extern const size_t command_count;
/* The rows of a command in order, beginning with NULL; NULL: no more. */
const option_row *option_next(const command *which, const option_row *before);
/* The one that a word names, which may carry a value behind `=`; NULL: none of this command. */
const option_row *option_find(const command *which, const char *word);

/* The engine that the words start; the first where they name none. */
const oomsight_engine_words *engine_of(const cli_options *given);
/* A text of options.def: {engine} and {title} are the first engine's, {engines} and {titles} "vllm or sglang" of all. Cut to fit. */
enum { HELP_BYTES = 4096 };
const char *engines_fill(const char *text, char ret_text[HELP_BYTES]);

/* Read the words behind the command's name. -1: go on; else the exit code, help or a complaint is given. */
int options_read(const command *which, int argc, char **argv, cli_options *ret_given);
const command *command_find(const char *name);  /* NULL: no such command, told */
void command_missing(const cli_options *given); /* says what it takes besides options */

#define COMMAND(id, name, ...) int cmd_##name(cli_options *given);
#define FLAG(...)
#define TEXT(...)
#define CHOICE(...)
#define SIZE(...)
#define COUNT(...)
#define NUMBER(...)
#define PAIR(...)
#define LIST(...)
#define ALSO(...)
#define ALIAS(...)
#include "options.def"

/* Where `oomsight run` keeps what `oomsight top` looks at: one file for each, called so and with the pid of the launcher. */
#define RUN_SEGMENT_PREFIX "oomsight-run-"

/* plan_exact.c: who asks the installed engine. Nothing is started before the first question. False: no memory. */
typedef struct plan_asker plan_asker;
bool plan_asker_open(const cli_options *given, const oomsight_data *data, oomsight_asker *ret_asker);
void plan_asker_close(const oomsight_asker *asker); /* one that was never opened is fine */
/* Has a Python that would be asked this engine? */
bool plan_asker_has(const cli_options *given, const char *engine);

/* cli/launch.c */
const char *segment_folder(void); /* where shared segments are kept */
/* Files of runs in it, removing those that dead launchers left behind. Each path is to be freed. */
size_t run_segments(char **ret_paths, size_t most);
void environment_put_front(const char *name,
                           const char *value); /* of a list with colons; without memory the value alone */
double seconds_since_boot(void);               /* counted while the machine sleeps, too */
/* cmd_top.c: the words of a process, each with its zero, as many as fit; the number of bytes */
size_t top_words(int pid, char *ret_words, size_t capacity);
/* top_serving.c: what the engine of a run says of itself, where it answers */
void top_serving(oomsight_run *run, int pid);
/* Behind the guard: a program that tries it (cli/selftest.c). */
int selftest_inside(const char *budget_text);

/* canary.c: is silence of the follower health? */
int canary_send(const cli_options *given);

/* What every command that plans one command is told of it (cmd_plan.c). */
oomsight_plan_params plan_params(cli_options *given);

/* Write the answer. Returns EXIT_FITS or EXIT_INPUT. */
int output_write(const cli_options *given, const char *text);
/* The same for what a render function left, which is freed; a failure of it is told. */
int output_give(const cli_options *given, oomsight_status status, char *text, const oomsight_error *error);

/* A line on stderr that may quote somebody's words: secrets in it are hidden, control characters written out. */
/* On a terminal's stderr, for what takes longer than two seconds: one line that is written over, and gone in the end. `given` --quiet: none. */
typedef struct cli_progress {
    bool wanted, shown;
    double since, shown_at;
} cli_progress;
cli_progress progress_begin(const cli_options *given);
bool progress_due(cli_progress *progress); /* it is time to show it again */
void progress_show(cli_progress *progress, const char *format, ...) __attribute__((format(printf, 2, 3)));
void progress_clear(cli_progress *progress);

void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

extern const char *chosen_language; /* of --lang; NULL: as the environment says */
/* Print an error on stderr and give the exit code that fits it. */
int fail_with(const oomsight_error *error);
