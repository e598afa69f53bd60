#include "unit.h"

#include "folder.h"
#include "api/api.h"
#include "base/place.h"
#include "follow/follow.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NOBODY = 65534 };

static const char *in(const char *name)
{
    static char paths[8][160];
    static unsigned next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static void file_put(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static void assert_holds(const char *path, const char *text)
{
    char bytes[256] = "";
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    bytes[fread(bytes, 1, sizeof bytes - 1, file)] = '\0';
    fclose(file);
    assert_string_equal(bytes, text);
}

static unsigned entries(void)
{
    char command[128];
    unsigned count = 0;
    snprintf(command, sizeof command, "ls -A '%s' | wc -l", folder);
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    assert_int_equal(fscanf(pipe, "%u", &count), 1);
    pclose(pipe);
    return count;
}

static oomsight_status answer(const char *path)
{
    oomsight_error error = {0};
    return oos_place_write(path, "answer\n", 7, &error);
}

static void a_new_file_has_the_permissions_of_the_umask_and_nothing_lies_beside_it(void **state)
{
    (void)state;
    struct stat info;
    mode_t const before = umask(027);
    assert_int_equal(answer(in("new")), OOMSIGHT_OK);
    umask(before);
    assert_holds(in("new"), "answer\n");
    assert_int_equal(stat(in("new"), &info), 0);
    assert_int_equal(info.st_mode & 07777, 0640);
    assert_int_equal(entries(), 1);
}

static void an_old_file_is_replaced_and_keeps_its_permissions(void **state)
{
    (void)state;
    struct stat before, after;
    file_put(in("old"), "what was there before, and longer");
    chmod(in("old"), 0604);
    stat(in("old"), &before);
    assert_int_equal(answer(in("old")), OOMSIGHT_OK);
    stat(in("old"), &after);
    assert_holds(in("old"), "answer\n");
    assert_int_equal(after.st_mode & 07777, 0604);
    assert_true(after.st_ino != before.st_ino);
    assert_int_equal(entries(), 1);
}

static void a_file_with_two_names_stays_one_file(void **state)
{
    (void)state;
    file_put(in("one"), "before");
    assert_int_equal(link(in("one"), in("two")), 0);
    assert_int_equal(answer(in("one")), OOMSIGHT_OK);
    assert_holds(in("two"), "answer\n");
}

static void a_link_of_the_user_is_followed_and_stays_a_link(void **state)
{
    (void)state;
    struct stat info;
    file_put(in("target"), "before");
    assert_int_equal(symlink("target", in("first")), 0);
    assert_int_equal(symlink(in("first"), in("second")), 0);
    assert_int_equal(answer(in("second")), OOMSIGHT_OK);
    assert_holds(in("target"), "answer\n");
    assert_int_equal(lstat(in("second"), &info), 0);
    assert_true(S_ISLNK(info.st_mode));
    assert_int_equal(symlink("not yet", in("dangling")), 0);
    assert_int_equal(answer(in("dangling")), OOMSIGHT_OK);
    assert_holds(in("not yet"), "answer\n");
    assert_int_equal(symlink("circle", in("circle")), 0);
    assert_int_equal(answer(in("circle")), OOMSIGHT_IO);
}

static void a_link_to_a_longer_path_than_any_is_refused(void **state)
{
    (void)state;
    oomsight_error error = {0};
    char target[PATH_MAX];
    memset(target, '/', sizeof target);
    target[sizeof target - 1] = '\0';
    assert_int_equal(symlink(target, in("far")), 0);
    assert_int_equal(oos_place_write(in("far"), "answer\n", 7, &error), OOMSIGHT_IO);
    assert_non_null(strstr(error.text, "too long"));
}

static void a_link_of_somebody_else_is_refused(void **state)
{
    (void)state;
    if (geteuid() != 0) skip();
    oomsight_error error = {0};
    int fd;
    file_put(in("victim"), "precious");
    assert_int_equal(symlink("victim", in("trap")), 0);
    assert_int_equal(lchown(in("trap"), NOBODY, NOBODY), 0);
    assert_int_equal(oos_place_write(in("trap"), "answer\n", 7, &error), OOMSIGHT_IO);
    assert_non_null(strstr(error.text, "somebody else"));
    assert_int_equal(oos_place_open(in("trap"), true, 0666, &fd, &error), OOMSIGHT_IO);
    assert_int_equal(oos_place_open(in("trap"), false, 0666, &fd, &error), OOMSIGHT_IO);
    assert_holds(in("victim"), "precious");
    /* nor when it is reached by one of ours */
    assert_int_equal(symlink("trap", in("mine")), 0);
    assert_int_equal(answer(in("mine")), OOMSIGHT_IO);
    assert_holds(in("victim"), "precious");
}

static void a_file_of_somebody_else_is_refused_where_everybody_can_write(void **state)
{
    (void)state;
    if (geteuid() != 0) skip();
    file_put(in("theirs"), "theirs");
    assert_int_equal(chown(in("theirs"), NOBODY, NOBODY), 0);
    chmod(folder, 01777);
    assert_int_equal(answer(in("theirs")), OOMSIGHT_IO);
    assert_holds(in("theirs"), "theirs");
    chmod(folder, 0755); /* ours alone: then it is there because we want it */
    assert_int_equal(answer(in("theirs")), OOMSIGHT_OK);
    assert_holds(in("theirs"), "answer\n");
    chmod(folder, 0700);
}

static void a_descriptor_is_written_to_where_it_stands(void **state)
{
    (void)state;
    char path[40];
    int const fd = open(in("log"), O_WRONLY | O_CREAT | O_APPEND, 0600);
    assert_int_equal(write(fd, "before\n", 7), 7);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    assert_int_equal(answer(path), OOMSIGHT_OK);
    assert_int_equal(write(fd, "behind\n", 7), 7);
    close(fd);
    assert_holds(in("log"), "before\nanswer\nbehind\n");
    assert_int_equal(answer("/dev/null"), OOMSIGHT_OK);
    assert_int_equal(answer("/dev/full"), OOMSIGHT_IO);
    assert_int_equal(answer(in("")), OOMSIGHT_IO); /* a folder */
    assert_int_equal(answer(in("no/such")), OOMSIGHT_IO);
    assert_int_equal(answer(""), OOMSIGHT_IO);
}

static void a_pipe_is_written_to(void **state)
{
    (void)state;
    char path[40], bytes[16] = "";
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    snprintf(path, sizeof path, "/dev/fd/%d", ends[1]);
    assert_int_equal(answer(path), OOMSIGHT_OK);
    assert_int_equal(read(ends[0], bytes, sizeof bytes), 7);
    assert_string_equal(bytes, "answer\n");
    close(ends[0]);
    close(ends[1]);
}

static void the_follower_s_state_is_written_through_no_link(void **state)
{
    (void)state;
    oomsight_error error = {0};
    oos_state *kept = NULL;
    struct stat info;
    file_put(in("victim"), "precious");
    assert_int_equal(mkdir(in("state"), 0777), 0);
    assert_int_equal(symlink("../victim", in("state/new.tmp")), 0);
    assert_int_equal(oos_state_open(in("state"), NULL, &kept, &error), OOMSIGHT_OK);
    oos_standing const point = {.id = {1, 2, 3}, .time = 1};
    oos_state_put(kept, "/var/log/engine.log", &point);
    assert_true(oos_state_save(kept, false, 1));
    oos_state_close(kept);
    assert_holds(in("victim"), "precious");
    assert_int_equal(lstat(in("state/positions"), &info), 0);
    assert_int_equal(info.st_mode & (S_IFMT | 0777), S_IFREG | 0600);
}

static void the_matrix_cache_is_no_link(void **state)
{
    (void)state;
    oomsight_error error = {0};
    oos_matrix_cache *cache = NULL;
    file_put(in("victim"), "precious");
    assert_int_equal(mkdir(in("cache"), 0777), 0);
    assert_int_equal(symlink("../victim", in("cache/matrix.ndjson")), 0);
    assert_int_equal(oos_matrix_cache_open(in("cache"), &cache, &error), OOMSIGHT_IO);
    assert_holds(in("victim"), "precious");
    assert_int_equal(unlink(in("cache/matrix.ndjson")), 0);
    assert_int_equal(oos_matrix_cache_open(in("cache"), &cache, &error), OOMSIGHT_OK);
    oos_matrix_cache_close(cache);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, folder_make, folder_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_new_file_has_the_permissions_of_the_umask_and_nothing_lies_beside_it),
        CASE(an_old_file_is_replaced_and_keeps_its_permissions),
        CASE(a_file_with_two_names_stays_one_file),
        CASE(a_link_of_the_user_is_followed_and_stays_a_link),
        CASE(a_link_to_a_longer_path_than_any_is_refused),
        CASE(a_link_of_somebody_else_is_refused),
        CASE(a_file_of_somebody_else_is_refused_where_everybody_can_write),
        CASE(a_descriptor_is_written_to_where_it_stands),
        CASE(a_pipe_is_written_to),
        CASE(the_follower_s_state_is_written_through_no_link),
        CASE(the_matrix_cache_is_no_link),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
