/* Reading data/instances.json. */
#include "facts/facts.h"
#include "base/scan.h"

#include <string.h>

oomsight_status oos_instance_gpu(oos_arena *arena, const char *data_dir, const char *type,
                                 const char **ret_gpu, oomsight_error *reterr)
{
    oos_view text, best = {0};
    size_t longest = 0;
    OOS_TRY(oos_data_read(arena, data_dir, "instances.json", &text, reterr));
    oos_scan scan = oos_scan_begin(text);
    if (!oos_scan_open(&scan, '[')) return oos_fail(reterr, OOMSIGHT_MALFORMED, "instances.json is no list");
    while (oos_scan_item(&scan)) {
        oos_view key = {0}, begins = {0}, gpu = {0};
        if (!oos_scan_open(&scan, '{')) break;
        while (oos_scan_key(&scan, &key)) {
            if (oos_view_is(key, "type"))
                oos_scan_string(&scan, &begins);
            else if (oos_view_is(key, "gpu"))
                oos_scan_string(&scan, &gpu);
            else
                oos_scan_skip(&scan, NULL);
        }
        if (begins.len > longest && strncmp(type, begins.ptr, begins.len) == 0)
            longest = begins.len, best = gpu;
    }
    *ret_gpu = best.len ? oos_scan_text(arena, best) : NULL;
    return best.len && !*ret_gpu ? oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a name") : OOMSIGHT_OK;
}
