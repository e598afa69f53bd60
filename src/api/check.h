/* What check.c and check_plan.c share. */
#ifndef OOS_API_CHECK_H
#define OOS_API_CHECK_H

#include "api/api.h"
#include "report/check.h"

/* A device of the machine that a file describes, and what commands of the file hold of it. */
typedef struct oos_check_device {
    uint32_t shares;   /* of oos_found */
    const char *token; /* "0", or a name */
    uint64_t held_bytes;
    const char *names;
} oos_check_device;

struct oomsight_check {
    oos_arena *arena;
    oos_checked *list;
    size_t count, room, files;
    size_t failing;      /* plans so far: the search for what helps costs most, and many alike need it once */
    const char **looked; /* files that were read */
    size_t looked_count, looked_room;
    const char **named; /* files that a kustomization takes as they are */
    size_t named_count, named_room;
    oos_check_device *devices; /* of the file that is being read */
    size_t device_count, device_room;
    struct oos_check_known *known; /* answers by what was asked */
};

/* One more of a list that doubles: false when out of memory. */
bool oos_check_grow(oos_arena *arena, void **list, size_t count, size_t *room, size_t item_bytes);

/* A place in the list; NULL when out of memory. */
oos_checked *oos_check_next(oomsight_check *check);

/* Plan one command of a file and keep what a report needs of it. `found` need not outlive the call. */
void oos_check_command(oomsight_check *check, const oomsight_check_params *params, const char *path,
                       const oos_found *found);
void oos_check_forget(oomsight_check *check);

#endif
