/* The weight files of a directory: which ones an engine would load, and their headers, a few reads each. */
#include "base/error.h"
#include "base/text.h"
#include "base/file.h"
#include "base/locale.h"
#include "model/model.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    INDEX_MAX = 100 * 1000 * 1000,
    FIRST_READ = 64 << 10, /* most headers come with the first read */
    FILES_MAX = 4096
};

/* Reused from file to file: names are copied out of it. */
typedef struct scratch {
    char *bytes;
    size_t capacity;
} scratch;

static oomsight_status nomem(oomsight_error *reterr)
{
    return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for tensors");
}

static bool scratch_grow(scratch *s, size_t wanted)
{
    if (wanted <= s->capacity) return true;
    char *larger = realloc(s->bytes, wanted);
    if (!larger) return false;
    s->bytes = larger;
    s->capacity = wanted;
    return true;
}

/* Fill from `start` up to `wanted` bytes; what a short file lacks is missing in *ret_len. */
static bool read_up_to(int fd, char *bytes, size_t start, size_t wanted, size_t *ret_len)
{
    size_t len = start;
    while (len < wanted) {
        ssize_t const got = pread(fd, bytes + len, wanted - len, (off_t)len);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return false;
        if (got == 0) break;
        len += (size_t)got;
    }
    *ret_len = len;
    return true;
}

static oomsight_status fd_add(oos_tensor_builder *b, scratch *s, int fd, oomsight_error *reterr)
{
    struct stat about;
    uint64_t header_bytes = 0;
    size_t len;
    if (fstat(fd, &about) != 0 || !S_ISREG(about.st_mode))
        return oos_fail(reterr, OOMSIGHT_IO, "not a regular file");
    if (!scratch_grow(s, FIRST_READ)) return nomem(reterr);
    if (!read_up_to(fd, s->bytes, 0, FIRST_READ, &len))
        return oos_fail(reterr, OOMSIGHT_IO, "%s", oos_errno_text(errno));
    if (len < 8) return oos_fail(reterr, OOMSIGHT_MALFORMED, "%zu bytes is too short for a header", len);
    OOS_TRY(oos_safetensors_length(s->bytes, &header_bytes, reterr));
    size_t const wanted = (size_t)header_bytes + 8;
    if (wanted > (uint64_t)about.st_size)
        return oos_fail(reterr, OOMSIGHT_MALFORMED, "header of %" PRIu64 " bytes in a file of %lld",
                        header_bytes, (long long)about.st_size);
    if (wanted > len) {
        if (!scratch_grow(s, wanted)) return nomem(reterr);
        if (!read_up_to(fd, s->bytes, len, wanted, &len))
            return oos_fail(reterr, OOMSIGHT_IO, "%s", oos_errno_text(errno));
        if (len < wanted) return oos_fail(reterr, OOMSIGHT_IO, "the file became shorter while it was read");
    }
    return oos_tensor_builder_add(b, (oos_view){s->bytes + 8, (size_t)header_bytes}, (uint64_t)about.st_size,
                                  reterr);
}

static oomsight_status file_read(oos_tensor_builder *b, scratch *s, const char *path, oomsight_error *reterr)
{
    int const fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0) {
        oomsight_status const status = errno == ENOENT ? OOMSIGHT_NOT_FOUND : OOMSIGHT_IO;
        oos_fail(reterr, status, "%s", oos_errno_text(errno));
        return oos_fail_in(reterr, status, path);
    }
    oomsight_status const status = fd_add(b, s, fd, reterr);
    close(fd);
    return status == OOMSIGHT_OK ? status : oos_fail_in(reterr, status, path);
}

/* Without an index every *.safetensors is loaded, but consolidated*.safetensors, the same weights under their maker's
 * own names, only when there is nothing else (vLLM's `mistral` load format). */
