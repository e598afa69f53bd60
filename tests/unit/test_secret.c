/* What is a secret and what is not, and what may be shown of others' words. */
#include "base/secret.h"
#include "base/shown.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

typedef struct pair {
    const char *text, *shown;
} pair;

static void check_pairs(const pair *pairs, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        oos_text text = {0};
        oos_secret_hide(&text, oos_view_of(pairs[i].text));
        assert_string_equal(text.ptr, pairs[i].shown ? pairs[i].shown : pairs[i].text);
        assert_int_equal(oos_secret_inside(oos_view_of(pairs[i].text)), pairs[i].shown != NULL);
        oos_text again = {0}; /* hidden once is hidden */
        oos_secret_hide(&again, (oos_view){text.ptr, text.len});
        assert_string_equal(again.ptr, text.ptr);
        oos_text_free(&again);
        oos_text_free(&text);
    }
}

static void a_value_behind_a_telling_name_is_hidden(void **state)
{
    (void)state;
    static const pair pairs[] = {
        {"--api-key s3same", "--api-key ***"},
        {"--api-key=s3same --port 8000", "--api-key=*** --port 8000"},
        {"HF_TOKEN=plainvalue vllm serve m", "HF_TOKEN=*** vllm serve m"},
        {"export OPENAI_API_KEY='a b c'; x", "export OPENAI_API_KEY='***'; x"},
        {"{'api_key': ['one', 'two'], 'port': 1}", "{'api_key': [***], 'port': 1}"},
        {"Namespace(hf_token='abcd', max_num_seqs=4)", "Namespace(hf_token='***', max_num_seqs=4)"},
        {"{\"password\": \"1234\", \"n\": 2}", "{\"password\": \"***\", \"n\": 2}"},
        {"{\\\"password\\\": \\\"1234\\\", \\\"n\\\": 2}", "{\\\"password\\\": \\\"***\\\", \\\"n\\\": 2}"},
        {"{\"name\": \"HF_TOKEN\", \"value\": \"abc\"}", "{\"name\": \"HF_TOKEN\", \"value\": \"***\"}"},
        {"[\"--api-key\", \"abc\", \"--port\"]", "[\"--api-key\", \"***\", \"--port\"]"},
        {"Authorization: Bearer abc.def-ghi", "Authorization: Bearer ***"},
        {"-H 'Authorization: Basic dXNlcjpw'", "-H 'Authorization: Basic ***'"},
        {"Cookie: a=b; c=d", "Cookie: ***"},
        {"X-Api-Key: abcdef", "X-Api-Key: ***"},
        {"sent Bearer abcdefgh12", "sent Bearer ***"},
        {"clientSecret: hunter2", "clientSecret: ***"},
        {"DB_PASS=hunter2", "DB_PASS=***"},
        {"AWS_SECRET_ACCESS_KEY=wJalr/K7", "AWS_SECRET_ACCESS_KEY=***"},
        {"token: a1b2c3d4e5", "token: ***"},
        {"https://user:pa55@host/x", "https://user:***@host/x"},
        {"git+https://0123456789abcdef0123@host/x", "git+https://***@host/x"},
        {"https://h/x?a=1&token=abc&b=2", "https://h/x?a=1&token=***&b=2"},
        {"https://h/x?X-Amz-Signature=abc", "https://h/x?X-Amz-Signature=***"},
        {"https://h/x?key=abc", "https://h/x?key=***"},
    };
    check_pairs(pairs, sizeof pairs / sizeof *pairs);
}

/* Put together from two pieces, so that scanners of repositories do not take them for real ones. */
static void a_known_shape_is_hidden_wherever_it_stands(void **state)
{
    (void)state;
    static const pair pairs[] = {
        {"x hf_"
         "abcdefghijklmnopqrstuvwxyzABCDEFGH y",
         "x hf_*** y"},
        {"(sk-"
         "proj-Ab3dEfGhIjKlMnOpQr)",
         "(sk-***)"},
        {"ghp_"
         "0123456789abcdefABCDEF0123456789abcd",
         "ghp_***"},
        {"github_pat_"
         "11ABCDEFG0123456789_abcdef",
         "github_pat_***"},
        {"glpat-"
         "AbCdEf0123456789wxyz",
         "glpat-***"},
        {"AKIA"
         "IOSFODNN7EXAMPLE",
         "AKIA***"},
        {"xoxb-"
         "123456789012-abcdefABCDEF",
         "xoxb-***"},
        {"nvapi-"
         "AbCdEf0123456789AbCdEf0123456789",
         "nvapi-***"},
        {"AIza"
         "SyA0123456789abcdefghijklmnopqrstuv",
         "AIza***"},
        {"eyJ"
         "hbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.SflKxwRJSMeKKF2QT4",
         "eyJ***"},
        {"npm_"
         "0123456789abcdefghijABCDEFGHIJ012345",
         "npm_***"},
        {"gsk_"
         "0123456789abcdefghijABCDEFGHIJ",
         "gsk_***"},
        {"/models/hf_"
         "abcdefghijklmnopqrstuvwxyz/x",
         "/models/hf_***/x"},
        {"-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----",
         "-----BEGIN RSA PRIVATE KEY-----***-----END RSA PRIVATE KEY-----"},
        {"https://hooks.slack.com/services/"
         "T0/B0/abc",
         "https://hooks.slack.com/services/***"},
    };
    check_pairs(pairs, sizeof pairs / sizeof *pairs);
}

