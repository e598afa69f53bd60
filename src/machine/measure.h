/* What a device costs before anybody allocates: totals by every API, the context, the granule, CUDA graphs, communicators. Asked of
 * libcuda and NVML by dlopen, in processes of their own: the caller never holds a context, and a driver that hangs is given up. */
#ifndef OOS_MACHINE_MEASURE_H
#define OOS_MACHINE_MEASURE_H

#include "machine/machine.h"

enum { OOS_MEASURE_MISSING = 16 };

/* What was being done; the last one stands when it did not come back. */
#define OOS_MEASURE_STAGE_MAP(X)                                                                             \
    X(BEGIN, "begin")                                                                                        \
    X(LOAD, "loading libcuda.so.1")                                                                          \
    X(INIT, "cuInit")                                                                                        \
    X(NVML, "NVML")                                                                                          \
    X(CONTEXT, "making a context")                                                                           \
    X(ALLOCATE, "allocations")                                                                               \
    X(KERNEL, "the first kernel")                                                                            \
    X(GRAPHS, "CUDA graphs")                                                                                 \
    X(RANKS, "communicators")                                                                                \
    X(DONE, "done")
typedef enum oos_measure_stage {
#define OOS_MEASURE_ENUM(name, word) OOS_MEASURE_##name,
    OOS_MEASURE_STAGE_MAP(OOS_MEASURE_ENUM)
#undef OOS_MEASURE_ENUM
} oos_measure_stage;

const char *oos_measure_stage_word(oos_measure_stage stage);

/* Plain bytes: filled by other processes. What was not measured is not known, and `error` or `missing` says why. */
typedef struct oos_measure {
    oos_measure_stage stage;
    bool timed_out;
    bool stand_in; /* under `oomsight dryrun`: the figures are of a model, no record for anybody */
    char error[160], graph_error[96], rank_error[160];
    char missing[OOS_MEASURE_MISSING][40]; /* calls that this libcuda does not have */
    unsigned missing_count;

    unsigned device_index, device_count;
    char name[96], driver[80], bus_id[32];
    unsigned cuda, capability, sms;
    oos_flag unified;

    oos_u64 total_info, total_device, total_nvml; /* cuMemGetInfo, cuDeviceTotalMem, NVML */
    oos_u64 nvml_reserved;
    oos_u64 absent_bytes;  /* total less free with a context and nothing else; others' are in it */
    oos_u64 context_bytes; /* what NVML's used grew by */
    bool others_seen;      /* somebody held memory before the context was made */
    oos_u64 granule_bytes, small_bytes; /* as told for cuMemCreate; what one byte of cuMemAlloc takes */
    oos_u64 kernel_bytes;               /* first launch of a kernel */
    oos_u64 graph_bytes, node_bytes, graph_launch_bytes;
    oos_u64 control_seen,
        control_expected;      /* a third set of graphs that the two figures were not made from */
    uint64_t resolution_bytes; /* of a node: granule over nodes */
    oos_u64 collective_bytes;
    unsigned nccl_version;
} oos_measure;

/* Device `index` as CUDA counts. `packages`: a site-packages folder in which NCCL may lie, may be NULL. False: no memory or no process. */
bool oos_measure_device(unsigned index, const char *packages, unsigned timeout_ms, oos_measure *ret_measure);

/* The parts that run in those processes. */
void oos_measure_driver(oos_measure *m);
typedef struct oos_measure_ranks {
    char id[128];
    uint32_t id_ready, failed;
    uint64_t before_bytes, after_bytes; /* free on the first device */
    unsigned version;
    char error[160];
    bool done;
} oos_measure_ranks;
void oos_measure_rank(oos_measure_ranks *ranks, int rank, const char *packages);

#endif
