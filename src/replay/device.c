/* Counting bytes and handing out addresses. */
#include "replay/replay.h"

#include "base/check.h"
#include "base/size.h"

#include <stdlib.h>

#define PAGE (2 * OOS_MIB)
#define FIRST_ADDRESS ((uint64_t)0x700000000000)
#define FIRST_RANGE ((uint64_t)0x600000000000)

void oos_device_init(oos_device *device, uint64_t total_bytes, uint64_t base_bytes, oos_placement placement)
{
    oos_assert(base_bytes <= total_bytes);
    *device = (oos_device){.total_bytes = total_bytes,
                           .base_bytes = base_bytes,
                           .placement = placement,
                           .next_address = FIRST_ADDRESS,
                           .next_range = FIRST_RANGE};
}

void oos_device_release(oos_device *device)
{
    free(device->spans);
    device->spans = NULL;
}

uint64_t oos_device_free_bytes(const oos_device *device)
{
    return oos_sub(device->total_bytes, oos_add(device->base_bytes, device->used_bytes));
}

/* Index of the first span at or behind the address. */
static size_t span_at(const oos_device *device, uint64_t address)
{
    size_t low = 0, high = device->span_count;
    while (low < high) {
        size_t const middle = low + (high - low) / 2;
        if (device->spans[middle].address < address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool place_in_gap(oos_device *device, uint64_t bytes, uint64_t *ret_address)
{
    if (device->span_count == device->span_capacity) {
        size_t const capacity = device->span_capacity ? device->span_capacity * 2 : 256;
        oos_span *grown = realloc(device->spans, capacity * sizeof *grown);
        if (!grown) return false;
        device->spans = grown;
        device->span_capacity = capacity;
    }
    uint64_t address = FIRST_ADDRESS;
    size_t at = 0;
    for (; at < device->span_count; at++) {
        if (device->spans[at].address - address >= bytes) break;
        address = device->spans[at].address + device->spans[at].bytes;
    }
    memmove(device->spans + at + 1, device->spans + at, (device->span_count - at) * sizeof *device->spans);
    device->spans[at] = (oos_span){address, bytes};
    device->span_count++;
    *ret_address = address;
    return true;
}

/* The run asks for what the recorded one did not: from here on addresses are made up, behind all recorded ones. */
static void leave_given(oos_device *device)
{
    device->placement = OOS_PLACEMENT_BUMP;
    for (size_t i = 0; i < device->given_count; i++) {
        uint64_t const end = oos_add(device->given[i].address, oos_round_up(device->given[i].bytes, PAGE));
        if (end < (uint64_t)1 << 62) device->next_address = oos_max(device->next_address, end);
    }
}

bool oos_device_take(oos_device *device, uint64_t bytes, uint64_t *ret_address)
{
    uint64_t const taken = oos_round_up(bytes, PAGE);
    if (taken > oos_device_free_bytes(device)) return false;
    switch (device->placement) {
    case OOS_PLACEMENT_FIRST_FIT:
        if (!place_in_gap(device, taken, ret_address)) return false;
        break;
    case OOS_PLACEMENT_GIVEN:
        if (device->given_at < device->given_count && device->given[device->given_at].bytes == bytes) {
            *ret_address = device->given[device->given_at++].address;
            break;
        }
        leave_given(device);
        __attribute__((fallthrough));
    case OOS_PLACEMENT_BUMP:
        *ret_address = device->next_address;
        device->next_address += taken;
        break;
    }
    device->used_bytes += taken;
    oos_assert(device->used_bytes <= device->total_bytes - device->base_bytes);
    return true;
}

void oos_device_give(oos_device *device, uint64_t address, uint64_t bytes, bool lost)
{
    if (lost) return;
    oos_assert(oos_round_up(bytes, PAGE) <= device->used_bytes);
    device->used_bytes -= oos_round_up(bytes, PAGE);
    if (device->placement != OOS_PLACEMENT_FIRST_FIT) return;
    size_t const at = span_at(device, address);
    if (at >= device->span_count || device->spans[at].address != address) return;
    device->span_count--;
    memmove(device->spans + at, device->spans + at + 1, (device->span_count - at) * sizeof *device->spans);
}

uint64_t oos_device_reserve(oos_device *device, uint64_t bytes)
{
    if (device->placement == OOS_PLACEMENT_GIVEN && device->given_range_at < device->given_range_count)
        return device->given_ranges[device->given_range_at++].address;
    uint64_t const address = device->next_range;
    device->next_range += oos_round_up(bytes, PAGE);
    return address;
}

bool oos_device_create(oos_device *device, uint64_t bytes)
{
    if (bytes > oos_device_free_bytes(device)) return false;
    device->used_bytes += bytes;
    return true;
}

void oos_device_destroy(oos_device *device, uint64_t bytes)
{
    oos_assert(bytes <= device->used_bytes);
    device->used_bytes -= bytes;
}
