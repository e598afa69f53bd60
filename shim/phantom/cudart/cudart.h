/* What the files of the runtime's stand-in share. */
#ifndef OOS_SHIM_CUDART_H
#define OOS_SHIM_CUDART_H

#include "phantom/phantom.h"

int told(int code); /* remembers an error for cudaGetLastError and hands it through */

#endif
