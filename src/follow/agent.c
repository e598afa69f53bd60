/* One thread, a round of the files that are due a few times a second. Growth is found by asking each file; one that was quiet for a while sleeps
 * until inotify tells of it. New and moved files are found by inotify, and by looking at all folders now and then. */
#include "follow/follow.h"
#include "base/file.h"
#include "base/locale.h"
#include "base/size.h"
#include "base/table.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

enum {
    STEP_MAX_BYTES = 1 << 20, /* of one file, then it is another's turn */
    SEARCH_MS = 2000,         /* between two looks at all folders, when nobody tells of changes */
    SEARCH_WATCHED_MS = 60000,
    SEARCH_CROWDED_MS = 500, /* some wait for a place */
    SAVE_MS = 1000,
    SYNC_MS = 10000,
    SPARE_FILES = 64, /* descriptors for everything else */
    ENTRIES_MAX = 1 << 18,
    QUIET_MS = 2000,    /* so long without a byte: it may make room */
    LOOK_MAX_MS = 2000, /* a file that was quiet for long is looked at so often */
    LOOK_PART = 10      /* ... one that was quiet for a while after a tenth of it */
};

typedef struct item {
    oos_tail *tail;
    const char *path; /* the tail's */
    size_t root;
    uint64_t round;               /* in which it was read last */
    int64_t quiet_since, look_at; /* nothing has come since; when it is looked at next */
    int watch;                    /* who tells when it changes; 0: nobody, -1: nobody can */
    bool stepped;                 /* since positions were written */
    UT_hash_handle hh;
} item;

struct oos_agent {
    oos_agent_params params;
    oos_roots roots;
    oos_tails shared;
    oos_state *state;
    oos_watch *watch; /* NULL: the system has none to give */
    item *items;
    size_t most_files;
    uint64_t round;
    int64_t next_look; /* until then all files sleep */
    int64_t searched_at, search_took, saved_at, synced_at;
    int64_t
        searched_on; /* when the last search of all folders began, in nanoseconds since 1970; 0: none yet */
    uint64_t state_errors, left_out, leaving_out;
    bool too_many_told, state_told;
    bool missed;      /* by inotify: all is looked for again */
    bool rested;      /* a file made room for another: it is looked for again */
    bool unsaved;     /* something was read since positions were written */
    bool interrupted; /* the round goes on with the next step */
    bool stream_over; /* standard input has ended */
};

static void trouble(const oos_agent *agent, const char *path, const char *sentence)
{
    if (agent->params.on_trouble) agent->params.on_trouble(agent->params.context, path, sentence);
}

/* Each file that is followed stays open. */
static size_t files_allowed(size_t wanted)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return wanted;
    if (limit.rlim_cur < wanted + SPARE_FILES && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = oos_min((uint64_t)limit.rlim_max, 2 * (uint64_t)wanted + SPARE_FILES);
        setrlimit(RLIMIT_NOFILE, &limit);
        getrlimit(RLIMIT_NOFILE, &limit);
    }
    if (limit.rlim_cur <= SPARE_FILES) return 1;
    return (size_t)oos_min((uint64_t)wanted, (uint64_t)limit.rlim_cur - SPARE_FILES);
}

oomsight_status oos_agent_open(const oos_knowledge *knowledge, const oos_agent_params *params,
                               oos_agent **ret_agent, oomsight_error *reterr)
{
    oos_agent *agent = calloc(1, sizeof *agent);
    if (!agent) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory to follow files");
    agent->params = *params;
    agent->shared =
        (oos_tails){.roots = &agent->roots, .context = params->context, .on_incident = params->on_incident};
    agent->most_files = files_allowed(params->most_files);
    oomsight_status status = oos_readers_open(knowledge, &agent->shared.readers, reterr);
    if (status == OOMSIGHT_OK)
        status = oos_roots_open(params->paths, params->path_count, &agent->roots, reterr);
    if (status == OOMSIGHT_OK)
        status = oos_state_open(params->state_folder, &knowledge->signals, &agent->state, reterr);
    if (status != OOMSIGHT_OK) {
        oos_agent_close(agent);
        return status;
    }
    agent->watch = oos_watch_open();
    *ret_agent = agent;
    return OOMSIGHT_OK;
}

static void drop_item(oos_agent *agent, item *it)
{
    HASH_DEL(agent->items, it);
    if (it->watch > 0) oos_watch_forget(agent->watch, it->watch);
    oos_tail_close(it->tail);
    free(it);
}

/* Where it stands is kept: the file may come back, or grow. Not so when its folder is gone, as that of a pod. */
static void rest_item(oos_agent *agent, item *it)
{
    oos_standing point;
    if (!oos_tail_has_folder(it->tail))
        oos_state_forget(agent->state, it->path);
    else if (oos_tail_stands(it->tail, &point))
        oos_state_put(agent->state, it->path, &point);
    drop_item(agent, it);
}

