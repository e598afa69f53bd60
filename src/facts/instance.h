/* Machines to rent, and the GPU in them: data/instances.json. */
#ifndef OOS_FACTS_INSTANCE_H
#define OOS_FACTS_INSTANCE_H

#include "base/arena.h"
#include "base/error.h"

/* The GPU of a machine of that type ("g6e.12xlarge"): the longest beginning that is listed. *ret_gpu NULL: none is. */
oomsight_status oos_instance_gpu(oos_arena *arena, const char *data_dir, const char *type,
                                 const char **ret_gpu, oomsight_error *reterr);

#endif
