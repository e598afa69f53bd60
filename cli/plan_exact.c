/* --exact: the engine that is installed is asked, by its own Python on a simulated device (`oomsight dryrun`, in a process of its own), one for
 * each kind of device. It gets a line for each command through a pipe and answers with one. Whatever becomes of it, nothing is left behind and
 * nothing of the user's is written: its home and its caches are a folder that is removed. */
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

enum { GRACE_SECONDS = 20, PROCESSES_MAX = 4, LOSSES_MAX = 3, DEVICES_LEAST = 8 };
#define ASK_SECONDS(a) number_or((a)->asker->given->timeout, (a)->question->probe ? 1800 : 180)

/* One that has the engine imported, behind one kind of device. */
typedef struct process {
    char kind[1024];
    pid_t pid; /* 0: none */
    int to, from, log;
    uint64_t used; /* number of the last request */
} process;

struct plan_asker {
    const cli_options *given;
    const oomsight_data *data;
    char scratch[600];
    process processes[PROCESSES_MAX];
    dryrun_engine installed; /* the last that was looked for; no name: none yet */
    uint64_t requests;
    unsigned losses; /* one after the other: of processes that ended without an answer */
    char *lost;      /* why the last one did */
};

/* One command. */
typedef struct asking {
    plan_asker *asker;
    const oomsight_question *question;
    process *process;
    uint64_t id;
    unsigned devices; /* that are simulated */
    char model[700], program[1200], python[512], watched[700];
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
    fprintf(out, "{\"id\": %llu, \"seconds\": %.0f, ", (unsigned long long)a->id, ASK_SECONDS(a) * 2 / 3 + 1);
    fprintf(out, "\"count\": %u, %s\"argv\": [", q->count,
            q->probe    ? "\"probe\": true, "
            : !q->model ? "\"learn\": true, "
                        : "");
    for (size_t i = 0; i < q->word_count; i++) {
        bool const model = strcmp(q->words[i], q->model) == 0;
        fputs(i ? ", " : "", out);
        put_string(out, model && a->model[0] ? a->model : q->words[i]);
    }
    fputs("]", out);
    if (a->watched[0]) fputs(", \"watched\": ", out), put_string(out, a->watched);
    fputs(", \"env\": {", out);
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

static bool python_look_for(const cli_options *given, const char *engine, char *ret_path, size_t capacity)
{
    const char *const words[] = {given->python, engine, "python3", "python"};
    for (size_t i = given->python ? 0 : 1; i < ARRAY_COUNT(words); i++) {
        if (dryrun_interpreter(words[i], ret_path, capacity)) return true;
        if (given->python) break;
    }
    return false;
}

bool plan_asker_has(const cli_options *given, const char *engine)
{
    dryrun_engine found = {.name = engine};
    if (!python_look_for(given, engine, found.interpreter, sizeof found.interpreter)) return false;
    dryrun_engine_ask(&found);
    return found.version[0] != '\0';
}

static bool python_find(asking *a)
{
    if (python_look_for(a->asker->given, a->question->engine, a->python, sizeof a->python)) return true;
    if (a->asker->given->python)
        problem_set(a, "%s is no Python", a->asker->given->python);
    else
        problem_set(a, "no Python was found on PATH; name one with --python");
    return false;
}

static bool program_find(asking *a)
{
    char folder[1024];
    for (unsigned major = 13; major >= 12; major--) {
        if (!dryrun_shim_dir(major, folder, sizeof folder)) continue;
        snprintf(a->program, sizeof a->program, "%s/../python/oomsight_%s_%s.py", folder,
                 a->question->probe ? "probe" : "ask", a->question->engine);
        if (access(a->program, R_OK) == 0) return true;
    }
    problem_set(a,
                a->question->probe ? "small starts of an installed %s are not made"
                                   : "an installed %s cannot be queried",
                a->question->title);
    return false;
}

/* Beside what the process keeps, and gone with it; too long for a request. */
static void watched_settle(asking *a)
{
    if (!a->question->watched) return;
    snprintf(a->watched, sizeof a->watched, "%s/watched.json", a->asker->scratch);
    FILE *out = fopen(a->watched, "w");
    bool const kept = out && fputs(a->question->watched, out) >= 0;
    if ((out && fclose(out) != 0) || !kept) a->watched[0] = '\0';
}

/* A name that needs no network is one here, too. */
static bool model_settle(asking *a)
{
    char folder[660];
    oomsight_error error = {0};
    oomsight_model_place place;
    watched_settle(a);
    if (!a->question->model) return true;
    if (a->question->place) {
        snprintf(a->model, sizeof a->model, "%s", a->question->place);
        return true;
    }
    snprintf(folder, sizeof folder, "%s/model-%llu", a->asker->scratch, (unsigned long long)a->id);
    if (oomsight_model_settle(a->asker->data, a->question->model, folder, &place, &error) != OOMSIGHT_OK)
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
    for (size_t i = 0; i < ARRAY_COUNT(own); i++) setenv(own[i], a->asker->scratch, 1);
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
    static char self[4096], gpu[256], total[32], capability[16];
    const oomsight_question *q = a->question;
    const char *words[24];
    size_t count = 0;
    ssize_t const len = readlink("/proc/self/exe", self, sizeof self - 1);
    self[len > 0 ? len : 0] = '\0';
    snprintf(gpu, sizeof gpu, "%sx%u", q->gpu ? q->gpu : "", a->devices);
    snprintf(total, sizeof total, "%llu", (unsigned long long)q->total_bytes);
    snprintf(capability, sizeof capability, "%u.%u", q->capability / 10, q->capability % 10);
    const char *const head[] = {self,          "dryrun", "--quiet",  "--timeout", "0",
                                "--gpu-total", total,    "--gpu-cc", capability};
    for (size_t i = 0; i < ARRAY_COUNT(head); i++) words[count++] = head[i];
    if (q->gpu) words[count++] = "--gpu", words[count++] = gpu;
    if (q->probe) words[count++] = "--outside", words[count++] = "0";
    const char *data = a->asker->given->data;
    if (data) words[count++] = "--data", words[count++] = data;
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

/* One line, and nothing behind it. */
static void answer_read(asking *a)
{
    double const seconds = ASK_SECONDS(a), until = dryrun_now() + seconds;
    char *text = malloc(OOMSIGHT_ANSWER_BYTES);
    size_t len = 0;
    oomsight_answer_state state = OOMSIGHT_ANSWER_PART;
    while (text && state == OOMSIGHT_ANSWER_PART && dryrun_now() < until) {
        struct pollfd ready = {a->process->from, POLLIN, 0};
        if (poll(&ready, 1, 200) <= 0) continue;
        ssize_t const got = read(a->process->from, text + len, OOMSIGHT_ANSWER_BYTES - len);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) break;
        len += (size_t)got;
        state = oomsight_answer_look(text, len, a->id, &a->answer_bytes);
    }
    if (state == OOMSIGHT_ANSWER_WHOLE)
        a->answer = text;
    else if (state == OOMSIGHT_ANSWER_BROKEN)
        problem_set(a, len == OOMSIGHT_ANSWER_BYTES ? "its answer is too long" : "its answer cannot be read");
    else if (text && dryrun_now() >= until)
        problem_set(a, "it did not answer within %.0f seconds", seconds);
    if (!a->answer) free(text);
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
static void problem_tell(asking *a)
{
    char text[4096], *line = text;
    int const log = a->process->log;
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

static void process_end(process *p)
{
    double const until = dryrun_now() + GRACE_SECONDS;
    if (!p->pid) return;
    close(p->to);
    close(p->from);
    close(p->log);
    kill(p->pid, SIGTERM);
    while (waitpid(p->pid, NULL, WNOHANG) == 0) {
        struct timespec const pause = {.tv_nsec = 5000000};
        if (dryrun_now() > until) kill(p->pid, SIGKILL);
        nanosleep(&pause, NULL);
    }
    *p = (process){0};
}

static bool process_start(asking *a, process *p)
{
    int to[2] = {-1, -1}, from[2] = {-1, -1};
    int const log = memfd_create("oomsight-exact", MFD_CLOEXEC);
    pid_t pid = -1;
    pid_t const parent = getpid();
    if (log >= 0 && pipe2(to, O_CLOEXEC) == 0 && pipe2(from, O_CLOEXEC) == 0) pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        if (getppid() != parent) _exit(1);
        child_run(a, to[0], from[1], log);
    }
    if (pid < 0) problem_set(a, "no process could be started: %s", strerror(errno));
    int const theirs[] = {to[0], from[1]}, ours[] = {to[1], from[0], log};
    for (size_t i = 0; i < ARRAY_COUNT(theirs); i++)
        if (theirs[i] >= 0) close(theirs[i]);
    for (size_t i = 0; pid < 0 && i < ARRAY_COUNT(ours); i++)
        if (ours[i] >= 0) close(ours[i]);
    if (pid < 0) return false;
    p->pid = pid;
    p->to = to[1];
    p->from = from[0];
    p->log = log;
    return true;
}

/* The one that is there already, or a new one in the place of that which was asked longest ago. */
static bool process_find(asking *a)
{
    const oomsight_question *q = a->question;
    plan_asker *asker = a->asker;
    char kind[sizeof a->process->kind];
    process *oldest = asker->processes;
    a->devices = q->count > DEVICES_LEAST ? q->count : DEVICES_LEAST;
    snprintf(kind, sizeof kind, "%s %s %u %llu %u %d %s", q->engine, a->python, a->devices,
             (unsigned long long)q->total_bytes, q->capability, q->probe, q->gpu ? q->gpu : "");
    for (size_t i = 0; i < PROCESSES_MAX && !a->process; i++) {
        process *p = &asker->processes[i];
        if (p->pid && strcmp(p->kind, kind) == 0) a->process = p;
        if (p->used < oldest->used) oldest = p;
    }
    if (!a->process) {
        process_end(oldest);
        if (!process_start(a, oldest)) return false;
        snprintf(oldest->kind, sizeof oldest->kind, "%s", kind);
        a->process = oldest;
    }
    a->process->used = a->id;
    return true;
}

static void request_write(const asking *a, const char *request)
{
    struct sigaction old;
    struct sigaction const ignore = {.sa_handler = SIG_IGN};
    sigaction(SIGPIPE, &ignore, &old); /* it may be gone already */
    for (size_t at = 0, len = strlen(request); at < len;) {
        ssize_t const put = write(a->process->to, request + at, len - at);
        if (put < 0 && errno != EINTR) break;
        if (put > 0) at += (size_t)put;
    }
    sigaction(SIGPIPE, &old, NULL);
}

/* A process that gave no answer is not asked again: the next command has another, unless several have failed. */
static void talk(asking *a, const char *request)
{
    plan_asker *asker = a->asker;
    if (asker->losses >= LOSSES_MAX) {
        problem_set(a, "%u commands in a row got no answer, the last because %s", asker->losses, asker->lost);
        return;
    }
    if (!process_find(a)) return;
    request_write(a, request);
    answer_read(a);
    asker->losses = a->answer ? 0 : asker->losses + 1;
    if (a->answer) return;
    problem_tell(a);
    process_end(a->process);
    free(asker->lost);
    asker->lost = strdup(a->problem ? a->problem : "");
    if (!asker->lost) asker->losses = 0;
}

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *where)
{
    (void)info, (void)kind, (void)where;
    remove(path);
    return 0;
}

/* A folder of ours, once something is asked. */
static bool scratch_make(asking *a)
{
    plan_asker *asker = a->asker;
    if (asker->scratch[0]) return true;
    snprintf(asker->scratch, sizeof asker->scratch, "%s/oomsight-exact-XXXXXX", segment_folder());
    if (mkdtemp(asker->scratch)) return true;
    problem_set(a, "no place for scratch files: %s: %s", asker->scratch, strerror(errno));
    asker->scratch[0] = '\0';
    return false;
}

/* Nothing is imported for a command of another release. */
static bool release_is_here(asking *a)
{
    const oomsight_question *q = a->question;
    dryrun_engine *known = &a->asker->installed;
    unsigned here[3] = {0}, planned[3] = {0};
    if (!known->name || strcmp(known->name, q->engine) != 0 || strcmp(known->interpreter, a->python) != 0) {
        *known = (dryrun_engine){.name = q->engine};
        snprintf(known->interpreter, sizeof known->interpreter, "%s", a->python);
        dryrun_engine_ask(known);
    }
    if (sscanf(known->version, "%u.%u.%u", &here[0], &here[1], &here[2]) != 3 || !q->release ||
        sscanf(q->release, "%u.%u.%u", &planned[0], &planned[1], &planned[2]) != 3 ||
        memcmp(here, planned, sizeof here) == 0)
        return true;
    problem_set(a, "%s %s is installed, and %s is planned", q->title, known->version, q->release);
    return false;
}

static void ask(void *own, const oomsight_question *question, oomsight_exact *ret_exact)
{
    plan_asker *asker = own;
    asking a = {.asker = asker, .question = question, .id = ++asker->requests};
    char *request = NULL;
    if (scratch_make(&a) && python_find(&a) && program_find(&a) && release_is_here(&a) && model_settle(&a) &&
        (request = request_make(&a)))
        talk(&a, request);
    free(request);
    *ret_exact = (oomsight_exact){.answer = a.answer, .answer_bytes = a.answer_bytes, .problem = a.problem};
    if (!a.answer && !a.problem) ret_exact->problem = strdup("there is no memory for it");
}

bool plan_asker_open(const cli_options *given, const oomsight_data *data, oomsight_asker *ret_asker)
{
    plan_asker *asker = calloc(1, sizeof *asker);
    if (!asker) return false;
    asker->given = given;
    asker->data = data;
    *ret_asker = (oomsight_asker){ask, asker};
    return true;
}

void plan_asker_close(const oomsight_asker *opened)
{
    plan_asker *asker = opened->own;
    if (!asker) return;
    for (size_t i = 0; i < PROCESSES_MAX; i++) process_end(&asker->processes[i]);
    if (asker->scratch[0]) nftw(asker->scratch, remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
    free(asker->lost);
    free(asker);
}
