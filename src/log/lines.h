/* Whether a text is what a program printed: by its lines, not by what they say. */
#ifndef OOS_INPUT_LINES_H
#define OOS_INPUT_LINES_H

#include "base/view.h"

/* A line with a time, a level or a process before its message, the head of a traceback, or an error by its class is among them. */
bool oos_lines_of_log(oos_view text);

#endif
