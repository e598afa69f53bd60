/* libmicrohttpd's own thread answers from the text that was published last; the lock is held for the time of a copy. */
#include "http/http.h"
#include "base/locale.h"

#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    CONNECTIONS_MAX = 16,
    PER_ADDRESS_MAX = 8,
    IDLE_SECONDS = 10,
    FRESH_SECONDS = 30,
    REQUEST_BYTES = 16 << 10
};

struct oos_http {
    struct MHD_Daemon *daemon;
    pthread_mutex_t lock;
    char *text; /* NULL: nothing yet */
    time_t published;
    unsigned port;
};

static time_t clock_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec;
}

static enum MHD_Result answer(struct MHD_Connection *connection, unsigned code, char *text, const char *kind)
{
    struct MHD_Response *response =
        text ? MHD_create_response_from_buffer(strlen(text), text, MHD_RESPMEM_MUST_FREE) : NULL;
    if (!response) {
        free(text);
        return MHD_NO;
    }
    MHD_add_response_header(response, "Content-Type", kind);
    MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    if (code == MHD_HTTP_METHOD_NOT_ALLOWED) MHD_add_response_header(response, "Allow", "GET, HEAD");
    enum MHD_Result const queued = MHD_queue_response(connection, code, response);
    MHD_destroy_response(response);
    return queued;
}

static enum MHD_Result on_request(void *context, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *body,
                                  size_t *body_bytes, void **request)
{
    static const char plain[] = "text/plain; charset=utf-8";
    static int seen;
    oos_http *http = context;
    (void)version;
    (void)body;
    if (!*request) { /* the head alone; a body, if one comes, is thrown away */
        *request = &seen;
        return MHD_YES;
    }
    if (*body_bytes) {
        *body_bytes = 0;
        return MHD_YES;
    }
    if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
        return answer(connection, MHD_HTTP_METHOD_NOT_ALLOWED, strdup("only GET\n"), plain);
    bool const metrics = strcmp(url, "/metrics") == 0, health = strcmp(url, "/healthz") == 0;
    if (!metrics && !health)
        return answer(connection, MHD_HTTP_NOT_FOUND, strdup("there are /metrics and /healthz\n"), plain);
    pthread_mutex_lock(&http->lock);
    bool const fresh = http->text && clock_s() - http->published <= FRESH_SECONDS;
    char *text = !metrics ? NULL : strdup(http->text ? http->text : "");
    pthread_mutex_unlock(&http->lock);
    if (metrics) return answer(connection, MHD_HTTP_OK, text, "text/plain; version=0.0.4; charset=utf-8");
    return answer(connection, fresh ? MHD_HTTP_OK : MHD_HTTP_SERVICE_UNAVAILABLE,
                  strdup(fresh ? "ok\n" : "nothing was read for a while\n"), plain);
}

/* "PORT", "ADDRESS:PORT", "[ADDRESS]:PORT" */
static bool read_address(const char *address, struct sockaddr_storage *to)
{
    char host[64] = "127.0.0.1";
    const char *colon = strrchr(address, ':'), *port = colon ? colon + 1 : address;
    char *end;
    unsigned long const number = strtoul(port, &end, 10);
    if (end == port || *end || number > 65535 || *port == '-' || *port == '+') return false;
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
    unsigned const flags =
        MHD_USE_POLL_INTERNAL_THREAD | (at.ss_family == AF_INET6 ? (unsigned)MHD_USE_IPv6 : 0u);
    http->daemon = MHD_start_daemon(
        flags, 0, NULL, NULL, on_request, http, MHD_OPTION_SOCK_ADDR, &at, MHD_OPTION_CONNECTION_LIMIT,
        (unsigned)CONNECTIONS_MAX, MHD_OPTION_PER_IP_CONNECTION_LIMIT, (unsigned)PER_ADDRESS_MAX,
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_SECONDS, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        (size_t)REQUEST_BYTES, MHD_OPTION_END);
    if (!http->daemon) {
        oos_fail(reterr, OOMSIGHT_IO, "cannot listen on %s: %s", address, oos_errno_text(errno));
        oos_http_close(http);
        return OOMSIGHT_IO;
    }
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(http->daemon, MHD_DAEMON_INFO_BIND_PORT);
    http->port = info ? info->port : 0;
    *ret_http = http;
    return OOMSIGHT_OK;
}

void oos_http_close(oos_http *http)
{
    if (!http) return;
    if (http->daemon) MHD_stop_daemon(http->daemon);
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
    http->published = clock_s();
    pthread_mutex_unlock(&http->lock);
    free(old);
}
