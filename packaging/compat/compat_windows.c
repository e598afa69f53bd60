/* compat_windows.h, done with Windows' own calls. Paths become wide here and nowhere else. */
#include "compat_windows.h"
#undef open
#undef getenv

#include <errno.h>
#include <locale.h>
#include <stdarg.h>
#include <stdbool.h>
#define WIN32_LEAN_AND_MEAN
#include <windows.h>

enum { PATH_CHARS = 4096 };

static bool wide(const char *path, wchar_t ret_wide[PATH_CHARS])
{
    if (MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, path, -1, ret_wide, PATH_CHARS) > 0) return true;
    errno = ENOENT;
    return false;
}

static void stat_take(const struct _stat64 *from, struct oos_windows_stat *ret_info)
{
    *ret_info = (struct oos_windows_stat){.st_dev = from->st_dev,
                                          .st_ino = from->st_ino,
                                          .st_mode = from->st_mode,
                                          .st_nlink = (unsigned)from->st_nlink,
                                          .st_size = from->st_size,
                                          .st_mtime = from->st_mtime};
}

int oos_windows_stat(const char *path, struct oos_windows_stat *ret_info)
{
    wchar_t name[PATH_CHARS];
    struct _stat64 info;
    if (!wide(path, name) || _wstat64(name, &info) != 0) return -1;
    stat_take(&info, ret_info);
    return 0;
}

int oos_windows_fstat(int fd, struct oos_windows_stat *ret_info)
{
    struct _stat64 info;
    if (_fstat64(fd, &info) != 0) return -1;
    stat_take(&info, ret_info);
    return 0;
}

int oos_windows_open(const char *path, int flags, ...)
{
    wchar_t name[PATH_CHARS];
    return wide(path, name) ? _wopen(name, flags | _O_BINARY, _S_IREAD | _S_IWRITE) : -1;
}

int oos_windows_rename(const char *from, const char *to)
{
    wchar_t old[PATH_CHARS], fresh[PATH_CHARS];
    if (wide(from, old) && wide(to, fresh) && MoveFileExW(old, fresh, MOVEFILE_REPLACE_EXISTING)) return 0;
    errno = EACCES;
    return -1;
}

int oos_windows_unlink(const char *path)
{
    wchar_t name[PATH_CHARS];
    return wide(path, name) ? _wunlink(name) : -1;
}

int oos_windows_access(const char *path, int mode)
{
    wchar_t name[PATH_CHARS];
    return wide(path, name) ? _waccess(name, mode & ~1) : -1; /* nothing is marked as executable */
}

FILE *oos_windows_fopen(const char *path, const char *mode)
{
    wchar_t name[PATH_CHARS];
    return wide(path, name) ? _wfopen(name, mode[0] == 'r' ? L"rb" : mode[0] == 'w' ? L"wb" : L"ab") : NULL;
}

char *oos_windows_getenv(const char *name)
{
    char *value = getenv(name);
    return value || strcmp(name, "HOME") != 0 ? value : getenv("USERPROFILE");
}

struct oos_windows_dir {
    HANDLE find;
    WIN32_FIND_DATAW entry;
    bool read; /* the entry has been given out */
    struct dirent shown;
};

DIR *opendir(const char *path)
{
    wchar_t name[PATH_CHARS], all[PATH_CHARS + 2];
    DIR *dir = wide(path, name) ? calloc(1, sizeof *dir) : NULL;
    if (!dir) return NULL;
    size_t const len = wcslen(name);
    memcpy(all, name, len * sizeof *name);
    memcpy(all + len, L"/*", 3 * sizeof *name);
    dir->find = FindFirstFileW(all, &dir->entry);
    if (dir->find != INVALID_HANDLE_VALUE) return dir;
    free(dir);
    errno = ENOENT;
    return NULL;
}

struct dirent *readdir(DIR *dir)
{
    do {
        if (dir->read && !FindNextFileW(dir->find, &dir->entry)) return NULL;
        dir->read = true;
    } while (WideCharToMultiByte(CP_UTF8, 0, dir->entry.cFileName, -1, dir->shown.d_name,
                                 sizeof dir->shown.d_name, NULL, NULL) <= 0);
    return &dir->shown;
}

