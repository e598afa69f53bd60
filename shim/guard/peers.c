/* Runs that divide the devices with this one: what they hold is nobody's outside memory here. */
#include "guard/guard.h"

#include <string.h>

typedef struct known_peer {
    char path[sizeof((oos_segment_peer *)0)->path];
    oos_segment *segment; /* NULL: it cannot be opened; it is gone then */
} known_peer;

static known_peer known[OOS_SEGMENT_PEERS]; /* under the lock of the run */

/* Kept open: a run that ends takes its file away, and what it still says is read until its launcher is gone. */
static const oos_segment *peer_of(unsigned place, const char *path)
{
    known_peer *peer = &known[place];
    if (strncmp(peer->path, path, sizeof peer->path) == 0) return peer->segment;
    oos_segment_close(peer->segment);
    *peer = (known_peer){{0}, NULL};
    strncpy(peer->path, path, sizeof peer->path - 1);
    if (oos_segment_open(path, &peer->segment) != OOS_SEGMENT_OK) peer->segment = NULL;
    return peer->segment;
}

static uint64_t held_on(const oos_segment *peer, const char *bus_id)
{
    for (uint32_t i = 0; i < peer->device_count && i < OOS_SEGMENT_DEVICES; i++) {
        const oos_segment_device *device = &peer->devices[i];
        if (strncmp(device->spec.name, bus_id, sizeof device->spec.name) == 0)
            return __atomic_load_n(&device->held_bytes, __ATOMIC_RELAXED) +
                   __atomic_load_n(&device->outside_bytes, __ATOMIC_RELAXED);
    }
    return 0;
}

int64_t oos_guard_peers_grown(const oos_segment *run, uint32_t device)
{
    int64_t grown = 0;
    for (unsigned i = 0; i < OOS_SEGMENT_PEERS; i++) {
        const oos_segment_peer *entry = &run->peers[i];
        if (!entry->path[0] || !memchr(entry->path, 0, sizeof entry->path)) continue;
        const oos_segment *peer = peer_of(i, entry->path);
        bool const lives = peer && oos_segment_launched(peer);
        grown += (lives ? (int64_t)held_on(peer, run->devices[device].spec.name) : 0) -
                 (int64_t)entry->base_bytes[device];
    }
    return grown;
}
