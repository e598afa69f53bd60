/* What the guard costs: bench_guard GUARD.so. The program measures itself with and without it, in turns, and takes the best of each: a
 * million kernel launches, and allocations with their frees. Prints; fails only when it is ten times over what docs/how-to/limit-memory.md says. */
#include "cuda.h"
#include "program.h"

#include <time.h>

int cudaLaunchKernel(const void *kernel, unsigned long long grid_xy, unsigned grid_z,
                     unsigned long long block_xy, unsigned block_z, void **arguments, size_t shared_bytes,
                     void *stream);

enum { LAUNCHES = 1000000, PAIRS = 100000, ROUNDS = 5 };

static double now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now); /* others may use the machine */
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* In a process of its own: two numbers to standard output. */
static int measure(void)
{
    void *at;
    if (cudaMalloc(&at, 2 * MIB) || cudaFree(at)) return 1;
    double start = now_ns();
    for (int i = 0; i < LAUNCHES; i++) cudaLaunchKernel((const void *)measure, 1, 1, 32, 1, NULL, 0, NULL);
    double const launch = (now_ns() - start) / LAUNCHES;
    start = now_ns();
    for (int i = 0; i < PAIRS; i++)
        if (cudaMalloc(&at, 2 * MIB) || cudaFree(at)) return 1;
    printf("%.2f %.2f\n", launch, (now_ns() - start) / PAIRS);
    return 0;
}

typedef struct cost {
    double launch, pair;
} cost;

static void better(cost *best, const char *program, const char *guard)
{
    char command[1200];
    cost found = {0};
    snprintf(command, sizeof command, "LD_PRELOAD=%s %s --measure", guard, program);
    FILE *answer = popen(command, "r");
    bool const read = answer && fscanf(answer, "%lf %lf", &found.launch, &found.pair) == 2;
    if (answer) pclose(answer);
    if (!read) return;
    if (best->launch == 0 || found.launch < best->launch) best->launch = found.launch;
    if (best->pair == 0 || found.pair < best->pair) best->pair = found.pair;
}

int main(int argc, char **argv)
{
    char device_path[64], guard_path[80];
    if (argc == 2 && strcmp(argv[1], "--measure") == 0) return measure();
    if (argc != 2) return 2;
    oos_device_spec const spec = {
        .name = "00000000:01:00.0", .total_bytes = 1, .before_bytes = 0, .before_known = 1};
    oos_segment *device = run_create(device_path, 16 * GIB, 0, 1), *guard;
    snprintf(guard_path, sizeof guard_path, "%s-guard", device_path);
    if (oos_segment_create(guard_path, &spec, 1, &guard) != OOS_SEGMENT_OK) return 1;
    guard->budget_bytes = 8 * GIB;
    setenv(OOS_SEGMENT_ENV, device_path, 1);
    setenv(OOS_GUARD_ENV, guard_path, 1);
    cost with = {0}, without = {0};
    for (int i = 0; i < ROUNDS; i++) {
        better(&without, argv[0], "");
        better(&with, argv[0], argv[1]);
    }
    printf("a launch: %.1f ns without the guard, %.1f with it\n", without.launch, with.launch);
    printf("an allocation and its free: %.0f ns without, %.0f with, %.0f more\n", without.pair, with.pair,
           with.pair - without.pair);
    run_remove(device, device_path);
    run_remove(guard, guard_path);
    return with.pair > 0 && with.pair - without.pair < 3000 && with.launch < without.launch * 2 ? 0 : 1;
}
