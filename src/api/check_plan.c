/* One command of a file: on which device, beside which others, and what becomes of it. The plan itself is let go: of many thousand
 * commands only what a report prints is kept. */
#include "api/api.h"
#include "base/check.h"
#include "base/file.h"
#include "base/locale.h"
#include "base/size.h"
#include "facts/facts.h"
#include "command/command.h"

#include <stdlib.h>

enum { HELPED_MAX = 200 }; /* failing commands for which flags that help are searched */

/* What outlives the plan. */
static const oos_edited_word *edited_keep(oos_arena *arena, const oomsight_plan *plan)
{
    oos_edited_word *list =
        plan->edited ? OOS_NEW_ARRAY(arena, oos_edited_word, plan->edited_count + 1) : NULL;
    for (size_t i = 0; list && i < plan->edited_count; i++) {
        list[i] = plan->edited[i];
        list[i].word = oos_arena_copy(arena, oos_view_of(list[i].word));
        if (!list[i].word) return NULL;
    }
    return list;
}

/* The model a command names, when it lies in the caller's folder: DIR/org/name or DIR/name. */
static oomsight_model *model_beside(oos_arena *arena, const oomsight_check_params *params,
                                    const oos_serve *serve)
{
    oomsight_model *model = NULL;
    const char *slash = strrchr(serve->model, '/');
    const char *names[] = {serve->model, slash && slash[1] ? slash + 1 : serve->model};
    for (size_t i = 0; i < 2 && !model; i++) {
        const char *path = oos_arena_format(arena, "%s/%s", params->models_dir, names[i]);
        if (path && oos_file_is_dir(path) &&
            oos_api_model_open(params->data, path, 0, serve->hf_overrides_json, &model, NULL) != OOMSIGHT_OK)
            model = NULL;
    }
    return model;
}

static const char *problem_words(oos_arena *arena, const oomsight_error *error)
{
    if (strcmp(error->field, "gpu") == 0 && !strchr(error->text, '\''))
        return oos_arena_format(arena, "%s: declare it with '# oomsight: gpu=NAME'", error->text);
    return error->path[0] ? oos_arena_format(arena, "%s: %s", error->path, error->text)
                          : oos_arena_format(arena, "%s", error->text);
}

/* The next name of "L4,A100"; NULL: there is none. */
static const char *name_next(oos_arena *arena, const char **list)
{
    if (!*list || !**list) return NULL;
    size_t const len = strcspn(*list, ",");
    const char *name = oos_arena_copy(arena, (oos_view){*list, len});
    *list += len + ((*list)[len] == ',');
    return name;
}

/* Of the devices that a selector allows the one with least memory: it may be that. *ret_unknown: a name among them that nobody knows. */
static const char *gpu_hinted(oos_arena *arena, const oomsight_data *data, const char *list,
                              const char **ret_unknown)
{
    uint64_t ignored, least = UINT64_MAX;
    const char *chosen = NULL, *name;
    *ret_unknown = NULL;
    while ((name = name_next(arena, &list))) {
        const oos_gpu *gpu = oos_gpus_find(&data->gpus, oos_view_of(name), &ignored);
        if (!gpu) *ret_unknown = name;
        if (!gpu || gpu->total_bytes >= least) continue;
        least = gpu->total_bytes;
        chosen = name;
    }
    return chosen;
}

/* Whether a selector leaves this device out. */
static bool is_left_out(oos_arena *arena, const oomsight_data *data, const char *list, const char *gpu)
{
    uint64_t ignored;
    const char *name;
    const oos_gpu *of = gpu ? oos_gpus_find(&data->gpus, oos_view_of(gpu), &ignored) : NULL;
    while (of && (name = name_next(arena, &list)))
        if (oos_gpus_find(&data->gpus, oos_view_of(name), &ignored) == of) return true;
    return false;
}

/* The same of the types of machines. */
static const char *gpu_of_machines(oos_arena *arena, const oomsight_data *data, const char *list)
{
    const char *gpus = NULL, *gpu, *type, *unknown;
    while ((type = name_next(arena, &list)))
        if (oos_instance_gpu(arena, data->dir, type, &gpu, NULL) == OOMSIGHT_OK && gpu)
            gpus = gpus ? oos_arena_format(arena, "%s,%s", gpus, gpu) : gpu;
    return gpu_hinted(arena, data, gpus, &unknown);
}

