/* Commands that start the engine, found in the files people deploy with: shell scripts, Dockerfiles, systemd units, compose
 * files, Kubernetes manifests, values of vLLM's production-stack chart. What else such a file says is left alone, and a file of
 * another kind holds none. */
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
} oos_found;

/* `path` only helps to tell what the file is. Nothing found is no failure. */
oomsight_status oos_found_read(oos_arena *arena, const char *path, oos_view bytes, const oos_found **ret_list,
                               size_t *ret_count, oomsight_error *reterr);

/* "vllm/vllm-openai:v0.19.1-cu129" -> "0.19.1"; NULL: the tag is no release. */
const char *oos_image_version(oos_arena *arena, const char *image);

#endif
