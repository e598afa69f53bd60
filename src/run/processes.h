/* The processes below a command. Those that use CUDA and that the guard does not see are written into the segment, with the reason, when
 * two looks in a row say the same: what is read of a process that starts or ends meanwhile is not whole. A process that ends between two
 * looks is not found. */
#ifndef OOS_RUN_PROCESSES_H
#define OOS_RUN_PROCESSES_H

#include "base/segment.h"

typedef struct oos_process_family oos_process_family;

/* `root`: where /proc is; "" for this machine's. It must outlive the family. NULL: no memory. */
oos_process_family *oos_family_create(const char *root);
void oos_family_free(oos_process_family *family);

/* `pid`: the process that was started. True: there is somebody to look at again soon. */
bool oos_family_look(oos_process_family *family, oos_segment *segment, uint32_t pid);

#endif
