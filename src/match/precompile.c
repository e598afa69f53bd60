/* precompile SIGNALS.json TEMPLATES.json: writes the literals of the signals, compiled, as C to standard output. Runs while the library is
 * built and is no part of it. Compiled for the plainest processor, which was measured to scan as fast as for the one at hand
 * (1.75 and 1.80 GB/s), so that the library may move to another machine. */
#include "match/precompiled.h"

#include <hs/hs.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

enum { WORDS_MAX = 4096 };

/* Distinct words in order of first use, as explain/signals.c numbers them: `count` are there already. */
static size_t words_add(const json_t *list, const char **words, size_t count)
{
    size_t at, inner;
    json_t *signal, *word;
    json_array_foreach(list, at, signal)
    {
        json_array_foreach(json_object_get(signal, "literals"), inner, word)
        {
            const char *text = json_string_value(word);
            size_t known = 0;
            while (known < count && strcmp(words[known], text) != 0) known++;
            if (known == WORDS_MAX) exit(1);
            if (known == count) words[count++] = text;
        }
    }
    return count;
}

int main(int argc, char **argv)
{
    static const char *words[WORDS_MAX];
    static unsigned flags[WORDS_MAX], ids[WORDS_MAX];
    static size_t lengths[WORDS_MAX];
    json_t *root[8];
    size_t count = 0;
    if (argc < 2 || argc > 8) return 1;
    for (int i = 1; i < argc; i++) {
        root[i - 1] = json_load_file(argv[i], 0, NULL);
        if (!root[i - 1]) return 1;
        count = words_add(json_object_get(root[i - 1], "signals"), words, count);
    }
    for (size_t i = 0; i < count; i++) {
        ids[i] = (unsigned)i;
        flags[i] = HS_FLAG_CASELESS;
        lengths[i] = strlen(words[i]);
    }
    hs_platform_info_t const plain = {0};
    hs_database_t *database;
    hs_compile_error_t *wrong;
    char *bytes;
    size_t len;
    if (hs_compile_lit_multi(words, flags, ids, lengths, (unsigned)count, HS_MODE_STREAM, &plain, &database,
                             &wrong) != HS_SUCCESS ||
        hs_serialize_database(database, &bytes, &len) != HS_SUCCESS)
        return 1;
    printf("#include \"match/precompiled.h\"\n\nconst uint64_t oos_precompiled_hash = %" PRIu64
           "u;\nconst size_t oos_precompiled_len = %zu;\nconst unsigned char oos_precompiled_bytes[] = {",
           oos_precompiled_hash_of(words, count), len);
    for (size_t i = 0; i < len; i++)
        printf("%s%u,", i % 32 ? "" : "\n    ", (unsigned)(unsigned char)bytes[i]);
    puts("\n};");
    free(bytes);
    hs_free_database(database);
    for (int i = 1; i < argc; i++) json_decref(root[i - 1]);
    return 0;
}
