/* Dry starts of a matrix: which command a point is, and what its report says. Running it is the caller's. */
#include "api/matrix_handle.h"
#include "base/json.h"
#include "facts/version.h"

#include <stdio.h>

typedef struct words {
    oos_arena *arena;
    const char *list[OOS_MATRIX_WORDS + 24];
    size_t count;
} words;

static void put(words *w, const char *word)
{
    if (w->count < sizeof w->list / sizeof *w->list) w->list[w->count++] = word;
}

static void put_size(words *w, const char *option, uint64_t bytes)
{
    if (!bytes) return;
    put(w, option);
    put(w, oos_arena_format(w->arena, "%llu", (unsigned long long)bytes));
}

static void put_command(const oomsight_matrix *matrix, const oos_matrix_place *place, words *w)
{
    const oos_matrix_gpu *gpu = &place->block->gpus[place->gpu];
    if (gpu->gpu) {
        put(w, "--gpu");
        put(w, gpu->gpu);
    }
    put_size(w, "--gpu-total", gpu->total_bytes);
    put_size(w, "--gpu-used", gpu->used_bytes);
    if (gpu->capability) {
        put(w, "--compute-capability");
        put(w, gpu->capability);
    }
    put(w, "--");
    put(w, oos_engine_default->name);
    put(w, "serve");
    put(w, oos_matrix_slot_at(matrix, place)->place);
    w->count += oos_matrix_flag_words(place, w->list + w->count);
}

static bool json_text(const json_t *root, const char *key, oos_arena *scratch, const char **ret_text)
{
    const char *text = NULL;
    if (!oos_json_str(root, key, &text)) return false;
    *ret_text = oos_arena_copy(scratch, oos_view_of(text));
    return true;
}

bool oos_matrix_point_take(oos_view json, oos_arena *scratch, oomsight_matrix_point *point)
{
    static const struct {
        const char *word;
        oomsight_verdict verdict;
    } verdicts[] = {{"fits", OOMSIGHT_VERDICT_FITS},
                    {"tight", OOMSIGHT_VERDICT_TIGHT},
                    {"fails", OOMSIGHT_VERDICT_FAILS},
                    {"refused", OOMSIGHT_VERDICT_REFUSED},
                    {"unknown", OOMSIGHT_VERDICT_UNKNOWN}};
    json_t *root;
    const char *verdict = NULL;
    if (oos_json_load(scratch, json, &root, NULL) != OOMSIGHT_OK) return false;
    if (!oos_json_str(root, "verdict", &verdict)) return false;
    bool found = false;
    for (size_t i = 0; i < sizeof verdicts / sizeof *verdicts && !found; i++) {
        found = strcmp(verdict, verdicts[i].word) == 0;
        if (found) point->verdict = verdicts[i].verdict;
    }
    const json_t *kv = json_object_get(root, "kv"), *child = json_object_get(root, "child");
    json_text(root, "phase", scratch, &point->phase);
    json_text(root, "cause", scratch, &point->cause);
    json_text(root, "why", scratch, &point->why);
    json_text(root, "unknown_flag", scratch, &point->unknown_flag);
    if (!point->why && !json_text(child, "oom_message", scratch, &point->why))
        json_text(child, "refusal", scratch, &point->why);
    oos_json_u64(root, "tried_bytes", &point->tried_bytes);
    oos_json_u64(root, "weights_bytes", &point->weights_bytes);
    oos_json_u64(kv, "tokens", &point->kv_tokens);
    oos_json_u64(kv, "available_bytes", &point->kv_available_bytes);
    oos_json_f64(kv, "max_concurrency", &point->max_concurrency);
    const char *likely = NULL;
    point->starts = point->verdict == OOMSIGHT_VERDICT_FITS ||
                    (oos_json_str(root, "likely", &likely) && strcmp(likely, "starts") == 0);
    json_text(root, "command", scratch, &point->command);
    point->readable = found;
    return found;
}

/* The point becomes the one that was given last: it is counted and has its line. */
static oomsight_status point_give(oomsight_matrix *matrix, const oos_matrix_place *place,
                                  const oomsight_matrix_point **ret_point, oomsight_error *reterr)
{
    char key[65];
    oomsight_matrix_point *point = &matrix->point;
    matrix->line.len = 0;
    if (matrix->lines) {
        bool const has_key = matrix->cache && oos_matrix_cache_key(matrix, place, key);
        oos_report_matrix_line(&matrix->line, point, true, has_key ? key : NULL);
        point->line = matrix->line.ptr;
        point->line_bytes = matrix->line.len;
    }
    oos_matrix_sum_add(matrix->sum, place, point);
    *ret_point = point;
    return matrix->line.failed ? oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a line") : OOMSIGHT_OK;
}

static oomsight_status point_start(oomsight_matrix *matrix, uint64_t number, oos_matrix_place *ret_place,
                                   bool *ret_there, oomsight_error *reterr)
{
    if (number >= matrix->file.points)
        return oos_fail(reterr, OOMSIGHT_USAGE, "the matrix has no point %llu", (unsigned long long)number);
    *ret_there = oos_matrix_place_of(&matrix->file, number, ret_place);
    oos_arena_reset(matrix->scratch);
    oos_matrix_point_begin(&matrix->file, ret_place, number, matrix->scratch, &matrix->point);
    return OOMSIGHT_OK;
}

