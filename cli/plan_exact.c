/* plan --exact: the engine that is installed is asked, by its own Python on a simulated device (`oomsight dryrun`, in a process of its own).
 * It gets one command through a pipe and answers with one line. Whatever becomes of it, nothing is left behind and nothing of the user's is
 * written: its home and its caches are a folder that is removed. */
#include "cmd_dryrun.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { ANSWER_BYTES = 1 << 20, GRACE_SECONDS = 20 };
#define ASK_SECONDS(asking) number_or((asking)->given->timeout, 180)

typedef struct asking {
    const cli_options *given;
    const oomsight_question *question;
    char scratch[600], model[700], program[1200], python[512];
    char *problem, *answer; /* the caller's */
    size_t answer_bytes;
} asking;

static void problem_set(asking *a, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void problem_set(asking *a, const char *format, ...)
{
    va_list list;
    if (a->problem) return;
    va_start(list, format);
    if (vasprintf(&a->problem, format, list) < 0) a->problem = NULL;
    va_end(list);
}

/* ---- the request ------------------------------------------------------------------------------------------------- */

static void put_string(FILE *out, const char *word)
{
    fputc('"', out);
    for (const unsigned char *at = (const unsigned char *)word; *at; at++)
        if (*at == '"' || *at == '\\' || *at < 0x20)
            fprintf(out, "\\u%04x", *at);
        else
            fputc(*at, out);
    fputc('"', out);
}

/* NULL: no memory. */
static char *request_make(const asking *a)
{
    const oomsight_question *q = a->question;
    char *text = NULL;
    size_t len;
    FILE *out = open_memstream(&text, &len);
    if (!out) return NULL;
    fputs("{\"argv\": [", out);
    for (size_t i = 0; i < q->word_count; i++) {
        bool const model = strcmp(q->words[i], q->model) == 0;
        fputs(i ? ", " : "", out);
        put_string(out, model && a->model[0] ? a->model : q->words[i]);
    }
    fputs("], \"env\": {", out);
    for (size_t i = 0; i < q->environment_count; i++) {
        const char *word = q->environment[i];
        char *name = strndup(word, strcspn(word, "="));
        fputs(i ? ", " : "", out);
        put_string(out, name ? name : "");
        fputs(": ", out);
        put_string(out, word + strcspn(word, "=") + 1);
        free(name);
    }
    fputs("}}\n", out);
    if (fclose(out) == 0) return text;
    free(text);
    return NULL;
}

/* ---- the process ------------------------------------------------------------------------------------------------- */

static bool python_find(asking *a)
{
    const char *const words[] = {a->given->python, a->question->engine, "python3", "python"};
    for (size_t i = a->given->python ? 0 : 1; i < ARRAY_COUNT(words); i++) {
        if (dryrun_interpreter(words[i], a->python, sizeof a->python)) return true;
        if (a->given->python) break;
    }
    if (a->given->python)
        problem_set(a, "%s is no Python", a->given->python);
    else
        problem_set(a, "no Python was found on PATH; name one with --python");
    return false;
}

static bool program_find(asking *a)
{
    char folder[1024];
    for (unsigned major = 13; major >= 12; major--) {
        if (!dryrun_shim_dir(major, folder, sizeof folder)) continue;
        snprintf(a->program, sizeof a->program, "%s/../python/oomsight_ask_%s.py", folder,
                 a->question->engine);
        if (access(a->program, R_OK) == 0) return true;
    }
    problem_set(a, "an installed %s cannot be queried", a->question->title);
    return false;
}

/* A name that needs no network is one here, too. */
static bool model_settle(asking *a, const oomsight_data *data)
{
    char folder[660];
    oomsight_error error = {0};
    oomsight_model_place place;
    snprintf(folder, sizeof folder, "%s/model", a->scratch);
    if (oomsight_model_settle(data, a->question->model, folder, &place, &error) != OOMSIGHT_OK)
        problem_set(a, "%s", error.text);
    else if (place == OOMSIGHT_MODEL_REMOTE)
        problem_set(a, "%s is not on this machine", a->question->model);
    else if (place == OOMSIGHT_MODEL_BUILT_IN)
        snprintf(a->model, sizeof a->model, "%s", folder);
    return !a->problem;
}

static void folder_set(const char *name, const char *home, const char *below)
{
    char path[4096];
    if (getenv(name) || !home) return;
    snprintf(path, sizeof path, "%s/%s", home, below);
    setenv(name, path, 1);
}

/* Its home is the folder that is removed: what it keeps there nobody else finds. Models and packages of the user are read where they are. */
static void environment_set(const asking *a, int request, int answer)
{
    static const char *const own[] = {"HOME",
                                      "XDG_CACHE_HOME",
                                      "XDG_CONFIG_HOME",
                                      "TMPDIR",
                                      "HF_MODULES_CACHE",
                                      "TRITON_CACHE_DIR",
                                      "TORCHINDUCTOR_CACHE_DIR"};
    char fds[32];
    const char *home = getenv("HOME"), *caches = getenv("XDG_CACHE_HOME");
    if (caches)
        folder_set("HF_HOME", caches, "huggingface");
    else
        folder_set("HF_HOME", home, ".cache/huggingface");
    folder_set("PYTHONUSERBASE", home, ".local");
    for (size_t i = 0; i < ARRAY_COUNT(own); i++) setenv(own[i], a->scratch, 1);
    snprintf(fds, sizeof fds, "%d,%d", request, answer);
    setenv("OOMSIGHT_ASK", fds, 1);
    setenv("OOMSIGHT_WITH_PARENT", "1", 1);
    setenv("HF_HUB_OFFLINE", "1", 1);
    setenv("PYTHONDONTWRITEBYTECODE", "1", 1);
    setenv("OMP_NUM_THREADS", "1", 1);
    unsetenv("CUDA_VISIBLE_DEVICES");
}

static void child_run(const asking *a, int request, int answer, int log)
{
    static char self[4096], gpu[256], total[32], capability[16], seconds[32];
    const oomsight_question *q = a->question;
    const char *words[24];
    size_t count = 0;
    ssize_t const len = readlink("/proc/self/exe", self, sizeof self - 1);
    self[len > 0 ? len : 0] = '\0';
    snprintf(gpu, sizeof gpu, "%sx%u", q->gpu ? q->gpu : "", q->count);
    snprintf(total, sizeof total, "%llu", (unsigned long long)q->total_bytes);
    snprintf(capability, sizeof capability, "%u.%u", q->capability / 10, q->capability % 10);
    snprintf(seconds, sizeof seconds, "%.0f", ASK_SECONDS(a) + 1);
    const char *const head[] = {self,          "dryrun", "--quiet",  "--timeout", seconds,
                                "--gpu-total", total,    "--gpu-cc", capability};
    for (size_t i = 0; i < ARRAY_COUNT(head); i++) words[count++] = head[i];
    if (q->gpu) words[count++] = "--gpu", words[count++] = gpu;
    if (a->given->data) words[count++] = "--data", words[count++] = a->given->data;
    const char *const tail[] = {"--", a->python, a->program, NULL};
    for (size_t i = 0; i < ARRAY_COUNT(tail); i++) words[count++] = tail[i];
    int const nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
    environment_set(a, request, answer);
    dup2(nowhere, STDIN_FILENO);
    dup2(nowhere, STDOUT_FILENO);
    dup2(log, STDERR_FILENO);
    ioctl(request, FIONCLEX); /* fcntl() is fcntl64 here, which older systems do not have */
    ioctl(answer, FIONCLEX);
    execv(self, (char *const *)words);
    _exit(127);
}

/* One line, at most ANSWER_BYTES. */
static void answer_read(asking *a, int fd)
{
    double const until = dryrun_now() + ASK_SECONDS(a);
    char *text = malloc(ANSWER_BYTES);
    size_t len = 0;
    const char *end = NULL;
    while (text && !end && len < ANSWER_BYTES && dryrun_now() < until) {
        struct pollfd ready = {fd, POLLIN, 0};
        if (poll(&ready, 1, 200) <= 0) continue;
        ssize_t const got = read(fd, text + len, ANSWER_BYTES - len);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) break;
        end = memchr(text + len, '\n', (size_t)got);
        len += (size_t)got;
    }
    if (end) {
        a->answer = text;
        a->answer_bytes = (size_t)(end - text);
        return;
    }
    if (len == ANSWER_BYTES)
        problem_set(a, "its answer is too long");
    else if (text && dryrun_now() >= until)
        problem_set(a, "it did not answer within %.0f seconds", ASK_SECONDS(a));
    free(text);
}

