/* The flags of `vllm serve` by engine version, as the real parsers have them. Read from
 * data/engines/<engine>/flags.json, whose fields docs/reference/formats/engine-flags.md describes. What a flag's value means is
 * left to command/serve. */
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

enum { OOS_FLAG_VALUES_MANY = UINT8_MAX };

/* How a flag is read from version `since` on. */
typedef struct oos_flag_form {
    oos_version since;
    oos_flag_kind kind;
    uint8_t least_values, most_values; /* words that follow it */
    bool nullable;                     /* `None` means none */
    bool pairs;                        /* `a=1,b=2` is taken beside JSON */
    bool takes_auto;                   /* `auto` stands for -1 */
    bool takes_word;                   /* of a JSON flag: a word that is no JSON is fine */
    bool strict;                       /* an unknown JSON key is an error */
    bool folds;                        /* letters are made small before the choices are looked at */
    const char *suffixes;              /* letters an integer may end with, "" for none: k 1000, K 1024, ... */
    const char *preset;                /* the default as text when it is one word, NULL */
    const char *const *choices;
    size_t choice_count; /* 0: anything */
} oos_flag_form;

typedef struct oos_flag_record {
    const char *name; /* canonical, "--max-num-seqs" */
    size_t name_len;
    const char *dest;           /* "max_num_seqs": the keyword of LLM(...) */
    const char *const *aliases; /* other spellings in the newest form, "-tp" */
    size_t alias_count;
    const char *negative;       /* "--no-enable-prefix-caching", NULL */
    const oos_flag_form *forms; /* oldest first, at least one */
    size_t form_count;
    bool memory;              /* can move device memory */
    oos_view json_keys;       /* as they stand in the table, see oos_flag_key_find() */
    oos_version since, until; /* of the versions dumped; until UINT64_MAX: still there */
} oos_flag_record;

typedef struct oos_flag_table {
    const oos_flag_record *list;
    size_t count;
    const oos_version *versions; /* whose parser was dumped, oldest first */
    size_t version_count;
    oos_view variables;       /* the engine's env.json, see facts/env.h; empty: there is none */
    oos_version dotted_since; /* `--flag.key value` is taken from here on */
    const void *index;        /* private: hash over every spelling */
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

#endif
