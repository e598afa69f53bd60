/* The public face of a matrix: the file is read, its models are opened once, and points are answered one by one. */
#include "api/api.h"
#include "base/file.h"
#include "base/json.h"
#include "base/shown.h"
#include "facts/facts.h"
#include "plan/plan.h"
#include "base/table.h"

#include <stdlib.h>
#include <unistd.h>

enum { FILE_MAX = 1 << 20, LABEL_MAX = 4096 };

/* ---- points ----------------------------------------------------------------------------------------------------- */

const oos_matrix_slot *oos_matrix_slot_at(const oomsight_matrix *matrix, const oos_matrix_place *place)
{
    return &matrix->slots[matrix->slot_of[place->block - matrix->file.blocks][place->model]];
}

void oos_matrix_point_begin(const oos_matrix_file *file, const oos_matrix_place *place, uint64_t number,
                            oos_arena *scratch, oomsight_matrix_point *ret_point)
{
    const oos_matrix_block *block = place->block;
    const char *flags;
    if (block->axis_count == 1 && !block->axes[0].flag) {
        flags = block->axes[0].choices[place->choices[0]].label;
    } else {
        char text[LABEL_MAX];
        oos_matrix_flag_label(place, text, sizeof text);
        flags = oos_arena_copy(scratch, oos_view_of(text));
    }
    *ret_point = (oomsight_matrix_point){.size = sizeof *ret_point,
                                         .number = number,
                                         .model = block->models[place->model].label,
                                         .gpu = block->gpus[place->gpu].label,
                                         .flags = flags ? flags : "",
                                         .version = block->versions[place->version].text,
                                         .verdict = OOMSIGHT_VERDICT_UNKNOWN,
                                         .tried_bytes = OOMSIGHT_UNKNOWN,
                                         .weights_bytes = OOMSIGHT_UNKNOWN,
                                         .kv_tokens = OOMSIGHT_UNKNOWN,
                                         .kv_available_bytes = OOMSIGHT_UNKNOWN,
                                         .max_concurrency = -1};
    (void)file;
}

/* Flags that change what MODEL means: then the model is opened for that point alone. */
static bool names_model(const char *word)
{
    static const char *const starts[] = {"--hf-o", "--hf_o", "--rev"};
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
        if (strncmp(word, starts[i], strlen(starts[i])) == 0) return true;
    return oos_flag_is(word, oos_engine_default->config_flag) ||
           oos_flag_is(word, oos_engine_default->model_flags[0]);
}

/* A search for flags takes a hundred times as long as a plan: a fleet has it, a survey of a million points not. */
enum { FIXED_POINTS = 2000 };

static const char *copy(oos_arena *scratch, const char *text)
{
    return text ? oos_arena_copy(scratch, oos_view_of(text)) : NULL;
}

static void plan_take(const oomsight_plan *made, oos_arena *scratch, oomsight_matrix_point *point)
{
    const oos_plan *plan = oos_api_plan(made);
    point->readable = 1;
    point->verdict = plan->answer.verdict;
    point->starts = plan->answer.verdict == OOMSIGHT_VERDICT_FITS ||
                    (plan->answer.verdict == OOMSIGHT_VERDICT_TIGHT && oos_plan_likely(plan));
    if (!point->starts) point->command = copy(scratch, oomsight_plan_best_command(made));
    point->phase = oomsight_plan_phase(made);
    point->weights_bytes = plan->sizes.weights.loaded_bytes;
    if (!plan->refusal.sentence) point->kv_tokens = plan->kv.tokens; /* else of a command that is not taken */
    point->kv_available_bytes = plan->kv.available_bytes;
    point->max_concurrency = plan->kv.max_concurrency;
    if (plan->answer.tried_bytes.known) point->tried_bytes = plan->answer.tried_bytes.value;
    point->cause = copy(scratch, oos_cause_word(plan->answer.cause));
    point->unknown_flag = oos_shown(scratch, copy(scratch, oos_api_plan_unknown_flag(made)));
    point->exact = oos_exact_told_word(plan->exact);
    if (plan->exact) point->exact_said = copy(scratch, plan->exact->said);
    if (plan->answer.verdict != OOMSIGHT_VERDICT_FITS) point->why = copy(scratch, plan->answer.why);
}

