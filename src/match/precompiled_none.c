/* Where the compiler of literals cannot run while the library is built: nothing is built in. */
#include "match/precompiled.h"

const uint64_t oos_precompiled_hash = 0;
const size_t oos_precompiled_len = 0;
const unsigned char oos_precompiled_bytes[1] = {0};
