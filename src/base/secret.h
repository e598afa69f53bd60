/* Secrets: values of tokens, keys and passwords, found by the name before them (flags, variables, fields of JSON and YAML,
 * headers, parameters of addresses), by the place they stand in (`user:password@host`) or by their own shape (`hf_...`,
 * `sk-...`, `AKIA...`). What is found is replaced by `***` behind a name, `hf_***` where only the shape tells, so that a
 * reader sees that something stood there. A reference such as `$HF_TOKEN` is no secret and stays.
 *
 * Everything that quotes somebody's command, file or log passes through here before it leaves the process. */
#ifndef OOS_BASE_SECRET_H
#define OOS_BASE_SECRET_H

#include "base/arena.h"
#include "base/text.h"

/* Append `text` without its secrets. */
void oos_secret_hide(oos_text *to, oos_view text);

/* Is there one? Cheaper than hiding. */
bool oos_secret_inside(oos_view text);

/* `text` itself when there is none, else a copy without; NULL stays NULL, and is the answer when memory ends. */
const char *oos_secret_hidden(oos_arena *arena, const char *text);

/* The words of a command: also the word behind `--api-key`, and all behind it up to the next flag, as it takes a list.
 * `words` itself when there is nothing to hide. */
const char *const *oos_secret_hidden_words(oos_arena *arena, const char *const *words, size_t count);

/* Does a flag, variable or field of this name hold a secret? `--api-key`, `HF_TOKEN`, `clientSecret`; not
 * `max_tokens`, `tokenizer`, `eos_token`, `secretName`. */
bool oos_secret_name(oos_view name);

#endif