/* "sglang=0.5.23": an engine and its release; the release alone is of the first engine. NULL: no such engine. */
static const oos_engine *release_split(const char *text, const char **ret_version)
{
    char name[32];
    const char *equals = strchr(text, '=');
    *ret_version = equals ? equals + 1 : text;
    snprintf(name, sizeof name, "%.*s", equals ? (int)(equals - text) : 0, text);
    return oos_engine_find(equals ? oos_engine_words_find(name) : oos_engine_default);
}

void oos_matrix_point_plan(const oomsight_matrix *matrix, const oos_matrix_place *place, oos_arena *scratch,
                           oomsight_matrix_point *point)
{
    const oos_matrix_slot *slot = oos_matrix_slot_at(matrix, place);
    const oos_matrix_gpu *gpu = &place->block->gpus[place->gpu];
    if (!slot->model) {
        point->why = slot->problem;
        return;
    }
    const char *words[OOS_MATRIX_WORDS + 3] = {oos_engine_default->name, "serve", slot->place};
    size_t const count = 3 + oos_matrix_flag_words(place, words + 3);
    oomsight_plan_params params = OOMSIGHT_PLAN_PARAMS_INIT;
    params.data = matrix->data;
    params.model = slot->model;
    for (size_t i = 3; i < count; i++)
        if (names_model(words[i])) params.model = NULL;
    params.command = words;
    params.command_count = count;
    params.gpu = gpu->gpu;
    params.gpu_total_bytes = gpu->total_bytes;
    params.gpu_used_bytes = gpu->used_bytes;
    params.gpu_used_known = gpu->used_known;
    params.compute_capability = gpu->capability;
    params.engine = release_split(point->version, &params.engine_version)->words->name;
    params.environment = matrix->file.environment.list;
    params.environment_count = matrix->file.environment.count;
    params.skip_fixes = matrix->file.points > FIXED_POINTS;
    params.allow_hub = matrix->allow_hub;
    oomsight_error error = {0};
    oomsight_plan *plan = NULL;
    if (oomsight_plan_create_asked(&params, matrix->asker, &plan, &error) != OOMSIGHT_OK) {
        point->why = copy(scratch, error.text);
        return;
    }
    plan_take(plan, scratch, point);
    oomsight_plan_free(plan);
}

/* ---- opening ---------------------------------------------------------------------------------------------------- */

typedef struct slot_name {
    const char *name;
    uint32_t id;
    UT_hash_handle hh;
} slot_name;

/* A name may stand for a folder beside the file, a folder of --models, or be what the plan command takes. */
static const char *model_place(oos_arena *arena, const oomsight_matrix_params *params, const char *name)
{
    const char *slash = strrchr(params->path, '/'), *last = strrchr(name, '/');
    const char *tries[3] = {NULL, NULL, NULL};
    const char *given = name;
    if (strncmp(name, "./", 2) == 0 && name[2]) name += 2;
    if (*name != '/')
        tries[0] = oos_arena_format(arena, "%.*s%s", slash ? (int)(slash - params->path + 1) : 0,
                                    params->path, name);
    if (params->models_dir) {
        tries[1] = oos_arena_format(arena, "%s/%s", params->models_dir, name);
        tries[2] = oos_arena_format(arena, "%s/%s", params->models_dir, last ? last + 1 : name);
    }
    for (size_t i = 0; i < 3; i++)
        if (tries[i] && oos_file_is_dir(tries[i])) return tries[i];
    return given;
}

static bool caches(const oomsight_matrix *matrix, const oomsight_matrix_params *params)
{
    return params->cache_dir && !params->asker && (matrix->file.dryrun || !params->cache_dryruns_only);
}

static oomsight_status slot_open(oomsight_matrix *matrix, const oomsight_matrix_params *params,
                                 const char *name, oos_matrix_slot *slot, oomsight_error *reterr)
{
    oomsight_error error = {0};
    slot->name = name;
    slot->place = model_place(matrix->arena, params, name);
    /* a dry start reads the model itself; what it cannot read is its answer */
    if (params->part_count) return OOMSIGHT_OK;
    if (!matrix->file.dryrun && oos_api_model_open(matrix->data, slot->place, params->allow_hub, NULL,
                                                   &slot->model, &error) != OOMSIGHT_OK) {
        slot->problem = oos_arena_format(matrix->arena, "%s", error.text);
        if (!slot->problem) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a matrix");
    }
    if (caches(matrix, params)) oos_matrix_model_digest(matrix->arena, slot);
    return OOMSIGHT_OK;
}

