/* This process's place in the run, and what it may still take. */
#include "guard/guard.h"
#include "base/ascii.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { ORDINALS = OOS_SEGMENT_DEVICES, BUS_ID_BYTES = 12 }; /* 0000:01:00.0 */

static pthread_mutex_t own_lock =
    PTHREAD_MUTEX_INITIALIZER; /* one thread of a process at the segment's lock */
static pthread_mutex_t attach_lock = PTHREAD_MUTEX_INITIALIZER;
static oos_segment *run; /* set once, read without a lock */
static bool attach_failed, fork_handled;
static bool locked; /* under own_lock: the segment's lock is ours */
static bool given_up;
static oos_segment_process *slot;
static uint32_t own_pid;
static uint64_t own_start_ticks;
static int device_of_ordinal[ORDINALS]; /* index + 1; 0: not looked up */
static uint32_t measured;               /* a bit per device: its use was read by this process */
static __thread bool inside __attribute__((tls_model("initial-exec")));
static __thread int cancel_before __attribute__((tls_model("initial-exec")));

static void fork_prepare(void)
{
    pthread_mutex_lock(&own_lock);
}

static void fork_parent(void)
{
    pthread_mutex_unlock(&own_lock);
}

static void fork_child(void)
{
    slot = NULL;
    own_pid = 0;
    measured = 0;
    given_up = false; /* it tries for itself */
    memset(device_of_ordinal, 0, sizeof device_of_ordinal);
    pthread_mutex_unlock(&own_lock);
    oos_guard_blocks_forked();
}

static void attach(void)
{
    oos_segment *segment;
    const char *path = getenv(OOS_GUARD_ENV);
    if (!path || oos_segment_open(path, &segment) != OOS_SEGMENT_OK) {
        __atomic_store_n(&attach_failed, true, __ATOMIC_RELAXED);
        return;
    }
    if (!fork_handled) pthread_atfork(fork_prepare, fork_parent, fork_child);
    fork_handled = true;
    __atomic_store_n(&run, segment, __ATOMIC_RELEASE);
}

static bool attached(void)
{
    if (__atomic_load_n(&run, __ATOMIC_ACQUIRE)) return true;
    if (__atomic_load_n(&attach_failed, __ATOMIC_RELAXED)) return false;
    pthread_mutex_lock(&attach_lock);
    if (!run && !attach_failed) attach();
    pthread_mutex_unlock(&attach_lock);
    return run != NULL;
}

/* A thread that is cancelled while it has a lock would leave it locked: it is cancelled behind the call. */
bool oos_guard_enter(void)
{
    if (inside || __atomic_load_n(&given_up, __ATOMIC_RELAXED)) return false;
    if (__atomic_load_n(&attach_failed, __ATOMIC_RELAXED)) return false;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_before);
    inside = attached();
    if (!inside) pthread_setcancelstate(cancel_before, NULL);
    return inside;
}

void oos_guard_leave(void)
{
    inside = false;
    pthread_setcancelstate(cancel_before, NULL);
}

void oos_guard_unseen(oos_unseen why)
{
    if (run) oos_segment_unseen_put(run, (uint32_t)getpid(), why);
}

static oos_segment_process *lock_run(void)
{
    pthread_mutex_lock(&own_lock);
    if (!own_pid) {
        own_start_ticks = oos_process_start_ticks((uint32_t)getpid());
        own_pid = (uint32_t)getpid();
    }
    /* A neighbour that was stopped in the lock must not stop this process, too: it goes on uncounted, for good. */
    locked =
        !__atomic_load_n(&given_up, __ATOMIC_RELAXED) && oos_segment_lock_soon(run, own_pid, own_start_ticks);
    if (!locked) {
        if (!__atomic_exchange_n(&given_up, true, __ATOMIC_RELAXED)) oos_guard_unseen(OOS_UNSEEN_LOCK);
        return NULL;
    }
    if (!slot) slot = oos_segment_claim(run, own_pid, own_start_ticks);
    if (!slot) oos_guard_unseen(OOS_UNSEEN_PLACE);
    return slot;
}

static void unlock_run(void)
{
    if (locked) oos_segment_unlock(run);
    locked = false;
    pthread_mutex_unlock(&own_lock);
}

/* ---- devices ---- */

static const char *bus_id_end(const char *bus_id)
{
    size_t const len = strnlen(bus_id, 32);
    return len > BUS_ID_BYTES ? bus_id + len - BUS_ID_BYTES : bus_id;
}

int oos_guard_device_at(const char *bus_id)
{
    for (uint32_t i = 0; i < run->device_count && i < OOS_SEGMENT_DEVICES; i++)
        if (oos_same(bus_id_end(run->devices[i].spec.name), bus_id_end(bus_id))) return (int)i;
    return -1;
}

