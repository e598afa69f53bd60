/* oomsight: predict, explain, reproduce and prevent GPU out-of-memory in LLM serving.
 *
 *     oomsight_error error = {0};
 *     oomsight_data *data = NULL;
 *     oomsight_plan *plan = NULL;
 *     const char *command[] = {"vllm", "serve", "./Qwen3-8B", "--max-model-len", "16384"};
 *     oomsight_plan_params params = {sizeof params};
 *     if (oomsight_data_open(NULL, &data, &error) != OOMSIGHT_OK) return 1;
 *     params.data = data;
 *     params.gpu = "4090";
 *     params.command = command, params.command_count = 5;
 *     if (oomsight_plan_create(&params, &plan, &error) == OOMSIGHT_OK && oomsight_plan_verdict(plan) != OOMSIGHT_VERDICT_FITS)
 *         printf("fails in %s; add: %s\n", oomsight_plan_phase(plan), oomsight_plan_best_flags(plan));
 *     oomsight_plan_free(plan);
 *     oomsight_data_close(data);
 *
 * (examples/plan.c is this, whole.) C99 and C++11 clean. Handles are opaque and immutable after creation, so that
 * several threads may read one. Parameters travel in a struct whose first field is its size (start from its _INIT macro);
 * every other field at 0 is its default, and new fields are only ever added at the end: a program built with an older header keeps
 * working. A result is filled as far as its size reaches: 1; there is none of that index: 0, and nothing was touched. Numbers of enums
 * are written down and never reused. Strings returned by an accessor live as long as the handle they came from. "Does not fit" is
 * an answer, not a failure.
 *
 * Stable: data, rendering, models, plan, explain, replay, check, knowledge base. Experimental, may change between minor releases:
 * machine, dry runs. */
#ifndef OOMSIGHT_OOMSIGHT_H
#define OOMSIGHT_OOMSIGHT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The release of this header; oomsight_version() is the library's. */
#define OOMSIGHT_VERSION_MAJOR 0
#define OOMSIGHT_VERSION_MINOR 2
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
    char text[480];
    char field[32]; /* the parameter that is meant: "gpu"; "" where it does not apply */
} oomsight_error;

/* A sentence for a status, never NULL. */
OOMSIGHT_API const char *oomsight_status_text(oomsight_status status);

/* "0.2.0" */
OOMSIGHT_API const char *oomsight_version(void);

/* `23.5GiB`, `24GB`, `24564MiB`, `0`, plain bytes from 1 MiB on: 24 alone could be anything. 0 when `word` is no size: then *ret_bytes is
 * untouched. */
OOMSIGHT_API int oomsight_size_parse(const char *word, uint64_t *ret_bytes);

/* A number that is not known. */
#define OOMSIGHT_UNKNOWN UINT64_MAX

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
    OOMSIGHT_FORMAT_JUNIT = 6,  /* matrix of the command only */
    OOMSIGHT_FORMAT_PATCH = 7   /* check only: unified diffs of the files, for `patch -p0` */
} oomsight_format;

typedef struct oomsight_render_params {
    size_t size;
    oomsight_format format;
    int color;            /* 0 none, 1 ANSI */
    int ascii;            /* 1: no character outside ASCII */
    unsigned width;       /* columns of a text report, 0: 100 */
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
/* "will start", "will probably start", "will probably not start", "will not start" or "unknown": what people read. `tight` is one of the two
 * with "probably". */
OOMSIGHT_API const char *oomsight_plan_answer(const oomsight_plan *plan);
/* Of a plan for every GPU ("all"): on how many it will probably start. -1: it was made for one. */
OOMSIGHT_API int oomsight_plan_choices(const oomsight_plan *plan);
/* Of starting, 0 to 1; -1: can't tell. */
OOMSIGHT_API double oomsight_plan_probability(const oomsight_plan *plan);
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
    const char
        *name; /* "least_change", "longest_context", "most_requests": an answer, first in the list; NULL */
    const char *command;                    /* the whole command, to paste */
    const char *without;                    /* a flag to leave out, NULL: none */
    double probability;                     /* of starting */
    uint64_t likely_length, certain_length; /* of an answer: the longest requests with these flags, 0: none */
    const char *why; /* of advice on a log, whose `flags` may be an action in words; NULL */
    int planned;     /* 1: planned again for this model and GPU; 0: advice of the knowledge base */
} oomsight_fix;
OOMSIGHT_API size_t oomsight_plan_fix_count(const oomsight_plan *plan);
OOMSIGHT_API int oomsight_plan_fix(const oomsight_plan *plan, size_t index, oomsight_fix *ret_fix);