void oos_agent_close(oos_agent *agent)
{
    if (!agent) return;
    item *it, *next;
    HASH_ITER(hh, agent->items, it, next) drop_item(agent, it);
    oos_watch_close(agent->watch);
    oos_state_close(agent->state);
    oos_roots_close(&agent->roots);
    oos_readers_close(&agent->shared.readers);
    free(agent);
}

/* ---- looking for files ---- */

/* Of the files that were read to their end the one that was written longest ago gives up its place, to one that has more. */
static bool make_room(oos_agent *agent, int64_t written)
{
    int64_t const now = oos_clock_ms();
    item *oldest = NULL;
    for (item *it = agent->items; it; it = it->hh.next) {
        bool const given = agent->roots.list[it->root].kind == OOS_ROOT_FILE;
        bool const quiet = now - it->quiet_since >= QUIET_MS || oos_tail_look_at(it->tail).written < written;
        if (given || !quiet || !oos_tail_rests(it->tail)) continue;
        if (!oldest || oos_tail_look_at(it->tail).written < oos_tail_look_at(oldest->tail).written)
            oldest = it;
    }
    if (!oldest) return false;
    rest_item(agent, oldest);
    return agent->rested = true;
}

static void leave_out(oos_agent *agent, const char *path)
{
    agent->leaving_out++;
    if (!agent->too_many_told)
        trouble(agent, path, "more files grow than can be followed; this one is left out (--max-files)");
    agent->too_many_told = true;
}

/* A log that was moved to a name that is a log's, too: its text is told under the name that it had, and what is under the new name was read when that
 * one has gone on. When the log that it was is not there any more, this is it: then it goes on where that one stood. */
static bool is_moved(oos_agent *agent, size_t root, const char *relative, const char *path,
                     oos_standing *from, bool *known)
{
    uint64_t size;
    struct stat is;
    oos_file_id id = {0};
    int const fd = oos_roots_open_file(&agent->roots, root, relative);
    bool const told = fd >= 0 && oos_file_identify(fd, &id, &size) && id.print;
    if (fd >= 0) close(fd);
    bool has = false;
    for (const item *it = agent->items; told && it && !has; it = it->hh.next)
        has = oos_roots_is_longer(path, it->path) && oos_tail_has(it->tail, &id);
    const char *owner = told && !has && !*known ? oos_state_owner(agent->state, path, &id) : NULL;
    if (owner && stat(owner, &is) != 0) {
        *known = oos_state_find(agent->state, owner, from);
        oos_state_forget(agent->state, owner);
        return false;
    }
    if (!has && !owner) return false;
    oos_standing const point = {
        .id = id, .byte = size, .read = size, .time = oos_logtime_now(), .clock = OOS_TIME_NONE};
    oos_state_put(agent->state, path, &point);
    return agent->unsaved = true;
}

static void add_file(oos_agent *agent, size_t root, const char *relative, const char *path)
{
    struct stat is;
    oos_standing from;
    bool const there = oos_roots_stat(&agent->roots, root, relative, &is);
    bool const full = HASH_COUNT(agent->items) >= agent->most_files;
    if (there && (full || agent->rested) && oos_state_is_read(agent->state, path, &is, oos_logtime_now()))
        return;
    if (full && !(there && make_room(agent, (int64_t)is.st_mtim.tv_sec * 1000000000 + is.st_mtim.tv_nsec))) {
        leave_out(agent, path);
        return;
    }
    bool known = oos_state_find(agent->state, path, &from);
    if (there && is_moved(agent, root, relative, path, &from, &known)) return;
    item *it = calloc(1, sizeof *it);
    if (!it || oos_tail_open(&agent->shared, root, relative, known ? &from : NULL,
                             agent->searched_on ? agent->searched_on : oos_state_since(agent->state),
                             &it->tail, NULL) != OOMSIGHT_OK) {
        trouble(agent, path, "no memory to follow it");
        free(it);
        return;
    }
    it->path = oos_tail_look_at(it->tail).path;
    it->root = root;
    agent->next_look = 0;
    HASH_ADD_KEYPTR(hh, agent->items, it->path, strlen(it->path), it);
    if (OOS_IN_TABLE(it)) return;
    trouble(agent, path, "no memory to follow it");
    oos_tail_close(it->tail);
    free(it);
}

static void wake(oos_agent *agent, item *it)
{
    oos_tail_check_soon(it->tail);
    agent->next_look = it->look_at = 0;
}

