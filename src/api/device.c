/* The device of a plan: the one that is named, the known one of a size, or that of this machine. */
#include "api/api.h"
#include "base/ascii.h"
#include "base/shown.h"
#include "base/text.h"
#include "facts/facts.h"

#include <stdlib.h>
#include <string.h>

/* --gpu all: which of them does it take? Planned for the one with most memory, then for each. */
bool oos_ask_is_every_gpu(const oos_plan_ask *ask)
{
    return ask->params->gpu && strcmp(ask->params->gpu, "all") == 0;
}

static const oos_gpu *largest_gpu(const oos_gpus *gpus)
{
    const oos_gpu *best = NULL;
    for (size_t i = 0; i < gpus->count; i++)
        if (!gpus->list[i].slice && gpus->list[i].memory == OOS_MEMORY_HBM &&
            (!best || gpus->list[i].total_bytes > best->total_bytes))
            best = &gpus->list[i];
    return best;
}

/* Of the known devices that go by this name the one with that much memory: a card with twice the chips has the name of the others. */
static const oos_gpu *known_device(const oos_gpus *gpus, const oos_machine_device *seen)
{
    uint64_t count;
    const oos_gpu *best = seen->name[0] ? oos_gpus_find(gpus, oos_view_of(seen->name), &count) : NULL;
    if (!best || !seen->memory_known) return best;
    for (size_t i = 0; i < gpus->count; i++) {
        const oos_gpu *gpu = &gpus->list[i];
        uint64_t const whole = gpu->slice ? gpu->total_bytes : gpu->nvml_total_bytes,
                       best_whole = best->slice ? best->total_bytes : best->nvml_total_bytes;
        if (strcmp(gpu->name, best->name) == 0 &&
            oos_far(whole, seen->total_bytes) < oos_far(best_whole, seen->total_bytes))
            best = gpu;
    }
    return best;
}

/* The first device that an engine would take here, and as many as are like it. */
static void device_here(const oomsight_plan_params *params, const oos_machine *machine,
                        oos_device_facts *ret_device)
{
    const oos_machine_device *seen = oos_machine_taken(machine, 0);
    const oos_gpu *gpu = known_device(&params->data->gpus, seen);
    unsigned count = 1;
    while (oos_machine_taken(machine, count)) count++;
    oos_device_facts device = oos_device_of_gpu(gpu, count, params->host_ram_bytes);
    device.count_given = true;
    if (!gpu) device.name = seen->name;
    if (!gpu && seen->capability) device.capability = seen->capability;
    uint64_t const whole = gpu && !gpu->slice ? gpu->nvml_total_bytes : device.total_bytes;
    if (seen->memory_known &&
        oos_far(whole, seen->total_bytes) > whole / 50) { /* none that is known: as NVML says */
        device.total_bytes = seen->total_bytes - oos_min(seen->reserved_bytes, seen->total_bytes);
        device.total_low = device.total_high = device.total_bytes;
        device.nvml_total_bytes = seen->total_bytes;
    }
    *ret_device = device;
}

/* What is said of the device that was taken where no name was given. */
static const char *taken_note(oos_arena *arena, const oomsight_plan_params *params, oos_device_by by)
{
    if (params->gpu && oos_gpus_is_size(oos_view_of(params->gpu)))
        return oos_arena_format(
            arena, "%s: the GPU of that size with the least usable memory; name another with --gpu NAME",
            params->gpu);
    if (by == OOS_DEVICE_BY_TOTAL) return "no --gpu was given: taken for the known device of that size";
    return by == OOS_DEVICE_ASSUMED ? "no --gpu was given: compute capability 8.0 is assumed" : NULL;
}

oomsight_status oos_ask_device(oomsight_plan *plan, oos_plan_ask *ask, oomsight_error *reterr)
{
    const oomsight_plan_params *params = ask->params;
    const oos_gpus *gpus = &params->data->gpus;
    const oos_gpu *largest = oos_ask_is_every_gpu(ask) ? largest_gpu(gpus) : NULL;
    oos_device_ask said = {.name = params->gpu, .total_bytes = params->gpu_total_bytes};
    oos_device_found found;
    oos_device_facts *device = &plan->start.device;
    if (params->compute_capability)
        OOS_TRY(oos_capability_read(params->compute_capability, &said.capability, reterr));
    if (largest) {
        *device = oos_device_of_gpu(largest, 1, params->host_ram_bytes);
    } else if (!said.name && !said.total_bytes && ask->machine && oos_machine_taken(ask->machine, 0)) {
        device_here(params, ask->machine, device);
        if (said.capability) device->capability = said.capability;
    } else {
        OOS_TRY(oos_device_find(gpus, &said, &found, reterr));
        *device = oos_device_of_gpu(&found.gpu, found.count, params->host_ram_bytes);
        device->count_given = found.count_given;
        ask->gpu_note = taken_note(plan->arena, params, found.by);
    }
    device->used_bytes = params->gpu_used_bytes;
    device->used_known = params->gpu_used_known != 0;
    return OOMSIGHT_OK;
}

