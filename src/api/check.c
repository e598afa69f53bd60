/* The public side of check: commands found in files, each given to plan. */
#include "api/api.h"
#include "facts/instance.h"
#include "base/file.h"
#include "base/text.h"
#include "command/found.h"
#include "command/serve.h"
#include "report/check.h"

#include <dirent.h>
#include <stdlib.h>
#include <sys/stat.h>

enum { CHECKED_MAX = 4096, FILE_LIMIT = 4 << 20, FOLDER_MAX = 4096, DEPTH_MAX = 16, APPLIED_MAX = 1024 };

struct oomsight_check {
    oos_arena *arena;
    oos_checked *list;
    oomsight_plan **plans; /* beside the list, NULL where there is none */
    oomsight_model **models;
    size_t count, files, unread;
    const char **applied; /* files that were read as patches of a kustomization */
    size_t applied_count;
};

/* The model a command names, when it lies in the caller's folder: DIR/org/name or DIR/name. */
static oomsight_model *model_beside(oos_arena *arena, const oomsight_check_params *params,
                                    const oos_found *found)
{
    oos_serve serve = {0};
    oos_engine_env env = {0};
    oomsight_model *model = NULL;
    const oos_engine_words *named = oos_engine_words_of(found->words, found->count);
    const oos_engine *engine = oos_engine_find(named ? named : &oos_engine_list[0]);
    const oos_engine_facts *facts;
    const oos_version *versions;
    if (!params->models_dir || oos_api_facts(params->data, engine, &facts, NULL) != OOMSIGHT_OK) return NULL;
    size_t const count = oos_rule_book_versions(facts->rules, &versions);
    oos_version version = versions[count - 1];
    if (found->engine_version) (void)oos_version_parse(oos_view_of(found->engine_version), &version);
    if (oos_rule_book_reaches(facts->rules, version, NULL) != OOMSIGHT_OK ||
        oos_serve_read_as(engine->dialect, arena, found->words, found->count, &facts->flags, version, &serve,
                          &env, NULL) != OOMSIGHT_OK ||
        !serve.model)
        return NULL;
    const char *slash = strrchr(serve.model, '/');
    const char *names[] = {serve.model, slash && slash[1] ? slash + 1 : serve.model};
    for (size_t i = 0; i < 2 && !model; i++) {
        const char *path = oos_arena_format(arena, "%s/%s", params->models_dir, names[i]);
        if (path && oos_file_is_dir(path) &&
            oos_api_model_open(params->data, path, 0, serve.hf_overrides_json, &model, NULL) != OOMSIGHT_OK)
            model = NULL;
    }
    return model;
}

static const char *problem_words(oos_arena *arena, const oomsight_error *error)
{
    return error->path[0] ? oos_arena_format(arena, "%s: %s", error->path, error->text)
                          : oos_arena_format(arena, "%s", error->text);
}

/* What a selector says, when that is a device we know. */
static const char *gpu_hinted(const oomsight_data *data, const char *hint)
{
    uint64_t ignored;
    return hint && oos_gpus_find(&data->gpus, oos_view_of(hint), &ignored) ? hint : NULL;
}

/* The machine's GPU, or the slice of one: of the device that is named, else of the first that has such a profile. */
static const char *gpu_of_place(oos_arena *arena, const oomsight_data *data, const oos_found *found,
                                const char *named)
{
    uint64_t ignored;
    if (!named && found->machine &&
        oos_instance_gpu(arena, data->dir, found->machine, &named, NULL) != OOMSIGHT_OK)
        named = NULL;
    if (!found->slice) return named;
    const oos_gpu *whole = named ? oos_gpus_find(&data->gpus, oos_view_of(named), &ignored) : NULL;
    for (size_t i = 0; i < data->gpus.count; i++) {
        const oos_gpu *gpu = &data->gpus.list[i];
        bool const of_it = !whole || (strncmp(gpu->name, whole->name, strlen(whole->name)) == 0 &&
                                      strncmp(gpu->name + strlen(whole->name), " MIG ", 5) == 0);
        if (gpu->slice && of_it && strcmp(gpu->slice, found->slice) == 0) return gpu->name;
    }
    return named;
}

