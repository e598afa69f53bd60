/* A thread of its own answers from the text that was published last; the lock is held for the time of a copy. Every connection
 * carries one request, has a deadline for the whole of it, and can be given up for a newer one. */
#include "follow/follow.h"
#include "base/file.h"
#include "base/locale.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    REQUEST_MS = 10000, /* from the connection to the last byte of the request's head */
    ANSWER_MS = 10000,  /* to take the answer */
    DRAIN_MS =
        1000, /* what the client still sends is read for so long: a reset would take the answer from it */
    PAUSE_MS = 100, /* after a connection that could not be had (no descriptor is free) */
    FRESH_MS = 30000,
    ACCEPTS_PER_TURN = 16,
    BACKLOG = 64
};

/* In the order in which connections are given up when a place is wanted. */
typedef enum state { STATE_FREE, STATE_DRAINING, STATE_READING, STATE_WRITING } state;

typedef struct peer {
    uint64_t high, low; /* of IPv6 the first half alone: the other half is any customer's to choose */
} peer;

typedef struct connection {
    state state;
    int fd;
    peer peer;
    uint64_t number; /* in the order of arrival */
    int64_t deadline_ms;
    size_t len; /* of `head` */
    char *answer;
    size_t answer_len, sent;
    char head[OOS_HTTP_HEAD_MAX];
} connection;

struct oos_http {
    int listener, wake; /* -1: none */
    bool running;
    pthread_t thread;
    pthread_mutex_t lock; /* over text and published_ms */
    char *text;           /* NULL: nothing yet */
    int64_t published_ms;
    unsigned port;
    uint64_t arrivals;
    int64_t paused_until_ms;
    connection connections[OOS_HTTP_CONNECTIONS_MAX];
};

/* ---- answers ---- */

typedef struct reply {
    const char *status, *kind, *more, *body;
} reply;

static const char plain_kind[] = "text/plain; charset=utf-8";

static reply reply_to(oos_http_wish wish, const char *metrics, bool fresh)
{
    switch (wish) {
    case OOS_HTTP_METRICS:
        return (reply){"200 OK", "text/plain; version=0.0.4; charset=utf-8", "", metrics ? metrics : ""};
    case OOS_HTTP_HEALTH:
        if (fresh) return (reply){"200 OK", plain_kind, "", "ok\n"};
        return (reply){"503 Service Unavailable", plain_kind, "", "nothing was read for a while\n"};
    case OOS_HTTP_ELSEWHERE:
        return (reply){"404 Not Found", plain_kind, "", "there are /metrics and /healthz\n"};
    case OOS_HTTP_METHOD:
        return (reply){"405 Method Not Allowed", plain_kind, "Allow: GET, HEAD\r\n", "only GET\n"};
    case OOS_HTTP_TOO_LONG:
        return (reply){"431 Request Header Fields Too Large", plain_kind, "", "the request is too long\n"};
    case OOS_HTTP_PARTIAL:
    case OOS_HTTP_GARBAGE:
    default: return (reply){"400 Bad Request", plain_kind, "", "this is no request\n"};
    }
}

static char *format_answer(const reply *r, bool head_only, size_t *ret_len)
{
    char head[512];
    size_t const body_len = strlen(r->body);
    int const head_len = snprintf(head, sizeof head,
                                  "HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n%s"
                                  "X-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n",
                                  r->status, r->kind, body_len, r->more);
    size_t const len = (size_t)head_len + (head_only ? 0 : body_len);
    char *answer = malloc(len + 1);
    if (!answer) return NULL;
    memcpy(answer, head, (size_t)head_len);
    if (!head_only) memcpy(answer + head_len, r->body, body_len);
    *ret_len = len;
    return answer;
}

/* ---- connections ---- */

static void give_up(connection *c)
{
    if (c->state == STATE_FREE) return;
    close(c->fd);
    free(c->answer);
    c->answer = NULL;
    c->state = STATE_FREE;
}

