/* What an old glibc does not have and the static archives of a newer system ask for. Only in portable builds: see
 * tools/glibc_stub.py and docs/decisions/0006-one-wheel.md. */
#include <elf.h>
#include <link.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* glibc 2.32: may be false although there is one thread only; then libstdc++ uses atomic operations. */
char __libc_single_threaded = 0;

/* glibc 2.36 */
uint32_t arc4random(void);
uint32_t arc4random(void)
{
    uint32_t value = 0;
    while (syscall(SYS_getrandom, &value, sizeof value, 0) != sizeof value) {
    }
    return value;
}

/* glibc 2.27; an older kernel than 3.17 answers "not implemented" */
int memfd_create(const char *name, unsigned flags);
int memfd_create(const char *name, unsigned flags)
{
    return (int)syscall(SYS_memfd_create, name, flags);
}

/* glibc 2.35: libgcc asks it for the unwind table of a program counter. */
typedef struct search {
    uintptr_t pc;
    struct dl_find_object *result;
} search;

static int look_at_object(struct dl_phdr_info *info, size_t size, void *user)
{
    (void)size;
    search *s = user;
    uintptr_t start = UINTPTR_MAX, end = 0;
    void *eh_frame = NULL;
    int holds = 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        uintptr_t const from = info->dlpi_addr + part->p_vaddr, to = from + part->p_memsz;
        if (part->p_type == PT_GNU_EH_FRAME) eh_frame = (void *)from;
        if (part->p_type != PT_LOAD) continue;
        if (from < start) start = from;
        if (to > end) end = to;
        holds |= s->pc >= from && s->pc < to;
    }
    if (!holds || !eh_frame) return 0;
    memset(s->result, 0, sizeof *s->result);
    s->result->dlfo_map_start = (void *)start;
    s->result->dlfo_map_end = (void *)end;
    s->result->dlfo_eh_frame = eh_frame;
    return 1;
}

int _dl_find_object(void *pc, struct dl_find_object *result)
{
    search s = {(uintptr_t)pc, result};
    return dl_iterate_phdr(look_at_object, &s) ? 0 : -1;
}
