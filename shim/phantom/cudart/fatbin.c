/* Which of the images in a fat binary a device would run. Only the directory is read, never an image.
 *
 *   wrapper   u32 magic 466243b1 | u32 version | pointer to the fat binary | ...
 *   fat       u32 magic ba55ed50 | u16 version | u16 header bytes | u64 bytes of all entries
 *   entry     u16 kind (1 PTX, 2 machine code) | u16 | u32 header bytes | u64 image bytes | ... | at 28: u32 architecture */
#include "phantom/cudart/cudart.h"

#include <string.h>

typedef struct wrapper {
    uint32_t magic, version;
    const unsigned char *fat;
} wrapper;
enum { KIND_PTX = 1, KIND_CODE = 2, ENTRY_BYTES = 32, ENTRIES_MOST = 256 };

static uint64_t number_at(const unsigned char *at, size_t bytes)
{
    uint64_t number = 0;
    memcpy(&number, at, bytes); /* little-endian, as every host of the vendor's */
    return number;
}

unsigned fatbin_architecture(const void *binary, unsigned capability)
{
    const wrapper *w = binary;
    if (!w || w->magic != 0x466243b1 || !w->fat || number_at(w->fat, 4) != 0xba55ed50) return capability;
    uint64_t left = number_at(w->fat + 8, 8);
    const unsigned char *entry = w->fat + number_at(w->fat + 6, 2);
    unsigned code = 0, ptx = 0;
    for (int i = 0; i < ENTRIES_MOST && left >= ENTRY_BYTES; i++) {
        uint64_t const whole = number_at(entry + 4, 4) + number_at(entry + 8, 8);
        unsigned const kind = (unsigned)number_at(entry, 2), arch = (unsigned)number_at(entry + 28, 4);
        if (whole < ENTRY_BYTES || whole > left) break;
        /* machine code runs on the same major from its own minor on; PTX is compiled for anything later */
        if (kind == KIND_CODE && arch / 10 == capability / 10 && arch <= capability && arch > code)
            code = arch;
        if (kind == KIND_PTX && arch <= capability && arch > ptx) ptx = arch;
        entry += whole;
        left -= whole;
    }
    return code ? code : ptx ? ptx : capability;
}
