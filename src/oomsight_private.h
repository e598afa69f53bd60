/* What the command line needs of the library beyond the public header. Nothing here is promised to other programs: it is exported
 * only where the command is linked with the library of the same build (-Dcommand=linked), in a version of its own. */
#pragma once
#include "oomsight/oomsight.h"
#include <stdbool.h>

#ifdef __ELF__ /* the linker's map decides what leaves the library */
#pragma GCC visibility push(default)
#endif

/* ---- text and files -------------------------------------------------------------------------------------------------- */

/* `text` as it may be shown to others: values of tokens, keys and passwords are `***`, control characters (but for line
 * breaks and tabs) and bytes that are not UTF-8 are written out (`\x1b`). *ret_text is the caller's, to be given to
 * oomsight_text_free(). */
OOMSIGHT_MUST_CHECK oomsight_status oomsight_text_redact(const char *text, char **ret_text,
                                                         oomsight_error *reterr);

/* The same for text that comes in pieces: what a line says of the next one is remembered, so that a private key or a value
 * below its name is hidden wherever the text was cut. Holds one line, and of a long one 32 KiB. */
typedef struct oomsight_redactor oomsight_redactor;
OOMSIGHT_MUST_CHECK oomsight_status oomsight_redactor_create(oomsight_redactor **ret_redactor,
                                                             oomsight_error *reterr);
/* *ret_text is what can be shown by now, often nothing: the rest comes with a later call. `len` 0: nothing more comes, all
 * that is left is in *ret_text, and the redactor is new again. */
OOMSIGHT_MUST_CHECK oomsight_status oomsight_redactor_feed(oomsight_redactor *redactor, const char *bytes,
                                                           size_t len, char **ret_text,
                                                           oomsight_error *reterr);
void oomsight_redactor_free(oomsight_redactor *redactor); /* NULL is fine */

/* A sentence of this library, an error for example, in `language` ("en", "zh"; NULL: as the environment says). What is not
 * known stays as it is. *ret_text is the caller's, to be given to oomsight_text_free(). */
OOMSIGHT_MUST_CHECK oomsight_status oomsight_words(const char *language, const char *english, char **ret_text,
                                                   oomsight_error *reterr);

/* A file that a user names, written as the command's `--output` is: through no link but the user's own or root's, over no file of
 * somebody else in a folder where everybody can write. A plain file is replaced whole or not at all. */
OOMSIGHT_MUST_CHECK oomsight_status oomsight_output_write(const char *path, const char *text,
                                                          oomsight_error *reterr);

/* The same for what is written bit by bit: *ret_fd is the caller's to close, emptied, or at its end when `append` is not 0. A new
 * file has the permissions of the umask, and nothing for others when it is appended to: that is how logs are kept. */
OOMSIGHT_MUST_CHECK oomsight_status oomsight_output_open(const char *path, int append, int *ret_fd,
                                                         oomsight_error *reterr);

/* ---- network --------------------------------------------------------------------------------------------------------- */

/* Called once, from any thread, when a host has been waited for two seconds. */
typedef void oomsight_waiting(const char *endpoint);
void oomsight_on_waiting(oomsight_waiting *call);

/* ---- engines --------------------------------------------------------------------------------------------------------- */

/* What an engine is called, how it is started, what it prints and serves: src/engines/NAME/words.c. What is NULL is not there;
 * names, module and server are. */
/* A key of the values of the engine's Helm chart, and the flag that its template makes of it. */
typedef struct oomsight_chart_key {
    const char *key, *flag, *no_flag; /* no_flag: a switch, and what "false" means */
    bool off_if_absent;               /* the chart writes no_flag also where the key is missing */
} oomsight_chart_key;
typedef struct oomsight_engine_words {
    const char *name; /* of the program, the Python package, the folders and the word of --engine */
    const char *title, *config_title;
    /* how it is started: `NAME serve MODEL`, or `python -m` and a module */
    const char *module;           /* what the name of a module that starts it begins with */
    const char *server;           /* the whole module */
    const char *family, *serving; /* each module that serves is FAMILY.[...]SERVING[...] */
    const char *image;            /* in the name of its published image */
    bool image_serves;            /* without being told to */
    const char *model_flags[2], *tokenizer_flag, *no_tokenizer_flag;
    const char *dummy_flag, *dummy_value; /* no weights are read */
    const char *config_flag;              /* a file with more flags */
    const char *weights_flags[4];         /* say which weights these are, and would be wrong of others */
    /* GiB of host memory: over all ranks, of each, and of each where a word stands among those of the command */
    const char *host_flag, *host_rank_flags[2], *host_old_flag, *host_old_word;
    /* the Helm chart of its project, or NULL */
    const oomsight_chart_key *chart; /* ends with NULL */
    const char *tensor_flag, *lora_flag, *revision_flag;
    const char *port_flag;
    unsigned port; /* without the flag */
    /* what it prints and serves */
    const char *ready;                       /* when it takes requests */
    const char *running, *waiting, *kv_used; /* metrics: requests; the share of its KV cache, 0 to 1 */
    /* what it leaves behind, and where its code is */
    const char *cache_variable, *cache_below; /* what it compiles is below the variable's folder */
    const char *wrapper;     /* in a stack, files of it stand between a caller and what it calls */
    const char *computes[2]; /* ... and those of it are parts of a model */
    /* a dry run of it: NAME=value, set where the user has not */
    const char *dry_variable;
    const char *draft_flags[2], *draft_variable; /* with a word that begins so */
} oomsight_engine_words;

