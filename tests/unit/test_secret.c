/* What is a secret and what is not, and what may be shown of others' words. */
#include "unit.h"

#include "base/secret.h"
#include "base/shown.h"
#include "command/command.h"

#include <math.h>
#include <time.h>

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
         "-----BEGIN RSA PRIVATE KEY-----\n***\n-----END RSA PRIVATE KEY-----"},
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

static void a_value_on_another_line_is_hidden(void **state)
{
    (void)state;
    static const pair pairs[] = {
        {"- name: HF_TOKEN\n  value: some words\n- name: A\n  value: b",
         "- name: HF_TOKEN\n  value: ***\n- name: A\n  value: b"},
        {"\"name\": \"HF_TOKEN\",\n\"type\": \"x\",\n\"value\": \"abc\"",
         "\"name\": \"HF_TOKEN\",\n\"type\": \"x\",\n\"value\": \"***\""},
        {"- name: API_KEY\n  value: \"x1\"\n", "- name: API_KEY\n  value: \"***\"\n"},
        {"- value: abc\n  name: HF_TOKEN\n- value: d\n  name: MODE\n",
         "- value: ***\n  name: HF_TOKEN\n- value: d\n  name: MODE\n"},
        {"{\"value\": \"abc\", \"name\": \"HF_TOKEN\"}", "{\"value\": \"***\", \"name\": \"HF_TOKEN\"}"},
        {"password: |\n  one\n\n  two\nport: 1", "password: |\n  ***\n\n  ***\nport: 1"},
        {"api_key: >-\n    abc\n", "api_key: >-\n    ***\n"},
        {"a:\n  password:\n    abc\n  port: 1", "a:\n  password:\n    ***\n  port: 1"},
        {"api_keys:\n  - one\n  - two\nx: y", "api_keys:\n  - ***\n  - ***\nx: y"},
        {"vllm serve m --api-key \\\n  abc \\\n  --port 1",
         "vllm serve m --api-key \\\n  *** \\\n  --port 1"},
        {"- --api-key\n- one\n- two\n- --port\n- \"1\"", "- --api-key\n- ***\n- ***\n- --port\n- \"1\""},
        {"\"--api-key\",\n\"abc\",\n\"--port\",\n\"1\"", "\"--api-key\",\n\"***\",\n\"--port\",\n\"1\""},
        {"--api-key one two --port 1", "--api-key *** *** --port 1"},
        {"kind: Secret\ndata:\n  a: YWJj\n  b: |\n    x\ntype: Opaque",
         "kind: Secret\ndata:\n  a: ***\n  b: |\n    ***\ntype: Opaque"},
        {"apiVersion: v1\ndata:\n  a: c29tZSB0ZXh0\n  b: disabled\nkind: Secret",
         "apiVersion: v1\ndata:\n  a: ***\n  b: disabled\nkind: Secret"},
        {"kind: ConfigMap\ndata:\n  a: c29tZSB0ZXh0\n  mode: fast", NULL},
        {"{\"data\":{\"a\":\"YWJj\"},\"kind\":\"Secret\"}", "{\"data\":{\"a\":\"***\"},\"kind\":\"Secret\"}"},
        {"machine h\n  login me\n  password abc\n", "machine h\n  login me\n  password ***\n"},
        {"-----BEGIN PRIVATE KEY-----\nMIIE\nINFO a line between\nabcdEFGH01234567\n-----END PRIVATE "
         "KEY-----\nMIIE",
         "-----BEGIN PRIVATE KEY-----\n***\nINFO a line between\n***\n-----END PRIVATE KEY-----\nMIIE"},
        {"Private-Lines: 2\nAAAA\nBBBB\nPrivate-MAC: 1", "Private-Lines: 2\n***\n***\nPrivate-MAC: 1"},
        {"password=\"one\ntwo\" port=1", "password=\"***\n***\" port=1"},
        {"curl \\\n  -u me:abc h", "curl \\\n  -u me:*** h"},
        {"password=\"one\ntwo\nthree\" port=1", "password=\"***\n***\n***\" port=1"},
        {"--api-key one two three --port 1", "--api-key *** *** *** --port 1"},
        {"Private-Lines: 6\nA\nB\nC\nD\nE\nF\nPrivate-MAC: 1",
         "Private-Lines: 6\n***\n***\n***\n***\n***\n***\nPrivate-MAC: 1"},
        {"HF_TOKEN=abcdEF12\nghIJklM4\nnext", "HF_TOKEN=***\n***\nnext"},
        {"HF_TOKEN=abcdEF12\nservices:", "HF_TOKEN=***\nservices:"},
        {"password:\n  CUDA out of memory. Tried to allocate 2.00 GiB", NULL},
    };
    check_pairs(pairs, sizeof pairs / sizeof *pairs);
}

