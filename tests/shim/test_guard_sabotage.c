/* Sabotage of the guard: whatever is wrong with its file, its place or its caller, a program gets the same answers as without it. The
 * table of docs/how-to/limit-memory.md is this one. Started with the guard preloaded. */
#include "cuda.h"
#include "program.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>

int cudaMallocPitch(void **at, size_t *pitch, size_t width, size_t height);

enum { CONTEXT_MIB = 256, TOTAL_GIB = 8, SECONDS_MOST = 200 };

static oos_segment *device_run, *guard_run;
static char device_path[64], guard_path[80];

/* ---- a program: what it was answered, as one number ---- */

static uint64_t digest;

static void seen(uint64_t value)
{
    digest = (digest ^ value) * 0x100000001b3u;
}

static void take_and_give(void)
{
    void *at[4];
    size_t free_bytes = 0, total_bytes = 0;
    for (unsigned i = 0; i < 4; i++) seen((uint64_t)cudaMalloc(&at[i], 64 * MIB));
    seen((uint64_t)cudaMemGetInfo(&free_bytes, &total_bytes));
    seen(free_bytes);
    seen(total_bytes);
    for (unsigned i = 0; i < 4; i++) seen((uint64_t)cudaFree(at[i]));
    seen((uint64_t)cudaMemGetInfo(&free_bytes, &total_bytes));
    seen(free_bytes);
}

/* ---- what is done to the file before anybody opens it ---- */

static void nothing(void)
{
}

static void missing(void)
{
    unlink(guard_path);
}

static void truncated(void)
{
    assert_int_equal(truncate(guard_path, 4096), 0);
}

static void empty(void)
{
    assert_int_equal(truncate(guard_path, 0), 0);
}

static void read_only(void)
{
    chmod(guard_path, 0444);
    if (geteuid() == 0)
        assert_int_equal(chown(device_path, 65534, 65534), 0); /* as_somebody_else() uses it */
}

static void a_folder(void)
{
    unlink(guard_path);
    assert_int_equal(mkdir(guard_path, 0700), 0);
}

static void wrong_version(void)
{
    guard_run->version = 2;
}

static void wrong_magic(void)
{
    memset(guard_run->magic, 'x', sizeof guard_run->magic);
}

static void too_many_devices(void)
{
    guard_run->device_count = 4000000000u;
}

static void variable_empty(void)
{
    setenv(OOS_GUARD_ENV, "", 1);
}

static void variable_unset(void)
{
    unsetenv(OOS_GUARD_ENV);
}

static void killed_in_the_lock(void)
{
    guard_run->lock = (uint64_t)4194300u << 32 | 12345; /* no such process */
}

static void stopped_in_the_lock(void)
{
    uint32_t const pid = (uint32_t)getpid(); /* lives, and never gives it back */
    guard_run->lock = (uint64_t)pid << 32 | (uint32_t)oos_process_start_ticks(pid);
}

static void no_place_left(void)
{
    for (unsigned i = 0; i < OOS_SEGMENT_PROCESSES; i++) {
        guard_run->processes[i].start_ticks = oos_process_start_ticks((uint32_t)getpid());
        guard_run->processes[i].pid = (uint32_t)getpid();
    }
}

/* ---- what the program does, or what is done while it runs ---- */

static void plainly(void)
{
    take_and_give();
}

static void as_somebody_else(void)
{
    if (geteuid() == 0 && setuid(65534) != 0) seen(1);
    take_and_give();
}

static void overwritten_meanwhile(void)
{
    void *at;
    seen((uint64_t)cudaMalloc(&at, 64 * MIB));
    guard_run->phase = guard_run->owner = UINT32_MAX;
    guard_run->device_count = UINT32_MAX;
    guard_run->failure_count = guard_run->event_count = UINT64_MAX - 1;
    memset(guard_run->devices[0].held, 0xff, sizeof guard_run->devices[0].held);
    memset(guard_run->processes, 0xff, 65536);
    seen((uint64_t)cudaFree(at));
    take_and_give();
}

