/* A journal: what has changed is written behind what is there, and when most of it is old, all is written anew and moved over it. A kill in between
 * leaves half a line, which is passed over: text is read again. A history stands in a line of its own, and positions say where. */
#include "follow/follow.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/json_write.h"
#include "base/locale.h"
#include "base/table.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    ENTRIES_MAX = 65536,
    JOURNAL_MAX_BYTES = 256 << 20, /* of another's making */
    WAITING_MAX_BYTES = 16 << 20,  /* of histories, while they cannot be written */
    HISTORY_MAX_BYTES = 1 << 20,
    RENEW_BYTES =
        1 << 20, /* a journal that has grown by this, and to RENEW_TIMES what it was, is written anew */
    RENEW_TIMES = 4,
    NAME_BYTES = 32
};

typedef struct entry {
    char *path;
    oos_standing point;
    uint64_t at, len, hash; /* of the history in the journal, with what waits to be written; len 0: none */
    uint64_t new_at, new_len;
    int64_t seen; /* when it was put, or found on the disk as it was read */
    bool version_known, changed;
    UT_hash_handle hh;
} entry;

struct oos_state {
    int folder, lock, file; /* folder -1: the file is in memory only */
    const oos_signals *signals;
    entry *entries;
    oos_arena *loaded; /* of the history that was asked for last */
    oos_incident history;
    oos_text waiting;      /* to be written */
    uint64_t end, renewed; /* of the journal: its length, and when it was written anew */
    bool unsynced;
    int64_t begun, since; /* when it was kept first; of an earlier process */
};

static bool write_at(int fd, uint64_t at, const oos_text *text)
{
    if (text->failed) return errno = ENOMEM, false;
    return lseek(fd, (off_t)at, SEEK_SET) >= 0 && oos_write_all(fd, text->len ? text->ptr : "", text->len);
}

/* A file that is moved over `name` when it is whole; -1 with errno: it cannot be written, and what is there stays. */
static int replace_file(int folder, const char *name, const oos_text *text)
{
    static const char fresh[] = "new.tmp";
    if (folder < 0) {
        int const memory = memfd_create(name, MFD_CLOEXEC);
        if (memory >= 0 && write_at(memory, 0, text)) return memory;
        if (memory >= 0) close(memory);
        return -1;
    }
    unlinkat(folder, fresh, 0); /* of a process that was killed; a link in its place is not written through */
    int const fd = openat(folder, fresh, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) return -1;
    if (write_at(fd, 0, text) && fdatasync(fd) == 0 && renameat(folder, fresh, folder, name) == 0) return fd;
    int const why = errno;
    close(fd);
    unlinkat(folder, fresh, 0);
    errno = why;
    return -1;
}