static void a_value_in_another_form_is_hidden(void **state)
{
    (void)state;
    static const pair pairs[] = {
        {"api_key=b'abc', SecretStr('x')", "api_key=b'***', SecretStr('x')"},
        {"'api_key': SecretStr('abc')}", "'api_key': SecretStr('***')}"},
        {"password=Tr0ub4dor&3 x", "password=*** x"},
        {"a=1&password=x&b=2", "a=1&password=***&b=2"},
        {"https://u:p@ss:w/9@host.org/x", "https://u:***@host.org/x"},
        {"git+https://u:abc@host.org/x@main", "git+https://u:***@host.org/x@main"},
        {"API_KEY=123456789 HF_TOKEN=12345678 token_count=12345678",
         "API_KEY=*** HF_TOKEN=*** token_count=12345678"},
        {"PGPASSWORD=x OLDPWD=/a SOME_PASS=abc CACHE_KEY=ab12cd34ef56",
         "PGPASSWORD=*** OLDPWD=/a SOME_PASS=*** CACHE_KEY=ab12cd34ef56"},
        {"<password>x</password>", "<password>***</password>"},
        {"the password is abc123", "the password is ***"},
        {"mysql -pabc -u me; docker run -p 80:80", "mysql -p*** -u me; docker run -p 80:80"},
        {"x hf_ab\x1b[1mcdefghijklmnopqrstuv y", "x hf_*** y"},
        {"api_key%3Dabc%26x y", "api_key%3D*** y"},
        {"os.environ['HF_TOKEN'] api_key=os.getenv('X') token=self.token", NULL},
        {"os.environ[\"HF_TOKEN\"] = \"abc\"", "os.environ[\"HF_TOKEN\"] = \"***\""},
        {"setdefault(\"DB_PASSWORD\", \"abcd\")", "setdefault(\"DB_PASSWORD\", \"***\")"},
        {"(\"password\", \"username\", \"email\")", NULL},
        {"变量API_KEY：abc，请勿", "变量API_KEY：***，请勿"},
        {"| HF_TOKEN | abcd | x |", "| HF_TOKEN | *** | x |"},
        {"generate_password | tee file1234", NULL},
        {"DB_PASSWORD -> abcd, token -> str", "DB_PASSWORD -> ***, token -> str"},
        {"set -gx HF_TOKEN abc", "set -gx HF_TOKEN ***"},
        {"API key: abc, access token is ab12cd", "API key: ***, access token is ***"},
        {"unexpected token: foo", NULL},
        {"密码：abc 令牌：12", "密码：*** 令牌：12"},
        {"x SEZfVE9LRU49YWJjZGVmZ2g= y", "x *** y"},
        {"x aGVsbG8gd29ybGQsIGhlbGxv y", NULL},
        {"STRIPE_KEY=foo SSL_KEY=/etc/k CACHE_KEY=x", "STRIPE_KEY=*** SSL_KEY=/etc/k CACHE_KEY=x"},
        {"API_KEY_2=abc ACCESS_TOKEN_EXPIRE_MINUTES=30", "API_KEY_2=*** ACCESS_TOKEN_EXPIRE_MINUTES=30"},
        {"pwd=abc PWD=/root", "pwd=*** PWD=/root"},
        {"token: !!binary abcd1234", "token: !!binary ***"},
        {"sig=ab12cd34ef56%3D&se=1", "sig=***&se=1"},
        {"passphrase: correct horse battery", "passphrase: ***"},
        {"password: one two # note", "password: *** # note"},
        {"mc alias set a https://h user abcd", "mc alias set a https://h *** ***"},
        {"A=b\\nHF_TOKEN=abc\\nC=d", "A=b\\nHF_TOKEN=***\\nC=d"},
        {"/models/sk-nas01-llama-3-70b-awq ms-marco-MiniLM-L-12-v2-onnx-quantized-8bit-x", NULL},
        {"--api-key abc meta-llama --port 1", "--api-key *** meta-llama --port 1"},
    };
    check_pairs(pairs, sizeof pairs / sizeof *pairs);
}

