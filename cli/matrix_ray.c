/* Dry starts handed to Ray by a small Python program (bindings/python/oomsight/matrix_ray.py). It reads all tasks, then writes
 * answers as they come; both are counted bytes, so that no text has to be escaped:
 *
 *     task    NUMBER WORDS VARIABLES\n   then each word and variable as LENGTH\n BYTES; "PATH=..." is put in front of what is there
 *     answer  NUMBER SECONDS ATTEMPTS REPORT_BYTES PROBLEM_BYTES\n  REPORT PROBLEM */
#include "cmd_matrix.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ANSWER_MAX = 16 << 20 };

static const char driver[] = "import importlib.util, runpy, sys\n"
                             "if not importlib.util.find_spec('oomsight'):\n"
                             "    sys.exit('oomsight matrix: ' + sys.executable + ' has no package oomsight; "
                             "install it there, and in the '\n"
                             "             'Python of every node, or name another with --python')\n"
                             "runpy.run_module('oomsight.matrix_ray', run_name='__main__', alter_sys=True)\n";

static pid_t driver_start(const cli_options *given, int *ret_to, int *ret_from)
{
    int to[2], from[2];
    char jobs[32], retries[32];
    const char *python = given->python ? given->python : getenv("OOMSIGHT_PYTHON");
    if (!python) python = "python3";
    snprintf(jobs, sizeof jobs, "%.0f", given->jobs.number);
    snprintf(retries, sizeof retries, "%.0f", number_or(given->retries, 2));
    if (pipe(to) != 0) return -1;
    if (pipe(from) != 0) return -1;
    pid_t const pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        dup2(to[0], STDIN_FILENO);
        dup2(from[1], STDOUT_FILENO);
        for (int i = 0; i < 2; i++) {
            close(to[i]);
            close(from[i]);
        }
        execlp(python, python, "-c", driver, given->ray, jobs, retries, (char *)NULL);
        fprintf(stderr, "oomsight matrix: '%s' cannot be started: %s\n", python, strerror(errno));
        _exit(127);
    }
    close(to[0]);
    close(from[1]);
    *ret_to = to[1];
    *ret_from = from[0];
    return pid;
}

static void put_word(FILE *to, const char *word)
{
    fprintf(to, "%zu\n", strlen(word));
    fputs(word, to);
}

static bool task_send(const cli_options *given, const oomsight_matrix_task *task, uint64_t number, FILE *to)
{
    const char **words = NULL;
    size_t const count = matrix_command(given, task, &words);
    if (!count) return false;
    fprintf(to, "%llu %zu %zu\n", (unsigned long long)number, count,
            task->environment_count + (task->engine != NULL));
    for (size_t i = 0; i < count; i++) put_word(to, words[i]);
    for (size_t i = 0; i < task->environment_count; i++) put_word(to, task->environment[i]);
    if (task->engine) fprintf(to, "%zu\nPATH=%s/bin", strlen(task->engine) + 9, task->engine);
    free(words);
    return !ferror(to);
}

static int tasks_send(matrix_run *run, FILE *to, uint64_t *ret_count)
{
    uint64_t const points = oomsight_matrix_points(run->matrix);
    for (uint64_t i = 0; i < points; i++) {
        oomsight_error error = {0};
        oomsight_matrix_need need;
        oomsight_matrix_task task = OOMSIGHT_MATRIX_TASK_INIT;
        const oomsight_matrix_point *point = NULL;
        if (oomsight_matrix_task_of(run->matrix, i, &need, &task, &point, &error) != OOMSIGHT_OK)
            return fail_with(&error);
        if (need == OOMSIGHT_MATRIX_KNOWN) matrix_tell(run, point);
        if (need != OOMSIGHT_MATRIX_RUN) continue;
        if (!task_send(run->given, &task, i, to)) return EXIT_OUR_FAULT;
        ++*ret_count;
    }
    return 0;
}

static char *bytes_read(FILE *from, size_t len)
{
    char *text = calloc(1, len + 1);
    if (text && fread(text, 1, len, from) != len) {
        free(text);
        text = NULL;
    }
    return text;
}

/* 1: an answer was taken; 0: there is none; -1: it cannot be read. */
static int answer_take(matrix_run *run, FILE *from)
{
    unsigned long long number;
    unsigned attempts;
    double seconds;
    size_t report_len, problem_len;
    if (fscanf(from, "%llu %lf %u %zu %zu", &number, &seconds, &attempts, &report_len, &problem_len) != 5)
        return feof(from) ? 0 : -1;
    if (fgetc(from) != '\n' || report_len > ANSWER_MAX || problem_len > ANSWER_MAX) return -1;
    char *report = bytes_read(from, report_len), *problem = bytes_read(from, problem_len);
    const oomsight_matrix_point *point = NULL;
    oomsight_error error = {0};
    bool ok = report && problem;
    if (ok &&
        oomsight_matrix_answer(run->matrix, number, report_len ? report : NULL, problem_len ? problem : NULL,
                               seconds, attempts, &point, &error) != OOMSIGHT_OK) {
        fail_with(&error);
        ok = false;
    }
    if (ok) matrix_tell(run, point);
    free(report);
    free(problem);
    return ok ? 1 : -1;
}

int matrix_ray(matrix_run *run)
{
    int to_fd = -1, from_fd = -1, status = 0, taken = 1;
    uint64_t sent = 0, answered = 0;
    signal(SIGPIPE, SIG_IGN);
    pid_t const pid = driver_start(run->given, &to_fd, &from_fd);
    if (pid < 0) return EXIT_OUR_FAULT;
    FILE *to = fdopen(to_fd, "w"), *from = fdopen(from_fd, "r");
    if (!to || !from) return EXIT_OUR_FAULT;
    int code = tasks_send(run, to, &sent);
    if (fclose(to) != 0 && !code) code = EXIT_INPUT; /* it says itself why it went away */
    while (!code && answered < sent && (taken = answer_take(run, from)) > 0) answered++;
    fclose(from);
    if (code || taken < 0) kill(pid, SIGTERM);
    waitpid(pid, &status, 0);
    if (code || answered == sent) return code;
    if (!answered && status) return EXIT_INPUT; /* it said why */
    fprintf(stderr, "oomsight matrix: Ray answered %llu of %llu points%s\n", (unsigned long long)answered,
            (unsigned long long)sent, answered ? "; the same command goes on from there" : "");
    return EXIT_INPUT;
}