/* A device that the launcher did not know of: seen first by this process. */
static int device_enter(const char *bus_id)
{
    if (!lock_run()) {
        unlock_run();
        return -1;
    }
    int found = oos_guard_device_at(bus_id);
    if (found < 0 && run->device_count < OOS_SEGMENT_DEVICES) {
        oos_device_spec *spec = &run->devices[run->device_count].spec;
        strncpy(spec->name, bus_id, sizeof spec->name - 1);
        spec->total_bytes = 1; /* told with the first question for free memory */
        found = (int)run->device_count++;
    }
    unlock_run();
    return found;
}

typedef int (*bus_id_function)(char *, int, int);
typedef int (*current_function)(int *);
typedef int (*info_function)(size_t *, size_t *);

static int current_ordinal(oos_guard_side side)
{
    int ordinal = -1;
    static void *known[2]; /* looked up once: finding costs more than the call */
    void *at = __atomic_load_n(&known[side], __ATOMIC_RELAXED);
    if (!at)
        at = side == OOS_GUARD_BY_RUNTIME ? oos_guard_find(OOS_GUARD_RUNTIME, "cudaGetDevice")
                                          : oos_guard_find(OOS_GUARD_DRIVER, "cuCtxGetDevice");
    __atomic_store_n(&known[side], at, __ATOMIC_RELAXED);
    current_function function;
    memcpy(&function, &at, sizeof function);
    return function && function(&ordinal) == 0 ? ordinal : -1;
}

int oos_guard_device(oos_guard_side side, int ordinal)
{
    char bus_id[64] = "";
    if (ordinal < 0) ordinal = current_ordinal(side);
    if (ordinal < 0 || ordinal >= ORDINALS) return -1;
    int const known = __atomic_load_n(&device_of_ordinal[ordinal], __ATOMIC_RELAXED);
    if (known) return known - 1;
    void *at = side == OOS_GUARD_BY_RUNTIME ? oos_guard_find(OOS_GUARD_RUNTIME, "cudaDeviceGetPCIBusId")
                                            : oos_guard_find(OOS_GUARD_DRIVER, "cuDeviceGetPCIBusId");
    bus_id_function function;
    memcpy(&function, &at, sizeof function);
    if (!function || function(bus_id, sizeof bus_id, ordinal) != 0 || !bus_id[0]) return -1;
    int found = oos_guard_device_at(bus_id);
    if (found < 0) found = device_enter(bus_id);
    if (found >= 0) __atomic_store_n(&device_of_ordinal[ordinal], found + 1, __ATOMIC_RELAXED);
    return found;
}

/* ---- budgets ---- */

static uint64_t budget_of(const oos_segment_device *device)
{
    uint64_t const total = device->spec.property_bytes;
    uint64_t budget = UINT64_MAX;
    if (run->budget_bytes) budget = run->budget_bytes;
    if (run->budget_millionths && total) budget = total / 1000000 * run->budget_millionths;
    return total && total < budget ? total : budget;
}

/* MemAvailable of the host less the reserve, on unified memory; UINT64_MAX: no limit, or it cannot be read. */
static uint64_t host_room(void)
{
    char text[512];
    if (!run->reserve_bytes) return UINT64_MAX;
    int const fd = open("/proc/meminfo", O_RDONLY | O_CLOEXEC);
    if (fd < 0) return UINT64_MAX;
    ssize_t const len = read(fd, text, sizeof text - 1);
    close(fd);
    text[len > 0 ? len : 0] = '\0';
    const char *at = strstr(text, "MemAvailable:");
    if (!at) return UINT64_MAX;
    uint64_t const available = strtoull(at + 13, NULL, 10) << 10;
    return available > run->reserve_bytes ? available - run->reserve_bytes : 0;
}

/* What the real device says, put beside what the calls took. Skipped when another process changed the sum meanwhile. */
static void outside_note(oos_segment_device *device, uint64_t held_before, uint64_t free_bytes,
                         uint64_t total_bytes)
{
    device->spec.property_bytes = total_bytes;
    device->spec.total_bytes = budget_of(device);
    if (!device->spec.before_known || free_bytes > total_bytes || device->held_bytes != held_before) return;
    /* NVML's total and use have a reserved part that CUDA's have not. */
    uint64_t const nvml_total = device->spec.nvml_bytes,
                   reserved = nvml_total > total_bytes ? nvml_total - total_bytes : 0;
    uint64_t const before = device->spec.before_bytes > reserved ? device->spec.before_bytes - reserved : 0;
    int64_t const grown = run->share[0] ? oos_guard_peers_grown(run, (uint32_t)(device - run->devices)) : 0;
    uint64_t const used = total_bytes - free_bytes;
    uint64_t const here = before + device->held_bytes;
    uint64_t const explained = grown < 0 && (uint64_t)-grown > here ? 0 : here + (uint64_t)grown;
    device->outside_bytes = used > explained ? used - explained : 0;
    uint64_t const all = device->held_bytes + device->outside_bytes;
    if (all > device->peak_bytes) device->peak_bytes = all;
}

