/* What cli/options.def says, as tables; reading a command line by them, and help. */
#include "cli.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#if __has_include(<sys/ioctl.h>)
#include <sys/ioctl.h>
#endif

#define COMMAND(id, name, least, most, ...) {id, #name, cmd_##name, least, most, __VA_ARGS__},
#define FLAG(...)
#define TEXT(...)
#define CHOICE(...)
#define SIZE(...)
#define COUNT(...)
#define NUMBER(...)
#define PAIR(...)
#define LIST(...)
#define ALSO(...)
#define ALIAS(...)
const command commands[] = {
#include "options.def"
};
const size_t command_count = sizeof commands / sizeof *commands;

#define ROW(id, word, value, commands, help, ...)                                                            \
    {word, value, help, commands, __VA_ARGS__, .field = offsetof(cli_options, id)},
#define COMMAND(...)
#define FLAG(id, word, commands, help) ROW(id, word, NULL, commands, help, OPTION_FLAG)
#define TEXT(id, word, value, commands, help) ROW(id, word, value, commands, help, OPTION_TEXT)
#define CHOICE(id, word, value, commands, help) ROW(id, word, value, commands, help, OPTION_CHOICE)
#define SIZE(id, word, value, commands, help) ROW(id, word, value, commands, help, OPTION_SIZE)
#define COUNT(id, word, value, low, high, commands, help)                                                    \
    ROW(id, word, value, commands, help, OPTION_COUNT, .least = low, .most = high)
#define NUMBER(id, word, value, low, high, commands, help)                                                   \
    ROW(id, word, value, commands, help, OPTION_NUMBER, .least = low, .most = high)
#define PAIR(id, word, value, commands, help) ROW(id, word, value, commands, help, OPTION_PAIR)
#define LIST(id, word, value, high, commands, help)                                                          \
    ROW(id, word, value, commands, help, OPTION_LIST, .most = high)
#define ALSO(id, value, commands, help) ROW(id, NULL, value, commands, help, OPTION_FLAG)
#define ALIAS(...)
static const option_row written[] = {
#include "options.def"
};
enum { ROWS = sizeof written / sizeof *written };
static option_row rows[ROWS]; /* as written, ALSO completed from the row that it belongs to */

#define COMMAND(...)
#define FLAG(...)
#define TEXT(...)
#define CHOICE(...)
#define SIZE(...)
#define COUNT(...)
#define NUMBER(...)
#define PAIR(...)
#define LIST(...)
#define ALSO(...)
#define ALIAS(id, word) {word, offsetof(cli_options, id)},
static const struct {
    const char *word;
    size_t field;
} aliases[] = {
#include "options.def"
};

static void rows_complete(void)
{
    for (size_t i = 0; i < ROWS; i++) {
        rows[i] = written[i];
        for (size_t k = 0; !rows[i].word; k++) {
            if (rows[k].field != written[i].field) continue;
            rows[i] = rows[k];
            rows[i].value = written[i].value, rows[i].help = written[i].help;
            rows[i].commands = written[i].commands;
        }
    }
}

const option_row *option_next(const command *which, const option_row *before)
{
    if (!rows[0].word) rows_complete();
    for (const option_row *row = before ? before + 1 : rows; row < rows + ROWS; row++)
        if (row->commands & which->bit) return row;
    return NULL;
}

/* ---- engines ---- */

const oomsight_engine_words *engine_of(const cli_options *given)
{
    const oomsight_engine_words *found =
        oomsight_engine_of((const char *const *)given->words, (size_t)given->word_count);
    return found ? found : oomsight_engine_at(0);
}

typedef struct filled {
    char *text; /* of HELP_BYTES */
    size_t len;
} filled;

static void fill_put(filled *to, const char *words, size_t len)
{
    size_t const room = HELP_BYTES - 1 - to->len;
    if (len > room) len = room;
    memcpy(to->text + to->len, words, len);
    to->len += len;
}

static void fill_engines(filled *to, bool titles)
{
    const oomsight_engine_words *engine;
    for (size_t i = 0; (engine = oomsight_engine_at(i)); i++) {
        const char *between = !i                          ? ""
                              : oomsight_engine_at(i + 1) ? ", "
                                                          : " or ",
                   *name = titles ? engine->title : engine->name;
        fill_put(to, between, strlen(between));
        fill_put(to, name, strlen(name));
    }
}

