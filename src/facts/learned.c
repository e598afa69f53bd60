/* The files that `oomsight learn` leaves in the user's cache, one for each installed engine. Whoever can write there can write anything: a file
 * is read when it is plain, the user's own and not too large, and as what it says it is. */
#include "facts/facts.h"
#include "base/ascii.h"
#include "base/check.h"
#include "base/file.h"
#include "base/locale.h"

#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>

enum { PACKAGE_LEN = 64, SHORT_LEN = 12, RELEASE_MAX = 60 };

static bool is_hash(oos_view text)
{
    for (size_t i = 0; i < text.len; i++)
        if (!oos_is_digit(text.ptr[i]) && (text.ptr[i] < 'a' || text.ptr[i] > 'f')) return false;
    return text.len == PACKAGE_LEN;
}

/* Part of the name of a file: "0.34.1.dev5+g1a2b3c". */
static bool is_release(oos_view text)
{
    for (size_t i = 0; i < text.len; i++)
        if (!oos_is_alnum(text.ptr[i]) && !strchr(".+_!", text.ptr[i])) return false;
    return text.len > 0 && text.len <= RELEASE_MAX && oos_is_digit(text.ptr[0]);
}

/* A list of at most so many; empty where it is none. */
static oos_view list_read(oos_scan *scan)
{
    oos_view raw = {"", 0};
    size_t count = 0;
    if (oos_scan_peek(scan) != OOS_SCAN_ARRAY || !oos_scan_skip(scan, &raw)) {
        oos_scan_skip(scan, NULL);
        return (oos_view){"", 0};
    }
    oos_scan items = oos_scan_begin(raw);
    if (oos_scan_open(&items, '['))
        while (oos_scan_item(&items) && oos_scan_skip(&items, NULL)) count++;
    return count && count <= OOS_LEARNED_FLAGS_MAX ? raw : (oos_view){"", 0};
}

/* ---- terms ---- */

enum { TERMS_MAX = 64 };

/* Where a term stands, and what it can be. What is none of these is for a newer program. */
static oos_learned_term *term_find(oos_learned_terms *terms, oos_view name, oos_view form, double *ret_most)
{
    static const char *const rests[OOS_REST_COUNT] = {"dense", "moe", "hybrid", "graphs"};
    *ret_most = 0x1p40;
    if (oos_view_is(name, "sampler") && oos_view_is(form, "bytes_per_logit")) {
        *ret_most = 256;
        return &terms->sampler;
    }
    if (oos_view_is(name, "before_reading") && oos_view_is(form, "cublas")) return &terms->early_cublas;
    if (oos_view_is(name, "before_reading") && oos_view_is(form, "constant")) return &terms->early;
    if (oos_view_is(name, "retained") && oos_view_is(form, "constant")) return &terms->retained;
    for (size_t i = 0; i < OOS_REST_COUNT && oos_view_is(name, "rest"); i++)
        if (oos_view_is(form, rests[i])) return &terms->rests[i];
    return NULL;
}

/* A number as it stands; false: none, or not a finite one. */
static bool number_read(oos_scan *scan, double *ret_number)
{
    oos_view raw;
    char text[32], *end;
    if (oos_scan_peek(scan) != OOS_SCAN_NUMBER || !oos_scan_skip(scan, &raw) || raw.len >= sizeof text)
        return false;
    memcpy(text, raw.ptr, raw.len);
    text[raw.len] = '\0';
    *ret_number = oos_real_read(text, &end);
    return *end == '\0' && isfinite(*ret_number);
}

uint64_t oos_learned_bytes(const oos_learned_term *term)
{
    return term->known && term->value >= 0x1p22 ? (uint64_t)term->value : 0;
}

static void term_read(oos_scan *scan, oos_learned_terms *terms)
{
    oos_view key, name = {"", 0}, form = {"", 0};
    oos_learned_term found = {.low = NAN, .high = NAN};
    double most;
    if (!oos_scan_open(scan, '{')) return;
    while (oos_scan_key(scan, &key)) {
        double *number = oos_view_is(key, "value")  ? &found.value
                         : oos_view_is(key, "low")  ? &found.low
                         : oos_view_is(key, "high") ? &found.high
                                                    : NULL;
        if (oos_view_is(key, "term"))
            name = oos_scan_string_or_none(scan);
        else if (oos_view_is(key, "form"))
            form = oos_scan_string_or_none(scan);
        else if (!number)
            oos_scan_skip(scan, NULL);
        else if (number_read(scan, number))
            found.known |= number == &found.value;
        else
            oos_scan_skip(scan, NULL);
    }
    oos_learned_term *term = term_find(terms, name, form, &most);
    if (isnan(found.low)) found.low = found.value;
    if (isnan(found.high)) found.high = found.value;
    double const least = oos_view_is(name, "rest") ? -most : 0;
    if (term && found.known && found.low >= least && found.low <= found.value && found.value <= found.high &&
        found.high <= most) {
        *term = found;
        terms->here = true;
    }
}

