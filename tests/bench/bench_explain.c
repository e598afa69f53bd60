/* bench_explain FILE [LITERALS]: the whole of explain against the bare scan of the same bytes for the same literals, in one
 * run. With LITERALS the literals are written there, one per line, for `rg -F -c -f`. */
#include "explain/explain.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t); /* the share of a busy machine must not matter */
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static uint64_t bare_scan(const oos_knowledge *knowledge, const char *path)
{
    enum { BLOCK = 512 << 10, HITS = 64 << 10 };
    oos_logstream *stream;
    oos_literal_scan *scan;
    const char *name;
    char *block = malloc(BLOCK);
    oos_hit *hits = malloc(HITS * sizeof *hits);
    uint64_t total = 0;
    if (!block || !hits || oos_logstream_open(path, 0, &stream, NULL) != OOMSIGHT_OK ||
        oos_literal_scan_open(knowledge->signals.literals, &scan, NULL) != OOMSIGHT_OK)
        exit(1);
    while (oos_logstream_next(stream, &name))
        for (size_t count = 1, found; count; total += count) {
            bool cut;
            if (oos_logstream_read(stream, block, BLOCK, &count, NULL) != OOMSIGHT_OK ||
                oos_literal_scan_feed(scan, (oos_view){block, count}, hits, HITS, &found, &cut, NULL) !=
                    OOMSIGHT_OK)
                exit(1);
        }
    oos_literal_scan_close(scan);
    oos_logstream_close(stream);
    free(hits);
    free(block);
    return total;
}

enum { ROUNDS = 3 };

static double median(const double *of)
{
    double const low = of[0] < of[1] ? of[0] : of[1], high = of[0] < of[1] ? of[1] : of[0];
    return of[2] < low ? low : of[2] > high ? high : of[2];
}

int main(int argc, char **argv)
{
    if (argc < 2) return 2;
    oos_arena *arena = oos_arena_create(1 << 20);
    oos_knowledge knowledge;
    oomsight_error error = {0};
    double const start = now();
    if (!arena || oos_knowledge_load(arena, NULL, &knowledge, &error) != OOMSIGHT_OK)
        return puts(error.text), 1;
    double const loaded = now();
    FILE *list = argc > 2 ? fopen(argv[2], "w") : NULL;
    for (size_t i = 0; list && i < knowledge.signals.literal_count; i++)
        fprintf(list, "%s\n", knowledge.signals.words[i]);
    if (list) fclose(list);

    uint64_t const bytes = bare_scan(&knowledge, argv[1]); /* once more, so that the file is in memory */
    double scans[ROUNDS], wholes[ROUNDS];
    oos_explanation explanation = {0};
    for (size_t round = 0; round < ROUNDS; round++) { /* in turn: the machine's mood is the same for both */
        double const warm = now();
        bare_scan(&knowledge, argv[1]);
        double const scanned = now();
        oos_logstream *stream;
        explanation = (oos_explanation){0};
        if (oos_logstream_open(argv[1], 0, &stream, &error) != OOMSIGHT_OK ||
            oos_explain_stream(arena, &knowledge, stream, &explanation, &error) != OOMSIGHT_OK)
            return puts(error.text), 1;
        oos_logstream_close(stream);
        scans[round] = scanned - warm;
        wholes[round] = now() - scanned;
    }
    double const scan = median(scans), whole = median(wholes);
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    printf("explain: data %.1f ms; %.0f MB: bare scan %.2f s (%.2f GB/s), whole %.2f s, ratio %.2f; %zu "
           "incidents; peak %.0f MiB\n",
           (loaded - start) * 1e3, (double)bytes / 1e6, scan, (double)bytes / scan / 1e9, whole, whole / scan,
           explanation.count, (double)usage.ru_maxrss / 1024);
    oos_arena_free(arena);
    return 0;
}
