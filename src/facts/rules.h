/* The rules of one engine version: defaults and formulas that changed from release to release. Read from
 * data/engines/<engine>/rules.json: for each rule a list of steps, the last step not after the version applies. */
#ifndef OOS_FACTS_RULES_H
#define OOS_FACTS_RULES_H

#include "base/arena.h"
#include "base/error.h"
#include "facts/arguments.h"
#include "facts/version.h"

typedef struct oos_rules {
    oos_version version;
    const oos_argument_facts *facts; /* NULL: none */
    bool measured;                   /* starts of this release were set beside its rules */
#define REAL(name) double name;
#define WHOLE(name) uint64_t name;
#define YES(name) bool name;
#include "facts/rules.def"
#undef REAL
#undef WHOLE
#undef YES
} oos_rules;

/* A rule of an engine: its name, and where its value goes in the struct that the engine keeps its rules in. */
typedef enum oos_rule_kind { OOS_RULE_REAL, OOS_RULE_WHOLE, OOS_RULE_YES } oos_rule_kind;
typedef struct oos_rule_place {
    const char *name;
    size_t offset;
    oos_rule_kind kind;
} oos_rule_place;

/* All steps of all rules, parsed once. */
typedef struct oos_rule_book oos_rule_book;

/* The rules of any engine: the file has each of `places` and no other. `places` must live as long as the book. */
oomsight_status oos_rule_book_load_of(oos_arena *arena, const char *data_dir, const char *engine,
                                      const oos_rule_place *places, size_t place_count,
                                      oos_rule_book **ret_book, oomsight_error *reterr);

/* Those of oos_rules, and what the engine says of its arguments. */
oomsight_status oos_rule_book_load(oos_arena *arena, const char *data_dir, const char *engine,
                                   oos_rule_book **ret_book, oomsight_error *reterr);

/* What the engine does for particular architectures, for a book without the rest. */
oomsight_status oos_rule_book_architectures(oos_arena *arena, const char *data_dir, const char *engine,
                                            oos_rule_book *book, oomsight_error *reterr);
const oos_argument_facts *oos_rule_book_facts(const oos_rule_book *book); /* NULL: none */

/* The rules of a version, into the struct that the places of the book belong to. Versions before the first or after the last known one are refused / taken as the last with
 * *ret_beyond set. */
oomsight_status oos_rules_fill(const oos_rule_book *book, oos_version version, void *rules, bool *ret_beyond,
                               oomsight_error *reterr);
oomsight_status oos_rules_of(const oos_rule_book *book, oos_version version, oos_rules *ret_rules,
                             bool *ret_beyond, oomsight_error *reterr);

/* Fails where the version is older than the first one known. */
oomsight_status oos_rule_book_reaches(const oos_rule_book *book, oos_version version, oomsight_error *reterr);

/* Whether starts of this very release were set beside the rules: one between two that were is not known by them. */
bool oos_rule_book_measured(const oos_rule_book *book, oos_version version);

/* Releases the book names, oldest first. */
size_t oos_rule_book_versions(const oos_rule_book *book, const oos_version **ret_versions);

#endif
