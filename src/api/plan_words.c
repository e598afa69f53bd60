/* The command of a plan: which engine it starts, its words, and the release. */
#include "api/api.h"
#include "base/file.h"
#include "command/command.h"

#include <string.h>

/* NAME=value words of the environment, as if they stood before the command. */
static oomsight_status command_words(oos_arena *arena, const oomsight_plan_params *params,
                                     const char *const **ret_words, size_t *ret_count, oomsight_error *reterr)
{
    size_t const count = params->environment_count + params->command_count;
    const char **words = OOS_NEW_ARRAY(arena, const char *, count);
    if (!words) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the command");
    for (size_t i = 0; i < params->environment_count; i++) words[i] = params->environment[i];
    for (size_t i = 0; i < params->command_count; i++)
        words[params->environment_count + i] = params->command[i];
    *ret_words = words;
    *ret_count = count;
    return OOMSIGHT_OK;
}

oomsight_status oos_api_engine_known(const char *name, oomsight_error *reterr)
{
    if (!name || oos_engine_words_find(name)) return OOMSIGHT_OK;
    oos_fail(reterr, OOMSIGHT_USAGE, "no engine is called '%s'; %s are planned", name, oos_engine_titles());
    return oos_fail_of(reterr, OOMSIGHT_USAGE, "engine");
}

/* Of another program nothing is known, so nothing is planned. */
static oomsight_status engine_is_planned(const char *const *words, size_t word_count, oomsight_error *reterr)
{
    const char *other = oos_engine_other_of(words, word_count);
    if (!other) return OOMSIGHT_OK;
    return oos_fail(reterr, OOMSIGHT_UNSUPPORTED, "the command starts %s, which is not planned here (%s are)",
                    other, oos_engine_titles());
}

/* The engine that is asked for, or the one whose command it is. */
static oomsight_status engine_find(oomsight_plan *plan, const oomsight_plan_params *params,
                                   const char *const *words, size_t word_count, oomsight_error *reterr)
{
    OOS_TRY(oos_api_engine_known(params->engine, reterr));
    plan->engine = oos_engine_asked(params->engine, words, word_count);
    return oos_api_facts(params->data, plan->engine, &plan->facts, reterr);
}

/* `--engine sglang -- MODEL ...`: what does not start the engine is what it is started with. */
static oomsight_status words_begin(oos_arena *arena, const oos_engine *engine, const char *const **words,
                                   size_t *word_count, oomsight_error *reterr)
{
    oos_serve_entry entry;
    size_t bare = 0; /* behind NAME=value words; keywords of LLM(...) are of that form, too */
    while (bare < *word_count && strpbrk((*words)[bare], "=(")) bare++;
    if (bare == *word_count) return OOMSIGHT_OK;
    for (size_t i = 0; i < *word_count; i++)
        if (engine->dialect->entry_at(*words, *word_count, i, &entry)) return OOMSIGHT_OK;
    const char **list = OOS_NEW_ARRAY(arena, const char *, *word_count + 2);
    if (!list) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the command");
    memcpy(list, *words, bare * sizeof *list);
    list[bare] = engine->words->name;
    list[bare + 1] = "serve";
    memcpy(list + bare + 2, *words + bare, (*word_count - bare) * sizeof *list);
    *words = list;
    *word_count += 2;
    return OOMSIGHT_OK;
}

/* An id or a folder, and nothing but flags behind it: people who ask about a model have no command yet. */
static bool is_model_alone(const char *const *words, size_t count)
{
    size_t at = 0;
    while (at < count && strchr(words[at], '=')) at++;
    return at < count && words[at][0] != '-' && strchr(words[at], '/') && !strpbrk(words[at], "( ") &&
           (at + 1 == count || words[at + 1][0] == '-');
}

static bool knows_flags(const oos_flag_table *table, oos_version version, const char *const *words,
                        size_t count)
{
    for (size_t i = 0; i < count; i++) {
        oos_view const name = {words[i], strcspn(words[i], "=")};
        if (strncmp(words[i], "--", 2) == 0 && !oos_flags_find(table, name, version).record) return false;
    }
    return true;
}

static oos_version newest(const oos_rule_book *book)
{
    const oos_version *versions;
    size_t const count = oos_rule_book_versions(book, &versions);
    return versions[count - 1];
}

/* The engine in whose words the command is: the one it starts; of a model and flags alone the one that is asked for, if it knows
 * them all, or the first that does. */
