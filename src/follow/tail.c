/* Whole lines are read as a rule: what stands behind the last line end is read again later, until nothing has come for a
 * while. Rotation is acted on at the end of the data: what was written to the old file until then has been read. */
#include "follow/follow.h"
#include "base/hash.h"
#include "base/locale.h"
#include "base/size.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    REST_MS = 800,   /* so long the rest of a line is waited for */
    CHECK_MS = 1000, /* how often the name is looked at when nobody tells of a change */
    GONE_MS = 3000,
    PARTS_KEPT = 16,
    HELD_MAX = 16 /* of the files that were moved away, at a time */
};

/* A file that was moved away. It is held open: it may be packed or removed before its turn. */
typedef struct part {
    int fd;
    oos_file_id id;
    int64_t written;
    uint64_t byte, lines;
    bool packed, known; /* known: by the name it had before */
} part;

/* How far a file was read. */
typedef struct extent {
    oos_file_id id;
    uint64_t read, ending;
    int64_t written;
} extent;

struct oos_tail {
    oos_tails *shared;
    size_t root;
    char *relative, *path;
    oos_reader reader;
    int fd; /* -1: not there yet, or packed */
    oos_logstream *packed;
    uint64_t to_skip;            /* of a packed file: bytes that were read before */
    char last[OOS_ENDING_BYTES]; /* of it */
    size_t last_len;
    bool current; /* this is the file under the name */
    bool copied;  /* this is a copy of the file `id`, which was cut in place */
    bool cut;     /* ... which was found just now */
    bool hollow;  /* nothing of it was read: before its first text others may have come and gone */
    oos_file_id id;
    uint64_t byte;            /* next to be read */
    uint64_t ending;          /* print of the last bytes before; 0: not known */
    uint64_t size;            /* when last looked */
    int64_t written;          /* when it was then, or later: what comes after it is written after that */
    int64_t since;            /* what was moved away after this is read, too; INT64_MAX: nothing */
    extent parts[PARTS_KEPT]; /* the last ones, by number modulo */
    uint32_t part_number;
    part backlog[HELD_MAX]; /* to be read before the log itself */
    size_t backlog_count, backlog_at;
    oos_standing from;
    bool resumes, begun, check, error_told;
    bool wide;                /* the file begins as UTF-16 does */
    bool stream, stream_over; /* standard input */
    int why;                  /* errno of the last attempt to open */
    int64_t check_at;
    bool moved;                /* the name leads to another file, in which nothing is yet */
    bool away;                 /* the name leads nowhere, and the file it led to was read */
    int64_t gone_at, fresh_at; /* 0: not */
    int64_t caught_up;         /* wall clock */
};

static void on_incident(void *context, const oos_incident *incident)
{
    oos_tail *tail = context;
    tail->shared->on_incident(tail->shared->context, tail, incident);
}

oomsight_status oos_tail_open(oos_tails *shared, size_t root, const char *relative, const oos_standing *from,
                              int64_t since, oos_tail **ret_tail, oomsight_error *reterr)
{
    oos_tail *tail = calloc(1, sizeof *tail);
    if (tail) {
        tail->shared = shared;
        tail->root = root;
        tail->fd = -1;
        tail->relative = strdup(relative);
        tail->path = oos_roots_path(shared->roots, root, relative);
    }
    if (!tail || !tail->relative || !tail->path) {
        oos_tail_close(tail);
        return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory to follow a file");
    }
    tail->reader =
        (oos_reader){.origin = oos_origin_of(tail->path), .context = tail, .on_incident = on_incident};
    tail->since = since;
    tail->caught_up = oos_logtime_now();
    if (shared->roots->list[root].kind == OOS_ROOT_STREAM) {
        tail->stream = tail->current = true;
        tail->fd = STDIN_FILENO;
        tail->parts[0].id = tail->id = (oos_file_id){.inode = 1, .print = (uint64_t)tail->caught_up};
        from = NULL;
    }
    if (from) {
        tail->from = *from;
        tail->resumes = true;
        tail->caught_up = from->time;
    }
    tail->from.history = NULL;
    oomsight_status const status = oos_reader_open(&shared->readers, from, &tail->reader, reterr);
    if (status == OOMSIGHT_OK)
        *ret_tail = tail;
    else
        oos_tail_close(tail);
    return status;
}

