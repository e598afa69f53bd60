/* Each incident when it has ended: at the next start, when the engine went on, or after a second without a further sign.
 * Whatever cannot be written is kept and tried again; nothing more is read meanwhile. */
#include "explain_follow.h"
#include "otlp.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { POLL_MS = 200, RETRY_MS = 500, OTLP_RETRY_MAX_MS = 30000 };

static volatile sig_atomic_t interrupted;

static void on_interrupt(int signal)
{
    (void)signal;
    interrupted = 1;
}

/* ---- where incidents go ---- */

typedef struct outlet {
    const char *path; /* NULL: standard output */
    bool sends;       /* to `target`; then standard output has acknowledgements alone */
    otlp_target target;
    long retry_ms; /* before the next try to send; 0: the last one went well */
    int fd;
    dev_t device;
    ino_t inode;
    bool told;
} outlet;

/* A process that was killed while a disk was full leaves half a line. It is ended, or it would swallow the next one. */
static bool end_torn_line(const char *path, off_t size, int to)
{
    char last = '\n';
    int const fd = size > 0 ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0) return true; /* nothing there, or not ours to read */
    if (pread(fd, &last, 1, size - 1) != 1) last = '\n';
    close(fd);
    return last == '\n' || write(to, "\n", 1) == 1;
}

/* A file is appended to, and made anew when it was moved away. */
static bool outlet_ready(outlet *out)
{
    struct stat is;
    if (!out->path) return true;
    if (out->fd >= 0 && stat(out->path, &is) == 0 && is.st_dev == out->device && is.st_ino == out->inode)
        return true;
    if (out->fd >= 0) close(out->fd);
    oomsight_error error = {0};
    out->fd = -1;
    if (oomsight_output_open(out->path, 1, &out->fd, &error) != OOMSIGHT_OK)
        return false; /* errno says why */
    if (fstat(out->fd, &is) != 0) return false;
    if (S_ISREG(is.st_mode) && !end_torn_line(out->path, is.st_size, out->fd)) return false;
    out->device = is.st_dev;
    out->inode = is.st_ino;
    return true;
}

/* *at moves on by what was written. */
static bool outlet_write(outlet *out, const char *text, size_t bytes, size_t *at)
{
    if (!outlet_ready(out)) return false;
    while (*at < bytes) {
        ssize_t const count = write(out->fd, text + *at, bytes - *at);
        if (count < 0 && errno == EINTR && !interrupted) continue;
        if (count <= 0) return false;
        *at += (size_t)count;
    }
    return true;
}

static void pause_ms(long milliseconds)
{
    struct timespec const pause = {.tv_sec = milliseconds / 1000, .tv_nsec = milliseconds % 1000 * 1000000L};
    nanosleep(&pause, NULL);
}

static bool is_stopped(void)
{
    return interrupted != 0;
}

/* ---- to a receiver of OpenTelemetry ---- */

typedef enum sent { SENT, AGAIN, REFUSED, STOPPED } sent;

static sent again(oomsight_agent *agent, outlet *out, const char *why, unsigned status, unsigned wait_s)
{
    if (!out->told && status)
        complain("oomsight: --otlp: the receiver answers %u; trying again, nothing more is read", status);
    else if (!out->told)
        complain("oomsight: --otlp: %s:%s: %s; trying again, nothing more is read", out->target.host,
                 out->target.port, why);
    out->told = true;
    if (agent) oomsight_agent_refused(agent);
    out->retry_ms = out->retry_ms ? 2 * out->retry_ms : RETRY_MS;
    if (out->retry_ms > OTLP_RETRY_MAX_MS) out->retry_ms = OTLP_RETRY_MAX_MS;
    long const wait_ms = wait_s * 1000L > out->retry_ms ? wait_s * 1000L : out->retry_ms;
    for (long ms = 0; ms < wait_ms && !interrupted; ms += POLL_MS) pause_ms(POLL_MS);
    return interrupted ? STOPPED : AGAIN;
}

/* Delivered is what the receiver answers with 200. 400, 413 and 422 are of what was sent: it would be refused for ever. */
static sent send_once(oomsight_agent *agent, outlet *out, const char *text, size_t bytes, size_t *ret_records)
{
    oomsight_otlp_reply reply = {.size = sizeof reply};
    oomsight_error error = {0};
    char *body = NULL;
    if (oomsight_otlp_request(text, bytes, &body, ret_records, &error) != OOMSIGHT_OK)
        return again(agent, out, error.text, 0, 0);
    if (!body) return SENT;
    const char *why = otlp_post(&out->target, body, is_stopped, &reply);
    oomsight_text_free(body);
    if (why || reply.status < 200) return again(agent, out, why ? why : "no answer", reply.status, 0);
    if (reply.status == 400 || reply.status == 413 || reply.status == 422) return REFUSED;
    if (reply.status >= 300) return again(agent, out, "", reply.status, reply.wait_s);
    if (reply.rejected)
        complain("oomsight: --otlp: the receiver took %llu of %zu incidents",
                 (unsigned long long)(*ret_records > reply.rejected ? *ret_records - reply.rejected : 0),
                 *ret_records);
    if (out->told) fputs("oomsight: incidents are sent again\n", stderr);
    out->told = false;
    out->retry_ms = 0;
    return SENT;
}

