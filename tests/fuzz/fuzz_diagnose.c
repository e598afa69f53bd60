/* Any bytes as a log, explained as the command does it, with the plan of what it names, in every form. The first byte chooses how it
 * is printed. */
#include "support.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    static const oomsight_format formats[] = {OOMSIGHT_FORMAT_TEXT,     OOMSIGHT_FORMAT_JSON,
                                              OOMSIGHT_FORMAT_MARKDOWN, OOMSIGHT_FORMAT_GITHUB,
                                              OOMSIGHT_FORMAT_SARIF,    OOMSIGHT_FORMAT_HTML};
    if (len == 0) return 0;
    oomsight_explain_params params = OOMSIGHT_EXPLAIN_PARAMS_INIT;
    oomsight_explanation *explanation = NULL;
    oomsight_error error = {0};
    params.data = fuzz_data();
    params.text = (const char *)bytes + 1;
    params.text_bytes = len - 1;
    params.expand_limit_bytes = 1 << 20;
    if (oomsight_explain_create(&params, &explanation, &error) != OOMSIGHT_OK) {
        FUZZ_REQUIRE(error.text[0]);
        return 0;
    }
    size_t const count = oomsight_explain_count(explanation);
    oomsight_incident incident = {.size = sizeof incident};
    oomsight_figure figure = {.size = sizeof figure};
    oomsight_fix fix = {.size = sizeof fix};
    for (size_t i = 0; i < count; i++) {
        FUZZ_REQUIRE(oomsight_explain_incident(explanation, i, &incident) && incident.phase &&
                     incident.cause);
        for (size_t k = 0; k < incident.figure_count; k++)
            FUZZ_REQUIRE(oomsight_explain_figure(explanation, i, k, &figure) && figure.name);
        FUZZ_REQUIRE(!oomsight_explain_figure(explanation, i, incident.figure_count, &figure));
        for (size_t k = 0; k < incident.fix_count; k++)
            FUZZ_REQUIRE(oomsight_explain_fix(explanation, i, k, &fix) && fix.flags);
        FUZZ_REQUIRE(!oomsight_explain_fix(explanation, i, incident.fix_count, &fix));
    }
    FUZZ_REQUIRE(!oomsight_explain_incident(explanation, count, &incident));
    oomsight_render_params render = OOMSIGHT_RENDER_PARAMS_INIT;
    render.language = bytes[0] & 1 ? "zh" : "en";
    render.color = bytes[0] >> 1 & 1;
    render.ascii = bytes[0] >> 2 & 1;
    render.explain = bytes[0] >> 3 & 1;
    for (size_t i = 0; i < (bytes[0] & 16 ? 6 : 5); i++) { /* pages are long: every other input */
        char *text = NULL;
        render.format = formats[i];
        oomsight_status const status = oomsight_explain_render(explanation, &render, &text, NULL);
        fuzz_look(status, text, formats[i], formats[i] == OOMSIGHT_FORMAT_JSON);
    }
    oomsight_explain_free(explanation);
    return 0;
}
