/* Engine versions as ordered numbers. */
#ifndef OOS_FACTS_VERSION_H
#define OOS_FACTS_VERSION_H

#include "base/scan.h"
#include "base/view.h"

/* Ordered: a later release is a larger number. */
typedef uint64_t oos_version;
#define OOS_VERSION(major, minor, patch)                                                                     \
    ((oos_version)(major) << 32 | (oos_version)(minor) << 16 | (oos_version)(patch))

/* "0.19.1", "v0.11.0", "0.8", "0.11.1.dev12+g5ded9e9aa", "0.28.0rc2". A development build numbered X.devN is code from
 * before release X: it sorts below X and not below the release before X, so the rules of that one apply. */
bool oos_version_parse(oos_view text, oos_version *ret_version);

/* The next value of a table; 0: it is no version. */
oos_version oos_version_scan(oos_scan *scan);

void oos_version_print(oos_version version, char *ret_text, size_t capacity);

#endif
