/* Any bytes as the head of a request, come in two parts: what the second part decides, the first did not contradict. */
#include "fuzz.h"

#include "follow/follow.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    if (len < 2) return 0;
    size_t const all_len = len - 2, cut = ((size_t)bytes[0] << 8 | bytes[1]) % (all_len + 1);
    /* no room behind the end: a step too far is seen */
    char *text = malloc(all_len ? all_len : 1), *part = malloc(cut ? cut : 1);
    if (!text || !part) abort();
    memcpy(text, bytes + 2, all_len);
    memcpy(part, bytes + 2, cut);
    oos_http_request const first = oos_http_request_read(part, cut),
                           all = oos_http_request_read(text, all_len);
    FUZZ_REQUIRE(all.wish <= OOS_HTTP_TOO_LONG);
    FUZZ_REQUIRE(!all.head_only || (all_len > 4 && memcmp(text, "HEAD", 4) == 0));
    FUZZ_REQUIRE(first.wish == OOS_HTTP_PARTIAL ||
                 (first.wish == all.wish && first.head_only == all.head_only));
    if (all.wish == OOS_HTTP_METRICS) FUZZ_REQUIRE(memmem(text, all_len, "/metrics", 8));
    FUZZ_REQUIRE(all.wish != OOS_HTTP_PARTIAL || all_len < OOS_HTTP_HEAD_MAX);
    free(text);
    free(part);
    return 0;
}
