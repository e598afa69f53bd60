/* Which GPUs a PyTorch release has code for, by the builds that are published: data/engines/torch.json. */
#ifndef OOS_FACTS_TORCH_H
#define OOS_FACTS_TORCH_H

#include "base/arena.h"
#include "base/error.h"

#include <stdbool.h>

enum { OOS_TORCH_MAX = 16, OOS_TORCH_SMS = 16 };

typedef struct oos_torch_build {
    uint64_t minor; /* 2.N */
    char cuda[8];   /* of the wheel that pip installs: "13.0" */
    unsigned sm[OOS_TORCH_SMS],
        other[OOS_TORCH_SMS]; /* 75, 80, ...; `other`: of any published build; 0 ends them */
    unsigned ptx;             /* intermediate code from here on, 0: none */
} oos_torch_build;

typedef struct oos_torch_builds {
    oos_torch_build list[OOS_TORCH_MAX];
    size_t count;
} oos_torch_builds;

typedef enum oos_torch_support {
    OOS_TORCH_WHEEL,  /* the wheel has code for it */
    OOS_TORCH_OTHER,  /* another published build has */
    OOS_TORCH_NONE,   /* none has */
    OOS_TORCH_UNKNOWN /* the release of PyTorch is not listed */
} oos_torch_support;

oomsight_status oos_torch_load(oos_arena *arena, const char *data_dir, oos_torch_builds *ret_builds,
                               oomsight_error *reterr);

/* NULL: not listed. */
const oos_torch_build *oos_torch_find(const oos_torch_builds *builds, uint64_t minor);

/* Code of 8.0 runs on 8.6 and 8.9, not on 9.0; intermediate code runs on everything newer. */
oos_torch_support oos_torch_supports(const oos_torch_build *build, unsigned capability);

#endif