/* In their order; the first is meant where nothing is said. NULL: no more. */
const oomsight_engine_words *oomsight_engine_at(size_t index);
/* The one that a command starts, or whose image it runs; NULL: none is named. */
const oomsight_engine_words *oomsight_engine_of(const char *const *words, size_t count);
/* "0.32.0" and "sglang=0.5.23" as people call them: "vLLM 0.32.0". Cut to fit; returns `buffer`. */
const char *oomsight_engine_release(const char *label, char *buffer, size_t size);

/* Where an engine finds the model of a dry start. */
typedef enum oomsight_model_place {
    OOMSIGHT_MODEL_ON_DISK,  /* a folder, or the Hugging Face cache */
    OOMSIGHT_MODEL_BUILT_IN, /* its config files were written into `folder` */
    OOMSIGHT_MODEL_REMOTE    /* it has to be asked for */
} oomsight_model_place;
oomsight_status oomsight_model_settle(const oomsight_data *data, const char *word, const char *folder,
                                      oomsight_model_place *ret_place, oomsight_error *reterr);

/* The model of a folder takes images or sound, and none of the files is there that say how; 0 where the folder cannot be read. */
int oomsight_model_lacks_processor(const oomsight_data *data, const char *folder);

/* Devices that a machine must have for a command, where `gpu` of the params names no number: the same that a plan takes. 0: as many as it names, or
 * the command starts no engine. */
unsigned oomsight_gpus_taken(const oomsight_data *data, const oomsight_dryrun_params *params,
                             const char *const *words, size_t count);

/* ---- this machine ---------------------------------------------------------------------------------------------------- */

/* 1: a driver is here and does not answer as it should. */
int oomsight_machine_troubled(const oomsight_machine *machine);

/* For an issue: text or JSON. Secrets of the environment are hidden. */
OOMSIGHT_MUST_CHECK oomsight_status oomsight_machine_render(const oomsight_machine *machine,
                                                            const oomsight_render_params *params,
                                                            char **ret_text, oomsight_error *reterr);

/* What a device costs before anybody allocates: totals by every API, context, granule, CUDA graphs, communicators. libcuda is asked in
 * processes of their own, which are ended when they do not come back; the caller never holds a context. Linux only. */
typedef struct oomsight_measure_params {
    size_t size;
    const oomsight_data *data; /* the figures in use stand beside the measured ones */
    unsigned device;           /* as CUDA counts, after CUDA_VISIBLE_DEVICES */
    unsigned timeout_ms;       /* 0: a minute */
} oomsight_measure_params;
#define OOMSIGHT_MEASURE_PARAMS_INIT                                                                         \
    {                                                                                                        \
        sizeof(oomsight_measure_params), NULL, 0, 0                                                          \
    }

/* Text or JSON, with a record for data/gpus; to be given to oomsight_text_free(). *ret_whole is 1 when the device could be measured:
 * no driver, no device or a hang are told in the text and are no failure. */
OOMSIGHT_MUST_CHECK oomsight_status oomsight_measure(const oomsight_measure_params *params,
                                                     const oomsight_render_params *render, char **ret_text,
                                                     int *ret_whole, oomsight_error *reterr);

/* ---- plan, replay, dry runs, knowledge base -------------------------------------------------------------------------- */

/* What the engine that is installed is asked about a plan that was made without it: the words behind `serve`, NAME=value, and the devices
 * that are to be simulated. All of it lives as long as the plan and the words of its command. OOMSIGHT_UNSUPPORTED: it is no command
 * that can be asked about. */
typedef struct oomsight_question {
    const char *engine, *title, *release; /* "vllm", "vLLM"; the one that was named, NULL: any */
    const char *const *words;
    size_t word_count;
    const char *const *environment;
    size_t environment_count;
    const char *model,
        *place;      /* the word, and the folder that it stands for; NULL: it is found by its name */
    const char *gpu; /* NULL: it has no name */
    uint64_t total_bytes;
    unsigned capability, count; /* 90 */
    int probe;                  /* without a model: what small starts of it take */
    const char *watched;        /* without a model: rules to be compared with its source; NULL: none */
} oomsight_question;
OOMSIGHT_MUST_CHECK oomsight_status oomsight_plan_question(oomsight_plan *plan,
                                                           oomsight_question *ret_question,
                                                           oomsight_error *reterr);

/* oomsight_plan_create() with what it answered, a line of JSON (docs/reference/formats/exact.md). What is no answer is a plan as without
 * it, which says why. */
typedef struct oomsight_exact {
    const char *answer; /* NULL: there is none, and `problem` says why */
    size_t answer_bytes;
    const char *problem;
} oomsight_exact;
OOMSIGHT_MUST_CHECK oomsight_status oomsight_plan_create_exact(const oomsight_plan_params *params,
                                                               const oomsight_exact *exact,
                                                               oomsight_plan **ret_plan,
                                                               oomsight_error *reterr);

