/* oomsight redact: text in, the same text without secrets out. */
#include "cli.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK_BYTES = 64 << 10, MOST_BYTES = 256 << 20 };

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

int cmd_redact(cli_options *given)
{
    const char *path = given->word_count ? given->words[0] : NULL;
    bool const named = path && strcmp(path, "-") != 0;
    FILE *from = named ? fopen(path, "r") : stdin;
    char *text = from ? read_all(from) : NULL, *shown = NULL;
    if (!text) complain("oomsight: %s: %s", named ? path : "standard input", strerror(errno));
    if (from && named) fclose(from);
    if (!text) return EXIT_INPUT;
    oomsight_error error = {0};
    oomsight_status const status = oomsight_text_redact(text, &shown, &error);
    int const code = output_give(given, status, shown, &error);
    free(text);
    return code;
}