static void drop_backlog(oos_tail *tail)
{
    for (size_t i = tail->backlog_at; i < tail->backlog_count; i++) close(tail->backlog[i].fd);
    tail->backlog_at = tail->backlog_count = 0;
}

static void close_part(oos_tail *tail)
{
    if (tail->packed)
        oos_logstream_close(tail->packed);
    else if (tail->fd >= 0 && !tail->stream)
        close(tail->fd);
    tail->packed = NULL;
    tail->fd = -1;
    tail->current = false;
}

void oos_tail_close(oos_tail *tail)
{
    if (!tail) return;
    close_part(tail);
    drop_backlog(tail);
    oos_explainer_close(tail->reader.explainer);
    free(tail->relative);
    free(tail->path);
    free(tail);
}

/* ---- which file comes next ---- */

static int open_folder(const oos_tail *tail, char name[OOS_ROTATED_NAME_BYTES])
{
    const oos_root *root = &tail->shared->roots->list[tail->root];
    char *real = root->kind == OOS_ROOT_FILE ? realpath(root->path, NULL) : NULL;
    const char *path = real ? real : root->kind == OOS_ROOT_FILE ? root->path : tail->relative;
    const char *slash = strrchr(path, '/');
    snprintf(name, OOS_ROTATED_NAME_BYTES, "%s", slash ? slash + 1 : path);
    free(real);
    return oos_roots_open_folder(tail->shared->roots, tail->root, tail->relative);
}

/* Print of the file before part `number`. */
static uint64_t prior_of(const oos_tail *tail, uint32_t number)
{
    if (number == 0 || !tail->begun) return tail->from.prior;
    uint64_t const print = tail->parts[(number - 1) % PARTS_KEPT].id.print;
    return print ? print : number == 1 ? tail->from.prior : 0;
}

/* Where in the list the file is that was read; `count` when it is not there. `copied`: it was copied before it was cut in place,
 * so another file has its text; several may begin alike. */
static size_t find_rotated(int folder, oos_rotated *list, size_t count, const oos_standing *was, bool copied)
{
    const oos_file_id *id = &was->id;
    for (size_t i = 0; i < count; i++) {
        if (list[i].packed || list[i].id.inode != id->inode) continue;
        oos_rotated_print(folder, &list[i]);
        if (oos_file_same(&list[i].id, id) && oos_rotated_ends(folder, &list[i], was->read, was->ending))
            return i;
    }
    for (size_t i = count; id->print && i-- > 0;)
        if ((list[i].packed || copied) && oos_rotated_print(folder, &list[i]) == id->print &&
            oos_rotated_ends(folder, &list[i], was->read, was->ending))
            return i;
    return count;
}

/* The file that was read before the one that cannot be found; `count`: not there either. Of those that begin alike the last one that was
 * there at that time. */
static size_t find_prior(int folder, oos_rotated *list, size_t count, uint64_t print, int64_t time)
{
    size_t found = count;
    for (size_t i = count; print && i-- > 0;)
        if (oos_rotated_print(folder, &list[i]) == print && (found == count || list[found].written > time))
            found = i;
    return found;
}

static bool leads_to(const struct stat *is, const oos_file_id *id)
{
    return (uint64_t)is->st_ino == id->inode && (uint64_t)is->st_dev == id->device;
}

enum { WITH_IT, IF_GROWN };

