/* Events a second of the allocator simulator: random churn of 512 B to 8 MiB, log-uniform, with N blocks live. The same
 * sequence is given to the real allocator by tests/oracle/driver.cpp ("bench"), so the two can be compared in one run. */
#include "replay/replay.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { SIZES = 4096, SLOTS = 1 << 16 };

static double cpu_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* splitmix64: a few lines in any language give the same numbers. */
static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static void churn(const char *torch, const char *settings, unsigned live, unsigned events)
{
    static uint64_t sizes[SIZES];
    static unsigned slots[SLOTS];
    uint64_t seed = 1;
    for (unsigned i = 0; i < SIZES; i++)
        sizes[i] = (uint64_t)pow(2, 9 + (double)(next_random(&seed) % 1000) / 1000 * 14);
    for (unsigned i = 0; i < SLOTS; i++) slots[i] = (unsigned)(next_random(&seed) % live);

    oos_sim_params params = {.settings = settings, .total_bytes = (uint64_t)512 << 30};
    oos_version_parse(oos_view_of(torch), &params.torch);
    oos_sim *sim = NULL;
    uint32_t *blocks = calloc(live, sizeof *blocks);
    if (!blocks || oos_sim_create(&params, &sim, NULL) != OOMSIGHT_OK) exit(1);
    double const start = cpu_seconds();
    for (unsigned i = 0; i < events; i++) {
        unsigned const slot = slots[i % SLOTS];
        if (blocks[slot]) {
            oos_sim_free_block(sim, blocks[slot]);
            blocks[slot] = 0;
        } else {
            blocks[slot] = oos_sim_malloc(sim, sizes[i % SIZES], 0);
        }
    }
    double const seconds = cpu_seconds() - start;
    printf("simulator torch %s%s%s: churn, up to %u live: %.2f M events/s (%.0f ns), %llu reserved\n", torch,
           *settings ? " " : "", settings, live, events / seconds / 1e6, seconds / events * 1e9,
           (unsigned long long)oos_sim_stats(sim)->counters[OOS_STAT_RESERVED_BYTES][OOS_STAT_ALL].current);
    oos_sim_free(sim);
    free(blocks);
}

int main(int argc, char **argv)
{
    const char *torch = argc > 1 ? argv[1] : "2.13.0";
    unsigned const events = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 4000000;
    if (argc >
        3) { /* bench_replay TORCH EVENTS LIVE: that one only, for a comparison with the real allocator */
        churn(torch, "", (unsigned)strtoul(argv[3], NULL, 10), events);
        return 0;
    }
    churn(torch, "", 100, events);
    churn(torch, "", 1000, events);
    churn(torch, "", 10000, events);
    churn(torch, "expandable_segments:True", 10000, events);
    return 0;
}
