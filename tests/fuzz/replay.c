/* A target without libFuzzer: gives it every file of the folders named, so that what was once found stays fixed.
 *     replay FOLDER... */
#include "fuzz.h"

#include <dirent.h>

static int replay_file(const char *path)
{
    FILE *in = fopen(path, "rb");
    if (!in) return -1;
    /* exactly as large as the file, so that a sanitizer sees a read behind it */
    fseek(in, 0, SEEK_END);
    long const len = ftell(in);
    rewind(in);
    uint8_t *bytes = malloc(len > 0 ? (size_t)len : 1);
    size_t const got = bytes ? fread(bytes, 1, (size_t)len, in) : 0;
    fclose(in);
    if (bytes && got == (size_t)len) LLVMFuzzerTestOneInput(bytes, got);
    free(bytes);
    return 0;
}

int main(int argc, char **argv)
{
    size_t count = 0;
    for (int i = 1; i < argc; i++) {
        DIR *dir = opendir(argv[i]);
        if (!dir) {
            fprintf(stderr, "no folder %s\n", argv[i]);
            return 1;
        }
        for (struct dirent *entry; (entry = readdir(dir));) {
            char path[4096];
            if (entry->d_name[0] == '.') continue;
            snprintf(path, sizeof path, "%s/%s", argv[i], entry->d_name);
            if (replay_file(path) != 0) return 1;
            count++;
        }
        closedir(dir);
    }
    printf("%zu inputs survived\n", count);
    return count ? 0 : 1;
}
