/* Written to a new file and moved over the old one: a kill in between leaves the old positions, and text is read again. */
#include "follow/follow.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/json_write.h"
#include "base/locale.h"
#include "base/table.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    ENTRIES_MAX = 65536,
    POSITIONS_MAX_BYTES = 64 << 20,
    HISTORY_MAX_BYTES = 1 << 20,
    NAME_BYTES = 32,
    SWEEP_ROUNDS = 64
};

typedef struct entry {
    char *path;
    oos_standing point;
    uint64_t history; /* hash of its text, 0: none */
    char *text;       /* of the history, where there is no folder */
    size_t len;
    int64_t seen; /* when it was put, or found on the disk as it was read */
    bool version_known;
    UT_hash_handle hh;
} entry;

struct oos_state {
    char *path;
    int folder, lock;
    const oos_signals *signals;
    entry *entries;
    oos_arena *loaded; /* of the history that was asked for last */
    oos_incident history;
    oos_text text;
    bool failed;  /* a history could not be written */
    bool changed; /* since the last time that all was written */
    uint64_t rounds;
    int64_t since; /* when it was kept first */
};

static void history_name(uint64_t hash, char to[NAME_BYTES])
{
    snprintf(to, NAME_BYTES, "history-%016" PRIx64, hash);
}

/* The whole of a small file; NULL: not there, or too large. */
static char *read_all(int folder, const char *name, size_t most, size_t *ret_len)
{
    struct stat is;
    int const fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) return NULL;
    char *bytes = NULL;
    if (fstat(fd, &is) == 0 && S_ISREG(is.st_mode) && (uint64_t)is.st_size <= most &&
        (bytes = malloc((size_t)is.st_size + 1))) {
        ssize_t const count = read(fd, bytes, (size_t)is.st_size);
        *ret_len = count > 0 ? (size_t)count : 0;
    }
    close(fd);
    return bytes;
}

/* errno is kept for the caller. */
static bool replace_file(int folder, const char *name, const char *bytes, size_t len, bool to_disk)
{
    static const char fresh[] = "new.tmp";
    unlinkat(folder, fresh, 0); /* of a process that was killed; a link in its place is not written through */
    int const fd = openat(folder, fresh, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) return false;
    bool done = oos_write_all(fd, bytes, len) && (!to_disk || fdatasync(fd) == 0);
    int const why = errno;
    done = close(fd) == 0 && done;
    if (done) return renameat(folder, fresh, folder, name) == 0;
    unlinkat(folder, fresh, 0);
    errno = why;
    return false;
}

static entry *entry_of(oos_state *state, const char *path)
{
    entry *e;
    HASH_FIND_STR(state->entries, path, e);
    if (e || HASH_COUNT(state->entries) >= ENTRIES_MAX) return e;
    e = calloc(1, sizeof *e);
    if (!e || !(e->path = strdup(path))) {
        free(e);
        return NULL;
    }
    HASH_ADD_KEYPTR(hh, state->entries, e->path, strlen(e->path), e);
    if (OOS_IN_TABLE(e)) return e;
    free(e->path);
    free(e);
    return NULL;
}

static void forget_entry(oos_state *state, entry *e)
{
    HASH_DEL(state->entries, e);
    free(e->path);
    free(e->text);
    free(e);
}

/* Room for one more: what was seen longest ago goes. */
static void forget_oldest(oos_state *state)
{
    entry *oldest = state->entries;
    for (entry *e = state->entries; e; e = e->hh.next)
        if (e->seen < oldest->seen) oldest = e;
    if (oldest) forget_entry(state, oldest);
}

static uint64_t hex_field(const json_t *object, const char *key)
{
    const char *text;
    return oos_json_str(object, key, &text) ? strtoull(text, NULL, 16) : 0;
}