oomsight_status oomsight_matrix_task_of(oomsight_matrix *matrix, uint64_t number,
                                        oomsight_matrix_need *ret_need, oomsight_matrix_task *ret_task,
                                        const oomsight_matrix_point **ret_point, oomsight_error *reterr)
{
    oos_matrix_place place;
    bool there = false;
    char key[65];
    OOS_TRY(point_start(matrix, number, &place, &there, reterr));
    *ret_need = OOMSIGHT_MATRIX_EXCLUDED;
    if (!there) return OOMSIGHT_OK;
    if (matrix->cache && oos_matrix_cache_key(matrix, &place, key) &&
        oos_matrix_cache_find(matrix->cache, key, matrix->scratch, &matrix->point)) {
        *ret_need = OOMSIGHT_MATRIX_KNOWN;
        return point_give(matrix, &place, ret_point, reterr);
    }
    words *w = OOS_NEW(matrix->scratch, words);
    if (!w) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a command");
    w->arena = matrix->scratch;
    put_command(matrix, &place, w);
    for (size_t i = 0; i < w->count; i++)
        if (!w->list[i]) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a command");
    *ret_need = OOMSIGHT_MATRIX_RUN;
    oomsight_matrix_task const task = {.size = sizeof task,
                                       .words = w->list,
                                       .word_count = w->count,
                                       .environment = matrix->file.environment.list,
                                       .environment_count = matrix->file.environment.count,
                                       .engine = oos_matrix_engine_of(&matrix->file, matrix->point.version)};
    oos_params_give(ret_task, &task, sizeof task);
    return OOMSIGHT_OK;
}

int oomsight_matrix_report_settled(const char *report)
{
    oos_arena *arena = oos_arena_create(16 << 10);
    json_t *root;
    const char *verdict = NULL;
    uint64_t dead = 0, host = 0, ended = 0;
    bool settled = true;
    if (arena && oos_json_load(arena, oos_view_of(report), &root, NULL) == OOMSIGHT_OK &&
        oos_json_str(root, "verdict", &verdict) && strcmp(verdict, "unknown") == 0) {
        const json_t *child = json_object_get(root, "child");
        oos_json_u64(child, "exit", &ended);
        oos_json_u64(child, "dead_processes", &dead);
        oos_json_u64(child, "host_exhausted", &host);
        settled = ended <= 128 && dead == 0 && host == 0;
    }
    oos_arena_free(arena);
    return settled;
}

/* A report of another version than the one that was asked for is no answer. */
static const char *other_version(oos_arena *scratch, const char *report, const char *wanted)
{
    json_t *root;
    const char *version = NULL;
    oos_version is, should;
    if (oos_json_load(scratch, oos_view_of(report), &root, NULL) != OOMSIGHT_OK) return NULL;
    if (!oos_json_str(json_object_get(root, "engine"), "version", &version)) return NULL;
    if (!oos_version_parse(oos_view_of(version), &is) || !oos_version_parse(oos_view_of(wanted), &should) ||
        is == should)
        return NULL;
    return oos_arena_format(scratch,
                            "the engine that was found is %s %s, not %s: name its folder with --engine",
                            oos_engine_default->title, version, wanted);
}

/* A definite answer is one that the next run would give as well. */
static bool definite(const oomsight_matrix_point *point)
{
    return point->readable && point->verdict != OOMSIGHT_VERDICT_UNKNOWN;
}

oomsight_status oomsight_matrix_answer(oomsight_matrix *matrix, uint64_t number, const char *report,
                                       const char *problem, double seconds, unsigned attempts,
                                       const oomsight_matrix_point **ret_point, oomsight_error *reterr)
{
    oos_matrix_place place;
    bool there = false;
    char key[65];
    OOS_TRY(point_start(matrix, number, &place, &there, reterr));
    if (!there) return oos_fail(reterr, OOMSIGHT_USAGE, "the point is excluded");
    oomsight_matrix_point *point = &matrix->point;
    const char *other = report ? other_version(matrix->scratch, report, point->version) : NULL;
    if (other) {
        problem = other;
        report = NULL;
    }
    if (!report || !oos_matrix_point_take(oos_view_of(report), matrix->scratch, point)) {
        point->readable = 0;
        point->why = oos_arena_copy(matrix->scratch, oos_view_of(problem ? problem : "no report was made"));
    } else if (point->verdict == OOMSIGHT_VERDICT_UNKNOWN && !point->why) {
        point->why = oos_arena_copy(matrix->scratch,
                                    oos_view_of(problem ? problem : "the engine ended for another reason"));
    }
    point->seconds = (double)(int64_t)(seconds * 1000 + 0.5) / 1000;
    point->attempts = attempts;
    if (matrix->cache && definite(point) && oos_matrix_cache_key(matrix, &place, key))
        matrix->unkept += !oos_matrix_cache_keep(matrix->cache, key, point);
    return point_give(matrix, &place, ret_point, reterr);
}
