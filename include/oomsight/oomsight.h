/* oomsight: foresee, explain, reproduce and prevent GPU out-of-memory in LLM serving.
 *
 *     oomsight_error error = {0};
 *     oomsight_data *data = NULL;
 *     oomsight_plan *plan = NULL;
 *     const char *command[] = {"vllm", "serve", "./Qwen3-8B", "--max-model-len", "16384"};
 *     oomsight_plan_params params = {sizeof params};
 *     if (oomsight_data_open(NULL, &data, &error) != OOMSIGHT_OK) return 1;
 *     params.data = data;
 *     params.gpu = "4090";
 *     params.command = command;
 *     params.command_count = 5;
 *     if (oomsight_plan_create(&params, &plan, &error) == OOMSIGHT_OK && oomsight_plan_verdict(plan) != OOMSIGHT_VERDICT_FITS)
 *         printf("fails in %s; add: %s\n", oomsight_plan_phase(plan), oomsight_plan_best_flags(plan));
 *     oomsight_plan_free(plan);
 *     oomsight_data_close(data);
 *
 * (examples/plan.c is this, whole.) One header, C99 and C++11 clean. Handles are opaque and immutable after creation, so that
 * several threads may read one. Parameters travel in a struct whose first field is its size; every other field at 0 is its
 * default, and new fields are only ever added at the end: a program built with an older header keeps working. Numbers of enums
 * are written down and never reused. Strings returned by an accessor live as long as the handle they came from. "Does not fit" is
 * an answer, not a failure.
 *
 * Stable: data, rendering, models, plan, explain, replay, check, knowledge base. Experimental, may change between minor releases:
 * follow, agent, dry runs, matrix. */
#ifndef OOMSIGHT_OOMSIGHT_H
#define OOMSIGHT_OOMSIGHT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The release of this header; oomsight_version() is the library's. */
#define OOMSIGHT_VERSION_MAJOR 0
#define OOMSIGHT_VERSION_MINOR 1
#define OOMSIGHT_VERSION_PATCH 0

#if defined(_WIN32) && defined(OOMSIGHT_BUILDING) /* the library itself; who uses it needs no mark */
#define OOMSIGHT_API __declspec(dllexport)
#define OOMSIGHT_MUST_CHECK __attribute__((warn_unused_result))
#elif defined(__GNUC__)
#define OOMSIGHT_API __attribute__((visibility("default")))
#define OOMSIGHT_MUST_CHECK __attribute__((warn_unused_result))
#else
#define OOMSIGHT_API
#define OOMSIGHT_MUST_CHECK
#endif

/* name, number, sentence */
#define OOMSIGHT_STATUS_MAP(X)                                                                               \
    X(OK, 0, "done")                                                                                         \
    X(NOMEM, 1, "out of host memory")                                                                        \
    X(OVERFLOW, 2, "a number does not fit")                                                                  \
    X(MALFORMED, 3, "an input is not what it should be")                                                     \
    X(NOT_FOUND, 4, "an input was not found")                                                                \
    X(IO, 5, "an input could not be read")                                                                   \
    X(UNSUPPORTED, 6, "not supported")                                                                       \
    X(USAGE, 7, "wrong usage")                                                                               \
    X(NETWORK, 8, "the hub could not be reached")                                                            \
    X(INTERNAL, 9, "a fault of oomsight itself")

typedef enum oomsight_status {
#define OOMSIGHT_STATUS_ENUM(name, number, sentence) OOMSIGHT_##name = number,
    OOMSIGHT_STATUS_MAP(OOMSIGHT_STATUS_ENUM)
#undef OOMSIGHT_STATUS_ENUM
} oomsight_status;

/* Filled on failure only. `path` and `line` are empty and 0 where they do not apply. */
typedef struct oomsight_error {
    oomsight_status status;
    uint32_t line;
    char path[256];
    char text[512];
} oomsight_error;

/* A sentence for a status, never NULL. */
OOMSIGHT_API const char *oomsight_status_text(oomsight_status status);

/* "0.1.0" */
OOMSIGHT_API const char *oomsight_version(void);

/* `23.5GiB`, `24GB`, `24564MiB`, `0`, plain bytes from 1 MiB on: 24 alone could be anything. 0 when `word` is no size: then *ret_bytes is
 * untouched. */
OOMSIGHT_API int oomsight_size_parse(const char *word, uint64_t *ret_bytes);

/* ---- data: GPUs, engine versions, flags ------------------------------------------------------------------------ */

/* What is known of devices and engines. Build it once, share it between threads. */
typedef struct oomsight_data oomsight_data;

/* `dir` replaces the data embedded in the library; NULL uses the embedded one. */
OOMSIGHT_API OOMSIGHT_MUST_CHECK oomsight_status oomsight_data_open(const char *dir, oomsight_data **ret_data,
                                                                    oomsight_error *reterr);
OOMSIGHT_API void oomsight_data_close(oomsight_data *data); /* NULL is fine */

/* ---- rendering ------------------------------------------------------------------------------------------------- */

typedef enum oomsight_format {
    OOMSIGHT_FORMAT_TEXT = 0,
    OOMSIGHT_FORMAT_JSON = 1,
    OOMSIGHT_FORMAT_MARKDOWN = 2,
    OOMSIGHT_FORMAT_HTML = 3,
    OOMSIGHT_FORMAT_GITHUB = 4, /* annotations of a GitHub job; explain and check only */
    OOMSIGHT_FORMAT_SARIF = 5,  /* explain and check only */
    OOMSIGHT_FORMAT_JUNIT = 6   /* matrix only */
} oomsight_format;

/* How to print. Start from OOMSIGHT_RENDER_PARAMS_INIT; new fields are only ever added at the end. */
typedef struct oomsight_render_params {
    size_t size;
    oomsight_format format;
    int color;            /* 0 none, 1 ANSI */
    int ascii;            /* 1: no character outside ASCII */
    unsigned width;       /* columns of a text report, 0: 80 */
    int explain;          /* 1: say how each number came to be */
    const char *language; /* "en" or "zh"; NULL: as LC_ALL, LC_MESSAGES or LANG say */
    int verbose;          /* 1: a plan's text shows the phases and what they hold; so does `explain` */
} oomsight_render_params;
#define OOMSIGHT_RENDER_PARAMS_INIT                                                                          \
    {                                                                                                        \
        sizeof(oomsight_render_params), OOMSIGHT_FORMAT_TEXT, 0, 0, 0, 0, NULL, 0                            \
    }

/* A table of what is known: "gpus" or "engines". *ret_text is the caller's, to be given to oomsight_text_free(). */
OOMSIGHT_API OOMSIGHT_MUST_CHECK oomsight_status oomsight_data_render(const oomsight_data *data,
                                                                      const char *what,
                                                                      const oomsight_render_params *params,
                                                                      char **ret_text,
                                                                      oomsight_error *reterr);
OOMSIGHT_API void oomsight_text_free(char *text); /* NULL is fine */

