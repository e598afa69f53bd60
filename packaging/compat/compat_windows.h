/* What POSIX has and Windows lacks, for the files of a build without processes: names and types only, compat_windows.c does the work. Paths are
 * UTF-8. The cross file includes this before everything else; src/ knows nothing of it. */
#ifndef OOS_COMPAT_WINDOWS_H
#define OOS_COMPAT_WINDOWS_H

#include <direct.h>
#include <fcntl.h>
#include <io.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>

#define OOMSIGHT_BUILDING

/* Nothing is inherited, there are no links to follow and no terminals to take over. */
#define O_NONBLOCK 0
#define O_NOCTTY 0
#define O_NOFOLLOW 0
#define O_CLOEXEC _O_NOINHERIT
#define S_ISLNK(mode) 0
#define POSIX_FADV_SEQUENTIAL 2
#define SIGKILL 9

/* Its own struct: that of the C library has sizes of 32 bits, or another name, as the headers decide. */
struct oos_windows_stat {
    uint64_t st_dev, st_ino;
    unsigned st_mode, st_nlink, st_uid;
    int64_t st_size;
    time_t st_mtime;
};
int oos_windows_stat(const char *path, struct oos_windows_stat *ret_info);
int oos_windows_fstat(int fd, struct oos_windows_stat *ret_info);
#undef stat
#undef fstat
#define stat oos_windows_stat
#define lstat oos_windows_stat
#define fstat oos_windows_fstat

int oos_windows_open(const char *path, int flags, ...);   /* bytes as they are: no end of line is turned */
int oos_windows_rename(const char *from, const char *to); /* what is there is replaced */
int oos_windows_unlink(const char *path);
int oos_windows_access(const char *path, int mode);
FILE *oos_windows_fopen(const char *path, const char *mode);
char *oos_windows_getenv(const char *name); /* HOME is the user's folder */
#define open oos_windows_open
#define rename oos_windows_rename
#define unlink oos_windows_unlink
#define access oos_windows_access
#define fopen oos_windows_fopen
#define getenv oos_windows_getenv

typedef struct oos_windows_dir DIR;
struct dirent {
    char d_name[1024];
};
DIR *opendir(const char *path);
struct dirent *readdir(DIR *dir);
int closedir(DIR *dir);
#define _DIRENT_H_
#define _INC_DIRENT

typedef int locale_t; /* whether the thread's locale had to be changed */
#define LC_ALL_MASK 0
locale_t newlocale(int mask, const char *name, locale_t base);
locale_t uselocale(locale_t locale);
char *strerror_l(int number, locale_t locale);

void *memmem(const void *in, size_t in_len, const void *what, size_t what_len);
void *memrchr(const void *in, int byte, size_t len);
int posix_memalign(void **ret_at, size_t alignment,
                   size_t bytes); /* to be given to free(): 16 bytes at most */
struct tm *gmtime_r(const time_t *seconds, struct tm *ret_time);
ssize_t pread(int fd, void *bytes, size_t len, int64_t offset);
int posix_fadvise(int fd, int64_t offset, int64_t len, int advice);
int setenv(const char *name, const char *value, int replace);
ssize_t readlink(const char *path, char *ret_target, size_t capacity);
char *realpath(const char *path, char *ret_path);
unsigned geteuid(void);
int fchmod(int fd, unsigned mode);

#endif
