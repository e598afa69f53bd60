/* The processor's files of a model: the largest image and the largest video that it makes patches of, in pixels, tiles or tokens.
 * Engines try their encoders with these. */
#include "model/model.h"

enum { UNIFIED, IMAGES, VIDEOS };
const char *const oos_processor_files[OOS_PROCESSOR_FILES] = {
    [UNIFIED] = "processor_config.json",
    [IMAGES] = "preprocessor_config.json",
    [VIDEOS] = "video_preprocessor_config.json",
};

/* `max_pixels` comes before size.longest_edge, as in the processors of Qwen; to those of Pixtral the latter is what its name says. 0:
 * neither is there. */
static uint64_t pixels_in(const json_t *processor)
{
    uint64_t pixels = 0;
    if (!oos_json_u64(processor, "max_pixels", &pixels))
        (void)oos_json_u64(json_object_get(processor, "size"), "longest_edge", &pixels);
    return pixels;
}

/* Transformers 5: what processor_config.json says of images and of videos comes before the file of their own, and a video without
 * one has that of images. */
oomsight_status oos_processors_read(oos_arena *arena, const char *const paths[OOS_PROCESSOR_FILES],
                                    const oos_view texts[OOS_PROCESSOR_FILES], oos_model *model,
                                    oomsight_error *reterr)
{
    json_t *roots[OOS_PROCESSOR_FILES] = {NULL};
    for (size_t i = 0; i < OOS_PROCESSOR_FILES; i++) {
        if (texts[i].len == 0) continue;
        oomsight_status const status = oos_json_load(arena, texts[i], &roots[i], reterr);
        if (status != OOMSIGHT_OK) return oos_fail_in(reterr, status, paths[i]);
    }
    const json_t *images = json_object_get(roots[UNIFIED], "image_processor"),
                 *videos = json_object_get(roots[UNIFIED], "video_processor");
    if (!images) images = roots[IMAGES];
    if (!videos) videos = roots[VIDEOS] ? roots[VIDEOS] : roots[IMAGES];
    model->vision.image_pixels = pixels_in(images);
    model->vision.video_pixels = pixels_in(videos);
    (void)oos_json_u64(images, "max_patches", &model->vision.image_tiles);
    (void)oos_json_u64(images, "max_image_tokens", &model->vision.image_tokens);
    return OOMSIGHT_OK;
}
