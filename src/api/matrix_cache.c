/* Results that are found again. A key names everything a result depends on; a file of lines, only ever appended to, holds
 * them. A process may be killed at any moment: what it was writing is a line without an end, and such a line is not read.
 *
 *     DIR/matrix.ndjson   {"schema": "oomsight.matrix/1", "key": "<64 hex>", ...}\n   one point a line, the last of a key counts */
#include "api/api.h"
#include "base/text.h"
#include "base/file.h"
#include "base/locale.h"
#include "facts/facts.h"
#include "model/model.h"
#include "base/table.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SMALL_MAX = 16 << 20, HEADER_MAX = 64 << 20, NAMES_MAX = 4096, LINE_MAX_BYTES = 1 << 20 };

typedef struct entry {
    char key[64]; /* no end */
    uint64_t at;
    uint32_t len;
    UT_hash_handle hh;
} entry;

struct oos_matrix_cache {
    int fd, claims;
    uint64_t read; /* so many bytes of it */
    entry *table;
    oos_arena *arena;
    bool failed;
};

/* ---- what a result depends on ----------------------------------------------------------------------------------- */

static bool ends_with(const char *name, const char *suffix)
{
    size_t const len = strlen(name), end = strlen(suffix);
    return len >= end && strcmp(name + len - end, suffix) == 0;
}

/* Up to `most` bytes of a file, from the start. False: unreadable. */
static bool add_content(oos_sha256 *hash, const char *path, uint64_t most)
{
    unsigned char bytes[65536];
    int const fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    ssize_t got = 1;
    while (most && (got = read(fd, bytes, most < sizeof bytes ? (size_t)most : sizeof bytes)) > 0) {
        oos_sha256_add(hash, bytes, (size_t)got);
        most -= (uint64_t)got;
    }
    close(fd);
    return got >= 0;
}

static bool add_header(oos_sha256 *hash, const char *path) /* of a safetensors file */
{
    char bytes[8] = {0};
    int const fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    bool const whole = read(fd, bytes, sizeof bytes) == (ssize_t)sizeof bytes;
    close(fd);
    uint64_t const len = whole ? oos_load_le64(bytes) : 0;
    return add_content(hash, path, len < HEADER_MAX ? len + 8 : 8);
}

/* Names and sizes of all files, the content of the small ones that say something, the headers of weights. */
static bool folder_digest(oos_arena *arena, const char *dir, char ret_digest[65])
{
    static const char *const told[] = {".json", ".py", ".txt", ".jinja", ".model", ".yaml"};
    DIR *folder = opendir(dir);
    const char *names[NAMES_MAX];
    size_t count = 0;
    if (!folder) return false;
    for (const struct dirent *e; (e = readdir(folder)) && count < NAMES_MAX;)
        if (e->d_name[0] != '.') names[count++] = oos_arena_copy(arena, oos_view_of(e->d_name));
    closedir(folder);
    for (size_t i = 0; i < count; i++)
        if (!names[i]) return false;
    qsort(names, count, sizeof *names, oos_text_order);
    oos_sha256 hash;
    oos_sha256_init(&hash);
    for (size_t i = 0; i < count; i++) {
        struct stat info;
        const char *path = oos_arena_format(arena, "%s/%s", dir, names[i]);
        if (!path || stat(path, &info) != 0) return false;
        if (!S_ISREG(info.st_mode)) continue;
        oos_sha256_add_text(&hash, names[i]);
        oos_sha256_add_u64(&hash, (uint64_t)info.st_size);
        bool ok = true;
        if (ends_with(names[i], ".safetensors")) ok = add_header(&hash, path);
        for (size_t k = 0; k < sizeof told / sizeof *told; k++)
            if (ends_with(names[i], told[k])) ok = add_content(&hash, path, SMALL_MAX);
        if (!ok) return false;
    }
    oos_sha256_hex(&hash, ret_digest);
    return true;
}

void oos_matrix_model_digest(oos_arena *arena, oos_matrix_slot *slot)
{
    const char *dir = oos_file_is_dir(slot->place) ? slot->place : NULL;
    oos_hub_id id;
    if (!dir && oos_hub_id_parse(arena, slot->place, &id)) dir = oos_hfcache_find(arena, &id);
    if (!dir || !folder_digest(arena, dir, slot->digest)) slot->digest[0] = '\0';
}

