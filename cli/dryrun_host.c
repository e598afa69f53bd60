/* What the engine's processes hold of the host's memory: resident pages of a process and of all below it, from /proc. */
#include "dryrun.h"

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
    *ret_process = (dryrun_process){(pid_t)atoi(name), parent, pages, state == 'Z', false};
    return true;
}

uint64_t dryrun_resident_bytes(pid_t root)
{
    dryrun_process *list = calloc(MOST_PROCESSES, sizeof *list);
    DIR *dir = opendir("/proc");
    size_t count = 0;
    for (struct dirent *entry; list && dir && count < MOST_PROCESSES && (entry = readdir(dir));)
        if (isdigit((unsigned char)entry->d_name[0]) && dryrun_process_read(entry->d_name, &list[count]))
            count++;
    if (dir) closedir(dir);
    uint64_t pages = 0;
    for (bool more = true; more;) { /* a generation a turn */
        more = false;
        for (size_t i = 0; i < count; i++) {
            bool ours = list[i].pid == root;
            for (size_t k = 0; k < count && !ours; k++) ours = list[k].ours && list[k].pid == list[i].parent;
            if (!ours || list[i].ours) continue;
            list[i].ours = more = true;
            pages += list[i].pages;
        }
    }
    free(list);
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}
