/* Commands found in deployment files. */
#include "unit.h"

#include "command/command.h"

static oos_arena *arena;
static const oos_found *list;
static size_t count;
static oos_found_doubt doubt;

static void read_as(const char *path, const char *text)
{
    oomsight_error error = {0};
    oos_arena_reset(arena);
    assert_int_equal(oos_found_read(arena, path, oos_view_of(text), &list, &count, &doubt, &error),
                     OOMSIGHT_OK);
}

/* The words of command `index`, joined. */
static void assert_words(size_t index, const char *words)
{
    char joined[2048] = "";
    assert_true(index < count);
    for (size_t i = 0; i < list[index].count; i++) {
        if (i) strcat(joined, "|");
        strcat(joined, list[index].words[i]);
    }
    assert_string_equal(joined, words);
}

static void a_command_over_several_lines_is_one(void **state)
{
    (void)state;
    read_as("a.sh",
            "set -e\nvllm serve m \\\n  --max-model-len 10 \\\r\n  --dtype \"half\" # why\nvllm serve n\n");
    assert_int_equal(count, 2);
    assert_words(0, "vllm|serve|m|--max-model-len|10|--dtype|half");
    assert_int_equal(list[0].line, 2);
    assert_int_equal(list[1].line, 5);
}

static void variables_of_the_script_are_put_in(void **state)
{
    (void)state;
    read_as("a.sh", "M=x/y\nexport N=3\nA=(--a 1 --b 'two words')\nEXTRA='--c 2'\n"
                    "vllm serve $M --n=${N} ${Z:-z} \"${A[@]}\" $EXTRA ${1:-one} \"$@\"\n");
    assert_int_equal(count, 1);
    assert_words(0, "N=3|vllm|serve|x/y|--n=3|z|--a|1|--b|two words|--c|2|one");
    assert_null(list[0].unknown);
}

static void what_is_not_set_is_named(void **state)
{
    (void)state;
    read_as("a.sh", "vllm serve \"$MODEL\" --port $(pick_port)\n");
    assert_int_equal(count, 1);
    assert_non_null(list[0].unknown);
}

static void words_that_only_mention_it_are_no_command(void **state)
{
    (void)state;
    read_as("a.sh", "echo vllm serve m\n# vllm serve m\ngrep -c 'vllm serve' f\ncat <<E\nvllm serve "
                    "m\nE\npip install vllm\n");
    assert_int_equal(count, 0);
}

static void wrappers_and_pipes_do_not_hide_it(void **state)
{
    (void)state;
    read_as("a.sh", "A=1 exec nohup env B=2 numactl --cpunodebind 0 vllm serve m 2>&1 | tee log &\n"
                    "if true; then timeout 600 python3 -m vllm.entrypoints.openai.api_server --model n; fi\n"
                    "bash -lc 'cd /x && vllm serve o'\n");
    assert_int_equal(count, 3);
    assert_int_equal(list[1].line, 2);
    assert_words(2, "vllm|serve|o");
}

static void an_image_that_is_the_server_gets_arguments(void **state)
{
    (void)state;
    read_as(
        "c.yaml",
        "services:\n  a:\n    image: vllm/vllm-openai:v0.19.1-cu129\n    command: --model m --dtype half\n");
    assert_int_equal(count, 1);
    assert_words(0, "vllm/vllm-openai:v0.19.1-cu129|--model|m|--dtype|half");
    assert_string_equal(list[0].engine_version, "0.19.1");
    assert_string_equal(list[0].name, "a");
    assert_int_equal(list[0].line, 4);
}

static void a_pod_says_how_many_gpus(void **state)
{
    (void)state;
    read_as("p.yml", "a: 1\n---\nspec:\n  containers:\n  - name: e\n    image: x/vllm-openai:latest\n    "
                     "command: [vllm, serve]\n"
                     "    args: [$(M), --tensor-parallel-size=2]\n    env: [{name: M, value: m}]\n"
                     "    resources: {limits: {nvidia.com/gpu: \"2\"}}\n");
    assert_int_equal(count, 1);
    assert_words(0, "M=m|vllm|serve|m|--tensor-parallel-size=2");
    assert_int_equal(list[0].gpus, 2);
    assert_null(list[0].engine_version);
}

