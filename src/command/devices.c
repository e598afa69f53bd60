/* Which devices a command sees. Of those of a machine a container gets some, by docker's --gpus, names of CDI or NVIDIA_VISIBLE_DEVICES; of these
 * CUDA_VISIBLE_DEVICES takes some, in its own order. What is no NVIDIA GPU is told apart. */
#include "command/command.h"
#include "base/ascii.h"

#include <stdlib.h>
#include <string.h>

enum {
    SEEN_MAX = 64,
    MACHINE_MAX = 64
}; /* as PyTorch counts; a machine of which nobody said how many it has */

/* The value of a variable among words, `NAME=value`, also behind -e and --env; the last one counts. NULL: it is not set. */
static const char *variable(const char *const *words, size_t from, size_t count, const char *name)
{
    size_t const len = strlen(name);
    const char *value = NULL;
    for (size_t i = from; i < count; i++) {
        const char *word = words[i];
        if (strncmp(word, "--env=", 6) == 0) word += 6;
        if (strncmp(word, name, len) == 0 && word[len] == '=') value = word + len + 1;
    }
    return value;
}

static bool add(oos_arena *arena, oos_seen *seen, const char *name)
{
    if (!seen->names) seen->names = OOS_NEW_ARRAY(arena, const char *, SEEN_MAX);
    if (!seen->names || !name || seen->count == SEEN_MAX) return false;
    seen->known = true;
    seen->names[seen->count++] = name;
    return true;
}

static bool is_there(const oos_seen *seen, const char *name)
{
    for (size_t i = 0; i < seen->count; i++)
        if (strcmp(seen->names[i], name) == 0) return true;
    return false;
}

static bool is_number(const char *word)
{
    return *word && strspn(word, "0123456789") == strlen(word);
}

static const char *ordinal_name(oos_arena *arena, uint64_t number)
{
    return oos_arena_format(arena, "%llu", (unsigned long long)number);
}

/* ---- a container ------------------------------------------------------------------------------------------------ */

static void first_of_machine(oos_arena *arena, oos_seen *seen, uint64_t count)
{
    seen->known = true;
    for (uint64_t i = 0; i < count && add(arena, seen, ordinal_name(arena, i)); i++) continue;
}

/* "0,1", "GPU-1a2b": each a device of the machine; "all", "none". */
static void take_list(oos_arena *arena, oos_seen *seen, oos_view list)
{
    if (oos_view_is(list, "all")) return;
    seen->known = true;
    if (!list.len || oos_view_is(list, "none") || oos_view_is(list, "void")) return;
    for (size_t at = 0; at <= list.len;) {
        const char *comma = at < list.len ? memchr(list.ptr + at, ',', list.len - at) : NULL;
        size_t const end = comma ? (size_t)(comma - list.ptr) : list.len;
        if (end > at && !add(arena, seen, oos_arena_copy(arena, oos_view_slice(list, at, end - at)))) return;
        at = end + 1;
    }
}

/* docker's --gpus is a line of CSV: `2`, `all`, `"device=0,1"`, `driver=nvidia,count=2`; one field in quotes may have commas. */
static void take_gpus(oos_arena *arena, oos_seen *seen, const char *value)
{
    oos_view devices = {0};
    const char *count = NULL;
    for (const char *at = value; *at;) {
        bool const quoted = *at == '"';
        at += quoted;
        size_t const len = strcspn(at, quoted ? "\"" : ",");
        if (strncmp(at, "device=", 7) == 0)
            devices = (oos_view){at + 7, len - 7};
        else if (strncmp(at, "count=", 6) == 0)
            count = at + 6;
        else if (!memchr(at, '=', len))
            count = at;
        at += len;
        at += quoted && *at == '"';
        at += *at == ',';
    }
    if (devices.ptr && count)
        seen->problem =
            oos_arena_format(arena,
                             "docker takes a count or devices, not both: --gpus %s is `\"device=0,1\"` "
                             "with its quotes where several are meant",
                             value);
    else if (devices.ptr)
        take_list(arena, seen, devices);
    else if (!count || strncmp(count, "all", 3) != 0)
        first_of_machine(arena, seen, count ? strtoull(count, NULL, 10) : 1);
}

/* `--name value` or `--name=value` at *at; NULL: it is another word. */
static const char *option(const char *const *words, size_t count, size_t *at, const char *name)
{
    const char *word = words[*at];
    size_t const len = strlen(name) + 2;
    if (word[0] != '-' || word[1] != '-' || strncmp(word + 2, name, len - 2) != 0) return NULL;
    if (word[len] == '=') return word + len + 1;
    return word[len] == '\0' && *at + 1 < count ? words[++*at] : NULL;
}

