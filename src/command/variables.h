/* Which environment variables of somebody's command may be shown. Those that the engine, CUDA, PyTorch, NCCL or the Hugging Face
 * libraries read for their behaviour are part of the answer; what else a container is given is nobody's business. */
#ifndef OOS_COMMAND_VARIABLES_H
#define OOS_COMMAND_VARIABLES_H

#include "base/arena.h"
#include "base/text.h"

/* `NAME=value` or `NAME`: may its value be seen? Never that of a secret. */
bool oos_variable_is_shown(const char *assignment);

/* The words of a command for people: other variables before it are left out, those that a container is given (`-e NAME=value`)
 * are there by name. Secrets are hidden. NULL: no memory. */
const char *const *oos_command_shown(oos_arena *arena, const char *const *words, size_t count,
                                     size_t *ret_count);

/* The same quoted for a shell, to be pasted: nothing in it is masked. A variable that holds a secret is handed on as it is
 * (`-e HF_TOKEN`, `HF_TOKEN="$HF_TOKEN"`), the value of such a flag is taken from one (`--api-key "$API_KEY"`). */
void oos_command_put(oos_arena *arena, oos_text *text, const char *const *words, size_t count);

#endif
