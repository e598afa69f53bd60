#pragma once
#include "base/error.h"
#include "base/text.h"
#include "explain/explain.h"
#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>

/* The places that the user pointed at, and the log files in them. Nothing outside of them is opened: below a folder, links
 * are followed only as far as they stay inside one of the folders that were given. */

enum { OOS_ROOTS_MAX = 1024, OOS_ROOT_DEPTH_MAX = 8, OOS_ROOT_PATH_BYTES = 4096 };

typedef enum oos_root_kind {
    OOS_ROOT_FILE, /* a file by its name, also one that is not there yet; a link is followed, since it was asked for */
    OOS_ROOT_FOLDER,  /* every *.log below it */
    OOS_ROOT_PATTERN, /* what matches, below the folder before the first wildcard */
    OOS_ROOT_STREAM   /* "-": standard input */
} oos_root_kind;

typedef struct oos_root {
    oos_root_kind kind;
    char *path;    /* of the file or the folder */
    char *real;    /* the folder without links in its name; NULL: it is not there yet */
    char *pattern; /* relative to the folder */
    int fd;        /* the folder, -1: not there yet */
} oos_root;

typedef struct oos_roots {
    oos_root *list;
    size_t count;
} oos_roots;

oomsight_status oos_roots_open(const char *const *paths, size_t count, oos_roots *ret_roots,
                               oomsight_error *reterr);
void oos_roots_close(oos_roots *roots);

/* What a search finds. Any of them may be NULL. `relative` is "" for the folder itself. */
typedef struct oos_root_finder {
    void *context;
    void (*on_file)(void *context, size_t root, const char *relative);
    void (*on_folder)(void *context, size_t root, const char *relative, int fd);
    size_t entries_left; /* how many names are still looked at: a bound for hostile folders */
} oos_root_finder;

/* The files of root `at` below its folder `relative`, or (`name`) below one entry of it, with as many levels as are allowed. A folder that is not
 * there is empty. */
void oos_roots_find(oos_roots *roots, size_t at, const char *relative, const char *name,
                    oos_root_finder *finder);

/* Open a plain file for reading, or (`folder`) the folder it lies in. -1 with errno: not there, or not inside. */
int oos_roots_open_file(const oos_roots *roots, size_t at, const char *relative);
int oos_roots_open_folder(const oos_roots *roots, size_t at, const char *relative);
/* What the name leads to now; links inside are followed, nothing is opened. */
bool oos_roots_stat(const oos_roots *roots, size_t at, const char *relative, struct stat *ret_stat);

/* May `path` be what the log `of` was moved to? Its name goes on behind that without ".log". */
bool oos_roots_is_longer(const char *path, const char *of);

/* The path as the user would write it. */
char *oos_roots_path(const oos_roots *roots, size_t at, const char *relative);

/* Files that a log was moved into: which file is which, and in what order they were written. */

/* The same file, also under another name and after a restart. Inodes are used again; a first line that bears a time is not. */
typedef struct oos_file_id {
    uint64_t device, inode;
    uint64_t print; /* of the first line; 0: it is not complete yet */
} oos_file_id;

/* Of an open file: *ret_size is its length. False: it cannot be told, or it is no plain file. */
bool oos_file_identify(int fd, oos_file_id *ret_id, uint64_t *ret_size);
/* Of the last bytes before `read`, as they lie there now. 0: they are not there. */
uint64_t oos_file_ending(int fd, uint64_t read);
uint64_t oos_file_print(const char *bytes, size_t len); /* of a text that begins like this */
bool oos_file_same(const oos_file_id *a, const oos_file_id *b);

enum { OOS_ROTATED_NAME_BYTES = 256, OOS_ENDING_BYTES = 256 };

typedef struct oos_rotated {
    char name[OOS_ROTATED_NAME_BYTES]; /* in the folder of the log */
    oos_file_id id;                    /* without a print: oos_rotated_print() */
    bool packed;                       /* .gz and the like */
    int64_t written;                   /* when last, in nanoseconds since 1970 */
    uint64_t size;
} oos_rotated;

