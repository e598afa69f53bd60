/* The text of the catalogue: which one, and an entry of it without reading the rest. */
#include "model/model.h"
#include "base/file.h"
#include "base/size.h"
#include "facts/facts.h"

#include <stdlib.h>

/* ---- the newer one ---- */

const char *oos_catalogue_place(oos_arena *arena)
{
    const char *base = getenv("XDG_DATA_HOME"), *home = getenv("HOME");
    if (base && *base) return oos_arena_format(arena, "%s/oomsight/" OOS_CATALOGUE_FILE, base);
    return home && *home ? oos_arena_format(arena, "%s/.local/share/oomsight/" OOS_CATALOGUE_FILE, home)
                         : NULL;
}

bool oos_catalogue_is_updated(oos_arena *arena, oos_view *ret_text)
{
    static const char first[] = "{\n\"\":\"" OOS_CATALOGUE_SCHEMA " " OOMSIGHT_VERSION "\",\n";
    const char *path = oos_catalogue_place(arena);
    oos_view text;
    if (!path || !oos_file_read_own(arena, path, OOS_CATALOGUE_BYTES_MAX, &text) || text.len < sizeof first ||
        memcmp(text.ptr, first, sizeof first - 1) != 0)
        return false;
    *ret_text = text;
    return true;
}

oomsight_status oos_catalogue_text(oos_arena *arena, const char *data_dir, oos_view *ret_text,
                                   oomsight_error *reterr)
{
    if (!data_dir && oos_catalogue_is_updated(arena, ret_text)) return OOMSIGHT_OK;
    return oos_data_read(arena, data_dir, OOS_CATALOGUE_FILE, ret_text, reterr);
}

/* ---- lines ---- */

bool oos_catalogue_is_lined(oos_view text)
{
    return text.len > 2 && text.ptr[0] == '{' && text.ptr[1] == '\n';
}

/* The line [from, to): its id and what stands behind it. False: it has none. */
static bool read_line(const char *from, const char *to, oos_view *ret_id, oos_view *ret_value)
{
    while (from < to && *from == ' ') from++;
    if (from == to || *from++ != '"') return false;
    const char *quote = memchr(from, '"', (size_t)(to - from));
    if (!quote || to - quote < 3 || quote[1] != ':') return false;
    if (to[-1] == ',') to--;
    *ret_id = (oos_view){from, (size_t)(quote - from)};
    *ret_value = (oos_view){quote + 2, (size_t)(to - quote - 2)};
    return true;
}

static const char *line_end(const char *at, const char *end)
{
    const char *found = at < end ? memchr(at, '\n', (size_t)(end - at)) : NULL;
    return found ? found : end;
}

static int order(const char *id, size_t len, oos_view other)
{
    int const first = memcmp(id, other.ptr, oos_min(len, other.len));
    return first ? first : len < other.len ? -1 : len > other.len;
}

bool oos_catalogue_halve(oos_view text, const char *id, oos_view *ret_value)
{
    size_t const len = strlen(id);
    const char *low = text.ptr + 2, *high = text.ptr + text.len;
    while (low < high) {
        const char *middle = low + (high - low) / 2;
        const char *before = memrchr(low, '\n', (size_t)(middle - low));
        const char *line = before ? before + 1 : low, *end = line_end(middle, high);
        oos_view other;
        /* the closing bracket stands behind every id */
        int const side = read_line(line, end, &other, ret_value) ? order(id, len, other) : -1;
        if (side == 0) return true;
        if (side < 0)
            high = line;
        else
            low = end + 1;
    }
    return false;
}

oos_walk oos_walk_begin(oos_view text)
{
    oos_walk walk = {.scan = oos_scan_begin(text)};
    if (oos_catalogue_is_lined(text)) {
        walk.at = text.ptr + 2;
        walk.end = text.ptr + text.len;
    } else {
        (void)oos_scan_open(&walk.scan, '{');
    }
    return walk;
}

bool oos_walk_next(oos_walk *walk, oos_view *ret_id, oos_view *ret_value)
{
    if (!walk->at)
        return !walk->scan.failed && oos_scan_key(&walk->scan, ret_id) &&
               oos_scan_skip(&walk->scan, ret_value);
    while (walk->at < walk->end) {
        const char *line = walk->at, *end = line_end(line, walk->end);
        walk->at = end + 1;
        if (read_line(line, end, ret_id, ret_value) && ret_id->len) return true;
    }
    return false;
}
