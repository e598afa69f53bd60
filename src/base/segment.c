/* Making, opening, checking and locking the shared segment. What is charged to whom is shim/device's business. */
#include "base/segment.h"
#include "base/check.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

_Static_assert(offsetof(oos_segment, graph_count) == 112 && (int)OOS_SEGMENT_VERSION == 8,
               "tools/oracle_zygote.py reads it there");

static const char magic[8] = {'O', 'O', 'M', 'S', 'G', 'H', 'T', '\n'};
_Static_assert(sizeof magic == sizeof((oos_segment){0}.magic), "all of it is compared");

const char *oos_use_word(oos_use use)
{
    static const char *const words[] = {
#define WORD(name, word) word,
        OOS_USE_MAP(WORD)
#undef WORD
    };
    return (unsigned)use < OOS_USE_COUNT ? words[use] : "?";
}

const char *oos_unseen_word(oos_unseen why)
{
    static const char *const words[] = {
#define WORD(name, word) word,
        OOS_UNSEEN_MAP(WORD)
#undef WORD
    };
    return (unsigned)why < OOS_UNSEEN_COUNT ? words[why] : "?";
}

/* Counters come behind the structure, one page-aligned run per library. */
static uint64_t counters_start(void)
{
    return (sizeof(oos_segment) + OOS_SEGMENT_PAGE - 1) / OOS_SEGMENT_PAGE * OOS_SEGMENT_PAGE;
}

uint64_t oos_segment_file_bytes(void)
{
    return counters_start() + (uint64_t)OOS_SEGMENT_LIBRARIES * OOS_SEGMENT_PAGE;
}

oos_segment_status oos_segment_create(const char *path, const oos_device_spec *specs, uint32_t device_count,
                                      oos_segment **ret_segment)
{
    if (device_count > OOS_SEGMENT_DEVICES) return OOS_SEGMENT_NO_ROOM;
    int const fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0) return OOS_SEGMENT_ABSENT;
    oos_segment *segment = MAP_FAILED;
    /* every page is there from the start: one that is missing when it is touched ends the process that touches it */
    if (posix_fallocate(fd, 0, (off_t)oos_segment_file_bytes()) == 0)
        segment = mmap(NULL, sizeof *segment, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (segment == MAP_FAILED) {
        unlink(path);
        return OOS_SEGMENT_NO_ROOM;
    }
    memcpy(segment->magic, magic, sizeof magic);
    segment->version = OOS_SEGMENT_VERSION;
    segment->size_bytes = oos_segment_file_bytes();
    segment->device_count = device_count;
    segment->arena_bytes = (uint64_t)16 << 40;
    for (uint32_t i = 0; i < device_count; i++) segment->devices[i].spec = specs[i];
    *ret_segment = segment;
    return OOS_SEGMENT_OK;
}

static bool plausible(const oos_segment *segment, off_t size)
{
    if (memcmp(segment->magic, magic, sizeof magic) != 0 || segment->version != OOS_SEGMENT_VERSION)
        return false;
    if (segment->size_bytes != oos_segment_file_bytes() || size < (off_t)oos_segment_file_bytes())
        return false;
    if (segment->device_count > OOS_SEGMENT_DEVICES || segment->library_count > OOS_SEGMENT_LIBRARIES ||
        segment->call_count > OOS_SEGMENT_CALLS)
        return false;
    for (uint32_t i = 0; i < segment->device_count; i++) {
        const oos_device_spec *spec = &segment->devices[i].spec;
        if (spec->total_bytes == 0 || spec->total_bytes >> 50 || spec->others_bytes > spec->total_bytes ||
            !memchr(spec->name, 0, sizeof spec->name))
            return false;
    }
    return true;
}

/* -1: there is none; -2: it is not a plain file of ours alone. A second name of it could be anybody's. */
static int open_ours(const char *path, struct stat *ret_info)
{
    int const fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) return errno == ELOOP ? -2 : -1;
    if (fstat(fd, ret_info) == 0 && S_ISREG(ret_info->st_mode) && ret_info->st_uid == geteuid() &&
        !(ret_info->st_mode & 077) && ret_info->st_nlink <= 1)
        return fd;
    close(fd);
    return -2;
}

