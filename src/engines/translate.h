/* A command of one engine, said to another: data/engines/meanings.json has the flags that mean the same. */
#ifndef OOS_ENGINES_TRANSLATE_H
#define OOS_ENGINES_TRANSLATE_H

#include "engines/engine.h"

typedef struct oos_translation {
    const char *const *words; /* NAME serve MODEL [flags] */
    size_t count;
    const char *const *left_out; /* a sentence for every flag that moves memory and has no word there */
    size_t left_out_count;
} oos_translation;

oomsight_status oos_translate(oos_arena *arena, const char *data_dir, const oos_engine *from,
                              const oos_serve *serve, const oos_engine *to, oos_translation *ret_translation,
                              oomsight_error *reterr);

#endif
