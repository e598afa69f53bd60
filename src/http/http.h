/* A few texts over HTTP, for whoever asks: the one edge to libmicrohttpd. GET only, few connections, nothing of a request but
 * its path is looked at. */
#ifndef OOS_HTTP_HTTP_H
#define OOS_HTTP_HTTP_H

#include "base/error.h"

typedef struct oos_http oos_http;

/* `address`: "PORT" (then 127.0.0.1), "ADDRESS:PORT" or "[ADDRESS]:PORT". Port 0: any. OOMSIGHT_UNSUPPORTED: built without. */
oomsight_status oos_http_open(const char *address, oos_http **ret_http, oomsight_error *reterr);
void oos_http_close(oos_http *http); /* NULL is fine */
unsigned oos_http_port(const oos_http *http);

/* What /metrics answers from now on; /healthz is well as long as this is called at least every 30 seconds. Takes the text,
 * which comes from malloc(). */
void oos_http_publish(oos_http *http, char *text);

#endif
