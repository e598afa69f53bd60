#pragma once
#include "base/arena.h"
#include "base/error.h"
#include "base/json.h"
#include "base/scan.h"
#include "base/size.h"
#include "base/view.h"
#include "ledger/ledger.h"
#include "oomsight_private.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Engine versions as ordered numbers. */

/* Ordered: a later release is a larger number. */
typedef uint64_t oos_version;
#define OOS_VERSION(major, minor, patch)                                                                     \
    ((oos_version)(major) << 32 | (oos_version)(minor) << 16 | (oos_version)(patch))

/* "0.19.1", "v0.11.0", "0.8", "0.11.1.dev12+g5ded9e9aa", "0.28.0rc2". A development build numbered X.devN is code from
 * before release X: it sorts below X and not below the release before X, so the rules of that one apply. */
bool oos_version_parse(oos_view text, oos_version *ret_version);

/* The next value of a table; 0: it is no version. */
oos_version oos_version_scan(oos_scan *scan);

void oos_version_print(oos_version version, char *ret_text, size_t capacity);

/* What each release says of its own arguments: architectures it knows, bounds of numbers, quantisation methods, attention
 * backends. Read out of the releases by tools/dump_architectures.py and tools/dump_arguments.py into
 * data/engines/<engine>/. What they refuse beside these is in refusals.json. */

typedef struct oos_argument_facts oos_argument_facts;

typedef enum oos_architecture_known {
    OOS_ARCHITECTURE_HERE,
    OOS_ARCHITECTURE_LATER,   /* a later release has it, this one has not */
    OOS_ARCHITECTURE_GONE,    /* an earlier release had it */
    OOS_ARCHITECTURE_UNSURE,  /* this release was not read, and its neighbours differ */
    OOS_ARCHITECTURE_UNHEARD, /* none that was read has it */
} oos_architecture_known;

/* Numbers a flag takes. A bound that is not there is infinite. */
typedef struct oos_bounds {
    unsigned part; /* of the engine's configuration, in the order in which they are built */
    const char *part_name;
    double above, least; /* value > above, value >= least */
    double below, most;  /* value < below, value <= most */
} oos_bounds;

typedef struct oos_quant_limits {
    unsigned capability; /* the least, 75; 0: any or unknown */
    bool deprecated;
    bool file;     /* its settings are looked for in a file where the checkpoint has none */
    bool settings; /* ... and it cannot be made without any */
    bool online;   /* where the checkpoint has none it is "online", which quantises while it loads */
    bool float16, bfloat16, float32; /* types of activations it takes; all: unknown */
} oos_quant_limits;

oomsight_status oos_argument_facts_load(oos_arena *arena, const char *data_dir, const char *engine,
                                        oos_argument_facts **ret_facts, oomsight_error *reterr);

/* `facts` may be NULL everywhere: then nothing is known. *ret_other: the first release that has it (LATER), or the last that
 * had (GONE). */
oos_architecture_known oos_architecture_known_at(const oos_argument_facts *facts, const char *name,
                                                 oos_version version, oos_version *ret_other);
/* architectures.json alone, for an engine whose arguments were not read. */
oomsight_status oos_architectures_load(oos_arena *arena, const char *data_dir, const char *engine,
                                       oos_argument_facts **ret_facts, oomsight_error *reterr);
/* What the engine does for a class, or for models of a type, and not for others: the number beside the word in architectures.json; 0: it
 * is as all others. */
uint64_t oos_architecture_says(const oos_argument_facts *facts, const char *architecture, const char *word);
uint64_t oos_model_type_says(const oos_argument_facts *facts, const char *type, const char *word);
/* By the canonical spelling, "--max-num-seqs". NULL: it has none. */
const oos_bounds *oos_bounds_find(const oos_argument_facts *facts, const char *flag, oos_version version);
/* False: not a method of that release. The second: an earlier release had it. */
bool oos_quant_method_find(const oos_argument_facts *facts, const char *name, oos_version version,
                           oos_quant_limits *ret_method);
bool oos_quant_method_gone(const oos_argument_facts *facts, const char *name, oos_version version);
/* False: releases as new as that were not read, so that a name they do not know may be known there. */
bool oos_arguments_reach(const oos_argument_facts *facts, oos_version version);
/* False only where the release was read: what is not known is not refused. */
bool oos_backend_name_known(const oos_argument_facts *facts, const char *name, oos_version version);
bool oos_reasoning_parser_known(const oos_argument_facts *facts, const char *name, oos_version version);
bool oos_cache_type_known(const oos_argument_facts *facts, const char *name, oos_version version);
/* May a model of this type or architecture have MTP layers of its own that the release drafts with? */
bool oos_drafts_for_itself(const oos_argument_facts *facts, const char *type, const char *architecture,
                           oos_version version);

/* Constants that were fitted on measured starts, each with its range and the number of its independent sources. They are data:
 * data/constants.json for devices, data/engines/ENGINE/constants.json for an engine. tools/constants.py checks them and writes the tables. */

typedef struct oos_constant {
    uint64_t value, low, high;
    unsigned sources;
} oos_constant;

