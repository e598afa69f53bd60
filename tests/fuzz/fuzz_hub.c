/* What the hub may answer. This file stands in for model/hub_fetch.c: no byte leaves the machine, every transfer gets the next answer
 * of the input. The first byte chooses id and overrides; an answer is a byte (what it is), two of length, and the body. */
#include "support.h"

#include "model/model.h"

enum { HEAD = 3, WITH_LENGTH = 128, CUT = 64 };

static oos_view answers;

/* false: the input has no more. */
static bool answer_next(uint8_t *ret_kind, oos_view *ret_body)
{
    if (answers.len < HEAD) return false;
    const uint8_t *head = (const uint8_t *)answers.ptr;
    size_t const len = (size_t)head[1] | (size_t)head[2] << 8;
    *ret_kind = head[0];
    *ret_body = oos_view_slice(answers, HEAD, len);
    answers = oos_view_slice(answers, HEAD + ret_body->len, answers.len);
    return true;
}

/* A weight file's first bytes: the length of its header, then the header. */
static oos_view with_length(oos_arena *arena, oos_view body)
{
    char *bytes = oos_arena_take(arena, body.len + 8);
    FUZZ_REQUIRE(bytes);
    for (size_t i = 0; i < 8; i++) bytes[i] = (char)(body.len >> (8 * i));
    if (body.len) memcpy(bytes + 8, body.ptr, body.len);
    return (oos_view){bytes, body.len + 8};
}

oomsight_status oos_fetch_all(oos_arena *arena, const oos_fetch_options *options, oos_fetch *list,
                              size_t count, oomsight_error *reterr)
{
    static const long statuses[] = {200, 206, 404, 401, 403, 429, 500, 302,
                                    416, 204, 0,   200, 206, 200, 206, 200};
    FUZZ_REQUIRE(options->endpoint && options->timeout_s > 0);
    for (size_t i = 0; i < count; i++) {
        oos_fetch *fetch = &list[i];
        uint8_t kind = 2;
        oos_view body = {"", 0};
        FUZZ_REQUIRE(fetch->url && strstr(fetch->url, "/resolve/") && !strpbrk(fetch->url, " \r\n\t\"<>"));
        FUZZ_REQUIRE(fetch->first_bytes || fetch->limit_bytes);
        (void)answer_next(&kind, &body);
        fetch->http = statuses[kind & 15];
        if (fetch->http == 0) return oos_fail(reterr, OOMSIGHT_NETWORK, "no answer came");
        if (kind & WITH_LENGTH) body = with_length(arena, body);
        fetch->total_bytes = kind & 32 ? body.len : kind & 16 ? (uint64_t)body.len << 20 : 0;
        size_t const most = fetch->first_bytes ? fetch->first_bytes : fetch->limit_bytes;
        fetch->bytes = oos_view_slice(body, 0, kind & CUT ? most / 2 : most);
    }
    return OOMSIGHT_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    static const oos_hub_id ids[] = {{.name = "org/model", .revision = "main"},
                                     {.name = "org/model", .revision = "refs/pr/1+2"}};
    static const char *const overrides[] = {NULL, "{\"max_position_embeddings\": 4096}",
                                            "{\"text_config\": {\"vocab_size\": 7}}", "[1"};
    if (len == 0) return 0;
    fuzz_data(); /* settles the environment */
    answers = (oos_view){(const char *)bytes + 1, len - 1};
    oos_arena *arena = oos_arena_create(4096);
    oos_model model;
    oomsight_error error = {0};
    FUZZ_REQUIRE(arena);
    if (oos_hub_open(arena, NULL, &ids[bytes[0] & 1], overrides[bytes[0] >> 1 & 3], &model, &error) ==
        OOMSIGHT_OK) {
        FUZZ_REQUIRE(model.path && strcmp(model.path, "org/model") == 0 && model.architecture);
        for (size_t i = 0; i < model.layer_count; i++)
            FUZZ_REQUIRE(model.layers[i].attention < model.attention_count);
    } else {
        FUZZ_REQUIRE(error.text[0]);
    }
    oos_arena_free(arena);
    return 0;
}
