#include "unit.h"

#include "model/model.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static oos_arena *arena;
static oos_model model;
static oomsight_error error;
static char root[32];

static int begin(void **state)
{
    (void)state;
    static const char *const names[] = {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) unsetenv(names[i]);
    strcpy(root, "/tmp/oos_locate_XXXXXX");
    arena = oos_arena_create(4096);
    if (!arena || !mkdtemp(root)) return -1;
    setenv("HOME", root, 1);
    return 0;
}

static int end(void **state)
{
    (void)state;
    char command[64];
    oos_arena_free(arena);
    snprintf(command, sizeof command, "rm -r %s", root);
    return system(command);
}

/* A file below the root, with the folders on its way. */
static const char *put(const char *path, const char *text)
{
    char *full = oos_arena_format(arena, "%s/%s", root, path);
    for (char *at = full + strlen(root) + 1; (at = strchr(at, '/')); at++) {
        *at = '\0';
        mkdir(full, 0700);
        *at = '/';
    }
    FILE *out = fopen(full, "w");
    assert_non_null(out);
    fputs(text, out);
    fclose(out);
    return full;
}

static const char config[] =
    "{\"architectures\":[\"LlamaForCausalLM\"],\"model_type\":\"llama\",\"hidden_size\":64,"
    "\"intermediate_size\":128,\"num_attention_heads\":4,\"num_hidden_layers\":2,"
    "\"vocab_size\":1000,\"max_position_embeddings\":2048,\"torch_dtype\":\"bfloat16\"}";

static oomsight_status locate(const char *word)
{
    return oos_locate(arena, NULL, word, false, NULL, &model, &error);
}

static void names_of_models_are_told_from_other_words(void **state)
{
    (void)state;
    static const char *const good[][3] = {
        {"Qwen/Qwen3-8B", "Qwen/Qwen3-8B", "main"},
        {"gpt2", "gpt2", "main"},
        {"org/a.b_c-d@v1.0", "org/a.b_c-d", "v1.0"},
        {"org/name@refs/pr/1", "org/name", "refs/pr/1"},
    };
    static const char *const bad[] = {"",         "/a",     "a/b/c",  "../a", "./a",      "a/",
                                      "a b",      "a/../b", "org/a@", "-a",   "a/.b",     "a--b",
                                      "a/b@../c", "a/b@/c", "~/a",    "a\n",  "http://x", "a/b?c=d",
                                      "a/b@a b",  "org//a", "a/b%2e", "@main"};
    oos_hub_id id;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_true(oos_hub_id_parse(arena, good[i][0], &id));
        assert_string_equal(id.name, good[i][1]);
        assert_string_equal(id.revision, good[i][2]);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (oos_hub_id_parse(arena, bad[i], &id)) fail_msg("`%s` is no name of a model", bad[i]);
}

static void the_cache_is_where_the_environment_says(void **state)
{
    (void)state;
    char expected[128];
    snprintf(expected, sizeof expected, "%s/.cache/huggingface/hub", root);
    assert_string_equal(oos_hfcache_folder(arena), expected);
    setenv("XDG_CACHE_HOME", "/xdg", 1);
    assert_string_equal(oos_hfcache_folder(arena), "/xdg/huggingface/hub");
    setenv("HF_HOME", "/home", 1);
    assert_string_equal(oos_hfcache_folder(arena), "/home/hub");
    setenv("HF_HUB_CACHE", "/cache", 1);
    assert_string_equal(oos_hfcache_folder(arena), "/cache");
}

static void a_cached_model_is_found_by_branch_tag_and_commit(void **state)
{
    (void)state;
    put(".cache/huggingface/hub/models--org--name/refs/main", "aaa111\n");
    put(".cache/huggingface/hub/models--org--name/refs/refs/pr/1", "bbb222");
    put(".cache/huggingface/hub/models--org--name/snapshots/aaa111/config.json", config);
    put(".cache/huggingface/hub/models--org--name/snapshots/bbb222/config.json", config);
    static const char *const words[][2] = {
        {"org/name", "snapshots/aaa111"},
        {"org/name@main", "snapshots/aaa111"},
        {"org/name@bbb222", "snapshots/bbb222"},
        {"org/name@refs/pr/1", "snapshots/bbb222"},
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        assert_int_equal(locate(words[i][0]), OOMSIGHT_OK);
        assert_non_null(strstr(model.path, words[i][1]));
    }
    assert_int_equal(locate("org/name@v3"), OOMSIGHT_NOT_FOUND);
    assert_int_equal(locate("org/other"), OOMSIGHT_NOT_FOUND);
    assert_non_null(strstr(error.text, ".cache/huggingface/hub"));
}

