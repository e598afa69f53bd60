/* Reading a cubin: a 64-bit ELF file with one section `.nv.info.KERNEL` per kernel. Every offset is checked: the image
 * comes from a compiler or from disk, not from us. */
#include "phantom/cuda/cubin.h"

#include <elf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { IMAGE_MOST = 512 << 20 };

bool cubin_copy(const void *image, cubin *ret_cubin)
{
    Elf64_Ehdr head;
    *ret_cubin = (cubin){NULL, 0};
    if (!image || memcmp(image, ELFMAG, SELFMAG) != 0) return false;
    memcpy(&head, image, sizeof head);
    if (head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_shentsize != sizeof(Elf64_Shdr)) return false;
    uint64_t len = head.e_shoff + (uint64_t)head.e_shnum * head.e_shentsize;
    uint64_t const programs = head.e_phoff + (uint64_t)head.e_phnum * head.e_phentsize;
    if (programs > len) len = programs;
    if (head.e_shoff > IMAGE_MOST || head.e_phoff > IMAGE_MOST || len > IMAGE_MOST) return false;
    char *copy = malloc(len);
    if (!copy) return false;
    memcpy(copy, image, len);
    *ret_cubin = (cubin){copy, len};
    return true;
}

bool cubin_read(const char *path, cubin *ret_cubin)
{
    *ret_cubin = (cubin){NULL, 0};
    int const fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    struct stat info;
    char *bytes = NULL;
    size_t len = 0;
    if (fstat(fd, &info) == 0 && info.st_size >= (off_t)sizeof(Elf64_Ehdr) && info.st_size < IMAGE_MOST)
        bytes = malloc((size_t)info.st_size);
    for (ssize_t got = 1; bytes && got > 0 && len<(size_t)info.st_size; len += got> 0 ? (size_t)got : 0)
        got = read(fd, bytes + len, (size_t)info.st_size - len);
    close(fd);
    if (bytes && len >= sizeof(Elf64_Ehdr) && memcmp(bytes, ELFMAG, SELFMAG) == 0)
        *ret_cubin = (cubin){bytes, len};
    else
        free(bytes);
    return bytes != NULL;
}

static bool section(const cubin *c, unsigned index, Elf64_Shdr *ret_section)
{
    Elf64_Ehdr head;
    if (c->len < sizeof head) return false;
    memcpy(&head, c->bytes, sizeof head);
    uint64_t const at = head.e_shoff + (uint64_t)index * sizeof *ret_section;
    if (index >= head.e_shnum || head.e_shoff > c->len || at + sizeof *ret_section > c->len) return false;
    memcpy(ret_section, c->bytes + at, sizeof *ret_section);
    return ret_section->sh_type == SHT_NOBITS ||
           (ret_section->sh_offset <= c->len && ret_section->sh_size <= c->len - ret_section->sh_offset);
}

/* A zero-terminated string of a string section. */
static const char *string(const cubin *c, unsigned table, uint64_t offset)
{
    Elf64_Shdr strings;
    if (!section(c, table, &strings) || strings.sh_type == SHT_NOBITS || offset >= strings.sh_size)
        return NULL;
    const char *at = c->bytes + strings.sh_offset + offset;
    return memchr(at, 0, strings.sh_size - offset) ? at : NULL;
}

const char *cubin_kernel(const cubin *c, unsigned index)
{
    static const char prefix[] = ".nv.info.";
    Elf64_Ehdr head;
    if (c->len < sizeof head) return NULL;
    memcpy(&head, c->bytes, sizeof head);
    for (unsigned i = 0; i < head.e_shnum; i++) {
        Elf64_Shdr s;
        const char *name = section(c, i, &s) ? string(c, head.e_shstrndx, s.sh_name) : NULL;
        if (name && strncmp(name, prefix, sizeof prefix - 1) == 0 && index-- == 0)
            return name + sizeof prefix - 1;
    }
    return NULL;
}

size_t cubin_variable(const cubin *c, const char *name)
{
    Elf64_Ehdr head;
    if (c->len < sizeof head) return 0;
    memcpy(&head, c->bytes, sizeof head);
    for (unsigned i = 0; i < head.e_shnum; i++) {
        Elf64_Shdr table;
        if (!section(c, i, &table) || table.sh_type != SHT_SYMTAB) continue;
        for (uint64_t at = 0; at + sizeof(Elf64_Sym) <= table.sh_size; at += sizeof(Elf64_Sym)) {
            Elf64_Sym symbol;
            memcpy(&symbol, c->bytes + table.sh_offset + at, sizeof symbol);
            const char *found = string(c, table.sh_link, symbol.st_name);
            if (ELF64_ST_TYPE(symbol.st_info) == STT_OBJECT && found && strcmp(found, name) == 0)
                return symbol.st_size ? symbol.st_size : 1;
        }
    }
    return 0;
}
