/* A build that does not watch files: --follow is refused. */
#include "explain_follow.h"

#include <string.h>

int follow_options_take(follow_options *options, int argc, char **argv, int *at)
{
    (void)options;
    (void)argc;
    if (strcmp(argv[*at], "--follow") != 0) return 0;
    complain("oomsight explain: this build does not follow logs");
    return -1;
}

int follow_logs(const output_options *output, const follow_options *options, const oomsight_data *data,
                const char *const *paths, size_t path_count)
{
    (void)output;
    (void)options;
    (void)data;
    (void)paths;
    (void)path_count;
    return EXIT_USAGE;
}
