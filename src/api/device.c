/* The device of a plan: the one that is named, the known one of a size, or that of this machine. */
#include "api/plan_handle.h"
#include "base/ascii.h"
#include "base/shown.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>

static bool capability_parse(const char *text, unsigned *ret_capability)
{
    char *end;
    unsigned long const major = strtoul(text, &end, 10);
    if (end == text || major > 99) return false;
    unsigned minor = 0;
    if (*end == '.') {
        if (!oos_is_digit(end[1]) || end[2]) return false;
        minor = (unsigned)(end[1] - '0');
    } else if (*end || major < 10) {
        return false;
    } else { /* "90": no dot */
        *ret_capability = (unsigned)major;
        return true;
    }
    *ret_capability = (unsigned)major * 10 + minor;
    return true;
}

/* A device known by nothing but its size: the known one of that size, if there is one within half a percent. */
static const oos_gpu *nearest_by_total(const oos_gpus *gpus, uint64_t total_bytes)
{
    const oos_gpu *best = NULL;
    uint64_t best_distance = total_bytes / 200;
    for (size_t i = 0; i < gpus->count; i++) {
        uint64_t const known = gpus->list[i].total_bytes;
        uint64_t const distance = known > total_bytes ? known - total_bytes : total_bytes - known;
        if (gpus->list[i].slice || distance > best_distance) continue;
        if (best && distance == best_distance) continue;
        best = &gpus->list[i];
        best_distance = distance;
    }
    return best;
}

oomsight_status oos_api_unknown_gpu(const oomsight_data *data, const char *word, oomsight_error *reterr)
{
    const char *names[3];
    size_t const count = oos_gpus_suggest(&data->gpus, oos_view_of(word), names, 3);
    if (count == 0)
        return oos_fail(
            reterr, OOMSIGHT_USAGE,
            "no GPU is called '%s' ('oomsight gpus' lists them; or give --gpu-total and --gpu-cc)", word);
    return oos_fail(reterr, OOMSIGHT_USAGE, "no GPU is called '%s'; did you mean %s%s%s?", word, names[0],
                    count > 1 ? " or " : "", count > 1 ? names[1] : "");
}

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

/* "h100x1" or "1xh100": one and no more. */
static bool says_one(const char *word)
{
    size_t const len = word ? strlen(word) : 0;
    return len > 2 && ((oos_lower(word[len - 2]) == 'x' && word[len - 1] == '1') ||
                       (word[0] == '1' && oos_lower(word[1]) == 'x'));
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

oomsight_status oos_ask_device(oomsight_plan *plan, oos_plan_ask *ask, oomsight_error *reterr)
{
    const oomsight_plan_params *params = ask->params;
    const oos_machine *machine = ask->machine;
    oos_device_facts device = {.count = 1};
    const oos_gpu *gpu = NULL;
    bool const here = !params->gpu && !params->gpu_total_bytes && machine && oos_machine_taken(machine, 0);
    if (here) {
        device_here(params, machine, &device);
    } else if (params->gpu) {
        gpu = oos_ask_is_every_gpu(ask)
                  ? largest_gpu(&params->data->gpus)
                  : oos_gpus_find(&params->data->gpus, oos_view_of(params->gpu), &device.count);
        if (!gpu) return oos_api_unknown_gpu(params->data, params->gpu, reterr);
    } else if (!params->gpu_total_bytes) {
        return oos_fail(reterr, OOMSIGHT_USAGE,
                        "which GPU? Give --gpu NAME (for example --gpu 4090) or --gpu-total SIZE");
    } else if (!params->compute_capability) {
        gpu = nearest_by_total(&params->data->gpus, params->gpu_total_bytes);
        ask->gpu_note = gpu ? "no --gpu was given: taken for the known device of that size"
                            : "no --gpu was given: compute capability 8.0 is assumed";
    }
    if (!here) {
        device = oos_device_of_gpu(gpu, device.count, params->host_ram_bytes);
        device.count_given = device.count > 1 || says_one(params->gpu);
    }
    if (params->gpu_total_bytes)
        device.total_bytes = device.total_low = device.total_high = params->gpu_total_bytes;
    if (!here && (!gpu || !params->gpu)) device.nvml_total_bytes = device.total_bytes;
    device.used_bytes = params->gpu_used_bytes;
    device.used_known = params->gpu_used_known != 0;
    if (params->compute_capability && !capability_parse(params->compute_capability, &device.capability))
        return oos_fail(reterr, OOMSIGHT_USAGE, "'%s' is not a compute capability such as 9.0",
                        params->compute_capability);
    plan->start.device = device;
    if (params->gpu && oos_gpus_is_size(oos_view_of(params->gpu)))
        ask->gpu_note = oos_arena_format(
            plan->arena,
            "%s: the GPU of that size with the least usable memory; name another with --gpu NAME",
            params->gpu);
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

void oos_ask_held(oomsight_plan *plan, oos_plan_ask *ask)
{
    const oomsight_plan_params *params = ask->params;
    oos_device_facts *device = &plan->start.device;
    if (!ask->machine || params->gpu || params->gpu_total_bytes) return;
    ask->gpu_note = "the GPU of this machine";
    if (!params->gpu_used_known)
        ask->held = held_here(plan->arena, ask->machine, plan->engine->ranks(&plan->serve), device);
    if (!device->host_bytes) device->host_bytes = oos_machine_ram(ask->machine);
}
