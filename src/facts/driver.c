#include "facts/driver.h"

/* The families whose boards are made for NVLink; data/gpus says which of them have none. */
static bool is_linked_family(unsigned capability)
{
    return capability == 70 || capability == 80 || capability == 90 || capability / 10 == 10;
}

/* Where no reading of the device is known: total - free at start was 0.25 GiB on L4, 0.49 on L40S and A100, 0.61 on H100. */
static void put_context(oos_driver *driver, const oos_driver_costs *seen)
{
    uint64_t const typical = oos_u64_or(seen->context_bytes, 450 * OOS_MIB);
    driver->context_bytes = typical;
    driver->context_low = typical - typical / 4;
    driver->context_high = typical + typical / 3;
}

/* A graph 64 KiB and a node 12: nine starts of 0.10.1 and 0.11.0 on A100, L40S and H100 of two sources, all within 15 %; from torch 2.9
 * half of both on 9.0 (eleven starts of 0.12 to 0.27), two thirds on 12.x (seven of six sources, 0.18 to 0.28), and as before on 8.x (0.11.2
 * L4, 0.16.0 L40S). A quarter on 10.x: one start of 0.20.2 left next to nothing for them. */
static void put_graphs(oos_driver *driver, unsigned capability, const oos_driver_costs *seen,
                       uint64_t torch_minor)
{
    bool const newer = torch_minor == 0 || torch_minor >= 9;
    unsigned const twelfths = !newer || capability < 90 ? 12
                              : capability / 10 == 10   ? 3
                              : capability < 100        ? 6
                                                        : 8;
    driver->graph_bytes = oos_u64_or(seen->graph_bytes, 64 * OOS_KIB * twelfths / 12);
    driver->graph_node_bytes = oos_u64_or(seen->graph_node_bytes, OOS_KIB * twelfths);
}

/* Kernels, read on starts without communicators: L4 0.02, T4 0.03 - 0.05, L40S 0.04, A100 0.09, V100 0.09, H100 0.07 - 0.13 GiB, over some
 * 200 kernels. Communicators of a whole start, for whoever charges them at once: 420 MiB over PCIe, 700 over NVLink. */
oos_driver oos_driver_of(unsigned capability, const oos_driver_costs *seen, uint64_t torch_minor)
{
    bool const linked = is_linked_family(capability);
    oos_driver driver = {.nvlink = oos_flag_or(seen->nvlink, linked),
                         .large =
                             capability == 70 || capability == 80 || capability == 90 || capability >= 100,
                         .kernel_bytes = oos_u64_or(seen->kernel_bytes, 512 * OOS_KIB)};
    driver.kernels_bytes = (driver.large ? 100 : 45) * OOS_MIB;
    driver.kernels_high = (driver.large ? 250 : 120) * OOS_MIB;
    driver.collective_bytes = oos_u64_or(seen->collective_bytes, (driver.nvlink ? 700 : 420) * OOS_MIB);
    driver.communicator_bytes = (linked ? 512 : 136) * OOS_MIB;
    driver.communicators_high =
        (linked ? 1900 : 900) * OOS_MIB; /* also without NVLink: one start less is told right with 900 */
    put_context(&driver, seen);
    put_graphs(&driver, capability, seen, torch_minor);
    return driver;
}