const char *engines_fill(const char *text, char ret_text[HELP_BYTES])
{
    static const char *const marks[] = {"{engine}", "{title}", "{engines}", "{titles}"};
    const char *const of_first[] = {oomsight_engine_at(0)->name, oomsight_engine_at(0)->title};
    filled to = {ret_text, 0};
    while (*text) {
        size_t which = 0;
        while (which < ARRAY_COUNT(marks) && strncmp(text, marks[which], strlen(marks[which])) != 0) which++;
        if (which == ARRAY_COUNT(marks)) {
            fill_put(&to, text++, 1);
            continue;
        }
        if (which < ARRAY_COUNT(of_first))
            fill_put(&to, of_first[which], strlen(of_first[which]));
        else
            fill_engines(&to, which == 3);
        text += strlen(marks[which]);
    }
    ret_text[to.len] = '\0';
    return ret_text;
}

/* ---- typos ---- */

/* Letters to change, add or leave out to come from one word to the other. */
static unsigned distance(const char *a, const char *b)
{
    enum { MOST = 24 };
    unsigned row[MOST + 1];
    size_t const len = strlen(b);
    if (len > MOST || strlen(a) > MOST) return MOST;
    for (unsigned k = 0; k <= len; k++) row[k] = k;
    for (unsigned i = 1; a[i - 1]; i++) {
        unsigned corner = row[0];
        row[0] = i;
        for (size_t k = 1; k <= len; k++) {
            unsigned const kept = corner + (a[i - 1] != b[k - 1]),
                           other = row[k] < row[k - 1] ? row[k] : row[k - 1];
            corner = row[k];
            row[k] = kept <= other ? kept : other + 1;
        }
    }
    return row[len];
}

/* Is `candidate` nearer to `word` than what was found before, and is at most a third of its letters another? */
static bool nearer(const char *word, const char *candidate, unsigned *least)
{
    unsigned const far = distance(word, candidate), third = (unsigned)(strlen(word) + 2) / 3;
    if (far > third || far >= *least) return false;
    return *least = far, true;
}

const command *command_find(const char *name)
{
    const char *meant = NULL;
    unsigned least = UINT_MAX;
    for (size_t i = 0; i < command_count; i++) {
        if (strcmp(name, commands[i].name) == 0) return &commands[i];
        if (nearer(name, commands[i].name, &least)) meant = commands[i].name;
    }
    if (meant)
        complain("oomsight: no command '%s'; did you mean '%s'?", name, meant);
    else
        complain("oomsight: no command '%s'; 'oomsight help' lists them", name);
    return NULL;
}

static void tell_unknown(const command *which, const char *word)
{
    const char *meant = NULL;
    unsigned least = UINT_MAX;
    char *name = strndup(word, strcspn(word, "=")); /* without memory nothing is near */
    for (const option_row *row = NULL; name && word[0] == '-' && (row = option_next(which, row));)
        if (!(row->help && !*row->help) &&
            nearer(name + 2 * (strncmp(name, "--", 2) == 0), row->word + 2, &least))
            meant = row->word;
    free(name);
    if (meant)
        complain("oomsight %s: no option '%s'; did you mean '%s'?", which->name, word, meant);
    else
        complain("oomsight %s: no option '%s'%s", which->name, word,
                 which->most == BEHIND ? " (the command and its flags go behind '--')" : "");
}

/* ---- reading ---- */

const option_row *option_find(const command *which, const char *word)
{
    size_t const len = strcspn(word, "=");
    size_t field = SIZE_MAX;
    for (size_t i = 0; i < sizeof aliases / sizeof *aliases; i++)
        if (strlen(aliases[i].word) == len && strncmp(word, aliases[i].word, len) == 0)
            field = aliases[i].field;
    for (const option_row *row = NULL; (row = option_next(which, row));) {
        bool const named = strlen(row->word) == len && strncmp(word, row->word, len) == 0;
        if ((named || row->field == field) && (row->kind != OPTION_FLAG || !word[len])) return row;
    }
    return NULL;
}

/* "text, json or md" of "text|json|md" */
static void tell_choice(const command *which, const option_row *row, const char *value)
{
    char words[128];
    size_t used = 0;
    for (const char *at = row->value; *at && used + 5 < sizeof words; at++) {
        const char *const between = strchr(at + 1, '|') ? ", " : " or ";
        used += (size_t)snprintf(words + used, sizeof words - used, "%.*s", *at == '|' ? 4 : 1,
                                 *at == '|' ? between : at);
    }
    complain("oomsight %s: %s takes %s, not '%s'", which->name, row->word, words, value);
}

