/* What the readers of found*.c share. */
#ifndef OOS_INPUT_FOUND_PARTS_H
#define OOS_INPUT_FOUND_PARTS_H

#include "command/found.h"

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
    bool pasted;         /* a text without a name, see command/pasted.h */
    bool asks;           /* a command of ours that only asks about a start was seen */
    const char
        *other;      /* a server of models that a command or container starts and that is not planned; NULL */
    uint32_t shares; /* of the place that is being read, see oos_found */
    uint32_t group;  /* the last number given to commands that run beside each other */
    bool by_document;    /* what a selector says holds for the document it stands in, and was read */
    const char *path;    /* the file */
    bool kustomized;     /* it is a kustomization: only what it names matters */
    oos_word_list named; /* files that it takes as they are */
    uint32_t first_line; /* a document of YAML: the line it begins behind */
    bool inside;         /* YAML inside of YAML is being read */
    bool templates;      /* a document cannot be read before it is rendered */
    uint32_t line;       /* that a reader is at, for what is told without one */
} oos_finder;

/* What is known of the place a command stands in. Any may be NULL or 0. */
typedef struct oos_place {
    const char *name, *image;
    bool arguments; /* the words are what the image gets, and may be arguments of its own command */
    const oos_word_list *environment; /* NAME=value */
    uint64_t gpus;
    const char *slice; /* the MIG profile that is asked for */
    const char *devices;
    uint32_t shares;
    uint64_t host_limit_bytes;
} oos_place;

bool oos_words_add(oos_arena *arena, oos_word_list *words, const char *word, uint32_t line);

/* Tell that something was not looked at. */
void oos_finder_skip(oos_finder *finder, uint32_t line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* ... and with it everything behind it. */
void oos_finder_stop(oos_finder *finder, uint32_t line, const char *why);
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

#endif
