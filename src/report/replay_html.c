/* stub */
#include "report/replay.h"
oomsight_status oos_replay_html(const oos_analysis *analysis, oos_text *text, oomsight_error *reterr)
{
    (void)analysis, (void)reterr;
    oos_text_put(text, "<html></html>");
    return OOMSIGHT_OK;
}
