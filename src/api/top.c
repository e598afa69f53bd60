/* The public face of the screen of processes. */
#include "api/api.h"

#include <stdlib.h>

struct oomsight_top {
    oos_top top;
    oos_run_state state;
};

oomsight_status oomsight_top_create(oomsight_top **ret_top, oomsight_error *reterr)
{
    *ret_top = calloc(1, sizeof **ret_top);
    return *ret_top ? OOMSIGHT_OK : oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a list of processes");
}

void oomsight_top_free(oomsight_top *top)
{
    free(top);
}

void oomsight_top_look(oomsight_top *top, oomsight_run *const *runs, const int *pids, size_t count,
                       double seconds)
{
    oos_top_begin(&top->top);
    for (size_t i = 0; i < count; i++) {
        oos_run_read(runs[i]->segment, &top->state);
        oos_top_run(&top->top, &top->state, (uint32_t)pids[i]);
    }
    oos_top_end(&top->top, seconds);
}

oomsight_status oomsight_top_render(oomsight_top *top, const oomsight_top_params *asked,
                                    const oomsight_render_params *params, char **ret_text,
                                    oomsight_error *reterr)
{
    OOS_TAKE_PARAMS(oomsight_top_params, asked);
    oos_text text = {0};
    oos_top_order const order = asked->order % OOMSIGHT_TOP_ORDERS;
    oos_top_words const words = {.host = asked->host ? asked->host : "",
                                 .clock = asked->clock ? asked->clock : "",
                                 .every = asked->every_seconds,
                                 .order = order,
                                 .paused = asked->paused != 0,
                                 .lines = asked->lines};
    oos_top_sort(&top->top, order);
    oos_report_top(&text, &top->top, &words, params);
    return OOS_WHOLE_TEXT(asked, &text, ret_text);
}
