/* This machine as text and JSON. What others named is shown through base/shown.h: no secrets, no control characters. */
#include "base/ascii.h"
#include "base/text.h"
#include "report/report.h"
#include "base/json_write.h"
#include "base/shown.h"
#include "facts/facts.h"

#include <stdlib.h>
#include <string.h>

extern char **environ;

/* Variables that move memory or devices; everything else in the environment is nobody's business. */
static bool is_told(const char *entry)
{
    static const char *const heads[] = {"CUDA_",       "NCCL_",    "PYTORCH_", "TORCH_", "TORCHINDUCTOR_",
                                        "FLASHINFER_", "TRITON_",  "NVIDIA_",  "HF_",    "OMP_",
                                        "RAY_",        "OOMSIGHT_"};
    for (size_t i = 0; i < OOS_ENGINE_COUNT; i++) { /* NAME_ in capitals */
        size_t const len = strlen(oos_engine_list[i]->name);
        if (oos_same_start(entry, oos_engine_list[i]->name, len) && entry[len] == '_')
            return strchr(entry, '=') != NULL;
    }
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
        if (strncmp(entry, heads[i], strlen(heads[i])) == 0) return strchr(entry, '=') != NULL;
    return false;
}

/* Sorted, NULL at the end; the caller frees the list. NULL: no memory. */
static char **told_environment(void)
{
    size_t all = 0, count = 0;
    while (environ && environ[all]) all++;
    char **list = calloc(all + 1, sizeof *list);
    for (size_t i = 0; list && i < all; i++)
        if (is_told(environ[i])) list[count++] = environ[i];
    if (list) qsort(list, count, sizeof *list, oos_text_order);
    return list;
}

/* The home folder is the user's own; `~` says as much. */
static void put_path(oos_text *text, const char *path)
{
    const char *home = getenv("HOME");
    size_t const len = home ? strlen(home) : 0;
    if (len > 1 && strncmp(path, home, len) == 0 && (path[len] == '/' || !path[len])) {
        oos_text_put(text, "~");
        path += len;
    }
    oos_shown_put(text, oos_view_of(path), false);
}

/* ---- text ------------------------------------------------------------------------------------------------------- */

static void put_driver(const oos_style *style, const oos_nvml *nvml)
{
    switch (nvml->state) {
    case OOS_DRIVER_NONE: oos_style_put(style, "  driver: none (libnvidia-ml.so.1 is not found)\n"); return;
    case OOS_DRIVER_SILENT:
        oos_style_ink(style, OOS_INK_BAD, "  driver: NVML did not answer in time\n");
        return;
    case OOS_DRIVER_FAILED:
        oos_style_ink(style, OOS_INK_BAD, "  driver: NVML fails: %s\n", nvml->error);
        return;
    case OOS_DRIVER_OK: break;
    }
    oos_style_put(style, "  driver: %s, CUDA %u.%u\n", nvml->driver[0] ? nvml->driver : "?",
                  nvml->cuda / 1000, nvml->cuda % 1000 / 10);
    if (!nvml->device_count) oos_style_put(style, "  no device\n");
}

static void put_holder(const oos_style *style, const oos_holder *holder)
{
    char size[32] = "?";
    if (holder->bytes.known) oos_size_print(holder->bytes.value, size, sizeof size);
    oos_text_printf(style->text, "      %s  %u ", size, holder->pid);
    oos_style_word(style, holder->name[0] ? holder->name : "?");
    oos_text_put(style->text, "\n");
}

static void put_device(const oos_style *style, const oos_machine_device *d)
{
    char total[32], held[32], kept[32];
    oos_text_printf(style->text, d->is_slice ? "    - " : "  GPU %u: ", d->index);
    oos_style_word(style, d->name);
    if (d->capability) oos_text_printf(style->text, ", %u.%u", d->capability / 10, d->capability % 10);
    if (d->memory_known) {
        oos_size_print(d->total_bytes, total, sizeof total);
        oos_size_print(oos_machine_held(d, d->total_bytes), held, sizeof held);
        oos_style_put(style, ": %s, %s of it held", total, held);
        oos_size_print(d->reserved_bytes, kept, sizeof kept);
        if (d->reserved_known) oos_style_put(style, ", %s kept by the driver", kept);
    } else {
        oos_style_put(style, ": NVML does not report its memory");
    }
    if (d->is_split) oos_style_put(style, " (split by MIG)");
    if (!d->visible && !d->is_split) oos_style_put(style, " (hidden by CUDA_VISIBLE_DEVICES)");
    oos_text_put(style->text, "\n");
    for (unsigned i = 0; i < d->holder_count; i++) put_holder(style, &d->holders[i]);
    if (d->holders_more) oos_style_put(style, "      and %u more\n", d->holders_more);
}

