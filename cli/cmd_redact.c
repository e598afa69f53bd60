/* Reading the words of `redact`: text in, the same text without secrets out. */
#include "cli.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK_BYTES = 64 << 10, MOST_BYTES = 256 << 20 };

static int print_help(void)
{
    fputs("usage: oomsight redact [FILE]\n\n"
          "The text of FILE, or of standard input, without the values of tokens, keys and passwords (***), "
          "and with\n"
          "control characters written out: ready to paste where others read it.\n\n"
          "  --output FILE        write there instead of to standard output\n",
          stdout);
    return EXIT_FITS;
}

/* All of it, ended with a zero; bytes of zero inside become blanks. NULL: it cannot be read. */
static char *read_all(FILE *from)
{
    size_t len = 0, capacity = CHUNK_BYTES;
    char *text = malloc(capacity + 1);
    while (text) {
        size_t const count = fread(text + len, 1, capacity - len, from);
        for (size_t i = 0; i < count; i++)
            if (!text[len + i]) text[len + i] = ' ';
        len += count;
        if (count == 0) break;
        if (len < capacity) continue;
        char *grown = capacity >= MOST_BYTES ? NULL : realloc(text, capacity * 2 + 1);
        if (!grown) {
            free(text);
            errno = EFBIG;
            return NULL;
        }
        text = grown;
        capacity *= 2;
    }
    if (text && ferror(from)) {
        free(text);
        return NULL;
    }
    if (text) text[len] = '\0';
    return text;
}

int cmd_redact(int argc, char **argv)
{
    output_options options;
    output_options_init(&options);
    const char *path = NULL;
    for (int at = 0; at < argc;) {
        if (strcmp(argv[at], "--help") == 0) return print_help();
        int const taken = output_options_take(&options, argc, argv, &at);
        if (taken < 0) return EXIT_USAGE;
        if (taken > 0) continue;
        if (path || (argv[at][0] == '-' && argv[at][1])) {
            complain("oomsight redact: '%s' is not understood", argv[at]);
            return EXIT_USAGE;
        }
        path = argv[at++];
    }
    bool const named = path && strcmp(path, "-") != 0;
    FILE *from = named ? fopen(path, "r") : stdin;
    char *text = from ? read_all(from) : NULL, *shown = NULL;
    if (!text) complain("oomsight: %s: %s", named ? path : "standard input", strerror(errno));
    if (from && named) fclose(from);
    if (!text) return EXIT_INPUT;
    oomsight_error error = {0};
    int const code = oomsight_text_redact(text, &shown, &error) == OOMSIGHT_OK ? output_write(&options, shown)
                                                                               : fail_with(&error);
    oomsight_text_free(shown);
    free(text);
    return code;
}
