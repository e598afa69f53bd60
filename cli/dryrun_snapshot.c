/* --snapshot: PyTorch's own memory history, written by the module in the engine's processes. A process that records leaves a
 * mark beside the segment, writes when it sees that it is asked, and takes its mark away. */
#include "cmd_dryrun.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { WRITE_SECONDS = 180 };

bool dryrun_snapshot_begin(const char *path)
{
    int const fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    char *whole = fd >= 0 ? realpath(path, NULL) : NULL;
    if (fd >= 0) close(fd);
    if (!whole) {
        complain("oomsight dryrun: %s: %s", path, strerror(errno));
        return false;
    }
    unlink(whole); /* it could be made; what is there later is new */
    setenv("OOMSIGHT_SNAPSHOT", whole, 1);
    free(whole);
    return true;
}

static size_t matches(const char *format, const char *path)
{
    char pattern[PATH_MAX];
    glob_t found = {0};
    snprintf(pattern, sizeof pattern, format, path);
    size_t const count = glob(pattern, GLOB_NOSORT, NULL, &found) == 0 ? found.gl_pathc : 0;
    globfree(&found);
    return count;
}

void dryrun_snapshot_take(const char *segment_path)
{
    char asked[PATH_MAX];
    snprintf(asked, sizeof asked, "%s.snapshot", segment_path);
    int const fd = open(asked, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd >= 0) close(fd);
    double const until = dryrun_now() + WRITE_SECONDS;
    struct timespec const pause = {.tv_nsec = 100000000};
    while (matches("%s.recording.*", segment_path) && dryrun_now() < until && !dryrun_interrupted())
        nanosleep(&pause, NULL);
}

void dryrun_snapshot_tell(const cli_options *given)
{
    const char *path = given->snapshot;
    size_t const ranks = matches("%s.rank*", path);
    if (access(path, R_OK) == 0)
        complain("oomsight dryrun: the snapshot is written; next: oomsight replay %s", path);
    else if (ranks)
        complain("oomsight dryrun: snapshots of %zu ranks are written; next: oomsight replay %s.rank0", ranks,
                 path);
    else
        complain("oomsight dryrun: no snapshot: no worker of %s had a device", engine_of(given)->title);
}
