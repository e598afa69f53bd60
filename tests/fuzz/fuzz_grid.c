/* Any bytes as a matrix file whose points, when they are few, are planned, summed and reported. The first byte chooses how. */
#include "support.h"
#include "oomsight_private.h"

enum { POINTS_MAX = 24 };

static void run(oomsight_matrix *matrix, uint8_t how)
{
    static const oomsight_format formats[] = {OOMSIGHT_FORMAT_TEXT, OOMSIGHT_FORMAT_JSON,
                                              OOMSIGHT_FORMAT_MARKDOWN, OOMSIGHT_FORMAT_JUNIT,
                                              OOMSIGHT_FORMAT_HTML};
    const oomsight_matrix_point *point = NULL;
    oomsight_error error = {0};
    uint64_t seen = 0;
    do {
        if (oomsight_matrix_next(matrix, &point, &error) != OOMSIGHT_OK) return;
        if (point) seen++;
        if (point && point->line) {
            char *line = strndup(point->line, point->line_bytes);
            fuzz_look(OOMSIGHT_OK, line, OOMSIGHT_FORMAT_JSON, 0);
        }
    } while (point);
    oomsight_matrix_tally tally = OOMSIGHT_MATRIX_TALLY_INIT;
    oomsight_matrix_count(matrix, &tally);
    FUZZ_REQUIRE(tally.seen == seen);
    FUZZ_REQUIRE(tally.fits + tally.tight + tally.fails + tally.refused + tally.unknown + tally.unreadable ==
                 seen);
    oomsight_render_params render = OOMSIGHT_RENDER_PARAMS_INIT;
    render.language = how & 1 ? "zh" : "en";
    render.color = how >> 1 & 1;
    for (size_t i = 0; i < (how & 4 ? 5 : 4); i++) {
        char *text = NULL;
        render.format = formats[i];
        oomsight_status const status = oomsight_matrix_render(matrix, &render, &text, NULL);
        fuzz_look(status, text, formats[i], 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    if (len == 0) return 0;
    oomsight_matrix_params params = OOMSIGHT_MATRIX_PARAMS_INIT;
    oomsight_matrix *matrix = NULL;
    oomsight_error error = {0};
    params.data = fuzz_data();
    params.path = fuzz_file("matrix.yaml", bytes + 1, len - 1);
    params.models_dir = fuzz_folder();
    params.mode = "plan";
    params.threads = 1;
    params.lines = 1;
    if (bytes[0] & 8) params.from_version = "0.11.0", params.to_version = "0.32.0";
    if (oomsight_matrix_open(&params, &matrix, &error) != OOMSIGHT_OK) {
        FUZZ_REQUIRE(error.text[0]);
        return 0;
    }
    if (oomsight_matrix_points(matrix) <= POINTS_MAX) run(matrix, bytes[0]);
    oomsight_matrix_close(matrix);
    return 0;
}