/* 90 KB in one line, and lines around it: wherever it is cut, the same comes out. */
static void pieces_give_what_the_whole_gives(void **state)
{
    (void)state;
    static const char *const parts[] = {"token=",
                                        "password=\"a b\" ",
                                        "--api-key one two ",
                                        "eyJa-",
                                        "https://u:p@h/x ",
                                        "x y z ",
                                        "- name: HF_TOKEN\n  value: abc\n",
                                        "-----BEGIN PRIVATE KEY-----\nMIIE\n"};
    enum { PARTS = sizeof parts / sizeof *parts, LINE = 90000 };
    for (size_t i = 0; i < PARTS; i++) {
        oos_text text = {0}, whole = {0};
        oos_text_put(&text, "first\n");
        for (size_t k = 0; text.len < LINE; k++) oos_text_put(&text, parts[k % 7 == 0 ? (i + k) % 6 : i]);
        oos_text_put(&text, "\nHF_TOKEN=last");
        oos_secret_hide(&whole, (oos_view){text.ptr, text.len});
        static const size_t sizes[] = {1, 7, 4096, 32768, 32769};
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
            oos_text out = {0};
            oos_redactor redactor = {0};
            for (size_t at = 0; at < text.len; at += sizes[s])
                oos_redactor_feed(&redactor, oos_view_slice((oos_view){text.ptr, text.len}, at, sizes[s]),
                                  &out);
            oos_redactor_finish(&redactor, &out);
            assert_int_equal(out.len, whole.len);
            assert_memory_equal(out.ptr, whole.ptr, whole.len);
            oos_text_free(&out);
        }
        oos_text_free(&text);
        oos_text_free(&whole);
    }
}

/* What is open at the end of a piece is hidden in the next ones. */
static void a_long_value_is_hidden_to_its_end(void **state)
{
    (void)state;
    static const char *const begins[] = {"token=",   "password=\"", "sk-A1",
                                         "Cookie: ", "api_key=['",  "-----BEGIN PRIVATE KEY-----"};
    for (size_t i = 0; i < sizeof begins / sizeof *begins; i++) {
        oos_text text = {0}, out = {0};
        oos_text_put(&text, begins[i]);
        oos_text_repeat(&text, "secret", 15000);
        oos_secret_hide(&out, (oos_view){text.ptr, text.len});
        assert_true(out.len <= strlen(begins[i]) + 3); /* three stars in all */
        assert_null(strstr(out.ptr, "secret"));
        oos_text_free(&text);
        oos_text_free(&out);
    }
}

/* More of them than a piece holds, and with them hardly a byte that is seen. */
static void bytes_that_nobody_sees_neither_hold_a_line_nor_part_a_secret(void **state)
{
    (void)state;
    static const char *const nothing[] = {"\xe2\x80\x8b", "\x1b[0m"};
    for (size_t i = 0; i < sizeof nothing / sizeof *nothing; i++) {
        oos_text text = {0}, out = {0};
        oos_text_put(&text, "a HF_TOKEN=");
        oos_text_repeat(&text, nothing[i], 40000);
        oos_text_put(&text, "secret and more\n");
        oos_secret_hide(&out, (oos_view){text.ptr, text.len});
        assert_true(oos_secret_inside((oos_view){text.ptr, text.len}));
        assert_null(strstr(out.ptr, "secret"));
        assert_non_null(strstr(out.ptr, "and more\n"));
        oos_text_free(&text);
        oos_text_free(&out);
    }
}

/* Processor time of a text that begins with `head` and goes on with `part` again and again. */
static double hide_seconds(const char *head, const char *part, size_t bytes)
{
    oos_text text = {0}, out = {0};
    oos_text_put(&text, head);
    oos_text_repeat(&text, part, bytes / strlen(part));
    clock_t const start = clock();
    oos_secret_hide(&out, (oos_view){text.ptr, text.len});
    double const took = (double)(clock() - start) / CLOCKS_PER_SEC;
    oos_text_free(&out);
    oos_text_free(&text);
    return took;
}

/* Of a line that is looked at as one. Eight times the length may cost 24 times as much; its square is 64. The least of five, where the first looks too much. */
static void assert_cost_of_length(const char *head, const char *part)
{
    double few = HUGE_VAL, many = HUGE_VAL;
    for (int i = 0; i < 5 && (i == 0 || many >= 24 * fmax(few, 1e-4)); i++) {
        few = fmin(few, hide_seconds(head, part, 4 << 10));
        many = fmin(many, hide_seconds(head, part, 31 << 10));
    }
    if (!clocks_decide()) return; /* on a busy machine others take the processor's caches */
    if (many >= 24 * fmax(few, 1e-4)) print_error("%s: %s: %.4f s, %.4f s\n", head, part, few, many);
    assert_true(many < 24 * fmax(few, 1e-4));
}

