/* Processes of a run that the guard does not see: found in /proc, because they cannot tell. */
#include "run/processes.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PROCESSES_MAX = 16384, FAMILY_MAX = 512, MAPS_BYTES_MAX = 16 << 20, HIDDEN_SECONDS = 10 };

typedef struct member {
    uint32_t pid;
    uint64_t start_ticks;
} member;

struct oos_process_family {
    member members
        [FAMILY_MAX]; /* once below the command, always of the run: a parent that ends changes nothing */
    size_t count;
};

oos_process_family *oos_family_create(void)
{
    return calloc(1, sizeof(oos_process_family));
}

void oos_family_free(oos_process_family *family)
{
    free(family);
}

/* ---- who belongs to it ---- */

typedef struct row {
    uint32_t pid, parent;
    bool ours;
} row;

/* Of /proc/PID/stat, behind the name in brackets: state, parent. */
static uint32_t parent_of(uint32_t pid)
{
    char path[40], text[512];
    unsigned parent = 0;
    snprintf(path, sizeof path, "/proc/%u/stat", pid);
    int const fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t const len = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
    if (fd >= 0) close(fd);
    text[len > 0 ? len : 0] = '\0';
    const char *behind = strrchr(text, ')');
    return behind && sscanf(behind + 1, " %*c %u", &parent) == 1 ? parent : 0;
}

static bool remembered(const oos_process_family *family, uint32_t pid)
{
    for (size_t i = 0; i < family->count; i++)
        if (family->members[i].pid == pid)
            return family->members[i].start_ticks == oos_process_start_ticks(pid);
    return false;
}

static void remember(oos_process_family *family, uint32_t pid)
{
    size_t place = 0;
    while (place < family->count && family->members[place].pid != pid) place++;
    if (place == FAMILY_MAX) /* full: somebody who is gone makes room */
        for (place = 0; place < FAMILY_MAX && oos_process_start_ticks(family->members[place].pid);) place++;
    if (place == FAMILY_MAX) return;
    family->members[place] = (member){pid, oos_process_start_ticks(pid)};
    if (place == family->count) family->count++;
}

static size_t rows_read(row *rows, const oos_process_family *family, uint32_t root)
{
    size_t count = 0;
    DIR *place = opendir("/proc");
    for (const struct dirent *entry; place && count < PROCESSES_MAX && (entry = readdir(place));) {
        uint32_t const pid = (uint32_t)strtoul(entry->d_name, NULL, 10);
        if (!pid) continue;
        rows[count++] = (row){pid, parent_of(pid), pid == root || remembered(family, pid)};
    }
    if (place) closedir(place);
    return count;
}

static bool ours(const row *rows, size_t count, uint32_t pid)
{
    for (size_t i = 0; i < count; i++)
        if (rows[i].pid == pid) return rows[i].ours;
    return false;
}

/* Children of ours are ours, until nobody is found any more. */
static void family_mark(row *rows, size_t count)
{
    for (bool more = true; more;) {
        more = false;
        for (size_t i = 0; i < count; i++)
            if (!rows[i].ours && rows[i].parent > 1 && ours(rows, count, rows[i].parent))
                rows[i].ours = more = true;
    }
}

/* ---- what it has loaded ---- */

typedef struct loaded {
    bool cuda, guard, known; /* known: it could be read */
} loaded;

static void loaded_note(loaded *l, const char *text)
{
    l->cuda |= strstr(text, "/libcuda.so") || strstr(text, "/libcudart.so") || strstr(text, "/libcudart-");
    l->guard |= strstr(text, "/liboomsight-guard.so") != NULL;
}

static loaded loaded_by(uint32_t pid)
{
    char path[40], line[4096];
    size_t all = 0;
    loaded l = {false, false, false};
    snprintf(path, sizeof path, "/proc/%u/maps", pid);
    FILE *file = fopen(path, "re");
    while (file && all < MAPS_BYTES_MAX && fgets(line, sizeof line, file)) {
        l.known = true;
        all += strlen(line);
        loaded_note(&l, line);
    }
    if (file) fclose(file);
    return l;
}

static bool has_file(uint32_t pid)
{
    static const char name[] = "\0" OOS_GUARD_ENV "=";
    char path[40], bytes[65536] = "";
    snprintf(path, sizeof path, "/proc/%u/environ", pid);
    int const fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t const len = fd < 0 ? -1 : read(fd, bytes + 1, sizeof bytes - 1);
    if (fd >= 0) close(fd);
    if (len <= 0 || len == sizeof bytes - 1) return true; /* not known: nothing is claimed */
    return memmem(bytes, (size_t)len + 1, name, sizeof name - 1) != NULL;
}

/* By what it may do now: the owner of its folder in /proc is root after a change of user. */
static bool same_user(uint32_t pid)
{
    char path[40], line[256];
    unsigned real = 0, effective = geteuid();
    snprintf(path, sizeof path, "/proc/%u/status", pid);
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "Uid: %u %u", &real, &effective) == 2) break;
    if (file) fclose(file);
    return effective == geteuid();
}

/* Helpers of the driver that are root's (nvidia-modprobe) live for a moment; they are nobody to tell of. */
static bool stays(uint32_t pid)
{
    unsigned long long up = 0;
    FILE *file = fopen("/proc/uptime", "re");
    bool const read = file && fscanf(file, "%llu", &up) == 1;
    if (file) fclose(file);
    return read && up > oos_process_start_ticks(pid) / (uint64_t)sysconf(_SC_CLK_TCK) + HIDDEN_SECONDS;
}

static bool has_place(const oos_segment *segment, uint32_t pid)
{
    for (unsigned i = 0; i < OOS_SEGMENT_PROCESSES; i++)
        if (segment->processes[i].pid == pid) return true;
    return false;
}

static void judge(oos_segment *segment, uint32_t pid)
{
    loaded const l = loaded_by(pid);
    if (!l.known) {
        if (!same_user(pid) && stays(pid)) oos_segment_unseen_put(segment, pid, OOS_UNSEEN_HIDDEN);
        return;
    }
    if (!l.cuda) return;
    if (!l.guard)
        oos_segment_unseen_put(segment, pid, OOS_UNSEEN_NO_GUARD);
    else if (has_place(segment, pid))
        return;
    else if (!same_user(pid))
        oos_segment_unseen_put(segment, pid, OOS_UNSEEN_OTHER_USER);
    else if (!has_file(pid))
        oos_segment_unseen_put(segment, pid, OOS_UNSEEN_NO_FILE);
}

void oos_family_look(oos_process_family *family, oos_segment *segment, uint32_t root)
{
    row *rows = malloc(PROCESSES_MAX * sizeof *rows);
    if (!rows) return;
    size_t const count = rows_read(rows, family, root);
    family_mark(rows, count);
    for (size_t i = 0; i < count; i++) {
        if (!rows[i].ours || !oos_process_start_ticks(rows[i].pid)) continue;
        remember(family, rows[i].pid);
        judge(segment, rows[i].pid);
    }
    free(rows);
}
