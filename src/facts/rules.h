/* The rules of one engine version: defaults and formulas that changed from release to release. Read from
 * data/engines/vllm/rules.json: for each rule a list of steps, the last step not after the version applies. */
#ifndef OOS_FACTS_RULES_H
#define OOS_FACTS_RULES_H

#include "base/arena.h"
#include "base/error.h"
#include "facts/arguments.h"
#include "facts/version.h"

typedef struct oos_rules {
    oos_version version;
    const oos_argument_facts *facts; /* NULL: none */
#define REAL(name) double name;
#define WHOLE(name) uint64_t name;
#define YES(name) bool name;
#include "facts/rules.def"
#undef REAL
#undef WHOLE
#undef YES
} oos_rules;

/* All steps of all rules, parsed once. */
typedef struct oos_rule_book oos_rule_book;

oomsight_status oos_rule_book_load(oos_arena *arena, const char *data_dir, const char *engine,
                                   oos_rule_book **ret_book, oomsight_error *reterr);

/* The rules of a version. Versions before the first or after the last known one are refused / taken as the last with
 * *ret_beyond set. */
oomsight_status oos_rules_of(const oos_rule_book *book, oos_version version, oos_rules *ret_rules,
                             bool *ret_beyond, oomsight_error *reterr);

/* Releases the book names, oldest first. */
size_t oos_rule_book_versions(const oos_rule_book *book, const oos_version **ret_versions);

#endif
