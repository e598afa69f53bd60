/* What the files of the runtime's stand-in share. */
#pragma once
#include "phantom/phantom.h"

int told(int code); /* remembers an error for cudaGetLastError and hands it through */

/* The architecture of the image that a device of `capability` would take from a fat binary, e.g. 86 on 8.9 where there is
 * no image for 89. Kernels choose their variants by it. `capability` itself when the binary cannot be read. */
unsigned fatbin_architecture(const void *binary, unsigned capability);
