/* The loader knows a library by the name it has in it, but opens a path as it stands: engines that give the whole path of the wheel's
 * libcudart would have it beside the stand-in, and call into it. */
#include "phantom/phantom.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

__attribute__((visibility("hidden"))) void *(*oos_dlopen_next)(const char *, int);
__attribute__((visibility("hidden"))) const char *oos_dlopen_name(const char *name);

/* A name of a library as stand-ins have it: libX.so, libX.so.12. */
static const char *soname_of(const char *path)
{
    const char *slash = path ? strrchr(path, '/') : NULL;
    return slash && strncmp(slash + 1, "lib", 3) == 0 && strstr(slash, ".so") ? slash + 1 : NULL;
}

const char *oos_dlopen_name(const char *name)
{
    static char folder[1024];
    static _Thread_local char path[1200];
    if (!oos_dlopen_next) oos_dlopen_next = (void *(*)(const char *, int))dlsym(RTLD_NEXT, "dlopen");
    const char *soname = soname_of(name);
    if (!soname || !getenv("OOMSIGHT_SEGMENT")) return name;
    Dl_info self;
    if (!folder[0] && dladdr((void *)&oos_dlopen_next, &self) && self.dli_fname) {
        const char *slash = strrchr(self.dli_fname, '/');
        char found[1024];
        int const len = slash ? (int)(slash - self.dli_fname) : 0;
        if (len > 0 && len < (int)sizeof found) {
            snprintf(found, sizeof found, "%.*s", len, self.dli_fname);
            memcpy(folder, found, sizeof folder);
        }
    }
    snprintf(path, sizeof path, "%s/%s", folder, soname);
    return folder[0] && strlen(soname) < 100 && access(path, R_OK) == 0 ? path : name;
}