/* `text` as it may be shown to others: values of tokens, keys and passwords are `***`, control characters (but for line
 * breaks and tabs) and bytes that are not UTF-8 are written out (`\x1b`). *ret_text is the caller's, to be given to
 * oomsight_text_free(). */
OOMSIGHT_API OOMSIGHT_MUST_CHECK oomsight_status oomsight_text_redact(const char *text, char **ret_text,
                                                                      oomsight_error *reterr);

/* The same for text that comes in pieces: what a line says of the next one is remembered, so that a private key or a value
 * below its name is hidden wherever the text was cut. Holds one line, and of a long one 32 KiB. */
typedef struct oomsight_redactor oomsight_redactor;
OOMSIGHT_API OOMSIGHT_MUST_CHECK oomsight_status oomsight_redactor_create(oomsight_redactor **ret_redactor,
                                                                          oomsight_error *reterr);
/* *ret_text is what can be shown by now, often nothing: the rest comes with a later call. `len` 0: nothing more comes, all
 * that is left is in *ret_text, and the redactor is new again. */
OOMSIGHT_API OOMSIGHT_MUST_CHECK oomsight_status oomsight_redactor_feed(oomsight_redactor *redactor,
                                                                        const char *bytes, size_t len,
                                                                        char **ret_text,
                                                                        oomsight_error *reterr);
OOMSIGHT_API void oomsight_redactor_free(oomsight_redactor *redactor); /* NULL is fine */

/* A sentence of this library, an error for example, in `language` ("en", "zh"; NULL: as the environment says). What is not
 * known stays as it is. *ret_text is the caller's, to be given to oomsight_text_free(). */
OOMSIGHT_API OOMSIGHT_MUST_CHECK oomsight_status oomsight_words(const char *language, const char *english,
                                                                char **ret_text, oomsight_error *reterr);

/* A file that a user names, written as the command's `--output` is: through no link but the user's own or root's, over no file of
 * somebody else in a folder where everybody can write. A plain file is replaced whole or not at all. */
OOMSIGHT_API OOMSIGHT_MUST_CHECK oomsight_status oomsight_output_write(const char *path, const char *text,
                                                                       oomsight_error *reterr);

/* The same for what is written bit by bit: *ret_fd is the caller's to close, emptied, or at its end when `append` is not 0. A new
 * file has the permissions of the umask, and nothing for others when it is appended to: that is how logs are kept. */
OOMSIGHT_API OOMSIGHT_MUST_CHECK oomsight_status oomsight_output_open(const char *path, int append,
                                                                      int *ret_fd, oomsight_error *reterr);

/* ---- models ---------------------------------------------------------------------------------------------------- */

/* A model: its config and, where there, the headers of its weight files. Never the weights. */
typedef struct oomsight_model oomsight_model;

/* `name` is a directory, a Hugging Face id found in the local cache, or (when `allow_hub` is not 0) an id fetched from
 * the hub named by HF_ENDPOINT. The handle may be shared by any number of plans and threads. */
OOMSIGHT_API OOMSIGHT_MUST_CHECK oomsight_status oomsight_model_open(const char *name, int allow_hub,
                                                                     oomsight_model **ret_model,
                                                                     oomsight_error *reterr);
OOMSIGHT_API void oomsight_model_close(oomsight_model *model); /* NULL is fine */

/* ---- this machine ---------------------------------------------------------------------------------------------- */

/* The machine we run on: driver and devices by NVML, who holds their memory, RAM and its limit, the engine that is installed here. No
 * code of others runs but NVML's, in a child process that is given up when it does not answer. Linux only. */
typedef struct oomsight_machine oomsight_machine;

/* Parameters of a look at the machine. Start from OOMSIGHT_MACHINE_PARAMS_INIT; new fields are only ever added at the end. */
typedef struct oomsight_machine_params {
    size_t size;
    const char *program; /* what would be started: the engine beside it counts first; may be NULL */
    int skip_devices;    /* 1: NVML is not asked */
    unsigned timeout_ms; /* 0: 5 seconds */
} oomsight_machine_params;
#define OOMSIGHT_MACHINE_PARAMS_INIT                                                                         \
    {                                                                                                        \
        sizeof(oomsight_machine_params), NULL, 0, 0                                                          \
    }

/* On OOMSIGHT_OK *ret_machine is the caller's, to be given to oomsight_machine_close(). A machine without a GPU is no failure. */
OOMSIGHT_API OOMSIGHT_MUST_CHECK oomsight_status oomsight_machine_open(const oomsight_machine_params *params,
                                                                       oomsight_machine **ret_machine,
                                                                       oomsight_error *reterr);
OOMSIGHT_API void oomsight_machine_close(oomsight_machine *machine); /* NULL is fine */

/* 1: a driver is here and does not answer as it should. */
OOMSIGHT_API int oomsight_machine_troubled(const oomsight_machine *machine);

/* For an issue: text or JSON. Secrets of the environment are hidden. */
OOMSIGHT_API OOMSIGHT_MUST_CHECK oomsight_status oomsight_machine_render(const oomsight_machine *machine,
                                                                         const oomsight_render_params *params,
                                                                         char **ret_text,
                                                                         oomsight_error *reterr);

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
OOMSIGHT_API OOMSIGHT_MUST_CHECK oomsight_status oomsight_measure(const oomsight_measure_params *params,
                                                                  const oomsight_render_params *render,
                                                                  char **ret_text, int *ret_whole,
                                                                  oomsight_error *reterr);

/* ---- plan ------------------------------------------------------------------------------------------------------ */

/* The start-up of an engine, foreseen. */
typedef struct oomsight_plan oomsight_plan;

typedef enum oomsight_verdict {
    OOMSIGHT_VERDICT_FITS = 0,
    OOMSIGHT_VERDICT_TIGHT = 1,   /* inside the error bar */
    OOMSIGHT_VERDICT_FAILS = 2,   /* an allocation fails */
    OOMSIGHT_VERDICT_REFUSED = 3, /* the engine itself says no */
    OOMSIGHT_VERDICT_UNKNOWN = 4  /* something needed for an answer is missing: see the notes */
} oomsight_verdict;

