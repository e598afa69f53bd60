#pragma once
#include "base/error.h"
#include "base/text.h"
#include "base/view.h"
#include "match/match.h"
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* What scanning needs while it works: a window, a buffer to read into, hits, scratch. One of these serves any number of
 * scans of one thread, one at a time, so that a thousand quiet files cost what they remember and no more. */

enum {
    /* Lines are cut to this many bytes on either side of their first hit; an engine prints 19 KiB of arguments on one. */
    OOS_LINE_MAX_BYTES = 32 << 10,
    OOS_BENCH_READ_BYTES = 512 << 10,
    OOS_BENCH_AFTER_BYTES = 4 << 10,
    OOS_BENCH_KEEP_BYTES = OOS_LINE_MAX_BYTES * 2 + OOS_BENCH_AFTER_BYTES,
    OOS_BENCH_WINDOW_BYTES = OOS_BENCH_READ_BYTES + 2 * OOS_BENCH_KEEP_BYTES,
    OOS_BENCH_HITS_MAX = 64 << 10,
    OOS_BENCH_JOINED_BYTES = 6 << 10
};

/* Where a line starts in its file, and the time it bears. */
typedef struct oos_line_place {
    uint64_t byte;
    int64_t time; /* nanoseconds since 1970, OOS_TIME_NONE */
} oos_line_place;

typedef struct oos_places {
    oos_line_place *list;
    size_t count, room;
} oos_places;

struct oos_linescan;

typedef struct oos_bench {
    oos_literal_scan *literals;
    struct oos_linescan *holder; /* whose text is in the window; NULL: nobody's */
    char *window, *raw;
    oos_hit *hits;
    oos_places places; /* of the holder's lines */
    oos_text clean;
    char *line, *shown,
        *joined; /* the collector's: one line without colour, the same as it is quoted, one message put together */
} oos_bench;

oomsight_status oos_bench_create(const oos_literals *literals, oos_bench **ret_bench, oomsight_error *reterr);
void oos_bench_free(oos_bench *bench); /* NULL is fine; after the scans that used it */

/* Undoing what was done to a log on its way here: JSON around each line (docker, journald, structured logging),
 * Kubernetes CRI prefixes, journald export fields, markdown escapes, lines cut at the width of a terminal.
 * The number of '\n' is kept, so line numbers stay those of the input: lines joined leave empty ones behind (a '\v'
 * where a terminal had cut them), and a line that holds several gets '\v' between them. What needs no cleaning is not touched. */

enum {
    OOS_CLEAN_JSON = 1,     /* a JSON object per line */
    OOS_CLEAN_CRI = 2,      /* `2025-01-01T00:00:00Z stderr F ` */
    OOS_CLEAN_JOURNAL = 4,  /* `MESSAGE=` among other fields */
    OOS_CLEAN_MARKDOWN = 8, /* `\[file.py:1\]`, `&quot;` */
    OOS_CLEAN_WRAPPED = 16, /* cut at a terminal's width */
    OOS_CLEAN_PADDED = 32,  /* rows of a terminal, blanks included */
    OOS_CLEAN_COMPOSE = 64, /* `sglang-1  | ` in front of every line */
    OOS_CLEAN_FRAMES = 128, /* frames without `File`, which the scan looks for */
    OOS_CLEAN_WIDTH = 256   /* times the width in columns, when it is known */
};

/* What the first bytes of an input ask for, a sum of the above; 0: nothing. */
unsigned oos_clean_sniff(oos_view head);

typedef struct oos_cleaner {
    unsigned what;
    oos_text pending;    /* a line whose end, or whose continuation, has not come yet */
    size_t joined;       /* lines that were joined to it */
    size_t last_columns; /* of the last of them */
    bool wants_more;     /* the pending line is complete, but the next may belong to it */
} oos_cleaner;

void oos_cleaner_init(oos_cleaner *cleaner, unsigned what);
void oos_cleaner_free(oos_cleaner *cleaner);

/* Clean the next bytes into `out` (appended). `last`: nothing follows. */
void oos_cleaner_feed(oos_cleaner *cleaner, oos_view bytes, bool last, oos_text *out);

/* Whether a text is what a program printed: by its lines, not by what they say. */

/* A line with a time, a level or a process before its message, the head of a traceback, or an error by its class is among them. */
bool oos_lines_of_log(oos_view text);

/* One line of a log, taken apart: who printed it, with which level, and what it says. Everything that loggers,
 * containers and terminals put in front of a message is peeled off here. */