static oomsight_status slots_make(oomsight_matrix *matrix, const oomsight_matrix_params *params,
                                  slot_name **table, oomsight_error *reterr)
{
    oos_matrix_file *file = &matrix->file;
    matrix->slot_of = OOS_NEW_ARRAY(matrix->arena, const uint32_t *, file->block_count);
    if (!matrix->slot_of) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a matrix");
    for (size_t b = 0; b < file->block_count; b++) {
        const oos_matrix_block *block = &file->blocks[b];
        uint32_t *of = OOS_NEW_ARRAY(matrix->arena, uint32_t, block->model_count);
        if (!of) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a matrix");
        for (size_t m = 0; m < block->model_count; m++) {
            slot_name *found = NULL;
            HASH_FIND_STR(*table, block->models[m].name, found);
            if (!found) {
                found = OOS_NEW(matrix->arena, slot_name);
                if (!found) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a matrix");
                found->name = block->models[m].name;
                found->id = (uint32_t)HASH_COUNT(*table);
                HASH_ADD_KEYPTR(hh, *table, found->name, strlen(found->name), found);
                if (!OOS_IN_TABLE(found)) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a matrix");
            }
            of[m] = found->id;
        }
        matrix->slot_of[b] = of;
    }
    matrix->slot_count = HASH_COUNT(*table);
    matrix->slots = OOS_NEW_ARRAY(matrix->arena, oos_matrix_slot, matrix->slot_count);
    if (!matrix->slots) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a matrix");
    for (slot_name *s = *table; s; s = s->hh.next)
        OOS_TRY(slot_open(matrix, params, s->name, &matrix->slots[s->id], reterr));
    return OOMSIGHT_OK;
}

static oomsight_status at_line(oomsight_error *reterr, const char *path, uint32_t line)
{
    if (!reterr) return OOMSIGHT_USAGE;
    reterr->line = line;
    return oos_fail_in(reterr, reterr->status, path);
}

static oomsight_status release_check(const oomsight_matrix *matrix, const char *text, oomsight_error *reterr)
{
    oos_version version;
    const oos_engine_facts *facts;
    const char *release;
    const oos_engine *engine = release_split(text, &release);
    if (!engine) return oos_fail(reterr, OOMSIGHT_USAGE, "no engine is called so: '%s'", text);
    if (!oos_version_parse(oos_view_of(release), &version))
        return oos_fail(reterr, OOMSIGHT_USAGE, "'%s' is not a version such as 0.19.1", release);
    if (matrix->file.dryrun && engine->words != oos_engine_default)
        return oos_fail(reterr, OOMSIGHT_USAGE, "dry runs of a matrix are of %s", oos_engine_default->title);
    if (matrix->file.dryrun) return OOMSIGHT_OK;
    OOS_TRY(oos_api_facts(matrix->data, engine, &facts, reterr));
    return oos_rule_book_reaches(facts->rules, version, reterr);
}

/* GPUs and versions that nobody knows are told before anything runs. */
static oomsight_status axes_check(const oomsight_matrix *matrix, const char *path, oomsight_error *reterr)
{
    for (size_t b = 0; b < matrix->file.block_count; b++) {
        const oos_matrix_block *block = &matrix->file.blocks[b];
        for (size_t i = 0; i < block->gpu_count; i++) {
            uint64_t count;
            if (!block->gpus[i].gpu ||
                oos_gpus_find(&matrix->data->gpus, oos_view_of(block->gpus[i].gpu), &count))
                continue;
            oos_device_unknown(&matrix->data->gpus, block->gpus[i].gpu, reterr);
            return at_line(reterr, path, block->gpus[i].line);
        }
        for (size_t i = 0; i < block->version_count; i++) {
            if (release_check(matrix, block->versions[i].text, reterr) == OOMSIGHT_OK) continue;
            return at_line(reterr, path, block->versions[i].line);
        }
    }
    return OOMSIGHT_OK;
}

