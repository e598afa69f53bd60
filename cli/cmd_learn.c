/* oomsight learn: what the installed engines say of themselves, kept for plans of a release that is not known here. */
#include "cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* The device that is simulated: an H100. Flags and classes are the same on any. */
enum { DEVICES = 1, CAPABILITY = 90 };
#define DEVICE_BYTES 85017624576ull

static int learn_one(cli_options *given, const oomsight_data *data, const oomsight_engine_words *engine)
{
    oomsight_error error = {0};
    oomsight_asker asker = {0};
    oomsight_exact said = {0};
    char *text = NULL, *watched = NULL;
    int code = EXIT_INPUT;
    if (oomsight_learn_watched(data, engine->name, &watched, &error) != OOMSIGHT_OK) return fail_with(&error);
    oomsight_question const question = {.engine = engine->name,
                                        .title = engine->title,
                                        .total_bytes = DEVICE_BYTES,
                                        .capability = CAPABILITY,
                                        .count = DEVICES,
                                        .watched = watched};
    if (!plan_asker_open(given, data, &asker)) {
        free(watched);
        return EXIT_OUR_FAULT;
    }
    asker.ask(asker.own, &question, &said);
    if (said.problem) {
        complain("oomsight learn: %s: %s", engine->title, said.problem);
    } else {
        oomsight_status const status =
            oomsight_learned_keep(data, engine->name, said.answer, said.answer_bytes, &text, &error);
        code = output_give(given, status, text, &error);
    }
    free((char *)said.answer);
    free((char *)said.problem);
    plan_asker_close(&asker);
    free(watched);
    return code;
}

static bool is_wanted(const cli_options *given, const oomsight_engine_words *engine)
{
    for (size_t i = 0; i < given->engine_count; i++)
        if (strcmp(given->engine[i], engine->name) == 0) return true;
    return !given->engine_count && plan_asker_has(given, engine->name);
}

int cmd_learn(cli_options *given)
{
    oomsight_error error = {0};
    oomsight_data *data = NULL;
    const oomsight_engine_words *engine;
    int code = EXIT_FITS;
    size_t asked = 0;
    if (oomsight_data_open(given->data, &data, &error) != OOMSIGHT_OK) return fail_with(&error);
    umask(077);
    for (size_t i = 0; (engine = oomsight_engine_at(i)); i++) {
        if (!is_wanted(given, engine)) continue;
        int const one = learn_one(given, data, engine);
        if (one > code) code = one;
        asked++;
    }
    oomsight_data_close(data);
    if (asked) return code;
    char names[HELP_BYTES];
    complain(given->engine_count ? "oomsight learn: --engine takes %s"
                                 : "oomsight learn: no Python with %s was found; name one with --python",
             engines_fill(given->engine_count ? "{engines}" : "{titles}", names));
    return given->engine_count ? EXIT_USAGE : EXIT_INPUT;
}
