/* Reading data/catalogue.json: the file is scanned forward for one id, what stands there is read as a config.json is. */
#include "model/catalogue.h"
#include "base/ascii.h"
#include "base/scan.h"
#include "facts/data.h"
#include "model/override.h"
#include "model/safetensors.h"

#include <string.h>

/* The value of `id`; empty: it is not there. */
static oos_view entry_of(oos_view text, const char *id, oos_scan_kind *ret_kind)
{
    oos_scan scan = oos_scan_begin(text);
    oos_view key = {0}, value = {0};
    if (!oos_scan_open(&scan, '{')) return value;
    while (oos_scan_key(&scan, &key)) {
        bool const found = oos_view_is(key, id);
        if (found) *ret_kind = oos_scan_peek(&scan);
        if (found && *ret_kind == OOS_SCAN_STRING) {
            oos_scan_string(&scan, &value);
            return value;
        }
        if (!oos_scan_skip(&scan, found ? &value : NULL) || found) return value;
    }
    return value;
}

bool oos_catalogue_find(oos_arena *arena, const char *data_dir, const char *id, oos_view *ret_config,
                        oos_view *ret_quant)
{
    oos_view text, key = {0};
    oos_scan_kind kind = OOS_SCAN_NOTHING;
    if (oos_data_read(arena, data_dir, "catalogue.json", &text, NULL) != OOMSIGHT_OK) return false;
    oos_view entry = entry_of(text, id, &kind);
    if (entry.len && kind == OOS_SCAN_STRING) { /* the same config under another name */
        const char *other = oos_scan_text(arena, entry);
        entry = other ? entry_of(text, other, &kind) : (oos_view){0};
    }
    if (!entry.len || kind == OOS_SCAN_STRING) return false;
    *ret_config = *ret_quant = (oos_view){0};
    oos_scan scan = oos_scan_begin(entry);
    if (!oos_scan_open(&scan, '{')) return false;
    while (oos_scan_key(&scan, &key))
        if (!oos_scan_skip(&scan, oos_view_is(key, "config")  ? ret_config
                                  : oos_view_is(key, "quant") ? ret_quant
                                                              : NULL))
            return false;
    return ret_config->len != 0;
}

const char *oos_catalogue_nearest(oos_arena *arena, const char *data_dir, const char *name)
{
    oos_view text, id = {0};
    size_t const len = strlen(name);
    if (oos_data_read(arena, data_dir, "catalogue.json", &text, NULL) != OOMSIGHT_OK) return NULL;
    oos_scan scan = oos_scan_begin(text);
    if (!oos_scan_open(&scan, '{')) return NULL;
    while (oos_scan_key(&scan, &id)) {
        if (id.len > len && id.ptr[id.len - len - 1] == '/' &&
            oos_same_start(id.ptr + id.len - len, name, len))
            return oos_scan_text(arena, id);
        if (!oos_scan_skip(&scan, NULL)) return NULL;
    }
    return NULL;
}

oomsight_status oos_catalogue_open(oos_arena *arena, const char *data_dir, const char *id, oos_view config,
                                   oos_view quant, const char *overrides, oos_model *ret_model,
                                   oomsight_error *reterr)
{
    oos_model model;
    oos_tensor_table *tensors = OOS_NEW(arena, oos_tensor_table);
    if (!tensors) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the model");
    OOS_TRY(oos_config_override(arena, config, overrides, &config, reterr));
    OOS_TRY(oos_model_read(arena, data_dir, config, quant, &model, reterr));
    model.path = oos_arena_copy(arena, oos_view_of(id));
    if (!model.path) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a name");
    model.from_catalogue = true;
    OOS_TRY(oos_tensors_attach(arena, tensors, &model, reterr));
    *ret_model = model;
    return OOMSIGHT_OK;
}
