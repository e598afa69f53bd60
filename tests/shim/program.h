/* A run for one test: a segment of its own, and a child process to use it in, because a process joins one run for life. */
#pragma once
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/segment.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB ((uint64_t)1 << 20)
#define GIB ((uint64_t)1 << 30)

/* What a child found wrong, by line; 0 when all is well. */
#define EXPECT(condition)                                                                                    \
    do {                                                                                                     \
        if (!(condition)) {                                                                                  \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                                  \
            return 1;                                                                                        \
        }                                                                                                    \
    } while (0)

static inline oos_segment *run_create(char path[64], uint64_t total_bytes, uint64_t context_bytes,
                                      uint32_t devices)
{
    static unsigned last;
    snprintf(path, 64, "/tmp/oomsight-test-%d-%u", (int)getpid(), ++last);
    unlink(path);
    oos_device_spec specs[OOS_SEGMENT_DEVICES];
    for (uint32_t i = 0; i < devices; i++)
        specs[i] = (oos_device_spec){.name = "NVIDIA Phantom",
                                     .total_bytes = total_bytes,
                                     .property_bytes = total_bytes,
                                     .nvml_bytes = total_bytes,
                                     .context_bytes = context_bytes,
                                     .capability = 90,
                                     .sms = 132};
    oos_segment *segment = NULL;
    assert_int_equal(oos_segment_create(path, specs, devices, &segment), OOS_SEGMENT_OK);
    segment->arena_bytes = 64 * GIB; /* enough here, and what the sanitizers have room for */
    return segment;
}

static inline pid_t child_start(const char *path, int (*body)(void *), void *argument)
{
    fflush(NULL);
    pid_t const pid = fork();
    if (pid == 0) {
        setenv(OOS_SEGMENT_ENV, path, 1);
        _exit(body(argument));
    }
    return pid;
}

static inline int child_end(pid_t pid)
{
    int status = 0;
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static inline int in_child(const char *path, int (*body)(void *), void *argument)
{
    return child_end(child_start(path, body, argument));
}

static inline void run_remove(oos_segment *segment, const char *path)
{
    char rooms[512];
    glob_t found;
    oos_segment_close(segment);
    unlink(path);
    snprintf(rooms, sizeof rooms, "%s.nccl.*", path);
    if (glob(rooms, 0, NULL, &found) != 0) return;
    for (size_t i = 0; i < found.gl_pathc; i++) unlink(found.gl_pathv[i]);
    globfree(&found);
}
