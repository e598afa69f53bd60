/* Points that other runs have answered (`--shard`), read back in the order of the file: each line is found by its number and stays in its
 * file until it is its turn. What was asked is in this file, what was answered in those: a line that does not name the same point is
 * no answer to it. */
#include "api/api.h"
#include "base/file.h"
#include "base/json.h"
#include "base/locale.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { LINE_MAX_BYTES = 1 << 20 };

typedef struct entry {
    uint64_t number, at;
    uint32_t len, order; /* order: of the file, then of the line */
    uint16_t part, rank; /* rank: no answer, one that is not known, one */
} entry;

struct oos_matrix_parts {
    const char **paths;
    int *fds;
    size_t part_count;
    entry *list;
    size_t count, capacity, at;
    uint64_t number, absent; /* number: of the point that comes next */
};

/* The number of the point. False: no line of a matrix. */
static bool number_read(const char *line, size_t len, uint64_t *ret_number)
{
    static const char head[] = "{\"schema\": \"oomsight.matrix/1\", ", word[] = "\"point\": ";
    const char *at = len > sizeof head - 1 && memcmp(line, head, sizeof head - 1) == 0
                         ? memmem(line, len < 256 ? len : 256, word, sizeof word - 1)
                         : NULL;
    char *end = NULL;
    if (at) *ret_number = strtoull(at + sizeof word - 1, &end, 10);
    return at && *end == ',' && line[len - 1] == '}';
}

static bool entry_add(oos_matrix_parts *parts, entry const *e)
{
    if (parts->count == parts->capacity) {
        size_t const capacity = parts->capacity ? 2 * parts->capacity : 1024;
        entry *list = realloc(parts->list, capacity * sizeof *list);
        if (!list) return false;
        parts->list = list, parts->capacity = capacity;
    }
    parts->list[parts->count++] = *e;
    return true;
}

static oomsight_status part_read(oos_matrix_parts *parts, size_t part, uint64_t points, bool *ret_dryrun,
                                 oomsight_error *reterr)
{
    FILE *file = fopen(parts->paths[part], "re");
    int const fd = file ? dup(fileno(file)) : -1;
    if (!file || fd < 0) {
        if (file) fclose(file);
        return oos_fail(reterr, OOMSIGHT_IO, "%s", oos_errno_text(errno));
    }
    parts->fds[part] = fd;
    char *line = NULL;
    size_t capacity = 0;
    uint64_t at = 0;
    ssize_t got;
    oomsight_status status = OOMSIGHT_OK;
    for (uint32_t row = 1; status == OOMSIGHT_OK && (got = getline(&line, &capacity, file)) > 0; row++) {
        entry e = {.at = at, .part = (uint16_t)part, .order = (uint32_t)parts->count, .rank = 2};
        size_t const len = (size_t)got - (line[got - 1] == '\n');
        at += (uint64_t)got;
        if (len == (size_t)got) break; /* its writer was killed: the point is absent, or in another part */
        bool const is_point = len <= LINE_MAX_BYTES && number_read(line, len, &e.number);
        e.len = (uint32_t)len;
        if (!is_point || e.number >= points) {
            status = is_point
                         ? oos_fail(reterr, OOMSIGHT_MALFORMED, "the matrix has no point %llu",
                                    (unsigned long long)e.number)
                         : oos_fail(reterr, OOMSIGHT_MALFORMED, "no point of a matrix (oomsight.matrix/1)");
            if (reterr) reterr->line = row;
        } else {
            if (memmem(line, len, "\"verdict\": null", 15)) e.rank = 0;
            if (memmem(line, len, "\"verdict\": \"unknown\"", 20)) e.rank = 1;
            if (memmem(line, len, "\"attempts\": ", 12)) *ret_dryrun = true;
            if (!entry_add(parts, &e)) status = oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for points");
        }
    }
    if (status == OOMSIGHT_OK && ferror(file))
        status = oos_fail(reterr, OOMSIGHT_IO, "%s", oos_errno_text(errno));
    free(line);
    fclose(file);
    return status;
}

/* By number; of one number the best answer first, and of equals the last that was given. */
static int entry_order(const void *a, const void *b)
{
    const entry *x = a, *y = b;
    if (x->number != y->number) return x->number < y->number ? -1 : 1;
    if (x->rank != y->rank) return x->rank > y->rank ? -1 : 1;
    return x->order > y->order ? -1 : x->order < y->order;
}

oomsight_status oos_matrix_parts_open(oomsight_matrix *matrix, const char *const *paths, size_t count,
                                      oomsight_error *reterr)
{
    oos_matrix_parts *parts = calloc(1, sizeof *parts);
    matrix->parts = parts;
    if (count > UINT16_MAX) return oos_fail(reterr, OOMSIGHT_USAGE, "more than 65,535 files");
    const char **copies = OOS_NEW_ARRAY(matrix->arena, const char *, count);
    if (!parts || !copies || !(parts->fds = malloc(count * sizeof *parts->fds)))
        return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for points");
    parts->paths = copies;
    parts->part_count = count;
    for (size_t i = 0; i < count; i++) {
        parts->fds[i] = -1;
        copies[i] = oos_arena_copy(matrix->arena, oos_view_of(paths[i]));
        if (!copies[i]) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for points");
    }
    for (size_t i = 0; i < count; i++) {
        oomsight_status const status = part_read(parts, i, matrix->file.points, &matrix->file.dryrun, reterr);
        if (status != OOMSIGHT_OK) return oos_fail_in(reterr, status, paths[i]);
    }
    if (parts->count) qsort(parts->list, parts->count, sizeof *parts->list, entry_order);
    return OOMSIGHT_OK;
}

