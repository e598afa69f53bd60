/* The guard: loaded in front of an engine by `oomsight run`. It counts what is allocated on real devices and answers "out of
 * memory" past a budget, before the driver is asked.
 *
 * It is a guest. It never prints, never ends the process, and changes no result unless a budget says so. Without its segment,
 * or when anything of its own fails, every call goes on as if it were not there. Launches are not among its calls.
 *
 *   calls.def     the calls it stands in front of
 *   runtime.c driver.c nvml.c    a forwarder for each
 *   next.c        the function behind a forwarder; the addresses that dlsym() and cuGetProcAddress() hand out
 *   account.c     this process's place in the segment, budgets, charges
 *   blocks.c      which address holds which charge
 *   peers.c       runs that divide the devices with this one
 *
 * The runtime calls the driver: a forwarder that is reached from inside another one only forwards, so nothing counts twice. */
#pragma once
#include "base/segment.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OOS_GUARD_CALL __attribute__((visibility("default")))

enum { OOS_GUARD_OUT_OF_MEMORY = 2 }; /* of the runtime and of the driver */

/* ---- next.c */

typedef enum oos_guard_library { OOS_GUARD_RUNTIME, OOS_GUARD_DRIVER, OOS_GUARD_NVML } oos_guard_library;

typedef enum oos_guard_call {
#define CALL(library, name) OOS_GUARD_##name,
#include "guard/calls.def"
#undef CALL
    OOS_GUARD_CALLS
} oos_guard_call;

/* The function that the process would have called without us. Never NULL: what is nowhere answers "not initialized". */
void *oos_guard_next(oos_guard_call call);
#define NEXT(name) ((__typeof__(&name))oos_guard_next(OOS_GUARD_##name))

/* Any other function of a library that is loaded; NULL when it is not. */
void *oos_guard_find(oos_guard_library library, const char *name);

/* Put the forwarder in place of what the driver answered to a question by name. `version`: of CUDA, as it was asked for. */
void oos_guard_put_forwarder(const char *name, unsigned version, bool per_thread_stream, void **address);

/* ---- account.c */

typedef struct oos_guard_charge {
    uint64_t bytes;
    uint32_t device, phase, use, owner; /* device: index in the segment */
    uint32_t late; /* more than there seems to be, and no budget: counted when the driver has given it */
} oos_guard_charge;

/* Around every forwarder: false when there is no run, or when another forwarder of this thread is already at work. */
bool oos_guard_enter(void);
void oos_guard_leave(void);

/* Something that this process takes is not counted: the report has to say so. */
void oos_guard_unseen(oos_unseen why);

typedef enum oos_guard_side { OOS_GUARD_BY_RUNTIME, OOS_GUARD_BY_DRIVER } oos_guard_side;

/* Device of the segment for an ordinal of this process; negative: the current one. -1: there is none. */
int oos_guard_device(oos_guard_side side, int ordinal);

/* False: it would pass the budget, which is noted. */
bool oos_guard_take(oos_guard_side side, int device, oos_use use, uint64_t bytes,
                    oos_guard_charge *ret_charge);
void oos_guard_granted(oos_guard_charge *charge); /* the driver has given it */
void oos_guard_return(const oos_guard_charge *charge);

/* Into the ring of the last events, from which a bundle makes a trace. `at`: an address or handle. A free is noted before it is made:
 * another thread may get the same address at once. */
void oos_guard_event(oomsight_trace_kind kind, const oos_guard_charge *charge, uint64_t at);
bool oos_guard_pinned_take(uint64_t bytes);
void oos_guard_pinned_return(uint64_t bytes);

/* What a question for free and total memory shall show: within the budget. */
void oos_guard_view(int device, uint64_t *free_bytes, uint64_t *total_bytes);
void oos_guard_view_nvml(int device, uint64_t *free_bytes,
                         uint64_t *total_bytes); /* NVML's own total is another figure */
uint64_t oos_guard_total(int device, uint64_t total_bytes);

/* Device of the segment by its address on the bus ("0000:01:00.0", with more or fewer zeros in front); -1: none. */
int oos_guard_device_at(const char *bus_id);

/* ---- peers.c */

/* Under the lock: bytes on a device that those of the same name have taken, or given back, since this run began. */
int64_t oos_guard_peers_grown(const oos_segment *run, uint32_t device);

/* ---- blocks.c: what this process holds, by address. A key is used once at a time. */

typedef enum oos_guard_kind {
    OOS_GUARD_BLOCK,
    OOS_GUARD_PINNED,
    OOS_GUARD_HANDLE,
    OOS_GUARD_MAPPED
} oos_guard_kind;

typedef struct oos_guard_block {
    uint64_t key;
    oos_guard_charge charge; /* of a block or handle; a pinned one has its bytes alone */
    uint64_t handle, bytes;  /* of a mapped range */
    uint32_t kind, holders;  /* holders of a handle: references and mappings */
} oos_guard_block;

bool oos_guard_block_put(const oos_guard_block *block); /* false: no memory; then it is not tracked */
bool oos_guard_block_pop(oos_guard_kind kind, uint64_t key, oos_guard_block *ret_block);
/* One holder more or fewer; false: not known. *ret_last: it was the last one and is gone. */
bool oos_guard_handle_hold(uint64_t handle);
bool oos_guard_handle_drop(uint64_t handle, oos_guard_block *ret_last, bool *ret_is_last);
/* Any mapping inside the range; false: none is left. */
bool oos_guard_mapped_pop(uint64_t at, uint64_t bytes, oos_guard_block *ret_block);
/* Any block of a device; false: none is left. */
bool oos_guard_device_pop(uint32_t device, oos_guard_block *ret_block);
void oos_guard_blocks_forked(void); /* a child holds nothing */
