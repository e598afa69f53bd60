/* Reading the serve command. */
#include "input/serve.h"

oomsight_status oos_serve_read(oos_arena *arena, const char *const *words, size_t word_count,
                               const oos_flag_table *table, oos_version version, oos_serve *ret_serve,
                               oos_engine_env *ret_env, oomsight_error *reterr)
{
    (void)arena, (void)words, (void)word_count, (void)table, (void)version, (void)ret_serve, (void)ret_env;
    return oos_fail(reterr, OOMSIGHT_UNSUPPORTED, "commands are not read yet");
}
