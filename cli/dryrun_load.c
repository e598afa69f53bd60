/* Requests for --load: token numbers as prompts, all at once, one connection each, over plain HTTP to the own machine. */
#include "dryrun.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

int dryrun_load(const dryrun_options *options, const dryrun_engine *engine)
{
    unsigned const count = options->load_requests;
    struct pollfd *waiting = calloc(count, sizeof *waiting);
    unsigned answered = 0, open_count = 0;
    if (!waiting) return 0;
    for (unsigned i = 0; i < count; i++) {
        waiting[i] = (struct pollfd){request_send(options, engine, i), POLLIN, 0};
        open_count += waiting[i].fd >= 0;
    }
    while (open_count) {
        if (poll(waiting, count, -1) < 0 && errno != EINTR) break;
        for (unsigned i = 0; i < count; i++) {
            char head[4096];
            if (waiting[i].fd < 0 || !waiting[i].revents) continue;
            ssize_t const got = read(waiting[i].fd, head, sizeof head - 1);
            if (got > 12 && strncmp(head, "HTTP/1.1 200", 12) == 0) answered++;
            if (got > 0) continue;
            close(waiting[i].fd);
            waiting[i].fd = -1;
            open_count--;
        }
    }
    free(waiting);
    return answered < 255 ? (int)answered : 255;
}
