/* Environment variables of the engine and of the libraries in its process: which releases know them, and whether they move
 * memory. Names come from each release's own table (tools/list_env.py) into data/engines/<engine>/env.json. */
#ifndef OOS_FACTS_ENV_H
#define OOS_FACTS_ENV_H

#include "facts/flags.h"

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

#endif
