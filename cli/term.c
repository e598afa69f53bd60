/* The way answers and errors leave the program. */
#include "cli.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#ifdef CLOCK_BOOTTIME
#define CLOCK_SINCE_BOOT CLOCK_BOOTTIME
#else
#define CLOCK_SINCE_BOOT CLOCK_MONOTONIC
#endif

const char *chosen_language; /* NULL: as the environment says */

int output_write(const cli_options *given, const char *text)
{
    oomsight_error error = {0};
    if (given->output) {
        if (oomsight_output_write(given->output, text, &error) == OOMSIGHT_OK) return EXIT_FITS;
        return fail_with(&error);
    }
    bool wrong = fputs(text, stdout) == EOF;
    wrong |= fflush(stdout) != 0;
    if (wrong) fprintf(stderr, "oomsight: the answer could not be written\n");
    return wrong ? EXIT_INPUT : EXIT_FITS;
}

int output_give(const cli_options *given, oomsight_status status, char *text, const oomsight_error *error)
{
    int const code = status == OOMSIGHT_OK ? output_write(given, text) : fail_with(error);
    oomsight_text_free(text);
    return code;
}

void complain(const char *format, ...)
{
    char line[2048], *shown = NULL;
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    if (oomsight_text_redact(line, &shown, NULL) == OOMSIGHT_OK) fprintf(stderr, "%s\n", shown);
    oomsight_text_free(shown);
}

/* What the command says of a parameter that the library names; "": nothing. */
static const char *hint_of(const oomsight_error *error)
{
    size_t const len = strlen(error->text);
    if (len && error->text[len - 1] == '?') return ""; /* a better one is asked for already */
    if (error->status == OOMSIGHT_USAGE && strcmp(error->field, "gpu") == 0)
        return "; 'oomsight gpus' lists the names for --gpu";
    return strcmp(error->field, "id") == 0 ? "; 'oomsight kb list' names them" : "";
}

int fail_with(const oomsight_error *error)
{
    char *words = NULL, line[sizeof error->text + 64];
    snprintf(line, sizeof line, "%s%s", error->text, hint_of(error));
    const char *text = oomsight_words(chosen_language, line, &words, NULL) == OOMSIGHT_OK ? words : line;
    if (error->path[0] && error->line)
        fprintf(stderr, "oomsight: %s:%u: %s\n", error->path, error->line, text);
    else if (error->path[0])
        fprintf(stderr, "oomsight: %s: %s\n", error->path, text);
    else
        fprintf(stderr, "oomsight: %s\n", text);
    oomsight_text_free(words);
    switch (error->status) {
    case OOMSIGHT_USAGE: return EXIT_USAGE;
    case OOMSIGHT_NOMEM:
    case OOMSIGHT_INTERNAL: return EXIT_OUR_FAULT;
    case OOMSIGHT_OK:
    case OOMSIGHT_OVERFLOW:
    case OOMSIGHT_MALFORMED:
    case OOMSIGHT_NOT_FOUND:
    case OOMSIGHT_IO:
    case OOMSIGHT_UNSUPPORTED:
    case OOMSIGHT_NETWORK: return EXIT_INPUT;
    }
    return EXIT_OUR_FAULT;
}

double seconds_since_boot(void)
{
    struct timespec now;
    clock_gettime(CLOCK_SINCE_BOOT, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

cli_progress progress_begin(const cli_options *given)
{
    return (cli_progress){.wanted = !given->quiet && isatty(STDERR_FILENO), .since = seconds_since_boot()};
}

bool progress_due(cli_progress *progress)
{
    double const now = seconds_since_boot();
    return progress->wanted && now - progress->since >= 2 && now - progress->shown_at >= 0.5;
}

/* At most 79 columns, so that it stays one line. */
void progress_show(cli_progress *progress, const char *format, ...)
{
    char line[80], *shown = NULL;
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    progress->shown_at = seconds_since_boot();
    if (oomsight_text_redact(line, &shown, NULL) == OOMSIGHT_OK) fprintf(stderr, "\r\033[K%s", shown);
    progress->shown = true;
    oomsight_text_free(shown);
}

void progress_clear(cli_progress *progress)
{
    if (progress->shown) fputs("\r\033[K", stderr);
    progress->shown = false;
}