/* Parameters of a plan. Start from OOMSIGHT_PLAN_PARAMS_INIT; new fields are only ever added at the end. */
typedef struct oomsight_plan_params {
    size_t size;
    const oomsight_data *data;   /* must outlive the call; NULL is an error */
    const oomsight_model *model; /* NULL: opened from the MODEL word of `command` */
    const char *const *command;  /* `vllm serve MODEL ...`, word for word; must live until the call returns */
    size_t command_count;
    /* "A30x4", "5090", ...; "all": on which of them does it start, see oomsight_plan_choices(); NULL: that of `machine`, or an unknown
     * device, then gpu_total_bytes is needed */
    const char *gpu;
    uint64_t gpu_total_bytes;       /* what the device or slice shows; 0: from data */
    uint64_t gpu_used_bytes;        /* held by others */
    const char *compute_capability; /* "9.0"; NULL: from data */
    const char *engine_version;     /* "0.19.1"; NULL: newest known */
    const char *const *environment; /* "NAME=value" words that the engine would see; may be NULL */
    size_t environment_count;
    int skip_fixes; /* 1: no search for flags that fit when it does not, nor for the inert ones */
    int allow_hub;  /* 1: an unknown MODEL may be fetched (config and headers only) */
    /* advanced: layer specs that replace the model's own in KV sizing; may be NULL */
    const char *kv_layers_json;
    uint64_t host_ram_bytes; /* of the machine, for weights kept in host memory; 0: 64 GiB are assumed */
    /* 1: gpu_used_bytes is meant as it stands, 0 too; else on unified memory something is assumed */
    int gpu_used_known;
    /* where it would start: answers for the GPU, what others hold of it, the release and the RAM when they are not given; may be NULL */
    const oomsight_machine *machine;
    const char *engine; /* "vllm", ...; NULL: the one that the command starts */
} oomsight_plan_params;
#define OOMSIGHT_PLAN_PARAMS_INIT                                                                            \
    {                                                                                                        \
        sizeof(oomsight_plan_params), NULL, NULL, NULL, 0, NULL, 0, 0, NULL, NULL, NULL, 0, 0, 0, NULL, 0,   \
            0, NULL, NULL                                                                                    \
    }

/* On OOMSIGHT_OK *ret_plan is the caller's, to be given to oomsight_plan_free(). Otherwise *ret_plan is untouched
 * and *reterr (may be NULL) says why. */
OOMSIGHT_API OOMSIGHT_MUST_CHECK oomsight_status oomsight_plan_create(const oomsight_plan_params *params,
                                                                      oomsight_plan **ret_plan,
                                                                      oomsight_error *reterr);
OOMSIGHT_API void oomsight_plan_free(oomsight_plan *plan); /* NULL is fine */

OOMSIGHT_API oomsight_verdict oomsight_plan_verdict(const oomsight_plan *plan);
/* "starts", "likely starts", "likely fails", "fails" or "can't tell": what people read. `tight` is one of the two in between. */
OOMSIGHT_API const char *oomsight_plan_answer(const oomsight_plan *plan);
/* Of a plan for every GPU ("all"): on how many it likely starts. -1: it was made for one. */
OOMSIGHT_API int oomsight_plan_choices(const oomsight_plan *plan);
OOMSIGHT_API double
oomsight_plan_probability(const oomsight_plan *plan); /* of starting, 0 to 1; -1: can't tell */

/* The words of the best fix that are flags without blanks, so that they survive a shell's $( ); *ret_count 0: it starts as it
 * is. NULL: there is none. They live as long as the plan. */
OOMSIGHT_API const char *const *oomsight_plan_best_words(const oomsight_plan *plan, size_t *ret_count);
OOMSIGHT_API const char *oomsight_plan_phase(const oomsight_plan *plan); /* NULL when nothing fails */
OOMSIGHT_API uint64_t oomsight_plan_weights_bytes(const oomsight_plan *plan);
OOMSIGHT_API uint64_t oomsight_plan_kv_tokens(const oomsight_plan *plan);

OOMSIGHT_API OOMSIGHT_MUST_CHECK oomsight_status oomsight_plan_render(const oomsight_plan *plan,
                                                                      const oomsight_render_params *params,
                                                                      char **ret_text,
                                                                      oomsight_error *reterr);

/* Several plans of one command side by side, for example over engine versions. */
OOMSIGHT_API OOMSIGHT_MUST_CHECK oomsight_status oomsight_plans_render(const oomsight_plan *const *plans,
                                                                       size_t count,
                                                                       const oomsight_render_params *params,
                                                                       char **ret_text,
                                                                       oomsight_error *reterr);

/* The ledger behind the verdict: the worst moment of each phase, in the order in which the engine goes through them. */
typedef struct oomsight_moment {
    size_t size; /* set by the caller; as far as it reaches the rest is filled */
    const char *phase;
    uint64_t peak_bytes, peak_low, peak_high; /* needed */
    uint64_t limit_bytes;                     /* there is */
    int ok;                                   /* 1: it fits at the best estimate */
    size_t hold_count;                        /* rows, which add up to peak_bytes */
} oomsight_moment;
typedef struct oomsight_hold {
    size_t size; /* set by the caller */
    const char *owner;
    uint64_t bytes, low, high;
    const char *source; /* "measured", "read", "derived", "estimated" */
    const char *how;    /* the formula or where it was read; NULL when the owner says it all */
} oomsight_hold;
OOMSIGHT_API size_t oomsight_plan_moment_count(const oomsight_plan *plan);
/* 1: *ret_moment is filled. 0: there is no such moment, and nothing was touched. */
OOMSIGHT_API int oomsight_plan_moment(const oomsight_plan *plan, size_t index, oomsight_moment *ret_moment);
OOMSIGHT_API int oomsight_plan_hold(const oomsight_plan *plan, size_t moment_index, size_t index,
                                    oomsight_hold *ret_hold);

/* What would help, best first; none was looked for with skip_fixes. */
typedef struct oomsight_fix {
    size_t size;       /* set by the caller */
    const char *flags; /* to add to the command, quoted for a shell; "" when a flag is only left out */
    oomsight_verdict verdict;
    uint64_t kv_tokens;
    const char *keeps, *gives_up; /* NULL: nothing worth a word */
    const char *
        name; /* "least_change", "longest_context", "most_requests": an answer, first in the list; else NULL */
    const char *command;                    /* the whole command, to paste */
    const char *without;                    /* a flag to leave out, NULL: none */
    double probability;                     /* of starting */
    uint64_t likely_length, certain_length; /* of an answer: the longest requests with these flags, 0: none */
} oomsight_fix;
OOMSIGHT_API size_t oomsight_plan_fix_count(const oomsight_plan *plan);
OOMSIGHT_API int oomsight_plan_fix(const oomsight_plan *plan, size_t index, oomsight_fix *ret_fix);

/* What was assumed, what is not modelled, what may be mistyped. NULL past the last one. */
OOMSIGHT_API const char *oomsight_plan_note(const oomsight_plan *plan, size_t index);

/* A word of the causes (docs/formats), NULL when nothing fails. */
OOMSIGHT_API const char *oomsight_plan_cause(const oomsight_plan *plan);

/* Only the flags to add of the best fix that needs nothing else ("" when it fits as it is); NULL when no fix was found. */
OOMSIGHT_API const char *oomsight_plan_best_flags(const oomsight_plan *plan);

/* The whole command of the best fix, to paste: also where a flag has to go. NULL when there is none. */
OOMSIGHT_API const char *oomsight_plan_best_command(const oomsight_plan *plan);

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
OOMSIGHT_API OOMSIGHT_MUST_CHECK oomsight_status oomsight_bisect_create(const oomsight_bisect_params *params,
                                                                        oomsight_bisect **ret_bisect,
                                                                        oomsight_error *reterr);
