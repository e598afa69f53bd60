/* Run by hub_server.py, which is the hub and sets the environment. */
#include "unit.h"

#include "model/model.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <sys/stat.h>
#include <unistd.h>

static oos_arena *arena;
static oos_model model;
static oomsight_error error;

static int begin(void **state)
{
    (void)state;
    unsetenv("HF_TOKEN");
    unsetenv("HF_HUB_OFFLINE");
    memset(&error, 0, sizeof error);
    arena = oos_arena_create(4096);
    return arena ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    oos_arena_free(arena);
    return 0;
}

static oomsight_status fetch(const char *word)
{
    return oos_locate(arena, NULL, word, true, NULL, &model, &error);
}

#define FETCH(word)                                                                                          \
    do {                                                                                                     \
        if (fetch(word) != OOMSIGHT_OK) fail_msg("%s: %s %s", word, error.path, error.text);                 \
    } while (0)

static void shards_are_found_by_the_index_and_read_from_another_host(void **state)
{
    (void)state;
    FETCH("org/sharded");
    assert_string_equal(model.path, "org/sharded");
    assert_string_equal(model.architecture, "LlamaForCausalLM");
    assert_non_null(model.tensors);
    assert_int_equal(model.tensors->count, 3);
    assert_string_equal(model.tensors->list[2].name, "lm_head.weight");
    assert_true(model.tensors->total_bytes == 2 * 64 * 128 + 32 * 128);
    assert_true(model.tensors->largest_file_bytes > 2 * 64 * 128); /* told by Content-Range */
}

static void the_token_goes_to_the_hub_and_not_to_the_host_it_points_to(void **state)
{
    (void)state;
    setenv("HF_TOKEN", "good\n", 1);
    FETCH("org/sharded"); /* the other host answers 400 to a token */
    FETCH("org/gated");
}

static void without_an_index_there_is_one_file(void **state)
{
    (void)state;
    FETCH("org/single");
    assert_int_equal(model.tensors->count, 2);
    FETCH("single");
    FETCH("org/single@v2");
    FETCH("org/single@refs/pr/1");
}

static void how_large_images_are_is_asked_of_a_model_that_takes_some(void **state)
{
    (void)state;
    FETCH("org/images");
    assert_int_equal(model.vision.image_pixels, 5000);
    assert_int_equal(model.vision.video_pixels, 70);
}

static void a_header_longer_than_the_first_read_is_asked_for_again(void **state)
{
    (void)state;
    FETCH("org/large");
    assert_int_equal(model.tensors->count, 2500);
}

static void a_server_that_ignores_ranges_is_stopped_in_time(void **state)
{
    (void)state;
    FETCH("org/whole");
    assert_int_equal(model.tensors->count, 2);
    FETCH("org/whole-large");
    assert_int_equal(model.tensors->count, 2500);
}

static void a_model_without_safetensors_is_planned_from_its_config_with_a_note(void **state)
{
    (void)state;
    FETCH("org/bin");
    assert_null(model.tensors);
    assert_true(model.note_count > 0);
    assert_non_null(strstr(model.notes[model.note_count - 1], "not on the Hugging Face Hub"));
}

static void what_the_hub_refuses_is_said_with_what_to_do(void **state)
{
    (void)state;
    assert_int_equal(fetch("org/gated"), OOMSIGHT_IO);
    assert_non_null(strstr(error.text, "needs HF_TOKEN"));
    setenv("HF_TOKEN", "bad", 1);
    assert_int_equal(fetch("org/gated"), OOMSIGHT_IO);
    assert_non_null(strstr(error.text, "request access"));
    assert_int_equal(fetch("org/nobody"), OOMSIGHT_NOT_FOUND);
    assert_non_null(strstr(error.text, "has no org/nobody at revision main"));
    assert_int_equal(fetch("org/empty"), OOMSIGHT_NOT_FOUND);
    assert_int_equal(fetch("org/single@nowhere"), OOMSIGHT_NOT_FOUND);
    assert_int_equal(fetch("org/busy"), OOMSIGHT_NETWORK);
    assert_non_null(strstr(error.text, "503"));
    setenv("HF_TOKEN", "a\r\nHost: b", 1);
    assert_int_equal(fetch("org/single"), OOMSIGHT_USAGE);
}

static void bodies_that_are_cut_short_are_not_taken_for_whole(void **state)
{
    (void)state;
    assert_int_equal(fetch("org/cut-config"), OOMSIGHT_NETWORK);
    assert_non_null(strstr(error.text, "cut short"));
    assert_int_equal(fetch("org/cut-weights"), OOMSIGHT_NETWORK);
    assert_non_null(strstr(error.text, "cut short"));
    assert_int_equal(fetch("org/short"), OOMSIGHT_MALFORMED);
    assert_non_null(strstr(error.text, "of which 92 came"));
    assert_int_equal(fetch("org/tiny"), OOMSIGHT_MALFORMED);
}

static void what_is_not_what_it_should_be_is_refused(void **state)
{
    (void)state;
    assert_int_equal(fetch("org/liar"), OOMSIGHT_MALFORMED);
    assert_non_null(strstr(error.text, "9223372036854775808"));
    assert_int_equal(fetch("org/html"), OOMSIGHT_MALFORMED);
    assert_int_equal(fetch("org/quant"), OOMSIGHT_MALFORMED);
    assert_int_equal(fetch("org/escape"), OOMSIGHT_MALFORMED);
    assert_int_equal(fetch("org/endless"), OOMSIGHT_MALFORMED);
    assert_non_null(strstr(error.text, "longer than"));
}

