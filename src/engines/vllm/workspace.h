/* The engine's one workspace for kernels that run one after another (v1/worker/workspace.py, from 0.13): as large as the
 * largest that asked, and kept. */
#ifndef OOS_PLAN_WORKSPACE_H
#define OOS_PLAN_WORKSPACE_H

#include "engines/vllm/backend/backend.h"

typedef struct oos_workspace {
    uint64_t built;   /* asked for while the layers are built: part of what loading took */
    uint64_t indexer; /* asked for by the indexer of sparse attention in the profile run */
    uint64_t logits;  /* the indexer's logits, there for a moment of it */
} oos_workspace;

oos_workspace oos_workspace_of(const oos_setup *setup, const oos_backend_choice *backend);

/* What the workspace adds in the profile run when `asked` is the largest of it. Layers that took theirs when they were
 * built hold on to it, so a larger one comes beside it. */
static inline uint64_t oos_workspace_grown(const oos_workspace *workspace, uint64_t asked)
{
    return asked > workspace->built ? asked : 0;
}

#endif