static void put_host(const oos_style *style, const oos_host *host)
{
    char a[32], b[32];
    if (host->total_bytes.known) {
        oos_size_print(host->total_bytes.value, a, sizeof a);
        oos_size_print(oos_u64_or(host->available_bytes, 0), b, sizeof b);
        oos_style_put(style, "  RAM: %s, %s available\n", a, b);
    }
    if (host->limit_bytes.known) {
        oos_size_print(host->limit_bytes.value, a, sizeof a);
        oos_size_print(oos_u64_or(host->limited_used_bytes, 0), b, sizeof b);
        oos_style_put(style, "  limit of the container or control group: %s, %s used\n", a, b);
    }
    if (host->shm_total_bytes.known) {
        oos_size_print(host->shm_total_bytes.value, a, sizeof a);
        oos_size_print(host->shm_free_bytes.value, b, sizeof b);
        oos_style_put(style, "  /dev/shm: %s, %s free\n", a, b);
    }
}

static void put_installed(const oos_style *style, const oos_installed *installed)
{
    if (!installed->folder[0]) {
        oos_style_put(style, "  no engine (%s) and no PyTorch in the Python of PATH\n", oos_engine_titles());
        return;
    }
    oos_text_put(style->text, "  ");
    put_path(style->text, installed->folder);
    oos_text_put(style->text, "\n");
    for (unsigned i = 0; i < installed->package_count; i++) {
        oos_text_put(style->text, "    ");
        oos_style_word(style, installed->packages[i].name);
        oos_text_put(style->text, " ");
        oos_style_word(style, installed->packages[i].version);
        oos_text_put(style->text, "\n");
    }
}

static void put_cache(const oos_style *style, const oos_cache_folder *cache)
{
    oos_text_put(style->text, "  ");
    oos_style_put(style, "%s", cache->name);
    oos_text_put(style->text, ": ");
    put_path(style->text, cache->path);
    if (cache->exists)
        oos_style_put(style, ", %u entries\n", cache->entries);
    else
        oos_style_put(style, ", not there\n");
}

void oos_report_doctor_text(oos_text *text, const oos_machine *machine, const oomsight_render_params *params)
{
    oos_style const style = oos_style_of(text, params);
    char **environment = told_environment();
    text->failed |= !environment;
    oos_text_printf(text, "oomsight %s, ", oomsight_version());
    oos_style_word(&style, machine->system);
    oos_text_put(text, "\n");
    put_driver(&style, &machine->nvml);
    for (unsigned i = 0; i < machine->nvml.device_count; i++) put_device(&style, &machine->nvml.devices[i]);
    put_host(&style, &machine->host);
    put_installed(&style, &machine->installed);
    for (unsigned i = 0; i < machine->cache_count; i++) put_cache(&style, &machine->caches[i]);
    for (size_t i = 0; environment && environment[i]; i++) {
        oos_text_put(text, "  ");
        oos_style_word(&style, environment[i]);
        oos_text_put(text, "\n");
    }
    if (!machine->whole) oos_style_put(&style, "  not everything was read in time\n");
    free(environment);
}

/* ---- JSON ------------------------------------------------------------------------------------------------------- */

/* Somebody else's word as a value. */
static void put_word(oos_json_writer *w, const char *word, bool is_path)
{
    oos_text shown = {0};
    if (is_path)
        put_path(&shown, word);
    else
        oos_shown_put(&shown, oos_view_of(word), false);
    w->text->failed |= shown.failed;
    oos_json_put_str(w, shown.ptr ? shown.ptr : "");
    oos_text_free(&shown);
}

static void field_word(oos_json_writer *w, const char *key, const char *word)
{
    oos_json_key(w, key);
    if (word && *word)
        put_word(w, word, false);
    else
        oos_json_put_null(w);
}

static void put_driver_json(oos_json_writer *w, const oos_nvml *nvml)
{
    static const char *const states[] = {[OOS_DRIVER_NONE] = "none",
                                         [OOS_DRIVER_SILENT] = "silent",
                                         [OOS_DRIVER_FAILED] = "failed",
                                         [OOS_DRIVER_OK] = "ok"};
    oos_json_field_object(w, "driver");
    oos_json_field_str(w, "state", states[nvml->state]);
    field_word(w, "version", nvml->driver);
    oos_json_field_known(w, "cuda", (oos_u64){nvml->cuda != 0, nvml->cuda});
    field_word(w, "error", nvml->error);
    oos_json_end_object(w);
}

