/* The public face of planning: words in, a plan out. */
#include "api/api.h"
#include "base/ascii.h"
#include "base/check.h"
#include "base/shown.h"
#include "base/text.h"
#include "command/variables.h"
#include "command/wrapped.h"
#include "engines/translate.h"
#include "plan/doubt.h"
#include "report/html.h"
#include "report/plan.h"

#include <stdlib.h>
#include <string.h>

struct oomsight_plan {
    oos_arena *arena;
    oomsight_model *own_model; /* NULL when the caller brought one */
    oomsight_model *draft;
    const oos_engine *engine;
    const oos_engine_facts *facts;
    oos_serve serve;
    oos_engine_env env;
    oos_start start;
    oos_plan plan;
    oos_translation translation; /* count 0: the command was in this engine's words */
    const char **fix_flags;      /* of each fix; formed once: accessors change nothing */
};

static bool capability_parse(const char *text, unsigned *ret_capability)
{
    char *end;
    unsigned long const major = strtoul(text, &end, 10);
    if (end == text || major > 99) return false;
    unsigned minor = 0;
    if (*end == '.') {
        if (!oos_is_digit(end[1]) || end[2]) return false;
        minor = (unsigned)(end[1] - '0');
    } else if (*end || major < 10) {
        return false;
    } else { /* "90": no dot */
        *ret_capability = (unsigned)major;
        return true;
    }
    *ret_capability = (unsigned)major * 10 + minor;
    return true;
}

/* A device known by nothing but its size: the known one of that size, if there is one within half a percent. */
static const oos_gpu *nearest_by_total(const oos_gpus *gpus, uint64_t total_bytes)
{
    const oos_gpu *best = NULL;
    uint64_t best_distance = total_bytes / 200;
    for (size_t i = 0; i < gpus->count; i++) {
        uint64_t const known = gpus->list[i].total_bytes;
        uint64_t const distance = known > total_bytes ? known - total_bytes : total_bytes - known;
        if (gpus->list[i].slice || distance > best_distance) continue;
        if (best && distance == best_distance) continue;
        best = &gpus->list[i];
        best_distance = distance;
    }
    return best;
}

oomsight_status oos_api_unknown_gpu(const oomsight_data *data, const char *word, oomsight_error *reterr)
{
    const char *names[3];
    size_t const count = oos_gpus_suggest(&data->gpus, oos_view_of(word), names, 3);
    if (count == 0)
        return oos_fail(
            reterr, OOMSIGHT_USAGE,
            "no GPU is called '%s' ('oomsight gpus' lists them; or give --gpu-total and --gpu-cc)", word);
    return oos_fail(reterr, OOMSIGHT_USAGE, "no GPU is called '%s'; did you mean %s%s%s?", word, names[0],
                    count > 1 ? " or " : "", count > 1 ? names[1] : "");
}

/* --gpu all: which of them does it take? Planned for the one with most memory, then for each. */
static bool is_every_gpu(const oomsight_plan_params *params)
{
    return params->gpu && strcmp(params->gpu, "all") == 0;
}

static const oos_gpu *largest_gpu(const oos_gpus *gpus)
{
    const oos_gpu *best = NULL;
    for (size_t i = 0; i < gpus->count; i++)
        if (!gpus->list[i].slice && gpus->list[i].memory == OOS_MEMORY_HBM &&
            (!best || gpus->list[i].total_bytes > best->total_bytes))
            best = &gpus->list[i];
    return best;
}

/* "h100x1" or "1xh100": one and no more. */
static bool says_one(const char *word)
{
    size_t const len = word ? strlen(word) : 0;
    return len > 2 && ((oos_lower(word[len - 2]) == 'x' && word[len - 1] == '1') ||
                       (word[0] == '1' && oos_lower(word[1]) == 'x'));
}

/* Of the known devices that go by this name the one with that much memory: a card with twice the chips has the name of the others. */
static const oos_gpu *known_device(const oos_gpus *gpus, const oos_machine_device *seen)
{
    uint64_t count;
    const oos_gpu *best = seen->name[0] ? oos_gpus_find(gpus, oos_view_of(seen->name), &count) : NULL;
    if (!best || !seen->memory_known) return best;
    for (size_t i = 0; i < gpus->count; i++) {
        const oos_gpu *gpu = &gpus->list[i];
        uint64_t const whole = gpu->slice ? gpu->total_bytes : gpu->nvml_total_bytes,
                       best_whole = best->slice ? best->total_bytes : best->nvml_total_bytes;
        if (strcmp(gpu->name, best->name) == 0 &&
            oos_far(whole, seen->total_bytes) < oos_far(best_whole, seen->total_bytes))
            best = gpu;
    }
    return best;
}

