/* Device attributes by the numbers of CUdevice_attribute. What depends on the compute capability follows the table
 * "technical specifications per compute capability" of the CUDA programming guide (13.0). */
#include "device/internal.h"

typedef struct limits {
    unsigned capability;
    int threads_per_sm, blocks_per_sm, shared_optin_bytes, shared_per_sm_bytes;
} limits;

static const limits known_limits[] = {
    {70, 2048, 32, 98304, 98304},    {75, 1024, 16, 65536, 65536},    {80, 2048, 32, 166912, 167936},
    {86, 1536, 16, 101376, 102400},  {87, 1536, 16, 166912, 167936},  {89, 1536, 24, 101376, 102400},
    {90, 2048, 32, 232448, 233472},  {100, 2048, 32, 232448, 233472}, {103, 2048, 32, 232448, 233472},
    {110, 1536, 24, 232448, 233472}, {120, 1536, 24, 101376, 102400}, {121, 1536, 24, 101376, 102400},
};

/* The nearest capability that is not above: new ones keep at least what their elders had. */
static const limits *limits_of(unsigned capability)
{
    const limits *found = &known_limits[0];
    for (unsigned i = 0; i < sizeof known_limits / sizeof *known_limits; i++)
        if (known_limits[i].capability <= capability) found = &known_limits[i];
    return found;
}

int oos_attribute(int attribute, unsigned index)
{
    const oos_device_spec *spec = oos_device_spec_of(index);
    const limits *l = limits_of(spec->capability);
    switch (attribute) {
    case 1: return 1024;        /* threads per block */
    case 2: return 1024;        /* block x */
    case 3: return 1024;        /* block y */
    case 4: return 64;          /* block z */
    case 5: return 2147483647;  /* grid x */
    case 6:                     /* grid y */
    case 7: return 65535;       /* grid z */
    case 8: return 49152;       /* shared memory per block */
    case 9: return 65536;       /* constant memory */
    case 10: return 32;         /* warp */
    case 11: return 2147483647; /* pitch */
    case 12: return 65536;      /* registers per block */
    case 13: return 1410000;    /* clock, kHz */
    case 14: return 512;        /* texture alignment */
    case 15: return 1;          /* overlap */
    case 16: return (int)spec->sms;
    case 18: return spec->unified != 0;                  /* integrated */
    case 19: return 1;                                   /* can map host memory */
    case 31: return 1;                                   /* concurrent kernels */
    case 33: return 1 + (int)oos_device_physical(index); /* PCI bus */
    case 36: return 5000000;                             /* memory clock, kHz */
    case 37: return 384;                                 /* bus width */
    case 38: return 6 << 20;                             /* L2 */
    case 39: return l->threads_per_sm;
    case 40: return 2; /* copy engines */
    case 41: return 1; /* unified addressing */
    case 51: return 32;
    case 75: return (int)spec->capability / 10;
    case 76: return (int)spec->capability % 10;
    case 78: return 1; /* stream priorities */
    case 79:           /* L1 caches */
    case 80: return 1;
    case 81: return l->shared_per_sm_bytes;
    case 82: return 65536;              /* registers per SM */
    case 83: return 1;                  /* managed memory */
    case 87: return 32;                 /* single to double performance */
    case 88: return spec->unified != 0; /* pageable memory access */
    case 89: return 1;                  /* concurrent managed access */
    case 90: return 1;                  /* compute pre-emption */
    case 91: return 1;                  /* host pointer for registered memory */
    case 95: return 1;                  /* cooperative launch */
    case 97: return l->shared_optin_bytes;
    case 99: return 1;  /* host register */
    case 102: return 1; /* virtual memory management */
    case 103: return 1; /* handles as file descriptors */
    case 106: return l->blocks_per_sm;
    case 111: return 1024;                   /* reserved shared memory per block */
    case 115: return 1;                      /* memory pools */
    case 119: return 1;                      /* pool handle types */
    case 120: return spec->capability >= 90; /* clusters */
    case 125: return 1;                      /* IPC events */
    case 129: return 1;                      /* unified function pointers */
    case 131: return -1;                     /* NUMA id */
    default: return 0; /* not supported: multicast, fabric handles, RDMA, textures, MPS ... */
    }
}

int oos_occupancy(unsigned index, int block_threads, size_t shared_bytes)
{
    const limits *l = limits_of(oos_device_spec_of(index)->capability);
    int blocks = block_threads > 0 ? l->threads_per_sm / block_threads : 0;
    if (blocks > l->blocks_per_sm) blocks = l->blocks_per_sm;
    if (shared_bytes) {
        size_t const by_shared = (size_t)l->shared_per_sm_bytes / (shared_bytes + 1024);
        if (by_shared < (size_t)blocks) blocks = (int)by_shared;
    }
    return blocks;
}
