#pragma once
#include "base/arena.h"
#include "base/error.h"
#include "base/json.h"
#include "base/size.h"
#include "base/text.h"
#include "base/view.h"
#include "facts/facts.h"
#include <stdbool.h>
#include <yaml.h>

/* Which devices a command sees: one answer for plan, check, explain, matrix and dry runs. */
typedef struct oos_seen {
    bool known;         /* false: all that the machine has */
    const char **names; /* what the machine calls each: "0", "GPU-1a2b" */
    size_t count;
    const char *problem; /* why no container starts with what is asked for; NULL */
} oos_seen;

/* `given`: devices that the place of the command gives it, "0,1"; NULL: it does not name them. `there`: how many the machine has; 0: as many as it
 * takes. */
oos_seen oos_devices_seen(oos_arena *arena, const char *const *words, size_t count, const char *given,
                          uint64_t there);

/* What a command is for, where that is no NVIDIA GPU: "AMD GPUs", "the CPU"; NULL: nothing says so. By the words of `docker run`, a resource or a
 * label of Kubernetes, the name of an image, and the word of a flag. */
const char *oos_devices_other(const char *const *words, size_t count);
const char *oos_image_other(const char *image);

/* Commands that start the engine, found in the files people deploy with: shell scripts, Dockerfiles, systemd units, compose
 * files, Kubernetes manifests, values of vLLM's production-stack chart; and in files of any other kind where a command stands as
 * text. What else such a file says is left alone. */

typedef struct oos_found {
    const char *const *words; /* NAME=value words of its environment, then the command */
    const char *const
        *shown; /* for people: without secrets, and without variables that the engine does not read */
    size_t shown_count;
    size_t count;
    const uint32_t *lines;      /* on which each of the words begins, nearly */
    uint32_t line;              /* of the word that names the engine */
    const char *kind;           /* "shell script", "Dockerfile", "systemd unit", "container", "Helm values" */
    const char *name;           /* of the service, container or model; NULL */
    const char *engine_version; /* from the tag of an image, or declared; NULL */
    uint64_t gpus;              /* how many are asked for; 0: not said */
    const char *gpu, *gpu_total; /* declared in a comment `# oomsight: gpu=A30x4 gpu-total=23.5GiB`; NULL */
    const char *unknown;         /* a variable in it that the file does not set, NULL: none */
    const char *gpu_hint; /* the device by a node selector or a Slurm line, or several: "L4,A100"; NULL */
    const char *gpu_not;  /* those that a node selector leaves out; NULL */
    const char *machine;  /* the type of the machine, or several: "g6e.12xlarge"; NULL */
    bool gpu_is_sure;     /* gpu_hint: the key is one that only ever names a device */
    const char *slice;    /* of a MIG resource: "1g.10gb"; NULL */
    oos_seen seen;        /* devices of the machine, by its words and by a list of device ids */
    const char *other;    /* what it is for, where that is no NVIDIA GPU; NULL */
    uint32_t
        shares; /* commands of one file with the same number run beside each other on one machine; 0: alone */
    uint64_t host_limit_bytes; /* of the container's memory; 0: none is set */
} oos_found;

/* Commands of a text with other words, each read again out of the text as it then is (command/patch.c). */
typedef struct oos_edited_word oos_edited_word;
typedef struct oos_patch_line {
    oos_view was, now; /* with the line's end */
    uint32_t number;   /* of the text as it was, from 1; 0: the line is new */
    bool removed;
} oos_patch_line;

typedef struct oos_patch {
    oos_arena *arena;
    const char *path;
    oos_patch_line *lines;
    size_t count;
    const oos_found *list; /* of the text as it is now */
    size_t found_count;
    uint64_t spent_bytes; /* by readings so far */
    bool changed;
} oos_patch;

oomsight_status oos_patch_open(oos_arena *arena, const char *path, oos_view bytes, oos_patch *ret_patch,
                               oomsight_error *reterr);

/* The command at that place of the list; its words change to these. NULL: they do, and no other command does. Else why the text stays as it
 * is. */
const char *oos_patch_command(oos_patch *patch, size_t at, const oos_edited_word *words, size_t count);

/* A part of the file that was not looked at. */
typedef struct oos_found_skip {
    uint32_t line;
    const char *what;
    bool broken;   /* the file cannot be read as what it is */
    bool left_out; /* it says so itself, or nothing tells that an engine is there: only --strict refuses it */
} oos_found_skip;

/* What was not understood or not looked at. */
typedef struct oos_found_doubt {
    const oos_found_skip *skips;
    size_t skip_count;
    uint32_t line;
    const char *other;        /* a server of models that it starts and that is not planned; NULL: none */
    const char *mentions;     /* the engine that it names, where no command was found; NULL: none */
    const char *const *named; /* files that it takes as they are: to be read, too */
    size_t named_count;
    const oos_found_skip *sourced; /* by a script: `what` is the file, which may be anything */
    size_t sourced_count;
} oos_found_doubt;

