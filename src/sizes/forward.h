/* A forward step of one rank: so many tokens of so many requests through so many layers. An engine fills oos_forward with what it has
 * resolved; activations, what stays behind, communicators and the growth outside of PyTorch follow from it, the same for every engine.
 * Nothing here knows a flag, a release or a variable. */
#ifndef OOS_SIZES_FORWARD_H
#define OOS_SIZES_FORWARD_H

#include "facts/constants.h"
#include "ledger/ledger.h"
#include "model/model.h"
#include "sizes/device.h"

/* What the kernels of expert layers hold beside the layer's input and output, in columns of topk rows (I: inner width, H: hidden). */
typedef enum oos_expert_kernel {
    OOS_EXPERTS_CALL,    /* I and max(2I, H), given back */
    OOS_EXPERTS_CACHES,  /* max(I, H) and max(2I, H), kept for the next call */
    OOS_EXPERTS_OPENAI,  /* activated and final rows */
    OOS_EXPERTS_CUTLASS, /* the two caches, the permuted input, the rows put back in order */
    OOS_EXPERTS_FLASH,   /* permuted input, both halves and their product, output */
    OOS_EXPERTS_TRTLLM   /* product and output */
} oos_expert_kernel;

/* One workspace for kernels that run one after another; as large as the largest that asked, and kept. */
typedef struct oos_workspace {
    uint64_t built;   /* asked for while the layers are built: part of what loading took */
    uint64_t indexer; /* asked for by the indexer of sparse attention in the step */
    uint64_t logits;  /* the indexer's logits, there for a moment of it */
} oos_workspace;

/* How tokens are drawn behind the last layer. */
typedef struct oos_forward_sampler {
    bool gathers; /* the parts of all ranks are put side by side, and no second copy of the rows is made */
    bool widens;  /* ... then copied to fp32 */
    bool sorts, open;                /* the whole row is sorted; `open`: whether it does is not known */
    bool few_apart;                  /* fewer than 128 rows are sorted as one long row */
    uint64_t rejection_bytes;        /* of a logit, where drafts are rejected or taken; 0: there are none */
    uint64_t warm_rows, warm_copies; /* a warm-up with the cache there; 0: none */
    uint64_t kept_rows;              /* rows of the vocabulary in fp32 that stay */
} oos_forward_sampler;

/* The largest images and videos a step may bring. */
typedef struct oos_forward_media {
    bool runs;                          /* the encoder is built and tried */
    oos_u64 images, videos, max_pixels; /* of a request; not known: the engine's own limit */
    uint64_t images_most;               /* that limit */
    bool cast, released;        /* pixels come in the model's type; they are gone when the decoder runs */
    bool widened;               /* outputs are padded to the encoder's budget */
    uint64_t rotation;          /* how queries and keys are turned: rows of a table in encoder.c */
    bool frames_together;       /* frames run as many as fit at once */
    bool beside_image, stamped; /* a video leaves room for an image; its time stamps count */
    uint64_t frames;            /* of a video, at most */
} oos_forward_media;

/* A compiler that runs in the first step of a start. */
typedef struct oos_forward_compile {
    bool here, cold, open;        /* it may run; it does; whether it does is not known */
    uint64_t copies, copies_most; /* of the embedding that it makes */
} oos_forward_compile;

typedef struct oos_forward {
    const oos_model *model;
    const oos_device_facts *device;
    uint64_t torch_minor;
    /* the cut */
    uint64_t tp, pp, dp, ep;
    bool first, last;      /* pipeline stage with the embedding, with the logits */
    uint64_t layer, count; /* its decoder layers: [layer, layer + count) */
    /* the rows */
    uint64_t tokens;   /* of the step */
    uint64_t requests; /* whose logits are computed in it */
    uint64_t slots;    /* requests at once, at most */
    uint64_t length;   /* tokens of the longest request */
    uint64_t context;  /* tokens whose keys and values latent attention unfolds at once; 0: none */
    oos_dtype dtype;
    /* how it runs */
    bool compiled; /* what is no longer needed is dropped at once */
    oos_expert_kernel experts;
    uint64_t expert_rows; /* that go through the kernels at once; 0: all */
    oos_workspace shared;
    uint64_t runner_bytes; /* input rows and tables that the runner keeps */
    oos_forward_sampler sampler;
    oos_forward_media media;
    oos_forward_compile compile;
    /* outside of PyTorch */
    uint64_t communicators;     /* groups of ranks that get one */
    bool communicators_early;   /* before the engine looks at what is free */
    uint64_t serving_workspace; /* of attention, taken when it serves */
    oos_constant more_kernels,
        more_spill; /* what a release takes beyond the usual: images, local memory of its kernels */
    uint64_t more_collectives; /* ... buffers of its first all-reduce */
} oos_forward;

/* Bytes above the weights in the layers of a stage. */
typedef struct oos_layer_peak {
    uint64_t moment; /* busiest instant of any layer, without what stays */
    uint64_t peak; /* the same in the order of the layers, with the expert workspace from when it is there */
    uint64_t workspace; /* the expert kernels' buffers, when they are kept from call to call */
    bool cublas; /* some product in the layers is not quantised, so that cuBLAS has its workspace by then */
} oos_layer_peak;

/* `forward`, `sampler` and `encoder` are moments on top of `retained`; `peak` has everything in it. */
typedef struct oos_activation {
    oos_amount forward, sampler, warmup, encoder, encoder_cache, peak, retained, persistent;
    uint64_t compile_bytes; /* what a cold compile cache makes of the peak; 0: it is not larger */
    oos_layer_peak layers;  /* what the figures are made of */
} oos_activation;

/* Outside of PyTorch's allocator. */
typedef struct oos_outside {
    oos_amount context, nccl;
    oos_amount profile_growth; /* kernels and workspaces loaded by the first steps */
    oos_amount runtime_growth; /* ... and by serving */
    const char *runtime_cause; /* an engine's own, where it is more than the usual; NULL */
} oos_outside;

/* Captured steps. How many and of what is the engine's. */
typedef struct oos_graphs {
    oos_amount taken;       /* pool and driver objects */
    oos_amount estimate;    /* what the engine measures of it beforehand; 0 bytes where it does not */
    oos_amount not_printed; /* what goes back inside the stretch that is measured */
} oos_graphs;

void oos_forward_activation(const oos_forward *step, oos_activation *ret_activation);
/* Of a step that differs in the compiler or the sampler alone: the layers are the same. */
void oos_forward_activation_again(const oos_forward *step, oos_layer_peak layers,
                                  oos_activation *ret_activation);
void oos_forward_outside(const oos_forward *step, oos_outside *ret_outside);
oos_amount oos_forward_serving(const oos_forward *step);

oos_quant_kind oos_expert_quant(const oos_model *model); /* of the experts, or of the rest */
uint64_t oos_forward_cublas(const oos_forward *step);    /* PyTorch hands it one workspace and keeps it */

/* What the shared workspace adds in a step when `asked` is the largest of it. */
static inline uint64_t oos_workspace_grown(const oos_workspace *workspace, uint64_t asked)
{
    return asked > workspace->built ? asked : 0;
}

#endif
