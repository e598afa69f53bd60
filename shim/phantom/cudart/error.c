/* Errors of the runtime API: names, sentences, and the last one of a thread. */
#include "phantom/cudart/cudart.h"

typedef struct error_text {
    int code;
    const char *name, *sentence;
} error_text;

static const error_text errors[] = {
#define X(code, runtime, driver, sentence) {code, runtime, sentence},
#include "phantom/errors.def"
#undef X
};
static __thread int last;

int told(int code)
{
    if (code) last = code;
    return code;
}

static const error_text *find(int code)
{
    for (unsigned i = 0; i < sizeof errors / sizeof *errors; i++)
        if (errors[i].code == code) return &errors[i];
    return NULL;
}

TAKE(int, cudaGetLastError, void)
{
    int const code = last;
    last = 0;
    return code;
}

TAKE(int, cudaPeekAtLastError, void)
{
    return last;
}

TAKE(const char *, cudaGetErrorName, int code)
{
    const error_text *text = find(code);
    return text ? text->name : "unrecognized error code";
}

TAKE(const char *, cudaGetErrorString, int code)
{
    const error_text *text = find(code);
    return text ? text->sentence : "unrecognized error code";
}
