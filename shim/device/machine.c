/* A machine whose host and device share one memory. What it has left stands in a file of the form of /proc/meminfo, which the launcher
 * has put in its place; a machine that is asked for more than it has does not answer any more, which is here: all processes end at once. */
#include "device/internal.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static uint64_t resident_bytes(uint32_t pid)
{
    char path[40], text[128];
    unsigned long long whole, resident = 0;
    snprintf(path, sizeof path, "/proc/%u/statm", pid);
    int const fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return 0;
    ssize_t const len = read(fd, text, sizeof text - 1);
    close(fd);
    text[len > 0 ? len : 0] = '\0';
    return sscanf(text, "%llu %llu", &whole, &resident) == 2 ? resident * (uint64_t)sysconf(_SC_PAGESIZE) : 0;
}

static uint64_t used_bytes(const oos_segment *segment)
{
    uint64_t used = 0;
    for (uint32_t i = 0; i < segment->device_count; i++)
        used += segment->devices[i].held_bytes + segment->devices[i].spec.others_bytes;
    for (unsigned i = 0; i < OOS_SEGMENT_PROCESSES; i++)
        if (segment->processes[i].pid) used += resident_bytes(segment->processes[i].pid);
    return used;
}

/* Lines of one length, written in one piece: a reader never sees half of it. */
static void tell(const oos_segment *segment, uint64_t left)
{
    char path[700], text[512];
    const char *base = getenv(OOS_SEGMENT_ENV);
    if (!base || (size_t)snprintf(path, sizeof path, "%s.meminfo", base) >= sizeof path) return;
    int const fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0) return;
    int const len = oos_meminfo_text(text, sizeof text, segment->machine_bytes, left);
    if (pwrite(fd, text, (size_t)len, 0) != len) (void)0; /* the next will tell */
    close(fd);
}

static void wedge(oos_segment *segment)
{
    uint32_t const own = (uint32_t)getpid();
    segment->wedged = 1;
    for (unsigned i = 0; i < OOS_SEGMENT_PROCESSES; i++)
        if (segment->processes[i].pid && segment->processes[i].pid != own)
            kill((pid_t)segment->processes[i].pid, SIGKILL);
    kill((pid_t)own, SIGKILL);
}

void oos_machine_look(oos_segment *segment, uint64_t more_bytes)
{
    if (!segment->machine_bytes) return;
    uint64_t const used = used_bytes(segment) + more_bytes;
    tell(segment, used < segment->machine_bytes ? segment->machine_bytes - used : 0);
    if (used > segment->machine_bytes) wedge(segment);
}