int closedir(DIR *dir)
{
    FindClose(dir->find);
    free(dir);
    return 0;
}

/* A thread that is in the C locale stays so. Another is given a locale of its own, and what it had is kept until it is given back. */
enum { CHANGED, C_LOCALE, UNCHANGED };
static _Thread_local char had[512];
static _Thread_local int had_own;

locale_t newlocale(int mask, const char *name, locale_t base)
{
    (void)mask, (void)name, (void)base;
    return C_LOCALE;
}

locale_t uselocale(locale_t locale)
{
    if (locale == UNCHANGED) return locale;
    if (locale == C_LOCALE) {
        const char *now = setlocale(LC_ALL, NULL);
        if (!now || strcmp(now, "C") == 0 || strlen(now) >= sizeof had) return UNCHANGED;
        memcpy(had, now, strlen(now) + 1);
        had_own = _configthreadlocale(_ENABLE_PER_THREAD_LOCALE);
        setlocale(LC_ALL, "C");
        return CHANGED;
    }
    setlocale(LC_ALL, had);
    _configthreadlocale(had_own);
    return C_LOCALE;
}

char *strerror_l(int number, locale_t locale)
{
    (void)locale;
    return strerror(number);
}

void *memmem(const void *in, size_t in_len, const void *what, size_t what_len)
{
    const char *at = in, *end = at + in_len;
    if (what_len == 0) return (void *)at;
    for (; (size_t)(end - at) >= what_len; at++) {
        at = memchr(at, *(const char *)what, (size_t)(end - at) - what_len + 1);
        if (!at) return NULL;
        if (memcmp(at, what, what_len) == 0) return (void *)at;
    }
    return NULL;
}

void *memrchr(const void *in, int byte, size_t len)
{
    const unsigned char *bytes = in;
    while (len--)
        if (bytes[len] == (unsigned char)byte) return (void *)(bytes + len);
    return NULL;
}

int posix_memalign(void **ret_at, size_t alignment, size_t bytes)
{
    (void)alignment; /* asked for to fill whole cache lines: free() takes only what malloc() gave */
    *ret_at = malloc(bytes);
    return *ret_at ? 0 : ENOMEM;
}

struct tm *gmtime_r(const time_t *seconds, struct tm *ret_time)
{
    return _gmtime64_s(ret_time, seconds) == 0 ? ret_time : NULL;
}

ssize_t pread(int fd, void *bytes, size_t len, int64_t offset)
{
    OVERLAPPED where = {.Offset = (DWORD)offset, .OffsetHigh = (DWORD)(offset >> 32)};
    DWORD got = 0, most = len > (1u << 30) ? 1u << 30 : (DWORD)len;
    if (ReadFile((HANDLE)_get_osfhandle(fd), bytes, most, &got, &where)) return (ssize_t)got;
    if (GetLastError() == ERROR_HANDLE_EOF) return 0;
    errno = EIO;
    return -1;
}

int posix_fadvise(int fd, int64_t offset, int64_t len, int advice)
{
    (void)fd, (void)offset, (void)len, (void)advice;
    return 0;
}

int setenv(const char *name, const char *value, int replace)
{
    return !replace && getenv(name) ? 0 : _putenv_s(name, value) == 0 ? 0 : -1;
}

ssize_t readlink(const char *path, char *ret_target, size_t capacity)
{
    (void)path, (void)ret_target, (void)capacity;
    errno = EINVAL;
    return -1;
}

char *realpath(const char *path, char *ret_path)
{
    (void)path, (void)ret_path;
    errno = ENOENT;
    return NULL;
}

unsigned geteuid(void)
{
    return 0; /* as st_uid: whose a file is Windows decides when it is opened */
}

int fchmod(int fd, unsigned mode)
{
    (void)fd, (void)mode;
    return 0;
}