static oomsight_status spoken_find(const oomsight_plan *plan, const oomsight_plan_params *params,
                                   const char *const *words, size_t word_count, const oos_engine **ret_engine,
                                   const oos_engine_facts **ret_facts, oomsight_error *reterr)
{
    const oos_engine_words *named = oos_engine_words_of(words, word_count);
    *ret_engine = named ? oos_engine_find(named) : plan->engine;
    *ret_facts = plan->facts;
    if (named) return oos_api_facts(params->data, *ret_engine, ret_facts, reterr);
    if (knows_flags(&plan->facts->flags, newest(plan->facts->rules), words, word_count)) return OOMSIGHT_OK;
    for (size_t i = 0; i < OOS_ENGINE_COUNT; i++) {
        const oos_engine *other = oos_engine_find(oos_engine_list[i]);
        const oos_engine_facts *facts;
        OOS_TRY(oos_api_facts(params->data, other, &facts, reterr));
        if (!knows_flags(&facts->flags, newest(facts->rules), words, word_count)) continue;
        *ret_engine = other;
        *ret_facts = facts;
        break;
    }
    return OOMSIGHT_OK;
}

/* The command in the words of the engine that is asked for. `plan->translation` has what can't be said there. */
static oomsight_status words_translate(oomsight_plan *plan, const oomsight_plan_params *params,
                                       const char *const **words, size_t *word_count, oomsight_error *reterr)
{
    const oos_engine *spoken;
    const oos_engine_facts *facts;
    OOS_TRY(spoken_find(plan, params, *words, *word_count, &spoken, &facts, reterr));
    if (spoken == plan->engine) {
        if (oos_engine_words_of(*words, *word_count)) return OOMSIGHT_OK;
        return words_begin(plan->arena, plan->engine, words, word_count, reterr);
    }
    oos_serve serve;
    oos_engine_env env;
    OOS_TRY(words_begin(plan->arena, spoken, words, word_count, reterr));
    OOS_TRY(oos_serve_read_as(spoken->dialect, plan->arena, *words, *word_count, &facts->flags,
                              newest(facts->rules), &serve, &env, reterr));
    OOS_TRY(oos_translate(plan->arena, params->data->dir, spoken, &serve, plan->engine, &plan->translation,
                          reterr));
    *words = plan->translation.words;
    *word_count = plan->translation.count;
    return OOMSIGHT_OK;
}

oomsight_status oos_ask_words(oomsight_plan *plan, oos_plan_ask *ask, oomsight_error *reterr)
{
    const oomsight_plan_params *params = ask->params;
    OOS_TRY(command_words(plan->arena, params, &ask->words, &ask->word_count, reterr));
    if (!oos_wrapped_open(plan->arena, ask->words, ask->word_count, &ask->words, &ask->word_count))
        return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the command");
    OOS_TRY(engine_is_planned(ask->words, ask->word_count, reterr));
    OOS_TRY(engine_find(plan, params, ask->words, ask->word_count, reterr));
    if (!params->engine && !is_model_alone(ask->words, ask->word_count)) return OOMSIGHT_OK;
    return words_translate(plan, params, &ask->words, &ask->word_count, reterr);
}

/* "vllm-0.34.0-0a1b2c3d4e5f.json", by the list of files that its installation left; NULL: there is none. */
static const char *learned_name(oomsight_plan *plan, const oos_machine *machine, const char *installed)
{
    enum { RECORD_BYTES_MAX = 64 << 20 };
    char hash[65];
    oos_view record;
    oos_sha256 sum;
    const char *engine = plan->engine->words->name;
    const char *path = oos_arena_format(plan->arena, "%s/%s-%s.dist-info/RECORD", machine->installed.folder,
                                        engine, installed);
    oos_arena *own = oos_arena_create(4096);
    bool const read = own && path && oos_file_read(own, path, RECORD_BYTES_MAX, &record, NULL) == OOMSIGHT_OK;
    if (read) {
        oos_sha256_init(&sum);
        oos_sha256_add(&sum, record.ptr, record.len);
        oos_sha256_hex(&sum, hash);
    }
    oos_arena_free(own);
    oos_learned const is = {.release = oos_view_of(installed), .package = oos_view_of(read ? hash : "")};
    return oos_learned_name(plan->arena, engine, &is);
}

/* "0.33.0+ours"; builds for a CUDA, as "+cu129", are the release. */
static bool is_changed(const char *installed)
{
    const char *label = strchr(installed, '+');
    return label && strncmp(label, "+cu", 3) != 0 && strncmp(label, "+cpu", 4) != 0;
}

