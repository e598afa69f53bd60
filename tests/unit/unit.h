/* cmocka wants these first, in this order. */
#pragma once
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

/* Speed is not judged under a sanitizer. */
#if defined(__SANITIZE_ADDRESS__)
#define OOS_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define OOS_SANITIZED 1
#endif
#endif
#ifndef OOS_SANITIZED
#define OOS_SANITIZED 0
#endif

/* Clocks decide where .ci/nightly asks for it: the gate must say the same on a machine that is busy. */
static inline bool clocks_decide(void)
{
    return !OOS_SANITIZED && getenv("OOMSIGHT_CLOCKS");
}
