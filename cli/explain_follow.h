/* oomsight explain --follow: the loop. */
#pragma once
#include "cli.h"

int follow_logs(const cli_options *given, const oomsight_data *data, const char *const *paths,
                size_t path_count);
/* --stream: lines of other programs, from standard input. */
int follow_streams(const cli_options *given, const oomsight_data *data);
