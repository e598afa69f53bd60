/* What the files of `oomsight dryrun` share. */
#pragma once
#include "cli.h"

#include <stdio.h>
#include <sys/types.h>

/* What --load asks for (dryrun_mix.c). */
typedef struct dryrun_range {
    unsigned least, most;
} dryrun_range;

typedef struct dryrun_lengths {
    unsigned input, output; /* tokens */
} dryrun_lengths;

typedef struct dryrun_mix {
    unsigned requests;
    dryrun_range input, output;
    dryrun_lengths *lengths; /* recorded ones, in turn; NULL: from the ranges */
    size_t length_count;
    unsigned concurrency; /* at once; 0: 1024 */
    double rate;          /* a second; 0: as fast as they are answered */
    double abort_ratio;   /* of the requests; left when the first piece of the answer is there */
    double prefix_ratio;  /* of each prompt; the same in all */
    unsigned logprobs;    /* 0: none */
    unsigned seed;
    unsigned hang_seconds;              /* without an answer and without a call of the engine: it hangs */
    unsigned image_width, image_height; /* of the image in each request, which is a chat then; 0: none */
    const char *body;                   /* more JSON for each request, with its closing bracket; NULL: none */
} dryrun_mix;

/* False: told on stderr. `value` must outlive the mix. */
bool dryrun_mix_read(const char *value, dryrun_mix *ret_mix);
dryrun_lengths dryrun_mix_lengths(const dryrun_mix *mix, unsigned number);
bool dryrun_mix_aborts(const dryrun_mix *mix, unsigned number);

/* dryrun_image.c: an image of that size as a data URL; false: no memory. Its smallest row has room for the number. */
bool dryrun_image_put(FILE *out, unsigned width, unsigned height, unsigned number);

/* Where requests of this kind are posted. */
const char *dryrun_mix_path(const dryrun_mix *mix);

/* The body of request `number`, to be given to free(); NULL: no memory. */
char *dryrun_mix_body(const dryrun_mix *mix, const char *model, unsigned number, size_t *ret_len);

enum { DRYRUN_LOADS = ARRAY_COUNT(((cli_options *)0)->load) };

typedef struct dryrun_options {
    const cli_options *given; /* its words are the command */
    oomsight_dryrun_params params;
    unsigned cuda_major;            /* 0: ask the command's torch */
    dryrun_mix loads[DRYRUN_LOADS]; /* one after the other, when it is ready */
    unsigned load_count;
    double started; /* dryrun_now() of the command */
} dryrun_options;
#define DRYRUN_SECONDS(options) number_or((options)->given->timeout, 3600) /* 0: for ever */

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
    const char *name;      /* of the engine; NULL: none that is known */
    char version[32];      /* "": it was not found */
    char torch[32];        /* version of PyTorch */
    bool serves;           /* it will say that it is ready, and go on */
    bool answers;          /* ... and requests are sent to it */
    unsigned port;         /* of the server */
    const char *model;     /* the word of the command; NULL: none */
    const char *asked;     /* ... as it was given, where a folder was put in its place */
    char **command;        /* with the words that were added, ends with NULL */
    int added;             /* how many */
    char interpreter[512];
} dryrun_engine;

/* `scratch` is a directory of ours. Returns 0 or an exit code, told on stderr. */
int dryrun_engine_find(const dryrun_options *options, const oomsight_data *data, const char *scratch,
                       dryrun_engine *ret_engine);

/* Which releases its interpreter has: of the engine, of PyTorch, of CUDA. */
void dryrun_engine_ask(dryrun_engine *engine);

/* The Python that a word of PATH, or a path, is or names in its first line; false: it is none. */
bool dryrun_interpreter(const char *word, char *ret_path, size_t capacity);

/* dryrun_child.c: the process with the stand-ins in front of it. */
typedef struct dryrun_load_result {
    unsigned answered;
    unsigned refused; /* HTTP 4xx */
    unsigned failed;  /* HTTP 5xx, no answer, half of one */
    unsigned aborted; /* by us, as asked */
    bool hung;
    double started, seconds;                        /* until the last answer */
    char refusal[256];                              /* of the first that was not; "": none */
    uint64_t host_first_bytes, host_last_bytes;     /* resident memory of its processes; 0: not seen */
    uint64_t device_first_bytes, device_last_bytes; /* of the fullest device */
} dryrun_load_result;

enum { DRYRUN_SAMPLES = 4096 };

typedef struct dryrun_result {
    int exit_code; /* of the child; 128 + signal */
    int signal;    /* that ended it; 0: it ended by itself */
    bool stopped;  /* by us, because it was ready */
    bool timed_out;
    int interrupted; /* the signal; 0: not */
    dryrun_load_result loads[DRYRUN_LOADS];
    oomsight_dryrun_sample
        samples[DRYRUN_SAMPLES]; /* of all loads; when they become many every second one goes */
    size_t sample_count;
} dryrun_result;

/* Run it to its end, or until it is ready; every line goes to stderr and to `dryrun`. */
int dryrun_child_run(const dryrun_options *options, const dryrun_engine *engine, const char *segment_path,
                     oomsight_dryrun *dryrun, dryrun_result *ret_result);

/* dryrun_load.c: in a process of its own, send the requests; *result is shared with whoever waits. */
void dryrun_load(const dryrun_mix *mix, const dryrun_engine *engine, dryrun_load_result *result);

/* dryrun_host.c: what /proc/NAME/stat says; false: it is gone. */
typedef struct dryrun_process {
    pid_t pid, parent;
    uint64_t pages; /* resident */
    bool ended;     /* and waited for by nobody */
} dryrun_process;
bool dryrun_process_read(const char *name, dryrun_process *ret_process);
/* Resident memory of a process and of all below it; pages that several share are counted for each. */
uint64_t dryrun_resident_bytes(pid_t root);
/* The same process by process, for the report. */
void dryrun_host_look(pid_t root, oomsight_dryrun *dryrun);

/* dryrun_snapshot.c: --snapshot. The whole path in the environment of the child, without an older file; false: told on stderr. */
bool dryrun_snapshot_begin(const char *path);
/* Ask the processes for it and wait until they have written, or too long. */
void dryrun_snapshot_take(const char *segment_path);
/* Say where it is, and what to do with it. */
void dryrun_snapshot_tell(const cli_options *given);

/* The folder with the stand-ins for a CUDA major; false when there is none. */
bool dryrun_shim_dir(unsigned cuda_major, char *ret_path, size_t capacity);
