/* Points summed into a grid, and pairs of versions compared, as they pass. The grid is chosen before the first point comes:
 *
 *     rows models, columns (GPU, flags)     as long as that is small
 *     rows (model, flags), columns GPUs     when models have flags of their own, which would leave most of the former empty
 *     rows models, columns GPUs             else: flags are summed over, and models beyond the last row as well */
#include "report/report.h"
#include "base/table.h"

#include <stdio.h>
#include <stdlib.h>

enum { CELLS_MAX = 10000, PAIRS_SEEN_MAX = 4 * CELLS_MAX };
enum { BY_GPU_FLAGS, BY_MODEL_FLAGS, BY_GPU };

typedef struct oos_matrix_column {
    struct {
        uint64_t set;
        uint64_t other; /* a GPU or a model */
    } key;
    size_t place;
    UT_hash_handle hh;
} column;

typedef struct oos_matrix_half {
    uint64_t pair;
    oos_matrix_side side;
    bool second; /* it is the newer version */
    UT_hash_handle hh;
} half;

static const char *keep(oos_matrix_sum *sum, const char *text)
{
    return text ? oos_arena_copy(sum->arena, oos_view_of(text)) : NULL;
}

static column *column_find(const oos_matrix_sum *sum, uint64_t other, uint64_t set)
{
    column *found = NULL, probe;
    memset(&probe, 0, sizeof probe);
    probe.key.set = set;
    probe.key.other = other;
    HASH_FIND(hh, sum->by_name, &probe.key, sizeof probe.key, found);
    return found;
}

/* ---- choosing the grid ------------------------------------------------------------------------------------------ */

/* How many (other, set) there are, each given a place. Over PAIRS_SEEN_MAX: false. */
static bool columns_gather(oos_matrix_sum *sum, bool models)
{
    HASH_CLEAR(hh, sum->by_name);
    uint64_t seen = 0;
    for (size_t b = 0; b < sum->file->block_count; b++) {
        const oos_matrix_block *block = &sum->file->blocks[b];
        size_t const others = models ? block->model_count : block->gpu_count;
        if (block->flag_count > PAIRS_SEEN_MAX || block->flag_count * others > PAIRS_SEEN_MAX) return false;
        seen += block->flag_count * others;
        if (seen > PAIRS_SEEN_MAX) return false;
        for (size_t o = 0; o < others; o++)
            for (uint64_t f = 0; f < block->flag_count; f++) {
                oos_matrix_place place;
                uint64_t const number =
                    block->first + f * block->version_count +
                    (models ? o * block->gpu_count : o) * block->flag_count * block->version_count;
                oos_matrix_place_of(sum->file, number, &place);
                uint64_t const other = models ? block->models[o].id : block->gpus[o].id;
                uint64_t const set = oos_matrix_set_of(&place);
                if (column_find(sum, other, set)) continue;
                column *c = OOS_NEW(sum->arena, column);
                if (!c) return false;
                c->key.set = set;
                c->key.other = other;
                c->place = HASH_COUNT(sum->by_name);
                HASH_ADD(hh, sum->by_name, key, sizeof c->key, c);
                if (!OOS_IN_TABLE(c)) return false;
            }
    }
    return true;
}

static size_t grid_size(size_t rows, size_t columns, size_t versions)
{
    size_t size;
    if (__builtin_mul_overflow(rows, columns, &size) || __builtin_mul_overflow(size, versions, &size))
        return SIZE_MAX;
    return size;
}

static void layout_choose(oos_matrix_sum *sum)
{
    const oos_matrix_file *file = sum->file;
    size_t by_gpu = SIZE_MAX, by_model = SIZE_MAX;
    if (columns_gather(sum, true))
        by_model = grid_size(HASH_COUNT(sum->by_name), file->gpu_count, file->version_count);
    size_t const model_rows = HASH_COUNT(sum->by_name);
    if (columns_gather(sum, false))
        by_gpu = grid_size(file->model_count, HASH_COUNT(sum->by_name), file->version_count);
    if (by_gpu <= by_model && by_gpu <= CELLS_MAX) {
        sum->layout = BY_GPU_FLAGS;
        sum->row_count = file->model_count;
        sum->column_count = HASH_COUNT(sum->by_name);
    } else if (by_model <= CELLS_MAX && columns_gather(sum, true)) {
        sum->layout = BY_MODEL_FLAGS;
        sum->row_count = model_rows;
        sum->column_count = file->gpu_count;
    } else {
        HASH_CLEAR(hh, sum->by_name);
        sum->layout = BY_GPU;
        sum->over_flags = true;
        sum->row_count = file->model_count;
        sum->column_count = file->gpu_count;
        size_t const most = CELLS_MAX / (file->gpu_count * file->version_count);
        if (sum->row_count > most) sum->row_count = most ? most : 1;
        sum->models_left_out = file->model_count - sum->row_count + (sum->row_count < file->model_count);
    }
}