static bool may_wait(void)
{
    return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

/* The answer is out: the other side is told that no more comes, and has a moment to stop talking. */
static void begin_draining(connection *c)
{
    free(c->answer);
    c->answer = NULL;
    c->state = STATE_DRAINING;
    c->deadline_ms = oos_clock_ms() + DRAIN_MS;
    if (shutdown(c->fd, SHUT_WR) != 0) give_up(c);
}

static void drain(connection *c)
{
    ssize_t const got = recv(c->fd, c->head, sizeof c->head, 0);
    if (got == 0 || (got < 0 && !may_wait())) give_up(c);
}

static void write_answer(connection *c)
{
    ssize_t const sent = send(c->fd, c->answer + c->sent, c->answer_len - c->sent, MSG_NOSIGNAL);
    if (sent < 0) {
        if (!may_wait()) give_up(c);
        return;
    }
    c->sent += (size_t)sent;
    if (c->sent == c->answer_len) begin_draining(c);
}

static void begin_answer(oos_http *http, connection *c, oos_http_request request)
{
    pthread_mutex_lock(&http->lock);
    bool const fresh = http->text && oos_clock_ms() - http->published_ms <= FRESH_MS;
    reply const r = reply_to(request.wish, http->text, fresh);
    c->answer = format_answer(&r, request.head_only, &c->answer_len);
    pthread_mutex_unlock(&http->lock);
    if (!c->answer) {
        give_up(c);
        return;
    }
    c->sent = 0;
    c->state = STATE_WRITING;
    c->deadline_ms = oos_clock_ms() + ANSWER_MS;
    write_answer(c);
}

static void read_request(oos_http *http, connection *c)
{
    ssize_t const got = recv(c->fd, c->head + c->len, sizeof c->head - c->len, 0);
    if (got < 0 && may_wait()) return;
    if (got <= 0) { /* who stops talking in the middle of a request is not owed an answer */
        give_up(c);
        return;
    }
    c->len += (size_t)got;
    oos_http_request const request = oos_http_request_read(c->head, c->len);
    if (request.wish != OOS_HTTP_PARTIAL) begin_answer(http, c, request);
}

static void serve(oos_http *http, connection *c)
{
    switch (c->state) {
    case STATE_READING: read_request(http, c); break;
    case STATE_WRITING: write_answer(c); break;
    case STATE_DRAINING: drain(c); break;
    case STATE_FREE:
    default: break;
    }
}

/* ---- places ---- */

static peer peer_of(const struct sockaddr_storage *from)
{
    peer p = {0, 0};
    if (from->ss_family == AF_INET6)
        memcpy(&p.high, &((const struct sockaddr_in6 *)(const void *)from)->sin6_addr, sizeof p.high);
    else
        p.low = ((const struct sockaddr_in *)(const void *)from)->sin_addr.s_addr;
    return p;
}

static bool same_peer(peer a, peer b)
{
    return a.high == b.high && a.low == b.low;
}

static unsigned count_of(const oos_http *http, peer p)
{
    unsigned count = 0;
    for (size_t i = 0; i < OOS_HTTP_CONNECTIONS_MAX; i++)
        count += http->connections[i].state != STATE_FREE && same_peer(http->connections[i].peer, p);
    return count;
}

/* Is `a` rather to be given up than `b`: of an address with more connections, then by its state, then by its age. */
static bool rather(const oos_http *http, const connection *a, const connection *b)
{
    unsigned const of_a = count_of(http, a->peer), of_b = count_of(http, b->peer);
    if (of_a != of_b) return of_a > of_b;
    return a->state != b->state ? a->state < b->state : a->number < b->number;
}

/* A place for a new connection. An address that has its share pays with one of its own, a full house with one of the address
 * that has most: so who only holds connections open shuts nobody out, himself included. */
static connection *make_room(oos_http *http, peer newcomer)
{
    bool const full_share = count_of(http, newcomer) >= OOS_HTTP_PER_ADDRESS_MAX;
    connection *place = NULL, *victim = NULL;
    for (size_t i = 0; i < OOS_HTTP_CONNECTIONS_MAX; i++) {
        connection *c = &http->connections[i];
        if (c->state == STATE_FREE)
            place = c;
        else if ((!full_share || same_peer(c->peer, newcomer)) && (!victim || rather(http, c, victim)))
            victim = c;
    }
    if (place && !full_share) return place;
    give_up(victim);
    return victim;
}

static bool accept_one(oos_http *http)
{
    struct sockaddr_storage from = {0};
    socklen_t len = sizeof from;
    int const fd = accept4(http->listener, (void *)&from, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) {
        /* Without a free descriptor the listener stays readable: looking again at once would be a loop. */
        if (!may_wait() && errno != ECONNABORTED) http->paused_until_ms = oos_clock_ms() + PAUSE_MS;
        return errno == ECONNABORTED;
    }
    peer const p = peer_of(&from);
    connection *c = make_room(http, p);
    c->state = STATE_READING;
    c->fd = fd;
    c->peer = p;
    c->number = ++http->arrivals;
    c->deadline_ms = oos_clock_ms() + REQUEST_MS;
    c->len = 0;
    read_request(http, c); /* mostly it is there already */
    return true;
}

/* ---- the thread ---- */

static int wait_ms(const oos_http *http, int64_t now)
{
    int64_t nearest = now + FRESH_MS;
    if (http->paused_until_ms > now) nearest = http->paused_until_ms;
    for (size_t i = 0; i < OOS_HTTP_CONNECTIONS_MAX; i++) {
        const connection *c = &http->connections[i];
        if (c->state != STATE_FREE && c->deadline_ms < nearest) nearest = c->deadline_ms;
    }
    return nearest > now ? (int)(nearest - now) : 0;
}

/* One turn; false: it is time to go. */
static bool turn(oos_http *http)
{
    struct pollfd fds[2 + OOS_HTTP_CONNECTIONS_MAX];
    int64_t now = oos_clock_ms();
    fds[0] = (struct pollfd){.fd = http->wake, .events = POLLIN};
    fds[1] = (struct pollfd){.fd = http->paused_until_ms > now ? -1 : http->listener, .events = POLLIN};
    for (size_t i = 0; i < OOS_HTTP_CONNECTIONS_MAX; i++) {
        const connection *c = &http->connections[i];
        fds[2 + i] = (struct pollfd){.fd = c->state == STATE_FREE ? -1 : c->fd,
                                     .events = c->state == STATE_WRITING ? POLLOUT : POLLIN};
    }
    if (poll(fds, sizeof fds / sizeof *fds, wait_ms(http, now)) < 0 && errno != EINTR) return false;
    if (fds[0].revents) return false;
    now = oos_clock_ms();
    for (size_t i = 0; i < OOS_HTTP_CONNECTIONS_MAX; i++) {
        connection *c = &http->connections[i];
        if (fds[2 + i].fd >= 0 && fds[2 + i].revents) serve(http, c);
        if (c->state != STATE_FREE && c->deadline_ms <= now) give_up(c);
    }
    /* Newcomers last: a place that was served above is free for them, and none of `fds` means another connection. */
    for (int i = 0; fds[1].revents && i < ACCEPTS_PER_TURN && accept_one(http); i++) {
    }
    return true;
}

static void *run(void *context)
{
    oos_http *http = context;
    while (turn(http)) {
    }
    return NULL;
}

/* Signals are the business of the thread that asked for a listener. */
static bool start_thread(oos_http *http)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    http->running = pthread_create(&http->thread, NULL, run, http) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return http->running;
}

