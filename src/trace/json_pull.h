/* JSON a token at a time, in bounded memory: traces and snapshots can be gigabytes, and a tree of them does not fit.
 * Small JSON belongs to base/json.h. Several values one behind the other (JSON lines) are fine. */
#ifndef OOS_INPUT_JSON_PULL_H
#define OOS_INPUT_JSON_PULL_H

#include "base/stream.h"

enum { OOS_PULL_DEPTH = 64, OOS_PULL_STRING_BYTES = 64 << 10 };

typedef enum oos_token {
    OOS_TOKEN_END,
    OOS_TOKEN_OBJECT,
    OOS_TOKEN_OBJECT_END,
    OOS_TOKEN_ARRAY,
    OOS_TOKEN_ARRAY_END,
    OOS_TOKEN_KEY,
    OOS_TOKEN_STRING,
    OOS_TOKEN_INTEGER, /* whole and within 64 bits: see `integer` and `negative` */
    OOS_TOKEN_REAL,
    OOS_TOKEN_TRUE,
    OOS_TOKEN_FALSE,
    OOS_TOKEN_NULL
} oos_token;

typedef struct oos_pull {
    oos_cursor cursor;
    oos_token token;
    uint64_t integer; /* magnitude */
    bool negative;
    double real;               /* of INTEGER too */
    size_t len;                /* of `text`; longer strings are cut at OOS_PULL_STRING_BYTES */
    unsigned depth;            /* open objects and arrays */
    uint64_t line;             /* from 1 */
    char open[OOS_PULL_DEPTH]; /* '{' or '[' */
    bool after_value, after_key;
    char text[OOS_PULL_STRING_BYTES + 1]; /* KEY and STRING, zero-terminated */
} oos_pull;

void oos_pull_init(oos_pull *pull, oos_stream *stream, oomsight_error *reterr);

/* The next token to pull->token. Failure is MALFORMED with the line, or the stream's own. */
oomsight_status oos_pull_next(oos_pull *pull);

/* Skip the value whose first token was just read. */
oomsight_status oos_pull_skip(oos_pull *pull);

/* The number just read, if it is one that fits; negative numbers do not. */
bool oos_pull_u64(const oos_pull *pull, uint64_t *ret_number);

#endif