void oos_matrix_parts_close(oos_matrix_parts *parts)
{
    if (!parts) return;
    for (size_t i = 0; parts->fds && i < parts->part_count; i++)
        if (parts->fds[i] >= 0) close(parts->fds[i]);
    free(parts->fds);
    free(parts->list);
    free(parts);
}

uint64_t oos_matrix_parts_absent(const oos_matrix_parts *parts)
{
    return parts->absent;
}

static const char *word_of(const json_t *root, const char *key)
{
    const char *text;
    return oos_json_str(root, key, &text) ? text : "";
}

/* The line itself is handed on, so that nothing of it changes. */
static oomsight_status point_read(oomsight_matrix *matrix, const entry *e, oomsight_matrix_point *point,
                                  oomsight_error *reterr)
{
    oos_matrix_parts *parts = matrix->parts;
    oos_assert(e->part < parts->part_count && e->len > 0 && e->len <= LINE_MAX_BYTES);
    char *line = oos_arena_take(matrix->scratch, (size_t)e->len + 1);
    json_t *root = NULL;
    if (!line) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a line");
    if (pread(parts->fds[e->part], line, e->len, (off_t)e->at) != (ssize_t)e->len)
        return oos_fail(reterr, OOMSIGHT_IO, "%s changed while it was read", parts->paths[e->part]);
    OOS_TRY(oos_json_load(matrix->scratch, (oos_view){line, e->len}, &root, reterr));
    const char *const asked[] = {point->model, point->gpu, point->flags, point->version};
    static const char *const keys[] = {"model", "gpu", "flags", "version"};
    for (size_t i = 0; i < 4; i++)
        if (strcmp(word_of(root, keys[i]), asked[i]) != 0)
            return oos_fail(reterr, OOMSIGHT_MALFORMED,
                            "point %llu is of another matrix: its %s is '%s', not '%s'",
                            (unsigned long long)e->number, keys[i], word_of(root, keys[i]), asked[i]);
    if (!oos_matrix_point_take((oos_view){line, e->len}, matrix->scratch, point))
        point->why = oos_arena_copy(matrix->scratch, oos_view_of(word_of(root, "problem")));
    bool cached = false;
    uint64_t attempts = 0;
    (void)oos_json_bool(root, "cached", &cached);
    (void)oos_json_u64(root, "attempts", &attempts);
    (void)oos_json_f64(root, "seconds", &point->seconds);
    point->cached = cached;
    point->attempts = (unsigned)attempts;
    point->line = line;
    point->line_bytes = e->len;
    return OOMSIGHT_OK;
}

static oomsight_status point_absent(oomsight_matrix *matrix, oomsight_matrix_point *point,
                                    oomsight_error *reterr)
{
    matrix->parts->absent++;
    point->why = "none of the files has this point";
    matrix->line.len = 0;
    oos_report_matrix_line(&matrix->line, point, matrix->file.dryrun, NULL);
    if (matrix->line.failed) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a line");
    point->line = matrix->line.ptr;
    point->line_bytes = matrix->line.len;
    return OOMSIGHT_OK;
}

oomsight_status oos_matrix_parts_next(oomsight_matrix *matrix, const oomsight_matrix_point **ret_point,
                                      oomsight_error *reterr)
{
    oos_matrix_parts *parts = matrix->parts;
    oos_matrix_place where;
    *ret_point = NULL;
    while (parts->number < matrix->file.points && !oos_matrix_place_of(&matrix->file, parts->number, &where))
        parts->number++;
    if (parts->number == matrix->file.points) return OOMSIGHT_OK;
    uint64_t const number = parts->number++;
    oos_assert(number < matrix->file.points && parts->at <= parts->count);
    oomsight_matrix_point *point = &matrix->point;
    oos_arena_reset(matrix->scratch);
    oos_matrix_point_begin(&matrix->file, &where, number, matrix->scratch, point);
    while (parts->at < parts->count && parts->list[parts->at].number < number) parts->at++;
    const entry *e = parts->at < parts->count ? &parts->list[parts->at] : NULL;
    if (e && e->number == number) {
        oomsight_status const status = point_read(matrix, e, point, reterr);
        if (status != OOMSIGHT_OK) return oos_fail_in(reterr, status, parts->paths[e->part]);
    } else {
        OOS_TRY(point_absent(matrix, point, reterr));
    }
    oos_matrix_sum_add(matrix->sum, &where, point);
    *ret_point = point;
    return OOMSIGHT_OK;
}
