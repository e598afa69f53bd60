/* Following: times, names, order of rotation, what is kept over a restart, and many texts on one bench. */
#include "unit.h"

#include "explain/explain.h"
#include "follow/follow.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- times ---- */

static const int64_t NOW = 1767323045000000000; /* 2026-01-02T03:04:05Z */

static const char *printed(const char *line)
{
    static char text[OOS_TIME_TEXT_BYTES];
    const char *got = oos_logtime_print(oos_logtime_read(oos_view_of(line), NOW), text);
    return got ? got : "none";
}

static void a_line_bears_its_time_in_many_forms(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"2025-11-19T20:16:36.123456789Z stderr F INFO 01-01 00:00:00 [x.py:1] text",
         "2025-11-19T20:16:36.123Z"},
        {"2025-11-19T20:16:36+02:00 text", "2025-11-19T18:16:36.000Z"},
        {"2025-11-19T20:16:36.5-0130 text", "2025-11-19T21:46:36.500Z"},
        {"[2025-03-10T15:07:20Z] text", "2025-03-10T15:07:20.000Z"},
        {"2025-04-23 11:34:24,537 INFO text", "2025-04-23T11:34:24.537Z"},
        {"INFO 12-31 23:59:59 [x.py:1] text", "2025-12-31T23:59:59.000Z"}, /* of last year */
        {"INFO 01-02 03:04:05 [x.py:1] text", "2026-01-02T03:04:05.000Z"},
        {"(EngineCore_DP0 pid=71) INFO 01-02 01:00:00 [x.py:1] text", "2026-01-02T01:00:00.000Z"},
        {"Dec  5 08:13:00 node7 vllm[1]: text", "2025-12-05T08:13:00.000Z"},
        {"{\"log\":\"x\\n\",\"stream\":\"stderr\",\"time\":\"2024-02-29T00:00:00.9Z\"}",
         "2024-02-29T00:00:00.900Z"},
        {"{\"__REALTIME_TIMESTAMP\":\"1767323045678901\",\"MESSAGE\":\"x\"}", "2026-01-02T03:04:05.678Z"},
        {"{\"msg\": \"x\", \"ts\": 1767323045.25}", "2026-01-02T03:04:05.250Z"},
        {"no time at all", "none"},
        {"INFO 13-01 00:00:00 [x.py:1] no such month", "none"},
        {"9999-99-99T99:99:99Z", "none"},
        {"", "none"},
        {"(", "none"},
        {"{\"time\":", "none"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_string_equal(printed(cases[i][0]), cases[i][1]);
}

/* ---- names ---- */

static void a_path_of_kubernetes_names_its_pod(void **state)
{
    (void)state;
    oos_origin const pod = oos_origin_of("/var/log/pods/team-a_chat-7f9c.x_0a1b-2c/vllm/12.log");
    assert_string_equal(pod.space, "team-a");
    assert_string_equal(pod.pod, "chat-7f9c.x");
    assert_string_equal(pod.pod_uid, "0a1b-2c");
    assert_string_equal(pod.container, "vllm");
    assert_int_equal(pod.restart, 12);
    char path[256];
    snprintf(path, sizeof path, "/var/log/containers/chat-0_team-a_vllm-%064d.log", 1);
    oos_origin const link = oos_origin_of(path);
    assert_string_equal(link.pod, "chat-0");
    assert_string_equal(link.space, "team-a");
    assert_string_equal(link.container, "vllm");
    assert_int_equal(link.restart, -1);
    snprintf(path, sizeof path, "/var/lib/docker/containers/%064d/%064d-json.log", 1, 1);
    assert_string_equal(oos_origin_of(path).container, "000000000000");
}

static void a_path_that_breaks_the_rules_names_nothing(void **state)
{
    (void)state;
    static const char *const paths[] = {"/var/log/pods/Team_chat_0a/vllm/0.log",
                                        "/var/log/pods/team_chat\"_0a/vllm/0.log",
                                        "/var/log/pods/team_chat_0a/vl\nlm/0.log",
                                        "/var/log/pods/team_-chat_0a/vllm/0.log",
                                        "/var/log/pods/team_a..b_0a/vllm/0.log",
                                        "/var/log/pods/team_chat_xyz/vllm/0.log",
                                        "/var/log/pods/team_chat_0a/vllm/x.log",
                                        "/var/log/pods/team_chat_0a/vllm/1234567890.log",
                                        "0.log",
                                        "",
                                        "/"};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        oos_origin const none = oos_origin_of(paths[i]);
        assert_string_equal(none.space, "");
        assert_string_equal(none.pod, "");
        assert_string_equal(none.container, "");
        assert_int_equal(none.restart, -1);
    }
}

