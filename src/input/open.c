/* Telling the forms apart. */
#include "input/open.h"

oomsight_status oos_trace_read(oos_stream *stream, oos_trace **ret_trace, oomsight_error *reterr)
{
    return oos_trace_read_jsonl(stream, ret_trace, reterr);
}

oomsight_status oos_trace_open(const char *path, oos_trace **ret_trace, oomsight_error *reterr)
{
    oos_stream *stream = NULL;
    OOS_TRY(oos_stream_open(path, &stream, reterr));
    oomsight_status const status = oos_trace_read(stream, ret_trace, reterr);
    oos_stream_close(stream);
    return status == OOMSIGHT_OK ? status : oos_fail_in(reterr, status, path);
}
