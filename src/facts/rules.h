/* The rules of one engine version: defaults and formulas that changed from release to release. Read from
 * data/engines/<engine>/rules.json: for each rule a list of steps, the last step not after the version applies. */
#ifndef OOS_FACTS_RULES_H
#define OOS_FACTS_RULES_H

#include "base/arena.h"
#include "base/error.h"
#include "facts/arguments.h"
#include "facts/version.h"

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

/* Fails where the version is older than the first one known. */
oomsight_status oos_rule_book_reaches(const oos_rule_book *book, oos_version version, oomsight_error *reterr);

/* Whether starts of this very release were set beside the rules: one between two that were is not known by them. */
bool oos_rule_book_measured(const oos_rule_book *book, oos_version version);

/* Releases the book names, oldest first. */
size_t oos_rule_book_versions(const oos_rule_book *book, const oos_version **ret_versions);

#endif
