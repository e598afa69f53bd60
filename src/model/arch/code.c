/* What the code of a class does that its layers do not tell: "code" of a record of data/models, of its tower and of its class, or, for a
 * class that no record names, what common.json says of its model_type. */
#include "model/arch/arch.h"

enum { TYPES_MAX = 64 };

static const struct {
    const char *key;
    size_t offset;
    bool yes;
} places[] = {
#define WHOLE(name)                                                                                          \
    {                                                                                                        \
#name, offsetof(oos_code, name), false                                                               \
    }
#define YES(name)                                                                                            \
    {                                                                                                        \
#name, offsetof(oos_code, name), true                                                                \
    }
    WHOLE(outer),         WHOLE(norm_copies),       WHOLE(image_tokens), WHOLE(video_tokens),
    WHOLE(video_claims),  WHOLE(frame_tokens_most), WHOLE(frames),       WHOLE(frame_tokens),
    WHOLE(around),        YES(drops_gate_up),       YES(output_gate),    YES(query_norm_fp32),
    YES(interleaved_gdn), YES(ungated_experts),     YES(frame_pairs),    YES(rotates),
    YES(mlp_gated),       YES(learnt_positions),    WHOLE(tiles),        YES(by_edge),
#undef WHOLE
#undef YES
};
enum { PLACE_COUNT = sizeof places / sizeof *places };

static void read_object(const oos_scope *s, const json_t *object, oos_code *code)
{
    const char *keys[PLACE_COUNT + 1] = {NULL};
    for (size_t i = 0; i < PLACE_COUNT; i++) keys[i] = places[i].key;
    oos_record_keys(s, object, "code", keys);
    for (size_t i = 0; i < PLACE_COUNT; i++) {
        char *place = (char *)code + places[i].offset;
        if (!json_object_get(object, places[i].key)) continue;
        if (places[i].yes) {
            bool const yes = oos_record_yes(s, object, places[i].key, false);
            memcpy(place, &yes, sizeof yes);
        } else {
            uint64_t const size = oos_record_size(s, object, places[i].key, 0);
            memcpy(place, &size, sizeof size);
        }
    }
}

void oos_record_code(const oos_scope *s, oos_code *code)
{
    read_object(s, json_object_get(s->record->body, "code"), code);
}

void oos_code_by_type(oos_arch *a)
{
    oos_record common = {0};
    a->status = oos_record_open(a->arena, a->data_dir, "common", &common, a->reterr);
    if (a->status != OOMSIGHT_OK) return;
    oos_scope const s = {.arch = a, .record = &common};
    const json_t *list = json_object_get(common.body, "by_type");
    if (json_array_size(list) > TYPES_MAX) oos_record_fail(&s, "by_type", "has more than %d rows", TYPES_MAX);
    for (size_t i = 0; i < json_array_size(list) && a->status == OOMSIGHT_OK; i++) {
        const json_t *row = json_array_get(list, i);
        const char *begins = oos_record_word(&s, row, "begins", NULL);
        if (!begins || !*begins)
            oos_record_fail(&s, "by_type", "a row has no `begins`");
        else if (strncmp(a->model->model_type, begins, strlen(begins)) == 0)
            read_object(&s, json_object_get(row, "code"), &a->model->code);
    }
}
