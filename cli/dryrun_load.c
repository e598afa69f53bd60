/* Requests for --load: token numbers as prompts, a thousand at once, one connection each, over plain HTTP to the own
 * machine. */
#include "dryrun.h"

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

static const char *served_name(const dryrun_engine *engine)
{
    for (char **word = engine->command; *word; word++)
        if (strcmp(*word, "--served-model-name") == 0 && word[1]) return word[1];
    return engine->model ? engine->model : "model";
}

static void put_escaped(FILE *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '"' || *text == '\\') fputc('\\', out);
        fputc(*text, out);
    }
}

/* Prompts differ from their first token on, so that no prefix is shared. */
static char *request_make(const dryrun_options *options, const dryrun_engine *engine, unsigned number,
                          size_t *ret_len)
{
    char *body = NULL, *whole = NULL;
    size_t body_len = 0;
    FILE *out = open_memstream(&body, &body_len);
    if (!out) return NULL;
    fputs("{\"model\":\"", out);
    put_escaped(out, served_name(engine));
    fputs("\",\"prompt\":[", out);
    for (unsigned i = 0; i < options->load_input; i++)
        fprintf(out, "%s%u", i ? "," : "", 3 + (number * 7919u + i * (31u + number)) % 1000u);
    fprintf(out, "],\"max_tokens\":%u,\"temperature\":1.0,\"ignore_eos\":true}", options->load_output);
    fclose(out);
    int const len =
        asprintf(&whole,
                 "POST /v1/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
                 "Content-Length: %zu\r\nConnection: close\r\n\r\n%s",
                 body_len, body);
    free(body);
    if (len < 0) return NULL;
    *ret_len = (size_t)len;
    return whole;
}

static int request_send(const dryrun_options *options, const dryrun_engine *engine, unsigned number)
{
    struct sockaddr_in const address = {.sin_family = AF_INET,
                                        .sin_port = htons((uint16_t)engine->port),
                                        .sin_addr = {htonl(INADDR_LOOPBACK)}};
    size_t len = 0;
    char *request = request_make(options, engine, number, &len);
    int const fd = request ? socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0) : -1;
    bool sent = fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof address) == 0;
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

/* One request under way. */
typedef struct request {
    char head[2048]; /* status line, headers, start of the body; ends with 0 */
    size_t head_len;
    bool body;      /* the head is complete */
    bool ok;        /* status 200 */
    long long left; /* of the body; -1: until the connection is closed */
} request;

static void head_read(request *r, size_t *ret_beyond)
{
    const char *end = memmem(r->head, r->head_len, "\r\n\r\n", 4);
    if (!end) return;
    r->body = true;
    *ret_beyond = r->head_len - (size_t)(end + 4 - r->head);
    r->ok = r->head_len > 12 && memcmp(r->head, "HTTP/1.1 200", 12) == 0;
    r->left = -1;
    for (const char *line = r->head; line < end; line++) {
        if (strncasecmp(line, "content-length:", 15) == 0) r->left = strtoll(line + 15, NULL, 10);
        line = memchr(line, '\n', (size_t)(end + 2 - line));
        if (!line) break;
    }
}

/* True: this request is over, answered or not. */
static bool request_read(request *r, int fd, bool *ret_answered)
{
    char bytes[16384];
    ssize_t const got = read(fd, bytes, sizeof bytes);
    if (got < 0 && errno == EINTR) return false;
    if (got <= 0) {
        *ret_answered = got == 0 && r->body && r->ok && r->left < 0;
        return true;
    }
    size_t beyond = (size_t)got;
    size_t const room = sizeof r->head - 1 - r->head_len;
    size_t const taken = beyond < room ? beyond : room;
    memcpy(r->head + r->head_len, bytes, taken); /* the start of the body too: it says why */
    r->head_len += taken;
    if (!r->body) {
        size_t counted = 0;
        head_read(r, &counted);
        if (!r->body) return r->head_len == sizeof r->head - 1; /* a head without end is no answer */
        beyond = counted + beyond - taken;
    }
    if (r->left < 0) return false;
    r->left -= (long long)beyond;
    *ret_answered = r->left <= 0 && r->ok;
    return r->left <= 0;
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

/* As many at once as descriptors allow, up to what an engine runs at once. */
static unsigned window_size(unsigned requests)
{
    struct rlimit limit;
    unsigned window = 1024;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
        if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < window + 64)
            window = limit.rlim_cur > 128 ? (unsigned)limit.rlim_cur - 64 : 64;
    }
    return requests < window ? requests : window;
}

/* The next request in this place; without a server the rest is not sent either. */
static void slot_fill(const dryrun_options *options, const dryrun_engine *engine, struct pollfd *slot,
                      request *r, unsigned *next, dryrun_load_result *result)
{
    *slot = (struct pollfd){-1, POLLIN, 0};
    if (*next >= options->load_requests) return;
    slot->fd = request_send(options, engine, (*next)++);
    *r = (request){0};
    if (slot->fd >= 0) return;
    refusal_keep(NULL, result);
    *next = options->load_requests;
}

void dryrun_load(const dryrun_options *options, const dryrun_engine *engine, dryrun_load_result *result)
{
    unsigned const window = window_size(options->load_requests);
    struct pollfd *slots = calloc(window, sizeof *slots);
    request *requests = calloc(window, sizeof *requests);
    unsigned next = 0, open_count = 0;
    if (!slots || !requests) return;
    for (unsigned i = 0; i < window; i++) {
        slot_fill(options, engine, &slots[i], &requests[i], &next, result);
        open_count += slots[i].fd >= 0;
    }
    while (open_count) {
        if (poll(slots, window, -1) < 0 && errno != EINTR) break;
        for (unsigned i = 0; i < window; i++) {
            bool answered = false;
            if (slots[i].fd < 0 || !slots[i].revents) continue;
            if (!request_read(&requests[i], slots[i].fd, &answered)) continue;
            if (answered)
                result->answered++;
            else
                refusal_keep(&requests[i], result);
            close(slots[i].fd);
            slot_fill(options, engine, &slots[i], &requests[i], &next, result);
            open_count -= slots[i].fd < 0;
        }
    }
    free(slots);
    free(requests);
}
