/* Two texts over HTTP, for whoever asks: /metrics and /healthz. GET only, one thread, few connections; nothing of a request
 * but its path is looked at. Who asks much or slowly loses connections of his own, not those of others. */
#ifndef OOS_HTTP_HTTP_H
#define OOS_HTTP_HTTP_H

#include "base/error.h"

/* Connections that are kept: a new one beyond that takes the place of the oldest that waits, of its own address first. */
enum { OOS_HTTP_CONNECTIONS_MAX = 32, OOS_HTTP_PER_ADDRESS_MAX = 8 };

typedef struct oos_http oos_http;

/* `address`: "PORT" (then 127.0.0.1), "ADDRESS:PORT" or "[ADDRESS]:PORT". Port 0: any. */
oomsight_status oos_http_open(const char *address, oos_http **ret_http, oomsight_error *reterr);
void oos_http_close(oos_http *http); /* NULL is fine */
unsigned oos_http_port(const oos_http *http);

/* What /metrics answers from now on; /healthz is well as long as this is called at least every 30 seconds. Takes the text,
 * which comes from malloc(). */
void oos_http_publish(oos_http *http, char *text);

#endif