/* What was assumed, what is not modelled, what may be mistyped. NULL past the last one. */
OOMSIGHT_API const char *oomsight_plan_note(const oomsight_plan *plan, size_t index);
/* A word of the causes (docs/reference/formats), NULL when nothing fails. */
OOMSIGHT_API const char *oomsight_plan_cause(const oomsight_plan *plan);
/* Only the flags to add of the best fix that needs nothing else ("" when it fits as it is); NULL when no fix was found. */
OOMSIGHT_API const char *oomsight_plan_best_flags(const oomsight_plan *plan);
/* The whole command of the best fix, to paste: also where a flag has to go. NULL when there is none. */
OOMSIGHT_API const char *oomsight_plan_best_command(const oomsight_plan *plan);

/* ---- replay ---------------------------------------------------------------------------------------------------- */

/* A recorded run of PyTorch's caching allocator, run again by a simulator that is exact to the byte. */
typedef struct oomsight_replay oomsight_replay;

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

OOMSIGHT_API int oomsight_replay_oom(const oomsight_replay *replay);              /* 1: a request failed */
OOMSIGHT_API const char *oomsight_replay_oom_text(const oomsight_replay *replay); /* of the first; NULL */
OOMSIGHT_API uint64_t oomsight_replay_events(const oomsight_replay *replay);
OOMSIGHT_API uint64_t oomsight_replay_peak_allocated_bytes(const oomsight_replay *replay);
OOMSIGHT_API uint64_t oomsight_replay_peak_reserved_bytes(const oomsight_replay *replay);

/* Text, JSON, Markdown, or a single HTML page that needs no network. */
OOMSIGHT_API OOMSIGHT_MUST_CHECK oomsight_status oomsight_replay_render(const oomsight_replay *replay,
                                                                        const oomsight_render_params *params,
                                                                        char **ret_text,
                                                                        oomsight_error *reterr);

/* ---- explain --------------------------------------------------------------------------------------------------- */

/* Logs, read and understood: one entry per distinct incident, or one for a log without any. */
typedef struct oomsight_explanation oomsight_explanation;

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
    const char *gpu, *model, *engine_version, *engine;
} oomsight_explain_params;
#define OOMSIGHT_EXPLAIN_PARAMS_INIT                                                                         \
    {                                                                                                        \
        sizeof(oomsight_explain_params), NULL, NULL, 0, NULL, 0, 0, 0, NULL, NULL, NULL, NULL                \
    }

/* On OOMSIGHT_OK *ret_explanation is the caller's, to be given to oomsight_explain_free(). Otherwise it is untouched
 * and *reterr (may be NULL) says why. "No incident" is an answer, not a failure. */
OOMSIGHT_API OOMSIGHT_MUST_CHECK oomsight_status oomsight_explain_create(
    const oomsight_explain_params *params, oomsight_explanation **ret_explanation, oomsight_error *reterr);
OOMSIGHT_API void oomsight_explain_free(oomsight_explanation *explanation); /* NULL is fine */

OOMSIGHT_API size_t oomsight_explain_count(const oomsight_explanation *explanation); /* at least 1 */

