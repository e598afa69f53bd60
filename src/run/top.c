/* Who uses the GPUs of this machine, and how that changes while one looks. */
#include "run/run.h"
#include "base/check.h"
#include "machine/machine.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ANSWER_MS = 2000 };
#define SAMPLE_SECONDS 2.0
#define KNOWN_SECONDS 8.0 /* less is no growth, only a step */

/* ---- names ---- */

static size_t base_of(const char *word)
{
    const char *slash = strrchr(word, '/');
    return slash && slash[1] ? (size_t)(slash + 1 - word) : 0;
}

void oos_top_name(const char *words, size_t len, char *ret_name, size_t capacity)
{
    size_t at = 0, filled = 0;
    const char *second = words + strnlen(words, len) + 1;
    bool const script = second < words + len && *second && *second != '-';
    if (script && oos_view_starts(oos_view_of(words + base_of(words)), "python"))
        at = (size_t)(second - words);
    if (at < len && words[at] == '/') at += base_of(words + at);
    for (; at < len && filled + 1 < capacity; at++) ret_name[filled++] = words[at] ? words[at] : ' ';
    while (filled && ret_name[filled - 1] == ' ') filled--;
    ret_name[filled] = '\0';
}

/* `told`: what NVML's side knows of it; "" where it is in another container, or gone. */
static void name_read(oos_top_row *row, const char *told)
{
    char path[48], words[2 * OOS_TOP_NAME];
    snprintf(path, sizeof path, "/proc/%u/cmdline", row->pid);
    int const fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t const len = fd < 0 ? -1 : read(fd, words, sizeof words - 1);
    if (fd >= 0) close(fd);
    if (len > 0) {
        words[len] = '\0';
        oos_top_name(words, (size_t)len, row->name, sizeof row->name);
    } else if (!row->name[0])
        snprintf(row->name, sizeof row->name, "%s", told);
}

/* ---- a look ---- */

/* NULL: there are too many. */
static oos_top_row *row_of(oos_top *top, uint32_t pid, const char *told)
{
    oos_assert(top->row_count <= OOS_TOP_ROWS);
    oos_top_row *row = NULL;
    uint64_t const start = oos_process_start_ticks(pid);
    for (unsigned i = 0; i < top->row_count && !row; i++)
        if (top->rows[i].pid == pid && top->rows[i].start_ticks == start && top->rows[i].ended_at <= 0)
            row = &top->rows[i];
    if (!row && top->row_count < OOS_TOP_ROWS) {
        row = &top->rows[top->row_count++];
        *row = (oos_top_row){.pid = pid, .start_ticks = start, .phase = OOS_SEGMENT_PHASES};
    }
    if (!row || row->seen) return row;
    row->seen = true;
    row->now_known = row->left_known = row->refused = false;
    row->gpus = row->now_bytes = row->limit_bytes = row->run_pid = 0;
    name_read(row, told);
    return row;
}

static void least_left(oos_top_row *row, uint64_t limit, uint64_t used)
{
    uint64_t const left = used < limit ? limit - used : 0;
    if (row->left_known && row->left_bytes <= left) return;
    row->left_known = true;
    row->left_bytes = left;
    row->limit_bytes = limit;
}

static void holders_read(oos_top *top, const oos_machine_device *d, unsigned gpu)
{
    for (unsigned i = 0; i < d->holder_count; i++) {
        oos_top_row *row = row_of(top, d->holders[i].pid, d->holders[i].name);
        if (!row) return;
        row->gpus |= 1ull << gpu;
        row->now_known |= d->holders[i].bytes.known;
        if (d->holders[i].bytes.known) row->now_bytes += d->holders[i].bytes.value;
        if (d->memory_known) least_left(row, d->total_bytes, d->used_bytes);
    }
}

void oos_top_begin(oos_top *top)
{
    oos_nvml *nvml = top->silent ? NULL : malloc(sizeof *nvml);
    top->gpu_count = top->unlimited_pid = 0;
    for (unsigned i = 0; i < top->row_count; i++) top->rows[i].seen = false;
    top->nvml_known = nvml && oos_nvml_ask_within(ANSWER_MS, nvml) && nvml->state == OOS_DRIVER_OK;
    top->silent |= nvml && !top->nvml_known;
    for (unsigned i = 0; top->nvml_known && i < nvml->device_count && top->gpu_count < OOS_SEGMENT_DEVICES;
         i++) {
        const oos_machine_device *d = &nvml->devices[i];
        oos_top_gpu *gpu = &top->gpus[top->gpu_count];
        *gpu = (oos_top_gpu){.total_bytes = d->total_bytes,
                             .used_bytes = d->used_bytes,
                             .number = d->index,
                             .is_slice = d->is_slice};
        memcpy(gpu->name, d->name, sizeof gpu->name);
        memcpy(gpu->bus_id, d->bus_id, sizeof gpu->bus_id);
        holders_read(top, d, top->gpu_count++);
    }
    free(nvml);
}

