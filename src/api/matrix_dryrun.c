/* Dry starts of a matrix: which command a point is, and what its report says. Running it is the caller's. */
#include "api/api.h"
#include "dryrun/dryrun.h"
#include "facts/facts.h"

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

static void point_take(oos_dryrun_answer const *answer, oomsight_matrix_point *point)
{
    point->verdict = answer->verdict;
    point->phase = answer->phase;
    point->cause = answer->cause;
    point->why = answer->why;
    point->unknown_flag = answer->unknown_flag;
    point->command = answer->command;
    point->tried_bytes = oos_u64_or(answer->tried_bytes, OOMSIGHT_UNKNOWN);
    point->weights_bytes = oos_u64_or(answer->weights_bytes, OOMSIGHT_UNKNOWN);
    point->kv_tokens = oos_u64_or(answer->kv_tokens, OOMSIGHT_UNKNOWN);
    point->kv_available_bytes = oos_u64_or(answer->kv_available_bytes, OOMSIGHT_UNKNOWN);
    point->max_concurrency = answer->max_concurrency;
    point->starts = answer->starts;
    point->readable = 1;
}

bool oos_matrix_point_take(oos_view json, oos_arena *scratch, oomsight_matrix_point *point)
{
    oos_dryrun_answer answer;
    if (!oos_dryrun_report_read(scratch, json, &answer)) return false;
    point_take(&answer, point);
    return true;
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
    *ret_there =
        number % matrix->shards == matrix->shard && oos_matrix_place_of(&matrix->file, number, ret_place);
    if (!*ret_there) return OOMSIGHT_OK;
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
    bool const has_key = matrix->cache && oos_matrix_cache_key(matrix, &place, key);
    bool const free_to_run = !has_key || oos_matrix_cache_claim(matrix->cache, key);
    if (has_key) oos_matrix_cache_refresh(matrix->cache); /* whoever had the claim before may have answered */
    if (has_key && oos_matrix_cache_find(matrix->cache, key, matrix->scratch, &matrix->point)) {
        if (free_to_run) oos_matrix_cache_release(matrix->cache, key);
        *ret_need = OOMSIGHT_MATRIX_KNOWN;
        matrix->kept++;
        return point_give(matrix, &place, ret_point, reterr);
    }
    words *w = OOS_NEW(matrix->scratch, words);
    if (!w) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a command");
    w->arena = matrix->scratch;
    put_command(matrix, &place, w);
    for (size_t i = 0; i < w->count; i++)
        if (!w->list[i]) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a command");
    *ret_need = free_to_run ? OOMSIGHT_MATRIX_RUN : OOMSIGHT_MATRIX_TAKEN;
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
    oos_dryrun_answer answer;
    bool const killed = arena && oos_dryrun_report_read(arena, oos_view_of(report), &answer) && answer.killed;
    oos_arena_free(arena);
    return !killed;
}

/* A report of another version than the one that was asked for is no answer. */
static const char *other_version(oos_arena *scratch, const oos_dryrun_answer *answer, const char *wanted)
{
    oos_version is, should;
    if (!answer->engine_version || !oos_version_parse(oos_view_of(answer->engine_version), &is) ||
        !oos_version_parse(oos_view_of(wanted), &should) || is == should)
        return NULL;
    return oos_arena_format(scratch,
                            "the engine that was found is %s %s, not %s: name its folder with --engine",
                            oos_engine_default->title, answer->engine_version, wanted);
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
    oos_dryrun_answer answer;
    bool const read = report && oos_dryrun_report_read(matrix->scratch, oos_view_of(report), &answer);
    const char *other = read ? other_version(matrix->scratch, &answer, point->version) : NULL;
    if (other) problem = other;
    if (read && !other) point_take(&answer, point);
    if (!point->readable) {
        point->why = oos_arena_copy(matrix->scratch, oos_view_of(problem ? problem : "no report was made"));
    } else if (point->verdict == OOMSIGHT_VERDICT_UNKNOWN && !point->why) {
        point->why = oos_arena_copy(matrix->scratch,
                                    oos_view_of(problem ? problem : "the engine ended for another reason"));
    }
    point->seconds = (double)(int64_t)(seconds * 1000 + 0.5) / 1000;
    point->attempts = attempts;
    bool const has_key = matrix->cache && oos_matrix_cache_key(matrix, &place, key);
    if (has_key && definite(point)) {
        bool const kept = oos_matrix_cache_keep(matrix->cache, key, point);
        matrix->kept += kept;
        matrix->unkept += !kept;
    }
    if (has_key) oos_matrix_cache_release(matrix->cache, key);
    return point_give(matrix, &place, ret_point, reterr);
}
