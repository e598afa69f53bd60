/* The one edge to Jansson: loading JSON from strangers, and reading typed fields out of it. Getters never fail: they
 * say whether a usable value was there. A number that is negative, not finite, not whole or beyond `OOS_JSON_MAX` is
 * not a usable size. */
#pragma once
#include "base/arena.h"
#include "base/error.h"

#include <jansson.h>

/* No honest config holds a larger size; keeping sizes below 2^53 lets products of three of them be checked cheaply. */
#define OOS_JSON_MAX ((uint64_t)1 << 53)

/* The root is released with the arena. Depth is limited by the parser; duplicate keys: the last one wins, as in
 * Python. */
oomsight_status oos_json_load(oos_arena *arena, oos_view bytes, json_t **ret_root, oomsight_error *reterr);

/* As json_loadb() and json_dumps(): the caller's to give to json_decref() and free(); NULL when it cannot be done. */
json_t *oos_json_parse(oos_view bytes, size_t flags);
char *oos_json_text(const json_t *value, size_t flags);

/* The same of a file without anything unusual; NULL: Jansson is to be asked. */
json_t *oos_json_parse_plain(oos_view bytes);
/* The text of a string, of what stands between its quotes, into as much room as that takes; NULL: only whether it is one. False: it
 * is none, or Jansson is to be asked. */
bool oos_json_plain_text(oos_view raw, char *to, size_t *ret_len);

/* NULL object is fine: nothing is there. */
bool oos_json_u64(const json_t *object, const char *key, uint64_t *ret_value);
bool oos_json_f64(const json_t *object, const char *key, double *ret_value);
bool oos_json_bool(const json_t *object, const char *key, bool *ret_value);
bool oos_json_str(const json_t *object, const char *key,
                  const char **ret_value); /* lives as long as the root */

/* A value rather than a field. */
bool oos_json_value_u64(const json_t *value, uint64_t *ret_value);
bool oos_json_value_f64(const json_t *value, double *ret_value);