/* Those of the caller come before those of the file. */
static oomsight_status engines_join(oomsight_matrix *matrix, const oomsight_matrix_params *params,
                                    oomsight_error *reterr)
{
    oos_matrix_file *file = &matrix->file;
    size_t const count = params->engine_count + file->engine_count;
    oos_matrix_engine *list = OOS_NEW_ARRAY(matrix->arena, oos_matrix_engine, count);
    if (!list) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a matrix");
    for (size_t i = 0; i < params->engine_count; i++) {
        const char *equals = strchr(params->engines[i], '=');
        if (!equals || equals == params->engines[i] || !equals[1])
            return oos_fail(reterr, OOMSIGHT_USAGE, "'%s' is not VERSION=FOLDER", params->engines[i]);
        list[i].version = oos_arena_copy(
            matrix->arena, (oos_view){params->engines[i], (size_t)(equals - params->engines[i])});
        list[i].path = oos_arena_copy(matrix->arena, oos_view_of(equals + 1));
        if (!list[i].version || !list[i].path)
            return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a matrix");
    }
    for (size_t i = 0; i < file->engine_count; i++) list[params->engine_count + i] = file->engines[i];
    file->engines = list;
    file->engine_count = count;
    return OOMSIGHT_OK;
}

const char *oos_matrix_engine_of(const oos_matrix_file *file, const char *version)
{
    for (size_t i = 0; i < file->engine_count; i++)
        if (strcmp(file->engines[i].version, version) == 0) return file->engines[i].path;
    return NULL;
}

static oomsight_status file_read(oomsight_matrix *matrix, const oomsight_matrix_params *params,
                                 oomsight_error *reterr)
{
    oos_view bytes;
    const oos_version *known;
    char newest[32];
    const oos_engine_facts *first;
    OOS_TRY(oos_api_first_facts(matrix->data, &first, reterr));
    size_t const count = oos_rule_book_versions(first->rules, &known);
    oos_version_print(known[count - 1], newest, sizeof newest);
    const char *versions[2] = {NULL, NULL};
    matrix->diff = params->from_version != NULL;
    if (matrix->diff) {
        versions[0] = copy(matrix->arena, params->from_version);
        versions[1] = copy(matrix->arena, params->to_version);
    }
    const char *kept = copy(matrix->arena, newest);
    if (!kept || (matrix->diff && (!versions[0] || !versions[1])))
        return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a matrix");
    OOS_TRY(oos_file_read(matrix->arena, params->path, FILE_MAX, &bytes, reterr));
    oomsight_status const status =
        oos_matrix_read(matrix->arena, bytes, kept, versions, matrix->diff ? 2 : 0, &matrix->file, reterr);
    if (status != OOMSIGHT_OK) return oos_fail_in(reterr, status, params->path);
    if (params->mode) matrix->file.dryrun = strcmp(params->mode, "dryrun") == 0;
    return OOMSIGHT_OK;
}

static oomsight_status matrix_fill(oomsight_matrix *matrix, const oomsight_matrix_params *params,
                                   oomsight_error *reterr)
{
    slot_name *table = NULL;
    OOS_TRY(file_read(matrix, params, reterr));
    OOS_TRY(axes_check(matrix, params->path, reterr));
    OOS_TRY(engines_join(matrix, params, reterr));
    oomsight_status const status = slots_make(matrix, params, &table, reterr);
    HASH_CLEAR(hh, table);
    if (status != OOMSIGHT_OK) return status;
    if (params->part_count)
        OOS_TRY(oos_matrix_parts_open(matrix, params->parts, params->part_count, reterr));
    else if (caches(matrix, params)) {
        OOS_TRY(oos_matrix_cache_base(matrix, params, reterr));
        OOS_TRY(oos_matrix_cache_open(params->cache_dir, &matrix->cache, reterr));
    }
    return oos_matrix_sum_create(matrix->arena, &matrix->file, matrix->diff,
                                 params->moved_ratio > 0 ? params->moved_ratio : 0.05, &matrix->sum, reterr);
}