/* `path` only helps to tell what the file is; "-": the text alone does, which may be pasted (command/pasted.c) and may be the name of a
 * model alone. Nothing found is no failure, but never silent: see
 * *ret_doubt. */
oomsight_status oos_found_read(oos_arena *arena, const char *path, oos_view bytes, const oos_found **ret_list,
                               size_t *ret_count, oos_found_doubt *ret_doubt, oomsight_error *reterr);

/* The name of a model with flags behind it, and no command? */
bool oos_found_is_model(const oos_found *found);

bool oos_is_among(const char *word, const char *const *list); /* NULL ends it */

/* "vllm/vllm-openai:v0.19.1-cu129" -> "0.19.1"; "nightly" for builds between releases; NULL: the tag is no release. */
const char *oos_image_version(oos_arena *arena, const char *image);

/* What the readers of found*.c share. */

/* A file of a stranger takes no more than this. What lies behind a limit is told, see oos_finder_skip(). */
enum {
    OOS_FOUND_MAX = 20000,          /* commands of a file */
    OOS_WORDS_MAX = 1024,           /* words of a command */
    OOS_FOUND_VARIABLES_MAX = 1024, /* that a text sets */
    OOS_SHELL_DEPTH = 4,            /* a shell in a shell */
    OOS_WORD_MAX = 64 << 10         /* bytes of a word with its variables put in */
};

/* A list of words; each has the line it began on. */
typedef struct oos_word_list {
    const char **list;
    uint32_t *lines;
    size_t count, room;
    bool full; /* there were more than OOS_WORDS_MAX */
} oos_word_list;

typedef struct oos_variable {
    const char *name;
    const char *const *words; /* one for a plain variable, any number for an array */
    size_t count;
    uint32_t hash;
} oos_variable;

typedef struct oos_finder {
    oos_arena *arena;
    oos_found *list;
    size_t count, room;
    oos_found_skip *skips;
    size_t skip_count, skip_room;
    uint64_t spent_bytes, most_bytes; /* made or walked for the file, and how many may be */
    bool stopped; /* a limit was reached: the rest of the file is not read, and that is told */
    const char *kind;
    oos_variable *variables;
    size_t variable_count;
    const char *unknown; /* a variable of the words being read that is not set */
    bool failed;         /* out of memory */
    bool pasted;         /* a text without a name, see command/pasted.c */
    bool foreign;        /* a container is for what is no NVIDIA GPU, and was told */
    bool asks;           /* a command of ours that only asks about a start was seen */
    const char
        *other;      /* a server of models that a command or container starts and that is not planned; NULL */
    uint32_t shares; /* of the place that is being read, see oos_found */
    uint32_t group;  /* the last number given to commands that run beside each other */
    bool by_document;      /* what a selector says holds for the document it stands in, and was read */
    const char *path;      /* the file */
    bool kustomized;       /* it is a kustomization: only what it names matters */
    oos_word_list named;   /* files that it takes as they are */
    oos_word_list sourced; /* ... by a script */
    uint32_t first_line;   /* a document of YAML: the line it begins behind */
    bool inside;           /* YAML inside of YAML is being read */
    bool templates;        /* a document cannot be read before it is rendered */
    uint32_t line;         /* that a reader is at, for what is told without one */
} oos_finder;

/* What is known of the place a command stands in. Any may be NULL or 0. */
typedef struct oos_place {
    const char *name, *image;
    bool arguments; /* the words are what the image gets, and may be arguments of its own command */
    const oos_word_list *environment; /* NAME=value */
    uint64_t gpus;
    const char *slice;   /* the MIG profile that is asked for */
    const char *devices; /* the ids that are asked for, "0,1" */
    const char *other;   /* what is asked for instead of NVIDIA GPUs */
    bool alone;          /* a pod's container that has GPUs of its own */
    uint32_t shares;
    uint64_t host_limit_bytes;
} oos_place;

bool oos_words_add(oos_arena *arena, oos_word_list *words, const char *word, uint32_t line);