static void removed_meanwhile(void)
{
    void *at;
    seen((uint64_t)cudaMalloc(&at, 64 * MIB));
    unlink(guard_path);
    seen((uint64_t)cudaFree(at));
    take_and_give();
}

static void with_a_fork(void)
{
    void *at;
    int status = 0;
    seen((uint64_t)cudaMalloc(&at, 64 * MIB));
    pid_t const pid = fork();
    if (pid == 0) {
        take_and_give();
        _exit(7);
    }
    waitpid(pid, &status, 0);
    seen((uint64_t)WEXITSTATUS(status));
    seen((uint64_t)cudaFree(at));
    take_and_give();
}

static void with_an_exec(void)
{
    void *at;
    int status = 0;
    seen((uint64_t)cudaMalloc(&at, 64 * MIB));
    pid_t const pid = fork();
    if (pid == 0) {
        take_and_give();
        execl("/bin/sh", "sh", "-c", "exit 9", (char *)NULL);
    }
    waitpid(pid, &status, 0);
    seen((uint64_t)WEXITSTATUS(status));
    take_and_give();
}

static void with_dlclose(void)
{
    seen((uint64_t)cuInit(0)); /* the stand-in itself does not survive being unloaded */
    for (unsigned i = 0; i < 3; i++) {
        void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
        seen(library != NULL);
        void *address = library ? dlsym(library, "cuMemAlloc_v2") : NULL;
        seen(address != NULL);
        if (library) dlclose(library);
        take_and_give();
    }
}

static void *for_ever(void *argument)
{
    (void)argument;
    for (;;) {
        void *at;
        if (cudaMalloc(&at, 2 * MIB) == 0) cudaFree(at);
    }
    return NULL;
}

static void threads_at_exit(void)
{
    pthread_t thread;
    pid_t const pid = fork();
    int status = 0;
    if (pid == 0) {
        for (unsigned i = 0; i < 4; i++) pthread_create(&thread, NULL, for_ever, NULL);
        struct timespec const moment = {.tv_nsec = 20000000};
        nanosleep(&moment, NULL);
        _exit(5);
    }
    waitpid(pid, &status, 0);
    seen((uint64_t)status);
    take_and_give();
}

static volatile sig_atomic_t signals;

static void on_signal(int number)
{
    (void)number;
    signals = 1;
}

static void under_signals(void)
{
    struct sigaction const act = {.sa_handler = on_signal};
    struct itimerval const often = {{0, 200}, {0, 200}}, never = {{0, 0}, {0, 0}};
    sigaction(SIGALRM, &act, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    for (unsigned i = 0; i < 50; i++) take_and_give();
    setitimer(ITIMER_REAL, &never, NULL);
    signal(SIGALRM, SIG_DFL);
}

static void killed_at_any_moment(void)
{
    for (unsigned i = 1; i < 20; i++) {
        pid_t const pid = fork();
        if (pid == 0) for_ever(NULL);
        struct timespec const moment = {.tv_nsec = 100000l * i};
        nanosleep(&moment, NULL);
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
    }
    take_and_give();
}

static void with_sizes_of_no_sense(void)
{
    static const size_t sizes[] = {
        0, 1, SIZE_MAX, SIZE_MAX - 1, SIZE_MAX / 2, (size_t)-2097152, (size_t)1 << 50};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        void *at = NULL;
        size_t pitch = 0;
        int code = cudaMalloc(&at, sizes[i]);
        seen((uint64_t)code);
        if (code == 0) seen((uint64_t)cudaFree(at));
        code = cudaMallocPitch(&at, &pitch, sizes[i], sizes[i] / 3);
        seen((uint64_t)code);
        if (code == 0) seen((uint64_t)cudaFree(at));
    }
    take_and_give();
}

static void with_frees_of_no_sense(void)
{
    void *at;
    int here;
    seen((uint64_t)cudaMalloc(&at, 64 * MIB));
    seen((uint64_t)cudaFree((char *)at + 512));
    seen((uint64_t)cudaFree(&here));
    seen((uint64_t)cudaFree(at));
    seen((uint64_t)cudaFree(at));
    seen((uint64_t)cudaFree(NULL));
    take_and_give();
}

