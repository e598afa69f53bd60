/* Modules, libraries and kernels of the driver API: what Triton, DeepGEMM and FlashInfer load and launch. */
#include "phantom/cuda/cubin.h"

#include <stdlib.h>

typedef struct kernel {
    struct module *owner;
    char *name;
} kernel;

typedef struct variable {
    struct variable *next;
    void *at;
    size_t bytes;
    char name[];
} variable;

typedef struct module {
    cubin image;
    variable *variables;
} module;

static int module_new(const void *image, const char *path, module **ret_module)
{
    int code = oos_device_context(oos_device_current());
    if (code) return code;
    module *m = calloc(1, sizeof *m);
    if (!m) return OOS_CODE_OUT_OF_MEMORY;
    if (path && !cubin_read(path, &m->image)) {
        free(m);
        return 301; /* file not found */
    }
    if (image) cubin_copy(image, &m->image);
    *ret_module = m;
    return 0;
}

static int kernel_new(module *owner, const char *name, kernel **ret_kernel)
{
    kernel *k = calloc(1, sizeof *k);
    char *copy = strdup(name);
    if (!k || !copy) {
        free(k);
        free(copy);
        return OOS_CODE_OUT_OF_MEMORY;
    }
    *k = (kernel){owner, copy};
    *ret_kernel = k;
    return 0;
}

TAKE(int, cuModuleLoadData, module **ret_module, const void *image)
{
    return module_new(image, NULL, ret_module);
}

TAKE(int, cuModuleLoadDataEx, module **ret_module, const void *image, unsigned count, void *options,
     void **values)
{
    return module_new(image, NULL, ret_module);
}

TAKE(int, cuModuleLoad, module **ret_module, const char *path)
{
    return module_new(NULL, path, ret_module);
}

TAKE(int, cuModuleLoadFatBinary, module **ret_module, const void *binary)
{
    return module_new(NULL, NULL, ret_module);
}

TAKE(int, cuModuleGetFunction, kernel **ret_function, module *m, const char *name)
{
    return kernel_new(m, name, ret_function);
}

static unsigned kernel_count(const module *m)
{
    unsigned count = 0;
    while (cubin_kernel(&m->image, count)) count++;
    return count;
}

TAKE(int, cuModuleGetFunctionCount, unsigned *ret_count, module *m)
{
    *ret_count = kernel_count(m);
    return 0;
}

static int kernels_list(kernel **ret_kernels, unsigned count, module *m)
{
    for (unsigned i = 0; i < count; i++) {
        const char *name = cubin_kernel(&m->image, i);
        int const code = name ? kernel_new(m, name, &ret_kernels[i]) : OOS_CODE_INVALID_VALUE;
        if (code) return code;
    }
    return 0;
}

TAKE(int, cuModuleEnumerateFunctions, kernel **ret_functions, unsigned count, module *m)
{
    return kernels_list(ret_functions, count, m);
}

/* A variable of the image; one that the image does not name (fat binary, PTX) gets a page, and always the same. */
static int global_get(void **ret_at, size_t *ret_bytes, module *m, const char *name)
{
    size_t bytes = cubin_variable(&m->image, name);
    if (!bytes && m->image.bytes) return OOS_CODE_NOT_FOUND;
    if (!bytes) bytes = 65536;
    variable *v = m->variables;
    while (v && strcmp(v->name, name) != 0) v = v->next;
    if (!v) {
        v = calloc(1, sizeof *v + strlen(name) + 1);
        if (!v) return OOS_CODE_OUT_OF_MEMORY;
        int const code = oos_memory_uncharged(oos_device_current(), bytes, &v->at);
        if (code) {
            free(v);
            return code;
        }
        memcpy(v->name, name, strlen(name) + 1);
        v->bytes = bytes;
        v->next = m->variables;
        m->variables = v;
    }
    if (ret_at) *ret_at = v->at;
    if (ret_bytes) *ret_bytes = v->bytes;
    return 0;
}

TAKE(int, cuModuleGetGlobal_v2, void **ret_at, size_t *ret_bytes, module *m, const char *name)
{
    return global_get(ret_at, ret_bytes, m, name);
}

TAKE(int, cuLibraryLoadData, module **ret_library, const void *image, void *jit, void **jit_values,
     unsigned jit_count, void *options, void **values, unsigned count)
{
    return module_new(image, NULL, ret_library);
}

