/* Finding data files, embedded or on disk. */
#include "facts/facts.h"
#include "base/file.h"

#include <dirent.h>
#include <stdlib.h>

enum { DATA_FILE_LIMIT = 16 << 20, DATA_FILES_MAX = 4096, FOLDER_DEPTH = 3 };

static int by_path(const void *a, const void *b)
{
    return strcmp(((const oos_data_file *)a)->path, ((const oos_data_file *)b)->path);
}

oomsight_status oos_data_read(oos_arena *arena, const char *dir, const char *path, oos_view *ret_bytes,
                              oomsight_error *reterr)
{
    if (dir) {
        char *full = oos_arena_format(arena, "%s/%s", dir, path);
        if (!full) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a path");
        return oos_file_read(arena, full, DATA_FILE_LIMIT, ret_bytes, reterr);
    }
    oos_data_file const key = {.path = path};
    const oos_data_file *file =
        bsearch(&key, oos_data_embedded, oos_data_embedded_count, sizeof key, by_path);
    if (!file) return oos_fail(reterr, OOMSIGHT_NOT_FOUND, "no data file %s", path);
    *ret_bytes = (oos_view){file->bytes, file->len};
    return OOMSIGHT_OK;
}

oomsight_status oos_data_json(oos_arena *arena, const char *dir, const char *path, json_t **ret_root,
                              oomsight_error *reterr)
{
    oos_view bytes;
    OOS_TRY(oos_data_read(arena, dir, path, &bytes, reterr));
    return oos_json_load(arena, bytes, ret_root, reterr);
}

static oomsight_status list_embedded(const char *folder, oos_data_file *files, size_t *ret_count)
{
    size_t const len = strlen(folder);
    size_t count = 0;
    for (size_t i = 0; i < oos_data_embedded_count && count < DATA_FILES_MAX; i++) {
        const char *path = oos_data_embedded[i].path;
        if (strncmp(path, folder, len) == 0 && path[len] == '/') files[count++] = oos_data_embedded[i];
    }
    *ret_count = count;
    return OOMSIGHT_OK;
}

/* Adds to *ret_count, folders below included. */
static oomsight_status list_folder(oos_arena *arena, const char *dir, const char *folder, int depth,
                                   oos_data_file *files, size_t *ret_count, oomsight_error *reterr)
{
    char *full = oos_arena_format(arena, "%s/%s", dir, folder);
    if (!full) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a path");
    DIR *open_dir = opendir(full);
    if (!open_dir) {
        oos_fail(reterr, OOMSIGHT_NOT_FOUND, "no such folder");
        return oos_fail_in(reterr, OOMSIGHT_NOT_FOUND, full);
    }

    oomsight_status status = OOMSIGHT_OK;
    size_t count = *ret_count;
    for (struct dirent *entry;
         status == OOMSIGHT_OK && count < DATA_FILES_MAX && (entry = readdir(open_dir));) {
        size_t const len = strlen(entry->d_name);
        char *path = oos_arena_format(arena, "%s/%s", folder, entry->d_name);
        char *inner = oos_arena_format(arena, "%s/%s", full, entry->d_name);
        if (path && inner && entry->d_name[0] != '.' && depth < FOLDER_DEPTH && oos_file_is_dir(inner)) {
            status = list_folder(arena, dir, path, depth + 1, files, &count, reterr);
            continue;
        }
        if (len < 6 || strcmp(entry->d_name + len - 5, ".json") != 0) continue;
        oos_view bytes = {0};
        status = path ? oos_data_read(arena, dir, path, &bytes, reterr)
                      : oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a path");
        if (status == OOMSIGHT_OK) files[count++] = (oos_data_file){path, bytes.ptr, bytes.len};
    }
    closedir(open_dir);
    *ret_count = count;
    return status;
}

oomsight_status oos_data_list(oos_arena *arena, const char *dir, const char *folder,
                              oos_data_file **ret_files, size_t *ret_count, oomsight_error *reterr)
{
    oos_data_file *files = OOS_NEW_ARRAY(arena, oos_data_file, DATA_FILES_MAX);
    if (!files) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the list of data files");
    size_t count = 0;
    OOS_TRY(dir ? list_folder(arena, dir, folder, 0, files, &count, reterr)
                : list_embedded(folder, files, &count));
    if (count) qsort(files, count, sizeof *files, by_path);
    *ret_files = files;
    *ret_count = count;
    return OOMSIGHT_OK;
}