/* ---- rotation ---- */

static void put_file(const char *folder, const char *name)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fprintf(f, "first line of %s\n", name);
    fclose(f);
}

static void files_moved_away_are_listed_oldest_first(void **state)
{
    (void)state;
    static const char *const sets[][6] = {
        {"0.log.20260101-000000.gz", "0.log.20260101-000001", "0.log.20260102-000000", NULL},
        {"x.log.10", "x.log.2.gz", "x.log.1", NULL},
        {"y.log-20260101.zst", "y.log-20260102", NULL},
        {"z.log.1", "z.log.2", "z.log.10", NULL}}; /* counted on: the times tell */
    static const char *const bases[] = {"0.log", "x.log", "y.log", "z.log"};
    char folder[] = "/tmp/oomsight-rotated-XXXXXX", command[64];
    assert_non_null(mkdtemp(folder));
    for (size_t s = 0; s < 4; s++)
        for (size_t i = 0; sets[s][i]; i++) {
            char path[512];
            struct timespec const times[2] = {{.tv_sec = 1000 + (time_t)i}, {.tv_sec = 1000 + (time_t)i}};
            put_file(folder, sets[s][i]);
            snprintf(path, sizeof path, "%s/%s", folder, sets[s][i]);
            assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
        }
    static const char *const others[] = {"0.log",       "0.log.tmp", "0.log.out", "0.logx",
                                         "x.log.1.bak", "x.log~",    "10.log.1",  "0.log.20260101-000001.gz",
                                         "x.log.1.gz"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) put_file(folder, others[i]);
    int const fd = open(folder, O_RDONLY | O_DIRECTORY);
    for (size_t s = 0; s < 4; s++) {
        oos_rotated *list;
        size_t const count = oos_rotated_list(fd, bases[s], NULL, &list);
        for (size_t i = 0; i < count; i++) {
            assert_non_null(sets[s][i]);
            assert_string_equal(list[i].name, sets[s][i]);
        }
        assert_null(sets[s][count]);
        free(list);
    }
    close(fd);
    snprintf(command, sizeof command, "rm -r %s", folder);
    assert_int_equal(system(command), 0);
}

static void the_print_of_a_file_is_that_of_its_first_line(void **state)
{
    (void)state;
    static const char one[] = "a line\nand more", two[] = "a line\nother", three[] = "a lime\n",
                      part[] = "a line";
    assert_true(oos_file_print(one, sizeof one - 1) == oos_file_print(two, sizeof two - 1));
    assert_true(oos_file_print(one, sizeof one - 1) != oos_file_print(three, sizeof three - 1));
    assert_true(oos_file_print(part, sizeof part - 1) == 0);
}

static void a_file_is_known_by_what_was_read_of_it(void **state)
{
    (void)state;
    char path[] = "/tmp/oomsight-ending-XXXXXX";
    int const fd = mkstemp(path);
    assert_true(fd >= 0);
    char text[600];
    memset(text, 'a', sizeof text);
    assert_int_equal(write(fd, text, sizeof text), sizeof text);
    uint64_t const ending = oos_file_ending(fd, 500);
    assert_true(ending != 0);
    assert_int_equal(pwrite(fd, "b", 1, 500), 1); /* behind */
    assert_true(oos_file_ending(fd, 500) == ending);
    assert_int_equal(pwrite(fd, "b", 1, 499), 1); /* the last byte that was read */
    assert_true(oos_file_ending(fd, 500) != ending);
    assert_int_equal(ftruncate(fd, 400), 0);
    assert_true(oos_file_ending(fd, 500) == 0);
    assert_true(oos_file_ending(fd, 0) == 0);
    close(fd);
    unlink(path);
}

/* A state without a folder remembers where each file stands, and that it was read to its end. */
static void what_rests_is_remembered_without_a_folder(void **unused)
{
    (void)unused;
    oos_state *state;
    oos_standing back;
    struct stat is = {.st_ino = 7, .st_dev = 1, .st_size = 100};
    oos_standing point = {.id = {1, 7, 3}, .byte = 100, .read = 100, .time = NOW};
    assert_int_equal(oos_state_open(NULL, NULL, &state, NULL), OOMSIGHT_OK);
    assert_false(oos_state_find(state, "a.log", &back));
    oos_state_put(state, "a.log", &point);
    assert_true(oos_state_find(state, "a.log", &back));
    assert_int_equal(back.byte, 100);
    assert_true(oos_state_is_read(state, "a.log", &is, NOW));
    is.st_size = 101;
    assert_false(oos_state_is_read(state, "a.log", &is, NOW));
    is.st_size = 100;
    is.st_ino = 8;
    assert_false(oos_state_is_read(state, "a.log", &is, NOW));
    point.byte = 40; /* an incident is open */
    is.st_ino = 7;
    oos_state_put(state, "a.log", &point);
    assert_false(oos_state_is_read(state, "a.log", &is, NOW));
    assert_true(oos_state_save(state, true, NOW + (int64_t)86401 * 1000000000));
    assert_false(oos_state_find(state, "a.log", &back)); /* a day later */
    oos_state_close(state);
}

