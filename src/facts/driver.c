#include "facts/facts.h"

/* The families whose boards are made for NVLink; data/gpus says which of them have none. */
static bool is_linked_family(unsigned capability)
{
    return capability == 70 || capability == 80 || capability == 90 || capability / 10 == 10;
}

/* What was measured on the device needs no range. */
static oos_constant seen_or(oos_u64 seen, oos_constant fitted)
{
    return seen.known ? (oos_constant){seen.value, seen.value, seen.value, 1} : fitted;
}

/* Boards made for NVLink hold 2,048 threads on a multiprocessor, Turing 1,024, others 1,536. */
uint64_t oos_first_kernel(unsigned capability, uint64_t sms, const oos_driver *driver)
{
    uint64_t const threads = is_linked_family(capability) ? 2048 : capability == 75 ? 1024 : 1536;
    oos_constant const each = oos_constant_at(&oos_device_constants, OOS_DEVICE_first_kernel, NULL);
    return oos_min(oos_mul(oos_mul(sms, threads), each.value), driver->kernels_bytes);
}

oos_driver oos_driver_of(unsigned capability, const oos_driver_costs *seen, uint64_t torch_minor)
{
    oos_constant_where const where = {.capability = capability,
                                      .torch_minor = torch_minor,
                                      .nvlink = oos_flag_or(seen->nvlink, is_linked_family(capability))};
#define FITTED(name) oos_constant_at(&oos_device_constants, OOS_DEVICE_##name, &where)
    uint64_t const context = oos_u64_or(seen->context_bytes, FITTED(context_bytes).value);
    oos_constant const kernels = FITTED(kernels_bytes), communicator = FITTED(communicator_bytes),
                       graph = seen_or(seen->graph_bytes, FITTED(graph_bytes)),
                       node = seen_or(seen->graph_node_bytes, FITTED(graph_node_bytes));
    return (oos_driver){
        .nvlink = where.nvlink,
        .context_bytes = context,
        .context_low = context - context / oos_max(1, FITTED(context_less).value),
        .context_high = oos_add(context, context / oos_max(1, FITTED(context_more).value)),
        .kernel_bytes = oos_u64_or(seen->kernel_bytes, FITTED(kernel_bytes).value),
        .kernels_bytes = kernels.value,
        .kernels_high = kernels.high,
        .collective_bytes = oos_u64_or(seen->collective_bytes, FITTED(collective_bytes).value),
        .communicator_bytes = communicator.value,
        .communicator_high = communicator.high,
        .communicators_high = FITTED(communicators_most).value,
        .graph = graph,
        .graph_node = node,
    };
#undef FITTED
}
