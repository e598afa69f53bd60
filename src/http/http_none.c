/* Where libmicrohttpd is not there: who asks for a listener is told so. */
#include "http/http.h"

#include <stdlib.h>

oomsight_status oos_http_open(const char *address, oos_http **ret_http, oomsight_error *reterr)
{
    (void)ret_http;
    return oos_fail(reterr, OOMSIGHT_UNSUPPORTED,
                    "cannot listen on %s: this build has no libmicrohttpd (--metrics-file works)", address);
}

void oos_http_close(oos_http *http)
{
    (void)http;
}

unsigned oos_http_port(const oos_http *http)
{
    (void)http;
    return 0;
}

void oos_http_publish(oos_http *http, char *text)
{
    (void)http;
    free(text);
}