/* Its number among the GPUs, where NVML does not answer one of its own. */
static unsigned gpu_of(oos_top *top, const oos_run_device *device)
{
    for (unsigned i = 0; i < top->gpu_count; i++)
        if (strcmp(top->gpus[i].bus_id, device->bus_id) == 0) return i;
    if (top->gpu_count == OOS_SEGMENT_DEVICES) return 0;
    oos_top_gpu *gpu = &top->gpus[top->gpu_count];
    *gpu = (oos_top_gpu){.total_bytes = device->total_bytes,
                         .used_bytes = device->held_bytes + device->outside_bytes,
                         .number = device->place};
    snprintf(gpu->bus_id, sizeof gpu->bus_id, "%s", device->bus_id);
    snprintf(gpu->name, sizeof gpu->name, "%s", device->card ? device->card : device->bus_id);
    return top->gpu_count++;
}

void oos_top_run(oos_top *top, const oos_run_state *state, uint32_t launcher_pid)
{
    if (state->limit == OOMSIGHT_RUN_LIMIT_NOT_FOR_ALL) top->unlimited_pid = launcher_pid;
    for (unsigned p = 0; p < state->process_count; p++) {
        const oos_run_process *process = &state->processes[p];
        if (!process->lives || !process->peak_bytes) continue;
        oos_top_row *row = row_of(top, process->pid, "");
        if (!row) return;
        bool const by_nvml = row->now_known;
        row->run_pid = launcher_pid;
        row->phase = state->phase;
        if (!by_nvml) row->now_bytes = process->held_bytes;
        row->now_known = true;
        if (row->peak_bytes < process->peak_bytes) row->peak_bytes = process->peak_bytes;
        for (unsigned i = 0; i < state->device_count; i++) {
            const oos_run_device *device = &state->devices[i];
            if (!(process->devices >> device->place & 1)) continue;
            row->gpus |= 1ull << gpu_of(top, device);
            row->refused |= device->refused_count > 0;
            if (device->budget_bytes)
                least_left(row, device->budget_bytes, device->held_bytes + device->outside_bytes);
        }
    }
}

static void sample(oos_top_row *row, double seconds)
{
    unsigned old = 0;
    if (row->samples && seconds < row->seconds[row->samples - 1] + SAMPLE_SECONDS) return;
    while (old + 1 < row->samples &&
           (seconds - row->seconds[old + 1] >= OOS_TOP_WINDOW || row->samples - old == OOS_TOP_SAMPLES))
        old++;
    row->samples -= old;
    memmove(row->seconds, row->seconds + old, row->samples * sizeof *row->seconds);
    memmove(row->bytes, row->bytes + old, row->samples * sizeof *row->bytes);
    oos_assert(row->samples < OOS_TOP_SAMPLES);
    row->seconds[row->samples] = seconds;
    row->bytes[row->samples++] = (double)row->now_bytes;
}

void oos_top_end(oos_top *top, double seconds)
{
    unsigned kept = 0;
    for (unsigned i = 0; i < top->row_count; i++) {
        oos_top_row *row = &top->rows[i];
        if (!row->seen && row->ended_at <= 0) row->ended_at = seconds > 0 ? seconds : 1e-9;
        if (row->ended_at > 0 && seconds - row->ended_at > OOS_TOP_ENDED) continue;
        if (row->peak_bytes < row->now_bytes) row->peak_bytes = row->now_bytes;
        if (row->ended_at <= 0 && row->now_known) sample(row, seconds);
        if (kept != i) top->rows[kept] = *row;
        kept++;
    }
    oos_assert(kept <= OOS_TOP_ROWS);
    top->row_count = kept;
}

bool oos_top_growth(const oos_top_row *row, double *ret_per_minute)
{
    if (row->samples < 2) return false;
    double const span = row->seconds[row->samples - 1] - row->seconds[0];
    *ret_per_minute = span > 0 ? 60 * (row->bytes[row->samples - 1] - row->bytes[0]) / span : 0;
    return span >= KNOWN_SECONDS;
}

/* ---- the order of rows ---- */

static int by_pid(const void *a, const void *b)
{
    const oos_top_row *x = a, *y = b;
    return x->pid < y->pid ? -1 : x->pid > y->pid;
}

/* What is gone comes last. */
static int by(double x, double y, const void *a, const void *b)
{
    bool const gone = ((const oos_top_row *)a)->ended_at > 0, other = ((const oos_top_row *)b)->ended_at > 0;
    if (gone != other) return gone ? 1 : -1;
    return x > y ? -1 : x < y ? 1 : by_pid(a, b);
}

static int by_memory(const void *a, const void *b)
{
    return by((double)((const oos_top_row *)a)->now_bytes, (double)((const oos_top_row *)b)->now_bytes, a, b);
}

static int by_growth(const void *a, const void *b)
{
    double x = 0, y = 0;
    if (!oos_top_growth(a, &x)) x = 0;
    if (!oos_top_growth(b, &y)) y = 0;
    return by(x, y, a, b);
}

void oos_top_sort(oos_top *top, oos_top_order order)
{
    qsort(top->rows, top->row_count, sizeof *top->rows,
          order == OOS_TOP_BY_GROWTH ? by_growth
          : order == OOS_TOP_BY_PID  ? by_pid
                                     : by_memory);
}
