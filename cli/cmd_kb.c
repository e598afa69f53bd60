/* oomsight kb: what is known of error signatures. */
#include "cli.h"

#include <stdio.h>
#include <string.h>

static int print_help(void)
{
    fputs("usage: oomsight kb list | show ID | lint | test DIR\n\n"
          "  list      every record with its title\n"
          "  show ID   one record: mechanism, versions, what helps at which cost, what does not\n"
          "  lint      links, texts and patterns are sound\n"
          "  test DIR  every record is found in DIR/ID/positive.log and not in DIR/ID/negative.log\n\n"
          "  --json, --output FILE, --color, --data DIR, --lang en|zh; Chinese when LANG begins with zh\n",
          stdout);
    return 0;
}

static int show(const output_options *options, const oomsight_data *data, const char *id)
{
    oomsight_error error = {0};
    char *text = NULL;
    if (oomsight_kb_render(data, id, &options->render, &text, &error) != OOMSIGHT_OK)
        return fail_with(&error);
    int const code = output_write(options, text);
    oomsight_text_free(text);
    return code;
}

static int check(const output_options *options, const oomsight_data *data, const char *fixtures)
{
    oomsight_error error = {0};
    char *text = NULL;
    size_t problems = 0;
    if (oomsight_kb_check(data, fixtures, &problems, &text, &error) != OOMSIGHT_OK) return fail_with(&error);
    int const code = output_write(options, text);
    oomsight_text_free(text);
    return code != EXIT_FITS ? code : problems ? EXIT_DOES_NOT_FIT : EXIT_FITS;
}

int cmd_kb(int argc, char **argv)
{
    output_options options;
    output_options_init(&options);
    const char *words[2] = {0};
    size_t count = 0;
    for (int at = 0; at < argc;) {
        if (strcmp(argv[at], "--help") == 0) return print_help();
        int const taken = output_options_take(&options, argc, argv, &at);
        if (taken < 0) return EXIT_USAGE;
        if (taken > 0) continue;
        if (argv[at][0] == '-' || count == 2) {
            complain("oomsight kb: '%s' is not understood", argv[at]);
            return EXIT_USAGE;
        }
        words[count++] = argv[at++];
    }
    output_options_settle(&options);
    const char *what = count ? words[0] : "list";
    bool const needs_word = strcmp(what, "show") == 0 || strcmp(what, "test") == 0;
    bool const known = needs_word || strcmp(what, "list") == 0 || strcmp(what, "lint") == 0;
    if (!known || (needs_word && count < 2)) {
        fprintf(stderr, "oomsight kb: list, show ID, lint, or test DIR\n");
        return EXIT_USAGE;
    }

    oomsight_error error = {0};
    oomsight_data *data = NULL;
    if (oomsight_data_open(options.data_dir, &data, &error) != OOMSIGHT_OK) return fail_with(&error);
    int code;
    if (strcmp(what, "lint") == 0 || strcmp(what, "test") == 0)
        code = check(&options, data, words[1]);
    else
        code = show(&options, data, words[1]);
    oomsight_data_close(data);
    return code;
}
