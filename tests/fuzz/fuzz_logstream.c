/* Any bytes as a wrapped log: unpacked, and cleaned in every way whatever the sniffing says. The number of lines is kept. */
#include "fuzz.h"

#include "log/log.h"

#include <string.h>

static size_t newlines(oos_view text)
{
    size_t count = 0;
    for (size_t i = 0; i < text.len; i++) count += text.ptr[i] == '\n';
    return count;
}

static void clean(unsigned what, oos_view text)
{
    oos_cleaner cleaner;
    oos_text out = {0};
    oos_cleaner_init(&cleaner, what);
    oos_cleaner_feed(&cleaner, oos_view_slice(text, 0, text.len / 2), false, &out);
    oos_cleaner_feed(&cleaner, oos_view_slice(text, text.len / 2, SIZE_MAX), false, &out);
    oos_cleaner_feed(&cleaner, (oos_view){text.ptr, 0}, true, &out);
    bool const open_end = text.len && text.ptr[text.len - 1] != '\n';
    FUZZ_REQUIRE(newlines((oos_view){out.ptr, out.len}) == newlines(text) + open_end);
    oos_cleaner_free(&cleaner);
    oos_text_free(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    static char block[4096], plain[4096];
    oos_view const text = {(const char *)bytes, len};
    oos_clean_sniff(text);
    for (unsigned what = 1; what < 32; what <<= 1) clean(what, text);
    oos_view const line = oos_view_slice(text, 0, sizeof plain);
    oos_logline const parts = oos_logline_read((oos_view){plain, oos_logline_uncolour(line, plain)});
    FUZZ_REQUIRE(parts.message.len <= line.len);

    oos_logstream *stream = NULL;
    const char *name;
    if (oos_logstream_open_bytes(text, 1 << 20, &stream, NULL) != OOMSIGHT_OK) return 0;
    size_t total = 0;
    while (oos_logstream_next(stream, &name))
        for (size_t count = 1; count;) {
            FUZZ_REQUIRE(oos_logstream_read(stream, block, sizeof block, &count, NULL) == OOMSIGHT_OK);
            total += count;
        }
    FUZZ_REQUIRE(total <= (1 << 20) + len);
    oos_logstream_close(stream);
    return 0;
}
