/* Values of the engine's set-up as a log prints them: `key=0.8`, `'key': 0.8`, `--key 0.8`. */
#ifndef OOS_EXPLAIN_SETUP_H
#define OOS_EXPLAIN_SETUP_H

#include "explain/incident.h"

/* Of the command, the arguments or the configuration, in this order. The key is written with underscores. */
bool oos_setup_value(const oos_setup_text *setup, const char *key, double *ret_value);

/* The same with a unit behind it: 60G is 60 x 2^30, 60g is 60 x 10^9, as the engines read them. */
bool oos_setup_bytes(const oos_setup_text *setup, const char *key, double *ret_bytes);

/* Whether the command or the arguments that differ from the defaults have this flag. */
bool oos_setup_names(const oos_setup_text *setup, const char *flag);

#endif
