/* oomsight run --selftest: does the guard keep a budget on this machine? A program as an engine is one, by the driver alone: what it
 * sees of the device, what it is given, what is refused, and what the guard costs. It runs behind the guard, started by `run`. */
#include "cli.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { BLOCKS_MAX = 4096, PAIRS = 2000, OUT_OF_MEMORY = 2, EXIT_BROKEN = 1 };
#define MIB ((size_t)1 << 20)
#define BLOCK_BYTES (64 * MIB)

typedef uint64_t device_pointer;
typedef int (*allocate_function)(device_pointer *, size_t);
typedef int (*free_function)(device_pointer);

typedef struct device {
    int (*init)(unsigned);
    int (*retain)(void **, int);
    int (*set_current)(void *);
    int (*total)(size_t *, int);
    int (*info)(size_t *, size_t *);
    allocate_function allocate;
    free_function release;
    int (*find)(const char *, void **, int, uint64_t, int *);
    unsigned checked, broken;
} device;

static void check(device *d, bool holds, const char *what)
{
    d->checked++;
    d->broken += !holds;
    printf("%s  %s\n", holds ? "ok    " : "BROKEN", what);
}

/* As a program that is linked with the library finds it: the guard first. */
static bool find(const char *name, void *ret_function)
{
    void *at = dlsym(RTLD_DEFAULT, name);
    memcpy(ret_function, &at, sizeof at);
    return at != NULL;
}

static bool find_all(device *d)
{
    return dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL) && find("cuInit", &d->init) &&
           find("cuDevicePrimaryCtxRetain", &d->retain) && find("cuCtxSetCurrent", &d->set_current) &&
           find("cuDeviceTotalMem_v2", &d->total) && find("cuMemGetInfo_v2", &d->info) &&
           find("cuMemAlloc_v2", &d->allocate) && find("cuMemFree_v2", &d->release) &&
           find("cuGetProcAddress_v2", &d->find);
}

static void look(device *d, uint64_t budget)
{
    size_t total = 0, seen_free = 0, seen_total = 0;
    check(d, d->total(&total, 0) == 0 && total <= budget, "the device's total is within the limit");
    check(d, d->info(&seen_free, &seen_total) == 0 && seen_total == total && seen_free < total,
          "free and total memory agree with it");
}

static void look_by_nvml(device *d, uint64_t budget)
{
    int (*init)(void), (*handle)(unsigned, void **), (*memory)(void *, unsigned long long *);
    unsigned long long bytes[3] = {0}; /* total, free, used */
    void *one = NULL;
    if (!dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_GLOBAL) || !find("nvmlInit_v2", &init) ||
        !find("nvmlDeviceGetHandleByIndex_v2", &handle) || !find("nvmlDeviceGetMemoryInfo", &memory)) {
        puts("-       NVML is not here");
        return;
    }
    check(d, init() == 0 && handle(0, &one) == 0 && memory(one, bytes) == 0 && bytes[0] <= budget,
          "NVML shows no more than the limit");
}

static void fill(device *d, uint64_t budget)
{
    static device_pointer blocks[BLOCKS_MAX];
    size_t before = 0, left = 0, after = 0, total = 0;
    unsigned count = 0;
    int code = 0;
    device_pointer whole;
    check(d, d->allocate(&whole, (size_t)budget) == OUT_OF_MEMORY,
          "the whole limit on top of a context is refused");
    (void)d->info(&before, &total);
    while (count < BLOCKS_MAX && (code = d->allocate(&blocks[count], BLOCK_BYTES)) == 0) count++;
    (void)d->info(&left, &total);
    printf("        %u blocks of 64 MiB fit, %zu MiB were left\n", count, left / MIB);
    check(d, code == OUT_OF_MEMORY && count > 0, "blocks are given until one is refused as out of memory");
    check(d, (uint64_t)count * BLOCK_BYTES <= budget && left < BLOCK_BYTES + 2 * MIB,
          "what was allocated is the limit, to one block");
    for (unsigned i = 0; i < count; i++) (void)d->release(blocks[i]);
    (void)d->info(&after, &total);
    check(d, after + 2 * MIB >= before && after <= before + 2 * MIB, "what was freed is free again");
}

static void ask_by_name(device *d, uint64_t budget)
{
    allocate_function by_name = NULL;
    void *at = NULL;
    device_pointer whole;
    int const code = d->find("cuMemAlloc", &at, 12000, 0, NULL);
    memcpy(&by_name, &at, sizeof at);
    check(d, code == 0 && by_name && by_name(&whole, (size_t)budget) == OUT_OF_MEMORY,
          "functions taken from the driver have the limit as well");
}

static void tell_cost(const device *d, bool guarded)
{
    struct timespec start, end;
    device_pointer at;
    for (unsigned i = 0; i < 2 * PAIRS; i++) { /* the first half is to get warm */
        if (i == PAIRS) clock_gettime(CLOCK_MONOTONIC, &start);
        if (d->allocate(&at, 2 * MIB) == 0) (void)d->release(at);
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    double const ns = (double)(end.tv_sec - start.tv_sec) * 1e9 + (double)(end.tv_nsec - start.tv_nsec);
    printf("        an allocation of 2 MiB and its free take %.0f ns with%s the memory limiter\n", ns / PAIRS,
           guarded ? "" : "out");
}

/* Without a budget there is no guard, and only the time is told. */
int selftest_inside(const char *budget_text)
{
    device d = {0};
    void *context = NULL;
    uint64_t budget = 0;
    if (!oomsight_size_parse(budget_text, &budget)) return EXIT_USAGE;
    if (!find_all(&d) || d.init(0) != 0 || d.retain(&context, 0) != 0 || d.set_current(context) != 0) {
        complain(
            "oomsight run: no device to test the memory limiter on: libcuda.so.1 is not here, or has none");
        return EXIT_INPUT;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    tell_cost(&d, budget > 0);
    if (!budget) return 0;
    look(&d, budget);
    look_by_nvml(&d, budget);
    fill(&d, budget);
    ask_by_name(&d, budget);
    printf("%u of %u hold\n", d.checked - d.broken, d.checked);
    return d.broken ? EXIT_BROKEN : 0;
}