/* Which of the three is asked for: what is computed with all low ends, or all high ones, is the range of what is computed. */
typedef enum oos_constant_end { OOS_CONSTANT_VALUE, OOS_CONSTANT_LOW, OOS_CONSTANT_HIGH } oos_constant_end;

/* What a row may depend on. */
typedef struct oos_constant_where {
    unsigned capability;
    uint64_t torch_minor; /* 0: the newest */
    uint64_t ranks;
    oos_version version;
    bool nvlink, unified;
    oos_constant_end end;
} oos_constant_where;

typedef struct oos_constant_row {
    uint32_t capability[2], torch[2], ranks[2]; /* first and last */
    oos_version since, before;
    int8_t nvlink, unified; /* -1: either */
    oos_constant constant;
    bool anywhere; /* nothing above limits it, as of most */
} oos_constant_row;

typedef struct oos_constants {
    const oos_constant_row *rows;
    const uint16_t *first; /* row of each id, and one behind the last */
    size_t count;
} oos_constants;

/* All zero where no row holds: outside the domain of the constant. */
oos_constant oos_constant_at(const oos_constants *constants, size_t id, const oos_constant_where *where);
/* Its value, or one of its ends. */
uint64_t oos_constant_end_of(oos_constant constant, oos_constant_end end);
/* ... the one that `where` asks for. */
uint64_t oos_constant_of(const oos_constants *constants, size_t id, const oos_constant_where *where);

typedef enum oos_device_constant {
#define CONSTANT(name) OOS_DEVICE_##name,
#include "facts/constants.def"
#undef CONSTANT
    OOS_DEVICE_CONSTANT_COUNT
} oos_device_constant;
extern const oos_constants oos_device_constants;

/* The files of data/: embedded in the binary, or read from a folder given with --data. */

/* One embedded file. The table is made by tools/embed.py and sorted by path. */
typedef struct oos_data_file {
    const char *path; /* "gpus/a30.json" */
    const char *bytes;
    size_t len;
} oos_data_file;
extern const oos_data_file oos_data_embedded[];
extern const size_t oos_data_embedded_count;

/* `dir` NULL: the embedded file. The bytes live in the arena or in the binary. */
oomsight_status oos_data_read(oos_arena *arena, const char *dir, const char *path, oos_view *ret_bytes,
                              oomsight_error *reterr);
oomsight_status oos_data_json(oos_arena *arena, const char *dir, const char *path, json_t **ret_root,
                              oomsight_error *reterr);

/* All files below `folder` ("gpus"), sorted by path. */
oomsight_status oos_data_list(oos_arena *arena, const char *dir, const char *folder,
                              oos_data_file **ret_files, size_t *ret_count, oomsight_error *reterr);

/* GPU models: what CUDA says of them. Read from data/gpus. */

typedef enum oos_memory_kind { OOS_MEMORY_GDDR, OOS_MEMORY_HBM, OOS_MEMORY_UNIFIED } oos_memory_kind;

/* What the driver takes for things that no allocation call shows, where `oomsight doctor --measure` has seen it on such a device. */
typedef struct oos_driver_costs {
    oos_flag nvlink;                       /* between all cards of a machine */
    oos_u64 context_bytes;                 /* typical size of one process's CUDA context */
    oos_u64 graph_bytes, graph_node_bytes; /* an instantiated graph, and each kernel in it */
    oos_u64 kernel_bytes;                  /* first launch of a kernel */
    oos_u64 collective_bytes;              /* a communicator of two ranks */
} oos_driver_costs;

typedef enum oos_gpu_class {
    OOS_GPU_DATACENTRE,
    OOS_GPU_CONSUMER,
    OOS_GPU_WORKSTATION,
    OOS_GPU_LAPTOP,
    OOS_GPU_EMBEDDED
} oos_gpu_class;

typedef struct oos_gpu {
    const char *name; /* as CUDA prints it */
    const char *const *aliases;
    size_t alias_count;
    uint64_t total_bytes, total_low, total_high; /* as cudaMemGetInfo reports it, over drivers */
    bool total_measured;                         /* a device of this model printed it */
    uint64_t nvml_total_bytes;                   /* as NVML reports it: the whole card, also for a slice */
    unsigned capability;                         /* compute capability as 10 * major + minor: 90, 120 */
    unsigned sms;
    oos_memory_kind memory;
    oos_gpu_class kind;
    oos_driver_costs costs;
    const char *slice; /* MIG profile name, NULL for the whole device */
} oos_gpu;

/* A spelling without spaces and dashes, in lower case, and whose it is. */
typedef struct oos_gpu_name {
    const char *plain;
    const oos_gpu *gpu;
} oos_gpu_name;

typedef struct oos_gpus {
    const oos_gpu *list;
    size_t count;
    const oos_gpu_name *names; /* sorted */
    size_t name_count;
} oos_gpus;

oomsight_status oos_gpus_load(oos_arena *arena, const char *data_dir, oos_gpus *ret_gpus,
                              oomsight_error *reterr);

/* By name or alias, case, spaces and dashes do not matter; or by the size on the box, "24GB": the card of that size that shows the least.
 * `word` may carry a count: "A30x4", "4xA30". */
const oos_gpu *oos_gpus_find(const oos_gpus *gpus, oos_view word, uint64_t *ret_count);

