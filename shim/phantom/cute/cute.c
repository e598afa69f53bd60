/* The runtime of CuTe kernels (CUTLASS's Python DSL). The real one has a CUDA runtime linked into it, which asks the driver for tables
 * that no stand-in has; here its calls go to the runtime that everyone else uses. Compiled kernels name its functions and are loaded once. */
#include "phantom/phantom.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

extern int cudaGetDeviceCount(int *ret_count);
extern int cudaLaunchKernel(const void *kernel, dim3_args grid, dim3_args block, void **arguments,
                            size_t shared_bytes, void *stream);
extern int cudaStreamWaitEvent(void *stream, void *event, unsigned flags);
extern int cudaLibraryUnload(void *library);
extern const char *cudaGetErrorName(int code);
extern const char *cudaGetErrorString(int code);

typedef int init_call(void **ret_library);
typedef int load_call(void **library, int device);
typedef void raise_call(const char *kind, const char *message);
typedef void raise_parts_call(const char *kind, const char *const *parts, int count);

static int raised(raise_call *raise, int code)
{
    char text[256];
    snprintf(text, sizeof text, "Got Cuda Runtime Error: %s %s", cudaGetErrorName(code),
             cudaGetErrorString(code));
    if (raise) raise("RuntimeError", text);
    return -1;
}

/* `*state` is a library once it is loaded; it counts as loaded when one device of several took it. */
TAKE(int, cuda_dialect_init_library_once, void **state, init_call *init, load_call *load, raise_call *raise)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    void *library = NULL;
    int count = 0, failed = 0, code = 0, last = 0;
    if (__atomic_load_n(state, __ATOMIC_ACQUIRE)) return 0;
    pthread_mutex_lock(&lock);
    if (!*state) {
        code = init(&library);
        if (code == 0 && load) code = cudaGetDeviceCount(&count);
        for (int device = 0; code == 0 && load && device < count; device++) {
            int const loaded = load(&library, device);
            if (loaded) last = loaded;
            failed += loaded != 0;
        }
        if (code == 0 && failed == count) code = last;
        if (code == 0) __atomic_store_n(state, library, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&lock);
    return code ? raised(raise, code) : 0;
}

TAKE(void, cuda_dialect_unload_library_once, void **state)
{
    void *library = __atomic_exchange_n(state, NULL, __ATOMIC_ACQ_REL);
    if (library) cudaLibraryUnload(library);
}

TAKE(const char *, cuda_dialect_get_error_name, int code)
{
    return cudaGetErrorName(code);
}

TAKE(void, cuda_dialect_print_on_error, int code)
{
    if (code) fprintf(stderr, "CUDA error: %s - %s\n", cudaGetErrorName(code), cudaGetErrorString(code));
}

TAKE(void, cuda_dialect_assert_success, int code)
{
    take_cuda_dialect_print_on_error(code);
    if (code) abort();
}

TAKE(int, _cudaLaunchKernel, const void *kernel, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
     unsigned by, unsigned bz, void **arguments, size_t shared_bytes, void *stream)
{
    return cudaLaunchKernel(kernel, (dim3_args){gx, gy, gz}, (dim3_args){bx, by, bz}, arguments, shared_bytes,
                            stream);
}

TAKE(int, _cudaStreamWaitEvent, void *stream, void *event)
{
    return cudaStreamWaitEvent(stream, event, 0);
}

TAKE(const char *, CuteDSLRT_GetErrorName, int code)
{
    return code ? "CuteDSLRT_Error" : "CuteDSLRT_Success";
}

TAKE(const char *, CuteDSLRT_GetErrorString, int code)
{
    return code ? "not supported by the simulated GPU" : "no error";
}

TAKE(void, CuteDSLRT_TVMFFISetRaisedCudaError, raise_parts_call *raise, int code)
{
    char text[32];
    const char *const parts[] = {"CUDA Error Code: ", text};
    snprintf(text, sizeof text, "%d", code);
    if (raise) raise("CUDADialectError", parts, 2);
}

/* What the launch asked for follows in the real message; the stand-ins refuse no launch for its shape. */
TAKE(void, CuteDSLRT_TVMFFISetRaisedCudaLaunchError, raise_parts_call *raise, int code)
{
    take_CuteDSLRT_TVMFFISetRaisedCudaError(raise, code);
}