static void redirects_without_end_or_to_a_file_are_not_followed(void **state)
{
    (void)state;
    assert_int_equal(fetch("org/loop"), OOMSIGHT_NETWORK);
    assert_int_equal(fetch("org/file"), OOMSIGHT_NETWORK);
    assert_non_null(strstr(error.text, "redirect"));
}

static void a_silent_server_is_given_up(void **state)
{
    (void)state;
    assert_int_equal(fetch("org/slow"), OOMSIGHT_NETWORK);
    const char *endpoint = getenv("HF_ENDPOINT");
    char *kept = strdup(endpoint);
    setenv("HF_ENDPOINT", "http://127.0.0.1:9", 1); /* nobody listens */
    assert_int_equal(fetch("org/single"), OOMSIGHT_NETWORK);
    setenv("HF_ENDPOINT", "ftp://127.0.0.1", 1);
    assert_int_equal(fetch("org/single"), OOMSIGHT_USAGE);
    setenv("HF_ENDPOINT", kept, 1);
    free(kept);
}

static void a_server_that_drips_is_given_up_after_one_timeout(void **state)
{
    (void)state;
    time_t const start = time(NULL);
    assert_int_equal(fetch("org/drip"), OOMSIGHT_NETWORK);
    assert_non_null(strstr(error.text, "too slowly"));
    assert_in_range(time(NULL) - start, 1,
                    40); /* HF_HUB_DOWNLOAD_TIMEOUT is 2 here, and the server would go on for minutes */
}

static void a_token_does_not_travel_in_the_open(void **state)
{
    (void)state;
    char *kept = strdup(getenv("HF_ENDPOINT")), open[64];
    /* the same hub under an address that is not loopback's; nothing is resolved for the names below */
    snprintf(open, sizeof open, "http://0.0.0.0%s", strrchr(kept, ':'));
    setenv("no_proxy", "*", 1);
    setenv("HF_ENDPOINT", open, 1);
    setenv("HF_TOKEN", "good", 1);
    FETCH("org/single"); /* what needs no token is had without it */
    assert_int_equal(fetch("org/gated"), OOMSIGHT_IO);
    assert_non_null(strstr(error.text, "HF_TOKEN was not sent"));
    assert_non_null(strstr(error.text, "--insecure"));
    setenv("OOMSIGHT_INSECURE", "1", 1);
    FETCH("org/gated");
    unsetenv("OOMSIGHT_INSECURE");
    setenv("HF_ENDPOINT", kept, 1);
    FETCH("org/gated"); /* on this machine nobody listens on the way */
    unsetenv("no_proxy");
    unsetenv("HF_TOKEN");
    free(kept);
}

static void offline_means_that_nobody_is_asked(void **state)
{
    (void)state;
    assert_int_equal(oos_locate(arena, NULL, "org/single", false, NULL, &model, &error), OOMSIGHT_NOT_FOUND);
    assert_non_null(strstr(error.text, "--offline"));
    assert_non_null(strstr(error.text, getenv("HF_HUB_CACHE")));
    setenv("HF_HUB_OFFLINE", "1", 1);
    assert_int_equal(fetch("org/single"), OOMSIGHT_NOT_FOUND);
    assert_non_null(strstr(error.text, "HF_HUB_OFFLINE"));
}

static void only_this_machine_is_this_machine(void **state)
{
    (void)state;
    static const char *const here[] = {"http://localhost",    "http://localhost:8080/x",
                                       "https://127.0.0.1:1", "http://127.9.9.9/a?b",
                                       "http://[::1]",        "http://[::1]:80/x"};
    static const char *const elsewhere[] = {"http://localhost:1@host",
                                            "http://127.0.0.1@host/x",
                                            "http://127.evil",
                                            "http://localhost.evil",
                                            "http://127.0.0.1.evil:80",
                                            "http://127.0.0",
                                            "http://127.0.0.1.2",
                                            "http://[::1].evil",
                                            "http://localhostx",
                                            "http://xlocalhost",
                                            "http://host/localhost",
                                            "http://host?127.0.0.1",
                                            "http://1127.0.0.1",
                                            "http://localhost:1:x/",
                                            "localhost",
                                            "http://user:x@localhost",
                                            "http://host#@127.0.0.1",
                                            "http://[::1",
                                            "http://",
                                            "http://127.0.0."};
    for (size_t i = 0; i < sizeof here / sizeof *here; i++) assert_true(oos_hub_is_here(here[i]));
    for (size_t i = 0; i < sizeof elsewhere / sizeof *elsewhere; i++)
        if (oos_hub_is_here(elsewhere[i])) fail_msg("%s is taken for this machine", elsewhere[i]);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(shards_are_found_by_the_index_and_read_from_another_host),
        CASE(how_large_images_are_is_asked_of_a_model_that_takes_some),
        CASE(the_token_goes_to_the_hub_and_not_to_the_host_it_points_to),
        CASE(without_an_index_there_is_one_file),
        CASE(a_header_longer_than_the_first_read_is_asked_for_again),
        CASE(a_server_that_ignores_ranges_is_stopped_in_time),
        CASE(a_model_without_safetensors_is_planned_from_its_config_with_a_note),
        CASE(what_the_hub_refuses_is_said_with_what_to_do),
        CASE(bodies_that_are_cut_short_are_not_taken_for_whole),
        CASE(what_is_not_what_it_should_be_is_refused),
        CASE(redirects_without_end_or_to_a_file_are_not_followed),
        CASE(a_silent_server_is_given_up),
        CASE(a_server_that_drips_is_given_up_after_one_timeout),
        CASE(a_token_does_not_travel_in_the_open),
        CASE(offline_means_that_nobody_is_asked),
        CASE(only_this_machine_is_this_machine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
