/* Being told of files that come and go, by inotify. An aid: whoever uses it also looks for himself now and then. */
#ifndef OOS_EXPLAIN_WATCH_H
#define OOS_EXPLAIN_WATCH_H

#include <stdbool.h>
#include <stddef.h>

typedef struct oos_watch oos_watch;

oos_watch *oos_watch_open(void);        /* NULL: the system has none to give */
void oos_watch_close(oos_watch *watch); /* NULL is fine */

/* A folder; again is fine. It goes by itself when the folder does. */
void oos_watch_add(oos_watch *watch, const char *path, size_t root, const char *relative);

/* Each folder in which a name appeared, moved or vanished since the last call, once. False: not everything is watched, or
 * something was missed. */
bool oos_watch_take(oos_watch *watch, void (*on_change)(void *context, size_t root, const char *relative),
                    void *context);

#endif
