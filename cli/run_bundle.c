/* The bundle of a run: one folder with what a reader of a failure needs, as the vLLM plugin writes it (docs/reference/formats/bundle.md). A
 * process of its own writes it, so that a disk that does not answer or a fault of ours holds nobody up; answers are those of
 * `oomsight explain` and `oomsight plan`. A file that cannot be made is left out. */
#include "cmd_run.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    KEPT = 8,            /* bundles in one place; older ones go */
    WRITER_SECONDS = 60, /* for all of it */
    ANSWER_SECONDS = 20,
    TELL_SECONDS = 5,      /* between a refusal and what the command says of it */
    TRACEBACK_SECONDS = 2, /* for the rest of what it says */
    PATH_BYTES = 400
};
static const char prefix[] = "oomsight-bundle-";

/* ---- the place -------------------------------------------------------------------------------------------------- */

static const char *place_of_bundles(void)
{
    const char *chosen = getenv("OOMSIGHT_BUNDLE_DIR"), *temporary = getenv("TMPDIR");
    if (chosen && *chosen) return chosen;
    return temporary && *temporary ? temporary : "/tmp";
}

/* New, with a name that cannot be guessed, for nobody else to enter. */
static bool folder_make(char *ret_path, size_t capacity)
{
    char stamp[32];
    struct timespec now;
    struct tm utc;
    clock_gettime(CLOCK_REALTIME, &now);
    strftime(stamp, sizeof stamp, "%Y%m%d-%H%M%S", gmtime_r(&now.tv_sec, &utc));
    mkdir(place_of_bundles(), 0700);
    int const len = snprintf(ret_path, capacity, "%s/%s%s.%06ld-%d-XXXXXX", place_of_bundles(), prefix, stamp,
                             now.tv_nsec / 1000, (int)getpid());
    return len > 0 && (size_t)len < capacity && mkdtemp(ret_path) != NULL;
}

static int is_bundle(const struct dirent *entry)
{
    return strncmp(entry->d_name, prefix, sizeof prefix - 1) == 0;
}

