/* The trace of device allocations in the format of include/oomsight/trace.h, off unless the launcher asked for it. Each
 * process appends whole records to one file; a count in the segment keeps the file bounded. */
#include "device/internal.h"

#include <oomsight/trace.h>

#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { RECORDS_MOST = 4 << 20 }; /* 160 MiB */

static pthread_mutex_t trace_lock = PTHREAD_MUTEX_INITIALIZER;
static int trace_fd = -1, trace_pid;

/* A descriptor per process: a fork shares the file's offset, and O_APPEND does not mind. */
static int trace_open(const oos_segment *segment)
{
    pthread_mutex_lock(&trace_lock);
    if (trace_fd < 0 && memchr(segment->trace_path, 0, sizeof segment->trace_path))
        trace_fd = open(segment->trace_path, O_WRONLY | O_APPEND | O_CLOEXEC);
    trace_pid = (int)getpid();
    pthread_mutex_unlock(&trace_lock);
    return trace_fd;
}

void oos_trace(oos_trace_what what, const oos_charge *charge, uint64_t address)
{
    static const uint16_t kinds[] = {
        [OOS_TRACE_TAKE] = OOMSIGHT_TRACE_MALLOC,
        [OOS_TRACE_GIVE] = OOMSIGHT_TRACE_FREE,
        [OOS_TRACE_FAIL] = OOMSIGHT_TRACE_MALLOC_FAILED,
    };
    oos_segment *segment = oos_run();
    if (!segment || !segment->trace_path[0]) return;
    if (__atomic_fetch_add(&segment->trace_records, 1, __ATOMIC_RELAXED) >= RECORDS_MOST) {
        __atomic_fetch_add(&segment->trace_lost, 1, __ATOMIC_RELAXED);
        return;
    }
    int const fd = trace_fd >= 0 && trace_pid == (int)getpid() ? trace_fd : trace_open(segment);
    if (fd < 0) return;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    oomsight_trace_record const record = {
        .time_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec,
        .size = charge->bytes,
        .address = address,
        .pid = (uint32_t)getpid(),
        .device = (uint16_t)charge->device,
        .kind = kinds[what],
    };
    ssize_t const written = write(fd, &record, sizeof record);
    if (written != (ssize_t)sizeof record) __atomic_fetch_add(&segment->trace_lost, 1, __ATOMIC_RELAXED);
}
