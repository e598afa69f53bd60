/* Statuses and error records. */
#include "base/error.h"
#include "base/locale.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *oomsight_status_text(oomsight_status status)
{
    switch (status) {
#define TEXT(name, number, sentence)                                                                         \
    case OOMSIGHT_##name: return sentence;
        OOMSIGHT_STATUS_MAP(TEXT)
#undef TEXT
    }
    return "unknown status";
}

oomsight_status oos_fail(oomsight_error *reterr, oomsight_status status, const char *format, ...)
{
    if (!reterr) return status;
    memset(reterr, 0, sizeof *reterr);
    reterr->status = status;
    va_list args;
    va_start(args, format);
    oos_vformat(reterr->text, sizeof reterr->text, format, args);
    va_end(args);
    return status;
}

oomsight_status oos_fail_in(oomsight_error *reterr, oomsight_status status, const char *path)
{
    if (!reterr) return status;
    if (reterr->status != status) oos_fail(reterr, status, "%s", oomsight_status_text(status));
    if (reterr->path[0] == '\0') snprintf(reterr->path, sizeof reterr->path, "%s", path);
    return status;
}
