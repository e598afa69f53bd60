/* A guarded run as text and JSON. */
#ifndef OOS_REPORT_RUN_REPORT_H
#define OOS_REPORT_RUN_REPORT_H

#include "base/json_write.h"
#include "base/text.h"
#include "run/growth.h"
#include "run/serving.h"

enum { OOS_GROWTHS_MAX = 8 };
typedef struct oos_run_told {
    oos_run_state state;
    oos_growth growth[OOS_GROWTHS_MAX];
    size_t growth_count;
    oos_serving serving;
    /* for Prometheus */
    uint64_t host_bytes; /* resident, over all processes */
    int pid;             /* the run's label */
} oos_run_told;

void oos_report_run_text(oos_text *text, const oos_run_told *run, const oomsight_render_params *params);
void oos_report_run_json(oos_text *text, const oos_run_told *run);
/* The fields "name" and "compute_capability" of a device. */
void oos_report_run_card(oos_json_writer *w, const oos_run_device *device);

/* The same of several runs for Prometheus. */
void oos_report_run_metrics(oos_text *text, const oos_run_told *runs, size_t count);

#endif