/* One failure, or a log without any. Words are those of docs/formats; a text that is not known is NULL. */
typedef struct oomsight_incident {
    size_t size; /* set by the caller */
    int is_oom;
    const char *state;                         /* "out_of_memory", "refused", "failed", "no_failure", ... */
    const char *phase, *phase_why;             /* "unknown": the log does not show it */
    const char *cause, *cause_why;             /* "insufficient_info": the log does not tell */
    double confidence, phase_sure, cause_sure; /* 0 to 1 */
    const char *also[2];                       /* other causes that fit; NULL */
    const char *would_decide;                  /* what to look for; NULL: nothing is missing */
    const char *signature;                     /* record of the knowledge base; NULL: none fits */
    const char *engine, *engine_version, *model, *gpu;
    const char *plan_check;                /* does a plan of it fail alike: a sentence; NULL: none was made */
    const char *file;                      /* inside an archive, or of several inputs; "" */
    uint64_t first_line, last_line, count; /* count: equal ones */
    size_t figure_count, hold_count, fix_count; /* holds: what was in use when it failed */
} oomsight_incident;
/* A number that the log prints. */
typedef struct oomsight_figure {
    size_t size;      /* set by the caller */
    const char *name; /* "tried_bytes", "kv_available_bytes", "gpu_memory_utilization", ... */
    char unit;        /* 'B' bytes, 'N' a count, 'R' a ratio, which stands in `ratio` */
    int64_t value;    /* may be below 0 */
    double ratio;
    uint64_t line; /* where it stands; 0: the caller gave it */
} oomsight_figure;
OOMSIGHT_API int oomsight_explain_incident(const oomsight_explanation *explanation, size_t index,
                                           oomsight_incident *ret_incident);
OOMSIGHT_API int oomsight_explain_figure(const oomsight_explanation *explanation, size_t incident,
                                         size_t index, oomsight_figure *ret_figure);
OOMSIGHT_API int oomsight_explain_hold(const oomsight_explanation *explanation, size_t incident, size_t index,
                                       oomsight_hold *ret_hold);
OOMSIGHT_API int oomsight_explain_fix(const oomsight_explanation *explanation, size_t incident, size_t index,
                                      oomsight_fix *ret_fix);

OOMSIGHT_API OOMSIGHT_MUST_CHECK oomsight_status
oomsight_explain_render(const oomsight_explanation *explanation, const oomsight_render_params *params,
                        char **ret_text, oomsight_error *reterr);

/* ---- dry runs -------------------------------------------------------------------------------------------------- */

/* The real engine on devices that are not there. This part makes the devices and reads the result; starting the process
 * with the stand-ins in front of it is the caller's (the command `oomsight dryrun` does it). */
typedef struct oomsight_dryrun oomsight_dryrun;

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
    uint64_t machine_bytes;     /* host and device share one memory of this size; 0: as the device does */
    const char *engine;         /* its name; NULL: the first that is known; "torch": a program that is none */
    uint64_t fail_after;        /* the device allocation of this number is denied; 0: none */
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

/* What came of it; OOMSIGHT_UNKNOWN where the engine did not say. */
typedef struct oomsight_dryrun_result {
    size_t size; /* set by the caller */
    oomsight_verdict verdict;
    const char *phase, *message; /* where it failed and what the engine said; NULL */
    const char *engine, *engine_version, *gpu;
    unsigned device_count;
    uint64_t peak_bytes, total_bytes; /* most that was held of one device; what it has */
    uint64_t tried_bytes, weights_bytes, activation_bytes, kv_available_bytes, kv_tokens;
    int child_exit, child_signal, timed_out;
    size_t moment_count;
} oomsight_dryrun_result;
OOMSIGHT_API int oomsight_dryrun_result_get(const oomsight_dryrun *dryrun,
                                            oomsight_dryrun_result *ret_result);
OOMSIGHT_API int oomsight_dryrun_moment(const oomsight_dryrun *dryrun, size_t index,
                                        oomsight_moment *ret_moment);
