#include "machine/machine.h"

#include <dlfcn.h>
#include <string.h>

const char *const oos_libcuda_names[] = {
#define OOS_LIBCUDA_NAME(name, arguments) #name,
    OOS_LIBCUDA_MAP(OOS_LIBCUDA_NAME)
#undef OOS_LIBCUDA_NAME
        NULL};

int oos_libcuda_open(oos_libcuda *ret_cuda)
{
    enum { COUNT = sizeof oos_libcuda_names / sizeof *oos_libcuda_names - 1 };
    void *found[COUNT];
    _Static_assert(sizeof found == sizeof *ret_cuda, "a pointer for each name");
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) return 0;
    for (int i = 0; i < COUNT; i++) found[i] = dlsym(library, oos_libcuda_names[i]);
    memcpy(ret_cuda, found, sizeof found);
    return 1;
}
