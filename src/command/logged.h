/* The arguments of an engine as it prints them itself: {'model': 'x', 'tp_size': 2} or ServerArgs(model='x', tp_size=2). */
#ifndef OOS_COMMAND_LOGGED_H
#define OOS_COMMAND_LOGGED_H

#include <stdbool.h>

typedef struct oos_logged {
    const char *at;
    /* Of the argument at hand. */
    char key[128];
    char value[2048]; /* as text for a command line; JSON for a nested one */
    bool nested;
    bool broken; /* the text ends within a string, or has none of the two shapes */
    bool whole;  /* its closing bracket was reached */
} oos_logged;

void oos_logged_open(const char *text, oos_logged *ret_list);
/* False: there are no more; `broken` and `whole` say why. */
bool oos_logged_next(oos_logged *list);

#endif
