/* Calls that tell how much workspace they want, or what went wrong: none. A table sends them here by the place of the answer among the arguments that are
 * no floating-point numbers (those travel apart): PASS(cusolverDnSgetrf_bufferSize, oos_none_int_6, BOTH). What the real library
 * would take only that library knows. */
#include "device/device.h"

#define A __attribute__((unused)) const void *
#define BEFORE_2 A a1
#define BEFORE_4 BEFORE_2, A a2, A a3
#define BEFORE_5 BEFORE_4, A a4
#define BEFORE_6 BEFORE_5, A a5
#define BEFORE_7 BEFORE_6, A a6
#define BEFORE_8 BEFORE_7, A a7
#define BEFORE_9 BEFORE_8, A a8
#define BEFORE_10 BEFORE_9, A a9
#define BEFORE_11 BEFORE_10, A a10
#define BEFORE_12 BEFORE_11, A a11
#define BEFORE_13 BEFORE_12, A a12
#define BEFORE_14 BEFORE_13, A a13
#define BEFORE_15 BEFORE_14, A a14
#define BEFORE_16 BEFORE_15, A a15
#define BEFORE_17 BEFORE_16, A a16
#define BEFORE_18 BEFORE_17, A a17
#define BEFORE_19 BEFORE_18, A a18
#define BEFORE_22 BEFORE_19, A a19, A a20, A a21

#define NONE(kind, type, place)                                                                              \
    OOS_SHARED int oos_none_##kind##_##place(BEFORE_##place, type *ret_size);                                \
    int oos_none_##kind##_##place(BEFORE_##place, type *ret_size)                                            \
    {                                                                                                        \
        if (ret_size) *ret_size = 0;                                                                         \
        return OOS_CODE_OK;                                                                                  \
    }

/* On the device, and behind it on the host. */
#define NONE_TWICE(place)                                                                                    \
    OOS_SHARED int oos_none_sizes_##place(BEFORE_##place, size_t *ret_size, size_t *ret_host_size);          \
    int oos_none_sizes_##place(BEFORE_##place, size_t *ret_size, size_t *ret_host_size)                      \
    {                                                                                                        \
        if (ret_size) *ret_size = 0;                                                                         \
        if (ret_host_size) *ret_host_size = 0;                                                               \
        return OOS_CODE_OK;                                                                                  \
    }

/* clang-format off */
NONE(int, int, 4) NONE(int, int, 5) NONE(int, int, 6) NONE(int, int, 7) NONE(int, int, 8) NONE(int, int, 9) NONE(int, int, 10)
NONE(int, int, 11) NONE(int, int, 12) NONE(int, int, 13) NONE(int, int, 14) NONE(int, int, 15) NONE(int, int, 17)
NONE(size, size_t, 2) NONE(size, size_t, 4) NONE(size, size_t, 5) NONE(size, size_t, 6) NONE(size, size_t, 7) NONE(size, size_t, 9)
NONE(size, size_t, 10) NONE(size, size_t, 11) NONE(size, size_t, 12) NONE(size, size_t, 13) NONE(size, size_t, 15)
NONE_TWICE(8) NONE_TWICE(9) NONE_TWICE(11) NONE_TWICE(12) NONE_TWICE(16) NONE_TWICE(18) NONE_TWICE(19) NONE_TWICE(22)