/* "A30" and four asked for: "A30x4"; one: "A30x1", and no more. */
static const char *gpu_words(oos_arena *arena, const char *gpu, uint64_t count)
{
    const char *times = gpu ? strrchr(gpu, 'x') : NULL;
    bool const counted = times && times[1] && strspn(times + 1, "0123456789") == strlen(times + 1);
    if (!gpu || counted || count == 0) return gpu;
    return oos_arena_format(arena, "%sx%llu", gpu, (unsigned long long)count);
}

static void check_one(oomsight_check *check, const oomsight_check_params *params, const char *path,
                      const oos_found *found)
{
    if (check->count == CHECKED_MAX) return;
    size_t const at = check->count++;
    oos_checked *checked = &check->list[at];
    *checked = (oos_checked){.path = path, .found = found};
    if (found->unknown) {
        checked->problem = oos_arena_format(check->arena, "%s is not set in this file", found->unknown);
        return;
    }
    oomsight_plan_params plan_params = OOMSIGHT_PLAN_PARAMS_INIT;
    oomsight_error error = {0};
    check->models[at] = model_beside(check->arena, params, found);
    plan_params.data = params->data;
    plan_params.model = check->models[at];
    plan_params.command = found->words;
    plan_params.command_count = found->count;
    const char *hinted = gpu_hinted(params->data, found->gpu_hint);
    const char *told = found->gpu ? found->gpu : params->gpu ? params->gpu : hinted;
    const char *named = found->gpu ? found->gpu : gpu_of_place(check->arena, params->data, found, told);
    plan_params.gpu = gpu_words(check->arena, named, found->gpus);
    plan_params.gpu_total_bytes = found->gpu || named != params->gpu ? 0 : params->gpu_total_bytes;
    if (found->gpu_total) (void)oomsight_size_parse(found->gpu_total, &plan_params.gpu_total_bytes);
    plan_params.gpu_used_bytes = params->gpu_used_bytes;
    plan_params.gpu_used_known = params->gpu_used_known;
    plan_params.compute_capability = params->compute_capability;
    const oos_engine_words *engine = oos_engine_words_of(found->words, found->count);
    bool const first = !engine || engine == &oos_engine_list[0]; /* whose release --vllm says */
    plan_params.engine_version = found->engine_version ? found->engine_version
                                 : first               ? params->engine_version
                                                       : NULL;
    plan_params.allow_hub = params->allow_hub;
    if (oomsight_plan_create(&plan_params, &check->plans[at], &error) != OOMSIGHT_OK) {
        checked->problem = problem_words(check->arena, &error);
        return;
    }
    checked->plan = oos_api_plan(check->plans[at]);
    checked->best_flags = oomsight_plan_best_flags(check->plans[at]);
    checked->best_command = oomsight_plan_best_command(check->plans[at]);
}

/* A file, or a place in it, that nothing could be made of. */
static void doubt_one(oomsight_check *check, const char *path, uint32_t line, oos_level level,
                      const char *problem)
{
    oos_found *found = OOS_NEW(check->arena, oos_found);
    if (check->count == CHECKED_MAX || !found) return;
    *found = (oos_found){.line = line, .kind = "file"};
    check->list[check->count++] =
        (oos_checked){.path = path, .found = found, .problem = problem, .doubt = true, .doubt_level = level};
}