/* Until all is taken, or the end is asked for. Of several that are refused together each is sent alone. */
static bool send_out(oomsight_agent *agent, outlet *out, const char *text, size_t bytes)
{
    sent how = AGAIN;
    size_t records = 0;
    while (bytes && how == AGAIN) how = send_once(agent, out, text, bytes, &records);
    if (how != REFUSED) return how != STOPPED;
    if (records == 1) {
        complain("oomsight: --otlp: the receiver refuses an incident; it is left out");
        return true;
    }
    for (size_t at = 0; at < bytes;) {
        const char *end = memchr(text + at, '\n', bytes - at);
        size_t const len = end ? (size_t)(end - text) + 1 - at : bytes - at;
        if (!send_out(agent, out, text + at, len)) return false;
        at += len;
    }
    return true;
}

/* The lines that are no incidents come first to `to`; returns their length. */
static size_t acknowledgements(const char *text, size_t bytes, char *to)
{
    static const char head[] = "{\"acknowledged\": ";
    size_t len = 0;
    for (size_t at = 0; at < bytes;) {
        const char *end = memchr(text + at, '\n', bytes - at);
        size_t const line = end ? (size_t)(end - text) + 1 - at : bytes - at;
        if (line >= sizeof head - 1 && memcmp(text + at, head, sizeof head - 1) == 0) {
            memcpy(to + len, text + at, line);
            len += line;
        }
        at += line;
    }
    return len;
}

static bool write_out(oomsight_agent *agent, outlet *out, const char *text, size_t bytes)
{
    size_t at = 0;
    while (!outlet_write(out, text, bytes, &at)) {
        if (!out->told)
            complain("oomsight: %s: incidents cannot be written (%s); trying again, nothing more is read",
                     out->path ? out->path : "standard output", strerror(errno));
        out->told = true;
        if (agent) oomsight_agent_refused(agent);
        if (interrupted) return false;
        pause_ms(RETRY_MS);
    }
    if (bytes && out->told) {
        fputs("oomsight: incidents are written again\n", stderr);
        out->told = false;
    }
    /* Positions may be on the disk before what they stand behind. */
    if (bytes && out->path) fdatasync(out->fd);
    return true;
}

/* Until it is delivered, or until the end is asked for; `agent` NULL: nobody counts attempts. */
static bool put_out(oomsight_agent *agent, outlet *out, const char *text, size_t bytes)
{
    if (!out->sends || !bytes) return write_out(agent, out, text, bytes);
    if (!send_out(agent, out, text, bytes)) return false;
    if (out->path) return write_out(agent, out, text, bytes);
    char *rest = malloc(bytes);
    if (!rest) return false;
    bool const done = write_out(agent, out, rest, acknowledgements(text, bytes, rest));
    free(rest);
    return done;
}

static bool deliver(oomsight_agent *agent, outlet *out, const char *text, size_t bytes)
{
    if (!put_out(agent, out, text, bytes)) return false;
    oomsight_agent_delivered(agent);
    return true;
}

/* ---- the loop ---- */

static void on_trouble(void *context, const char *path, const char *sentence)
{
    (void)context;
    fputs("oomsight: ", stderr);
    for (; *path; path++) fputc((unsigned char)*path < ' ' || *path == 127 ? '?' : *path, stderr);
    complain(": %s", sentence);
}

static int run(oomsight_agent *agent, const cli_options *given, outlet *out, oomsight_error *error)
{
    bool const ends = given->idle.given;
    double const idle_ms = given->idle.number * 1000;
    const char *text;
    size_t bytes;
    uint64_t read = 0;
    for (long quiet_ms = 0; !interrupted && (!ends || (double)quiet_ms <= idle_ms);) {
        if (oomsight_agent_poll(agent, POLL_MS, &text, &bytes, error) != OOMSIGHT_OK) return fail_with(error);
        uint64_t const now = oomsight_agent_bytes_read(agent);
        quiet_ms = now != read || bytes ? 0 : quiet_ms + POLL_MS;
        read = now;
        if (!deliver(agent, out, text, bytes)) return EXIT_INPUT;
        if (oomsight_agent_ended(agent)) break;
    }
    /* An incident that goes on is told whole by the next run, which reads on from before it. */
    if (interrupted && given->state) return oomsight_agent_found_oom(agent) ? EXIT_DOES_NOT_FIT : EXIT_FITS;
    if (oomsight_agent_finish(agent, &text, &bytes, error) != OOMSIGHT_OK) return fail_with(error);
    if (!deliver(agent, out, text, bytes)) return EXIT_INPUT;
    return oomsight_agent_found_oom(agent) ? EXIT_DOES_NOT_FIT : EXIT_FITS;
}

