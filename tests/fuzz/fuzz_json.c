/* The quick reader of JSON and Jansson over the same bytes: what the quick one takes, Jansson takes, and both make the same of it. */
#include "base/json.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    oos_view const text = {(const char *)bytes, len};
    json_t *quick = oos_json_parse_plain(text);
    if (!quick) return 0;
    json_t *whole = oos_json_parse(text, JSON_DECODE_ANY);
    FUZZ_REQUIRE(whole);
    char *first = oos_json_text(quick, JSON_ENCODE_ANY), *second = oos_json_text(whole, JSON_ENCODE_ANY);
    FUZZ_REQUIRE(first && second && strcmp(first, second) == 0);
    free(first);
    free(second);
    json_decref(quick);
    json_decref(whole);
    return 0;
}