static bool is_choice(const char *choices, const char *value)
{
    size_t const len = strlen(value);
    for (const char *at = choices; len && (at = strstr(at, value)); at++)
        if ((at == choices || at[-1] == '|') && (!at[len] || at[len] == '|')) return true;
    return false;
}

/* False: not told yet. */
static bool take_number(const option_row *row, const char *value, number_option *ret)
{
    char *end;
    double const number = strtod(value, &end);
    if (end == value || *end || !(number >= row->least && number <= row->most)) return false;
    if (row->kind == OPTION_COUNT && number != floor(number)) return false;
    *ret = (number_option){true, number};
    return true;
}

/* False: told. */
static bool take_value(const command *which, const option_row *row, const char *value, cli_options *given)
{
    void *const to = (char *)given + row->field;
    switch (row->kind) {
    case OPTION_TEXT: return *(const char **)to = value, true;
    case OPTION_CHOICE:
        *(const char **)to = value;
        if (is_choice(row->value, value)) return true;
        tell_choice(which, row, value);
        return false;
    case OPTION_SIZE:
        ((size_option *)to)->text = value;
        if (oomsight_size_parse(value, &((size_option *)to)->bytes)) return true;
        complain("oomsight %s: %s takes a size with its unit, such as 23.5GiB, not '%s'", which->name,
                 row->word, value);
        return false;
    case OPTION_COUNT:
    case OPTION_NUMBER:
        if (take_number(row, value, to)) return true;
        complain("oomsight %s: %s takes a %snumber from %.0f to %.0f, not '%s'", which->name, row->word,
                 row->kind == OPTION_COUNT ? "whole " : "", row->least, row->most, value);
        return false;
    case OPTION_LIST: {
        size_t *const count = (size_t *)to - 1; /* stands in front of the list */
        if (*count < (size_t)row->most) return ((const char **)to)[(*count)++] = value, true;
        complain("oomsight %s: %s at most %.0f times", which->name, row->word, row->most);
        return false;
    }
    case OPTION_FLAG:
    case OPTION_PAIR: break;
    }
    return true;
}

/* *at moves past the option and its value. False: told. */
static bool take_option(const command *which, const option_row *row, int argc, char **argv, int *at,
                        cli_options *given)
{
    char *const equals = strchr(argv[*at], '=');
    int const more = equals || row->kind == OPTION_FLAG ? 0 : row->kind == OPTION_PAIR ? 2 : 1;
    if (*at + more >= argc || (row->kind == OPTION_PAIR && equals)) {
        complain("oomsight %s: %s needs %s: %s %s", which->name, row->word,
                 row->kind == OPTION_PAIR ? "two values" : "a value", row->word, row->value);
        return false;
    }
    const char *value = equals ? equals + 1 : argv[*at + more];
    if (row->kind == OPTION_FLAG)
        *((bool *)((char *)given + row->field)) = true;
    else if (row->kind == OPTION_PAIR)
        memcpy((char *)given + row->field, argv + *at + 1, 2 * sizeof *argv);
    else if (!take_value(which, row, value, given))
        return false;
    *at += more + 1;
    return true;
}

/* What the options and the terminal make of the answer. */
static void settle(cli_options *given)
{
    static const char *const formats[] = {"text", "json", "md", "html", "github", "sarif", "junit", "patch"};
    static const char *const whens[] = {"never", "always"};
    bool const terminal = !given->output && isatty(STDOUT_FILENO);
    const char *const plain = getenv("NO_COLOR");
    oomsight_render_params *render = &given->render;
    for (int i = 0; given->format && i <= OOMSIGHT_FORMAT_PATCH; i++)
        if (strcmp(given->format, formats[i]) == 0) render->format = (oomsight_format)i;
    if (given->json) render->format = OOMSIGHT_FORMAT_JSON;
    render->color = terminal && !(plain && *plain);
    for (int i = 0; given->color && i < 2; i++)
        if (strcmp(given->color, whens[i]) == 0) render->color = i;
    render->ascii = given->ascii;
    render->verbose = given->verbose;
    render->explain = given->explain;
    render->language = chosen_language = given->lang;
#ifdef TIOCGWINSZ
    struct winsize size;
    if (terminal && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= 60)
        render->width = size.ws_col < 120 ? size.ws_col : 120;
#endif
    if (given->insecure)
        setenv("OOMSIGHT_INSECURE", "1", 1); /* where the library looks, beside HF_TOKEN and HF_ENDPOINT */
}

