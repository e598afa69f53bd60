/* What the readers of found*.c share. */
#ifndef OOS_INPUT_FOUND_PARTS_H
#define OOS_INPUT_FOUND_PARTS_H

#include "command/found.h"

enum { OOS_FOUND_MAX = 256, OOS_WORDS_MAX = 1024, OOS_VARIABLES_MAX = 256, OOS_SHELL_DEPTH = 4 };

/* A list of words; each has the line it began on. */
typedef struct oos_words {
    const char **list;
    uint32_t *lines;
    size_t count;
} oos_words;

typedef struct oos_variable {
    const char *name;
    const char *const *words; /* one for a plain variable, any number for an array */
    size_t count;
} oos_variable;

typedef struct oos_finder {
    oos_arena *arena;
    oos_found *list;
    size_t count;
    const char *kind;
    oos_variable *variables;
    size_t variable_count;
    const char *unknown; /* a variable of the words being read that is not set */
    bool failed;         /* out of memory */
    const char *broken;  /* what stops a reader of this kind of file, NULL */
    uint32_t broken_line;
    bool by_document;    /* what a selector says holds for the document it stands in, and was read */
    const char *path;    /* the file, if others beside it may be read; NULL */
    oos_words applied;   /* files that were read as patches of this one */
    uint32_t doubted;    /* the line of what keeps commands from being told whole; 0: nothing does */
    uint32_t first_line; /* YAML inside of YAML: the line it begins behind; 0: the file itself */
} oos_finder;

/* What is known of the place a command stands in. Any may be NULL or 0. */
typedef struct oos_place {
    const char *name, *image;
    bool arguments; /* the words are what the image gets, and may be arguments of its own command */
    const oos_words *environment; /* NAME=value */
    uint64_t gpus;
    const char *slice; /* the MIG profile that is asked for */
} oos_place;

bool oos_words_add(oos_arena *arena, oos_words *words, const char *word, uint32_t line);

/* Keep the words as a command, if they start the engine. */
void oos_finder_offer(oos_finder *finder, const oos_words *words, const oos_place *place);

/* Shell text: every simple command in it is offered. */
void oos_finder_shell(oos_finder *finder, oos_view text, uint32_t line, unsigned depth,
                      const oos_place *place);
/* The words of one command written as text, as a shell takes them apart; variables are put in. */
void oos_finder_split(oos_finder *finder, oos_view text, uint32_t line, oos_words *words);
void oos_finder_set(oos_finder *finder, const char *name, const char *const *words, size_t count);
void oos_finder_set_assignment(oos_finder *finder, const char *assignment);

void oos_finder_dockerfile(oos_finder *finder, oos_view text);
void oos_finder_unit(oos_finder *finder, oos_view text);
void oos_finder_yaml(oos_finder *finder, oos_view text);
void oos_finder_kustomization(oos_finder *finder, oos_view text); /* with what lies beside it */

/* Any text: commands that stand in it word for word, in quotes, as a list of quoted words, or as LLM(...). */
void oos_finder_anywhere(oos_finder *finder, oos_view text);

const char *oos_finder_machine(oos_arena *arena, oos_view text); /* the type of a machine to rent; NULL */
const char *oos_finder_release(oos_arena *arena,
                               oos_view text); /* of the vLLM that is installed first; NULL */
uint64_t oos_finder_slurm(oos_view text);      /* GPUs that a job asks for, of all its nodes; 0: not said */
void oos_finder_hcl(oos_finder *finder, oos_view text);
/* The device that a selector or a Slurm line of the file names; NULL: none does. */
const char *oos_finder_gpu(oos_arena *arena, oos_view text);

#endif
