/* hostile HOW ...: files that somebody puts where `oomsight run` looks. Each prints one line when it is there, and stays until it is killed.
 *
 *   claim SHARE BYTES   a run of that name whose budget is the whole card; cut to nothing as soon as somebody has it mapped
 *   stale PID           what a launcher left behind whose pid another process has now
 *   lock SECONDS        the lock of the run that it is started in, held */
#include "base/segment.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int claim(const char *share, uint64_t budget_bytes)
{
    char path[128];
    oos_segment *segment;
    oos_device_spec const spec = {
        .name = "00000000:01:00.0", .total_bytes = 1, .nvml_bytes = (uint64_t)24 << 30, .before_known = 1};
    umask(0);
    snprintf(path, sizeof path, "/dev/shm/oomsight-run-%d-f00d", (int)getpid());
    if (oos_segment_create(path, &spec, 1, &segment) != OOS_SEGMENT_OK || chmod(path, 0666) != 0) return 1;
    strncpy(segment->share, share, sizeof segment->share - 1);
    segment->launcher_pid = (uint32_t)getpid();
    segment->launcher_start_ticks = oos_process_start_ticks((uint32_t)getpid());
    segment->budget_bytes = budget_bytes;
    puts(path);
    fflush(stdout);
    for (int i = 0; i < 300 && !segment->peers[0].path[0]; i++) usleep(100000);
    usleep(500000);
    if (truncate(path, 0) != 0) return 1;
    puts("cut short");
    fflush(stdout);
    sleep(20);
    return 0;
}

static int stale(unsigned pid)
{
    char path[128];
    oos_segment *segment;
    snprintf(path, sizeof path, "/dev/shm/oomsight-run-%u-dead", pid);
    if (oos_segment_create(path, NULL, 0, &segment) != OOS_SEGMENT_OK) return 1;
    segment->launcher_pid = pid;
    segment->launcher_start_ticks = 1; /* nothing that lives is so old */
    puts(path);
    return 0;
}

static int lock(unsigned seconds)
{
    oos_segment *segment;
    const char *path = getenv(OOS_GUARD_ENV);
    if (!path || oos_segment_open(path, &segment) != OOS_SEGMENT_OK) return 1;
    oos_segment_lock(segment, (uint32_t)getpid(), oos_process_start_ticks((uint32_t)getpid()));
    puts("locked");
    fflush(stdout);
    sleep(seconds);
    oos_segment_unlock(segment);
    return 0;
}

int main(int count, char **words)
{
    if (count > 3 && !strcmp(words[1], "claim")) return claim(words[2], strtoull(words[3], NULL, 10));
    if (count > 2 && !strcmp(words[1], "stale")) return stale((unsigned)atoi(words[2]));
    if (count > 2 && !strcmp(words[1], "lock")) return lock((unsigned)atoi(words[2]));
    return 2;
}
