/* This process's place in the run: attaching to the segment at the first call (never at load), the slot, forks, which
 * devices are visible, contexts. */
#include "device/internal.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pthread_mutex_t own_lock =
    PTHREAD_MUTEX_INITIALIZER; /* one thread of a process at the segment's lock */
static pthread_mutex_t attach_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t visible_once = PTHREAD_ONCE_INIT;
static oos_segment *run; /* set once, read without a lock */
static char run_path[512];
static bool attach_failed, fork_handled, orphan, forked;
static oos_segment_process *slot;
static uint32_t own_pid;
static uint64_t own_start_ticks;
static unsigned visible[OOS_SEGMENT_DEVICES], visible_count;
static __thread unsigned current;

static void fork_prepare(void)
{
    oos_arena_lock();
    pthread_mutex_lock(&own_lock);
}

static void fork_parent(void)
{
    pthread_mutex_unlock(&own_lock);
    oos_arena_unlock();
}

/* A CUDA context does not survive a fork; the child may look (NVML) but not allocate. */
static void fork_child(void)
{
    orphan = orphan || (slot && slot->contexts);
    forked = true;
    slot = NULL;
    own_pid = 0;
    pthread_mutex_unlock(&own_lock);
    oos_arena_unlock();
    oos_arena_forked();
}

static void attach(void)
{
    const char *path = getenv(OOS_SEGMENT_ENV);
    if (!path || strlen(path) >= sizeof run_path) {
        attach_failed = true;
        return;
    }
    oos_segment *segment;
    if (oos_segment_open(path, &segment) != OOS_SEGMENT_OK) {
        attach_failed = true;
        return;
    }
    memcpy(run_path, path, strlen(path) + 1);
    if (!fork_handled) {
        fork_handled = true;
        pthread_atfork(fork_prepare, fork_parent, fork_child);
    }
    __atomic_store_n(&run, segment, __ATOMIC_RELEASE);
    oos_calls_attach();
}

/* A process that was forked and then given another run belongs to that one. */
static void change(void)
{
    const char *path = getenv(OOS_SEGMENT_ENV);
    forked = false;
    if (orphan || !path || strcmp(path, run_path) == 0) return;
    run = NULL; /* stays mapped: counters of calls may still lie in it */
    attach_failed = false;
    visible_once = (pthread_once_t)PTHREAD_ONCE_INIT;
    visible_count = 0;
}

oos_segment *oos_run(void)
{
    oos_segment *segment = __atomic_load_n(&run, __ATOMIC_ACQUIRE);
    if ((segment || __atomic_load_n(&attach_failed, __ATOMIC_RELAXED)) && !forked) return segment;
    pthread_mutex_lock(&attach_lock);
    if (forked) change();
    if (!run && !attach_failed) attach();
    pthread_mutex_unlock(&attach_lock);
    return run;
}

bool oos_run_attached(void)
{
    return __atomic_load_n(&run, __ATOMIC_ACQUIRE) != NULL;
}

const char *oos_run_path(void)
{
    return run_path;
}

bool oos_run_lock(oos_segment_process **ret_slot)
{
    oos_segment *segment = oos_run();
    if (!segment || orphan) return false;
    pthread_mutex_lock(&own_lock);
    if (!own_pid) {
        own_start_ticks = oos_process_start_ticks((uint32_t)getpid());
        own_pid = (uint32_t)getpid();
    }
    oos_segment_lock(segment, own_pid, own_start_ticks);
    if (!slot)
        __atomic_store_n(&slot, oos_segment_claim(segment, own_pid, own_start_ticks), __ATOMIC_RELEASE);
    if (!slot) {
        oos_run_unlock();
        return false;
    }
    *ret_slot = slot;
    return true;
}

void oos_run_unlock(void)
{
    oos_segment_unlock(run);
    pthread_mutex_unlock(&own_lock);
}

