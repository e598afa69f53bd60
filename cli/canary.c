/* oomsight doctor --canary: is silence health? A failure that everybody knows is written into a log that is followed, and awaited where incidents
 * arrive. The size of its request tells it from others. */
#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define START "INFO 01-01 00:00:00 [api_server.py:1] vLLM API server version 0.19.1\n"
enum { WITHIN_S = 90, LOOK_MS = 500, LEAST_MIB = 10000, MOST_MIB = 60000, MARK_BYTES = 24 };

typedef struct sink {
    const char *path; /* "-": standard input; NULL: positions in `state` */
    const char *state;
    uint64_t device, inode, until; /* of the log: positions behind this are awaited */
    int fd;
    struct stat is;
    char mark[MARK_BYTES]; /* the bytes that it asked for, as JSON has them */
    bool over;             /* standard input has ended */
} sink;

/* In one piece, at the end of a plain file; errno says why not. */
static bool write_canary(const char *path, unsigned mib, sink *to)
{
    char text[1024];
    struct stat is;
    int const start = snprintf(
        text, sizeof text,
        START
        "INFO 01-01 00:00:00 [gpu_model_runner.py:1] Starting to load model canary...\n"
        "  File \"/usr/lib/python3/site-packages/vllm/v1/worker/gpu_worker.py\", line 381, in load_model\n"
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate %u.00 MiB. GPU 0 has a total capacity "
        "of "
        "79.11 GiB of which 1.00 MiB is free. Of the allocated memory 70.00 GiB is allocated by PyTorch, and "
        "1.00 MiB is reserved by PyTorch but unallocated.\n",
        mib);
    int const len = start + snprintf(text + start, sizeof text - (size_t)start, START); /* ends the failure */
    int const fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0644);
    if (fd < 0) return false;
    bool done = fstat(fd, &is) == 0;
    if (done && !S_ISREG(is.st_mode)) done = false, errno = EINVAL;
    done = done && write(fd, text, (size_t)len) == len;
    int const why = errno;
    close(fd);
    to->device = (uint64_t)is.st_dev;
    to->inode = (uint64_t)is.st_ino;
    to->until = (uint64_t)is.st_size + (uint64_t)start;
    errno = why;
    return done;
}

/* A file is looked at from its end on, or from its beginning when it was moved away or cut meanwhile. */
static bool open_sink(sink *s, bool first)
{
    struct stat is;
    if (!s->path || strcmp(s->path, "-") == 0) return true;
    if (stat(s->path, &is) != 0) return errno == ENOENT;
    if (!S_ISREG(is.st_mode)) return errno = EINVAL, false;
    bool const same = s->fd >= 0 && is.st_ino == s->is.st_ino && is.st_dev == s->is.st_dev;
    if (!same) {
        if (s->fd >= 0) close(s->fd);
        s->fd = open(s->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        if (s->fd < 0) return false;
        if (first) lseek(s->fd, 0, SEEK_END);
    } else if (is.st_size < lseek(s->fd, 0, SEEK_CUR)) {
        lseek(s->fd, 0, SEEK_SET);
    }
    s->is = is;
    return true;
}

/* What has come since the last look; a mark may come in two pieces. */
static bool has_come(sink *s)
{
    static char text[MARK_BYTES + (1 << 16)];
    static size_t kept;
    struct pollfd input = {.fd = s->fd, .events = POLLIN};
    while (s->fd >= 0 && !s->over && poll(&input, 1, 0) > 0) {
        ssize_t const got = read(s->fd, text + kept, sizeof text - kept);
        if (got <= 0) {
            s->over = s->fd == STDIN_FILENO;
            return false;
        }
        size_t const len = kept + (size_t)got;
        if (memmem(text, len, s->mark, strlen(s->mark))) return true;
        kept = len < MARK_BYTES ? len : MARK_BYTES;
        memmove(text, text + len - kept, kept);
    }
    return false;
}

/* 1: it arrived; 0: not yet; -1: it cannot be looked for, errno says why. */
static int look(sink *s)
{
    uint64_t byte;
    if (!s->path) return oomsight_agent_stands(s->state, s->device, s->inode, &byte) && byte >= s->until;
    if (!open_sink(s, false)) return -1;
    return has_come(s);
}

static int tell(const cli_options *given, int code, const char *format, double seconds)
{
    oomsight_error error = {0};
    char line[160], *words = NULL;
    snprintf(line, sizeof line, format, seconds);
    oomsight_status const status = oomsight_words(chosen_language, line, &words, &error);
    size_t const len = status == OOMSIGHT_OK ? strlen(words) : 0;
    char *text = len ? realloc(words, len + 2) : words;
    if (text && len) memcpy(text + len, "\n", 2);
    int const written = output_give(given, status, text, &error);
    return written == EXIT_FITS ? code : written;
}

static int could_not(const char *path)
{
    oomsight_error error = {.status = OOMSIGHT_IO};
    snprintf(error.path, sizeof error.path, "%s", path);
    snprintf(error.text, sizeof error.text, "%s", strerror(errno));
    return fail_with(&error);
}

int canary_send(const cli_options *given)
{
    struct timespec const pause = {.tv_nsec = LOOK_MS * 1000000L};
    double const within = number_or(given->timeout, WITHIN_S);
    struct timespec clock;
    sink s = {.path = given->sink, .state = given->state, .fd = -1};
    if (!s.path == !s.state || given->render.format != OOMSIGHT_FORMAT_TEXT) {
        complain("oomsight doctor: --canary takes --sink or --state, one of them, and its answer is text");
        return EXIT_USAGE;
    }
    if (s.path && strcmp(s.path, "-") == 0) s.fd = STDIN_FILENO;
    if (!open_sink(&s, true)) return could_not(s.path);
    clock_gettime(CLOCK_REALTIME, &clock);
    unsigned const mib = LEAST_MIB + (unsigned)(clock.tv_nsec ^ clock.tv_sec) % (MOST_MIB - LEAST_MIB);
    snprintf(s.mark, sizeof s.mark, "%llu", (unsigned long long)mib << 20);
    if (!write_canary(given->canary, mib, &s)) return could_not(given->canary);
    double const begin = seconds_since_boot();
    for (double took = 0; took < within && !s.over; took = seconds_since_boot() - begin) {
        int const came = look(&s);
        if (came < 0) return could_not(s.path);
        if (came) return tell(given, EXIT_FITS, "the canary arrived after %.1f s", took);
        nanosleep(&pause, NULL);
    }
    if (s.over) return tell(given, EXIT_INPUT, "standard input ended before the canary arrived", 0);
    return tell(given, EXIT_DOES_NOT_FIT, "the canary did not arrive within %.0f s", within);
}