/* Whoever asks it: for one command at a time (a question without a model: what it is itself), and what it answers is to be given to free(). */
typedef struct oomsight_asker {
    void (*ask)(void *own, const oomsight_question *question, oomsight_exact *ret_exact);
    void *own;
} oomsight_asker;
/* A plan, and made once more with the answer; `asker` NULL: oomsight_plan_create(). */
OOMSIGHT_MUST_CHECK oomsight_status oomsight_plan_create_asked(const oomsight_plan_params *params,
                                                               const oomsight_asker *asker,
                                                               oomsight_plan **ret_plan,
                                                               oomsight_error *reterr);

/* The first line of what its process has written so far, as the answer to request `id`. */
typedef enum oomsight_answer_state {
    OOMSIGHT_ANSWER_PART = 0,  /* there is more to come */
    OOMSIGHT_ANSWER_WHOLE = 1, /* *ret_len bytes, without the line feed */
    OOMSIGHT_ANSWER_BROKEN = 2 /* it is none, or another's, or too long: nothing behind it can be trusted */
} oomsight_answer_state;
enum { OOMSIGHT_ANSWER_BYTES = 1 << 20 };
oomsight_answer_state oomsight_answer_look(const char *bytes, size_t len, uint64_t id, size_t *ret_len);

/* The rules of an engine with the fingerprints of their source, to be handed to `ask`; *ret_text NULL: it has none. */
OOMSIGHT_MUST_CHECK oomsight_status oomsight_learn_watched(const oomsight_data *data, const char *engine,
                                                           char **ret_text, oomsight_error *reterr);

/* Keeps what an engine said of itself, and `probe` of its small starts (NULL: none were made), for plans of a release that is not known here;
 * *ret_text says what, in lines, *ret_kept whether there was anything to keep. */
OOMSIGHT_MUST_CHECK oomsight_status oomsight_learned_keep(const oomsight_data *data, const char *engine,
                                                          const oomsight_exact *answer,
                                                          const oomsight_exact *probe, int *ret_kept,
                                                          char **ret_text, oomsight_error *reterr);

/* The words of the best fix that are flags without blanks, so that they survive a shell's $( ); *ret_count 0: it starts as it
 * is. NULL: there is none. They live as long as the plan. */
const char *const *oomsight_plan_best_words(const oomsight_plan *plan, size_t *ret_count);

/* The trace as JSON lines with every answer of the simulator (docs/reference/formats/trace.md). */
OOMSIGHT_MUST_CHECK oomsight_status oomsight_replay_render_events(const oomsight_replay *replay,
                                                                  char **ret_text, oomsight_error *reterr);

/* What the run holds and does at this moment. Start from OOMSIGHT_DRYRUN_LOOK_INIT; new fields are only ever added at the end. */
typedef struct oomsight_dryrun_look {
    size_t size;
    uint64_t device_bytes; /* held on the fullest device */
    uint64_t
        calls; /* that the stand-ins have seen; stands still when no process does anything with its device */
    const char *phase; /* in words; "": none yet */
} oomsight_dryrun_look;
#define OOMSIGHT_DRYRUN_LOOK_INIT                                                                            \
    {                                                                                                        \
        sizeof(oomsight_dryrun_look), 0, 0, ""                                                               \
    }
void oomsight_dryrun_watch(const oomsight_dryrun *dryrun, oomsight_dryrun_look *ret_moment);

/* `told` is called before each command is planned: the `at`-th of the `of` in the file at `path`. */
typedef void oomsight_check_told(void *data, const char *path, size_t at, size_t of);
typedef struct oomsight_check_with {
    const oomsight_asker *asker; /* NULL: plans are made without the installed engine */
    oomsight_check_told *told;   /* NULL: nobody */
    void *told_data;
} oomsight_check_with;
/* The same as oomsight_check_create(), with what `with` has; NULL: nothing. */
OOMSIGHT_MUST_CHECK oomsight_status oomsight_check_create_with(const oomsight_check_params *params,
                                                               const oomsight_check_with *with,
                                                               oomsight_check **ret_check,
                                                               oomsight_error *reterr);

/* A process of the command, and what it holds of the host's memory (/proc/PID/status). */
typedef struct oomsight_dryrun_process {
    uint32_t pid;
    char name[16];
    uint64_t resident_bytes; /* VmRSS */
    uint64_t shared_bytes;   /* RssShmem: part of it, and counted for each process that has the page */
} oomsight_dryrun_process;

/* "NAME=value" was set so that requests can be sent: the engine by itself would start otherwise. */
void oomsight_dryrun_with(oomsight_dryrun *dryrun, const char *assignment);
/* For the page: the model as the command has it (NULL: none), and how long the run took. */
void oomsight_dryrun_about(oomsight_dryrun *dryrun, const char *model, double seconds);

/* All processes of the command at this moment; of each phase the moment is kept at which most is resident. */
void oomsight_dryrun_host(oomsight_dryrun *dryrun, const oomsight_dryrun_process *processes, size_t count);

/* The built-in models, or those with `word` in their id, or the one that `word` is the id or the directory of. *ret_count 0: none. */
OOMSIGHT_MUST_CHECK oomsight_status oomsight_models_render(const oomsight_data *data, const char *word,
                                                           const oomsight_render_params *params,
                                                           size_t *ret_count, char **ret_text,
                                                           oomsight_error *reterr);
/* Checks the list of models in a file, and keeps it for this user and version. What is said of it is the caller's. */
OOMSIGHT_MUST_CHECK oomsight_status oomsight_models_update(const char *path, char **ret_text,
                                                           oomsight_error *reterr);

