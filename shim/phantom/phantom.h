/* What every stand-in shares. A function that a table marks TAKE is written as TAKE(type, name, arguments) { body };
 * the exported symbol counts the call and comes here. Handles of the vendor's types are plain pointers. */
#pragma once
#include "device/device.h"

#include <string.h>

#define TAKE(type, name, ...)                                                                                \
    type take_##name(__VA_ARGS__);                                                                           \
    type take_##name(__VA_ARGS__)

#ifndef OOS_CUDA_MAJOR
#error "built once for CUDA 12 and once for CUDA 13"
#endif
#define OOS_CUDA_VERSION (OOS_CUDA_MAJOR == 12 ? 12080 : 13000)

typedef struct dim3_args {
    unsigned x, y, z;
} dim3_args;