/* What the installed engine takes, where `oomsight learn` has read it. `installed` NULL: it is not here. */
static oomsight_status learned_take(oomsight_plan *plan, oos_plan_ask *ask, const char *installed,
                                    oomsight_error *reterr)
{
    oos_learned learned;
    const char *name = installed ? learned_name(plan, ask->machine, installed) : NULL;
    oos_version const version = plan->start.version;
    bool const found =
        ask->learned || ((name || !installed) &&
                         oos_learned_find(plan->arena, plan->engine->words->name, version, name, &learned));
    if (ask->learned) learned = *ask->learned;
    oos_engine_facts *own = found ? OOS_NEW(plan->arena, oos_engine_facts) : NULL;
    if (found && !own) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for flags");
    if (own) *own = *plan->facts;
    oos_learned_terms *terms = found && learned.terms.here ? OOS_NEW(plan->arena, oos_learned_terms) : NULL;
    if (terms) *terms = learned.terms;
    if (own && oos_flags_load_learned(plan->arena, ask->params->data->dir, plan->engine->words->name,
                                      &learned, &own->flags, NULL) == OOMSIGHT_OK) {
        own->terms = terms;
        own->architectures = learned.architectures;
        own->quantization = learned.quantization;
        plan->facts = own;
        if (ask->newer) ask->compared = learned;
        ask->newer =
            !ask->newer ? "This build is not the release of its number: its flags were read from it, the "
                          "rules are those of the release."
            : terms ? "This version is newer than any supported one: its flags were read from the installed "
                      "engine and its memory from small starts of it, the rules are those of the latest "
                      "supported version."
                    : "This version is newer than any supported one: its flags were read from the installed "
                      "engine, the rules are those of the latest supported version. `oomsight learn --probe` "
                      "measures its memory.";
    } else if (installed && ask->newer) {
        ask->newer =
            "This version is newer than any supported one: the rules of the latest supported version "
            "are used. `oomsight learn` reads its flags.";
    }
    return OOMSIGHT_OK;
}

/* The release that is asked for, that of the image in the command, the one installed here, or the newest known. */
oomsight_status oos_ask_release(oomsight_plan *plan, oos_plan_ask *ask, oomsight_error *reterr)
{
    const char *image = oos_wrapped_version(plan->arena, ask->words, ask->word_count);
    bool const here = ask->machine && oos_wrapped_container(ask->words, ask->word_count) == ask->word_count;
    const char *installed = ask->answer && ask->answer->version ? ask->answer->version
                            : here
                                ? oos_installed_version(&ask->machine->installed, plan->engine->words->name)
                                : NULL;
    const oos_version *versions;
    size_t const count = oos_rule_book_versions(plan->facts->rules, &versions);
    oos_version version = versions[count - 1];
    const char *given = ask->params->engine_version;
    if (!given && image && strcmp(image, "nightly") == 0) given = image;
    bool nightly = given && strcmp(given, "nightly") == 0;
    bool const moving = nightly || (given && strcmp(given, "latest") == 0);
    const char *said = given;
    if (!given || moving) {
        ask->release_from = "latest supported";
        if (moving)
            given = NULL;
        else if (image && oos_version_parse(oos_view_of(image), &version))
            ask->release_from = "from the command", said = image;
        else if (installed && oos_version_parse(oos_view_of(installed), &version))
            ask->release_from = "installed here", said = installed;
    }
    /* 0.32.1.dev12 is what followed 0.32.0. */
    if (said && version == versions[count - 1] && strstr(said, ".dev")) nightly = true;
    if (given && !oos_version_parse(oos_view_of(given), &version))
        return oos_fail(reterr, OOMSIGHT_USAGE, "'%s' is not a version such as 0.19.1, latest or nightly",
                        given);
    if (given && strchr(given, ','))
        return oos_fail(reterr, OOMSIGHT_USAGE, "'%s': a plan is for one version", given);
    OOS_TRY(oos_rule_book_reaches(plan->facts->rules, version, reterr));
    if (version > versions[count - 1])
        ask->newer = "This version is newer than any supported one: the rules of the latest supported "
                     "version are used.";
    else if (nightly)
        ask->newer = "A nightly build is newer than any supported version: the rules of the latest supported "
                     "release are used.";
    plan->start.version = version;
    plan->release_named = said && said != installed;
    plan->start.beyond = oos_rule_book_beyond(plan->facts->rules, version);
    if (nightly) plan->start.beyond = (unsigned)oos_max(plan->start.beyond, 1);
    oos_version is = 0;
    bool const is_here =
        installed && ask->machine && oos_version_parse(oos_view_of(installed), &is) && is == version;
    bool const changed = is_here && version == versions[count - 1] && is_changed(installed);
    if (!ask->newer && !changed && !ask->learned) return OOMSIGHT_OK;
    return learned_take(plan, ask, is_here ? installed : NULL, reterr);
}
