/* Commands that start the engine, found in the files people deploy with: shell scripts, Dockerfiles, systemd units, compose
 * files, Kubernetes manifests, values of vLLM's production-stack chart; and in files of any other kind where a command stands as
 * text. What else such a file says is left alone. */
#ifndef OOS_INPUT_FOUND_H
#define OOS_INPUT_FOUND_H

#include "base/arena.h"
#include "base/error.h"

typedef struct oos_found {
    const char *const *words; /* NAME=value words of its environment, then the command */
    const char *const
        *shown; /* for people: without secrets, and without variables that the engine does not read */
    size_t shown_count;
    size_t count;
    uint32_t line;              /* of the word that names the engine */
    const char *kind;           /* "shell script", "Dockerfile", "systemd unit", "container", "Helm values" */
    const char *name;           /* of the service, container or model; NULL */
    const char *engine_version; /* from the tag of an image, or declared; NULL */
    uint64_t gpus;              /* how many are asked for; 0: not said */
    const char *gpu, *gpu_total; /* declared in a comment `# oomsight: gpu=A30x4 gpu-total=23.5GiB`; NULL */
    const char *unknown;         /* a variable in it that the file does not set, NULL: none */
    const char *gpu_hint;        /* the device by a node selector or a Slurm line; NULL */
    const char *machine;         /* the type of the machine: "g6e.12xlarge"; NULL */
    bool gpu_is_sure;            /* ... and the key is one that only ever names a device */
    const char *slice;           /* of a MIG resource: "1g.10gb"; NULL */
    const char *devices; /* of CUDA_VISIBLE_DEVICES and its like, or a list of device ids; NULL: not said */
    uint32_t
        shares; /* commands of one file with the same number run beside each other on one machine; 0: alone */
    uint64_t host_limit_bytes; /* of the container's memory; 0: none is set */
} oos_found;

/* A part of the file that was not looked at. */
typedef struct oos_found_skip {
    uint32_t line;
    const char *what;
    bool broken; /* the file cannot be read as what it is */
} oos_found_skip;

/* What was not understood or not looked at. */
typedef struct oos_found_doubt {
    const oos_found_skip *skips;
    size_t skip_count;
    uint32_t line;
    const char *other;        /* a server of models that it starts and that is not planned; NULL: none */
    const char *mentions;     /* the engine that it names, where no command was found; NULL: none */
    const char *const *named; /* files that a kustomization takes as they are: to be read, too */
    size_t named_count;
} oos_found_doubt;

/* `path` only helps to tell what the file is; "-": the text alone does, which may be pasted (command/pasted.h) and may be the name of a
 * model alone. Nothing found is no failure, but never silent: see
 * *ret_doubt. */
oomsight_status oos_found_read(oos_arena *arena, const char *path, oos_view bytes, const oos_found **ret_list,
                               size_t *ret_count, oos_found_doubt *ret_doubt, oomsight_error *reterr);

/* The name of a model with flags behind it, and no command? */
bool oos_found_is_model(const oos_found *found);

/* "vllm/vllm-openai:v0.19.1-cu129" -> "0.19.1"; NULL: the tag is no release. */
const char *oos_image_version(oos_arena *arena, const char *image);

#endif
