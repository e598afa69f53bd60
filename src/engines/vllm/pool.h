/* The sleep-mode pool while weights are loaded: memory that is free but can never be used again. */
#ifndef OOS_PLAN_POOL_H
#define OOS_PLAN_POOL_H

#include "engines/vllm/setup/setup.h"

/* Bytes stranded in the pool when the last layer of `stage` has been repacked; 0 when the pool, the split limit or the
 * repack that causes it is not there. */
uint64_t oos_pool_strand(const oos_setup *setup, uint64_t stage);

#endif
