/* The places that the user pointed at, and the log files in them. Nothing outside of them is opened: below a folder, links
 * are followed only as far as they stay inside one of the folders that were given. */
#ifndef OOS_EXPLAIN_ROOTS_H
#define OOS_EXPLAIN_ROOTS_H

#include "base/error.h"

#include <stdbool.h>
#include <sys/stat.h>

enum { OOS_ROOTS_MAX = 1024, OOS_ROOT_DEPTH_MAX = 8, OOS_ROOT_PATH_BYTES = 4096 };

typedef enum oos_root_kind {
    OOS_ROOT_FILE, /* a file by its name, also one that is not there yet; a link is followed, since it was asked for */
    OOS_ROOT_FOLDER,  /* every *.log below it */
    OOS_ROOT_PATTERN, /* what matches, below the folder before the first wildcard */
    OOS_ROOT_STREAM   /* "-": standard input */
} oos_root_kind;

typedef struct oos_root {
    oos_root_kind kind;
    char *path;    /* of the file or the folder */
    char *real;    /* the folder without links in its name; NULL: it is not there yet */
    char *pattern; /* relative to the folder */
    int fd;        /* the folder, -1: not there yet */
} oos_root;

typedef struct oos_roots {
    oos_root *list;
    size_t count;
} oos_roots;

oomsight_status oos_roots_open(const char *const *paths, size_t count, oos_roots *ret_roots,
                               oomsight_error *reterr);
void oos_roots_close(oos_roots *roots);

/* What a search finds. Any of them may be NULL. `relative` is "" for the folder itself. */
typedef struct oos_root_finder {
    void *context;
    void (*on_file)(void *context, size_t root, const char *relative);
    void (*on_folder)(void *context, size_t root, const char *relative, int fd);
    size_t entries_left; /* how many names are still looked at: a bound for hostile folders */
} oos_root_finder;

/* The files of root `at` below its folder `relative`, with as many levels as are allowed. A folder that is not there is empty. */
void oos_roots_find(oos_roots *roots, size_t at, const char *relative, oos_root_finder *finder);

/* Open a plain file for reading, or (`folder`) the folder it lies in. -1 with errno: not there, or not inside. */
int oos_roots_open_file(const oos_roots *roots, size_t at, const char *relative);
int oos_roots_open_folder(const oos_roots *roots, size_t at, const char *relative);
/* What the name leads to now; links inside are followed, nothing is opened. */
bool oos_roots_stat(const oos_roots *roots, size_t at, const char *relative, struct stat *ret_stat);

/* The path as the user would write it. */
char *oos_roots_path(const oos_roots *roots, size_t at, const char *relative);

#endif
