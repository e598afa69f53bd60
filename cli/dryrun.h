/* What the files of `oomsight dryrun` share. */
#ifndef OOMSIGHT_CLI_DRYRUN_H
#define OOMSIGHT_CLI_DRYRUN_H

#include "cli.h"

#include <sys/types.h>

typedef struct dryrun_options {
    output_options output;
    oomsight_dryrun_params params;
    char **command; /* behind `--`, ends with NULL */
    int command_count;
    unsigned cuda_major; /* 0: ask the command's torch */
    bool serve;          /* keep the server when it is ready */
    bool quiet;
    unsigned timeout_seconds;
    unsigned load_requests, load_input, load_output; /* 0 requests: none */
    double started;                                  /* dryrun_now() of the command */
} dryrun_options;

/* dryrun_guard.c: the run in a process of its own, with one that cleans up behind it. Returns the exit code. */
int dryrun_guard(const dryrun_options *options);

/* cmd_dryrun.c: all of a run, in that process. `scratch` is a directory of ours. */
int dryrun_work(const dryrun_options *options, const char *scratch);

int dryrun_interrupted(void); /* the signal that asked for the end; 0: none */
double dryrun_now(void);      /* seconds on a clock that is never set */

/* Ask what is left of our children to leave, and end it after `grace_seconds`; 0: at once. */
void dryrun_children_end(unsigned grace_seconds);

/* dryrun_engine.c: which engine a command starts, and what it needs to start without weights and tokenizer. */
typedef struct dryrun_engine {
    unsigned cuda_major;   /* 0: no torch was found */
    char cuda_version[16]; /* as torch says it */
    char vllm_version[32]; /* "": no vLLM was found */
    bool serves;           /* it will say that it is ready, and go on */
    unsigned port;         /* of the server */
    const char *model;     /* the word of the command; NULL: none */
    char **command;        /* with the words that were added, ends with NULL */
    int added;             /* how many */
    char interpreter[512];
} dryrun_engine;

/* `scratch` is a directory of ours. Returns 0 or an exit code, told on stderr. */
int dryrun_engine_find(const dryrun_options *options, const char *scratch, dryrun_engine *ret_engine);

/* dryrun_child.c: the process with the stand-ins in front of it. */
typedef struct dryrun_load_result {
    unsigned answered;
    char refusal[256]; /* of the first that was not; "": none */
} dryrun_load_result;

typedef struct dryrun_result {
    int exit_code; /* of the child; 128 + signal */
    int signal;    /* that ended it; 0: it ended by itself */
    bool stopped;  /* by us, because it was ready */
    bool timed_out;
    int interrupted; /* the signal; 0: not */
    dryrun_load_result load;
} dryrun_result;

/* Run it to its end, or until it is ready; every line goes to stderr and to `dryrun`. */
int dryrun_child_run(const dryrun_options *options, const dryrun_engine *engine, const char *segment_path,
                     oomsight_dryrun *dryrun, dryrun_result *ret_result);

/* dryrun_load.c: in a process of its own, send the requests; *result is shared with whoever waits. */
void dryrun_load(const dryrun_options *options, const dryrun_engine *engine, dryrun_load_result *result);

/* The folder with the stand-ins for a CUDA major; false when there is none. */
bool dryrun_shim_dir(unsigned cuda_major, char *ret_path, size_t capacity);

#endif