TAKE(int, cuLibraryLoadFromFile, module **ret_library, const char *path, void *jit, void **jit_values,
     unsigned jit_count, void *options, void **values, unsigned count)
{
    return module_new(NULL, path, ret_library);
}

TAKE(int, cuLibraryGetKernel, kernel **ret_kernel, module *library, const char *name)
{
    return kernel_new(library, name, ret_kernel);
}

TAKE(int, cuLibraryGetKernelCount, unsigned *ret_count, module *library)
{
    *ret_count = kernel_count(library);
    return 0;
}

TAKE(int, cuLibraryEnumerateKernels, kernel **ret_kernels, unsigned count, module *library)
{
    return kernels_list(ret_kernels, count, library);
}

TAKE(int, cuLibraryGetModule, module **ret_module, module *library)
{
    *ret_module = library;
    return 0;
}

TAKE(int, cuLibraryGetGlobal, void **ret_at, size_t *ret_bytes, module *library, const char *name)
{
    return global_get(ret_at, ret_bytes, library, name);
}

TAKE(int, cuKernelGetFunction, kernel **ret_function, kernel *k)
{
    *ret_function = k;
    return 0;
}

TAKE(int, cuKernelGetName, const char **ret_name, kernel *k)
{
    *ret_name = k->name;
    return 0;
}

TAKE(int, cuFuncGetName, const char **ret_name, kernel *k)
{
    *ret_name = k->name;
    return 0;
}

TAKE(int, cuFuncGetModule, module **ret_module, kernel *k)
{
    *ret_module = k->owner;
    return 0;
}

/* Numbers of CUfunction_attribute. Registers and spills are not known: nothing that allocates asks for them. */
static int function_attribute(int attribute)
{
    int const capability = (int)oos_device_spec_of(oos_device_current())->capability;
    switch (attribute) {
    case 0: return 1024; /* threads per block */
    case 4: return 32;   /* registers */
    case 5:
    case 6: return capability;
    case 8: return oos_attribute(97, oos_device_current()); /* dynamic shared memory */
    default: return 0;
    }
}

TAKE(int, cuFuncGetAttribute, int *ret_value, int attribute, kernel *k)
{
    *ret_value = function_attribute(attribute);
    return 0;
}

TAKE(int, cuKernelGetAttribute, int *ret_value, int attribute, kernel *k, int device)
{
    *ret_value = function_attribute(attribute);
    return 0;
}

TAKE(int, cuLaunchKernel, kernel *k, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
     unsigned bz, unsigned shared_bytes, void *stream, void **arguments, void **extra)
{
    oos_kernel_launch(k, stream, false);
    return 0;
}

TAKE(int, cuLaunchCooperativeKernel, kernel *k, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
     unsigned by, unsigned bz, unsigned shared_bytes, void *stream, void **arguments)
{
    oos_kernel_launch(k, stream, false);
    return 0;
}

typedef struct launch_config {
    unsigned dims[6], shared_bytes;
    void *stream;
} launch_config;
_Static_assert(offsetof(launch_config, stream) == 32, "layout of the vendor");

TAKE(int, cuLaunchKernelEx, const launch_config *config, kernel *k, void **arguments, void **extra)
{
    oos_kernel_launch(k, config->stream, false);
    return 0;
}

TAKE(int, cuOccupancyMaxActiveBlocksPerMultiprocessor, int *ret_blocks, kernel *k, int threads,
     size_t shared_bytes)
{
    *ret_blocks = oos_occupancy(oos_device_current(), threads, shared_bytes);
    return 0;
}

TAKE(int, cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, int *ret_blocks, kernel *k, int threads,
     size_t shared_bytes, unsigned flags)
{
    *ret_blocks = oos_occupancy(oos_device_current(), threads, shared_bytes);
    return 0;
}

TAKE(int, cuOccupancyMaxActiveClusters, int *ret_count, kernel *k, const launch_config *config)
{
    *ret_count = oos_attribute(16, oos_device_current()) / 2;
    return 0;
}

TAKE(int, cuOccupancyMaxPotentialClusterSize, int *ret_size, kernel *k, const launch_config *config)
{
    *ret_size = 8;
    return 0;
}

TAKE(int, cuTensorMapEncodeTiled, void *ret_map)
{
    memset(ret_map, 0, 128);
    return 0;
}
