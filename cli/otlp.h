/* Incidents to a receiver of OpenTelemetry. */
#pragma once
#include "cli.h"

typedef struct otlp_target {
    char host[256], port[8], path[512];
} otlp_target;

/* False: *ret_why says what is wrong with the address. */
bool otlp_target_read(const char *url, otlp_target *ret_target, const char **ret_why);
/* One try. NULL: there is an answer in *ret_reply; else why there is none. `stopped`: whether the end is asked for. */
const char *otlp_post(const otlp_target *target, const char *body, bool (*stopped)(void),
                      oomsight_otlp_reply *ret_reply);