/* Plain files in `folder` (a descriptor) called `name` and a suffix, and `own` (NULL: none) whatever it is called, oldest first. No link is
 * followed. The list is complete also when files move meanwhile. Returns their number; the caller frees the list. */
size_t oos_rotated_list(int folder, const char *name, const oos_file_id *own, oos_rotated **ret_list);

/* Of its text, also inside a packed one; kept. 0: it cannot be read, or its first line is not complete. */
uint64_t oos_rotated_print(int folder, oos_rotated *file);
/* Is `ending` that of its first `read` bytes? Also when it is not known (0). */
bool oos_rotated_ends(int folder, const oos_rotated *file, uint64_t read, uint64_t ending);

/* A place to go on from: everything before it has been told, or tells nothing. */
typedef struct oos_standing {
    oos_file_id id;
    uint64_t prior;       /* print of the file before this one, 0: not known */
    uint64_t byte, lines; /* lines: before it */
    uint64_t read,
        ending;      /* how far that file was read, and the print of the last bytes before; 0: not known */
    int64_t time;    /* when this was so */
    int64_t written; /* when that file was written last, or earlier, in nanoseconds since 1970 */
    int64_t clock;   /* the last time that the text tells before it */
    const oos_incident *history;
    uint64_t version; /* of the history */
    bool told;
} oos_standing;

#define OOS_DAY_NS ((int64_t)86400 * 1000000000)

/* What all texts that grow share, whoever reads their bytes. */
typedef struct oos_readers {
    const oos_knowledge *knowledge;
    oos_bench *bench;
    oos_arena *results; /* of the incident that is being told */
    oos_explanation found;
} oos_readers;

oomsight_status oos_readers_open(const oos_knowledge *knowledge, oos_readers *readers,
                                 oomsight_error *reterr);
void oos_readers_close(oos_readers *readers); /* also one that could not be opened in full */

/* One of them. Lines wait for those behind them, a failure for further signs of it: each for its own time. */
typedef struct oos_reader {
    oos_origin origin;
    void *context;
    void (*on_incident)(void *context, const oos_incident *incident);
    oos_explainer *explainer;
    int64_t lines_at, touched_at, opened_at; /* 0: not */
    uint64_t touched;
} oos_reader;

/* The reader stays where it is; whom it tells was filled in. `from` NULL: from the beginning. */
oomsight_status oos_reader_open(oos_readers *readers, const oos_standing *from, oos_reader *r,
                                oomsight_error *reterr);
/* Tell what has ended; `now` in milliseconds. */
oomsight_status oos_reader_step(oos_reader *r, int64_t now, oomsight_error *reterr);
/* What was handed on, and the history: `id`, `read` and `time` are the caller's. */
oos_collector_point oos_reader_stands(const oos_reader *r, oos_standing *point);

/* One text that grows and is rotated: the file under a name, and the files that were moved away from it before they were
 * read to the end. Nothing here waits. */

typedef struct oos_tail oos_tail;

/* What all tails share. */
typedef struct oos_tails {
    oos_roots *roots;
    oos_readers readers;
    void *context;
    void (*on_incident)(void *context, oos_tail *tail, const oos_incident *incident);
    uint64_t bytes, lines; /* read so far */
} oos_tails;

/* `from` NULL: from the beginning of the file as it is, after what was moved away from it since `since` (INT64_MAX: nothing).
 * The file may not exist yet. */
oomsight_status oos_tail_open(oos_tails *shared, size_t root, const char *relative, const oos_standing *from,
                              int64_t since, oos_tail **ret_tail, oomsight_error *reterr);
void oos_tail_close(oos_tail *tail); /* NULL is fine */

typedef enum oos_tail_state {
    OOS_TAIL_QUIET, /* everything that is there has been read */
    OOS_TAIL_BUSY,  /* there is more */
    OOS_TAIL_GONE   /* the name leads nowhere any more, and everything was read: to be closed */
} oos_tail_state;

