/* Any bytes through the redactor: in pieces the result is that of the whole, `inside` says the same, and no input costs more than a
 * small number of steps a byte. The first two bytes say how the rest is cut, and whether its cost is looked at. */
#include "fuzz.h"

#include "base/secret.h"

#include <time.h>

enum { REPEATED_BYTES = 32 << 10 };

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static oos_text hidden_in_pieces(const char *text, size_t len, size_t piece)
{
    oos_text out = {0};
    oos_redactor redactor = {0};
    oos_text_add(&out, (oos_view){"", 0});
    for (size_t at = 0; at < len; at += piece) {
        size_t const here = len - at < piece ? len - at : piece;
        char *copy = malloc(here); /* no room behind the end */
        if (!copy) abort();
        memcpy(copy, text + at, here);
        oos_redactor_feed(&redactor, (oos_view){copy, here}, &out);
        free(copy);
    }
    oos_redactor_finish(&redactor, &out);
    return out;
}

/* The input again and again: what is slow at each of its places is slow enough to be seen. */
static void require_cheap(const char *text, size_t len)
{
    oos_text many = {0}, out = {0};
    while (len && many.len < REPEATED_BYTES) oos_text_add(&many, (oos_view){text, len});
    double const start = seconds();
    oos_secret_hide(&out, (oos_view){many.ptr, many.len});
    FUZZ_REQUIRE(seconds() - start < 1); /* 0.01 s in a release build; sanitizers take ten times as long */
    oos_text_free(&many);
    oos_text_free(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    if (len < 2) return 0;
    const char *text = (const char *)bytes + 2;
    size_t const text_len = len - 2, piece = ((size_t)bytes[0] << 4 | bytes[1] >> 4) + 1;
    oos_text whole = {0};
    oos_secret_hide(&whole, (oos_view){text, text_len});
    oos_text pieces = hidden_in_pieces(text, text_len, piece), bytewise = hidden_in_pieces(text, text_len, 1);
    FUZZ_REQUIRE(!whole.failed && !pieces.failed);
    FUZZ_REQUIRE(pieces.len == whole.len && memcmp(pieces.ptr, whole.ptr, whole.len) == 0);
    FUZZ_REQUIRE(bytewise.len == whole.len && memcmp(bytewise.ptr, whole.ptr, whole.len) == 0);
    bool const same = whole.len == text_len && (text_len == 0 || memcmp(whole.ptr, text, text_len) == 0);
    FUZZ_REQUIRE(same || oos_secret_inside((oos_view){text, text_len}));
    FUZZ_REQUIRE(whole.len <= text_len * 4); /* three stars for a byte */
    if ((bytes[1] & 15) == 0) require_cheap(text, text_len);
    oos_text_free(&whole);
    oos_text_free(&pieces);
    oos_text_free(&bytewise);
    return 0;
}
