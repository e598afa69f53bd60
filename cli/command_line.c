/* Words of the form `[options] -- the command you already have`, for every command that takes them. */
#include "cli.h"

#include <stdio.h>
#include <string.h>

int size_value(const char *name, const char *option, const char *value, uint64_t *ret_bytes)
{
    if (oomsight_size_parse(value, ret_bytes)) return 1;
    complain("oomsight %s: %s takes a size such as 23.5GiB, not '%s'", name, option, value);
    return -1;
}

int command_line_read(const command_line *line, int argc, char **argv)
{
    int at = 0;
    while (at < argc && argv[at][0] == '-') {
        if (strcmp(argv[at], "--") == 0) {
            at++;
            break;
        }
        if (strcmp(argv[at], "--help") == 0 || strcmp(argv[at], "-h") == 0) {
            fputs(line->help, stdout);
            return -2;
        }
        int taken = output_options_take(line->output, argc, argv, &at);
        if (taken == 0) taken = line->take(line->options, argc, argv, &at);
        if (taken < 0) return -1;
        if (taken == 0) {
            complain("oomsight %s: no option '%s' (%s behind '--')", line->name, argv[at], line->what);
            return -1;
        }
    }
    if (at < argc) return at;
    fprintf(stderr, "oomsight %s: the command is missing: %s\n", line->name, line->example);
    return -1;
}