typedef struct oos_logline {
    oos_view process; /* "Worker_TP3", "EngineCore_DP0", "rank0", "VllmWorker rank=1"; empty: not told */
    oos_view source;  /* "core.py:340"; empty: not told */
    oos_view message; /* the rest; its own indentation is kept */
    char level;       /* 'D', 'I', 'W', 'E', 'C', or 0 */
    bool labelled;    /* has a process or a level: the start of a record, not a continuation */
    bool old_shape;   /* `file.py:12] text` without the opening bracket: vLLM before 0.8 */
} oos_logline;

/* A line as every reader of sentences takes it: padding off, blanks to one, figures out of brackets, and each frame, whoever
 * printed or typed it, as `File "path", line N, in name`, with slashes. `after` is what follows the line: a frame may go on there.
 * The indentation is kept. Returns the length, which may be above that of `line`. */
size_t oos_normal_line(oos_view line, oos_view after, char *to, size_t capacity);

oos_view oos_normal_trim(oos_view line); /* without blanks at its end */

/* Copy without colour codes; also those whose ESC was lost in a paste ("[0;36m"). Returns the new length, which is at
 * most the old one. `to` may be the line itself. */
size_t oos_logline_uncolour(oos_view line, char *to);

oos_logline oos_logline_read(oos_view line);

/* Length of docker compose's `sglang-1  | `, and of `  | ` alone; 0: there is none. */
size_t oos_logline_compose(oos_view line);

/* "TP3" of "Worker_TP3", "0" of "VllmWorker rank=0" and "rank0"; empty when the process is no rank. */
oos_view oos_logline_rank(oos_view process);

/* Bytes of a log in whatever wrapper it came: a file or standard input, plain, gz/zst/xz/bz2/lz4, tar, zip, and one
 * wrapper inside another. Memory is bounded; so is what a wrapper may expand to. */

typedef struct oos_logstream oos_logstream;

/* Why a stream ended before its data did. */
typedef enum oos_logstream_cut {
    OOS_LOGSTREAM_WHOLE = 0,
    OOS_LOGSTREAM_TOO_LARGE, /* a wrapper expanded beyond the limit */
    OOS_LOGSTREAM_TOO_DEEP,  /* wrappers inside wrappers: the innermost were not opened */
    OOS_LOGSTREAM_DAMAGED,   /* a wrapper is broken or ends early; what came before it was given out */
    OOS_LOGSTREAM_NOT_OPENED /* this build opens no wrapper: its bytes were given out as they are */
} oos_logstream_cut;

/* `path` "-": standard input. `expand_limit_bytes` bounds what wrappers may expand to, 0: 8 GiB. */
oomsight_status oos_logstream_open(const char *path, uint64_t expand_limit_bytes, oos_logstream **ret_stream,
                                   oomsight_error *reterr);
/* The same over an open file, which is closed with the stream, or at once when this fails. */
oomsight_status oos_logstream_open_fd(int fd, uint64_t expand_limit_bytes, oos_logstream **ret_stream,
                                      oomsight_error *reterr);
/* The same over bytes in memory, which must outlive the stream. */
oomsight_status oos_logstream_open_bytes(oos_view bytes, uint64_t expand_limit_bytes,
                                         oos_logstream **ret_stream, oomsight_error *reterr);
void oos_logstream_close(oos_logstream *stream); /* NULL is fine */

/* Move to the next file; a plain input has one. False: no more. *ret_name is "" for a plain input and lives until the
 * next call. */
bool oos_logstream_next(oos_logstream *stream, const char **ret_name);

/* Up to `capacity` bytes of the current file. *ret_count 0: its end. */
oomsight_status oos_logstream_read(oos_logstream *stream, char *bytes, size_t capacity, size_t *ret_count,
                                   oomsight_error *reterr);

oos_logstream_cut oos_logstream_cut_reason(const oos_logstream *stream);
/* It is damaged, and not one byte was given out. */
bool oos_logstream_is_lost(const oos_logstream *stream);

/* The time a line of a log bears, in the forms that containers and engines write. */

#define OOS_TIME_NONE INT64_MIN

enum { OOS_TIME_TEXT_BYTES = 40 };

/* Nanoseconds since 1970, or OOS_TIME_NONE. Looked for at the start of the line (behind a level, a process, an opening
 * bracket) and, in a line that is a JSON object, in its time fields. Without a zone it counts as UTC; without a year it is the
 * latest one that does not lie after `now` by more than two days. */