oos_segment_status oos_segment_open(const char *path, oos_segment **ret_segment)
{
    struct stat info;
    int const fd = open_ours(path, &info);
    if (fd < 0) return fd == -2 ? OOS_SEGMENT_FOREIGN : OOS_SEGMENT_ABSENT;
    oos_segment *segment = MAP_FAILED;
    if (info.st_size >= (off_t)sizeof *segment)
        segment = mmap(NULL, sizeof *segment, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (segment == MAP_FAILED) return OOS_SEGMENT_CORRUPT;
    if (!plausible(segment, info.st_size)) {
        munmap(segment, sizeof *segment);
        return OOS_SEGMENT_CORRUPT;
    }
    *ret_segment = segment;
    return OOS_SEGMENT_OK;
}

void oos_segment_close(oos_segment *segment)
{
    if (segment) munmap(segment, sizeof *segment);
}

int oos_meminfo_text(char *ret_text, size_t capacity, uint64_t total_bytes, uint64_t left_bytes)
{
    unsigned long long const total = total_bytes >> 10, left = left_bytes >> 10;
    return snprintf(
        ret_text, capacity,
        "MemTotal:     %12llu kB\nMemFree:      %12llu kB\nMemAvailable: %12llu kB\n"
        "Buffers:      %12u kB\nCached:       %12u kB\nSwapTotal:    %12u kB\nSwapFree:     %12u kB\n",
        total, left, left, 0u, 0u, 0u, 0u);
}

uint64_t *oos_segment_counters(const char *path, const oos_segment_library *library)
{
    struct stat info;
    int const fd = open_ours(path, &info);
    if (fd < 0) return NULL;
    void *at = mmap(NULL, oos_segment_counters_bytes(library->call_count), PROT_READ | PROT_WRITE, MAP_SHARED,
                    fd, (off_t)library->counters_offset);
    close(fd);
    return at == MAP_FAILED ? NULL : at;
}

/* Fields of /proc/PID/stat behind the name, which is in brackets and may hold anything: state is the 1st, start time
 * the 20th. A zombie holds nothing any more. */
uint64_t oos_process_start_ticks_in(const char *root, uint32_t pid)
{
    char path[200], text[1024];
    snprintf(path, sizeof path, "%.150s/proc/%u/stat", root, pid);
    int const fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        /* no /proc at all: then existence is all there is to know */
        if (!*root && errno == ENOENT && access("/proc/self/stat", F_OK) != 0)
            return kill((pid_t)pid, 0) == 0;
        return 0;
    }
    ssize_t const len = read(fd, text, sizeof text - 1);
    close(fd);
    if (len <= 0) return 0;
    text[len] = '\0';
    char *at = strrchr(text, ')');
    if (!at || !at[1] || at[2] == 'Z' || at[2] == 'X') return 0;
    at += 2;
    for (int field = 1; field < 20 && at; field++) {
        at = strchr(at, ' ');
        if (at) at++;
    }
    uint64_t const ticks = at ? strtoull(at, NULL, 10) : 0;
    return ticks ? ticks : 1;
}

uint64_t oos_process_start_ticks(uint32_t pid)
{
    return oos_process_start_ticks_in("", pid);
}

static void sums_rebuild(oos_segment *segment)
{
    for (uint32_t d = 0; d < OOS_SEGMENT_DEVICES; d++) {
        oos_segment_device *device = &segment->devices[d];
        uint64_t held_bytes = 0;
        memset(device->held, 0, sizeof device->held);
        for (unsigned p = 0; p < OOS_SEGMENT_PROCESSES; p++) {
            oos_segment_process *process = &segment->processes[p];
            if (!process->pid) continue;
            uint64_t own_bytes = 0;
            for (unsigned owner = 0; owner < OOS_SEGMENT_OWNERS; owner++)
                for (unsigned use = 0; use < OOS_USE_COUNT; use++) {
                    device->held[owner][use] += process->held[d][owner][use];
                    own_bytes += process->held[d][owner][use];
                }
            process->held_bytes[d] = own_bytes;
            held_bytes += own_bytes;
        }
        device->held_bytes = held_bytes;
    }
}

static bool alive(uint32_t pid, uint64_t start_ticks)
{
    uint64_t const ticks = oos_process_start_ticks(pid);
    return ticks != 0 && (uint32_t)ticks == (uint32_t)start_ticks;
}

bool oos_segment_launched(const oos_segment *segment)
{
    uint32_t const pid = __atomic_load_n(&segment->launcher_pid, __ATOMIC_RELAXED);
    return pid && alive(pid, segment->launcher_start_ticks);
}

static void name_read(uint32_t pid, char ret_name[16])
{
    char path[40];
    snprintf(path, sizeof path, "/proc/%u/comm", pid);
    int const fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t const len = fd < 0 ? 0 : read(fd, ret_name, 15);
    if (fd >= 0) close(fd);
    ret_name[len > 0 ? len : 0] = '\0';
    ret_name[strcspn(ret_name, "\n")] = '\0';
}

