/* oomsight learn: what the installed engines say of themselves, kept for plans of a release that is not known here. */
#include "cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* The device that is simulated: an H100. Flags and classes are the same on any. */
enum { DEVICES = 1, CAPABILITY = 90 };
#define DEVICE_BYTES 85017624576ull

static void said_free(oomsight_exact *said)
{
    free((char *)said->answer);
    free((char *)said->problem);
}

/* Small starts, once there is something to keep; what they tell stands in a second file in the place of the first. */
static oomsight_status probe(cli_options *given, const oomsight_data *data, const oomsight_question *asked,
                             const oomsight_exact *flags, char **text, oomsight_error *error)
{
    oomsight_question question = *asked;
    oomsight_asker asker = {0};
    oomsight_exact said = {0};
    char *more = NULL;
    int kept;
    question.probe = 1;
    question.watched = NULL;
    question.gpu = "h100";
    if (!plan_asker_open(given, data, &asker)) return OOMSIGHT_OK;
    asker.ask(asker.own, &question, &said);
    oomsight_status const status =
        oomsight_learned_keep(data, asked->engine, flags, &said, &kept, &more, error);
    said_free(&said);
    plan_asker_close(&asker);
    if (status != OOMSIGHT_OK) return status;
    free(*text);
    *text = more;
    return OOMSIGHT_OK;
}

static int learn_one(cli_options *given, const oomsight_data *data, const oomsight_engine_words *engine)
{
    oomsight_error error = {0};
    oomsight_asker asker = {0};
    oomsight_exact said = {0};
    char *text = NULL, *watched = NULL;
    int code = EXIT_INPUT, kept = 0;
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
    plan_asker_close(&asker);
    if (said.problem) {
        complain("oomsight learn: %s: %s", engine->title, said.problem);
    } else {
        oomsight_status status = oomsight_learned_keep(data, engine->name, &said, NULL, &kept, &text, &error);
        if (status == OOMSIGHT_OK && kept && given->probe)
            status = probe(given, data, &question, &said, &text, &error);
        code = output_give(given, status, text, &error);
    }
    said_free(&said);
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
    engines_fill(given->engine_count ? "{engines}" : "{titles}", names);
    if (given->engine_count)
        complain("oomsight learn: --engine takes %s", names);
    else if (given->python)
        complain("oomsight learn: %s is no Python with %s", given->python, names);
    else
        complain("oomsight learn: no Python with %s was found; name one with --python", names);
    return given->engine_count ? EXIT_USAGE : EXIT_INPUT;
}