/* ---- opening ---- */

/* "PORT", "ADDRESS:PORT", "[ADDRESS]:PORT" */
static bool read_address(const char *address, struct sockaddr_storage *to)
{
    char host[64] = "127.0.0.1";
    const char *colon = strrchr(address, ':'), *port = colon ? colon + 1 : address;
    char *end;
    unsigned long const number = strtoul(port, &end, 10);
    if (end == port || *end || number > 65535 || *port < '0' || *port > '9') return false;
    if (colon) {
        size_t len = (size_t)(colon - address);
        if (len > 2 && address[0] == '[' && address[len - 1] == ']') {
            address++;
            len -= 2;
        }
        if (len == 0 || len >= sizeof host) return false;
        memcpy(host, address, len);
        host[len] = '\0';
    }
    struct sockaddr_in *four = (void *)to;
    struct sockaddr_in6 *six = (void *)to;
    memset(to, 0, sizeof *to);
    if (inet_pton(AF_INET, host, &four->sin_addr) == 1) {
        four->sin_family = AF_INET;
        four->sin_port = htons((uint16_t)number);
        return true;
    }
    if (inet_pton(AF_INET6, host, &six->sin6_addr) == 1) {
        six->sin6_family = AF_INET6;
        six->sin6_port = htons((uint16_t)number);
        return true;
    }
    return false;
}

