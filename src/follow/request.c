/* One line is read, "GET /metrics HTTP/1.1"; of the headers behind it only the end matters. */
#include "follow/follow.h"

#include <string.h>

enum { METHOD_MAX = 16 };

static bool is_word(const char *bytes, size_t len, const char *word)
{
    return strlen(word) == len && memcmp(bytes, word, len) == 0;
}

/* Behind the first empty line; NULL: it has not come. A lone line feed ends a line as well. */
static const char *head_end(const char *bytes, size_t len)
{
    const char *at = bytes, *const end = bytes + len;
    while ((at = memchr(at, '\n', (size_t)(end - at)))) {
        at++;
        if (at < end && *at == '\n') return at + 1;
        if (end - at >= 2 && at[0] == '\r' && at[1] == '\n') return at + 2;
        if (at == end) return NULL;
    }
    return NULL;
}

static bool is_version(const char *bytes, size_t len)
{
    return len == 8 && memcmp(bytes, "HTTP/1.", 7) == 0 && (bytes[7] == '0' || bytes[7] == '1');
}

static oos_http_wish wish_for(const char *path, size_t len)
{
    const char *query = memchr(path, '?', len);
    if (query) len = (size_t)(query - path);
    if (is_word(path, len, "/metrics")) return OOS_HTTP_METRICS;
    if (is_word(path, len, "/healthz")) return OOS_HTTP_HEALTH;
    return OOS_HTTP_ELSEWHERE;
}

/* METHOD SP PATH SP VERSION, without its line end. */
static oos_http_request read_line(const char *line, size_t len)
{
    oos_http_request const garbage = {.wish = OOS_HTTP_GARBAGE};
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)line[i] < ' ' || line[i] == 0x7f) return garbage;
    const char *const end = line + len, *space = memchr(line, ' ', len);
    if (!space || space == line || space - line > METHOD_MAX) return garbage;
    const char *const path = space + 1, *second = memchr(path, ' ', (size_t)(end - path));
    if (!second || *path != '/' || !is_version(second + 1, (size_t)(end - second - 1))) return garbage;
    size_t const method_len = (size_t)(space - line);
    bool const head = is_word(line, method_len, "HEAD");
    if (!head && !is_word(line, method_len, "GET")) return (oos_http_request){.wish = OOS_HTTP_METHOD};
    return (oos_http_request){.wish = wish_for(path, (size_t)(second - path)), .head_only = head};
}

oos_http_request oos_http_request_read(const char *bytes, size_t len)
{
    /* A TLS greeting, a stray protocol: nobody waits for the end of its head. */
    if (len && (bytes[0] < 'A' || bytes[0] > 'Z')) return (oos_http_request){.wish = OOS_HTTP_GARBAGE};
    if (!head_end(bytes, len < OOS_HTTP_HEAD_MAX ? len : OOS_HTTP_HEAD_MAX))
        return (oos_http_request){.wish = len < OOS_HTTP_HEAD_MAX ? OOS_HTTP_PARTIAL : OOS_HTTP_TOO_LONG};
    size_t line = (size_t)((const char *)memchr(bytes, '\n', len) - bytes);
    if (line && bytes[line - 1] == '\r') line--;
    return read_line(bytes, line);
}