OOMSIGHT_API void oomsight_bisect_free(oomsight_bisect *bisect); /* NULL is fine */

/* With by_report: the release to start next; NULL when there is nothing left to ask. */
OOMSIGHT_API const char *oomsight_bisect_next(const oomsight_bisect *bisect);
/* ... and what `oomsight dryrun --json` wrote of it; `report` NULL: nothing came of it, for the reason `problem` (or NULL). */
OOMSIGHT_API OOMSIGHT_MUST_CHECK oomsight_status oomsight_bisect_answer(oomsight_bisect *bisect,
                                                                        const char *version,
                                                                        const char *report,
                                                                        const char *problem,
                                                                        oomsight_error *reterr);

/* The release with which verdict, need or tokens moved; NULL: nothing did. It lives as long as the handle. */
OOMSIGHT_API const char *oomsight_bisect_found(const oomsight_bisect *bisect);
/* Text or JSON (oomsight.bisect/1). */
OOMSIGHT_API OOMSIGHT_MUST_CHECK oomsight_status oomsight_bisect_render(const oomsight_bisect *bisect,
                                                                        const oomsight_render_params *params,
                                                                        char **ret_text,
                                                                        oomsight_error *reterr);

/* ---- replay ---------------------------------------------------------------------------------------------------- */

/* A recorded run of PyTorch's caching allocator, run again by a simulator that is exact to the byte. */
typedef struct oomsight_replay oomsight_replay;

/* Parameters of a replay. Start from OOMSIGHT_REPLAY_PARAMS_INIT; new fields are only ever added at the end. */
typedef struct oomsight_replay_params {
    size_t size;
    const char *path;  /* a memory snapshot or a trace, "-" for standard input; gz, zst, xz are unwrapped */
    const char *torch; /* "2.13.0": whose rules; NULL: the trace's, or the default */
    /* as in PYTORCH_CUDA_ALLOC_CONF, in place of the recorded ones; NULL: as recorded */
    const char *settings;
    uint64_t gpu_total_bytes; /* 0: as recorded */
    uint64_t gpu_used_bytes;  /* held by others; used when gpu_total_bytes is given */
    unsigned device;          /* which device of the input */
    /* what stands behind private pools: "driver", "clean", "sticky"; NULL: as recorded */
    const char *pool_backend;
    /* > 0: give wholly free segments back before reserving more than this part of the GPU */
    double sweep_ratio;
    int skip_what_if; /* 1: do not run the settings worth trying, too */
    /* further settings to run; may be NULL; must live until the call returns */
    const char *const *try_settings;
    size_t try_settings_count;
    int find_smallest; /* 1: also search the smallest device on which each of them survives */
} oomsight_replay_params;
#define OOMSIGHT_REPLAY_PARAMS_INIT                                                                          \
    {                                                                                                        \
        sizeof(oomsight_replay_params), NULL, NULL, NULL, 0, 0, 0, NULL, 0, 0, NULL, 0, 0                    \
    }

/* On OOMSIGHT_OK *ret_replay is the caller's, to be given to oomsight_replay_free(). Otherwise it is untouched. Running
 * out of memory inside the replay is an answer: see oomsight_replay_oom(). */
OOMSIGHT_API OOMSIGHT_MUST_CHECK oomsight_status oomsight_replay_create(const oomsight_replay_params *params,
                                                                        oomsight_replay **ret_replay,
                                                                        oomsight_error *reterr);
OOMSIGHT_API void oomsight_replay_free(oomsight_replay *replay); /* NULL is fine */

OOMSIGHT_API int oomsight_replay_oom(const oomsight_replay *replay); /* 1: a request failed */
OOMSIGHT_API const char *
oomsight_replay_oom_text(const oomsight_replay *replay); /* the first one's; or NULL */
OOMSIGHT_API uint64_t oomsight_replay_events(const oomsight_replay *replay);
OOMSIGHT_API uint64_t oomsight_replay_peak_allocated_bytes(const oomsight_replay *replay);
OOMSIGHT_API uint64_t oomsight_replay_peak_reserved_bytes(const oomsight_replay *replay);

/* Text, JSON, Markdown, or a single HTML page that needs no network. */
OOMSIGHT_API OOMSIGHT_MUST_CHECK oomsight_status oomsight_replay_render(const oomsight_replay *replay,
                                                                        const oomsight_render_params *params,
                                                                        char **ret_text,
                                                                        oomsight_error *reterr);

/* The trace as JSON lines with every answer of the simulator (docs/formats/trace.md). */
OOMSIGHT_API OOMSIGHT_MUST_CHECK oomsight_status oomsight_replay_render_events(const oomsight_replay *replay,
                                                                               char **ret_text,
                                                                               oomsight_error *reterr);

/* ---- explain --------------------------------------------------------------------------------------------------- */

/* Logs, read and understood: one entry per distinct incident, or one for a log without any. */
typedef struct oomsight_explanation oomsight_explanation;

/* Parameters of an explanation. Start from OOMSIGHT_EXPLAIN_PARAMS_INIT; new fields are only ever added at the end. */
typedef struct oomsight_explain_params {
    size_t size;
    const oomsight_data *data; /* must outlive the call; NULL is an error */
    const char *const *paths;  /* files, "-" is standard input; must live until the call returns */
    size_t path_count;
    const char *text; /* a log in memory instead of `paths`; need not be zero-terminated */
    size_t text_bytes;
    uint64_t expand_limit_bytes; /* what archives may expand to, 0: 8 GiB */
    int allow_hub;               /* 1: a model named in the log may be fetched (config and headers only) */
    /* What the log does not tell; each may be NULL, and what the log tells stands. */
    const char *gpu, *model, *engine_version;
} oomsight_explain_params;
#define OOMSIGHT_EXPLAIN_PARAMS_INIT                                                                         \
    {                                                                                                        \
        sizeof(oomsight_explain_params), NULL, NULL, 0, NULL, 0, 0, 0, NULL, NULL, NULL                      \
    }

/* On OOMSIGHT_OK *ret_explanation is the caller's, to be given to oomsight_explain_free(). Otherwise it is untouched
 * and *reterr (may be NULL) says why. "No incident" is an answer, not a failure. */
OOMSIGHT_API OOMSIGHT_MUST_CHECK oomsight_status oomsight_explain_create(
    const oomsight_explain_params *params, oomsight_explanation **ret_explanation, oomsight_error *reterr);
OOMSIGHT_API void oomsight_explain_free(oomsight_explanation *explanation); /* NULL is fine */

