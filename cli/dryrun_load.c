/* Requests for --load: one connection each, over plain HTTP to the own machine, as many at once as were asked for. */
#include "cmd_dryrun.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum { LISTEN_SECONDS = 20 };

static const char *served_name(const dryrun_engine *engine)
{
    for (char **word = engine->command; *word; word++)
        if (strcmp(*word, "--served-model-name") == 0 && word[1]) return word[1];
    return engine->model ? engine->model : "model";
}

static char *request_make(const dryrun_mix *mix, const dryrun_engine *engine, unsigned number,
                          size_t *ret_len)
{
    char *whole = NULL;
    size_t body_len = 0;
    char *body = dryrun_mix_body(mix, served_name(engine), number, &body_len);
    if (!body) return NULL;
    int const len = asprintf(&whole,
                             "POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
                             "Content-Length: %zu\r\nConnection: close\r\n\r\n%s",
                             dryrun_mix_path(mix), body_len, body);
    free(body);
    if (len < 0) return NULL;
    *ret_len = (size_t)len;
    return whole;
}

/* -1: nobody listens. */
static int server_connect(const dryrun_engine *engine)
{
    struct sockaddr_in const address = {.sin_family = AF_INET,
                                        .sin_port = htons((uint16_t)engine->port),
                                        .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int const fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (const struct sockaddr *)&address, sizeof address) == 0) return fd;
    close(fd);
    return -1;
}

/* A server says that it is ready a moment before it listens. */
static void server_wait(const dryrun_engine *engine)
{
    double const until = dryrun_now() + LISTEN_SECONDS;
    int fd;
    while ((fd = server_connect(engine)) < 0 && dryrun_now() < until) poll(NULL, 0, 50);
    if (fd >= 0) close(fd);
}

static int request_send(const dryrun_mix *mix, const dryrun_engine *engine, unsigned number)
{
    size_t len = 0;
    char *request = request_make(mix, engine, number, &len);
    int const fd = request ? server_connect(engine) : -1;
    bool sent = fd >= 0;
    for (size_t at = 0; sent && at < len;) {
        ssize_t const some = send(fd, request + at, len - at, MSG_NOSIGNAL);
        if (some < 0 && errno != EINTR) sent = false;
        if (some > 0) at += (size_t)some;
    }
    free(request);
    if (sent || fd < 0) return fd;
    close(fd);
    return -1;
}

typedef enum fate { UNDER_WAY, ANSWERED, REFUSED, FAILED, ABORTED } fate;

/* One request under way. */
typedef struct request {
    char head[2048]; /* status line, headers, start of the body; ends with 0 */
    size_t head_len;
    bool body;      /* the head is complete */
    int status;     /* of HTTP */
    bool aborts;    /* we leave with the first piece of the answer */
    long long left; /* of the body; -1: until the connection is closed */
} request;

static void head_read(request *r, size_t *ret_beyond)
{
    const char *end = memmem(r->head, r->head_len, "\r\n\r\n", 4);
    if (!end) return;
    r->body = true;
    *ret_beyond = r->head_len - (size_t)(end + 4 - r->head);
    if (r->head_len > 12 && memcmp(r->head, "HTTP/1.", 7) == 0) r->status = atoi(r->head + 9);
    r->left = -1;
    for (const char *line = r->head; line < end; line++) {
        if (strncasecmp(line, "content-length:", 15) == 0) r->left = strtoll(line + 15, NULL, 10);
        line = memchr(line, '\n', (size_t)(end + 2 - line));
        if (!line) break;
    }
}

/* Whole, with that status. */
static fate fate_of(const request *r)
{
    return r->status == 200 ? ANSWERED : r->status >= 400 && r->status < 500 ? REFUSED : FAILED;
}

static fate request_read(request *r, int fd)
{
    char bytes[16384];
    ssize_t const got = read(fd, bytes, sizeof bytes);
    if (got < 0 && errno == EINTR) return UNDER_WAY;
    if (got <= 0) return got == 0 && r->body && r->left < 0 ? fate_of(r) : FAILED;
    size_t beyond = (size_t)got;
    size_t const room = sizeof r->head - 1 - r->head_len;
    size_t const taken = beyond < room ? beyond : room;
    memcpy(r->head + r->head_len, bytes, taken); /* the start of the body too: it says why */
    r->head_len += taken;
    if (!r->body) {
        size_t counted = 0;
        head_read(r, &counted);
        if (!r->body) return r->head_len == sizeof r->head - 1 ? FAILED : UNDER_WAY; /* a head without end */
        beyond = counted + beyond - taken;
    }
    if (r->aborts && r->status == 200 && beyond > 0) return ABORTED;
    if (r->left < 0) return UNDER_WAY;
    r->left -= (long long)beyond;
    return r->left > 0 ? UNDER_WAY : fate_of(r);
}