static void values_of_the_chart_become_its_flags(void **state)
{
    (void)state;
    read_as(
        "v.yaml",
        "servingEngineSpec:\n  modelSpec:\n  - name: n\n    repository: vllm/vllm-openai\n    tag: v0.11.0\n"
        "    modelURL: o/m\n    enableLoRA: true\n    vllmConfig: {maxModelLen: 8, enablePrefixCaching: "
        "false, extraArgs: [--x, y]}\n");
    assert_int_equal(count, 1);
    assert_words(0, "vllm|serve|o/m|--enable-lora|--max-model-len|8|--no-enable-prefix-caching|--x|y");
    assert_string_equal(list[0].kind, "Helm values");
    assert_string_equal(list[0].engine_version, "0.11.0");
    assert_int_equal(list[0].line, 6);
    /* the template switches prefix caching off where nothing is said, and passes a revision on */
    read_as("v.yaml",
            "servingEngineSpec:\n  modelSpec:\n  - name: n\n    modelURL: o/m\n    modelRevision: r\n"
            "    vllmConfig: {runner: pooling}\n");
    assert_int_equal(count, 1);
    assert_words(0, "vllm|serve|o/m|--runner|pooling|--no-enable-prefix-caching|--revision|r");
    read_as("v.yaml",
            "servingEngineSpec:\n  modelSpec:\n  - repository: vllm/vllm-openai\n    modelURL: o/m\n");
    assert_words(0, "vllm|serve|o/m");
}

static void entrypoint_and_command_of_the_last_stage_belong_together(void **state)
{
    (void)state;
    read_as("Dockerfile",
            "FROM a\nCMD [\"true\"]\nFROM b\nENTRYPOINT [\"vllm\", \\\n  \"serve\"]\nCMD [\"m\"]\n");
    assert_int_equal(count, 1);
    assert_words(0, "vllm|serve|m");
    read_as("x.Dockerfile", "FROM b\nENV M=m\nCMD exec vllm serve $M \\\n  # a remark\n  --dtype half\n");
    assert_int_equal(count, 1);
    assert_words(0, "M=m|exec|vllm|serve|m|--dtype|half");
}

static void a_unit_starts_it(void **state)
{
    (void)state;
    read_as(
        "v.service",
        "[Service]\nEnvironment=VLLM_USE_V1=0 \"B=c d\"\nExecStart=-/opt/vllm serve m \\\n --dtype half\n");
    assert_int_equal(count, 1);
    assert_words(0, "VLLM_USE_V1=0|B=c d|/opt/vllm|serve|m|--dtype|half");
    assert_int_equal(list[0].line, 3);
}

static void comments_declare_and_leave_out(void **state)
{
    (void)state;
    read_as("a.sh", "# oomsight: gpu=A30x4 gpu-total=23.5GiB\nvllm serve m\n# oomsight: ignore\nvllm serve "
                    "n\n# oomsight: gpu=l4 vllm=0.11.0\nvllm serve o\n");
    assert_int_equal(count, 2);
    assert_string_equal(list[0].gpu, "A30x4");
    assert_string_equal(list[0].gpu_total, "23.5GiB");
    assert_string_equal(list[1].gpu, "l4");
    assert_string_equal(list[1].engine_version, "0.11.0");
}

static void other_files_hold_none(void **state)
{
    (void)state;
    read_as("notes.md", "vllm serve m\n");
    assert_int_equal(count, 0);
    read_as("t.yaml", "{{ if x }}\ncommand: [vllm, serve]\n");
    assert_int_equal(count, 0);
    read_as("t.yaml", "note: run vllm serve m\n");
    assert_int_equal(count, 0);
}