/* Whether that Python has the engine at all, and a PyTorch that it can start with. */
static void python_look(asking *a)
{
    dryrun_engine engine = {.name = a->question->engine};
    snprintf(engine.interpreter, sizeof engine.interpreter, "%s", a->python);
    dryrun_engine_ask(&engine);
    if (!engine.version[0])
        problem_set(a, "%s has no %s; name the Python that has it with --python", a->python,
                    a->question->title);
    else if (!engine.cuda_major)
        problem_set(a, "%s has no PyTorch with CUDA", a->python);
}

/* What it said last, where it ended without an answer. */
static void problem_tell(asking *a, int log)
{
    char text[4096], *line = text;
    off_t const size = lseek(log, 0, SEEK_END);
    ssize_t const got = pread(log, text, sizeof text - 1, size > 4095 ? size - 4095 : 0);
    if (!a->answer && !a->problem) python_look(a);
    if (a->answer || a->problem) return;
    text[got > 0 ? got : 0] = '\0';
    for (size_t len = strlen(text); len && strchr("\r\n ", text[len - 1]); len--) text[len - 1] = '\0';
    for (char *at = text; *at; at++)
        if (*at == '\n') line = at + 1;
    problem_set(a, "it ended before it answered%s%.400s", *line ? ": " : "", line);
}