/* What the server said first, on one line: its status and the start of the body. */
static void refusal_keep(const request *r, dryrun_load_result *result)
{
    char *to = result->refusal;
    if (to[0]) return;
    if (!r || !r->head_len) {
        snprintf(to, sizeof result->refusal, "%s",
                 r ? "the connection was closed without an answer" : "no connection to the server");
        return;
    }
    const char *body = strstr(r->head, "\r\n\r\n");
    int const status = (int)strcspn(r->head, "\r\n");
    snprintf(to, sizeof result->refusal, "%.*s: %.160s", status < 80 ? status : 80, r->head,
             body ? body + 4 : "");
    for (; *to; to++)
        if (*to < ' ' || *to > 126) *to = ' ';
}

/* As many at once as were asked for and descriptors allow, up to what an engine runs at once. */
static unsigned window_size(const dryrun_mix *mix)
{
    struct rlimit limit;
    unsigned window = mix->concurrency ? mix->concurrency : 1024;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
        if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < window + 64)
            window = limit.rlim_cur > 128 ? (unsigned)limit.rlim_cur - 64 : 64;
    }
    return mix->requests < window ? mix->requests : window;
}

typedef struct sender {
    const dryrun_mix *mix;
    const dryrun_engine *engine;
    dryrun_load_result *result;
    unsigned next; /* number of the next request */
    double started;
} sender;

/* Seconds until the next request may go; 0: now, below 0: there is none. */
static double wait_of(const sender *s)
{
    if (s->next >= s->mix->requests) return -1;
    if (s->mix->rate <= 0) return 0;
    double const wait = s->started + s->next / s->mix->rate - dryrun_now();
    return wait > 0 ? wait : 0;
}

/* The next request in this place; without a server the rest is not sent either. */
static bool slot_fill(sender *s, struct pollfd *slot, request *r)
{
    *slot = (struct pollfd){-1, POLLIN, 0};
    if (wait_of(s) != 0) return false;
    *r = (request){.aborts = dryrun_mix_aborts(s->mix, s->next)};
    slot->fd = request_send(s->mix, s->engine, s->next++);
    if (slot->fd >= 0) return true;
    refusal_keep(NULL, s->result);
    s->result->failed += s->mix->requests - s->next + 1;
    s->next = s->mix->requests;
    return false;
}

static void count(dryrun_load_result *result, fate end, const request *r)
{
    if (end == ANSWERED) result->answered++;
    if (end == ABORTED) result->aborted++;
    if (end == REFUSED) result->refused++;
    if (end == FAILED) result->failed++;
    if (end == REFUSED || end == FAILED) refusal_keep(r, result);
    result->seconds = dryrun_now() - result->started;
}

void dryrun_load(const dryrun_mix *mix, const dryrun_engine *engine, dryrun_load_result *result)
{
    unsigned const window = window_size(mix);
    struct pollfd *slots = calloc(window, sizeof *slots);
    request *requests = calloc(window, sizeof *requests);
    sender s = {mix, engine, result, 0, dryrun_now()};
    unsigned open_count = 0;
    if (!slots || !requests) return;
    server_wait(engine);
    result->started = s.started = dryrun_now();
    for (unsigned i = 0; i < window; i++) slots[i].fd = -1;
    for (;;) {
        for (unsigned i = 0; i < window && wait_of(&s) == 0; i++)
            if (slots[i].fd < 0) open_count += slot_fill(&s, &slots[i], &requests[i]);
        double const wait = wait_of(&s);
        if (open_count == 0 && wait < 0) break;
        bool const paced = wait > 0 && open_count < window;
        if (poll(slots, window, paced ? (int)(wait * 1000) + 1 : -1) < 0 && errno != EINTR) break;
        for (unsigned i = 0; i < window; i++) {
            if (slots[i].fd < 0 || !slots[i].revents) continue;
            fate const end = request_read(&requests[i], slots[i].fd);
            if (end == UNDER_WAY) continue;
            count(result, end, &requests[i]);
            close(slots[i].fd);
            slots[i] = (struct pollfd){-1, POLLIN, 0};
            open_count--;
        }
    }
    free(slots);
    free(requests);
}