static void read_line(oos_state *state, oos_view line)
{
    json_t *root = oos_json_parse(line, 0);
    const char *path;
    entry *e = oos_json_str(root, "path", &path) ? entry_of(state, path) : NULL;
    if (e) {
        oos_standing *p = &e->point;
        p->id = (oos_file_id){hex_field(root, "device"), hex_field(root, "inode"), hex_field(root, "print")};
        p->prior = hex_field(root, "prior");
        oos_json_u64(root, "byte", &p->byte);
        oos_json_u64(root, "lines", &p->lines);
        oos_json_bool(root, "told", &p->told);
        p->time = json_integer_value(json_object_get(root, "time_ns"));
        const json_t *clock = json_object_get(root, "clock_ns");
        p->clock = clock ? json_integer_value(clock) : OOS_TIME_NONE;
        const json_t *written = json_object_get(root, "written_ns");
        p->written = written ? json_integer_value(written) : p->time;
        p->ending = hex_field(root, "ending");
        oos_json_u64(root, "read", &p->read);
        e->history = hex_field(root, "history");
        e->seen = p->time;
        if (!p->id.inode || !p->time) forget_entry(state, e);
    }
    json_decref(root);
}

static void load_positions(oos_state *state)
{
    size_t len = 0;
    char *bytes = read_all(state->folder, "positions", POSITIONS_MAX_BYTES, &len);
    for (size_t at = 0; bytes && at < len;) {
        const char *end = memchr(bytes + at, '\n', len - at);
        if (!end) break; /* not complete */
        read_line(state, (oos_view){bytes + at, (size_t)(end - bytes) - at});
        at = (size_t)(end - bytes) + 1;
    }
    free(bytes);
}

/* Written at once: who is killed before the first position is written has seen logs that nobody knows of. */
static void load_since(oos_state *state)
{
    char text[NAME_BYTES];
    size_t len = 0;
    char *bytes = read_all(state->folder, "since", sizeof text - 1, &len);
    snprintf(text, sizeof text, "%.*s", (int)len, bytes ? bytes : "");
    free(bytes);
    state->since = strtoll(text, NULL, 10);
    if (state->since > 0) return;
    state->since = INT64_MAX; /* nothing was moved yet */
    snprintf(text, sizeof text, "%" PRId64 "\n", oos_logtime_now());
    (void)replace_file(state->folder, "since", text, strlen(text),
                       false); /* positions tell when it cannot be done */
}