/* The first device that an engine would take here, and as many as are like it. */
static void device_here(const oomsight_plan_params *params, const oos_machine *machine,
                        oos_device_facts *ret_device)
{
    const oos_machine_device *seen = oos_machine_taken(machine, 0);
    const oos_gpu *gpu = known_device(&params->data->gpus, seen);
    unsigned count = 1;
    while (oos_machine_taken(machine, count)) count++;
    oos_device_facts device = oos_device_of_gpu(gpu, count, params->host_ram_bytes);
    device.count_given = true;
    if (!gpu) device.name = seen->name;
    if (!gpu && seen->capability) device.capability = seen->capability;
    uint64_t const whole = gpu && !gpu->slice ? gpu->nvml_total_bytes : device.total_bytes;
    if (seen->memory_known &&
        oos_far(whole, seen->total_bytes) > whole / 50) { /* none that is known: as NVML says */
        device.total_bytes = seen->total_bytes - oos_min(seen->reserved_bytes, seen->total_bytes);
        device.total_low = device.total_high = device.total_bytes;
        device.nvml_total_bytes = seen->total_bytes;
    }
    *ret_device = device;
}

static oomsight_status device_find(const oomsight_plan_params *params, const oos_machine *machine,
                                   oos_device_facts *ret_device, const char **ret_note,
                                   oomsight_error *reterr)
{
    oos_device_facts device = {.count = 1};
    const oos_gpu *gpu = NULL;
    bool const here = !params->gpu && !params->gpu_total_bytes && machine && oos_machine_taken(machine, 0);
    if (here) {
        device_here(params, machine, &device);
    } else if (params->gpu) {
        gpu = is_every_gpu(params)
                  ? largest_gpu(&params->data->gpus)
                  : oos_gpus_find(&params->data->gpus, oos_view_of(params->gpu), &device.count);
        if (!gpu) return oos_api_unknown_gpu(params->data, params->gpu, reterr);
    } else if (!params->gpu_total_bytes) {
        return oos_fail(reterr, OOMSIGHT_USAGE,
                        "which GPU? Give --gpu NAME (for example --gpu 4090) or --gpu-total SIZE");
    } else if (!params->compute_capability) {
        gpu = nearest_by_total(&params->data->gpus, params->gpu_total_bytes);
        *ret_note = gpu ? "no --gpu was given: taken for the known device of that size"
                        : "no --gpu was given: compute capability 8.0 is assumed";
    }
    if (!here) {
        device = oos_device_of_gpu(gpu, device.count, params->host_ram_bytes);
        device.count_given = device.count > 1 || says_one(params->gpu);
    }
    if (params->gpu_total_bytes)
        device.total_bytes = device.total_low = device.total_high = params->gpu_total_bytes;
    if (!here && (!gpu || !params->gpu)) device.nvml_total_bytes = device.total_bytes;
    device.used_bytes = params->gpu_used_bytes;
    device.used_known = params->gpu_used_known != 0;
    if (params->compute_capability && !capability_parse(params->compute_capability, &device.capability))
        return oos_fail(reterr, OOMSIGHT_USAGE, "'%s' is not a compute capability such as 9.0",
                        params->compute_capability);
    *ret_device = device;
    return OOMSIGHT_OK;
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
    const oos_engine_words *named =
        params->engine ? oos_engine_words_find(params->engine) : oos_engine_words_of(words, word_count);
    if (params->engine && !named)
        return oos_fail(reterr, OOMSIGHT_USAGE, "no engine is called '%s'; %s are planned", params->engine,
                        oos_engine_titles());
    plan->engine = oos_engine_find(named ? named : oos_engine_default);
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
        const oos_engine *other = oos_engine_find(&oos_engine_list[i]);
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

/* The release that is asked for, that of the image in the command, the one installed here, or the newest known. */
static oomsight_status version_find(const oomsight_plan_params *params, const oos_rule_book *book,
                                    const char *image_version, const char *installed_version,
                                    oos_version *ret_version, const char **ret_assumed,
                                    const char **ret_newer, oomsight_error *reterr)
{
    const oos_version *versions;
    size_t const count = oos_rule_book_versions(book, &versions);
    oos_version version = versions[count - 1];
    const char *given = params->engine_version;
    bool const moving = given && (strcmp(given, "latest") == 0 || strcmp(given, "nightly") == 0);
    if (!given || moving) {
        *ret_assumed = "the newest known";
        if (moving)
            given = NULL;
        else if (image_version && oos_version_parse(oos_view_of(image_version), &version))
            *ret_assumed = "by the tag of the image";
        else if (installed_version && oos_version_parse(oos_view_of(installed_version), &version))
            *ret_assumed = "as installed here";
    }
    if (given && !oos_version_parse(oos_view_of(given), &version))
        return oos_fail(reterr, OOMSIGHT_USAGE, "'%s' is not a version such as 0.19.1, latest or nightly",
                        given);
    if (given && strchr(given, ','))
        return oos_fail(reterr, OOMSIGHT_USAGE, "'%s': a plan is for one version", given);
    OOS_TRY(oos_rule_book_reaches(book, version, reterr));
    if (version > versions[count - 1])
        *ret_newer = "This version is newer than any known here: the rules of the newest known one are used.";
    else if (moving && strcmp(params->engine_version, "nightly") == 0)
        *ret_newer =
            "A nightly build is newer than any known here: the rules of the newest known release are used.";
    *ret_version = version;
    return OOMSIGHT_OK;
}

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

static oomsight_status models_open(oomsight_plan *plan, const oomsight_plan_params *params,
                                   const char *const *words, size_t word_count, const oos_model **ret_model,
                                   const oos_model **ret_draft, oomsight_error *reterr)
{
    *ret_model = params->model ? &params->model->model : NULL;
    if (!*ret_model) {
        if (!plan->serve.model) return oos_fail(reterr, OOMSIGHT_USAGE, "the command names no model");
        const char *name = oos_wrapped_path(plan->arena, words, word_count, plan->serve.model);
        if (name && plan->serve.revision)
            name = oos_arena_format(plan->arena, "%s@%s", name, plan->serve.revision);
        if (!name) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a name");
        OOS_TRY(oos_api_model_open(params->data, name, params->allow_hub, plan->serve.hf_overrides_json,
                                   &plan->own_model, reterr));
        *ret_model = &plan->own_model->model;
    }
    *ret_draft = NULL;
    if (plan->serve.speculative.present && plan->serve.speculative.model) {
        OOS_TRY(oos_api_model_open(params->data, plan->serve.speculative.model, params->allow_hub, NULL,
                                   &plan->draft, reterr));
        *ret_draft = &plan->draft->model;
    }
    return OOMSIGHT_OK;
}

enum { NOTES_MAX = 64, ASSUMED_MAX = 8 };

static void note(const char **notes, size_t *count, const char *text)
{
    if (text && *count < NOTES_MAX) notes[(*count)++] = text;
}

/* Who holds what of the device that has least left, the largest first. */
static const char *holders_told(oos_arena *arena, const oos_machine_device *device, uint64_t held_bytes)
{
    oos_text text = {0};
    char size[32];
    oos_size_print(held_bytes, size, sizeof size);
    oos_text_printf(&text, "%s of it are held by others", size);
    unsigned told = 0;
    for (unsigned i = 0; i < device->holder_count && told < 3; i++) {
        const oos_holder *holder = &device->holders[i];
        if (!holder->bytes.known || !holder->bytes.value) continue;
        oos_size_print(holder->bytes.value, size, sizeof size);
        oos_text_printf(&text, "%s%s (process %u) %s", told++ ? ", " : ": ",
                        holder->name[0] ? oos_shown(arena, holder->name) : "?", holder->pid, size);
    }
    const char *copy = text.failed ? NULL : oos_arena_copy(arena, (oos_view){text.ptr, text.len});
    oos_text_free(&text);
    return copy;
}

/* Of the devices that the command takes the one that has least left decides. */
static const char *held_here(oos_arena *arena, const oos_machine *machine, uint64_t ranks,
                             oos_device_facts *device)
{
    const oos_machine_device *fullest = NULL, *d;
    for (unsigned i = 0; i < ranks && (d = oos_machine_taken(machine, i)); i++)
        if (d->memory_known && (!fullest || d->used_bytes > fullest->used_bytes)) fullest = d;
    if (!fullest) return NULL;
    device->used_bytes = oos_machine_held(fullest, device->total_bytes);
    device->used_known = true;
    return device->used_bytes >= OOS_MIB ? holders_told(arena, fullest, device->used_bytes) : NULL;
}

static void assume(oos_plan *plan, const char **list, const char *text)
{
    if (text && plan->assumed_count < ASSUMED_MAX) list[plan->assumed_count++] = text;
}

/* What stands in the first lines. `release` says where it comes from. */
static oomsight_status assumed_gather(oomsight_plan *plan, const char *gpu, const char *held,
                                      const char *release, oomsight_error *reterr)
{
    const char **list = OOS_NEW_ARRAY(plan->arena, const char *, ASSUMED_MAX);
    if (!list) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the notes");
    plan->plan.assumed = list;
    assume(&plan->plan, list, gpu);
    assume(&plan->plan, list, held);
    if (plan->plan.asked)
        assume(&plan->plan, list,
               oos_arena_format(plan->arena, "the command in the words of %s: `%s`", plan->plan.engine->title,
                                plan->plan.asked));
    if (plan->start.model && plan->start.model->from_catalogue)
        assume(&plan->plan, list, "the model's config of the catalogue");
    uint64_t const ranks = plan->engine->ranks(&plan->serve), count = plan->start.device.count;
    uint64_t const each = count / oos_max(1, plan->plan.setup->pp);
    if (count > ranks && plan->plan.setup->dp <= 1)
        assume(&plan->plan, list,
               oos_arena_format(
                   plan->arena,
                   (each & (each - 1)) == 0 ? "%llu of %llu GPUs (--tensor-parallel-size %llu uses all)"
                                            : "%llu of %llu GPUs",
                   (unsigned long long)ranks, (unsigned long long)count, (unsigned long long)each));
    if (release)
        assume(&plan->plan, list,
               oos_arena_format(plan->arena, "%s %s, %s", plan->plan.engine->title, plan->plan.engine_version,
                                release));
    return OOMSIGHT_OK;
}

/* What becomes of each environment variable that does not enter the plan. */
static void variables_note(oomsight_plan *plan, const char **notes, size_t *count)
{
    char version[32];
    oos_version_print(plan->start.version, version, sizeof version);
    for (size_t i = 0; i < plan->env.variable_count; i++) {
        const oos_given_variable *v = &plan->env.variables[i];
        if (v->effect == OOS_ENV_ABSENT)
            note(notes, count,
                 oos_arena_format(plan->arena, "%s is no variable of %s %s: it has no effect%s", v->name,
                                  plan->engine->words->title, version,
                                  v->logged ? ", and the engine logs it as unknown" : ""));
        else if (v->effect == OOS_ENV_UNMODELLED && v->why)
            note(notes, count,
                 oos_arena_format(plan->arena, "%s can move memory but is not modelled (%s)", v->name,
                                  v->why));
        else if (v->effect == OOS_ENV_UNMODELLED)
            note(notes, count,
                 oos_arena_format(plan->arena, "%s: whether it moves memory is not known", v->name));
    }
}

/* What is not modelled, what the user may have mistyped. */
static oomsight_status notes_gather(oomsight_plan *plan, oomsight_error *reterr)
{
    const char **notes = OOS_NEW_ARRAY(plan->arena, const char *, NOTES_MAX);
    if (!notes) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the notes");
    size_t count = 0;
    const oos_setup *setup = plan->plan.setup;
    for (size_t i = 0; i < plan->translation.left_out_count; i++)
        note(notes, &count, plan->translation.left_out[i]);
    for (size_t i = 0; i < setup->model->note_count; i++) note(notes, &count, setup->model->notes[i]);
    for (size_t i = 0; i < setup->note_count; i++) note(notes, &count, setup->notes[i]);
    if (plan->plan.backend.reason && !plan->plan.backend.forced && !plan->plan.backend.refused)
        note(notes, &count,
             oos_arena_format(plan->arena, "attention backend %s: %s", plan->plan.backend.name,
                              plan->plan.backend.reason));
    if (setup->device.count > 1 && setup->tp * setup->pp * setup->dp > setup->device.count)
        note(notes, &count,
             oos_arena_format(plan->arena, "the command needs %llu GPUs, %llu are given",
                              (unsigned long long)(setup->tp * setup->pp * setup->dp),
                              (unsigned long long)setup->device.count));
    if (setup->serve->cpu_offload_gb.known && oos_setup_offload_ignored(setup))
        note(notes, &count,
             "--cpu-offload-gb: without effect here: the V2 model runner of this release has no offloader");
    for (size_t i = 0; i < plan->serve.flag_count; i++) {
        const oos_given_flag *flag = &plan->serve.flags[i];
        if (flag->effect == OOS_FLAG_UNKNOWN)
            note(notes, &count,
                 oos_arena_format(plan->arena, "%s is not a flag of this version%s%s", flag->name,
                                  flag->nearest ? "; nearest: " : "", flag->nearest ? flag->nearest : ""));
        else if (flag->effect == OOS_FLAG_UNMODELLED)
            note(notes, &count,
                 oos_arena_format(plan->arena, "%s can move memory but is not modelled", flag->name));
        else if (flag->effect == OOS_FLAG_NO_MEMORY)
            note(notes, &count, oos_arena_format(plan->arena, "%s: no effect on memory", flag->name));
        if (flag->note) note(notes, &count, oos_arena_format(plan->arena, "%s: %s", flag->name, flag->note));
    }
    variables_note(plan, notes, &count);
    plan->plan.notes = notes;
    plan->plan.note_count = count;
    return OOMSIGHT_OK;
}

/* The whole command of a fix; around what a shell runs as one line that shell stays. */
static const char *command_form(oomsight_plan *plan, const oomsight_plan_params *params,
                                const char *const *words, size_t word_count, const oos_fix *fix)
{
    size_t const line = oos_wrapped_line(params->command, params->command_count);
    bool const wrapped = line < params->command_count;
    size_t const from =
        params->environment_count + (wrapped ? oos_wrapped_line_first(params->command, line) : 0);
    const char *inner = oos_serve_whole(plan->arena, words, word_count, from, &plan->serve, fix->change,
                                        fix->change_count, fix->leave_out, fix->leave_out_count);
    if (!wrapped || !inner) return inner;
    oos_text text = {0};
    oos_command_put(plan->arena, &text, params->command, line);
    oos_text_put(&text, " ");
    oos_serve_quote(&text, inner);
    const char *copy = text.failed ? NULL : oos_arena_copy(plan->arena, (oos_view){text.ptr, text.len});
    oos_text_free(&text);
    return copy;
}

static oomsight_status flags_form(oomsight_plan *plan, const oomsight_plan_params *params,
                                  const char *const *words, size_t word_count, oos_fix *fixes,
                                  oomsight_error *reterr)
{
    size_t const count = plan->plan.fix_count;
    plan->fix_flags = OOS_NEW_ARRAY(plan->arena, const char *, count + 1);
    if (!plan->fix_flags) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the flags");
    for (size_t i = 0; i < count; i++) {
        fixes[i].command = command_form(plan, params, words, word_count, &fixes[i]);
        plan->fix_flags[i] = oos_report_plan_change(plan->arena, &fixes[i]);
        if (!plan->fix_flags[i] || !fixes[i].command)
            return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the flags");
    }
    return OOMSIGHT_OK;
}

/* What would help; for every GPU: which of them it takes, and that is the answer, so it is never left out. */
static oomsight_status search(oomsight_plan *plan, const oomsight_plan_params *params, oomsight_error *reterr)
{
    bool const every = is_every_gpu(params);
    if (params->skip_fixes && !every) return OOMSIGHT_OK;
    if (every && !plan->engine->choose)
        return oos_fail(reterr, OOMSIGHT_UNSUPPORTED, "--gpu all is for %s", oos_engine_default->title);
    oos_arena *scratch = oos_arena_create(64 << 10);
    if (!scratch) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the search");
    oomsight_status const status = (every ? plan->engine->choose : plan->engine->solve)(
        plan->arena, scratch, &plan->start, plan->facts, &params->data->gpus, &plan->plan, reterr);
    oos_arena_free(scratch);
    return status;
}

/* GPUs that the release's PyTorch has code for; of others none is offered. */
static size_t runnable(const oomsight_plan *plan, const oos_gpus *gpus, oos_need_gpu *list, size_t count)
{
    const oos_torch_build *build = oos_torch_find(&plan->facts->torch, plan->plan.setup->rules->torch_minor);
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t ignored;
        const oos_gpu *gpu = oos_gpus_find(gpus, oos_view_of(list[i].gpu), &ignored);
        oos_torch_support const support = gpu && gpu->memory != OOS_MEMORY_UNIFIED
                                              ? oos_torch_supports(build, gpu->capability)
                                              : OOS_TORCH_WHEEL;
        if (support == OOS_TORCH_NONE || (support == OOS_TORCH_OTHER && gpu->capability < build->sm[0]))
            continue;
        list[kept] = list[i];
        if (plan->plan.doubt_count && list[kept].verdict == OOMSIGHT_VERDICT_FITS)
            list[kept].verdict = OOMSIGHT_VERDICT_TIGHT;
        kept++;
    }
    return kept;
}

