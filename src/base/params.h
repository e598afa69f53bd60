/* Structs that cross the public border: sized by their first field, so that either side may be the older one. */
#pragma once
#include "base/arena.h"
#include "base/error.h"
#include "base/text.h"

/* Parameters come from a caller that may have been built with another header. A shorter struct is an older one: what it does not have
 * is 0. A longer one is newer: what we do not know of must be 0, or the caller asked for something that would not happen. */
oomsight_status oos_params_take(void *ours, size_t our_bytes, const void *given, oomsight_error *reterr);

/* Every entry with parameters begins with this: from here on `params` is a copy that has every field. */
#define OOS_TAKE_PARAMS(type, params)                                                                        \
    uint64_t const params##_denied = oos_memory_denied();                                                    \
    type params##_here = {0};                                                                                \
    OOS_TRY(oos_params_take(&params##_here, sizeof params##_here, params, reterr));                          \
    params = &params##_here

/* ... and ends with one of these: what was made while memory was denied is not handed out. */
#define OOS_WHOLE_STATUS(params, status) oos_params_whole(status, params##_denied, reterr)
#define OOS_WHOLE_TEXT(params, text, ret_text)                                                               \
    ((text)->failed |= oos_memory_denied() != params##_denied, oos_text_take(text, ret_text, reterr))
oomsight_status oos_params_whole(oomsight_status status, uint64_t denied_before, oomsight_error *reterr);

/* The other way: a struct that the caller gave us to fill, as far as it reaches. Its size stays what it was. */
void oos_params_give(void *given, const void *ours, size_t our_bytes);