static void what_is_no_secret_is_left_alone(void **state)
{
    (void)state;
    static const pair pairs[] = {
        {"vllm serve m --max-num-batched-tokens 8192 --tokenizer-mode auto --skip-tokenizer-init", NULL},
        {"--long-prefill-token-threshold 4096 --num-speculative-tokens 2 --max-model-len 8192", NULL},
        {"{\"eos_token\": \"<|endoftext|>\", \"pad_token\": \"x\", \"image_token_id\": 151655}", NULL},
        {"bytes_per_token=1234, tokens: 8192, per token: 12, token: 151643", NULL},
        {"secretName: my-secret, secretKeyRef, tokenizer: org/model, key: value, keys=4", NULL},
        {"HF_TOKEN=$HF_TOKEN --api-key ${API_KEY} --hf-token $(cat f) --api-key <key>", NULL},
        {"hf_token=None, api_key=None, 'api_key': None, \"token\": null", NULL},
        {"--ssl-keyfile /etc/key.pem --password-file /run/p PWD=/root", NULL},
        {"error: argument --api-key: expected at least one argument", NULL},
        {"ssh://git@host/x http://host:8000/v1 user@host", NULL},
        {"hf_overrides, hf_transfer, sk-learn, task-sk-abc, disk-0123456789abcdef0123", NULL},
        {"The KV cache takes 2.00 GiB; --max-model-len 8192 helps", NULL},
        {"sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", NULL},
        {"eyJ is no token, nor is eyJhbGci", NULL},
        {"forward pass: 12 ms, mlp.key_proj, self_attn.k_proj, key_cache", NULL},
        {"", NULL},
    };
    check_pairs(pairs, sizeof pairs / sizeof *pairs);
}

static void words_of_a_command_are_hidden_by_the_flag_before_them(void **state)
{
    (void)state;
    static const char *const words[] = {
        "HF_TOKEN=a=b c", "vllm", "serve",      "org/m",     "--api-key",           "one", "two",
        "--port",         "8000", "--hf-token", "$HF_TOKEN", "--served-model-name", "x"};
    static const char *const shown[] = {
        "HF_TOKEN=***", "vllm", "serve",      "org/m",     "--api-key",           "***", "***",
        "--port",       "8000", "--hf-token", "$HF_TOKEN", "--served-model-name", "x"};
    oos_arena *arena = oos_arena_create(256);
    size_t const count = sizeof words / sizeof *words;
    const char *const *hidden = oos_secret_hidden_words(arena, words, count);
    for (size_t i = 0; i < count; i++) assert_string_equal(hidden[i], shown[i]);
    assert_ptr_equal(oos_secret_hidden_words(arena, words + 1, 3), words + 1);
    oos_arena_free(arena);
}

static void what_a_terminal_would_obey_is_written_out(void **state)
{
    (void)state;
    static const pair pairs[] = {
        {"a\x1b[2Jb", "a\\x1b[2Jb"},
        {"name\n::error::forged", "name\\n::error::forged"},
        {"\xc2\x9b"
         "2J",
         "\\u009b2J"},
        {"bad \xff\xc3 byte", "bad \\xff\\xc3 byte"},
        {"\xe2\x80\xae"
         "txt.exe",
         "\\u202etxt.exe"},
        {"tab\there, \xe4\xb8\xad\xe6\x96\x87", NULL},
        {"bell\a del\x7f cr\r", "bell\\x07 del\\x7f cr\\r"},
    };
    oos_arena *arena = oos_arena_create(256);
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        const char *shown = oos_shown(arena, pairs[i].text);
        assert_string_equal(shown, pairs[i].shown ? pairs[i].shown : pairs[i].text);
        if (!pairs[i].shown) assert_ptr_equal(shown, pairs[i].text);
    }
    oos_arena_free(arena);
}

static void a_line_break_of_the_format_stays_and_that_of_a_word_does_not(void **state)
{
    (void)state;
    oos_text spare = {0};
    oos_view shown = oos_shown_sentence("\n%s\n", "\na\nb\n", &spare);
    assert_true(oos_view_is(shown, "\na\\nb\n"));
    oos_text_free(&spare);
    const char *table = "| a |\n| b |\n";
    shown = oos_shown_sentence(table, table, &spare);
    assert_ptr_equal(shown.ptr, table);
    shown = oos_shown_sentence("%s\n", "cut", &spare);
    assert_true(oos_view_is(shown, "cut"));
    oos_text_free(&spare);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_value_behind_a_telling_name_is_hidden),
        cmocka_unit_test(a_known_shape_is_hidden_wherever_it_stands),
        cmocka_unit_test(what_is_no_secret_is_left_alone),
        cmocka_unit_test(words_of_a_command_are_hidden_by_the_flag_before_them),
        cmocka_unit_test(what_a_terminal_would_obey_is_written_out),
        cmocka_unit_test(a_line_break_of_the_format_stays_and_that_of_a_word_does_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