/* Our own version and data. */
oomsight_status oos_matrix_cache_base(oomsight_matrix *matrix, const oomsight_matrix_params *params,
                                      oomsight_error *reterr)
{
    oos_sha256 *hash = &matrix->base;
    oos_sha256_init(hash);
    oos_sha256_add_text(hash, "oomsight.matrix/1 " OOMSIGHT_VERSION);
    oos_sha256_add_text(hash, matrix->file.dryrun ? "dryrun" : "plan");
    static const char *const folders[] = {"gpus", "engines", "models"};
    for (size_t f = 0; f < sizeof folders / sizeof *folders; f++) {
        oos_data_file *files;
        size_t count;
        OOS_TRY(oos_data_list(matrix->arena, matrix->data->dir, folders[f], &files, &count, reterr));
        for (size_t i = 0; i < count; i++) {
            oos_sha256_add_text(hash, files[i].path);
            oos_sha256_add_u64(hash, files[i].len);
            oos_sha256_add(hash, files[i].bytes, files[i].len);
        }
    }
    for (size_t i = 0; i < params->identity_count; i++)
        if (!add_content(hash, params->identity_paths[i], UINT64_MAX))
            return oos_fail(reterr, OOMSIGHT_IO, "%s cannot be read", params->identity_paths[i]);
    for (size_t i = 0; i < matrix->file.environment.count; i++)
        oos_sha256_add_text(hash, matrix->file.environment.list[i]);
    return OOMSIGHT_OK;
}

bool oos_matrix_cache_key(const oomsight_matrix *matrix, const oos_matrix_place *place, char ret_key[65])
{
    const oos_matrix_slot *slot = oos_matrix_slot_at(matrix, place);
    const oos_matrix_gpu *gpu = &place->block->gpus[place->gpu];
    const char *version = place->block->versions[place->version].text;
    if (!*slot->digest) return false;
    oos_sha256 hash = matrix->base;
    oos_sha256_add_text(&hash, slot->digest);
    oos_sha256_add_text(&hash, version);
    oos_sha256_add_text(&hash, gpu->gpu); /* its facts are in the data, which the base names */
    oos_sha256_add_text(&hash, gpu->capability);
    oos_sha256_add_u64(&hash, gpu->total_bytes);
    oos_sha256_add_u64(&hash, gpu->used_bytes);
    oos_sha256_add_u64(&hash, gpu->used_known);
    const char *words[OOS_MATRIX_WORDS];
    size_t const count = oos_matrix_flag_words(place, words);
    for (size_t i = 0; i < count; i++) oos_sha256_add_text(&hash, words[i]);
    if (matrix->file.dryrun) oos_sha256_add_text(&hash, oos_matrix_engine_of(&matrix->file, version));
    oos_sha256_hex(&hash, ret_key);
    return true;
}

/* ---- the file --------------------------------------------------------------------------------------------------- */

static const char line_head[] = "{\"schema\": \"oomsight.matrix/1\", \"key\": \"";
enum { KEY_AT = sizeof line_head - 1 };

static void entry_add(oos_matrix_cache *cache, const char *line, uint64_t at, size_t len)
{
    if (len < KEY_AT + 66 || len > LINE_MAX_BYTES || line[len - 1] != '}' || line[KEY_AT + 64] != '"' ||
        memcmp(line, line_head, KEY_AT) != 0)
        return;
    entry *e = NULL;
    HASH_FIND(hh, cache->table, line + KEY_AT, 64, e);
    if (!e) {
        e = OOS_NEW(cache->arena, entry);
        if (!e) return;
        memcpy(e->key, line + KEY_AT, 64);
        HASH_ADD(hh, cache->table, key, 64, e);
        if (!OOS_IN_TABLE(e)) return;
    }
    e->at = at;
    e->len = (uint32_t)len;
}

static bool lines_read(oos_matrix_cache *cache)
{
    int const fd = dup(cache->fd);
    FILE *file = fd >= 0 && lseek(fd, (off_t)cache->read, SEEK_SET) >= 0 ? fdopen(fd, "re") : NULL;
    char *line = NULL;
    size_t capacity = 0;
    ssize_t got;
    if (!file) {
        if (fd >= 0) close(fd);
        return false;
    }
    while ((got = getline(&line, &capacity, file)) > 0 && line[got - 1] == '\n') {
        entry_add(cache, line, cache->read, (size_t)got - 1);
        cache->read += (uint64_t)got;
    }
    free(line);
    bool const ok = !ferror(file);
    fclose(file);
    return ok;
}

void oos_matrix_cache_refresh(oos_matrix_cache *cache)
{
    (void)lines_read(cache);
}

/* A byte of a file stands for a key: a lock on it ends with the process that has it, also on a shared folder. */
static bool claim_set(oos_matrix_cache *cache, const char *key, int how)
{
    char digits[11] = {0}; /* a terabyte is a place in every file system */
    memcpy(digits, key, sizeof digits - 1);
    off_t const at = (off_t)strtoull(digits, NULL, 16);
    if (cache->claims < 0 || lseek(cache->claims, at, SEEK_SET) != at)
        return true; /* a folder without locks */
    return lockf(cache->claims, how, 1) == 0 || (errno != EACCES && errno != EAGAIN);
}

