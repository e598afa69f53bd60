/* What the stand-ins of a dry run hold on the heap of an engine's process, counted: a library to preload behind them.
 *
 *     STANDIN_HEAP=FILE STANDIN_LIBRARIES=FOLDER LD_PRELOAD=libstandin_heap.so oomsight dryrun ...
 *
 * Every malloc, calloc, realloc and strdup whose caller lies in a library from FOLDER is remembered until it is freed, by whomever.
 * FILE.PID has three numbers of eight bytes at all times: bytes held, blocks held, blocks ever taken. For serve_growth.py. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *old, size_t size);
extern void __libc_free(void *block);

enum { RANGES = 64, SLOTS = 1 << 18 };

typedef struct block {
    uintptr_t at; /* 0: free */
    size_t bytes;
} block;

static struct {
    uintptr_t begin, end;
} ranges[RANGES];
static unsigned range_count;
static uintptr_t least, most;
static block blocks[SLOTS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t nowhere[3];
static uint64_t *counters = nowhere; /* bytes held, blocks held, blocks ever taken */

static int range_note(struct dl_phdr_info *info, size_t size, void *folder)
{
    (void)size;
    if (!info->dlpi_name || !strstr(info->dlpi_name, folder)) return 0;
    for (int i = 0; i < info->dlpi_phnum && range_count < RANGES; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        if (part->p_type != PT_LOAD || !(part->p_flags & PF_X)) continue;
        uintptr_t const begin = info->dlpi_addr + part->p_vaddr;
        ranges[range_count].begin = begin;
        ranges[range_count++].end = begin + part->p_memsz;
        if (!least || begin < least) least = begin;
        if (begin + part->p_memsz > most) most = begin + part->p_memsz;
    }
    return 0;
}

static void counters_open(void)
{
    char path[512];
    const char *file = getenv("STANDIN_HEAP");
    if (!file || !range_count) return;
    snprintf(path, sizeof path, "%s.%d", file, (int)getpid());
    int const fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) return;
    void *at = MAP_FAILED;
    if (ftruncate(fd, sizeof nowhere) == 0)
        at = mmap(NULL, sizeof nowhere, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (at == MAP_FAILED) return;
    memcpy(at, counters, sizeof nowhere);
    counters = at;
}

static void before_fork(void)
{
    pthread_mutex_lock(&lock);
}

static void after_fork(void)
{
    pthread_mutex_unlock(&lock);
}

static void child_of_fork(void)
{
    pthread_mutex_unlock(&lock);
    counters_open();
}

__attribute__((constructor)) static void begin(void)
{
    char *folder = getenv("STANDIN_LIBRARIES");
    if (folder) dl_iterate_phdr(range_note, folder);
    counters_open();
    pthread_atfork(before_fork, after_fork, child_of_fork);
}

static int is_ours(const void *caller)
{
    uintptr_t const at = (uintptr_t)caller;
    if (at < least || at >= most) return 0;
    for (unsigned i = 0; i < range_count; i++)
        if (at >= ranges[i].begin && at < ranges[i].end) return 1;
    return 0;
}

static size_t home(uintptr_t at)
{
    return (size_t)((at >> 4) * 0x9e3779b97f4a7c15u >> 40) % SLOTS;
}

static void *taken(void *at, size_t bytes, const void *caller)
{
    if (!at || !is_ours(caller)) return at;
    pthread_mutex_lock(&lock);
    size_t i = home((uintptr_t)at);
    if (counters[1] < SLOTS / 2) { /* beyond that they are only counted: it is the very growth we look for */
        while (blocks[i].at) i = (i + 1) % SLOTS;
        blocks[i] = (block){(uintptr_t)at, bytes};
    }
    counters[0] += bytes;
    counters[1]++;
    counters[2]++;
    pthread_mutex_unlock(&lock);
    return at;
}

/* Closes the gap, so that a search may end at the first free slot. */
static void slot_clear(size_t i)
{
    blocks[i].at = 0;
    for (size_t k = (i + 1) % SLOTS; blocks[k].at; k = (k + 1) % SLOTS) {
        size_t const wanted = home(blocks[k].at);
        if ((k > i && (wanted <= i || wanted > k)) || (k < i && wanted <= i && wanted > k)) {
            blocks[i] = blocks[k];
            blocks[k].at = 0;
            i = k;
        }
    }
}

static void freed(const void *at)
{
    if (!at || !counters[1]) return;
    pthread_mutex_lock(&lock);
    for (size_t i = home((uintptr_t)at); blocks[i].at; i = (i + 1) % SLOTS) {
        if (blocks[i].at != (uintptr_t)at) continue;
        counters[0] -= blocks[i].bytes;
        counters[1]--;
        slot_clear(i);
        break;
    }
    pthread_mutex_unlock(&lock);
}

void *malloc(size_t size)
{
    return taken(__libc_malloc(size), size, __builtin_return_address(0));
}

void *calloc(size_t count, size_t size)
{
    return taken(__libc_calloc(count, size), count * size, __builtin_return_address(0));
}

void *realloc(void *old, size_t size)
{
    freed(old);
    return taken(__libc_realloc(old, size), size, __builtin_return_address(0));
}

void free(void *at)
{
    freed(at);
    __libc_free(at);
}

char *strdup(const char *text)
{
    size_t const bytes = strlen(text) + 1;
    char *copy = __libc_malloc(bytes);
    if (copy) memcpy(copy, text, bytes);
    return taken(copy, bytes, __builtin_return_address(0));
}