/* Of a plan for every GPU the answer is that of the best of them, not of the one that was tried first. */
static void answer_of_choices(oos_plan *plan)
{
    const oos_need_gpu *best = NULL;
    for (size_t i = 0; i < plan->choice_count; i++)
        if (!best || plan->choices[i].probability > best->probability) best = &plan->choices[i];
    if (!best) return;
    plan->verdict = best->verdict;
    plan->probability = best->probability;
    plan->kv.tokens = best->kv_tokens;
    plan->phase = OOS_PHASE_COUNT;
    plan->doubt_count = 0;
}

static oomsight_status offers_settle(oomsight_plan *plan, const oos_gpus *gpus, oomsight_error *reterr)
{
    oos_plan *p = &plan->plan;
    if (p->choices) {
        oos_need_gpu *list = OOS_NEW_ARRAY(plan->arena, oos_need_gpu, p->choice_count + 1);
        if (!list) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the choices");
        for (size_t i = 0; i < p->choice_count; i++) list[i] = p->choices[i];
        p->choice_count = runnable(plan, gpus, list, p->choice_count);
        p->choices = list;
        answer_of_choices(p);
    }
    if (p->needs) {
        oos_needs *needs = OOS_NEW(plan->arena, oos_needs);
        if (!needs) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the needs");
        *needs = *p->needs;
        needs->gpu_count = runnable(plan, gpus, needs->gpus, needs->gpu_count);
        p->needs = needs;
    }
    return OOMSIGHT_OK;
}

