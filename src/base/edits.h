/* How far one word is from another, for those who mistype. */
#pragma once
#include "base/view.h"

enum { OOS_EDITS_MAX = 96 }; /* bytes of a word; longer ones are as far as that */

/* Edits that turn one word into the other: a letter more, a letter less, another letter, two letters swapped. An underscore of `given` is
 * a dash. */
size_t oos_edits(oos_view given, oos_view known);
