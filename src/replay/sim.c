/* Making and unmaking a simulator, and its plain answers. */
#include "replay/sim_state.h"
#include "base/check.h"

#include <stdlib.h>

/* Past this the order of section "rules" would not fit its number; no device is near. */
#define MAX_DEVICE_BYTES ((uint64_t)1 << 40)

static bool first_items(oos_sim *sim)
{
    if (!oos_blocks_grow(sim) || !GROW(sim, sim->homes) || !GROW(sim, sim->pools) ||
        !GROW(sim, sim->owners) || !GROW(sim, sim->ranges) || !GROW(sim, sim->uses))
        return false;
    sim->blocks.list[sim->blocks.count++] = (block){0};
    sim->homes.list[sim->homes.count++] = (home){.free = oos_set_create()};
    sim->owners.list[sim->owners.count++] = (owner){.known = true};
    sim->ranges.list[sim->ranges.count++] = (range){.page_bytes = SMALL_SEGMENT};
    sim->uses.list[sim->uses.count++] = (use){0};
    sim->pools.list[sim->pools.count++] = (pool){.small = true};
    sim->pools.list[sim->pools.count++] = (pool){.small = false};
    return sim->homes.list[0].free != NULL;
}

oomsight_status oos_sim_create(const oos_sim_params *params, oos_sim **ret_sim, oomsight_error *reterr)
{
    if (params->total_bytes > MAX_DEVICE_BYTES)
        return oos_fail(reterr, OOMSIGHT_MALFORMED,
                        "a device of %llu bytes is more than replay can lay out: at most %llu (%llu TiB)",
                        (unsigned long long)params->total_bytes, (unsigned long long)MAX_DEVICE_BYTES,
                        (unsigned long long)(MAX_DEVICE_BYTES >> 40));
    if (params->base_bytes > params->total_bytes)
        return oos_fail(reterr, OOMSIGHT_MALFORMED,
                        "other processes use %llu bytes of a device that has only %llu",
                        (unsigned long long)params->base_bytes, (unsigned long long)params->total_bytes);
    oos_sim *sim = calloc(1, sizeof *sim);
    if (!sim) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a simulator");
    sim->params = *params;
    sim->rules = oos_torch_rules_of(params->torch);
    oos_device_init(&sim->device, params->total_bytes, params->base_bytes, params->placement);
    sim->device.given = params->given;
    sim->device.given_count = params->given_count;
    sim->device.given_ranges = params->given_ranges;
    sim->device.given_range_count = params->given_range_count;
    oos_settings_init(&sim->settings);
    oomsight_status status = OOMSIGHT_OK;
    if (!first_items(sim)) status = oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a simulator");
    if (status == OOMSIGHT_OK && params->settings && *params->settings)
        status = oos_settings_apply(&sim->settings, &sim->rules, oos_view_of(params->settings), reterr);
    if (status != OOMSIGHT_OK) {
        oos_sim_free(sim);
        return status;
    }
    if (sim->settings.memory_fraction < 1) oos_sim_set_fraction(sim, sim->settings.memory_fraction);
    *ret_sim = sim;
    return OOMSIGHT_OK;
}

void oos_sim_free(oos_sim *sim)
{
    if (!sim) return;
    for (uint32_t i = 0; i < sim->homes.count; i++) {
        oos_set_free(sim->homes.list[i].free);
        oos_set_free(sim->homes.list[i].unmapped);
    }
    for (uint32_t i = 0; i < sim->pools.count; i++) free(sim->pools.list[i].homes);
    for (uint32_t i = 0; i < sim->streams.count; i++) free(sim->streams.list[i].queue);
    free(sim->blocks.list);
    free(sim->homes.list);
    free(sim->pools.list);
    free(sim->owners.list);
    free(sim->owner_buckets);
    free(sim->ranges.list);
    free(sim->uses.list);
    free(sim->streams.list);
    free(sim->routes.list);
    oos_id_table_release(&sim->freeable);
    oos_id_table_release(&sim->lenders);
    free(sim->deferred.list);
    free(sim->event_streams.list);
    free(sim->scratch.list);
    free(sim->log.list);
    oos_device_release(&sim->device);
    free(sim);
}

bool oos_sim_failed(const oos_sim *sim)
{
    return sim->failed;
}

void oos_sim_set_fraction(oos_sim *sim, double fraction)
{
    if (!(fraction >= 0)) fraction = 0;
    if (fraction > 1) fraction = 1;
    sim->limited = fraction < 1 || !sim->rules.full_fraction_unsets;
    sim->allowed_bytes = (uint64_t)(fraction * (double)sim->device.total_bytes);
    oos_assert(sim->allowed_bytes <= sim->device.total_bytes);
}

oomsight_status oos_sim_set_settings(oos_sim *sim, oos_view text, oomsight_error *reterr)
{
    return oos_settings_apply(&sim->settings, &sim->rules, text, reterr);
}

uint64_t oos_sim_address(const oos_sim *sim, uint32_t index)
{
    oos_assert(index < sim->blocks.count);
    return sim->blocks.list[index].address;
}

uint64_t oos_sim_block_bytes(const oos_sim *sim, uint32_t index)
{
    oos_assert(index < sim->blocks.count);
    return sim->blocks.list[index].bytes;
}

bool oos_sim_segment(const oos_sim *sim, uint32_t index, uint64_t *ret_address, uint64_t *ret_bytes)
{
    const block *blocks = sim->blocks.list;
    if (blocks[index].range) return false;
    while (blocks[index].prev) index = blocks[index].prev;
    *ret_address = blocks[index].address;
    *ret_bytes = 0;
    for (; index; index = blocks[index].next) *ret_bytes += blocks[index].bytes;
    return true;
}

const oos_device *oos_sim_device(const oos_sim *sim)
{
    return &sim->device;
}

const oos_torch_rules *oos_sim_rules(const oos_sim *sim)
{
    return &sim->rules;
}
