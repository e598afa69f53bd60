#include "support.h"

#include "base/arena.h"
#include "base/json.h"

#include <unistd.h>
#include <sys/stat.h>

static const char small[] =
    "{\"architectures\": [\"LlamaForCausalLM\"], \"model_type\": \"llama\", \"hidden_size\": 2048, "
    "\"intermediate_size\": 8192, "
    "\"num_hidden_layers\": 16, \"num_attention_heads\": 32, \"num_key_value_heads\": 8, \"head_dim\": 64, "
    "\"vocab_size\": 128256, "
    "\"max_position_embeddings\": 131072, \"torch_dtype\": \"bfloat16\", \"tie_word_embeddings\": true}";
static const char moe[] =
    "{\"architectures\": [\"Qwen3MoeForCausalLM\"], \"model_type\": \"qwen3_moe\", \"hidden_size\": 2048, "
    "\"intermediate_size\": 6144, "
    "\"moe_intermediate_size\": 768, \"num_experts\": 128, \"num_experts_per_tok\": 8, "
    "\"num_hidden_layers\": 48, "
    "\"num_attention_heads\": 32, \"num_key_value_heads\": 4, \"head_dim\": 128, \"vocab_size\": 151936, "
    "\"max_position_embeddings\": 40960, \"torch_dtype\": \"bfloat16\", \"quantization_config\": "
    "{\"quant_method\": \"fp8\", "
    "\"weight_block_size\": [128, 128], \"activation_scheme\": \"dynamic\"}}";

const oomsight_data *fuzz_data(void)
{
    static oomsight_data *data;
    if (!data) {
        static const char *const seen[] = {
            "HF_TOKEN", "HF_ENDPOINT", "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "LANG", "LC_ALL"};
        for (size_t i = 0; i < sizeof seen / sizeof *seen; i++) unsetenv(seen[i]);
        setenv("HF_HOME", "/nowhere", 1);
        setenv("HF_HUB_CACHE", "/nowhere", 1);
        FUZZ_REQUIRE(oomsight_data_open(NULL, &data, NULL) == OOMSIGHT_OK);
    }
    return data;
}

static char folder[256];
static const char *const folder_names[] = {
    "small/config.json", "moe/config.json", "small",      "moe", "a.sh", "a.yaml",
    "Dockerfile",        "a.service",       "matrix.yaml"};

static void folder_remove(void)
{
    char path[400];
    for (size_t i = 0; i < sizeof folder_names / sizeof *folder_names; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, folder_names[i]);
        if (unlink(path) != 0) rmdir(path);
    }
    rmdir(folder);
}

const char *fuzz_folder(void)
{
    if (folder[0]) return folder;
    const char *base = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%.200s/fuzz-XXXXXX", base && *base ? base : "/tmp");
    FUZZ_REQUIRE(mkdtemp(folder));
    atexit(folder_remove);
    static const char *const names[] = {"small", "moe"};
    for (size_t i = 0; i < 2; i++) {
        char path[400];
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        FUZZ_REQUIRE(mkdir(path, 0700) == 0);
    }
    fuzz_file("small/config.json", small, sizeof small - 1);
    fuzz_file("moe/config.json", moe, sizeof moe - 1);
    return folder;
}

const char *fuzz_file(const char *name, const void *bytes, size_t len)
{
    static char path[400];
    snprintf(path, sizeof path, "%s/%s", fuzz_folder(), name);
    FILE *out = fopen(path, "wb");
    FUZZ_REQUIRE(out && fwrite(bytes, 1, len, out) == len && fclose(out) == 0);
    return path;
}

size_t fuzz_split(char *text, const char **words, size_t most)
{
    size_t count = 0;
    for (char *at = text; at && count < most;) {
        char *end = strchr(at, '\n');
        if (end) *end++ = '\0';
        words[count++] =
            strncmp(at, "--config", 8) == 0 && (at[8] == '\0' || at[8] == '=') ? "--config=" : at;
        at = end;
    }
    return count;
}

static void json_look(const char *text, size_t len)
{
    oos_arena *arena = oos_arena_create(4096);
    json_t *root;
    oomsight_error error = {0};
    FUZZ_REQUIRE(arena);
    if (oos_json_load(arena, (oos_view){text, len}, &root, &error) != OOMSIGHT_OK) {
        fprintf(stderr, "%s\n%.*s\n", error.text, (int)len, text);
        abort();
    }
    oos_arena_free(arena);
}

void fuzz_look(oomsight_status status, char *text, oomsight_format format, int lines)
{
    FUZZ_REQUIRE(status == OOMSIGHT_OK && text);
    bool const json = format == OOMSIGHT_FORMAT_JSON || format == OOMSIGHT_FORMAT_SARIF;
    if (json && !lines) json_look(text, strlen(text));
    for (const char *at = text; json && lines && *at;) {
        size_t const len = strcspn(at, "\n");
        json_look(at, len);
        at += len + (at[len] == '\n');
    }
    oomsight_text_free(text);
}