/* Is it a size and no name? */
bool oos_gpus_is_size(oos_view word);

/* "9.0", or "90": 90. */
bool oos_capability_parse(const char *text, unsigned *ret_capability);

/* Up to `most` names that resemble a word we do not know. */
size_t oos_gpus_suggest(const oos_gpus *gpus, oos_view word, const char **ret_names, size_t most);

/* The device that is meant: by its name, or by what it shows. One lookup for plan, check, explain and dry runs. */

/* What somebody says of a device; a field at 0 is not said. */
typedef struct oos_device_ask {
    const char *name;     /* "A30x4", "24GB" */
    uint64_t total_bytes; /* what it shows */
    unsigned capability;  /* 90 */
} oos_device_ask;

typedef enum oos_device_by {
    OOS_DEVICE_NAMED,
    OOS_DEVICE_DESCRIBED, /* by its total and its compute capability */
    OOS_DEVICE_BY_TOTAL,  /* the known one that shows so much */
    OOS_DEVICE_ASSUMED    /* none is known that does: the compute capability is assumed */
} oos_device_by;

typedef struct oos_device_found {
    oos_gpu gpu;      /* with what was said of it; name NULL: none that is known */
    uint64_t count;   /* "A30x4": 4 */
    bool count_given; /* "h100x1": these and no more; a name alone is as many as the command needs */
    oos_device_by by;
} oos_device_found;

oomsight_status oos_device_find(const oos_gpus *gpus, const oos_device_ask *ask, oos_device_found *ret_found,
                                oomsight_error *reterr);

/* The whole device that shows this total, within half a percent; NULL: none. Drivers show one card with totals that differ so much. */
const oos_gpu *oos_device_by_total(const oos_gpus *gpus, uint64_t total_bytes);

/* Did a device of this model show this total, and may no other show it, over drivers? Then its name may be told. */
bool oos_device_is_only(const oos_gpus *gpus, const oos_gpu *guess, uint64_t total_bytes);

/* "9.0": 90. */
oomsight_status oos_capability_read(const char *word, unsigned *ret_capability, oomsight_error *reterr);

/* What is no NVIDIA GPU, as "AMD GPUs": by the resource of a pod, by a word of an image or runtime, by the name on a box. NULL: not told. */
const char *oos_resource_other(const char *key);
const char *oos_device_word_other(const char *word);
const char *oos_gpu_name_other(const char *name);

/* Letters, digits and dots only, in lower case: "RTX 4090" and "rtx-4090" are one word. Returns its length. */
size_t oos_name_plain(oos_view word, char *ret_plain, size_t capacity);

/* Fails with the names that resemble the word. */
oomsight_status oos_device_unknown(const oos_gpus *gpus, const char *word, oomsight_error *reterr);

/* What lies outside PyTorch's allocator and no allocation call shows: contexts, modules, communicators, CUDA graphs outside the pool. One
 * model, for plan and for the stand-in devices; what was measured on a device (data/gpus) goes before what was fitted. */

typedef struct oos_driver {
    bool nvlink; /* between all cards of a machine */
    uint64_t context_bytes, context_low, context_high;
    uint64_t kernel_bytes;                /* a kernel at its first launch */
    uint64_t kernels_bytes, kernels_high; /* all that a profile run loads */
    uint64_t collective_bytes; /* a process that joins others, with all that its first collectives take */
    uint64_t communicator_bytes, communicator_high; /* one of NCCL's, once it has reduced something */
    uint64_t communicators_high;    /* the most that was seen when ranks had found one another */
    oos_constant graph, graph_node; /* an instantiated CUDA graph, and a kernel in it */
} oos_driver;

/* `seen` is what is known of the device; `torch_minor` 0: the newest. */
oos_driver oos_driver_of(unsigned capability, const oos_driver_costs *seen, uint64_t torch_minor);
/* Of kernels_bytes, what the first kernel takes. */
uint64_t oos_first_kernel(unsigned capability, uint64_t sms, const oos_driver *driver);

/* The engines by their words: what a command, an image, a folder of data and a report call each. The words of an engine stand in its folder
 * of engines/, as oos_words_NAME. */

typedef oomsight_engine_words oos_engine_words;

enum {
#define ENGINE(name) OOS_ENGINE_##name,
#include "facts/engine.def"
#undef ENGINE
    OOS_ENGINE_COUNT
};
#define ENGINE(name) extern const oos_engine_words oos_words_##name;
#include "facts/engine.def"
#undef ENGINE
extern const oos_engine_words *const oos_engine_list[OOS_ENGINE_COUNT];
enum { OOS_ENGINE_DEFAULT = 0 }; /* its place: meant where nothing is said */
#define oos_engine_default (oos_engine_list[OOS_ENGINE_DEFAULT])

size_t oos_engine_place(const oos_engine_words *engine); /* in the list */

/* `--flag`, or `--flag=value`. */
static inline bool oos_flag_is(const char *word, const char *flag)
{
    size_t const len = strlen(flag);
    return strncmp(word, flag, len) == 0 && (word[len] == '\0' || word[len] == '=');
}

const oos_engine_words *oos_engine_words_find(const char *name); /* NULL: no such engine */