/* Read at most `most_bytes`; tell what has ended. `now` is a clock that only goes forward, in milliseconds. */
oomsight_status oos_tail_step(oos_tail *tail, uint64_t most_bytes, int64_t now, oos_tail_state *ret_state,
                              oomsight_error *reterr);
void oos_tail_check_soon(oos_tail *tail); /* something happened in its folder */
oomsight_status oos_tail_finish(oos_tail *tail, oomsight_error *reterr); /* tell what is open: the end */

bool oos_tail_stands(const oos_tail *tail, oos_standing *ret_point); /* false: nothing was read yet */
bool oos_tail_rests(const oos_tail *tail);                           /* all was read, and nothing is open */
int oos_tail_file(const oos_tail *tail);        /* a descriptor of the file under the name, -1: none */
bool oos_tail_has_folder(const oos_tail *tail); /* the one it lies in is there */
void oos_tail_measure(oos_tail *tail);          /* how much there is to read by now; nothing is read */

typedef struct oos_tail_look {
    const char *path;
    const oos_origin *origin;
    const oos_incident *history; /* figures since the engine's last start; NULL: none */
    int64_t written;             /* when the file was written last, as last looked; 0: not known */
    uint64_t behind;             /* bytes not read when last looked */
    int64_t behind_since;        /* when all had been read last */
} oos_tail_look;
oos_tail_look oos_tail_look_at(const oos_tail *tail);

/* This file was read, or will be: also under another name. */
bool oos_tail_has(const oos_tail *tail, const oos_file_id *id);

/* 16 hex digits' worth: the same for the same incident at the same place. */
uint64_t oos_tail_incident_id(const oos_tail *tail, const oos_incident *incident);
const char *
oos_tail_error(oos_tail *tail); /* why the file cannot be read, once; NULL: it can, or it was told */

/* Where reading stands in each file, and what is known of an engine since its start, kept in a folder over restarts. */

typedef struct oos_state oos_state;

/* Makes the folder when it is not there, and takes it for this process alone. What is damaged is read as far as it goes. NULL:
 * kept in memory only. */
oomsight_status oos_state_open(const char *folder, const oos_signals *signals, oos_state **ret_state,
                               oomsight_error *reterr);
void oos_state_close(oos_state *state); /* NULL is fine */
/* When a process kept its positions here first: what a log was moved to since then is to be read. INT64_MAX: not known. */
int64_t oos_state_since(const oos_state *state);

/* What was saved for a path. The history lives until the next call. False: nothing. */
bool oos_state_find(oos_state *state, const char *path, oos_standing *ret_point);
/* The file that lies there now was read to its end: nothing to follow. It is remembered for another day. */
bool oos_state_is_read(oos_state *state, const char *path, const struct stat *is, int64_t now);

/* Of another process: up to where it has delivered what is in a file. False: not known. */
bool oos_state_stands(const char *folder, uint64_t device, uint64_t inode, uint64_t *ret_byte);

/* What was saved for this file under another path, of which `path` is a longer name; the path lives until the next call. NULL: none. */
const char *oos_state_owner(const oos_state *state, const char *path, const oos_file_id *id);

/* Files that are not put any more are kept for a day: a log may come back. Nothing is written when nothing was read since.
 * False with errno: not written, and what was there before stays. */
void oos_state_put(oos_state *state, const char *path, const oos_standing *point);
void oos_state_forget(oos_state *state, const char *path);
bool oos_state_save(oos_state *state, bool to_disk, int64_t now);

/* Many growing logs at once: finds them, follows each, keeps positions, counts. The caller waits between two steps, gets
 * incidents one by one, and says when they are safe with whoever takes them. */

typedef struct oos_agent oos_agent;

