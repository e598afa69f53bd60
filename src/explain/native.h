/* Text of native code: frames of C and C++ backtraces, and the names in them. They are no sentences, whatever words they
 * hold: std::allocator, c10::Error, at::native::empty_memory_format. */
#ifndef OOS_EXPLAIN_NATIVE_H
#define OOS_EXPLAIN_NATIVE_H

#include "base/view.h"

/* A line of a backtrace as PyTorch, gdb, glibc, glog, Rust, sanitizers and MPI print it. `line` is without the prefixes of a log. */
bool oos_native_is_frame(oos_view line);

/* Length of the name at the beginning of `text`, with its template arguments and parameters: `c10::Error::Error(int)`,
 * `_ZN3c105ErrorC2Ev`. 0: no such name, or one that says itself what was thrown: `std::bad_alloc`. */
size_t oos_native_name(oos_view text);

#endif
