/* An engine while it serves: what is held at a moment, and what its steps took at most. */
#include "dryrun/dryrun.h"
#include "oomsight_private.h"

#include <glob.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

void oos_dryrun_watch(const oos_segment *segment, const char *segment_path, oomsight_dryrun_look *ret_moment)
{
    for (uint32_t i = 0; i < segment->device_count && i < OOS_SEGMENT_DEVICES; i++)
        ret_moment->device_bytes = oos_max(
            ret_moment->device_bytes, __atomic_load_n(&segment->devices[i].held_bytes, __ATOMIC_RELAXED));
    for (uint32_t l = 0; l < segment->library_count && l < OOS_SEGMENT_LIBRARIES; l++) {
        const oos_segment_library *library = &segment->libraries[l];
        if (library->call_count > OOS_SEGMENT_CALLS) continue;
        uint64_t *counters = oos_segment_counters(segment_path, library);
        if (!counters) continue;
        for (uint32_t i = 0; i < library->call_count; i++)
            ret_moment->calls += __atomic_load_n(&counters[i], __ATOMIC_RELAXED);
        munmap(counters, oos_segment_counters_bytes(library->call_count));
    }
}

static uint64_t pinned_of(const oos_segment *segment, uint32_t pid)
{
    for (unsigned i = 0; i < OOS_SEGMENT_PROCESSES; i++)
        if (__atomic_load_n(&segment->processes[i].pid, __ATOMIC_RELAXED) == pid)
            return __atomic_load_n(&segment->processes[i].pinned_bytes, __ATOMIC_RELAXED);
    return 0;
}

static int larger_first(const void *a, const void *b)
{
    const oomsight_dryrun_process *x = &((const oos_host_row *)a)->process,
                                  *y = &((const oos_host_row *)b)->process;
    return x->resident_bytes < y->resident_bytes ? 1 : x->resident_bytes > y->resident_bytes ? -1 : 0;
}

void oos_dryrun_host_take(const oos_segment *segment, const oomsight_dryrun_process *processes, size_t count,
                          oos_host_moment *moment)
{
    uint64_t resident = 0;
    for (size_t i = 0; i < count; i++) resident = oos_add(resident, processes[i].resident_bytes);
    if (resident <= moment->resident_bytes) return;
    *moment = (oos_host_moment){.resident_bytes = resident, .process_count = count};
    for (size_t i = 0; i < count; i++) {
        oos_host_row const row = {processes[i], pinned_of(segment, processes[i].pid)};
        moment->shared_bytes = oos_add(moment->shared_bytes, row.process.shared_bytes);
        moment->pinned_bytes = oos_add(moment->pinned_bytes, row.pinned_bytes);
        if (i < OOS_HOST_PROCESSES) moment->rows[i] = row;
    }
    qsort(moment->rows, oos_min(count, OOS_HOST_PROCESSES), sizeof *moment->rows, larger_first);
}

static void line_read(const char *line, oos_step_peak steps[OOS_STEP_PARTS])
{
    char word[16];
    uint64_t bytes, step, requests, tokens;
    if (sscanf(line, "%15s %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64, word, &bytes, &step, &requests,
               &tokens) != 5)
        return;
    for (unsigned i = 0; i < OOS_STEP_PARTS; i++)
        if (strcmp(word, oos_step_word(i)) == 0 && (!steps[i].bytes.known || bytes > steps[i].bytes.value))
            steps[i] = (oos_step_peak){oos_u64_of(bytes), step, requests, tokens};
}

void oos_dryrun_steps_read(const char *segment_path, oos_step_peak steps[OOS_STEP_PARTS])
{
    char pattern[1024], line[256];
    glob_t found = {0};
    int const len = snprintf(pattern, sizeof pattern, "%s.steps.*", segment_path);
    if (len < 0 || (size_t)len >= sizeof pattern || glob(pattern, GLOB_NOSORT, NULL, &found) != 0) return;
    for (size_t i = 0; i < found.gl_pathc; i++) {
        FILE *file = fopen(found.gl_pathv[i], "r");
        while (file && fgets(line, sizeof line, file)) line_read(line, steps);
        if (file) fclose(file);
    }
    globfree(&found);
}
