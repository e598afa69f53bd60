/* What a receiver of OpenTelemetry may answer, in pieces, and lines that become a request: an answer that is complete stays so, and a request is
 * JSON with as many records as it says. */
#include "fuzz.h"

#include "base/json.h"
#include "follow/follow.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    oos_view const all = {(const char *)data, size};
    oos_otlp_reply reply;
    for (size_t len = 0; len <= size; len += 1 + len / 16) {
        bool const complete = oos_otlp_answer((oos_view){all.ptr, len}, false, &reply);
        FUZZ_REQUIRE(reply.status <= 999 && reply.wait_s <= 300);
        FUZZ_REQUIRE(!complete || oos_otlp_answer((oos_view){all.ptr, len}, true, &reply));
    }
    FUZZ_REQUIRE(oos_otlp_answer(all, true, &reply));

    oos_text text = {0};
    size_t const records = oos_otlp_request(all, &text);
    FUZZ_REQUIRE(!text.failed);
    json_t *root = oos_json_parse((oos_view){text.ptr, text.len}, 0);
    FUZZ_REQUIRE(root && json_array_size(json_object_get(root, "resourceLogs")) == records);
    json_decref(root);
    oos_text_free(&text);
    return 0;
}
