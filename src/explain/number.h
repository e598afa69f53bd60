/* Figures out of captures: `tried_size` = "1.56 GiB" and the like. */
#ifndef OOS_EXPLAIN_NUMBER_H
#define OOS_EXPLAIN_NUMBER_H

#include "explain/incident.h"

/* Which number a group name stands for and what its text is worth. False: the name is none of ours, or the text is no
 * number. */
bool oos_number_read(const oos_capture *capture, uint64_t line, oos_number_id *ret_id,
                     oos_number *ret_number);

/* A size with its unit: "1.56 GiB", "0 bytes". */
bool oos_number_size(oos_view text, oos_number *ret_number);

#endif