static void on_file(void *context, size_t root, const char *relative)
{
    oos_agent *agent = context;
    item *it;
    char *path = oos_roots_path(&agent->roots, root, relative);
    if (!path) return;
    HASH_FIND_STR(agent->items, path, it);
    if (it) {
        wake(agent, it);
    } else {
        add_file(agent, root, relative, path);
    }
    free(path);
}

static void on_folder(void *context, size_t root, const char *relative, int fd)
{
    oos_agent *agent = context;
    (void)fd;
    char *path = oos_roots_path(&agent->roots, root, relative);
    if (path && agent->watch) oos_watch_add(agent->watch, path, root, relative);
    free(path);
}

/* `name`: only this entry of the folder; NULL: all. */
static void search_one(oos_agent *agent, size_t root, const char *relative, const char *name)
{
    oos_root_finder finder = {
        .context = agent, .on_file = on_file, .on_folder = on_folder, .entries_left = ENTRIES_MAX};
    oos_roots_find(&agent->roots, root, relative, name, &finder);
    if (!finder.entries_left && !agent->too_many_told) {
        agent->too_many_told = true;
        trouble(agent, agent->roots.list[root].path, "too many entries; the rest is not looked at");
    }
}

/* What has gone from there is looked for by its name. */
static void on_change(void *context, size_t root, const char *relative, const char *name)
{
    oos_agent *agent = context;
    char *inside = NULL, *path = NULL;
    item *it = NULL;
    search_one(agent, root, relative, name);
    if (asprintf(&inside, "%s%s%s", relative, *relative ? "/" : "", name) >= 0)
        path = oos_roots_path(&agent->roots, root, inside);
    else
        inside = NULL;
    if (path) HASH_FIND_STR(agent->items, path, it);
    if (it) wake(agent, it);
    free(inside);
    free(path);
}

/* Several may be the same file. `watch` 0: anything may have happened. */
static void on_wake(void *context, int watch)
{
    oos_agent *agent = context;
    agent->missed |= !watch;
    for (item *it = agent->items; it; it = it->hh.next) {
        if (it->watch <= 0 || (watch && it->watch != watch)) continue;
        if (watch) it->watch = 0;
        wake(agent, it);
    }
}

/* A folder that is not there cannot be watched. */
static bool all_there(const oos_agent *agent)
{
    for (size_t i = 0; i < agent->roots.count; i++) {
        oos_root_kind const kind = agent->roots.list[i].kind;
        if ((kind == OOS_ROOT_FOLDER || kind == OOS_ROOT_PATTERN) && agent->roots.list[i].fd < 0)
            return false;
    }
    return true;
}

/* Looking takes at most a tenth of the time. Nobody tells of a file that rests and grows. */
static void search(oos_agent *agent, int64_t now)
{
    bool complete = false;
    if (agent->watch) complete = oos_watch_take(agent->watch, on_change, on_wake, agent);
    complete = complete && all_there(agent) && !agent->rested && !agent->left_out && !agent->missed;
    int64_t pause = complete ? SEARCH_WATCHED_MS : agent->left_out ? SEARCH_CROWDED_MS : SEARCH_MS;
    if (pause < agent->search_took * 10) pause = agent->search_took * 10;
    if (agent->searched_at && now - agent->searched_at < pause) return;
    int64_t const begun = oos_logtime_now();
    agent->leaving_out = 0;
    agent->missed = false;
    for (size_t i = 0; i < agent->roots.count; i++) search_one(agent, i, "", NULL);
    agent->left_out = agent->leaving_out;
    agent->searched_on = begun;
    agent->searched_at = now;
    agent->search_took = oos_clock_ms() - now;
}

/* ---- a round ---- */

/* Once it is watched it is looked at once more, for what came before. */
static void look_later(oos_agent *agent, item *it, bool grew, int64_t now)
{
    bool const rests = !grew && oos_tail_rests(it->tail);
    if (!rests) it->quiet_since = now;
    if (!rests && it->watch > 0) oos_watch_forget(agent->watch, it->watch);
    if (!rests) it->watch = 0;
    int64_t pause = (now - it->quiet_since) / LOOK_PART;
    if (pause > LOOK_MAX_MS) pause = it->watch > 0 ? SEARCH_WATCHED_MS : LOOK_MAX_MS;
    if (pause == LOOK_MAX_MS && !it->watch && agent->watch) {
        it->watch = oos_watch_file(agent->watch, oos_tail_file(it->tail));
        pause = 0;
    }
    it->look_at = now + pause;
}