static oomsight_status names_list(oos_arena *arena, const char *dir, const char *const **ret_names,
                                  size_t *ret_count, oomsight_error *reterr)
{
    const char **names = OOS_NEW_ARRAY(arena, const char *, FILES_MAX);
    size_t count = 0, consolidated = 0;
    DIR *open_dir = names ? opendir(dir) : NULL;
    if (!names) return nomem(reterr);
    if (!open_dir) {
        oos_fail(reterr, OOMSIGHT_NOT_FOUND, "%s", oos_errno_text(errno));
        return oos_fail_in(reterr, OOMSIGHT_NOT_FOUND, dir);
    }
    oomsight_status status = OOMSIGHT_OK;
    for (struct dirent *entry; status == OOMSIGHT_OK && count < FILES_MAX && (entry = readdir(open_dir));) {
        size_t const len = strlen(entry->d_name);
        if (len < 13 || strcmp(entry->d_name + len - 12, ".safetensors") != 0 || entry->d_name[0] == '.')
            continue;
        names[count] = oos_arena_copy(arena, (oos_view){entry->d_name, len});
        if (!names[count])
            status = nomem(reterr);
        else
            consolidated += strncmp(names[count++], "consolidated", 12) == 0;
    }
    closedir(open_dir);
    if (status != OOMSIGHT_OK) return status;
    if (count) qsort(names, count, sizeof *names, oos_text_order);
    if (consolidated < count) {
        size_t kept = 0;
        for (size_t i = 0; i < count; i++)
            if (strncmp(names[i], "consolidated", 12) != 0) names[kept++] = names[i];
        count = kept;
    }
    *ret_names = names;
    *ret_count = count;
    return OOMSIGHT_OK;
}

static oomsight_status files_find(oos_arena *arena, const char *dir, const char *const **ret_names,
                                  size_t *ret_count, bool *ret_indexed, oomsight_error *reterr)
{
    oos_view bytes;
    char *path = oos_arena_format(arena, "%s/model.safetensors.index.json", dir);
    if (!path) return nomem(reterr);
    *ret_indexed = oos_file_exists(path);
    if (!*ret_indexed) return names_list(arena, dir, ret_names, ret_count, reterr);
    OOS_TRY(oos_file_read(arena, path, INDEX_MAX, &bytes, reterr));
    oomsight_status const status = oos_safetensors_index_read(arena, bytes, ret_names, ret_count, reterr);
    return status == OOMSIGHT_OK ? status : oos_fail_in(reterr, status, path);
}

oomsight_status oos_safetensors_open_dir(oos_arena *arena, const char *dir, oos_tensor_table *ret_table,
                                         oomsight_error *reterr)
{
    const char *const *names = NULL;
    size_t count = 0, missing = 0;
    bool indexed = false;
    OOS_TRY(files_find(arena, dir, &names, &count, &indexed, reterr));
    const char **paths = OOS_NEW_ARRAY(arena, const char *, count);
    oos_tensor_builder *builder = oos_tensor_builder_create(arena);
    if (!builder || !paths) return nomem(reterr);
    for (size_t i = 0; i < count; i++) {
        paths[i] = oos_arena_format(arena, "%s/%s", dir, names[i]);
        if (!paths[i]) return nomem(reterr);
        missing += indexed && !oos_file_exists(paths[i]);
    }
    if (missing) {
        *ret_table = (oos_tensor_table){
            .note = oos_arena_format(
                arena,
                "%zu of the %zu weight files that the index names are not there: weights are "
                "computed from the config",
                missing, count)};
        return OOMSIGHT_OK;
    }
    scratch s = {0};
    oomsight_status status = OOMSIGHT_OK;
    for (size_t i = 0; i < count && status == OOMSIGHT_OK; i++)
        status = file_read(builder, &s, paths[i], reterr);
    free(s.bytes);
    if (status == OOMSIGHT_OK) *ret_table = oos_tensor_builder_table(builder);
    return status;
}

oomsight_status oos_tensors_attach(oos_arena *arena, const oos_tensor_table *table, oos_model *model,
                                   oomsight_error *reterr)
{
    if (table->count > 0) model->tensors = table;
    oos_headers_weigh(table, model);
    if (!table->note) return OOMSIGHT_OK;
    const char **notes = OOS_NEW_ARRAY(arena, const char *, model->note_count + 1);
    if (!notes) return nomem(reterr);
    if (model->note_count) memcpy(notes, model->notes, model->note_count * sizeof *notes);
    notes[model->note_count++] = table->note;
    model->notes = notes;
    return OOMSIGHT_OK;
}
