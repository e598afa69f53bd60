/* The image of a request: black and white in a BMP of one bit a pixel, as a data URL. Which image it is moves no memory; that it is another
 * one for each request keeps caches from answering. */
#include "cmd_dryrun.h"

#include <stdlib.h>
#include <string.h>

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static void put_base64(FILE *out, const unsigned char *bytes, size_t len)
{
    for (size_t i = 0; i < len; i += 3) {
        size_t const left = len - i;
        unsigned const word = (unsigned)bytes[i] << 16 | (left > 1 ? (unsigned)bytes[i + 1] << 8 : 0) |
                              (left > 2 ? (unsigned)bytes[i + 2] : 0);
        fputc(digits[word >> 18], out);
        fputc(digits[word >> 12 & 63], out);
        fputc(left > 1 ? digits[word >> 6 & 63] : '=', out);
        fputc(left > 2 ? digits[word & 63] : '=', out);
    }
}

static void store(unsigned char *at, unsigned bytes, size_t value)
{
    for (unsigned i = 0; i < bytes; i++) at[i] = (unsigned char)(value >> (8 * i));
}

bool dryrun_image_put(FILE *out, unsigned width, unsigned height, unsigned number)
{
    enum { HEADER = 14 + 40 + 8 }; /* of the file, of the image, two colours */
    size_t const row = ((size_t)width + 31) / 32 * 4, len = HEADER + row * height;
    unsigned char *file = calloc(1, len);
    if (!file) return false;
    memcpy(file, "BM", 2);
    store(file + 2, 4, len);
    store(file + 10, 4, HEADER);
    store(file + 14, 4, 40);
    store(file + 18, 4, width);
    store(file + 22, 4, height);
    store(file + 26, 2, 1); /* planes */
    store(file + 28, 2, 1); /* bits a pixel */
    store(file + 34, 4, row * height);
    memset(file + 58, 255, 3); /* the second colour */
    store(file + HEADER, 4, number);
    fputs("data:image/bmp;base64,", out);
    put_base64(out, file, len);
    free(file);
    return true;
}