/* Are links, texts and patterns sound, and (when `fixtures_dir` is not NULL) is every record found in
 * fixtures_dir/ID/positive.log and not in fixtures_dir/ID/negative.log? One problem per line in *ret_text. */
OOMSIGHT_MUST_CHECK oomsight_status oomsight_kb_check(const oomsight_data *data, const char *fixtures_dir,
                                                      size_t *ret_problems, char **ret_text,
                                                      oomsight_error *reterr);

/* Which flag for which phase: what helps and what has no effect, of every phase (`phase` NULL) and every engine (`engine` NULL). */
OOMSIGHT_MUST_CHECK oomsight_status oomsight_kb_phases(const oomsight_data *data, const char *phase,
                                                       const char *engine,
                                                       const oomsight_render_params *params, char **ret_text,
                                                       oomsight_error *reterr);

/* ---- logs ------------------------------------------------------------------------------------------------------------ */

/* Inputs that are damaged so that nothing of them could be read, beside others that could; NULL: no more. */
const char *oomsight_explain_lost(const oomsight_explanation *explanation, size_t index);

/* ---- logs that grow -------------------------------------------------------------------------------------------------- */

/* Many logs that grow: files, folders (Kubernetes, docker), patterns, "-". Nothing here starts a thread, but for the listener
 * of the metrics when one is asked for. */
typedef struct oomsight_agent oomsight_agent;

/* Parameters of an agent. Start from OOMSIGHT_AGENT_PARAMS_INIT; new fields are only ever added at the end. */
typedef struct oomsight_agent_params {
    size_t size;
    const oomsight_data *data; /* must outlive the handle; NULL is an error */
    const char *const *paths;
    size_t path_count;
    const char *state_dir;                /* positions are kept here over restarts; NULL: begin anew */
    const char *metrics_file;             /* for a textfile collector, replaced as a whole; NULL: none */
    size_t most_files;                    /* followed at once, 0: 4096 */
    int allow_hub;                        /* as for an explanation */
    const oomsight_render_params *render; /* JSON (a line per incident; NULL) or text */
    void (*on_trouble)(void *context, const char *path, const char *sentence); /* NULL: nobody is told */
    void *trouble_context;
    int each; /* in full, however often it comes */
} oomsight_agent_params;
#define OOMSIGHT_AGENT_PARAMS_INIT                                                                           \
    {                                                                                                        \
        sizeof(oomsight_agent_params), NULL, NULL, 0, NULL, NULL, 0, 0, NULL, NULL, NULL, 0                  \
    }

OOMSIGHT_MUST_CHECK oomsight_status oomsight_agent_open(const oomsight_agent_params *params,
                                                        oomsight_agent **ret_agent, oomsight_error *reterr);
void oomsight_agent_close(oomsight_agent *agent); /* NULL is fine */

/* Wait a while for something new, read it, and give out what has ended (docs/reference/formats/agent.md). The text is the agent's. Nothing
 * more is read until oomsight_agent_delivered() says that whoever takes it has it: only then positions move on, so that a crash
 * in between repeats incidents and loses none. oomsight_agent_refused() counts a failed attempt, and the same text is given
 * again. */
OOMSIGHT_MUST_CHECK oomsight_status oomsight_agent_poll(oomsight_agent *agent, int wait_ms,
                                                        const char **ret_text, size_t *ret_bytes,
                                                        oomsight_error *reterr);
void oomsight_agent_delivered(oomsight_agent *agent);
void oomsight_agent_refused(oomsight_agent *agent);
/* As a poll, at the end: what is open counts as over. */
OOMSIGHT_MUST_CHECK oomsight_status oomsight_agent_finish(oomsight_agent *agent, const char **ret_text,
                                                          size_t *ret_bytes, oomsight_error *reterr);
int oomsight_agent_ended(const oomsight_agent *agent); /* standard input, the only path, is over */
int oomsight_agent_found_oom(const oomsight_agent *agent);
uint64_t oomsight_agent_bytes_read(const oomsight_agent *agent);
/* Up to which byte of a file the agent that keeps its positions in `state_dir` has delivered what it found. 0: none is known. */
int oomsight_agent_stands(const char *state_dir, uint64_t device, uint64_t inode, uint64_t *ret_byte);

/* Lines that another program has read, of many streams (docs/reference/formats/stream.md): it pushes, takes what is next, and says that it
 * has it. Nothing here waits or starts a thread. */
typedef struct oomsight_streams oomsight_streams;

/* Start from OOMSIGHT_STREAMS_PARAMS_INIT; new fields are only ever added at the end. */
typedef struct oomsight_streams_params {
    size_t size;
    const oomsight_data *data; /* must outlive the handle; NULL is an error */
    const char *state_dir;     /* what is known of each engine is kept here over restarts; NULL: not */
    size_t most_streams;       /* at once, 0: 4096 */
    int allow_hub;             /* as for an explanation */
    int each;                  /* in full, however often it comes */
} oomsight_streams_params;
#define OOMSIGHT_STREAMS_PARAMS_INIT                                                                         \
    {                                                                                                        \
        sizeof(oomsight_streams_params), NULL, NULL, 0, 0, 0                                                 \
    }

OOMSIGHT_MUST_CHECK oomsight_status oomsight_streams_open(const oomsight_streams_params *params,
                                                          oomsight_streams **ret_streams,
                                                          oomsight_error *reterr);
