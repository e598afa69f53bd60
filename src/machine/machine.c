/* The whole machine, read by a child process: a driver that hangs, or a folder on a server that is gone, holds up nobody. */
#include "facts/facts.h"
#include "base/check.h"
#include "machine/machine.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

static void cache_add(oos_machine *machine, const char *name, const char *folder, const char *below)
{
    oos_assert(machine->cache_count < OOS_MACHINE_CACHES);
    oos_cache_folder *cache = &machine->caches[machine->cache_count++];
    snprintf(cache->name, sizeof cache->name, "%s", name);
    int const len = snprintf(cache->path, sizeof cache->path, "%s%s", folder, below);
    DIR *place = len > 0 && (size_t)len < sizeof cache->path ? opendir(cache->path) : NULL;
    if (!place) return;
    cache->exists = true;
    for (const struct dirent *entry; (entry = readdir(place));) cache->entries += entry->d_name[0] != '.';
    closedir(place);
}

/* Where the engine would look: its own variable, that of the desktop, or the home folder. */
static void caches_read(oos_machine *machine)
{
    char root[OOS_MACHINE_PATH], folder[OOS_MACHINE_PATH + 16];
    const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME"), *hub = getenv("HF_HUB_CACHE"),
               *face = getenv("HF_HOME");
    snprintf(root, sizeof root, "%s%s", xdg && *xdg ? xdg : home ? home : "", xdg && *xdg ? "" : "/.cache");
    for (size_t i = 0; i < OOS_ENGINE_COUNT && machine->cache_count + 2 < OOS_MACHINE_CACHES; i++) {
        const oos_engine_words *engine = oos_engine_list[i];
        const char *given = engine->cache_variable ? getenv(engine->cache_variable) : NULL;
        char title[48];
        if (!engine->cache_variable) continue;
        snprintf(folder, sizeof folder, "%s/%s", root, engine->name);
        snprintf(title, sizeof title, "%s compile cache", engine->title);
        cache_add(machine, title, given && *given ? given : folder, engine->cache_below);
    }
    cache_add(machine, "FlashInfer cache", root, "/flashinfer");
    snprintf(folder, sizeof folder, "%s/huggingface", root);
    if (hub && *hub)
        cache_add(machine, "Hugging Face cache", hub, "");
    else
        cache_add(machine, "Hugging Face cache", face && *face ? face : folder, "/hub");
}

static void read_all(const char *program, bool with_devices, oos_machine *machine)
{
    struct utsname system;
    if (uname(&system) == 0)
        snprintf(machine->system, sizeof machine->system, "%.40s %.60s %.40s", system.sysname, system.release,
                 system.machine);
    oos_host_read("", &machine->host);
    char self[OOS_MACHINE_PATH];
    ssize_t const len = readlink("/proc/self/exe", self, sizeof self - 1);
    self[len > 0 ? len : 0] = '\0';
    oos_installed_find(program, getenv("PATH"), len > 0 ? self : NULL, &machine->installed);
    caches_read(machine);
    if (with_devices) oos_nvml_ask(&machine->nvml);
    machine->whole = true;
}

/* `fill` writes `size` bytes in a process of its own, which is given up after the time. False: no memory or no process. */
static bool in_child(void (*fill)(const void *asked, void *bytes), const void *asked, unsigned timeout_ms,
                     void *ret_bytes, size_t size)
{
    int ends[2];
    void *shared = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) return false;
    if (pipe(ends) != 0) {
        munmap(shared, size);
        return false;
    }
    pid_t const child = fork();
    if (child == 0) {
        close(ends[0]);
        fill(asked, shared);
        _exit(0);
    }
    close(ends[1]);
    if (child > 0) { /* its end of the pipe closes with it */
        bool const ended = oos_ends_within(ends[0], timeout_ms);
        if (!ended) kill(child, SIGKILL);
        waitpid(child, NULL, ended ? 0 : WNOHANG); /* one that hangs in the driver is nobody to wait for */
        memcpy(ret_bytes, shared, size);
    }
    close(ends[0]);
    munmap(shared, size);
    return child > 0;
}

static void fill_host(const void *program, void *machine)
{
    read_all(program, false, machine);
}

static void fill_all(const void *program, void *machine)
{
    read_all(program, true, machine);
}

bool oos_machine_read(const char *program, bool with_devices, unsigned timeout_ms, oos_machine *ret_machine)
{
    void (*const fill)(const void *asked, void *bytes) = with_devices ? fill_all : fill_host;
    return in_child(fill, program, timeout_ms, ret_machine, sizeof *ret_machine);
}

static void fill_nvml(const void *nothing, void *nvml)
{
    (void)nothing;
    oos_nvml_ask(nvml);
}

bool oos_nvml_ask_within(unsigned timeout_ms, oos_nvml *ret_nvml)
{
    return in_child(fill_nvml, NULL, timeout_ms, ret_nvml, sizeof *ret_nvml);
}
