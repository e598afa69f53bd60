/* What the files of `oomsight matrix` share. */
#pragma once
#include "cli.h"

#include <stdio.h>
#include <sys/types.h>

enum { MATRIX_ENGINES = ARRAY_COUNT(((cli_options *)0)->engine), MATRIX_UNDER = 32 };

/* One run of the command: where points go as they come. */
typedef struct matrix_run {
    cli_progress progress;
    const cli_options *given;
    oomsight_matrix *matrix;
    FILE *lines;   /* the output, when it is lines; or NULL */
    FILE *points;  /* of --points; or NULL */
    uint64_t done; /* points told so far */
    bool unwritten;
    bool part; /* one shard: what its points say is for the whole to judge */
} matrix_run;

/* A point has its answer: its line is written, its progress told. */
void matrix_tell(matrix_run *run, const oomsight_matrix_point *point);

/* matrix_child.c: one dry start in a process of its own. */
typedef struct matrix_child {
    pid_t pid; /* 0: none */
    uint64_t number;
    int out, log;
    double start;
    unsigned attempts;
} matrix_child;

typedef struct matrix_outcome {
    char *report;      /* NULL: none; the caller's, to be freed */
    char problem[512]; /* why there is none, or what the log ended with */
    double seconds;
    bool lost; /* killed: another try is worth while */
} matrix_outcome;

double matrix_now(void);
/* The words of the command for a task; *ret_words is the caller's, the words themselves are the task's and ours. */
size_t matrix_command(const cli_options *given, const oomsight_matrix_task *task, const char ***ret_words);
bool matrix_child_start(const cli_options *given, const oomsight_matrix_task *task, uint64_t number,
                        matrix_child *child);
void matrix_child_end(matrix_child *child, int status, matrix_outcome *ret_outcome);

/* matrix_pool.c: a few at a time on this machine. Returns 0 or an exit code. */
int matrix_pool(matrix_run *run);
/* matrix_ray.c: handed to Ray. */
int matrix_ray(matrix_run *run);