/* At least 1. The accessors below take an index under it; another index gives 0 or NULL. */
OOMSIGHT_API size_t oomsight_explain_count(const oomsight_explanation *explanation);
OOMSIGHT_API int oomsight_explain_is_oom(const oomsight_explanation *explanation, size_t index);
OOMSIGHT_API const char *oomsight_explain_phase(const oomsight_explanation *explanation, size_t index);
OOMSIGHT_API const char *oomsight_explain_cause(const oomsight_explanation *explanation, size_t index);
OOMSIGHT_API const char *oomsight_explain_signature(const oomsight_explanation *explanation,
                                                    size_t index); /* NULL: no record fits */

OOMSIGHT_API OOMSIGHT_MUST_CHECK oomsight_status
oomsight_explain_render(const oomsight_explanation *explanation, const oomsight_render_params *params,
                        char **ret_text, oomsight_error *reterr);

/* A log that grows. Nothing here waits or starts a thread: the caller polls as often as it likes, any number of files. */
typedef struct oomsight_follow oomsight_follow;

/* Parameters of following. Start from OOMSIGHT_FOLLOW_PARAMS_INIT; new fields are only ever added at the end. */
typedef struct oomsight_follow_params {
    size_t size;
    const oomsight_data *data; /* must outlive the handle; NULL is an error */
    const char *path; /* copied; the file may come later, be cut, or be replaced by another of its name */
    int allow_hub;    /* as for an explanation */
} oomsight_follow_params;
#define OOMSIGHT_FOLLOW_PARAMS_INIT                                                                          \
    {                                                                                                        \
        sizeof(oomsight_follow_params), NULL, NULL, 0                                                        \
    }

OOMSIGHT_API OOMSIGHT_MUST_CHECK oomsight_status oomsight_follow_open(const oomsight_follow_params *params,
                                                                      oomsight_follow **ret_follow,
                                                                      oomsight_error *reterr);
OOMSIGHT_API void oomsight_follow_close(oomsight_follow *follow); /* NULL is fine */

/* Read what is new; *ret_bytes says how much. `settle` 1: nothing has come for a while, so what looks like a failure is
 * taken as complete. *ret_explanation is NULL, or holds the incidents that ended, is the handle's, and lives until the
 * next call. */
OOMSIGHT_API OOMSIGHT_MUST_CHECK oomsight_status
oomsight_follow_poll(oomsight_follow *follow, int settle, uint64_t *ret_bytes,
                     const oomsight_explanation **ret_explanation, oomsight_error *reterr);

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
    const char *metrics_address;          /* "PORT" (on 127.0.0.1) or "ADDRESS:PORT"; NULL: no listener */
    const char *metrics_file;             /* for a textfile collector, replaced as a whole; NULL: none */
    size_t most_files;                    /* followed at once, 0: 4096 */
    int allow_hub;                        /* as for an explanation */
    const oomsight_render_params *render; /* JSON (a line per incident; NULL) or text */
    void (*on_trouble)(void *context, const char *path, const char *sentence); /* NULL: nobody is told */
    void *trouble_context;
} oomsight_agent_params;
#define OOMSIGHT_AGENT_PARAMS_INIT                                                                           \
    {                                                                                                        \
        sizeof(oomsight_agent_params), NULL, NULL, 0, NULL, NULL, NULL, 0, 0, NULL, NULL, NULL               \
    }

OOMSIGHT_API OOMSIGHT_MUST_CHECK oomsight_status oomsight_agent_open(const oomsight_agent_params *params,
                                                                     oomsight_agent **ret_agent,
                                                                     oomsight_error *reterr);
OOMSIGHT_API void oomsight_agent_close(oomsight_agent *agent); /* NULL is fine */

/* Wait a while for something new, read it, and give out what has ended (docs/formats/agent.md). The text is the agent's. Nothing
 * more is read until oomsight_agent_delivered() says that whoever takes it has it: only then positions move on, so that a crash
 * in between repeats incidents and loses none. oomsight_agent_refused() counts a failed attempt, and the same text is given
 * again. */
OOMSIGHT_API OOMSIGHT_MUST_CHECK oomsight_status oomsight_agent_poll(oomsight_agent *agent, int wait_ms,
                                                                     const char **ret_text, size_t *ret_bytes,
                                                                     oomsight_error *reterr);
OOMSIGHT_API void oomsight_agent_delivered(oomsight_agent *agent);
OOMSIGHT_API void oomsight_agent_refused(oomsight_agent *agent);
/* As a poll, at the end: what is open counts as over. */
OOMSIGHT_API OOMSIGHT_MUST_CHECK oomsight_status oomsight_agent_finish(oomsight_agent *agent,
                                                                       const char **ret_text,
                                                                       size_t *ret_bytes,
                                                                       oomsight_error *reterr);
OOMSIGHT_API int
oomsight_agent_ended(const oomsight_agent *agent); /* standard input, the only path, is over */
OOMSIGHT_API int oomsight_agent_found_oom(const oomsight_agent *agent);
OOMSIGHT_API uint64_t oomsight_agent_bytes_read(const oomsight_agent *agent);
/* The metrics as they stand; *ret_text is the caller's, to be given to oomsight_text_free(). */
OOMSIGHT_API OOMSIGHT_MUST_CHECK oomsight_status oomsight_agent_metrics(oomsight_agent *agent,
                                                                        char **ret_text,
                                                                        oomsight_error *reterr);
OOMSIGHT_API unsigned oomsight_agent_metrics_port(const oomsight_agent *agent); /* 0: no listener */

/* ---- dry runs -------------------------------------------------------------------------------------------------- */

/* The real engine on devices that are not there. This part makes the devices and reads the result; starting the process
 * with the stand-ins in front of it is the caller's (the command `oomsight dryrun` does it). */
typedef struct oomsight_dryrun oomsight_dryrun;

/* Parameters of a dry run. Start from OOMSIGHT_DRYRUN_PARAMS_INIT; new fields are only ever added at the end. */
typedef struct oomsight_dryrun_params {
    size_t size;
    const oomsight_data *data; /* must outlive the call; NULL is an error */
    const char *segment_path;  /* a file that does not exist yet; the stand-ins find it in OOMSIGHT_SEGMENT */
    const char *gpu;           /* "A30x4"; NULL: then gpu_total_bytes is needed */
    uint64_t gpu_total_bytes;  /* 0: from data */
    uint64_t gpu_used_bytes;   /* held by others */
    uint64_t slice_bytes;      /* 0: the whole device; else what a slicing layer lets through */
    uint64_t outside_bytes;    /* what a process takes outside PyTorch's allocator, when outside_known is 1 */
    int outside_known;         /* 0: a model of context, NCCL, kernels and graphs */
    unsigned capability;       /* 10 * major + minor; 0: from data */
    unsigned device_count;     /* 0: from the count in `gpu` */
    const char *engine_version; /* for the report; may be NULL */
    const char *trace_path;     /* NULL: no trace */
    const char *until;          /* a phase: oomsight_dryrun_line() says when it begins. NULL: none */
    uint64_t
        machine_bytes; /* host and device share one memory of this size; 0: only if it is such a device */
    const char *
        engine; /* its name, for the report; NULL: the first that is known; "torch": a program that is none */
    uint64_t fail_after; /* the device allocation of this number is denied; 0: none */
} oomsight_dryrun_params;
#define OOMSIGHT_DRYRUN_PARAMS_INIT                                                                          \
    {                                                                                                        \
        sizeof(oomsight_dryrun_params), NULL, NULL, NULL, 0, 0, 0, 0, 0, 0, 0, NULL, NULL, NULL, 0, NULL, 0  \
    }

