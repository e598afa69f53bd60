/* The local Hugging Face cache: which directory holds a model that was downloaded before.
 *
 *     <cache>/models--org--name/refs/main             a commit, as text
 *     <cache>/models--org--name/snapshots/<commit>/   its files
 *
 * <cache> is HF_HUB_CACHE, or HUGGINGFACE_HUB_CACHE, or HF_HOME/hub, or XDG_CACHE_HOME/huggingface/hub, or
 * ~/.cache/huggingface/hub. */
#ifndef OOS_INPUT_HFCACHE_H
#define OOS_INPUT_HFCACHE_H

#include "base/arena.h"
#include "base/error.h"

/* A model as people name it: "org/name", "org/name@revision". */
typedef struct oos_hub_id {
    const char *name;     /* "org/name" */
    const char *revision; /* "main" when none was given */
} oos_hub_id;

/* False when the word cannot be the name of a model on the hub, or memory is out. */
bool oos_hub_id_parse(oos_arena *arena, const char *word, oos_hub_id *ret_id);

/* The folder where the cache is, or would be. NULL: no home is known, or memory is out. */
const char *oos_hfcache_folder(oos_arena *arena);

/* The directory of a cached model with a config.json; NULL: not there. */
const char *oos_hfcache_find(oos_arena *arena, const oos_hub_id *id);

#endif
