/* What was read of a machine, looked at; for every build, also one that can read none. */
#include "machine/machine.h"

#include <string.h>

const char *oos_installed_version(const oos_installed *installed, const char *package)
{
    for (unsigned i = 0; i < installed->package_count; i++)
        if (strcmp(installed->packages[i].name, package) == 0) return installed->packages[i].version;
    return NULL;
}

static const oos_machine_device *at_place(const oos_nvml *nvml, unsigned place)
{
    for (unsigned i = 0; i < nvml->device_count; i++)
        if (nvml->devices[i].visible == place) return &nvml->devices[i];
    return NULL;
}

const oos_machine_device *oos_machine_taken(const oos_machine *machine, unsigned number)
{
    const oos_machine_device *first = at_place(&machine->nvml, 1), *d;
    for (unsigned place = 1; (d = at_place(&machine->nvml, place)); place++)
        if (strcmp(d->name, first->name) == 0 && d->total_bytes == first->total_bytes && number-- == 0)
            return d;
    return NULL;
}

uint64_t oos_machine_ram(const oos_machine *machine)
{
    const oos_host *host = &machine->host;
    if (!host->total_bytes.known) return 0;
    return host->limit_bytes.known ? oos_min(host->total_bytes.value, host->limit_bytes.value)
                                   : host->total_bytes.value;
}

uint64_t oos_machine_held(const oos_machine_device *device, uint64_t shown_bytes)
{
    if (!device->memory_known) return 0;
    uint64_t const kept = device->reserved_known              ? device->reserved_bytes
                          : device->total_bytes > shown_bytes ? device->total_bytes - shown_bytes
                                                              : 0;
    return device->used_bytes > kept ? device->used_bytes - kept : 0;
}
