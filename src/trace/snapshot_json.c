/* The same snapshot as JSON (`json.dump` of the dictionary): tokens to values. */
#include "trace/trace.h"

#include <stdlib.h>

static bool take_token(oos_values *v, const oos_pull *p)
{
    uint64_t bits;
    switch (p->token) {
    case OOS_TOKEN_OBJECT: oos_values_push_dict(v); return oos_values_mark(v);
    case OOS_TOKEN_ARRAY: return oos_values_mark(v);
    case OOS_TOKEN_OBJECT_END: return oos_values_set_items(v, true);
    case OOS_TOKEN_ARRAY_END: return oos_values_push_list(v, true);
    case OOS_TOKEN_KEY:
    case OOS_TOKEN_STRING: oos_values_push_string(v, (oos_view){p->text, p->len}); return true;
    case OOS_TOKEN_INTEGER:
        bits = p->negative ? 0 - p->integer : p->integer;
        oos_values_push(v, (oos_snapshot_value){OOS_KIND_INT, bits});
        return true;
    case OOS_TOKEN_REAL:
        memcpy(&bits, &p->real, sizeof bits);
        oos_values_push(v, (oos_snapshot_value){OOS_KIND_REAL, bits});
        return true;
    case OOS_TOKEN_TRUE:
    case OOS_TOKEN_FALSE:
        oos_values_push(v, (oos_snapshot_value){OOS_KIND_BOOL, p->token == OOS_TOKEN_TRUE});
        return true;
    case OOS_TOKEN_NULL:
    case OOS_TOKEN_END: oos_values_push(v, (oos_snapshot_value){OOS_KIND_NONE, 0}); return true;
    }
    return false;
}

static oomsight_status read_value(oos_pull *p, oos_values *v, oomsight_error *reterr)
{
    do {
        OOS_TRY(oos_pull_next(p));
        if (p->token == OOS_TOKEN_END) return oos_fail(reterr, OOMSIGHT_MALFORMED, "an empty input");
        if (!take_token(v, p)) return oos_fail(reterr, OOMSIGHT_MALFORMED, "not a snapshot");
        if (oos_values_failed(v)) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the snapshot");
    } while (p->depth > 0);
    return OOMSIGHT_OK;
}

oomsight_status oos_snapshot_read_json(oos_stream *stream, oos_snapshot **ret_snapshot,
                                       oomsight_error *reterr)
{
    oos_pull *p = malloc(sizeof *p);
    oos_values *v = oos_values_create();
    oomsight_status status = OOMSIGHT_OK;
    if (p && v) {
        oos_pull_init(p, stream, reterr);
        status = read_value(p, v, reterr);
        if (status == OOMSIGHT_OK) status = oos_values_to_snapshot(v, ret_snapshot, reterr);
    } else {
        status = oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the snapshot");
    }
    oos_values_free(v);
    free(p);
    return status;
}
