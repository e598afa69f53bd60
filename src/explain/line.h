/* One line at a time against the signals: for output that is read while it is printed, where the collector reads whole texts. */
#ifndef OOS_EXPLAIN_LINE_H
#define OOS_EXPLAIN_LINE_H

#include "explain/signals.h"

typedef struct oos_line_reader oos_line_reader;

/* `data_dir` NULL: embedded data. */
oomsight_status oos_line_reader_create(const char *data_dir, oos_line_reader **ret_reader,
                                       oomsight_error *reterr);
void oos_line_reader_free(oos_line_reader *reader); /* NULL is fine */

/* Hands over every signal that the line holds, in the order of the data. `match` has no captures where the literal says it all. */
void oos_line_read(oos_line_reader *reader, oos_view line,
                   void (*on_signal)(void *context, const oos_signal *signal, const oos_match *match),
                   void *context);

#endif
