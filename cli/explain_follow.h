/* oomsight explain --follow: the loop. */
#pragma once
#include "cli.h"

int follow_logs(const cli_options *given, const oomsight_data *data, const char *const *paths,
                size_t path_count);
