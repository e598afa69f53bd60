/* Lists of module names as quantisation configs write them, searched by layer: configs name every module of every
 * layer, and a plan must not compare each with each. Used by quant.c only. */
#ifndef OOS_INPUT_QUANT_NAMES_H
#define OOS_INPUT_QUANT_NAMES_H

#include "base/arena.h"
#include "match/names.h"

typedef struct oos_name {
    const char *text;
    const oos_regex *pattern; /* `re:` and regular keys; NULL: a plain name or glob */
    uint64_t layer;           /* the N of "layers.N.", UINT64_MAX: any */
    uint32_t value;           /* what the caller keeps with it */
    uint32_t order;           /* place in the config */
} oos_name;

typedef struct oos_names {
    oos_name *list; /* sorted by layer, in the order given within a layer */
    size_t count, room;
    bool sorted;
} oos_names;

bool oos_names_add(oos_arena *arena, oos_names *names, const char *text, bool regular, uint32_t value);
void oos_names_sort(oos_names *names);

/* Entries that may concern `layer`: its own and those of any layer. UINT64_MAX: all. Visit until `visit` says true. */
typedef bool oos_name_visit(const oos_name *name, void *context);
const oos_name *oos_names_find(const oos_names *names, uint64_t layer, oos_name_visit *visit, void *context);

/* True when no entry of any layer names a digit: what they say of a module is the same in all layers. */
bool oos_names_layerless(const oos_names *names);

#endif