/* The engine that two words start: `NAME serve`, `NAME bench` or `-m MODULE`; NULL: none. */
const oos_engine_words *oos_engine_words_at(const char *word, const char *next);

/* The engine that a command starts, `NAME serve` or `-m MODULE`, or whose image it runs; NULL: none is named. */
const oos_engine_words *oos_engine_words_of(const char *const *words, size_t count);

/* The engine whose published image this is; NULL: none of them. */
const oos_engine_words *oos_engine_words_of_image(const char *image);

/* A release as a fleet names it, "0.32.0" or "sglang=0.5.23", as people call it: "vLLM 0.32.0". Cut to fit. */
const char *oos_engine_release(const char *label, char *buffer, size_t size);

/* What a log is of, as its makers write it; else the name. */
const char *oos_engine_title(const char *name);

/* A server of models that is not planned, by the name of a program or an image: "llama.cpp"; NULL: none is known. */
const char *oos_engine_other(const char *word);

/* The server that a command starts and that is not planned: by its program, a Python module, an image, or the flag with which it takes
 * over another engine's command; NULL: none is known. */
const char *oos_engine_other_of(const char *const *words, size_t count);

/* Whether a name is the engine's, or that of something built on it: "vllm-ascend". */
bool oos_engine_is(const oos_engine_words *engine, const char *name);

/* Whether a server of models has this name in logs, planned or not. */
bool oos_engine_is_server(const char *name);

/* Every engine that is planned: "vLLM, SGLang". Cut to fit. */
typedef struct oos_titles {
    char text[256];
} oos_titles;
oos_titles oos_titles_join(void);
#define oos_engine_titles() (oos_titles_join().text) /* for the expression in which it stands */

/* Whether any engine's name stands in the text. */
bool oos_engine_named(const char *text);

/* The flags of `vllm serve` by engine version, as the real parsers have them. Read from
 * data/engines/<engine>/flags.json, whose fields docs/reference/formats/engine-flags.md describes. What a flag's value means is
 * left to command/serve. */

typedef enum oos_flag_kind {
    OOS_FLAG_KIND_SWITCH, /* no value; may have a --no-x twin */
    OOS_FLAG_KIND_INT,
    OOS_FLAG_KIND_FLOAT,
    OOS_FLAG_KIND_STR,
    OOS_FLAG_KIND_CHOICE,
    OOS_FLAG_KIND_JSON, /* JSON text or dotted keys */
    OOS_FLAG_KIND_LIST  /* takes several words */
} oos_flag_kind;

enum { OOS_FLAG_VALUES_MANY = UINT8_MAX };

/* How a flag is read from version `since` on. */
typedef struct oos_flag_form {
    oos_version since;
    oos_flag_kind kind, item;          /* item: of each word of a list */
    uint8_t least_values, most_values; /* words that follow it */
    bool nullable;                     /* `None` means none */
    bool pairs;                        /* `a=1,b=2` is taken beside JSON */
    bool takes_auto;                   /* `auto` stands for -1 */
    bool takes_word;                   /* of a JSON flag: a word that is no JSON is fine */
    bool strict;                       /* an unknown JSON key is an error */
    bool folds;                        /* letters are made small before the choices are looked at */
    const char *suffixes; /* letters an integer may end with, "" for none: k 1000, K 1024, ...; with an
                                          i among them a letter alone is a power of 1000 and Ki is 1024 */
    const char *preset;   /* the default as text when it is one word, NULL */
    const char *const *choices;
    size_t choice_count; /* 0: anything */
    const char *const *
        negatives; /* "--no-enable-prefix-caching": what switches it off; the one in the engine's help first */
    size_t negative_count;
} oos_flag_form;

typedef struct oos_flag_record {
    const char *name; /* canonical, "--max-num-seqs" */
    size_t name_len;
    const char *dest;           /* "max_num_seqs": the keyword of LLM(...) */
    const char *const *aliases; /* other spellings in the newest form, "-tp" */
    size_t alias_count;
    const oos_flag_form *forms; /* oldest first, at least one */
    size_t form_count;
    bool memory;              /* can move device memory; also where nobody has judged it yet */
    oos_view json_keys;       /* as they stand in the table, see oos_flag_key_find() */
    bool keys_open;           /* the newest may have more: it was asked, and did not tell */
    oos_version since, until; /* of the versions dumped; until UINT64_MAX: still there */
} oos_flag_record;

typedef struct oos_flag_table {
    const oos_flag_record *list;
    size_t count;
    const oos_version *versions; /* whose parser was dumped, oldest first */
    size_t version_count;
    oos_version learned;           /* the newest of them, when that was read from what is installed; else 0 */
    oos_view variables;            /* the engine's env.json; empty: there is none */
    oos_version dotted_since;      /* `--flag.key value` is taken from here on; 0: never */
    oos_version underscores_since; /* `--max_model_len` is `--max-model-len`; 0: never */
    const void *index;             /* private: hash over every spelling */
} oos_flag_table;

/* A flag found by a spelling at a version. */
typedef struct oos_flag_hit {
    const oos_flag_record *record; /* NULL: no such flag in any version */
    const oos_flag_form *form;     /* as it is at the version, or nearest to it */
    bool negated;                  /* the --no-x spelling */
    bool here;                     /* the version has it */
} oos_flag_hit;