/* A folder of ours that nobody else may enter, opened; negative: it is something else. */
static int bundle_open(int place, const char *name)
{
    struct stat info;
    int const folder = openat(place, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (folder < 0) return -1;
    if (fstat(folder, &info) == 0 && info.st_uid == geteuid() && !(info.st_mode & 077)) return folder;
    close(folder);
    return -1;
}

static void bundle_remove(int place, const char *name)
{
    int const folder = bundle_open(place, name);
    DIR *files = folder >= 0 ? fdopendir(folder) : NULL;
    if (!files) {
        if (folder >= 0) close(folder);
        return;
    }
    for (const struct dirent *entry; (entry = readdir(files));)
        if (entry->d_name[0] != '.') unlinkat(folder, entry->d_name, 0);
    closedir(files);
    unlinkat(place, name, AT_REMOVEDIR);
}

/* Only older ones of ours give way to the one that was just `made`; what others call by such names has no say. Names begin with the
 * time, to the microsecond: the last of one second must not go as the oldest. */
static void rotate(const char *made)
{
    struct dirent **found = NULL;
    int const count = scandir(place_of_bundles(), &found, is_bundle, alphasort);
    int const place = open(place_of_bundles(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int kept = 1;
    for (int i = count - 1; i >= 0; i--) {
        int const folder =
            place >= 0 && strcmp(found[i]->d_name, made) != 0 ? bundle_open(place, found[i]->d_name) : -1;
        if (folder >= 0) close(folder);
        if (folder >= 0 && kept++ >= KEPT) bundle_remove(place, found[i]->d_name);
        free(found[i]);
    }
    free(found);
    if (place >= 0) close(place);
}

/* ---- its files -------------------------------------------------------------------------------------------------- */

typedef struct folder {
    const char *path;
    const cli_options *given;
    const run_output *output;
    const oomsight_run *run;
} folder;

static FILE *file_make(const folder *f, const char *name)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/%s", f->path, name);
    int const fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    return fd < 0 ? NULL : fdopen(fd, "w");
}

/* Half a file would be taken for a whole one. */
static void file_done(const folder *f, const char *name, FILE *file)
{
    char path[PATH_BYTES];
    bool const whole = !ferror(file);
    if (fclose(file) == 0 && whole) return;
    snprintf(path, sizeof path, "%s/%s", f->path, name);
    unlink(path);
}

static void put_text(const folder *f, const char *name, const char *text)
{
    FILE *file = file_make(f, name);
    if (!file) return;
    fputs(text, file);
    file_done(f, name, file);
}

/* How it began, the last of it, and the lines that have not ended yet. Secrets are hidden already. */
static bool put_log(const folder *f)
{
    const run_log *log = &f->output->log;
    uint64_t const kept = sizeof log->tail, first = log->tail_count > kept ? log->tail_count - kept : 0;
    FILE *file = file_make(f, "log.txt");
    if (!file) return false;
    bool some = log->head_len > 0;
    char path[PATH_BYTES];
    fwrite(log->head, 1, log->head_len, file);
    if (first) fputs("\n[...]\n", file);
    for (uint64_t i = first; i < log->tail_count; i++) fputc(log->tail[i % kept], file);
    for (unsigned i = 0; i < f->output->count; i++) {
        oomsight_error error;
        char *rest = NULL;
        oomsight_redactor *redactor = f->output->streams[i].redactor;
        if (redactor && oomsight_redactor_feed(redactor, NULL, 0, &rest, &error) == OOMSIGHT_OK) {
            some |= rest[0] != '\0';
            fputs(rest, file);
        }
        oomsight_text_free(rest);
    }
    file_done(f, "log.txt", file);
    snprintf(path, sizeof path, "%s/log.txt", f->path);
    if (!some) unlink(path);
    return some;
}

static void put_measured(const folder *f)
{
    static const struct {
        const char *name;
        oomsight_format format;
    } forms[] = {{"measured.json", OOMSIGHT_FORMAT_JSON}, {"measured.txt", OOMSIGHT_FORMAT_TEXT}};
    for (size_t i = 0; i < 2; i++) {
        oomsight_render_params render = OOMSIGHT_RENDER_PARAMS_INIT;
        oomsight_error error;
        char *text = NULL;
        render.format = forms[i].format;
        if (oomsight_run_render(f->run, &render, &text, &error) == OOMSIGHT_OK)
            put_text(f, forms[i].name, text);
        oomsight_text_free(text);
    }
}

/* /proc/meminfo as it stands, a limit of the container, and what the process that was started has resident. */
static void put_host(const folder *f)
{
    static const char *const sources[] = {"/proc/meminfo", "/sys/fs/cgroup/memory.max",
                                          "/sys/fs/cgroup/memory.current", "/proc/pressure/memory"};
    FILE *file = file_make(f, "host.txt");
    if (!file) return;
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++) {
        char bytes[8192];
        FILE *from = fopen(sources[i], "re");
        if (!from) continue;
        size_t const len = fread(bytes, 1, sizeof bytes, from);
        fclose(from);
        fprintf(file, "%s\n", sources[i]);
        fwrite(bytes, 1, len, file);
        fputc('\n', file);
    }
    file_done(f, "host.txt", file);
}

/* `oomsight WORDS... --format F --output FILE`, where `extra` are words behind it. Exit codes 0 and 1 are answers. `pages`: for
 * people, too. False: there is none. */
static bool put_answer(const folder *f, const char *name, const char *const *words, char *const *extra,
                       bool pages)
{
    static const struct {
        const char *ending, *format;
    } forms[] = {{"json", "json"}, {"html", "html"}, {"txt", "text"}};
    for (size_t i = 0; i < (pages ? sizeof forms / sizeof *forms : 1); i++) {
        char path[PATH_BYTES];
        const char *line[512];
        size_t count = 0;
        int status = 1 << 8;
        snprintf(path, sizeof path, "%s/%s.%s", f->path, name, forms[i].ending);
        line[count++] = "oomsight";
        for (const char *const *word = words; *word && count < 32; word++) line[count++] = *word;
        const char *const fixed[] = {"--format", forms[i].format, "--output", path, "--color", "never"};
        for (size_t k = 0; k < 6; k++) line[count++] = fixed[k];
        if (extra) line[count++] = "--";
        for (char *const *word = extra; word && *word && count < 511; word++) line[count++] = *word;
        line[count] = NULL;
        pid_t const pid = fork();
        if (pid == 0) {
            int const nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
            for (int fd = 0; fd < 3 && nowhere >= 0; fd++) dup2(nowhere, fd);
            alarm(ANSWER_SECONDS);
            execv("/proc/self/exe", (char *const *)(uintptr_t)line);
            _exit(127);
        }
        while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
        if (WIFEXITED(status) && WEXITSTATUS(status) <= EXIT_DOES_NOT_FIT) continue;
        unlink(path);
        return false; /* the others would fail alike */
    }
    return true;
}

/* What is not a failure is not called one. */
static void put_incident(const folder *f)
{
    char path[PATH_BYTES];
    bool const failed = oomsight_run_refused(f->run) ||
                        (f->output->said & (OOMSIGHT_DRYRUN_OUT_OF_MEMORY | OOMSIGHT_DRYRUN_REFUSED));
    snprintf(path, sizeof path, "%s/log.txt", f->path);
    const char *const words[] = {"explain", path, NULL};
    put_answer(f, failed ? "incident" : "explain", words, NULL, true);
}

/* What was foreseen for this command inside its budget, on this card; a command that is no engine's has no plan. Whether an engine
 * starts that answers requests nobody asks: of such a plan its figures are kept, to stand beside those that were measured. */
static void put_plan(const folder *f, bool gone)
{
    char total[32], capability[16];
    const char *card, *sized[] = {"plan", "--offline", "--gpu-total", total, NULL, NULL, NULL};
    static const char *const bare[] = {"plan", "--offline", NULL};
    uint64_t const budget = oomsight_run_budget(f->run);
    unsigned const told = oomsight_run_gpu(f->run, &card);
    bool const pages = gone || !(f->output->said & OOMSIGHT_DRYRUN_READY);
    snprintf(total, sizeof total, "%llu", (unsigned long long)budget);
    snprintf(capability, sizeof capability, "%u.%u", told / 10, told % 10);
    if (!budget) {
        put_answer(f, "plan", bare, f->given->words, pages);
        return;
    }
    if (*card) sized[4] = "--gpu", sized[5] = card;
    if (*card && put_answer(f, "plan", sized, f->given->words, pages)) return;
    /* A card that is not listed. */
    sized[4] = told ? "--gpu-cc" : NULL, sized[5] = capability;
    put_answer(f, "plan", sized, f->given->words, pages);
}

static int write_files(const folder *f, const char *why, bool gone)
{
    oomsight_error error;
    char path[PATH_BYTES];
    bool const log = put_log(f);
    put_measured(f);
    put_host(f);
    snprintf(path, sizeof path, "%s/events.trace", f->path);
    if (oomsight_run_trace(f->run, path, &error) != OOMSIGHT_OK) unlink(path);
    if (log) put_incident(f);
    put_plan(f, gone);
    return oomsight_run_bundle_index(f->run, f->path, why, &error) == OOMSIGHT_OK ? 0 : 1;
}

/* ---- when ------------------------------------------------------------------------------------------------------- */

static void begin(run_bundle *bundle, const cli_options *given, const run_output *output, oomsight_run *run,
                  const char *why, bool gone)
{
    if (!folder_make(bundle->path, sizeof bundle->path)) {
        complain("oomsight run: no diagnostic bundle: %s: %s", place_of_bundles(), strerror(errno));
        return;
    }
    rotate(strrchr(bundle->path, '/') + 1); /* it was put together with one */
    fflush(NULL);
    pid_t const pid = fork();
    if (pid == 0) {
        folder const f = {bundle->path, given, output, run};
        signal(SIGTERM, SIG_DFL);
        signal(SIGHUP, SIG_DFL);
        umask(077);
        alarm(WRITER_SECONDS);
        _exit(write_files(&f, why, gone));
    }
    bundle->writer = pid > 0 ? pid : 0;
    bundle->started = seconds_since_boot();
}

static void written(run_bundle *bundle, oomsight_run *run, int status)
{
    bundle->writer = 0;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
        oomsight_run_bundle_set(run, bundle->path);
        complain("oomsight run: a diagnostic bundle is in %s", bundle->path);
    } else
        complain("oomsight run: the diagnostic bundle in %s is incomplete", bundle->path);
}