void oos_segment_unseen_put(oos_segment *segment, uint32_t pid, oos_unseen why)
{
    for (unsigned i = 0; i < OOS_SEGMENT_UNSEEN; i++)
        if (__atomic_load_n(&segment->unseen[i].pid, __ATOMIC_ACQUIRE) == pid &&
            segment->unseen[i].why == (uint32_t)why)
            return;
    if (__atomic_load_n(&segment->unseen_count, __ATOMIC_RELAXED) >= OOS_SEGMENT_UNSEEN) return;
    uint64_t const place = __atomic_fetch_add(&segment->unseen_count, 1, __ATOMIC_RELAXED);
    if (place >= OOS_SEGMENT_UNSEEN) return;
    segment->unseen[place].why = (uint32_t)why;
    name_read(pid, segment->unseen[place].name);
    __atomic_store_n(&segment->unseen[place].pid, pid, __ATOMIC_RELEASE);
}

unsigned oos_segment_reap(oos_segment *segment)
{
    unsigned dead = 0;
    for (unsigned p = 0; p < OOS_SEGMENT_PROCESSES; p++) {
        oos_segment_process *process = &segment->processes[p];
        if (!process->pid || alive(process->pid, process->start_ticks)) continue;
        process->pid = 0;
        memset(process, 0, sizeof *process);
        dead++;
    }
    if (dead) {
        segment->reaped_count += dead;
        sums_rebuild(segment);
    }
    return dead;
}

oos_segment_process *oos_segment_claim(oos_segment *segment, uint32_t own_pid, uint64_t own_start_ticks)
{
    oos_assert(own_pid != 0); /* which is the mark of a free place */
    for (int again = 0; again < 2; again++) {
        for (unsigned i = 0; i < OOS_SEGMENT_PROCESSES; i++)
            if (segment->processes[i].pid == own_pid) {
                segment->processes[i].start_ticks = 0;
                oos_segment_reap(segment);
            }
        for (unsigned i = 0; i < OOS_SEGMENT_PROCESSES; i++)
            if (!segment->processes[i].pid) {
                segment->processes[i].start_ticks = own_start_ticks;
                segment->processes[i].told = 0;
                segment->processes[i].pid = own_pid;
                segment->claimed_count++;
                return &segment->processes[i];
            }
        if (!oos_segment_reap(segment)) break;
    }
    return NULL;
}

/* `tries_most` 0: for ever. Behind the first few each takes 50 microseconds, or a little more. */
static bool lock_within(oos_segment *segment, uint64_t own, unsigned tries_most)
{
    oos_assert(own != 0); /* which is the mark of a free lock */
    for (unsigned tries = 0; !tries_most || tries < tries_most; tries++) {
        uint64_t seen = 0;
        if (__atomic_compare_exchange_n(&segment->lock, &seen, own, false, __ATOMIC_ACQUIRE,
                                        __ATOMIC_RELAXED))
            return true;
        if (tries < 64) continue;
        if (tries < 128) {
            sched_yield();
            continue;
        }
        /* Held for long: perhaps by somebody who is no more. */
        if (tries % 32 == 0 && !alive((uint32_t)(seen >> 32), seen & UINT32_MAX) &&
            __atomic_compare_exchange_n(&segment->lock, &seen, own, false, __ATOMIC_ACQUIRE,
                                        __ATOMIC_RELAXED)) {
            sums_rebuild(segment);
            return true;
        }
        struct timespec const pause = {0, 50000};
        nanosleep(&pause, NULL);
    }
    return false;
}

static uint64_t lock_word(uint32_t own_pid, uint64_t own_start_ticks)
{
    return (uint64_t)own_pid << 32 | (uint32_t)own_start_ticks;
}

void oos_segment_lock(oos_segment *segment, uint32_t own_pid, uint64_t own_start_ticks)
{
    lock_within(segment, lock_word(own_pid, own_start_ticks), 0);
}

bool oos_segment_lock_soon(oos_segment *segment, uint32_t own_pid, uint64_t own_start_ticks)
{
    enum { TRIES = 20000 }; /* two seconds */
    return lock_within(segment, lock_word(own_pid, own_start_ticks), TRIES);
}

void oos_segment_unlock(oos_segment *segment)
{
    __atomic_store_n(&segment->lock, 0, __ATOMIC_RELEASE);
}