oomsight_status oos_agent_step(oos_agent *agent, bool *ret_busy, oomsight_error *reterr)
{
    int64_t const now = oos_clock_ms();
    *ret_busy = false;
    if (!agent->interrupted) {
        search(agent, now);
        agent->round++;
    }
    agent->interrupted = false;
    if (now < agent->next_look) return OOMSIGHT_OK;
    int64_t next_look = now + LOOK_MAX_MS;
    item *it, *next;
    HASH_ITER(hh, agent->items, it, next)
    {
        oos_tail_state state;
        if (it->round == agent->round || now < it->look_at) {
            if (it->look_at < next_look) next_look = it->look_at;
            continue;
        }
        if (agent->params.is_full && agent->params.is_full(agent->params.context)) {
            agent->interrupted = *ret_busy = true;
            next_look = 0;
            break;
        }
        it->round = agent->round;
        it->stepped = agent->unsaved = true;
        uint64_t const before = agent->shared.bytes;
        OOS_TRY(oos_tail_step(it->tail, STEP_MAX_BYTES, now, &state, reterr));
        look_later(agent, it, agent->shared.bytes != before, now);
        if (it->look_at < next_look) next_look = it->look_at;
        const char *why = oos_tail_error(it->tail);
        if (why) trouble(agent, it->path, why);
        if (state == OOS_TAIL_BUSY) *ret_busy = true;
        bool const given = agent->roots.list[it->root].kind == OOS_ROOT_FILE; /* may come back */
        if (state == OOS_TAIL_GONE && agent->roots.list[it->root].kind == OOS_ROOT_STREAM)
            agent->stream_over = true;
        else if (state == OOS_TAIL_GONE && !given)
            rest_item(agent, it);
    }
    agent->next_look = next_look;
    return OOMSIGHT_OK;
}

void oos_agent_wait(oos_agent *agent, int milliseconds)
{
    /* Standard input wakes us; files are asked. */
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    bool stream = false;
    for (size_t i = 0; i < agent->roots.count; i++) stream |= agent->roots.list[i].kind == OOS_ROOT_STREAM;
    poll(stream && !agent->stream_over ? &input : NULL, stream && !agent->stream_over, milliseconds);
}

/* False: what is there stays as it was. */
static bool save(oos_agent *agent, int64_t now)
{
    bool const to_disk = now - agent->synced_at >= SYNC_MS;
    for (item *it = agent->items; it; it = it->hh.next) {
        oos_standing point;
        if (it->stepped && oos_tail_stands(it->tail, &point)) oos_state_put(agent->state, it->path, &point);
        it->stepped = false;
    }
    agent->saved_at = now;
    if (oos_state_save(agent->state, to_disk, oos_logtime_now())) {
        if (to_disk) agent->synced_at = now;
        if (agent->state_told) trouble(agent, agent->params.state_folder, "positions are written again");
        agent->state_told = false;
        return true;
    }
    agent->state_errors++;
    if (agent->state_told) return false;
    char sentence[256];
    snprintf(sentence, sizeof sentence, "positions cannot be written (%s); following goes on",
             oos_errno_text(errno));
    trouble(agent, agent->params.state_folder, sentence);
    agent->state_told = true;
    return false;
}

void oos_agent_delivered(oos_agent *agent, bool incidents)
{
    int64_t const now = oos_clock_ms();
    if (agent->unsaved && (incidents || now - agent->saved_at >= SAVE_MS)) agent->unsaved = !save(agent, now);
}

void oos_agent_measure(oos_agent *agent)
{
    for (item *it = agent->items; it; it = it->hh.next) oos_tail_measure(it->tail);
}

oomsight_status oos_agent_finish(oos_agent *agent, oomsight_error *reterr)
{
    for (item *it = agent->items; it; it = it->hh.next) OOS_TRY(oos_tail_finish(it->tail, reterr));
    agent->unsaved = true;
    return OOMSIGHT_OK;
}

bool oos_agent_ended(const oos_agent *agent)
{
    return agent->stream_over && agent->roots.count == 1;
}

/* ---- figures ---- */

oos_agent_figures oos_agent_look(const oos_agent *agent)
{
    int64_t const now = oos_logtime_now();
    oos_agent_figures figures = {.files = HASH_COUNT(agent->items),
                                 .left_out = agent->left_out,
                                 .bytes = agent->shared.bytes,
                                 .lines = agent->shared.lines,
                                 .state_errors = agent->state_errors};
    for (const item *it = agent->items; it; it = it->hh.next) {
        oos_tail_look const look = oos_tail_look_at(it->tail);
        double const age = (double)(now - look.behind_since) / 1e9;
        figures.behind_bytes += look.behind;
        if (look.behind && age > figures.behind_seconds) figures.behind_seconds = age;
    }
    return figures;
}

uint64_t oos_agent_bytes(const oos_agent *agent)
{
    return agent->shared.bytes;
}

void oos_agent_each(const oos_agent *agent, void (*on_tail)(void *context, const oos_tail *tail),
                    void *context)
{
    for (const item *it = agent->items; it; it = it->hh.next) on_tail(context, it->tail);
}
