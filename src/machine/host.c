/* RAM, the control group's limit, /dev/shm: what the kernel says in files. */
#include "machine/machine.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

static bool small_read(const char *path, char *ret_text, size_t capacity)
{
    int const fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    ssize_t const len = read(fd, ret_text, capacity - 1);
    close(fd);
    ret_text[len > 0 ? len : 0] = '\0';
    return len > 0;
}

/* A line "MemTotal:  24 kB". */
static oos_u64 kib_of(const char *text, const char *name)
{
    const char *at = strstr(text, name);
    if (!at) return (oos_u64){0};
    return (oos_u64){true, strtoull(at + strlen(name), NULL, 10) * 1024};
}

/* A file with one number; "max" and what a control group of version 1 writes for no limit are none. */
static oos_u64 number_of(const char *path)
{
    char text[64], *end;
    if (!small_read(path, text, sizeof text)) return (oos_u64){0};
    unsigned long long const value = strtoull(text, &end, 10);
    return (oos_u64){end != text && value < 1ull << 60, value};
}

/* The tightest limit between the group and the root of its tree. */
static void tightest(const char *tree, const char *group, const char *limit, const char *used, oos_host *host)
{
    char path[700], at[400];
    snprintf(at, sizeof at, "%s", group);
    for (;;) {
        snprintf(path, sizeof path, "%s%s/%s", tree, at, limit);
        oos_u64 const found = number_of(path);
        if (found.known && (!host->limit_bytes.known || found.value < host->limit_bytes.value)) {
            host->limit_bytes = found;
            snprintf(path, sizeof path, "%s%s/%s", tree, at, used);
            host->limited_used_bytes = number_of(path);
        }
        char *slash = strrchr(at, '/');
        if (!slash || at[0] == '\0') return;
        *slash = '\0';
    }
}

/* Lines "0::/group" (version 2) and "4:memory:/group" (version 1). */
static void groups_read(const char *root, oos_host *host)
{
    char path[300], text[4096], tree[300];
    snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    if (!small_read(path, text, sizeof text)) return;
    for (char *line = text, *next; line && *line; line = next) {
        if ((next = strchr(line, '\n'))) *next++ = '\0';
        char *group = strchr(line, '/'), *memory = strstr(line, "memory");
        if (!group) continue;
        if (group[1] == '\0') *group = '\0';
        if (strncmp(line, "0::", 3) == 0) {
            snprintf(tree, sizeof tree, "%s/sys/fs/cgroup", root);
            tightest(tree, group, "memory.max", "memory.current", host);
        } else if (memory && memory < group) {
            snprintf(tree, sizeof tree, "%s/sys/fs/cgroup/memory", root);
            tightest(tree, group, "memory.limit_in_bytes", "memory.usage_in_bytes", host);
        }
    }
}

void oos_host_read(const char *root, oos_host *ret_host)
{
    char path[300], text[4096];
    *ret_host = (oos_host){0};
    snprintf(path, sizeof path, "%s/proc/meminfo", root);
    if (small_read(path, text, sizeof text)) {
        ret_host->total_bytes = kib_of(text, "MemTotal:");
        ret_host->available_bytes = kib_of(text, "MemAvailable:");
    }
    groups_read(root, ret_host);
    struct statvfs shm;
    if (*root || statvfs("/dev/shm", &shm) != 0) return;
    ret_host->shm_total_bytes = (oos_u64){true, (uint64_t)shm.f_blocks * shm.f_frsize};
    ret_host->shm_free_bytes = (oos_u64){true, (uint64_t)shm.f_bavail * shm.f_frsize};
}
