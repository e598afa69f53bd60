/* A measurement from outside: processes are made, waited for, and given up; the figures arrive in memory that is shared with them. */
#include "machine/machine.h"
#include "base/file.h"
#include "base/segment.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct shared {
    oos_measure measure;
    oos_measure_ranks ranks;
} shared;

const char *oos_measure_stage_word(oos_measure_stage stage)
{
    static const char *const words[] = {
#define OOS_MEASURE_WORD(name, word) word,
        OOS_MEASURE_STAGE_MAP(OOS_MEASURE_WORD)
#undef OOS_MEASURE_WORD
    };
    unsigned const place = stage;
    return place < sizeof words / sizeof *words ? words[place] : "?";
}

bool oos_ends_within(int fd, unsigned timeout_ms)
{
    struct pollfd end = {.fd = fd, .events = POLLIN};
    int64_t const until = oos_clock_ms() + timeout_ms;
    bool ended = false;
    for (int64_t at = until - timeout_ms; !ended && at < until; at = oos_clock_ms())
        ended = poll(&end, 1, (int)(until - at)) > 0; /* signals, of a terminal's size, change nothing */
    return ended;
}

typedef enum ending { ENDED, HUNG, KILLED, NO_PROCESS } ending;

typedef void work(shared *s, int number, const char *packages);

/* `count` children do the work, with their number each. Their ends of a pipe close with the last of them. */
static ending children_run(shared *s, work *run, int count, const char *packages, unsigned timeout_ms)
{
    enum { MOST = 2 };
    pid_t children[MOST] = {0};
    int ends[2], status;
    if (pipe(ends) != 0) return NO_PROCESS;
    for (int i = 0; i < count; i++) {
        children[i] = fork();
        if (children[i] == 0) {
            close(ends[0]);
            run(s, i, packages);
            _exit(0);
        }
    }
    close(ends[1]);
    bool const ended = oos_ends_within(ends[0], timeout_ms);
    ending how = ended ? ENDED : HUNG;
    for (int i = 0; i < count; i++) {
        if (children[i] < 0) how = NO_PROCESS;
        if (children[i] <= 0) continue;
        if (!ended) kill(children[i], SIGKILL);
        /* one that hangs in the driver is nobody to wait for */
        if (waitpid(children[i], &status, ended ? 0 : WNOHANG) == children[i] && ended && WIFSIGNALED(status))
            how = KILLED;
    }
    close(ends[0]);
    return how;
}

static void driver_work(shared *s, int number, const char *packages)
{
    (void)number;
    (void)packages;
    oos_measure_driver(&s->measure);
}

static void rank_work(shared *s, int rank, const char *packages)
{
    oos_measure_rank(&s->ranks, rank, packages);
}

/* Communicators need two processes on two devices, as serving has them. */
static void ranks_run(shared *s, const char *packages, unsigned timeout_ms)
{
    oos_measure *m = &s->measure;
    if (m->device_count < 2) {
        snprintf(m->rank_error, sizeof m->rank_error, "one device is visible, a communicator needs two");
        return;
    }
    ending const how = children_run(s, rank_work, 2, packages, timeout_ms);
    const oos_measure_ranks *r = &s->ranks;
    m->nccl_version = r->version;
    if (r->done && how == ENDED)
        m->collective_bytes = oos_u64_of(oos_sub(r->before_bytes, r->after_bytes));
    else if (r->error[0])
        snprintf(m->rank_error, sizeof m->rank_error, "%s", r->error);
    else
        snprintf(m->rank_error, sizeof m->rank_error,
                 how == HUNG ? "two ranks did not meet in time" : "a rank ended before it was done");
}

bool oos_measure_device(unsigned index, const char *packages, unsigned timeout_ms, oos_measure *ret_measure)
{
    int64_t const until = oos_clock_ms() + timeout_ms;
    shared *s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (s == MAP_FAILED) return false;
    oos_measure *m = &s->measure;
    m->device_index = index;
    m->stand_in = getenv(OOS_SEGMENT_ENV) != NULL;
    ending const how = children_run(s, driver_work, 1, packages, timeout_ms);
    if (how == HUNG)
        m->timed_out = true;
    else if (how == KILLED && !m->error[0])
        snprintf(m->error, sizeof m->error, "libcuda ended the process that queried it");
    else if (m->stage == OOS_MEASURE_RANKS && !m->error[0]) {
        ranks_run(s, packages, (unsigned)oos_sub((uint64_t)until, (uint64_t)oos_clock_ms()));
        m->stage = OOS_MEASURE_DONE;
    }
    *ret_measure = *m;
    munmap(s, sizeof *s);
    return how != NO_PROCESS;
}