/* What is certain, when everything is known that was said: the plan, its fixes and what else is offered. */
static oomsight_status settle(oomsight_plan *plan, const oomsight_plan_params *params, const char *newer,
                              const char *const *words, size_t word_count, oomsight_error *reterr)
{
    oos_doubt_facts const facts = {
        .torch = &plan->facts->torch,
        .title = plan->plan.engine->title,
        .release = plan->plan.engine_version,
        .measured = oos_rule_book_measured(plan->facts->rules, plan->start.version),
        .newer = newer,
    };
    OOS_TRY(oos_doubts_find(plan->arena, &facts, &plan->plan, reterr));
    OOS_TRY(offers_settle(plan, &params->data->gpus, reterr));
    oos_fix *fixes = OOS_NEW_ARRAY(plan->arena, oos_fix, plan->plan.fix_count + 1);
    if (!fixes) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the fixes");
    for (size_t i = 0; i < plan->plan.fix_count; i++) fixes[i] = plan->plan.fixes[i];
    oos_doubts_apply(&plan->plan, fixes);
    plan->plan.fixes = fixes;
    oos_assert(oos_plan_is_sound(&plan->plan));
    return flags_form(plan, params, words, word_count, fixes, reterr);
}

static oomsight_status plan_fill(oomsight_plan *plan, const oomsight_plan_params *params,
                                 oomsight_error *reterr)
{
    const char *const *words = NULL;
    size_t word_count = 0;
    const char *newer = NULL, *release = NULL, *gpu_note = NULL, *held = NULL;
    const oos_machine *machine = params->machine ? &params->machine->machine : NULL;
    OOS_TRY(command_words(plan->arena, params, &words, &word_count, reterr));
    if (!oos_wrapped_open(plan->arena, words, word_count, &words, &word_count))
        return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the command");
    bool const elsewhere = oos_wrapped_container(words, word_count);
    oos_device_facts *device = &plan->start.device;
    OOS_TRY(engine_is_planned(words, word_count, reterr));
    OOS_TRY(engine_find(plan, params, words, word_count, reterr));
    if (params->engine || is_model_alone(words, word_count))
        OOS_TRY(words_translate(plan, params, &words, &word_count, reterr));
    OOS_TRY(version_find(
        params, plan->facts->rules, oos_wrapped_version(plan->arena, words, word_count),
        machine && !elsewhere ? oos_installed_version(&machine->installed, plan->engine->words->name) : NULL,
        &plan->start.version, &release, &newer, reterr));
    OOS_TRY(device_find(params, machine, device, &gpu_note, reterr));
    if (params->gpu && oos_gpus_is_size(oos_view_of(params->gpu)))
        gpu_note = oos_arena_format(plan->arena,
                                    "%s: the card of that size that shows the least; --gpu NAME tells which",
                                    params->gpu);
    OOS_TRY(oos_serve_read_as(plan->engine->dialect, plan->arena, words, word_count, &plan->facts->flags,
                              plan->start.version, &plan->serve, &plan->env, reterr));
    if (machine && !params->gpu && !params->gpu_total_bytes) {
        gpu_note = "the GPU of this machine";
        if (!params->gpu_used_known)
            held = held_here(plan->arena, machine, plan->engine->ranks(&plan->serve), device);
        if (!device->host_bytes) device->host_bytes = oos_machine_ram(machine);
    }
    OOS_TRY(models_open(plan, params, words, word_count, &plan->start.model, &plan->start.draft, reterr));
    plan->start.serve = &plan->serve;
    plan->start.env = &plan->env;
    plan->start.kv_layers_json = params->kv_layers_json;
    OOS_TRY(plan->engine->plan(plan->arena, &plan->start, plan->facts, &plan->plan, reterr));
    char version[32];
    oos_version_print(plan->start.version, version, sizeof version);
    plan->plan.engine_version = oos_arena_copy(plan->arena, oos_view_of(version));
    if (!plan->plan.engine_version) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the version");
    if (plan->translation.count)
        plan->plan.asked = oos_serve_whole(plan->arena, words, word_count, 0, &plan->serve, NULL, 0, NULL, 0);
    OOS_TRY(assumed_gather(plan, gpu_note, held, release, reterr));
    OOS_TRY(notes_gather(plan, reterr));
    OOS_TRY(search(plan, params, reterr));
    return settle(plan, params, newer, words, word_count, reterr);
}

