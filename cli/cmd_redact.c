/* oomsight redact: text in, the same text without secrets out, line by line as it passes. With --output all of it is held: the file may
 * be the one that is read. */
#include "cli.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK_BYTES = 64 << 10, MOST_BYTES = 256 << 20 };

typedef struct kept_text {
    char *text;
    size_t len, capacity;
} kept_text;

/* Into the text that is held, or out. */
static bool pass(const cli_options *given, kept_text *kept, const char *shown)
{
    size_t const len = strlen(shown);
    if (!given->output) return fwrite(shown, 1, len, stdout) == len && fflush(stdout) == 0;
    if (kept->len + len + 1 > kept->capacity) {
        size_t const capacity = 2 * (kept->len + len + 1);
        char *grown = capacity > MOST_BYTES ? NULL : realloc(kept->text, capacity);
        errno = grown ? errno : EFBIG;
        if (!grown) return false;
        kept->text = grown;
        kept->capacity = capacity;
    }
    memcpy(kept->text + kept->len, shown, len + 1);
    kept->len += len;
    return true;
}

static int copy(const cli_options *given, FILE *from, const char *name, oomsight_redactor *redactor)
{
    oomsight_error error = {0};
    kept_text kept = {0};
    char bytes[CHUNK_BYTES];
    size_t count;
    int code = EXIT_FITS;
    do {
        char *shown = NULL;
        count = fread(bytes, 1, sizeof bytes, from);
        if (count == 0 && ferror(from)) {
            complain("oomsight: %s: %s", name, strerror(errno));
            code = EXIT_INPUT;
        } else if (oomsight_redactor_feed(redactor, bytes, count, &shown, &error) != OOMSIGHT_OK)
            code = fail_with(&error);
        else if (!pass(given, &kept, shown)) {
            complain("oomsight: the answer could not be written: %s", strerror(errno));
            code = EXIT_INPUT;
        }
        oomsight_text_free(shown);
    } while (count && code == EXIT_FITS);
    if (given->output && code == EXIT_FITS) code = output_write(given, kept.text ? kept.text : "");
    free(kept.text);
    return code;
}

int cmd_redact(cli_options *given)
{
    const char *path = given->word_count ? given->words[0] : NULL;
    bool const named = path && strcmp(path, "-") != 0;
    FILE *from = named ? fopen(path, "r") : stdin;
    if (!from) {
        complain("oomsight: %s: %s", path, strerror(errno));
        return EXIT_INPUT;
    }
    oomsight_error error = {0};
    oomsight_redactor *redactor = NULL;
    int const code = oomsight_redactor_create(&redactor, &error) == OOMSIGHT_OK
                         ? copy(given, from, named ? path : "standard input", redactor)
                         : fail_with(&error);
    oomsight_redactor_free(redactor);
    if (named) fclose(from);
    return code;
}