/* A key of a JSON value. */
enum {
    OOS_KEY_INT = 1,
    OOS_KEY_FLOAT = 2,
    OOS_KEY_BOOL = 4,
    OOS_KEY_STR = 8,
    OOS_KEY_LIST = 16,
    OOS_KEY_DICT = 32,
    OOS_KEY_ANY = 63
};
typedef struct oos_flag_key {
    unsigned kinds;   /* of value it takes */
    oos_view choices; /* words it takes, as they stand in the table; empty: any */
} oos_flag_key;

oomsight_status oos_flags_load(oos_arena *arena, const char *data_dir, const char *engine,
                               oos_flag_table *ret_table, oomsight_error *reterr);

/* A figure of an installed engine's memory, by small starts of it. */
typedef struct oos_learned_term {
    bool known;
    double value, low, high;
} oos_learned_term;

typedef enum oos_learned_rest {
    OOS_REST_DENSE,
    OOS_REST_MOE,
    OOS_REST_HYBRID,
    OOS_REST_GRAPHS,
    OOS_REST_COUNT
} oos_learned_rest;

/* What `oomsight learn --probe` has measured. Bytes, if not said otherwise. */
typedef struct oos_learned_terms {
    bool here; /* one of them is known */
    oos_learned_term
        sampler; /* of a logit at the busiest instant of the profile run's sampler, in the model's type among them */
    oos_learned_term early_cublas,
        early; /* there before the engine looks at what is free: cuBLAS's workspace, anything else */
    oos_learned_term retained; /* left by the profile run of a model whose layers keep nothing */
    oos_learned_term
        rests[OOS_REST_COUNT]; /* what these leave open of a start, by what was started: less, more */
} oos_learned_terms;

/* Of a constant term; 0: it is not known, or below 4 MiB, where the allocator's noise is. */
uint64_t oos_learned_bytes(const oos_learned_term *term);

/* What `oomsight learn` has read from an installed engine (docs/reference/formats/learned.md). Views lie in the text of the file. */
typedef struct oos_learned {
    oos_version version;
    oos_view release, package; /* "0.34.0", the SHA-256 of its RECORD */
    oos_view flags;            /* the list as it stands there */
    oos_view architectures;    /* ... empty: it has none */
    oos_view quantization;     /* names of methods; empty as well */
    oos_learned_terms terms;
    oos_view rules; /* what of the rules was compared with its source; empty: nothing */
} oos_learned;
#define OOS_LEARNED_SCHEMA "oomsight.learned/1"
enum { OOS_LEARNED_BYTES_MAX = 4 << 20, OOS_LEARNED_FLAGS_MAX = 4096 };

/* False: it is none of that engine. */
bool oos_learned_parse(oos_view text, const char *engine, oos_learned *ret_learned);
/* Whether one of these lists has the name. */
bool oos_learned_lists(oos_view list, const char *name);
/* $XDG_CACHE_HOME/oomsight/learned; NULL: no home is known, or memory is out. */
const char *oos_learned_folder(oos_arena *arena);
/* "vllm-0.34.0-0a1b2c3d4e5f.json"; NULL: no release or hash can be part of a name, or memory is out. */
const char *oos_learned_name(oos_arena *arena, const char *engine, const oos_learned *learned);
/* The file of a release: by its `name`, or, where that is NULL, the last that was written for the version. */
bool oos_learned_find(oos_arena *arena, const char *engine, oos_version version, const char *name,
                      oos_learned *ret_learned);
/* A rule of which the source is another than in the newest release that is known. Texts are another program's. */
typedef struct oos_learned_doubt {
    oos_view rule, unit; /* "breakable_graphs", "config/vllm.py:VllmConfig._uses_breakable" */
    oos_view added[2];   /* statements as they stand in JSON */
    size_t added_count;
    uint64_t removed; /* statements that are gone */
    bool gone;        /* the unit is */
} oos_learned_doubt;
enum { OOS_LEARNED_DOUBTS_MAX = 400 };
/* False: its rules were not compared, or that cannot be read. */
bool oos_learned_doubts(const oos_learned *learned, oos_learned_doubt *ret_list, size_t max,
                        size_t *ret_count);
/* The flags of the known releases, and of one more, which is not older than any of them. */
oomsight_status oos_flags_load_learned(oos_arena *arena, const char *data_dir, const char *engine,
                                       const oos_learned *learned, oos_flag_table *ret_table,
                                       oomsight_error *reterr);

/* By any exact spelling, dashes and underscores alike. A version that was not dumped has what its neighbours have. */
oos_flag_hit oos_flags_find(const oos_flag_table *table, oos_view spelling, oos_version version);

/* As above, but any beginning that belongs to one flag only is enough: "--gpu-mem". *ret_several: to more than one. */
oos_flag_hit oos_flags_find_start(const oos_flag_table *table, oos_view spelling, oos_version version,
                                  bool *ret_several);

/* The dumped versions around one: what both have, a version between them has too. Outside the list the nearest one
 * stands for it, as docs/reference/formats/engine-flags.md says. */