void oomsight_streams_close(oomsight_streams *streams); /* NULL is fine */

/* Any piece of the input, in order. */
OOMSIGHT_MUST_CHECK oomsight_status oomsight_streams_push(oomsight_streams *streams, const char *text,
                                                          size_t bytes, oomsight_error *reterr);
/* Incidents that have ended by now and cursors up to which all is told, a line each; the text is the handle's. It stays the same until
 * oomsight_streams_delivered(). `over`: nothing more comes. */
OOMSIGHT_MUST_CHECK oomsight_status oomsight_streams_next(oomsight_streams *streams, int over,
                                                          const char **ret_text, size_t *ret_bytes,
                                                          oomsight_error *reterr);
int oomsight_streams_delivered(oomsight_streams *streams); /* 0: what is known could not be kept (errno) */
int oomsight_streams_found_oom(const oomsight_streams *streams);
uint64_t oomsight_streams_refused(const oomsight_streams *streams); /* records that are none */

/* ---- OpenTelemetry ---------------------------------------------------------------------------------------------- */

/* Lines of oomsight_agent_poll() or oomsight_streams_next() as the body of an OTLP/HTTP request for logs, in its JSON encoding. *ret_text is the
 * caller's, to be given to oomsight_text_free(); NULL: no line is an incident. */
OOMSIGHT_MUST_CHECK oomsight_status oomsight_otlp_request(const char *lines, size_t bytes, char **ret_text,
                                                          size_t *ret_records, oomsight_error *reterr);
/* An answer of HTTP as far as it was received. 0: more is needed. `over`: nothing more comes, then status 0 is no answer. */
typedef struct oomsight_otlp_reply {
    size_t size;
    unsigned status, wait_s; /* wait_s: before the next try, as the receiver asks */
    uint64_t rejected;       /* records that are lost by a success */
} oomsight_otlp_reply;
int oomsight_otlp_answer(const char *text, size_t bytes, int over, oomsight_otlp_reply *ret_reply);

/* ---- bisect ---------------------------------------------------------------------------------------------------- */

/* One command over the releases between two: where its answer moved. */
typedef struct oomsight_bisect oomsight_bisect;

/* Start from OOMSIGHT_BISECT_PARAMS_INIT; new fields are only ever added at the end. */
typedef struct oomsight_bisect_params {
    size_t size;
    const oomsight_plan_params *plan; /* the command and its device; engine_version is not looked at */
    const char *good, *bad;           /* two releases, whichever is older */
    const char *const *only;          /* the releases that may be asked; NULL: every one that is known */
    size_t only_count;
    double moved_ratio; /* a change of KV tokens, or of a need, that is told; 0: 0.02 */
    int by_report;      /* 1: nothing is planned; the caller starts each and tells what came of it */
} oomsight_bisect_params;
#define OOMSIGHT_BISECT_PARAMS_INIT                                                                          \
    {                                                                                                        \
        sizeof(oomsight_bisect_params), NULL, NULL, NULL, NULL, 0, 0, 0                                      \
    }

/* On OOMSIGHT_OK *ret_bisect is the caller's, to be given to oomsight_bisect_free(). params->plan->data must outlive it. */
OOMSIGHT_MUST_CHECK oomsight_status oomsight_bisect_create(const oomsight_bisect_params *params,
                                                           oomsight_bisect **ret_bisect,
                                                           oomsight_error *reterr);
void oomsight_bisect_free(oomsight_bisect *bisect); /* NULL is fine */

/* With by_report: the release to start next; NULL when there is nothing left to ask. */
const char *oomsight_bisect_next(const oomsight_bisect *bisect);
/* ... and what `oomsight dryrun --json` wrote of it; `report` NULL: nothing came of it, for the reason `problem` (or NULL). */
OOMSIGHT_MUST_CHECK oomsight_status oomsight_bisect_answer(oomsight_bisect *bisect, const char *version,
                                                           const char *report, const char *problem,
                                                           oomsight_error *reterr);

/* The release with which verdict, need or tokens moved; NULL: nothing did. It lives as long as the handle. */
const char *oomsight_bisect_found(const oomsight_bisect *bisect);
/* Text or JSON (oomsight.bisect/1). */
OOMSIGHT_MUST_CHECK oomsight_status oomsight_bisect_render(const oomsight_bisect *bisect,
                                                           const oomsight_render_params *params,
                                                           char **ret_text, oomsight_error *reterr);

/* ---- guarded runs ----------------------------------------------------------------------------------------------- */

/* A real engine on real devices, counted and kept inside a budget by the guard. This part makes the segment and reads it, at any
 * time; starting the process with the guard in front of it is the caller's (the command `oomsight run` does it). Experimental:
 * may change before 1.0. */
typedef struct oomsight_run oomsight_run;

/* Parameters of a guarded run. Start from OOMSIGHT_RUN_PARAMS_INIT; new fields are only ever added at the end. */
typedef struct oomsight_run_params {
    size_t size;
    const char *segment_path;   /* a file that does not exist yet; the guard finds it in OOMSIGHT_GUARD */
    uint64_t budget_bytes;      /* of each device; 0: see the next */
    unsigned budget_millionths; /* of each device's memory; 0 with budget_bytes 0: no budget */
    uint64_t reserve_bytes;     /* unified memory: what the host keeps; 0: memory is not unified */
} oomsight_run_params;
#define OOMSIGHT_RUN_PARAMS_INIT                                                                             \
    {                                                                                                        \
        sizeof(oomsight_run_params), NULL, 0, 0, 0                                                           \
    }

