/* Reading data/gpus and finding a device by the word a person would use. All files are read at every start, so they are
 * scanned forward for the fields we use. */
#include "facts/facts.h"
#include "base/ascii.h"
#include "base/check.h"
#include "base/edits.h"
#include "base/scan.h"

#include <stdio.h>
#include <stdlib.h>

bool oos_capability_parse(const char *text, unsigned *ret_capability)
{
    unsigned major = 0;
    if (!oos_is_digit(text[0])) return false;
    while (oos_is_digit(*text) && major < 1000) major = major * 10 + (unsigned)(*text++ - '0');
    if (*text == '\0' && major >= 10 && major < 100) { /* "90": no dot */
        *ret_capability = major;
        return true;
    }
    if (major > 99 || *text++ != '.' || !oos_is_digit(*text) || text[1]) return false;
    *ret_capability = major * 10 + (unsigned)(*text - '0');
    return true;
}

enum { ALIASES_MAX = 32, SLICES_MAX = 32 };

/* One object on its way in: a device or a MIG profile. */
typedef struct draft {
    oos_gpu gpu;
    oos_view name, profile, capability, source, memory, kind;
    oos_view aliases[ALIASES_MAX];
    size_t alias_count;
    oos_view slices[SLICES_MAX]; /* the text of each profile */
    size_t slice_count;
    bool has_total, has_low, has_high, has_nvml;
    uint64_t sms;
} draft;

static void aliases_scan(oos_scan *scan, draft *d)
{
    if (!oos_scan_open(scan, '[')) return;
    while (oos_scan_item(scan)) {
        oos_view alias = {0};
        if (oos_scan_string(scan, &alias) && d->alias_count < ALIASES_MAX)
            d->aliases[d->alias_count++] = alias;
    }
}

static void slices_scan(oos_scan *scan, draft *d)
{
    if (!oos_scan_open(scan, '[')) return;
    while (oos_scan_item(scan)) {
        oos_view slice = {0};
        if (oos_scan_skip(scan, &slice) && d->slice_count < SLICES_MAX) d->slices[d->slice_count++] = slice;
    }
}

/* A number, or nothing when it is null. */
static bool number_scan(oos_scan *scan, uint64_t *ret_number)
{
    if (oos_scan_peek(scan) == OOS_SCAN_NUMBER) return oos_scan_u64(scan, ret_number);
    oos_scan_skip(scan, NULL);
    return false;
}

static void costs_scan(oos_scan *scan, oos_driver_costs *costs)
{
    oos_view key = {0};
    if (!oos_scan_open(scan, '{')) return;
    while (oos_scan_key(scan, &key)) {
        oos_u64 *field = oos_view_is(key, "graph_bytes")        ? &costs->graph_bytes
                         : oos_view_is(key, "graph_node_bytes") ? &costs->graph_node_bytes
                         : oos_view_is(key, "kernel_bytes")     ? &costs->kernel_bytes
                         : oos_view_is(key, "collective_bytes") ? &costs->collective_bytes
                                                                : NULL;
        if (field)
            field->known = number_scan(scan, &field->value);
        else
            oos_scan_skip(scan, NULL);
    }
}

static bool draft_scan(oos_view text, draft *d)
{
    oos_scan scan = oos_scan_begin(text);
    oos_view key = {0};
    if (!oos_scan_open(&scan, '{')) return false;
    while (oos_scan_key(&scan, &key)) {
        if (oos_view_is(key, "name"))
            oos_scan_string(&scan, &d->name);
        else if (oos_view_is(key, "profile"))
            oos_scan_string(&scan, &d->profile);
        else if (oos_view_is(key, "compute_capability"))
            oos_scan_string(&scan, &d->capability);
        else if (oos_view_is(key, "total_source"))
            oos_scan_string(&scan, &d->source);
        else if (oos_view_is(key, "class"))
            oos_scan_string(&scan, &d->kind);
        else if (oos_view_is(key, "memory_kind"))
            oos_scan_string(&scan, &d->memory);
        else if (oos_view_is(key, "total_bytes"))
            d->has_total = number_scan(&scan, &d->gpu.total_bytes);
        else if (oos_view_is(key, "total_low"))
            d->has_low = number_scan(&scan, &d->gpu.total_low);
        else if (oos_view_is(key, "total_high"))
            d->has_high = number_scan(&scan, &d->gpu.total_high);
        else if (oos_view_is(key, "nvml_total_bytes"))
            d->has_nvml = number_scan(&scan, &d->gpu.nvml_total_bytes);
        else if (oos_view_is(key, "sms"))
            number_scan(&scan, &d->sms);
        else if (oos_view_is(key, "context_bytes"))
            d->gpu.costs.context_bytes.known = number_scan(&scan, &d->gpu.costs.context_bytes.value);
        else if (oos_view_is(key, "nvlink")) {
            oos_view word = {0};
            oos_scan_skip(&scan, &word);
            d->gpu.costs.nvlink = (oos_flag){true, oos_view_is(word, "true")};
        } else if (oos_view_is(key, "driver_costs"))
            costs_scan(&scan, &d->gpu.costs);
        else if (oos_view_is(key, "aliases"))
            aliases_scan(&scan, d);
        else if (oos_view_is(key, "mig"))
            slices_scan(&scan, d);
        else
            oos_scan_skip(&scan, NULL);
    }
    return oos_scan_done(&scan);
}