static void terms_read(oos_scan *scan, oos_learned_terms *terms)
{
    oos_view raw = {"", 0};
    oos_scan_skip(scan, &raw);
    oos_scan items = oos_scan_begin(raw);
    if (!raw.len || !oos_scan_open(&items, '[')) return;
    for (size_t count = 0; count < TERMS_MAX && oos_scan_item(&items); count++) {
        if (oos_scan_peek(&items) == OOS_SCAN_OBJECT)
            term_read(&items, terms);
        else if (!oos_scan_skip(&items, NULL))
            return;
    }
}

bool oos_learned_parse(oos_view text, const char *engine, oos_learned *ret_learned)
{
    oos_learned found = {.flags = {"", 0}, .rules = {"", 0}};
    oos_view key, schema = {"", 0}, of = {"", 0};
    oos_scan scan = oos_scan_begin(text);
    if (!oos_scan_open(&scan, '{')) return false;
    while (oos_scan_key(&scan, &key)) {
        if (oos_view_is(key, "schema"))
            schema = oos_scan_string_or_none(&scan);
        else if (oos_view_is(key, "engine"))
            of = oos_scan_string_or_none(&scan);
        else if (oos_view_is(key, "version"))
            found.release = oos_scan_string_or_none(&scan);
        else if (oos_view_is(key, "package"))
            found.package = oos_scan_string_or_none(&scan);
        else if (oos_view_is(key, "flags"))
            found.flags = list_read(&scan);
        else if (oos_view_is(key, "architectures"))
            found.architectures = list_read(&scan);
        else if (oos_view_is(key, "quantization"))
            found.quantization = list_read(&scan);
        else if (oos_view_is(key, "terms"))
            terms_read(&scan, &found.terms);
        else if (oos_view_is(key, "rules"))
            oos_scan_skip(&scan, &found.rules);
        else
            oos_scan_skip(&scan, NULL);
    }
    if (!oos_scan_done(&scan) || !oos_view_is(schema, OOS_LEARNED_SCHEMA) || !oos_view_is(of, engine) ||
        !is_release(found.release) || !is_hash(found.package) || !found.flags.len ||
        !oos_version_parse(found.release, &found.version))
        return false;
    *ret_learned = found;
    return true;
}

bool oos_learned_lists(oos_view list, const char *name)
{
    oos_view item;
    bool found = false;
    oos_scan scan = oos_scan_begin(list);
    if (!list.len || !name || !oos_scan_open(&scan, '[')) return false;
    while (!found && oos_scan_item(&scan)) {
        item = oos_scan_string_or_none(&scan);
        found = oos_view_is(item, name);
    }
    return found;
}

/* ---- rules of which the source has changed ---- */

static void added_read(oos_scan *scan, oos_learned_doubt *doubt)
{
    if (!oos_scan_open(scan, '[')) return;
    while (oos_scan_item(scan)) {
        oos_view const text = oos_scan_string_or_none(scan);
        if (doubt->added_count < 2 && text.len) doubt->added[doubt->added_count++] = text;
    }
}

static uint64_t count_read(oos_scan *scan)
{
    uint64_t count = 0;
    oos_view raw = {"", 0};
    if (!oos_scan_skip(scan, &raw)) return 0;
    oos_scan number = oos_scan_begin(raw);
    return oos_scan_peek(&number) == OOS_SCAN_NUMBER && oos_scan_u64(&number, &count) ? count : 0;
}

static bool is_true(oos_scan *scan)
{
    oos_view raw = {"", 0};
    return oos_scan_skip(scan, &raw) && oos_view_is(raw, "true");
}