oomsight_status oomsight_matrix_open(const oomsight_matrix_params *params, oomsight_matrix **ret_matrix,
                                     oomsight_error *reterr)
{
    OOS_TAKE_PARAMS(oomsight_matrix_params, params);
    if (!params->data || !params->path) return oos_fail(reterr, OOMSIGHT_USAGE, "a matrix needs a file");
    if (!params->from_version != !params->to_version)
        return oos_fail(reterr, OOMSIGHT_USAGE, "a comparison needs two versions");
    if (params->shard && params->shard >= params->shards)
        return oos_fail(reterr, OOMSIGHT_USAGE, "there is no such shard");
    oos_arena *arena = oos_arena_create(64 << 10);
    oomsight_matrix *matrix = arena ? OOS_NEW(arena, oomsight_matrix) : NULL;
    if (!matrix) {
        oos_arena_free(arena);
        return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a matrix");
    }
    long const cores = sysconf(_SC_NPROCESSORS_ONLN);
    matrix->arena = arena;
    matrix->data = params->data;
    matrix->allow_hub = params->allow_hub != 0;
    matrix->lines = params->lines != 0;
    matrix->asker = params->asker;
    matrix->shard = params->shard;
    matrix->shards = params->shards ? params->shards : 1;
    matrix->threads = params->asker ? 1 : params->threads ? params->threads : cores > 0 ? (unsigned)cores : 1;
    matrix->scratch = oos_arena_create(16 << 10);
    oomsight_status status = OOMSIGHT_NOMEM;
    if (matrix->scratch) status = OOS_WHOLE_STATUS(params, matrix_fill(matrix, params, reterr));
    if (status != OOMSIGHT_OK) {
        oomsight_matrix_close(matrix);
        return status;
    }
    *ret_matrix = matrix;
    return OOMSIGHT_OK;
}

void oomsight_matrix_close(oomsight_matrix *matrix)
{
    if (!matrix) return;
    oos_matrix_crew_free(matrix->crew);
    oos_matrix_parts_close(matrix->parts);
    oos_matrix_cache_close(matrix->cache);
    for (size_t i = 0; matrix->slots && i < matrix->slot_count; i++)
        oomsight_model_close(matrix->slots[i].model);
    oos_text_free(&matrix->line);
    oos_arena_free(matrix->scratch);
    oos_arena_free(matrix->arena);
}

uint64_t oomsight_matrix_points(const oomsight_matrix *matrix)
{
    return matrix->file.points;
}

uint64_t oomsight_matrix_share(const oomsight_matrix *matrix)
{
    return (matrix->file.points + matrix->shards - 1 - matrix->shard) / matrix->shards;
}

int oomsight_matrix_is_dryrun(const oomsight_matrix *matrix)
{
    return matrix->file.dryrun;
}

oomsight_status oomsight_matrix_next(oomsight_matrix *matrix, const oomsight_matrix_point **ret_point,
                                     oomsight_error *reterr)
{
    if (matrix->parts) return oos_matrix_parts_next(matrix, ret_point, reterr);
    if (matrix->file.dryrun) return oos_fail(reterr, OOMSIGHT_USAGE, "dry runs are up to the caller");
    return oos_matrix_crew_next(matrix, ret_point, reterr);
}

void oomsight_matrix_count(const oomsight_matrix *matrix, oomsight_matrix_tally *ret_tally)
{
    oomsight_matrix_tally tally = OOMSIGHT_MATRIX_TALLY_INIT;
    oos_matrix_sum_tally(matrix->sum, &tally);
    tally.unkept = matrix->unkept;
    tally.kept = matrix->kept;
    if (matrix->parts) tally.absent = oos_matrix_parts_absent(matrix->parts);
    oos_params_give(ret_tally, &tally, sizeof tally);
}

oomsight_status oomsight_matrix_render(const oomsight_matrix *matrix, const oomsight_render_params *params,
                                       char **ret_text, oomsight_error *reterr)
{
    OOS_TAKE_PARAMS(oomsight_render_params, params);
    oos_text text = {0};
    switch (params->format) {
    case OOMSIGHT_FORMAT_TEXT: oos_report_matrix_text(&text, matrix->sum, params); break;
    case OOMSIGHT_FORMAT_JSON: oos_report_matrix_json(&text, matrix->sum); break;
    case OOMSIGHT_FORMAT_MARKDOWN: oos_report_matrix_markdown(&text, matrix->sum, params); break;
    case OOMSIGHT_FORMAT_HTML: oos_report_matrix_html(&text, matrix->sum, params); break;
    case OOMSIGHT_FORMAT_JUNIT: oos_report_matrix_junit(&text, matrix->sum); break;
    case OOMSIGHT_FORMAT_GITHUB:
    case OOMSIGHT_FORMAT_SARIF:
    case OOMSIGHT_FORMAT_PATCH:
        return oos_fail(reterr, OOMSIGHT_UNSUPPORTED,
                        "a matrix is written as text, JSON, Markdown, HTML or JUnit");
    }
    return OOS_WHOLE_TEXT(params, &text, ret_text);
}