OOMSIGHT_API int oomsight_dryrun_hold(const oomsight_dryrun *dryrun, size_t moment_index, size_t index,
                                      oomsight_hold *ret_hold);
OOMSIGHT_API OOMSIGHT_MUST_CHECK oomsight_status oomsight_dryrun_render(const oomsight_dryrun *dryrun,
                                                                        const oomsight_render_params *params,
                                                                        char **ret_text,
                                                                        oomsight_error *reterr);

/* ---- check ----------------------------------------------------------------------------------------------------- */

/* The engine commands in deployment files, each planned: shell scripts, Dockerfiles, systemd units, compose files, Kubernetes
 * manifests, values of vLLM's production-stack chart. */
typedef struct oomsight_check oomsight_check;

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
    const char *engine; /* whose release engine_version is; NULL: "vllm" */
} oomsight_check_params;
#define OOMSIGHT_CHECK_PARAMS_INIT                                                                           \
    {                                                                                                        \
        sizeof(oomsight_check_params), NULL, NULL, 0, NULL, 0, 0, NULL, NULL, NULL, 0, 0, NULL               \
    }

/* On OOMSIGHT_OK *ret_check is the caller's, to be given to oomsight_check_free(). Otherwise it is untouched. A command that
 * does not fit, or that cannot be planned, is an answer. */
OOMSIGHT_API OOMSIGHT_MUST_CHECK oomsight_status oomsight_check_create(const oomsight_check_params *params,
                                                                       oomsight_check **ret_check,
                                                                       oomsight_error *reterr);
OOMSIGHT_API void oomsight_check_free(oomsight_check *check); /* NULL is fine */

/* Commands found, and parts of files that were not looked at: a document, a container of another engine, a file too large. */
typedef struct oomsight_check_result {
    size_t size; /* set by the caller */
    size_t files, item_count;
    size_t failing;   /* of the items: do not start */
    size_t doubtful;  /* of them: commands that only likely start, and what was not looked at */
    size_t unplanned; /* of them: not planned or not looked at. A gate passes when this and failing are 0 */
} oomsight_check_result;
typedef struct oomsight_check_item {
    size_t size; /* set by the caller */
    const char *path;
    uint32_t line;
    const char *level;          /* "ok", "note", "warning", "error" */
    const char *kind, *name;    /* "container", "shell script"; of the service; NULL */
    const char *const *command; /* without secrets */
    size_t command_count;       /* 0: something that was not looked at: `reason` says what */
    const char *engine, *engine_version, *model, *gpu;
    oomsight_verdict verdict; /* OOMSIGHT_VERDICT_UNKNOWN: not planned */
    const char *phase;        /* NULL when nothing fails */
    const char *reason;       /* why it fails or was not planned; NULL: it starts */
    const char *best_flags, *best_command;
} oomsight_check_item;
OOMSIGHT_API int oomsight_check_result_get(const oomsight_check *check, oomsight_check_result *ret_result);
OOMSIGHT_API int oomsight_check_item_get(const oomsight_check *check, size_t index,
                                         oomsight_check_item *ret_item);

/* Text, JSON, annotations of a GitHub job, or SARIF. */
OOMSIGHT_API OOMSIGHT_MUST_CHECK oomsight_status oomsight_check_render(const oomsight_check *check,
                                                                       const oomsight_render_params *params,
                                                                       char **ret_text,
                                                                       oomsight_error *reterr);

/* ---- knowledge base -------------------------------------------------------------------------------------------- */

/* The list of records (`id` NULL) or one of them. Chinese when LANG or LC_ALL begins with "zh". */
OOMSIGHT_API OOMSIGHT_MUST_CHECK oomsight_status oomsight_kb_render(const oomsight_data *data, const char *id,
                                                                    const oomsight_render_params *params,
                                                                    char **ret_text, oomsight_error *reterr);

#ifdef __cplusplus
}
#endif
#endif
