/* What `oomsight learn` hands to the installed engine's Python, so that it can say which rules its source no longer bears out. */
#include "api/api.h"

oomsight_status oomsight_learn_watched(const oomsight_data *data, const char *engine, char **ret_text,
                                       oomsight_error *reterr)
{
    static const char *const parts[] = {"rules", "fingerprints"};
    oos_text text = {0};
    oos_arena *arena = oos_arena_create(4096);
    oomsight_status status = arena ? OOMSIGHT_OK : OOMSIGHT_NOMEM;
    *ret_text = NULL;
    for (size_t i = 0; status == OOMSIGHT_OK && i < sizeof parts / sizeof *parts; i++) {
        oos_view bytes;
        const char *path = oos_arena_format(arena, "engines/%s/%s.json", engine, parts[i]);
        status = path ? oos_data_read(arena, data->dir, path, &bytes, NULL) : OOMSIGHT_NOMEM;
        if (status != OOMSIGHT_OK) break;
        oos_text_printf(&text, "%s\"%s\": ", i ? ",\n" : "{", parts[i]);
        oos_text_add(&text, bytes);
    }
    oos_arena_free(arena);
    if (status == OOMSIGHT_OK) {
        oos_text_put(&text, "}\n");
        return oos_text_take(&text, ret_text, reterr);
    }
    oos_text_free(&text);
    return status == OOMSIGHT_NOMEM ? oos_fail(reterr, status, "no memory for rules") : OOMSIGHT_OK;
}