/* What has changed is written behind what is there; a torn line, and what is old, are no harm. */
static void a_journal_of_positions_stays_small_and_is_found_again(void **unused)
{
    (void)unused;
    enum { PATHS = 50, ROUNDS = 400 };
    char folder[] = "/tmp/oomsight-journal-XXXXXX", command[64], path[64], text[64];
    oos_arena *arena = oos_arena_create(4096);
    oos_knowledge knowledge;
    oos_incident history = {.last_marker = OOS_PHASE_COUNT, .started = OOS_TIME_NONE};
    oos_state *state;
    oos_standing back;
    struct stat is;
    assert_non_null(mkdtemp(folder));
    assert_int_equal(oos_knowledge_load(arena, NULL, &knowledge, NULL), OOMSIGHT_OK);
    assert_int_equal(oos_state_open(folder, &knowledge.signals, &state, NULL), OOMSIGHT_OK);
    assert_true(oos_state_since(state) == INT64_MAX);
    uint64_t most = 0;
    snprintf(path, sizeof path, "%s/positions", folder);
    for (uint64_t round = 0; round < ROUNDS; round++) {
        for (uint64_t n = 0; n < PATHS; n++) {
            snprintf(text, sizeof text, "release %d of %d", (int)(round / 100), (int)n);
            history.setup.version = text;
            oos_standing const point = {.id = {1, n + 1, 3},
                                        .byte = round * 100 + n,
                                        .time = NOW,
                                        .told = true,
                                        .history = &history,
                                        .version = round / 100 + 1};
            snprintf(command, sizeof command, "%d.log", (int)n);
            oos_state_put(state, command, &point);
        }
        assert_true(oos_state_save(state, round == 7, NOW));
        assert_int_equal(stat(path, &is), 0);
        if ((uint64_t)is.st_size > most) most = (uint64_t)is.st_size;
    }
    assert_in_range(most, 1 << 20, 3 << 20); /* it was written anew, and not each time */
    oos_state_forget(state, "8.log");
    assert_true(oos_state_save(state, false, NOW));
    oos_state_close(state);
    FILE *f = fopen(path, "a");
    fputs("{\"path\": \"9.log\", \"inode\": \"7\", \"byte\": 1", f);
    fclose(f);
    for (int again = 0; again < 2; again++) {
        assert_int_equal(oos_state_open(folder, &knowledge.signals, &state, NULL), OOMSIGHT_OK);
        assert_true(oos_state_since(state) < INT64_MAX);
        assert_false(oos_state_find(state, "8.log", &back));
        assert_true(oos_state_find(state, "9.log", &back));
        assert_int_equal(back.byte, (ROUNDS - 1) * 100 + 9 + again);
        assert_true(back.told && back.id.inode == 10);
        assert_non_null(back.history);
        assert_string_equal(back.history->setup.version, "release 3 of 9");
        back.history = NULL;
        back.byte++;
        oos_state_put(state, "9.log", &back); /* over what was torn */
        assert_true(oos_state_save(state, false, NOW));
        oos_state_close(state);
    }
    oos_arena_free(arena);
    snprintf(command, sizeof command, "rm -r %s", folder);
    assert_int_equal(system(command), 0);
}

/* ---- many texts on one bench ---- */

#define OOM                                                                                                  \
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate %d.00 MiB. GPU 0 has a total capacity "   \
    "of "                                                                                                    \
    "79.11 GiB of which 1.00 MiB is free. Of the allocated memory 70.00 GiB is allocated by PyTorch, and "   \
    "1.00 MiB is reserved by PyTorch but unallocated.\n"

typedef struct told {
    uint64_t tried[32], first_byte[32], last_byte[32], first_line[32];
    size_t count;
} told;

static void on_incident(void *context, const oos_incident *incident, bool again)
{
    told *to = context;
    (void)again;
    assert_true(to->count < 32);
    to->tried[to->count] = oos_value(incident, OOS_NUMBER_tried) >> 20;
    to->first_byte[to->count] = incident->first_byte;
    to->last_byte[to->count] = incident->last_byte;
    to->first_line[to->count++] = incident->first_line;
}

