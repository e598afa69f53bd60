/* Reading data/engines/<engine>/flags.json. */
#include "facts/flags.h"

oomsight_status oos_flags_load(oos_arena *arena, const char *data_dir, const char *engine,
                               oos_flag_table *ret_table, oomsight_error *reterr)
{
    (void)arena, (void)data_dir, (void)engine, (void)reterr;
    *ret_table = (oos_flag_table){0};
    return OOMSIGHT_OK;
}

const oos_flag_record *oos_flags_find(const oos_flag_table *table, oos_view spelling, bool *ret_negated)
{
    (void)table, (void)spelling;
    *ret_negated = false;
    return NULL;
}

const char *oos_flags_nearest(const oos_flag_table *table, oos_view spelling)
{
    (void)table, (void)spelling;
    return NULL;
}
