/* Reading data/gpus and finding a device by the word a person would use. */
#include "facts/gpu.h"
#include "base/json.h"
#include "facts/data.h"

#include <ctype.h>
#include <stdlib.h>

/* "9.0" -> 90 */
static bool capability_parse(const char *text, unsigned *ret_capability)
{
    unsigned major = 0, minor = 0;
    if (!isdigit((unsigned char)text[0])) return false;
    while (isdigit((unsigned char)*text) && major < 100) major = major * 10 + (unsigned)(*text++ - '0');
    if (*text++ != '.' || !isdigit((unsigned char)*text)) return false;
    minor = (unsigned)(*text - '0');
    *ret_capability = major * 10 + minor;
    return text[1] == '\0';
}

static oomsight_status strings_read(oos_arena *arena, const json_t *list, const char *const **ret_list,
                                    size_t *ret_count)
{
    size_t const count = json_array_size(list);
    const char **strings = OOS_NEW_ARRAY(arena, const char *, count);
    if (!strings) return OOMSIGHT_NOMEM;
    for (size_t i = 0; i < count; i++) {
        const char *text = json_string_value(json_array_get(list, i));
        strings[i] = text ? text : "";
    }
    *ret_list = strings;
    *ret_count = count;
    return OOMSIGHT_OK;
}

static oomsight_status gpu_read(oos_arena *arena, const json_t *object, oos_gpu *ret_gpu,
                                oomsight_error *reterr)
{
    oos_gpu gpu = {0};
    const char *capability = "", *source = "", *memory = "";
    uint64_t sms = 0;
    if (!oos_json_str(object, "name", &gpu.name) || !oos_json_u64(object, "total_bytes", &gpu.total_bytes) ||
        !oos_json_str(object, "compute_capability", &capability) ||
        !capability_parse(capability, &gpu.capability))
        return oos_fail(reterr, OOMSIGHT_MALFORMED, "a GPU needs name, total_bytes and compute_capability");
    if (oos_json_u64(object, "sms", &sms)) gpu.sms = (unsigned)sms;
    oos_json_str(object, "total_source", &source);
    oos_json_str(object, "memory_kind", &memory);
    gpu.total_measured = strcmp(source, "measured") == 0;
    if (!oos_json_u64(object, "total_low", &gpu.total_low)) gpu.total_low = gpu.total_bytes;
    if (!oos_json_u64(object, "total_high", &gpu.total_high)) gpu.total_high = gpu.total_bytes;
    gpu.memory = strcmp(memory, "unified") == 0 ? OOS_MEMORY_UNIFIED
                 : strcmp(memory, "hbm") == 0   ? OOS_MEMORY_HBM
                                                : OOS_MEMORY_GDDR;
    gpu.context_bytes.known = oos_json_u64(object, "context_bytes", &gpu.context_bytes.value);
    if (!oos_json_u64(object, "nvml_total_bytes", &gpu.nvml_total_bytes))
        gpu.nvml_total_bytes = gpu.total_bytes;
    if (strings_read(arena, json_object_get(object, "aliases"), &gpu.aliases, &gpu.alias_count) !=
        OOMSIGHT_OK)
        return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for GPU aliases");
    *ret_gpu = gpu;
    return OOMSIGHT_OK;
}