int64_t oos_logtime_read(oos_view line, int64_t now);

int64_t oos_logtime_now(void);

/* RFC 3339 in UTC with milliseconds; NULL for OOS_TIME_NONE, else `to`. */
const char *oos_logtime_print(int64_t time, char to[OOS_TIME_TEXT_BYTES]);

/* Bytes fetched ahead by a thread of their own, so that unpacking and scanning share two processors. */

typedef struct oos_readahead oos_readahead;

/* `fill` gives the next bytes, 0 or less at the end; it is called by the thread only, until stop() returns. NULL: no
 * thread can be had, the caller goes on alone. */
oos_readahead *oos_readahead_start(ssize_t (*fill)(void *context, char *bytes, size_t capacity),
                                   void *context);

/* Waits for bytes. 0: the end. */
size_t oos_readahead_take(oos_readahead *ahead, char *bytes, size_t capacity);

void oos_readahead_stop(oos_readahead *ahead); /* waits for the thread; NULL is fine */

/* From bytes to the lines that matter: the stream is scanned for literals, and each line that holds at least one is
 * handed on once, with its number and with what follows it. Lines without a hit cost nothing but the scan. */

enum { OOS_LINE_HITS_MAX = 64 };

typedef struct oos_hit_line {
    uint64_t number; /* from 1, as an editor counts */
    oos_view text;   /* without its end; may hold colour codes */
    bool torn;       /* not from its beginning: the line is longer than what is looked at */
    bool document;   /* of a text that is no log */
    bool page;       /* ... advice, which quotes what others may see */
    bool source;     /* ... a program's source */
    oos_view after;  /* some bytes that follow the line, at least the next few lines if there are any */
    const uint32_t *literals;
    size_t literal_count;
    /* Of a growing text; else 0 and OOS_TIME_NONE. */
    uint64_t first_byte, end_byte; /* in the file, before anything was undone */
    oos_view timed;                /* what its time is read from, when it is wanted; NULL: `time` is known */
    int64_t time;
} oos_hit_line;

/* Where a scan begins. All zero: a whole text that is read to its end. */
typedef struct oos_scan_origin {
    bool growing;         /* lines come now and then, whole ones as a rule; their places are kept */
    uint64_t byte, lines; /* before what will be read */
} oos_scan_origin;

typedef struct oos_linescan_result {
    uint64_t lines, bytes;
    bool cut_hits, cut_lines; /* more hits in a block, or longer lines, than are looked at */
    bool binary;              /* no text at all: nothing of it was handed on */
    unsigned cleaned;         /* OOS_CLEAN_*: what had to be undone */
} oos_linescan_result;

typedef struct oos_linescan oos_linescan;

/* One file. The bench may serve others in between. */
oomsight_status oos_linescan_open(oos_bench *bench, const oos_scan_origin *origin,
                                  void (*on_line)(void *context, const oos_hit_line *line), void *context,
                                  oos_linescan **ret_scan, oomsight_error *reterr);
void oos_linescan_close(oos_linescan *scan); /* NULL is fine */

/* Where to put the next bytes; oos_linescan_took() says how many were put there. NULL: no memory. */
char *oos_linescan_room(oos_linescan *scan, size_t *ret_capacity);
oomsight_status oos_linescan_took(oos_linescan *scan, size_t count, oomsight_error *reterr);

/* Lines wait for what follows them, or for the decision how to read them. */
bool oos_linescan_waits(const oos_linescan *scan);
/* The first byte that has not been handed on, and the lines before it. */
void oos_linescan_place(const oos_linescan *scan, uint64_t *ret_byte, uint64_t *ret_lines);
uint64_t oos_linescan_lines(const oos_linescan *scan); /* of a growing text: all that were read */

/* Nothing more for now: hand on what waits for more. */
oomsight_status oos_linescan_settle(oos_linescan *scan, oomsight_error *reterr);

/* The file is over. */
oomsight_status oos_linescan_finish(oos_linescan *scan, oos_linescan_result *ret_result,
                                    oomsight_error *reterr);

/* What an input is, by its first bytes: a log, or something else that only happens to hold its words. */

/* No text: a picture, a program, a tensor. Runs of NUL bytes, as a rotated log begins with, do not count, but where `head` is all
 * there is and holds nothing else. */
bool oos_sniff_binary(oos_view head, bool whole);

