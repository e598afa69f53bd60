/* What the engine below a run says of its requests: GET /metrics of the port in its words, on this machine, briefly. */
#include "cli.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { WORDS_BYTES = 1 << 16, ANSWER_BYTES = 1 << 20 };
#define ANSWER_SECONDS 0.5

static unsigned port_read(const char *word)
{
    char *end;
    long const number = strtol(word, &end, 10);
    return *end == '\0' && number > 0 && number < 65536 ? (unsigned)number : 0;
}

/* `before` and `word` start a server of the engine, or `word` has one of its modules or its folder in it. */
static bool starts(const oomsight_engine_words *engine, const char *before, const char *word)
{
    const char *slash = strrchr(before, '/');
    if (strcmp(word, "serve") == 0) return strcmp(slash ? slash + 1 : before, engine->name) == 0;
    return engine->family && strstr(word, engine->family);
}

/* Of an engine's server; 0: no such words. */
static unsigned port_of(int pid)
{
    static char words[WORDS_BYTES];
    const oomsight_engine_words *serving = NULL, *engine;
    size_t const len = top_words(pid, words, sizeof words);
    const char *word = words, *const end = words + len;
    while (word < end && strcmp(word, "--") != 0) word += strlen(word) + 1; /* those of `oomsight run` */
    const char *const first = word < end ? word + strlen(word) + 1 : end;
    word = first;
    for (const char *before = ""; word < end; before = word, word += strlen(word) + 1) {
        if (strcmp(word, "serve") == 0) serving = oomsight_engine_at(0);
        for (size_t i = 0; (engine = oomsight_engine_at(i)); i++)
            if (starts(engine, before, word)) serving = engine;
    }
    unsigned port = 0;
    size_t const flag = serving && serving->port_flag ? strlen(serving->port_flag) : 0;
    word = first;
    for (const char *before = ""; flag && word < end; before = word, word += strlen(word) + 1) {
        if (strncmp(word, serving->port_flag, flag) == 0 && word[flag] == '=')
            port = port_read(word + flag + 1);
        if (strcmp(before, serving->port_flag) == 0) port = port_read(word);
    }
    return port ? port : serving ? serving->port : 0;
}

static bool ready(int fd, short event, double until)
{
    double const left = until - seconds_since_boot();
    struct pollfd wanted = {.fd = fd, .events = event};
    return left > 0 && poll(&wanted, 1, 1 + (int)(1000 * left)) > 0;
}

static bool ask(int fd, unsigned port, double until)
{
    static const char asked[] = "GET /metrics HTTP/1.0\r\nHost: 127.0.0.1\r\nAccept: text/plain\r\n\r\n";
    struct sockaddr_in const address = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    if (connect(fd, (const struct sockaddr *)&address, sizeof address) != 0 &&
        (errno != EINPROGRESS || !ready(fd, POLLOUT, until)))
        return false;
    return send(fd, asked, sizeof asked - 1, MSG_NOSIGNAL) == (ssize_t)sizeof asked - 1;
}

void top_serving(oomsight_run *run, int pid)
{
    static char answer[ANSWER_BYTES];
    double const until = seconds_since_boot() + ANSWER_SECONDS;
    unsigned const port = port_of(pid);
    size_t len = 0;
    oomsight_run_serving(run, NULL, 0);
    int const fd = port ? socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0) : -1;
    if (fd < 0) return;
    bool more = ask(fd, port, until);
    while (more && len < sizeof answer && ready(fd, POLLIN, until)) {
        ssize_t const some = recv(fd, answer + len, sizeof answer - len, 0);
        if (some > 0) len += (size_t)some;
        more = some > 0 || (some < 0 && (errno == EINTR || errno == EAGAIN));
    }
    close(fd);
    if (len > 12 && memcmp(answer, "HTTP/1.", 7) == 0 && memcmp(answer + 8, " 200", 4) == 0)
        oomsight_run_serving(run, answer, len);
}
