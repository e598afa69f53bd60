/* The command behind a log: the words of `vllm serve`, from a pasted command line or from the engine's own list of
 * arguments. */
#ifndef OOS_EXPLAIN_COMMAND_H
#define OOS_EXPLAIN_COMMAND_H

#include "explain/incident.h"

enum { OOS_COMMAND_WORDS_MAX = 128 };

/* False: the log does not tell. Words live in the arena. */
bool oos_command_words(oos_arena *arena, const oos_setup_text *setup, const char **ret_words,
                       size_t *ret_count);

#endif