/* Bytes given in pieces, as a file that grows. */
static void give(oos_explainer *explainer, const char *text, size_t len)
{
    while (len) {
        size_t capacity;
        char *room = oos_linescan_room(oos_explainer_scan(explainer), &capacity);
        assert_non_null(room);
        size_t const count = len < capacity ? len : capacity;
        memcpy(room, text, count);
        assert_int_equal(oos_linescan_took(oos_explainer_scan(explainer), count, NULL), OOMSIGHT_OK);
        text += count;
        len -= count;
    }
}

static void texts_that_take_turns_on_one_bench_are_told_as_if_alone(void **state)
{
    (void)state;
    enum { TEXTS = 5, LINES = 40 };
    oos_arena *arena = oos_arena_create(4096), *results = oos_arena_create(4096);
    oos_knowledge knowledge;
    oos_bench *bench;
    assert_int_equal(oos_knowledge_load(arena, NULL, &knowledge, NULL), OOMSIGHT_OK);
    assert_int_equal(oos_bench_create(knowledge.signals.literals, &bench, NULL), OOMSIGHT_OK);
    oos_explanation found = {0};
    oos_explainer *explainers[TEXTS];
    told heard[TEXTS] = {0};
    char *texts[TEXTS];
    size_t starts[TEXTS];
    for (size_t t = 0; t < TEXTS; t++) {
        texts[t] = calloc(1, 64 << 10);
        assert_non_null(texts[t]);
        for (int i = 0; i < LINES; i++)
            sprintf(texts[t] + strlen(texts[t]), "2026-01-02T03:04:05.%09dZ stderr F line %d of text %zu\n",
                    i, i, t);
        starts[t] = strlen(texts[t]);
        sprintf(texts[t] + strlen(texts[t]), "2026-01-02T03:04:06.%09dZ stderr F " OOM, 0, (int)t + 1);
        oos_scan_origin const origin = {.growing = true};
        assert_int_equal(oos_explainer_open_growing(results, &knowledge, bench, &origin, &found, on_incident,
                                                    &heard[t], &explainers[t], NULL),
                         OOMSIGHT_OK);
    }
    /* A few bytes of each in turn: lines and literals lie across the turns. */
    bool more = true;
    for (size_t at = 0; more; at += 37) {
        more = false;
        for (size_t t = 0; t < TEXTS; t++) {
            size_t const len = strlen(texts[t]);
            if (at >= len) continue;
            give(explainers[t], texts[t] + at, len - at < 37 ? len - at : 37);
            more = true;
        }
    }
    for (size_t t = 0; t < TEXTS; t++) {
        assert_true(oos_explainer_waits(explainers[t]));
        assert_int_equal(oos_explainer_settle(explainers[t], NULL), OOMSIGHT_OK);
        assert_false(oos_explainer_waits(explainers[t]));
        assert_int_equal(heard[t].count, 1);
        assert_int_equal(heard[t].tried[0], t + 1);
        assert_int_equal(heard[t].first_byte[0], starts[t]);
        assert_int_equal(heard[t].last_byte[0], strlen(texts[t]) - 1);
        assert_int_equal(heard[t].first_line[0], LINES + 1);
        uint64_t byte, lines;
        oos_linescan_place(oos_explainer_scan(explainers[t]), &byte, &lines);
        assert_int_equal(byte, strlen(texts[t]));
        assert_int_equal(lines, LINES + 1);
        oos_explainer_close(explainers[t]);
        free(texts[t]);
    }
    oos_bench_free(bench);
    oos_arena_free(results);
    oos_arena_free(arena);
}