void oos_flags_neighbours(const oos_flag_table *table, oos_version version, oos_version *ret_below,
                          oos_version *ret_above);

/* A key by its name, dots for nested ones; false: neither that version nor, where it was not dumped, its neighbours have it. */
bool oos_flag_key_find(const oos_flag_table *table, const oos_flag_record *record, oos_view name,
                       oos_version version, oos_flag_key *ret_key);
/* Has the table keys inside this one? */
bool oos_flag_key_nests(const oos_flag_table *table, const oos_flag_record *record, oos_view name,
                        oos_version version);
bool oos_flag_key_takes(const oos_flag_key *key, oos_view word);

/* The closest spelling known at that version, or NULL when nothing is close. */
const char *oos_flags_nearest(const oos_flag_table *table, oos_view spelling, oos_version version);

/* Environment variables of the engine and of the libraries in its process: which releases know them, and whether they move
 * memory. Names come from each release's own table (tools/list_env.py) into data/engines/<engine>/env.json. */

typedef enum oos_env_effect {
    OOS_ENV_MODELLED,   /* enters the plan; said by the reader of the command, not by the table */
    OOS_ENV_NO_MEMORY,  /* leaves the GPU's memory alone, or has its default */
    OOS_ENV_ABSENT,     /* has the engine's prefix and is in no file of the release: no effect at all */
    OOS_ENV_UNMODELLED, /* moves memory, or may, and is not modelled */
} oos_env_effect;

typedef struct oos_env_hit {
    oos_env_effect effect;
    bool own;     /* has a beginning that the variables of the engine have */
    bool listed;  /* in the release's table of variables */
    bool logged;  /* of one that is absent: the engine says in its log that it does not know it */
    oos_view why; /* what it moves; empty: nobody has looked */
} oos_env_hit;

/* A variable with its value at a release. One that is newer than all known ones may know names that they do not. */
oos_env_hit oos_env_find(const oos_flag_table *table, oos_view name, const char *value, oos_version version);

/* Machines to rent, and the GPU in them: data/instances.json. */

/* The GPU of a machine of that type ("g6e.12xlarge"): the longest beginning that is listed. *ret_gpu NULL: none is. */
oomsight_status oos_instance_gpu(oos_arena *arena, const char *data_dir, const char *type,
                                 const char **ret_gpu, oomsight_error *reterr);

/* The ladder of levers: what people change when memory is short, ordered by what they lose. Read from
 * data/engines/<engine>/levers.json, one list for everybody who suggests something; docs/reference/formats/levers.md says what a field means. What a
 * lever does to a command is left to who plans it again. */

enum { OOS_LADDER_MAX = 64 };

/* What is lost, least first. */
typedef enum oos_rung {
    OOS_RUNG_NOTHING,   /* a: nothing */
    OOS_RUNG_UNASKED,   /* b: what was not asked for */
    OOS_RUNG_LITTLE,    /* c: a little quality or speed */
    OOS_RUNG_ASKED,     /* d: what was asked for */
    OOS_RUNG_ELSEWHERE, /* e: another checkpoint, other devices, much speed */
    OOS_RUNG_COUNT
} oos_rung;

typedef enum oos_move {
    OOS_MOVE_RAISE,
    OOS_MOVE_LOWER,
    OOS_MOVE_SET,  /* to `value`; a switch has none, or the word that turns it off */
    OOS_MOVE_DROP, /* the flag is left out */
    OOS_MOVE_DO,   /* no flag: something outside of the command */
} oos_move;

/* What a setting is, whatever an engine calls it: a value of it is found by that. `settings` are many in one flag, `asked` is of interest
 * where the command has it; the last five are no flags of an engine with a ladder. */
/* clang-format off */
#define OOS_ROLE_MAP(X) \
    X(share) X(static_share) X(length) X(requests) X(step) X(ranks) X(cache_type) X(cache_bytes) X(eager) \
    X(images) X(weights) X(settings) X(asked) X(checkpoint) X(segments) X(host_limit) X(part) X(prompt_cache)
/* clang-format on */
typedef enum oos_role {
    OOS_ROLE_NONE,
#define OOS_ROLE_ENUM(name) OOS_ROLE_##name,
    OOS_ROLE_MAP(OOS_ROLE_ENUM)
#undef OOS_ROLE_ENUM
        OOS_ROLE_COUNT
} oos_role;
extern const char *const oos_role_words[OOS_ROLE_COUNT]; /* the first is NULL */

typedef struct oos_said {
    const char *en, *zh;
} oos_said;

typedef struct oos_lever_record {
    const char *id;
    const char *flag, *variable; /* one of them, or `action` */
    oos_said action;
    const char *value; /* of `set` the word; of `lower` the least that is worth trying; NULL: none */
    const char *begin; /* the value to begin with where no figure decides; NULL: the direction alone */
    oos_move move;
    oos_role role;
    uint64_t step;            /* of a number: how finely it is looked for; 0: not said */
    oos_rung rung, given;     /* `given`: where the command itself has the flag */
    oos_rung before;          /* what loses that much or more comes after it; OOS_RUNG_COUNT: its own rung */
    oos_version since, until; /* releases that have it; until UINT64_MAX: still there */
    uint64_t owners, phases;  /* what it frees and where that helps: bits by oos_owner, oos_phase */
    oos_said why, cost;       /* what it changes (en NULL: not said) and what is lost */
    uint64_t useless_phases, useless_causes; /* where it changes nothing: bits by oos_phase, oos_cause */
    uint64_t unless;      /* causes at which it has an effect in those phases all the same */
    oos_said useless_why; /* en NULL: nowhere */
} oos_lever_record;

