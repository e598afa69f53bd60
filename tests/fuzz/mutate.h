/* Mutators that know the form of an input: a config stays JSON, a command stays words, a log stays lines. libFuzzer's own take turns
 * with them, so that broken forms are tried too. Each works on a stretch of the input and leaves the rest as it is. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The input under work; `len` never passes `max`. */
typedef struct fuzz_input {
    char *bytes;
    size_t len, max;
} fuzz_input;

/* A stretch of it. Mutators move `end` as the stretch grows or shrinks. */
typedef struct fuzz_part {
    size_t begin, end;
} fuzz_part;

void fuzz_seed(unsigned seed);
size_t fuzz_pick(size_t count); /* below count; 0 of none */

/* Puts `piece` in place of `old_len` bytes at `at`; false, and nothing changed, where there is no room. */
bool fuzz_replace(fuzz_input *input, fuzz_part *part, size_t at, size_t old_len, const char *piece,
                  size_t len);

/* A number somebody could have written, or a hostile one. */
const char *fuzz_number(void);
/* Changes one number of the stretch; false: it has none. */
bool fuzz_mutate_number(fuzz_input *input, fuzz_part *part);

void fuzz_mutate_json(fuzz_input *input, fuzz_part *part);
void fuzz_mutate_lines(fuzz_input *input, fuzz_part *part); /* moved, repeated, cut, joined */
void fuzz_mutate_log(fuzz_input *input, fuzz_part *part);   /* and wrapped, and sentences of engines put in */
void fuzz_mutate_words(fuzz_input *input, fuzz_part *part); /* of a serve command, one a line */
