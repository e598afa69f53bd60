/* The only file that turns public handles into the parts below. */
#include "base/error.h"
#include "base/text.h"
#include "facts/data.h"
#include "facts/gpu.h"

#include <stdlib.h>

struct oomsight_data {
    oos_arena *arena;
    const char *dir; /* NULL: embedded */
    oos_gpus gpus;
};

const char *oomsight_version(void)
{
    return OOMSIGHT_VERSION;
}

void oomsight_text_free(char *text)
{
    free(text);
}

oomsight_status oomsight_data_open(const char *dir, oomsight_data **ret_data, oomsight_error *reterr)
{
    oos_arena *arena = oos_arena_create(64 << 10);
    oomsight_data *data = arena ? OOS_NEW(arena, oomsight_data) : NULL;
    if (!data) {
        oos_arena_free(arena);
        return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the data");
    }
    data->arena = arena;
    data->dir = dir ? oos_arena_copy(arena, oos_view_of(dir)) : NULL;
    oomsight_status const status = oos_gpus_load(arena, data->dir, &data->gpus, reterr);
    if (status != OOMSIGHT_OK) {
        oos_arena_free(arena);
        return status;
    }
    *ret_data = data;
    return OOMSIGHT_OK;
}

void oomsight_data_close(oomsight_data *data)
{
    if (data) oos_arena_free(data->arena);
}

oomsight_status oomsight_data_render(const oomsight_data *data, const char *what,
                                     const oomsight_render_params *params, char **ret_text,
                                     oomsight_error *reterr)
{
    (void)params;
    oos_text text = {0};
    if (strcmp(what, "gpus") == 0)
        for (size_t i = 0; i < data->gpus.count; i++)
            oos_text_printf(&text, "%-40s %6.2f GiB\n", data->gpus.list[i].name,
                            (double)data->gpus.list[i].total_bytes / 0x1p30);
    return oos_text_take(&text, ret_text, reterr);
}