/* A MIG profile is a device of its own: the parent's name, its own bytes and SMs. */
static oomsight_status slice_read(oos_arena *arena, const oos_gpu *parent, const json_t *profile,
                                  oos_gpu *ret_gpu)
{
    oos_gpu gpu = *parent;
    uint64_t sms = 0;
    const char *name, *source = "";
    if (!oos_json_str(profile, "profile", &name) || !oos_json_u64(profile, "total_bytes", &gpu.total_bytes))
        return OOMSIGHT_MALFORMED;
    if (oos_json_u64(profile, "sms", &sms)) gpu.sms = (unsigned)sms;
    if (!oos_json_u64(profile, "total_low", &gpu.total_low)) gpu.total_low = gpu.total_bytes;
    if (!oos_json_u64(profile, "total_high", &gpu.total_high)) gpu.total_high = gpu.total_bytes;
    oos_json_str(profile, "total_source", &source);
    gpu.total_measured = strcmp(source, "measured") == 0;
    gpu.slice = name;
    /* A context is mostly per-SM state: docs/formats/gpu.md, 30 MiB + a share per SM. */
    if (gpu.context_bytes.known && gpu.context_bytes.value > 30 * OOS_MIB && parent->sms && gpu.sms)
        gpu.context_bytes.value =
            30 * OOS_MIB + (gpu.context_bytes.value - 30 * OOS_MIB) * gpu.sms / parent->sms;
    gpu.name = oos_arena_format(arena, "%s MIG %s", parent->name, name);
    const char **aliases = OOS_NEW_ARRAY(arena, const char *, parent->alias_count);
    if (!gpu.name || !aliases) return OOMSIGHT_NOMEM;
    for (size_t i = 0; i < parent->alias_count; i++) {
        aliases[i] = oos_arena_format(arena, "%s-%s", parent->aliases[i], name);
        if (!aliases[i]) return OOMSIGHT_NOMEM;
    }
    gpu.aliases = aliases;
    *ret_gpu = gpu;
    return OOMSIGHT_OK;
}

/* Letters and digits only, lower case: "RTX 4090" and "rtx-4090" are one word. A dot is kept: "1g.10gb". */
static size_t plain(oos_view word, char *ret_plain, size_t capacity)
{
    size_t len = 0;
    for (size_t i = 0; i < word.len && len + 1 < capacity; i++) {
        unsigned char const c = (unsigned char)word.ptr[i];
        if (isalnum(c) || c == '.') ret_plain[len++] = (char)tolower(c);
    }
    ret_plain[len] = '\0';
    return len;
}

static int by_name_and_place(const void *a, const void *b)
{
    const oos_gpu_name *x = a, *y = b;
    int const order = strcmp(x->plain, y->plain);
    return order ? order : x->gpu < y->gpu ? -1 : x->gpu > y->gpu;
}

static bool name_add(oos_arena *arena, oos_gpu_name *names, size_t *count, const char *spelling,
                     const oos_gpu *gpu)
{
    char text[128];
    size_t const len = plain(oos_view_of(spelling), text, sizeof text);
    const char *copy = oos_arena_copy(arena, (oos_view){text, len});
    if (!copy) return false;
    names[(*count)++] = (oos_gpu_name){copy, gpu};
    return true;
}

/* Every spelling, sorted; where two devices share one, the first listed keeps it. */
static oomsight_status names_index(oos_arena *arena, oos_gpus *gpus, oomsight_error *reterr)
{
    size_t capacity = 0, count = 0, kept = 0;
    for (size_t i = 0; i < gpus->count; i++) capacity += 2 + gpus->list[i].alias_count;
    oos_gpu_name *names = OOS_NEW_ARRAY(arena, oos_gpu_name, capacity);
    bool ok = names != NULL;
    for (size_t i = 0; ok && i < gpus->count; i++) {
        const oos_gpu *gpu = &gpus->list[i];
        ok = name_add(arena, names, &count, gpu->name, gpu);
        if (ok && strncmp(gpu->name, "NVIDIA ", 7) == 0)
            ok = name_add(arena, names, &count, gpu->name + 7, gpu);
        for (size_t k = 0; ok && k < gpu->alias_count; k++)
            ok = name_add(arena, names, &count, gpu->aliases[k], gpu);
    }
    if (!ok) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for GPU names");
    qsort(names, count, sizeof *names, by_name_and_place);
    for (size_t i = 0; i < count; i++)
        if (kept == 0 || strcmp(names[kept - 1].plain, names[i].plain) != 0) names[kept++] = names[i];
    gpus->names = names;
    gpus->name_count = kept;
    return OOMSIGHT_OK;
}

