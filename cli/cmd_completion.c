/* oomsight completion: a script for the shell. The script asks `oomsight completion words` what could stand next, and that is answered
 * from cli/options.def and from what is known of GPUs, versions and flags. */
#include "cli.h"

#include <stdio.h>
#include <string.h>

extern const char completion_bash[], completion_zsh[], completion_fish[]; /* cli/completions */

static const struct {
    const char *shell, *script;
} scripts[] = {{"bash", completion_bash}, {"zsh", completion_zsh}, {"fish", completion_fish}};

/* Those of the words in `list`, divided by any of `between`, that begin as the one that is being typed. */
static void offer(const char *list, const char *between, const char *typed)
{
    while (*(list += strspn(list, between))) {
        size_t const len = strcspn(list, between);
        if (strncmp(list, typed, strlen(typed)) == 0) printf("%.*s\n", (int)len, list);
        list += len;
    }
}

static void offer_known(const cli_options *given, const char *what, const char *typed)
{
    oomsight_data *data = NULL;
    char *text = NULL;
    if (oomsight_data_open(given->data, &data, NULL) == OOMSIGHT_OK &&
        oomsight_data_render(data, what, &given->render, &text, NULL) == OOMSIGHT_OK)
        offer(text, "\n", typed);
    oomsight_text_free(text);
    oomsight_data_close(data);
}

static void offer_values(const cli_options *given, const option_row *row, const char *typed)
{
    const oomsight_engine_words *engine;
    if (strncmp(row->value, "NAME", 4) == 0 && strcmp(row->word, "--engine") == 0)
        for (size_t i = 0; (engine = oomsight_engine_at(i)); i++) offer(engine->name, " ", typed);
    else if (strcmp(row->word, "--gpu") == 0)
        offer_known(given, "gpu words", typed);
    else if (strcmp(row->value, "VERSION") == 0 || row->kind == OPTION_PAIR)
        offer_known(given, "version words", typed);
    else if (row->value[0] >= '0' && row->value[0] <= 'z' &&
             !strpbrk(row->value, "ABCDEFGHIJKLMNOPQRSTUVWXYZ"))
        offer(row->value, "|", typed);
}

static void offer_options(const command *which, const char *typed)
{
    for (const option_row *row = NULL; (row = option_next(which, row));)
        if (!row->help || *row->help) offer(row->word, " ", typed);
}

/* The words behind `oomsight`, of which the last is being typed. Nothing offered: the shell offers files. */
static void offer_next(const cli_options *given, char **words, int count)
{
    const char *const typed = words[count - 1];
    const command *which = NULL;
    for (size_t i = 0; i < command_count; i++) {
        if (count == 1) offer(commands[i].name, " ", typed);
        if (count > 1 && strcmp(words[0], commands[i].name) == 0) which = &commands[i];
    }
    if (count == 1) offer("help version", " ", typed);
    if (!which) return;
    const option_row *row = NULL;
    for (int i = 1; i + 1 < count; i++) {
        row = option_find(which, words[i]);
        if (strcmp(words[i], "--") == 0) {
            if (typed[0] == '-') offer_known(given, "flag words", typed);
            return;
        }
        if (row && (row->kind == OPTION_FLAG || strchr(words[i], '='))) row = NULL;
        if (row && i + 2 < count) i++, row = row->kind == OPTION_PAIR && i + 1 == count - 1 ? row : NULL;
    }
    if (row)
        offer_values(given, row, typed);
    else if (typed[0] == '-')
        offer_options(which, typed);
    else if (which->bit == KB && count == 2)
        offer("list show phases lint test", " ", typed);
    else if (which->bit == KB && count == 3 && strcmp(words[1], "phases") == 0)
        offer_known(given, "phase words", typed);
    else if (which->bit == COMPLETION && count == 2)
        offer("bash zsh fish", " ", typed);
}

int cmd_completion(cli_options *given)
{
    for (size_t i = 0; i < ARRAY_COUNT(scripts); i++)
        if (strcmp(given->words[0], scripts[i].shell) == 0) return output_write(given, scripts[i].script);
    if (strcmp(given->words[0], "words") == 0) {
        if (given->word_count > 1) offer_next(given, given->words + 1, given->word_count - 1);
        return EXIT_FITS;
    }
    command_missing(given);
    return EXIT_USAGE;
}
