/* The head of an HTTP request, as far as this responder wants to know it: which of two texts, or why not. */
#ifndef OOS_HTTP_REQUEST_H
#define OOS_HTTP_REQUEST_H

#include <stdbool.h>
#include <stddef.h>

enum { OOS_HTTP_HEAD_MAX = 8 << 10 };

typedef enum oos_http_wish {
    OOS_HTTP_PARTIAL, /* the head has not ended yet */
    OOS_HTTP_METRICS,
    OOS_HTTP_HEALTH,
    OOS_HTTP_ELSEWHERE, /* a path that is not there */
    OOS_HTTP_METHOD,    /* not GET, not HEAD */
    OOS_HTTP_GARBAGE,   /* no HTTP/1 */
    OOS_HTTP_TOO_LONG   /* OOS_HTTP_HEAD_MAX bytes, and no end */
} oos_http_wish;

typedef struct oos_http_request {
    oos_http_wish wish;
    bool head_only; /* HEAD: the answer's body stays away */
} oos_http_request;

/* Looks at all bytes that have come so far. What cannot become a request is told at its first byte. */
oos_http_request oos_http_request_read(const char *bytes, size_t len);

#endif