static void put_device_json(oos_json_writer *w, const oos_machine_device *d)
{
    oos_json_begin_object(w);
    oos_json_field_u64(w, "index", d->index);
    field_word(w, "name", d->name);
    field_word(w, "bus_id", d->bus_id);
    oos_json_field_known(w, "total_bytes", (oos_u64){d->memory_known, d->total_bytes});
    oos_json_field_known(w, "used_bytes", (oos_u64){d->memory_known, d->used_bytes});
    oos_json_field_known(w, "reserved_bytes", (oos_u64){d->reserved_known, d->reserved_bytes});
    oos_json_key(w, "compute_capability");
    if (d->capability)
        oos_json_put_f64(w, d->capability / 10.0);
    else
        oos_json_put_null(w);
    oos_json_field_bool(w, "visible", d->visible != 0);
    oos_json_field_bool(w, "split", d->is_split);
    oos_json_field_bool(w, "slice", d->is_slice);
    oos_json_field_array(w, "holders");
    for (unsigned i = 0; i < d->holder_count; i++) {
        oos_json_begin_object(w);
        oos_json_field_u64(w, "pid", d->holders[i].pid);
        field_word(w, "name", d->holders[i].name);
        oos_json_field_known(w, "bytes", d->holders[i].bytes);
        oos_json_end_object(w);
    }
    oos_json_end_array(w);
    oos_json_end_object(w);
}

static void put_host_json(oos_json_writer *w, const oos_host *host)
{
    oos_json_field_object(w, "host");
    oos_json_field_known(w, "total_bytes", host->total_bytes);
    oos_json_field_known(w, "available_bytes", host->available_bytes);
    oos_json_field_known(w, "limit_bytes", host->limit_bytes);
    oos_json_field_known(w, "limit_used_bytes", host->limited_used_bytes);
    oos_json_field_known(w, "shm_total_bytes", host->shm_total_bytes);
    oos_json_field_known(w, "shm_free_bytes", host->shm_free_bytes);
    oos_json_end_object(w);
}

static void put_installed_json(oos_json_writer *w, const oos_installed *installed)
{
    oos_json_key(w, "installed");
    if (!installed->folder[0]) {
        oos_json_put_null(w);
        return;
    }
    oos_json_begin_object(w);
    oos_json_key(w, "folder");
    put_word(w, installed->folder, true);
    oos_json_field_object(w, "packages");
    for (unsigned i = 0; i < installed->package_count; i++)
        field_word(w, installed->packages[i].name, installed->packages[i].version);
    oos_json_end_object(w);
    oos_json_end_object(w);
}

static void put_caches_json(oos_json_writer *w, const oos_machine *machine)
{
    oos_json_field_array(w, "caches");
    for (unsigned i = 0; i < machine->cache_count; i++) {
        oos_json_begin_object(w);
        oos_json_field_str(w, "name", machine->caches[i].name);
        oos_json_key(w, "path");
        put_word(w, machine->caches[i].path, true);
        oos_json_field_known(w, "entries", (oos_u64){machine->caches[i].exists, machine->caches[i].entries});
        oos_json_end_object(w);
    }
    oos_json_end_array(w);
}

void oos_report_doctor_json(oos_text *text, const oos_machine *machine)
{
    oos_json_writer writer = {.text = text, .pretty_depth = 2}, *w = &writer;
    char **environment = told_environment();
    text->failed |= !environment;
    oos_json_begin_object(w);
    oos_json_field_str(w, "schema", "oomsight.doctor/1");
    oos_json_field_str(w, "oomsight", oomsight_version());
    field_word(w, "system", machine->system);
    oos_json_field_bool(w, "whole", machine->whole);
    put_driver_json(w, &machine->nvml);
    oos_json_field_array(w, "devices");
    for (unsigned i = 0; i < machine->nvml.device_count; i++) put_device_json(w, &machine->nvml.devices[i]);
    oos_json_end_array(w);
    put_host_json(w, &machine->host);
    put_installed_json(w, &machine->installed);
    put_caches_json(w, machine);
    oos_json_field_array(w, "environment");
    for (size_t i = 0; environment && environment[i]; i++) put_word(w, environment[i], false);
    oos_json_end_array(w);
    oos_json_end_object(w);
    oos_text_put(text, "\n");
    free(environment);
}
