/* Counting calls by name. Each stand-in brings a table and a run of counters on pages of its own; once a segment is
 * attached its pages are put in their place, so that counts survive whatever happens to the process. */
#include "device/internal.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { CALLS_MOST = 2048 }; /* of one library; the largest has some 900 */

static const oos_calls *libraries[OOS_SEGMENT_LIBRARIES];
static unsigned library_count;
static pthread_mutex_t libraries_lock = PTHREAD_MUTEX_INITIALIZER;

/* Under the run lock: this library's rows in the segment, written by whoever comes first. */
static const oos_segment_library *library_enter(oos_segment *segment, const oos_calls *calls)
{
    for (uint32_t i = 0; i < segment->library_count && i < OOS_SEGMENT_LIBRARIES; i++)
        if (strcmp(segment->libraries[i].soname, calls->soname) == 0)
            return segment->libraries[i].call_count == calls->count ? &segment->libraries[i] : NULL;
    if (segment->library_count >= OOS_SEGMENT_LIBRARIES || calls->count > CALLS_MOST ||
        segment->call_count + calls->count > OOS_SEGMENT_CALLS)
        return NULL;
    oos_segment_library *library = &segment->libraries[segment->library_count];
    strncpy(library->soname, calls->soname, sizeof library->soname - 1);
    library->first_call = segment->call_count;
    library->call_count = (uint32_t)calls->count;
    library->counters_offset =
        segment->size_bytes - (uint64_t)(OOS_SEGMENT_LIBRARIES - segment->library_count) * OOS_SEGMENT_PAGE;
    for (uint32_t i = 0; i < calls->count; i++) {
        oos_segment_call *call = &segment->calls[library->first_call + i];
        strncpy(call->name, calls->list[i].name, sizeof call->name - 1);
        call->kind = (uint32_t)calls->list[i].kind;
    }
    segment->call_count += (uint32_t)calls->count;
    segment->library_count++;
    return library;
}

static void library_attach(oos_segment *segment, const oos_calls *calls)
{
    oos_segment_process *mine;
    if (!oos_run_lock(&mine)) return;
    const oos_segment_library *library = library_enter(segment, calls);
    oos_run_unlock();
    if (!library) return;
    int const fd = open(oos_run_path(), O_RDWR | O_CLOEXEC);
    if (fd < 0) return;
    uint64_t before[CALLS_MOST];
    memcpy(before, calls->counters, calls->count * 8);
    void *at = mmap(calls->counters, oos_segment_counters_bytes((uint32_t)calls->count),
                    PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, (off_t)library->counters_offset);
    close(fd);
    if (at == MAP_FAILED) return;
    for (uint64_t i = 0; i < calls->count; i++)
        if (before[i]) __atomic_fetch_add(&calls->counters[i], before[i], __ATOMIC_RELAXED);
}

/* At load: only remembered. A compiler or a shell that inherits LD_PRELOAD gets no further than this. */
void oos_calls_add(const oos_calls *calls)
{
    pthread_mutex_lock(&libraries_lock);
    if (library_count < OOS_SEGMENT_LIBRARIES) libraries[library_count++] = calls;
    pthread_mutex_unlock(&libraries_lock);
    if (oos_run_attached()) library_attach(oos_run(), calls); /* opened late, by name */
}

void oos_calls_attach(void)
{
    oos_segment *segment = oos_run();
    for (unsigned i = 0; segment && i < library_count; i++) library_attach(segment, libraries[i]);
}

void *oos_calls_find(const oos_calls *calls, const char *name)
{
    uint64_t low = 0, high = calls->count;
    while (low < high) {
        uint64_t const middle = (low + high) / 2;
        int const order = strcmp(name, calls->list[middle].name);
        if (order == 0) return calls->list[middle].at;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

/* For calls that hand out something opaque: zeroed, and large enough for what its users keep in it. */
int oos_handle_new(void **ret_handle)
{
    if (!ret_handle) return OOS_CODE_INVALID_VALUE;
    *ret_handle = calloc(1, 256);
    return *ret_handle ? OOS_CODE_OK : OOS_CODE_OUT_OF_MEMORY;
}