/* A set of a product has a label only while a place of it is at hand. */
static const char *set_label(oos_matrix_sum *sum, uint64_t set)
{
    const oos_matrix_file *file = sum->file;
    if (set < file->set_label_count) return file->set_labels[set];
    for (size_t b = 0; b < file->block_count; b++) {
        const oos_matrix_block *block = &file->blocks[b];
        if (!block->axes[0].flag || set < block->first_set || set >= block->first_set + block->flag_count)
            continue;
        char text[512];
        oos_matrix_place place;
        oos_matrix_place_of(file, block->first + (set - block->first_set) * block->version_count, &place);
        oos_matrix_flag_label(&place, text, sizeof text);
        return keep(sum, text);
    }
    return "";
}

static bool heads_make(oos_matrix_sum *sum)
{
    const oos_matrix_file *file = sum->file;
    sum->rows = OOS_NEW_ARRAY(sum->arena, oos_matrix_head, sum->row_count);
    sum->columns = OOS_NEW_ARRAY(sum->arena, oos_matrix_head, sum->column_count);
    if (!sum->rows || !sum->columns) return false;
    if (sum->layout != BY_MODEL_FLAGS)
        for (size_t i = 0; i < sum->row_count; i++) sum->rows[i].model = file->model_labels[i];
    if (sum->layout != BY_GPU_FLAGS)
        for (size_t i = 0; i < sum->column_count; i++) sum->columns[i].gpu = file->gpu_labels[i];
    for (const column *c = sum->by_name; c; c = c->hh.next) {
        const char *flags = set_label(sum, c->key.set);
        if (sum->layout == BY_GPU_FLAGS)
            sum->columns[c->place] = (oos_matrix_head){.gpu = file->gpu_labels[c->key.other], .flags = flags};
        else
            sum->rows[c->place] =
                (oos_matrix_head){.model = file->model_labels[c->key.other], .flags = flags};
    }
    if (sum->models_left_out)
        sum->rows[sum->row_count - 1].model =
            oos_arena_format(sum->arena, "%zu more models", sum->models_left_out);
    return true;
}

static void tables_free(void *thing)
{
    oos_matrix_sum *sum = thing;
    HASH_CLEAR(hh, sum->by_name);
    half *h, *next;
    HASH_ITER(hh, sum->waiting, h, next)
    {
        HASH_DEL(sum->waiting, h);
        free(h);
    }
}

oomsight_status oos_matrix_sum_create(oos_arena *arena, const oos_matrix_file *file, bool diff,
                                      double moved_ratio, oos_matrix_sum **ret_sum, oomsight_error *reterr)
{
    oos_matrix_sum *sum = OOS_NEW(arena, oos_matrix_sum);
    if (!sum || !oos_arena_adopt(arena, tables_free, sum))
        return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the sums of a matrix");
    sum->arena = arena;
    sum->file = file;
    sum->diff = diff;
    sum->moved_ratio = moved_ratio;
    sum->tally = (oomsight_matrix_tally)OOMSIGHT_MATRIX_TALLY_INIT;
    sum->version_count = file->version_count;
    layout_choose(sum);
    size_t const cells = grid_size(sum->row_count, sum->column_count, sum->version_count);
    sum->cells = OOS_NEW_ARRAY(arena, oos_matrix_cell, cells);
    for (size_t i = 0; i < 3; i++) sum->pairs[i] = OOS_NEW_ARRAY(arena, oos_matrix_pair, OOS_MATRIX_LISTED);
    if (!sum->cells || !sum->pairs[0] || !sum->pairs[1] || !sum->pairs[2] || !heads_make(sum))
        return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the sums of a matrix");
    for (size_t i = 0; i < cells; i++) sum->cells[i].kv_low = sum->cells[i].kv_high = OOMSIGHT_UNKNOWN;
    *ret_sum = sum;
    return OOMSIGHT_OK;
}

/* ---- adding ----------------------------------------------------------------------------------------------------- */