/* The profile of a GPU; NULL: it has none of that name. A profile itself is its own. */
static const char *slice_of(const oos_gpus *gpus, const oos_gpu *whole, const char *profile)
{
    size_t const len = strlen(whole->name);
    if (whole->slice) return strcmp(whole->slice, profile) == 0 ? whole->name : NULL;
    for (size_t i = 0; i < gpus->count; i++) {
        const oos_gpu *gpu = &gpus->list[i];
        bool const of_it =
            strncmp(gpu->name, whole->name, len) == 0 && strncmp(gpu->name + len, " MIG ", 5) == 0;
        if (gpu->slice && of_it && strcmp(gpu->slice, profile) == 0) return gpu->name;
    }
    return NULL;
}

/* The machine's GPU, or the slice of one that the file asks for: several GPUs have profiles of one name, so the GPU must be named. */
static const char *gpu_of_place(oos_arena *arena, const oomsight_data *data, const oos_found *found,
                                const char *named, const char **ret_problem)
{
    uint64_t ignored;
    if (!named) named = gpu_of_machines(arena, data, found->machine);
    if (!found->slice || !named) return named;
    const oos_gpu *whole = oos_gpus_find(&data->gpus, oos_view_of(named), &ignored);
    const char *slice = whole ? slice_of(&data->gpus, whole, found->slice) : named;
    if (!slice)
        *ret_problem = oos_arena_format(arena, "the file asks for the MIG profile %s, which %s does not have",
                                        found->slice, whole->name);
    return slice ? slice : named;
}

/* "A30" and four asked for: "A30x4"; one: "A30x1", and no more. Of "A30x8" the file takes its four. */
static const char *gpu_words(oos_arena *arena, const char *gpu, uint64_t count)
{
    const char *times = gpu ? strrchr(gpu, 'x') : NULL;
    bool const counted = times && times[1] && strspn(times + 1, "0123456789") == strlen(times + 1);
    if (!gpu || count == 0 || (counted && strtoull(times + 1, NULL, 10) <= count)) return gpu;
    return oos_arena_format(arena, "%.*sx%llu", (int)(counted ? (size_t)(times - gpu) : strlen(gpu)), gpu,
                            (unsigned long long)count);
}

/* What the file says of its device goes before what the caller says; the caller's fills in. A name that nobody knows is not replaced
 * by another: *ret_problem. */
static const char *gpu_choose(oos_arena *arena, const oomsight_check_params *params, const oos_found *found,
                              const char **ret_problem)
{
    const char *unknown, *hinted = gpu_hinted(arena, params->data, found->gpu_hint, &unknown);
    if (found->gpu) return gpu_words(arena, found->gpu, found->gpus);
    if (unknown && found->gpu_is_sure)
        *ret_problem = oos_arena_format(arena,
                                        "the file asks for the GPU '%s', which is not known here: declare "
                                        "what it is like with '# oomsight: gpu=NAME'",
                                        unknown);
    bool const slice_of_given = found->slice && !hinted && !found->machine && params->gpu;
    const char *own =
        gpu_of_place(arena, params->data, found, slice_of_given ? params->gpu : hinted, ret_problem);
    if (!own && is_left_out(arena, params->data, found->gpu_not, params->gpu))
        *ret_problem = oos_arena_format(
            arena, "the file leaves out the GPU '%s' that is given, and names no other", found->gpu_not);
    if (!own) own = gpu_of_place(arena, params->data, found, params->gpu, ret_problem);
    if (!own && found->slice)
        *ret_problem = oos_arena_format(arena,
                                        "several GPUs have a MIG profile %s: declare which one with "
                                        "'# oomsight: gpu=NAME'",
                                        found->slice);
    return gpu_words(arena, own, found->gpus);
}

