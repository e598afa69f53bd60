/* What stands around an engine's command: a shell with the command as one word, an image with its release and its volumes. */
#ifndef OOS_INPUT_WRAPPED_H
#define OOS_INPUT_WRAPPED_H

#include "base/arena.h"

/* `bash -c "vllm serve ..."` as the words it runs; anything else as it is. False: no memory. */
bool oos_wrapped_open(oos_arena *arena, const char *const *words, size_t count, const char *const **ret_words,
                      size_t *ret_count);

/* Does another system's Python run it: docker, podman and their like? */
bool oos_wrapped_container(const char *const *words, size_t count);

/* Where the line that a shell runs stands among the words; `count`: there is none. */
size_t oos_wrapped_line(const char *const *words, size_t count);

/* Of the words that oos_wrapped_open() gives, the first that comes from the line. */
size_t oos_wrapped_line_first(const char *const *words, size_t line);

/* The release that an image of vLLM among the words names by its tag, "0.11.0"; NULL: none does. */
const char *oos_wrapped_version(oos_arena *arena, const char *const *words, size_t count);

/* A path inside the container as it is outside of it, by `-v`, `--volume` and `--mount` of the words; `path` when no
 * volume holds it. NULL: no memory. */
const char *oos_wrapped_path(oos_arena *arena, const char *const *words, size_t count, const char *path);

#endif