/* What a device and a slice have in common. */
static bool totals_settle(draft *d)
{
    if (!d->has_low) d->gpu.total_low = d->gpu.total_bytes;
    if (!d->has_high) d->gpu.total_high = d->gpu.total_bytes;
    d->gpu.total_measured = oos_view_is(d->source, "measured");
    d->gpu.sms = (unsigned)oos_min(d->sms, 4096);
    return d->has_total && d->gpu.total_bytes < (uint64_t)1 << 53;
}

static oos_gpu_class class_of(oos_view word)
{
    static const char *const words[] = {"datacentre", "consumer", "workstation", "laptop", "embedded"};
    _Static_assert(sizeof words / sizeof *words == OOS_GPU_EMBEDDED + 1, "a word for each class");
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (oos_view_is(word, words[i])) return (oos_gpu_class)i;
    return OOS_GPU_DATACENTRE;
}

static oomsight_status gpu_settle(oos_arena *arena, draft *d, oomsight_error *reterr)
{
    oos_gpu *gpu = &d->gpu;
    char capability[16];
    if (d->name.len == 0 || !totals_settle(d) || d->capability.len >= sizeof capability)
        return oos_fail(reterr, OOMSIGHT_MALFORMED, "a GPU needs name, total_bytes and compute_capability");
    memcpy(capability, d->capability.ptr, d->capability.len);
    capability[d->capability.len] = '\0';
    if (!oos_capability_parse(capability, &gpu->capability))
        return oos_fail(reterr, OOMSIGHT_MALFORMED, "'%s' is not a compute capability such as 9.0",
                        capability);
    gpu->memory = oos_view_is(d->memory, "unified") ? OOS_MEMORY_UNIFIED
                  : oos_view_is(d->memory, "hbm")   ? OOS_MEMORY_HBM
                                                    : OOS_MEMORY_GDDR;
    gpu->kind = class_of(d->kind);
    if (!d->has_nvml) gpu->nvml_total_bytes = gpu->total_bytes;
    const char **aliases = OOS_NEW_ARRAY(arena, const char *, d->alias_count);
    gpu->name = oos_scan_text(arena, d->name);
    bool ok = aliases && gpu->name;
    for (size_t i = 0; ok && i < d->alias_count; i++)
        ok = (aliases[i] = oos_scan_text(arena, d->aliases[i])) != NULL;
    gpu->aliases = aliases;
    gpu->alias_count = d->alias_count;
    return ok ? OOMSIGHT_OK : oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a GPU");
}

/* A MIG profile is a device of its own: the parent's name, its own bytes and SMs. */
static oomsight_status slice_settle(oos_arena *arena, const oos_gpu *parent, draft *d, oomsight_error *reterr)
{
    if (d->profile.len == 0 || !totals_settle(d))
        return oos_fail(reterr, OOMSIGHT_MALFORMED, "a MIG profile needs profile and total_bytes");
    oos_gpu gpu = *parent;
    gpu.total_bytes = d->gpu.total_bytes, gpu.total_low = d->gpu.total_low,
    gpu.total_high = d->gpu.total_high;
    gpu.total_measured = d->gpu.total_measured;
    gpu.sms = d->gpu.sms;
    /* A context is mostly per-SM state: docs/reference/formats/gpu.md, 30 MiB + a share per SM. */
    oos_u64 *context = &gpu.costs.context_bytes;
    if (context->known && context->value > 30 * OOS_MIB && parent->sms && gpu.sms)
        context->value = 30 * OOS_MIB + (context->value - 30 * OOS_MIB) * gpu.sms / parent->sms;
    gpu.slice = oos_scan_text(arena, d->profile);
    gpu.name = gpu.slice ? oos_arena_format(arena, "%s MIG %s", parent->name, gpu.slice) : NULL;
    const char **aliases = OOS_NEW_ARRAY(arena, const char *, parent->alias_count);
    bool ok = aliases && gpu.name;
    for (size_t i = 0; ok && i < parent->alias_count; i++)
        ok = (aliases[i] = oos_arena_format(arena, "%s-%s", parent->aliases[i], gpu.slice)) != NULL;
    gpu.aliases = aliases;
    d->gpu = gpu;
    return ok ? OOMSIGHT_OK : oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a MIG profile");
}

