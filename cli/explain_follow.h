/* oomsight explain --follow: what the command line says of it, and the loop. */
#ifndef OOMSIGHT_CLI_EXPLAIN_FOLLOW_H
#define OOMSIGHT_CLI_EXPLAIN_FOLLOW_H

#include "cli.h"

typedef struct follow_options {
    bool on;
    bool hub;
    long idle_ms; /* -1: until interrupted */
    const char *state_dir, *metrics_address, *metrics_file;
    size_t most_files; /* 0: as the library thinks fit */
} follow_options;

/* As output_options_take(). */
int follow_options_take(follow_options *options, int argc, char **argv, int *at);

int follow_logs(const output_options *output, const follow_options *options, const oomsight_data *data,
                const char *const *paths, size_t path_count);

#endif
