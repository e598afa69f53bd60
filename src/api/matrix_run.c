/* Planning on threads, read in order. The points are cut into stretches; a thread takes the next stretch, answers it into the
 * place it has in a short ring, and waits when the reader is a ring behind. So memory does not grow with the matrix.
 *
 *     stretch   0   1   2   3   4   5 ...          ring place = stretch % places
 *             read ^   ^-------^ done or under way   ^ waits for the reader */
#include "api/api.h"

#include <stdlib.h>

enum { STRETCH = 128, PLACES_PER_THREAD = 4, THREADS_MAX = 256 };

typedef struct place {
    oos_arena *arena; /* strings of its points */
    oos_text lines;
    oomsight_matrix_point points[STRETCH];
    size_t line_at[STRETCH + 1];
    char (*keys)[65]; /* NULL: no cache */
    size_t count;
    bool done;
} place;

struct oos_matrix_crew {
    const oomsight_matrix *matrix;
    pthread_mutex_t lock;
    pthread_cond_t made, room;
    pthread_t threads[THREADS_MAX];
    unsigned thread_count;
    place *places;
    uint64_t place_count, stretches;
    uint64_t next; /* stretch that is taken next */
    uint64_t read; /* stretch that the reader is in */
    size_t at;     /* point in it that is read next */
    bool stop;
};

static void point_answer(const oomsight_matrix *matrix, const oos_matrix_place *where, place *p,
                         oomsight_matrix_point *point, char *key)
{
    if (matrix->cache && oos_matrix_cache_key(matrix, where, key) &&
        oos_matrix_cache_find(matrix->cache, key, p->arena, point))
        return;
    oos_matrix_point_plan(matrix, where, p->arena, point);
}

static void stretch_answer(const oomsight_matrix *matrix, uint64_t stretch, place *p)
{
    uint64_t const first = stretch * STRETCH, points = matrix->file.points;
    oos_arena_reset(p->arena);
    p->lines.len = 0;
    p->count = 0;
    for (uint64_t number = first; number < first + STRETCH && number < points; number++) {
        oos_matrix_place where;
        if (number % matrix->shards != matrix->shard || !oos_matrix_place_of(&matrix->file, number, &where))
            continue;
        oomsight_matrix_point *point = &p->points[p->count];
        char *key = p->keys ? p->keys[p->count] : NULL;
        if (key) *key = '\0';
        oos_matrix_point_begin(&matrix->file, &where, number, p->arena, point);
        point_answer(matrix, &where, p, point, key);
        p->line_at[p->count] = p->lines.len;
        if (matrix->lines) oos_report_matrix_line(&p->lines, point, false, NULL);
        p->line_at[++p->count] = p->lines.len;
    }
}

static void *thread_run(void *argument)
{
    oos_matrix_crew *crew = argument;
    pthread_mutex_lock(&crew->lock);
    for (;;) {
        while (!crew->stop && crew->next < crew->stretches && crew->next >= crew->read + crew->place_count)
            pthread_cond_wait(&crew->room, &crew->lock);
        if (crew->stop || crew->next >= crew->stretches) break;
        uint64_t const stretch = crew->next++;
        place *p = &crew->places[stretch % crew->place_count];
        pthread_mutex_unlock(&crew->lock);
        stretch_answer(crew->matrix, stretch, p);
        pthread_mutex_lock(&crew->lock);
        p->done = true;
        pthread_cond_signal(&crew->made);
    }
    pthread_mutex_unlock(&crew->lock);
    return NULL;
}

void oos_matrix_crew_free(oos_matrix_crew *crew)
{
    if (!crew) return;
    pthread_mutex_lock(&crew->lock);
    crew->stop = true;
    pthread_cond_broadcast(&crew->room);
    pthread_mutex_unlock(&crew->lock);
    for (unsigned i = 0; i < crew->thread_count; i++) pthread_join(crew->threads[i], NULL);
    for (uint64_t i = 0; crew->places && i < crew->place_count; i++) {
        oos_arena_free(crew->places[i].arena);
        oos_text_free(&crew->places[i].lines);
        free(crew->places[i].keys);
    }
    free(crew->places);
    pthread_cond_destroy(&crew->made);
    pthread_cond_destroy(&crew->room);
    pthread_mutex_destroy(&crew->lock);
    free(crew);
}

static oomsight_status crew_start(oomsight_matrix *matrix, oomsight_error *reterr)
{
    oos_matrix_crew *crew = calloc(1, sizeof *crew);
    if (!crew) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a matrix");
    unsigned const threads = matrix->threads < THREADS_MAX ? matrix->threads : THREADS_MAX;
    matrix->crew = crew;
    crew->matrix = matrix;
    crew->stretches = (matrix->file.points + STRETCH - 1) / STRETCH;
    crew->place_count = (uint64_t)threads * PLACES_PER_THREAD;
    pthread_mutex_init(&crew->lock, NULL);
    pthread_cond_init(&crew->made, NULL);
    pthread_cond_init(&crew->room, NULL);
    crew->places = calloc(crew->place_count, sizeof *crew->places);
    if (!crew->places) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a matrix");
    for (uint64_t i = 0; i < crew->place_count; i++) {
        crew->places[i].arena = oos_arena_create(64 << 10);
        if (matrix->cache) crew->places[i].keys = calloc(STRETCH, sizeof *crew->places[i].keys);
        if (!crew->places[i].arena || (matrix->cache && !crew->places[i].keys))
            return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a matrix");
    }
    for (; crew->thread_count < threads && crew->thread_count < crew->stretches; crew->thread_count++)
        if (pthread_create(&crew->threads[crew->thread_count], NULL, thread_run, crew) != 0) break;
    if (crew->thread_count == 0) return oos_fail(reterr, OOMSIGHT_INTERNAL, "no thread could be started");
    return OOMSIGHT_OK;
}

oomsight_status oos_matrix_crew_next(oomsight_matrix *matrix, const oomsight_matrix_point **ret_point,
                                     oomsight_error *reterr)
{
    if (!matrix->crew) OOS_TRY(crew_start(matrix, reterr));
    oos_matrix_crew *crew = matrix->crew;
    place *p = &crew->places[crew->read % crew->place_count];
    *ret_point = NULL;
    while (crew->read < crew->stretches) {
        p = &crew->places[crew->read % crew->place_count];
        if (crew->at == 0) {
            pthread_mutex_lock(&crew->lock);
            while (!p->done) pthread_cond_wait(&crew->made, &crew->lock);
            pthread_mutex_unlock(&crew->lock);
        }
        if (crew->at < p->count) break;
        pthread_mutex_lock(&crew->lock); /* its place is free again */
        p->done = false;
        crew->read++;
        pthread_cond_broadcast(&crew->room);
        pthread_mutex_unlock(&crew->lock);
        crew->at = 0;
    }
    if (crew->read >= crew->stretches) return OOMSIGHT_OK;

    oomsight_matrix_point *point = &p->points[crew->at];
    if (p->lines.failed) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a line");
    if (matrix->lines) {
        point->line = p->lines.ptr + p->line_at[crew->at];
        point->line_bytes = p->line_at[crew->at + 1] - p->line_at[crew->at];
    }
    if (p->keys && *p->keys[crew->at] && !point->cached && point->readable)
        matrix->unkept += !oos_matrix_cache_keep(matrix->cache, p->keys[crew->at], point);
    oos_matrix_place where;
    oos_matrix_place_of(&matrix->file, point->number, &where);
    oos_matrix_sum_add(matrix->sum, &where, point);
    crew->at++;
    *ret_point = point;
    return OOMSIGHT_OK;
}
