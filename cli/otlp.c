/* One request to a receiver of OpenTelemetry on plain HTTP/1.1: connect, send, read the answer, each within one deadline. Nothing is kept between
 * two requests, and no more of an answer is read than its status needs. */
#include "otlp.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ANSWER_BYTES = 64 << 10, LOOK_MS = 100 };
#define REQUEST_SECONDS 10.0

bool otlp_target_read(const char *url, otlp_target *ret_target, const char **ret_why)
{
    static const char scheme[] = "http://";
    otlp_target t = {.port = "4318", .path = "/v1/logs"};
    *ret_why = "needs https, which oomsight does not speak: give http://localhost:4318, a collector on this "
               "machine that sends on";
    if (strncasecmp(url, "https:", 6) == 0) return false;
    *ret_why = "no http://HOST[:PORT][/PATH]";
    if (strncasecmp(url, scheme, sizeof scheme - 1) != 0) return false;
    const char *host = url + sizeof scheme - 1;
    size_t const whole = strcspn(host, "/?#"), bracket = *host == '[' ? strcspn(host, "]") : 0;
    size_t const name = bracket ? bracket + 1 : strcspn(host, ":/?#");
    for (const char *at = url; *at; at++)
        if ((unsigned char)*at <= ' ' || (unsigned char)*at > '~') return false;
    if (name == 0 || name > whole || name >= sizeof t.host || memchr(host, '@', whole)) return false;
    if (name < whole && (host[name] != ':' || whole - name - 1 == 0 || whole - name - 1 >= sizeof t.port ||
                         strspn(host + name + 1, "0123456789") != whole - name - 1))
        return false;
    snprintf(t.host, sizeof t.host, "%.*s", (int)name, host);
    if (name < whole) snprintf(t.port, sizeof t.port, "%.*s", (int)(whole - name - 1), host + name + 1);
    if (host[whole] == '/' && host[whole + 1]) {
        if (strlen(host + whole) >= sizeof t.path) return false;
        snprintf(t.path, sizeof t.path, "%s", host + whole);
    } else if (host[whole] && host[whole] != '/') {
        return false;
    }
    *ret_target = t;
    return true;
}

/* False: the time is over, or the end is asked for. */
static bool ready(int fd, short event, double until, bool (*stopped)(void))
{
    for (double left; (left = until - seconds_since_boot()) > 0 && !stopped();) {
        struct pollfd wanted = {.fd = fd, .events = event};
        int const got = poll(&wanted, 1, left * 1000 < LOOK_MS ? 1 + (int)(left * 1000) : LOOK_MS);
        if (got > 0) return true;
        if (got < 0 && errno != EINTR) return false;
    }
    errno = ETIMEDOUT;
    return false;
}

static int connect_to(const otlp_target *t, double until, bool (*stopped)(void), const char **ret_why)
{
    struct addrinfo const wanted = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM}, *at;
    struct addrinfo *list = NULL;
    char name[sizeof t->host];
    snprintf(name, sizeof name, "%s", *t->host == '[' ? t->host + 1 : t->host);
    name[strcspn(name, "]")] = '\0';
    int const wrong = getaddrinfo(name, t->port, &wanted, &list);
    if (wrong) *ret_why = gai_strerror(wrong);
    int found = -1;
    for (at = wrong ? NULL : list; at && found < 0; at = at->ai_next) {
        int error = 0;
        socklen_t size = sizeof error;
        int const fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        bool ok = fd >= 0 && (connect(fd, at->ai_addr, at->ai_addrlen) == 0 ||
                              (errno == EINPROGRESS && ready(fd, POLLOUT, until, stopped)));
        ok = ok && getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0;
        if (ok) found = fd;
        if (!ok) *ret_why = strerror(error ? error : errno);
        if (!ok && fd >= 0) close(fd);
    }
    if (!wrong) freeaddrinfo(list);
    return found;
}

static bool send_all(int fd, const char *bytes, size_t len, double until, bool (*stopped)(void))
{
    for (size_t at = 0; at < len;) {
        ssize_t const some = send(fd, bytes + at, len - at, MSG_NOSIGNAL);
        if (some > 0)
            at += (size_t)some;
        else if (some < 0 && errno != EAGAIN && errno != EINTR)
            return false;
        else if (!ready(fd, POLLOUT, until, stopped))
            return false;
    }
    return true;
}

static void read_answer(int fd, double until, bool (*stopped)(void), oomsight_otlp_reply *ret_reply)
{
    static char answer[ANSWER_BYTES];
    size_t len = 0;
    for (bool over = false; !oomsight_otlp_answer(answer, len, over, ret_reply) && !over;) {
        ssize_t const some = recv(fd, answer + len, sizeof answer - len, 0);
        if (some > 0)
            len += (size_t)some;
        else if (some < 0 && (errno == EAGAIN || errno == EINTR))
            over = !ready(fd, POLLIN, until, stopped);
        else
            over = true;
        over |= len == sizeof answer;
        if (over) {
            (void)oomsight_otlp_answer(answer, len, 1, ret_reply);
            return;
        }
    }
}

const char *otlp_post(const otlp_target *t, const char *body, bool (*stopped)(void),
                      oomsight_otlp_reply *ret_reply)
{
    char head[sizeof *t + 512];
    double const until = seconds_since_boot() + REQUEST_SECONDS;
    const char *why = "no address";
    size_t const len = strlen(body);
    *ret_reply = (oomsight_otlp_reply){.size = sizeof *ret_reply};
    snprintf(head, sizeof head,
             "POST %s HTTP/1.1\r\nHost: %s:%s\r\nUser-Agent: oomsight/" OOMSIGHT_VERSION
             "\r\nContent-Type: application/json\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n",
             t->path, t->host, t->port, len);
    int const fd = connect_to(t, until, stopped, &why);
    if (fd < 0) return why;
    bool const sent =
        send_all(fd, head, strlen(head), until, stopped) && send_all(fd, body, len, until, stopped);
    int const error = errno;
    read_answer(fd, until, stopped, ret_reply); /* it may have refused before it had read all */
    close(fd);
    if (ret_reply->status) return NULL;
    return sent ? "no answer" : strerror(error);
}