/* What is passed on after a failure was told is not told again, until the engine says itself that memory ran out or goes on. */
static void what_is_passed_on_is_told_once(void **state)
{
    (void)state;
#define ERROR_LINE "ERROR 01-01 00:00:00 [core.py:1] "
#define PASSED ERROR_LINE "Engine core initialization failed. See root cause above.\n"
#define READY "INFO 01-01 00:00:00 [api_server.py:1] INFO: Application startup complete.\n"
    static const struct {
        const char *texts[4];
        size_t told;
    } cases[] = {{{OOM, PASSED, PASSED, ""}, 1},
                 {{OOM, PASSED, OOM, ""}, 2},
                 {{OOM, READY, PASSED, ""}, 2},
                 {{OOM, PASSED, READY, PASSED}, 2},
                 {{PASSED, PASSED, "", ""}, 1}};
    oos_arena *arena = oos_arena_create(4096);
    oos_knowledge knowledge;
    oos_bench *bench;
    oos_scan_origin const origin = {.growing = true};
    assert_int_equal(oos_knowledge_load(arena, NULL, &knowledge, NULL), OOMSIGHT_OK);
    assert_int_equal(oos_bench_create(knowledge.signals.literals, &bench, NULL), OOMSIGHT_OK);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        oos_arena *results = oos_arena_create(4096);
        oos_explanation found = {0};
        oos_explainer *explainer;
        told heard = {0};
        char text[1024];
        assert_int_equal(oos_explainer_open_growing(results, &knowledge, bench, &origin, &found, on_incident,
                                                    &heard, &explainer, NULL),
                         OOMSIGHT_OK);
        for (size_t k = 0; k < 4; k++) {
            const char *given = cases[i].texts[k];
            if (strcmp(given, OOM) == 0)
                snprintf(text, sizeof text, OOM, 1);
            else
                snprintf(text, sizeof text, "%s", given);
            give(explainer, text, strlen(text));
            assert_int_equal(oos_explainer_settle(explainer, NULL), OOMSIGHT_OK);
        }
        assert_int_equal(heard.count, cases[i].told);
        oos_explainer_close(explainer);
        oos_arena_free(results);
    }
    oos_bench_free(bench);
    oos_arena_free(arena);
}

/* ---- what is kept ---- */

static void a_history_comes_back_as_it_was(void **state)
{
    (void)state;
    static const char start[] =
        "INFO 01-01 00:00:00 [api_server.py:1] vLLM API server version 0.19.1\n"
        "INFO 01-01 00:00:01 [gpu_model_runner.py:1] Starting to load model m/\"n\"...\n"
        "INFO 01-01 00:00:02 [gpu_model_runner.py:1] Model loading took 15.27 GiB memory and 4.3 s\n"
        "INFO 01-01 00:00:03 [gpu_worker.py:1] Available KV cache memory: 19.53 GiB\n";
    oos_arena *arena = oos_arena_create(4096), *results = oos_arena_create(4096);
    oos_knowledge knowledge;
    oos_bench *bench;
    oos_explanation found = {0};
    oos_explainer *explainer;
    told heard = {0};
    oos_scan_origin const origin = {.growing = true};
    assert_int_equal(oos_knowledge_load(arena, NULL, &knowledge, NULL), OOMSIGHT_OK);
    assert_int_equal(oos_bench_create(knowledge.signals.literals, &bench, NULL), OOMSIGHT_OK);
    assert_int_equal(oos_explainer_open_growing(results, &knowledge, bench, &origin, &found, on_incident,
                                                &heard, &explainer, NULL),
                     OOMSIGHT_OK);
    give(explainer, start, sizeof start - 1);
    assert_int_equal(oos_explainer_settle(explainer, NULL), OOMSIGHT_OK);
    oos_collector_point const point = oos_collector_at(oos_explainer_collector(explainer));
    oos_text text = {0}, again = {0};
    oos_incident back;
    oos_history_write(&knowledge.signals, point.history, &text);
    assert_true(oos_history_read(arena, &knowledge.signals, (oos_view){text.ptr, text.len}, &back));
    oos_history_write(&knowledge.signals, &back, &again);
    assert_string_equal(text.ptr, again.ptr);
    assert_int_equal(oos_value(&back, OOS_NUMBER_weights), oos_value(point.history, OOS_NUMBER_weights));
    assert_string_equal(back.setup.version, "0.19.1");
    assert_false(oos_history_read(arena, &knowledge.signals, oos_view_of("{}"), &back));
    assert_false(oos_history_read(arena, &knowledge.signals, oos_view_of("\xff"), &back));
    oos_text_free(&text);
    oos_text_free(&again);
    oos_explainer_close(explainer);
    oos_bench_free(bench);
    oos_arena_free(results);
    oos_arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_bears_its_time_in_many_forms),
        cmocka_unit_test(a_path_of_kubernetes_names_its_pod),
        cmocka_unit_test(a_path_that_breaks_the_rules_names_nothing),
        cmocka_unit_test(files_moved_away_are_listed_oldest_first),
        cmocka_unit_test(the_print_of_a_file_is_that_of_its_first_line),
        cmocka_unit_test(a_file_is_known_by_what_was_read_of_it),
        cmocka_unit_test(what_rests_is_remembered_without_a_folder),
        cmocka_unit_test(a_journal_of_positions_stays_small_and_is_found_again),
        cmocka_unit_test(texts_that_take_turns_on_one_bench_are_told_as_if_alone),
        cmocka_unit_test(what_is_passed_on_is_told_once),
        cmocka_unit_test(a_history_comes_back_as_it_was),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
