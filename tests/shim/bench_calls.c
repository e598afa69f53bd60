/* What a call costs: a no-op under 100 ns, cudaMalloc and cudaFree of 2 MiB under 1 us each. Prints; never fails on a
 * slow machine unless it is ten times over. */
#include "cuda.h"
#include "program.h"

#include <time.h>

static double now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

int main(void)
{
    char path[64];
    oos_segment *segment = run_create(path, 16 * GIB, 0, 1);
    setenv(OOS_SEGMENT_ENV, path, 1);
    enum { CALLS = 2000000, PAIRS = 200000 };
    void *at, *held[64];
    for (int i = 0; i < 64; i++)
        if (cudaMalloc(&held[i], 2 * MIB)) return 1;
    double start = now_ns();
    for (int i = 0; i < CALLS; i++) cudaProfilerStart();
    double const noop = (now_ns() - start) / CALLS;
    start = now_ns();
    for (int i = 0; i < PAIRS; i++)
        if (cudaMalloc(&at, 2 * MIB) || cudaFree(at)) return 1;
    double const pair = (now_ns() - start) / PAIRS;
    printf("no-op %.1f ns, cudaMalloc + cudaFree of 2 MiB %.1f ns\n", noop, pair);
    run_remove(segment, path);
    return noop < 1000 && pair < 20000 ? 0 : 1;
}
