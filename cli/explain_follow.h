/* oomsight explain --follow: the loop. */
#ifndef OOMSIGHT_CLI_EXPLAIN_FOLLOW_H
#define OOMSIGHT_CLI_EXPLAIN_FOLLOW_H

#include "cli.h"

int follow_logs(const cli_options *given, const oomsight_data *data, const char *const *paths,
                size_t path_count);

#endif