bool oos_matrix_cache_claim(oos_matrix_cache *cache, const char *key)
{
    return claim_set(cache, key, F_TLOCK);
}

void oos_matrix_cache_release(oos_matrix_cache *cache, const char *key)
{
    claim_set(cache, key, F_ULOCK);
}

/* What was cut off gets its line feed, so that the next line stands alone. */
static bool end_mend(int fd)
{
    char last = '\n';
    flock(fd, LOCK_EX);
    off_t const size = lseek(fd, 0, SEEK_END);
    bool ok = size >= 0 && (size == 0 || pread(fd, &last, 1, size - 1) == 1);
    if (ok && last != '\n') ok = write(fd, "\n", 1) == 1;
    flock(fd, LOCK_UN);
    return ok;
}

static bool folders_make(char *path)
{
    for (char *at = path + 1; *at; at++) {
        if (*at != '/') continue;
        *at = '\0';
        bool const made = mkdir(path, 0777) == 0 || errno == EEXIST;
        *at = '/';
        if (!made) return false;
    }
    return mkdir(path, 0777) == 0 || errno == EEXIST;
}

oomsight_status oos_matrix_cache_open(const char *dir, oos_matrix_cache **ret_cache, oomsight_error *reterr)
{
    oos_arena *arena = oos_arena_create(64 << 10);
    oos_matrix_cache *cache = arena ? OOS_NEW(arena, oos_matrix_cache) : NULL;
    char *folder = arena ? oos_arena_format(arena, "%s", dir) : NULL;
    const char *path = arena ? oos_arena_format(arena, "%s/matrix.ndjson", dir) : NULL;
    const char *claims = arena ? oos_arena_format(arena, "%s/claims", dir) : NULL;
    if (!cache || !folder || !path || !claims) {
        oos_arena_free(arena);
        return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the cache");
    }
    cache->arena = arena;
    cache->fd = cache->claims = -1;
    /* a link there would have us write lines into another file: whoever wants another place names another folder */
    if (folders_make(folder))
        cache->fd = open(path, O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666);
    struct stat info;
    bool const plain = cache->fd >= 0 && fstat(cache->fd, &info) == 0 && S_ISREG(info.st_mode);
    if (cache->fd >= 0 && !plain) errno = EINVAL;
    if (!plain || !end_mend(cache->fd) || !lines_read(cache)) {
        oomsight_status const status = oos_fail(reterr, OOMSIGHT_IO, "%s: %s", path, oos_errno_text(errno));
        oos_matrix_cache_close(cache);
        return status;
    }
    cache->claims = open(claims, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666);
    *ret_cache = cache;
    return OOMSIGHT_OK;
}

void oos_matrix_cache_close(oos_matrix_cache *cache)
{
    if (!cache) return;
    HASH_CLEAR(hh, cache->table);
    if (cache->fd >= 0) close(cache->fd);
    if (cache->claims >= 0) close(cache->claims);
    oos_arena_free(cache->arena);
}

bool oos_matrix_cache_find(const oos_matrix_cache *cache, const char *key, oos_arena *scratch,
                           oomsight_matrix_point *point)
{
    const entry *e = NULL;
    HASH_FIND(hh, cache->table, key, 64, e);
    char *line = e ? oos_arena_take(scratch, (size_t)e->len + 1) : NULL;
    if (!line || pread(cache->fd, line, e->len, (off_t)e->at) != (ssize_t)e->len) return false;
    oomsight_matrix_point found = *point;
    if (!oos_matrix_point_take((oos_view){line, e->len}, scratch, &found)) return false;
    found.cached = 1;
    *point = found;
    return true;
}

bool oos_matrix_cache_keep(oos_matrix_cache *cache, const char *key, const oomsight_matrix_point *point)
{
    oos_text line = {0};
    oos_report_matrix_line(&line, point, true, key);
    oos_text_put(&line, "\n");
    bool ok = !line.failed && !cache->failed;
    if (ok) { /* one write, so that lines of several processes do not mix */
        flock(cache->fd, LOCK_EX);
        ok = write(cache->fd, line.ptr, line.len) == (ssize_t)line.len;
        flock(cache->fd, LOCK_UN);
        if (ok && point->seconds > 0) fdatasync(cache->fd); /* it took minutes */
        cache->failed |= !ok;
    }
    oos_text_free(&line);
    return ok;
}
