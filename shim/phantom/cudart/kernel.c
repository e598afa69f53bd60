/* Kernels of the runtime API: what the compiler's start-up code registers, launches that do nothing, occupancy. */
#include "phantom/cudart/cudart.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

/* PyTorch alone registers 22,000 functions and 13,000 variables, so these are hash tables in lazily backed memory. */
enum { SLOTS = 1 << 19 };
typedef struct symbol {
    const void *host;
    const char *name;
    size_t bytes;
    void *device;
    const void *binary; /* of a function: the fat binary it is in */
} symbol;

static pthread_mutex_t symbols_lock = PTHREAD_MUTEX_INITIALIZER;
static symbol *symbols;
static unsigned symbol_count;

static symbol *symbol_slot(const void *host, bool add)
{
    if (!symbols) {
        if (!add) return NULL;
        void *at = mmap(NULL, SLOTS * sizeof *symbols, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (at == MAP_FAILED) return NULL;
        symbols = at;
    }
    uint64_t slot = ((uint64_t)(uintptr_t)host >> 3) * 0x9E3779B97F4A7C15u >> 45;
    for (;; slot = (slot + 1) % SLOTS) {
        if (symbols[slot].host == host) return &symbols[slot];
        if (!symbols[slot].host) break;
    }
    if (!add || symbol_count > SLOTS / 4 * 3) return NULL;
    symbol_count++;
    symbols[slot].host = host;
    return &symbols[slot];
}

static void symbol_add(void **handle, const void *host, const char *name, size_t bytes)
{
    pthread_mutex_lock(&symbols_lock);
    symbol *s = symbol_slot(host, true);
    if (s) {
        s->name = name;
        s->bytes = bytes;
        s->binary = handle ? handle[0] : NULL;
    }
    pthread_mutex_unlock(&symbols_lock);
}

static bool symbol_get(const void *host, symbol *ret_symbol)
{
    pthread_mutex_lock(&symbols_lock);
    const symbol *s = symbol_slot(host, false);
    if (s) *ret_symbol = *s;
    pthread_mutex_unlock(&symbols_lock);
    return s != NULL;
}

TAKE(void **, __cudaRegisterFatBinary, void *binary)
{
    void **handle = calloc(1, 2 * sizeof *handle);
    if (handle) handle[0] = binary;
    return handle;
}

TAKE(void, __cudaUnregisterFatBinary, void **handle)
{
    free(handle);
}

TAKE(char, __cudaInitModule, void **handle)
{
    return 1;
}

TAKE(void, __cudaRegisterFunction, void **handle, const char *host, char *device, const char *name)
{
    symbol_add(handle, host, name, 0);
}

TAKE(void, __cudaRegisterVar, void **handle, char *host, char *device, const char *name, int external,
     size_t bytes)
{
    symbol_add(handle, host, name, bytes);
}

/* The device's copy of a variable exists once somebody asks; it belongs to the module, not to the allocator. */
TAKE(int, cudaGetSymbolAddress, void **ret_at, const void *host)
{
    symbol found;
    if (!symbol_get(host, &found)) return told(OOS_CODE_INVALID_SYMBOL);
    if (!found.device) {
        int const code = oos_memory_uncharged(oos_device_current(), found.bytes, &found.device);
        if (code) return told(code);
        pthread_mutex_lock(&symbols_lock);
        symbol *s = symbol_slot(host, false);
        if (s && !s->device) s->device = found.device;
        if (s) found.device = s->device;
        pthread_mutex_unlock(&symbols_lock);
    }
    *ret_at = found.device;
    return 0;
}

TAKE(int, cudaGetSymbolSize, size_t *ret_bytes, const void *host)
{
    symbol found;
    if (!symbol_get(host, &found)) return told(OOS_CODE_INVALID_SYMBOL);
    *ret_bytes = found.bytes;
    return 0;
}

TAKE(int, cudaFuncGetName, const char **ret_name, const void *host)
{
    symbol found;
    if (!symbol_get(host, &found)) return told(98);
    *ret_name = found.name;
    return 0;
}

/* The configuration between <<<...>>> and the launch stub. */
typedef struct launch_config {
    dim3_args grid, block;
    size_t shared_bytes;
    void *stream;
} launch_config;
enum { CONFIGS = 16 };
static __thread launch_config configs[CONFIGS];
static __thread int config_depth;

TAKE(unsigned, __cudaPushCallConfiguration, dim3_args grid, dim3_args block, size_t shared_bytes,
     void *stream)
{
    if (config_depth >= CONFIGS) return OOS_CODE_INVALID_CONFIGURATION;
    configs[config_depth++] = (launch_config){grid, block, shared_bytes, stream};
    return 0;
}

TAKE(int, __cudaPopCallConfiguration, dim3_args *ret_grid, dim3_args *ret_block, size_t *ret_shared,
     void **ret_stream)
{
    if (config_depth <= 0) return told(OOS_CODE_INVALID_CONFIGURATION);
    const launch_config *config = &configs[--config_depth];
    *ret_grid = config->grid;
    *ret_block = config->block;
    *ret_shared = config->shared_bytes;
    *ret_stream = config->stream;
    return 0;
}

TAKE(int, __cudaGetKernel, const void **ret_kernel, const void *host)
{
    *ret_kernel = host;
    return 0;
}

TAKE(int, cudaGetKernel, const void **ret_kernel, const void *host)
{
    *ret_kernel = host;
    return 0;
}

TAKE(int, cudaGetFuncBySymbol, const void **ret_function, const void *host)
{
    *ret_function = host;
    return 0;
}

TAKE(int, cudaLaunchKernel, const void *host, dim3_args grid, dim3_args block, void **arguments,
     size_t shared_bytes, void *stream)
{
    oos_kernel_launch(host, stream, true);
    return 0;
}

TAKE(int, __cudaLaunchKernel, const void *kernel, dim3_args grid, dim3_args block, void **arguments,
     size_t shared_bytes, void *stream)
{
    oos_kernel_launch(kernel, stream, true);
    return 0;
}

TAKE(int, cudaLaunchCooperativeKernel, const void *host, dim3_args grid, dim3_args block, void **arguments,
     size_t shared_bytes, void *stream)
{
    oos_kernel_launch(host, stream, true);
    return 0;
}

typedef struct launch_ex {
    dim3_args grid, block;
    size_t shared_bytes;
    void *stream;
} launch_ex;
_Static_assert(offsetof(launch_ex, stream) == 32, "layout of the vendor");

TAKE(int, cudaLaunchKernelExC, const launch_ex *config, const void *host, void **arguments)
{
    oos_kernel_launch(host, config->stream, true);
    return 0;
}

typedef struct function_attributes {
    size_t shared_bytes, constant_bytes, local_bytes;
    int block_threads, registers, ptx_version, binary_version, cache_mode, dynamic_shared_bytes;
    int rest[24];
} function_attributes;
_Static_assert(sizeof(function_attributes) == 144, "layout of the vendor");

TAKE(int, cudaFuncGetAttributes, function_attributes *ret_attributes, const void *host)
{
    unsigned const index = oos_device_current();
    unsigned const capability = oos_device_spec_of(index)->capability;
    symbol found = {0};
    symbol_get(host, &found);
    int const architecture = (int)fatbin_architecture(found.binary, capability);
    *ret_attributes = (function_attributes){.block_threads = 1024,
                                            .registers = 32,
                                            .ptx_version = architecture,
                                            .binary_version = architecture,
                                            .dynamic_shared_bytes = oos_attribute(97, index)};
    return 0;
}

TAKE(int, cudaOccupancyMaxActiveBlocksPerMultiprocessor, int *ret_blocks, const void *host, int threads,
     size_t shared)
{
    *ret_blocks = oos_occupancy(oos_device_current(), threads, shared);
    return 0;
}

TAKE(int, cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, int *ret_blocks, const void *host,
     int threads, size_t shared, unsigned flags)
{
    *ret_blocks = oos_occupancy(oos_device_current(), threads, shared);
    return 0;
}

TAKE(int, cudaOccupancyAvailableDynamicSMemPerBlock, size_t *ret_bytes, const void *host, int blocks,
     int threads)
{
    *ret_bytes = (size_t)(oos_attribute(97, oos_device_current()) / (blocks > 0 ? blocks : 1));
    return 0;
}

TAKE(int, cudaOccupancyMaxPotentialClusterSize, int *ret_size, const void *host, const launch_ex *config)
{
    *ret_size = 8; /* the portable limit */
    return 0;
}

TAKE(int, cudaOccupancyMaxActiveClusters, int *ret_count, const void *host, const launch_ex *config)
{
    *ret_count = oos_attribute(16, oos_device_current()) / 2;
    return 0;
}

/* Driver calls by name: whoever asks the runtime gets the driver's own answer. */
static int driver_entry(const char *name, void **ret_at, unsigned version, int *ret_result)
{
    static void *(*find)(const char *, unsigned);
    void *(*seek)(const char *, unsigned) = __atomic_load_n(&find, __ATOMIC_ACQUIRE);
    if (!seek) {
        void *driver = dlopen("libcuda.so.1", RTLD_NOW);
        if (driver) *(void **)&seek = dlsym(driver, "oos_driver_entry");
        __atomic_store_n(&find, seek, __ATOMIC_RELEASE);
    }
    *ret_at = seek ? seek(name, version) : NULL;
    if (ret_result) *ret_result = *ret_at ? 0 : 1;
    return 0;
}

TAKE(int, cudaGetDriverEntryPoint, const char *name, void **ret_at, unsigned long long flags, int *ret_result)
{
    return driver_entry(name, ret_at, OOS_CUDA_VERSION, ret_result);
}

TAKE(int, cudaGetDriverEntryPointByVersion, const char *name, void **ret_at, unsigned version,
     unsigned long long flags, int *ret_result)
{
    return driver_entry(name, ret_at, version, ret_result);
}

typedef struct channel_desc {
    int x, y, z, w, format;
} channel_desc;

TAKE(channel_desc, cudaCreateChannelDesc, int x, int y, int z, int w, int format)
{
    return (channel_desc){x, y, z, w, format};
}
