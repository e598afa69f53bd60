/* What a run is called in metrics: the same after a restart, unlike its number. */
#include "top.h"

#include <stdio.h>
#include <string.h>

enum { WORDS = 3, LINE_BYTES = 4096, WORDS_BYTES = 1 << 16 };

/* A systemd unit, or a pod with the 36 characters of its id, of which systemd's driver writes the dashes as underscores. */
static bool name_in_path(const char *path, char *ret_name, size_t capacity)
{
    const char *const pod = strstr(path, "pod"), *const unit = strstr(path, ".service");
    if (pod && strspn(pod + 3, "0123456789abcdefABCDEF-_") >= 36) {
        snprintf(ret_name, capacity, "pod %.36s", pod + 3);
        for (char *c = ret_name; *c; c++)
            if (*c == '_') *c = '-';
        return true;
    }
    if (!unit || (unit[8] && unit[8] != '/' && unit[8] != '\n')) return false;
    const char *begin = unit;
    while (begin > path && begin[-1] != '/' && begin[-1] != ':') begin--;
    snprintf(ret_name, capacity, "%.*s", (int)(unit + 8 - begin), begin);
    return true;
}

static bool name_of_group(const char *folder, int pid, char *ret_name, size_t capacity)
{
    char path[LINE_BYTES], line[LINE_BYTES];
    bool found = false;
    snprintf(path, sizeof path, "%s/%d/cgroup", folder, pid);
    FILE *in = fopen(path, "re");
    while (in && !found && fgets(line, sizeof line, in)) found = name_in_path(line, ret_name, capacity);
    if (in) fclose(in);
    return found;
}

/* The first words behind "--" that are neither flags nor variables. */
static void name_of_words(int pid, char *ret_name, size_t capacity)
{
    static char words[WORDS_BYTES];
    const char *word = words, *const end = words + top_words(pid, words, sizeof words);
    while (word < end && strcmp(word, "--") != 0) word += strlen(word) + 1;
    unsigned taken = 0;
    size_t len = 0;
    for (*ret_name = '\0'; word < end && taken < WORDS; word += strlen(word) + 1) {
        if (taken && *word == '-') break;
        if (*word == '-' || strchr(word, '=')) continue;
        const char *slash = taken ? NULL : strrchr(word, '/');
        int const more =
            snprintf(ret_name + len, capacity - len, "%s%s", taken++ ? " " : "", slash ? slash + 1 : word);
        if (more < 0 || (size_t)more >= capacity - len) break;
        len += (size_t)more;
    }
}

void top_name(const char *folder, int pid, char *ret_name, size_t capacity)
{
    if (!name_of_group(folder, pid, ret_name, capacity)) name_of_words(pid, ret_name, capacity);
    for (char *c = ret_name; *c; c++) /* a label may have anything else in it */
        if (*c == '"' || *c == '\\' || (unsigned char)*c < ' ' || (unsigned char)*c > 126) *c = '_';
}