static uint64_t room_of(const oos_segment_device *device)
{
    uint64_t const budget = budget_of(device), taken = device->held_bytes + device->outside_bytes;
    return budget > taken ? budget - taken : 0;
}

/* Under the lock. */
static void show_within(const oos_segment_device *device, uint64_t *free_bytes, uint64_t *total_bytes)
{
    uint64_t const room = room_of(device), host = host_room(), budget = budget_of(device);
    if (room < *free_bytes) *free_bytes = room;
    if (host < *free_bytes) *free_bytes = host;
    if (budget < *total_bytes) *total_bytes = budget;
}

void oos_guard_view(int index, uint64_t *free_bytes, uint64_t *total_bytes)
{
    if (index < 0 || index >= OOS_SEGMENT_DEVICES) return;
    oos_segment_device *device = &run->devices[index];
    if (lock_run()) {
        oos_segment_reap(run);
        outside_note(device, device->held_bytes, *free_bytes, *total_bytes);
        measured |= 1u << index;
        show_within(device, free_bytes, total_bytes);
    }
    unlock_run();
}

void oos_guard_view_nvml(int index, uint64_t *free_bytes, uint64_t *total_bytes)
{
    if (index < 0 || index >= OOS_SEGMENT_DEVICES) return;
    if (lock_run()) show_within(&run->devices[index], free_bytes, total_bytes);
    unlock_run();
}

uint64_t oos_guard_total(int index, uint64_t total_bytes)
{
    if (index < 0 || index >= OOS_SEGMENT_DEVICES) return total_bytes;
    oos_segment_device *device = &run->devices[index];
    if (!device->spec.property_bytes) {
        if (lock_run()) {
            device->spec.property_bytes = total_bytes;
            device->spec.total_bytes = budget_of(device);
        }
        unlock_run();
    }
    uint64_t const budget = budget_of(device);
    return budget < total_bytes ? budget : total_bytes;
}

static bool measure(oos_guard_side side, uint64_t *ret_free, uint64_t *ret_total)
{
    void *at =
        oos_guard_next(side == OOS_GUARD_BY_RUNTIME ? OOS_GUARD_cudaMemGetInfo : OOS_GUARD_cuMemGetInfo_v2);
    info_function function;
    size_t free_bytes = 0, total_bytes = 0;
    memcpy(&function, &at, sizeof function);
    if (function(&free_bytes, &total_bytes) != 0) return false;
    *ret_free = free_bytes;
    *ret_total = total_bytes;
    return true;
}

static void event_put(oomsight_trace_kind kind, uint32_t device, uint64_t bytes, uint64_t at)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE,
                  &now); /* to 4 ms, at a quarter of the cost; the places keep the order */
    uint64_t const place = __atomic_fetch_add(&run->event_count, 1, __ATOMIC_RELAXED);
    run->events[place % OOS_SEGMENT_EVENTS] =
        (oomsight_trace_record){.time_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec,
                                .size = bytes,
                                .address = at,
                                .pid = own_pid,
                                .device = (uint16_t)device,
                                .kind = (uint16_t)kind};
}

void oos_guard_event(oomsight_trace_kind kind, const oos_guard_charge *charge, uint64_t at)
{
    if (charge->bytes && run) event_put(kind, charge->device, charge->bytes, at);
}

/* Under the lock. What everybody held at the first refusal stays, however the process ends. */
static void failure_note(oos_segment_device *device, const oos_segment_failure *failure)
{
    run->failures[run->failure_count % OOS_SEGMENT_FAILURES] = *failure;
    if (run->failure_count == 0) {
        run->first_failure = *failure;
        memcpy(device->at_refusal, device->held, sizeof device->held);
        device->refusal_outside_bytes = device->outside_bytes;
    }
    __atomic_store_n(&run->failure_count, run->failure_count + 1, __ATOMIC_RELEASE);
    event_put(OOMSIGHT_TRACE_MALLOC_FAILED, failure->device, failure->bytes, failure->free_bytes);
}