typedef struct oos_agent_params {
    const char *const *paths; /* files, folders, patterns, "-" */
    size_t path_count;
    const char *state_folder; /* NULL: begin anew each time */
    size_t most_files;        /* followed at once; those that rest make room for those that grow */
    void *context;
    void (*on_incident)(void *context, oos_tail *tail, const oos_incident *incident);
    bool (*is_full)(void *context); /* enough was told: the rest of the round comes with the next step */
    void (*on_trouble)(void *context, const char *path, const char *sentence); /* worth a line on stderr */
} oos_agent_params;

oomsight_status oos_agent_open(const oos_knowledge *knowledge, const oos_agent_params *params,
                               oos_agent **ret_agent, oomsight_error *reterr);
void oos_agent_close(oos_agent *agent); /* NULL is fine */

/* Look for files, read, tell. *ret_busy: there is more to read, do not wait. */
oomsight_status oos_agent_step(oos_agent *agent, bool *ret_busy, oomsight_error *reterr);
/* Wait until something may have happened, at most so long. */
void oos_agent_wait(oos_agent *agent, int milliseconds);
/* Everything told so far has been delivered: positions may be written, at once when incidents were among it. */
void oos_agent_delivered(oos_agent *agent, bool incidents);
/* How much there is to read by now; nothing is read. */
void oos_agent_measure(oos_agent *agent);
/* Tell what is open: this is the end. */
oomsight_status oos_agent_finish(oos_agent *agent, oomsight_error *reterr);
bool oos_agent_ended(const oos_agent *agent); /* only standard input was followed, and it is over */

typedef struct oos_agent_figures {
    uint64_t files, left_out, bytes, lines; /* left_out: there is no room to follow them */
    uint64_t behind_bytes;
    double behind_seconds; /* age of the oldest text that was not read */
    uint64_t state_errors;
} oos_agent_figures;

oos_agent_figures oos_agent_look(const oos_agent *agent);
uint64_t oos_agent_bytes(const oos_agent *agent); /* read so far; no file is looked at */
/* Every file that is followed. */
void oos_agent_each(const oos_agent *agent, void (*on_tail)(void *context, const oos_tail *tail),
                    void *context);

/* Lines of many streams that another program has read and gives as JSON, one object each: `stream` and `line`, and if it likes `time`, a
 * `cursor` of its own, `end`, and anything else as labels. */

typedef struct oos_streams oos_streams;

/* A line of the input as it stands there. Views live as long as the text and the room. */
typedef struct oos_stream_record {
    oos_view text, stream, line;
    oos_view cursor, time; /* as JSON */
    bool has_line, over;
} oos_stream_record;

/* False: it is none. */
bool oos_record_read(oos_view text, oos_text room[2], oos_stream_record *ret_record);
/* Of the record's time, RFC 3339 or a number since 1970. */
bool oos_record_time(const oos_stream_record *record, char to[OOS_TIME_TEXT_BYTES]);
/* The same for the same cursor; empty: none, or longer than `most`. */
oos_view oos_record_cursor(const oos_stream_record *record, size_t most, oos_text *room);
/* Each member without a meaning here, and of `labels`, that is no list. */
void oos_record_labels(const oos_stream_record *record,
                       void (*on_label)(void *context, oos_view key, oos_view value), void *context);

typedef struct oos_stream_told {
    uint64_t id;                 /* the same for the same incident behind the same cursor */
    const char *stream, *cursor; /* of the record that it begins in, as JSON; NULL: none */
    const oos_label *labels;
    size_t label_count;
    const oos_origin *origin;
    const oos_incident *incident;
} oos_stream_told;

typedef struct oos_streams_params {
    const char *state_folder; /* what is known of each engine is kept here over restarts; NULL: not */
    size_t most_streams;      /* at once: the one that was quiet longest makes room */
    void *context;
    void (*on_incident)(void *context, const oos_stream_told *told);
    /* Everything up to this cursor was told or tells nothing: it need not be sent again. */
    void (*on_acknowledged)(void *context, const char *stream, const char *cursor);
} oos_streams_params;