oomsight_status oomsight_plan_create(const oomsight_plan_params *params, oomsight_plan **ret_plan,
                                     oomsight_error *reterr)
{
    OOS_TAKE_PARAMS(oomsight_plan_params, params);
    if (!params->data) return oos_fail(reterr, OOMSIGHT_USAGE, "a plan needs data");
    oos_arena *arena = oos_arena_create(32 << 10);
    oomsight_plan *plan = arena ? OOS_NEW(arena, oomsight_plan) : NULL;
    if (!plan) {
        oos_arena_free(arena);
        return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the plan");
    }
    plan->arena = arena;
    oomsight_status const status = OOS_WHOLE_STATUS(params, plan_fill(plan, params, reterr));
    if (status != OOMSIGHT_OK) {
        oomsight_plan_free(plan);
        return status;
    }
    *ret_plan = plan;
    return OOMSIGHT_OK;
}

void oomsight_plan_free(oomsight_plan *plan)
{
    if (!plan) return;
    oomsight_model_close(plan->own_model);
    oomsight_model_close(plan->draft);
    oos_arena_free(plan->arena);
}

const oos_plan *oos_api_plan(const oomsight_plan *plan)
{
    return &plan->plan;
}

const char *oos_api_plan_unknown_flag(const oomsight_plan *plan)
{
    for (size_t i = 0; i < plan->serve.flag_count; i++) {
        const oos_given_flag *flag = &plan->serve.flags[i];
        if (flag->effect == OOS_FLAG_UNKNOWN) return flag->name;
        oos_flag_hit const hit =
            oos_flags_find(&plan->facts->flags, oos_view_of(flag->name), plan->start.version);
        if (hit.record && !hit.here) return flag->name; /* another version has it */
    }
    return NULL;
}

