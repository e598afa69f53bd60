/* Output options, colour, width, and the way errors leave the program. */
#include "cli.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#if __has_include(<sys/ioctl.h>)
#include <sys/ioctl.h>
#endif

typedef enum color_choice { COLOR_AUTO, COLOR_ALWAYS, COLOR_NEVER } color_choice;
static color_choice chosen_color = COLOR_AUTO;

void output_options_init(output_options *options)
{
    *options = (output_options){.render = OOMSIGHT_RENDER_PARAMS_INIT};
    chosen_color = COLOR_AUTO;
}

bool take_insecure(const char *word)
{
    if (strcmp(word, "--insecure") != 0) return false;
    setenv("OOMSIGHT_INSECURE", "1", 1); /* where the library looks, beside HF_TOKEN and HF_ENDPOINT */
    return true;
}

const char *option_value(const char *name, int argc, char **argv, int *at, bool *ret_wrong)
{
    const char *word = argv[*at];
    size_t const len = strlen(name);
    if (strncmp(word, name, len) != 0) return NULL;
    if (word[len] == '=') {
        ++*at;
        return word + len + 1;
    }
    if (word[len] != '\0') return NULL;
    if (*at + 1 >= argc) {
        complain("oomsight: %s needs a value", name);
        *ret_wrong = true;
        return NULL;
    }
    *at += 2;
    return argv[*at - 1];
}

const char *capability_value(int argc, char **argv, int *at, bool *ret_wrong)
{
    const char *value = option_value("--gpu-cc", argc, argv, at, ret_wrong);
    return value || *ret_wrong ? value : option_value("--compute-capability", argc, argv, at, ret_wrong);
}

static int take_format(output_options *options, const char *word)
{
    static const struct {
        const char *word;
        oomsight_format format;
    } formats[] = {{"text", OOMSIGHT_FORMAT_TEXT},     {"json", OOMSIGHT_FORMAT_JSON},
                   {"md", OOMSIGHT_FORMAT_MARKDOWN},   {"html", OOMSIGHT_FORMAT_HTML},
                   {"github", OOMSIGHT_FORMAT_GITHUB}, {"sarif", OOMSIGHT_FORMAT_SARIF},
                   {"junit", OOMSIGHT_FORMAT_JUNIT}};
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (strcmp(word, formats[i].word) == 0) {
            options->render.format = formats[i].format;
            return 1;
        }
    complain("oomsight: --format takes text, json, md, html, github, sarif or junit, not '%s'", word);
    return -1;
}

static int take_color(const char *word)
{
    if (strcmp(word, "auto") == 0)
        chosen_color = COLOR_AUTO;
    else if (strcmp(word, "always") == 0)
        chosen_color = COLOR_ALWAYS;
    else if (strcmp(word, "never") == 0)
        chosen_color = COLOR_NEVER;
    else {
        complain("oomsight: --color takes auto, always or never, not '%s'", word);
        return -1;
    }
    return 1;
}

static const char *chosen_language; /* NULL: as the environment says */

static int take_language(output_options *options, const char *word)
{
    if (strcmp(word, "en") != 0 && strcmp(word, "zh") != 0) {
        complain("oomsight: --lang takes en or zh, not '%s'", word);
        return -1;
    }
    chosen_language = options->render.language = word;
    return 1;
}

int output_options_take(output_options *options, int argc, char **argv, int *at)
{
    bool wrong = false;
    const char *value;
    if (strcmp(argv[*at], "--json") == 0) {
        options->render.format = OOMSIGHT_FORMAT_JSON;
        return ++*at, 1;
    }
    if (strcmp(argv[*at], "--verbose") == 0) {
        options->render.verbose = 1;
        return ++*at, 1;
    }
    if (strcmp(argv[*at], "--explain") == 0) {
        options->render.explain = 1;
        return ++*at, 1;
    }
    if (strcmp(argv[*at], "--ascii") == 0) {
        options->render.ascii = 1;
        return ++*at, 1;
    }
    if ((value = option_value("--format", argc, argv, at, &wrong))) return take_format(options, value);
    if ((value = option_value("--color", argc, argv, at, &wrong))) return take_color(value);
    if ((value = option_value("--lang", argc, argv, at, &wrong))) return take_language(options, value);
    if ((value = option_value("--output", argc, argv, at, &wrong))) {
        options->output_path = value;
        return 1;
    }
    if ((value = option_value("--data", argc, argv, at, &wrong))) {
        options->data_dir = value;
        return 1;
    }
    return wrong ? -1 : 0;
}

void output_options_settle(output_options *options)
{
    bool const terminal = !options->output_path && isatty(STDOUT_FILENO);
    const char *no_color = getenv("NO_COLOR");
    bool const wanted =
        chosen_color == COLOR_ALWAYS || (chosen_color == COLOR_AUTO && terminal && !(no_color && *no_color));
    options->render.color = wanted;
#ifdef TIOCGWINSZ
    struct winsize size;
    if (terminal && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= 60)
        options->render.width = size.ws_col < 120 ? size.ws_col : 120;
#endif
}

int output_write(const output_options *options, const char *text)
{
    oomsight_error error = {0};
    if (options->output_path) {
        if (oomsight_output_write(options->output_path, text, &error) == OOMSIGHT_OK) return EXIT_FITS;
        return fail_with(&error);
    }
    bool wrong = fputs(text, stdout) == EOF;
    wrong |= fflush(stdout) != 0;
    if (wrong) fprintf(stderr, "oomsight: the answer could not be written\n");
    return wrong ? EXIT_INPUT : EXIT_FITS;
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

int fail_with(const oomsight_error *error)
{
    char *words = NULL;
    const char *text =
        oomsight_words(chosen_language, error->text, &words, NULL) == OOMSIGHT_OK ? words : error->text;
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