static void charge_add(oos_segment_device *device, const oos_guard_charge *charge)
{
    slot->held[charge->device][charge->owner][charge->use] += charge->bytes;
    slot->held_bytes[charge->device] += charge->bytes;
    if (slot->held_bytes[charge->device] > slot->peak_bytes[charge->device])
        slot->peak_bytes[charge->device] = slot->held_bytes[charge->device];
    device->held[charge->owner][charge->use] += charge->bytes;
    device->held_bytes += charge->bytes;
    if (device->held_bytes + device->outside_bytes > device->peak_bytes)
        device->peak_bytes = device->held_bytes + device->outside_bytes;
    if (device->held_bytes <= device->phase_peak_bytes[charge->phase]) return;
    device->phase_peak_bytes[charge->phase] = device->held_bytes;
    memcpy(device->at_phase_peak[charge->phase], device->held, sizeof device->held);
}

/* Without a limit of ours the driver alone says no. */
static bool limited(void)
{
    return run->budget_bytes || run->budget_millionths || run->reserve_bytes;
}

static bool fits(const oos_segment_device *device, uint64_t bytes)
{
    return bytes <= room_of(device) && bytes <= host_room();
}

bool oos_guard_take(oos_guard_side side, int index, oos_use use, uint64_t bytes, oos_guard_charge *ret_charge)
{
    uint64_t free_bytes = 0, total_bytes = 0;
    *ret_charge = (oos_guard_charge){0};
    if (index < 0 || index >= OOS_SEGMENT_DEVICES) return true;
    oos_segment_device *device = &run->devices[index];
    uint64_t const held_before = device->held_bytes, budget = budget_of(device);
    bool const near = budget != UINT64_MAX && room_of(device) < bytes + budget / 16;
    bool const look = (near || !(measured >> index & 1)) && measure(side, &free_bytes, &total_bytes);

    bool allowed = true;
    if (lock_run()) {
        if (look) outside_note(device, held_before, free_bytes, total_bytes);
        if (look) measured |= 1u << index;
        allowed = fits(device, bytes) || (oos_segment_reap(run) && fits(device, bytes));
        uint32_t const phase = __atomic_load_n(&run->phase, __ATOMIC_RELAXED) % OOS_SEGMENT_PHASES;
        uint32_t const owner = __atomic_load_n(&run->owner, __ATOMIC_RELAXED) % OOS_SEGMENT_OWNERS;
        if (allowed) {
            *ret_charge = (oos_guard_charge){bytes, (uint32_t)index, phase, use, owner, 0};
            charge_add(device, ret_charge);
        } else if (!limited()) {
            *ret_charge = (oos_guard_charge){bytes, (uint32_t)index, phase, use, owner, 1};
            allowed = true;
        } else {
            device->refused_count++;
            uint64_t const room = room_of(device), host = host_room();
            failure_note(device, &(oos_segment_failure){own_pid, (uint32_t)index, phase, use, bytes,
                                                        room < host ? room : host, bytes > host, 0});
        }
    }
    unlock_run();
    return allowed;
}

void oos_guard_granted(oos_guard_charge *charge)
{
    if (!charge->late) return;
    charge->late = 0;
    if (lock_run())
        charge_add(&run->devices[charge->device], charge);
    else
        charge->bytes = 0;
    unlock_run();
}

void oos_guard_return(const oos_guard_charge *charge)
{
    if (!charge->bytes || charge->late || !run) return;
    if (lock_run()) {
        uint64_t *held = &slot->held[charge->device][charge->owner][charge->use];
        if (*held >= charge->bytes) {
            oos_segment_device *device = &run->devices[charge->device];
            *held -= charge->bytes;
            slot->held_bytes[charge->device] -= charge->bytes;
            device->held[charge->owner][charge->use] -= charge->bytes;
            device->held_bytes -= charge->bytes;
        }
    }
    unlock_run();
}

bool oos_guard_pinned_take(uint64_t bytes)
{
    bool allowed = true;
    if (lock_run()) {
        allowed = bytes <= host_room();
        if (allowed) slot->pinned_bytes += bytes;
        if (slot->pinned_bytes > slot->pinned_peak_bytes) slot->pinned_peak_bytes = slot->pinned_bytes;
        if (!allowed)
            failure_note(&run->devices[0], &(oos_segment_failure){own_pid, 0, run->phase % OOS_SEGMENT_PHASES,
                                                                  OOS_USE_PINNED, bytes, host_room(), 1, 0});
    }
    unlock_run();
    return allowed;
}

void oos_guard_pinned_return(uint64_t bytes)
{
    if (lock_run() && slot->pinned_bytes >= bytes) slot->pinned_bytes -= bytes;
    unlock_run();
}
