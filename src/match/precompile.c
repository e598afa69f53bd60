/* precompile SIGNALS.json: writes the literals of the signals, compiled, as C to standard output. Runs while the library is
 * built and is no part of it. Compiled for the plainest processor, which was measured to scan as fast as for the one at hand
 * (1.75 and 1.80 GB/s), so that the library may move to another machine. */
#include "match/precompiled.h"

#include <hs/hs.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

enum { WORDS_MAX = 4096 };

/* Distinct words in order of first use, as explain/signals.c numbers them. */
static size_t words_of(const json_t *list, const char **words)
{
    size_t count = 0, at, inner;
    json_t *signal, *word;
    json_array_foreach(list, at, signal)
    {
        json_array_foreach(json_object_get(signal, "literals"), inner, word)
        {
            const char *text = json_string_value(word);
            size_t known = 0;
            while (known < count && strcmp(words[known], text) != 0) known++;
            if (known == count && count < WORDS_MAX) words[count++] = text;
        }
    }
    return count;
}

int main(int argc, char **argv)
{
    static const char *words[WORDS_MAX];
    static unsigned flags[WORDS_MAX], ids[WORDS_MAX];
    static size_t lengths[WORDS_MAX];
    json_t *root = argc == 2 ? json_load_file(argv[1], 0, NULL) : NULL;
    if (!root) return 1;
    size_t const count = words_of(json_object_get(root, "signals"), words);
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
    json_decref(root);
    return 0;
}