/* A dot is kept: "1g.10gb". */
size_t oos_name_plain(oos_view word, char *ret_plain, size_t capacity)
{
    size_t len = 0;
    for (size_t i = 0; i < word.len && len + 1 < capacity; i++) {
        unsigned char const c = (unsigned char)word.ptr[i];
        if (oos_is_alnum(c) || c == '.') ret_plain[len++] = oos_lower((char)c);
    }
    oos_assert(len < capacity);
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
    size_t const len = oos_name_plain(oos_view_of(spelling), text, sizeof text);
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
    oos_assert(count <= capacity);
    qsort(names, count, sizeof *names, by_name_and_place);
    for (size_t i = 0; i < count; i++)
        if (kept == 0 || strcmp(names[kept - 1].plain, names[i].plain) != 0) names[kept++] = names[i];
    gpus->names = names;
    gpus->name_count = kept;
    return OOMSIGHT_OK;
}

/* The device of one file and its slices, appended to the list. */
static oomsight_status file_read(oos_arena *arena, oos_view text, oos_gpu *list, size_t *count,
                                 oomsight_error *reterr)
{
    draft device = {0};
    if (!draft_scan(text, &device)) return oos_fail(reterr, OOMSIGHT_MALFORMED, "not a JSON object");
    OOS_TRY(gpu_settle(arena, &device, reterr));
    list[(*count)++] = device.gpu;
    for (size_t i = 0; i < device.slice_count; i++) {
        draft slice = {0};
        if (!draft_scan(device.slices[i], &slice))
            return oos_fail(reterr, OOMSIGHT_MALFORMED, "not a JSON object");
        OOS_TRY(slice_settle(arena, &device.gpu, &slice, reterr));
        list[(*count)++] = slice.gpu;
    }
    return OOMSIGHT_OK;
}

