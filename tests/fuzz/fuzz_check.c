/* Any bytes as a deployment file, its commands planned and reported. Two bytes choose the kind of file, the GPU and the form of the
 * report; `small` and `moe` are models that are there. */
#include "support.h"

enum { HEAD = 2 };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    static const char *const names[] = {"a.sh", "a.yaml", "Dockerfile", "a.service"};
    static const char *const gpus[] = {"4090", "A30", "H100", "gb10", NULL, "T4", "L4x2", "b200"};
    static const oomsight_format formats[] = {OOMSIGHT_FORMAT_TEXT, OOMSIGHT_FORMAT_JSON,
                                              OOMSIGHT_FORMAT_GITHUB, OOMSIGHT_FORMAT_SARIF};
    if (len < HEAD) return 0;
    int const kustomized =
        (bytes[0] & 3) == 1 && (bytes[1] >> 2 & 1); /* it may name itself as its resource */
    const char *path =
        fuzz_file(kustomized ? "kustomization.yaml" : names[bytes[0] & 3], bytes + HEAD, len - HEAD);
    oomsight_check_params params = OOMSIGHT_CHECK_PARAMS_INIT;
    oomsight_check *check = NULL;
    oomsight_error error = {0};
    params.data = fuzz_data();
    params.paths = &path;
    params.path_count = 1;
    params.gpu = gpus[bytes[0] >> 2 & 7];
    params.models_dir = fuzz_folder();
    if (!params.gpu) params.gpu_total_bytes = (uint64_t)(bytes[1] + 1) << 28;
    if (oomsight_check_create(&params, &check, &error) != OOMSIGHT_OK) {
        FUZZ_REQUIRE(error.text[0]);
        return 0;
    }
    oomsight_check_result result = {.size = sizeof result};
    oomsight_check_item item = {.size = sizeof item};
    FUZZ_REQUIRE(oomsight_check_result_get(check, &result));
    FUZZ_REQUIRE(result.failing + result.unplanned <= result.item_count);
    for (size_t i = 0; i < result.item_count; i++)
        FUZZ_REQUIRE(oomsight_check_item_get(check, i, &item) && item.path && item.level);
    FUZZ_REQUIRE(!oomsight_check_item_get(check, result.item_count, &item));
    oomsight_render_params render = OOMSIGHT_RENDER_PARAMS_INIT;
    render.language = bytes[1] & 1 ? "zh" : "en";
    render.color = bytes[1] >> 1 & 1;
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        char *text = NULL;
        render.format = formats[i];
        oomsight_status const status = oomsight_check_render(check, &render, &text, NULL);
        fuzz_look(status, text, formats[i], 0);
    }
    oomsight_check_free(check);
    return 0;
}