typedef struct oos_ladder {
    oos_lever_record list[OOS_LADDER_MAX]; /* the least loss first; in a rung what is tried first */
    size_t count;
} oos_ladder;

oomsight_status oos_ladder_load(oos_arena *arena, const char *data_dir, const char *engine,
                                const oos_ladder **ret_ladder, oomsight_error *reterr);

/* The same from bytes, which must outlive the ladder. */
oomsight_status oos_ladder_read(oos_arena *arena, oos_view bytes, const char *engine,
                                const oos_ladder **ret_ladder, oomsight_error *reterr);

const oos_lever_record *oos_ladder_find(const oos_ladder *ladder, const char *id); /* NULL: no such lever */
bool oos_lever_here(const oos_lever_record *lever, oos_version version);

/* What a lever loses, as its place in the order of losses: by rungs, and in one by the order of the ladder. `given`: the command has
 * its flag, or more is cut than a default. */
unsigned oos_lever_loss(const oos_ladder *ladder, const oos_lever_record *lever, bool given);

char oos_rung_letter(oos_rung rung); /* 'a' to 'e' */

/* The rules of one engine version: defaults and formulas that changed from release to release. Read from
 * data/engines/<engine>/rules.json: for each rule a list of steps, the last step not after the version applies. */

/* A rule of an engine: its name, and where its value goes in the struct that the engine keeps its rules in. */
typedef enum oos_rule_kind { OOS_RULE_REAL, OOS_RULE_WHOLE, OOS_RULE_YES } oos_rule_kind;
typedef struct oos_rule_place {
    const char *name;
    size_t offset;
    oos_rule_kind kind;
} oos_rule_place;

/* All steps of all rules, parsed once. */
typedef struct oos_rule_book oos_rule_book;

/* The file has each of `places` and no other; they must live as long as the book. `size` is that of the struct they lie in, of which one is
 * kept for each release; 0: none is. */
oomsight_status oos_rule_book_load(oos_arena *arena, const char *data_dir, const char *engine,
                                   const oos_rule_place *places, size_t place_count, size_t size,
                                   oos_rule_book **ret_book, oomsight_error *reterr);

/* What the engine says of its arguments, and does for particular architectures. */
oomsight_status oos_rule_book_arguments(oos_arena *arena, const char *data_dir, const char *engine,
                                        oos_rule_book *book, oomsight_error *reterr);

/* ... the latter alone. */
oomsight_status oos_rule_book_architectures(oos_arena *arena, const char *data_dir, const char *engine,
                                            oos_rule_book *book, oomsight_error *reterr);
const oos_argument_facts *oos_rule_book_facts(const oos_rule_book *book); /* NULL: none */

/* The rules of a version, into the struct that the places of the book belong to; where a struct is kept, all of it is that of whoever asked
 * first. Versions before the first known one are refused, later than the last are taken as the last with *ret_beyond set. */
oomsight_status oos_rules_fill(const oos_rule_book *book, oos_version version, void *rules, bool *ret_beyond,
                               oomsight_error *reterr);

/* A rule with another value than it has, to see whether a start asks for it. */
typedef struct oos_rule_trial {
    size_t rule;
    double value;
} oos_rule_trial;
enum { OOS_RULE_TRIALS_MAX = 8 };
void oos_rule_put(const oos_rule_book *book, const oos_rule_trial *trial, void *rules);
/* The values that a rule of that name has had but not now, or one that it has not had; 0: there is no such rule. */
size_t oos_rule_trials(const oos_rule_book *book, oos_view name,
                       oos_rule_trial ret_list[OOS_RULE_TRIALS_MAX]);

/* Fails where the version is older than the first one known. */
oomsight_status oos_rule_book_reaches(const oos_rule_book *book, oos_version version, oomsight_error *reterr);

/* Whether starts of this very release were set beside the rules: one between two that were is not known by them. */
bool oos_rule_book_measured(const oos_rule_book *book, oos_version version);
/* The release is older than all that were measured. */
bool oos_rule_book_early(const oos_rule_book *book, oos_version version);
/* How many releases it may be after the newest that was read: its minor releases and as many patches as the newest line had; a patch of that
 * line is no further than the next minor release. */
unsigned oos_rule_book_beyond(const oos_rule_book *book, oos_version version);

/* Releases the book names, oldest first. */
size_t oos_rule_book_versions(const oos_rule_book *book, const oos_version **ret_versions);

/* What an engine refuses before it looks at memory, in the order in which it looks: data/engines/<engine>/refusals.json, whose fields
 * docs/reference/formats/refusals.md describes. A step is a sentence with its conditions, the bounds of a part of the configuration, or a
 * check that is code of the engine. */

