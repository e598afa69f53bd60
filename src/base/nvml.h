/* Structures of NVML, as its header lays them out: the machine is asked by them, and guard and stand-in answer by them. */
#pragma once

typedef struct oos_nvml_memory {
    unsigned long long total, free, used;
} oos_nvml_memory;

typedef struct oos_nvml_memory_v2 {
    unsigned version;
    unsigned long long total, reserved, free, used;
} oos_nvml_memory_v2;

typedef struct oos_nvml_pci_info {
    char short_bus_id[16];
    unsigned domain, bus, device, device_id, subsystem_id;
    char bus_id[32];
} oos_nvml_pci_info;