static entry *entry_of(oos_state *state, oos_view path)
{
    entry *e;
    HASH_FIND(hh, state->entries, path.ptr, path.len, e);
    if (e || HASH_COUNT(state->entries) >= ENTRIES_MAX) return e;
    e = calloc(1, sizeof *e);
    if (!e || !(e->path = strndup(path.ptr, path.len))) {
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
    free(e);
}

/* Also in the journal. */
static void strike_out(oos_state *state, entry *e)
{
    oos_json_writer writer = {.text = &state->waiting, .plain = true};
    oos_json_begin_object(&writer);
    oos_json_field_str(&writer, "path", e->path);
    oos_json_end_object(&writer);
    oos_text_put(&state->waiting, "\n");
    forget_entry(state, e);
}

/* Room for one more: what was seen longest ago goes. */
static void forget_oldest(oos_state *state)
{
    entry *oldest = state->entries;
    for (entry *e = state->entries; e; e = e->hh.next)
        if (e->seen < oldest->seen) oldest = e;
    if (oldest) strike_out(state, oldest);
}

/* ---- reading ---- */

static uint64_t hex_field(const json_t *object, const char *key)
{
    const char *text;
    return oos_json_str(object, key, &text) ? strtoull(text, NULL, 16) : 0;
}

static void read_line(oos_state *state, oos_view line)
{
    json_t *root = oos_json_parse(line, 0);
    const char *path;
    if (json_object_get(root, "since_ns"))
        state->begun = json_integer_value(json_object_get(root, "since_ns"));
    entry *e = oos_json_str(root, "path", &path) ? entry_of(state, oos_view_of(path)) : NULL;
    if (e) {
        oos_standing *p = &e->point;
        *p = (oos_standing){
            .id = {hex_field(root, "device"), hex_field(root, "inode"), hex_field(root, "print")},
            .prior = hex_field(root, "prior"),
            .ending = hex_field(root, "ending"),
            .time = json_integer_value(json_object_get(root, "time_ns")),
            .clock = OOS_TIME_NONE};
        const json_t *written = json_object_get(root, "written_ns"),
                     *clock = json_object_get(root, "clock_ns");
        p->written = written ? json_integer_value(written) : p->time;
        if (clock) p->clock = json_integer_value(clock);
        e->at = e->len = 0;
        e->hash = hex_field(root, "history");
        oos_json_u64(root, "byte", &p->byte);
        oos_json_u64(root, "lines", &p->lines);
        oos_json_u64(root, "read", &p->read);
        oos_json_u64(root, "history_at", &e->at);
        oos_json_u64(root, "history_bytes", &e->len);
        oos_json_bool(root, "told", &p->told);
        e->seen = p->time;
        if (!p->id.inode || !p->time) forget_entry(state, e);
    }
    json_decref(root);
}

/* `own`: it is ours to write on, behind the last line that is whole. */
static void load_positions(oos_state *state, bool own)
{
    static const char history[] = "{\"schema\"";
    struct stat is;
    state->file =
        openat(state->folder, "positions", (own ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (state->file < 0 || fstat(state->file, &is) != 0 || !S_ISREG(is.st_mode) || is.st_size == 0 ||
        is.st_size > JOURNAL_MAX_BYTES)
        return;
    const char *bytes = mmap(NULL, (size_t)is.st_size, PROT_READ, MAP_PRIVATE, state->file, 0);
    if (bytes == MAP_FAILED) return;
    oos_view all = {bytes, (size_t)is.st_size};
    for (const char *end; (end = all.len ? memchr(all.ptr, '\n', all.len) : NULL);) {
        oos_view const line = oos_view_slice(all, 0, (size_t)(end - all.ptr));
        if (line.len >= sizeof history && memcmp(line.ptr, history, sizeof history - 1) != 0)
            read_line(state, line);
        all = oos_view_slice(all, line.len + 1, SIZE_MAX);
        state->end += line.len + 1;
    }
    munmap((void *)(uintptr_t)bytes, (size_t)is.st_size);
}

static bool renew(oos_state *state);

oomsight_status oos_state_open(const char *folder, const oos_signals *signals, oos_state **ret_state,
                               oomsight_error *reterr)
{
    oos_state *state = calloc(1, sizeof *state);
    if (state) {
        state->folder = state->lock = state->file = -1;
        state->signals = signals;
        state->loaded = oos_arena_create(4096);
    }
    if (!state || !state->loaded) {
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
    load_positions(state, true);
    state->since = state->begun ? state->begun : INT64_MAX; /* nothing was moved yet */
    if (!state->begun) state->begun = oos_logtime_now();
    if (state->since == INT64_MAX) (void)renew(state); /* positions tell when it cannot be done */
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
    if (state->folder >= 0) load_positions(state, false);
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
    int const fds[] = {state->lock, state->folder, state->file};
    for (size_t i = 0; i < sizeof fds / sizeof *fds; i++)
        if (fds[i] >= 0) close(fds[i]);
    oos_arena_free(state->loaded);
    oos_text_free(&state->waiting);
    free(state);
}

/* The text of a history, also one that waits; false: it cannot be read. */
static bool add_history(const oos_state *state, const entry *e, oos_text *text)
{
    uint64_t const from = e->at - state->end;
    if (!e->len || e->len > HISTORY_MAX_BYTES) return false;
    if (e->at >= state->end && (from > state->waiting.len || e->len > state->waiting.len - from))
        return false;
    char *bytes = e->at < state->end ? malloc((size_t)e->len) : NULL;
    bool const got = bytes && pread(state->file, bytes, (size_t)e->len, (off_t)e->at) == (ssize_t)e->len;
    if (got || e->at >= state->end)
        oos_text_add(text, (oos_view){got ? bytes : state->waiting.ptr + from, (size_t)e->len});
    free(bytes);
    return (got || e->at >= state->end) && !text->failed;
}

bool oos_state_find(oos_state *state, const char *path, oos_standing *ret_point)
{
    entry *e;
    oos_text text = {0};
    HASH_FIND_STR(state->entries, path, e);
    if (!e) return false;
    *ret_point = e->point;
    ret_point->history = NULL;
    oos_arena_reset(state->loaded);
    if (add_history(state, e, &text) &&
        oos_history_read(state->loaded, state->signals, (oos_view){text.ptr, text.len}, &state->history))
        ret_point->history = &state->history;
    else
        ret_point->told = false;
    oos_text_free(&text);
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

static void keep_history(oos_state *state, entry *e, const oos_incident *history)
{
    oos_text *to = &state->waiting;
    size_t const before = to->len;
    if (before > WAITING_MAX_BYTES) return;
    oos_history_write(state->signals, history, to);
    if (to->failed) return;
    uint64_t const hash = oos_hash_known(to->ptr + before, to->len - before);
    if (e->len && hash == e->hash) {
        to->len = before;
    } else {
        e->at = state->end + before;
        e->len = to->len - before;
        e->hash = hash;
        e->changed = true;
    }
    e->version_known = true;
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
    if (!e) e = entry_of(state, oos_view_of(path));
    if (!e) return;
    bool const same = e->version_known && e->point.version == point->version;
    e->changed |= !e->seen || !same_point(&e->point, point);
    e->point = *point;
    e->point.history = NULL;
    e->seen = point->time;
    if (same) return;
    e->version_known = !point->history;
    if (point->history) keep_history(state, e, point->history);
}

void oos_state_forget(oos_state *state, const char *path)
{
    entry *e;
    HASH_FIND_STR(state->entries, path, e);
    if (e) strike_out(state, e);
}

static void write_line(oos_text *text, const entry *e)
{
    const struct {
        const char *key;
        uint64_t value;
    } words[] = {{"device", e->point.id.device}, {"inode", e->point.id.inode}, {"print", e->point.id.print},
                 {"prior", e->point.prior},      {"ending", e->point.ending},  {"history", e->hash}},
      counts[] = {{"byte", e->point.byte},
                  {"lines", e->point.lines},
                  {"read", e->point.read},
                  {"history_at", e->at},
                  {"history_bytes", e->len}};
    oos_json_writer writer = {.text = text, .plain = true}, *w = &writer; /* paths are compared */
    oos_json_begin_object(w);
    oos_json_field_str(w, "path", e->path);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        char hex[17];
        snprintf(hex, sizeof hex, "%" PRIx64, words[i].value);
        oos_json_field_str(w, words[i].key, hex);
    }
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        oos_json_field_u64(w, counts[i].key, counts[i].value);
    oos_json_field_bool(w, "told", e->point.told);
    const struct {
        const char *key;
        int64_t value;
    } times[] = {{"clock_ns", e->point.clock}, {"time_ns", e->point.time}, {"written_ns", e->point.written}};
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        if (times[i].value == OOS_TIME_NONE) continue;
        oos_json_key(w, times[i].key);
        oos_json_put_i64(w, times[i].value);
    }
    oos_json_end_object(w);
    oos_text_put(text, "\n");
}

/* All of it, without what is old. Written first when there is nothing yet: who is killed before the first position is written has seen logs that
 * nobody knows of. */
static bool renew(oos_state *state)
{
    oos_text all = {0};
    oos_text_printf(&all, "{\"since_ns\": %" PRId64 "}\n", state->begun);
    for (entry *e = state->entries; e; e = e->hh.next) {
        entry moved = *e;
        moved.at = all.len;
        if (!add_history(state, e, &all)) moved.at = moved.len = 0;
        e->new_at = moved.at;
        e->new_len = moved.len;
        write_line(&all, &moved);
    }
    int const fd = replace_file(state->folder, "positions", &all);
    for (entry *e = state->entries; fd >= 0 && e; e = e->hh.next) {
        e->at = e->new_at;
        e->len = e->new_len;
        e->changed = false;
    }
    if (fd >= 0) {
        if (state->file >= 0) close(state->file);
        state->file = fd;
        state->end = state->renewed = all.len;
        state->waiting.len = 0;
        state->unsynced = false;
    }
    oos_text_free(&all);
    return fd >= 0;
}

/* What has changed; when it cannot be written, it waits. */
static bool append(oos_state *state)
{
    oos_text *text = &state->waiting;
    size_t const before = text->len;
    for (const entry *e = state->entries; e; e = e->hh.next)
        if (e->changed) write_line(text, e);
    if (!text->len) return true;
    if (!write_at(state->file, state->end, text)) {
        int const why = errno;
        (void)!ftruncate(state->file, (off_t)state->end); /* else the next is written over it */
        text->len = before;
        return errno = why, false;
    }
    state->end += text->len;
    text->len = 0;
    state->unsynced = true;
    for (entry *e = state->entries; e; e = e->hh.next) e->changed = false;
    return true;
}

bool oos_state_save(oos_state *state, bool to_disk, int64_t now)
{
    entry *e, *next;
    HASH_ITER(hh, state->entries, e, next)
    {
        if (now - e->seen > OOS_DAY_NS) strike_out(state, e);
    }
    bool const old = state->end > RENEW_BYTES + RENEW_TIMES * state->renewed;
    if ((state->file < 0 || old) && renew(state)) return true;
    if (state->file < 0 || !append(state)) return false;
    if (to_disk && state->unsynced && state->folder >= 0 && fdatasync(state->file) != 0) return false;
    state->unsynced &= !to_disk;
    return true;
}
