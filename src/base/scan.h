/* JSON read forward, without building it: for files that are large and regular (headers of weight files, the flag
 * table), where a tree of small allocations would cost more than the rest of the program together. base/json.h is for
 * everything else. A scan that meets something malformed is `failed` from then on: every call says "nothing more",
 * so loops end, and the caller asks once, at the end. */
#pragma once
#include "base/arena.h"

typedef struct oos_scan {
    const char *at, *end, *start;
    unsigned depth;
    bool failed;
    bool fresh; /* a bracket was just opened: no comma is due */
} oos_scan;

typedef enum oos_scan_kind {
    OOS_SCAN_NOTHING, /* end of the text, or failed */
    OOS_SCAN_OBJECT,
    OOS_SCAN_ARRAY,
    OOS_SCAN_STRING,
    OOS_SCAN_NUMBER,
    OOS_SCAN_WORD /* true, false, null */
} oos_scan_kind;

oos_scan oos_scan_begin(oos_view text);
oos_scan_kind oos_scan_peek(oos_scan *scan); /* what stands next; consumes white space only */

/* Objects and arrays: open, then ask for the next key or item until false; the closing bracket is consumed then.
 *     if (oos_scan_open(&scan, '{')) while (oos_scan_key(&scan, &key)) ...read or skip the value... */
bool oos_scan_open(oos_scan *scan, char bracket); /* anything else there: failed */
bool oos_scan_key(oos_scan *scan, oos_view *ret_key);
bool oos_scan_item(oos_scan *scan);

/* Values. The view of a string is what stands between the quotes, escapes and all; oos_scan_text() makes text of it. */
bool oos_scan_string(oos_scan *scan, oos_view *ret_raw);
oos_view oos_scan_string_or_none(oos_scan *scan);        /* empty where the value is no string */
bool oos_scan_u64(oos_scan *scan, uint64_t *ret_number); /* digits only, below 2^64 */
bool oos_scan_skip(oos_scan *scan, oos_view *ret_raw);   /* any value; `ret_raw` may be NULL */

/* True when the one value of the text has been read and only white space is left. */
bool oos_scan_done(oos_scan *scan);

/* Zero-terminated, escapes resolved. NULL: out of memory. An escape that is no character becomes U+FFFD, and so does
 * \u0000: texts end at a zero. */
char *oos_scan_text(oos_arena *arena, oos_view raw);
