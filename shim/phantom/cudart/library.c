/* The runtime's library API, which only passes on to the driver's (shim/phantom/cuda/module.c). */
#include "phantom/cudart/cudart.h"

#include <dlfcn.h>

/* The driver's stand-in is loaded whenever this one is; found by name so that the two can be built apart. */
static void *driver(const char *name)
{
    void *handle = dlopen("libcuda.so.1", RTLD_NOW);
    return handle ? dlsym(handle, name) : NULL;
}

typedef int load_call(void **, const void *, void *, void **, unsigned, void *, void **, unsigned);
typedef int named_call(void **, void *, const char *);
typedef int global_call(void **, size_t *, void *, const char *);

TAKE(int, cudaLibraryLoadData, void **ret_library, const void *image, void *jit, void **jit_values,
     unsigned jit_count, void *options, void **values, unsigned count)
{
    load_call *load = (load_call *)driver("cuLibraryLoadData");
    return told(load ? load(ret_library, image, jit, jit_values, jit_count, options, values, count)
                     : OOS_CODE_NOT_SUPPORTED);
}

TAKE(int, cudaLibraryLoadFromFile, void **ret_library, const char *path, void *jit, void **jit_values,
     unsigned jit_count, void *options, void **values, unsigned count)
{
    load_call *load = (load_call *)driver("cuLibraryLoadFromFile");
    return told(load ? load(ret_library, path, jit, jit_values, jit_count, options, values, count)
                     : OOS_CODE_NOT_SUPPORTED);
}

TAKE(int, cudaLibraryGetKernel, void **ret_kernel, void *library, const char *name)
{
    named_call *get = (named_call *)driver("cuLibraryGetKernel");
    return told(get ? get(ret_kernel, library, name) : OOS_CODE_NOT_SUPPORTED);
}

TAKE(int, cudaLibraryGetGlobal, void **ret_at, size_t *ret_bytes, void *library, const char *name)
{
    global_call *get = (global_call *)driver("cuLibraryGetGlobal");
    return told(get ? get(ret_at, ret_bytes, library, name) : OOS_CODE_NOT_SUPPORTED);
}

TAKE(int, cudaLibraryGetKernelCount, unsigned *ret_count, void *library)
{
    int (*get)(unsigned *, void *) = (int (*)(unsigned *, void *))driver("cuLibraryGetKernelCount");
    return told(get ? get(ret_count, library) : OOS_CODE_NOT_SUPPORTED);
}

TAKE(int, cudaLibraryEnumerateKernels, void **ret_kernels, unsigned count, void *library)
{
    int (*get)(void **, unsigned, void *) =
        (int (*)(void **, unsigned, void *))driver("cuLibraryEnumerateKernels");
    return told(get ? get(ret_kernels, count, library) : OOS_CODE_NOT_SUPPORTED);
}
