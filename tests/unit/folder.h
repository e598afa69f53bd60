/* A temporary folder of a test group, for setup and teardown. */
#pragma once
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char folder[64];

static int folder_make(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/oomsight-unit-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int folder_remove(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command);
}
