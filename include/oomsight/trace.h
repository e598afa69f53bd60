/* The on-disk trace of allocation calls, written inside other people's processes (stand-ins, guards) and read by
 * `oomsight replay`. A header, then records of one size, in the order the calls were made; numbers are little-endian.
 * A reader that finds a larger record_bytes skips what it does not know: fields are only ever added at the end. */
#ifndef OOMSIGHT_TRACE_H
#define OOMSIGHT_TRACE_H

#include <stdint.h>

#define OOMSIGHT_TRACE_MAGIC "OOMTRACE" /* 8 bytes, no zero */
#define OOMSIGHT_TRACE_VERSION 1u

typedef struct oomsight_trace_header {
    char magic[8];
    uint32_t version;
    uint32_t record_bytes;                          /* sizeof(oomsight_trace_record) of the writer */
    uint64_t device_total_bytes, device_base_bytes; /* of device 0; 0: not known */
    char torch[16];                                 /* "2.13.0", zero-padded; empty: not known */
    char settings[208];                             /* PYTORCH_CUDA_ALLOC_CONF, zero-padded */
} oomsight_trace_header;

typedef enum oomsight_trace_kind {
    OOMSIGHT_TRACE_MALLOC = 1,        /* size, address, stream */
    OOMSIGHT_TRACE_FREE = 2,          /* address */
    OOMSIGHT_TRACE_RECORD_STREAM = 3, /* address, stream */
    OOMSIGHT_TRACE_COMPLETE = 4,      /* stream */
    OOMSIGHT_TRACE_EMPTY_CACHE = 5,
    OOMSIGHT_TRACE_MALLOC_FAILED = 6, /* size, stream; address: free bytes of the device */
    OOMSIGHT_TRACE_POOL_BEGIN = 7,    /* size, address: the two numbers of the pool's id */
    OOMSIGHT_TRACE_POOL_END = 8,
    OOMSIGHT_TRACE_CAPTURE_BEGIN = 9,
    OOMSIGHT_TRACE_CAPTURE_END = 10,
    OOMSIGHT_TRACE_POOL_RELEASE = 11,
    OOMSIGHT_TRACE_POOL_CREATE = 12
} oomsight_trace_kind;

typedef struct oomsight_trace_record {
    uint64_t time_ns;
    uint64_t size;
    uint64_t address;
    uint64_t stream;
    uint32_t pid;
    uint16_t device;
    uint16_t kind; /* oomsight_trace_kind; unknown ones are passed over and counted */
} oomsight_trace_record;

#endif