/* Who holds what of the device that has least left, the largest first. */
static const char *holders_told(oos_arena *arena, const oos_machine_device *device, uint64_t held_bytes)
{
    oos_text text = {0};
    char size[32];
    oos_size_print(held_bytes, size, sizeof size);
    oos_text_printf(&text, "%s of it are used by other processes", size);
    unsigned told = 0;
    for (unsigned i = 0; i < device->holder_count && told < 3; i++) {
        const oos_holder *holder = &device->holders[i];
        if (!holder->bytes.known || !holder->bytes.value) continue;
        oos_size_print(holder->bytes.value, size, sizeof size);
        oos_text_printf(&text, "%s%s (process %u) %s", told++ ? ", " : ": ",
                        holder->name[0] ? oos_shown(arena, holder->name) : "?", holder->pid, size);
    }
    const char *copy = text.failed ? NULL : oos_arena_copy(arena, (oos_view){text.ptr, text.len});
    oos_text_free(&text);
    return copy;
}

/* Of the devices that the command takes the one that has least left decides. */
static const char *held_here(oos_arena *arena, const oos_machine *machine, uint64_t ranks,
                             oos_device_facts *device)
{
    const oos_machine_device *fullest = NULL, *d;
    for (unsigned i = 0; i < ranks && (d = oos_machine_taken(machine, i)); i++)
        if (d->memory_known && (!fullest || d->used_bytes > fullest->used_bytes)) fullest = d;
    if (!fullest) return NULL;
    device->used_bytes = oos_machine_held(fullest, device->total_bytes);
    device->used_known = true;
    return device->used_bytes >= OOS_MIB ? holders_told(arena, fullest, device->used_bytes) : NULL;
}

bool oos_api_serve_read(oos_arena *arena, const oomsight_data *data, const char *const *words, size_t count,
                        const char *release, oos_serve *ret_serve)
{
    oos_engine_env env = {0};
    const oos_engine *engine = oos_engine_asked(NULL, words, count);
    const oos_engine_facts *facts;
    const oos_version *versions;
    if (oos_api_facts(data, engine, &facts, NULL) != OOMSIGHT_OK) return false;
    size_t const last = oos_rule_book_versions(facts->rules, &versions) - 1;
    oos_version version = versions[last];
    if (release) (void)oos_version_parse(oos_view_of(release), &version);
    return oos_rule_book_reaches(facts->rules, version, NULL) == OOMSIGHT_OK &&
           oos_serve_read_as(engine->dialect, arena, words, count, &facts->flags, version, ret_serve, &env,
                             NULL) == OOMSIGHT_OK &&
           ret_serve->model;
}

unsigned oomsight_gpus_taken(const oomsight_data *data, const oomsight_dryrun_params *params,
                             const char *const *words, size_t count)
{
    oos_device_ask const said = {params->gpu, params->gpu_total_bytes, params->capability};
    oos_device_found found = {.count_given = true};
    const oos_engine_words *named = oos_engine_words_of(words, count);
    oos_arena *arena = oos_arena_create(16 << 10);
    oos_serve serve;
    uint64_t needed = 0;
    if (arena && named && oos_device_find(&data->gpus, &said, &found, NULL) == OOMSIGHT_OK &&
        !found.count_given && oos_api_serve_read(arena, data, words, count, params->engine_version, &serve)) {
        needed = oos_engine_find(named)->ranks(&serve).reach;
        oos_seen const seen = oos_devices_seen(arena, words, count, NULL, 0);
        for (size_t i = 0; seen.known && i < seen.count; i++)
            if (oos_is_digit(seen.names[i][0]))
                needed = oos_max(needed, strtoull(seen.names[i], NULL, 10) + 1);
    }
    oos_arena_free(arena);
    return (unsigned)oos_min(needed, UINT32_MAX);
}

/* How many the command takes, and how many of those that are there it sees. */
static oomsight_status count_seen(oomsight_plan *plan, oos_plan_ask *ask, oomsight_error *reterr)
{
    oos_device_facts *device = &plan->start.device;
    const char *other = ask->ranks.device ? oos_device_word_other(ask->ranks.device) : NULL;
    if (!other) other = oos_devices_other(ask->words, ask->word_count);
    if (other)
        return oos_fail(reterr, OOMSIGHT_UNSUPPORTED,
                        "the command is for %s, and only NVIDIA GPUs are planned", other);
    oos_seen const seen = oos_devices_seen(plan->arena, ask->words, ask->word_count, NULL,
                                           device->count_given ? device->count : 0);
    if (seen.problem) return oos_fail(reterr, OOMSIGHT_UNSUPPORTED, "%s", seen.problem);
    if (seen.known || !device->count_given) device->count = seen.known ? seen.count : ask->ranks.reach;
    device->count_given |= seen.known;
    return OOMSIGHT_OK;
}

oomsight_status oos_ask_taken(oomsight_plan *plan, oos_plan_ask *ask, oomsight_error *reterr)
{
    const oomsight_plan_params *params = ask->params;
    oos_device_facts *device = &plan->start.device;
    ask->ranks = plan->engine->ranks(&plan->serve);
    if (!oos_ask_is_every_gpu(ask)) OOS_TRY(count_seen(plan, ask, reterr));
    if (!ask->machine || params->gpu || params->gpu_total_bytes) return OOMSIGHT_OK;
    ask->gpu_note = "the GPU of this machine";
    if (!params->gpu_used_known) ask->held = held_here(plan->arena, ask->machine, ask->ranks.here, device);
    if (!device->host_bytes) device->host_bytes = oos_machine_ram(ask->machine);
    return OOMSIGHT_OK;
}
