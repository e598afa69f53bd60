/* The first parameter for which there is no room: the number in the engine's message when loading fails. */
#ifndef OOS_PLAN_WEIGHTS_ORDER_H
#define OOS_PLAN_WEIGHTS_ORDER_H

#include "plan/setup/setup.h"

/* Bytes of the segment that is asked for and refused when the parameters of a stage are created in `room_bytes`; 0 when
 * all of them fit, or when the order is not known (parts of them in host memory). */
uint64_t oos_weights_tried(const oos_setup *setup, uint64_t stage, uint64_t room_bytes);

#endif