static void child_end(pid_t pid)
{
    double const until = dryrun_now() + GRACE_SECONDS;
    kill(pid, SIGTERM);
    while (waitpid(pid, NULL, WNOHANG) == 0) {
        struct timespec const pause = {.tv_nsec = 5000000};
        if (dryrun_now() > until) kill(pid, SIGKILL);
        nanosleep(&pause, NULL);
    }
}

static void talk(asking *a, const char *request)
{
    int to[2] = {-1, -1}, from[2] = {-1, -1};
    int const log = memfd_create("oomsight-exact", MFD_CLOEXEC);
    if (log < 0 || pipe2(to, O_CLOEXEC) != 0 || pipe2(from, O_CLOEXEC) != 0) {
        problem_set(a, "no pipe could be made: %s", strerror(errno));
        return;
    }
    pid_t const parent = getpid(), pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        if (getppid() != parent) _exit(1);
        child_run(a, to[0], from[1], log);
    }
    close(to[0]);
    close(from[1]);
    struct sigaction old;
    struct sigaction const ignore = {.sa_handler = SIG_IGN};
    sigaction(SIGPIPE, &ignore, &old); /* it may be gone already */
    bool written = pid > 0;
    for (size_t at = 0, len = strlen(request); written && at < len;) {
        ssize_t const put = write(to[1], request + at, len - at);
        written = put > 0 || (put < 0 && errno == EINTR);
        if (put > 0) at += (size_t)put;
    }
    sigaction(SIGPIPE, &old, NULL);
    close(to[1]);
    if (pid > 0) {
        answer_read(a, from[0]);
        child_end(pid);
    }
    close(from[0]);
    problem_tell(a, log);
    close(log);
}

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *where)
{
    (void)info, (void)kind, (void)where;
    remove(path);
    return 0;
}

void plan_exact_ask(const cli_options *given, const oomsight_data *data, const oomsight_question *question,
                    oomsight_exact *ret_exact)
{
    asking a = {.given = given, .question = question};
    char *request = NULL;
    snprintf(a.scratch, sizeof a.scratch, "%s/oomsight-exact-XXXXXX", segment_folder());
    if (!mkdtemp(a.scratch)) {
        problem_set(&a, "no place for scratch files: %s: %s", a.scratch, strerror(errno));
    } else {
        if (python_find(&a) && program_find(&a) && model_settle(&a, data) && (request = request_make(&a)))
            talk(&a, request);
        nftw(a.scratch, remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
    }
    free(request);
    *ret_exact = (oomsight_exact){.answer = a.answer, .answer_bytes = a.answer_bytes, .problem = a.problem};
    if (!a.answer && !a.problem) ret_exact->problem = strdup("there is no memory for it");
}
