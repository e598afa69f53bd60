#include "unit.h"

#include "folder.h"
#include "machine/machine.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* A path below the folder; every folder on the way is made. */
static const char *below(const char *path)
{
    static char whole[4][512];
    static unsigned next;
    char *at = whole[next++ % 4];
    snprintf(at, sizeof whole[0], "%s/%s", folder, path);
    for (char *slash = at + strlen(folder) + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        mkdir(at, 0777);
        *slash = '/';
    }
    return at;
}

static void put(const char *path, const char *text)
{
    FILE *file = fopen(below(path), "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void program(const char *path)
{
    put(path, "#!/bin/sh\nexit 1\n");
    assert_int_equal(chmod(below(path), 0755), 0);
}

static void the_tightest_limit_of_the_groups_counts(void **state)
{
    (void)state;
    oos_host host;
    put("v2/proc/meminfo", "MemTotal:       1024 kB\nMemFree: 1 kB\nMemAvailable:   512 kB\n");
    put("v2/proc/self/cgroup", "0::/pods/one\n");
    put("v2/sys/fs/cgroup/pods/memory.max", "400000\n");
    put("v2/sys/fs/cgroup/pods/memory.current", "1000\n");
    put("v2/sys/fs/cgroup/pods/one/memory.max", "max\n");
    oos_host_read(below("v2"), &host);
    assert_true(host.total_bytes.known && host.total_bytes.value == 1024 * 1024);
    assert_true(host.available_bytes.value == 512 * 1024);
    assert_true(host.limit_bytes.known && host.limit_bytes.value == 400000);
    assert_true(host.limited_used_bytes.value == 1000);

    put("v1/proc/self/cgroup", "5:cpu:/x\n4:memory:/docker/abc\n");
    put("v1/sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes", "9223372036854771712\n");
    oos_host_read(below("v1"), &host);
    assert_false(host.limit_bytes.known); /* version 1 writes this for none */
    assert_false(host.total_bytes.known);
    put("v1/sys/fs/cgroup/memory/memory.limit_in_bytes", "5000\n");
    oos_host_read(below("v1"), &host);
    assert_true(host.limit_bytes.known && host.limit_bytes.value == 5000);
}

static void the_engine_is_the_one_beside_the_program_that_would_run(void **state)
{
    (void)state;
    char path[512];
    oos_installed found;
    program("one/bin/python3");
    mkdir(below("one/lib/python3.11/site-packages/torch-2.8.0.dist-info/x"), 0777);
    program("two/bin/vllm");
    mkdir(below("two/lib/python3.12/site-packages/vllm-0.11.0+cu129.dist-info/x"), 0777);
    mkdir(below("two/lib/python3.12/site-packages/NVIDIA_nccl.cu12-2.27.3.dist-info/x"), 0777);
    mkdir(below("two/lib/python3.12/site-packages/vllm_ascend-0.9.dist-info/x"), 0777);

    snprintf(path, sizeof path, "%s:%s", below("one/bin"), below("two/bin"));
    oos_installed_find(NULL, path, NULL, &found);
    assert_string_equal(oos_installed_version(&found, "vllm"), "0.11.0+cu129");
    assert_string_equal(oos_installed_version(&found, "nvidia-nccl-cu12"), "2.27.3");
    assert_null(oos_installed_version(&found, "torch"));

    snprintf(path, sizeof path, "%s", below("one/bin"));
    oos_installed_find(NULL, path, NULL, &found); /* no engine: what there is */
    assert_string_equal(oos_installed_version(&found, "torch"), "2.8.0");
    assert_null(oos_installed_version(&found, "vllm"));

    oos_installed_find(NULL, path, below("two/bin/oomsight"), &found); /* ours is installed beside one */
    assert_string_equal(oos_installed_version(&found, "vllm"), "0.11.0+cu129");
    oos_installed_find(below("two/bin/vllm"), path, NULL, &found);
    assert_string_equal(oos_installed_version(&found, "vllm"), "0.11.0+cu129");
    oos_installed_find(NULL, "/nowhere:", NULL, &found);
    assert_string_equal(found.folder, "");

    program("three/bin/sglang");
    mkdir(below("three/lib/python3.12/site-packages/sglang-0.5.23.dist-info/x"), 0777);
    snprintf(path, sizeof path, "%s:%s", below("one/bin"), below("three/bin"));
    oos_installed_find(NULL, path, NULL, &found); /* any engine is one: a PyTorch before it on PATH is not */
    assert_string_equal(oos_installed_version(&found, "sglang"), "0.5.23");
    assert_null(oos_installed_version(&found, "torch"));
}

static void a_link_to_an_engine_leads_to_its_packages(void **state)
{
    (void)state;
    oos_installed found;
    program("tool/bin/vllm");
    mkdir(below("tool/lib/python3.12/site-packages/vllm-0.24.0.dist-info/x"), 0777);
    below("links/x");
    assert_int_equal(symlink(below("tool/bin/vllm"), below("links/vllm")), 0);
    oos_installed_find(NULL, below("links"), NULL, &found);
    assert_string_equal(oos_installed_version(&found, "vllm"), "0.24.0");
}

static void an_engine_takes_devices_like_the_first_one(void **state)
{
    (void)state;
    oos_machine *m = calloc(1, sizeof *m);
    assert_non_null(m);
    assert_null(oos_machine_taken(m, 0));
    m->nvml.device_count = 4;
    const char *const names[] = {"A", "B", "B", "A"};
    for (unsigned i = 0; i < 4; i++)
        snprintf(m->nvml.devices[i].name, sizeof m->nvml.devices[i].name, "%s", names[i]);
    m->nvml.devices[1].visible = 2; /* CUDA_VISIBLE_DEVICES=2,1,3 */
    m->nvml.devices[2].visible = 1;
    m->nvml.devices[3].visible = 3;
    assert_ptr_equal(oos_machine_taken(m, 0), &m->nvml.devices[2]);
    assert_ptr_equal(oos_machine_taken(m, 1), &m->nvml.devices[1]);
    assert_null(oos_machine_taken(m, 2));
    free(m);
}

static void what_the_driver_keeps_is_held_by_nobody(void **state)
{
    (void)state;
    oos_machine_device d = {.memory_known = true, .total_bytes = 1000, .used_bytes = 300};
    assert_true(oos_machine_held(&d, 900) == 200); /* not told: what CUDA does not show */
    d.reserved_known = true, d.reserved_bytes = 250;
    assert_true(oos_machine_held(&d, 900) == 50);
    d.reserved_bytes = 400;
    assert_true(oos_machine_held(&d, 900) == 0);
    d.memory_known = false;
    assert_true(oos_machine_held(&d, 900) == 0);
}

static void a_machine_is_read_without_a_driver_and_in_time(void **state)
{
    (void)state;
    oos_machine *m = calloc(1, sizeof *m);
    assert_non_null(m);
    assert_true(oos_machine_read(NULL, true, 5000, m));
    assert_true(m->whole);
    assert_true(m->host.total_bytes.known && oos_machine_ram(m) > 0);
    free(m);
}

static void pass(int number)
{
    (void)number;
}

/* One signal for each reading, later each time: some come while the answer is waited for. */
static void a_signal_meanwhile_is_no_end_of_the_time(void **state)
{
    (void)state;
    enum { TIMES = 200, STEP = 10000 };
    oos_machine *m = calloc(1, sizeof *m);
    assert_non_null(m);
    struct sigaction const act = {.sa_handler =
                                      pass}; /* as that of a terminal's size: calls are not begun again */
    assert_int_equal(sigaction(SIGUSR1, &act, NULL), 0);
    for (int i = 0; i < TIMES; i++) {
        pid_t const other = fork();
        if (other == 0) {
            for (volatile int step = 0; step < i * STEP; step++) {
            }
            kill(getppid(), SIGUSR1);
            _exit(0);
        }
        m->whole = false;
        assert_true(oos_machine_read(NULL, true, 5000, m));
        assert_true(m->whole);
        while (waitpid(other, NULL, 0) < 0) {
        }
    }
    free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_signal_meanwhile_is_no_end_of_the_time),
        cmocka_unit_test_setup_teardown(the_tightest_limit_of_the_groups_counts, folder_make, folder_remove),
        cmocka_unit_test_setup_teardown(the_engine_is_the_one_beside_the_program_that_would_run, folder_make,
                                        folder_remove),
        cmocka_unit_test_setup_teardown(a_link_to_an_engine_leads_to_its_packages, folder_make,
                                        folder_remove),
        cmocka_unit_test(an_engine_takes_devices_like_the_first_one),
        cmocka_unit_test(what_the_driver_keeps_is_held_by_nobody),
        cmocka_unit_test(a_machine_is_read_without_a_driver_and_in_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
