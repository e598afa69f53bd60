/* What the commands share that start other programs: dryrun, run and top. */
#include "cli.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

const char *segment_folder(void)
{
    const char *temporary = getenv("TMPDIR");
    return access("/dev/shm", W_OK) == 0 ? "/dev/shm" : temporary && *temporary ? temporary : "/tmp";
}

/* Whoever else has files here, he must not crowd out ours. */
static bool is_ours(int folder, const char *name)
{
    struct stat info;
    return strncmp(name, RUN_SEGMENT_PREFIX, strlen(RUN_SEGMENT_PREFIX)) == 0 &&
           fstatat(folder, name, &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(info.st_mode) &&
           info.st_uid == geteuid();
}

size_t run_segments(char **ret_paths, size_t most)
{
    size_t count = 0;
    DIR *place = opendir(segment_folder());
    for (const struct dirent *entry; place && count < most && (entry = readdir(place));) {
        char *path = NULL;
        if (!is_ours(dirfd(place), entry->d_name)) continue;
        if (asprintf(&path, "%s/%s", segment_folder(), entry->d_name) < 0) break;
        if (!oomsight_run_abandoned(path))
            ret_paths[count++] = path;
        else {
            unlink(path);
            free(path);
        }
    }
    if (place) closedir(place);
    return count;
}

void environment_put_front(const char *name, const char *value)
{
    const char *old = getenv(name);
    char *joined = NULL;
    if (old && *old && asprintf(&joined, "%s:%s", value, old) < 0) joined = NULL;
    setenv(name, joined ? joined : value, 1);
    free(joined);
}