oomsight_status oos_gpus_load(oos_arena *arena, const char *data_dir, oos_gpus *ret_gpus,
                              oomsight_error *reterr)
{
    oos_data_file *files;
    size_t file_count, count = 0, capacity = 0;
    OOS_TRY(oos_data_list(arena, data_dir, "gpus", &files, &file_count, reterr));
    json_t **roots = OOS_NEW_ARRAY(arena, json_t *, file_count);
    if (!roots) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for GPUs");
    for (size_t i = 0; i < file_count; i++) {
        oomsight_status const status =
            oos_json_load(arena, (oos_view){files[i].bytes, files[i].len}, &roots[i], reterr);
        if (status != OOMSIGHT_OK) return oos_fail_in(reterr, status, files[i].path);
        capacity += 1 + json_array_size(json_object_get(roots[i], "mig"));
    }

    oos_gpu *list = OOS_NEW_ARRAY(arena, oos_gpu, capacity);
    if (!list) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for GPUs");
    for (size_t i = 0; i < file_count; i++) {
        oomsight_status status = gpu_read(arena, roots[i], &list[count], reterr);
        if (status != OOMSIGHT_OK) return oos_fail_in(reterr, status, files[i].path);
        const oos_gpu *parent = &list[count++];
        const json_t *mig = json_object_get(roots[i], "mig");
        for (size_t k = 0; k < json_array_size(mig); k++) {
            status = slice_read(arena, parent, json_array_get(mig, k), &list[count]);
            if (status != OOMSIGHT_OK) {
                oos_fail(reterr, status, "a MIG profile needs profile and total_bytes");
                return oos_fail_in(reterr, status, files[i].path);
            }
            count++;
        }
    }
    *ret_gpus = (oos_gpus){.list = list, .count = count};
    return names_index(arena, ret_gpus, reterr);
}

static int by_plain(const void *a, const void *b)
{
    return strcmp(((const oos_gpu_name *)a)->plain, ((const oos_gpu_name *)b)->plain);
}

static const oos_gpu *find_plain(const oos_gpus *gpus, const char *wanted)
{
    oos_gpu_name const key = {.plain = wanted};
    const oos_gpu_name *found = bsearch(&key, gpus->names, gpus->name_count, sizeof key, by_plain);
    return found ? found->gpu : NULL;
}

const oos_gpu *oos_gpus_find(const oos_gpus *gpus, oos_view word, uint64_t *ret_count)
{
    char wanted[128];
    plain(word, wanted, sizeof wanted);
    *ret_count = 1;
    const oos_gpu *gpu = find_plain(gpus, wanted);
    if (gpu) return gpu;

    /* "A30x4": digits behind the last x */
    char *x = strrchr(wanted, 'x');
    if (x && isdigit((unsigned char)x[1])) {
        char *end;
        unsigned long const count = strtoul(x + 1, &end, 10);
        if (*end == '\0' && count >= 1 && count <= 4096) {
            *x = '\0';
            gpu = find_plain(gpus, wanted);
            if (gpu) {
                *ret_count = count;
                return gpu;
            }
            *x = 'x';
        }
    }
    /* "4xA30" */
    char *end;
    unsigned long const count = strtoul(wanted, &end, 10);
    if (end != wanted && *end == 'x' && count >= 1 && count <= 4096) {
        gpu = find_plain(gpus, end + 1);
        if (gpu) *ret_count = count;
    }
    return gpu;
}

size_t oos_gpus_suggest(const oos_gpus *gpus, oos_view word, const char **ret_names, size_t most)
{
    char wanted[128], known[128];
    size_t count = 0;
    size_t const len = plain(word, wanted, sizeof wanted);
    if (len < 2) return 0;
    for (size_t i = 0; i < gpus->count && count < most; i++) {
        if (gpus->list[i].slice) continue;
        plain(oos_view_of(gpus->list[i].name), known, sizeof known);
        if (strstr(known, wanted)) ret_names[count++] = gpus->list[i].name;
    }
    return count;
}
