/* fake_program KIND COUNT [MILLISECONDS]: so many allocations of 100 MiB, with a pause behind each; prints how many were granted.
 * KIND cancel: so many threads that allocate without an end, each cancelled after a moment.
 * KIND probe: no allocation; is CUDA found by somebody who looks whether it is there? (Of the program that is not linked with it.) */
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef WITHOUT_CUDA
typedef struct extent {
    size_t width, height, depth;
} extent;
typedef struct shape3d {
    size_t width, height, depth;
    unsigned format, channels, flags;
} shape3d;
typedef struct shape2d {
    size_t width, height;
    unsigned format, channels;
} shape2d;
int cudaMalloc(void **, size_t);
int cudaFree(void *);
int cudaMallocArray(void **, const int *, size_t, size_t, unsigned);
int cudaMalloc3DArray(void **, const int *, extent, unsigned);
int cudaMallocMipmappedArray(void **, const int *, extent, unsigned, unsigned);
int cudaMalloc3D(void *, extent);
int cudaFreeArray(void *);
int cuArrayCreate_v2(void **, const void *);
int cuArray3DCreate_v2(void **, const void *);
int cuMipmappedArrayCreate(void **, const void *, unsigned);
int cuArrayDestroy(void *);

enum { MIB_100 = 100 << 20, SIDE = 10240 };

static int one(const char *kind)
{
    static int const bytes[5] = {8, 0, 0, 0, 1};
    extent const box = {SIDE, SIDE, 1};
    shape2d const flat = {SIDE, SIDE, 1, 1};
    shape3d const deep = {SIDE, SIDE, 1, 1, 1, 0};
    void *at[4];
    if (!strcmp(kind, "malloc")) return cudaMalloc(at, MIB_100);
    if (!strcmp(kind, "array")) return cudaMallocArray(at, bytes, SIDE, SIDE, 0);
    if (!strcmp(kind, "array3d")) return cudaMalloc3DArray(at, bytes, box, 0);
    if (!strcmp(kind, "mipmapped")) return cudaMallocMipmappedArray(at, bytes, box, 1, 0);
    if (!strcmp(kind, "pitched3d")) return cudaMalloc3D(at, box);
    if (!strcmp(kind, "cu_array")) return cuArrayCreate_v2(at, &flat);
    if (!strcmp(kind, "cu_array3d")) return cuArray3DCreate_v2(at, &deep);
    if (!strcmp(kind, "cu_mipmapped")) return cuMipmappedArrayCreate(at, &deep, 1);
    if (!strcmp(kind, "array_and_free")) {
        int const code = cudaMallocArray(at, bytes, SIDE, SIDE, 0);
        return code ? code : cudaFreeArray(at[0]);
    }
    if (!strcmp(kind, "cu_array_and_free")) {
        int const code = cuArrayCreate_v2(at, &flat);
        return code ? code : cuArrayDestroy(at[0]);
    }
    return 1;
}

static void *without_end(void *argument)
{
    void *at;
    for (;;) {
        if (cudaMalloc(&at, 1024) == 0) cudaFree(at);
        pthread_testcancel();
    }
    return argument;
}

static int cancel(int count)
{
    void *at;
    alarm(200);
    for (int i = 0; i < count; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, without_end, NULL)) return 1;
        usleep(1000);
        pthread_cancel(thread);
        pthread_join(thread, NULL);
        cudaMalloc(&at, 1024);
    }
    printf("cancelled %d\n", count);
    fflush(stdout);
    _exit(0);
}
#endif

int main(int count, char **words)
{
    if (count < 3 || !words[1]) return 2;
#ifdef WITHOUT_CUDA
    bool const found = dlsym(RTLD_DEFAULT, "cuMemAlloc_v2") != NULL;
    const char *error = dlerror();
    bool const told = error && strstr(error, "undefined symbol: cuMemAlloc_v2");
    bool const others = dlsym(RTLD_DEFAULT, "strlen") != NULL;
    printf("found %d\nerror %d\nstrlen %d\n", found, told, others);
    return found || !told || !others;
#else
    int const wanted = atoi(words[2]);
    int granted = 0;
    if (!strcmp(words[1], "cancel")) return cancel(wanted);
    for (int i = 0; i < wanted; i++) {
        granted += one(words[1]) == 0;
        if (count > 3) usleep((unsigned)atoi(words[3]) * 1000);
    }
    printf("granted %d of %d\n", granted, wanted);
    return 0;
#endif
}