oomsight_verdict oomsight_plan_verdict(const oomsight_plan *plan)
{
    return plan->plan.verdict;
}

const char *oomsight_plan_answer(const oomsight_plan *plan)
{
    return oos_report_answer_word(&plan->plan);
}

int oomsight_plan_choices(const oomsight_plan *plan)
{
    return plan->plan.choices ? (int)plan->plan.choice_count : -1;
}

double oomsight_plan_probability(const oomsight_plan *plan)
{
    return plan->plan.probability;
}

const char *oomsight_plan_phase(const oomsight_plan *plan)
{
    return plan->plan.phase == OOS_PHASE_COUNT ? NULL : oos_phase_word(plan->plan.phase);
}

uint64_t oomsight_plan_weights_bytes(const oomsight_plan *plan)
{
    return plan->plan.weights.loaded_bytes;
}

uint64_t oomsight_plan_kv_tokens(const oomsight_plan *plan)
{
    return plan->plan.kv.tokens;
}

const char *oomsight_plan_best_flags(const oomsight_plan *plan)
{
    if (oos_plan_needs_nothing(&plan->plan)) return "";
    for (size_t i = 0; i < plan->plan.fix_count; i++) /* what is taken out is no flag to add */
        if (!plan->plan.fixes[i].without && plan->plan.fixes[i].change_count) return plan->fix_flags[i];
    return NULL;
}