/* On OOMSIGHT_OK *ret_run is the caller's, to be given to oomsight_run_free(); the file is the caller's to remove. */
OOMSIGHT_MUST_CHECK oomsight_status oomsight_run_create(const oomsight_run_params *params,
                                                        oomsight_run **ret_run, oomsight_error *reterr);
/* Divides the devices with those of `paths` that carry the same name and whose launchers live: their segments learn of this run and it of
 * them. Its budget is the given one, checked against what the others leave of the smallest device, or without one what they leave.
 * Before the command is started; who starts under one name does it one at a time. */
OOMSIGHT_MUST_CHECK oomsight_status oomsight_run_share(oomsight_run *run, const char *name,
                                                       const char *const *paths, size_t path_count,
                                                       oomsight_error *reterr);
/* The segment of a run that somebody else made. */
OOMSIGHT_MUST_CHECK oomsight_status oomsight_run_open(const char *segment_path, oomsight_run **ret_run,
                                                      oomsight_error *reterr);
void oomsight_run_free(oomsight_run *run);              /* NULL is fine */
uint64_t oomsight_run_refused(const oomsight_run *run); /* calls, so far */
#define OOMSIGHT_RUN_ENGINE 16u                         /* the log is that of an engine */
/* A line that the command printed: where it is, and whose what it takes from now on is. What it says so far, of OOMSIGHT_DRYRUN_READY,
 * OOMSIGHT_DRYRUN_OUT_OF_MEMORY, OOMSIGHT_DRYRUN_REFUSED and OOMSIGHT_RUN_ENGINE. */
unsigned oomsight_run_line(oomsight_run *run, const char *line, size_t len);
/* The last allocations of the process that was refused first, or holds most, as a trace for oomsight_replay_create() and
 * `oomsight replay`; `path` is written anew. */
OOMSIGHT_MUST_CHECK oomsight_status oomsight_run_trace(const oomsight_run *run, const char *path,
                                                       oomsight_error *reterr);
/* bundle.json of `folder`, whose other files are there: phase and cause by incident.json (explain.json where nothing
 * failed), the verdict of plan.json, what was held, the names of all files. `why`: "refused", "out of memory" or "asked". */
OOMSIGHT_MUST_CHECK oomsight_status oomsight_run_bundle_index(const oomsight_run *run, const char *folder,
                                                              const char *why, oomsight_error *reterr);
uint64_t oomsight_run_budget(const oomsight_run *run); /* of the fullest device; 0: not known */
/* Compute capability of the same device as NVML tells it, as 89; 0: not told. *ret_name lives as long as the run; "": not told. */
unsigned oomsight_run_gpu(const oomsight_run *run, const char **ret_name);
/* Where the last bundle about it is, told to whoever opens the segment. */
void oomsight_run_bundle_set(oomsight_run *run, const char *path);
unsigned oomsight_run_bundles(const oomsight_run *run, const char **ret_path); /* how many so far */
/* A file that a launcher left behind: a segment of ours whose launcher is gone, and so is every process in it. 1: it may be removed. */
int oomsight_run_abandoned(const char *segment_path);
/* Of the smallest device that NVML names; 0: it names none. */
uint64_t oomsight_run_device_bytes(const oomsight_run *run);
/* Looks at the processes below `pid`: those that use CUDA and are not counted by the guard are named in report and metrics. On OOMSIGHT_OK
 * *ret_text has a line for each that was not told before, or is NULL; to be given to oomsight_text_free(). Call it every second or so, and
 * soon when *ret_again is 1: then somebody is suspected, and a second look decides. */
OOMSIGHT_MUST_CHECK oomsight_status oomsight_run_look(oomsight_run *run, int pid, char **ret_text,
                                                      int *ret_again, oomsight_error *reterr);
/* Of the budget or reserve. */
typedef enum oomsight_run_limit {
    OOMSIGHT_RUN_NO_LIMIT,
    OOMSIGHT_RUN_LIMIT_IN_FORCE,
    OOMSIGHT_RUN_LIMIT_NOT_FOR_ALL, /* a process is known that is not counted */
    OOMSIGHT_RUN_LIMIT_FOR_NOBODY   /* no process came to the guard */
} oomsight_run_limit;
oomsight_run_limit oomsight_run_limited(const oomsight_run *run);
/* The process that made the segment and answers SIGUSR2 with a bundle; 0: it is no more. */
int oomsight_run_launcher(const oomsight_run *run);
/* Take down what is held now, `seconds` after the first time; call it every second or so, and renderings name what grows. */
void oomsight_run_watch(oomsight_run *run, double seconds);
/* What the engine answered to GET /metrics, as it came: renderings show its requests and how full its KV cache is. NULL: no answer. */
void oomsight_run_serving(oomsight_run *run, const char *metrics, size_t len);
OOMSIGHT_MUST_CHECK oomsight_status oomsight_run_render(const oomsight_run *run,
                                                        const oomsight_render_params *params, char **ret_text,
                                                        oomsight_error *reterr);

/* The figures of several runs for Prometheus, family by family; each run's samples have its name as a label, and one of them
 * its number. */