static int setup(void **state)
{
    (void)state;
    arena = oos_arena_create(64 << 10);
    return arena ? 0 : -1;
}
static int teardown(void **state)
{
    (void)state;
    oos_arena_free(arena);
    return 0;
}

/* ---- pasted text ------------------------------------------------------------------------------------------------- */

static void a_prompt_before_a_command_is_taken_off(void **state)
{
    (void)state;
    static const char *const pasted[] = {
        "$ vllm serve m\n",
        "user@host:~/x$ vllm serve m\n",
        "root@abc:/# vllm serve m\n",
        "[user@host dir]$ vllm serve m\n",
        "(venv) % vllm serve m\n",
        "\xe2\x9e\x9c  proj git:(main) vllm serve m\n",
        "PS C:\\Users\\me> vllm serve m\n",
        "# vllm serve m\n",
        "`vllm serve m`\n",
        "$ vllm \\\n> serve \\\n> m\n",
    };
    for (size_t i = 0; i < sizeof pasted / sizeof *pasted; i++) {
        read_as("-", pasted[i]);
        assert_int_equal(count, 1);
        assert_words(0, "vllm|serve|m");
        assert_int_equal(doubt.skip_count, 0);
    }
    read_as("-", "# vllm serve m\necho done\n"); /* a comment of a script */
    assert_int_equal(count, 0);
    read_as("-", "make # then vllm serve m\n");
    assert_int_equal(count, 0);
    read_as("a.sh", "$ vllm serve m\n"); /* a file is no paste */
    assert_int_equal(count, 0);
}

static void colours_of_a_terminal_are_taken_off(void **state)
{
    (void)state;
    read_as("-", "\x1b]0;title\x07\x1b[1;32muser@host\x1b[0m:~$ vllm \x1b[36mserve\x1b[0m m\x1b[K\r\n");
    assert_int_equal(count, 1);
    assert_words(0, "vllm|serve|m");
    read_as("-", "vllm serve m --dtype \xc2\xa0half\x1b[");
    assert_words(0, "vllm|serve|m|--dtype|half");
    read_as("-", "vllm serve m\x1b]0;");
    assert_words(0, "vllm|serve|m");
}

static void what_stands_between_fences_is_meant(void **state)
{
    (void)state;
    read_as("-", "I can't start it:\n```bash\nvllm serve m\n```\nand it's the same with `vllm serve n`.\n");
    assert_int_equal(count, 1);
    assert_words(0, "vllm|serve|m");
    assert_int_equal(list[0].line, 3);
    read_as("-", "vllm serve m\n```\n"); /* the other one was not taken along */
    assert_int_equal(count, 1);
    read_as("readme.md", "```\nvllm serve m\n```\n");
    assert_int_equal(count, 0);
}

static void a_call_of_python_is_found_in_a_text(void **state)
{
    (void)state;
    read_as("-", "from vllm import LLM\nprint(\"it's\")\nllm = LLM(model=\"m\", tensor_parallel_size=2)\n");
    assert_int_equal(count, 1);
    assert_words(0, "LLM(model=\"m\", tensor_parallel_size=2)");
    read_as("-", "LLM(model=\"m\")");
    assert_int_equal(count, 1);
    assert_int_equal(doubt.skip_count, 0);
}

static void the_command_of_a_container_is_read_as_we_print_it(void **state)
{
    (void)state;
    read_as("-", "A=b vllm/vllm-openai:v0.19.1 --model m\nvllm serve n\n");
    assert_int_equal(count, 2);
    assert_words(0, "A=b|vllm/vllm-openai:v0.19.1|--model|m");
    assert_string_equal(list[0].engine_version, "0.19.1");
    read_as("a.sh", "vllm/vllm-openai:v0.19.1 --model m\n");
    assert_int_equal(count, 0);
}