/* On OOMSIGHT_OK *ret_dryrun is the caller's, to be given to oomsight_dryrun_free(); the file is the caller's to remove. */
OOMSIGHT_API OOMSIGHT_MUST_CHECK oomsight_status oomsight_dryrun_create(const oomsight_dryrun_params *params,
                                                                        oomsight_dryrun **ret_dryrun,
                                                                        oomsight_error *reterr);
OOMSIGHT_API void oomsight_dryrun_free(oomsight_dryrun *dryrun); /* NULL is fine */

/* One line of the engine's output, without its newline. Returns what is known so far, bits of the enum below. */
enum {
    OOMSIGHT_DRYRUN_READY = 1,
    OOMSIGHT_DRYRUN_OUT_OF_MEMORY = 2,
    OOMSIGHT_DRYRUN_REFUSED = 4,
    OOMSIGHT_DRYRUN_REACHED = 8 /* the phase of `until`, or a later one */
};
OOMSIGHT_API unsigned oomsight_dryrun_line(oomsight_dryrun *dryrun, const char *line, size_t len);

/* What the run holds and does at this moment. Start from OOMSIGHT_DRYRUN_MOMENT_INIT; new fields are only ever added at the end. */
typedef struct oomsight_dryrun_moment {
    size_t size;
    uint64_t device_bytes; /* held on the fullest device */
    uint64_t
        calls; /* that the stand-ins have seen; stands still when no process does anything with its device */
} oomsight_dryrun_moment;
#define OOMSIGHT_DRYRUN_MOMENT_INIT                                                                          \
    {                                                                                                        \
        sizeof(oomsight_dryrun_moment), 0, 0                                                                 \
    }
OOMSIGHT_API void oomsight_dryrun_watch(const oomsight_dryrun *dryrun, oomsight_dryrun_moment *ret_moment);

/* A process of the command, and what it holds of the host's memory (/proc/PID/status). */
typedef struct oomsight_dryrun_process {
    uint32_t pid;
    char name[16];
    uint64_t resident_bytes; /* VmRSS */
    uint64_t shared_bytes;   /* RssShmem: part of it, and counted for each process that has the page */
} oomsight_dryrun_process;

/* All processes of the command at this moment; of each phase the moment is kept at which most is resident. */
OOMSIGHT_API void oomsight_dryrun_host(oomsight_dryrun *dryrun, const oomsight_dryrun_process *processes,
                                       size_t count);

/* Requests that were sent when it was ready, and what became of them. */
typedef struct oomsight_dryrun_load {
    unsigned requests;
    unsigned answered, refused, failed; /* refused: HTTP 4xx; failed: 5xx, no answer, half of one */
    unsigned aborted;                   /* by the sender, as it was asked to */
    int hung;                           /* 1: it was given up because nothing moved any more */
    double seconds;                     /* from the first request to the last answer */
    /* held when the first part was answered and when all were; 0: not known */
    uint64_t device_first_bytes, device_last_bytes;
    uint64_t host_first_bytes, host_last_bytes; /* resident memory of its processes */
} oomsight_dryrun_load;

/* What was held while a load was on; in the order of time. */
typedef struct oomsight_dryrun_sample {
    unsigned load, done; /* which load; requests of it that had an end */
    uint64_t device_bytes, host_bytes;
} oomsight_dryrun_sample;

/* How the command ended. Start from OOMSIGHT_DRYRUN_ENDING_INIT; new fields are only ever added at the end. */
typedef struct oomsight_dryrun_ending {
    size_t size;
    int child_exit;         /* its code; 0 when the caller stopped it because it was ready; 128 + signal */
    int child_signal;       /* that ended it; 0: none */
    int timed_out;          /* 1: it was stopped because it took too long */
    int interrupted;        /* 1: it was stopped because the caller was told to */
    unsigned load_requests; /* that were to be answered when it was ready; 0: none */
    unsigned load_answered; /* or aborted as asked */
    const oomsight_dryrun_load *loads; /* the same, one by one; may be NULL */
    size_t load_count;
    const oomsight_dryrun_sample *samples; /* may be NULL; for growth at least 40 of a load */
    size_t sample_count;
} oomsight_dryrun_ending;
#define OOMSIGHT_DRYRUN_ENDING_INIT                                                                          \
    {                                                                                                        \
        sizeof(oomsight_dryrun_ending), 0, 0, 0, 0, 0, 0, NULL, 0, NULL, 0                                   \
    }

/* The processes are gone: read what was measured. A command that a signal ended, that was stopped before it was ready or that
 * left a request unanswered has no verdict of OOMSIGHT_VERDICT_FITS. */
OOMSIGHT_API OOMSIGHT_MUST_CHECK oomsight_status oomsight_dryrun_end(oomsight_dryrun *dryrun,
                                                                     const oomsight_dryrun_ending *ending,
                                                                     oomsight_error *reterr);

/* The same when there is nothing more to say of it than its code; above 128 it is that of a signal. */
OOMSIGHT_API OOMSIGHT_MUST_CHECK oomsight_status oomsight_dryrun_finish(oomsight_dryrun *dryrun,
                                                                        int child_exit,
                                                                        oomsight_error *reterr);
OOMSIGHT_API oomsight_verdict oomsight_dryrun_verdict(const oomsight_dryrun *dryrun);
OOMSIGHT_API OOMSIGHT_MUST_CHECK oomsight_status oomsight_dryrun_render(const oomsight_dryrun *dryrun,
                                                                        const oomsight_render_params *params,
                                                                        char **ret_text,
                                                                        oomsight_error *reterr);

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
OOMSIGHT_API OOMSIGHT_MUST_CHECK oomsight_status oomsight_run_create(const oomsight_run_params *params,
                                                                     oomsight_run **ret_run,
                                                                     oomsight_error *reterr);
/* Divides the devices with those of `paths` that carry the same name and whose launchers live: their segments learn of this run and it of
 * them. Its budget is the given one, checked against what the others leave of the smallest device, or without one what they leave.
 * Before the command is started; who starts under one name does it one at a time. */
OOMSIGHT_API OOMSIGHT_MUST_CHECK oomsight_status oomsight_run_share(oomsight_run *run, const char *name,
                                                                    const char *const *paths,
                                                                    size_t path_count,
                                                                    oomsight_error *reterr);
/* The segment of a run that somebody else made. */
OOMSIGHT_API OOMSIGHT_MUST_CHECK oomsight_status oomsight_run_open(const char *segment_path,
                                                                   oomsight_run **ret_run,
                                                                   oomsight_error *reterr);