OOMSIGHT_MUST_CHECK oomsight_status oomsight_run_metrics(oomsight_run *const *runs, const int *pids,
                                                         const char *const *names, size_t count,
                                                         char **ret_text, oomsight_error *reterr);

/* What uses the GPUs of this machine, a row for each process: of runs, and of others where NVML names them. */
typedef struct oomsight_top oomsight_top;
enum { OOMSIGHT_TOP_ORDERS = 3 }; /* by memory, growth, pid */

/* Parameters of a screen. Start from OOMSIGHT_TOP_PARAMS_INIT; new fields are only ever added at the end. */
typedef struct oomsight_top_params {
    size_t size;
    const char *host, *clock; /* words of the first line */
    double every_seconds;
    unsigned order;
    int paused;
    unsigned lines; /* of the screen; its columns are those of the rendering */
} oomsight_top_params;
#define OOMSIGHT_TOP_PARAMS_INIT                                                                             \
    {                                                                                                        \
        sizeof(oomsight_top_params), NULL, NULL, 0, 0, 0, 0                                                  \
    }

OOMSIGHT_MUST_CHECK oomsight_status oomsight_top_create(oomsight_top **ret_top, oomsight_error *reterr);
void oomsight_top_free(oomsight_top *top); /* NULL is fine */
/* Looks once more; `seconds` never go back. */
void oomsight_top_look(oomsight_top *top, oomsight_run *const *runs, const int *pids, size_t count,
                       double seconds);
/* Text; its last line has no line break. */
OOMSIGHT_MUST_CHECK oomsight_status oomsight_top_render(oomsight_top *top, const oomsight_top_params *asked,
                                                        const oomsight_render_params *params, char **ret_text,
                                                        oomsight_error *reterr);

/* ---- what is it? ------------------------------------------------------------------------------------------------- */

/* What a text is that somebody pasted or dropped, as text or JSON: a command or manifest (for a check), a model's config, a memory
 * snapshot or trace (for a replay), a log (for an explanation), a command of an engine that is not planned, nothing. `path` may be
 * "-"; the first 16 MiB are looked at. *ret_text is the caller's, to be given to oomsight_text_free(). */
OOMSIGHT_MUST_CHECK oomsight_status oomsight_what_render(const oomsight_data *data, const char *path,
                                                         const oomsight_render_params *params,
                                                         char **ret_text, oomsight_error *reterr);

/* ---- matrix ---------------------------------------------------------------------------------------------------- */

/* Models x GPUs x flags x engine versions, from a file (docs/reference/formats/matrix.md). Points are planned here, on threads, and come
 * out one by one; none is kept. Dry starts are the caller's to run (the command `oomsight matrix` does it): each point is a
 * command, its report is handed back. What was seen so far can be rendered at any time. */
typedef struct oomsight_matrix oomsight_matrix;

/* Parameters of a matrix. Start from OOMSIGHT_MATRIX_PARAMS_INIT; new fields are only ever added at the end. All strings must
 * live until the call returns. */
typedef struct oomsight_matrix_params {
    size_t size;
    const oomsight_data *data; /* must outlive the handle; NULL is an error */
    const char *path;          /* the file */
    const char *models_dir;    /* where models lie that the file names otherwise; may be NULL */
    int allow_hub;             /* 1: a model may be fetched (config and headers only) */
    unsigned threads;          /* that plan; 0: one per core */
    const char *mode;          /* "plan", "dryrun"; NULL: as the file says */
    const char *from_version;  /* compare this version ... */
    const char *to_version;    /* ... with this one, in place of the versions of the file; both or none */
    double moved_ratio;        /* a change of KV tokens that is told, 0: 0.05 */
    const char *cache_dir;     /* results are kept here and found again; NULL: not */
    const char *const *identity_paths; /* files whose content is part of what a cached result depends on */
    size_t identity_count;
    const char *const *engines; /* "0.19.1=/folder" of engines for dry starts, before those of the file */
    size_t engine_count;
    int lines;              /* 1: every point comes with its line of JSON */
    int cache_dryruns_only; /* 1: cache_dir is for dry starts, plans are always made */
    const oomsight_asker
        *asker; /* NULL: plans are made without the installed engine; else by one thread, and kept nowhere */
    uint64_t shard, shards; /* only the points whose number leaves `shard` when divided by `shards`; 0: all */
    const char *const
        *parts; /* files of lines that have the answers (those of shards): nothing is planned or started */
    size_t part_count;
} oomsight_matrix_params;
#define OOMSIGHT_MATRIX_PARAMS_INIT                                                                          \
    {                                                                                                        \
        sizeof(oomsight_matrix_params), NULL, NULL, NULL, 0, 0, NULL, NULL, NULL, 0, NULL, NULL, 0, NULL, 0, \
            0, 0, NULL, 0, 0, NULL, 0                                                                        \
    }