static void a_single_snapshot_needs_no_ref(void **state)
{
    (void)state;
    put(".cache/huggingface/hub/models--gpt2/snapshots/ccc/config.json", config);
    put(".cache/huggingface/hub/models--gpt2/snapshots/half/README.md", "x");
    assert_int_equal(locate("gpt2"), OOMSIGHT_OK);
    put(".cache/huggingface/hub/models--gpt2/snapshots/ddd/config.json", config);
    assert_int_equal(locate("gpt2"), OOMSIGHT_NOT_FOUND); /* which one? */
    put(".cache/huggingface/hub/models--gpt2/refs/main", "../../evil");
    assert_int_equal(locate("gpt2"), OOMSIGHT_NOT_FOUND);
}

static void a_directory_comes_before_the_cache(void **state)
{
    (void)state;
    const char *path = put("models/m/config.json", config);
    char *dir = oos_arena_copy(arena, (oos_view){path, strlen(path) - strlen("/config.json")});
    assert_int_equal(locate(dir), OOMSIGHT_OK);
    assert_string_equal(model.path, dir);
    assert_int_equal(locate(path), OOMSIGHT_OK); /* the config of a directory stands for it */
    assert_int_equal(locate(oos_arena_format(arena, "%s@main", dir)), OOMSIGHT_OK);
    assert_int_equal(locate(root), OOMSIGHT_NOT_FOUND);
    assert_non_null(strstr(error.text, "without config.json"));
    assert_int_equal(locate(put("m.gguf", "x")), OOMSIGHT_UNSUPPORTED);
    assert_int_equal(locate(put("m.txt", "x")), OOMSIGHT_USAGE);
    assert_int_equal(locate("/no/such/place"), OOMSIGHT_NOT_FOUND);
    assert_non_null(strstr(error.text, "no such directory"));
}

static void overrides_change_fields_and_update_parts(void **state)
{
    (void)state;
    oos_view changed;
    const char *text =
        "{\"a\":1,\"rope_scaling\":{\"x\":1,\"y\":2},\"text_config\":{\"h\":1,\"r\":{\"p\":1,\"q\":2}}}";
    assert_int_equal(
        oos_config_override(arena, oos_view_of(text),
                            "{\"a\":2,\"b\":3,\"rope_scaling\":{\"x\":9},\"text_config\":{\"r\":{\"p\":7}}}",
                            &changed, &error),
        OOMSIGHT_OK);
    assert_string_equal(
        changed.ptr, "{\"a\":2,\"rope_scaling\":{\"x\":9},\"text_config\":{\"h\":1,\"r\":{\"p\":7,\"q\":2}},"
                     "\"b\":3}");
    assert_int_equal(oos_config_override(arena, oos_view_of(text), "[1]", &changed, &error),
                     OOMSIGHT_MALFORMED);
    const char *path = put("models/m/config.json", config);
    char *dir = oos_arena_copy(arena, (oos_view){path, strlen(path) - strlen("/config.json")});
    assert_int_equal(
        oos_locate(arena, NULL, dir, false, "{\"max_position_embeddings\":65536}", &model, &error),
        OOMSIGHT_OK);
    assert_true(model.max_position == 65536);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, begin, end)

static void pipes_and_devices_are_no_config_and_nobody_waits_for_them(void **state)
{
    (void)state;
    const char *dir = oos_arena_format(arena, "%s/pipe", root);
    const char *file = oos_arena_format(arena, "%s/config.json", dir);
    mkdir(dir, 0700);
    assert_int_equal(mkfifo(file, 0600), 0);
    alarm(100); /* who waits is ended */
    assert_int_equal(locate(dir), OOMSIGHT_IO);
    assert_non_null(strstr(error.text, "not a regular file"));
    unlink(file);
    assert_int_equal(symlink("/dev/zero", file), 0);
    assert_int_equal(locate(dir), OOMSIGHT_IO);
    assert_non_null(strstr(error.text, "not a regular file"));
    unlink(file);
    put("pipe/config.json", config);
    assert_int_equal(mkfifo(oos_arena_format(arena, "%s/model.safetensors", dir), 0600), 0);
    assert_int_not_equal(locate(dir), OOMSIGHT_OK);
    alarm(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(pipes_and_devices_are_no_config_and_nobody_waits_for_them),
        CASE(names_of_models_are_told_from_other_words),
        CASE(the_cache_is_where_the_environment_says),
        CASE(a_cached_model_is_found_by_branch_tag_and_commit),
        CASE(a_single_snapshot_needs_no_ref),
        CASE(overrides_change_fields_and_update_parts),
        CASE(a_directory_comes_before_the_cache),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
