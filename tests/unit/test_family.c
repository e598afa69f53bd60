/* Processes of a run that the guard does not see, by a /proc of our own: what is told, and that half a list tells nothing. */
#include "folder.h"
#include "run/run.h"
#include "unit.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SHELL = 10, ENGINE = 20, OTHERS_UID = 4242 };

#define MAP_CUDA "7f0000000000-7f0000001000 r-xp 00000000 08:01 1 /usr/lib/libcuda.so.1\n"
#define MAP_GUARD "7f1000000000-7f1000001000 r-xp 00000000 08:01 2 /opt/oomsight/liboomsight-guard.so\n"
#define MAP_STACK "7ffc00000000-7ffc00021000 rw-p 00000000 00:00 0 [stack]\n"
static const char no_guard[] = MAP_CUDA MAP_STACK, whole[] = MAP_CUDA MAP_GUARD MAP_STACK, part[] = MAP_CUDA,
                  no_cuda[] = MAP_STACK;

static const char *path_of(unsigned pid, const char *name)
{
    static char path[256];
    snprintf(path, sizeof path, "%s/proc", folder);
    mkdir(path, 0777);
    if (pid) snprintf(path + strlen(path), 20, "/%u", pid);
    mkdir(path, 0777);
    snprintf(path + strlen(path), 20, "/%s", name);
    return path;
}

static void put(unsigned pid, const char *name, const char *text)
{
    const char *path = path_of(pid, name);
    unlink(path);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void put_stat(unsigned pid, unsigned parent, char state, unsigned start)
{
    char text[200];
    snprintf(text, sizeof text, "%u (a) b) %c %u 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 %u 0 0\n", pid, state,
             parent, start);
    put(pid, "stat", text);
}

static void put_user(unsigned pid, unsigned uid)
{
    char text[80];
    snprintf(text, sizeof text, "Name:\ta\nUid:\t%u\t%u\t%u\t%u\n", uid, uid, uid, uid);
    put(pid, "status", text);
}

typedef struct run {
    oos_process_family *family;
    oos_segment *segment;
} run;

/* A shell and an engine below it, both of ours, whole and counted by nobody yet. */
static run run_begin(void)
{
    run const r = {oos_family_create(folder), calloc(1, sizeof(oos_segment))};
    assert_true(r.family && r.segment);
    put(0, "uptime", "100000.00 1.00\n");
    put_stat(SHELL, 1, 'S', 100);
    put(SHELL, "maps", no_cuda);
    put_user(SHELL, geteuid());
    put_stat(ENGINE, SHELL, 'R', 200);
    put(ENGINE, "maps", whole);
    put(ENGINE, "environ", "A=b");
    put_user(ENGINE, geteuid());
    r.segment->processes[0].pid = ENGINE;
    return r;
}

static void run_end(run r)
{
    oos_family_free(r.family);
    free(r.segment);
}

static bool look(run r)
{
    return oos_family_look(r.family, r.segment, SHELL);
}

static void assert_told(run r, unsigned count, oos_unseen why)
{
    assert_int_equal(r.segment->unseen_count, count);
    if (!count) return;
    assert_int_equal(r.segment->unseen[count - 1].pid, ENGINE);
    assert_int_equal(r.segment->unseen[count - 1].why, why);
}

/* A look at `text`, after whose last byte `change` happens, before the list ends. A pipe in the place of the file keeps the order. */
static void look_while(run r, const char *text, void (*change)(void))
{
    char path[256];
    int status;
    snprintf(path, sizeof path, "%s", path_of(ENGINE, "maps"));
    unlink(path);
    assert_int_equal(mkfifo(path, 0600), 0);
    pid_t const writer = fork();
    if (writer == 0) {
        FILE *file = fopen(path, "w");
        if (!file || fputs(text, file) < 0 || fflush(file) != 0) _exit(1);
        change();
        fclose(file);
        _exit(0);
    }
    look(r);
    assert_int_equal(waitpid(writer, &status, 0), writer);
    assert_int_equal(status, 0);
}

static void gone(void)
{
    unlink(path_of(ENGINE, "stat"));
}

static void zombie(void)
{
    put_stat(ENGINE, SHELL, 'Z', 200);
}

static void another(void)
{
    put_stat(ENGINE, SHELL, 'R', 300);
}

static void nothing(void)
{
}

static void a_process_without_the_guard_is_told_at_the_second_look(void **state)
{
    (void)state;
    run const r = run_begin();
    assert_false(look(r));
    put(ENGINE, "maps", no_guard);
    assert_true(look(r));
    assert_told(r, 0, 0);
    assert_false(look(r));
    assert_told(r, 1, OOS_UNSEEN_NO_GUARD);
    look_while(r, no_guard, nothing);
    assert_told(r, 1, OOS_UNSEEN_NO_GUARD); /* once */
    run_end(r);
}

static void every_reason_takes_two_looks(void **state)
{
    (void)state;
    static const struct {
        oos_unseen why;
        unsigned uid;
        const char *maps;
    } cases[] = {{OOS_UNSEEN_NO_GUARD, 0, no_guard},
                 {OOS_UNSEEN_OTHER_USER, OTHERS_UID, whole},
                 {OOS_UNSEEN_NO_FILE, 0, whole},
                 {OOS_UNSEEN_HIDDEN, OTHERS_UID, ""}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        run const r = run_begin();
        r.segment->processes[0].pid = 0;
        put(ENGINE, "maps", cases[i].maps);
        put_user(ENGINE, cases[i].uid ? cases[i].uid : geteuid());
        assert_true(look(r));
        assert_told(r, 0, 0);
        assert_false(look(r));
        assert_told(r, 1, cases[i].why);
        run_end(r);
    }
}

/* As of a process that becomes another program while it is read. */
static void half_a_list_between_whole_ones_tells_nothing(void **state)
{
    (void)state;
    run const r = run_begin();
    for (unsigned i = 0; i < 6; i++) {
        put(ENGINE, "maps", i % 2 ? whole : part);
        assert_int_equal(look(r), i % 2 == 0);
    }
    put(ENGINE, "maps", "");
    assert_false(look(r));
    assert_told(r, 0, 0);
    run_end(r);
}

/* Two suspicions that are not the same are none. */
static void two_looks_must_say_the_same(void **state)
{
    (void)state;
    run const r = run_begin();
    r.segment->processes[0].pid = 0;
    for (unsigned i = 0; i < 4; i++) {
        put(ENGINE, "maps", i % 2 ? whole : part);
        assert_true(look(r));
    }
    assert_told(r, 0, 0);
    run_end(r);
}

static void who_is_gone_or_another_after_the_look_is_not_judged(void **state)
{
    (void)state;
    static void (*const changes[])(void) = {gone, zombie, another};
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        run const r = run_begin();
        for (unsigned again = 0; again < 3; again++) {
            put_stat(ENGINE, SHELL, 'R', 200);
            look_while(r, part, changes[i]);
        }
        assert_told(r, 0, 0);
        run_end(r);
    }
}

