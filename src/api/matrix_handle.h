/* What the files of api_matrix*.c share: the inside of a matrix, its threads and its cache. */
#ifndef OOS_API_MATRIX_HANDLE_H
#define OOS_API_MATRIX_HANDLE_H

#include "api/api.h"
#include "base/sha256.h"
#include "base/text.h"
#include "matrix/matrix.h"
#include "report/matrix_report.h"

#include <pthread.h>

/* One model word of the file, opened once and shared by all points and threads. */
typedef struct oos_matrix_slot {
    const char *name;      /* as the file has it */
    const char *place;     /* what was opened: a directory or an id */
    oomsight_model *model; /* NULL: `problem` */
    const char *problem;
    char digest[65]; /* of its files; "": not known, so that nothing of it is cached */
} oos_matrix_slot;

/* A file of finished points, append-only: what is found in it is never wrong, only missing. */
typedef struct oos_matrix_cache oos_matrix_cache;

typedef struct oos_matrix_crew oos_matrix_crew;

struct oomsight_matrix {
    oos_arena *arena;
    const oomsight_data *data;
    oos_matrix_file file;
    oos_matrix_slot *slots;
    size_t slot_count;
    const uint32_t **slot_of; /* [block][model] */
    bool allow_hub, lines, diff;
    unsigned threads;
    oos_matrix_cache *cache; /* NULL: none */
    uint64_t unkept;         /* lines that could not be written to it */
    oos_sha256 base;         /* what every key begins with */
    oos_matrix_crew *crew;   /* NULL: not started */
    oos_matrix_sum *sum;
    oos_arena *scratch; /* of the point that was given last */
    oos_text line;
    oomsight_matrix_point point;
};

/* Labels and numbers of a point without an answer. The label of its flags may be made in `scratch`. */
void oos_matrix_point_begin(const oos_matrix_file *file, const oos_matrix_place *place, uint64_t number,
                            oos_arena *scratch, oomsight_matrix_point *ret_point);

/* Answer a point by planning it; what fails is in the point. Strings go to `scratch`. */
void oos_matrix_point_plan(const oomsight_matrix *matrix, const oos_matrix_place *place, oos_arena *scratch,
                           oomsight_matrix_point *point);

/* Answer it from the JSON of a dry run or from a line of the cache: the fields have the same names. */
bool oos_matrix_point_take(oos_view json, oos_arena *scratch, oomsight_matrix_point *point);

const oos_matrix_slot *oos_matrix_slot_at(const oomsight_matrix *matrix, const oos_matrix_place *place);
const char *oos_matrix_engine_of(const oos_matrix_file *file, const char *version);

/* api_matrix_run.c: threads that plan ahead of the reader, in order. */
oomsight_status oos_matrix_crew_next(oomsight_matrix *matrix, const oomsight_matrix_point **ret_point,
                                     oomsight_error *reterr);
void oos_matrix_crew_free(oos_matrix_crew *crew);

/* api_matrix_cache.c */
oomsight_status oos_matrix_cache_open(const char *dir, oos_matrix_cache **ret_cache, oomsight_error *reterr);
void oos_matrix_cache_close(oos_matrix_cache *cache);
oomsight_status oos_matrix_cache_base(oomsight_matrix *matrix, const oomsight_matrix_params *params,
                                      oomsight_error *reterr);
/* False: the point has no key. */
bool oos_matrix_cache_key(const oomsight_matrix *matrix, const oos_matrix_place *place, char ret_key[65]);
/* Threads may ask at once. */
bool oos_matrix_cache_find(const oos_matrix_cache *cache, const char *key, oos_arena *scratch,
                           oomsight_matrix_point *point);
/* False: it cannot be written, and no further one is tried; the run goes on. */
bool oos_matrix_cache_keep(oos_matrix_cache *cache, const char *key, const oomsight_matrix_point *point);
void oos_matrix_model_digest(oos_arena *arena, oos_matrix_slot *slot);

#endif