oomsight_status oos_streams_open(const oos_knowledge *knowledge, const oos_streams_params *params,
                                 oos_streams **ret_streams, oomsight_error *reterr);
void oos_streams_close(oos_streams *streams); /* NULL is fine */

/* Any piece of the input. A record that is none is counted and passed over. */
oomsight_status oos_streams_push(oos_streams *streams, oos_view text, oomsight_error *reterr);
/* Tell what has ended by now, and acknowledge; `over`: nothing more comes. */
oomsight_status oos_streams_step(oos_streams *streams, bool over, oomsight_error *reterr);
/* Everything told so far has been delivered. False with errno: what is known could not be kept. */
bool oos_streams_delivered(oos_streams *streams, bool incidents);

typedef struct oos_streams_figures {
    uint64_t streams;
    uint64_t refused; /* records that are none: no object, no stream, no line, longer than 1 MiB */
} oos_streams_figures;
oos_streams_figures oos_streams_look(const oos_streams *streams);

/* What a log told since the engine's start, as JSON and back: so that an incident after a restart of this program is judged as
 * it would have been before. */

void oos_history_write(const oos_signals *signals, const oos_incident *history, oos_text *text);

/* Strings are copied into the arena. False: not a history. What this version does not know is left out. */
bool oos_history_read(oos_arena *arena, const oos_signals *signals, oos_view text, oos_incident *ret_history);

/* What an agent counts, in the text format of Prometheus (docs/reference/formats/agent.md). Labels are our own words and names that
 * keep the rules of Kubernetes: nothing of a log's text gets here. The number of series is bounded. */

typedef struct oos_metrics oos_metrics;

oos_metrics *oos_metrics_create(void);       /* NULL: no memory */
void oos_metrics_free(oos_metrics *metrics); /* NULL is fine */

/* One more; times in nanoseconds since 1970. `happened`, 0: not known. What is found long after it happened (an old log, a
 * first look at a node) has a counter of its own: nobody is to be woken by it. */
void oos_metrics_incident(oos_metrics *metrics, const oos_origin *origin, const oos_incident *incident,
                          int64_t happened, int64_t now);
void oos_metrics_write_error(oos_metrics *metrics);

/* All of it. Keeps in mind what the engines of the agent's files told last. */
void oos_report_metrics(oos_metrics *metrics, const oos_agent *agent, oos_text *text);

/* Being told of files that come and go, by inotify. An aid: whoever uses it also looks for himself now and then. */

typedef struct oos_watch oos_watch;

oos_watch *oos_watch_open(void);        /* NULL: the system has none to give */
void oos_watch_close(oos_watch *watch); /* NULL is fine */

/* A folder; again is fine. It goes by itself when the folder does. */
void oos_watch_add(oos_watch *watch, const char *path, size_t root, const char *relative);

/* One event of an open file, when it is written, cut or moved: its number. -1: nobody would tell. */
int oos_watch_file(oos_watch *watch, int fd);
void oos_watch_forget(oos_watch *watch, int id);

/* Each name that appeared, moved or vanished in a folder since the last call, and each such file; 0: something was missed. False: not
 * everything is watched. */
bool oos_watch_take(oos_watch *watch,
                    void (*on_change)(void *context, size_t root, const char *relative, const char *name),
                    void (*on_wake)(void *context, int id), void *context);

/* Incidents for a receiver of OpenTelemetry (OTLP/HTTP). */

/* The body of a request with every line that is an incident, as JSON; returns their number. */
size_t oos_otlp_request(oos_view lines, oos_text *text);

typedef struct oos_otlp_reply {
    unsigned status;   /* of HTTP, 0: none came */
    unsigned wait_s;   /* as the receiver asks, at most five minutes */
    uint64_t rejected; /* records that it took and did not keep */
} oos_otlp_reply;

/* What was received so far; `over`: no more comes. False: more is needed. */
bool oos_otlp_answer(oos_view text, bool over, oos_otlp_reply *ret_reply);
