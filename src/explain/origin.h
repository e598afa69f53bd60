/* Whose log a path is, by the layouts of Kubernetes and docker. Only parts that keep the rules for such names are taken: the
 * rest of the program may print them anywhere. */
#ifndef OOS_EXPLAIN_ORIGIN_H
#define OOS_EXPLAIN_ORIGIN_H

#include <stdbool.h>
#include <stdint.h>

/* An empty string: not told by the path. */
typedef struct oos_origin {
    char space[64]; /* namespace */
    char pod[254];
    char pod_uid[64];
    char container[64];
    int64_t restart; /* -1: not told */
} oos_origin;

oos_origin oos_origin_of(const char *path);

#endif