oomsight_status oos_gpus_load(oos_arena *arena, const char *data_dir, oos_gpus *ret_gpus,
                              oomsight_error *reterr)
{
    oos_data_file *files;
    size_t file_count, count = 0;
    OOS_TRY(oos_data_list(arena, data_dir, "gpus", &files, &file_count, reterr));
    oos_gpu *list = OOS_NEW_ARRAY(arena, oos_gpu, file_count * (1 + SLICES_MAX));
    if (!list) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for GPUs");
    for (size_t i = 0; i < file_count; i++) {
        oomsight_status const status =
            file_read(arena, (oos_view){files[i].bytes, files[i].len}, list, &count, reterr);
        if (status != OOMSIGHT_OK) return oos_fail_in(reterr, status, files[i].path);
    }
    oos_assert(count <= file_count * (1 + SLICES_MAX));
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

/* "24gb" as printed on a box: of the cards that have so much, less up to 7 % that ECC takes, the one that shows the least. */
static const oos_gpu *find_size(const oos_gpus *gpus, const char *wanted)
{
    char *end;
    unsigned long const size = strtoul(wanted, &end, 10);
    if (end == wanted || size < 1 || size > 4096 || (strcmp(end, "gb") != 0 && strcmp(end, "gib") != 0))
        return NULL;
    uint64_t const most = size * OOS_GIB + OOS_GIB / 2, least = size * OOS_GIB / 100 * 93;
    const oos_gpu *best = NULL;
    for (size_t i = 0; i < gpus->count; i++) {
        const oos_gpu *gpu = &gpus->list[i];
        if (gpu->slice || gpu->memory == OOS_MEMORY_UNIFIED || gpu->nvml_total_bytes < least ||
            gpu->nvml_total_bytes > most)
            continue;
        if (!best || gpu->total_bytes < best->total_bytes) best = gpu;
    }
    return best;
}

bool oos_gpus_is_size(oos_view word)
{
    size_t at = 0;
    while (at < word.len && oos_is_digit(word.ptr[at])) at++;
    while (at < word.len && word.ptr[at] == ' ') at++;
    return at > 0 && word.len - at >= 2 && oos_lower(word.ptr[at]) == 'g' &&
           (oos_lower(word.ptr[at + 1]) == 'b' || oos_lower(word.ptr[at + 1]) == 'i');
}

/* "RTX 4090 24GB": a name and the size on the box of this card; with another size it is no name. */
static const oos_gpu *find_name_and_size(const oos_gpus *gpus, const char *wanted)
{
    char name[128];
    size_t digits = strlen(wanted);
    while (digits > 0 && !oos_is_digit(wanted[digits - 1])) digits--;
    if (strcmp(wanted + digits, "gb") != 0 && strcmp(wanted + digits, "gib") != 0 &&
        strcmp(wanted + digits, "g") != 0)
        return NULL;
    for (size_t begin = digits; begin-- > 1 && digits - begin <= 4 && oos_is_digit(wanted[begin]);) {
        uint64_t const size = strtoull(wanted + begin, NULL, 10) * OOS_GIB;
        (void)snprintf(name, sizeof name, "%.*s", (int)begin, wanted);
        const oos_gpu *gpu = find_plain(gpus, name);
        if (gpu && gpu->nvml_total_bytes <= size + OOS_GIB / 2 && gpu->nvml_total_bytes >= size / 100 * 93)
            return gpu;
    }
    return NULL;
}

/* "h100 mig 1g.10gb", "h100/mig-1g.10gb": the word between the GPU and its profile. */
static const oos_gpu *find_slice(const oos_gpus *gpus, const char *wanted)
{
    char name[128];
    const char *mig = strstr(wanted, "mig");
    if (!mig) return NULL;
    (void)snprintf(name, sizeof name, "%.*s%s", (int)(mig - wanted), wanted, mig + 3);
    const oos_gpu *gpu = find_plain(gpus, name);
    return gpu && gpu->slice ? gpu : NULL;
}

static const oos_gpu *find_name(const oos_gpus *gpus, const char *wanted)
{
    const oos_gpu *gpu = find_plain(gpus, wanted);
    if (!gpu) gpu = find_slice(gpus, wanted);
    if (!gpu) gpu = find_size(gpus, wanted);
    return gpu ? gpu : find_name_and_size(gpus, wanted);
}

const oos_gpu *oos_gpus_find(const oos_gpus *gpus, oos_view word, uint64_t *ret_count)
{
    char wanted[128];
    oos_name_plain(word, wanted, sizeof wanted);
    *ret_count = 1;
    const oos_gpu *gpu = find_name(gpus, wanted);
    if (gpu) return gpu;

    /* "A30x4": digits behind the last x */
    char *x = strrchr(wanted, 'x');
    if (x && oos_is_digit(x[1])) {
        char *end;
        unsigned long const count = strtoul(x + 1, &end, 10);
        if (*end == '\0' && count >= 1 && count <= 4096) {
            *x = '\0';
            gpu = find_name(gpus, wanted);
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
        gpu = find_name(gpus, end + 1);
        if (gpu) *ret_count = count;
    }
    return gpu;
}

/* Those of which one spelling is one edit away; a count behind the word does not matter. */
static size_t mistyped(const oos_gpus *gpus, const char *wanted, const char **ret_names, size_t most)
{
    size_t count = 0, len = strlen(wanted), digits = len;
    while (digits > 2 && oos_is_digit((unsigned char)wanted[digits - 1])) digits--;
    if (digits > 2 && digits < len && wanted[digits - 1] == 'x') len = digits - 1;
    for (size_t i = 0; i < gpus->name_count && count < most && len > 2; i++) {
        const oos_gpu_name *name = &gpus->names[i];
        if (name->gpu->slice || oos_edits((oos_view){wanted, len}, oos_view_of(name->plain)) != 1) continue;
        bool seen = false;
        for (size_t k = 0; k < count; k++) seen |= ret_names[k] == name->gpu->name;
        if (!seen) ret_names[count++] = name->gpu->name;
    }
    return count;
}

size_t oos_gpus_suggest(const oos_gpus *gpus, oos_view word, const char **ret_names, size_t most)
{
    char wanted[128], known[128];
    size_t count = 0;
    size_t const len = oos_name_plain(word, wanted, sizeof wanted);
    if (len < 2) return 0;
    for (size_t i = 0; i < gpus->count && count < most; i++) {
        if (gpus->list[i].slice) continue;
        oos_name_plain(oos_view_of(gpus->list[i].name), known, sizeof known);
        if (strstr(known, wanted)) ret_names[count++] = gpus->list[i].name;
    }
    for (size_t i = 0; i < gpus->count && count < most; i++) { /* a MIG profile alone, "mig-1g.10gb" */
        const char *slice = gpus->list[i].slice;
        size_t const tail = slice ? strlen(slice) : len + 1;
        if (tail <= len && strcmp(wanted + len - tail, slice) == 0) ret_names[count++] = gpus->list[i].name;
    }
    if (count == 0) count = mistyped(gpus, wanted, ret_names, most);
    const char *size = len > 4 ? strrchr(wanted, 'g') : NULL; /* "RTX 4090 12GB" */
    if (count || !size) return count;
    size_t name = (size_t)(size - wanted);
    for (size_t cut = 0; cut < 3 && name > 1 && oos_is_digit(wanted[name - 1]) && count == 0; cut++)
        if (wanted[--name] != '\0') {
            char const kept = wanted[name];
            wanted[name] = '\0';
            const oos_gpu *gpu = find_plain(gpus, wanted);
            if (gpu) ret_names[count++] = gpu->name;
            wanted[name] = kept;
        }
    return count;
}
