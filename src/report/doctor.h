/* The machine we run on, for an issue. */
#ifndef OOS_REPORT_DOCTOR_H
#define OOS_REPORT_DOCTOR_H

#include "base/text.h"
#include "machine/machine.h"

void oos_report_doctor_text(oos_text *text, const oos_machine *machine, const oomsight_render_params *params);

/* oomsight.doctor/1 (docs/reference/formats/doctor.md) */
void oos_report_doctor_json(oos_text *text, const oos_machine *machine);

#endif