static oomsight_status check_file(oomsight_check *check, const oomsight_check_params *params,
                                  const char *path, oomsight_error *reterr)
{
    oos_view bytes;
    const oos_found *list;
    size_t count;
    oos_found_doubt doubt;
    oomsight_error error = {0};
    check->files++;
    oomsight_status const status = oos_file_read(check->arena, path, FILE_LIMIT, &bytes, &error);
    if (status == OOMSIGHT_NOMEM) return oos_fail(reterr, status, "no memory for a check");
    if (status != OOMSIGHT_OK) { /* the others are looked at all the same */
        check->unread++;
        doubt_one(check, path, 0, OOS_LEVEL_NOTE, problem_words(check->arena, &error));
        return OOMSIGHT_OK;
    }
    OOS_TRY(oos_found_read_at(check->arena, path, bytes, &list, &count, &doubt, reterr));
    for (size_t k = 0; k < count; k++) check_one(check, params, path, &list[k]);
    for (size_t k = 0; k < doubt.applied_count && check->applied_count < APPLIED_MAX; k++)
        check->applied[check->applied_count++] = doubt.applied[k];
    if (doubt.broken)
        doubt_one(check, path, doubt.line, OOS_LEVEL_ERROR, doubt.broken);
    else if (doubt.mentions)
        doubt_one(check, path, doubt.line, OOS_LEVEL_WARNING,
                  "names vLLM, but no command that starts it was understood");
    return OOMSIGHT_OK;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Every file of a folder, by name; not what git, package managers and editors keep, and no links. */
static oomsight_status check_folder(oomsight_check *check, const oomsight_check_params *params,
                                    const char *path, unsigned depth, oomsight_error *reterr)
{
    static const char *const left_out[] = {"node_modules", "__pycache__", "venv", "build", "dist"};
    const char **names = OOS_NEW_ARRAY(check->arena, const char *, FOLDER_MAX);
    size_t count = 0;
    DIR *folder = names && depth < DEPTH_MAX ? opendir(path) : NULL;
    if (!folder) {
        check->unread++;
        doubt_one(check, path, 0, OOS_LEVEL_NOTE, "this folder cannot be read");
        return OOMSIGHT_OK;
    }
    for (const struct dirent *entry; count < FOLDER_MAX && (entry = readdir(folder));) {
        bool out = entry->d_name[0] == '.';
        for (size_t i = 0; i < sizeof left_out / sizeof *left_out; i++)
            out |= strcmp(entry->d_name, left_out[i]) == 0;
        if (!out) names[count++] = oos_arena_copy(check->arena, oos_view_of(entry->d_name));
    }
    (void)closedir(folder);
    qsort(names, count, sizeof *names, by_name);
    for (size_t i = 0; i < count; i++) {
        struct stat what;
        const char *inner = oos_arena_format(check->arena, "%s/%s", path, names[i]);
        if (!inner) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a check");
        if (lstat(inner, &what) != 0) continue;
        if (S_ISDIR(what.st_mode)) OOS_TRY(check_folder(check, params, inner, depth + 1, reterr));
        if (S_ISREG(what.st_mode) && what.st_size <= FILE_LIMIT)
            OOS_TRY(check_file(check, params, inner, reterr));
    }
    return OOMSIGHT_OK;
}

static bool is_same_file(const char *a, const char *b)
{
    struct stat one, other;
    return stat(a, &one) == 0 && stat(b, &other) == 0 && one.st_dev == other.st_dev &&
           one.st_ino == other.st_ino;
}

/* A patch alone is no command. Its kustomization may stand before or behind it. */
static void applied_leave_out(oomsight_check *check)
{
    size_t kept = 0;
    for (size_t i = 0; i < check->count; i++) {
        bool out = false;
        for (size_t k = 0; check->list[i].doubt && check->list[i].doubt_level == OOS_LEVEL_WARNING && !out &&
                           k < check->applied_count;
             k++)
            out = is_same_file(check->list[i].path, check->applied[k]);
        if (out) continue;
        check->plans[kept] = check->plans[i];
        check->models[kept] = check->models[i];
        check->list[kept++] = check->list[i];
    }
    check->count = kept;
}

static oomsight_status check_fill(oomsight_check *check, const oomsight_check_params *params,
                                  oomsight_error *reterr)
{
    check->list = OOS_NEW_ARRAY(check->arena, oos_checked, CHECKED_MAX);
    check->plans = OOS_NEW_ARRAY(check->arena, oomsight_plan *, CHECKED_MAX);
    check->models = OOS_NEW_ARRAY(check->arena, oomsight_model *, CHECKED_MAX);
    check->applied = OOS_NEW_ARRAY(check->arena, const char *, APPLIED_MAX);
    if (!check->list || !check->plans || !check->models || !check->applied)
        return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a check");
    for (size_t i = 0; i < params->path_count; i++) {
        const char *path = oos_arena_copy(check->arena, oos_view_of(params->paths[i]));
        if (!path) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a check");
        OOS_TRY(oos_file_is_dir(path) ? check_folder(check, params, path, 0, reterr)
                                      : check_file(check, params, path, reterr));
    }
    applied_leave_out(check);
    return OOMSIGHT_OK;
}

oomsight_status oomsight_check_create(const oomsight_check_params *params, oomsight_check **ret_check,
                                      oomsight_error *reterr)
{
    OOS_TAKE_PARAMS(oomsight_check_params, params);
    if (!params->data) return oos_fail(reterr, OOMSIGHT_USAGE, "a check needs data");
    oos_arena *arena = oos_arena_create(256 << 10);
    oomsight_check *check = arena ? OOS_NEW(arena, oomsight_check) : NULL;
    if (!check) {
        oos_arena_free(arena);
        return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a check");
    }
    check->arena = arena;
    oomsight_status const status = OOS_WHOLE_STATUS(params, check_fill(check, params, reterr));
    if (status != OOMSIGHT_OK) {
        oomsight_check_free(check);
        return status;
    }
    *ret_check = check;
    return OOMSIGHT_OK;
}

void oomsight_check_free(oomsight_check *check)
{
    if (!check) return;
    for (size_t i = 0; i < check->count; i++) {
        oomsight_plan_free(check->plans[i]);
        oomsight_model_close(check->models[i]);
    }
    oos_arena_free(check->arena);
}

static size_t count_level(const oomsight_check *check, oos_level level)
{
    size_t count = 0;
    for (size_t i = 0; i < check->count; i++) count += oos_check_level(&check->list[i]) == level;
    return count;
}

size_t oomsight_check_count(const oomsight_check *check)
{
    return check->count;
}

size_t oomsight_check_failing(const oomsight_check *check)
{
    return count_level(check, OOS_LEVEL_ERROR);
}

size_t oomsight_check_doubtful(const oomsight_check *check)
{
    return count_level(check, OOS_LEVEL_WARNING);
}

size_t oomsight_check_unplanned(const oomsight_check *check)
{
    return count_level(check, OOS_LEVEL_NOTE);
}

oomsight_status oomsight_check_render(const oomsight_check *check, const oomsight_render_params *params,
                                      char **ret_text, oomsight_error *reterr)
{
    OOS_TAKE_PARAMS(oomsight_render_params, params);
    oos_text text = {0};
    oos_check_page const page = {.list = check->list, .count = check->count, .files = check->files};
    switch (params->format) {
    case OOMSIGHT_FORMAT_TEXT: oos_report_check_text(&text, &page, params); break;
    case OOMSIGHT_FORMAT_JSON: oos_report_check_json(&text, &page); break;
    case OOMSIGHT_FORMAT_GITHUB: oos_report_check_github(&text, &page); break;
    case OOMSIGHT_FORMAT_SARIF: oos_report_check_sarif(&text, &page); break;
    case OOMSIGHT_FORMAT_MARKDOWN:
    case OOMSIGHT_FORMAT_HTML:
    case OOMSIGHT_FORMAT_JUNIT:
        return oos_fail(reterr, OOMSIGHT_UNSUPPORTED,
                        "checks are written as text, JSON, GitHub annotations or SARIF");
    }
    return OOS_WHOLE_TEXT(params, &text, ret_text);
}
