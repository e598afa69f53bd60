/* What the engine's processes hold of the host's memory: resident pages of a process and of all below it, from /proc. */
#include "cmd_dryrun.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_PROCESSES = 8192 };

bool dryrun_process_read(const char *name, dryrun_process *ret_process)
{
    char path[64], text[1024];
    snprintf(path, sizeof path, "/proc/%.20s/stat", name);
    FILE *file = fopen(path, "re");
    if (!file) return false;
    size_t const len = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[len] = '\0';
    const char *at = strrchr(text, ')'); /* behind a name that may hold anything */
    char state;
    int parent;
    unsigned long long pages;
    if (!at ||
        sscanf(at + 1,
               " %c %d %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %llu",
               &state, &parent, &pages) != 3)
        return false;
    *ret_process = (dryrun_process){(pid_t)atoi(name), parent, pages, state == 'Z'};
    return true;
}

/* A process and all below it, first in the list; the caller frees it. */
static dryrun_process *ours_of(pid_t root, size_t *ret_count)
{
    dryrun_process *list = calloc(MOST_PROCESSES, sizeof *list);
    DIR *dir = opendir("/proc");
    size_t count = 0, found = 0;
    for (struct dirent *entry; list && dir && count < MOST_PROCESSES && (entry = readdir(dir));)
        if (isdigit((unsigned char)entry->d_name[0]) && dryrun_process_read(entry->d_name, &list[count]))
            count++;
    if (dir) closedir(dir);
    for (bool more = true; more;) { /* a generation a turn */
        more = false;
        for (size_t i = found; i < count; i++) {
            bool ours = list[i].pid == root;
            for (size_t k = 0; k < found && !ours; k++) ours = list[k].pid == list[i].parent;
            if (!ours) continue;
            dryrun_process const one = list[i];
            list[i] = list[found];
            list[found++] = one;
            more = true;
        }
    }
    *ret_count = found;
    return list;
}

uint64_t dryrun_resident_bytes(pid_t root)
{
    size_t count;
    uint64_t pages = 0;
    dryrun_process *list = ours_of(root, &count);
    for (size_t i = 0; i < count; i++) pages += list[i].pages;
    free(list);
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* What /proc/PID/status says; false: it is gone, or has no memory any more. */
static bool status_read(pid_t pid, oomsight_dryrun_process *ret_process)
{
    char path[64], line[256];
    unsigned long long kib;
    *ret_process = (oomsight_dryrun_process){.pid = (uint32_t)pid};
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file)) {
        if (strncmp(line, "Name:\t", 6) == 0)
            snprintf(ret_process->name, sizeof ret_process->name, "%.*s",
                     (int)(strcspn(line + 6, "\n") & 0xff), line + 6);
        if (sscanf(line, "VmRSS: %llu", &kib) == 1) ret_process->resident_bytes = kib << 10;
        if (sscanf(line, "RssShmem: %llu", &kib) == 1) ret_process->shared_bytes = kib << 10;
    }
    if (file) fclose(file);
    return ret_process->resident_bytes != 0;
}

void dryrun_host_look(pid_t root, oomsight_dryrun *dryrun)
{
    size_t count, found = 0;
    dryrun_process *list = ours_of(root, &count);
    oomsight_dryrun_process *rows = count ? calloc(count, sizeof *rows) : NULL;
    for (size_t i = 0; rows && i < count; i++) found += status_read(list[i].pid, &rows[found]);
    if (found) oomsight_dryrun_host(dryrun, rows, found);
    free(rows);
    free(list);
}