/* A pid that was used before: the suspicion of the first is not that of the second, and a stranger does not belong to the run. */
static void a_pid_that_is_used_again_is_another_process(void **state)
{
    (void)state;
    run const r = run_begin();
    for (unsigned start = 200; start < 205; start++) {
        put_stat(ENGINE, SHELL, 'R', start);
        put(ENGINE, "maps", no_guard);
        assert_true(look(r));
    }
    assert_told(r, 0, 0);
    put_stat(ENGINE, 1, 'R', 900);
    assert_false(look(r));
    assert_false(look(r));
    assert_told(r, 0, 0);
    run_end(r);
}

/* Its parent is gone: it is known by its number and its start. Who has the number later is a stranger. */
static void a_number_that_is_used_again_is_a_stranger(void **state)
{
    (void)state;
    for (unsigned start = 200; start <= 900; start += 700) {
        run const r = run_begin();
        look(r);
        r.segment->processes[0].pid = 0;
        put_stat(ENGINE, 1, 'R', start);
        put(ENGINE, "maps", no_guard);
        look(r);
        look(r);
        assert_told(r, start == 200 ? 1 : 0, OOS_UNSEEN_NO_GUARD);
        run_end(r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_process_without_the_guard_is_told_at_the_second_look),
        cmocka_unit_test(every_reason_takes_two_looks),
        cmocka_unit_test(half_a_list_between_whole_ones_tells_nothing),
        cmocka_unit_test(two_looks_must_say_the_same),
        cmocka_unit_test(who_is_gone_or_another_after_the_look_is_not_judged),
        cmocka_unit_test(a_pid_that_is_used_again_is_another_process),
        cmocka_unit_test(a_number_that_is_used_again_is_a_stranger),
    };
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
