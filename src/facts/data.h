/* The files of data/: embedded in the binary, or read from a folder given with --data. */
#ifndef OOS_FACTS_DATA_H
#define OOS_FACTS_DATA_H

#include "base/arena.h"
#include "base/error.h"

/* One embedded file. The table is made by tools/embed.py and sorted by path. */
typedef struct oos_data_file {
    const char *path; /* "gpus/a30.json" */
    const char *bytes;
    size_t len;
} oos_data_file;
extern const oos_data_file oos_data_embedded[];
extern const size_t oos_data_embedded_count;

/* `dir` NULL: the embedded file. The bytes live in the arena or in the binary. */
oomsight_status oos_data_read(oos_arena *arena, const char *dir, const char *path, oos_view *ret_bytes,
                              oomsight_error *reterr);

/* All files below `folder` ("gpus"), sorted by path. */
oomsight_status oos_data_list(oos_arena *arena, const char *dir, const char *folder,
                              oos_data_file **ret_files, size_t *ret_count, oomsight_error *reterr);

#endif
