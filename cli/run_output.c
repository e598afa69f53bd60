/* The command's output on its way through us: passed on byte for byte, its lines read for the phases of an engine. */
#include "cmd_run.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

static void log_add(run_log *log, const char *bytes, size_t len)
{
    size_t const room = sizeof log->head - log->head_len, first = len < room ? len : room;
    memcpy(log->head + log->head_len, bytes, first);
    log->head_len += first;
    for (size_t i = first; i < len; i++) log->tail[log->tail_count++ % sizeof log->tail] = bytes[i];
}

/* Hidden before it is cut: where a private key or a quoted value begins may be far before what is kept of it. */
static void log_pass(run_log *log, run_stream *s, const char *bytes, size_t len)
{
    oomsight_error error;
    char *shown = NULL;
    if (!s->redactor && oomsight_redactor_create(&s->redactor, &error) != OOMSIGHT_OK) return;
    if (oomsight_redactor_feed(s->redactor, bytes, len, &shown, &error) == OOMSIGHT_OK)
        log_add(log, shown, strlen(shown));
    oomsight_text_free(shown);
}

static void window_copy(int from, int to)
{
    struct winsize size;
    if (ioctl(from, TIOCGWINSZ, &size) == 0) ioctl(to, TIOCSWINSZ, &size);
}

/* A terminal that changes nothing of what is written: the real one behind us does. */
static bool terminal_open(run_stream *s)
{
    char name[128];
    struct termios settings;
    s->from = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (s->from < 0) return false;
    s->command_end =
        grantpt(s->from) == 0 && unlockpt(s->from) == 0 && ptsname_r(s->from, name, sizeof name) == 0
            ? open(name, O_RDWR | O_NOCTTY | O_CLOEXEC)
            : -1;
    if (s->command_end < 0) {
        close(s->from);
        return false;
    }
    if (tcgetattr(s->command_end, &settings) == 0) {
        settings.c_oflag &= ~(tcflag_t)OPOST;
        settings.c_lflag &= ~(tcflag_t)ECHO;
        tcsetattr(s->command_end, TCSANOW, &settings);
    }
    window_copy(s->to, s->from);
    return s->terminal = true;
}

static bool stream_open(run_stream *s, int to)
{
    int ends[2];
    *s = (run_stream){.from = -1, .to = to, .command_end = -1};
    if (isatty(to)) return terminal_open(s);
    if (pipe2(ends, O_CLOEXEC) != 0) return false;
    s->from = ends[0];
    s->command_end = ends[1];
    return true;
}

static bool same_place(int a, int b)
{
    struct stat x, y;
    return fstat(a, &x) == 0 && fstat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

static void stream_close(run_stream *s)
{
    if (s->from >= 0) close(s->from);
    s->from = -1;
}

bool run_output_open(run_output *output)
{
    output->count = same_place(STDOUT_FILENO, STDERR_FILENO) ? 1 : 2;
    for (unsigned i = 0; i < output->count; i++)
        if (!stream_open(&output->streams[i], i ? STDERR_FILENO : STDOUT_FILENO)) {
            if (i) stream_close(&output->streams[0]);
            if (i) close(output->streams[0].command_end);
            output->count = 0;
        }
    return output->count > 0;
}

void run_output_give(const run_output *output)
{
    if (!output->count) return;
    dup2(output->streams[0].command_end, STDOUT_FILENO);
    dup2(output->streams[output->count - 1].command_end, STDERR_FILENO);
}

void run_output_started(run_output *output)
{
    for (unsigned i = 0; i < output->count; i++) close(output->streams[i].command_end);
}

void run_output_resized(run_output *output)
{
    for (unsigned i = 0; i < output->count; i++)
        if (output->streams[i].terminal && output->streams[i].from >= 0)
            window_copy(output->streams[i].to, output->streams[i].from);
}

static bool write_all(int fd, const char *bytes, size_t len)
{
    while (len) {
        ssize_t const done = write(fd, bytes, len);
        if (done < 0 && errno == EAGAIN) { /* somebody else's wish; we can wait */
            struct pollfd ready = {fd, POLLOUT, 0};
            poll(&ready, 1, 1000);
        }
        if (done < 0 && errno != EINTR && errno != EAGAIN) return false;
        if (done > 0) bytes += done, len -= (size_t)done;
    }
    return true;
}

static void line_add(run_stream *s, run_output *output, char byte)
{
    if (byte != '\n' && byte != '\r' && s->len < sizeof s->line) {
        s->line[s->len++] = byte;
        return;
    }
    if (byte != '\n' && byte != '\r') return; /* too long for any line that tells something */
    if (s->len) output->said |= oomsight_run_line(output->run, s->line, s->len);
    s->len = 0;
}

/* When nobody takes it any more the command learns of it as it would without us. */
void run_output_pass(run_stream *s, run_output *output)
{
    char bytes[16384];
    ssize_t const got = read(s->from, bytes, sizeof bytes);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
    if (got <= 0 || !write_all(s->to, bytes, (size_t)got)) {
        stream_close(s);
        return;
    }
    log_pass(&output->log, s, bytes, (size_t)got);
    for (ssize_t i = 0; i < got; i++) line_add(s, output, bytes[i]);
}

/* Until nothing is there for `wait_ms`. */
static void pass_rest(run_output *output, int wait_ms)
{
    for (;;) {
        struct pollfd ready[RUN_STREAMS];
        nfds_t count = 0;
        for (unsigned i = 0; i < output->count; i++) {
            ready[i] = (struct pollfd){output->streams[i].from, POLLIN, 0};
            count++;
        }
        int const some = poll(ready, count, wait_ms);
        if (some < 0 && errno == EINTR) continue;
        bool open = false;
        for (unsigned i = 0; some > 0 && i < count; i++)
            if (ready[i].revents) run_output_pass(&output->streams[i], output);
        for (unsigned i = 0; i < output->count; i++) open |= output->streams[i].from >= 0;
        if (some <= 0 || !open) return;
    }
}

void run_output_end(run_output *output)
{
    bool open = false;
    pass_rest(output, 0);
    for (unsigned i = 0; i < output->count; i++) open |= output->streams[i].from >= 0;
    if (!open) return;
    if (fork() == 0) {
        signal(SIGTERM, SIG_DFL);
        signal(SIGHUP, SIG_DFL);
        pass_rest(output, -1);
        _exit(0);
    }
    for (unsigned i = 0; i < output->count; i++) stream_close(&output->streams[i]);
}
