/* What the files of `oomsight run` share. */
#pragma once
#include "cli.h"

#include <sys/types.h>

/* What the command printed, without secrets: how it began, and the last of it. */
enum { RUN_LOG_HEAD = 128 << 10, RUN_LOG_TAIL = 512 << 10 };
typedef struct run_log {
    char head[RUN_LOG_HEAD], tail[RUN_LOG_TAIL];
    size_t head_len;
    uint64_t tail_count; /* bytes ever; the last RUN_LOG_TAIL are kept */
} run_log;

/* run_output.c: the command's output passes through us, byte for byte, and is read on its way. A terminal stays a terminal to it. */
enum { RUN_STREAMS = 2, RUN_LINE = 16384 };
typedef struct run_stream {
    int from, to;    /* from: -1 when it has ended */
    int command_end; /* given to the command, then closed here */
    bool terminal;
    char line[RUN_LINE];
    size_t len;
    oomsight_redactor *redactor; /* between it and the log; NULL: nothing of it is kept */
} run_stream;

typedef struct run_output {
    run_stream streams[RUN_STREAMS];
    unsigned
        count; /* 1 when standard output and error are the same, so that their order stays; 0: not read */
    oomsight_run *run;
    run_log log;
    unsigned said; /* OOMSIGHT_DRYRUN_..., of the log */
} run_output;

bool run_output_open(run_output *output);                /* false: it cannot be had, and is not read */
void run_output_give(const run_output *output);          /* in the child */
void run_output_started(run_output *output);             /* in the parent */
void run_output_resized(run_output *output);             /* the terminal has another size */
void run_output_pass(run_stream *s, run_output *output); /* what is there now */
/* Its command has ended: pass on what is left. Others that still write get a process of its own to pass on for them. */
void run_output_end(run_output *output);

/* run_share.c: who divides the devices under one name starts one after the other. */
typedef struct run_turn {
    int lock; /* -1: it is not ours */
    double since;
} run_turn;

/* Waits for it; false: there is no place for its file, told on stderr. */
bool run_turn_take(run_turn *turn, const char *name);
/* Over when the engine is ready, or after a while when the command turns out to be none. */
void run_turn_look(run_turn *turn, unsigned said);
void run_turn_end(run_turn *turn);
/* Join those of the same name. Returns an exit code. */
int run_share_join(oomsight_run *run, const char *name);

/* run_bundle.c: the folder with everything about a failure, or about now. Written by a process of its own. */
typedef struct run_bundle {
    pid_t writer;   /* 0: none */
    double started; /* of the writer */
    char path[256]; /* being written */
    bool asked;     /* for one more */
    bool failure_done;
    double failure_due; /* when what the command says of its failure should be complete; 0: none yet */
    bool ran_out;
} run_bundle;

/* Once in a while: begins one when it is time, and tells of one that is written. `gone`: the command has ended, nothing more comes. */
void run_bundle_look(run_bundle *bundle, const cli_options *given, const run_output *output,
                     oomsight_run *run, bool gone);
void run_bundle_finish(run_bundle *bundle, oomsight_run *run); /* waits, not for ever */
