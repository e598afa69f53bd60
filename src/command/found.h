/* Commands that start the engine, found in the files people deploy with: shell scripts, Dockerfiles, systemd units, compose
 * files, Kubernetes manifests, values of vLLM's production-stack chart; and in files of any other kind where a command stands as
 * text. What else such a file says is left alone. */
#ifndef OOS_INPUT_FOUND_H
#define OOS_INPUT_FOUND_H

#include "base/arena.h"
#include "base/error.h"

typedef struct oos_found {
    const char *const *words; /* NAME=value words of its environment, then the command */
    const char *const *shown; /* the same without secrets: for people */
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
    const char *slice;           /* of a MIG resource: "1g.10gb"; NULL */
} oos_found;

/* What was not understood. */
typedef struct oos_found_doubt {
    uint32_t line;
    const char *broken;         /* the file cannot be read as what it is: why; NULL */
    bool mentions;              /* it names the engine, and no command was found */
    const char *const *applied; /* files that this one patches others with: their commands are in the list */
    size_t applied_count;
} oos_found_doubt;

/* `path` only helps to tell what the file is. Nothing found is no failure, but never silent: see *ret_doubt. */
oomsight_status oos_found_read(oos_arena *arena, const char *path, oos_view bytes, const oos_found **ret_list,
                               size_t *ret_count, oos_found_doubt *ret_doubt, oomsight_error *reterr);

/* The same for a file that lies there: a kustomization is read with the files it names. */
oomsight_status oos_found_read_at(oos_arena *arena, const char *path, oos_view bytes,
                                  const oos_found **ret_list, size_t *ret_count, oos_found_doubt *ret_doubt,
                                  oomsight_error *reterr);

/* "vllm/vllm-openai:v0.19.1-cu129" -> "0.19.1"; NULL: the tag is no release. */
const char *oos_image_version(oos_arena *arena, const char *image);

#endif
