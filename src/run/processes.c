/* Processes of a run that the guard does not see: found in /proc, because they cannot tell. */
#include "run/run.h"
#include "base/check.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    PROCESSES_MAX = 16384,
    FAMILY_MAX = 512,
    MAPS_BYTES_MAX = 16 << 20,
    HIDDEN_SECONDS = 10,
    PATH_BYTES = 200
};

typedef struct member {
    uint32_t pid;
    uint64_t start_ticks;
    oos_unseen suspected; /* by the last look; OOS_UNSEEN_COUNT: of nothing */
} member;

struct oos_process_family {
    const char *root;
    /* Once below the command, always of the run: a parent that ends changes nothing. */
    member members[FAMILY_MAX];
    size_t count;
};

oos_process_family *oos_family_create(const char *root)
{
    oos_process_family *family = calloc(1, sizeof *family);
    if (family) family->root = root;
    return family;
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

static const char *path_in(char path[PATH_BYTES], const char *root, uint32_t pid, const char *name)
{
    snprintf(path, PATH_BYTES, "%.150s/proc/%u/%s", root, pid, name);
    return path;
}

/* Of /proc/PID/stat, behind the name in brackets: state, parent. */
static uint32_t parent_of(const char *root, uint32_t pid)
{
    char path[PATH_BYTES], text[512];
    unsigned parent = 0;
    path_in(path, root, pid, "stat");
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
            return family->members[i].start_ticks == oos_process_start_ticks_in(family->root, pid);
    return false;
}

/* NULL: it is gone, or there are too many. */
static member *remember(oos_process_family *family, uint32_t pid)
{
    uint64_t const ticks = oos_process_start_ticks_in(family->root, pid);
    size_t place = 0;
    while (place < family->count && family->members[place].pid != pid) place++;
    if (place == FAMILY_MAX) /* full: somebody who is gone makes room */
        for (place = 0;
             place < FAMILY_MAX && oos_process_start_ticks_in(family->root, family->members[place].pid);)
            place++;
    if (place == FAMILY_MAX || !ticks) return NULL;
    member *m = &family->members[place];
    if (m->pid != pid || m->start_ticks != ticks) *m = (member){pid, ticks, OOS_UNSEEN_COUNT};
    if (place == family->count) family->count++;
    oos_assert(family->count <= FAMILY_MAX);
    return m;
}

static size_t rows_read(row *rows, const oos_process_family *family, uint32_t first)
{
    size_t count = 0;
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%.150s/proc", family->root);
    DIR *place = opendir(path);
    for (const struct dirent *entry; place && count < PROCESSES_MAX && (entry = readdir(place));) {
        uint32_t const pid = (uint32_t)strtoul(entry->d_name, NULL, 10);
        if (!pid) continue;
        rows[count++] = (row){pid, parent_of(family->root, pid), pid == first || remembered(family, pid)};
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

static loaded loaded_by(const char *root, uint32_t pid)
{
    char path[PATH_BYTES], line[4096];
    size_t all = 0;
    loaded l = {false, false, false};
    FILE *file = fopen(path_in(path, root, pid, "maps"), "re");
    while (file && all < MAPS_BYTES_MAX && fgets(line, sizeof line, file)) {
        l.known = true;
        all += strlen(line);
        loaded_note(&l, line);
    }
    if (file) fclose(file);
    return l;
}

static bool has_file(const char *root, uint32_t pid)
{
    static const char name[] = "\0" OOS_GUARD_ENV "=";
    char path[PATH_BYTES], bytes[65536] = "";
    int const fd = open(path_in(path, root, pid, "environ"), O_RDONLY | O_CLOEXEC);
    ssize_t const len = fd < 0 ? -1 : read(fd, bytes + 1, sizeof bytes - 1);
    if (fd >= 0) close(fd);
    if (len <= 0 || len == sizeof bytes - 1) return true; /* not known: nothing is claimed */
    return memmem(bytes, (size_t)len + 1, name, sizeof name - 1) != NULL;
}

/* By what it may do now: the owner of its folder in /proc is root after a change of user. */
static bool same_user(const char *root, uint32_t pid)
{
    char path[PATH_BYTES], line[256];
    unsigned real = 0, effective = geteuid();
    FILE *file = fopen(path_in(path, root, pid, "status"), "re");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "Uid: %u %u", &real, &effective) == 2) break;
    if (file) fclose(file);
    return effective == geteuid();
}

/* Helpers of the driver that are root's (nvidia-modprobe) live for a moment; they are nobody to tell of. */
static bool stays(const char *root, const member *m)
{
    unsigned long long up = 0;
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%.150s/proc/uptime", root);
    FILE *file = fopen(path, "re");
    bool const read = file && fscanf(file, "%llu", &up) == 1;
    if (file) fclose(file);
    return read && up > m->start_ticks / (uint64_t)sysconf(_SC_CLK_TCK) + HIDDEN_SECONDS;
}

static bool has_place(const oos_segment *segment, uint32_t pid)
{
    for (unsigned i = 0; i < OOS_SEGMENT_PROCESSES; i++)
        if (segment->processes[i].pid == pid) return true;
    return false;
}

/* By what is read of it now, whether it is whole or not. OOS_UNSEEN_COUNT: nothing is wrong, or nothing is known. */
static oos_unseen judge(const char *root, const oos_segment *segment, const member *m)
{
    loaded const l = loaded_by(root, m->pid);
    if (!l.known) return !same_user(root, m->pid) && stays(root, m) ? OOS_UNSEEN_HIDDEN : OOS_UNSEEN_COUNT;
    if (!l.cuda) return OOS_UNSEEN_COUNT;
    if (!l.guard) return OOS_UNSEEN_NO_GUARD;
    if (has_place(segment, m->pid)) return OOS_UNSEEN_COUNT;
    if (!same_user(root, m->pid)) return OOS_UNSEEN_OTHER_USER;
    return has_file(root, m->pid) ? OOS_UNSEEN_COUNT : OOS_UNSEEN_NO_FILE;
}

/* Of a process that ends, or becomes another program, the kernel gives a part of the list. Told is what two looks in a row say of one
 * that was there after each. True: the first of them. */
static bool suspect(const char *root, oos_segment *segment, member *m)
{
    oos_unseen why = judge(root, segment, m);
    if (why != OOS_UNSEEN_COUNT && oos_process_start_ticks_in(root, m->pid) != m->start_ticks)
        why = OOS_UNSEEN_COUNT;
    bool const first = why != OOS_UNSEEN_COUNT && why != m->suspected;
    if (why != OOS_UNSEEN_COUNT && !first) oos_segment_unseen_put(segment, m->pid, why);
    m->suspected = why;
    return first;
}

bool oos_family_look(oos_process_family *family, oos_segment *segment, uint32_t pid)
{
    bool again = false;
    row *rows = malloc(PROCESSES_MAX * sizeof *rows);
    if (!rows) return false;
    size_t const count = rows_read(rows, family, pid);
    family_mark(rows, count);
    for (size_t i = 0; i < count; i++) {
        member *m = rows[i].ours ? remember(family, rows[i].pid) : NULL;
        if (m) again |= suspect(family->root, segment, m);
    }
    free(rows);
    return again;
}