/* Tell that something was not looked at. */
void oos_finder_skip(oos_finder *finder, uint32_t line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* ... and with it everything behind it. */
void oos_finder_stop(oos_finder *finder, uint32_t line, const char *why);
/* A file is taken in, `name` as it stands there: it is to be read, too. False: there are too many of them. */
bool oos_finder_take_in(oos_finder *finder, uint32_t line, const char *name, oos_word_list *list);
/* Count what is made of the file. False: it is too much, and reading ends. */
bool oos_finder_spend(oos_finder *finder, uint32_t line, size_t bytes);

/* Keep the words as a command, if they start the engine; true: they do, or it is told why they are not kept. */
bool oos_finder_offer(oos_finder *finder, const oos_word_list *words, const oos_place *place);
/* Keep words that are known to start it. Returns true. */
bool oos_finder_keep(oos_finder *finder, const oos_word_list *whole, oos_found found);
/* A container: its image is an engine's, so that words that start none are not passed over in silence. */
void oos_finder_container(oos_finder *finder, const oos_word_list *words, const oos_place *place,
                          uint32_t line, size_t before);

/* Shell text: every simple command in it is offered. */
void oos_finder_shell(oos_finder *finder, oos_view text, uint32_t line, unsigned depth,
                      const oos_place *place);
/* The words of one command written as text, as a shell takes them apart; variables are put in. */
void oos_finder_split(oos_finder *finder, oos_view text, uint32_t line, oos_word_list *words);
void oos_finder_set(oos_finder *finder, const char *name, const char *const *words, size_t count);
void oos_finder_set_assignment(oos_finder *finder, const char *assignment);

void oos_finder_dockerfile(oos_finder *finder, oos_view text);
void oos_finder_unit(oos_finder *finder, oos_view text);
void oos_finder_yaml(oos_finder *finder, oos_view text);
/* The plain files that it takes are named; what changes or composes them was not looked at. */
void oos_finder_kustomization(oos_finder *finder, oos_view text);

/* Any text: commands that stand in it word for word, in quotes, as a list of quoted words, or as LLM(...). */
void oos_finder_anywhere(oos_finder *finder, oos_view text);

const char *oos_finder_machine(oos_arena *arena, oos_view text); /* the type of a machine to rent; NULL */
const char *oos_finder_release(oos_arena *arena,
                               oos_view text); /* of the vLLM that is installed first; NULL */
uint64_t oos_finder_slurm(oos_view text);      /* GPUs that a job asks for, of all its nodes; 0: not said */
void oos_finder_hcl(oos_finder *finder, oos_view text);
/* The device that a selector or a Slurm line of the file names; NULL: none does. *ret_sure: the key names devices only. */
const char *oos_finder_gpu(oos_arena *arena, oos_view text, bool *ret_sure);

/* One YAML document from a stranger, within bounds: libyaml's time grows with the square of bytes and brackets. */

/* Whether libyaml reads the text in time that grows with its length: the square of brackets within brackets and of anchors is
 * what it takes. Neither may be many, nor values more than `most_values`. */
bool oos_yaml_is_linear(oos_view text, size_t most_values);

bool oos_yaml_is_bounded(oos_view bytes, size_t most_bytes, size_t most_brackets);

/* `kind`: "config", "matrix", for the words of a refusal. The document is the caller's, to be given to
 * yaml_document_delete(). */
oomsight_status oos_yaml_load(oos_view bytes, size_t most_bytes, size_t most_brackets, const char *kind,
                              yaml_document_t *ret_document, oomsight_error *reterr);

/* A YAML document on the way to commands. Used by found_yaml.c, found_values.c and found_kustomize.c. */

typedef struct oos_tree {
    oos_finder *finder;
    yaml_document_t *document;
    unsigned visited;
    bool too_deep;
    bool placed;    /* a selector was read: the text of the document need not be searched for one */
    uint64_t nodes; /* of the group that a LeaderWorkerSet starts as one; 0: one */
} oos_tree;

yaml_node_t *oos_tree_get(const oos_tree *t, const yaml_node_t *map, const char *key); /* NULL: no such key */
const char *oos_tree_text(const oos_tree *t, const yaml_node_t *node);                 /* NULL: no scalar */
uint32_t oos_tree_line(const oos_tree *t, const yaml_node_t *node);
uint64_t oos_tree_number(const char *word); /* 0: none */
bool oos_tree_is_true(const char *word);

/* A list of words, or text that a shell would take apart. */
void oos_tree_words(oos_tree *t, const yaml_node_t *node, oos_word_list *words);

/* {A: b}, [A=b], [{name: A, value: b}] */
void oos_tree_environment(oos_tree *t, const yaml_node_t *node, oos_word_list *environment);

/* The devices of a container, of a service of compose or of a chart: how many it may use, which, and of what kind. */
void oos_tree_place(oos_tree *t, const yaml_node_t *container, oos_place *place);

/* The commands from `before` on stand in a mapping: what its selectors and required terms say of the nodes they run on. `deep`: also those further
 * down. */
void oos_tree_where(oos_tree *t, const yaml_node_t *node, size_t before, bool deep);

/* The root of a kustomization. */
void oos_finder_kustomized(oos_tree *t, const yaml_node_t *root);

/* A mapping that is a model in the words of a tool: Ray Serve, llm-d, KServe, SkyPilot, values of a chart, the file of --config. */
void oos_finder_values(oos_tree *t, const yaml_node_t *node, bool is_root);

/* The arguments of an engine as it prints them itself: {'model': 'x', 'tp_size': 2} or ServerArgs(model='x', tp_size=2). */

typedef struct oos_logged {
    const char *at;
    /* Of the argument at hand. */
    char key[128];
    char value[2048]; /* as text for a command line; JSON for a nested one */
    bool nested;
    bool broken; /* the text ends within a string, or has none of the two shapes */
    bool whole;  /* its closing bracket was reached */
} oos_logged;

void oos_logged_open(const char *text, oos_logged *ret_list);
/* False: there are no more; `broken` and `whole` say why. */
bool oos_logged_next(oos_logged *list);

/* A text as people paste it: what a terminal or a forum put around a command is taken off. Every line stays where it is. */

/* Without colours, prompts before commands, and Markdown's fences with what stands outside of them. False: no memory. */
bool oos_pasted_clean(oos_arena *arena, oos_view text, oos_view *ret_text);

/* The name of a model on a hub, `owner/name`, with nothing but flags behind it: people who ask have no command yet. */
bool oos_pasted_model(oos_view text);

/* The first line that is neither empty nor a comment; `#!` is none. */
oos_view oos_pasted_first(oos_view text);

/* The serve command: what the user gave, typed. Unset stays unset here; defaults are plan/'s, by engine version. */

/* Who asks: the engine's defaults differ. */
typedef enum oos_usage { OOS_USAGE_SERVER, OOS_USAGE_LLM_CLASS } oos_usage;

/* A flag as given, and what it means for memory. */
typedef enum oos_flag_effect {
    OOS_FLAG_MODELLED,   /* enters the plan */
    OOS_FLAG_NO_MEMORY,  /* known, does not move memory */
    OOS_FLAG_UNMODELLED, /* known to move memory, but not modelled: said in the notes */
    OOS_FLAG_UNKNOWN     /* not a flag of this version */
} oos_flag_effect;

typedef struct oos_given_flag {
    const char *name;  /* canonical: "--max-num-seqs" */
    const char *value; /* as given, NULL for a switch */
    oos_flag_effect effect;
    const char *nearest;             /* for an unknown flag: the closest known spelling, or NULL */
    const char *note;                /* "not in 0.11.0, new in 0.19.1", NULL */
    bool absent;                     /* only another version has it */
    uint32_t first_word, word_count; /* in oos_serve_words; count 0: no words of the command stand for it */
} oos_given_flag;

typedef struct oos_speculative {
    bool present;
    const char *method; /* "mtp", "eagle", "eagle3", "ngram", "draft_model", ... ; NULL: by the model */
    const char *model;  /* draft model path or id, NULL */
    oos_u64 tokens;     /* num_speculative_tokens */
    oos_u64 draft_tensor_parallel_size;
    oos_u64 max_model_len;      /* of the draft model */
    bool tokens_wrong;          /* a number of tokens that is not above 0 */
    bool method_wrong;          /* a method that the release does not have */
    const char *unexpected_key; /* one that the release stops at, NULL */
} oos_speculative;

typedef struct oos_compilation {
    oos_u64 max_capture_size;        /* max_cudagraph_capture_size */
    bool max_in_json, sizes_in_json; /* said inside --compilation-config */
    const uint64_t *capture_sizes;
    size_t capture_size_count; /* 0 with capture_sizes_given: an empty list */
    bool capture_sizes_given;
    const char
        *cudagraph_mode; /* "NONE", "PIECEWISE", "FULL", "FULL_DECODE_ONLY", "FULL_AND_PIECEWISE"; NULL */
    oos_u64 level;       /* level / mode as a number, and -O where it means that */
    oos_u64
        optimization_level; /* --optimization-level, and -O from the version that has it; of no number UINT64_MAX */
    const char *level_flag,
        *level_value; /* what `-O.key=value` meant, which such a version takes for a level; NULL */
} oos_compilation;

/* What the engine's own parser stops at, the first of it; sentence NULL: nothing. */
typedef struct oos_serve_refusal {
    const char *sentence; /* as the parser says it */
    const char *flag;     /* as given, or canonical where it is known */
    const char
        *nearest; /* the closest known spelling of an unknown flag, or the switch that was meant; NULL */
    const char *misspelt, *meant_value; /* the unknown flag, with its value; NULL: it is that switch */
    const char *value;                  /* NULL: none */
    bool unrecognized;                  /* nobody takes these words; `flag` is all of them */
    bool may_be_over; /* the newest known release says so, and this one is newer: it may take them */
    uint32_t first_word, word_count; /* where it stopped; count 0: when all words were read */
} oos_serve_refusal;

/* How the command starts an engine. */
typedef struct oos_serve_entry {
    oos_usage usage;
    bool bench, keywords, latency, client;
    bool flags_only;        /* a word that is no flag is not the model */
    const char *const *own; /* flags of the sub-command alone, NULL behind the last; NULL: none */
    size_t first;           /* index of the first word behind it */
} oos_serve_entry;

struct oos_engine_env;
struct oos_serve_reader;

/* What becomes of a flag that enters the plan. */
typedef enum oos_field_kind {
    OOS_FIELD_U64,
    OOS_FIELD_F64,
    OOS_FIELD_YES,
    OOS_FIELD_STR,
    OOS_FIELD_JSON, /* read when all words are */
    OOS_FIELD_OWN   /* by the engine's own reader */
} oos_field_kind;

typedef struct oos_flag_field {
    const char *flag;
    oos_field_kind kind;
    uint16_t offset, size; /* in oos_serve: what it fills, and what is forgotten with it */
    bool number;           /* an oos_u64 is what it fills first */
    /* of JSON: values that are no object are taken, pairs `image=4,video=0` are, a text is when it is an object */
    bool any, pairs, braced;
    oomsight_status (*read)(struct oos_serve_reader *in, const json_t *value);
} oos_flag_field;

typedef struct oos_serve_cursor {
    const char *const *words;
    size_t count, at;
} oos_serve_cursor;

/* How the command of one engine is read: its entry, and what becomes of its flags. */
typedef struct oos_dialect {
    /* Whether words[at] begins the engine's command; then the entry says how it goes on. */
    bool (*entry_at)(const char *const *words, size_t count, size_t at, oos_serve_entry *ret_entry);
    const char *expected; /* what a command that is none should have been */
    const char *start;    /* its usual form */
    const char *client;   /* what is said of an entry that is a client; NULL: there are none */
    const char *image;    /* in the name of an image that starts it; NULL: none does */
    /* Takes a variable into account; false: it does not. The value is copied. NULL: none but PyTorch's are. */
    bool (*variable_set)(oos_arena *arena, struct oos_engine_env *env, oos_view name, const char *value);
    const char *model_flag;
    const char *share_flag;  /* takes the share of a GPU, which people write in percent too */
    bool model_first;        /* the model without a flag is the first word, or none */
    const char *config_flag; /* its value is a file of options; NULL: none */
    bool keywords;           /* `model=x n=4`, as of LLM(...), is a command of its own */
    const oos_flag_field *fields;
    size_t field_count;
    /* The hooks of its own reader. */
    oomsight_status (*take)(struct oos_serve_reader *in, oos_flag_hit hit,
                            const char *text); /* OOS_FIELD_OWN */
    oomsight_status (*look)(struct oos_serve_reader *in, oos_flag_hit hit,
                            const json_t *value);                         /* any JSON; NULL: none */
    oomsight_status (*finish)(struct oos_serve_reader *in, bool latency); /* when all words are read; NULL */
    char first_letter; /* of words that it looks for before any flag, -O; 0: none */
    oomsight_status (*first_take)(struct oos_serve_reader *in, oos_serve_cursor *c, const char *word);
    /* Flags; NULL behind the last, or for none. */
    const char *const *modelled; /* that its plan looks up by oos_serve_given() */
    const char *const
        *harmless; /* marked as moving memory, and the bytes of a device do not depend on them */
    const char *const
        *made_later; /* objects that become a class later: what is in them stops the start all the same */
} oos_dialect;

/* The words behind the entry, kept so that the command can be read again with other ones. */
typedef struct oos_serve_words {
    const oos_dialect *dialect;
    const char *const *list; /* those that the config file stands for come first */
    size_t count, from_config;
    const oos_flag_table *table;
    oos_version version;
    bool bench, latency, flags_only;
    const char *const *own; /* of oos_serve_entry */
} oos_serve_words;

typedef struct oos_serve {
    oos_usage usage;
    const char *model;   /* NULL: none given */
    const char *program; /* the words before the flags, to be printed again in fixes: "vllm serve MODEL" */

    /* What flags fill: see oos_flag_field. */
    oos_u64 tensor_parallel_size, pipeline_parallel_size, data_parallel_size, decode_context_parallel_size,
        max_num_seqs, max_num_batched_tokens, block_size, kv_cache_memory_bytes, num_gpu_blocks_override,
        max_loras, max_lora_rank, mamba_block_size, max_logprobs;
    oos_f64 gpu_memory_utilization, cpu_offload_gb, swap_space;
    oos_flag enable_expert_parallel, enforce_eager, enable_sleep_mode, enable_cumem_allocator, enable_lora,
        fully_sharded_loras, enable_prefix_caching, enable_chunked_prefill, async_scheduling,
        language_model_only, skip_mm_profiling, disable_hybrid_kv_cache_manager, disable_custom_all_reduce;
    const char *kv_cache_dtype, *dtype, *quantization, *load_format, *mamba_cache_dtype,
        *mamba_ssm_cache_dtype, *mamba_cache_mode, *attention_backend, *moe_backend, *performance_mode,
        *runner, *revision;
    oos_u64 max_model_len;   /* unset when not given or "auto" */
    bool max_model_len_auto; /* "auto" or -1 */
    oos_compilation compilation;
    oos_speculative speculative;
    bool mm_limits_given, mm_all_zero; /* --limit-mm-per-prompt; all that it names are zero */
    bool mm_limit_negative;            /* ... one of them is below */
    oos_u64 redundant_experts;         /* in --eplb-config */
    const char *media_wrong;           /* a key of --media-io-kwargs whose value is no object; NULL: none */
    oos_u64 mm_images, mm_videos, mm_audios;
    oos_u64 mm_max_pixels;         /* of an image, in --mm-processor-kwargs */
    const char *hf_overrides_json; /* NULL: none */

    oos_serve_refusal refusal;
    const oos_given_flag *flags; /* every flag given, in order */
    size_t flag_count;
    oos_serve_words words; /* count 0: none to be read again, as of LLM(...) */
} oos_serve;

/* A variable as given, and what it means for memory at the release. Its value is not kept: it may be a secret. */
typedef struct oos_given_variable {
    const char *name;
    oos_env_effect effect;
    bool own;        /* has a beginning that the engine's variables have */
    bool listed;     /* in the release's own table of variables */
    bool logged;     /* of one that is absent: the engine logs it as unknown */
    const char *why; /* what it moves, for one that is not modelled; NULL: nobody has looked */
    const char *value;
    oos_flag on; /* of a value that says yes or no */
} oos_given_variable;

enum { OOS_VARIABLES_MAX = 4096 };

/* Environment variables the engine would see: those that move memory, typed, and the list of all that were given. */
typedef struct oos_engine_env {
    const char *attention_backend;      /* VLLM_ATTENTION_BACKEND */
    oos_flag estimate_cudagraphs;       /* VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS */
    oos_flag v2_model_runner;           /* VLLM_USE_V2_MODEL_RUNNER */
    oos_flag flashinfer_sampler;        /* VLLM_USE_FLASHINFER_SAMPLER */
    oos_flag use_v1;                    /* VLLM_USE_V1 */
    oos_u64 flashinfer_workspace_bytes; /* VLLM_FLASHINFER_WORKSPACE_BUFFER_SIZE */
    const char *alloc_conf;             /* PYTORCH_CUDA_ALLOC_CONF or PYTORCH_ALLOC_CONF */
    const char *pp_layer_partition;     /* VLLM_PP_LAYER_PARTITION */
    bool image;                         /* the command starts a published image (vllm/vllm-openai) */
    oos_flag cold_compile; /* VLLM_DISABLE_COMPILE_CACHE says cold, VLLM_CACHE_ROOT that a cache is kept */
    oos_flag allow_long_length;          /* VLLM_ALLOW_LONG_MAX_MODEL_LEN */
    oos_flag rust_frontend;              /* VLLM_USE_RUST_FRONTEND */
    const oos_given_variable *variables; /* each name once, as it was given last */
    size_t variable_count;
} oos_engine_env;

/* `words` is the whole command: `vllm serve MODEL ...`, `vllm bench throughput ...`, `python -m vllm.entrypoints...`,
 * `LLM(model=..., tensor_parallel_size=4)` or its keyword words; leading NAME=value words are environment.
 * A YAML file given with --config is read from disk. Nothing of `words` is kept: all is copied to the arena. `table` must
 * live as long as the command may be changed.
 * What the engine's parser would stop at is no failure: it is kept in `refusal`. */
oomsight_status oos_serve_read_as(const oos_dialect *dialect, oos_arena *arena, const char *const *words,
                                  size_t word_count, const oos_flag_table *table, oos_version version,
                                  oos_serve *ret_serve, oos_engine_env *ret_env, oomsight_error *reterr);

/* Whole numbers as the engine's parser takes them; false: not one. */
bool oos_serve_int(const oos_flag_form *form, const char *text, bool *ret_negative, uint64_t *ret_value);

/* A variable as it was given last; NULL: it was not. */
const oos_given_variable *oos_engine_env_given(const oos_engine_env *env, const char *name);

/* A flag as it was given last, by its canonical spelling; NULL: it was not. */
const oos_given_flag *oos_serve_given(const oos_serve *serve, const char *flag);

/* The words of a command put together for a shell to take apart again. */
void oos_serve_quote(oos_text *text, const char *word);
/* A shell takes it as it is, without quotation. */
bool oos_serve_is_plain(const char *word);

/* The whole command with other flags: those of `change` in place of the user's own, `without` left out (both may be NULL).
 * Quoted for a shell and fit to be shown: secrets are `***`. `words` are those that were read; those before `from` are left
 * out. NULL: no memory. */
const char *oos_serve_whole(oos_arena *arena, const char *const *words, size_t word_count, size_t from,
                            const oos_serve *serve, const char *const *change, size_t change_count,
                            const char *const *without, size_t without_count);

/* The same as words: each with its place in the command as it is, those that are new with SIZE_MAX and behind the others. A value is put
 * in the place of the one that was given; `model` NULL: as it is. NULL: it cannot be said so, or there is no memory. */
struct oos_edited_word {
    const char *word;
    size_t from;
};
const oos_edited_word *oos_serve_edited(oos_arena *arena, const char *const *words, size_t word_count,
                                        const oos_serve *serve, const char *const *change,
                                        size_t change_count, const char *const *without, size_t without_count,
                                        const char *model, size_t *ret_count);

/* The words with another model in the place of the command's own. NULL: it does not stand among them, or there is no memory. */
const char *const *oos_serve_with_model(oos_arena *arena, const char *const *words, size_t word_count,
                                        const oos_serve *serve, const char *model);

/* A changed command, for planning again: `flag` left out, or its whole number set as the last word. The words are read again,
 * so that everything the flag had its part in is as the engine would find it. Where there are no words the fields are changed.
 * False: it cannot be done, or there is no memory. */
bool oos_serve_leave_out(oos_arena *arena, oos_serve *serve, const char *flag);
bool oos_serve_set_u64(oos_arena *arena, oos_serve *serve, const char *flag, uint64_t value);
bool oos_serve_give(oos_arena *arena, oos_serve *serve, const char *flag,
                    const char *text); /* NULL: a switch */

/* What the files that read the serve command share. Private to command/serve*.c. */

/* A flag whose value is JSON is read once, at the end: the last text given counts, and dotted keys, when there are
 * any, replace the text as a whole (vLLM's parser appends them as one more JSON argument). */
typedef struct oos_serve_pending {
    struct oos_serve_pending *next;
    const oos_flag_record *record;
    const char *text; /* NULL: none */
    json_t *dotted;   /* NULL: none; the arena's */
} oos_serve_pending;

typedef struct oos_serve_reader {
    const oos_dialect *dialect;
    oos_arena *arena;
    const oos_flag_table *table;
    oos_version version;
    oos_serve *serve;
    oomsight_error *reterr;
    oos_given_flag *flags;
    size_t flag_count, flag_capacity;
    const char *positional, *model_option;
    const char *misplaced; /* the first word that would be the model where the engine takes none; NULL */
    oos_serve_pending *pending;
    json_t *overrides;            /* of the model's config, by flags of their own; NULL: none */
    bool bench;                   /* flags we do not know may be the benchmark's own */
    bool python;                  /* LLM(...) */
    bool ambiguous;               /* a beginning of several flags was met */
    const char *stray_of, *stray; /* a switch that was given a value, and the value; NULL: none */
    const char *stray_meant;      /* the switch that says it; NULL: nothing does */
    size_t first_word; /* flags are noted with their place among the words of the command, from this one on */
} oos_serve_reader;

oomsight_status oos_serve_enter(oos_serve_reader *in, const char *const *words, size_t count,
                                oos_serve_entry *ret_entry, oos_engine_env *env);

/* A command read from its words, with the entry and the notes of `old`. */
oomsight_status oos_serve_read_words(oos_arena *arena, const oos_serve *old, const oos_serve_words *words,
                                     oos_serve *ret_serve, oomsight_error *reterr);

/* Is the release newer than all whose parser was read? Then a name that they do not know is not thereby refused. */
bool oos_serve_newer(const oos_serve_reader *in);

/* Note a flag. The list was taken large enough for every word. */
void oos_serve_note(oos_serve_reader *in, oos_given_flag flag);

/* The parser would stop here; only the first such place is kept. Always OOMSIGHT_OK, so that it can be returned. */
oomsight_status oos_serve_refuse(oos_serve_reader *in, const char *flag, const char *value,
                                 const char *format, ...) __attribute__((format(printf, 4, 5)));

/* A flag as argparse names it in its complaints: all spellings that help shows, "--tensor-parallel-size/-tp". The form of a switch
 * has the one that turns it off; NULL for others. */
const char *oos_serve_argument(const oos_serve_reader *in, const oos_flag_record *record,
                               const oos_flag_form *form);

/* A known flag with its value (NULL: none), typed and noted. */
oomsight_status oos_serve_take(oos_serve_reader *in, oos_flag_hit hit, const char *value);

/* A word for yes or no. */
bool oos_serve_truth(const char *word, bool *ret_value);

/* The switch that says what `--switch=value` means: itself or its twin; NULL: the flag left out, or nobody knows. */
const char *oos_serve_switch_meant(oos_flag_hit hit, const char *value);

/* `flag.key.key value` of a JSON flag. */
oomsight_status oos_serve_take_dotted(oos_serve_reader *in, oos_flag_hit hit, const char *keys,
                                      const char *value);

/* JSON of a flag that is not modelled: is it any? */
oomsight_status oos_serve_check_json(oos_serve_reader *in, oos_flag_hit hit, const char *text);

/* Keys and kinds inside a value that the release turns into a class. */
oomsight_status oos_serve_check_keys(oos_serve_reader *in, oos_flag_hit hit, const json_t *value);

/* Is the value turned into a class while the command is read? */
bool oos_serve_has_class(const oos_serve_reader *in, oos_flag_hit hit);

/* Read what is pending. */
oomsight_status oos_serve_finish_json(oos_serve_reader *in);
/* What a flag means for memory; `f` and `value` may be NULL. */
oos_flag_effect oos_serve_effect(const oos_serve_reader *in, oos_flag_hit hit, const oos_flag_field *f,
                                 const char *value);
oos_serve_pending *oos_serve_pend(oos_serve_reader *in,
                                  const oos_flag_record *record); /* NULL: out of memory */

/* NULL: the flag does not enter the plan, or is looked up. */
const oos_flag_field *oos_serve_field(const oos_dialect *dialect, oos_view flag);
bool oos_serve_listed(const char *const *list, const char *flag);

/* A value that is none of its kind is refused. `form` may be NULL: a flag that also takes nothing at all is read by another function,
 * which says it otherwise. */
oomsight_status oos_serve_u64(oos_serve_reader *in, oos_flag_hit hit, const char *text, oos_u64 *ret_number);
oomsight_status oos_serve_wrong(oos_serve_reader *in, const oos_flag_record *record,
                                const oos_flag_form *form, const char *wanted, const char *given);
/* The number that was meant by a value that is none for the engine, as the flag takes it; NULL: nobody can tell. */
const char *oos_serve_number_meant(oos_arena *arena, const oos_flag_form *form, const char *wanted,
                                   bool is_share, const char *given);

/* A flag that nobody knows: what is closest is said, and reading goes on. */
oomsight_status oos_serve_unknown(oos_serve_reader *in, oos_serve_cursor *c, oos_view key, const char *value);

/* `LLM(model="x", n=4)` or `model=x n=4`. */
oomsight_status oos_serve_take_keywords(oos_serve_reader *in, const char *text);

/* Numbers as the engine's parser takes them; false: not one. */
bool oos_serve_float(const char *text, double *ret_value);

/* "1 2 4" or "[1, 2, 4]"; false: something else is in it. */
bool oos_serve_ints(oos_arena *arena, const char *text, const uint64_t **ret_list, size_t *ret_count);

/* Which environment variables of somebody's command may be shown. Those that the engine, CUDA, PyTorch, NCCL or the Hugging Face
 * libraries read for their behaviour are part of the answer; what else a container is given is nobody's business. */

/* `NAME=value` or `NAME`: may its value be seen? Never that of a secret. */
bool oos_variable_is_shown(const char *assignment);

/* The words of a command for people: other variables before it are left out, those that a container is given (`-e NAME=value`)
 * are there by name. Secrets are hidden. NULL: no memory. */
const char *const *oos_command_shown(oos_arena *arena, const char *const *words, size_t count,
                                     size_t *ret_count);

/* The same quoted for a shell, to be pasted: nothing in it is masked. A variable that holds a secret is handed on as it is
 * (`-e HF_TOKEN`, `HF_TOKEN="$HF_TOKEN"`), the value of such a flag is taken from one (`--api-key "$API_KEY"`). */
void oos_command_put(oos_arena *arena, oos_text *text, const char *const *words, size_t count);

/* What stands around an engine's command: a shell with the command as one word, an image with its release and its volumes. */

/* `bash -c "vllm serve ..."` as the words it runs; anything else as it is. False: no memory. */
bool oos_wrapped_open(oos_arena *arena, const char *const *words, size_t count, const char *const **ret_words,
                      size_t *ret_count);

/* Where docker, podman and their like begin, whose Python is another system's; `count`: nobody of them runs it. */
size_t oos_wrapped_container(const char *const *words, size_t count);

/* Where the line that a shell runs stands among the words; `count`: there is none. */
size_t oos_wrapped_line(const char *const *words, size_t count);

/* Of the words that oos_wrapped_open() gives, the first that comes from the line. */
size_t oos_wrapped_line_first(const char *const *words, size_t line);

/* The release that an image of an engine among the words names by its tag, or `--with vllm==0.11.0`; "nightly"; NULL: none does. */
const char *oos_wrapped_version(oos_arena *arena, const char *const *words, size_t count);

/* A path inside the container as it is outside of it, by `-v`, `--volume` and `--mount` of the words; `path` when no
 * volume holds it. NULL: no memory. */
const char *oos_wrapped_path(oos_arena *arena, const char *const *words, size_t count, const char *path);

/* A YAML file given with --config, as the options it stands for. The document itself is loaded by
 * yaml_load.h. */

typedef enum oos_yaml_kind {
    OOS_YAML_TRUE,
    OOS_YAML_FALSE,
    OOS_YAML_NULL,
    OOS_YAML_SCALAR, /* one value, as text */
    OOS_YAML_LIST,   /* its items as text */
    OOS_YAML_MAP     /* one value, as JSON text */
} oos_yaml_kind;

typedef struct oos_yaml_option {
    const char *key; /* as written: "max-model-len", "max_model_len" */
    oos_yaml_kind kind;
    const char *const *values;
    size_t value_count;
    uint32_t line;
} oos_yaml_option;

/* The top of the file must be a mapping with text keys; an empty file has no options. Plain words are typed as YAML
 * 1.1 does it (`yes` is true), which is what the engine's own reader does. */
oomsight_status oos_yaml_read(oos_arena *arena, oos_view bytes, const oos_yaml_option **ret_options,
                              size_t *ret_count, oomsight_error *reterr);

/* Commands as people paste them around a log: over several lines, in compose and Kubernetes YAML, as Python. */

/* The command that begins in `line` and goes on in `after`, on one line as a shell would take it, or `LLM(...)`. Returns
 * its length, 0 when there is none. At most `capacity` bytes are written. */
size_t oos_paste_command(oos_view line, oos_view after, char *to, size_t capacity);

/* The command behind a log: the words of `vllm serve`, from a pasted command line or from the engine's own list of
 * arguments. */

enum { OOS_COMMAND_WORDS_MAX = 128 };

/* `args`: its own list, `command`: a line that was pasted; each may be NULL. False: they do not tell. Words live in the arena. */
bool oos_command_words(oos_arena *arena, const char *args, const char *command, const char **ret_words,
                       size_t *ret_count);
