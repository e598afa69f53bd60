/* What a compiled kernel image (cubin, an ELF file) says of itself: its kernels and its variables. */
#pragma once
#include "phantom/phantom.h"

typedef struct cubin {
    char *bytes; /* own copy; NULL when the image is not an ELF file (fat binary, PTX) */
    size_t len;
} cubin;

/* `image` has no length: the ELF header says where it ends. */
bool cubin_copy(const void *image, cubin *ret_cubin);
bool cubin_read(const char *path, cubin *ret_cubin);
/* The name of kernel number `index`, NULL past the last. Lives as long as the cubin. */
const char *cubin_kernel(const cubin *c, unsigned index);
/* Bytes of a variable; 0 when there is none of that name. */
size_t cubin_variable(const cubin *c, const char *name);