/* False: it has gone on to another name, or there is no descriptor for it now. What we may not read is left out. */
static bool hold(int folder, oos_rotated *file, part *ret_part)
{
    struct stat is;
    int const fd = openat(folder, file->name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    *ret_part = (part){.fd = fd, .packed = file->packed, .written = file->written};
    if (fd < 0) return errno == EACCES || errno == EPERM;
    if (fstat(fd, &is) != 0 || (uint64_t)is.st_ino != file->id.inode) {
        close(fd);
        return false;
    }
    if (file->packed) oos_rotated_print(folder, file);
    ret_part->id = file->id;
    return true;
}

/* The first of what is wanted; false: none could be held, and there are some. */
static bool fill_once(oos_tail *tail, int folder, const char *name, const oos_standing *was, int own_too,
                      bool copied)
{
    struct stat is;
    oos_rotated *list;
    size_t const count = oos_rotated_list(folder, name, &was->id, &list);
    bool const there = oos_roots_stat(tail->shared->roots, tail->root, tail->relative, &is);
    size_t own = find_rotated(folder, list, count, was, copied);
    bool const with_own =
        own < count && (own_too == WITH_IT || (!list[own].packed && list[own].size > was->byte));
    if (own == count) own = find_prior(folder, list, count, prior_of(tail, tail->part_number), was->written);
    bool held = true;
    for (size_t i = 0; i < count && held && tail->backlog_count < HELD_MAX; i++) {
        bool const wanted = own < count ? i > own || (i == own && with_own) : list[i].written >= was->written;
        if (!wanted || (there && leads_to(&is, &list[i].id))) continue;
        part *to = &tail->backlog[tail->backlog_count];
        held = hold(folder, &list[i], to);
        if (!held || to->fd < 0) continue;
        tail->backlog_count++;
        if (i != own) continue;
        to->id = was->id;
        to->byte = was->byte;
        to->lines = was->lines;
        to->known = true;
    }
    free(list);
    oos_assert(tail->backlog_count <= HELD_MAX);
    return held || tail->backlog_count > 0;
}

/* What was moved away after the file that was read, and that file itself, or only if it has more by now. When it is not there
 * (it may have been empty, and packed since): what came after the one before it, or else what was written since. False: not now. */
static bool fill_backlog(oos_tail *tail, const oos_standing *was, int own_too, bool copied)
{
    enum { TRIES_MAX = 8 };
    char name[OOS_ROTATED_NAME_BYTES];
    bool done = false;
    int const folder = open_folder(tail, name);
    if (folder < 0) return errno != EMFILE && errno != ENFILE;
    for (int tries = 0; tries < TRIES_MAX && !done; tries++)
        done = fill_once(tail, folder, name, was, own_too, copied);
    close(folder);
    return done;
}

static int64_t written_at(int fd)
{
    struct stat is;
    if (fd < 0 || fstat(fd, &is) != 0) return 0;
    return (int64_t)is.st_mtim.tv_sec * 1000000000 + is.st_mtim.tv_nsec;
}

static oomsight_status begin_part(oos_tail *tail, const oos_file_id *id, uint64_t byte, uint64_t lines,
                                  oomsight_error *reterr)
{
    /* The explainer was opened at the place to go on from; anything else is another part. */
    bool const first = !tail->begun && byte == tail->from.byte && lines == tail->from.lines;
    oos_collector_point const at = oos_collector_at(oos_explainer_collector(tail->reader.explainer));
    if (at.open && tail->part_number + 1 - at.first_part >= PARTS_KEPT)
        OOS_TRY(oos_explainer_settle(tail->reader.explainer, reterr));
    if (tail->begun)
        tail->parts[tail->part_number % PARTS_KEPT] =
            (extent){tail->id, tail->byte, tail->ending, tail->written};
    tail->begun = true;
    tail->id = *id;
    tail->byte = byte;
    tail->ending = tail->fd >= 0 && !tail->packed ? oos_file_ending(tail->fd, byte) : 0;
    tail->last_len = 0;
    tail->written = written_at(tail->fd);
    tail->copied = tail->cut = tail->moved = false;
    tail->hollow = tail->current && !byte;
    tail->gone_at = 0;
    if (!first) {
        oos_scan_origin const start = {.growing = true, .byte = byte, .lines = lines};
        OOS_TRY(oos_explainer_next_part(tail->reader.explainer, &start, reterr));
        tail->part_number++;
    }
    tail->parts[tail->part_number % PARTS_KEPT].id = *id;
    return OOMSIGHT_OK;
}

/* One of the files that were moved away. */
static oomsight_status open_backlog(oos_tail *tail, oomsight_error *reterr)
{
    const part *from = &tail->backlog[tail->backlog_at++];
    oos_file_id id;
    if (!oos_file_identify(from->fd, &id, &tail->size)) {
        close(from->fd);
        return OOMSIGHT_OK;
    }
    if (from->packed) {
        const char *inner;
        if (oos_logstream_open_fd(from->fd, 0, &tail->packed, NULL) != OOMSIGHT_OK) return OOMSIGHT_OK;
        oos_logstream_next(tail->packed, &inner);
        tail->to_skip = from->byte;
        id.print = from->id.print;
    }
    bool const copied = from->known && id.inode != from->id.inode;
    if (from->known) id = from->id;
    tail->fd = from->fd;
    oomsight_status const status = begin_part(tail, &id, from->byte, from->lines, reterr);
    tail->copied = copied;
    tail->written = from->written;
    return status;
}

/* How far the file was read that is open, or was last. */
static oos_standing here(const oos_tail *tail, int64_t written)
{
    return (oos_standing){.id = tail->id,
                          .byte = tail->byte,
                          .lines = oos_linescan_lines(oos_explainer_scan(tail->reader.explainer)),
                          .read = tail->byte,
                          .ending = tail->ending,
                          .written = written};
}

static bool ends_as_read(int fd, uint64_t read, uint64_t ending)
{
    return !ending || oos_file_ending(fd, read) == ending;
}

/* What was read last, and how its rest is looked for among what was moved away. */
static bool fill_since(oos_tail *tail, const oos_file_id *now)
{
    if (tail->begun) {
        oos_standing const was = here(tail, tail->cut ? INT64_MAX : tail->written);
        return fill_backlog(tail, &was, tail->cut ? WITH_IT : IF_GROWN, tail->copied || tail->cut);
    }
    if (tail->resumes) return fill_backlog(tail, &tail->from, WITH_IT, now->inode == tail->from.id.inode);
    return tail->since == INT64_MAX ||
           fill_backlog(tail, &(oos_standing){.written = tail->since}, IF_GROWN, false);
}

/* The next file that has text; none: nothing to read for now. The file under the name is opened before the folder is listed: what is moved
 * away or cut meanwhile is either that one or in the list. The first time it goes on where an earlier run stopped. */
static oomsight_status open_next(oos_tail *tail, oomsight_error *reterr)
{
    if (tail->backlog_at < tail->backlog_count) return open_backlog(tail, reterr);
    drop_backlog(tail);
    oos_file_id id = {0};
    uint64_t size = 0;
    int fd = oos_roots_open_file(tail->shared->roots, tail->root, tail->relative);
    tail->why = fd < 0 ? errno : 0;
    bool const resumes = tail->resumes && !tail->begun;
    if (fd >= 0 && !oos_file_identify(fd, &id, &size)) {
        close(fd);
        return OOMSIGHT_OK;
    }
    if (resumes && fd < 0 && tail->why != ENOENT) return OOMSIGHT_OK; /* still there, but not for us */
    const oos_standing *from = &tail->from;
    bool const same = resumes && fd >= 0 && oos_file_same(&id, &from->id) && size >= from->byte &&
                      ends_as_read(fd, from->read, from->ending);
    /* Whatever comes next has the same history: it is the same engine. */
    if (!same && (!fill_since(tail, &id) || tail->backlog_count)) {
        if (fd >= 0) close(fd);
        return tail->backlog_count ? open_backlog(tail, reterr) : OOMSIGHT_OK;
    }
    if (fd < 0) return OOMSIGHT_OK;
    tail->fd = fd;
    tail->size = size;
    tail->current = true;
    tail->away = false;
    OOS_TRY(begin_part(tail, &id, same ? from->byte : 0, same ? from->lines : 0, reterr));
    if (!same) return OOMSIGHT_OK;
    tail->hollow = !from->read;
    if (tail->hollow) tail->written = from->written;
    return OOMSIGHT_OK;
}

/* ---- reading ---- */

static void keep_last(oos_tail *tail, const char *bytes, size_t len)
{
    size_t const some = oos_min(len, sizeof tail->last),
                 old = oos_min(tail->last_len, sizeof tail->last - some);
    memmove(tail->last, tail->last + tail->last_len - old, old);
    memcpy(tail->last + old, bytes + len - some, some);
    tail->last_len = old + some;
    oos_assert(tail->last_len <= sizeof tail->last);
}

static oomsight_status read_packed(oos_tail *tail, char *room, size_t capacity, size_t *ret_count)
{
    for (;;) {
        OOS_TRY(oos_logstream_read(tail->packed, room, capacity, ret_count, NULL));
        keep_last(tail, room, *ret_count);
        if (tail->to_skip == 0 || *ret_count == 0) return OOMSIGHT_OK;
        if (*ret_count > tail->to_skip) {
            *ret_count -= (size_t)tail->to_skip;
            memmove(room, room + tail->to_skip, *ret_count);
            tail->to_skip = 0;
            return OOMSIGHT_OK;
        }
        tail->to_skip -= *ret_count;
    }
}

static size_t read_stream(oos_tail *tail, char *room, size_t capacity)
{
    struct pollfd input = {.fd = tail->fd, .events = POLLIN};
    if (tail->stream_over || poll(&input, 1, 0) <= 0) return 0;
    ssize_t const got = read(tail->fd, room, capacity);
    tail->stream_over = got == 0 || (got < 0 && errno != EINTR && errno != EAGAIN);
    return got > 0 ? (size_t)got : 0;
}

/* The next bytes. `all`: also those behind the last line end. *ret_count 0: none. */
static oomsight_status read_some(oos_tail *tail, bool all, size_t *ret_count, bool *ret_more,
                                 oomsight_error *reterr)
{
    size_t capacity, count = 0;
    char *room = oos_linescan_room(oos_explainer_scan(tail->reader.explainer), &capacity);
    *ret_count = 0;
    *ret_more = false;
    if (!room) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a log");
    if (tail->packed) {
        if (read_packed(tail, room, capacity, &count) != OOMSIGHT_OK) count = 0;
    } else if (tail->stream) {
        count = read_stream(tail, room, capacity);
        all = true; /* what was read cannot be read again */
    } else {
        ssize_t got;
        do got = pread(tail->fd, room, capacity, (off_t)tail->byte);
        while (got < 0 && errno == EINTR);
        count = got > 0 ? (size_t)got : 0;
        bool const same = tail->byte || !tail->id.print ? ends_as_read(tail->fd, tail->byte, tail->ending)
                                                        : oos_file_print(room, count) == tail->id.print;
        if (count && !same) { /* it was cut, and has other text */
            count = 0;
            tail->written = 0;
            tail->check = true;
        }
    }
    *ret_more = count == capacity || (tail->packed && count);
    if (tail->byte + count > tail->size) tail->size = tail->byte + count;
    if (!all && !tail->packed && count < capacity) {
        const char *end = count ? memrchr(room, '\n', count) : NULL;
        count = end ? (size_t)(end - room) + 1 : 0;
    }
    if (!count) return OOMSIGHT_OK;
    if (tail->byte == 0)
        tail->wide = count > 1 && (memcmp(room, "\xff\xfe", 2) == 0 || memcmp(room, "\xfe\xff", 2) == 0);
    if (tail->byte == 0 && !tail->id.print) {
        tail->id.print = oos_file_print(room, count);
        tail->parts[tail->part_number % PARTS_KEPT].id = tail->id;
    }
    uint64_t const before = oos_linescan_lines(oos_explainer_scan(tail->reader.explainer));
    OOS_TRY(oos_linescan_took(oos_explainer_scan(tail->reader.explainer), count, reterr));
    tail->byte += count;
    tail->ending = tail->stream   ? 0
                   : tail->packed ? oos_hash_known(tail->last, tail->last_len)
                                  : oos_file_ending(tail->fd, tail->byte);
    tail->shared->bytes += count;
    tail->shared->lines += oos_linescan_lines(oos_explainer_scan(tail->reader.explainer)) - before;
    *ret_count = count;
    return OOMSIGHT_OK;
}

/* ---- the end of the data ---- */

/* The same file starts over: it is shorter than what was read of it, or has other text there. */
static bool is_cut(oos_tail *tail)
{
    oos_file_id id;
    int64_t const written = written_at(tail->fd);
    if (tail->hollow || (written == tail->written && tail->size == tail->byte)) return false; /* as it was */
    tail->written = written;
    if (!oos_file_identify(tail->fd, &id, &tail->size)) return false;
    if (tail->size >= tail->byte && !ends_as_read(tail->fd, tail->byte, tail->ending)) return true;
    return tail->size < tail->byte || (tail->id.print && id.print && id.print != tail->id.print) ||
           (tail->id.print && !id.print);
}

/* A file of which nothing was read has changed: it may have been filled, copied and cut since, or moved away. True: those come first. */
static bool others_came_first(oos_tail *tail)
{
    struct stat is;
    if (!tail->hollow || fstat(tail->fd, &is) != 0) return false;
    int64_t const written = written_at(tail->fd);
    bool const changed = written != tail->written || (uint64_t)is.st_size != tail->size;
    oos_standing const was = here(tail, tail->written);
    tail->hollow = is.st_size == 0;
    tail->written = written;
    if (!changed || (fill_backlog(tail, &was, IF_GROWN, false) && !tail->backlog_count)) return false;
    close_part(tail);
    return true;
}

/* What was not read before the cut may be in a copy. */
static oomsight_status start_over(oos_tail *tail, oomsight_error *reterr)
{
    tail->cut = true;
    close_part(tail);
    return open_next(tail, reterr);
}

static oomsight_status go_on(oos_tail *tail, oomsight_error *reterr)
{
    bool more;
    for (size_t count = 1; count;) OOS_TRY(read_some(tail, true, &count, &more, reterr));
    close_part(tail);
    return open_next(tail, reterr);
}

/* Look at the name. *ret_again: there may be more to read now. */
static oomsight_status check_name(oos_tail *tail, int64_t now, bool *ret_again, bool *ret_gone,
                                  oomsight_error *reterr)
{
    struct stat is;
    tail->check_at = now;
    tail->check = false;
    if (!oos_roots_stat(tail->shared->roots, tail->root, tail->relative, &is)) {
        if (!tail->gone_at) tail->gone_at = now;
        *ret_gone = now - tail->gone_at >= GONE_MS;
        if (!*ret_gone || tail->away) return OOMSIGHT_OK;
        /* What came under the name meanwhile may have been moved away, too. */
        int64_t const since = tail->gone_at;
        tail->away = *ret_again = true;
        OOS_TRY(go_on(tail, reterr));
        tail->gone_at = since;
        return OOMSIGHT_OK;
    }
    tail->gone_at = 0;
    if (leads_to(&is, &tail->id)) {
        tail->moved = false;
        return OOMSIGHT_OK;
    }
    /* A writer goes on with the old file until it opens the new one. */
    tail->moved = is.st_size == 0;
    if (tail->moved) return OOMSIGHT_OK;
    *ret_again = true;
    return go_on(tail, reterr);
}

/* ---- what has ended ---- */

/* Bytes without a line end: after a while they are taken as they are. */
static oomsight_status take_rest(oos_tail *tail, int64_t now, oomsight_error *reterr)
{
    size_t count;
    bool more;
    if (tail->size <= tail->byte) {
        tail->fresh_at = 0;
        return OOMSIGHT_OK;
    }
    if (!tail->fresh_at) tail->fresh_at = now;
    if (now - tail->fresh_at < REST_MS) return OOMSIGHT_OK;
    tail->fresh_at = 0;
    return read_some(tail, true, &count, &more, reterr);
}

oomsight_status oos_tail_step(oos_tail *tail, uint64_t most_bytes, int64_t now, oos_tail_state *ret_state,
                              oomsight_error *reterr)
{
    uint64_t total = 0;
    bool gone = false, again = true;
    *ret_state = OOS_TAIL_QUIET;
    while (again) {
        again = false;
        if (tail->fd < 0 && (tail->check || !tail->check_at || now - tail->check_at >= CHECK_MS ||
                             tail->backlog_at < tail->backlog_count)) {
            tail->check_at = now;
            tail->check = false;
            OOS_TRY(open_next(tail, reterr));
        }
        if (tail->fd < 0) {
            if (tail->backlog_at < tail->backlog_count) again = true;
            if (!tail->gone_at) tail->gone_at = now;
            gone = tail->why == ENOENT && now - tail->gone_at >= GONE_MS;
            continue;
        }
        if (others_came_first(tail)) {
            again = true;
            continue;
        }
        size_t count;
        bool more;
        do {
            OOS_TRY(read_some(tail, false, &count, &more, reterr));
            total += count;
        } while (more && count && total < most_bytes);
        if (more && count) {
            *ret_state = OOS_TAIL_BUSY;
            break;
        }
        tail->caught_up = oos_logtime_now();
        if (tail->stream) {
            gone = tail->stream_over;
        } else if (!tail->current) {
            OOS_TRY(go_on(tail, reterr));
            again = true;
        } else if (is_cut(tail)) {
            again = true;
            OOS_TRY(start_over(tail, reterr));
        } else if (tail->check || tail->moved || now - tail->check_at >= CHECK_MS) {
            OOS_TRY(check_name(tail, now, &again, &gone, reterr));
        }
        if (total >= most_bytes && again) {
            *ret_state = OOS_TAIL_BUSY;
            break;
        }
    }
    if (tail->fd >= 0 && !tail->packed && !tail->stream) OOS_TRY(take_rest(tail, now, reterr));
    OOS_TRY(oos_reader_step(&tail->reader, now, reterr));
    if (gone && tail->stream) OOS_TRY(oos_explainer_settle(tail->reader.explainer, reterr));
    if (gone && !oos_explainer_waits(tail->reader.explainer)) *ret_state = OOS_TAIL_GONE;
    return OOMSIGHT_OK;
}

void oos_tail_check_soon(oos_tail *tail)
{
    tail->check = true;
}

oomsight_status oos_tail_finish(oos_tail *tail, oomsight_error *reterr)
{
    return oos_explainer_settle(tail->reader.explainer, reterr);
}

/* ---- what is known of it ---- */

bool oos_tail_stands(const oos_tail *tail, oos_standing *ret_point)
{
    if (tail->stream || (!tail->begun && !tail->resumes)) return false;
    oos_standing point = tail->from;
    oos_collector_point const at = oos_reader_stands(&tail->reader, &point);
    *ret_point = point;
    if (!tail->begun) return true; /* not read yet: as it was found */
    bool const open = at.open && tail->part_number - at.first_part < PARTS_KEPT;
    uint32_t const number = open ? at.first_part : tail->part_number;
    extent const now = {tail->id, tail->byte, tail->ending, tail->written},
                 end = number == tail->part_number ? now : tail->parts[number % PARTS_KEPT];
    ret_point->id = end.id;
    ret_point->prior = prior_of(tail, number);
    ret_point->read = end.read;
    ret_point->ending = end.ending;
    ret_point->written = end.written;
    ret_point->time = tail->caught_up;
    if (!open) return true;
    ret_point->byte = at.first_byte;
    ret_point->lines = at.first_line ? at.first_line - 1 : 0;
    return true;
}

oos_tail_look oos_tail_look_at(const oos_tail *tail)
{
    return (oos_tail_look){.path = tail->path,
                           .origin = &tail->reader.origin,
                           .history = oos_collector_history(oos_explainer_collector(tail->reader.explainer)),
                           .written = tail->written,
                           .behind = tail->packed ? 0 : oos_sub(tail->size, tail->byte),
                           .behind_since = tail->caught_up};
}

bool oos_tail_rests(const oos_tail *tail)
{
    return tail->begun && tail->current && tail->size <= tail->byte &&
           !oos_explainer_waits(tail->reader.explainer);
}

int oos_tail_file(const oos_tail *tail)
{
    return tail->current && !tail->stream ? tail->fd : -1;
}

bool oos_tail_has_folder(const oos_tail *tail)
{
    char name[OOS_ROTATED_NAME_BYTES];
    int const folder = open_folder(tail, name);
    if (folder >= 0) close(folder);
    return folder >= 0;
}

void oos_tail_measure(oos_tail *tail)
{
    struct stat is;
    if (tail->fd >= 0 && !tail->packed && !tail->stream && fstat(tail->fd, &is) == 0)
        tail->size = (uint64_t)is.st_size;
}

/* Without a time before ".log" (".2026-01-02_03-04-05", "-20260102"): by that some name what they move away, and it is told under either name. */
static uint64_t print_of_path(const char *path)
{
    static const char figures[] = "0123456789";
    size_t const len = strlen(path), end = len > 4 && strcmp(path + len - 4, ".log") == 0 ? len - 4 : len;
    size_t at = end;
    while (at > 0 && strchr("0123456789-_:T.", path[at - 1])) at--;
    for (; at < end; at++) {
        size_t const digits = strspn(path + at + 1, figures);
        bool const date = digits >= 8 || (digits == 4 && path[at + 5] == '-');
        if (at > 0 && path[at - 1] != '/' && strchr(".-_", path[at]) && date) break;
    }
    return oos_hash_add(oos_hash_add(OOS_HASH_START, path, at), path + end, len - end);
}

uint64_t oos_tail_incident_id(const oos_tail *tail, const oos_incident *incident)
{
    const oos_file_id *id = &tail->parts[incident->first_part % PARTS_KEPT].id;
    /* A file that was packed has another inode; a time tells as much: that of the day, since its year may be a guess by our clock. */
    bool const timed = incident->first_time != OOS_TIME_NONE && id->print;
    uint64_t const figures[] = {timed ? 0 : id->inode, id->print, incident->first_byte,
                                timed ? (uint64_t)(incident->first_time % OOS_DAY_NS) : 0,
                                oos_value(incident, OOS_NUMBER_tried)};
    return oos_hash_add(print_of_path(tail->path), figures, sizeof figures);
}

bool oos_tail_has(const oos_tail *tail, const oos_file_id *id)
{
    if (!tail->begun) return tail->resumes && oos_file_same(&tail->from.id, id);
    bool has = oos_file_same(&tail->id, id);
    for (size_t i = tail->backlog_at; i < tail->backlog_count; i++)
        has |= oos_file_same(&tail->backlog[i].id, id);
    for (uint32_t i = 0; i < PARTS_KEPT && i <= tail->part_number; i++)
        has |= oos_file_same(&tail->parts[i].id, id);
    return has;
}

const char *oos_tail_error(oos_tail *tail)
{
    bool const closed = tail->fd < 0 && !tail->packed && tail->why && tail->why != ENOENT;
    if (tail->error_told || (!closed && !tail->wide)) return NULL;
    tail->error_told = true;
    if (tail->wide) return "it is UTF-16, which is not followed ('oomsight explain FILE' reads it)";
    return tail->why == EINVAL  ? "not a plain file"
           : tail->why == EXDEV ? "a link that leads outside"
                                : oos_errno_text(tail->why);
}