/* --output and --otlp. False: the address is none. */
static bool outlet_of(const cli_options *given, outlet *ret_out)
{
    const char *why;
    *ret_out =
        (outlet){.path = given->output, .fd = given->output ? -1 : STDOUT_FILENO, .sends = given->otlp};
    if (!given->otlp || otlp_target_read(given->otlp, &ret_out->target, &why)) return true;
    complain("oomsight explain: --otlp %s: %s", given->otlp, why);
    return false;
}

static void heed_signals(void)
{
    struct sigaction const action = {.sa_handler = on_interrupt};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    signal(SIGXFSZ, SIG_IGN); /* a limit on file sizes is a full disk like any other */
}

int follow_logs(const cli_options *given, const oomsight_data *data, const char *const *paths,
                size_t path_count)
{
    oomsight_error error = {0};
    oomsight_agent *agent = NULL;
    oomsight_agent_params params = OOMSIGHT_AGENT_PARAMS_INIT;
    outlet out;
    if (!outlet_of(given, &out)) return EXIT_USAGE;
    params.data = data;
    params.paths = paths;
    params.path_count = path_count;
    params.state_dir = given->state;
    params.metrics_file = given->metrics_file;
    params.most_files = (size_t)given->max_files.number;
    params.allow_hub = given->hub && !given->offline;
    params.each = given->each;
    oomsight_render_params render = given->render;
    params.render = &render;
    params.on_trouble = on_trouble;
    struct stat is;
    bool const many = given->otlp || given->state || given->metrics_file || path_count > 1 ||
                      strpbrk(paths[0], "*?[") || (stat(paths[0], &is) == 0 && S_ISDIR(is.st_mode));
    if (many && render.format == OOMSIGHT_FORMAT_TEXT) render.format = OOMSIGHT_FORMAT_JSON;
    heed_signals();
    if (oomsight_agent_open(&params, &agent, &error) != OOMSIGHT_OK) return fail_with(&error);
    int const code = run(agent, given, &out, &error);
    oomsight_agent_close(agent);
    if (out.path && out.fd >= 0) close(out.fd);
    return code;
}

/* ---- lines of other programs ---- */

/* Bytes that are there, or none after a while; *ret_over: there will be no more. */
static size_t read_input(char *room, size_t capacity, bool *ret_over)
{
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    if (poll(&input, 1, POLL_MS) <= 0) return 0;
    ssize_t const got = read(STDIN_FILENO, room, capacity);
    *ret_over = got == 0 || (got < 0 && errno != EINTR && errno != EAGAIN);
    return got > 0 ? (size_t)got : 0;
}

static int read_streams(oomsight_streams *streams, outlet *out, oomsight_error *error)
{
    static char room[1 << 16];
    bool over = false, refused_told = false, kept_told = false;
    const char *text;
    size_t bytes;
    while (!interrupted && !over) {
        size_t const count = read_input(room, sizeof room, &over);
        if (count && oomsight_streams_push(streams, room, count, error) != OOMSIGHT_OK)
            return fail_with(error);
        if (oomsight_streams_next(streams, over, &text, &bytes, error) != OOMSIGHT_OK)
            return fail_with(error);
        if (!put_out(NULL, out, text, bytes)) return EXIT_INPUT;
        if (!oomsight_streams_delivered(streams) && !kept_told) {
            complain("oomsight: --state cannot be written (%s); reading goes on", strerror(errno));
            kept_told = true;
        }
        if (oomsight_streams_refused(streams) && !refused_told) {
            complain("oomsight explain: a record without \"stream\" and \"line\" is left out, and so are "
                     "others like it");
            refused_told = true;
        }
    }
    return oomsight_streams_found_oom(streams) ? EXIT_DOES_NOT_FIT : EXIT_FITS;
}

int follow_streams(const cli_options *given, const oomsight_data *data)
{
    oomsight_error error = {0};
    oomsight_streams *streams = NULL;
    oomsight_streams_params params = OOMSIGHT_STREAMS_PARAMS_INIT;
    outlet out;
    if (!outlet_of(given, &out)) return EXIT_USAGE;
    params.data = data;
    params.state_dir = given->state;
    params.most_streams = (size_t)given->max_files.number;
    params.allow_hub = given->hub && !given->offline;
    params.each = given->each;
    heed_signals();
    if (oomsight_streams_open(&params, &streams, &error) != OOMSIGHT_OK) return fail_with(&error);
    int const code = read_streams(streams, &out, &error);
    oomsight_streams_close(streams);
    if (out.path && out.fd >= 0) close(out.fd);
    return code;
}