static unsigned kind_of(const oomsight_matrix_point *point)
{
    return point->readable ? (unsigned)point->verdict : OOS_MATRIX_UNREADABLE;
}

static bool starts(const oomsight_matrix_point *point)
{
    return point->readable && point->starts;
}

static void tally_add(oomsight_matrix_tally *tally, unsigned kind, bool starting, bool cached)
{
    tally->starts += starting;
    uint64_t *const counts[] = {&tally->fits,    &tally->tight,   &tally->fails,
                                &tally->refused, &tally->unknown, &tally->unreadable};
    tally->seen++;
    tally->cached += cached;
    ++*counts[kind];
}

static oos_matrix_cell *cell_of(oos_matrix_sum *sum, const oos_matrix_place *place)
{
    const oos_matrix_block *block = place->block;
    size_t row = block->models[place->model].id, col = block->gpus[place->gpu].id;
    const column *c = NULL;
    if (sum->layout == BY_GPU_FLAGS && (c = column_find(sum, col, oos_matrix_set_of(place)))) col = c->place;
    if (sum->layout == BY_MODEL_FLAGS && (c = column_find(sum, row, oos_matrix_set_of(place))))
        row = c->place;
    if (row >= sum->row_count) row = sum->row_count - 1;
    return &sum->cells[(row * sum->column_count + col) * sum->version_count +
                       block->versions[place->version].id];
}

static void cell_add(oos_matrix_sum *sum, oos_matrix_cell *cell, const oomsight_matrix_point *point)
{
    unsigned const kind = kind_of(point);
    cell->counts[kind]++;
    if (starts(point)) {
        cell->starts++;
        if (point->kv_tokens == OOMSIGHT_UNKNOWN) return;
        if (cell->kv_low == OOMSIGHT_UNKNOWN || point->kv_tokens < cell->kv_low)
            cell->kv_low = point->kv_tokens;
        if (cell->kv_high == OOMSIGHT_UNKNOWN || point->kv_tokens > cell->kv_high)
            cell->kv_high = point->kv_tokens;
    } else if (!cell->why) {
        cell->phase = keep(sum, point->phase);
        cell->why = keep(sum, point->why ? point->why : "");
        cell->command = keep(sum, point->command);
    }
}

static double change_ratio(const oos_matrix_side *from, const oos_matrix_side *to)
{
    if (from->kv_tokens == OOMSIGHT_UNKNOWN || to->kv_tokens == OOMSIGHT_UNKNOWN || from->kv_tokens == 0)
        return 0;
    return (double)to->kv_tokens / (double)from->kv_tokens - 1;
}

static double size_of(double x)
{
    return x < 0 ? -x : x;
}

/* Of what breaks and mends the first are listed, of what moves the largest. */
static void pair_list(oos_matrix_sum *sum, oos_matrix_pair *pair)
{
    oos_matrix_pair *list = sum->pairs[pair->change];
    size_t *count = &sum->pair_counts[pair->change], at = *count;
    if (pair->change == OOS_MATRIX_MOVED)
        for (at = *count; at > 0 && size_of(list[at - 1].ratio) < size_of(pair->ratio); at--) {
        }
    if (at >= OOS_MATRIX_LISTED) return;
    pair->model = keep(sum, pair->model);
    pair->gpu = keep(sum, pair->gpu);
    pair->flags = keep(sum, pair->flags);
    oos_matrix_side *const sides[] = {&pair->from, &pair->to};
    for (size_t i = 0; i < 2; i++) {
        sides[i]->phase = keep(sum, sides[i]->phase);
        sides[i]->why = keep(sum, sides[i]->why);
        sides[i]->unknown_flag = keep(sum, sides[i]->unknown_flag);
    }
    if (*count < OOS_MATRIX_LISTED) ++*count;
    memmove(&list[at + 1], &list[at], (*count - at - 1) * sizeof *list);
    list[at] = *pair;
}

static void pair_judge(oos_matrix_sum *sum, const oomsight_matrix_point *point, const oos_matrix_side *from,
                       const oos_matrix_side *to)
{
    oos_matrix_pair pair = {
        .model = point->model, .gpu = point->gpu, .flags = point->flags, .from = *from, .to = *to};
    if (from->kind == OOS_MATRIX_UNREADABLE || to->kind == OOS_MATRIX_UNREADABLE) {
        sum->tally.uncompared++;
        return;
    }
    sum->tally.compared++;
    /* a parser that does not know a flag stops before anything else */
    bool const before = from->starts && !from->unknown_flag;
    bool const after = to->starts && !to->unknown_flag;
    pair.ratio = before && after ? change_ratio(from, to) : 0;
    if (before && !after) {
        sum->tally.broken++;
        pair.change = OOS_MATRIX_BROKEN;
    } else if (!before && after) {
        sum->tally.mended++;
        pair.change = OOS_MATRIX_MENDED;
    } else if (before && size_of(pair.ratio) > sum->moved_ratio) {
        sum->tally.moved++;
        pair.change = OOS_MATRIX_MOVED;
    } else {
        return;
    }
    pair_list(sum, &pair);
}