/* What the device may show as its total, whoever declares it; of a device that is not known, what any does. */
static uint64_t total_most(const oos_gpus *gpus, const char *gpu)
{
    uint64_t count, most = 0;
    const oos_gpu *device = gpu ? oos_gpus_find(gpus, oos_view_of(gpu), &count) : NULL;
    for (size_t i = 0; i < gpus->count && !device; i++) most = oos_max(most, gpus->list[i].nvml_total_bytes);
    if (device) most = oos_max(oos_max(device->total_high, device->total_bytes), device->nvml_total_bytes);
    return most + most / 16; /* drivers differ */
}

void oos_check_params(oos_arena *arena, const oomsight_check_params *params, const oos_found *found,
                      oomsight_plan_params *ret, const char **ret_problem)
{
    ret->data = params->data;
    ret->command = found->words;
    ret->command_count = found->count;
    ret->gpu = gpu_choose(arena, params, found, ret_problem);
    bool const given = ret->gpu == params->gpu || !ret->gpu;
    ret->gpu_total_bytes = given ? params->gpu_total_bytes : 0;
    if (found->gpu_total && !oomsight_size_parse(found->gpu_total, &ret->gpu_total_bytes))
        *ret_problem = oos_arena_format(arena, "gpu-total=%s is no size with its unit, such as 23.5GiB",
                                        found->gpu_total);
    uint64_t const most = total_most(&params->data->gpus, ret->gpu);
    if (found->gpu_total && ret->gpu_total_bytes > most)
        *ret_problem =
            oos_arena_format(arena, "gpu-total=%s is more than %s has, %.2f GiB", found->gpu_total,
                             ret->gpu ? ret->gpu : "any GPU that is known here", (double)most / 0x1p30);
    ret->gpu_used_bytes = params->gpu_used_bytes;
    ret->gpu_used_known = params->gpu_used_known;
    ret->compute_capability = params->compute_capability;
    ret->host_ram_bytes = found->host_limit_bytes;
    const oos_engine_words *engine = oos_engine_words_of(found->words, found->count);
    const oos_engine_words *told =
        params->engine ? oos_engine_words_find(params->engine) : oos_engine_default;
    bool const first = (engine ? engine : oos_engine_default) == told; /* whose release is given */
    ret->engine_version = found->engine_version ? found->engine_version
                          : first               ? params->engine_version
                                                : NULL;
    ret->allow_hub = params->allow_hub;
}

/* ---- the host's side --------------------------------------------------------------------------------------------- */

/* The value of a flag in GiB, `--flag N` or `--flag=N`; 0: it is not there, or there is none. */
static double flag_gib(const oos_found *found, const char *flag)
{
    size_t const len = flag ? strlen(flag) : 0;
    double value = 0;
    char *end;
    for (size_t i = 0; len && i < found->count; i++) {
        const char *word = found->words[i];
        if (strncmp(word, flag, len) != 0) continue;
        if (word[len] == '=') value = oos_real_read(word + len + 1, &end);
        if (word[len] == '\0' && i + 1 < found->count) value = oos_real_read(found->words[i + 1], &end);
    }
    return value > 0 && value < 0x1p30 ? value : 0;
}

/* What the command itself puts into host memory, at least. */
static uint64_t host_stated(const oos_found *found, uint64_t ranks)
{
    const oos_engine_words *named = oos_engine_words_of(found->words, found->count),
                           *engine = named ? named : oos_engine_default;
    double gib = flag_gib(found, engine->host_rank_flags[0]) + flag_gib(found, engine->host_rank_flags[1]);
    for (size_t i = 0; engine->host_old_word && i < found->count; i++)
        if (strcmp(found->words[i], engine->host_old_word) == 0) {
            gib += flag_gib(found, engine->host_old_flag);
            break;
        }
    return (uint64_t)((gib * (double)ranks + flag_gib(found, engine->host_flag)) * 0x1p30);
}

/* ---- the answer -------------------------------------------------------------------------------------------------- */

static const char *asked_words(oos_arena *arena, const oomsight_plan_params *params)
{
    oos_text text = {0};
    oos_text_printf(&text, "%s\n%s\n%llu %llu %d %llu\n", params->gpu ? params->gpu : "",
                    params->engine_version ? params->engine_version : "",
                    (unsigned long long)params->gpu_total_bytes, (unsigned long long)params->gpu_used_bytes,
                    params->gpu_used_known, (unsigned long long)params->host_ram_bytes);
    for (size_t i = 0; i < params->command_count; i++) oos_text_printf(&text, "%s\n", params->command[i]);
    const char *words = text.failed ? NULL : oos_arena_copy(arena, (oos_view){text.ptr, text.len});
    oos_text_free(&text);
    return words;
}

