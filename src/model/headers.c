/* What the headers of the weight files say a model weighs, by part: the decoder, its head, its towers, its drafter.
 * Names are judged by the words checkpoints use; who is asked for what is plan/'s. */
#include "model/model.h"

/* Kept in the files, never made by the engine as a parameter. */
static bool is_left_out(const char *name)
{
    static const char *const words[] = {
        "rotary_emb.inv_freq", ".attn.masked_bias", "talker.", "token2wav.", ".g_idx",
        ".quant_state.",       ".quant_map",        ".nested_"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strstr(name, words[i])) return true;
    return false;
}

static bool is_tower(const char *name)
{
    static const char *const words[] = {"visual.",     "vision",      "audio_tower",   "audio_encoder",
                                        "vpm.",        "resampler.",  "apm.",          "projector",
                                        "embed_audio", "patch_merge", "image_newline", "img_processor"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strstr(name, words[i])) return true;
    return false;
}

/* DeepSeek and GLM number the drafter's layers behind the model's own. */
static bool is_drafter(const oos_model *model, const char *name)
{
    if (strncmp(name, "mtp.", 4) == 0 || strstr(name, ".mtp.") || strstr(name, "mtp_")) return true;
    const char *at = strstr(name, "layers.");
    if (!at || model->layer_count == 0) return false;
    uint64_t number = 0;
    size_t digits = 0;
    for (at += strlen("layers."); *at >= '0' && *at <= '9' && digits < 9; at++, digits++)
        number = number * 10 + (uint64_t)(*at - '0');
    return digits > 0 && *at == '.' && number >= model->layer_count;
}

static oos_header_sum *part_of(oos_model *model, const char *name)
{
    if (is_left_out(name)) return NULL;
    if (is_drafter(model, name)) return &model->headers.drafter;
    if (is_tower(name)) return &model->headers.tower;
    if (strstr(name, "lm_head")) return model->tied ? NULL : &model->headers.decoder;
    return &model->headers.decoder;
}

void oos_headers_weigh(const oos_tensor_table *table, oos_model *model)
{
    model->headers = (oos_headers){.known = table->count > 0};
    for (size_t i = 0; i < table->count; i++) {
        const oos_tensor *tensor = &table->list[i];
        oos_header_sum *part = part_of(model, tensor->name);
        if (!part) continue;
        uint64_t const width = oos_dtype_bytes(tensor->dtype);
        bool const floats = tensor->dtype == OOS_DTYPE_F32 || tensor->dtype == OOS_DTYPE_F16 ||
                            tensor->dtype == OOS_DTYPE_BF16;
        if (floats)
            part->floats = oos_add(part->floats, tensor->bytes / width);
        else
            part->other_bytes = oos_add(part->other_bytes, tensor->bytes);
    }
}