static void failure_look(run_bundle *bundle, const run_output *output, const oomsight_run *run, double now)
{
    bool const ran_out = output->said & OOMSIGHT_DRYRUN_OUT_OF_MEMORY;
    if (bundle->failure_done) return;
    if (ran_out && !bundle->ran_out) bundle->failure_due = now + TRACEBACK_SECONDS;
    if (bundle->failure_due == 0 && oomsight_run_refused(run)) bundle->failure_due = now + TELL_SECONDS;
    bundle->ran_out = ran_out;
}

void run_bundle_look(run_bundle *bundle, const cli_options *given, const run_output *output,
                     oomsight_run *run, bool gone)
{
    double const now = seconds_since_boot();
    int status;
    if (given->no_bundle) return;
    failure_look(bundle, output, run, now);
    if (bundle->writer && waitpid(bundle->writer, &status, WNOHANG) == bundle->writer)
        written(bundle, run, status);
    if (bundle->writer) return;
    bool const due = !bundle->failure_done && bundle->failure_due > 0 && (gone || now >= bundle->failure_due);
    if (!due && !bundle->asked) return;
    begin(bundle, given, output, run, !due ? "asked" : bundle->ran_out ? "out of memory" : "refused", gone);
    if (due) bundle->failure_done = true;
    bundle->asked = false;
}

void run_bundle_finish(run_bundle *bundle, oomsight_run *run)
{
    int status = 0;
    if (!bundle->writer) return;
    while (waitpid(bundle->writer, &status, 0) < 0 && errno == EINTR) continue; /* its alarm ends it */
    written(bundle, run, status);
}