static void without_descriptors(void)
{
    for (int fd = 3; fd < 256; fd++) close(fd);
    take_and_give();
}

typedef struct kind {
    const char *name;
    void (*before)(void), (*program)(void);
} kind;

static const kind kinds[] = {
    {"the file is missing", missing, plainly},
    {"the file is cut short", truncated, plainly},
    {"the file is empty", empty, plainly},
    {"the file may only be read", read_only, as_somebody_else},
    {"a folder is in its place", a_folder, plainly},
    {"the file is of another version", wrong_version, plainly},
    {"the file is something else", wrong_magic, plainly},
    {"it has four billion devices", too_many_devices, plainly},
    {"the variable is empty", variable_empty, plainly},
    {"the variable is not set", variable_unset, plainly},
    {"its figures are overwritten while it runs", nothing, overwritten_meanwhile},
    {"the file is removed while it runs", nothing, removed_meanwhile},
    {"a process was killed in the lock", killed_in_the_lock, plainly},
    {"a process is stopped in the lock", stopped_in_the_lock, plainly},
    {"all places for processes are taken", no_place_left, plainly},
    {"the program forks", nothing, with_a_fork},
    {"the program is replaced by another (exec)", nothing, with_an_exec},
    {"libraries are closed (dlclose)", nothing, with_dlclose},
    {"threads allocate while the process exits", nothing, threads_at_exit},
    {"processes are killed at any moment", nothing, killed_at_any_moment},
    {"five thousand signals a second", nothing, under_signals},
    {"sizes of 0, 2^64 - 1 and -2 MiB", nothing, with_sizes_of_no_sense},
    {"frees of what was never taken, and twice", nothing, with_frees_of_no_sense},
    {"every descriptor is closed", nothing, without_descriptors},
};

static int run_program(void *argument)
{
    const kind *k = argument;
    uint64_t *shared = (uint64_t *)(void *)device_run->trace_path + 8; /* a place that both see */
    digest = 0xcbf29ce484222325u;
    alarm(SECONDS_MOST);
    k->program();
    *shared = digest;
    return 0;
}

static uint64_t answers(const kind *k, bool sabotaged)
{
    oos_device_spec const spec = {
        .name = "00000000:01:00.0", .total_bytes = 1, .before_bytes = 0, .before_known = 1};
    device_run = run_create(device_path, TOTAL_GIB * GIB, CONTEXT_MIB * MIB, 1);
    snprintf(guard_path, sizeof guard_path, "%s-guard", device_path);
    assert_int_equal(oos_segment_create(guard_path, &spec, 1, &guard_run), OOS_SEGMENT_OK);
    setenv(OOS_GUARD_ENV, guard_path, 1);
    if (sabotaged)
        k->before();
    else {
        if (k->before == read_only) read_only();
        unsetenv(OOS_GUARD_ENV);
    }
    int const code = in_child(device_path, run_program, (void *)(uintptr_t)k);
    uint64_t const told = ((uint64_t *)(void *)device_run->trace_path)[8];
    if (code) printf("%s: ended with %d\n", k->name, code);
    unlink(guard_path);
    rmdir(guard_path);
    oos_segment_close(guard_run);
    run_remove(device_run, device_path);
    unsetenv(OOS_GUARD_ENV);
    return code ? 0 : told;
}

static void a_program_is_answered_as_without_the_guard(void **state)
{
    (void)state;
    unsigned wrong = 0;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        uint64_t const without = answers(&kinds[i], false), with = answers(&kinds[i], true);
        bool const same = without && with == without;
        printf("%s %s\n", same ? "ok  " : "FAIL", kinds[i].name);
        wrong += !same;
    }
    assert_int_equal(wrong, 0);
}

int main(void)
{
    struct CMUnitTest const tests[] = {cmocka_unit_test(a_program_is_answered_as_without_the_guard)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