static const char *malloc_copy(const char *text)
{
    return text ? strdup(text) : NULL;
}

static void half_free(half *h)
{
    free((char *)h->side.phase);
    free((char *)h->side.why);
    free((char *)h->side.unknown_flag);
    free(h);
}

/* Points of a pair have numbers 2n and 2n + 1, and may come in any order. */
static void pair_add(oos_matrix_sum *sum, const oomsight_matrix_point *point)
{
    uint64_t const pair = point->number / 2;
    bool const second = point->number % 2;
    oos_matrix_side const side = {kind_of(point),      point->phase,     point->why,
                                  point->unknown_flag, point->kv_tokens, starts(point)};
    half *other = NULL;
    HASH_FIND(hh, sum->waiting, &pair, sizeof pair, other);
    if (other && other->second != second) {
        pair_judge(sum, point, second ? &other->side : &side, second ? &side : &other->side);
        HASH_DEL(sum->waiting, other);
        half_free(other);
        return;
    }
    half *h = calloc(1, sizeof *h);
    if (!h || other) {
        free(h);
        return;
    }
    *h = (half){.pair = pair, .side = side, .second = second};
    h->side.phase = malloc_copy(side.phase);
    h->side.why = malloc_copy(side.why);
    h->side.unknown_flag = malloc_copy(side.unknown_flag);
    HASH_ADD(hh, sum->waiting, pair, sizeof h->pair, h);
    if (!OOS_IN_TABLE(h)) half_free(h);
}

void oos_matrix_sum_add(oos_matrix_sum *sum, const oos_matrix_place *place,
                        const oomsight_matrix_point *point)
{
    tally_add(&sum->tally, kind_of(point), starts(point), point->cached != 0);
    sum->tally.unknown_flags += point->unknown_flag != NULL;
    cell_add(sum, cell_of(sum, place), point);
    if (sum->diff) pair_add(sum, point);
}

void oos_matrix_sum_tally(const oos_matrix_sum *sum, oomsight_matrix_tally *ret_tally)
{
    *ret_tally = sum->tally;
}

/* ---- looking ---------------------------------------------------------------------------------------------------- */

const oos_matrix_cell *oos_matrix_cell_at(const oos_matrix_sum *sum, size_t row, size_t col, size_t version)
{
    return &sum->cells[(row * sum->column_count + col) * sum->version_count + version];
}

uint64_t oos_matrix_cell_total(const oos_matrix_cell *cell)
{
    uint64_t total = 0;
    for (unsigned i = 0; i < OOS_MATRIX_KINDS; i++) total += cell->counts[i];
    return total;
}

unsigned oos_matrix_cell_worst(const oos_matrix_cell *cell)
{
    static const unsigned order[] = {OOMSIGHT_VERDICT_FAILS, OOMSIGHT_VERDICT_REFUSED,
                                     OOS_MATRIX_UNREADABLE,  OOMSIGHT_VERDICT_UNKNOWN,
                                     OOMSIGHT_VERDICT_TIGHT, OOMSIGHT_VERDICT_FITS};
    for (size_t i = 0; i < sizeof order / sizeof *order; i++)
        if (cell->counts[order[i]]) return order[i];
    return OOS_MATRIX_UNREADABLE;
}

const char *oos_matrix_answer_word(unsigned kind, bool starting)
{
    if (kind == OOMSIGHT_VERDICT_TIGHT) return starting ? "will probably start" : "will probably not start";
    return kind == OOMSIGHT_VERDICT_FITS ? "will start" : oos_matrix_kind_word(kind);
}

const char *oos_matrix_kind_word(unsigned kind)
{
    static const char *const words[] = {"fits", "tight", "fails", "refused", "unknown", "unreadable"};
    _Static_assert(sizeof words / sizeof *words == OOS_MATRIX_KINDS, "a word for each kind");
    return kind < OOS_MATRIX_KINDS ? words[kind] : "";
}
