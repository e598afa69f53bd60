/* What stands behind a forwarder, and how those get our forwarders who ask for functions by name. */
#include "guard/guard.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>

#define CALL(library, name) void name(void); /* its address is all that is needed here */
#include "guard/calls.def"
#undef CALL

static const struct {
    const char *name;
    void (*forwarder)(void);
    oos_guard_library library;
} calls[] = {
#define CALL(library, name) {#name, name, OOS_GUARD_##library},
#include "guard/calls.def"
#undef CALL
};
static void *next[OOS_GUARD_CALLS];

typedef void *(*dlsym_function)(void *, const char *);

static void *no_dlsym(void *handle, const char *name)
{
    (void)handle, (void)name;
    return NULL;
}

/* Read by the exported dlsym() of dlsym.S, which jumps there with its caller's return address in place. */
__attribute__((visibility("hidden"))) dlsym_function oos_guard_dlsym_next = no_dlsym;
__attribute__((visibility("hidden"))) void *oos_guard_dlsym(void **handle, const char *name);

static int nowhere(void)
{
    return 3; /* not initialized, to runtime and driver; to NVML: not supported */
}

static void dlsym_find(void)
{
    static const char *const versions[] = {"GLIBC_2.34", "GLIBC_2.17", "GLIBC_2.2.5"};
    if (__atomic_load_n(&oos_guard_dlsym_next, __ATOMIC_ACQUIRE) != no_dlsym) return;
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++) {
        void *found = dlvsym(RTLD_NEXT, "dlsym", versions[i]);
        if (!found) continue;
        dlsym_function function;
        memcpy(&function, &found, sizeof function);
        __atomic_store_n(&oos_guard_dlsym_next, function, __ATOMIC_RELEASE);
        return;
    }
}

static void *ask(void *handle, const char *name)
{
    dlsym_find();
    return __atomic_load_n(&oos_guard_dlsym_next, __ATOMIC_ACQUIRE)(handle, name);
}

static bool is_forwarder(const void *address)
{
    for (size_t i = 0; i < OOS_GUARD_CALLS; i++)
        if (address == (const void *)calls[i].forwarder) return true;
    return false;
}

/* The library of a function that we keep: closing it must not take the function away under us. */
static void library_keep(const void *address)
{
    Dl_info info;
    if (dladdr(address, &info) && info.dli_fname && info.dli_fname[0])
        dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
}

static void next_keep(oos_guard_call call, void *address)
{
    void *none = NULL;
    if (__atomic_compare_exchange_n(&next[call], &none, address, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        library_keep(address);
}

static const char *const prefixes[] = {[OOS_GUARD_RUNTIME] = "libcudart.so",
                                       [OOS_GUARD_DRIVER] = "libcuda.so",
                                       [OOS_GUARD_NVML] = "libnvidia-ml.so"};

typedef struct search {
    const char *prefix, *name;
    void *found;
} search;

/* Libraries that an extension module brought along are in a scope of their own, where RTLD_NEXT does not look. */
static int look_into(struct dl_phdr_info *object, size_t size, void *argument)
{
    search *s = argument;
    (void)size;
    const char *base = object->dlpi_name ? strrchr(object->dlpi_name, '/') : NULL;
    if (!base || strncmp(base + 1, s->prefix, strlen(s->prefix)) != 0) return 0;
    void *handle = dlopen(object->dlpi_name, RTLD_LAZY | RTLD_NOLOAD);
    if (!handle) return 0;
    s->found = ask(handle, s->name);
    dlclose(handle);
    return s->found != NULL;
}

void *oos_guard_find(oos_guard_library library, const char *name)
{
    void *found = ask(RTLD_NEXT, name);
    if (found && !is_forwarder(found)) return found;
    search s = {prefixes[library], name, NULL};
    dl_iterate_phdr(look_into, &s);
    return is_forwarder(s.found) ? NULL : s.found;
}

void *oos_guard_next(oos_guard_call call)
{
    void *found = __atomic_load_n(&next[call], __ATOMIC_ACQUIRE);
    if (found) return found;
    found = oos_guard_find(calls[call].library, calls[call].name);
    if (!found) return (void *)nowhere; /* not kept: the library may come later */
    next_keep(call, found);
    return found;
}

static int call_by_name(const char *name)
{
    if (strncmp(name, "cu", 2) != 0 && strncmp(name, "nvml", 4) != 0) return -1;
    for (int i = 0; i < OOS_GUARD_CALLS; i++)
        if (strcmp(calls[i].name, name) == 0) return i;
    return -1;
}

static bool same_library(const void *one, const void *other)
{
    Dl_info first, second;
    return !dladdr(one, &first) || !dladdr(other, &second) || first.dli_fbase == second.dli_fbase;
}

/* Nobody but us has it: the question goes to the C library, which has not, so that the answer is "undefined symbol". A program that looks
 * whether CUDA is loaded must not find us. */
static void look_elsewhere(void **handle)
{
    void *libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
    if (!libc) return;
    *handle = libc;
    dlclose(libc); /* it stays: everything needs it */
}

/* NULL: none of ours, or not to be had; then the real one answers, asked with *handle. So it does for a second copy of the runtime (of cuda-python, say): a
 * forwarder has one function behind it, and what that copy takes comes through the driver, where it is counted. */
void *oos_guard_dlsym(void **handle, const char *name)
{
    dlsym_find();
    int const call = name ? call_by_name(name) : -1;
    if (call < 0) return NULL;
    void *found = ask(*handle, name);
    if (!found) return NULL;
    if (is_forwarder(found)) { /* our own export was met first: is there one behind it? */
        if (oos_guard_next((oos_guard_call)call) != (void *)nowhere) return found;
        look_elsewhere(handle);
        return NULL;
    }
    const void *kept =
        calls[call].library == OOS_GUARD_RUNTIME ? oos_guard_next((oos_guard_call)call) : found;
    if (kept != (const void *)nowhere && !same_library(kept, found)) return NULL;
    next_keep((oos_guard_call)call, found);
    return (void *)calls[call].forwarder;
}

static bool joined_is(const char *name, const char *suffix, const char *whole)
{
    size_t const len = strlen(name);
    return strncmp(whole, name, len) == 0 && strcmp(whole + len, suffix) == 0;
}

/* The driver is asked for names without their version: "cuMemAlloc" means cuMemAlloc_v2 since CUDA 3.2. */
void oos_guard_put_forwarder(const char *name, unsigned version, bool per_thread_stream, void **address)
{
    int found = -1;
    if (!name || !address || !*address || is_forwarder(*address)) return;
    bool const first_form = strcmp(name, "cuGetProcAddress") == 0 && version < 12000; /* one argument fewer */
    for (int i = 0; i < OOS_GUARD_CALLS && found < 0; i++)
        if (per_thread_stream && joined_is(name, "_ptsz", calls[i].name)) found = i;
    for (int i = 0; i < OOS_GUARD_CALLS && found < 0; i++)
        if (!first_form && joined_is(name, "_v2", calls[i].name)) found = i;
    for (int i = 0; i < OOS_GUARD_CALLS && found < 0; i++)
        if (strcmp(calls[i].name, name) == 0) found = i;
    if (found < 0) return;
    next_keep((oos_guard_call)found, *address);
    *address = (void *)calls[found].forwarder;
}