/* One point and its answer. Strings live until the next call that gives a point. */
typedef struct oomsight_matrix_point {
    size_t size;
    uint64_t number;                           /* in the order of the file */
    const char *model, *gpu, *flags, *version; /* as the file calls them */
    int readable;                              /* 0: there is no answer, `why` says why */
    oomsight_verdict verdict;
    const char *phase, *cause, *why; /* NULL when nothing fails */
    /* a flag that this version does not know: its parser would stop there; or NULL */
    const char *unknown_flag;
    uint64_t tried_bytes, weights_bytes, kv_tokens, kv_available_bytes; /* or OOMSIGHT_UNKNOWN */
    double max_concurrency;                                             /* below 0: not known */
    double seconds;                                                     /* a dry start took; 0 for a plan */
    unsigned attempts;                                                  /* of a dry start */
    int cached;                                                         /* 1: found, not made */
    const char *line; /* JSON, schema oomsight.matrix/1, without a line feed; NULL unless asked for */
    size_t line_bytes;
    int starts; /* 1: it starts or likely starts; `tight` is either */
    /* the whole command that starts instead; NULL: it starts as it is, or none was looked for (more than 2,000 points) or found */
    const char *command;
    const char *exact; /* "taken", "refused", "unknown" by the installed engine; NULL: it was not asked */
    const char *exact_said; /* in words */
} oomsight_matrix_point;

/* On OOMSIGHT_OK *ret_matrix is the caller's, to be given to oomsight_matrix_close(). Otherwise it is untouched. A model that
 * cannot be read is no failure: its points say so. */
OOMSIGHT_MUST_CHECK oomsight_status oomsight_matrix_open(const oomsight_matrix_params *params,
                                                         oomsight_matrix **ret_matrix,
                                                         oomsight_error *reterr);
void oomsight_matrix_close(oomsight_matrix *matrix); /* NULL is fine */

uint64_t oomsight_matrix_points(const oomsight_matrix *matrix); /* excluded ones are counted */
uint64_t oomsight_matrix_share(const oomsight_matrix *matrix);  /* those of this shard */
int oomsight_matrix_is_dryrun(const oomsight_matrix *matrix);

/* The next point, in order; NULL after the last one. Not for dry starts, unless their answers come from parts. */
OOMSIGHT_MUST_CHECK oomsight_status oomsight_matrix_next(oomsight_matrix *matrix,
                                                         const oomsight_matrix_point **ret_point,
                                                         oomsight_error *reterr);

/* What is to be done for one point of a matrix of dry starts. */
typedef enum oomsight_matrix_need {
    OOMSIGHT_MATRIX_EXCLUDED = 0, /* nothing */
    OOMSIGHT_MATRIX_KNOWN = 1,    /* nothing: the point is answered, see *ret_point */
    OOMSIGHT_MATRIX_RUN = 2,      /* run `oomsight dryrun` with the words of *ret_task */
    OOMSIGHT_MATRIX_TAKEN = 3 /* as RUN, but another process with the same cache is at it: ask again later */
} oomsight_matrix_need;
typedef struct oomsight_matrix_task {
    size_t size;
    const char *const *words; /* options, `--`, the command */
    size_t word_count;
    const char *const *environment; /* NAME=value, set for it */
    size_t environment_count;
    const char *engine; /* the folder whose bin/ comes first in PATH; NULL: as PATH stands */
} oomsight_matrix_task;
#define OOMSIGHT_MATRIX_TASK_INIT                                                                            \
    {                                                                                                        \
        sizeof(oomsight_matrix_task), NULL, 0, NULL, 0, NULL                                                 \
    }
OOMSIGHT_MUST_CHECK oomsight_status oomsight_matrix_task_of(
    oomsight_matrix *matrix, uint64_t number, oomsight_matrix_need *ret_need, oomsight_matrix_task *ret_task,
    const oomsight_matrix_point **ret_point, oomsight_error *reterr); /* the task lives until the next call */

/* The answer to it: the JSON of `oomsight dryrun`, or NULL and why there is none. Kept in the cache when it is definite. */
OOMSIGHT_MUST_CHECK oomsight_status oomsight_matrix_answer(oomsight_matrix *matrix, uint64_t number,
                                                           const char *report, const char *problem,
                                                           double seconds, unsigned attempts,
                                                           const oomsight_matrix_point **ret_point,
                                                           oomsight_error *reterr);

/* 0: the report of a dry run says that its engine was killed from outside, so that another try is worth while. */
int oomsight_matrix_report_settled(const char *report);

/* Counts of what was seen so far. */
typedef struct oomsight_matrix_tally {
    size_t size;
    uint64_t seen, fits, tight, fails, refused, unknown, unreadable, cached;
    uint64_t compared, broken, mended, moved, uncompared; /* between two versions */
    uint64_t unknown_flags; /* points with a flag that their version does not know */
    uint64_t unkept;        /* results that could not be written to the cache */
    uint64_t starts;        /* points that start or likely start */
    uint64_t kept;   /* dry starts whose answer is in the cache: another run does not start them again */
    uint64_t absent; /* points that no part has */
} oomsight_matrix_tally;
#define OOMSIGHT_MATRIX_TALLY_INIT                                                                           \
    {                                                                                                        \
        sizeof(oomsight_matrix_tally), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0                  \
    }
void oomsight_matrix_count(const oomsight_matrix *matrix, oomsight_matrix_tally *ret_tally);

/* Text, Markdown, a page with a heat map, JUnit; JSON is the summary (points are JSON by their `line`). */
OOMSIGHT_MUST_CHECK oomsight_status oomsight_matrix_render(const oomsight_matrix *matrix,
                                                           const oomsight_render_params *params,
                                                           char **ret_text, oomsight_error *reterr);

#ifdef __ELF__
#pragma GCC visibility pop
#endif