enum { OOS_REFUSAL_MAX = 600, OOS_WHEN_MAX = 8, OOS_PLACES_MAX = 6, OOS_CORRECTIONS_MAX = 4 };

typedef enum oos_term_kind { OOS_TERM_NUMBER, OOS_TERM_FLAG, OOS_TERM_FIELD, OOS_TERM_RULE } oos_term_kind;
typedef struct oos_term {
    oos_term_kind kind;
    char shown; /* in a sentence: 'd' a number, 'f' one with a decimal; 0: as it is */
    size_t id;  /* the number, or the place of a field or a rule */
    const char *name;
} oos_term;

typedef enum oos_sign {
    OOS_SIGN_NONE, /* given, or not 0 */
    OOS_SIGN_IS,
    OOS_SIGN_NOT,
    OOS_SIGN_BELOW,
    OOS_SIGN_AT_MOST,
    OOS_SIGN_ABOVE,
    OOS_SIGN_AT_LEAST,
    OOS_SIGN_REMAINS, /* the right one does not divide the left one */
    OOS_SIGN_IN       /* a word of the list that is the name of the right one */
} oos_sign;
typedef struct oos_when {
    bool negated;
    oos_sign sign;
    oos_term left, right;
} oos_when;

typedef struct oos_correction {
    const char *flag;
    bool leave_out;
    oos_term value;
} oos_correction;

typedef struct oos_refusal_step {
    uint64_t flags;            /* that `when` wants given, as oos_flag_bit */
    const char *says, *bounds; /* NULL: it is none of these */
    size_t check;              /* SIZE_MAX: nor that */
    size_t other;              /* the next step that does not begin with the same condition */
    oos_phase phase;
    size_t when_count, place_count, fix_count;
    bool changes;                            /* a rule decides with it that is another one in some release */
    oos_when when[OOS_WHEN_MAX];             /* all hold */
    oos_term places[OOS_PLACES_MAX];         /* of the sentence */
    oos_correction fix[OOS_CORRECTIONS_MAX]; /* as they are; else without the flag that `when` begins with */
} oos_refusal_step;

enum { OOS_STEPS_MAX = 512 };

/* A bit for each step. */
typedef struct oos_step_set {
    uint64_t words[OOS_STEPS_MAX / 64];
} oos_step_set;

typedef struct oos_refusals {
    oos_refusal_step **steps;
    size_t count;
    oos_step_set always, bounds, by_flag[64]; /* of each step one bit of its flags (oos_flag_bit) is enough */
    const oos_rule_place *rules;
    size_t rule_count;
} oos_refusals;

/* By two letters of "--max-num-seqs"; every bit for what is too short to have them. */
static inline uint64_t oos_flag_bit(const char *flag)
{
    if (flag[0] != '-' || flag[1] != '-' || !flag[2]) return UINT64_MAX;
    return (uint64_t)1 << ((unsigned char)flag[2] * 7 + (unsigned char)flag[3]) % 64;
}

/* What an engine has for the steps. */
typedef struct oos_refusal_names {
    const char *const *fields, *const *checks;
    size_t field_count, check_count;
} oos_refusal_names;

oomsight_status oos_refusals_read(oos_arena *arena, oos_view bytes, const oos_refusal_names *names,
                                  const oos_rule_place *rules, size_t rule_count,
                                  const oos_refusals **ret_refusals, oomsight_error *reterr);

/* Reads them into the book, whose rules they may name. */
oomsight_status oos_rule_book_refuse(oos_arena *arena, const char *data_dir, const char *engine,
                                     const oos_refusal_names *names, oos_rule_book *book,
                                     oomsight_error *reterr);
const oos_refusals *oos_rule_book_refusals(const oos_rule_book *book);

/* Which GPUs a PyTorch release has code for, by the builds that are published: data/engines/torch.json. */

enum { OOS_TORCH_MAX = 16, OOS_TORCH_SMS = 16 };

typedef struct oos_torch_build {
    uint64_t minor; /* 2.N */
    char cuda[8];   /* of the wheel that pip installs: "13.0" */
    unsigned sm[OOS_TORCH_SMS],
        other[OOS_TORCH_SMS]; /* 75, 80, ...; `other`: of any published build; 0 ends them */
    unsigned ptx;             /* intermediate code from here on, 0: none */
} oos_torch_build;

typedef struct oos_torch_builds {
    oos_torch_build list[OOS_TORCH_MAX];
    size_t count;
} oos_torch_builds;

typedef enum oos_torch_support {
    OOS_TORCH_WHEEL,  /* the wheel has code for it */
    OOS_TORCH_OTHER,  /* another published build has */
    OOS_TORCH_NONE,   /* none has */
    OOS_TORCH_UNKNOWN /* the release of PyTorch is not listed */
} oos_torch_support;

oomsight_status oos_torch_load(oos_arena *arena, const char *data_dir, oos_torch_builds *ret_builds,
                               oomsight_error *reterr);

/* NULL: not listed. */
const oos_torch_build *oos_torch_find(const oos_torch_builds *builds, uint64_t minor);

/* Code of 8.0 runs on 8.6 and 8.9, not on 9.0; intermediate code runs on everything newer. */
oos_torch_support oos_torch_supports(const oos_torch_build *build, unsigned capability);
