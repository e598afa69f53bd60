/* Any bytes as a serve command: the first one chooses the engine's version, the rest are words between line ends. */
#include "fuzz.h"

#include "command/command.h"
#include "engines/vllm/vllm.h"

enum { WORDS_MAX = 128 };

static const oos_flag_table *flags(void)
{
    static oos_flag_table table;
    static oos_arena *arena;
    if (!arena) {
        arena = oos_arena_create(1 << 16);
        FUZZ_REQUIRE(arena && oos_flags_load(arena, NULL, "vllm", &table, NULL) == OOMSIGHT_OK);
    }
    return &table;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    if (len == 0) return 0;
    const oos_flag_table *table = flags();
    oos_version const version = OOS_VERSION(0, 8 + bytes[0] % 26, 0);
    char *text = malloc(len);
    oos_arena *arena = oos_arena_create(4096);
    if (!text || !arena) abort();
    memcpy(text, bytes + 1, len - 1);
    text[len - 1] = '\0';
    const char *words[WORDS_MAX];
    size_t count = 0;
    for (char *at = text; at && count < WORDS_MAX;) {
        char *end = strchr(at, '\n');
        if (end) *end++ = '\0';
        /* a config file is another target's; no path is opened here */
        words[count++] = strcmp(at, "--config") == 0 ? "--config=" : at;
        at = end;
    }
    oos_serve serve;
    oos_engine_env env;
    oomsight_error error = {0};
    oomsight_status const status =
        oos_serve_read_as(&oos_vllm_dialect, arena, words, count, table, version, &serve, &env, &error);
    /* malformed: a call with a value that is no literal */
    FUZZ_REQUIRE(status == OOMSIGHT_OK || status == OOMSIGHT_USAGE || status == OOMSIGHT_MALFORMED);
    if (status == OOMSIGHT_OK) {
        FUZZ_REQUIRE(serve.program && serve.flag_count <= 2 * len + 2);
        for (size_t i = 0; i < serve.flag_count; i++) FUZZ_REQUIRE(serve.flags[i].name);
        FUZZ_REQUIRE(!serve.compilation.capture_size_count || serve.compilation.capture_sizes);
    } else {
        FUZZ_REQUIRE(error.text[0] != '\0');
    }
    oos_arena_free(arena);
    free(text);
    return 0;
}