void command_missing(const cli_options *given)
{
    char text[HELP_BYTES];
    fprintf(stderr, "oomsight %s: %s\n", given->command->name, engines_fill(given->command->missing, text));
}

static void print_help(const command *which);

int options_read(const command *which, int argc, char **argv, cli_options *ret_given)
{
    *ret_given = (cli_options){.command = which, .words = argv, .render = OOMSIGHT_RENDER_PARAMS_INIT};
    bool names = false; /* behind two dashes everything is a name */
    for (int at = 0; at < argc;) {
        bool const ends = !names && strcmp(argv[at], "--") == 0;
        if (ends || names || argv[at][0] != '-' || !argv[at][1]) {
            if (which->most == BEHIND) {
                ret_given->words = argv + at + ends;
                ret_given->word_count = argc - at - ends;
                break;
            }
            if (which->most == 0 && !ends) return tell_unknown(which, argv[at]), EXIT_USAGE;
            if (!ends) argv[ret_given->word_count++] = argv[at];
            names |= ends;
            at++;
            continue;
        }
        if (which->most > 0 && which->most != BEHIND && access(argv[at], F_OK) == 0) {
            complain("oomsight %s: '%s' is an option and also a file here: put -- before the names of files",
                     which->name, argv[at]);
            return EXIT_USAGE;
        }
        const option_row *row = option_find(which, argv[at]);
        if (!row) return tell_unknown(which, argv[at]), EXIT_USAGE;
        if (!take_option(which, row, argc, argv, &at, ret_given)) return EXIT_USAGE;
        if (ret_given->help) return print_help(which), EXIT_FITS;
    }
    settle(ret_given);
    if (ret_given->word_count > which->most) {
        complain("oomsight %s: '%s' is one word too many", which->name, ret_given->words[which->most]);
        return EXIT_USAGE;
    }
    if (ret_given->word_count >= which->least) return -1;
    command_missing(ret_given);
    return EXIT_USAGE;
}

/* ---- help ---- */

enum { HELP_COLUMNS = 100, HELP_INDENT = 24 };

/* Words of `text` from column `at` on, broken at HELP_COLUMNS where a gap is; lines after the first begin at `indent`. */
static void put_wrapped(const char *text, int at, int indent, char gap)
{
    for (bool first = true; *text; first = false) {
        int const len = (int)strcspn(text, (char[]){gap, '\n', '\0'});
        if (!first && at + 1 + len > HELP_COLUMNS) {
            printf("\n%*s", indent, "");
            at = indent;
        } else if (!first && at > indent)
            at += printf(" ");
        at += printf("%.*s", len, text);
        text += len;
        for (; *text == '\n'; text++, at = indent) putchar('\n');
        while (*text == gap) text++;
    }
}

static void print_help(const command *which)
{
    char text[HELP_BYTES];
    printf("usage: oomsight %s %s\n\n", which->name, engines_fill(which->usage, text));
    put_wrapped(engines_fill(which->about, text), 0, 0, ' ');
    fputs("\n\n", stdout);
    for (const option_row *row = NULL; (row = option_next(which, row));) {
        if (!row->help || !*row->help) continue;
        int at = printf("  %s%s%s", row->word, row->value ? " " : "", row->value ? row->value : "");
        if (at >= HELP_INDENT) at = 0, putchar('\n');
        printf("%*s", HELP_INDENT - at, "");
        put_wrapped(engines_fill(row->help, text), HELP_INDENT, HELP_INDENT, ' ');
        putchar('\n');
    }
    char last[1024] = "";
    for (const option_row *row = NULL; (row = option_next(which, row));)
        if (!row->help)
            snprintf(last + strlen(last), sizeof last - strlen(last), "%s%s%s%s", *last ? ",\a" : "",
                     row->word, row->value ? " " : "", row->value ? row->value : "");
    fputs("  ", stdout);
    put_wrapped(last, 2, 2, '\a');
    putchar('\n');
    if (!*which->exits) return;
    fputs("\nExit: ", stdout);
    put_wrapped(engines_fill(which->exits, text), 6, 0, ' ');
    putchar('\n');
}
