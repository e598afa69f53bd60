/* Which Python packages an engine started here would use: read from the names of the folders that pip leaves, vllm-0.19.1.dist-info.
 * No Python is started. */
#include "machine/machine.h"
#include "base/ascii.h"
#include "facts/facts.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Beside the engines themselves. */
static const char *const listed[] = {"torch",
                                     "transformers",
                                     "triton",
                                     "flashinfer-python",
                                     "flash-attn",
                                     "xformers",
                                     "nvidia-nccl-cu12",
                                     "nvidia-nccl-cu13",
                                     "nvidia-cuda-runtime-cu12",
                                     "nvidia-cuda-runtime",
                                     "nvidia-cublas-cu12",
                                     "nvidia-cublas"};
enum { LISTED = sizeof listed / sizeof *listed };
_Static_assert(OOS_ENGINE_COUNT + LISTED <= OOS_MACHINE_PACKAGES, "room for each");

/* Names of packages are equal when case and the kind of dash do not count. */
static bool same_name(const char *folder, size_t len, const char *name)
{
    if (strlen(name) != len) return false;
    for (size_t i = 0; i < len; i++) {
        char const a = oos_lower(folder[i]), b = name[i];
        if (a != b && !((a == '_' || a == '.' || a == '-') && b == '-')) return false;
    }
    return true;
}

/* "vllm-0.19.1.dist-info" */
static void folder_take(const char *folder, oos_installed *installed)
{
    static const char tail[] = ".dist-info";
    size_t const len = strlen(folder), end = len > sizeof tail - 1 ? len - (sizeof tail - 1) : 0;
    const char *dash = strchr(folder, '-');
    if (!end || strcmp(folder + end, tail) != 0 || !dash || dash > folder + end) return;
    for (size_t i = 0; i < OOS_ENGINE_COUNT + LISTED; i++) {
        const char *name = i < OOS_ENGINE_COUNT ? oos_engine_list[i]->name : listed[i - OOS_ENGINE_COUNT];
        if (!same_name(folder, (size_t)(dash - folder), name) ||
            installed->package_count == OOS_MACHINE_PACKAGES || oos_installed_version(installed, name))
            continue;
        oos_package *package = &installed->packages[installed->package_count++];
        snprintf(package->name, sizeof package->name, "%s", name);
        snprintf(package->version, sizeof package->version, "%.*s", (int)(folder + end - dash - 1), dash + 1);
    }
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const oos_package *)a)->name, ((const oos_package *)b)->name);
}

static bool has_engine(const oos_installed *installed)
{
    for (size_t i = 0; i < OOS_ENGINE_COUNT; i++)
        if (oos_installed_version(installed, oos_engine_list[i]->name)) return true;
    return false;
}

/* True: it has an engine. What was found before stays when this folder has nothing. */
static bool site_take(const char *folder, oos_installed *installed)
{
    oos_installed found = {.folder = ""};
    DIR *place = opendir(folder);
    if (!place) return false;
    for (const struct dirent *entry; (entry = readdir(place));) folder_take(entry->d_name, &found);
    closedir(place);
    if (found.package_count == 0) return false;
    bool const engine = has_engine(&found);
    if (installed->package_count && !engine) return false;
    snprintf(found.folder, sizeof found.folder, "%s", folder);
    qsort(found.packages, found.package_count, sizeof *found.packages, by_name);
    *installed = found;
    return engine;
}

/* Every PREFIX/lib/python3*, with both names that site-packages has. */
static bool prefix_take(const char *prefix, const char *lib, oos_installed *installed)
{
    char folder[OOS_MACHINE_PATH], site[OOS_MACHINE_PATH + 300];
    bool found = false;
    snprintf(folder, sizeof folder, "%s/%s", prefix, lib);
    DIR *place = opendir(folder);
    if (!place) return false;
    for (const struct dirent *entry; !found && (entry = readdir(place));) {
        if (strncmp(entry->d_name, "python3", 7) != 0) continue;
        snprintf(site, sizeof site, "%s/%s/site-packages", folder, entry->d_name);
        found = site_take(site, installed);
        snprintf(site, sizeof site, "%s/%s/dist-packages", folder, entry->d_name);
        found = found || site_take(site, installed);
    }
    closedir(place);
    return found;
}

/* Around a program in PREFIX/bin. Debian's own Python looks below /usr/local as well. */
static bool beside_program(const char *program, oos_installed *installed)
{
    char prefix[OOS_MACHINE_PATH];
    snprintf(prefix, sizeof prefix, "%s", program);
    for (int up = 0; up < 2; up++) {
        char *slash = strrchr(prefix, '/');
        if (!slash) return false;
        *slash = '\0';
    }
    if (strcmp(prefix, "/usr") == 0 && prefix_take("/usr/local", "lib", installed)) return true;
    return prefix_take(prefix, "lib", installed) || prefix_take(prefix, "lib64", installed);
}

/* As it is found, then where its links lead: a virtual environment's python is a link to the system's. */
static bool around(const char *program, oos_installed *installed)
{
    if (beside_program(program, installed)) return true;
    char *real = realpath(program, NULL);
    bool const found = real && strcmp(real, program) != 0 && beside_program(real, installed);
    free(real);
    return found;
}

static bool on_path(const char *path, const char *program, char *ret_place, size_t capacity)
{
    for (const char *at = path; at && *at;) {
        size_t const len = strcspn(at, ":");
        int const wrote = snprintf(ret_place, capacity, "%.*s/%s", (int)len, at, program);
        if (len && wrote > 0 && (size_t)wrote < capacity && access(ret_place, X_OK) == 0) return true;
        at += len + (at[len] == ':');
    }
    return false;
}

void oos_installed_find(const char *program, const char *path, const char *beside,
                        oos_installed *ret_installed)
{
    static const char *const pythons[] = {"python3", "python"};
    enum { PYTHONS = sizeof pythons / sizeof *pythons };
    char place[OOS_MACHINE_PATH];
    *ret_installed = (oos_installed){.folder = ""};
    if (program && strchr(program, '/') && access(program, X_OK) == 0 && around(program, ret_installed))
        return;
    for (size_t i = 0; i < OOS_ENGINE_COUNT + PYTHONS; i++) {
        const char *name = i < OOS_ENGINE_COUNT ? oos_engine_list[i]->name : pythons[i - OOS_ENGINE_COUNT];
        if (on_path(path, name, place, sizeof place) && around(place, ret_installed)) return;
    }
    if (beside) around(beside, ret_installed);
}
