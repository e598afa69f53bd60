/* Constants that were fitted on measured starts, each with its range and the number of its independent sources. They are data:
 * data/constants.json for devices, data/engines/ENGINE/constants.json for an engine. tools/constants.py checks them and writes the tables. */
#ifndef OOS_FACTS_CONSTANTS_H
#define OOS_FACTS_CONSTANTS_H

#include "facts/version.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct oos_constant {
    uint64_t value, low, high;
    unsigned sources;
} oos_constant;

/* Which of the three is asked for: what is computed with all low ends, or all high ones, is the range of what is computed. */
typedef enum oos_constant_end { OOS_CONSTANT_VALUE, OOS_CONSTANT_LOW, OOS_CONSTANT_HIGH } oos_constant_end;

/* What a row may depend on. */
typedef struct oos_constant_where {
    unsigned capability;
    uint64_t torch_minor; /* 0: the newest */
    uint64_t ranks;
    oos_version version;
    bool nvlink, unified;
    oos_constant_end end;
} oos_constant_where;

typedef struct oos_constant_row {
    uint32_t capability[2], torch[2], ranks[2]; /* first and last */
    oos_version since, before;
    int8_t nvlink, unified; /* -1: either */
    oos_constant constant;
} oos_constant_row;

typedef struct oos_constants {
    const oos_constant_row *rows;
    const uint16_t *first; /* row of each id, and one behind the last */
    size_t count;
} oos_constants;

/* All zero where no row holds: outside the domain of the constant. */
oos_constant oos_constant_at(const oos_constants *constants, size_t id, const oos_constant_where *where);
/* Its value, or one of its ends. */
uint64_t oos_constant_end_of(oos_constant constant, oos_constant_end end);
/* ... the one that `where` asks for. */
uint64_t oos_constant_of(const oos_constants *constants, size_t id, const oos_constant_where *where);

typedef enum oos_device_constant {
#define CONSTANT(name) OOS_DEVICE_##name,
#include "facts/constants.def"
#undef CONSTANT
    OOS_DEVICE_CONSTANT_COUNT
} oos_device_constant;
extern const oos_constants oos_device_constants;

#endif