oomsight_status oos_state_open(const char *folder, const oos_signals *signals, oos_state **ret_state,
                               oomsight_error *reterr)
{
    oos_state *state = calloc(1, sizeof *state);
    if (state) {
        state->folder = state->lock = -1;
        state->signals = signals;
        state->path = strdup(folder ? folder : "");
        state->loaded = oos_arena_create(4096);
    }
    if (!state || !state->path || !state->loaded) {
        oos_state_close(state);
        return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for positions");
    }
    *ret_state = state;
    if (!folder) return OOMSIGHT_OK;
    *ret_state = NULL;
    if (mkdir(folder, 0700) == 0 || errno == EEXIST)
        state->folder = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (state->folder >= 0)
        state->lock = openat(state->folder, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    bool const taken = state->lock >= 0 && flock(state->lock, LOCK_EX | LOCK_NB) != 0;
    if (state->lock < 0 || taken) {
        if (taken)
            oos_fail(reterr, OOMSIGHT_IO, "another process keeps its positions here");
        else
            oos_fail(reterr, OOMSIGHT_IO, "%s", oos_errno_text(errno));
        oos_state_close(state);
        return oos_fail_in(reterr, OOMSIGHT_IO, folder);
    }
    load_positions(state);
    load_since(state);
    *ret_state = state;
    return OOMSIGHT_OK;
}

int64_t oos_state_since(const oos_state *state)
{
    return state->since ? state->since : INT64_MAX;
}

bool oos_state_stands(const char *folder, uint64_t device, uint64_t inode, uint64_t *ret_byte)
{
    oos_state *state = NULL;
    if (oos_state_open(NULL, NULL, &state, NULL) != OOMSIGHT_OK) return false;
    state->folder = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (state->folder >= 0) load_positions(state);
    const entry *e = state->entries;
    while (e && (e->point.id.inode != inode || e->point.id.device != device)) e = e->hh.next;
    bool const found = e != NULL;
    if (found) *ret_byte = e->point.byte;
    oos_state_close(state);
    return found;
}

void oos_state_close(oos_state *state)
{
    if (!state) return;
    entry *e, *next;
    HASH_ITER(hh, state->entries, e, next) forget_entry(state, e);
    if (state->lock >= 0) close(state->lock);
    if (state->folder >= 0) close(state->folder);
    oos_arena_free(state->loaded);
    oos_text_free(&state->text);
    free(state->path);
    free(state);
}

bool oos_state_find(oos_state *state, const char *path, oos_standing *ret_point)
{
    entry *e;
    HASH_FIND_STR(state->entries, path, e);
    if (!e) return false;
    *ret_point = e->point;
    ret_point->history = NULL;
    char name[NAME_BYTES];
    size_t len = 0;
    history_name(e->history, name);
    char *bytes = e->history && !e->text ? read_all(state->folder, name, HISTORY_MAX_BYTES, &len) : NULL;
    oos_view const text = e->text ? (oos_view){e->text, e->len} : (oos_view){bytes, len};
    oos_arena_reset(state->loaded);
    if (text.ptr && oos_history_read(state->loaded, state->signals, text, &state->history))
        ret_point->history = &state->history;
    else
        ret_point->told = false;
    free(bytes);
    return true;
}

const char *oos_state_owner(const oos_state *state, const char *path, const oos_file_id *id)
{
    for (const entry *e = state->entries; e; e = e->hh.next)
        if (e->point.id.print && oos_file_same(&e->point.id, id) && oos_roots_is_longer(path, e->path))
            return e->path;
    return NULL;
}

bool oos_state_is_read(oos_state *state, const char *path, const struct stat *is, int64_t now)
{
    entry *e;
    HASH_FIND_STR(state->entries, path, e);
    if (!e || e->point.id.inode != (uint64_t)is->st_ino || e->point.id.device != (uint64_t)is->st_dev ||
        e->point.read != (uint64_t)is->st_size || e->point.byte != e->point.read)
        return false;
    e->seen = now;
    return true;
}

/* ---- writing ---- */

/* A history is written before the positions that name it. */
static uint64_t keep_history(oos_state *state, const oos_incident *history, uint64_t had)
{
    char name[NAME_BYTES];
    state->text.len = 0;
    oos_history_write(state->signals, history, &state->text);
    if (state->text.failed || !state->text.len) return 0;
    uint64_t const hash = oos_hash_known(state->text.ptr, state->text.len);
    if (hash == had) return hash;
    if (state->folder < 0) return hash;
    history_name(hash, name);
    if (faccessat(state->folder, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0) return hash;
    if (replace_file(state->folder, name, state->text.ptr, state->text.len, false)) return hash;
    state->failed = true;
    return 0;
}

/* Without a folder the text itself is kept. */
static void hold_text(oos_state *state, entry *e)
{
    char *text = malloc(state->text.len);
    if (!text) return;
    memcpy(text, state->text.ptr, state->text.len);
    free(e->text);
    e->text = text;
    e->len = state->text.len;
}

static bool same_point(const oos_standing *a, const oos_standing *b)
{
    return oos_file_same(&a->id, &b->id) && a->id.print == b->id.print && a->prior == b->prior &&
           a->byte == b->byte && a->read == b->read && a->ending == b->ending && a->told == b->told;
}

void oos_state_put(oos_state *state, const char *path, const oos_standing *point)
{
    entry *e;
    HASH_FIND_STR(state->entries, path, e);
    if (!e && HASH_COUNT(state->entries) >= ENTRIES_MAX) forget_oldest(state);
    if (!e) e = entry_of(state, path);
    if (!e) return;
    bool const same = e->version_known && e->point.version == point->version;
    state->changed |= !same || !same_point(&e->point, point);
    e->point = *point;
    e->point.history = NULL;
    e->seen = point->time;
    if (same) return;
    bool const failed = state->failed;
    state->failed = false;
    uint64_t const had = e->history;
    if (point->history) e->history = keep_history(state, point->history, had);
    if (state->folder < 0 && e->history && (e->history != had || !e->text)) hold_text(state, e);
    e->version_known = !state->failed;
    state->failed |= failed;
}

void oos_state_forget(oos_state *state, const char *path)
{
    entry *e;
    HASH_FIND_STR(state->entries, path, e);
    if (!e) return;
    forget_entry(state, e);
    state->changed = true;
}

static void write_line(oos_json_writer *w, const entry *e)
{
    const struct {
        const char *key;
        uint64_t value;
    } words[] = {{"device", e->point.id.device}, {"inode", e->point.id.inode}, {"print", e->point.id.print},
                 {"prior", e->point.prior},      {"ending", e->point.ending},  {"history", e->history}};
    oos_json_begin_object(w);
    oos_json_field_str(w, "path", e->path);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        char hex[17];
        snprintf(hex, sizeof hex, "%" PRIx64, words[i].value);
        oos_json_field_str(w, words[i].key, hex);
    }
    oos_json_field_u64(w, "byte", e->point.byte);
    oos_json_field_u64(w, "lines", e->point.lines);
    oos_json_field_u64(w, "read", e->point.read);
    oos_json_field_bool(w, "told", e->point.told);
    if (e->point.clock != OOS_TIME_NONE) {
        oos_json_key(w, "clock_ns");
        oos_json_put_i64(w, e->point.clock);
    }
    oos_json_key(w, "time_ns");
    oos_json_put_i64(w, e->point.time);
    oos_json_key(w, "written_ns");
    oos_json_put_i64(w, e->point.written);
    oos_json_end_object(w);
    oos_text_put(w->text, "\n");
}

/* Histories that no position names any more. */
static void sweep(oos_state *state)
{
    int const fd = openat(state->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *files = fd >= 0 ? fdopendir(fd) : NULL;
    if (!files) {
        if (fd >= 0) close(fd);
        return;
    }
    for (struct dirent *file; (file = readdir(files));) {
        if (strncmp(file->d_name, "history-", 8) != 0) continue;
        uint64_t const hash = strtoull(file->d_name + 8, NULL, 16);
        bool wanted = false;
        for (entry *e = state->entries; e && !wanted; e = e->hh.next) wanted = e->history == hash;
        if (!wanted) unlinkat(state->folder, file->d_name, 0);
    }
    closedir(files);
}

bool oos_state_save(oos_state *state, bool to_disk, int64_t now)
{
    entry *e, *next;
    bool const failed = state->failed;
    state->failed = false;
    if (failed) return errno = ENOSPC, false;
    HASH_ITER(hh, state->entries, e, next)
    {
        if (now - e->seen <= OOS_DAY_NS) continue;
        forget_entry(state, e);
        state->changed = true;
    }
    if (state->folder < 0 || !state->changed) return true;
    state->text.len = 0;
    for (e = state->entries; e; e = e->hh.next) {
        oos_json_writer writer = {.text = &state->text, .plain = true}; /* paths are compared */
        write_line(&writer, e);
    }
    if (state->text.failed) return errno = ENOMEM, false;
    if (!replace_file(state->folder, "positions", state->text.ptr ? state->text.ptr : "", state->text.len,
                      to_disk))
        return false;
    state->changed = false;
    if (state->rounds++ % SWEEP_ROUNDS == 0) sweep(state);
    return true;
}
