/* A plan's inputs built by hand: a model of a few attentions, a device, flags, the rules of a version. */
#pragma once
#include "unit.h"

#include "engines/vllm/kv/kv.h"

typedef struct fixture {
    oos_arena *arena;
    vllm_rules rules;
    oos_model model;
    oos_layer layers[256], mtp[4];
    oos_attention attentions[8];
    oos_serve serve;
    oos_engine_env env;
    oos_device_facts device;
    oos_setup setup;
} fixture;

static inline oos_version version_of(const char *text)
{
    oos_version version = 0;
    assert_true(oos_version_parse(oos_view_of(text), &version));
    return version;
}

/* A device of 80 GiB. */
static inline void fixture_init(fixture *f, const char *version, unsigned capability)
{
    oos_rule_book *book;
    oomsight_error error = {0};
    bool beyond;
    *f = (fixture){.arena = oos_arena_create(1 << 16)};
    assert_int_equal(oos_vllm_book_load(f->arena, NULL, &book, &error), OOMSIGHT_OK);
    assert_int_equal(oos_vllm_rules_of(book, version_of(version), &f->rules, &beyond, &error), OOMSIGHT_OK);
    f->rules.beyond = oos_rule_book_beyond(book, version_of(version));
    f->device = (oos_device_facts){.name = "a device",
                                   .capability = capability,
                                   .total_bytes = 80 * OOS_GIB,
                                   .nvml_total_bytes = 80 * OOS_GIB,
                                   .sms = 132,
                                   .count = 1};
    f->model = (oos_model){.architecture = "LlamaForCausalLM",
                           .known = true,
                           .dtype = OOS_DTYPE_BF16,
                           .max_position = 131072,
                           .layers = f->layers,
                           .attentions = f->attentions,
                           .mtp_layers = f->mtp};
}

static inline void fixture_free(fixture *f)
{
    oos_arena_free(f->arena);
}

/* `count` layers more of this attention. */
static inline void fixture_layers(fixture *f, oos_attention attention, size_t count)
{
    f->attentions[f->model.attention_count] = attention;
    for (size_t i = 0; i < count; i++)
        f->layers[f->model.layer_count++].attention = (uint32_t)f->model.attention_count;
    f->model.attention_count++;
}

static inline oos_attention heads_of(oos_mixer mixer, uint64_t heads, uint64_t kv_heads, uint64_t head_dim,
                                     uint64_t window)
{
    return (oos_attention){.mixer = mixer,
                           .heads = heads,
                           .kv_heads = kv_heads,
                           .head_dim = head_dim,
                           .head_dim_v = head_dim,
                           .window = window};
}

static inline const oos_setup *fixture_setup(fixture *f)
{
    oomsight_error error = {0};
    assert_int_equal(oos_setup_resolve(f->arena, &f->model, NULL, &f->serve, &f->env, &f->device, &f->rules,
                                       &f->setup, &error),
                     OOMSIGHT_OK);
    return &f->setup;
}