OOMSIGHT_API void oomsight_run_free(oomsight_run *run);              /* NULL is fine */
OOMSIGHT_API uint64_t oomsight_run_refused(const oomsight_run *run); /* calls, so far */
#define OOMSIGHT_RUN_ENGINE 16u                                      /* the log is that of an engine */
/* A line that the command printed: where it is, and whose what it takes from now on is. What it says so far, of OOMSIGHT_DRYRUN_READY,
 * OOMSIGHT_DRYRUN_OUT_OF_MEMORY, OOMSIGHT_DRYRUN_REFUSED and OOMSIGHT_RUN_ENGINE. */
OOMSIGHT_API unsigned oomsight_run_line(oomsight_run *run, const char *line, size_t len);
/* The last allocations of the process that was refused first, or holds most, as a trace for oomsight_replay_create() and
 * `oomsight replay`; `path` is written anew. */
OOMSIGHT_API OOMSIGHT_MUST_CHECK oomsight_status oomsight_run_trace(const oomsight_run *run, const char *path,
                                                                    oomsight_error *reterr);
/* bundle.json of `folder`, whose other files are there: phase and cause by incident.json (explain.json where nothing failed), the verdict of plan.json, what was held, the
 * names of all files. `why`: "refused", "out of memory" or "asked". */
OOMSIGHT_API OOMSIGHT_MUST_CHECK oomsight_status oomsight_run_bundle_index(const oomsight_run *run,
                                                                           const char *folder,
                                                                           const char *why,
                                                                           oomsight_error *reterr);
OOMSIGHT_API uint64_t oomsight_run_budget(const oomsight_run *run); /* of the fullest device; 0: not known */
/* Compute capability of the same device as NVML tells it, as 89; 0: not told. *ret_name lives as long as the run; "": not told. */
OOMSIGHT_API unsigned oomsight_run_gpu(const oomsight_run *run, const char **ret_name);
/* Where the last bundle about it is, told to whoever opens the segment. */
OOMSIGHT_API void oomsight_run_bundle_set(oomsight_run *run, const char *path);
OOMSIGHT_API unsigned oomsight_run_bundles(const oomsight_run *run,
                                           const char **ret_path); /* how many so far */
/* A file that a launcher left behind: a segment of ours whose launcher is gone, and so is every process in it. 1: it may be removed. */
OOMSIGHT_API int oomsight_run_abandoned(const char *segment_path);
/* Of the smallest device that NVML names; 0: it names none. */
OOMSIGHT_API uint64_t oomsight_run_device_bytes(const oomsight_run *run);
/* Looks at the processes below `pid`: those that use CUDA and are not counted by the guard are named in report and metrics. On OOMSIGHT_OK
 * *ret_text has a line for each that was not told before, or is NULL; to be given to oomsight_text_free(). Call it every second or so. */
OOMSIGHT_API OOMSIGHT_MUST_CHECK oomsight_status oomsight_run_look(oomsight_run *run, int pid,
                                                                   char **ret_text, oomsight_error *reterr);
/* Of the budget or reserve. */
typedef enum oomsight_run_limit {
    OOMSIGHT_RUN_NO_LIMIT,
    OOMSIGHT_RUN_LIMIT_IN_FORCE,
    OOMSIGHT_RUN_LIMIT_NOT_FOR_ALL, /* a process is known that is not counted */
    OOMSIGHT_RUN_LIMIT_FOR_NOBODY   /* no process came to the guard */
} oomsight_run_limit;
OOMSIGHT_API oomsight_run_limit oomsight_run_limited(const oomsight_run *run);
/* The process that made the segment and answers SIGUSR2 with a bundle; 0: it is no more. */
OOMSIGHT_API int oomsight_run_launcher(const oomsight_run *run);
/* Take down what is held now, `seconds` after the first time; call it every second or so, and renderings name what grows. */
OOMSIGHT_API void oomsight_run_watch(oomsight_run *run, double seconds);
/* What the engine answered to GET /metrics, as it came: renderings show its requests and how full its KV cache is. NULL: no answer. */
OOMSIGHT_API void oomsight_run_serving(oomsight_run *run, const char *metrics, size_t len);
OOMSIGHT_API OOMSIGHT_MUST_CHECK oomsight_status oomsight_run_render(const oomsight_run *run,
                                                                     const oomsight_render_params *params,
                                                                     char **ret_text, oomsight_error *reterr);

/* The figures of several runs for Prometheus, family by family; each run's samples have its number of `pids` as a label. */
OOMSIGHT_API OOMSIGHT_MUST_CHECK oomsight_status oomsight_run_metrics(oomsight_run *const *runs,
                                                                      const int *pids, size_t count,
                                                                      char **ret_text,
                                                                      oomsight_error *reterr);

/* ---- check ----------------------------------------------------------------------------------------------------- */

/* The engine commands in deployment files, each planned: shell scripts, Dockerfiles, systemd units, compose files, Kubernetes
 * manifests, values of vLLM's production-stack chart. */
typedef struct oomsight_check oomsight_check;

/* Parameters of a check. Start from OOMSIGHT_CHECK_PARAMS_INIT; new fields are only ever added at the end. */
typedef struct oomsight_check_params {
    size_t size;
    const oomsight_data *data; /* must outlive the call; NULL is an error */
    const char *const *paths;  /* files and folders, "-": standard input; must live until the call returns */
    size_t path_count;
    const char *gpu; /* for commands whose file declares none; may be NULL */
    uint64_t gpu_total_bytes, gpu_used_bytes;
    const char *compute_capability;
    const char *engine_version; /* for commands whose image or file tells none; NULL: newest known */
    /* where models lie that the files name otherwise, by their last name; may be NULL */
    const char *models_dir;
    int allow_hub;
    int gpu_used_known; /* as for a plan */
} oomsight_check_params;
#define OOMSIGHT_CHECK_PARAMS_INIT                                                                           \
    {                                                                                                        \
        sizeof(oomsight_check_params), NULL, NULL, 0, NULL, 0, 0, NULL, NULL, NULL, 0, 0                     \
    }

/* On OOMSIGHT_OK *ret_check is the caller's, to be given to oomsight_check_free(). Otherwise it is untouched. A command that
 * does not fit, or that cannot be planned, is an answer. */
OOMSIGHT_API OOMSIGHT_MUST_CHECK oomsight_status oomsight_check_create(const oomsight_check_params *params,
                                                                       oomsight_check **ret_check,
                                                                       oomsight_error *reterr);
OOMSIGHT_API void oomsight_check_free(oomsight_check *check); /* NULL is fine */

