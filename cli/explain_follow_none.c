/* A build that does not watch files: --follow is refused. */
#include "explain_follow.h"

int follow_logs(const cli_options *given, const oomsight_data *data, const char *const *paths,
                size_t path_count)
{
    (void)given;
    (void)data;
    (void)paths;
    (void)path_count;
    complain("oomsight explain: this build does not follow logs");
    return EXIT_USAGE;
}

int follow_streams(const cli_options *given, const oomsight_data *data)
{
    (void)given;
    (void)data;
    complain("oomsight explain: this build does not follow logs");
    return EXIT_USAGE;
}
