/* What each release says of its own arguments: architectures it knows, bounds of numbers, quantisation methods, attention
 * backends. Read out of the releases by tools/dump_architectures.py and tools/dump_arguments.py into
 * data/engines/<engine>/. What is code in the engine is code here too, in plan/arguments*.c. */
#ifndef OOS_FACTS_ARGUMENTS_H
#define OOS_FACTS_ARGUMENTS_H

#include "base/arena.h"
#include "base/error.h"
#include "facts/version.h"

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
    bool file;                       /* its settings are looked for in a file where the checkpoint has none */
    bool settings;                   /* ... and it cannot be made without any */
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
/* May a model of this type or architecture have MTP layers of its own that the release drafts with? */
bool oos_drafts_for_itself(const oos_argument_facts *facts, const char *type, const char *architecture,
                           oos_version version);

#endif
