/* The processes below a command. Those that use CUDA and that the guard does not see are written into the segment, with the reason. A
 * process that ends between two looks is not found. */
#ifndef OOS_RUN_PROCESSES_H
#define OOS_RUN_PROCESSES_H

#include "base/segment.h"

typedef struct oos_process_family oos_process_family;

oos_process_family *oos_family_create(void); /* NULL: no memory */
void oos_family_free(oos_process_family *family);

/* `root`: the process that was started. */
void oos_family_look(oos_process_family *family, oos_segment *segment, uint32_t root);

#endif
