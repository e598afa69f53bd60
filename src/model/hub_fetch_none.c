/* A build that does not talk to the hub (-Dhub=false). */
#include "model/model.h"
#include "oomsight_private.h"

oomsight_status oos_fetch_all(oos_arena *arena, const oos_fetch_options *options, oos_fetch *list,
                              size_t count, oomsight_error *reterr)
{
    (void)arena;
    (void)options;
    (void)list;
    (void)count;
    return oos_fail(reterr, OOMSIGHT_UNSUPPORTED,
                    "this build of oomsight cannot contact the Hugging Face Hub: give a folder with the "
                    "model's config.json");
}

void oomsight_on_waiting(oomsight_waiting *call)
{
    (void)call;
}
