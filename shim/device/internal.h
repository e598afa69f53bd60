/* What the files of shim/device share with one another and with nobody else. */
#pragma once
#include "device/device.h"

#define OOS_GRANULE                                                                                          \
    ((uint64_t)2 << 20) /* the driver's allocation granularity; smaller ones share a granule */

/* Lock order: arena, then run. The run lock is the one between processes. */
bool oos_run_lock(oos_segment_process **ret_slot); /* false: no run, or a child of a process that used CUDA */
void oos_run_unlock(void);
bool oos_run_attached(void); /* without attaching */

void oos_arena_lock(void);
void oos_arena_unlock(void);
/* Under the arena lock. A range of whole granules at the lowest free address; NULL: no address space. */
oos_range *oos_arena_take(uint64_t bytes, oos_range_kind kind);
oos_range *oos_arena_at(const void *at);
void oos_arena_give(oos_range *range);
/* Put a range over a part of a reserved one, and take it away again. */
oos_range *oos_arena_overlay(oos_range *reserved, const void *at, uint64_t bytes);
void oos_arena_uncover(oos_range *mapped);
bool oos_slab_piece(const oos_range *slab, const void *at, uint64_t *ret_base, uint64_t *ret_size);
oos_range *oos_slab_with_room(uint32_t device, oos_use use, uint64_t bytes);
void *oos_slab_take(oos_range *slab, uint64_t bytes);
bool oos_slab_give(oos_range *slab, const void *at, bool *ret_empty);
oos_range *oos_slab_create(uint32_t device);
void oos_arena_drop(oos_range *range); /* its content is no longer needed */
void oos_arena_forked(void);

/* charge.c, under the lock: that process has asked what is free, so what --fail-after denied it has ended. */
void oos_denial_over(oos_segment *segment, uint32_t pid);

/* machine.c, under the lock: what host and devices have left together when so much more is taken. Does not return when it is nothing. */
void oos_machine_look(oos_segment *segment, uint64_t more_bytes);
