/* cmocka wants these first, in this order. */
#ifndef OOS_TESTS_UNIT_H
#define OOS_TESTS_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#endif
