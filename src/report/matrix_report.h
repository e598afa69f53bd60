/* A matrix on paper. Points are not kept: they are summed into a grid whose size is bounded, and two versions of the same
 * configuration are compared as they pass. Every form (text, JSON, Markdown, HTML, JUnit) is made from these sums. */
#ifndef OOS_REPORT_MATRIX_REPORT_H
#define OOS_REPORT_MATRIX_REPORT_H

#include "matrix/matrix.h"
#include "report/style.h"
#include "oomsight_private.h"

/* What a point can be, in the order of oomsight_verdict; then: no answer. */
enum { OOS_MATRIX_UNREADABLE = 5, OOS_MATRIX_KINDS = 6 };

typedef struct oos_matrix_cell {
    uint64_t counts[OOS_MATRIX_KINDS];
    uint64_t starts;          /* of all of them: those that start or likely start */
    uint64_t kv_low, kv_high; /* of those that start; OOMSIGHT_UNKNOWN: none */
    const char *phase, *why,
        *command; /* of the first that does not; command: what does, NULL when not known */
} oos_matrix_cell;

/* A row or a column of the grid; what is NULL is summed over. */
typedef struct oos_matrix_head {
    const char *model, *gpu, *flags;
} oos_matrix_head;

/* One configuration under two versions. */
typedef enum oos_matrix_change { OOS_MATRIX_BROKEN, OOS_MATRIX_MENDED, OOS_MATRIX_MOVED } oos_matrix_change;
typedef struct oos_matrix_side {
    unsigned kind; /* of OOS_MATRIX_KINDS */
    const char *phase, *why, *unknown_flag;
    uint64_t kv_tokens;
    bool starts; /* or likely does */
} oos_matrix_side;
typedef struct oos_matrix_pair {
    oos_matrix_change change;
    const char *model, *gpu, *flags;
    oos_matrix_side from, to;
    double ratio; /* of KV tokens, to / from - 1; 0 when one is not known */
} oos_matrix_pair;

enum { OOS_MATRIX_LISTED = 500 }; /* changes of each kind that are kept */

typedef struct oos_matrix_sum oos_matrix_sum;

/* Seen by the writers of src/report/matrix_*.c; others use the functions. */
struct oos_matrix_sum {
    oos_arena *arena;
    const oos_matrix_file *file;
    bool diff;
    double moved_ratio;
    oomsight_matrix_tally tally;
    oos_matrix_head *rows, *columns;
    size_t row_count, column_count, version_count;
    oos_matrix_cell *cells; /* [row][column][version] */
    bool over_flags;        /* flags are summed over */
    size_t models_left_out; /* in the last row */
    oos_matrix_pair *pairs[3];
    size_t pair_counts[3];
    struct oos_matrix_column *by_name; /* (GPU or model, set) -> place */
    struct oos_matrix_half *waiting;   /* first halves of pairs */
    unsigned layout;
};

oomsight_status oos_matrix_sum_create(oos_arena *arena, const oos_matrix_file *file, bool diff,
                                      double moved_ratio, oos_matrix_sum **ret_sum, oomsight_error *reterr);
void oos_matrix_sum_add(oos_matrix_sum *sum, const oos_matrix_place *place,
                        const oomsight_matrix_point *point);
void oos_matrix_sum_tally(const oos_matrix_sum *sum, oomsight_matrix_tally *ret_tally);

const oos_matrix_cell *oos_matrix_cell_at(const oos_matrix_sum *sum, size_t row, size_t column,
                                          size_t version);
uint64_t oos_matrix_cell_total(const oos_matrix_cell *cell);
const char *oos_matrix_kind_word(unsigned kind);
/* What people read: "tight" is "likely starts" or "likely fails". */
const char *oos_matrix_answer_word(unsigned kind, bool starts);
/* The worst that is in a cell: an index of counts. */
unsigned oos_matrix_cell_worst(const oos_matrix_cell *cell);

/* "vLLM 0.19.1 -> 0.32.0 breaks 3 of 120 configurations, ..." or "118 of 120 points start, ...". */
void oos_matrix_sentence(const oos_matrix_sum *sum, oos_text *text);

/* One point as JSON, schema oomsight.matrix/1. A dry start has its time and its key (NULL: none). */
void oos_report_matrix_line(oos_text *text, const oomsight_matrix_point *point, bool dryrun, const char *key);

void oos_report_matrix_text(oos_text *text, const oos_matrix_sum *sum, const oomsight_render_params *params);
void oos_report_matrix_markdown(oos_text *text, const oos_matrix_sum *sum,
                                const oomsight_render_params *params);
void oos_report_matrix_json(oos_text *text, const oos_matrix_sum *sum);
void oos_report_matrix_html(oos_text *text, const oos_matrix_sum *sum, const oomsight_render_params *params);
void oos_report_matrix_junit(oos_text *text, const oos_matrix_sum *sum);

#endif
