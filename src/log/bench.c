/* Memory only; what it is used for is in scan.c and collect.c. Pages that no text ever reached cost nothing. */
#include "log/log.h"

#include <stdlib.h>

oomsight_status oos_bench_create(const oos_literals *literals, oos_bench **ret_bench, oomsight_error *reterr)
{
    oos_bench *bench = calloc(1, sizeof *bench);
    if (bench) {
        bench->window = malloc(OOS_BENCH_WINDOW_BYTES);
        bench->raw = malloc(OOS_BENCH_READ_BYTES);
        bench->hits = malloc(OOS_BENCH_HITS_MAX * sizeof *bench->hits);
        bench->line = malloc(OOS_LINE_MAX_BYTES * 2);
        bench->shown = malloc(OOS_LINE_MAX_BYTES * 2);
        bench->joined = malloc(OOS_BENCH_JOINED_BYTES);
    }
    if (!bench || !bench->window || !bench->raw || !bench->hits || !bench->line || !bench->shown ||
        !bench->joined) {
        oos_bench_free(bench);
        return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a log");
    }
    oomsight_status const status = oos_literal_scan_open(literals, &bench->literals, reterr);
    if (status != OOMSIGHT_OK)
        oos_bench_free(bench);
    else
        *ret_bench = bench;
    return status;
}

void oos_bench_free(oos_bench *bench)
{
    if (!bench) return;
    oos_literal_scan_close(bench->literals);
    oos_text_free(&bench->clean);
    free(bench->window);
    free(bench->raw);
    free(bench->hits);
    free(bench->places.list);
    free(bench->line);
    free(bench->shown);
    free(bench->joined);
    free(bench);
}
