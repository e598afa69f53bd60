/* Dry starts on this machine, a few at a time. A start whose process was killed is tried again; a start that ended is never. */
#include "cmd_matrix.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { JOBS_MAX = 256 };
/* Resident memory of a start's processes: up to 3.4 GiB with one device (docs/evidence/dryrun.md). */
#define JOB_BYTES (4ull << 30)

static volatile sig_atomic_t interrupted;

static void on_interrupt(int number)
{
    interrupted = number;
}

static unsigned long long available_bytes(void)
{
    char line[256];
    unsigned long long kib = 0;
    FILE *file = fopen("/proc/meminfo", "re");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "MemAvailable: %llu", &kib) == 1) break;
    if (file) fclose(file);
    return kib << 10;
}

/* One per two cores, as many as memory holds. */
static unsigned jobs_by_machine(void)
{
    long const cores = sysconf(_SC_NPROCESSORS_ONLN);
    unsigned long long jobs = cores > 2 ? (unsigned long long)cores / 2 : 1;
    unsigned long long const room = available_bytes() / JOB_BYTES;
    if (jobs > room) jobs = room;
    if (jobs > JOBS_MAX) jobs = JOBS_MAX;
    return jobs ? (unsigned)jobs : 1;
}

typedef struct pool {
    matrix_run *run;
    matrix_child *children;
    unsigned jobs, running;
    uint64_t next, points;
    uint64_t *later; /* points that another process with the same cache is at */
    size_t later_count, later_capacity;
    bool waiting; /* that was said */
    int code;
} pool;

enum { CLAIM_S = 1 };

static bool put_off(pool *p, uint64_t number)
{
    if (p->later_count == p->later_capacity) {
        size_t const capacity = p->later_capacity ? 2 * p->later_capacity : 64;
        uint64_t *later = realloc(p->later, capacity * sizeof *later);
        if (!later) return false;
        p->later = later, p->later_capacity = capacity;
    }
    p->later[p->later_count++] = number;
    return true;
}

static bool job_start(pool *p, matrix_child *child, uint64_t number)
{
    oomsight_error error = {0};
    oomsight_matrix_need need;
    oomsight_matrix_task task = OOMSIGHT_MATRIX_TASK_INIT;
    const oomsight_matrix_point *point = NULL;
    if (oomsight_matrix_task_of(p->run->matrix, number, &need, &task, &point, &error) != OOMSIGHT_OK) {
        p->code = fail_with(&error);
        return false;
    }
    if (need == OOMSIGHT_MATRIX_KNOWN) matrix_tell(p->run, point);
    if (need == OOMSIGHT_MATRIX_TAKEN && child->attempts == 0 && put_off(p, number)) return true;
    if (need < OOMSIGHT_MATRIX_RUN) return true;
    if (!matrix_child_start(p->run->given, &task, number, child)) {
        fprintf(stderr, "oomsight matrix: no process could be started: %s\n", strerror(errno));
        p->code = EXIT_OUR_FAULT;
        return false;
    }
    p->running++;
    return true;
}

static void job_end(pool *p, matrix_child *child, int status)
{
    matrix_outcome outcome;
    oomsight_error error = {0};
    const oomsight_matrix_point *point = NULL;
    uint64_t const number = child->number;
    p->running--;
    matrix_child_end(child, status, &outcome);
    if (interrupted) {
        free(outcome.report);
        return;
    }
    if (outcome.lost && child->attempts <= number_or(p->run->given->retries, 2)) {
        fprintf(stderr, "oomsight matrix: point %llu: %s; again\n", (unsigned long long)number,
                outcome.problem);
        free(outcome.report);
        job_start(p, child, number);
        return;
    }
    if (oomsight_matrix_answer(p->run->matrix, number, outcome.report,
                               outcome.problem[0] ? outcome.problem : NULL, outcome.seconds, child->attempts,
                               &point, &error) != OOMSIGHT_OK)
        p->code = fail_with(&error);
    else
        matrix_tell(p->run, point);
    free(outcome.report);
    child->attempts = 0;
}

/* Points that were put off come behind all others, each asked for once a round. */
static void pool_fill(pool *p)
{
    size_t again = p->next < p->points ? 0 : p->later_count;
    for (unsigned i = 0; i < p->jobs && !p->code; i++)
        while (!p->children[i].pid && (p->next < p->points || again) && !p->code) {
            uint64_t const number = p->next < p->points ? p->next++ : p->later[0];
            if (again) {
                again--;
                memmove(p->later, p->later + 1, --p->later_count * sizeof *p->later);
            }
            p->children[i].attempts = 0;
            job_start(p, &p->children[i], number);
        }
}

static void wait_for_others(pool *p)
{
    if (!p->waiting && !p->run->given->quiet)
        complain("oomsight matrix: waiting for %zu points that another process with this cache is at",
                 p->later_count);
    p->waiting = true;
    sleep(CLAIM_S);
}

static void pool_loop(pool *p)
{
    for (;;) {
        if (!interrupted) pool_fill(p);
        if (p->code || (!p->running && (interrupted || !p->later_count))) break;
        if (!p->running) {
            wait_for_others(p);
            continue;
        }
        int status;
        pid_t const pid = waitpid(-1, &status, 0);
        if (pid < 0 && errno != EINTR) break;
        for (unsigned i = 0; pid > 0 && i < p->jobs; i++)
            if (p->children[i].pid == pid) job_end(p, &p->children[i], status);
        if (!interrupted) continue;
        for (unsigned i = 0; i < p->jobs; i++)
            if (p->children[i].pid) kill(p->children[i].pid, SIGTERM);
    }
}

int matrix_pool(matrix_run *run)
{
    pool p = {.run = run, .points = oomsight_matrix_points(run->matrix)};
    p.jobs = run->given->jobs.number > 0 ? (unsigned)run->given->jobs.number : jobs_by_machine();
    if (p.jobs > JOBS_MAX) p.jobs = JOBS_MAX;
    p.children = calloc(p.jobs, sizeof *p.children);
    if (!p.children) return EXIT_OUR_FAULT;
    struct sigaction act = {.sa_handler = on_interrupt}; /* no restart: waiting ends */
    sigaction(SIGINT, &act, NULL);
    sigaction(SIGTERM, &act, NULL);
    pool_loop(&p);
    for (unsigned i = 0; i < p.jobs; i++)
        if (p.children[i].pid) kill(p.children[i].pid, SIGTERM);
    while (p.running && waitpid(-1, NULL, 0) > 0) p.running--;
    free(p.children);
    free(p.later);
    if (interrupted) {
        oomsight_matrix_tally tally = OOMSIGHT_MATRIX_TALLY_INIT;
        oomsight_matrix_count(run->matrix, &tally);
        fprintf(
            stderr,
            "oomsight matrix: interrupted: %llu of %llu starts finished, %llu kept; the same command goes "
            "on from what is kept\n",
            (unsigned long long)run->done, (unsigned long long)p.points, (unsigned long long)tally.kept);
    }
    return p.code ? p.code : interrupted ? 128 + interrupted : 0;
}
