/* oomsight on the PATH of a Python environment: starts the command in the Python package, wherever pip has put that. */
#include <glob.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* As virtual environments, users' folders, distributions, `--target` and `--home` have it. */
static const char *const places[] = {"../lib*/*py*3*/*-packages/oomsight/bin/oomsight",
                                     "../oomsight/bin/oomsight", "../lib/python/oomsight/bin/oomsight"};

int main(int argc, char **argv)
{
    char self[4096], pattern[4200];
    ssize_t const len = readlink("/proc/self/exe", self, sizeof self - 1);
    (void)argc;
    self[len > 0 ? len : 0] = '\0';
    char *slash = strrchr(self, '/');
    if (slash) *slash = '\0';
    for (size_t i = 0; slash && i < sizeof places / sizeof *places; i++) {
        glob_t found = {0};
        snprintf(pattern, sizeof pattern, "%s/%s", self, places[i]);
        /* The last is the newest Python. */
        if (glob(pattern, 0, NULL, &found) == 0) execv(found.gl_pathv[found.gl_pathc - 1], argv);
        globfree(&found);
    }
    fputs("oomsight: the Python package 'oomsight' is not found next to this program, and the command is in "
          "it. A program that needs no Python is in the tarball and in the Debian package.\n",
          stderr);
    return 4;
}
