/* What libFuzzer asks for a changed input. FUZZ_FORM says of what form the target's inputs are; one time in five libFuzzer's own
 * mutators have their way. */
#include "fuzz.h"
#include "mutate.h"

size_t LLVMFuzzerMutate(uint8_t *bytes, size_t len, size_t max_len);
size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t len, size_t max_len, unsigned seed);

typedef enum form {
    FORM_JSON,  /* texts with zeros between them */
    FORM_WORDS, /* a byte, then words */
    FORM_LOG,
    FORM_LINES,  /* of anything */
    FORM_FILE,   /* two bytes, then lines */
    FORM_START,  /* four bytes, words, zero, JSON, zero, JSON */
    FORM_ANSWERS /* a byte, then answers with their lengths: see fuzz_hub.c */
} form;

/* The stretch between zeros around a place chosen by chance; *ret_first: it is the first of them. */
static fuzz_part any_text(const fuzz_input *input, size_t begin, bool *ret_first)
{
    size_t zeros = 0;
    for (size_t i = begin; i < input->len; i++) zeros += input->bytes[i] == '\0';
    size_t const wanted = fuzz_pick(zeros + 1);
    fuzz_part part = {begin, begin};
    for (size_t at = 0;; at++) {
        while (part.end < input->len && input->bytes[part.end]) part.end++;
        if (at == wanted) break;
        part.begin = ++part.end;
    }
    *ret_first = wanted == 0;
    return part;
}

static size_t answer_len(const uint8_t *head)
{
    return (size_t)head[1] | (size_t)head[2] << 8;
}

/* One answer's body is JSON; its length follows it. */
static void mutate_answer(fuzz_input *input)
{
    enum { HEAD = 3 };
    size_t starts[16], count = 0;
    for (size_t at = 1; at + HEAD <= input->len && count < 16;) {
        size_t const end = at + HEAD + answer_len((const uint8_t *)input->bytes + at);
        if (end > input->len) break;
        starts[count++] = at;
        at = end;
    }
    if (count == 0) return;
    size_t const at = starts[fuzz_pick(count)];
    uint8_t *head = (uint8_t *)input->bytes + at;
    if (fuzz_pick(6) == 0) {
        head[0] = (uint8_t)fuzz_pick(256);
        return;
    }
    fuzz_part part = {at + HEAD, at + HEAD + answer_len(head)};
    fuzz_mutate_json(input, &part);
    size_t const len = part.end - part.begin;
    if (len > UINT16_MAX) return;
    head[1] = (uint8_t)len, head[2] = (uint8_t)(len >> 8);
}

static void mutate(form of, fuzz_input *input)
{
    size_t const head = of == FORM_START ? 4 : of == FORM_FILE ? 2 : of == FORM_WORDS ? 1 : 0;
    bool first = false;
    if (input->len <= head) return;
    if (head && fuzz_pick(8) == 0) {
        input->bytes[fuzz_pick(head)] = (char)fuzz_pick(256);
        return;
    }
    fuzz_part part = {head, input->len};
    switch (of) {
    case FORM_JSON:
        part = any_text(input, 0, &first);
        fuzz_mutate_json(input, &part);
        break;
    case FORM_START:
        part = any_text(input, head, &first);
        (first ? fuzz_mutate_words : fuzz_mutate_json)(input, &part);
        break;
    case FORM_WORDS: fuzz_mutate_words(input, &part); break;
    case FORM_LOG: fuzz_mutate_log(input, &part); break;
    case FORM_LINES:
    case FORM_FILE: fuzz_mutate_lines(input, &part); break;
    case FORM_ANSWERS: mutate_answer(input); break;
    }
}

size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t len, size_t max_len, unsigned seed)
{
    fuzz_seed(seed);
    if (len == 0 || fuzz_pick(5) == 0) return LLVMFuzzerMutate(bytes, len, max_len);
    fuzz_input input = {(char *)bytes, len, max_len};
    for (size_t times = 1 + fuzz_pick(4); times; times--) mutate(FUZZ_FORM, &input);
    return input.len ? input.len : LLVMFuzzerMutate(bytes, len, max_len);
}