static oos_learned_doubt doubt_read(oos_scan *scan)
{
    oos_learned_doubt doubt = {.rule = {"", 0}, .unit = {"", 0}};
    oos_view key;
    if (!oos_scan_open(scan, '{')) return doubt;
    while (oos_scan_key(scan, &key)) {
        if (oos_view_is(key, "rule"))
            doubt.rule = oos_scan_string_or_none(scan);
        else if (oos_view_is(key, "unit"))
            doubt.unit = oos_scan_string_or_none(scan);
        else if (oos_view_is(key, "added"))
            added_read(scan, &doubt);
        else if (oos_view_is(key, "removed"))
            doubt.removed = count_read(scan);
        else if (oos_view_is(key, "gone"))
            doubt.gone = is_true(scan);
        else
            oos_scan_skip(scan, NULL);
    }
    return doubt;
}

bool oos_learned_doubts(const oos_learned *learned, oos_learned_doubt *ret_list, size_t max,
                        size_t *ret_count)
{
    bool listed = false;
    oos_view key;
    oos_scan scan = oos_scan_begin(learned->rules);
    *ret_count = 0;
    if (!learned->rules.len || !oos_scan_open(&scan, '{')) return false;
    while (oos_scan_key(&scan, &key)) {
        if (listed || !oos_view_is(key, "doubt") || !oos_scan_open(&scan, '[')) {
            oos_scan_skip(&scan, NULL);
            continue;
        }
        listed = true;
        while (oos_scan_item(&scan)) {
            oos_learned_doubt const doubt = doubt_read(&scan);
            if (!doubt.rule.len || !doubt.unit.len || *ret_count == max) return false;
            ret_list[(*ret_count)++] = doubt;
        }
    }
    return listed && oos_scan_done(&scan);
}

const char *oos_learned_folder(oos_arena *arena)
{
    const char *base = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (base && *base) return oos_arena_format(arena, "%s/oomsight/learned", base);
    return home && *home ? oos_arena_format(arena, "%s/.cache/oomsight/learned", home) : NULL;
}

const char *oos_learned_name(oos_arena *arena, const char *engine, const oos_learned *learned)
{
    if (!is_release(learned->release) || !is_hash(learned->package)) return NULL;
    return oos_arena_format(arena, "%s-%.*s-%.*s.json", engine, (int)learned->release.len,
                            learned->release.ptr, SHORT_LEN, learned->package.ptr);
}

/* Is it called as a file of that release is? */
static bool is_of(const char *name, const char *engine, oos_version version)
{
    size_t const len = strlen(engine);
    oos_version of = 0;
    return strncmp(name, engine, len) == 0 && name[len] == '-' &&
           oos_version_parse(oos_view_of(name + len + 1), &of) && of == version;
}

/* The last that was written. */
static const char *name_find(oos_arena *arena, const char *folder, const char *engine, oos_version version)
{
    const char *found = NULL;
    struct timespec last = {0};
    DIR *place = opendir(folder);
    for (const struct dirent *entry; place && (entry = readdir(place));) {
        struct stat is;
        if (!is_of(entry->d_name, engine, version)) continue;
        const char *path = oos_arena_format(arena, "%s/%s", folder, entry->d_name);
        if (!path || lstat(path, &is) != 0 || !S_ISREG(is.st_mode)) continue;
        bool const later = is.st_mtim.tv_sec != last.tv_sec ? is.st_mtim.tv_sec > last.tv_sec
                                                            : is.st_mtim.tv_nsec > last.tv_nsec;
        if (found && !later) continue;
        last = is.st_mtim;
        found = oos_base_name(path);
    }
    if (place) closedir(place);
    return found;
}

bool oos_learned_find(oos_arena *arena, const char *engine, oos_version version, const char *name,
                      oos_learned *ret_learned)
{
    oos_view text;
    const char *folder = oos_learned_folder(arena);
    if (folder && !name) name = name_find(arena, folder, engine, version);
    const char *path = folder && name ? oos_arena_format(arena, "%s/%s", folder, name) : NULL;
    if (!path || !oos_file_read_own(arena, path, OOS_LEARNED_BYTES_MAX, &text) ||
        !oos_learned_parse(text, engine, ret_learned) || ret_learned->version != version)
        return false;
    oos_assert(ret_learned->flags.len > 0 && ret_learned->package.len == PACKAGE_LEN);
    const char *is = oos_learned_name(arena, engine, ret_learned);
    return is && strcmp(is, name) == 0;
}