const oos_check_known *oos_check_plan(oomsight_check *check, const oomsight_check_params *params,
                                      const oos_found *found, oomsight_plan_params *plan_params)
{
    const char *asked = asked_words(check->arena, plan_params);
    oos_check_known *known = NULL;
    if (!asked) return NULL;
    HASH_FIND_STR(check->known, asked, known);
    if (known) return known;
    known = OOS_NEW(check->arena, oos_check_known);
    if (!known) return NULL;
    oomsight_error error = {0};
    oomsight_plan *plan = NULL;
    oos_arena *scratch = oos_arena_create(16 << 10);
    oos_serve serve = {0};
    bool const read = scratch && oos_api_serve_read(scratch, params->data, found->words, found->count,
                                                    found->engine_version, &serve);
    oomsight_model *model = read && params->models_dir ? model_beside(scratch, params, &serve) : NULL;
    const char *model_name = read ? serve.model : oos_found_is_model(found) ? found->words[0] : NULL;
    if (model_name) known->model = oos_arena_copy(check->arena, oos_view_of(model_name));
    oos_arena_free(scratch);
    plan_params->model = model;
    plan_params->skip_fixes = check->failing >= HELPED_MAX;
    if (oomsight_plan_create_asked(plan_params, check->asker, &plan, &error) != OOMSIGHT_OK) {
        known->problem = problem_words(check->arena, &error);
    } else {
        known->plan = oos_checked_plan_keep(check->arena, oos_api_plan(plan), oomsight_plan_best_flags(plan),
                                            oomsight_plan_best_command(plan));
        if (known->plan && (known->plan->edited = edited_keep(check->arena, plan)))
            known->plan->edited_count = plan->edited_count;
        check->failing += known->plan && !known->plan->likely;
        oomsight_plan_free(plan);
    }
    oomsight_model_close(model);
    known->asked = asked;
    HASH_ADD_KEYPTR(hh, check->known, known->asked, strlen(known->asked), known);
    return known;
}

void oos_check_forget(oomsight_check *check)
{
    HASH_CLEAR(hh, check->known);
}

/* Plan it; where others of the file hold memory of its devices, with that taken. */
static void answer(oomsight_check *check, const oomsight_check_params *params, const oos_found *found,
                   oomsight_plan_params *plan_params, oos_checked *checked)
{
    uint64_t const given = plan_params->gpu_used_bytes;
    uint64_t ranks = 1, taken = 0;
    const oos_check_known *known = NULL;
    for (unsigned turn = 0; turn < 2; turn++) {
        const oos_check_device *fullest = oos_check_fullest(check, found, ranks);
        if (turn && (!fullest || fullest->held_bytes == taken)) break;
        taken = fullest ? fullest->held_bytes : 0;
        checked->beside = fullest ? fullest->names : NULL;
        checked->beside_bytes = taken;
        plan_params->gpu_used_bytes = oos_add(given, taken);
        plan_params->gpu_used_known |= taken != 0;
        known = oos_check_plan(check, params, found, plan_params);
        if (known && known->plan) ranks = known->plan->ranks;
    }
    if (!known) return;
    checked->plan = known->plan;
    checked->problem = known->problem;
    checked->model = known->model;
    if (!known->plan) return;
    if (known->plan->likely)
        oos_check_hold(check, found, checked->at, ranks, oos_sub(known->plan->held_bytes, taken + given));
    uint64_t const stated = host_stated(found, ranks);
    if (found->host_limit_bytes && stated > found->host_limit_bytes) checked->host_needs_bytes = stated;
}