static bool listen_on(oos_http *http, const struct sockaddr_storage *at)
{
    int const yes = 1;
    bool const six = at->ss_family == AF_INET6;
    socklen_t len = six ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
    struct sockaddr_storage bound = {0};
    http->listener = socket(at->ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (http->listener < 0) return false;
    setsockopt(http->listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes); /* after a restart, at once */
    if (six) setsockopt(http->listener, IPPROTO_IPV6, IPV6_V6ONLY, &yes, sizeof yes);
    if (bind(http->listener, (const void *)at, len) != 0 || listen(http->listener, BACKLOG) != 0)
        return false;
    if (getsockname(http->listener, (void *)&bound, &len) != 0) return false;
    http->port = ntohs(six ? ((struct sockaddr_in6 *)(void *)&bound)->sin6_port
                           : ((struct sockaddr_in *)(void *)&bound)->sin_port);
    http->wake = eventfd(0, EFD_CLOEXEC);
    return http->wake >= 0 && start_thread(http);
}

oomsight_status oos_http_open(const char *address, oos_http **ret_http, oomsight_error *reterr)
{
    struct sockaddr_storage at;
    if (!read_address(address, &at))
        return oos_fail(reterr, OOMSIGHT_USAGE, "'%s' is not PORT or ADDRESS:PORT", address);
    oos_http *http = calloc(1, sizeof *http);
    if (!http || pthread_mutex_init(&http->lock, NULL) != 0) {
        free(http);
        return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a listener");
    }
    http->listener = http->wake = -1;
    if (!listen_on(http, &at)) {
        oos_fail(reterr, OOMSIGHT_IO, "cannot listen on %s: %s", address, oos_errno_text(errno));
        oos_http_close(http);
        return OOMSIGHT_IO;
    }
    *ret_http = http;
    return OOMSIGHT_OK;
}

void oos_http_close(oos_http *http)
{
    if (!http) return;
    if (http->running) {
        uint64_t const one = 1;
        while (write(http->wake, &one, sizeof one) < 0 && errno == EINTR) {
        }
        pthread_join(http->thread, NULL);
    }
    for (size_t i = 0; i < OOS_HTTP_CONNECTIONS_MAX; i++) give_up(&http->connections[i]);
    if (http->listener >= 0) close(http->listener);
    if (http->wake >= 0) close(http->wake);
    pthread_mutex_destroy(&http->lock);
    free(http->text);
    free(http);
}

unsigned oos_http_port(const oos_http *http)
{
    return http->port;
}

void oos_http_publish(oos_http *http, char *text)
{
    pthread_mutex_lock(&http->lock);
    char *old = http->text;
    http->text = text;
    http->published_ms = oos_clock_ms();
    pthread_mutex_unlock(&http->lock);
    free(old);
}
