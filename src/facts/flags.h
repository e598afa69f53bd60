/* The flags of `vllm serve` by engine version, as the real parsers have them. Read from data/engines/vllm/flags.json. */
#ifndef OOS_FACTS_FLAGS_H
#define OOS_FACTS_FLAGS_H

#include "base/arena.h"
#include "base/error.h"
#include "facts/version.h"

typedef enum oos_flag_kind {
    OOS_FLAG_KIND_SWITCH, /* no value; may have a --no-x twin */
    OOS_FLAG_KIND_INT,
    OOS_FLAG_KIND_FLOAT,
    OOS_FLAG_KIND_STR,
    OOS_FLAG_KIND_CHOICE,
    OOS_FLAG_KIND_JSON, /* JSON text or dotted keys */
    OOS_FLAG_KIND_LIST  /* takes several words */
} oos_flag_kind;

typedef struct oos_flag_record {
    const char *name;           /* canonical, "--max-num-seqs" */
    const char *const *aliases; /* other spellings, "-tp" */
    size_t alias_count;
    const char *negative; /* "--no-enable-prefix-caching", NULL */
    oos_flag_kind kind;
    const char *const *choices;
    size_t choice_count;
    bool memory;              /* can move device memory */
    oos_version since, until; /* of the versions dumped; until UINT64_MAX: still there */
} oos_flag_record;

typedef struct oos_flag_table {
    const oos_flag_record *list;
    size_t count;
    void *index; /* private: hash over every spelling */
} oos_flag_table;

oomsight_status oos_flags_load(oos_arena *arena, const char *data_dir, const char *engine,
                               oos_flag_table *ret_table, oomsight_error *reterr);

/* By any spelling, dashes and underscores alike. *ret_negated: it was the --no-x form. NULL: no such flag. */
const oos_flag_record *oos_flags_find(const oos_flag_table *table, oos_view spelling, bool *ret_negated);

/* The closest known spelling, or NULL when nothing is close. */
const char *oos_flags_nearest(const oos_flag_table *table, oos_view spelling);

#endif
