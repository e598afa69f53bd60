/* Statuses and error records. */
#include "base/error.h"
#include "base/check.h"
#include "base/locale.h"
#include "base/shown.h"

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
    oos_assert(status != OOMSIGHT_OK);
    if (!reterr) return status;
    memset(reterr, 0, sizeof *reterr);
    reterr->status = status;
    va_list args;
    va_start(args, format);
    oos_vformat(reterr->text, sizeof reterr->text, format, args);
    va_end(args);
    oos_text spare = {0}; /* the sentence may quote what somebody wrote */
    oos_view const shown = oos_shown_sentence(format, reterr->text, &spare);
    if (shown.ptr != reterr->text)
        snprintf(reterr->text, sizeof reterr->text, "%.*s", (int)shown.len, shown.ptr);
    oos_text_free(&spare);
    return status;
}

oomsight_status oos_fail_in(oomsight_error *reterr, oomsight_status status, const char *path)
{
    oos_assert(status != OOMSIGHT_OK);
    if (!reterr) return status;
    if (reterr->status != status) oos_fail(reterr, status, "%s", oomsight_status_text(status));
    if (reterr->path[0] == '\0') {
        oos_text shown = {0};
        oos_shown_put(&shown, oos_view_of(path), false);
        snprintf(reterr->path, sizeof reterr->path, "%s", shown.ptr ? shown.ptr : "");
        oos_text_free(&shown);
    }
    return status;
}

oomsight_status oos_fail_of(oomsight_error *reterr, oomsight_status status, const char *field)
{
    if (reterr) snprintf(reterr->field, sizeof reterr->field, "%s", field);
    return status;
}