/* Words and signs of the redactor's own grammar, put together at random and repeated. */
static void the_cost_is_that_of_the_length(void **state)
{
    (void)state;
    static const char *const heads[] = {"", "kind Secret ", "curl mc wandb ", "machine h\n",
                                        "apiVersion: v1\ndata:\n"};
    static const char *const parts[] = {"data",
                                        "kind",
                                        "Secret",
                                        "stringData",
                                        "value",
                                        "name",
                                        "token",
                                        "password",
                                        "API_KEY",
                                        "--api-key",
                                        "Cookie",
                                        "passphrase",
                                        "Bearer",
                                        "set",
                                        "login",
                                        "mc",
                                        "-u",
                                        "machine",
                                        "sk-",
                                        "eyJ",
                                        "hf_",
                                        "AKIA",
                                        "SEZfVE9LRU49",
                                        "123456789",
                                        "-----BEGIN ",
                                        "PRIVATE KEY-----",
                                        "END ",
                                        "://",
                                        ":AA",
                                        "%3D",
                                        "\x1b[0m",
                                        "\xe2\x80\x8b",
                                        "密码",
                                        "：",
                                        "│",
                                        "->",
                                        "a",
                                        "=",
                                        ":",
                                        ",",
                                        "|",
                                        "[",
                                        "]",
                                        "(",
                                        ")",
                                        "{",
                                        "}",
                                        "@",
                                        "&",
                                        "?",
                                        "!!",
                                        "*",
                                        "#",
                                        "$",
                                        "<",
                                        "-",
                                        "_",
                                        "/",
                                        ".",
                                        "'",
                                        "\"",
                                        "`",
                                        "\\",
                                        "\\n",
                                        " ",
                                        "  ",
                                        "\n",
                                        "\n- "};
    enum { PARTS = sizeof parts / sizeof *parts, HEADS = sizeof heads / sizeof *heads, SHAPES = 400 };
    uint32_t draw = 7;
    assert_cost_of_length("kind Secret ", "data:{,");
    for (size_t i = 0; i < PARTS; i++) assert_cost_of_length(heads[i % HEADS], parts[i]);
    for (int i = 0; i < SHAPES; i++) {
        char part[128] = "";
        draw = draw * 1664525 + 1013904223;
        const char *head = heads[(draw >> 16) % HEADS];
        for (unsigned k = 0, words = 2 + (draw >> 24) % 4; k < words; k++) {
            uint32_t const word = draw = draw * 1664525 + 1013904223;
            strcat(part, parts[(word >> 16) % PARTS]);
        }
        assert_cost_of_length(head, part);
    }
}

static void variables_that_no_engine_reads_are_not_shown(void **state)
{
    (void)state;
    static const char *const words[] = {
        "PGDATA=a",         "VLLM_USE_V1=1", "docker",    "run", "-e",  "ANY=b",  "-e", "NCCL_DEBUG=INFO",
        "--env=HF_TOKEN=c", "image",         "--api-key", "one", "two", "--port", "1"};
    size_t const count = sizeof words / sizeof *words;
    size_t shown_count = 0;
    oos_arena *arena = oos_arena_create(256);
    oos_text text = {0};
    const char *const *shown = oos_command_shown(arena, words, count, &shown_count);
    assert_int_equal(shown_count, count - 1);
    assert_string_equal(shown[0], "VLLM_USE_V1=1");
    assert_string_equal(shown[4], "ANY");
    oos_command_put(arena, &text, words, count);
    assert_string_equal(text.ptr, "VLLM_USE_V1=1 docker run -e ANY -e NCCL_DEBUG=INFO --env=HF_TOKEN image "
                                  "--api-key \"$API_KEY\" --port 1");
    oos_text_free(&text);
    static const char *const given[] = {"HF_TOKEN=x", "vllm", "serve", "m", "--hf-token=y"};
    oos_command_put(arena, &text, given, 5);
    assert_string_equal(text.ptr, "HF_TOKEN=\"$HF_TOKEN\" vllm serve m --hf-token=\"$HF_TOKEN\"");
    oos_text_free(&text);
    static const char *const hostile[] = {
        "VLLM_X=a b", "vllm",       "serve", "m",    "--name", "x;touch p;API_KEY=Secret12345678",
        "--name",     "$(touch p)", "-e",    "1=***"};
    oos_command_put(arena, &text, hostile, 10);
    assert_string_equal(text.ptr,
                        "VLLM_X='a b' vllm serve m --name \"$NAME\" --name '$(touch p)' -e 1=\"$SECRET\"");
    oos_text_free(&text);
    assert_true(oos_variable_is_shown("HF_HOME=/x") && !oos_variable_is_shown("VLLM_API_KEY=x"));
    oos_arena_free(arena);
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
        cmocka_unit_test(a_value_on_another_line_is_hidden),
        cmocka_unit_test(a_value_in_another_form_is_hidden),
        cmocka_unit_test(pieces_give_what_the_whole_gives),
        cmocka_unit_test(a_long_value_is_hidden_to_its_end),
        cmocka_unit_test(the_cost_is_that_of_the_length),
        cmocka_unit_test(variables_that_no_engine_reads_are_not_shown),
        cmocka_unit_test(bytes_that_nobody_sees_neither_hold_a_line_nor_part_a_secret),
        cmocka_unit_test(words_of_a_command_are_hidden_by_the_flag_before_them),
        cmocka_unit_test(what_a_terminal_would_obey_is_written_out),
        cmocka_unit_test(a_line_break_of_the_format_stays_and_that_of_a_word_does_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
