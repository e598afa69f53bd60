/* What the commands share that start other programs: dryrun, run and top. */
#include "cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

const char *segment_folder(void)
{
    const char *temporary = getenv("TMPDIR");
    return access("/dev/shm", W_OK) == 0 ? "/dev/shm" : temporary && *temporary ? temporary : "/tmp";
}

void environment_put_front(const char *name, const char *value)
{
    const char *old = getenv(name);
    char *joined = NULL;
    if (old && *old && asprintf(&joined, "%s:%s", value, old) < 0) joined = NULL;
    setenv(name, joined ? joined : value, 1);
    free(joined);
}

double seconds_since_boot(void)
{
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}