const char *oomsight_plan_best_command(const oomsight_plan *plan)
{
    return plan->plan.fix_count ? plan->plan.fixes[0].command : NULL;
}

const char *oomsight_plan_cause(const oomsight_plan *plan)
{
    return oos_cause_word(plan->plan.cause);
}

size_t oomsight_plan_moment_count(const oomsight_plan *plan)
{
    return plan->plan.phase_count;
}

static size_t hold_count(const oos_ledger *ledger)
{
    size_t count = 0;
    for (const oos_hold *row = ledger->first; row; row = row->next) count++;
    return count;
}

int oomsight_plan_moment(const oomsight_plan *plan, size_t index, oomsight_moment *ret_moment)
{
    if (index >= plan->plan.phase_count) return 0;
    const oos_moment *p = &plan->plan.phases[index];
    oomsight_moment const moment = {.phase = oos_phase_word(p->phase),
                                    .peak_bytes = p->peak_bytes,
                                    .peak_low = p->peak_low,
                                    .peak_high = p->peak_high,
                                    .limit_bytes = p->limit_bytes,
                                    .ok = p->ok,
                                    .hold_count = hold_count(&p->ledger)};
    oos_params_give(ret_moment, &moment, sizeof moment);
    return 1;
}

int oomsight_plan_hold(const oomsight_plan *plan, size_t moment_index, size_t index, oomsight_hold *ret_hold)
{
    if (moment_index >= plan->plan.phase_count) return 0;
    const oos_hold *row = plan->plan.phases[moment_index].ledger.first;
    for (size_t i = 0; row && i < index; i++) row = row->next;
    if (!row) return 0;
    oomsight_hold const hold = {.owner = oos_owner_word(row->owner),
                                .bytes = row->amount.bytes,
                                .low = row->amount.low,
                                .high = row->amount.high,
                                .source = oos_source_word(row->amount.source),
                                .how = row->amount.how};
    oos_params_give(ret_hold, &hold, sizeof hold);
    return 1;
}