/* A text that somebody wrote about something: it begins with a title (Markdown, reStructuredText, a manual page). */
bool oos_sniff_document(oos_view head);

/* Of a document: it gives two ways out or more, each with a flag or a setting, has nothing of a log around what it quotes, and nobody
 * speaks of himself in it. */
bool oos_sniff_page(oos_view head);

/* A program's source: it begins as one, half of its lines or more are code or comments, and none of them was printed by a program. */
bool oos_sniff_source(oos_view head);

/* One wrapper around bytes: gz, zst, xz, bz2, lz4, tar or zip, recognised by its first bytes. The edge to libarchive of
 * log/logstream; a build without it (-Darchive=disabled) opens none and says so. */

typedef struct oos_unwrap oos_unwrap;

/* False in a build that opens no wrapper. */
bool oos_unwrap_is_built(void);

typedef enum oos_unwrap_kind {
    OOS_UNWRAP_NONE,
    OOS_UNWRAP_COMPRESSED, /* gz, zst, xz, bz2, lz4: one file without a name */
    OOS_UNWRAP_TAR,
    OOS_UNWRAP_ZIP
} oos_unwrap_kind;

/* `below` gives wrapped bytes, 0 at their end, less when they are broken; `context` is freed with the wrapper, or at once
 * when there is no memory for one (NULL). A wrapper whose first bytes are damaged has no file. */
oos_unwrap *oos_unwrap_open(oos_unwrap_kind kind, ssize_t (*below)(void *context, const void **ret_bytes),
                            void *context);
void oos_unwrap_close(oos_unwrap *wrapper); /* NULL is fine */

/* Move to the next file: 1; 0: there is none; negative: broken. `name` is left alone for a compressed file, which has none. */
int oos_unwrap_next(oos_unwrap *wrapper, char *name, size_t capacity);

/* Bytes of that file, 0 at its end, and where there is none. Negative: broken. */
ssize_t oos_unwrap_read(oos_unwrap *wrapper, char *bytes, size_t capacity);

/* What a user of the engine wrote, in a line that logs a request: prompts, chat messages, bodies of the API, and what the model
 * answered. It may hold the words of any failure and is no evidence of one, nor is it anybody else's to read. */

/* The quoted texts of `line` become "..."; the new length. *ret_lines: lines of `after` that still belong to the last of them, as
 * a prompt with line breaks does where nobody escaped them. A line that logs no request stays as it is. */
size_t oos_usertext_mask(char *line, size_t len, oos_view after, size_t *ret_lines);

/* A message that was broken over lines, as one text. */

enum { OOS_JOINED_MAX_BYTES = 6 << 10, OOS_JOINED_MAX_LINES = 16 };

/* `line` (without colour) and those of the lines in `after` that go on with it, prefixes peeled off, put together
 * without a gap: patterns for such messages allow white space, and the lack of it, between words. Returns the length. */
size_t oos_window_join(oos_view line, oos_view after, char *to, size_t capacity);

/* Text of native code: frames of C and C++ backtraces, and the names in them. They are no sentences, whatever words they
 * hold: std::allocator, c10::Error, at::native::empty_memory_format. */

/* A line of a backtrace as PyTorch, gdb, glibc, glog, Rust, sanitizers and MPI print it. `line` is without the prefixes of a log. */
bool oos_native_is_frame(oos_view line);

/* Length of the name at the beginning of `text`, with its template arguments and parameters: `c10::Error::Error(int)`,
 * `_ZN3c105ErrorC2Ev`. 0: no such name, or one that says itself what was thrown: `std::bad_alloc`. */
size_t oos_native_name(oos_view text);

/* Whose log a path is, by the layouts of Kubernetes and docker. Only parts that keep the rules for such names are taken: the
 * rest of the program may print them anywhere. */

/* An empty string: not told by the path. */
typedef struct oos_origin {
    char space[64]; /* namespace */
    char pod[254];
    char pod_uid[64];
    char container[64];
    int64_t restart; /* -1: not told */
} oos_origin;

oos_origin oos_origin_of(const char *path);

/* What else whoever sends a text knows of it. */
enum { OOS_LABELS_MAX = 32 };
typedef struct oos_label {
    char *key, *value;
} oos_label;

/* A name by the rules of Kubernetes, with dots if they are allowed. False: it is none, or does not fit. */
bool oos_origin_name(oos_view text, bool dots, char *to, size_t capacity);
