/* What `oomsight doctor --measure` found: the figures, those in use, and a record for data/gpus. */
#ifndef OOS_REPORT_MEASURE_H
#define OOS_REPORT_MEASURE_H

#include "base/text.h"
#include "facts/gpu.h"
#include "machine/measure.h"

/* `gpu`: what is known of such a device, NULL: nothing. */
void oos_report_measure_text(oos_text *text, const oos_measure *measure, const oos_gpu *gpu,
                             const oomsight_render_params *params);

/* oomsight.measure/1 (docs/reference/formats/measure.md) */
void oos_report_measure_json(oos_text *text, const oos_measure *measure, const oos_gpu *gpu);

#endif
