/* Eight threads that allocate and free at once lose nothing. Built with the thread sanitizer where there is one. */
#include "device/device.h"
#include "program.h"

#include <pthread.h>

enum { THREADS = 8, ROUNDS = 2000 };

static void *churn(void *number)
{
    unsigned seed = (unsigned)(uintptr_t)number;
    for (int i = 0; i < ROUNDS; i++) {
        void *at, *small;
        seed = seed * 1103515245u + 12345u;
        if (oos_memory_take(0, OOS_USE_MALLOC, (1 + seed % 7) * MIB, &at)) return number;
        if (oos_memory_take(0, OOS_USE_MALLOC, 512 + seed % 4096, &small)) return number;
        uint32_t value = seed;
        oos_copy(small, &value, sizeof value);
        oos_copy(&value, small, sizeof value);
        if (value != seed) return number;
        if (oos_memory_give(at) || oos_memory_give(small)) return number;
    }
    return NULL;
}

static int all_at_once(void *unused)
{
    (void)unused;
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++)
        EXPECT(pthread_create(&threads[i], NULL, churn, (void *)(i + 1)) == 0);
    for (int i = 0; i < THREADS; i++) {
        void *failed;
        EXPECT(pthread_join(threads[i], &failed) == 0 && !failed);
    }
    return 0;
}

static void eight_threads_lose_nothing(void **state)
{
    (void)state;
    char path[64];
    oos_segment *segment = run_create(path, GIB, 0, 1);
    assert_int_equal(in_child(path, all_at_once, NULL), 0);
    assert_true(segment->devices[0].held_bytes == 0);
    run_remove(segment, path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(eight_threads_lose_nothing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