static void container_read(oos_arena *arena, const char *const *words, size_t from, size_t count,
                           oos_seen *seen)
{
    static const char cdi[] = "nvidia.com/gpu=";
    const char *gpus = NULL, *value;
    for (size_t i = from; i < count; i++) {
        if ((value = option(words, count, &i, "gpus")))
            gpus = value;
        else if ((value = option(words, count, &i, "device")) && strncmp(value, cdi, sizeof cdi - 1) == 0)
            take_list(arena, seen, oos_view_of(value + sizeof cdi - 1));
    }
    if (gpus) take_gpus(arena, seen, gpus);
    value = variable(words, from, count, "NVIDIA_VISIBLE_DEVICES");
    if (!gpus && !seen->known && value) take_list(arena, seen, oos_view_of(value));
}

/* ---- a process -------------------------------------------------------------------------------------------------- */

/* torch/cuda/__init__.py, _parse_visible_devices(), which counts as CUDA does: the list ends at the first word that is no device; one that is
 * named twice leaves none; of slices a process sees one. `of`: the devices that are there. */
static void visible_read(oos_arena *arena, const char *list, uint64_t there, const oos_seen *of,
                         oos_seen *seen)
{
    bool const slices = strncmp(list, "MIG-", 4) == 0, named = slices || strncmp(list, "GPU-", 4) == 0;
    seen->known = true;
    while (*list) {
        size_t const len = strcspn(list, ",");
        const char *word = oos_arena_copy(arena, (oos_view){list, len});
        while (word && !named && oos_is_space(*word)) word++;
        bool const device = word && (named ? strncmp(word, list[0] == 'M' ? "MIG-" : "GPU-", 4) == 0
                                           : oos_is_digit(word[*word == '+']));
        if (!device) return;
        if (!named) {
            uint64_t const number = strtoull(word + (*word == '+'), NULL, 10);
            if (number >= there) return;
            word = of->known ? of->names[number] : ordinal_name(arena, number);
        }
        if (word && is_there(seen, word)) {
            seen->count = 0;
            return;
        }
        if (!add(arena, seen, word) || slices) return;
        list += len + (list[len] == ',');
    }
}

oos_seen oos_devices_seen(oos_arena *arena, const char *const *words, size_t count, const char *given,
                          uint64_t there)
{
    oos_seen held = {0}, seen = {0};
    size_t const container = oos_wrapped_container(words, count);
    bool const inside = container < count;
    if (inside)
        container_read(arena, words, container, count, &held);
    else if (given)
        take_list(arena, &held, oos_view_of(given));
    for (size_t i = 0; there && held.known && i < held.count; i++)
        if (is_number(held.names[i]) && strtoull(held.names[i], NULL, 10) >= there && !given)
            held.problem = oos_arena_format(arena, "docker gets device %s of a machine with %llu GPUs",
                                            held.names[i], (unsigned long long)there);
    const char *list = variable(words, inside ? container : 0, count, "CUDA_VISIBLE_DEVICES");
    if (held.problem || !list) return held;
    visible_read(arena, list, held.known ? held.count : there ? there : MACHINE_MAX, &held, &seen);
    return seen;
}

/* ---- what is no NVIDIA GPU -------------------------------------------------------------------------------------- */

/* "rocm/vllm:rocm6.4" by its words: the name of a registry is no word of it. */
const char *oos_image_other(const char *image)
{
    const char *slash = image ? strchr(image, '/') : NULL;
    bool const host = slash && memchr(image, '.', (size_t)(slash - image)) && !strstr(image, "habana");
    return image ? oos_device_word_other(host ? slash + 1 : image) : NULL;
}

/* A word of `docker run` that can only be an image: a path, a volume and a setting are none. */
static bool is_image(const char *word)
{
    return oos_engine_words_of_image(word) ||
           (strchr(word, '/') && !strchr("-/.~$", word[0]) && !strchr(word, '=') && !strstr(word, ":/"));
}

const char *oos_devices_other(const char *const *words, size_t count)
{
    size_t const container = oos_wrapped_container(words, count);
    bool image = false;
    const char *other = NULL, *value;
    for (size_t i = container; i < count && !other && !image; i++) {
        if ((value = option(words, count, &i, "device")))
            other = strcmp(value, "/dev/kfd") == 0 ? oos_device_word_other("rocm") : NULL;
        else if ((value = option(words, count, &i, "runtime")))
            other = oos_device_word_other(value);
        else if ((image = is_image(words[i])))
            other = oos_image_other(words[i]);
    }
    for (size_t i = 0; container == count && i < count && !image; i++) /* `IMAGE --model m` */
        if ((image = words[i][0] != '-' && oos_engine_words_of_image(words[i])))
            other = oos_image_other(words[i]);
    return other;
}