size_t oomsight_plan_fix_count(const oomsight_plan *plan)
{
    return plan->plan.fix_count;
}

int oomsight_plan_fix(const oomsight_plan *plan, size_t index, oomsight_fix *ret_fix)
{
    if (index >= plan->plan.fix_count) return 0;
    const oos_fix *found = &plan->plan.fixes[index];
    oomsight_fix const fix = {.flags = plan->fix_flags[index],
                              .verdict = found->verdict,
                              .kv_tokens = found->kv_tokens,
                              .keeps = found->keeps,
                              .gives_up = found->gives_up,
                              .name = found->name,
                              .command = found->command,
                              .without = found->without,
                              .probability = found->probability,
                              .likely_length = found->likely_length,
                              .certain_length = found->certain_length};
    oos_params_give(ret_fix, &fix, sizeof fix);
    return 1;
}

const char *oomsight_plan_note(const oomsight_plan *plan, size_t index)
{
    return index < plan->plan.note_count ? plan->plan.notes[index] : NULL;
}

/* An assignment goes before the command, a blank takes a word apart, and what is taken out cannot be added. */
static bool survives_shell(const oos_fix *fix)
{
    if (fix->without) return false;
    for (size_t i = 0; i < fix->change_count; i++)
        if (strpbrk(fix->change[i], " \t\n*?")) return false;
    return fix->change_count && fix->change[0][0] == '-';
}

const char *const *oomsight_plan_best_words(const oomsight_plan *plan, size_t *ret_count)
{
    static const char *const none[] = {NULL};
    *ret_count = 0;
    if (oos_plan_needs_nothing(&plan->plan)) return none;
    for (size_t i = 0; i < plan->plan.fix_count; i++) {
        const oos_fix *fix = &plan->plan.fixes[i];
        if (!survives_shell(fix)) continue;
        *ret_count = fix->change_count;
        return fix->change;
    }
    return NULL;
}

oomsight_status oomsight_plan_render(const oomsight_plan *plan, const oomsight_render_params *params,
                                     char **ret_text, oomsight_error *reterr)
{
    OOS_TAKE_PARAMS(oomsight_render_params, params);
    oos_text text = {0};
    const oos_plan *const only = &plan->plan;
    if (only->choices && params->format > OOMSIGHT_FORMAT_JSON)
        return oos_fail(reterr, OOMSIGHT_UNSUPPORTED, "which GPU it takes is written as text or JSON");
    if (only->choices) {
        if (params->format == OOMSIGHT_FORMAT_JSON)
            oos_report_choices_json(&text, only);
        else
            oos_report_choices_text(&text, only, params);
        return OOS_WHOLE_TEXT(params, &text, ret_text);
    }
    switch (params->format) {
    case OOMSIGHT_FORMAT_TEXT: oos_report_plan_text(&text, &plan->plan, params); break;
    case OOMSIGHT_FORMAT_JSON: oos_report_plan_json(&text, &plan->plan); break;
    case OOMSIGHT_FORMAT_MARKDOWN: oos_report_plan_markdown(&text, &plan->plan, params); break;
    case OOMSIGHT_FORMAT_HTML: oos_report_plan_html(&text, &only, 1, params); break;
    case OOMSIGHT_FORMAT_GITHUB:
    case OOMSIGHT_FORMAT_SARIF:
    case OOMSIGHT_FORMAT_JUNIT:
        return oos_fail(reterr, OOMSIGHT_UNSUPPORTED, "plans are written as text, JSON, Markdown or HTML");
    }
    return OOS_WHOLE_TEXT(params, &text, ret_text);
}

oomsight_status oomsight_plans_render(const oomsight_plan *const *plans, size_t count,
                                      const oomsight_render_params *params, char **ret_text,
                                      oomsight_error *reterr)
{
    OOS_TAKE_PARAMS(oomsight_render_params, params);
    const oos_plan *list[16];
    if (count > sizeof list / sizeof *list)
        return oos_fail(reterr, OOMSIGHT_USAGE, "at most %zu plans side by side", sizeof list / sizeof *list);
    for (size_t i = 0; i < count; i++) list[i] = &plans[i]->plan;
    oos_text text = {0};
    if (params->format == OOMSIGHT_FORMAT_HTML)
        oos_report_plan_html(&text, list, count, params);
    else
        oos_report_plans(&text, list, count, params);
    return OOS_WHOLE_TEXT(params, &text, ret_text);
}