static void a_model_alone_is_what_is_to_be_served(void **state)
{
    (void)state;
    read_as("-", "  acme/small-llama\n");
    assert_int_equal(count, 1);
    assert_words(0, "acme/small-llama");
    assert_true(oos_found_is_model(&list[0]));
    read_as("-", "acme/small-llama --max-model-len 10 \\\n  --dtype half");
    assert_words(0, "acme/small-llama|--max-model-len|10|--dtype|half");
    static const char *const others[] = {
        "acme/small llama",     "acme/a/b",   "/acme/small", "acme/", "acme/a: b",
        "acme/a\n--dtype half", "hello world"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        read_as("-", others[i]);
        assert_int_equal(count, 0);
    }
    read_as("models.txt", "acme/small-llama\n");
    assert_int_equal(count, 0);
}

static void a_manifest_may_begin_with_a_comment(void **state)
{
    (void)state;
    read_as(
        "-",
        "# ours\n\nkind: Pod\nspec:\n  containers:\n  - {name: a, image: 'vllm/vllm-openai:v0.19.1', args: "
        "[--model, m]}\n");
    assert_int_equal(count, 1);
    assert_string_equal(list[0].kind, "container");
}

static void another_engine_is_named(void **state)
{
    (void)state;
    static const struct {
        const char *text, *title;
    } others[] = {
        {"llama-server -m x.gguf\n", "llama.cpp"},
        {"$ ollama run llama3\n", "Ollama"},
        {"sudo docker run --gpus all ghcr.io/huggingface/text-generation-inference:2.0 --model-id m\n",
         "Text Generation Inference"},
        {"trtllm-serve m\n", "TensorRT-LLM"},
        {"python -m llama_cpp.server --model m\n", "llama.cpp"},
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        read_as("-", others[i].text);
        assert_int_equal(count, 0);
        assert_non_null(doubt.other);
        assert_string_equal(doubt.other, others[i].title);
        assert_int_equal(doubt.skip_count, 1);
        assert_non_null(strstr(doubt.skips[0].what, "its log can be explained"));
    }
    read_as("-", "vllm serve m\n");
    assert_null(doubt.other);
}

static void what_runs_a_container_may_stand_before_it(void **state)
{
    (void)state;
    read_as("a.sh", "sudo -E docker run --gpus all vllm/vllm-openai:v0.19.1 --model m\nsudo docker pull "
                    "vllm/vllm-openai\n");
    assert_int_equal(count, 1);
    assert_string_equal(list[0].engine_version, "0.19.1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_prompt_before_a_command_is_taken_off),
        cmocka_unit_test(colours_of_a_terminal_are_taken_off),
        cmocka_unit_test(what_stands_between_fences_is_meant),
        cmocka_unit_test(a_call_of_python_is_found_in_a_text),
        cmocka_unit_test(the_command_of_a_container_is_read_as_we_print_it),
        cmocka_unit_test(a_model_alone_is_what_is_to_be_served),
        cmocka_unit_test(a_manifest_may_begin_with_a_comment),
        cmocka_unit_test(another_engine_is_named),
        cmocka_unit_test(what_runs_a_container_may_stand_before_it),
        cmocka_unit_test(a_command_over_several_lines_is_one),
        cmocka_unit_test(variables_of_the_script_are_put_in),
        cmocka_unit_test(what_is_not_set_is_named),
        cmocka_unit_test(words_that_only_mention_it_are_no_command),
        cmocka_unit_test(wrappers_and_pipes_do_not_hide_it),
        cmocka_unit_test(an_image_that_is_the_server_gets_arguments),
        cmocka_unit_test(a_pod_says_how_many_gpus),
        cmocka_unit_test(values_of_the_chart_become_its_flags),
        cmocka_unit_test(entrypoint_and_command_of_the_last_stage_belong_together),
        cmocka_unit_test(a_unit_starts_it),
        cmocka_unit_test(comments_declare_and_leave_out),
        cmocka_unit_test(other_files_hold_none),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