/* Commands found, and parts of files that were not looked at: a document, a container of another engine, a file too large. */
OOMSIGHT_API size_t oomsight_check_count(const oomsight_check *check);
OOMSIGHT_API size_t oomsight_check_failing(const oomsight_check *check); /* of them: do not start */
/* Of them: commands that only likely start, and what was not looked at. */
OOMSIGHT_API size_t oomsight_check_doubtful(const oomsight_check *check);
/* Of them: commands that could not be planned, and what was not looked at. A gate passes when this and failing are 0. */
OOMSIGHT_API size_t oomsight_check_unplanned(const oomsight_check *check);

/* Text, JSON, annotations of a GitHub job, or SARIF. */
OOMSIGHT_API OOMSIGHT_MUST_CHECK oomsight_status oomsight_check_render(const oomsight_check *check,
                                                                       const oomsight_render_params *params,
                                                                       char **ret_text,
                                                                       oomsight_error *reterr);

/* ---- what is it? ------------------------------------------------------------------------------------------------- */

/* What a text is that somebody pasted or dropped, as text or JSON: a command or manifest (for a check), a model's config, a memory
 * snapshot or trace (for a replay), a log (for an explanation), a command of an engine that is not planned, nothing. `path` may be
 * "-"; the first 16 MiB are looked at. *ret_text is the caller's, to be given to oomsight_text_free(). */
OOMSIGHT_API OOMSIGHT_MUST_CHECK oomsight_status oomsight_what_render(const oomsight_data *data,
                                                                      const char *path,
                                                                      const oomsight_render_params *params,
                                                                      char **ret_text,
                                                                      oomsight_error *reterr);

/* ---- matrix ---------------------------------------------------------------------------------------------------- */

/* Models x GPUs x flags x engine versions, from a file (docs/formats/matrix.md). Points are planned here, on threads, and come
 * out one by one; none is kept. Dry starts are the caller's to run (the command `oomsight matrix` does it): each point is a
 * command, its report is handed back. What was seen so far can be rendered at any time. */
typedef struct oomsight_matrix oomsight_matrix;

/* A number that is not known. */
#define OOMSIGHT_UNKNOWN UINT64_MAX

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
} oomsight_matrix_params;
#define OOMSIGHT_MATRIX_PARAMS_INIT                                                                          \
    {                                                                                                        \
        sizeof(oomsight_matrix_params), NULL, NULL, NULL, 0, 0, NULL, NULL, NULL, 0, NULL, NULL, 0, NULL, 0, \
            0, 0                                                                                             \
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
} oomsight_matrix_point;

/* On OOMSIGHT_OK *ret_matrix is the caller's, to be given to oomsight_matrix_close(). Otherwise it is untouched. A model that
 * cannot be read is no failure: its points say so. */
OOMSIGHT_API OOMSIGHT_MUST_CHECK oomsight_status oomsight_matrix_open(const oomsight_matrix_params *params,
                                                                      oomsight_matrix **ret_matrix,
                                                                      oomsight_error *reterr);
OOMSIGHT_API void oomsight_matrix_close(oomsight_matrix *matrix); /* NULL is fine */

OOMSIGHT_API uint64_t oomsight_matrix_points(const oomsight_matrix *matrix); /* excluded ones are counted */
OOMSIGHT_API int oomsight_matrix_is_dryrun(const oomsight_matrix *matrix);

/* The next point, in order; NULL after the last one. Not for dry starts. */
OOMSIGHT_API OOMSIGHT_MUST_CHECK oomsight_status oomsight_matrix_next(oomsight_matrix *matrix,
                                                                      const oomsight_matrix_point **ret_point,
                                                                      oomsight_error *reterr);

/* What is to be done for one point of a matrix of dry starts. */
typedef enum oomsight_matrix_need {
    OOMSIGHT_MATRIX_EXCLUDED = 0, /* nothing */
    OOMSIGHT_MATRIX_KNOWN = 1,    /* nothing: the point is answered, see *ret_point */
    OOMSIGHT_MATRIX_RUN = 2       /* run `oomsight dryrun` with the words of *ret_task */
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
OOMSIGHT_API OOMSIGHT_MUST_CHECK oomsight_status oomsight_matrix_task_of(
    oomsight_matrix *matrix, uint64_t number, oomsight_matrix_need *ret_need, oomsight_matrix_task *ret_task,
    const oomsight_matrix_point **ret_point, oomsight_error *reterr); /* the task lives until the next call */

/* The answer to it: the JSON of `oomsight dryrun`, or NULL and why there is none. Kept in the cache when it is definite. */
OOMSIGHT_API OOMSIGHT_MUST_CHECK oomsight_status oomsight_matrix_answer(
    oomsight_matrix *matrix, uint64_t number, const char *report, const char *problem, double seconds,
    unsigned attempts, const oomsight_matrix_point **ret_point, oomsight_error *reterr);

/* 0: the report of a dry run says that its engine was killed from outside, so that another try is worth while. */
OOMSIGHT_API int oomsight_matrix_report_settled(const char *report);

/* Counts of what was seen so far. */
typedef struct oomsight_matrix_tally {
    size_t size;
    uint64_t seen, fits, tight, fails, refused, unknown, unreadable, cached;
    uint64_t compared, broken, mended, moved, uncompared; /* between two versions */
    uint64_t unknown_flags; /* points with a flag that their version does not know */
    uint64_t unkept;        /* results that could not be written to the cache */
    uint64_t starts;        /* points that start or likely start */
} oomsight_matrix_tally;
#define OOMSIGHT_MATRIX_TALLY_INIT                                                                           \
    {                                                                                                        \
        sizeof(oomsight_matrix_tally), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0                        \
    }
OOMSIGHT_API void oomsight_matrix_count(const oomsight_matrix *matrix, oomsight_matrix_tally *ret_tally);

/* Text, Markdown, a page with a heat map, JUnit; JSON is the summary (points are JSON by their `line`). */
OOMSIGHT_API OOMSIGHT_MUST_CHECK oomsight_status oomsight_matrix_render(const oomsight_matrix *matrix,
                                                                        const oomsight_render_params *params,
                                                                        char **ret_text,
                                                                        oomsight_error *reterr);

/* ---- knowledge base -------------------------------------------------------------------------------------------- */

/* The list of records (`id` NULL) or one of them. Chinese when LANG or LC_ALL begins with "zh". */
OOMSIGHT_API OOMSIGHT_MUST_CHECK oomsight_status oomsight_kb_render(const oomsight_data *data, const char *id,
                                                                    const oomsight_render_params *params,
                                                                    char **ret_text, oomsight_error *reterr);

/* Are links, texts and patterns sound, and (when `fixtures_dir` is not NULL) is every record found in
 * fixtures_dir/ID/positive.log and not in fixtures_dir/ID/negative.log? One problem per line in *ret_text. */
OOMSIGHT_API OOMSIGHT_MUST_CHECK oomsight_status oomsight_kb_check(const oomsight_data *data,
                                                                   const char *fixtures_dir,
                                                                   size_t *ret_problems, char **ret_text,
                                                                   oomsight_error *reterr);

#ifdef __cplusplus
}
#endif
#endif