/* CUDA_VISIBLE_DEVICES: indices or UUIDs as NVML prints them; the first wrong word ends the list. */
static void visible_read(void)
{
    const oos_segment *segment = run;
    const char *list = getenv("CUDA_VISIBLE_DEVICES");
    if (!list) {
        for (unsigned i = 0; i < segment->device_count; i++) visible[i] = i;
        visible_count = segment->device_count;
        return;
    }
    while (*list && visible_count < OOS_SEGMENT_DEVICES) {
        while (*list == ' ') list++;
        bool const uuid = strncmp(list, "GPU-", 4) == 0; /* ours end in the index */
        const char *digits = uuid ? list + strcspn(list, ",") - 2 : list;
        char *end;
        unsigned long const index = strtoul(digits, &end, uuid ? 16 : 10);
        if (end == digits || index >= segment->device_count) break;
        visible[visible_count++] = (unsigned)index;
        if (*end != ',') break;
        list = end + 1;
    }
}

unsigned oos_device_count(void)
{
    if (!oos_run()) return 0;
    pthread_once(&visible_once, visible_read);
    return visible_count;
}

unsigned oos_device_physical(unsigned index)
{
    return index < oos_device_count() ? visible[index] : 0;
}

const oos_device_spec *oos_device_spec_of(unsigned index)
{
    static const oos_device_spec nothing;
    return oos_run() ? &run->devices[oos_device_physical(index)].spec : &nothing;
}

unsigned oos_device_current(void)
{
    return current;
}

int oos_device_select(int index)
{
    if (index < 0 || (unsigned)index >= oos_device_count()) return OOS_CODE_INVALID_DEVICE;
    current = (unsigned)index;
    return oos_device_context(current);
}

bool oos_device_has_context(unsigned index)
{
    const oos_segment_process *mine = __atomic_load_n(&slot, __ATOMIC_ACQUIRE);
    if (!mine || index >= oos_device_count()) return false;
    return __atomic_load_n(&mine->contexts, __ATOMIC_ACQUIRE) >> visible[index] & 1;
}

int oos_device_context(unsigned index)
{
    if (index >= oos_device_count()) return oos_run() ? OOS_CODE_INVALID_DEVICE : OOS_CODE_NO_DEVICE;
    if (oos_device_has_context(index)) return OOS_CODE_OK;
    if (orphan) return OOS_CODE_NOT_INITIALIZED;

    oos_segment_process *mine;
    if (!oos_run_lock(&mine)) return OOS_CODE_NOT_INITIALIZED;
    uint64_t const bit = (uint64_t)1 << visible[index];
    bool const ours = !(mine->contexts & bit);
    __atomic_fetch_or(&mine->contexts, bit, __ATOMIC_RELEASE);
    oos_run_unlock();
    if (!ours) return OOS_CODE_OK;

    oos_charge charge; /* never returned: it lives as long as the process */
    int const code =
        oos_charge_take(index, OOS_USE_CONTEXT, oos_device_spec_of(index)->context_bytes, &charge);
    if (code != OOS_CODE_OK) __atomic_fetch_and(&mine->contexts, ~bit, __ATOMIC_RELEASE);
    return code;
}

unsigned oos_device_processes(unsigned physical, uint32_t *ret_pids, uint64_t *ret_bytes, unsigned most)
{
    oos_segment_process *mine;
    unsigned count = 0;
    if (physical >= OOS_SEGMENT_DEVICES || !oos_run_lock(&mine)) return 0;
    for (unsigned i = 0; i < OOS_SEGMENT_PROCESSES; i++) {
        const oos_segment_process *process = &run->processes[i];
        if (!process->pid || !process->held_bytes[physical]) continue;
        if (count < most) {
            ret_pids[count] = process->pid;
            ret_bytes[count] = process->held_bytes[physical];
        }
        count++;
    }
    oos_run_unlock();
    return count;
}

void oos_device_free_bytes(unsigned physical, uint64_t *ret_free, uint64_t *ret_total)
{
    oos_segment_process *mine;
    *ret_free = *ret_total = 0;
    if (physical >= OOS_SEGMENT_DEVICES || !oos_run_lock(&mine)) return;
    oos_segment_reap(run);
    oos_denial_over(run, mine->pid);
    const oos_segment_device *device = &run->devices[physical];
    uint64_t const used = device->held_bytes + device->spec.others_bytes;
    *ret_total = device->spec.total_bytes;
    *ret_free = used < *ret_total ? *ret_total - used : 0;
    oos_run_unlock();
}
