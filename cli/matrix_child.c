/* One dry start of a matrix: `oomsight dryrun --json ...` in a process of its own, its report and its log in files that are gone
 * with it. */
#include "cmd_matrix.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

double matrix_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Plain words: no quotes, no variables. */
static size_t put_under(const char *under, const char **words)
{
    static char copy[4096];
    size_t count = 0;
    char *rest = NULL;
    snprintf(copy, sizeof copy, "%s", under ? under : "");
    for (char *word = strtok_r(copy, " \t", &rest); word && count < MATRIX_UNDER;
         word = strtok_r(NULL, " \t", &rest))
        words[count++] = word;
    return count;
}

size_t matrix_command(const cli_options *given, const oomsight_matrix_task *task, const char ***ret_words)
{
    static char self[4096], timeout[32], cuda[16];
    if (!self[0]) {
        ssize_t const len = readlink("/proc/self/exe", self, sizeof self - 1);
        self[len > 0 ? len : 0] = '\0';
    }
    snprintf(timeout, sizeof timeout, "%.0f", number_or(given->timeout, 1800));
    const char *const head[] = {self, "dryrun", "--json", "--timeout", timeout};
    const char **words =
        calloc(MATRIX_UNDER + sizeof head / sizeof *head + task->word_count + 6, sizeof *words);
    if (!words) return 0;
    size_t count = put_under(given->under, words);
    for (size_t i = 0; i < sizeof head / sizeof *head; i++) words[count++] = head[i];
    if (given->cuda.given) {
        snprintf(cuda, sizeof cuda, "%.0f", given->cuda.number);
        words[count++] = "--cuda";
        words[count++] = cuda;
    }
    if (given->data) {
        words[count++] = "--data";
        words[count++] = given->data;
    }
    for (size_t i = 0; i < task->word_count; i++) words[count++] = task->words[i];
    *ret_words = words;
    return count;
}

static void environment_set(const oomsight_matrix_task *task)
{
    for (size_t i = 0; i < task->environment_count; i++) {
        char *word = strdup(task->environment[i]), *equals = word ? strchr(word, '=') : NULL;
        if (!equals) continue;
        *equals = '\0';
        setenv(word, equals + 1, 1);
        free(word);
    }
    if (!task->engine) return;
    const char *old = getenv("PATH");
    char *path = NULL;
    if (asprintf(&path, "%s/bin:%s", task->engine, old ? old : "/usr/bin:/bin") < 0) return;
    setenv("PATH", path, 1);
    free(path);
}

static int log_open(const cli_options *given, uint64_t number)
{
    char path[4096];
    if (!given->logs) return memfd_create("oomsight-log", MFD_CLOEXEC);
    snprintf(path, sizeof path, "%s/point-%llu.log", given->logs, (unsigned long long)number);
    unlink(path); /* of an earlier run; never written through */
    return open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
}

bool matrix_child_start(const cli_options *given, const oomsight_matrix_task *task, uint64_t number,
                        matrix_child *child)
{
    const char **words = NULL;
    if (!matrix_command(given, task, &words)) return false;
    *child = (matrix_child){.number = number, .attempts = child->attempts + 1, .start = matrix_now()};
    child->out = memfd_create("oomsight-report", MFD_CLOEXEC);
    child->log = log_open(given, number);
    pid_t const parent = getpid();
    child->pid = child->out >= 0 && child->log >= 0 ? fork() : -1;
    if (child->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGTERM); /* should we be killed, it is not left alone */
        if (getppid() != parent) _exit(1);
        environment_set(task);
        setenv("OOMSIGHT_WITH_PARENT", "1", 1);
        dup2(child->out, STDOUT_FILENO);
        dup2(child->log, STDERR_FILENO);
        execvp(words[0], (char *const *)words);
        fprintf(stderr, "oomsight matrix: '%s' cannot be started: %s\n", words[0], strerror(errno));
        _exit(127);
    }
    free(words);
    if (child->pid > 0) return true;
    if (child->out >= 0) close(child->out);
    if (child->log >= 0) close(child->log);
    child->pid = 0;
    return false;
}

/* The last `most` bytes of a file, as text. */
static char *tail_read(int fd, off_t most)
{
    off_t const size = lseek(fd, 0, SEEK_END);
    off_t const from = most && size > most ? size - most : 0;
    char *text = size >= 0 ? calloc(1, (size_t)(size - from) + 1) : NULL;
    if (text && pread(fd, text, (size_t)(size - from), from) < 0) text[0] = '\0';
    return text;
}

/* The last line that tells of an error, else the last that says anything. */
static void reason_find(const char *log, char *ret_reason, size_t capacity)
{
    const char *best = NULL, *last = NULL;
    for (const char *at = log; *at;) {
        size_t const len = strcspn(at, "\n");
        bool const error = memmem(at, len, "Error", 5) || memmem(at, len, "error:", 6) ||
                           memmem(at, len, "oomsight dryrun:", 16);
        if (error) best = at;
        if (len && strspn(at, " \t\r") < len) last = at;
        at += len + (at[len] == '\n');
    }
    const char *line = best ? best : last;
    if (!line) return;
    int len = (int)strcspn(line, "\n");
    if (len > 400) len = 400;
    snprintf(ret_reason, capacity, "%.*s", len, line);
}

void matrix_child_end(matrix_child *child, int status, matrix_outcome *ret_outcome)
{
    matrix_outcome *o = ret_outcome;
    *o = (matrix_outcome){.seconds = matrix_now() - child->start};
    int const signal = WIFSIGNALED(status)                              ? WTERMSIG(status)
                       : WIFEXITED(status) && WEXITSTATUS(status) > 128 ? WEXITSTATUS(status) - 128
                                                                        : 0;
    o->report = tail_read(child->out, 0);
    char *log = tail_read(child->log, 64 << 10);
    if (log) reason_find(log, o->problem, sizeof o->problem);
    if (o->report && !strstr(o->report, "\"schema\"")) { /* it was never written */
        free(o->report);
        o->report = NULL;
        o->lost = signal != 0;
        if (o->lost) snprintf(o->problem, sizeof o->problem, "the dry run was killed by signal %d", signal);
    } else if (o->report) {
        o->lost = !oomsight_matrix_report_settled(o->report);
    }
    free(log);
    close(child->out);
    close(child->log);
    child->pid = 0;
}