/* The words of a found command in the check's own memory. */
static oos_found *found_keep(oos_arena *arena, const oos_found *found)
{
    oos_found *kept = OOS_NEW(arena, oos_found);
    const char **shown = OOS_NEW_ARRAY(arena, const char *, found->shown_count + 1);
    if (!kept || !shown) return NULL;
    for (size_t i = 0; i < found->shown_count; i++)
        shown[i] = oos_arena_copy(arena, oos_view_of(found->shown[i]));
    *kept = (oos_found){.shown = shown,
                        .shown_count = found->shown_count,
                        .count = found->count,
                        .line = found->line,
                        .kind = found->kind,
                        .gpus = found->gpus,
                        .host_limit_bytes = found->host_limit_bytes};
    if (found->name) kept->name = oos_arena_copy(arena, oos_view_of(found->name));
    if (found->gpu) kept->gpu = oos_arena_copy(arena, oos_view_of(found->gpu));
    if (found->engine_version)
        kept->engine_version = oos_arena_copy(arena, oos_view_of(found->engine_version));
    return kept;
}

/* A size as options take it; NULL without memory. */
static const char *size_word(oos_arena *arena, uint64_t bytes)
{
    return oos_arena_format(arena, "%llu", (unsigned long long)bytes);
}

/* The same question as words behind `oomsight plan`, for all that its report tells. What the command's own image says is left to it. */
static void ask_put(oos_arena *arena, const oos_found *found, const oomsight_plan_params *asked,
                    const char *engine, oos_checked *checked)
{
    const char *tag = oos_wrapped_version(arena, found->words, found->count);
    const char *version = asked->engine_version;
    if (version && tag && strcmp(version, tag) == 0) version = NULL;
    const struct {
        const char *option, *value;
    } options[] = {{"--gpu", asked->gpu},
                   {"--gpu-total", asked->gpu_total_bytes ? size_word(arena, asked->gpu_total_bytes) : NULL},
                   {"--gpu-used", asked->gpu_used_known ? size_word(arena, asked->gpu_used_bytes) : NULL},
                   {"--gpu-cc", asked->compute_capability},
                   {"--host-ram", asked->host_ram_bytes ? size_word(arena, asked->host_ram_bytes) : NULL},
                   {"--engine", version ? oos_arena_format(arena, "%s=%s", engine, version) : NULL}};
    size_t const most = sizeof options / sizeof *options;
    const char **words = OOS_NEW_ARRAY(arena, const char *, 2 * most + 1 + found->shown_count);
    size_t count = 0;
    if (!words) return;
    for (size_t i = 0; i < most; i++) {
        if (!options[i].value) continue;
        words[count++] = options[i].option;
        words[count++] = oos_arena_copy(arena, oos_view_of(options[i].value));
    }
    words[count++] = "--";
    for (size_t i = 0; i < found->shown_count; i++)
        words[count++] = oos_arena_copy(arena, oos_view_of(found->shown[i]));
    oos_assert(count <= 2 * most + 1 + found->shown_count);
    checked->ask = words;
    checked->ask_count = count;
}

void oos_check_command(oomsight_check *check, const oomsight_check_params *params, const char *path,
                       const oos_found *found, size_t at)
{
    oos_found *kept = found_keep(check->arena, found);
    oos_checked *checked = kept ? oos_check_next(check) : NULL;
    if (!checked) return;
    const oos_engine_words *engine = oos_engine_words_of(found->words, found->count);
    *checked = (oos_checked){.path = path, .found = kept, .at = at};
    checked->engine = engine ? engine->name : oos_engine_default->name;
    if (found->unknown) {
        checked->problem = oos_arena_format(check->arena, "%s is not set in this file", found->unknown);
        return;
    }
    oomsight_plan_params plan_params = OOMSIGHT_PLAN_PARAMS_INIT;
    const char *problem =
        found->other
            ? oos_arena_format(check->arena, "it is for %s, and only NVIDIA GPUs are planned", found->other)
            : NULL;
    oos_check_params(check->arena, params, found, &plan_params, &problem);
    if (plan_params.gpu && plan_params.gpu != params->gpu) /* by the file, which is let go */
        kept->gpu = oos_arena_copy(check->arena, oos_view_of(plan_params.gpu));
    if (problem)
        checked->problem = problem;
    else
        answer(check, params, found, &plan_params, checked);
    ask_put(check->arena, found, &plan_params, checked->engine, checked);
}
