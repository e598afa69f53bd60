/* The public face of guarded runs. */
#include "api/api.h"
#include "base/text.h"
#include "report/report.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { YOUNG_SECONDS = 60 }; /* in which a segment may still be without its launcher */

static oomsight_status opened(oos_segment_status status, const char *path, oomsight_error *reterr)
{
    if (status == OOS_SEGMENT_OK) return OOMSIGHT_OK;
    if (status == OOS_SEGMENT_CORRUPT)
        return oos_fail(reterr, OOMSIGHT_MALFORMED, "%s: not the segment of a run", path);
    if (status == OOS_SEGMENT_FOREIGN)
        return oos_fail(reterr, OOMSIGHT_IO, "%s: not a plain file of this user alone", path);
    if (status == OOS_SEGMENT_NO_ROOM)
        return oos_fail(
            reterr, OOMSIGHT_IO,
            "%s: no room for the %llu KiB of the shared segment; a container has more with --shm-size", path,
            (unsigned long long)oos_segment_file_bytes() >> 10);
    return oos_fail(reterr, OOMSIGHT_IO, "%s: the shared segment cannot be opened", path);
}

oomsight_status oomsight_run_create(const oomsight_run_params *params, oomsight_run **ret_run,
                                    oomsight_error *reterr)
{
    OOS_TAKE_PARAMS(oomsight_run_params, params);
    if (!params->segment_path)
        return oos_fail(reterr, OOMSIGHT_USAGE, "a limited run needs a place for its segment");
    if (params->budget_millionths > 1000000)
        return oos_fail(reterr, OOMSIGHT_USAGE, "a limit is at most the whole device");
    oomsight_run *run = calloc(1, sizeof *run);
    if (!run) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a run");
    run->alive = -1;
    oos_device_spec specs[OOS_SEGMENT_DEVICES];
    unsigned const count = oos_run_devices_before(specs, OOS_SEGMENT_DEVICES);
    oos_dryrun_log_init(&run->log, NULL);
    oomsight_status status =
        OOS_WHOLE_STATUS(params, opened(oos_segment_create(params->segment_path, specs, count, &run->segment),
                                        params->segment_path, reterr));
    if (status == OOMSIGHT_OK) {
        status = oos_line_reader_create(NULL, &run->log.reader, reterr);
        if (status != OOMSIGHT_OK) unlink(params->segment_path);
    }
    if (status != OOMSIGHT_OK) {
        oomsight_run_free(run);
        return status;
    }
    run->alive = open(params->segment_path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (run->alive >= 0) flock(run->alive, LOCK_EX | LOCK_NB);
    run->segment->budget_bytes = params->budget_bytes;
    run->segment->budget_millionths = params->budget_bytes ? 0 : params->budget_millionths;
    run->segment->reserve_bytes = params->reserve_bytes;
    run->segment->owner = OOS_OWNER_UNACCOUNTED; /* until the log tells: any program may be run */
    run->segment->phase = OOS_PHASE_UNKNOWN;
    run->segment->launcher_pid = (uint32_t)getpid();
    run->segment->launcher_start_ticks = oos_process_start_ticks((uint32_t)getpid());
    strncpy(run->path, params->segment_path, sizeof run->path - 1);
    *ret_run = run;
    return OOMSIGHT_OK;
}

oomsight_status oomsight_run_open(const char *segment_path, oomsight_run **ret_run, oomsight_error *reterr)
{
    oomsight_run *run = calloc(1, sizeof *run);
    if (!run) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a run");
    run->alive = -1;
    oomsight_status const status =
        opened(oos_segment_open(segment_path, &run->segment), segment_path, reterr);
    if (status != OOMSIGHT_OK) {
        free(run);
        return status;
    }
    *ret_run = run;
    return OOMSIGHT_OK;
}

void oomsight_run_free(oomsight_run *run)
{
    if (!run) return;
    if (run->segment && run->path[0])
        run->segment->launcher_pid = 0; /* those who share with it see that it is over */
    oos_segment_close(run->segment);
    if (run->alive >= 0) close(run->alive);
    oos_family_free(run->family);
    oos_history_free(run->history);
    oos_line_reader_free(run->log.reader);
    free(run);
}

uint64_t oomsight_run_refused(const oomsight_run *run)
{
    return run->segment->failure_count;
}

unsigned oomsight_run_line(oomsight_run *run, const char *line, size_t len)
{
    oos_dryrun_log *log = &run->log;
    if (oos_dryrun_log_line(log, (oos_view){line, len})) {
        __atomic_store_n(&run->segment->owner, (uint32_t)oos_phase_takes(log->phase), __ATOMIC_RELAXED);
        __atomic_store_n(&run->segment->phase, (uint32_t)log->phase, __ATOMIC_RELAXED);
        run->segment->phase_told = 1;
    }
    return (log->ready ? OOMSIGHT_DRYRUN_READY : 0u) | (log->ran_out ? OOMSIGHT_DRYRUN_OUT_OF_MEMORY : 0u) |
           (log->refused ? OOMSIGHT_DRYRUN_REFUSED : 0u) |
           (run->segment->phase_told ? OOMSIGHT_RUN_ENGINE : 0u);
}

/* ---- what was left behind ---- */

/* Nobody who lives has its lock, in whatever container he is. */
static bool unlocked(const char *path, struct stat *ret_info)
{
    int const fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    bool const free = fd >= 0 && fstat(fd, ret_info) == 0 && flock(fd, LOCK_EX | LOCK_NB) == 0;
    if (fd >= 0) close(fd);
    return free;
}

int oomsight_run_abandoned(const char *segment_path)
{
    struct stat info;
    oos_segment *segment;
    if (!unlocked(segment_path, &info) || info.st_uid != geteuid() || !S_ISREG(info.st_mode)) return false;
    bool const old = time(NULL) - info.st_mtime > YOUNG_SECONDS;
    oos_segment_status const status = oos_segment_open(segment_path, &segment);
    if (status != OOS_SEGMENT_OK)
        return status == OOS_SEGMENT_CORRUPT && old; /* cut short, or of a release that is gone */
    bool left = (segment->launcher_pid || old) && !oos_segment_launched(segment);
    for (unsigned i = 0; left && i < OOS_SEGMENT_PROCESSES; i++) {
        const oos_segment_process *process = &segment->processes[i];
        left = !process->pid || oos_process_start_ticks(process->pid) != process->start_ticks;
    }
    oos_segment_close(segment);
    return left;
}

/* ---- who is not counted ---- */

uint64_t oomsight_run_device_bytes(const oomsight_run *run)
{
    return oos_run_smallest(run->segment);
}

oomsight_status oomsight_run_look(oomsight_run *run, int pid, char **ret_text, int *ret_again,
                                  oomsight_error *reterr)
{
    oos_text text = {0};
    *ret_text = NULL;
    *ret_again = false;
    if (!run->family) run->family = oos_family_create("");
    if (!run->family) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory to look at processes");
    if (pid > 0) *ret_again = oos_family_look(run->family, run->segment, (uint32_t)pid);
    while (run->told_unseen < OOS_SEGMENT_UNSEEN) {
        const oos_segment_unseen *entry = &run->segment->unseen[run->told_unseen];
        uint32_t const unseen = __atomic_load_n(&entry->pid, __ATOMIC_ACQUIRE);
        if (!unseen) break;
        oos_text_printf(&text, "process %u (%.15s) is not counted: %s\n", unseen, entry->name,
                        oos_unseen_word(entry->why));
        run->told_unseen++;
    }
    return text.len ? oos_text_take(&text, ret_text, reterr) : OOMSIGHT_OK;
}

oomsight_run_limit oomsight_run_limited(const oomsight_run *run)
{
    oos_run_state *state = malloc(sizeof *state);
    if (!state) return OOMSIGHT_RUN_LIMIT_NOT_FOR_ALL;
    oos_run_read(run->segment, state);
    oomsight_run_limit const limit = state->limit;
    free(state);
    return limit;
}

int oomsight_run_launcher(const oomsight_run *run)
{
    return oos_segment_launched(run->segment) ? (int)run->segment->launcher_pid : 0;
}

/* Without memory nothing is taken down, and the report names no growth. */
void oomsight_run_watch(oomsight_run *run, double seconds)
{
    oos_run_state *state = malloc(sizeof *state);
    if (!run->history) run->history = oos_history_create();
    if (state && run->history && seconds >= 0) {
        oos_run_read(run->segment, state);
        oos_history_add(run->history, seconds / 3600, state, oos_run_host_bytes(state));
    }
    free(state);
}

void oomsight_run_serving(oomsight_run *run, const char *metrics, size_t len)
{
    oos_serving_read((oos_view){metrics, metrics ? len : 0}, &run->serving);
}

static void told_of(const oomsight_run *run, oos_run_told *ret_told)
{
    oos_run_read(run->segment, &ret_told->state);
    ret_told->serving = run->serving;
    ret_told->growth_count =
        run->history ? oos_history_growth(run->history, &ret_told->state, ret_told->growth, OOS_GROWTHS_MAX)
                     : 0;
}

oomsight_status oomsight_run_metrics(oomsight_run *const *runs, const int *pids, const char *const *names,
                                     size_t count, char **ret_text, oomsight_error *reterr)
{
    oos_text text = {0};
    oos_run_told *told = calloc(count ? count : 1, sizeof *told);
    if (!told) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the report");
    for (size_t i = 0; i < count; i++) {
        told_of(runs[i], &told[i]);
        told[i].host_bytes = oos_run_host_bytes(&told[i].state);
        told[i].pid = pids[i];
        told[i].name = names[i];
        for (size_t before = 0; before < i; before++)
            told[i].namesakes += strcmp(names[before], names[i]) == 0;
    }
    oos_report_run_metrics(&text, told, count);
    free(told);
    return oos_text_take(&text, ret_text, reterr);
}

oomsight_status oomsight_run_render(const oomsight_run *run, const oomsight_render_params *params,
                                    char **ret_text, oomsight_error *reterr)
{
    OOS_TAKE_PARAMS(oomsight_render_params, params);
    oos_text text = {0};
    oos_run_told *told = malloc(sizeof *told);
    if (!told) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the report");
    told_of(run, told);
    if (params->format == OOMSIGHT_FORMAT_JSON)
        oos_report_run_json(&text, told);
    else
        oos_report_run_text(&text, told, params);
    free(told);
    return OOS_WHOLE_TEXT(params, &text, ret_text);
}
