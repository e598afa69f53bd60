/* A report that fits a screen: parts in the order in which they are printed. When there are too many lines, those of the highest rank are
 * left out first, and the last line says how to see them. */
#ifndef OOS_REPORT_SCREEN_H
#define OOS_REPORT_SCREEN_H

#include "report/style.h"

enum { OOS_SCREEN_LINES = 24, OOS_SCREEN_PARTS = 160 };

typedef struct oos_screen {
    oos_text parts[OOS_SCREEN_PARTS];
    unsigned ranks[OOS_SCREEN_PARTS];
    size_t count;
} oos_screen;

/* The style with which the next part is written. Rank 0 is never left out. */
oos_style oos_screen_part(oos_screen *screen, const oos_style *style, unsigned rank);

/* The parts into `style`, all of them or as many as fit; `hint` is the last line when some do not. */
void oos_screen_put(oos_screen *screen, const oos_style *style, bool whole, const char *hint);

#endif
